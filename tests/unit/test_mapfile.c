#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/check_main.h"
#include "tellerd/base/mapfile.h"

static char folder[64];
static char path[128];

static void setup(void)
{
    snprintf(folder, sizeof folder, "/tmp/test_mapfile.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/file", folder);
}

static void teardown(void)
{
    unlink(path);
    rmdir(folder);
}

static void write_file(size_t size)
{
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    for (size_t i = 0; i < size; i++)
        fputc((int)(i % 251), file);
    ck_assert_int_eq(fclose(file), 0);
}

START_TEST(a_file_is_seen_whole)
{
    struct mapfile map;
    write_file(100001);
    ck_assert_int_eq(mapfile_open(&map, path, NULL), STATUS_OK);
    ck_assert_uint_eq(map.size, 100001);
    for (size_t i = 0; i < map.size; i++)
        ck_assert_uint_eq(map.data[i], i % 251);
    mapfile_close(&map);
    ck_assert_ptr_null(map.data);
    mapfile_close(&map);
}
END_TEST

START_TEST(hints_of_any_range_change_nothing)
{
    struct mapfile map;
    write_file(50000);
    ck_assert_int_eq(mapfile_open(&map, path, NULL), STATUS_OK);
    static const size_t at[] = {0, 1, 4095, 4096, 8191, 49999, 50000, 60000, SIZE_MAX};
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++)
        for (size_t k = 0; k < sizeof at / sizeof at[0]; k++) {
            mapfile_will_need(&map, at[i], at[k]);
            mapfile_dont_need(&map, at[i], at[k]);
        }
    for (size_t i = 0; i < map.size; i++)
        ck_assert_uint_eq(map.data[i], i % 251);
    mapfile_close(&map);
}
END_TEST

START_TEST(an_empty_file_is_empty)
{
    struct mapfile map = {.size = 9};
    write_file(0);
    ck_assert_int_eq(mapfile_open(&map, path, NULL), STATUS_OK);
    ck_assert_uint_eq(map.size, 0);
    ck_assert_ptr_null(map.data);
    mapfile_will_need(&map, 0, 10);
    mapfile_close(&map);
}
END_TEST

START_TEST(what_is_no_readable_file_is_an_error_with_its_path)
{
    struct mapfile map = {.size = 9};
    struct error err;
    ck_assert_int_eq(mapfile_open(&map, path, &err), STATUS_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(err.text, path));
    ck_assert_int_eq(mapfile_open(&map, folder, &err), STATUS_IO);
    ck_assert_ptr_nonnull(strstr(err.text, "not a regular file"));
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(mapfile_open(&map, path, &err), STATUS_IO);
    ck_assert_uint_eq(map.size, 9);
}
END_TEST

static void add_cases(Suite *suite)
{
    TCase *tcase = tcase_create("mapfile");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_file_is_seen_whole);
    tcase_add_test(tcase, hints_of_any_range_change_nothing);
    tcase_add_test(tcase, an_empty_file_is_empty);
    tcase_add_test(tcase, what_is_no_readable_file_is_an_error_with_its_path);
    suite_add_tcase(suite, tcase);
}

CHECK_MAIN("mapfile", add_cases)
