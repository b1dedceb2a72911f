/*
 * tokenizer.json of a Hugging Face directory -> vocab_source: byte-level BPE, BPE over characters
 * with byte fallback (SentencePiece converted; its merges are kept, in place of scores), unigram.
 * What is checked here is what indexes arrays; the tokenizer checks the rest.
 */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "hf_priv.h"
#include "model_json_priv.h"

/* What is being filled: the arrays that cp->vocab points to, still writable. */
struct builder {
    struct checkpoint *cp;
    struct json_reader r;
    struct text_view *tokens;
    uint8_t *types; /* 0: no token yet */
    float *scores;
    bool has_byte_fallback;
};

static void fail_alloc(struct builder *b)
{
    if (!b->r.status)
        b->r.status = STATUS_BAD_FILE; /* the text is set */
}

/* -- size ------------------------------------------------------------------------------------- */

static void count_id(struct builder *b, const json_t *id, const char *text, uint32_t *n_tokens)
{
    json_int_t number = json_integer_value(id);
    if (!json_is_integer(id) || number < 0 || number >= HPARAMS_MAX_VOCAB)
        JSON_FAIL(&b->r, "the id of token \"%.64s\" must be a whole number from 0 to %d",
                  text ? text : "", HPARAMS_MAX_VOCAB - 1);
    else if ((uint32_t)number >= *n_tokens)
        *n_tokens = (uint32_t)number + 1;
}

/* One more than the greatest id of the model's vocabulary and the added tokens.  Ids may leave
 * holes, but a few tokens must not ask for much memory. */
static uint32_t count_tokens(struct builder *b, json_t *vocab, json_t *added)
{
    uint32_t n = 0;
    size_t n_entries = json_array_size(vocab) + json_object_size(vocab) + json_array_size(added);
    const char *text;
    json_t *value;
    size_t i;
    if (json_is_array(vocab)) {
        if (json_array_size(vocab) > HPARAMS_MAX_VOCAB)
            JSON_FAIL(&b->r, "model.vocab has more than %d tokens", HPARAMS_MAX_VOCAB);
        else
            n = (uint32_t)json_array_size(vocab);
    } else {
        json_object_foreach(vocab, text, value) count_id(b, value, text, &n);
    }
    json_array_foreach(added, i, value) count_id(
        b, json_object_get(value, "id"), json_string_value(json_object_get(value, "content")), &n);
    if (n == 0)
        JSON_FAIL(&b->r, "model.vocab is empty");
    else if (n / 4 > n_entries + 256)
        JSON_FAIL(&b->r, "the greatest id is %" PRIu32 " for %zu tokens only", n - 1, n_entries);
    return n;
}

static void make_arrays(struct builder *b, uint32_t n_tokens, bool has_scores)
{
    struct vocab_source *vocab = &b->cp->vocab;
    b->tokens = checkpoint_alloc(b->cp, n_tokens, sizeof *b->tokens, b->r.err);
    b->types = checkpoint_alloc(b->cp, n_tokens, sizeof *b->types, b->r.err);
    if (has_scores)
        b->scores = checkpoint_alloc(b->cp, n_tokens, sizeof *b->scores, b->r.err);
    if (!b->tokens || !b->types || (has_scores && !b->scores)) {
        fail_alloc(b);
        return;
    }
    vocab->n_tokens = n_tokens;
    vocab->tokens = b->tokens;
    vocab->types = b->types;
    vocab->scores = b->scores;
}

/* -- tokens ----------------------------------------------------------------------------------- */

static bool is_byte_token(struct text_view text)
{
    return text.len == 6 && memcmp(text.bytes, "<0x", 3) == 0 && text.bytes[5] == '>';
}

static void put_token(struct builder *b, uint32_t id, struct text_view text)
{
    if (b->types[id] != 0) {
        JSON_FAIL(&b->r, "two tokens have the id %" PRIu32, id);
        return;
    }
    b->types[id] = b->has_byte_fallback && is_byte_token(text) ? TOKEN_BYTE : TOKEN_NORMAL;
    if (!checkpoint_copy_text(b->cp, text.bytes, text.len, &b->tokens[id], b->r.err))
        fail_alloc(b);
}

