/*
 * The scheduler's policy is in its header.  Here: one struct draft holds what is left (rows, logit
 * rows, places, blocks) while a plan is made.  Blocks are counted, not taken; when a preemption has
 * to be weighed, reference counts are copied once and the victim's table is given back in the copy,
 * so that shared blocks are counted right.
 */
#include "config.h"

#include "tellerd/engine/scheduler.h"

#include <stdlib.h>

#include "tellerd/base/mem.h"
#include "tellerd/base/status.h"

/* Tokens a tenant may have computed per round; a prompt longer than this waits several rounds. */
enum { QUANTUM_TOKENS = 512 };

struct tenant {
    uint32_t id;
    uint64_t deficit;      /* tokens it may still have computed in this round */
    struct sequence *head; /* its first waiting sequence, while a plan is made */
    struct prefix_match match;
};

struct scheduler {
    struct scheduler_limits limits;
    struct scheduler_plan plan;
    uint64_t plan_mark;
    uint32_t *refs; /* [n_blocks]: what-if copy */
    struct tenant *tenants;
    uint32_t n_tenants, cap_tenants;
    uint32_t turn; /* index of the tenant whose turn it is */
};

struct draft {
    struct scheduler *scheduler;
    const struct scheduler_state *state;
    uint32_t rows_left, logits_left;
    uint32_t n_places; /* running sequences and siblings that wait for them */
    uint32_t available;
    uint32_t block_size;
    uint32_t end; /* running[end ..] were preempted */
};

struct scheduler *scheduler_new(const struct scheduler_limits *limits, uint32_t n_blocks)
{
    struct scheduler *scheduler = xcalloc(1, sizeof(*scheduler));
    uint32_t n = limits->max_sequences;

    REQUIRE(n >= 1 && limits->max_rows >= n && limits->max_logit_rows >= n);
    REQUIRE(limits->prefill_chunk >= 1 && limits->prefill_chunk <= limits->max_rows);
    scheduler->limits = *limits;
    scheduler->plan.work = xcalloc(n, sizeof(*scheduler->plan.work));
    scheduler->plan.preempted = xcalloc(n, sizeof(struct sequence *));
    scheduler->plan.admitted = xcalloc(n, sizeof(struct sequence *));
    scheduler->refs = xcalloc(n_blocks, sizeof(*scheduler->refs));
    return scheduler;
}

void scheduler_free(struct scheduler *scheduler)
{
    if (!scheduler)
        return;
    free(scheduler->plan.work);
    free(scheduler->plan.preempted);
    free(scheduler->plan.admitted);
    free(scheduler->refs);
    free(scheduler->tenants);
    free(scheduler);
}

