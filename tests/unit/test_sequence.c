#include "config.h"

#include <signal.h>
#include <stdint.h>
#include <string.h>

#include "support/check_main.h"
#include "tellerd/engine/sequence.h"
#include "tellerd/model/hparams.h"

enum { P = 4 };
static const uint32_t prompt[10] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3};

static const bool legal[SEQUENCE_STATE_COUNT][SEQUENCE_STATE_COUNT] = {
    /*             waiting prefill decode done cancelled failed */
    /* waiting */ {0, 1, 1, 1, 1, 1},
    /* prefill */ {1, 0, 1, 1, 1, 1},
    /* decode  */ {1, 0, 0, 1, 1, 1},
};

START_TEST(moves_are_those_of_the_table)
{
    for (int from = 0; from < SEQUENCE_STATE_COUNT; from++) {
        for (int to = 0; to < SEQUENCE_STATE_COUNT; to++)
            ck_assert_msg(sequence_move_is_legal((enum sequence_state)from,
                                                 (enum sequence_state)to) == legal[from][to],
                          "%s > %s", sequence_state_name((enum sequence_state)from),
                          sequence_state_name((enum sequence_state)to));
    }
}
END_TEST

START_TEST(an_ending_is_final)
{
    struct sequence seq;

    sequence_init(&seq, prompt, 10, 5);
    sequence_move(&seq, SEQUENCE_CANCELLED);
    sequence_move(&seq, SEQUENCE_DONE);
}
END_TEST

START_TEST(logits_are_wanted_for_the_last_row_and_the_unreported_prompt)
{
    struct sequence seq;

    sequence_init(&seq, prompt, 10, 5);
    ck_assert_uint_eq(sequence_logit_rows(&seq, 0, 10), 1);
    ck_assert_uint_eq(sequence_logit_rows(&seq, 0, 9), 0);
    ck_assert_uint_eq(sequence_logit_rows(&seq, 9, 1), 1);
    ck_assert_uint_eq(sequence_logit_rows(&seq, 4, 0), 0);
    seq.logits_from = 3;
    for (uint32_t from = 0; from < 10; from++) {
        for (uint32_t n = 1; n <= 10 - from; n++) {
            uint32_t count = 0;

            for (uint32_t p = from; p < from + n; p++)
                count += sequence_wants_logits(&seq, p);
            ck_assert_uint_eq(sequence_logit_rows(&seq, from, n), count);
        }
    }
    ck_assert_uint_eq(sequence_logit_rows(&seq, 0, 10), 7);
    seq.uses_prefix = true;
    ck_assert_uint_eq(sequence_matchable(&seq), 3);
    seq.logits_from = SEQUENCE_NO_LOGITS;
    ck_assert_uint_eq(sequence_matchable(&seq), 9);
    seq.uses_prefix = false;
    ck_assert_uint_eq(sequence_matchable(&seq), 0);
}
END_TEST

START_TEST(blocks_wanted_leave_room_for_one_token_if_there_may_be_one)
{
    struct sequence seq;

    sequence_init(&seq, prompt, 8, 5);
    ck_assert_uint_eq(sequence_blocks_wanted(&seq, P), 3);
    sequence_init(&seq, prompt, 8, 0);
    ck_assert_uint_eq(sequence_blocks_wanted(&seq, P), 2);
    sequence_init(&seq, prompt, 7, 1);
    ck_assert_uint_eq(sequence_blocks_wanted(&seq, P), 2);
}
END_TEST

