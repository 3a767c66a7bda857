/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Reading single values of a scanned text: integers, strings with Go's
 * replacement of what is not UTF-8, keys with Go's case folding, opaque
 * copies.  Runs in unprivileged network processes; the grammar has been
 * checked by jx_scan, the meaning has not.
 */
#include "json.h"

#include <bsd/stdlib.h>

#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/utf8.h"
#include "json_block.h"
#include "json_int.h"

#define RUNE_BAD 0xfffd

const char jx_escapes[256] = { ['"'] = '"', ['\\'] = '\\', ['/'] = '/',
	['b'] = '\b', ['f'] = '\f', ['n'] = '\n', ['r'] = '\r', ['t'] = '\t' };

static uint32_t
jx_hex4(const char *p)
{
	uint32_t v = 0;
	int i;

	for (i = 0; i < 4; i++)
		v = v << 4 | (uint32_t)(p[i] <= '9' ? p[i] - '0' :
		    (p[i] | 0x20) - 'a' + 10);
	return v;
}

/* *pp is behind "\u". */
static uint32_t
jx_next_escaped(const char **pp, const char *end)
{
	uint32_t v = jx_hex4(*pp), low;

	*pp += 4;
	if (v < 0xd800 || v > 0xdfff)
		return v;
	if (v > 0xdbff || end - *pp < 6 || (*pp)[0] != '\\' ||
	    (*pp)[1] != 'u')
		return RUNE_BAD;
	low = jx_hex4(*pp + 2);
	if (low < 0xdc00 || low > 0xdfff)
		return RUNE_BAD;	/* the other escape stands for itself */
	*pp += 6;
	return 0x10000 + ((v - 0xd800) << 10) + (low - 0xdc00);
}

/* A code point of two and more bytes; each byte that is none is U+FFFD. */
static uint32_t
jx_next_utf8(const char **pp, const char *end)
{
	const unsigned char *p = (const unsigned char *)*pp;
	size_t n = *p >= 0xf0 ? 4 : *p >= 0xe0 ? 3 : 2, i;
	uint32_t v;

	if (n > (size_t)(end - *pp) || !utf8_is_valid(p, n)) {
		(*pp)++;
		return RUNE_BAD;
	}
	v = *p & (0xff >> (n + 1));
	for (i = 1; i < n; i++)
		v = v << 6 | (p[i] & 0x3f);
	*pp += n;
	return v;
}

uint32_t
jx_next_rune(const char **pp, const char *end)
{
	unsigned char c = (unsigned char)**pp;

	if (c >= 0x80)
		return jx_next_utf8(pp, end);
	(*pp)++;
	if (c != '\\')
		return c;
	if ((c = (unsigned char)*(*pp)++) == 'u')
		return jx_next_escaped(pp, end);
	return (unsigned char)jx_escapes[c];
}

static size_t
jx_put_rune(uint32_t v, char *dst)
{
	if (v < 0x80) {
		dst[0] = (char)v;
		return 1;
	}
	if (v < 0x800) {
		dst[0] = (char)(0xc0 | v >> 6);
		dst[1] = (char)(0x80 | (v & 0x3f));
		return 2;
	}
	if (v < 0x10000) {
		dst[0] = (char)(0xe0 | v >> 12);
		dst[1] = (char)(0x80 | (v >> 6 & 0x3f));
		dst[2] = (char)(0x80 | (v & 0x3f));
		return 3;
	}
	dst[0] = (char)(0xf0 | v >> 18);
	dst[1] = (char)(0x80 | (v >> 12 & 0x3f));
	dst[2] = (char)(0x80 | (v >> 6 & 0x3f));
	dst[3] = (char)(0x80 | (v & 0x3f));
	return 4;
}

/* One escape at *pp; returns the bytes of dst that it gave. */
static size_t
jx_put_escape(const char **pp, const char *end, char *dst, size_t *nreplacedp)
{
	const char *p = *pp;

	if (p[1] != 'u') {
		dst[0] = jx_escapes[(unsigned char)p[1]];
		*pp = p + 2;
		return 1;
	}
	if (memcmp(p, "\\ufffd", 6) == 0)
		(*nreplacedp)++;
	return jx_put_rune(jx_next_rune(pp, end), dst);
}

