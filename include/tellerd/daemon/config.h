#ifndef TELLERD_DAEMON_CONFIG_H
#define TELLERD_DAEMON_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tellerd/base/buf.h"
#include "tellerd/base/status.h"

/*
 * The configuration: one struct with a field for each row of options.def.  Later sources win:
 * defaults, the configuration file, the *.conf files in conf.d beside it (sorted by name),
 * environment, flags.
 * Not locked: the thread that loads it owns it.
 */
struct config_list {
    char **items;
    size_t n;
};

#define OPTION_FIELD_TEXT(name)     char *name;
#define OPTION_FIELD_CHOICE(name)   char *name;
#define OPTION_FIELD_LIST(name)     struct config_list name;
#define OPTION_FIELD_COUNT(name)    uint64_t name;
#define OPTION_FIELD_BYTES(name)    uint64_t name;
#define OPTION_FIELD_DURATION(name) uint64_t name##_ns;
#define OPTION_FIELD_SWITCH(name)   bool name;
#define OPTION_FIELD_SHARE(name)    double name;
#define OPTION_FIELD_MODE(name)     unsigned name;

enum option_id {
#define OPTION(name, ...) OPTION_##name,
#include "tellerd/daemon/options.def"
#undef OPTION
    OPTION_COUNT
};

enum config_source {
    CONFIG_DEFAULT,
    CONFIG_FILE,
    CONFIG_ENVIRONMENT,
    CONFIG_FLAG,
};

struct config {
#define OPTION(name, type, ...) OPTION_FIELD_##type(name)
#include "tellerd/daemon/options.def"
#undef OPTION
    char *file;                              /* that was read, NULL when none */
    enum config_source source[OPTION_COUNT]; /* where each value comes from */
};

/* What the command line asks for. */
enum config_command {
    CONFIG_RUN,
    CONFIG_CHECK,        /* -t, --check */
    CONFIG_DUMP,         /* -T, --dump: the effective configuration */
    CONFIG_HELP,         /* -h, --help */
    CONFIG_VERSION,      /* -V, --version */
    CONFIG_PRINT_CONFIG, /* --print-config: the commented reference file */
    CONFIG_PRINT_MAN,    /* --print-man-options: the option list of tellerd.conf(5) */
};

/*
 * Reads all sources into *ret (free with config_done).  env is a NULL-terminated environment.
 * Checks types and ranges, not files.  For the last four commands nothing is read and *ret holds
 * the defaults.  What may be a mistake (unknown TELLERD_ variables) goes to warnings, a line each;
 * may be NULL.  Errors: BAD_CONFIG, the text begins with the place (file:line:column, flag,
 * variable); nothing is left to free.
 */
enum status config_load(int argc, char *const argv[], char *const env[], struct config *ret,
                        enum config_command *ret_command, struct buf *warnings,
                        struct error *err) WARN_UNUSED;
void config_done(struct config *config);

/*
 * Checks what reaches beyond one value: the model is there and readable, addresses parse and do not
 * repeat, other machines are not let in without keys, the key file is good.  Needs no network and
 * changes nothing.  Warnings as above.  Errors: BAD_CONFIG.
 */
enum status config_check(const struct config *config, struct buf *warnings,
                         struct error *err) WARN_UNUSED;

/* max_connections, or as many as the hard limit of open files lets this process have. */
uint64_t config_possible_connections(const struct config *config);

/*
 * A reload: takes the values of all options marked RELOAD from fresh (just loaded) into live, which
 * keeps its others.  Both fresh and the mixture are checked as config_check does, the second since
 * it is what the daemon then runs with: fresh may listen elsewhere and so need no keys.  All or
 * nothing: on failure live is as it was.  Names of options whose values differ but need a restart
 * are appended to restart (may be NULL), with blanks between.  fresh must still be freed.  Errors:
 * BAD_CONFIG.
 */
enum status config_reload(struct config *live, struct config *fresh, struct buf *restart,
                          struct buf *warnings, struct error *err) WARN_UNUSED;

/* Texts made from the table: --help, the reference file, the option list of the man page. */
void config_write_help(struct buf *out);
void config_write_reference(struct buf *out);
void config_write_man(struct buf *out);
/* The effective configuration as a file that reads back the same, with each value's source. */
void config_write_dump(const struct config *config, struct buf *out);

#endif