START_TEST(slots_number_value_ids_by_first_appearance)
{
    const uint32_t slots[10] = {0, 1, 2, 1, 3, 4, 5, 6, 3, 0}; /* without a sink row */
    struct sequence seq;

    sequence_init(&seq, prompt, 10, 2);
    ck_assert_int_eq(sequence_reserve(&seq, P, 100), STATUS_OK);
    sequence_extend_slots(&seq, 4, HPARAMS_NO_ROW);
    ck_assert_uint_eq(seq.slots.n_slots, 3);
    sequence_extend_slots(&seq, 10, HPARAMS_NO_ROW);
    ck_assert_mem_eq(seq.slots.slot_of_position, slots, sizeof(slots));
    ck_assert_uint_eq(seq.slots.n_slots, 7);
    for (int p = 0; p < 10; p++)
        ck_assert_uint_eq(seq.slots.value_id_of_slot[slots[p]], prompt[p]);
    /* starting over gives the same map */
    sequence_match(&seq, NULL, P);
    ck_assert_uint_eq(seq.slots.n_slots, 0);
    sequence_extend_slots(&seq, 10, HPARAMS_NO_ROW);
    ck_assert_mem_eq(seq.slots.slot_of_position, slots, sizeof(slots));
    /* with a sink row, position 0 has a value id of its own */
    sequence_match(&seq, NULL, P);
    sequence_extend_slots(&seq, 10, 99);
    ck_assert_uint_eq(seq.slots.value_id_of_slot[0], 99);
    ck_assert_uint_eq(seq.slots.n_slots, 8);
    ck_assert_uint_eq(seq.slots.value_id_of_slot[seq.slots.slot_of_position[9]], 3);
    sequence_done(&seq);
}
END_TEST

START_TEST(slot_maps_hold_ids_made_to_collide)
{
    enum { LEN = 300 };
    uint32_t ids[LEN];
    struct sequence seq;

    for (uint32_t i = 0; i < LEN; i++)
        ids[i] = i * 4096;
    sequence_init(&seq, ids, LEN, 1);
    ck_assert_int_eq(sequence_reserve(&seq, P, LEN * 4096), STATUS_OK);
    sequence_extend_slots(&seq, LEN, HPARAMS_NO_ROW);
    ck_assert_uint_eq(seq.slots.n_slots, LEN);
    for (uint32_t i = 0; i < LEN; i++)
        ck_assert_uint_eq(seq.slots.value_id_of_slot[i], ids[i]);
    sequence_done(&seq);
}
END_TEST

struct setup {
    struct kv_pool *pool;
    struct prefix_cache *cache;
};

static struct setup setup_new(void)
{
    struct setup s;

    s.pool = kv_pool_new(12, P);
    s.cache = prefix_cache_new(s.pool, (struct hash128){0, 0});
    return s;
}

static void setup_free(struct setup *s)
{
    ck_assert_uint_eq(kv_pool_available(s->pool), 12);
    ck_assert(kv_pool_consistent(s->pool));
    ck_assert(prefix_cache_consistent(s->cache));
    prefix_cache_free(s->cache);
    kv_pool_free(s->pool);
}

static void start(struct setup *s, struct sequence *seq, uint32_t n_prompt, uint32_t max_output)
{
    sequence_init(seq, prompt, n_prompt, max_output);
    seq->uses_prefix = true;
    ck_assert_int_eq(sequence_reserve(seq, P, 0), STATUS_OK);
    sequence_match(seq, s->cache, P);
    ck_assert(sequence_grow(seq, s->pool, sequence_blocks_wanted(seq, P)));
}

START_TEST(full_blocks_go_to_the_cache_as_they_are_computed)
{
    struct setup s = setup_new();
    struct sequence a, b;

    start(&s, &a, 10, 6);
    ck_assert_uint_eq(a.n_computed, 0);
    ck_assert_uint_eq(a.n_blocks, 3);
    sequence_advance(&a, s.pool, s.cache, 5);
    ck_assert_uint_eq(prefix_cache_size(s.cache), 1);
    /* shared while a lives; the partial block is not */
    start(&s, &b, 10, 6);
    ck_assert_uint_eq(b.n_computed, 4);
    ck_assert_uint_eq(b.blocks[0], a.blocks[0]);
    ck_assert_uint_ne(b.blocks[1], a.blocks[1]);
    sequence_advance(&a, s.pool, s.cache, 5);
    /* b computes the same second block: it is swapped for a's */
    sequence_advance(&b, s.pool, s.cache, 6);
    ck_assert_uint_eq(b.blocks[1], a.blocks[1]);
    ck_assert_uint_ne(b.blocks[2], a.blocks[2]);
    ck_assert_uint_eq(prefix_cache_size(s.cache), 2);
    /* output goes there too */
    sequence_append(&a, 7);
    sequence_advance(&a, s.pool, s.cache, 1);
    sequence_append(&a, 8);
    sequence_advance(&a, s.pool, s.cache, 1);
    ck_assert_uint_eq(prefix_cache_size(s.cache), 3);
    sequence_release(&a, s.pool);
    sequence_release(&b, s.pool);
    sequence_done(&a);
    sequence_done(&b);
    setup_free(&s);
}
END_TEST

