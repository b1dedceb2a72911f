#ifndef TELLERD_BASE_MAPFILE_H
#define TELLERD_BASE_MAPFILE_H

#include <stddef.h>

#include "tellerd/base/status.h"

/* A file mapped read-only and private.  A file that shrinks while mapped raises SIGBUS on access:
 * documented, not caught. */
struct mapfile {
    const unsigned char *data;
    size_t size;
};

/* Maps a regular file; an empty file gives size 0 and data NULL.  Errors: NOT_FOUND, IO (text has
 * path and reason). */
enum status mapfile_open(struct mapfile *map, const char *path, struct error *err) WARN_UNUSED;
void mapfile_close(struct mapfile *map);
/* Hints for [offset, offset + len): will be read soon / is not needed in memory now.  Never fail.
 */
void mapfile_will_need(const struct mapfile *map, size_t offset, size_t len);
void mapfile_dont_need(const struct mapfile *map, size_t offset, size_t len);

#endif
