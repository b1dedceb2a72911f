#include "config.h"

#include <string.h>

#include "api_priv.h"

/*
 * Responses and chunks in OpenAI's shapes, written straight into a buffer: no DOM on the token
 * path.  Field order is fixed, so that equal generations give equal bytes but for id and time.
 */

static void write_head(const struct generation *generation, const char *object, struct buf *out)
{
    buf_printf(out, "{\"id\":\"%s\",\"object\":\"%s\",\"created\":", generation->id, object);
    buf_add_u64(out, generation->created);
    buf_add_str(out, ",\"model\":");
    buf_add_json(out, generation->limits.model_id, strlen(generation->limits.model_id));
    buf_printf(out, ",\"system_fingerprint\":\"fp_%08x\"",
               (unsigned)generation->api->model.fingerprint);
}

static void write_finish(const struct choice *choice, struct buf *out)
{
    if (choice->finished)
        buf_printf(out, "\"%s\"", finish_reason_name(choice->finish));
    else
        buf_add_str(out, "null");
}

static void write_usage(const struct generation *generation, struct buf *out)
{
    uint64_t n_prompt = 0, n_cached = 0, n_completion = 0;
    for (uint32_t i = 0; i < generation->n_prompts; i++) {
        n_prompt += generation->prompts[i].n_tokens;
        n_cached += generation->prompts[i].n_cached;
    }
    for (uint32_t i = 0; i < generation->n_choices; i++)
        n_completion += generation->choices[i].n_tokens;
    buf_printf(out,
               "{\"prompt_tokens\":%llu,\"completion_tokens\":%llu,\"total_tokens\":%llu,\"prompt_"
               "tokens_details\":"
               "{\"cached_tokens\":%llu},\"completion_tokens_details\":{\"reasoning_tokens\":0}}",
               (unsigned long long)n_prompt, (unsigned long long)n_completion,
               (unsigned long long)(n_prompt + n_completion), (unsigned long long)n_cached);
}

static void write_prompt_ids(const struct prompt_state *prompt, struct buf *out)
{
    buf_add_str(out, ",\"prompt_token_ids\":[");
    for (uint32_t i = 0; i < prompt->n_tokens; i++) {
        if (i)
            buf_add_char(out, ',');
        buf_add_u64(out, prompt->kept_ids[i]);
    }
    buf_add_char(out, ']');
}

static void write_echo(const struct generation *generation, const struct prompt_state *prompt,
                       struct buf *out)
{
    for (uint32_t i = 0; i < prompt->n_tokens; i++) {
        struct text_view piece =
            tokenizer_piece(generation->api->model.tokenizer, prompt->kept_ids[i], false);
        buf_add(out, piece.bytes, piece.len);
    }
}

/* --- chunks
 * ----------------------------------------------------------------------------------------------------------------
 */

/* "data: " and what all chunks of a stream begin with: written once, then copied. */
static void begin_chunk(struct generation *generation, struct buf *out)
{
    struct buf *head = &generation->chunk_head;
    if (head->len == 0) {
        bool chat = generation->request.kind == REQUEST_CHAT;
        buf_add_str(head, "data: ");
        write_head(generation, chat ? "chat.completion.chunk" : "text_completion", head);
        buf_add_str(head, ",\"choices\":[");
    }
    buf_add(out, head->data, head->len);
    out->overflow |= head->overflow;
}

static void end_chunk(const struct generation *generation, struct buf *out)
{
    if (generation->request.include_usage)
        buf_add_str(out, ",\"usage\":null");
    buf_add_str(out, "}\n\n");
}

static void write_role_chunk(struct generation *generation, struct choice *choice, struct buf *out)
{
    begin_chunk(generation, out);
    buf_printf(out,
               "{\"index\":%u,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},"
               "\"logprobs\":null,\"finish_reason\":null}]",
               choice->index);
    end_chunk(generation, out);
    choice->role_sent = true;
}

/* A completion's text begins with the echoed prompt when that was asked for. */
static void begin_completion_text(const struct generation *generation, struct choice *choice)
{
    const struct prompt_state *prompt = &generation->prompts[choice->index / generation->request.n];
    choice->role_sent = true;
    if (!generation->request.echo)
        return;
    struct buf text;
    buf_init(&text, choice->content.max);
    write_echo(generation, prompt, &text);
    buf_add(&text, choice->content.data, choice->content.len);
    text.overflow |= choice->content.overflow;
    buf_done(&choice->content);
    choice->content = text;
}

