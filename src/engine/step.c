/*
 * One step, on the engine thread: expire, plan, preempt, admit, batch, forward, tokens, events.
 *
 * Order matters in three places.  Admitted sequences take their prefix blocks before anything takes
 * fresh blocks, which could evict them.  A block is offered to the prefix cache only after the step
 * that computed its last position.  Siblings share a prompt's blocks before the first of them
 * samples, since that one may end at once and give them back.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine_priv.h"
#include "tellerd/base/clock.h"
#include "tellerd/base/log.h"
#include "tellerd/base/mem.h"

void step_space_init(struct engine *engine)
{
    struct step_space *space = &engine->space;
    uint32_t n_rows = engine->config.max_batch_tokens, n_seqs = engine->config.max_sequences;

    space->token_ids = xcalloc(n_rows, sizeof(*space->token_ids));
    space->previous_ids = xcalloc(n_rows, sizeof(*space->previous_ids));
    space->value_ids = xcalloc(n_rows, sizeof(*space->value_ids));
    space->positions = xcalloc(n_rows, sizeof(*space->positions));
    space->logit_rows = xcalloc(engine->forward->max_logit_rows, sizeof(*space->logit_rows));
    space->sequences = xcalloc(n_seqs, sizeof(*space->sequences));
    space->parts = xcalloc(n_seqs, sizeof(*space->parts));
    space->logits_copy = xcalloc(engine->forward->vocab.n_logits, sizeof(*space->logits_copy));
}

void step_space_done(struct engine *engine)
{
    struct step_space *space = &engine->space;

    free(space->token_ids);
    free(space->previous_ids);
    free(space->value_ids);
    free(space->positions);
    free(space->logit_rows);
    free(space->sequences);
    free(space->parts);
    free(space->logits_copy);
}

void engine_fail(struct engine *engine, const struct error *error)
{
    log_error("engine.failed error=\"%s\"", error->text);
    engine->failure = *error;
    engine->failure.status = STATUS_ENGINE_FAILED;
    atomic_store(&engine->failed, true);
    engine_end_all(engine, false, &engine->failure);
}

/* Ends waiting requests whose deadline has passed; looks only when one may have. */
static void expire(struct engine *engine)
{
    struct error error;
    uint32_t i = 0;

    if (engine->now_ns < engine->next_deadline_ns)
        return;
    engine->next_deadline_ns = UINT64_MAX;
    error_set(&error, STATUS_QUEUE_TIMEOUT, "the request waited too long for its turn");
    while (i < engine->n_in_queue) {
        struct sequence *seq = engine->waiting[i];

        if (seq->deadline_ns && seq->deadline_ns <= engine->now_ns) {
            engine_end_request(engine, seq->request, FINISH_ERROR, &error);
            i = 0; /* the list has changed */
            continue;
        }
        if (seq->deadline_ns && seq->deadline_ns < engine->next_deadline_ns)
            engine->next_deadline_ns = seq->deadline_ns;
        i++;
    }
}

static void preempt(struct engine *engine, struct sequence *seq)
{
    engine_detach(engine, seq);
    sequence_release(seq, engine->pool);
    sequence_move(seq, SEQUENCE_WAITING);
    seq->is_resumed = true;
    seq->n_preemptions++;
    engine_enqueue(engine, seq);
    atomic_fetch_add(&engine->n_preemptions, 1);
    metric_inc(engine->metrics.preemptions);
}

/* The first prompt token has no logprob; its event comes with the start. */
static void start_prompt_report(struct engine *engine, struct sequence *seq)
{
    struct live_request *live = seq->request;
    struct engine_event *event = engine_emit(engine, live, EVENT_PROMPT_LOGPROBS, seq->choice);

    event->token.id = seq->ids[0];
    event->token.logprob = NAN;
    live->n_reported = 1;
    if (seq->n_prompt == 1)
        seq->logits_from = SEQUENCE_NO_LOGITS;
}

static void admit(struct engine *engine, struct sequence *seq)
{
    struct live_request *live = seq->request;
    enum status status =
        sequence_reserve(seq, engine->forward->block_size,
                         engine->forward->has_bank ? engine->forward->bank_rows : 0);

    if (status) {
        struct error error;

        error_set(&error, status, "no memory for a sequence of %u tokens", seq->capacity);
        engine_end_choice(engine, seq, FINISH_ERROR, &error);
        return;
    }
    engine_detach(engine, seq);
    sequence_move(seq, SEQUENCE_PREFILL);
    engine_run(engine, seq);
    sequence_match(seq, engine->prefix, engine->forward->block_size);
    if (!live->is_started) {
        engine_mark_started(engine, live, seq->n_computed);
        if (seq->uses_prefix && engine->prefix)
            metric_add(engine->metrics.prefix_queries, seq->n_prompt);
        metric_add(engine->metrics.prefix_hits, seq->n_computed);
        atomic_fetch_add(&engine->n_cached_tokens, seq->n_computed);
        if (seq->logits_from == 0)
            start_prompt_report(engine, seq);
    }
}

