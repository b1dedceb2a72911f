#ifndef TELLERD_DAEMON_MODEL_LOAD_H
#define TELLERD_DAEMON_MODEL_LOAD_H

#include "tellerd/backend/backend.h"
#include "tellerd/base/status.h"
#include "tellerd/daemon/config.h"
#include "tellerd/engine/forward.h"
#include "tellerd/model/chat.h"
#include "tellerd/model/checkpoint.h"
#include "tellerd/model/gpt.h"
#include "tellerd/model/tokenizer.h"

/*
 * Everything between a path and a forward pass that can take requests: checkpoint, tokenizer, chat
 * template, backend, weights, cache.
 */
struct loaded_model {
    struct checkpoint *checkpoint;
    struct tokenizer *tokenizer;
    struct chat_template
        *chat; /* NULL: the model has no template; the reason is in no_chat_reason */
    struct backend *backend;
    struct gpt *gpt;
    struct forward *forward;
    uint8_t *banned, *eog; /* sampler's tables, [tokenizer_size] */
    char id[256];
    char no_chat_reason[ERROR_TEXT_MAX];
    uint32_t n_context; /* what the configuration asks for, else the model's */
};

/* Progress in [0, 1]; called on the loading thread. */
typedef void (*load_progress_fn)(void *ctx, double share);

/*
 * Loads the model that config names.  Not on the loop: it takes as long as reading the weights
 * takes.  Errors: BAD_CONFIG (what the operator must change: exit 78), NOT_FOUND, BAD_FILE,
 * NO_MEMORY; nothing is left to free.
 */
enum status model_load(const struct config *config, load_progress_fn on_progress, void *ctx,
                       struct loaded_model *ret, struct error *err) WARN_UNUSED;
/* After the engine is gone. */
void model_unload(struct loaded_model *model);

/* As model_load, for tests that bring a forward pass of their own. */
typedef enum status (*model_load_fn)(const struct config *config, load_progress_fn on_progress,
                                     void *ctx, struct loaded_model *ret, struct error *err);

/* Loads everything but backend, weights and forward. */
enum status model_load_text(const struct config *config, struct loaded_model *model,
                            struct error *err) WARN_UNUSED;

#endif
