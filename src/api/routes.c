#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "api_priv.h"
#include "tellerd/base/clock.h"
#include "tellerd/base/log.h"
#include "tellerd/base/mem.h"

/*
 * The table of routes, and what is checked before a handler runs: key, path, method, content type,
 * size.  A request without a valid key learns nothing about which paths exist.
 */
#define GET_HEAD (1u << HTTP_GET_ | 1u << HTTP_HEAD_)
#define POST     (1u << HTTP_POST_)

static const struct route routes[] = {
    /* path, methods, key, main, metrics, control, handler */
    {"/v1/chat/completions", POST, true, true, false, false, generate_chat},
    {"/v1/completions", POST, true, true, false, false, generate_completion},
    {"/v1/models", GET_HEAD, true, true, false, false, handle_models},
    {"/v1/models/*", GET_HEAD, true, true, false, false, handle_model},
    {"/tokenize", POST, true, true, false, false, handle_tokenize},
    {"/detokenize", POST, true, true, false, false, handle_detokenize},
    {"/livez", GET_HEAD, false, true, true, true, handle_livez},
    {"/readyz", GET_HEAD, false, true, true, true, handle_health},
    {"/health", GET_HEAD, false, true, true, true, handle_health},
    {"/version", GET_HEAD, false, true, true, true, handle_version},
    {"/metrics", GET_HEAD, true, true, true, true, handle_metrics},
    {"/control/status", GET_HEAD, false, false, false, true, handle_control_status},
    {"/control/drain", POST, false, false, false, true, handle_control_drain},
    {"/control/reload", POST, false, false, false, true, handle_control_reload},
};
enum { N_ROUTES = sizeof routes / sizeof *routes, N_CODE_CLASSES = 3 };

static bool offered(const struct route *route, int tag)
{
    return tag == API_LISTENER_MAIN      ? route->on_main
           : tag == API_LISTENER_METRICS ? route->on_metrics
                                         : route->on_control;
}

static bool path_matches(const struct route *route, const char *path)
{
    size_t len = strlen(route->path);
    if (route->path[len - 1] != '*')
        return strcmp(route->path, path) == 0;
    return strncmp(route->path, path, len - 1) == 0 && path[len - 1] != '\0';
}

/* The route of a request on its listener; one trailing slash is forgiven. NULL: no such path. */
static const struct route *find_route(const struct exchange *ex)
{
    char path[512];
    const char *asked = exchange_request(ex)->path;
    size_t len = strlen(asked);
    if (len >= sizeof path)
        return NULL;
    memcpy(path, asked, len + 1);
    if (len > 1 && path[len - 1] == '/')
        path[len - 1] = '\0';
    for (size_t i = 0; i < N_ROUTES; i++)
        if (offered(&routes[i], exchange_tag(ex)) && path_matches(&routes[i], path))
            return &routes[i];
    return NULL;
}

/* --- metrics and log
 * --------------------------------------------------------------------------------------------------
 */

static void create_metrics(struct api *api)
{
    static const char classes[N_CODE_CLASSES][4] = {"2xx", "4xx", "5xx"};
    api->route_metrics = xcalloc((N_ROUTES + 1) * N_CODE_CLASSES, sizeof(struct metric *));
    for (size_t i = 0; api->metrics && i <= N_ROUTES; i++)
        for (size_t c = 0; c < N_CODE_CLASSES; c++) {
            char labels[256] = "";
            metrics_label(labels, sizeof labels, "endpoint",
                          i < N_ROUTES ? routes[i].path : "_unknown");
            metrics_label(labels, sizeof labels, "code", classes[c]);
            api->route_metrics[i * N_CODE_CLASSES + c] = metrics_counter(
                api->metrics, "tellerd_http_requests_total",
                "HTTP requests answered, by route and class of status code.", labels);
        }
}

