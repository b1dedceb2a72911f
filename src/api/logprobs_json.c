#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api_priv.h"
#include "tellerd/base/mem.h"
#include "tellerd/base/utf8.h"

/*
 * Logprobs in the chat form (an object per token, with exact bytes), in the legacy form of
 * /v1/completions (parallel lists), and vLLM's prompt_logprobs.  Tokens up to and including the one
 * that completed a stop string are reported.
 */

static void write_logprob(double logprob, struct buf *out)
{
    if (isnan(logprob))
        buf_add_str(out, "null"); /* the first prompt token has none */
    else
        buf_add_double(
            out, logprob < -9999 ? -9999 : logprob); /* JSON has no infinity; OpenAI's own floor */
}

static struct text_view token_text(const struct generation *generation, uint32_t id)
{
    return tokenizer_piece(generation->api->model.tokenizer, id, true);
}

static void write_text(const struct generation *generation, uint32_t id, struct buf *out)
{
    struct text_view text = token_text(generation, id);
    buf_add_json(out, text.bytes, text.len);
}

/* Counts characters as a client sees them, ill-formed pieces one each, over token borders.  Returns
 * the character that the bytes begin in. */
static size_t count_characters(struct character_count *count, const char *bytes, size_t n_bytes)
{
    /* a character that was begun and is not continued now is one ill-formed piece of its own */
    bool breaks_off = count->n_tail > 0 && n_bytes > 0 && ((unsigned char)bytes[0] & 0xc0) != 0x80;
    size_t start = count->n_chars + breaks_off;
    struct buf text;
    buf_init(&text, SIZE_MAX / 2);
    buf_add(&text, count->tail, count->n_tail);
    buf_add(&text, bytes, n_bytes);
    size_t complete = text.len ? utf8_complete_prefix(text.data, text.len) : 0;
    count->n_chars += complete ? utf8_length(text.data, complete) : 0;
    count->n_tail = text.len - complete; /* at most 3 */
    if (count->n_tail)
        memcpy(count->tail, text.data + complete, count->n_tail);
    buf_done(&text);
    return start;
}

void logprobs_add(struct choice *choice, const struct sampled *token, const char *bytes,
                  size_t n_bytes)
{
    if (choice->n_pending == choice->cap_pending) {
        choice->cap_pending = choice->cap_pending ? 2 * choice->cap_pending : 16;
        choice->pending =
            xreallocarray(choice->pending, choice->cap_pending, sizeof *choice->pending);
    }
    struct pending_entry *entry = &choice->pending[choice->n_pending++];
    entry->end = choice->text.total_bytes;
    entry->text_offset = count_characters(&choice->characters, bytes, n_bytes);
    entry->token = *token;
}

void logprobs_add_prompt(struct prompt_state *prompt, const struct sampled *token)
{
    if (!prompt->logprobs)
        prompt->logprobs = xcalloc(prompt->n_tokens, sizeof *prompt->logprobs);
    if (prompt->n_logprobs < prompt->n_tokens)
        prompt->logprobs[prompt->n_logprobs++] = *token;
}

/* --- chat
 * ------------------------------------------------------------------------------------------------------------------
 */

static void write_token_object(const struct generation *generation, uint32_t id, double logprob,
                               struct buf *out)
{
    struct text_view text = token_text(generation, id);
    buf_add_str(out, "{\"token\":");
    buf_add_json(out, text.bytes, text.len);
    buf_add_str(out, ",\"logprob\":");
    write_logprob(logprob, out);
    buf_add_str(out, ",\"bytes\":[");
    for (size_t i = 0; i < text.len; i++) {
        if (i)
            buf_add_char(out, ',');
        buf_add_u64(out, (unsigned char)text.bytes[i]);
    }
    buf_add_char(out, ']');
}

static void write_chat(const struct generation *generation, const struct choice *choice, size_t n,
                       struct buf *out)
{
    buf_add_str(out, "{\"content\":[");
    for (size_t i = 0; i < n; i++) {
        const struct sampled *token = &choice->pending[i].token;
        if (i)
            buf_add_char(out, ',');
        write_token_object(generation, token->id, (double)token->logprob, out);
        buf_add_str(out, ",\"top_logprobs\":[");
        for (uint32_t t = 0; t < token->n_top; t++) {
            if (t)
                buf_add_char(out, ',');
            write_token_object(generation, token->top[t].id, (double)token->top[t].logprob, out);
            buf_add_char(out, '}');
        }
        buf_add_str(out, "]}");
    }
    buf_add_str(out, "],\"refusal\":null}");
}

/* --- legacy
 * ------------------------------------------------------------------------------------------------------------------
 */

struct legacy_lists {
    struct buf tokens, logprobs, top, offsets;
    size_t n;
};

