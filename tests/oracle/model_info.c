/*
 * Prints what the loader read of a model, as one JSON object: for comparison with the independent
 * readers under tests/oracle and tools/lib.  Text is in hexadecimal, tensors by their hash.
 *
 *     model_info [--vocab] MODEL
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tellerd/base/buf.h"
#include "tellerd/model/checkpoint.h"

enum { OUTPUT_MAX = 1 << 28 };

static void add_key(struct buf *out, const char *key)
{
    buf_add_char(out, out->len > 0 && out->data[out->len - 1] == '{' ? ' ' : ',');
    buf_add_json(out, key, strlen(key));
    buf_add_char(out, ':');
}

static void add_number(struct buf *out, const char *key, double value)
{
    add_key(out, key);
    buf_add_double(out, value);
}

static void add_id(struct buf *out, const char *key, uint32_t id)
{
    add_key(out, key);
    if (id == TOKEN_NONE)
        buf_add_str(out, "null");
    else
        buf_add_u64(out, id);
}

static void add_bool(struct buf *out, const char *key, bool value)
{
    add_key(out, key);
    buf_add_str(out, value ? "true" : "false");
}

static void add_hex(struct buf *out, struct text_view text)
{
    static const char digits[] = "0123456789abcdef";
    buf_add_char(out, '"');
    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.bytes[i];
        buf_add_char(out, digits[byte >> 4]);
        buf_add_char(out, digits[byte & 15]);
    }
    buf_add_char(out, '"');
}

static void add_layers(struct buf *out, const struct hparams *hp)
{
    static const char *const sources[] = {"residual", "bank", "residual+bank"};
    add_key(out, "layers");
    for (uint32_t i = 0; i < hp->n_layers; i++) {
        const struct hparams_layer *layer = &hp->layers[i];
        buf_printf(out, "%c{\"source\":\"%s\",\"bank_layer\":%" PRIu32 ",\"window\":%" PRIu32,
                   i == 0 ? '[' : ',', sources[layer->source], layer->bank_layer, layer->window);
        add_number(out, "gamma", (double)layer->gamma);
        buf_add_char(out, '}');
    }
    buf_add_char(out, ']');
}

static void add_hparams(struct buf *out, const struct hparams *hp)
{
    static const char *const families[FAMILY_COUNT] = {"llama", "qwen2", "qwen3", "nanochat"};
    add_key(out, "family");
    buf_add_json(out, families[hp->family], strlen(families[hp->family]));
    add_key(out, "name");
    buf_add_json(out, hp->name, strlen(hp->name));
    add_number(out, "C", hp->embedding);
    add_number(out, "H", hp->n_heads);
    add_number(out, "K", hp->n_kv_heads);
    add_number(out, "D", hp->head_size);
    add_number(out, "F", hp->feed_forward);
    add_number(out, "V", hp->n_embedding_rows);
    add_number(out, "context", hp->n_context);
    add_number(out, "eps", (double)hp->norm_eps);
    add_bool(out, "norm_has_weights", hp->norm_has_weights);
    add_bool(out, "embedding_norm", hp->embedding_norm);
    add_bool(out, "tied_output", hp->tied_output);
    add_bool(out, "attention_bias", hp->attention_bias);
    add_number(out, "qk_norm", hp->qk_norm);
    add_number(out, "qk_scale", (double)hp->qk_scale);
    add_number(out, "activation", hp->activation);
    add_number(out, "softcap", (double)hp->logit_softcap);
    add_number(out, "smear_channels", hp->smear ? hp->smear_channels : 0);
    add_number(out, "rope_base", (double)hp->rope_base);
    add_number(out, "rope_dims", hp->rope_dims);
    add_bool(out, "rope_interleaved", hp->rope_interleaved);
    add_bool(out, "rope_negative", hp->rope_negative);
    add_bool(out, "has_bank", hp->has_bank);
    add_number(out, "bank_rows", hp->bank_rows);
    add_id(out, "sink_row", hp->sink_row);
    add_bool(out, "gate_sigmoid", hp->gate_sigmoid);
    add_number(out, "gate_channels", hp->gate_channels);
    add_number(out, "gate_scale", (double)hp->gate_scale);
    add_layers(out, hp);
}

static void add_inv_freq(struct buf *out, const struct checkpoint *cp)
{
    const struct hparams *hp = checkpoint_hparams(cp);
    struct tensor divisors;
    float inv_freq[HPARAMS_MAX_HEAD_SIZE / 2];
    bool has = checkpoint_tensor(cp, "rope_freqs.weight", &divisors);
    hparams_rope_inv_freq(hp, has ? divisors.data : NULL, inv_freq);
    add_key(out, "inv_freq");
    for (uint32_t i = 0; i < hp->rope_dims / 2; i++) {
        buf_add_char(out, i == 0 ? '[' : ',');
        buf_add_double(out, (double)inv_freq[i]);
    }
    buf_add_char(out, ']');
}

static void add_views(struct buf *out, const char *key, const struct text_view *views, uint32_t n)
{
    add_key(out, key);
    buf_add_char(out, '[');
    for (uint32_t i = 0; i < n; i++) {
        if (i > 0)
            buf_add_char(out, ',');
        add_hex(out, views[i]);
    }
    buf_add_char(out, ']');
}

static void add_arrays(struct buf *out, const struct vocab_source *vocab)
{
    add_views(out, "tokens", vocab->tokens, vocab->n_tokens);
    add_views(out, "merges", vocab->merges, vocab->n_merges);
    add_key(out, "types");
    for (uint32_t i = 0; i < vocab->n_tokens; i++)
        buf_printf(out, "%c%d", i == 0 ? '[' : ',', vocab->types ? vocab->types[i] : TOKEN_NORMAL);
    buf_add_char(out, ']');
    if (!vocab->scores)
        return;
    add_key(out, "scores");
    for (uint32_t i = 0; i < vocab->n_tokens; i++) {
        buf_add_char(out, i == 0 ? '[' : ',');
        buf_add_double(out, (double)vocab->scores[i]);
    }
    buf_add_char(out, ']');
}

static void add_vocab(struct buf *out, const struct vocab_source *vocab)
{
    static const char *const kinds[] = {"bpe", "spm", "unigram"};
    static const char *const splits[SPLIT_COUNT] = {"gpt-2",  "llama-bpe", "qwen2",
                                                    "smollm", "nanochat",  "none"};
    add_key(out, "kind");
    buf_add_json(out, kinds[vocab->kind], strlen(kinds[vocab->kind]));
    add_key(out, "split");
    buf_add_json(out, splits[vocab->split], strlen(splits[vocab->split]));
    add_number(out, "n_tokens", vocab->n_tokens);
    add_number(out, "n_merges", vocab->n_merges);
    add_id(out, "bos", vocab->bos);
    add_id(out, "eos", vocab->eos);
    add_id(out, "eot", vocab->eot);
    add_id(out, "unknown", vocab->unknown);
    add_key(out, "extra_eog");
    buf_add_char(out, '[');
    for (uint32_t i = 0; i < vocab->n_extra_eog; i++)
        buf_printf(out, "%s%" PRIu32, i > 0 ? "," : "", vocab->extra_eog[i]);
    buf_add_char(out, ']');
    add_bool(out, "add_bos", vocab->add_bos);
    add_bool(out, "add_eos", vocab->add_eos);
    add_bool(out, "add_space_prefix", vocab->add_space_prefix);
    add_bool(out, "prefix_not_before_space", vocab->prefix_not_before_space);
    add_bool(out, "prefix_at_start_only", vocab->prefix_at_start_only);
    add_bool(out, "cuts_at_each_space", vocab->cuts_at_each_space);
    add_bool(out, "unknown_not_fused", vocab->unknown_not_fused);
    add_bool(out, "ignore_merges", vocab->ignore_merges);
    add_bool(out, "nfc", vocab->nfc);
}

static void add_rest(struct buf *out, struct checkpoint *cp)
{
    const struct generation_defaults *defaults = checkpoint_defaults(cp);
    struct text_view template = checkpoint_chat_template(cp);
    struct hash128 fingerprint = checkpoint_fingerprint(cp);
    size_t tensors, banks;
    checkpoint_bytes(cp, &tensors, &banks);
    add_key(out, "template");
    if (template.bytes)
        add_hex(out, template);
    else
        buf_add_str(out, "null");
    add_number(out, "temperature", (double)defaults->temperature);
    add_number(out, "top_p", (double)defaults->top_p);
    add_number(out, "min_p", (double)defaults->min_p);
    add_number(out, "top_k", defaults->top_k);
    add_number(out, "repetition_penalty", (double)defaults->repetition_penalty);
    add_number(out, "tensor_bytes", (double)tensors);
    add_number(out, "bank_bytes", (double)banks);
    add_key(out, "fingerprint");
    buf_printf(out, "\"%016" PRIx64 "%016" PRIx64 "\"", fingerprint.high, fingerprint.low);
}

int main(int argc, char **argv)
{
    bool with_vocab = argc == 3 && strcmp(argv[1], "--vocab") == 0;
    struct checkpoint *cp;
    struct error err;
    struct buf out;
    if (argc != 2 + with_vocab) {
        fprintf(stderr, "usage: model_info [--vocab] MODEL\n");
        return 2;
    }
    if (checkpoint_open(argv[argc - 1], &cp, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    buf_init(&out, OUTPUT_MAX);
    buf_add_char(&out, '{');
    add_hparams(&out, checkpoint_hparams(cp));
    add_inv_freq(&out, cp);
    add_vocab(&out, checkpoint_vocab(cp));
    if (with_vocab)
        add_arrays(&out, checkpoint_vocab(cp));
    add_rest(&out, cp);
    buf_add_str(&out, "}\n");
    if (!out.overflow)
        fwrite(out.data, 1, out.len, stdout);
    int failed = out.overflow;
    buf_done(&out);
    checkpoint_close(cp);
    return failed;
}
