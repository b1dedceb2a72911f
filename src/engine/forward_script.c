/*
 * The scripted forward pass.  A cell stands for the keys of one position: it holds what was written
 * there and `chain`, a hash of the whole context up to it, as real keys depend on all that came
 * before.  Reading a context walks its chain from position 0 and compares.
 */
#include "config.h"

#include "tellerd/engine/forward_script.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tellerd/base/clock.h"
#include "tellerd/base/mem.h"
#include "tellerd/model/hparams.h"

struct cell {
    uint64_t chain; /* 0 = never written */
    uint64_t step;  /* that wrote it, from 1 */
    uint32_t id, value_id, position;
};

struct emit_rule {
    uint32_t *prompt, *output;
    uint32_t n_prompt, n_output;
};

struct fault {
    enum forward_script_fault kind;
    uint64_t step, delay_ns;
    uint32_t token, times;
};

struct forward_script {
    struct forward base; /* first */
    struct forward_script_config config;
    uint8_t *banned, *eog;
    struct cell *cells;   /* [n_blocks, block_size] */
    uint32_t *context;    /* [n_context + max_rows]: ids of the sequence at hand */
    float *logits;        /* [max_logit_rows, n_logits] */
    uint32_t *follow;     /* [n_tokens]: next token, or STEP_NO_TOKEN */
    float **token_logits; /* [n_tokens]: NULL or [n_logits] */
    struct emit_rule *emits;
    struct fault *faults;
    uint32_t n_emits, n_faults;
    uint64_t n_steps;
    forward_script_step_fn on_step;
    void *step_ctx;
    uint32_t n_violations;
    char first_violation[256];
};

static struct forward_script *script_of(struct forward *forward)
{
    return (struct forward_script *)forward;
}

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t x = a ^ (b * 0x9e3779b97f4a7c15u);

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static void violation(struct forward_script *s, const char *format, ...) PRINTF_LIKE(2, 3);
static void violation(struct forward_script *s, const char *format, ...)
{
    va_list args;

    if (s->n_violations++ > 0)
        return;
    va_start(args, format);
    vsnprintf(s->first_violation, sizeof(s->first_violation), format, args);
    va_end(args);
}

static struct cell *cell_at(struct forward_script *s, const struct step_sequence *seq, uint32_t p)
{
    uint32_t block = seq->blocks[p / s->config.block_size];

    if (block >= s->config.n_blocks) {
        violation(s, "step %llu: block %u of %u", (unsigned long long)s->n_steps, block,
                  s->config.n_blocks);
        block = 0;
    }
    return &s->cells[(size_t)block * s->config.block_size + p % s->config.block_size];
}

/* Reads the cached context into s->context; returns the chain behind it. */
static uint64_t read_context(struct forward_script *s, const struct step_sequence *seq)
{
    uint64_t chain = 1;

    for (uint32_t p = 0; p < seq->n_cached; p++) {
        const struct cell *cell = cell_at(s, seq, p);

        if (cell->chain == 0 || cell->position != p || cell->chain != mix(mix(chain, cell->id), p))
            violation(s,
                      "step %llu row %u: position %u holds token %u of position %u, not of this "
                      "context",
                      (unsigned long long)s->n_steps, seq->first_row, p, cell->id, cell->position);
        s->context[p] = cell->id;
        chain = cell->chain;
    }
    return chain;
}

static uint64_t write_row(struct forward_script *s, const struct step_batch *batch,
                          const struct step_sequence *seq, uint32_t i, uint64_t chain)
{
    uint32_t row = seq->first_row + i, p = seq->n_cached + i, id = batch->token_ids[row];
    uint32_t previous = p > 0 ? s->context[p - 1] : STEP_NO_TOKEN;
    uint32_t value_id = p == 0 && s->config.has_sink ? s->config.n_tokens : id;
    struct cell *cell = cell_at(s, seq, p);

    if (batch->positions[row] != p)
        violation(s, "row %u: position %u, should be %u", row, batch->positions[row], p);
    if (batch->previous_ids[row] != previous)
        violation(s, "row %u: previous token %u, the cache says %u", row, batch->previous_ids[row],
                  previous);
    if (batch->value_ids[row] != value_id)
        violation(s, "row %u: value id %u, should be %u", row, batch->value_ids[row], value_id);
    if (cell->step == s->n_steps + 1)
        violation(s, "row %u: position %u is written twice in one step", row, p);
    chain = mix(mix(chain, id), p);
    *cell = (struct cell){chain, s->n_steps + 1, id, value_id, p};
    s->context[p] = id;
    return chain;
}

