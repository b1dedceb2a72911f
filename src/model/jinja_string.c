/*
 * Strings of the template interpreter.  Each carries which of its bytes are trusted, and every
 * operation here keeps that byte by byte.  Sinks collect text; a string is made from one at its
 * end, or shares the bytes of another string.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "jinja_ops_priv.h"

struct jinja_sink *jinja_sink_take(struct jinja_rt *rt)
{
    struct jinja_sink *sink = rt->free_sinks;
    if (sink) {
        rt->free_sinks = sink->next_free;
        sink->len = sink->n_runs = 0;
        return sink;
    }
    sink = jinja_alloc(rt, sizeof *sink);
    if (!sink)
        return NULL;
    *sink = (struct jinja_sink){.next = rt->sinks};
    rt->sinks = sink;
    return sink;
}

void jinja_sink_give(struct jinja_rt *rt, struct jinja_sink *sink)
{
    sink->next_free = rt->free_sinks;
    rt->free_sinks = sink;
}

/* Grows *block, of *cap items, to hold at least n; counts it as scratch memory or as output. */
static bool grow(struct jinja_rt *rt, const struct jinja_sink *sink, void **block, size_t *cap,
                 size_t n, size_t item_size)
{
    size_t new_cap = *cap ? *cap : 256 / item_size;
    while (new_cap < n) {
        if (new_cap > SIZE_MAX / 4 / item_size)
            return jinja_fail_limit(rt, "the template takes too much memory");
        new_cap *= 2;
    }
    size_t more = (new_cap - *cap) * item_size;
    if (sink != rt->top) {
        size_t used = rt->arena.used_bytes + rt->scratch_bytes;
        if (used > rt->limits.max_memory_bytes || more > rt->limits.max_memory_bytes - used)
            return jinja_fail_limit(rt, "the template takes too much memory");
        rt->scratch_bytes += more;
    }
    void *bigger = realloc(*block, new_cap * item_size);
    if (!bigger)
        return jinja_fail_limit(rt, "out of memory");
    *block = bigger;
    *cap = new_cap;
    return true;
}

static bool add_run(struct jinja_rt *rt, struct jinja_sink *sink, size_t start, size_t len)
{
    if (sink->n_runs > 0) {
        struct text_run *last = &sink->runs[sink->n_runs - 1];
        if (last->start + last->len == start) {
            last->len += len;
            return true;
        }
    }
    if (sink->n_runs == sink->cap_runs) {
        void *runs = sink->runs;
        if (!grow(rt, sink, &runs, &sink->cap_runs, sink->n_runs + 1, sizeof *sink->runs))
            return false;
        sink->runs = runs;
    }
    sink->runs[sink->n_runs++] = (struct text_run){start, len};
    return true;
}

bool jinja_sink_add(struct jinja_rt *rt, struct jinja_sink *sink, const char *bytes, size_t len,
                    bool trusted)
{
    if (len == 0)
        return true;
    if (len >= 64 && !jinja_work(rt, len))
        return false;
    if (sink == rt->top && len > rt->limits.max_output_bytes - sink->len)
        return jinja_fail_limit(rt, "the template's output is too long");
    if (len > sink->cap - sink->len) {
        void *block = sink->bytes;
        if (len > SIZE_MAX / 4 || !grow(rt, sink, &block, &sink->cap, sink->len + len, 1))
            return false;
        sink->bytes = block;
    }
    if (trusted && !add_run(rt, sink, sink->len, len))
        return false;
    memcpy(sink->bytes + sink->len, bytes, len);
    sink->len += len;
    return true;
}

bool jinja_sink_text(struct jinja_rt *rt, struct jinja_sink *sink, const char *text)
{
    return jinja_sink_add(rt, sink, text, strlen(text), false);
}

