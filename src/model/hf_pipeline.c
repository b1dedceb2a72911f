/*
 * The steps that tokenizer.json puts around its model: normaliser and pre-tokenizer.  tellerd has
 * its own code for the pipelines of the families that it serves, so the job here is to recognise
 * them, exactly: a step that is not known is an error that names it, since text would be tokenized
 * differently from what the model was trained on.
 */
#include "config.h"

#include <string.h>

#include "hf_priv.h"
#include "model_json_priv.h"

enum { MAX_STEPS = 8 };

static const char space_mark[] = "\xE2\x96\x81"; /* U+2581 */

/* The published split patterns, as tokenizer.json files have them. */
static const struct {
    enum tokenizer_split split;
    const char *regex;
} patterns[] = {
    {SPLIT_GPT2,
     "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"},
    {SPLIT_LLAMA3, "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| "
                   "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},
    {SPLIT_QWEN2, "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| "
                  "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},
    {SPLIT_NANOCHAT, "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}{1,2}| "
                     "?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+"},
};

struct steps {
    const json_t *items[MAX_STEPS];
    size_t n;
};

/* The steps under `key`: none when it is null, those of a Sequence (in `list_key`), or the one. */
static void flatten(struct json_reader *r, const json_t *root, const char *key,
                    const char *list_key, struct steps *steps)
{
    struct text_view type = {NULL, 0};
    steps->n = 0;
    const json_t *step = json_get(r, root, key, JSON_OBJECT, JSON_MAY);
    if (!step || !json_get_text(r, step, "type", JSON_MUST, &type))
        return;
    if (!text_view_is(type, "Sequence")) {
        steps->items[steps->n++] = step;
        return;
    }
    const json_t *list = json_get(r, step, list_key, JSON_ARRAY, JSON_MUST);
    size_t n = json_array_size(list);
    if (n > MAX_STEPS) {
        JSON_FAIL(r, "%s has %zu steps; at most %d are supported", key, n, MAX_STEPS);
        return;
    }
    for (size_t i = 0; i < n; i++)
        steps->items[steps->n++] = json_array_get(list, i);
}

static struct text_view step_type(struct json_reader *r, const json_t *step)
{
    struct text_view type = {"?", 1};
    if (!json_is_object(step))
        JSON_FAIL(r, "a step of the normalizer or pre_tokenizer is not an object");
    json_get_text(r, step, "type", JSON_MUST, &type);
    return type;
}

static void refuse(struct json_reader *r, const char *what, const json_t *step)
{
    struct text_view type = step_type(r, step);
    char *text = r->status ? NULL : json_dumps(step, JSON_COMPACT);
    JSON_FAIL(r, "%s step %.*s is not supported here: %.200s", what, (int)type.len, type.bytes,
              text ? text : "");
    free(text);
}

/* -- normaliser ------------------------------------------------------------------------------- */

/* {"type": "Replace", "pattern": {"String": " "}, "content": "_"} with the space mark. */
static bool is_space_replacement(const json_t *step)
{
    const json_t *pattern = json_object_get(json_object_get(step, "pattern"), "String");
    struct text_view from = json_text(pattern), to = json_text(json_object_get(step, "content"));
    return from.bytes && to.bytes && text_view_is(from, " ") && text_view_is(to, space_mark);
}

/* *ret_marks: spaces become space marks. */
static void read_normalizer(struct json_reader *r, const json_t *root, struct vocab_source *vocab,
                            bool *ret_marks)
{
    struct steps steps;
    flatten(r, root, "normalizer", "normalizers", &steps);
    for (size_t i = 0; i < steps.n && !r->status; i++) {
        const json_t *step = steps.items[i];
        struct text_view type = step_type(r, step);
        struct text_view prepend = json_text(json_object_get(step, "prepend"));
        if (text_view_is(type, "NFC") && i == 0)
            vocab->nfc = true;
        else if (text_view_is(type, "Prepend") && prepend.bytes &&
                 text_view_is(prepend, space_mark) && !*ret_marks)
            vocab->add_space_prefix = true;
        else if (text_view_is(type, "Replace") && is_space_replacement(step))
            *ret_marks = true;
        else
            refuse(r, "normalizer", step);
    }
    if (!r->status && vocab->add_space_prefix && !*ret_marks)
        JSON_FAIL(r, "normalizer: Prepend without Replace is not supported");
}

/* -- pre-tokenizer ---------------------------------------------------------------------------- */

static bool flag(struct json_reader *r, const json_t *step, const char *key, bool value)
{
    json_get_bool(r, step, key, &value);
    return value;
}

/* A Split step that cuts the text into the matches of a known pattern. */
static void read_pattern(struct json_reader *r, const json_t *step, struct vocab_source *vocab)
{
    struct text_view behavior = {"", 0};
    const json_t *pattern = json_get(r, step, "pattern", JSON_OBJECT, JSON_MUST);
    json_get_text(r, step, "behavior", JSON_MUST, &behavior);
    bool invert = flag(r, step, "invert", false);
    struct text_view regex = json_text(json_object_get(pattern, "Regex"));
    if (r->status)
        return;
    /* the patterns match all of any text, so removing what is between matches changes nothing */
    bool matches = (text_view_is(behavior, "Isolated") && !invert) ||
                   (text_view_is(behavior, "Removed") && invert);
    for (size_t i = 0; matches && regex.bytes && i < sizeof patterns / sizeof patterns[0]; i++) {
        if (text_view_is(regex, patterns[i].regex)) {
            vocab->split = patterns[i].split;
            return;
        }
    }
    refuse(r, "pre_tokenizer", step);
}

static bool is_digits(struct json_reader *r, const json_t *step)
{
    return text_view_is(step_type(r, step), "Digits") && flag(r, step, "individual_digits", false);
}

/* The steps of byte-level BPE: an optional cut, then ByteLevel. */
static void read_byte_level(struct json_reader *r, const struct steps *steps,
                            struct vocab_source *vocab)
{
    const json_t *last = steps->items[steps->n - 1];
    bool has_regex = flag(r, last, "use_regex", true);
    if (!r->status && flag(r, last, "add_prefix_space", true))
        JSON_FAIL(r, "pre_tokenizer ByteLevel: add_prefix_space is not supported");
    vocab->split = has_regex ? SPLIT_GPT2 : SPLIT_NONE;
    if (r->status || steps->n == 1)
        return;
    const json_t *first = steps->items[0];
    if (steps->n == 2 && has_regex && is_digits(r, first))
        vocab->split = SPLIT_SMOLLM;
    else if (steps->n == 2 && !has_regex && text_view_is(step_type(r, first), "Split"))
        read_pattern(r, first, vocab);
    else
        refuse(r, "pre_tokenizer", first);
}

/* The step of SentencePiece models: spaces become marks, one may be put in front. */
static void read_metaspace(struct json_reader *r, const json_t *step, struct vocab_source *vocab)
{
    struct text_view mark = {space_mark, sizeof space_mark - 1}, scheme = {"always", 6};
    json_get_text(r, step, "replacement", JSON_MAY, &mark);
    if (!json_get_text(r, step, "prepend_scheme", JSON_MAY, &scheme) &&
        !flag(r, step, "add_prefix_space", true))
        scheme = (struct text_view){"never", 5};
    if (r->status)
        return;
    vocab->add_space_prefix = !text_view_is(scheme, "never");
    vocab->prefix_at_start_only = text_view_is(scheme, "first");
    vocab->prefix_not_before_space = vocab->add_space_prefix;
    vocab->cuts_at_each_space = flag(r, step, "split", true);
    if (!text_view_is(mark, space_mark) ||
        (vocab->add_space_prefix && !vocab->prefix_at_start_only &&
         !text_view_is(scheme, "always")))
        refuse(r, "pre_tokenizer", step);
}

static void read_pre_tokenizer(struct json_reader *r, const json_t *root, bool has_marks,
                               struct vocab_source *vocab)
{
    struct steps steps;
    vocab->split = SPLIT_NONE;
    flatten(r, root, "pre_tokenizer", "pretokenizers", &steps);
    if (r->status)
        return;
    const json_t *last = steps.n > 0 ? steps.items[steps.n - 1] : NULL;
    if (last && vocab->kind == TOKENIZER_BPE && !has_marks &&
        text_view_is(step_type(r, last), "ByteLevel")) {
        read_byte_level(r, &steps, vocab);
        return;
    }
    if (vocab->kind == TOKENIZER_BPE)
        vocab->kind = TOKENIZER_SPM;
    if (steps.n == 1 && !has_marks && text_view_is(step_type(r, last), "Metaspace"))
        read_metaspace(r, last, vocab);
    else if (last)
        refuse(r, "pre_tokenizer", last);
    else if (!has_marks)
        JSON_FAIL(r, "neither ByteLevel nor Metaspace nor a Replace of spaces: this kind of "
                     "tokenizer is not supported");
    if (vocab->nfc)
        JSON_FAIL(r, "normalizer NFC is supported for byte-level BPE only");
}

enum status hf_pipeline_read(const json_t *root, struct vocab_source *vocab, struct error *err)
{
    struct json_reader r = {"tokenizer.json", STATUS_OK, err};
    bool has_marks = false;
    read_normalizer(&r, root, vocab, &has_marks);
    read_pre_tokenizer(&r, root, has_marks, vocab);
    return r.status;
}
