#ifndef TELLERD_DAEMON_KEYS_H
#define TELLERD_DAEMON_KEYS_H

#include <stddef.h>

#include "tellerd/api/key.h"
#include "tellerd/base/buf.h"
#include "tellerd/base/status.h"

/*
 * The file of API keys.  Each line is "NAME sha256:HEX", "NAME KEY", "sha256:HEX" or "KEY"; empty
 * lines and lines that begin with # are skipped; CRLF is accepted.  NAME is the tenant (letters,
 * digits, '.', '_', '-'), "default" when not given; several keys may have one name.  Only digests
 * are kept; no error or warning quotes a key.
 *
 * Reads path into *ret (free it; NULL when there are none).  A file that others may write is
 * refused; one that others may read gives a line in warnings (may be NULL), as do short keys.
 * Errors: BAD_CONFIG with path and line.
 */
enum status keys_load(const char *path, struct api_key **ret, size_t *ret_n, struct buf *warnings,
                      struct error *err) WARN_UNUSED;

#endif