static void check_slots(struct forward_script *s, const struct step_sequence *seq)
{
    uint32_t n_seen = 0;

    if (!s->config.has_bank) {
        if (seq->slot_of_position || seq->value_id_of_slot)
            violation(s, "slots without a bank");
        return;
    }
    for (uint32_t p = 0; p < seq->n_cached + seq->n_rows; p++) {
        uint32_t slot = seq->slot_of_position[p];

        if (slot > n_seen || slot >= seq->n_slots)
            violation(s, "position %u: slot %u of %u, %u seen so far", p, slot, seq->n_slots,
                      n_seen);
        else if (seq->value_id_of_slot[slot] != cell_at(s, seq, p)->value_id)
            violation(s, "position %u: slot %u stands for %u, the cache has %u", p, slot,
                      seq->value_id_of_slot[slot], cell_at(s, seq, p)->value_id);
        n_seen += slot == n_seen;
    }
    if (n_seen != seq->n_slots)
        violation(s, "%u slots, %u of them used", seq->n_slots, n_seen);
}

/* The token that the rules want behind context [n]; STEP_NO_TOKEN when none does. */
static uint32_t ruled_token(const struct forward_script *s, uint32_t n)
{
    const struct emit_rule *best = NULL;

    for (uint32_t i = 0; i < s->n_emits; i++) {
        const struct emit_rule *rule = &s->emits[i];

        if (rule->n_prompt <= n && (!best || rule->n_prompt > best->n_prompt) &&
            memcmp(rule->prompt, s->context, rule->n_prompt * sizeof(*s->context)) == 0)
            best = rule;
    }
    if (best && n - best->n_prompt < best->n_output)
        return best->output[n - best->n_prompt];
    if (best && s->config.eog != STEP_NO_TOKEN)
        return s->config.eog;
    return s->follow[s->context[n - 1]];
}

static void fill_logits(const struct forward_script *s, uint32_t n, uint64_t chain, float *logits)
{
    uint32_t last = s->context[n - 1], ruled = ruled_token(s, n);

    if (s->token_logits[last]) {
        memcpy(logits, s->token_logits[last], s->config.n_logits * sizeof(*logits));
        return;
    }
    for (uint32_t i = 0; i < s->config.n_logits; i++)
        logits[i] = i < s->config.n_tokens ? (float)(mix(chain, i) >> 40) / (1 << 21) - 4 : 60;
    if (ruled != STEP_NO_TOKEN)
        logits[ruled] = 30;
    else if (s->config.eog != STEP_NO_TOKEN)
        logits[s->config.eog] =
            s->config.eog_one_in && mix(chain, ~0ull) % s->config.eog_one_in == 0 ? 30 : -30;
}

static const struct fault *find_fault(struct forward_script *s, enum forward_script_fault kind,
                                      uint32_t token)
{
    for (uint32_t i = 0; i < s->n_faults; i++) {
        struct fault *fault = &s->faults[i];

        if (fault->kind == kind && fault->times > 0 &&
            (fault->step == UINT64_MAX || fault->step == s->n_steps) &&
            (fault->token == STEP_NO_TOKEN || fault->token == token)) {
            fault->times--;
            return fault;
        }
    }
    return NULL;
}

static const struct fault *find_step_fault(struct forward_script *s, enum forward_script_fault kind,
                                           const struct step_batch *batch)
{
    const struct fault *fault = NULL;

    for (uint32_t row = 0; row < batch->n_rows && !fault; row++)
        fault = find_fault(s, kind, batch->token_ids[row]);
    return fault;
}

static void wait_ns(struct forward_script *s, uint64_t delay_ns, bool shows_progress)
{
    const struct timespec nap = {.tv_nsec = 2000000};
    uint64_t end = clock_ns() + delay_ns;

    while (clock_ns() < end) {
        nanosleep(&nap, NULL);
        if (shows_progress && s->base.on_progress)
            s->base.on_progress(s->base.progress_ctx);
    }
}

static void delay_step(struct forward_script *s, const struct step_batch *batch)
{
    const struct fault *fault = find_step_fault(s, FORWARD_FAULT_DELAY, batch);

    if (fault)
        wait_ns(s, fault->delay_ns, true);
    fault = find_step_fault(s, FORWARD_FAULT_FREEZE, batch);
    if (fault)
        wait_ns(s, fault->delay_ns, false);
}