START_TEST(the_last_token_is_always_computed_anew)
{
    for (uint32_t n = 1; n <= 9; n++) {
        struct setup s = setup_new();
        struct sequence a;

        for (int again = 0; again < 2; again++) {
            start(&s, &a, n, 3);
            ck_assert_uint_eq(a.n_computed, again ? (n - 1) / P * P : 0);
            sequence_advance(&a, s.pool, s.cache, n - a.n_computed);
            sequence_release(&a, s.pool);
            sequence_done(&a);
        }
        setup_free(&s);
    }
}
END_TEST

START_TEST(a_fork_shares_full_blocks_and_copies_the_partial_one)
{
    for (uint32_t n = 7; n <= 8; n++) {
        struct setup s = setup_new();
        struct sequence a, b;
        uint32_t from, to;

        start(&s, &a, n, 4);
        sequence_advance(&a, s.pool, s.cache, n);
        sequence_init(&b, prompt, n, 4);
        b.uses_prefix = true;
        ck_assert_int_eq(sequence_reserve(&b, P, 0), STATUS_OK);
        ck_assert(sequence_fork(&b, &a, s.pool, &from, &to));
        ck_assert_uint_eq(b.n_computed, n);
        ck_assert_uint_eq(b.blocks[0], a.blocks[0]);
        if (n == 7) {
            ck_assert_uint_eq(from, a.blocks[1]);
            ck_assert_uint_eq(to, b.blocks[1]);
            ck_assert_uint_ne(from, to);
            ck_assert_uint_eq(kv_pool_n_valid(s.pool, to), 3);
        } else {
            ck_assert_uint_eq(from, KV_NO_BLOCK);
            ck_assert_uint_eq(b.blocks[1], a.blocks[1]);
            ck_assert_uint_ne(b.blocks[2], a.blocks[2]);
        }
        sequence_append(&a, 50);
        sequence_append(&b, 60);
        sequence_advance(&a, s.pool, s.cache, 1);
        sequence_advance(&b, s.pool, s.cache, 1);
        ck_assert_uint_eq(kv_pool_ids(s.pool, a.blocks[n / P])[n % P], 50);
        ck_assert_uint_eq(kv_pool_ids(s.pool, b.blocks[n / P])[n % P], 60);
        sequence_release(&a, s.pool);
        sequence_release(&b, s.pool);
        sequence_done(&a);
        sequence_done(&b);
        setup_free(&s);
    }
}
END_TEST

START_TEST(growing_beyond_the_pool_changes_nothing)
{
    struct setup s = setup_new();
    struct sequence a;
    uint32_t others[11];

    ck_assert(kv_pool_take(s.pool, 11, others));
    sequence_init(&a, prompt, 10, 20);
    ck_assert_int_eq(sequence_reserve(&a, P, 0), STATUS_OK);
    ck_assert(!sequence_grow(&a, s.pool, 3));
    ck_assert_uint_eq(a.n_blocks, 0);
    ck_assert(sequence_grow(&a, s.pool, 1));
    ck_assert(sequence_grow(&a, s.pool, 1));
    ck_assert_uint_eq(a.n_blocks, 1);
    sequence_release(&a, s.pool);
    sequence_done(&a);
    kv_pool_unref_table(s.pool, others, 11);
    setup_free(&s);
}
END_TEST

static void add_cases(Suite *suite)
{
    TCase *breaches = tcase_create("contract breaches");

    CHECK_ADD(suite, "states", moves_are_those_of_the_table);
    tcase_add_test_raise_signal(breaches, an_ending_is_final, SIGABRT);
    suite_add_tcase(suite, breaches);
    CHECK_ADD(suite, "rows", logits_are_wanted_for_the_last_row_and_the_unreported_prompt,
              blocks_wanted_leave_room_for_one_token_if_there_may_be_one);
    CHECK_ADD(suite, "slot map", slots_number_value_ids_by_first_appearance,
              slot_maps_hold_ids_made_to_collide);
    CHECK_ADD(suite, "blocks", full_blocks_go_to_the_cache_as_they_are_computed,
              the_last_token_is_always_computed_anew,
              a_fork_shares_full_blocks_and_copies_the_partial_one,
              growing_beyond_the_pool_changes_nothing);
}

CHECK_MAIN("engine/sequence", add_cases)
