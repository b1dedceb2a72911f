#include "config.h"

#include <stddef.h>
#include <stdint.h>

#include "tellerd/api/generate_request.h"
#include "tellerd/api/json_read.h"

/* A body as chat and as completion request: whatever it holds, it is read or refused with a text.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct request_limits limits = {.model_id = "m", .n_context = 64, .n_tokens = 100};
    for (int kind = REQUEST_CHAT; kind <= REQUEST_COMPLETION; kind++) {
        struct error err = {0};
        struct generate_request request;
        json_t *body;
        if (json_read_body((const char *)data, size, &body, &err) != STATUS_OK) {
            REQUIRE(err.text[0]);
            continue;
        }
        enum status status =
            generate_request_read(&request, (enum request_kind)kind, body, &limits, &err);
        REQUIRE(status == STATUS_OK || (err.text[0] && status_http(status) < 500));
        generate_request_done(&request);
    }
    return 0;
}
