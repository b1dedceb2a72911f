#include "config.h"

/*
 * The forward pass as a filter, for check_logits.py: lines of token ids in, a line of JSON a line
 * out (tests/oracle/README.md).
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tellerd/backend/backend.h"
#include "tellerd/base/mem.h"
#include "tellerd/model/gpt.h"

enum { BLOCK_SIZE = 16, MOST_IDS = 1 << 16 };

struct options {
    const char *model;
    struct backend_config backend;
    enum backend_value_path value_path;
    enum tensor_type type_k, type_v, bank_type;
    uint32_t chunk, n_greedy;
};

/* The line being run: a sequence and what it takes to step it. */
struct run {
    const struct options *options;
    const struct hparams *hp;
    struct gpt *gpt;
    const struct backend_ops *ops;
    struct backend *be;
    struct backend_cache *cache;
    uint32_t n_tokens; /* ids that a token stands for */
    uint32_t *ids, *previous, *value_ids, *positions, *slot_of, *id_of_slot, *blocks, *rows;
    uint32_t *slot_of_id; /* [bank_rows] */
    uint32_t n_ids, n_done, n_slots;
};

static _Noreturn void fail(const char *text)
{
    fprintf(stderr, "logits_cli: %s\n", text);
    exit(EXIT_FAILURE);
}

static uint32_t number_of(const char *text)
{
    char *end;
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    if (end == text || *end || errno || value > MOST_IDS)
        fail("an option wants a number");
    return (uint32_t)value;
}

static enum tensor_type type_of(const char *text)
{
    enum tensor_type type;
    if (!tensor_type_parse(text, &type))
        fail("an option wants f32, bf16, f16 or int8");
    return type;
}

static struct options options_of(int argc, char **argv)
{
    struct options o = {.backend = {.name = "cpu"},
                        .type_k = TENSOR_BF16,
                        .type_v = TENSOR_BF16,
                        .bank_type = TENSOR_TYPE_LIMIT,
                        .chunk = 512};
    if (argc < 2 || argc % 2 != 0)
        fail("usage: logits_cli MODEL [--option VALUE]...");
    o.model = argv[1];
    for (int i = 2; i < argc; i += 2) {
        const char *value = argv[i + 1];
        if (strcmp(argv[i], "--threads") == 0)
            o.backend.n_threads = number_of(value);
        else if (strcmp(argv[i], "--cpu-path") == 0)
            o.backend.cpu_path = value;
        else if (strcmp(argv[i], "--activations") == 0)
            o.backend.cpu_activations = value;
        else if (strcmp(argv[i], "--chunk") == 0)
            o.chunk = number_of(value);
        else if (strcmp(argv[i], "--value-path") == 0)
            o.value_path = strcmp(value, "dedup") == 0 ? BACKEND_VALUE_DEDUP : BACKEND_VALUE_GATHER;
        else if (strcmp(argv[i], "--kv-type-k") == 0)
            o.type_k = type_of(value);
        else if (strcmp(argv[i], "--kv-type-v") == 0)
            o.type_v = type_of(value);
        else if (strcmp(argv[i], "--bank-type") == 0)
            o.bank_type = type_of(value);
        else if (strcmp(argv[i], "--greedy") == 0)
            o.n_greedy = number_of(value);
        else
            fail("unknown option");
    }
    if (o.chunk == 0)
        fail("--chunk wants 1 or more");
    return o;
}

static void append(struct run *run, uint32_t id)
{
    uint32_t n = run->n_ids++, value_id = hparams_value_id(run->hp, id, n);
    if (n >= MOST_IDS || id >= run->hp->n_embedding_rows)
        fail("too many ids, or an id beyond the embedding");
    run->ids[n] = id;
    run->previous[n] = n > 0 ? run->ids[n - 1] : STEP_NO_TOKEN;
    run->positions[n] = n;
    run->value_ids[n] = value_id;
    if (!run->hp->has_bank)
        return;
    if (value_id >= run->hp->bank_rows)
        fail("an id beyond the bank");
    if (run->slot_of_id[value_id] == UINT32_MAX) {
        run->slot_of_id[value_id] = run->n_slots;
        run->id_of_slot[run->n_slots++] = value_id;
    }
    run->slot_of[n] = run->slot_of_id[value_id];
}

/* Steps the next n ids; logits of all of them. */
static const float *step(struct run *run, uint32_t n)
{
    uint32_t done = run->n_done;
    struct step_sequence seq = {.n_rows = n,
                                .n_cached = done,
                                .blocks = run->blocks,
                                .slot_of_position = run->slot_of,
                                .value_id_of_slot = run->id_of_slot,
                                .n_slots = run->n_slots};
    struct step_batch batch = {.n_rows = n,
                               .token_ids = run->ids + done,
                               .previous_ids = run->previous + done,
                               .value_ids = run->value_ids + done,
                               .positions = run->positions + done,
                               .n_sequences = 1,
                               .sequences = &seq,
                               .n_logit_rows = n,
                               .logit_rows = run->rows};
    float *logits = NULL;
    struct error err;
    if (gpt_step(run->gpt, run->cache, &batch, &logits, &err))
        fail(err.text);
    run->n_done += n;
    return logits;
}