/* Blocks for all that has work; the plan has counted them. */
static void grow(struct engine *engine, const struct scheduler_plan *plan)
{
    uint32_t block_size = engine->forward->block_size;

    for (uint32_t i = 0; i < plan->n_work; i++) {
        struct sequence *seq = plan->work[i].sequence;
        uint32_t n_blocks = i < plan->n_decodes ? (seq->n_ids + block_size - 1) / block_size
                                                : sequence_blocks_wanted(seq, block_size);

        if (sequence_is_live(seq))
            REQUIRE(sequence_grow(seq, engine->pool, n_blocks));
    }
}

static void batch_rows(struct engine *engine, struct step_batch *batch, struct sequence *seq,
                       uint32_t n_rows)
{
    struct step_space *space = &engine->space;
    struct step_part *part = &space->parts[space->n_parts++];
    struct step_sequence *target = &space->sequences[batch->n_sequences++];
    uint32_t sink = engine->forward->sink_row;

    *part = (struct step_part){seq, n_rows, batch->n_logit_rows, 0};
    *target = (struct step_sequence){
        .first_row = batch->n_rows,
        .n_rows = n_rows,
        .n_cached = seq->n_computed,
        .blocks = seq->blocks,
    };
    for (uint32_t p = seq->n_computed; p < seq->n_computed + n_rows; p++) {
        uint32_t row = batch->n_rows++;

        space->token_ids[row] = seq->ids[p];
        space->previous_ids[row] = p > 0 ? seq->ids[p - 1] : STEP_NO_TOKEN;
        space->value_ids[row] = sequence_value_id(seq, p, sink);
        space->positions[row] = p;
        if (sequence_wants_logits(seq, p))
            space->logit_rows[batch->n_logit_rows++] = row;
    }
    part->n_logits = batch->n_logit_rows - part->first_logit;
    if (engine->forward->has_bank) {
        sequence_extend_slots(seq, seq->n_computed + n_rows, sink);
        target->slot_of_position = seq->slots.slot_of_position;
        target->value_id_of_slot = seq->slots.value_id_of_slot;
        target->n_slots = seq->slots.n_slots;
    }
}

static struct step_batch make_batch(struct engine *engine, const struct scheduler_plan *plan)
{
    struct step_space *space = &engine->space;
    struct step_batch batch = {
        .token_ids = space->token_ids,
        .previous_ids = space->previous_ids,
        .value_ids = space->value_ids,
        .positions = space->positions,
        .sequences = space->sequences,
        .logit_rows = space->logit_rows,
    };

    space->n_parts = 0;
    for (uint32_t i = 0; i < plan->n_work; i++) {
        struct sequence *seq = plan->work[i].sequence;
        uint32_t left = seq->n_ids - seq->n_computed;

        if (sequence_is_live(seq))
            batch_rows(engine, &batch, seq,
                       plan->work[i].n_rows < left ? plan->work[i].n_rows : left);
    }
    return batch;
}

/* Bad numbers came out of this sequence's cache: no other may start from it. */
static void fail_bad_logits(struct engine *engine, struct sequence *seq)
{
    struct error error;

    for (uint32_t i = 0; engine->prefix && i < seq->n_offered; i++)
        prefix_cache_forget(engine->prefix, seq->blocks[i]);
    error_set(&error, STATUS_BAD_LOGITS, "the model produced invalid numbers at position %u",
              seq->n_ids);
    engine_end_choice(engine, seq, FINISH_ERROR, &error);
}

static bool is_end_token(const struct engine *engine, const struct sampling *sampling, uint32_t id)
{
    for (uint32_t i = 0; i < sampling->n_stop_ids; i++) {
        if (sampling->stop_ids[i] == id)
            return true;
    }
    return !sampling->ignore_eos && engine->forward->vocab.eog[id];
}

