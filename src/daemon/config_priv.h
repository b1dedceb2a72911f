#ifndef TELLERD_DAEMON_CONFIG_PRIV_H
#define TELLERD_DAEMON_CONFIG_PRIV_H

#include "tellerd/daemon/config.h"

/* One row of options.def. */
enum value_type {
    VALUE_TEXT,
    VALUE_CHOICE,
    VALUE_LIST,
    VALUE_COUNT,
    VALUE_BYTES,
    VALUE_DURATION,
    VALUE_SWITCH,
    VALUE_SHARE,
    VALUE_MODE
};

struct option {
    const char *name; /* with underscores */
    enum value_type type;
    const char *fallback; /* the default */
    const char *min;
    const char *max;
    const char *unit;
    bool reload;
    const char *section;
    const char *help;
    size_t offset; /* of the field in struct config */
};

extern const struct option config_options[OPTION_COUNT];

enum { OPTION_NAME_MAX = 64 };

/* Row with that name ('_' counts as '-'), NULL when there is none. */
const struct option *option_find(const char *name);
/* The row whose name is nearest, NULL when none is near. */
const struct option *option_nearest(const char *name);
/* The name as people see it, with hyphens; the variable, TELLERD_NAME. */
void option_display(const struct option *option, char out[OPTION_NAME_MAX]);
void option_variable(const struct option *option, char out[OPTION_NAME_MAX]);

/*
 * Parses text into the option's field; a LIST gets the items of text, after those it has when
 * append.  On failure the field is as it was.  Errors: BAD_CONFIG, the text does not name the
 * option.
 */
enum status option_set(struct config *config, const struct option *option, const char *text,
                       bool append, struct error *err) WARN_UNUSED;
/* Writes the field as a person would write it. */
void option_write(const struct config *config, const struct option *option, struct buf *out);
void option_free(struct config *config, const struct option *option);
/* Exchanges the fields of two configurations. */
void option_swap(struct config *a, struct config *b, const struct option *option);

#endif
