/*
 * Files mapped read-only.  The descriptor is closed at once: the mapping keeps the file.
 */
#include "config.h"

#include "tellerd/base/mapfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static enum status fail(struct error *err, const char *path, int code)
{
    enum status status = code == ENOENT || code == ENOTDIR ? STATUS_NOT_FOUND : STATUS_IO;
    return error_set(err, status, "%s: %s", path, strerror(code));
}

static enum status map_descriptor(int fd, const char *path, struct mapfile *map, struct error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return fail(err, path, errno);
    if (!S_ISREG(st.st_mode))
        return error_set(err, STATUS_IO, "%s: not a regular file", path);
    if ((uintmax_t)st.st_size > SIZE_MAX)
        return fail(err, path, EFBIG);
    void *data = NULL;
    if (st.st_size > 0) {
        data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (data == MAP_FAILED)
            return fail(err, path, errno);
    }
    map->data = data;
    map->size = (size_t)st.st_size;
    return STATUS_OK;
}

enum status mapfile_open(struct mapfile *map, const char *path, struct error *err)
{
    /* O_NONBLOCK: a FIFO must be refused, not waited for */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return fail(err, path, errno);
    enum status status = map_descriptor(fd, path, map, err);
    close(fd);
    return status;
}

void mapfile_close(struct mapfile *map)
{
    if (map->data)
        munmap((void *)(uintptr_t)map->data, map->size);
    map->data = NULL;
    map->size = 0;
}

/* Gives the advice for the pages of the range: those it touches, or only those it covers whole. */
static void advise(const struct mapfile *map, size_t offset, size_t len, int advice, bool whole)
{
    if (!map->data || offset >= map->size || len == 0)
        return;
    size_t end = len > map->size - offset ? map->size : offset + len;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t first = whole ? (offset + page - 1) / page * page : offset / page * page;
    if (whole && end != map->size)
        end -= end % page;
    if (first < end)
        (void)madvise((void *)(uintptr_t)(map->data + first), end - first, advice);
}

void mapfile_will_need(const struct mapfile *map, size_t offset, size_t len)
{
    advise(map, offset, len, MADV_WILLNEED, false);
}

void mapfile_dont_need(const struct mapfile *map, size_t offset, size_t len)
{
    advise(map, offset, len, MADV_DONTNEED, true);
}
