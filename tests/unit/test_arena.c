#include "config.h"

#include <stdint.h>
#include <string.h>

#include "support/check_main.h"
#include "tellerd/base/arena.h"

START_TEST(blocks_are_aligned_and_do_not_overlap)
{
    struct arena arena;
    unsigned char *blocks[200];
    arena_init(&arena, 1 << 20);
    for (size_t i = 0; i < 200; i++) {
        blocks[i] = arena_alloc(&arena, i);
        ck_assert_ptr_nonnull(blocks[i]);
        ck_assert_uint_eq((uintptr_t)blocks[i] % 16, 0);
        memset(blocks[i], (int)i, i);
    }
    for (size_t i = 0; i < 200; i++)
        for (size_t k = 0; k < i; k++)
            ck_assert_uint_eq(blocks[i][k], i);
    arena_done(&arena);
}
END_TEST

START_TEST(the_maximum_holds_and_smaller_blocks_still_fit)
{
    struct arena arena;
    arena_init(&arena, 1024);
    ck_assert_ptr_null(arena_alloc(&arena, 1025));
    ck_assert_ptr_nonnull(arena_alloc(&arena, 1000));
    ck_assert_ptr_null(arena_alloc(&arena, 32));
    ck_assert_ptr_nonnull(arena_alloc(&arena, 16));
    ck_assert_ptr_null(arena_alloc(&arena, 1));
    ck_assert_uint_eq(arena.used_bytes, 1024);
    arena_done(&arena);
}
END_TEST

START_TEST(hostile_sizes_are_refused)
{
    struct arena arena;
    arena_init(&arena, SIZE_MAX);
    ck_assert_ptr_null(arena_alloc(&arena, SIZE_MAX));
    ck_assert_ptr_null(arena_alloc(&arena, SIZE_MAX - 8));
    ck_assert_ptr_null(arena_calloc(&arena, SIZE_MAX / 2, 3));
    ck_assert_ptr_null(arena_strndup(&arena, "x", SIZE_MAX));
    arena_done(&arena);
}
END_TEST

START_TEST(reset_gives_the_room_back)
{
    struct arena arena;
    arena_init(&arena, 4096);
    for (int round = 0; round < 100; round++) {
        ck_assert_ptr_nonnull(arena_alloc(&arena, 4000));
        arena_reset(&arena);
        ck_assert_uint_eq(arena.used_bytes, 0);
    }
    arena_done(&arena);
    arena_reset(&arena);
    ck_assert_ptr_nonnull(arena_alloc(&arena, 1));
    arena_done(&arena);
}
END_TEST

START_TEST(big_blocks_get_chunks_of_their_own)
{
    struct arena arena;
    arena_init(&arena, 10 << 20);
    for (int i = 0; i < 3; i++) {
        char *block = arena_alloc(&arena, 3 << 20);
        ck_assert_ptr_nonnull(block);
        memset(block, 1, 3 << 20);
    }
    ck_assert_ptr_null(arena_alloc(&arena, 3 << 20));
    arena_reset(&arena);
    arena_done(&arena);
}
END_TEST

START_TEST(calloc_is_zero_and_strndup_ends)
{
    struct arena arena;
    arena_init(&arena, 1 << 16);
    memset(arena_alloc(&arena, 512), 0xff, 512);
    arena_reset(&arena);
    unsigned char *zero = arena_calloc(&arena, 32, 16);
    for (int i = 0; i < 512; i++)
        ck_assert_uint_eq(zero[i], 0);
    ck_assert_str_eq(arena_strndup(&arena, "teller", 4), "tell");
    ck_assert_str_eq(arena_strndup(&arena, "", 0), "");
    arena_done(&arena);
}
END_TEST

static void add_cases(Suite *suite)
{
    CHECK_ADD(suite, "arena", blocks_are_aligned_and_do_not_overlap,
              the_maximum_holds_and_smaller_blocks_still_fit, hostile_sizes_are_refused,
              reset_gives_the_room_back, big_blocks_get_chunks_of_their_own,
              calloc_is_zero_and_strndup_ends);
}

CHECK_MAIN("arena", add_cases)
