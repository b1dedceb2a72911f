#include "config.h"

#include <string.h>

#include "daemon_priv.h"
#include "tellerd/base/clock.h"
#include "tellerd/base/log.h"

#define LOAD_EXTENSION_NS \
    30000000000ull /* asked of the service manager every two seconds while loading */

/* The model is loaded on a thread of its own, so that the port answers (503, with progress) from
 * the first moment. */

static void on_progress(void *ctx, double share)
{
    struct daemon *daemon = ctx;
    atomic_store(&daemon->load_progress, (unsigned)(share * 1000));
    uv_async_send(&daemon->wake);
}

static void load_thread(void *arg)
{
    struct daemon *daemon = arg;
    daemon->load_status =
        daemon->load(&daemon->config, on_progress, daemon, &daemon->model, &daemon->load_error);
    atomic_store(&daemon->load_done, true);
    uv_async_send(&daemon->wake);
}

void daemon_load_start(struct daemon *daemon)
{
    REQUIRE(uv_thread_create(&daemon->loader, load_thread, daemon) == 0);
}

static enum status start_engine(struct daemon *daemon, struct error *err)
{
    struct loaded_model *model = &daemon->model;
    const struct config *config = &daemon->config;
    struct engine_config engine = {
        .max_batch_tokens = (uint32_t)config->max_batch_tokens,
        .max_sequences = (uint32_t)config->max_sequences,
        .max_queued = (uint32_t)config->max_queued,
        .max_queued_tokens = config->max_queued_tokens,
        .n_context = model->n_context,
        .prefill_chunk = (uint32_t)config->prefill_chunk,
        .step_target_ns = config->step_target_ns,
        .prefix_cache = config->prefix_cache,
        .metrics_vllm = strcmp(config->metrics_compat, "vllm") == 0,
        .fingerprint =
            model->checkpoint ? checkpoint_fingerprint(model->checkpoint) : (struct hash128){1, 1},
    };
    /* Keys and values of another cache type are other numbers. */
    struct {
        struct hash128 model;
        char types[32];
    } root = {.model = engine.fingerprint};
    snprintf(root.types, sizeof root.types, "%s %s %s", config->kv_type_k, config->kv_type_v,
             config->bank_type);
    engine.fingerprint = hash_bytes(&root, sizeof root, 0);
    TRY(engine_new(&engine, model->forward, daemon->events, daemon->metrics, model->id,
                   &daemon->engine, err));
    engine_start(daemon->engine);
    struct api_model api = {
        .id = model->id,
        .engine = daemon->engine,
        .tokenizer = model->tokenizer,
        .chat = model->chat,
        .no_chat_reason = model->no_chat_reason,
        .defaults = checkpoint_defaults(model->checkpoint),
        .bank_rows = model->forward->has_bank ? model->forward->bank_rows : 0,
        .fingerprint = engine.fingerprint.low,
        .created = (uint64_t)clock_wall(),
    };
    api_set_model(daemon->api, &api);
    return STATUS_OK;
}

static void fail(struct daemon *daemon, enum status status, const struct error *err)
{
    log_error("load.failed reason=\"%s\"", err->text);
    notify_status(&daemon->notify, "cannot serve: %s", err->text);
    /* A wrong configuration or file stays wrong: the service manager must not try again and again.
     */
    bool permanent =
        status == STATUS_BAD_CONFIG || status == STATUS_BAD_FILE || status == STATUS_NOT_FOUND;
    daemon->exit_code = permanent ? EXIT_CONFIG : 1;
    daemon_stop(daemon);
}

static void log_ready(const struct daemon *daemon)
{
    const struct forward *forward = daemon->model.forward;
    log_notice(
        "ready model=%s context=%u blocks=%u block_size=%u kv_bytes=%llu bank_bytes=%llu "
        "weight_bytes=%llu backend=\"%s\" seconds=%.2f",
        daemon->model.id, engine_context(daemon->engine), forward->n_blocks, forward->block_size,
        (unsigned long long)forward->n_blocks *
            (forward->block_bytes_keys + forward->block_bytes_values + forward->block_bytes_ids),
        (unsigned long long)forward->bank_bytes, (unsigned long long)forward->weight_bytes,
        daemon->model.backend
            ? backend_ops_of(daemon->model.backend)->describe(daemon->model.backend)
            : "script",
        metric_value(daemon->load_seconds));
}

void daemon_load_poll(struct daemon *daemon)
{
    if (daemon->loader_joined)
        return;
    double share = atomic_load(&daemon->load_progress) / 1000.0;
    api_set_progress(daemon->api, share);
    uint64_t now = clock_ns();
    if (now - daemon->last_extend_ns > 2000000000ull) {
        daemon->last_extend_ns = now;
        notify_extend(&daemon->notify, LOAD_EXTENSION_NS);
        notify_status(&daemon->notify, "loading %.0f%%", share * 100);
    }
    if (!atomic_load(&daemon->load_done))
        return;
    uv_thread_join(&daemon->loader);
    daemon->loader_joined = true;
    if (daemon->state != DAEMON_LOADING)
        return; /* stopped meanwhile */
    if (daemon->load_status != STATUS_OK) {
        fail(daemon, daemon->load_status, &daemon->load_error);
        return;
    }
    struct error err = {0};
    enum status status = start_engine(daemon, &err);
    if (status != STATUS_OK) {
        fail(daemon, status, &err);
        return;
    }
    metric_set(daemon->load_seconds, (double)(now - daemon->started_ns) / 1e9);
    daemon_move(daemon, DAEMON_SERVING);
    log_ready(daemon);
    notify_ready(&daemon->notify, daemon->model.id);
}
