#ifndef TELLERD_SUPPORT_TEMP_DIR_H
#define TELLERD_SUPPORT_TEMP_DIR_H

/* A directory of one test's own, and files in it.  The directory is removed by temp_dir_remove,
 * with the plain files that were made through this header. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEMP_DIR_FILES = 32 };

struct temp_dir {
    char path[256];
    char files[TEMP_DIR_FILES][128];
    unsigned n_files;
};

static inline void temp_dir_make(struct temp_dir *dir)
{
    const char *base = getenv("TMPDIR");
    memset(dir, 0, sizeof *dir);
    snprintf(dir->path, sizeof dir->path, "%s/tellerd-test-XXXXXX", base ? base : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(dir->path));
}

/* The path of a file in the directory, to be removed with it; lives until the next call but three.
 */
static inline const char *temp_dir_path(struct temp_dir *dir, const char *name)
{
    static char paths[4][512];
    static unsigned turn;
    unsigned i = 0;
    while (i < dir->n_files && strcmp(dir->files[i], name) != 0)
        i++;
    ck_assert_uint_lt(i, TEMP_DIR_FILES);
    if (i == dir->n_files)
        snprintf(dir->files[dir->n_files++], sizeof dir->files[0], "%s", name);
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", dir->path, name);
    return path;
}

/* Writes (or replaces) a file; returns its path. */
static inline const char *temp_dir_write(struct temp_dir *dir, const char *name, const void *bytes,
                                         size_t len)
{
    const char *path = temp_dir_path(dir, name);
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, len, file), len);
    ck_assert_int_eq(fclose(file), 0);
    return path;
}

static inline void temp_dir_remove(struct temp_dir *dir)
{
    for (unsigned i = 0; i < dir->n_files; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", dir->path, dir->files[i]);
        unlink(path);
    }
    ck_assert_int_eq(rmdir(dir->path), 0);
}

#endif