static void read_bpe_vocab(struct builder *b, json_t *vocab)
{
    const char *text;
    json_t *id;
    json_object_foreach(vocab, text, id)
    {
        if (b->r.status)
            return;
        put_token(b, (uint32_t)json_integer_value(id), (struct text_view){text, strlen(text)});
    }
}

static void read_unigram_vocab(struct builder *b, json_t *vocab)
{
    size_t i;
    json_t *item;
    json_array_foreach(vocab, i, item)
    {
        const json_t *text = json_array_get(item, 0), *score = json_array_get(item, 1);
        if (!json_is_string(text) || !json_is_number(score))
            JSON_FAIL(&b->r, "model.vocab[%zu] must be [token, score]", i);
        if (b->r.status)
            return;
        put_token(b, (uint32_t)i, json_text(text));
        b->scores[i] = (float)json_number_value(score);
    }
}

/* An added token that also takes spaces beside it, or does not count within a word, would make
 * other tokens of a text. */
static void refuse_added(struct builder *b, const json_t *item, struct text_view text)
{
    static const char *const keys[] = {"lstrip", "rstrip", "single_word"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        bool value = false;
        json_get_bool(&b->r, item, keys[i], &value);
        if (value && !b->r.status)
            JSON_FAIL(&b->r, "added token \"%.*s\": %s is not supported",
                      (int)(text.len < 64 ? text.len : 64), text.bytes, keys[i]);
    }
}

static void read_added_token(struct builder *b, const json_t *item)
{
    struct text_view text = {NULL, 0};
    uint32_t id = 0;
    bool special = false;
    json_get_u32(&b->r, item, "id", JSON_MUST, &id);
    json_get_text(&b->r, item, "content", JSON_MUST, &text);
    json_get_bool(&b->r, item, "special", &special);
    refuse_added(b, item, text);
    if (b->r.status)
        return;
    if (b->types[id] == 0)
        put_token(b, id, text);
    else if (b->tokens[id].len != text.len ||
             memcmp(b->tokens[id].bytes, text.bytes, text.len) != 0)
        JSON_FAIL(&b->r, "added token %" PRIu32 " \"%.*s\" has another text in model.vocab", id,
                  (int)(text.len < 64 ? text.len : 64), text.bytes);
    b->types[id] = special ? TOKEN_CONTROL : TOKEN_USER_DEFINED;
}

/* Ids between tokens that no token has: never found in text, never sampled. */
static void fill_holes(struct builder *b)
{
    for (uint32_t id = 0; id < b->cp->vocab.n_tokens; id++) {
        if (b->types[id] != 0)
            continue;
        b->types[id] = TOKEN_UNUSED;
        b->tokens[id] = (struct text_view){"", 0};
    }
}

static uint32_t find_token(const struct builder *b, struct text_view text)
{
    for (uint32_t id = 0; id < b->cp->vocab.n_tokens; id++) {
        if (b->types[id] != 0 && b->tokens[id].len == text.len &&
            memcmp(b->tokens[id].bytes, text.bytes, text.len) == 0)
            return id;
    }
    return TOKEN_NONE;
}

/* The unknown token: by text (BPE) or id (unigram). */
static void read_unknown(struct builder *b, const json_t *model)
{
    struct vocab_source *vocab = &b->cp->vocab;
    struct text_view text = {NULL, 0};
    if (vocab->kind == TOKENIZER_UNIGRAM) {
        if (json_get_u32(&b->r, model, "unk_id", JSON_MAY, &vocab->unknown))
            b->r.status = checkpoint_check_id(b->cp, "tokenizer.json: model.unk_id", vocab->unknown,
                                              b->r.err);
    } else if (json_get_text(&b->r, model, "unk_token", JSON_MAY, &text)) {
        vocab->unknown = find_token(b, text);
        if (vocab->unknown == TOKEN_NONE)
            JSON_FAIL(&b->r, "model.unk_token is not in the vocabulary");
    }
    /* byte-level BPE has a symbol for every byte, and files name an ordinary token here */
    if (!b->r.status && vocab->unknown != TOKEN_NONE && vocab->kind != TOKENIZER_BPE)
        b->types[vocab->unknown] = TOKEN_UNKNOWN;
}