static void print_logits(const float *logits, uint32_t n_rows, uint32_t n, bool first)
{
    for (uint32_t r = 0; r < n_rows; r++) {
        for (uint32_t i = 0; i < n; i++)
            printf("%s%.9g",
                   i > 0             ? ", "
                   : r > 0 || !first ? ", ["
                                     : "[",
                   (double)logits[(size_t)r * n + i]);
        printf("]");
    }
}

static uint32_t best_of(const float *logits, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++)
        best = logits[i] > logits[best] ? i : best;
    return best;
}

static void run_line(struct run *run)
{
    uint32_t v = run->hp->n_embedding_rows, n_prompt = run->n_ids;
    const float *last = NULL;
    printf(run->options->n_greedy ? "{\"tokens\": [" : "{\"logits\": [");
    while (run->n_done < n_prompt) {
        bool first = run->n_done == 0;
        uint32_t n = n_prompt - run->n_done;
        n = n < run->options->chunk ? n : run->options->chunk;
        const float *logits = step(run, n);
        last = logits + (size_t)(n - 1) * v;
        if (!run->options->n_greedy)
            print_logits(logits, n, v, first);
    }
    for (uint32_t i = 0; i < run->options->n_greedy; i++) {
        uint32_t best = best_of(last, run->n_tokens);
        printf(i > 0 ? ", %u" : "%u", best);
        append(run, best);
        last = step(run, 1);
    }
    printf("]}\n");
    fflush(stdout);
}

/* Reads a line of ids; false at the end of input. */
static bool read_line(struct run *run)
{
    static char *line;
    static size_t size;
    if (getline(&line, &size, stdin) < 0) {
        free(line);
        return false;
    }
    run->n_ids = run->n_done = run->n_slots = 0;
    for (uint32_t i = 0; i < run->hp->bank_rows; i++)
        run->slot_of_id[i] = UINT32_MAX;
    for (char *at = line; *at;) {
        char *end;
        unsigned long id = strtoul(at, &end, 10);
        if (end == at)
            fail("a line holds ids and spaces");
        if (id > UINT32_MAX - 1)
            fail("an id beyond the embedding");
        append(run, (uint32_t)id);
        at = end;
        while (isspace((unsigned char)*at))
            at++;
    }
    if (run->n_ids == 0)
        fail("an empty line");
    return true;
}

static uint32_t *take(size_t n)
{
    return xcalloc(n, sizeof(uint32_t));
}

int main(int argc, char **argv)
{
    struct options o = options_of(argc, argv);
    struct error err;
    struct checkpoint *cp = NULL;
    struct run run = {.options = &o};
    if (checkpoint_open(o.model, &cp, &err) || backend_open(&o.backend, &run.be, &err))
        fail(err.text);
    run.hp = checkpoint_hparams(cp);
    run.n_tokens = checkpoint_vocab(cp)->n_tokens;
    run.ops = backend_ops_of(run.be);
    struct gpt_config config = {
        .max_rows = o.chunk, .max_logit_rows = o.chunk, .bank_type = o.bank_type};
    if (gpt_new(cp, run.be, &config, &run.gpt, &err))
        fail(err.text);
    uint32_t n_blocks = 4096 / BLOCK_SIZE;
    struct backend_cache_shape shape;
    gpt_cache_shape(run.gpt, n_blocks, BLOCK_SIZE, o.type_k, o.type_v, &shape);
    if (run.ops->cache_new(run.be, &shape, &run.cache, &err))
        fail(err.text);
    run.ops->set_value_path(run.be, o.value_path);
    uint32_t **arrays[] = {&run.ids,     &run.previous,   &run.value_ids, &run.positions,
                           &run.slot_of, &run.id_of_slot, &run.blocks,    &run.rows};
    for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++)
        *arrays[i] = take(MOST_IDS);
    run.slot_of_id = take((size_t)run.hp->bank_rows + 1);
    for (uint32_t i = 0; i < n_blocks; i++)
        run.blocks[i] = n_blocks - 1 - i;
    for (uint32_t i = 0; i < MOST_IDS; i++)
        run.rows[i] = i;
    while (read_line(&run)) {
        if ((uint64_t)run.n_ids + o.n_greedy > (uint64_t)n_blocks * BLOCK_SIZE)
            fail("more ids than the cache holds");
        run_line(&run);
    }
    for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++)
        free(*arrays[i]);
    free(run.slot_of_id);
    run.ops->cache_free(run.be, run.cache);
    gpt_free(run.gpt);
    backend_close(run.be);
    checkpoint_close(cp);
    return EXIT_SUCCESS;
}
