/*
 * tokenizer.json up to a tokenizer that encodes a text.  The same object is read as the settings
 * files too, so that their keys can stand in it.
 */
#include "config.h"

#include <stdint.h>
#include <string.h>

#include "hf_priv.h"
#include "model_json_priv.h"
#include "tellerd/model/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void encode(const struct tokenizer *tok)
{
    static const char text[] = "a b  ab\n\xC3\xA9 <s>'s 12345 \xE2\x96\x81";
    struct token_list list = {0};
    struct error err;
    if (tokenizer_encode(tok, text, sizeof text - 1, NULL, 0, true, 100, &list, &err) ==
        STATUS_OK) {
        for (size_t i = 0; i < list.len; i++)
            REQUIRE(list.ids[i] < tokenizer_size(tok));
    }
    token_list_done(&list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct checkpoint cp;
    struct tokenizer *tok;
    struct error err;
    json_t *root = NULL;
    if (model_json_parse((const char *)data, size, &root, &err))
        return 0;
    memset(&cp, 0, sizeof cp);
    arena_init(&cp.arena, 1 << 24);
    cp.vocab.bos = cp.vocab.eos = cp.vocab.eot = cp.vocab.unknown = TOKEN_NONE;
    if (json_is_object(root) && hf_tokenizer_read(&cp, root, &err) == STATUS_OK &&
        hf_settings_read(&cp, root, root, root, &err) == STATUS_OK &&
        tokenizer_new(&cp.vocab, &tok, &err) == STATUS_OK) {
        encode(tok);
        tokenizer_free(tok);
    }
    json_decref(root);
    arena_done(&cp.arena);
    return 0;
}