static void write_text_chunk(struct generation *generation, struct choice *choice, bool with_finish,
                             struct buf *out)
{
    bool chat = generation->request.kind == REQUEST_CHAT;
    begin_chunk(generation, out);
    buf_add_str(out, "{\"index\":");
    buf_add_u64(out, choice->index);
    if (chat && choice->content.len == 0 && with_finish) {
        buf_add_str(out, ",\"delta\":{}");
    } else {
        buf_add_str(out, chat ? ",\"delta\":{\"content\":" : ",\"text\":");
        buf_add_json(out, choice->content.data ? choice->content.data : "", choice->content.len);
        if (chat)
            buf_add_char(out, '}');
    }
    buf_add_str(out, ",\"logprobs\":");
    logprobs_write(generation, choice, choice->finished ? SIZE_MAX : choice->text.shown_bytes, out);
    if (generation->request.return_token_ids) {
        buf_add_str(out, ",\"token_ids\":[");
        buf_add(out, choice->token_ids.data, choice->token_ids.len);
        buf_add_char(out, ']');
    }
    buf_add_str(out, ",\"finish_reason\":");
    if (with_finish)
        write_finish(choice, out);
    else
        buf_add_str(out, "null");
    buf_add_str(out, "}]");
    end_chunk(generation, out);
    buf_reset(&choice->content);
    buf_reset(&choice->token_ids);
}

void response_chunk(struct generation *generation, struct choice *choice, struct buf *out)
{
    choice->touched = false;
    if (!choice->role_sent && generation->request.kind == REQUEST_CHAT)
        write_role_chunk(generation, choice, out);
    else if (!choice->role_sent)
        begin_completion_text(generation, choice);
    if (choice->content.overflow || choice->token_ids.overflow)
        out->overflow = true;
    bool text = choice->content.len > 0;
    if (choice->finished) {
        if (text) /* the finish reason comes in a chunk of its own: some clients drop text that
                     comes with it */
            write_text_chunk(generation, choice, false, out);
        write_text_chunk(generation, choice, true, out);
    } else if (text) {
        write_text_chunk(generation, choice, false, out);
    }
}

void response_usage_chunk(struct generation *generation, struct buf *out)
{
    begin_chunk(generation, out);
    buf_add_str(out, "],\"usage\":");
    write_usage(generation, out);
    buf_add_str(out, "}\n\n");
}

/* --- whole responses
 * ---------------------------------------------------------------------------------------------------------
 */

static void write_choice(struct generation *generation, struct choice *choice, struct buf *out)
{
    const struct prompt_state *prompt = &generation->prompts[choice->index / generation->request.n];
    bool chat = generation->request.kind == REQUEST_CHAT;
    buf_printf(out, "{\"index\":%u,", choice->index);
    if (!chat)
        begin_completion_text(generation, choice);
    if (choice->content.overflow || choice->token_ids.overflow)
        out->overflow = true;
    if (chat) {
        buf_add_str(out, "\"message\":{\"role\":\"assistant\",\"content\":");
        buf_add_json(out, choice->content.data ? choice->content.data : "", choice->content.len);
        buf_add_str(out, ",\"refusal\":null}");
    } else {
        buf_add_str(out, "\"text\":");
        buf_add_json(out, choice->content.data ? choice->content.data : "", choice->content.len);
    }
    buf_add_str(out, ",\"logprobs\":");
    logprobs_write(generation, choice, SIZE_MAX, out);
    if (generation->request.return_token_ids) {
        buf_add_str(out, ",\"token_ids\":[");
        buf_add(out, choice->token_ids.data, choice->token_ids.len);
        buf_add_char(out, ']');
        if (!chat)
            write_prompt_ids(prompt, out);
    }
    if (!chat && generation->request.has_prompt_logprobs)
        logprobs_write_prompt(generation, prompt, out);
    buf_add_str(out, ",\"finish_reason\":");
    write_finish(choice, out);
    buf_add_char(out, '}');
}

void response_whole(struct generation *generation, struct buf *out)
{
    bool chat = generation->request.kind == REQUEST_CHAT;
    write_head(generation, chat ? "chat.completion" : "text_completion", out);
    buf_add_str(out, ",\"choices\":[");
    for (uint32_t i = 0; i < generation->n_choices; i++) {
        if (i)
            buf_add_char(out, ',');
        write_choice(generation, &generation->choices[i], out);
    }
    buf_add_str(out, "],\"usage\":");
    write_usage(generation, out);
    if (chat && generation->request.return_token_ids)
        write_prompt_ids(&generation->prompts[0], out);
    if (chat && generation->request.n_prompt_logprobs >= 0)
        logprobs_write_prompt(generation, &generation->prompts[0], out);
    buf_add_char(out, '}');
}
