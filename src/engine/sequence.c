/*
 * What one choice holds and how it moves.  The functions that touch the pool keep one rule: full
 * blocks of the table may be shared (with the prefix cache, with siblings) and are never written
 * again; a block that is not full is this sequence's alone.
 */
#include "config.h"

#include "tellerd/engine/sequence.h"

#include <stdlib.h>
#include <string.h>

#include "tellerd/base/mem.h"
#include "tellerd/model/hparams.h"

#define BIT(state) (1u << (state))
enum {
    ENDINGS = BIT(SEQUENCE_DONE) | BIT(SEQUENCE_CANCELLED) | BIT(SEQUENCE_FAILED),
};

static const struct {
    const char *name;
    unsigned legal; /* states it may move to */
} states[SEQUENCE_STATE_COUNT] = {
    /* WAITING > DECODE: a sibling that takes over another's computed prompt */
    [SEQUENCE_WAITING] = {"waiting", BIT(SEQUENCE_PREFILL) | BIT(SEQUENCE_DECODE) | ENDINGS},
    [SEQUENCE_PREFILL] = {"prefill", BIT(SEQUENCE_DECODE) | BIT(SEQUENCE_WAITING) | ENDINGS},
    [SEQUENCE_DECODE] = {"decode", BIT(SEQUENCE_WAITING) | ENDINGS},
    [SEQUENCE_DONE] = {"done", 0},
    [SEQUENCE_CANCELLED] = {"cancelled", 0},
    [SEQUENCE_FAILED] = {"failed", 0},
};

void sequence_init(struct sequence *seq, const uint32_t *prompt, uint32_t n_prompt,
                   uint32_t max_output)
{
    REQUIRE(n_prompt >= 1 && max_output <= UINT32_MAX - n_prompt);
    *seq = (struct sequence){
        .ids = prompt,
        .n_prompt = n_prompt,
        .n_ids = n_prompt,
        .max_output = max_output,
        .capacity = n_prompt + max_output,
        .logits_from = SEQUENCE_NO_LOGITS,
        .state = SEQUENCE_WAITING,
    };
}

void sequence_done(struct sequence *seq)
{
    REQUIRE(seq->n_blocks == 0);
    free(seq->own_ids);
    free(seq->blocks);
    free(seq->slots.slot_of_position);
    free(seq->slots.value_id_of_slot);
    free(seq->slots.table);
    *seq = (struct sequence){.state = seq->state};
}

static uint32_t blocks_for(uint32_t n_positions, uint32_t block_size)
{
    return n_positions / block_size + (n_positions % block_size != 0);
}

static bool reserve_slots(struct slot_map *slots, uint32_t capacity, uint32_t bank_rows)
{
    uint32_t max_slots = capacity < bank_rows ? capacity : bank_rows;
    size_t size = 16;

    while (size < (size_t)max_slots * 2)
        size *= 2;
    slots->table_mask = (uint32_t)(size - 1);
    slots->slot_of_position = calloc(capacity, sizeof(*slots->slot_of_position));
    slots->value_id_of_slot = calloc(max_slots, sizeof(*slots->value_id_of_slot));
    slots->table = calloc(size, sizeof(*slots->table));
    return slots->slot_of_position && slots->value_id_of_slot && slots->table;
}

enum status sequence_reserve(struct sequence *seq, uint32_t block_size, uint32_t bank_rows)
{
    struct slot_map slots = {0};
    uint32_t *ids, *blocks;

    if (seq->own_ids)
        return STATUS_OK;
    ids = calloc(seq->capacity, sizeof(*ids));
    blocks = calloc(blocks_for(seq->capacity, block_size), sizeof(*blocks));
    if (!ids || !blocks || (bank_rows && !reserve_slots(&slots, seq->capacity, bank_rows))) {
        free(ids);
        free(blocks);
        free(slots.slot_of_position);
        free(slots.value_id_of_slot);
        free(slots.table);
        return STATUS_NO_MEMORY;
    }
    memcpy(ids, seq->ids, seq->n_ids * sizeof(*ids));
    seq->ids = seq->own_ids = ids;
    seq->blocks = blocks;
    seq->slots = slots;
    return STATUS_OK;
}

bool sequence_move_is_legal(enum sequence_state from, enum sequence_state to)
{
    return from < SEQUENCE_STATE_COUNT && to < SEQUENCE_STATE_COUNT &&
           (states[from].legal & BIT(to));
}

void sequence_move(struct sequence *seq, enum sequence_state to)
{
    REQUIRE(sequence_move_is_legal(seq->state, to));
    seq->state = to;
}

const char *sequence_state_name(enum sequence_state state)
{
    return state < SEQUENCE_STATE_COUNT ? states[state].name : "unknown";
}

void sequence_append(struct sequence *seq, uint32_t id)
{
    REQUIRE(seq->own_ids && seq->n_ids < seq->capacity);
    seq->own_ids[seq->n_ids++] = id;
}

uint32_t sequence_blocks_wanted(const struct sequence *seq, uint32_t block_size)
{
    uint32_t n_positions = seq->n_ids < seq->capacity ? seq->n_ids + 1 : seq->n_ids;

    return blocks_for(n_positions, block_size);
}

