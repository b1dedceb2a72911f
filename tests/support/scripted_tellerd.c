/*
 * The daemon with a scripted forward pass in place of the model's: tokenizer and template come from --model, what the "model" says from the JSON in
 * $SCRIPTED_TELLERD.  For black-box tests that need known tokens, slow or failing steps.
 *   {"load_ms": n, "fail_load": "text", "n_blocks": n, "block_size": n, "n_context": n, "max_rows": n,
 *    "follow": [[token, next], ...], "emit": [[[prompt ids], [output ids]], ...],
 *    "faults": [{"kind": "internal|engine|nan|delay|freeze", "step": n, "token": n, "times": n, "ms": n}]}
 */
#include "config.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tellerd/base/mem.h"
#include "tellerd/daemon/daemon.h"
#include "tellerd/engine/forward_script.h"

static uint32_t number(const json_t *object, const char *name, uint32_t fallback)
{
    const json_t *value = json_object_get(object, name);
    return json_is_integer(value) ? (uint32_t)json_integer_value(value) : fallback;
}

static uint32_t *ids_of(const json_t *list, uint32_t *ret_n)
{
    uint32_t *ids = xcalloc(json_array_size(list) + 1, sizeof *ids);
    for (*ret_n = 0; *ret_n < json_array_size(list); ++*ret_n)
        ids[*ret_n] = (uint32_t)json_integer_value(json_array_get(list, *ret_n));
    return ids;
}

static void add_emits(struct forward *forward, const json_t *list)
{
    size_t i;
    json_t *pair;
    json_array_foreach(list, i, pair) {
        uint32_t n_prompt, n_output;
        uint32_t *prompt = ids_of(json_array_get(pair, 0), &n_prompt);
        uint32_t *output = ids_of(json_array_get(pair, 1), &n_output);
        forward_script_emit(forward, prompt, n_prompt, output, n_output);
        free(prompt);
        free(output);
    }
}

static void add_faults(struct forward *forward, const json_t *list)
{
    static const char *const names[] = {"internal", "engine", "nan", "delay", "freeze"};
    size_t i;
    json_t *fault;
    json_array_foreach(list, i, fault) {
        const char *kind = json_string_value(json_object_get(fault, "kind"));
        size_t k = 0;
        while (k < 5 && strcmp(names[k], kind) != 0)
            k++;
        REQUIRE(k < 5);
        uint32_t step = number(fault, "step", UINT32_MAX);
        forward_script_fault(forward, (enum forward_script_fault)k, step == UINT32_MAX ? UINT64_MAX : step,
                             number(fault, "token", STEP_NO_TOKEN), number(fault, "times", UINT32_MAX),
                             (uint64_t)number(fault, "ms", 0) * 1000000);
    }
}

static struct forward *script(const json_t *root, const struct loaded_model *model)
{
    struct forward_script_config config;
    forward_script_defaults(&config);
    config.n_blocks = number(root, "n_blocks", config.n_blocks);
    config.block_size = number(root, "block_size", config.block_size);
    config.n_context = number(root, "n_context", config.n_context);
    config.max_rows = number(root, "max_rows", config.max_rows);
    config.n_tokens = config.n_logits = tokenizer_size(model->tokenizer);
    config.eog = tokenizer_eos(model->tokenizer);
    config.eog_one_in = number(root, "eog_one_in", 0);
    struct forward *forward = forward_script_new(&config);
    size_t i;
    json_t *pair;
    json_array_foreach(json_object_get(root, "follow"), i, pair)
        forward_script_follow(forward, (uint32_t)json_integer_value(json_array_get(pair, 0)),
                              (uint32_t)json_integer_value(json_array_get(pair, 1)));
    add_emits(forward, json_object_get(root, "emit"));
    add_faults(forward, json_object_get(root, "faults"));
    forward->vocab.banned = model->banned;
    forward->vocab.eog = model->eog;
    return forward;
}

static enum status scripted_load(const struct config *config, load_progress_fn on_progress, void *ctx, struct loaded_model *ret,
                                 struct error *err)
{
    const char *text = getenv("SCRIPTED_TELLERD");
    json_t *root = json_loads(text ? text : "{}", 0, NULL);
    REQUIRE(root);
    TRY(model_load_text(config, ret, err));
    uint32_t load_ms = number(root, "load_ms", 0);
    for (uint32_t ms = 0; ms < load_ms; ms += 20) {
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
        on_progress(ctx, (double)ms / load_ms);
    }
    const char *fail = json_string_value(json_object_get(root, "fail_load"));
    if (fail) {
        model_unload(ret);
        error_set(err, STATUS_BAD_FILE, "%s", fail);
        json_decref(root);
        return STATUS_BAD_FILE;
    }
    ret->forward = script(root, ret);
    if (!config->context)
        ret->n_context = ret->forward->n_context;
    json_decref(root);
    return STATUS_OK;
}

int main(int argc, char **argv)
{
    return daemon_main(argc, argv, scripted_load);
}