/* -- merges ----------------------------------------------------------------------------------- */

/* "left right", or ["left", "right"]. */
static void read_merge(struct builder *b, size_t i, const json_t *item, struct text_view *ret)
{
    if (json_is_string(item)) {
        if (!checkpoint_copy_text(b->cp, json_string_value(item), json_string_length(item), ret,
                                  b->r.err))
            fail_alloc(b);
        return;
    }
    struct text_view left = json_text(json_array_get(item, 0));
    struct text_view right = json_text(json_array_get(item, 1));
    if (json_array_size(item) != 2 || !left.bytes || !right.bytes ||
        memchr(left.bytes, ' ', left.len) || memchr(right.bytes, ' ', right.len)) {
        JSON_FAIL(&b->r,
                  "model.merges[%zu] must be \"left right\" or [\"left\", \"right\"], "
                  "without further spaces",
                  i);
        return;
    }
    char *joined = checkpoint_alloc(b->cp, left.len + right.len + 1, 1, b->r.err);
    if (!joined) {
        fail_alloc(b);
        return;
    }
    memcpy(joined, left.bytes, left.len);
    joined[left.len] = ' ';
    memcpy(joined + left.len + 1, right.bytes, right.len);
    *ret = (struct text_view){joined, left.len + right.len + 1};
}

static void read_merges(struct builder *b, const json_t *model)
{
    size_t i;
    json_t *item, *list = json_get(&b->r, model, "merges", JSON_ARRAY, JSON_MUST);
    if (!list)
        return;
    if (json_array_size(list) > HPARAMS_MAX_VOCAB) {
        JSON_FAIL(&b->r, "model.merges has more than %d elements", HPARAMS_MAX_VOCAB);
        return;
    }
    struct text_view *merges =
        checkpoint_alloc(b->cp, json_array_size(list), sizeof *merges, b->r.err);
    if (!merges) {
        fail_alloc(b);
        return;
    }
    json_array_foreach(list, i, item)
    {
        if (!b->r.status)
            read_merge(b, i, item, &merges[i]);
    }
    b->cp->vocab.merges = merges;
    b->cp->vocab.n_merges = (uint32_t)json_array_size(list);
}

/* -- post-processor --------------------------------------------------------------------------- */

/* The TemplateProcessing step: the post-processor itself or one of its sequence. */
static const json_t *find_template(const json_t *root)
{
    const json_t *step = json_object_get(root, "post_processor");
    struct text_view type = json_text(json_object_get(step, "type"));
    if (type.bytes && text_view_is(type, "TemplateProcessing"))
        return step;
    const json_t *list = json_object_get(step, "processors");
    for (size_t i = 0; i < json_array_size(list); i++) {
        step = json_array_get(list, i);
        type = json_text(json_object_get(step, "type"));
        if (type.bytes && text_view_is(type, "TemplateProcessing"))
            return step;
    }
    return NULL;
}

/* A token that a template puts in front of or behind the text. */
static void read_template_token(struct builder *b, const json_t *template, struct text_view name,
                                uint32_t *ret)
{
    char key[256];
    if (name.len >= sizeof key) {
        JSON_FAIL(&b->r, "post_processor: the name of a special token is too long");
        return;
    }
    memcpy(key, name.bytes, name.len);
    key[name.len] = '\0';
    const json_t *tokens = json_object_get(template, "special_tokens");
    const json_t *ids = json_object_get(json_object_get(tokens, key), "ids");
    const json_t *id = json_array_get(ids, 0);
    json_int_t number = json_integer_value(id);
    if (json_array_size(ids) != 1 || !json_is_integer(id) || number < 0 ||
        number >= b->cp->vocab.n_tokens)
        JSON_FAIL(&b->r,
                  "post_processor: special token \"%.64s\" must have one id of the "
                  "vocabulary",
                  key);
    else
        *ret = (uint32_t)number;
}