/*
 * A block of a literal of good UTF-8: copied up to its first escape, and from
 * behind each on.  Reads two blocks at *pp.
 */
static size_t
jx_copy_block(const char **pp, const char *end, char *dst,
    size_t *nreplacedp)
{
	const char *p = *pp, *stop = p + JX_BLOCK;
	unsigned int mark = jx_mark_slash(p), k;
	size_t n = 0;

	memcpy(dst, p, JX_BLOCK);
	while (mark != 0) {
		k = (unsigned int)__builtin_ctz(mark);
		n += k;
		*pp = p + k;
		n += jx_put_escape(pp, end, dst + n, nreplacedp);
		mark = *pp < stop ? mark >> (*pp - p) : 0;
		p = *pp;
		if (p >= stop)
			return n;
		memcpy(dst + n, p, JX_BLOCK);
	}
	*pp = stop;
	return n + (size_t)(stop - p);
}

/*
 * dst must hold three bytes for each byte of a literal with JX_NOT_UTF8, one
 * otherwise (an escape is never shorter than what it stands for), and
 * JX_BLOCK more.
 */
static size_t
jx_unescape(const char *p, const char *end, int flags, char *dst,
    size_t *nreplacedp)
{
	size_t n = 0;

	if (flags == 0) {
		memcpy(dst, p, (size_t)(end - p));
		return (size_t)(end - p);
	}
	if ((flags & JX_NOT_UTF8) == 0)
		while (end - p >= 2 * JX_BLOCK)
			n += jx_copy_block(&p, end, dst + n, nreplacedp);
	while (p < end) {
		if (*p == '\\')
			n += jx_put_escape(&p, end, dst + n, nreplacedp);
		else if ((flags & JX_NOT_UTF8) == 0)
			dst[n++] = *p++;	/* inside a code point, maybe */
		else
			n += jx_put_rune(jx_next_rune(&p, end), dst + n);
	}
	return n;
}

const char *
jx_find_plain(const struct jx *x, uint32_t at, size_t *lenp)
{
	const struct jx_token *t = &x->tokens[at];

	/* The scan refuses control characters, so there is no NUL. */
	if (t->type != JX_STRING || t->flags != 0)
		return NULL;
	*lenp = t->len;
	return x->text + t->off;
}

int
jx_get_string(const struct jx *x, uint32_t at, size_t max, char **sp,
    size_t *lenp, size_t *nreplacedp)
{
	const struct jx_token *t = &x->tokens[at];
	size_t room = t->len, n, nreplaced = 0;
	char *s, *exact;

	*sp = NULL;
	*lenp = 0;
	if (nreplacedp != NULL)
		*nreplacedp = 0;
	if (t->type == JX_NULL)
		return CL_OK;
	if (t->type != JX_STRING)
		return CL_FORMAT;
	/* No literal shrinks to less than a sixth. */
	if (t->len / 6 > max)
		return CL_TOOBIG;
	if ((t->flags & JX_NOT_UTF8) != 0)
		room *= 3;
	if ((s = malloc(room + JX_BLOCK + 1)) == NULL)
		return CL_NOMEM;
	n = jx_unescape(x->text + t->off, x->text + t->off + t->len, t->flags,
	    s, &nreplaced);
	/* What the last block wrote too much may be of a secret. */
	explicit_bzero(s + n, JX_BLOCK + 1);
	if (n > max) {
		freezero(s, n);
		return CL_TOOBIG;
	}
	/* Padding of escapes must not stay allocated. */
	if (n < room && (exact = realloc(s, n + 1)) != NULL)
		s = exact;
	*sp = s;
	*lenp = n;
	if (nreplacedp != NULL)
		*nreplacedp = nreplaced;
	return CL_OK;
}

/* Digits only, at most max: 1, or 0 when it is no such number. */
static int
jx_parse_digits(const char *p, size_t len, uint64_t max, uint64_t *vp)
{
	uint64_t v = 0, digit;
	size_t i;

	if (len == 0 || len > 20)
		return 0;
	for (i = 0; i < len; i++) {
		if (p[i] < '0' || p[i] > '9')
			return 0;
		digit = (uint64_t)(p[i] - '0');
		if (v > (max - digit) / 10)
			return 0;
		v = v * 10 + digit;
	}
	*vp = v;
	return 1;
}

