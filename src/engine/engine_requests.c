/*
 * Live requests: the table by id, the two sorted lists of sequences, the events of a step, and the
 * one place where a choice or a request ends.
 *
 * Endings.  engine_end_choice takes the sequence out of whatever list holds it, gives its blocks
 * back and emits EVENT_CHOICE_DONE; with the last choice EVENT_DONE follows and the request leaves
 * the table, so a later cancel finds nothing.  Its memory stays until engine_bury, because the step
 * that ends it still walks its sequences.
 *
 * Siblings.  With n > 1, choices 1.. are parked behind choice 0 until its prompt is computed.  If
 * choice 0 ends before that in error, they end with it; otherwise they go to the waiting list on
 * their own.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "engine_priv.h"
#include "tellerd/base/mem.h"

struct engine_event *engine_emit(struct engine *engine, struct live_request *live,
                                 enum engine_event_kind kind, uint32_t choice)
{
    struct engine_event *event = xcalloc(1, sizeof(*event));

    event->kind = kind;
    event->request_id = live->gen->id;
    event->user = live->gen->user;
    event->choice = choice;
    event->n_cached = live->n_cached;
    event->n_prompt_done = live->n_prompt_done;
    event->time_ns = engine->now_ns;
    if (engine->last_event)
        engine->last_event->node.next = &event->node;
    else
        engine->first_event = event;
    engine->last_event = event;
    return event;
}

void engine_flush_events(struct engine *engine)
{
    if (engine->first_event)
        queue_push_list(engine->events, &engine->first_event->node);
    engine->first_event = engine->last_event = NULL;
}

static struct live_request **bucket_of(struct engine *engine, uint64_t id)
{
    return &engine->table[id & (ENGINE_BUCKETS - 1)];
}

struct live_request *engine_find(struct engine *engine, uint64_t id)
{
    struct live_request *live = *bucket_of(engine, id);

    while (live && live->gen->id != id)
        live = live->next;
    return live;
}

static void table_remove(struct engine *engine, struct live_request *live)
{
    struct live_request **link = bucket_of(engine, live->gen->id);

    while (*link != live)
        link = &(*link)->next;
    *link = live->next;
}

/* Where seq belongs in a sorted list. */
static uint32_t list_place(struct sequence *const *list, uint32_t n, const struct sequence *seq,
                           int (*compare)(const struct sequence *, const struct sequence *))
{
    uint32_t low = 0, high = n;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (compare(list[middle], seq) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void list_insert(struct sequence **list, uint32_t *n, uint32_t at, struct sequence *seq)
{
    memmove(list + at + 1, list + at, (*n - at) * sizeof(*list));
    list[at] = seq;
    (*n)++;
}

static void list_remove(struct sequence **list, uint32_t *n, uint32_t at)
{
    (*n)--;
    memmove(list + at, list + at + 1, (*n - at) * sizeof(*list));
}

void engine_run(struct engine *engine, struct sequence *seq)
{
    uint32_t at = list_place(engine->running, engine->n_in_batch, seq, scheduler_compare_running);

    REQUIRE(engine->n_in_batch < engine->config.max_sequences);
    list_insert(engine->running, &engine->n_in_batch, at, seq);
    if (seq->request->n_running++ == 0)
        engine->n_live_running++;
}

void engine_enqueue(struct engine *engine, struct sequence *seq)
{
    uint32_t at;

    if (engine->n_in_queue == engine->cap_queue) {
        engine->cap_queue = engine->cap_queue ? engine->cap_queue * 2 : 64;
        engine->waiting =
            xreallocarray(engine->waiting, engine->cap_queue, sizeof(*engine->waiting));
    }
    at = list_place(engine->waiting, engine->n_in_queue, seq, scheduler_compare_waiting);
    list_insert(engine->waiting, &engine->n_in_queue, at, seq);
}

void engine_detach(struct engine *engine, struct sequence *seq)
{
    uint32_t at;

    if (seq->is_parked)
        return;
    if (seq->state == SEQUENCE_WAITING) {
        at = list_place(engine->waiting, engine->n_in_queue, seq, scheduler_compare_waiting);
        REQUIRE(at < engine->n_in_queue && engine->waiting[at] == seq);
        list_remove(engine->waiting, &engine->n_in_queue, at);
        return;
    }
    at = list_place(engine->running, engine->n_in_batch, seq, scheduler_compare_running);
    REQUIRE(at < engine->n_in_batch && engine->running[at] == seq);
    list_remove(engine->running, &engine->n_in_batch, at);
    if (--seq->request->n_running == 0)
        engine->n_live_running--;
}

void engine_accept(struct engine *engine, struct live_request *live)
{
    const struct gen_request *gen = live->gen;
    struct live_request **bucket = bucket_of(engine, gen->id);
    uint32_t room = engine->config.n_context - gen->n_prompt;
    uint64_t order = ++engine->last_order * REQUEST_MAX_CHOICES;

    live->sequences = xcalloc(gen->n_choices, sizeof(*live->sequences));
    for (uint32_t i = 0; i < gen->n_choices; i++) {
        struct sequence *seq = &live->sequences[i];

        sequence_init(seq, gen->prompt, gen->n_prompt,
                      gen->max_tokens < room ? gen->max_tokens : room);
        seq->request = live;
        seq->choice = i;
        seq->order = order + i;
        seq->priority = gen->priority;
        seq->tenant = gen->tenant;
        seq->cache_salt = gen->cache_salt;
        seq->uses_prefix = !gen->no_prefix_cache;
        seq->is_parked = i > 0;
    }
    if (gen->n_prompt_logprobs != REQUEST_NO_PROMPT_LOGPROBS)
        live->sequences[0].logits_from = 0;
    live->sequences[0].n_parked = gen->n_choices - 1;
    live->sequences[0].deadline_ns = gen->queue_deadline_ns;
    if (gen->queue_deadline_ns && gen->queue_deadline_ns < engine->next_deadline_ns)
        engine->next_deadline_ns = gen->queue_deadline_ns;
    live->next = *bucket;
    *bucket = live;
    engine->n_live++;
    engine_enqueue(engine, &live->sequences[0]);
}

/* The request is no longer in the queue: it started, or ended there. */
static void leave_queue(struct engine *engine, struct live_request *live)
{
    atomic_fetch_sub(&engine->n_queued_tokens, live->gen->n_prompt);
    atomic_fetch_sub(&engine->n_queued, 1);
    metric_add(engine->metrics.waiting, -1);
}

void engine_mark_started(struct engine *engine, struct live_request *live, uint32_t n_cached)
{
    if (live->is_started)
        return;
    live->is_started = true;
    live->started_ns = engine->now_ns;
    live->n_cached = live->n_prompt_done = n_cached;
    for (uint32_t i = 0; i < live->gen->n_choices; i++)
        live->sequences[i].deadline_ns = 0;
    engine->n_live_started++;
    leave_queue(engine, live);
    engine_metrics_started(engine, live);
    engine_emit(engine, live, EVENT_STARTED, 0);
}

static void finish_request(struct engine *engine, struct live_request *live)
{
    struct engine_event *event = engine_emit(engine, live, EVENT_DONE, 0);
    uint64_t interval = engine->now_ns - engine->last_end_ns;
    uint64_t smoothed = atomic_load(&engine->end_interval_ns);

    event->reason = live->reason;
    event->error = live->error;
    live->is_ended = true;
    live->ended_ns = engine->now_ns;
    table_remove(engine, live);
    engine->n_live--;
    if (live->is_started) {
        engine->n_live_started--;
        if (engine->last_end_ns)
            atomic_store(&engine->end_interval_ns, smoothed - smoothed / 8 + interval / 8);
        engine->last_end_ns = engine->now_ns;
    } else {
        leave_queue(engine, live);
    }
    engine_metrics_ended(engine, live);
    live->next = engine->ended;
    engine->ended = live;
}

/* Errors and cancels of any choice speak for the request; else choice 0 does. */
static void note_reason(struct live_request *live, const struct sequence *seq,
                        enum finish_reason reason, const struct error *error)
{
    if (live->reason == FINISH_ERROR)
        return;
    if (reason == FINISH_ERROR)
        live->error = *error;
    else if (live->reason == FINISH_CANCELLED || (reason != FINISH_CANCELLED && seq->choice != 0))
        return;
    live->reason = reason;
}

/* Choice 0 ended before its prompt was computed: its siblings go the same way or on their own. */
static void release_siblings(struct engine *engine, struct sequence *seq, enum finish_reason reason,
                             const struct error *error)
{
    struct live_request *live = seq->request;

    seq->n_parked = 0;
    for (uint32_t i = 1; i < live->gen->n_choices; i++) {
        struct sequence *sibling = &live->sequences[i];

        if (!sequence_is_live(sibling) || !sibling->is_parked)
            continue;
        if (reason == FINISH_ERROR) {
            engine_end_choice(engine, sibling, reason, error);
        } else {
            sibling->is_parked = false;
            sibling->is_resumed = live->is_started;
            sibling->deadline_ns = seq->deadline_ns;
            engine_enqueue(engine, sibling);
        }
    }
}

void engine_end_choice(struct engine *engine, struct sequence *seq, enum finish_reason reason,
                       const struct error *error)
{
    static const enum sequence_state endings[FINISH_COUNT] = {
        [FINISH_STOP] = SEQUENCE_DONE,
        [FINISH_LENGTH] = SEQUENCE_DONE,
        [FINISH_CANCELLED] = SEQUENCE_CANCELLED,
        [FINISH_ERROR] = SEQUENCE_FAILED,
    };
    struct live_request *live = seq->request;
    struct engine_event *event;

    engine_detach(engine, seq);
    if (seq->is_parked && live->sequences[0].n_parked > 0)
        live->sequences[0].n_parked--;
    sequence_release(seq, engine->pool);
    sequence_move(seq, endings[reason]);
    event = engine_emit(engine, live, EVENT_CHOICE_DONE, seq->choice);
    event->reason = reason;
    if (reason == FINISH_ERROR)
        event->error = *error;
    note_reason(live, seq, reason, error);
    live->n_ended++;
    if (seq->n_parked > 0)
        release_siblings(engine, seq, reason, error);
    if (live->n_ended == live->gen->n_choices && !live->is_ended)
        finish_request(engine, live);
}

void engine_end_request(struct engine *engine, struct live_request *live, enum finish_reason reason,
                        const struct error *error)
{
    live->sequences[0].n_parked = 0; /* the parked ones end here, each on its own */
    for (uint32_t i = 0; i < live->gen->n_choices; i++) {
        if (sequence_is_live(&live->sequences[i]))
            engine_end_choice(engine, &live->sequences[i], reason, error);
    }
}

void engine_end_all(struct engine *engine, bool only_waiting, const struct error *error)
{
    for (uint32_t i = 0; i < ENGINE_BUCKETS; i++) {
        struct live_request *live = engine->table[i];

        while (live) {
            struct live_request *next = live->next;

            if (!only_waiting || !live->is_started)
                engine_end_request(engine, live, FINISH_ERROR, error);
            live = next;
        }
    }
}

void live_request_free(struct live_request *live)
{
    if (live->sequences) {
        for (uint32_t i = 0; i < live->gen->n_choices; i++)
            sequence_done(&live->sequences[i]);
        free(live->sequences);
    }
    gen_request_free(live->gen);
    free(live);
}

void engine_bury(struct engine *engine)
{
    while (engine->ended) {
        struct live_request *live = engine->ended;

        engine->ended = live->next;
        live_request_free(live);
    }
}
