#ifndef TELLERD_CLIENTS_CTL_PRIV_H
#define TELLERD_CLIENTS_CTL_PRIV_H

#include <stdbool.h>
#include <stddef.h>

#include "tellerd/base/buf.h"
#include "tellerd/base/status.h"

/* Inside tellerctl: one thread. */

enum ctl_exit {
    CTL_OK = 0,
    CTL_REFUSED = 1,     /* the server answered with an error */
    CTL_USAGE = 2,       /* the command line or a local file is wrong */
    CTL_UNREACHABLE = 3, /* no answer from the server */
    CTL_BROKEN = 4,      /* the answer began and broke off */
    CTL_INTERRUPTED = 130
};

enum { CTL_BODY_MAX = 16 * 1024 * 1024 };

/* Where and how to reach the server. */
struct ctl_server {
    const char *url;        /* "http://127.0.0.1:8000", without a slash at its end */
    const char *socket;     /* unix socket instead of the URL's host, or NULL */
    const char *key_header; /* "Authorization: Bearer ...", or NULL */
};

/* --- ctl_http.c: requests ------------------------------------------------- */

/* Sends a request (body NULL: GET, else POST of JSON) and gives the whole answer.  Prints what went
 * wrong; an answer of 400 and above counts as CTL_REFUSED. */
enum ctl_exit ctl_request(const struct ctl_server *server, const char *path, const char *body,
                          struct buf *answer);
/* Posts JSON and hands each event's data to on_data as it comes; that returns false to end the
 * transfer.  A stream that ends without [DONE] is CTL_BROKEN.  Prints what went wrong. */
typedef bool (*ctl_data_fn)(void *ctx, const char *data, size_t len);
enum ctl_exit ctl_stream(const struct ctl_server *server, const char *path, const char *body,
                         ctl_data_fn on_data, void *ctx);
/* Whether Ctrl-C came since ctl_catch_interrupts(true); while caught it ends the transfer instead
 * of the program. */
void ctl_catch_interrupts(bool catch);
bool ctl_interrupted(void);

/* --- ctl_sse.c: server-sent events ----------------------------------------- */

/* A reader of text/event-stream.  Lines end in LF, CRLF or CR, wherever the bytes are split. */
struct ctl_sse {
    struct buf line;
    struct buf data;
    bool has_data;
    bool after_cr;
    bool too_long;
};
void ctl_sse_init(struct ctl_sse *sse, size_t max_event_bytes);
void ctl_sse_done(struct ctl_sse *sse);
/* Feeds bytes; on_data gets the data of each complete event.  False when on_data said so, or an
 * event was too long. */
bool ctl_sse_feed(struct ctl_sse *sse, const char *bytes, size_t len, ctl_data_fn on_data,
                  void *ctx);

/* --- commands: argv[0] is the command's name -------------------------------- */

enum ctl_exit ctl_status(const struct ctl_server *server, int argc, char **argv);
enum ctl_exit ctl_models(const struct ctl_server *server, int argc, char **argv);
enum ctl_exit ctl_drain(const struct ctl_server *server, int argc, char **argv);
enum ctl_exit ctl_reload(const struct ctl_server *server, int argc, char **argv);
enum ctl_exit ctl_chat(const struct ctl_server *server, int argc, char **argv);
enum ctl_exit ctl_complete(const struct ctl_server *server, int argc, char **argv);

/* --- ctl_line.c: lines from a person ------------------------------------------ */

/* Reads a line with the prompt, edited where libedit is there; NULL at the end of input.  Free
 * it. */
char *ctl_line_read(const char *prompt);
/* History, kept in a file (NULL: not kept). */
void ctl_line_start(const char *history_file);
void ctl_line_add(const char *line);

/* --- output --------------------------------------------------------------------- */

/* Writes text to stdout; for a terminal, control characters but line end and tab become U+FFFD, so
 * that a model cannot send escape sequences. */
void ctl_print(const char *text, size_t len);
/* "tellerctl: ..." on stderr. */
void ctl_complain(const char *format, ...) PRINTF_LIKE(1, 2);

#endif
