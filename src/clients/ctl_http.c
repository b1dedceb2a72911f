/*
 * HTTP by libcurl: one request, its whole answer or its stream of events.
 */
#include "config.h"

#include <curl/curl.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_priv.h"

enum { CONNECT_TIMEOUT_S = 10, ANSWER_TIMEOUT_S = 60, ERROR_BODY_MAX = 65536 };

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

void ctl_catch_interrupts(bool catch)
{
    struct sigaction action = {.sa_handler = catch ? on_interrupt : SIG_DFL};
    if (catch)
        interrupted = 0;
    sigaction(SIGINT, &action, NULL);
}

bool ctl_interrupted(void)
{
    return interrupted;
}

/* A transfer under way. */
struct transfer {
    CURL *curl;
    struct curl_slist *headers;
    char error[CURL_ERROR_SIZE];
    struct buf *answer; /* whole answer, or the body of an error */
    struct ctl_sse sse;
    bool is_stream;
    ctl_data_fn on_data;
    void *ctx;
    bool done;     /* [DONE] came */
    bool stopped;  /* on_data had enough */
    bool too_long; /* more than is kept */
};

static bool on_event(void *ctx, const char *data, size_t len)
{
    struct transfer *transfer = ctx;
    if (len == 6 && memcmp(data, "[DONE]", 6) == 0) {
        transfer->done = true;
        return true;
    }
    transfer->stopped = !transfer->on_data(transfer->ctx, data, len);
    return !transfer->stopped;
}

/* libcurl gives body bytes; any other result than the length ends the transfer. */
static size_t on_body(char *bytes, size_t size, size_t count, void *ctx)
{
    struct transfer *transfer = ctx;
    size_t len = size * count;
    long status = 0;
    curl_easy_getinfo(transfer->curl, CURLINFO_RESPONSE_CODE, &status);
    bool ok;
    if (transfer->is_stream && status < 400) {
        ok = ctl_sse_feed(&transfer->sse, bytes, len, on_event, transfer);
        transfer->too_long = transfer->sse.too_long;
    } else {
        ok = buf_add(transfer->answer, bytes, len);
        transfer->too_long = !ok;
    }
    return ok ? len : 0;
}

static int on_progress(void *ctx, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    (void)ctx, (void)a, (void)b, (void)c, (void)d;
    return interrupted ? 1 : 0;
}

static void set_address(CURL *curl, const struct ctl_server *server, const char *path)
{
    struct buf url;
    buf_init(&url, 65536);
    buf_printf(&url, "%s%s", server->url, path);
    curl_easy_setopt(curl, CURLOPT_URL, url.data);
    buf_done(&url);
    if (server->socket) {
        curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, server->socket);
        curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
    } else if (!getenv("no_proxy") && !getenv("NO_PROXY")) {
        curl_easy_setopt(curl, CURLOPT_NOPROXY, "localhost,127.0.0.1,::1");
    }
#if LIBCURL_VERSION_NUM >= 0x075500
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
}

static void set_request(struct transfer *transfer, const struct ctl_server *server,
                        const char *body)
{
    CURL *curl = transfer->curl;
    struct curl_slist *headers = NULL;
    if (body) {
        headers = curl_slist_append(headers, "Content-Type: application/json");
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(body));
    }
    if (server->key_header)
        headers = curl_slist_append(headers, server->key_header);
    transfer->headers = headers;
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "tellerctl/" PACKAGE_VERSION);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, transfer->error);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_TIMEOUT_S);
    if (!transfer->is_stream)
        curl_easy_setopt(curl, CURLOPT_TIMEOUT, (long)ANSWER_TIMEOUT_S);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, transfer);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
}

/* Prints the message of {"error":{...}}, or the bare status when the body is something else. */
static void complain_of_answer(long status, const struct buf *body)
{
    json_t *root = json_loadb(body->data ? body->data : "", body->len, 0, NULL);
    const char *message = NULL, *code = NULL;
    if (root)
        json_unpack(root, "{s:{s:s, s?s}}", "error", "message", &message, "code", &code);
    if (message)
        ctl_complain("the server says: %s (%ld%s%s)", message, status, code ? " " : "",
                     code ? code : "");
    else
        ctl_complain("the server answered with status %ld", status);
    json_decref(root);
}

static enum ctl_exit judge(struct transfer *transfer, const struct ctl_server *server,
                           CURLcode result)
{
    long status = 0;
    curl_easy_getinfo(transfer->curl, CURLINFO_RESPONSE_CODE, &status);
    if (interrupted)
        return CTL_INTERRUPTED;
    if (transfer->stopped)
        return CTL_REFUSED; /* on_data said why */
    if (transfer->too_long) {
        ctl_complain("the answer is longer than is taken");
        return CTL_BROKEN;
    }
    if (status >= 400) {
        complain_of_answer(status, transfer->answer);
        return CTL_REFUSED;
    }
    if (result != CURLE_OK && status == 0) {
        ctl_complain("cannot reach %s: %s", server->socket ? server->socket : server->url,
                     transfer->error[0] ? transfer->error : curl_easy_strerror(result));
        return CTL_UNREACHABLE;
    }
    if (result != CURLE_OK || (transfer->is_stream && !transfer->done)) {
        ctl_complain("the answer broke off%s%s", transfer->error[0] ? ": " : "", transfer->error);
        return CTL_BROKEN;
    }
    return CTL_OK;
}

static enum ctl_exit perform(struct transfer *transfer, const struct ctl_server *server,
                             const char *path, const char *body)
{
    transfer->curl = curl_easy_init();
    if (!transfer->curl) {
        ctl_complain("cannot start libcurl");
        return CTL_UNREACHABLE;
    }
    set_address(transfer->curl, server, path);
    set_request(transfer, server, body);
    enum ctl_exit outcome = judge(transfer, server, curl_easy_perform(transfer->curl));
    curl_slist_free_all(transfer->headers);
    curl_easy_cleanup(transfer->curl);
    return outcome;
}

enum ctl_exit ctl_request(const struct ctl_server *server, const char *path, const char *body,
                          struct buf *answer)
{
    struct transfer transfer = {.answer = answer};
    return perform(&transfer, server, path, body);
}

enum ctl_exit ctl_stream(const struct ctl_server *server, const char *path, const char *body,
                         ctl_data_fn on_data, void *ctx)
{
    struct buf answer;
    struct transfer transfer = {
        .answer = &answer, .is_stream = true, .on_data = on_data, .ctx = ctx};
    buf_init(&answer, ERROR_BODY_MAX);
    ctl_sse_init(&transfer.sse, CTL_BODY_MAX);
    enum ctl_exit outcome = perform(&transfer, server, path, body);
    ctl_sse_done(&transfer.sse);
    buf_done(&answer);
    return outcome;
}