int
jx_get_uint(const struct jx *x, uint32_t at, uint64_t *vp)
{
	const struct jx_token *t = &x->tokens[at];

	*vp = 0;
	if (t->type == JX_NULL)
		return CL_OK;
	if (t->type != JX_NUMBER ||
	    !jx_parse_digits(x->text + t->off, t->len, UINT64_MAX, vp))
		return CL_FORMAT;
	return CL_OK;
}

int
jx_get_int(const struct jx *x, uint32_t at, int64_t *vp)
{
	const struct jx_token *t = &x->tokens[at];
	const char *p = x->text + t->off;
	uint64_t v, max = INT64_MAX;
	int minus;

	*vp = 0;
	if (t->type == JX_NULL)
		return CL_OK;
	if (t->type != JX_NUMBER)
		return CL_FORMAT;
	minus = *p == '-';
	if (minus)
		max++;
	if (!jx_parse_digits(p + minus, t->len - (size_t)minus, max, &v))
		return CL_FORMAT;
	/* -v in unsigned arithmetic: 2^63 has no positive int64. */
	*vp = minus ? (int64_t)(0 - v) : (int64_t)v;
	return CL_OK;
}

/* Go's simple folding of what can stand for an ASCII letter. */
static uint32_t
jx_fold(uint32_t v)
{
	if (v >= 'A' && v <= 'Z')
		return v + 0x20;
	if (v == 0x212a)
		return 'k';
	return v == 0x17f ? 's' : v;
}

int
jx_is_key(const struct jx *x, uint32_t at, const char *key)
{
	const struct jx_token *t = &x->tokens[at];
	const char *p = x->text + t->off, *end = p + t->len;

	/* Most keys differ in their first letter. */
	if (p < end && (unsigned char)*p < 0x80 && *p != '\\' &&
	    ((*p ^ *key) & ~0x20) != 0)
		return 0;
	if (strncmp(p, key, t->len) == 0 && key[t->len] == '\0')
		return 1;
	for (; p < end; key++) {
		if (*key == '\0' || jx_fold(jx_next_rune(&p, end)) !=
		    jx_fold((unsigned char)*key))
			return 0;
	}
	return *key == '\0';
}

uint32_t
jx_find_member(const struct jx *x, uint32_t at, const char *key)
{
	const struct jx_token *t = &x->tokens[at];
	uint32_t k = at + 1, i;

	if (t->type != JX_OBJECT)
		return 0;
	for (i = 0; i < t->n; i++, k = x->tokens[k + 1].next) {
		if (jx_is_key(x, k, key))
			return k + 1;
	}
	return 0;
}

/*
 * Copy without white space between tokens, each bad byte as U+FFFD; dst
 * holds three bytes for each of the source.
 */
static size_t
jx_compact(const char *p, const char *end, char *dst)
{
	size_t n = 0;
	int quoted = 0;

	while (p < end) {
		if ((unsigned char)*p >= 0x80) {
			n += jx_put_rune(jx_next_utf8(&p, end), dst + n);
			continue;
		}
		if (!quoted && strchr(" \t\r\n", *p) != NULL) {
			p++;
			continue;
		}
		if (*p == '"')
			quoted = !quoted;
		if (*p == '\\')	/* what follows is no end of string */
			dst[n++] = *p++;
		dst[n++] = *p++;
	}
	return n;
}

int
jx_get_raw(const struct jx *x, uint32_t at, size_t max, char **textp)
{
	const struct jx_token *t = &x->tokens[at];
	const char *p = x->text + t->off, *end = p + t->len;
	char *text, *exact;
	size_t n, room;

	*textp = NULL;
	if (t->type == JX_NULL)
		return CL_OK;
	if (t->type == JX_STRING) {	/* take the quotes along */
		p--;
		end++;
	}
	room = 3 * (size_t)(end - p);
	if ((text = malloc(room + 1)) == NULL)
		return CL_NOMEM;
	n = jx_compact(p, end, text);
	text[n] = '\0';
	if (n > max) {
		freezero(text, n);
		return CL_TOOBIG;
	}
	if ((exact = realloc(text, n + 1)) != NULL)
		text = exact;
	*textp = text;
	return CL_OK;
}