int scheduler_compare_running(const struct sequence *a, const struct sequence *b)
{
    if (a->priority != b->priority)
        return a->priority < b->priority ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

int scheduler_compare_waiting(const struct sequence *a, const struct sequence *b)
{
    if (a->priority != b->priority)
        return a->priority < b->priority ? -1 : 1;
    if (a->is_resumed != b->is_resumed)
        return a->is_resumed ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

static uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Gives up the last running sequence that is left. */
static void draft_preempt(struct draft *draft)
{
    struct scheduler *scheduler = draft->scheduler;
    struct scheduler_plan *plan = &scheduler->plan;
    struct sequence *victim = draft->state->running[--draft->end];

    if (plan->n_preempted == 0)
        kv_pool_copy_refs(draft->state->pool, scheduler->refs);
    for (uint32_t i = 0; i < victim->n_blocks; i++) {
        if (--scheduler->refs[victim->blocks[i]] == 0)
            draft->available++;
    }
    draft->n_places -= 1 + victim->n_parked;
    plan->preempted[plan->n_preempted++] = victim;
}

static void draft_work(struct draft *draft, struct sequence *seq, uint32_t n_computed,
                       uint32_t n_rows, bool is_admitted)
{
    struct scheduler_plan *plan = &draft->scheduler->plan;

    plan->work[plan->n_work++] = (struct scheduler_work){seq, n_rows, is_admitted};
    draft->rows_left -= n_rows;
    draft->logits_left -= sequence_logit_rows(seq, n_computed, n_rows);
}

/* Rows for decodes, in order; the sequences at the end pay for the blocks. */
static void plan_decodes(struct draft *draft)
{
    struct sequence *const *running = draft->state->running;
    struct scheduler_plan *plan = &draft->scheduler->plan;

    for (uint32_t i = 0; i < draft->end; i++) {
        struct sequence *seq = running[i];
        uint32_t n_blocks = (seq->n_ids + draft->block_size - 1) / draft->block_size;
        uint32_t need = n_blocks > seq->n_blocks ? n_blocks - seq->n_blocks : 0;

        if (seq->state != SEQUENCE_DECODE)
            continue;
        while (draft->available < need && draft->end > i)
            draft_preempt(draft);
        if (draft->end <= i)
            break;
        draft->available -= need;
        draft_work(draft, seq, seq->n_computed, seq->n_ids - seq->n_computed, false);
    }
    plan->n_decodes = plan->n_work;
}

/* Rows of the next chunk of a prefill that has n_computed positions; 0 when none fits. */
static uint32_t chunk_rows(const struct draft *draft, const struct sequence *seq,
                           uint32_t n_computed)
{
    uint32_t n = min_u32(seq->n_ids - n_computed, draft->scheduler->limits.prefill_chunk);

    n = min_u32(n, draft->rows_left);
    while (n > 0) {
        uint32_t logits = sequence_logit_rows(seq, n_computed, n);

        if (logits <= draft->logits_left)
            break;
        n -= logits - draft->logits_left;
    }
    return n;
}

static void plan_prefills(struct draft *draft)
{
    for (uint32_t i = 0; i < draft->end; i++) {
        struct sequence *seq = draft->state->running[i];
        uint32_t n;

        if (seq->state != SEQUENCE_PREFILL)
            continue;
        n = chunk_rows(draft, seq, seq->n_computed);
        if (n > 0)
            draft_work(draft, seq, seq->n_computed, n, false);
    }
}

/* Beside decodes: rows for prompts from what the budget leaves. */
static void keep_budget(struct draft *draft, uint32_t budget)
{
    uint32_t used = draft->scheduler->limits.max_rows - draft->rows_left;
    uint32_t left = budget > used ? budget - used : 0;

    if (budget == 0 || draft->scheduler->plan.n_decodes == 0)
        return;
    left = left > SCHEDULER_MIN_PREFILL_ROWS ? left : SCHEDULER_MIN_PREFILL_ROWS;
    draft->rows_left = min_u32(draft->rows_left, left);
}

static struct tenant *tenant_of(struct scheduler *scheduler, uint32_t id)
{
    for (uint32_t i = 0; i < scheduler->n_tenants; i++) {
        if (scheduler->tenants[i].id == id)
            return &scheduler->tenants[i];
    }
    if (scheduler->n_tenants == scheduler->cap_tenants) {
        scheduler->cap_tenants = scheduler->cap_tenants ? scheduler->cap_tenants * 2 : 8;
        scheduler->tenants =
            xreallocarray(scheduler->tenants, scheduler->cap_tenants, sizeof(*scheduler->tenants));
    }
    scheduler->tenants[scheduler->n_tenants] = (struct tenant){.id = id};
    return &scheduler->tenants[scheduler->n_tenants++];
}

/* First waiting sequence of each tenant in the best priority that is left; how many tenants. */
static uint32_t find_heads(struct draft *draft, struct sequence **ret_first)
{
    struct scheduler *scheduler = draft->scheduler;
    struct sequence *first = NULL;
    uint32_t n_heads = 0;

    for (uint32_t i = 0; i < scheduler->n_tenants; i++)
        scheduler->tenants[i].head = NULL;
    for (uint32_t i = 0; i < draft->state->n_waiting; i++) {
        struct sequence *seq = draft->state->waiting[i];
        struct tenant *tenant;

        if (seq->plan_mark == scheduler->plan_mark)
            continue;
        if (!first)
            first = seq;
        else if (seq->priority != first->priority)
            break;
        if (first->is_resumed)
            break;
        tenant = tenant_of(scheduler, seq->tenant);
        n_heads += !tenant->head;
        if (!tenant->head)
            tenant->head = seq;
    }
    *ret_first = first;
    return n_heads;
}

static uint32_t cost_of(const struct draft *draft, const struct sequence *seq,
                        struct prefix_match match)
{
    return seq->n_ids - match.n_blocks * draft->block_size;
}

static struct prefix_match find_prefix(const struct draft *draft, const struct sequence *seq)
{
    if (!draft->state->prefix)
        return (struct prefix_match){0, 0};
    return prefix_cache_find(draft->state->prefix, seq->cache_salt, seq->ids,
                             sequence_matchable(seq), NULL);
}

/*
 * Whose turn it is; *ret_tenant is charged when the sequence is admitted (NULL: nobody is charged).
 * A tenant without waiting work loses its deficit, as in the classic algorithm.
 */
static struct sequence *next_waiting(struct draft *draft, struct prefix_match *ret_match,
                                     struct tenant **ret_tenant)
{
    struct scheduler *scheduler = draft->scheduler;
    struct sequence *first;
    uint32_t n_heads = find_heads(draft, &first);

    *ret_tenant = NULL;
    if (!first)
        return NULL;
    if (n_heads <= 1) {
        *ret_match = find_prefix(draft, first);
        return first;
    }
    for (uint32_t i = 0; i < scheduler->n_tenants; i++) {
        if (scheduler->tenants[i].head)
            scheduler->tenants[i].match = find_prefix(draft, scheduler->tenants[i].head);
    }
    scheduler->turn %= scheduler->n_tenants;
    for (;;) {
        struct tenant *tenant = &scheduler->tenants[scheduler->turn];

        if (!tenant->head) {
            tenant->deficit = 0;
        } else if (tenant->deficit >= cost_of(draft, tenant->head, tenant->match)) {
            *ret_match = tenant->match;
            *ret_tenant = tenant;
            return tenant->head;
        }
        scheduler->turn = (scheduler->turn + 1) % scheduler->n_tenants;
        scheduler->tenants[scheduler->turn].deficit += QUANTUM_TOKENS;
    }
}

/* Admits one sequence if it fits; false when it has to wait. */
static bool admit(struct draft *draft, struct sequence *seq, struct prefix_match match)
{
    const struct scheduler_limits *limits = &draft->scheduler->limits;
    struct scheduler_plan *plan = &draft->scheduler->plan;
    uint32_t n_computed = match.n_blocks * draft->block_size;
    uint32_t need =
        sequence_blocks_wanted(seq, draft->block_size) - (match.n_blocks - match.n_idle);
    uint32_t siblings = min_u32(seq->n_parked, limits->max_sequences - draft->n_places - 1);
    uint32_t n_rows = chunk_rows(draft, seq, n_computed);
    bool is_alone = draft->n_places == 0;

    if (n_rows == 0)
        return false;
    if ((uint64_t)need + siblings + draft->n_places > draft->available &&
        !(is_alone && need <= draft->available))
        return false;
    draft_work(draft, seq, n_computed, n_rows, true);
    draft->available -= need;
    draft->n_places += 1 + siblings;
    seq->plan_mark = draft->scheduler->plan_mark;
    plan->admitted[plan->n_admitted++] = seq;
    return true;
}

static void plan_admissions(struct draft *draft)
{
    uint32_t max = draft->scheduler->limits.max_sequences;

    while (draft->n_places < max && draft->rows_left > 0) {
        struct prefix_match match;
        struct tenant *tenant;
        struct sequence *seq = next_waiting(draft, &match, &tenant);

        if (!seq || !admit(draft, seq, match))
            return;
        if (tenant)
            tenant->deficit -= cost_of(draft, seq, match);
    }
}

const struct scheduler_plan *scheduler_plan(struct scheduler *scheduler,
                                            const struct scheduler_state *state)
{
    struct draft draft = {
        .scheduler = scheduler,
        .state = state,
        .rows_left = scheduler->limits.max_rows,
        .logits_left = scheduler->limits.max_logit_rows,
        .available = kv_pool_available(state->pool),
        .block_size = kv_pool_block_size(state->pool),
        .end = state->n_running,
    };
    struct scheduler_plan *plan = &scheduler->plan;

    REQUIRE(state->n_running <= scheduler->limits.max_sequences);
    plan->n_work = plan->n_decodes = plan->n_preempted = plan->n_admitted = 0;
    scheduler->plan_mark++;
    for (uint32_t i = 0; i < state->n_running; i++)
        draft.n_places += 1 + state->running[i]->n_parked;
    plan_decodes(&draft);
    keep_budget(&draft, state->row_budget);
    plan_prefills(&draft);
    if (plan->n_preempted == 0)
        plan_admissions(&draft);
    return plan;
}
