#ifndef TELLERD_DAEMON_INI_H
#define TELLERD_DAEMON_INI_H

#include <stddef.h>

#include "tellerd/base/status.h"

/*
 * The reader of configuration files: sections, key = value, comments (src/daemon/config_ini.c shows
 * the form).  Calls on_pair for each key, in order; section is "" before the first.  on_pair
 * returns NOT_FOUND when the key is at fault and BAD_CONFIG when the value is; reading ends then.
 * Any thread.  Errors: BAD_CONFIG, the text begins with "name:line:column: ", also for those of
 * on_pair.
 */
typedef enum status (*ini_pair_fn)(void *ctx, const char *section, const char *key,
                                   const char *value, struct error *err);
enum status ini_parse(const char *name, const char *text, size_t len, ini_pair_fn on_pair,
                      void *ctx, struct error *err) WARN_UNUSED;

/* Reads a whole file of at most max_bytes into *ret (free it), NUL-terminated.  Any thread.
 * Errors: NOT_FOUND, IO, BAD_CONFIG when it is longer. */
enum status ini_read_file(const char *path, size_t max_bytes, char **ret, size_t *ret_len,
                          struct error *err) WARN_UNUSED;

#endif