/* Samples the next token of a sequence whose ids are all computed, from logits [V] (changed). */
static void sample(struct engine *engine, struct sequence *seq, float *logits)
{
    struct live_request *live = seq->request;
    const struct sampling *sampling = &live->gen->sampling;
    struct sampler_history history = {
        .prompt = seq->ids,
        .n_prompt = seq->n_prompt,
        .output = seq->ids + seq->n_prompt,
        .n_output = sequence_n_output(seq),
    };
    struct sampled token = {0};
    struct engine_event *event;

    if (sampler_sample(engine->sampler, logits, sampling, &history, seq->choice, history.n_output,
                       &token)) {
        fail_bad_logits(engine, seq);
        return;
    }
    sequence_append(seq, token.id);
    if (seq->state == SEQUENCE_PREFILL)
        sequence_move(seq, SEQUENCE_DECODE);
    live->n_output++;
    atomic_fetch_add(&engine->n_generated_tokens, 1);
    engine_metrics_token(engine, live, seq);
    event = engine_emit(engine, live, EVENT_TOKEN, seq->choice);
    event->token = token;
    event->is_eog = is_end_token(engine, sampling, token.id);
    if (event->is_eog)
        engine_end_choice(engine, seq, FINISH_STOP, NULL);
    else if (sequence_n_output(seq) == seq->max_output)
        engine_end_choice(engine, seq, FINISH_LENGTH, NULL);
}

/*
 * Gives a parked sibling the prompt that `seq` has computed.  When there is no place or no block
 * for it, it samples its first token all the same and then waits, like one that was preempted.
 */
static void fork_sibling(struct engine *engine, const struct sequence *seq,
                         struct sequence *sibling)
{
    struct forward *forward = engine->forward;
    uint32_t from, to;
    struct error error;
    enum status status =
        sequence_reserve(sibling, forward->block_size, forward->has_bank ? forward->bank_rows : 0);

    if (status) {
        error_set(&error, status, "no memory for a sequence of %u tokens", sibling->capacity);
        engine_end_choice(engine, sibling, FINISH_ERROR, &error);
        return;
    }
    if (sibling->max_output == 1)
        return; /* needs no cache: stays parked for the moment that is left to it */
    sibling->is_parked = false;
    if (engine->n_in_batch < engine->config.max_sequences &&
        sequence_fork(sibling, seq, engine->pool, &from, &to)) {
        if (from != KV_NO_BLOCK)
            forward->ops->copy_block(forward, from, to);
        sequence_move(sibling, SEQUENCE_DECODE);
        engine_run(engine, sibling);
    } else {
        sibling->is_resumed = true;
        engine_enqueue(engine, sibling);
    }
}

/* The first token of all choices, from one row of logits. */
static void sample_with_siblings(struct engine *engine, struct sequence *seq, float *logits)
{
    struct live_request *live = seq->request;
    size_t row_bytes = engine->forward->vocab.n_logits * sizeof(*logits);

    memcpy(engine->space.logits_copy, logits, row_bytes);
    seq->n_parked = 0;
    for (uint32_t i = 1; i < live->gen->n_choices; i++) {
        if (sequence_is_live(&live->sequences[i]))
            fork_sibling(engine, seq, &live->sequences[i]);
    }
    for (uint32_t i = 0; i < live->gen->n_choices; i++) {
        struct sequence *sibling = &live->sequences[i];

        if (!sequence_is_live(sibling))
            continue;
        memcpy(logits, engine->space.logits_copy, row_bytes);
        sample(engine, sibling, logits);
    }
}

/* All ids of seq are computed, and these are the logits behind the last. */
static void finish_prompt_or_decode(struct engine *engine, struct sequence *seq, float *logits)
{
    struct live_request *live = seq->request;

    if (!live->is_prompt_done) {
        live->is_prompt_done = true;
        metric_add(engine->metrics.prompt_tokens, live->gen->n_prompt);
        atomic_fetch_add(&engine->n_prompt_tokens, live->gen->n_prompt);
    }
    if (seq->max_output == 0) {
        seq->n_parked = 0;
        for (uint32_t i = 0; i < live->gen->n_choices; i++) {
            if (sequence_is_live(&live->sequences[i]))
                engine_end_choice(engine, &live->sequences[i], FINISH_LENGTH, NULL);
        }
    } else if (seq->n_parked > 0) {
        sample_with_siblings(engine, seq, logits);
    } else {
        sample(engine, seq, logits);
    }
}