static void add_legacy(const struct generation *generation, struct legacy_lists *lists,
                       const struct sampled *token, size_t text_offset)
{
    const char *comma = lists->n++ ? "," : "";
    buf_add_str(&lists->tokens, comma);
    write_text(generation, token->id, &lists->tokens);
    buf_add_str(&lists->logprobs, comma);
    write_logprob((double)token->logprob, &lists->logprobs);
    buf_add_str(&lists->offsets, comma);
    buf_add_u64(&lists->offsets, text_offset);
    buf_add_str(&lists->top, comma);
    if (isnan(token->logprob)) {
        buf_add_str(&lists->top, "null");
        return;
    }
    bool has_chosen = false;
    buf_add_char(&lists->top, '{');
    for (uint32_t t = 0; t < token->n_top; t++) {
        if (t)
            buf_add_char(&lists->top, ',');
        write_text(generation, token->top[t].id, &lists->top);
        buf_add_char(&lists->top, ':');
        write_logprob((double)token->top[t].logprob, &lists->top);
        has_chosen |= token->top[t].id == token->id;
    }
    if (!has_chosen) { /* the chosen token is always there */
        buf_add_str(&lists->top, token->n_top ? "," : "");
        write_text(generation, token->id, &lists->top);
        buf_add_char(&lists->top, ':');
        write_logprob((double)token->logprob, &lists->top);
    }
    buf_add_char(&lists->top, '}');
}

static void write_legacy(const struct generation *generation, const struct choice *choice, size_t n,
                         struct buf *out)
{
    struct legacy_lists lists = {.n = 0};
    struct buf *all[] = {&lists.tokens, &lists.logprobs, &lists.top, &lists.offsets};
    static const char *const names[] = {"{\"tokens\":[", "],\"token_logprobs\":[",
                                        "],\"top_logprobs\":[", "],\"text_offset\":["};
    const struct prompt_state *prompt = &generation->prompts[choice->index / generation->request.n];
    for (size_t i = 0; i < 4; i++)
        buf_init(all[i], MAX_RESPONSE_BYTES);
    struct character_count echoed = {0};
    for (uint32_t i = 0; generation->request.echo && i < prompt->n_tokens; i++) {
        struct text_view text =
            tokenizer_piece(generation->api->model.tokenizer, prompt->kept_ids[i], false);
        size_t offset = count_characters(&echoed, text.bytes, text.len);
        if (i < prompt->n_logprobs && !generation->request.stream)
            add_legacy(generation, &lists, &prompt->logprobs[i], offset);
    }
    for (size_t i = 0; i < n; i++)
        add_legacy(generation, &lists, &choice->pending[i].token,
                   echoed.n_chars + (echoed.n_tail > 0) + choice->pending[i].text_offset);
    for (size_t i = 0; i < 4; i++) {
        out->overflow |= all[i]->overflow;
        buf_add_str(out, names[i]);
        buf_add(out, all[i]->data, all[i]->len);
        buf_done(all[i]);
    }
    buf_add_str(out, "]}");
}

void logprobs_write(struct generation *generation, struct choice *choice, size_t shown,
                    struct buf *out)
{
    bool chat = generation->request.kind == REQUEST_CHAT;
    size_t n = 0;
    while (n < choice->n_pending && choice->pending[n].end <= shown)
        n++;
    bool echoed = generation->request.echo && !generation->request.stream;
    if (!generation->request.logprobs || (n == 0 && generation->request.stream) ||
        (n == 0 && !chat && !echoed && choice->n_tokens)) {
        buf_add_str(out, "null");
        return;
    }
    if (chat)
        write_chat(generation, choice, n, out);
    else
        write_legacy(generation, choice, n, out);
    choice->n_pending -= n;
    if (n > 0 && choice->n_pending > 0)
        memmove(choice->pending, choice->pending + n, choice->n_pending * sizeof *choice->pending);
}

/* --- prompt_logprobs
 * -----------------------------------------------------------------------------------------------------------
 */

static void write_prompt_entry(const struct generation *generation, uint32_t id, double logprob,
                               struct buf *out)
{
    buf_printf(out, "\"%u\":{\"logprob\":", id);
    write_logprob(logprob, out);
    buf_add_str(out, ",\"decoded_token\":");
    write_text(generation, id, out);
    buf_add_char(out, '}');
}

void logprobs_write_prompt(const struct generation *generation, const struct prompt_state *prompt,
                           struct buf *out)
{
    buf_add_str(out, ",\"prompt_logprobs\":[");
    for (uint32_t i = 0; i < prompt->n_logprobs; i++) {
        const struct sampled *token = &prompt->logprobs[i];
        buf_add_str(out, i ? "," : "");
        if (isnan(token->logprob)) {
            buf_add_str(out, "null");
            continue;
        }
        buf_add_char(out, '{');
        write_prompt_entry(generation, token->id, (double)token->logprob, out);
        for (uint32_t t = 0; t < token->n_top; t++)
            if (token->top[t].id != token->id) {
                buf_add_char(out, ',');
                write_prompt_entry(generation, token->top[t].id, (double)token->top[t].logprob,
                                   out);
            }
        buf_add_char(out, '}');
    }
    buf_add_char(out, ']');
}