bool jinja_sink_part(struct jinja_rt *rt, struct jinja_sink *sink, const struct jinja_string *s,
                     size_t from, size_t len)
{
    if (s->trust != TRUST_MIXED)
        return jinja_sink_add(rt, sink, s->bytes + from, len, s->trust == TRUST_ALL);
    size_t at = from, end = from + len;
    if (!jinja_step(rt, s->n_runs / 8))
        return false;
    for (uint32_t i = 0; i < s->n_runs && at < end; i++) {
        size_t start = s->runs[i].start, stop = start + s->runs[i].len;
        if (stop <= at)
            continue;
        if (start > end)
            start = end;
        if (stop > end)
            stop = end;
        if (start > at) {
            if (!jinja_sink_add(rt, sink, s->bytes + at, start - at, false))
                return false;
            at = start;
        }
        if (!jinja_sink_add(rt, sink, s->bytes + at, stop - at, true))
            return false;
        at = stop;
    }
    return jinja_sink_add(rt, sink, s->bytes + at, end - at, false);
}

bool jinja_sink_string(struct jinja_rt *rt, struct jinja_sink *sink, const struct jinja_string *s)
{
    return jinja_sink_part(rt, sink, s, 0, s->len);
}

static struct jinja_string *string_alloc(struct jinja_rt *rt, const char *bytes, size_t len)
{
    struct jinja_string *s = jinja_alloc(rt, sizeof *s);
    if (s)
        *s = (struct jinja_string){.bytes = bytes, .len = len};
    return s;
}

/* Sets runs (n of them, any storage) as the trust of s; copies them when s is mixed. */
static bool set_trust(struct jinja_rt *rt, struct jinja_string *s, const struct text_run *runs,
                      size_t n)
{
    if (n == 0 || s->len == 0) {
        s->trust = TRUST_NONE;
        return true;
    }
    if (n == 1 && runs[0].start == 0 && runs[0].len == s->len) {
        s->trust = TRUST_ALL;
        return true;
    }
    struct text_run *copy = jinja_alloc(rt, n * sizeof *copy);
    if (!copy)
        return false;
    memcpy(copy, runs, n * sizeof *copy);
    s->trust = TRUST_MIXED;
    s->runs = copy;
    s->n_runs = (uint32_t)n;
    return true;
}

bool jinja_sink_finish(struct jinja_rt *rt, struct jinja_sink *sink, struct jinja_value *ret)
{
    char *bytes = jinja_alloc(rt, sink->len + 1);
    if (!bytes)
        return false;
    if (sink->len > 0)
        memcpy(bytes, sink->bytes, sink->len);
    bytes[sink->len] = '\0';
    struct jinja_string *s = string_alloc(rt, bytes, sink->len);
    if (!s || !set_trust(rt, s, sink->runs, sink->n_runs))
        return false;
    jinja_sink_give(rt, sink);
    *ret = value_string(s);
    return true;
}

bool jinja_string_new(struct jinja_rt *rt, const char *bytes, size_t len, bool trusted,
                      struct jinja_value *ret)
{
    struct jinja_string *s = string_alloc(rt, bytes, len);
    if (!s)
        return false;
    s->trust = trusted ? TRUST_ALL : TRUST_NONE;
    *ret = value_string(s);
    return true;
}

bool jinja_string_part(struct jinja_rt *rt, const struct jinja_string *s, size_t from, size_t len,
                       struct jinja_value *ret)
{
    struct jinja_string *part = string_alloc(rt, s->bytes + from, len);
    if (!part)
        return false;
    part->trust = s->trust;
    part->is_ascii = s->is_ascii == 1 ? 1 : 0;
    *ret = value_string(part);
    if (s->trust != TRUST_MIXED)
        return true;
    struct text_run *runs = jinja_alloc(rt, s->n_runs * sizeof *runs);
    if (!runs || !jinja_step(rt, s->n_runs / 8))
        return false;
    size_t n = 0;
    for (uint32_t i = 0; i < s->n_runs; i++) {
        size_t start = s->runs[i].start, stop = start + s->runs[i].len;
        start = start > from ? start - from : 0;
        stop = stop > from ? stop - from : 0;
        stop = stop < len ? stop : len;
        if (start < stop)
            runs[n++] = (struct text_run){start, stop - start};
    }
    return set_trust(rt, part, runs, n);
}