/* bos and eos as the template adds them to one text. */
static void read_post_processor(struct builder *b, const json_t *root)
{
    const json_t *template = find_template(root);
    const json_t *parts = json_object_get(template, "single");
    struct vocab_source *vocab = &b->cp->vocab;
    bool seen_text = false;
    for (size_t i = 0; i < json_array_size(parts) && !b->r.status; i++) {
        const json_t *part = json_array_get(parts, i);
        struct text_view name =
            json_text(json_object_get(json_object_get(part, "SpecialToken"), "id"));
        bool *adds = seen_text ? &vocab->add_eos : &vocab->add_bos;
        if (!name.bytes) {
            seen_text = true;
            continue;
        }
        if (*adds)
            JSON_FAIL(&b->r, "post_processor: more than one special token %s the text",
                      seen_text ? "behind" : "in front of");
        *adds = true;
        read_template_token(b, template, name, seen_text ? &vocab->eos : &vocab->bos);
    }
}

/* -- all -------------------------------------------------------------------------------------- */

/* Settings of the model that would change its tokens. */
static void refuse_unsupported(struct builder *b, const json_t *model)
{
    static const char *const keys[] = {"dropout", "continuing_subword_prefix",
                                       "end_of_word_suffix"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const json_t *value = json_object_get(model, keys[i]);
        if (value && !json_is_null(value) && json_number_value(value) != 0.0)
            JSON_FAIL(&b->r, "model.%s is not supported", keys[i]);
        if (json_string_length(value) > 0)
            JSON_FAIL(&b->r, "model.%s is not supported", keys[i]);
    }
}

static void read_kind(struct builder *b, const json_t *root, const json_t *model)
{
    struct vocab_source *vocab = &b->cp->vocab;
    struct text_view type = {"BPE", 3}; /* as the first files of this form, which do not say */
    json_get_text(&b->r, model, "type", JSON_MAY, &type);
    if (b->r.status)
        return;
    vocab->kind = TOKENIZER_BPE;
    if (text_view_is(type, "Unigram"))
        vocab->kind = TOKENIZER_UNIGRAM;
    else if (!text_view_is(type, "BPE"))
        JSON_FAIL(&b->r, "model.type %.*s is not supported; BPE and Unigram are",
                  (int)(type.len < 32 ? type.len : 32), type.bytes);
    if (!b->r.status)
        b->r.status = hf_pipeline_read(root, vocab, b->r.err);
    refuse_unsupported(b, model);
    json_get_bool(&b->r, model, "byte_fallback", &b->has_byte_fallback);
    json_get_bool(&b->r, model, "ignore_merges", &vocab->ignore_merges);
    if (vocab->kind == TOKENIZER_SPM) {
        bool is_fused = false;
        json_get_bool(&b->r, model, "fuse_unk", &is_fused);
        vocab->unknown_not_fused = !is_fused;
    }
    if (vocab->ignore_merges && vocab->kind != TOKENIZER_BPE)
        JSON_FAIL(&b->r, "model.ignore_merges is supported for byte-level BPE only");
}

enum status hf_tokenizer_read(struct checkpoint *cp, const json_t *root, struct error *err)
{
    struct builder builder = {.cp = cp, .r = {"tokenizer.json", STATUS_OK, err}}, *b = &builder;
    json_t *model = json_get(&b->r, root, "model", JSON_OBJECT, JSON_MUST);
    json_t *added = json_get(&b->r, root, "added_tokens", JSON_ARRAY, JSON_MAY);
    read_kind(b, root, model);
    bool is_unigram = cp->vocab.kind == TOKENIZER_UNIGRAM;
    json_t *vocab =
        json_get(&b->r, model, "vocab", is_unigram ? JSON_ARRAY : JSON_OBJECT, JSON_MUST);
    uint32_t n_tokens = b->r.status ? 0 : count_tokens(b, vocab, added);
    if (!b->r.status)
        make_arrays(b, n_tokens, is_unigram);
    if (!b->r.status && is_unigram)
        read_unigram_vocab(b, vocab);
    else if (!b->r.status)
        read_bpe_vocab(b, vocab);
    for (size_t i = 0; i < json_array_size(added) && !b->r.status; i++)
        read_added_token(b, json_array_get(added, i));
    if (!b->r.status)
        read_unknown(b, model);
    if (!b->r.status && !is_unigram)
        read_merges(b, model);
    if (!b->r.status)
        fill_holes(b);
    if (!b->r.status)
        read_post_processor(b, root);
    return b->r.status;
}