void api_on_done(void *ctx, struct exchange *ex, int http_status, uint64_t bytes)
{
    struct api *api = ctx;
    const struct http_request *request = exchange_request(ex);
    const struct route *route = request->path ? find_route(ex) : NULL;
    size_t i = route ? (size_t)(route - routes) : N_ROUTES;
    size_t class = http_status < 400 ? 0 : http_status < 500 ? 1 : 2;
    metric_inc(api->route_metrics[i * N_CODE_CLASSES + class]);
    bool is_generation =
        route && (route->handle == generate_chat || route->handle == generate_completion);
    if (log_enabled(LOG_DEBUG) || (is_generation && http_status >= 400))
        log_write(is_generation ? LOG_INFO : LOG_DEBUG,
                  "http.answered request_id=%s route=%s status=%d bytes=%llu ms=%.1f client=%s",
                  exchange_id(ex), route ? route->path : "_unknown", http_status,
                  (unsigned long long)bytes, (double)(clock_ns() - exchange_arrival_ns(ex)) / 1e6,
                  exchange_peer(ex));
}

/* --- checks
 * ------------------------------------------------------------------------------------------------------------
 */

void api_respond_json(struct exchange *ex, int http_status, const struct buf *body)
{
    exchange_add_header(ex, "Cache-Control", "no-store");
    exchange_respond(ex, http_status, "application/json", body->data, body->len);
}

void api_respond_error(struct exchange *ex, enum status status, const char *param, const char *text)
{
    struct error err = {0};
    error_param(&err, status, param ? param : "", "%s", text);
    exchange_respond_error(ex, &err);
}

bool api_require_model(struct api *api, struct exchange *ex)
{
    struct error err = {0};
    if (api->is_draining)
        error_set(&err, STATUS_SHUTTING_DOWN, "the server is shutting down; ask another one");
    else if (!api->has_model)
        error_set(&err, STATUS_LOADING, "the model is loading (%.0f%%); try again soon",
                  api->progress * 100);
    else
        return true;
    exchange_respond_error(ex, &err);
    return false;
}