bool jinja_string_trusted_at(const struct jinja_string *s, size_t at)
{
    if (s->trust != TRUST_MIXED)
        return s->trust == TRUST_ALL;
    size_t low = 0, high = s->n_runs;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (at < s->runs[mid].start)
            high = mid;
        else if (at >= s->runs[mid].start + s->runs[mid].len)
            low = mid + 1;
        else
            return true;
    }
    return false;
}

static bool is_ascii(struct jinja_rt *rt, struct jinja_string *s, bool *ret)
{
    if (s->is_ascii == 0) {
        if (!jinja_work(rt, s->len))
            return false;
        s->is_ascii = 1;
        for (size_t i = 0; i < s->len; i++) {
            if ((unsigned char)s->bytes[i] >= 0x80) {
                s->is_ascii = 2;
                break;
            }
        }
    }
    *ret = s->is_ascii == 1;
    return true;
}

bool jinja_string_chars(struct jinja_rt *rt, struct jinja_string *s, size_t *ret)
{
    bool ascii;
    if (!is_ascii(rt, s, &ascii) || (!ascii && !jinja_work(rt, s->len)))
        return false;
    size_t n = s->len;
    if (!ascii) {
        n = 0;
        for (size_t i = 0; i < s->len; i++)
            n += ((unsigned char)s->bytes[i] & 0xC0) != 0x80;
    }
    *ret = n;
    return true;
}

bool jinja_string_offset(struct jinja_rt *rt, struct jinja_string *s, size_t index, size_t *ret)
{
    bool ascii;
    if (!is_ascii(rt, s, &ascii) || (!ascii && !jinja_work(rt, s->len)))
        return false;
    size_t at = index;
    if (!ascii) {
        at = 0;
        for (size_t n = 0; at < s->len; at++) {
            if (((unsigned char)s->bytes[at] & 0xC0) != 0x80 && n++ == index)
                break;
        }
    }
    *ret = at < s->len ? at : s->len;
    return true;
}

bool jinja_string_find(struct jinja_rt *rt, const struct jinja_string *s,
                       const struct jinja_string *needle, size_t from, size_t to, bool last,
                       size_t *ret)
{
    *ret = SIZE_MAX;
    if (needle->len == 0) {
        if (from <= to)
            *ret = last ? to : from;
        return true;
    }
    if (from > to || needle->len > to - from)
        return true;
    if (!last) {
        const char *hit = memmem(s->bytes + from, to - from, needle->bytes, needle->len);
        if (hit)
            *ret = (size_t)(hit - s->bytes);
        return jinja_work(rt, hit ? *ret - from : to - from);
    }
    size_t compared = 0; /* quadratic at worst, so the work is charged while it is done */
    for (size_t at = to - needle->len + 1; at-- > from;) {
        if (compared > 4096) {
            if (!jinja_work(rt, compared))
                return false;
            compared = 0;
        }
        size_t same = 0;
        while (same < needle->len && s->bytes[at + same] == needle->bytes[same])
            same++;
        compared += same + 1;
        if (same == needle->len) {
            *ret = at;
            break;
        }
    }
    return jinja_work(rt, compared);
}

static bool in_set(uint32_t c, const struct jinja_string *chars)
{
    if (!chars)
        return jinja_is_space(c);
    for (size_t i = 0; i < chars->len;) {
        unsigned len;
        if (jinja_char(chars->bytes + i, &len) == c)
            return true;
        i += len;
    }
    return false;
}

/* Counts one comparison with the set; charges now and then. */
static bool strip_cost(struct jinja_rt *rt, const struct jinja_string *chars, uint64_t *cost)
{
    *cost += 1 + (chars ? chars->len / 4 : 0);
    if (*cost < 64)
        return true;
    uint64_t steps = *cost / 16;
    *cost = 0;
    return jinja_step(rt, steps);
}

