#include "config.h"

#include <string.h>

#include "api_priv.h"

/* /v1/models: the one model that is served. */

static void write_model(const struct api *api, struct buf *body)
{
    buf_add_str(body, "{\"id\":");
    buf_add_json(body, api->model.id, strlen(api->model.id));
    buf_printf(body,
               ",\"object\":\"model\",\"created\":%llu,\"owned_by\":\"tellerd\",\"max_model_len\":%"
               "u,\"root\":",
               (unsigned long long)api->model.created, engine_context(api->model.engine));
    buf_add_json(body, api->model.id, strlen(api->model.id));
    buf_add_str(body, ",\"parent\":null}");
}

void handle_models(struct api *api, struct exchange *ex)
{
    if (!api_require_model(api, ex))
        return;
    struct buf body;
    buf_init(&body, 65536);
    buf_add_str(&body, "{\"object\":\"list\",\"data\":[");
    write_model(api, &body);
    buf_add_str(&body, "]}");
    api_respond_json(ex, 200, &body);
    buf_done(&body);
}

void handle_model(struct api *api, struct exchange *ex)
{
    if (!api_require_model(api, ex))
        return;
    const char *id = exchange_request(ex)->path + strlen("/v1/models/");
    size_t len = strlen(id);
    if (len > 0 && id[len - 1] == '/') /* forgiven, as in all paths */
        len--;
    if (len != strlen(api->model.id) || memcmp(id, api->model.id, len) != 0) {
        api_respond_error(ex, STATUS_MODEL_NOT_FOUND, "model",
                          "no model of that name; see /v1/models");
        return;
    }
    struct buf body;
    buf_init(&body, 65536);
    write_model(api, &body);
    api_respond_json(ex, 200, &body);
    buf_done(&body);
}