/* One sequence: reads, writes, and gives the logits of its rows; returns how many rows of logits.
 */
static uint32_t run_sequence(struct forward_script *s, const struct step_batch *batch,
                             const struct step_sequence *seq, uint32_t first_logit)
{
    uint64_t chain = read_context(s, seq);
    uint32_t at = first_logit;

    for (uint32_t i = 0; i < seq->n_rows; i++) {
        uint32_t row = seq->first_row + i;
        float *logits = s->logits + (size_t)at * s->config.n_logits;

        chain = write_row(s, batch, seq, i, chain);
        if (at == batch->n_logit_rows || batch->logit_rows[at] != row)
            continue;
        fill_logits(s, seq->n_cached + i + 1, chain, logits);
        if (find_fault(s, FORWARD_FAULT_NAN, batch->token_ids[row]))
            logits[(batch->token_ids[row] + 1) % s->config.n_tokens] = NAN;
        at++;
    }
    check_slots(s, seq);
    return at - first_logit;
}

static enum status script_step(struct forward *forward, const struct step_batch *batch,
                               float **ret_logits, struct error *err)
{
    struct forward_script *s = script_of(forward);
    uint32_t n_logits = 0, n_rows = 0, n_sequences = batch->n_sequences;
    enum status status = STATUS_OK;

    if (s->on_step)
        s->on_step(s->step_ctx, s->n_steps, batch);
    delay_step(s, batch);
    if (batch->n_rows > s->config.max_rows || batch->n_logit_rows > s->config.max_logit_rows)
        violation(s, "%u rows, %u with logits", batch->n_rows, batch->n_logit_rows);
    if (find_step_fault(s, FORWARD_FAULT_INTERNAL, batch)) {
        n_sequences /= 2;
        status = error_set(err, STATUS_INTERNAL, "scripted failure of step %llu",
                           (unsigned long long)s->n_steps);
    } else if (find_step_fault(s, FORWARD_FAULT_ENGINE, batch)) {
        status = error_set(err, STATUS_ENGINE_FAILED, "scripted failure of the engine");
    }
    for (uint32_t i = 0; i < n_sequences; i++) {
        if (batch->sequences[i].first_row != n_rows || batch->sequences[i].n_rows == 0)
            violation(s, "sequence %u: rows %u + %u", i, batch->sequences[i].first_row,
                      batch->sequences[i].n_rows);
        n_logits += run_sequence(s, batch, &batch->sequences[i], n_logits);
        n_rows += batch->sequences[i].n_rows;
    }
    if (!status && (n_logits != batch->n_logit_rows || n_rows != batch->n_rows))
        violation(s, "rows %u of %u, logit rows %u of %u", n_rows, batch->n_rows, n_logits,
                  batch->n_logit_rows);
    s->n_steps++;
    if (!status)
        *ret_logits = s->logits;
    return status;
}

static void script_copy_block(struct forward *forward, uint32_t from, uint32_t to)
{
    struct forward_script *s = script_of(forward);
    size_t size = s->config.block_size;

    memcpy(s->cells + to * size, s->cells + from * size, size * sizeof(*s->cells));
}

static void script_free(struct forward *forward)
{
    struct forward_script *s = script_of(forward);

    for (uint32_t i = 0; i < s->n_emits; i++) {
        free(s->emits[i].prompt);
        free(s->emits[i].output);
    }
    for (uint32_t i = 0; i < s->config.n_tokens; i++)
        free(s->token_logits[i]);
    free(s->banned);
    free(s->eog);
    free(s->cells);
    free(s->context);
    free(s->logits);
    free(s->follow);
    free(s->token_logits);
    free(s->emits);
    free(s->faults);
    free(s);
}

static const struct forward_ops script_ops = {
    .step = script_step,
    .copy_block = script_copy_block,
    .free = script_free,
};

void forward_script_defaults(struct forward_script_config *config)
{
    *config = (struct forward_script_config){
        .n_blocks = 64,
        .block_size = 16,
        .max_rows = 256,
        .max_logit_rows = 64,
        .n_context = 1024,
        .n_tokens = 256,
        .n_logits = 272,
        .eog = 0,
        .eog_one_in = 40,
        .has_bank = true,
        .has_sink = true,
    };
}