bool jinja_string_strip(struct jinja_rt *rt, const struct jinja_string *s,
                        const struct jinja_string *chars, unsigned sides, struct jinja_value *ret)
{
    size_t from = 0, to = s->len;
    uint64_t cost = 0;
    unsigned len;
    while ((sides & STRIP_LEFT) && from < to && in_set(jinja_char(s->bytes + from, &len), chars)) {
        from += len;
        if (!strip_cost(rt, chars, &cost))
            return false;
    }
    while ((sides & STRIP_RIGHT) && from < to) {
        size_t at = to - 1;
        while (at > from && ((unsigned char)s->bytes[at] & 0xC0) == 0x80)
            at--;
        if (!in_set(jinja_char(s->bytes + at, &len), chars))
            break;
        to = at;
        if (!strip_cost(rt, chars, &cost))
            return false;
    }
    return jinja_string_part(rt, s, from, to - from, ret);
}

bool jinja_string_replace(struct jinja_rt *rt, const struct jinja_string *s,
                          const struct jinja_string *old, const struct jinja_string *by,
                          int64_t max, struct jinja_value *ret)
{
    struct jinja_sink *sink = jinja_sink_take(rt);
    if (!sink)
        return false;
    size_t at = 0;
    for (int64_t n = 0; max < 0 || n < max; n++) {
        size_t hit;
        if (old->len == 0) { /* between all characters, and at both ends */
            hit = at;
            if (n > 0) {
                unsigned len;
                if (at == s->len)
                    break;
                (void)jinja_char(s->bytes + at, &len);
                hit = at + len;
            }
        } else if (!jinja_string_find(rt, s, old, at, s->len, false, &hit)) {
            return false;
        }
        if (hit == SIZE_MAX)
            break;
        if (!jinja_step(rt, 1) || !jinja_sink_part(rt, sink, s, at, hit - at) ||
            !jinja_sink_string(rt, sink, by))
            return false;
        at = hit + old->len;
    }
    return jinja_sink_part(rt, sink, s, at, s->len - at) && jinja_sink_finish(rt, sink, ret);
}

bool jinja_string_repeat(struct jinja_rt *rt, const struct jinja_string *s, int64_t n,
                         struct jinja_value *ret)
{
    struct jinja_sink *sink = jinja_sink_take(rt);
    if (!sink)
        return false;
    if (s->len > 0 && n > 0 && (uint64_t)n > rt->limits.max_memory_bytes / s->len)
        return jinja_fail_limit(rt, "the template takes too much memory");
    for (int64_t i = 0; i < n && s->len > 0; i++) {
        if ((i & 7) == 0 && !jinja_step(rt, 1))
            return false;
        if (!jinja_sink_string(rt, sink, s))
            return false;
    }
    return jinja_sink_finish(rt, sink, ret);
}

/* Length of the line border at `at`, 0 when there is none. */
static unsigned line_border(const struct jinja_string *s, size_t at, unsigned *ret_len)
{
    uint32_t c = jinja_char(s->bytes + at, ret_len);
    if (c == '\r' && at + 1 < s->len && s->bytes[at + 1] == '\n')
        return 2;
    bool border = (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 ||
                  c == 0x2028 || c == 0x2029;
    return border ? *ret_len : 0;
}

bool jinja_string_splitlines(struct jinja_rt *rt, const struct jinja_string *s, bool keep,
                             struct jinja_list **ret)
{
    struct jinja_list *lines = jinja_list_new(rt, 0);
    if (!lines || !jinja_work(rt, s->len))
        return false;
    size_t start = 0;
    for (size_t at = 0; at < s->len;) {
        unsigned len, border = line_border(s, at, &len);
        if (border == 0) {
            at += len;
            continue;
        }
        struct jinja_value line;
        if (!jinja_step(rt, 1) ||
            !jinja_string_part(rt, s, start, at - start + (keep ? border : 0), &line) ||
            !jinja_list_add(rt, lines, line))
            return false;
        at += border;
        start = at;
    }
    struct jinja_value line;
    if (start < s->len && (!jinja_string_part(rt, s, start, s->len - start, &line) ||
                           !jinja_list_add(rt, lines, line)))
        return false;
    *ret = lines;
    return true;
}
