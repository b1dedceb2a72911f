#include "config.h"

#include <string.h>

#include "api_priv.h"
#include "tellerd/base/clock.h"

/* Alive, ready, version, metrics, and the control socket's calls.  None of them takes an engine
 * lock or waits for anything. */

static void respond_text(struct exchange *ex, int http_status, const char *json)
{
    exchange_add_header(ex, "Cache-Control", "no-store");
    exchange_respond(ex, http_status, "application/json", json, strlen(json));
}

void handle_livez(struct api *api, struct exchange *ex)
{
    (void)api;
    respond_text(ex, 200, "{\"status\":\"ok\"}");
}

void handle_health(struct api *api, struct exchange *ex)
{
    if (api_ready(api)) {
        respond_text(ex, 200, "{\"status\":\"ok\"}");
        return;
    }
    struct error err = {0};
    if (api->is_draining || api->is_leaving)
        error_set(&err, STATUS_SHUTTING_DOWN, "the server is shutting down");
    else if (!api->has_model)
        error_set(&err, STATUS_LOADING, "the model is loading (%.0f%%)", api->progress * 100);
    else
        error_set(&err, STATUS_ENGINE_FAILED,
                  "the engine has failed; the server will be restarted");
    exchange_respond_error(ex, &err);
}

void handle_version(struct api *api, struct exchange *ex)
{
    struct buf body;
    buf_init(&body, 1024);
    buf_add_str(&body, "{\"version\":");
    buf_add_json(&body, api->config.version, strlen(api->config.version));
    buf_add_str(&body, "}");
    api_respond_json(ex, 200, &body);
    buf_done(&body);
}

void handle_metrics(struct api *api, struct exchange *ex)
{
    struct buf body;
    bool openmetrics =
        metrics_accepts_openmetrics(http_request_header(exchange_request(ex), "accept"));
    buf_init(&body, 4 << 20);
    metrics_expose(api->metrics, &body, openmetrics);
    exchange_respond(ex, 200,
                     openmetrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                 : "text/plain; version=0.0.4; charset=utf-8",
                     body.data, body.len);
    buf_done(&body);
}

void handle_control_status(struct api *api, struct exchange *ex)
{
    struct buf body;
    buf_init(&body, 16384);
    const char *state = api->is_draining  ? "draining"
                        : !api->has_model ? "loading"
                        : api_ready(api)  ? "ready"
                                          : "failed";
    buf_printf(&body, "{\"state\":\"%s\",\"progress\":%.3f,\"version\":", state,
               api->has_model ? 1.0 : api->progress);
    buf_add_json(&body, api->config.version, strlen(api->config.version));
    if (api->has_model) {
        struct engine_stats stats;
        engine_stats(api->model.engine, &stats);
        buf_add_str(&body, ",\"model\":");
        buf_add_json(&body, api->model.id, strlen(api->model.id));
        buf_printf(&body,
                   ",\"n_ctx\":%u,\"running\":%u,\"waiting\":%u,\"blocks\":%u,\"blocks_used\":%u,"
                   "\"blocks_cached\":%u,"
                   "\"steps\":%llu,\"prompt_tokens\":%llu,\"generated_tokens\":%llu,\"cached_"
                   "tokens\":%llu,\"preemptions\":%llu,"
                   "\"idle\":%s,\"heartbeat_age_ms\":%llu",
                   engine_context(api->model.engine), stats.n_running, stats.n_waiting,
                   stats.n_blocks, stats.n_blocks_used, stats.n_blocks_cached,
                   (unsigned long long)stats.n_steps, (unsigned long long)stats.n_prompt_tokens,
                   (unsigned long long)stats.n_generated_tokens,
                   (unsigned long long)stats.n_cached_tokens,
                   (unsigned long long)stats.n_preemptions, stats.idle ? "true" : "false",
                   (unsigned long long)((clock_ns() - stats.heartbeat_ns) / 1000000));
    }
    buf_add_str(&body, "}");
    api_respond_json(ex, 200, &body);
    buf_done(&body);
}

void handle_control_drain(struct api *api, struct exchange *ex)
{
    respond_text(ex, 200, "{\"status\":\"draining\"}");
    api->hooks.drain(api->hooks.ctx);
}

void handle_control_reload(struct api *api, struct exchange *ex)
{
    struct error err = {0};
    if (api->hooks.reload(api->hooks.ctx, &err) == STATUS_OK)
        respond_text(ex, 200, "{\"status\":\"reloaded\"}");
    else
        exchange_respond_error(ex, &err);
}
