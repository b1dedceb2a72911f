/*
 * Lines from a person: edited and remembered by libedit where it is there and input is a terminal,
 * else plain.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef HAVE_LIBEDIT
#include <editline/readline.h>
#endif

#include "ctl_priv.h"
#include "tellerd/base/mem.h"

enum { HISTORY_LINES = 1000 };

static char *history_path;

#ifdef HAVE_LIBEDIT

static bool edits(void)
{
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

static void write_history_file(void)
{
    if (!history_path)
        return;
    mode_t mask = umask(0077); /* what was said is the person's own */
    write_history(history_path);
    umask(mask);
}

void ctl_line_start(const char *history_file)
{
    if (!edits())
        return;
    using_history();
    stifle_history(HISTORY_LINES);
    if (history_file) {
        history_path = xstrdup(history_file);
        read_history(history_path);
    }
}

void ctl_line_add(const char *line)
{
    if (!edits() || line[0] == '\0')
        return;
    add_history(line);
    write_history_file();
}

#else

static bool edits(void)
{
    return false;
}

static char *readline(const char *prompt)
{
    (void)prompt;
    return NULL;
}

void ctl_line_start(const char *history_file)
{
    (void)history_file;
    (void)history_path;
}

void ctl_line_add(const char *line)
{
    (void)line;
}

#endif

char *ctl_line_read(const char *prompt)
{
    if (edits())
        return readline(prompt);
    if (isatty(STDIN_FILENO)) {
        fputs(prompt, stdout);
        fflush(stdout);
    }
    char *line = NULL;
    size_t size = 0;
    ssize_t n = getline(&line, &size, stdin);
    if (n < 0) {
        free(line);
        return NULL;
    }
    line[strcspn(line, "\n")] = '\0';
    return line;
}