struct forward *forward_script_new(const struct forward_script_config *config)
{
    struct forward_script *s = xcalloc(1, sizeof(*s));
    uint32_t n_tokens = config->n_tokens;

    REQUIRE(n_tokens >= 1 && config->n_logits >= n_tokens && config->n_blocks >= 1 &&
            config->block_size >= 1 && config->max_rows >= 1 && config->max_logit_rows >= 1);
    s->config = *config;
    s->banned = xcalloc(n_tokens, 1);
    s->eog = xcalloc(n_tokens, 1);
    if (config->eog != STEP_NO_TOKEN)
        s->eog[config->eog] = 1;
    s->cells = xcalloc((size_t)config->n_blocks * config->block_size, sizeof(*s->cells));
    s->context =
        xcalloc((size_t)config->n_blocks * config->block_size + config->max_rows, sizeof(uint32_t));
    s->logits = xcalloc((size_t)config->max_logit_rows * config->n_logits, sizeof(*s->logits));
    s->follow = xmalloc(n_tokens * sizeof(*s->follow));
    memset(s->follow, 0xff, n_tokens * sizeof(*s->follow));
    s->token_logits = xcalloc(n_tokens, sizeof(*s->token_logits));
    s->base = (struct forward){
        .ops = &script_ops,
        .vocab = {config->n_logits, n_tokens, s->banned, s->eog},
        .n_blocks = config->n_blocks,
        .block_size = config->block_size,
        .max_rows = config->max_rows,
        .max_logit_rows = config->max_logit_rows,
        .n_context = config->n_context,
        .has_bank = config->has_bank,
        .bank_rows = config->has_bank ? n_tokens + 1 : 0,
        .sink_row = config->has_sink ? n_tokens : HPARAMS_NO_ROW,
        .block_bytes_keys = (uint64_t)config->block_size * 1024,
        .block_bytes_values = (uint64_t)config->block_size * 512,
        .block_bytes_ids = config->has_bank ? (uint64_t)config->block_size * 4 : 0,
        .block_bytes_saved = config->has_bank ? (uint64_t)config->block_size * 508 : 0,
        .bank_bytes = config->has_bank ? (uint64_t)(n_tokens + 1) * 512 : 0,
    };
    return &s->base;
}

void forward_script_emit(struct forward *forward, const uint32_t *prompt, uint32_t n_prompt,
                         const uint32_t *output, uint32_t n_output)
{
    struct forward_script *s = script_of(forward);

    s->emits = xreallocarray(s->emits, s->n_emits + 1, sizeof(*s->emits));
    s->emits[s->n_emits++] = (struct emit_rule){
        .prompt = xmemdup(prompt, n_prompt * sizeof(*prompt)),
        .output = xmemdup(output, n_output * sizeof(*output)),
        .n_prompt = n_prompt,
        .n_output = n_output,
    };
}

void forward_script_follow(struct forward *forward, uint32_t token, uint32_t next)
{
    REQUIRE(token < script_of(forward)->config.n_tokens);
    script_of(forward)->follow[token] = next;
}

void forward_script_logits(struct forward *forward, uint32_t token, const float *logits)
{
    struct forward_script *s = script_of(forward);

    REQUIRE(token < s->config.n_tokens);
    free(s->token_logits[token]);
    s->token_logits[token] = xmemdup(logits, s->config.n_logits * sizeof(*logits));
}

void forward_script_fault(struct forward *forward, enum forward_script_fault fault, uint64_t step,
                          uint32_t token, uint32_t times, uint64_t delay_ns)
{
    struct forward_script *s = script_of(forward);

    s->faults = xreallocarray(s->faults, s->n_faults + 1, sizeof(*s->faults));
    s->faults[s->n_faults++] = (struct fault){fault, step, delay_ns, token, times};
}

void forward_script_on_step(struct forward *forward, forward_script_step_fn fn, void *ctx)
{
    script_of(forward)->on_step = fn;
    script_of(forward)->step_ctx = ctx;
}

uint32_t forward_script_violations(const struct forward *forward, const char **ret_first)
{
    const struct forward_script *s = (const struct forward_script *)forward;

    if (ret_first)
        *ret_first = s->first_violation;
    return s->n_violations;
}

uint64_t forward_script_n_steps(const struct forward *forward)
{
    return ((const struct forward_script *)forward)->n_steps;
}