/* Logprobs of prompt tokens, from the rows before them.  False when seq ended. */
static bool report_prompt(struct engine *engine, struct sequence *seq, const struct step_part *part,
                          const float *logits)
{
    struct live_request *live = seq->request;
    size_t n_logits = engine->forward->vocab.n_logits;

    for (uint32_t i = 0; i < part->n_logits && live->n_reported < seq->n_prompt; i++) {
        struct sampled token = {0};

        if (sampler_logprobs(engine->sampler, logits + i * n_logits, seq->ids[live->n_reported],
                             (uint32_t)live->gen->n_prompt_logprobs, &token)) {
            fail_bad_logits(engine, seq);
            return false;
        }
        engine_emit(engine, live, EVENT_PROMPT_LOGPROBS, seq->choice)->token = token;
        live->n_reported++;
    }
    seq->logits_from = live->n_reported < seq->n_prompt ? live->n_reported - 1 : SEQUENCE_NO_LOGITS;
    return true;
}

static void take_results(struct engine *engine, float *logits)
{
    size_t n_logits = engine->forward->vocab.n_logits;

    for (uint32_t i = 0; i < engine->space.n_parts; i++) {
        const struct step_part *part = &engine->space.parts[i];
        struct sequence *seq = part->sequence;
        struct live_request *live = seq->request;
        uint32_t done;

        sequence_advance(seq, engine->pool, engine->prefix, part->n_rows);
        done = seq->n_computed < seq->n_prompt ? seq->n_computed : seq->n_prompt;
        if (done > live->n_prompt_done)
            live->n_prompt_done = done;
        if (seq->logits_from != SEQUENCE_NO_LOGITS &&
            !report_prompt(engine, seq, part, logits + part->first_logit * n_logits))
            continue;
        if (seq->n_computed == seq->n_ids)
            finish_prompt_or_decode(engine, seq,
                                    logits + (part->first_logit + part->n_logits - 1) * n_logits);
    }
}

static void step_failed(struct engine *engine, enum status status, const struct error *error)
{
    if (status != STATUS_INTERNAL) {
        engine_fail(engine, error);
        return;
    }
    log_error("step.failed sequences=%u error=\"%s\"", engine->space.n_parts, error->text);
    for (uint32_t i = 0; i < engine->space.n_parts; i++) {
        if (sequence_is_live(engine->space.parts[i].sequence))
            engine_end_choice(engine, engine->space.parts[i].sequence, FINISH_ERROR, error);
    }
}

static void run_batch(struct engine *engine, const struct step_batch *batch, uint32_t n_prefill)
{
    struct error error = {0};
    uint64_t start = clock_ns();
    float *logits = NULL;
    enum status status = engine->forward->ops->step(engine->forward, batch, &logits, &error);

    engine->now_ns = clock_ns();
    atomic_store(&engine->heartbeat_ns, engine->now_ns);
    atomic_fetch_add(&engine->n_steps, 1);
    step_budget_observe(&engine->budget, batch->n_rows, engine->now_ns - start);
    engine_metrics_step(engine, batch->n_rows, batch->n_sequences, n_prefill,
                        engine->now_ns - start);
    if (status && !error.text[0])
        error_set(&error, status, "the forward pass failed");
    if (status)
        step_failed(engine, status, &error);
    else
        take_results(engine, logits);
}

void engine_step(struct engine *engine)
{
    struct scheduler_state state;
    const struct scheduler_plan *plan;
    struct step_batch batch;
    uint32_t n_decode_rows = 0;

    engine->now_ns = clock_ns();
    expire(engine);
    state = (struct scheduler_state){
        .running = engine->running,
        .n_running = engine->n_in_batch,
        .waiting = engine->waiting,
        .n_waiting = engine->n_in_queue,
        .pool = engine->pool,
        .prefix = engine->prefix,
        .row_budget = step_budget_rows(&engine->budget),
    };
    plan = scheduler_plan(engine->scheduler, &state);
    for (uint32_t i = 0; i < plan->n_preempted; i++)
        preempt(engine, plan->preempted[i]);
    for (uint32_t i = 0; i < plan->n_admitted; i++)
        admit(engine, plan->admitted[i]);
    grow(engine, plan);
    batch = make_batch(engine, plan);
    for (uint32_t i = 0; i < plan->n_decodes; i++)
        n_decode_rows += plan->work[i].n_rows;
    /* whatever waits fits alone, so an empty step with work left would be an endless loop */
    REQUIRE(batch.n_rows > 0 || plan->n_admitted > 0 || engine->n_in_queue == 0);
    if (batch.n_rows > 0)
        run_batch(engine, &batch, batch.n_rows - n_decode_rows);
    engine_bury(engine);
}