static void answer_wrong_method(struct exchange *ex, const struct route *route)
{
    char allow[64] = "OPTIONS";
    static const struct {
        enum http_method method;
        const char *text;
    } names[] = {{HTTP_GET_, ", GET"}, {HTTP_HEAD_, ", HEAD"}, {HTTP_POST_, ", POST"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (route->methods & 1u << names[i].method)
            snprintf(allow + strlen(allow), sizeof allow - strlen(allow), "%s", names[i].text);
    exchange_add_header(ex, "Allow", allow);
    if (exchange_request(ex)->method == HTTP_OPTIONS_)
        exchange_respond(ex, 204, NULL, NULL, 0);
    else
        api_respond_error(ex, STATUS_METHOD_NOT_ALLOWED, NULL,
                          "this path does not take that method; see the Allow header");
}

/* application/json, any type or none is taken as JSON; a charset other than UTF-8 is not. */
static bool content_type_fits(const struct http_request *request)
{
    const char *type = http_request_header(request, "content-type");
    const char *charset = type ? strcasestr(type, "charset=") : NULL;
    if (!charset)
        return true;
    charset += strlen("charset=");
    charset += *charset == '"';
    return strncasecmp(charset, "utf-8", 5) == 0 || strncasecmp(charset, "utf8", 4) == 0 ||
           strncasecmp(charset, "us-ascii", 8) == 0;
}

static void on_headers(void *ctx, struct exchange *ex)
{
    struct api *api = ctx;
    const struct http_request *request = exchange_request(ex);
    const struct route *route = find_route(ex);
    struct error err = {0};
    uint32_t tenant;
    bool needs_key = exchange_tag(ex) == API_LISTENER_MAIN && (!route || route->needs_key);
    if (route && route->handle == handle_metrics && !api->config.metrics_need_key)
        needs_key = false;
    if (needs_key && auth_check(api, request, &tenant, &err) != STATUS_OK) {
        exchange_respond_error(ex, &err);
        return;
    }
    if (!route) {
        api_respond_error(ex, STATUS_NOT_FOUND, NULL, "no such path");
        return;
    }
    if (!(route->methods & 1u << request->method)) {
        answer_wrong_method(ex, route);
        return;
    }
    if (request->has_body && !content_type_fits(request)) {
        api_respond_error(ex, STATUS_MEDIA_TYPE, NULL, "the body must be JSON in UTF-8");
        return;
    }
    exchange_set_max_body(ex, api->config.max_body_bytes);
}

static void on_request(void *ctx, struct exchange *ex)
{
    struct api *api = ctx;
    const struct route *route = find_route(ex);
    REQUIRE(route);
    exchange_set_user(ex, NULL);
    route->handle(api, ex);
}

static void on_closed(void *ctx, struct exchange *ex)
{
    (void)ctx;
    struct exchange_owner *owner = exchange_user(ex);
    if (owner)
        owner->client_left(owner);
}

struct http_handler api_handler(struct api *api)
{
    return (struct http_handler){.on_headers = on_headers,
                                 .on_request = on_request,
                                 .on_closed = on_closed,
                                 .on_done = api_on_done,
                                 .ctx = api};
}

/* --- life
 * --------------------------------------------------------------------------------------------------------------
 */

struct api *api_new(const struct api_config *config, const struct api_hooks *hooks,
                    struct metrics *metrics)
{
    struct api *api = xcalloc(1, sizeof *api);
    api->config = *config;
    api->hooks = *hooks;
    api->metrics = metrics;
    api->next_request_id = 1;
    buf_init(&api->chunks, (size_t)MAX_CHUNK_BYTES * 2);
    api_set_keys(api, NULL, 0);
    create_metrics(api);
    return api;
}

void api_free(struct api *api)
{
    if (!api)
        return;
    REQUIRE(!api->generations);
    buf_done(&api->chunks);
    free(api->keys);
    free(api->tenants);
    free(api->route_metrics);
    free(api);
}

void api_set_progress(struct api *api, double share)
{
    api->progress = share;
}

void api_set_model(struct api *api, const struct api_model *model)
{
    api->model = *model;
    api->has_model = true;
}

void api_set_config(struct api *api, const struct api_config *config)
{
    api->config = *config;
}

void api_set_leaving(struct api *api)
{
    api->is_leaving = true;
}

void api_set_draining(struct api *api)
{
    api->is_draining = true;
}

bool api_ready(const struct api *api)
{
    if (!api->has_model || api->is_leaving || api->is_draining)
        return false;
    struct engine_stats stats;
    engine_stats(api->model.engine, &stats);
    return !stats.failed;
}

uint32_t api_generations(const struct api *api)
{
    return api->n_generations;
}

void api_tick(struct api *api, uint64_t now_ns)
{
    for (struct generation *generation = api->generations, *next; generation; generation = next) {
        next = generation->next;
        generation_tick(generation, now_ns);
    }
}

void api_abort_all(struct api *api)
{
    struct error err = {0};
    error_set(&err, STATUS_SHUTTING_DOWN,
              "the server is shutting down and the time for running requests is over");
    for (struct generation *generation = api->generations, *next; generation; generation = next) {
        next = generation->next;
        generation_abort(generation, &err);
    }
}

void api_engine_events(struct api *api, struct queue_node *first)
{
    struct generation *touched = NULL;
    (void)api;
    for (struct queue_node *node = first, *next; node; node = next) {
        struct engine_event *event = (struct engine_event *)node;
        next = node->next;
        struct prompt_state *prompt = event->user;
        struct generation *generation = prompt->generation;
        generation_event(generation, prompt, event);
        if (!generation->touched) {
            generation->touched = true;
            generation->next_touched = touched;
            touched = generation;
        }
        free(event);
    }
    for (struct generation *next; touched; touched = next) {
        next = touched->next_touched;
        touched->touched = false;
        generation_flush(touched);
    }
}
