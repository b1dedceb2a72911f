#ifndef TELLERD_SUPPORT_GGUF_CASE_H
#define TELLERD_SUPPORT_GGUF_CASE_H

/*
 * What tests of GGUF files share: a fixture with a directory and a builder, opening what was built,
 * and expecting errors.  After each of the gguf_case_* functions the builder starts anew.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "support/check_main.h"
#include "support/gguf_build.h"
#include "support/temp_dir.h"
#include "tellerd/model/checkpoint.h"

static struct temp_dir dir;
static struct gguf_build b;

static inline void gguf_case_set_up(void)
{
    temp_dir_make(&dir);
    gguf_build_init(&b);
}

static inline void gguf_case_tear_down(void)
{
    gguf_build_done(&b);
    temp_dir_remove(&dir);
}

static inline enum status gguf_case_open_bytes(const void *bytes, size_t size,
                                               struct checkpoint **ret, struct error *err)
{
    return checkpoint_open(temp_dir_write(&dir, "model.gguf", bytes, size), ret, err);
}

/* The bytes must be refused with a text that holds `fragment` and the file's name. */
static inline void gguf_case_refuse_bytes(const void *bytes, size_t size, const char *fragment)
{
    struct checkpoint *cp = NULL;
    struct error err = {0};
    ck_assert_int_eq(gguf_case_open_bytes(bytes, size, &cp, &err), STATUS_BAD_FILE);
    ck_assert_ptr_null(cp);
    ck_assert_msg(strstr(err.text, fragment) != NULL, "\"%s\" is not in \"%s\"", fragment,
                  err.text);
    ck_assert_ptr_nonnull(strstr(err.text, "model.gguf"));
}

static inline void gguf_case_refuse(const char *fragment)
{
    size_t size;
    unsigned char *bytes = gguf_build_bytes(&b, &size);
    gguf_case_refuse_bytes(bytes, size, fragment);
    free(bytes);
    gguf_build_done(&b);
    gguf_build_init(&b);
}

static inline struct checkpoint *gguf_case_open(void)
{
    size_t size;
    struct checkpoint *cp = NULL;
    struct error err = {0};
    unsigned char *bytes = gguf_build_bytes(&b, &size);
    enum status status = gguf_case_open_bytes(bytes, size, &cp, &err);
    ck_assert_msg(status == STATUS_OK, "%s", err.text);
    free(bytes);
    gguf_build_done(&b);
    gguf_build_init(&b);
    return cp;
}

#endif
