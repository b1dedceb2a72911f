/*
 * Hostile vocabularies: whatever the tokens, types, scores, merges and ids are, tokenizer_new gives
 * a tokenizer or an error that names something, and a tokenizer encodes and decodes without harm.
 *
 * Input: kind, flags, bos, eos, unknown (a byte each), then records: type byte, score byte, length
 * byte, text; a record of type 255 is a merge.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "tellerd/model/tokenizer.h"

enum { HEAD_BYTES = 5, MAX_ENTRIES = 512, MERGE_RECORD = 255, ABSENT_ID = 255 };
enum { FLAG_PREFIX = 1, FLAG_NFC = 2, FLAG_WHOLE = 4, FLAG_NO_TYPES = 8, FLAG_NO_SCORES = 16 };

static const char sample[] =
    "<s>The  the\xC3\xA9 e\xCC\x81 12 \xE2\x96\x81</s>\n\xF0\x9F\x98\x80\xFF";

static void read_records(const uint8_t *data, size_t size, struct vocab_source *source,
                         struct text_view *tokens, uint8_t *types, float *scores,
                         struct text_view *merges)
{
    size_t at = HEAD_BYTES;
    while (size - at >= 3 && source->n_tokens < MAX_ENTRIES && source->n_merges < MAX_ENTRIES) {
        size_t len = data[at + 2];
        if (len > size - at - 3)
            len = size - at - 3;
        struct text_view text = {(const char *)data + at + 3, len};
        if (data[at] == MERGE_RECORD) {
            merges[source->n_merges++] = text;
        } else {
            types[source->n_tokens] = data[at];
            scores[source->n_tokens] = (float)(int8_t)data[at + 1];
            tokens[source->n_tokens++] = text;
        }
        at += 3 + len;
    }
}

static void use(const struct tokenizer *tok, const char *text, size_t len)
{
    struct token_list list = {0};
    struct text_run all = {0, len};
    if (tokenizer_encode(tok, text, len, &all, 1, true, SIZE_MAX, &list, NULL))
        abort();
    for (size_t i = 0; i < list.len; i++) {
        if (list.ids[i] >= tokenizer_size(tok))
            abort();
    }
    list.len = 0;
    if (tokenizer_encode(tok, text, len, NULL, 0, false, SIZE_MAX, &list, NULL))
        abort();
    for (size_t i = 0; i < list.len; i++) {
        struct text_view piece = tokenizer_piece(tok, list.ids[i], true);
        volatile char sum = 0;
        for (size_t k = 0; k < piece.len; k++)
            sum = (char)(sum ^ piece.bytes[k]);
        (void)sum;
    }
    token_list_done(&list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct text_view tokens[MAX_ENTRIES], merges[MAX_ENTRIES];
    static uint8_t types[MAX_ENTRIES];
    static float scores[MAX_ENTRIES];
    if (size < HEAD_BYTES)
        return 0;
    uint8_t flags = data[1];
    struct vocab_source source = {
        .kind = (enum tokenizer_kind)(data[0] % 3),
        .split = (enum tokenizer_split)(data[0] / 3 % SPLIT_COUNT),
        .tokens = tokens,
        .types = flags & FLAG_NO_TYPES ? NULL : types,
        .scores = flags & FLAG_NO_SCORES ? NULL : scores,
        .merges = merges,
        .bos = data[2] == ABSENT_ID ? TOKEN_NONE : data[2],
        .eos = data[3] == ABSENT_ID ? TOKEN_NONE : data[3],
        .eot = TOKEN_NONE,
        .unknown = data[4] == ABSENT_ID ? TOKEN_NONE : data[4],
        .add_space_prefix = flags & FLAG_PREFIX,
        .nfc = flags & FLAG_NFC,
        .ignore_merges = flags & FLAG_WHOLE,
    };
    read_records(data, size, &source, tokens, types, scores, merges);
    struct tokenizer *tok;
    struct error err = {0};
    enum status status = tokenizer_new(&source, &tok, &err);
    if (status) {
        if (status != STATUS_BAD_FILE || err.text[0] == '\0')
            abort();
        return 0;
    }
    use(tok, sample, sizeof sample - 1);
    use(tok, (const char *)data, size);
    tokenizer_free(tok);
    return 0;
}