uint32_t sequence_logit_rows(const struct sequence *seq, uint32_t n_computed, uint32_t n_rows)
{
    uint32_t end = n_computed + n_rows, n = 0;
    uint32_t from = n_computed > seq->logits_from ? n_computed : seq->logits_from;
    uint32_t to = end < seq->n_prompt ? end : seq->n_prompt;

    if (n_rows == 0)
        return 0;
    if (from < to)
        n = to - from;
    /* the last row, unless it was just counted */
    if (end == seq->n_ids && !(from < to && to == end))
        n++;
    return n;
}

uint32_t sequence_matchable(const struct sequence *seq)
{
    uint32_t n = seq->n_ids - 1;

    if (!seq->uses_prefix)
        return 0;
    return n < seq->logits_from ? n : seq->logits_from;
}

void sequence_match(struct sequence *seq, struct prefix_cache *cache, uint32_t block_size)
{
    REQUIRE(seq->own_ids && seq->n_blocks == 0 && seq->n_computed == 0);
    if (seq->slots.n_positions) {
        memset(seq->slots.table, 0,
               ((size_t)seq->slots.table_mask + 1) * sizeof(*seq->slots.table));
        seq->slots.n_positions = seq->slots.n_slots = 0;
    }
    if (!cache || !seq->uses_prefix)
        return;
    seq->n_blocks =
        prefix_cache_match(cache, seq->cache_salt, seq->ids, sequence_matchable(seq), seq->blocks);
    seq->n_offered = seq->n_blocks;
    seq->n_computed = seq->n_blocks * block_size;
}

bool sequence_grow(struct sequence *seq, struct kv_pool *pool, uint32_t n_blocks)
{
    if (n_blocks <= seq->n_blocks)
        return true;
    REQUIRE(n_blocks <= blocks_for(seq->capacity, kv_pool_block_size(pool)));
    if (!kv_pool_take(pool, n_blocks - seq->n_blocks, seq->blocks + seq->n_blocks))
        return false;
    seq->n_blocks = n_blocks;
    return true;
}

void sequence_advance(struct sequence *seq, struct kv_pool *pool, struct prefix_cache *cache,
                      uint32_t n_rows)
{
    uint32_t block_size = kv_pool_block_size(pool);

    REQUIRE(n_rows <= seq->n_ids - seq->n_computed);
    while (n_rows > 0) {
        uint32_t at = seq->n_computed % block_size, n = block_size - at;

        n = n < n_rows ? n : n_rows;
        kv_pool_write(pool, seq->blocks[seq->n_computed / block_size], at,
                      seq->ids + seq->n_computed, n);
        seq->n_computed += n;
        n_rows -= n;
    }
    if (!cache || !seq->uses_prefix)
        return;
    for (; seq->n_offered < seq->n_computed / block_size; seq->n_offered++) {
        uint32_t *block = &seq->blocks[seq->n_offered];

        *block = prefix_cache_insert(cache, seq->cache_salt,
                                     seq->n_offered ? block[-1] : KV_NO_BLOCK, *block);
    }
}

bool sequence_fork(struct sequence *seq, const struct sequence *from, struct kv_pool *pool,
                   uint32_t *ret_from, uint32_t *ret_to)
{
    uint32_t block_size = kv_pool_block_size(pool);
    uint32_t n_shared = from->n_computed / block_size, fresh;

    REQUIRE(seq->own_ids && seq->n_blocks == 0 && from->n_computed > 0);
    if (!kv_pool_take(pool, 1, &fresh))
        return false;
    memcpy(seq->blocks, from->blocks, n_shared * sizeof(*seq->blocks));
    for (uint32_t i = 0; i < n_shared; i++)
        kv_pool_ref(pool, seq->blocks[i]);
    seq->blocks[n_shared] = fresh;
    seq->n_blocks = n_shared + 1;
    seq->n_offered = from->n_offered;
    seq->n_computed = from->n_computed;
    *ret_from = *ret_to = KV_NO_BLOCK;
    if (from->n_computed % block_size) {
        kv_pool_copy(pool, from->blocks[n_shared], fresh);
        *ret_from = from->blocks[n_shared];
        *ret_to = fresh;
    }
    return true;
}

void sequence_release(struct sequence *seq, struct kv_pool *pool)
{
    kv_pool_unref_table(pool, seq->blocks, seq->n_blocks);
    seq->n_blocks = seq->n_offered = seq->n_computed = 0;
}

uint32_t sequence_value_id(const struct sequence *seq, uint32_t position, uint32_t sink_row)
{
    return position == 0 && sink_row != HPARAMS_NO_ROW ? sink_row : seq->ids[position];
}

static uint32_t slot_of(struct slot_map *slots, uint32_t value_id)
{
    /* ids are dense, so the low bits spread them; growing steps keep chosen ids from making runs */
    uint32_t i = value_id & slots->table_mask;

    for (uint32_t step = 1; slots->table[i]; i = (i + step++) & slots->table_mask) {
        if (slots->value_id_of_slot[slots->table[i] - 1] == value_id)
            return slots->table[i] - 1;
    }
    slots->value_id_of_slot[slots->n_slots] = value_id;
    slots->table[i] = ++slots->n_slots;
    return slots->n_slots - 1;
}

void sequence_extend_slots(struct sequence *seq, uint32_t n_positions, uint32_t sink_row)
{
    struct slot_map *slots = &seq->slots;

    REQUIRE(slots->table && n_positions <= seq->n_ids);
    for (; slots->n_positions < n_positions; slots->n_positions++)
        slots->slot_of_position[slots->n_positions] =
            slot_of(slots, sequence_value_id(seq, slots->n_positions, sink_row));
}
