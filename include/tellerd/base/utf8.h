#ifndef TELLERD_BASE_UTF8_H
#define TELLERD_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* UTF-8 as RFC 3629 (no surrogates, nothing above U+10FFFF, shortest form).  Pure functions, any
 * thread. */

/* Whether all of it is well-formed. */
bool utf8_valid(const char *text, size_t len);

/*
 * Decodes one code point at text (len > 0).  Returns its length in bytes, or 0 when the bytes are
 * ill-formed; then *ret_code = U+FFFD and *ret_bad = length of the maximal ill-formed piece (at
 * least 1), as W3C decoding counts.
 */
unsigned utf8_decode(const char *text, size_t len, uint32_t *ret_code, unsigned *ret_bad);

/* Writes code (a scalar value) to out[4]; returns the length 1..4. */
unsigned utf8_encode(uint32_t code, char *out);

/*
 * Length of the longest prefix that does not end within a character that more bytes could still
 * complete.  What lies behind it must wait for the next token; ill-formed bytes do not wait.
 */
size_t utf8_complete_prefix(const char *text, size_t len);

/* Number of code points (ill-formed pieces count one each). */
size_t utf8_length(const char *text, size_t len);

#endif
