/*
 * The message that asks for generation, and names of how it may end.
 */
#include "config.h"

#include "tellerd/engine/request.h"

#include <stdlib.h>

#include "tellerd/base/mem.h"

static const char *const reason_names[FINISH_COUNT] = {
    [FINISH_NONE] = "none",           [FINISH_STOP] = "stop",   [FINISH_LENGTH] = "length",
    [FINISH_CANCELLED] = "cancelled", [FINISH_ERROR] = "error",
};

const char *finish_reason_name(enum finish_reason reason)
{
    return reason < FINISH_COUNT ? reason_names[reason] : "unknown";
}

struct gen_request *gen_request_new(void)
{
    struct gen_request *request = xcalloc(1, sizeof(*request));

    sampling_defaults(&request->sampling);
    request->n_choices = 1;
    request->n_prompt_logprobs = REQUEST_NO_PROMPT_LOGPROBS;
    return request;
}

void gen_request_free(struct gen_request *request)
{
    if (!request)
        return;
    free(request->prompt);
    free(request->sampling.bias);
    free(request->sampling.stop_ids);
    free(request);
}
