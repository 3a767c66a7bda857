/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The strict scan (RFC 8259), see json.h.  Runs in unprivileged network
 * processes and meets bytes from outside first: it trusts nothing, recurses
 * at most MAX_JSON_DEPTH_OPAQUE deep, and indexes at most MAX_JSON_TOKENS
 * values.  json-c sees only text that has passed it.
 */
#include "json.h"

#include <json-c/json.h>

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/utf8.h"
#include "json_block.h"
#include "json_int.h"

#define JX_FEW_MEMBERS 16	/* compared pair by pair up to here */

/* What was met inside a string. */
struct jx_seen {
	unsigned int high;	/* bytes above 0x7f */
	unsigned int escaped;
};

static int jx_scan_value(struct jx *, int);

void
jx_init(struct jx *x)
{
	struct json_object *warm = json_object_new_object();

	if (warm != NULL) {
		json_object_object_add(warm, "seed", json_object_new_int(1));
		json_object_put(warm);
	}
	memset(x, 0, sizeof(*x));
}

void
jx_clear(struct jx *x)
{
	free(x->tokens);
	memset(x, 0, sizeof(*x));
}

int
jx_fail(struct jx *x, int r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(x->why, sizeof(x->why), fmt, ap);
	va_end(ap);
	return r;
}

static int
jx_fail_at(struct jx *x, const char *what)
{
	return jx_fail(x, CL_FORMAT, "offset %zu: %s", x->pos, what);
}

static int
jx_peek(const struct jx *x)
{
	return x->pos < x->len ? (unsigned char)x->text[x->pos] : -1;
}

static void
jx_skip_space(struct jx *x)
{
	while (x->pos < x->len && (x->text[x->pos] == ' ' ||
	    x->text[x->pos] == '\t' || x->text[x->pos] == '\n' ||
	    x->text[x->pos] == '\r'))
		x->pos++;
}

static int
jx_add_token(struct jx *x, enum jx_type type, uint32_t *atp)
{
	struct jx_token *p;
	size_t cap;

	if (x->ntokens == MAX_JSON_TOKENS)
		return jx_fail(x, CL_LIMIT, "more than %d values",
		    MAX_JSON_TOKENS);
	if (x->ntokens == x->cap) {
		cap = x->cap == 0 ? 64 : x->cap * 2;
		p = reallocarray(x->tokens, cap, sizeof(*p));
		if (p == NULL)
			return jx_fail(x, CL_NOMEM, "out of memory");
		x->tokens = p;
		x->cap = cap;
	}
	p = &x->tokens[x->ntokens];
	memset(p, 0, sizeof(*p));
	p->type = (uint8_t)type;
	p->off = (uint32_t)x->pos;
	*atp = (uint32_t)x->ntokens++;
	return CL_OK;
}

/* The value at `at` ends at pos; its subtree is complete. */
static void
jx_end_token(struct jx *x, uint32_t at)
{
	x->tokens[at].len = (uint32_t)x->pos - x->tokens[at].off;
	x->tokens[at].next = (uint32_t)x->ntokens;
}

static int
jx_scan_word(struct jx *x, const char *word, enum jx_type type)
{
	size_t n = strlen(word);
	uint32_t at = 0;
	int r;

	if (x->len - x->pos < n || memcmp(x->text + x->pos, word, n) != 0)
		return jx_fail_at(x, "not a value");
	if ((r = jx_add_token(x, type, &at)) != 0)
		return r;
	x->pos += n;
	jx_end_token(x, at);
	return CL_OK;
}

/* At least one digit. */
static int
jx_skip_digits(struct jx *x)
{
	size_t start = x->pos;

	while (x->pos < x->len && x->text[x->pos] >= '0' &&
	    x->text[x->pos] <= '9')
		x->pos++;
	return x->pos > start ? CL_OK : jx_fail_at(x, "not a number");
}

static int
jx_scan_number(struct jx *x)
{
	uint32_t at = 0;
	int r;

	if ((r = jx_add_token(x, JX_NUMBER, &at)) != 0)
		return r;
	if (jx_peek(x) == '-')
		x->pos++;
	if (jx_peek(x) == '0')
		x->pos++;
	else if ((r = jx_skip_digits(x)) != 0)
		return r;
	if (jx_peek(x) == '.') {
		x->pos++;
		if ((r = jx_skip_digits(x)) != 0)
			return r;
	}
	if (jx_peek(x) == 'e' || jx_peek(x) == 'E') {
		x->pos++;
		if (jx_peek(x) == '+' || jx_peek(x) == '-')
			x->pos++;
		if ((r = jx_skip_digits(x)) != 0)
			return r;
	}
	jx_end_token(x, at);
	return CL_OK;
}

/* p is behind a backslash: how many bytes of the escape follow; 0: none. */
static unsigned int
jx_find_escape(const unsigned char *p, const unsigned char *end)
{
	if (p < end && jx_escapes[*p] != 0)
		return 1;
	if (end - p < 5 || *p != 'u' || !isxdigit(p[1]) || !isxdigit(p[2]) ||
	    !isxdigit(p[3]) || !isxdigit(p[4]))
		return 0;
	return 5;
}

/* A block of a string: *pp gets behind it, or to what ends the string: 1. */
static int
jx_skip_block(const unsigned char **pp, const unsigned char *end,
    struct jx_seen *seen)
{
	const unsigned char *p = *pp;
	unsigned int high, mark = jx_mark_special(p, &high), n, k;
	unsigned int skip = JX_BLOCK;

	while (mark != 0) {
		n = (unsigned int)__builtin_ctz(mark);
		k = p[n] == '\\' ? jx_find_escape(p + n + 1, end) : 0;
		if (k == 0) {
			seen->high |= high & ((1U << n) - 1);
			*pp = p + n;
			return 1;
		}
		seen->escaped = 1;
		n += 1 + k;
		mark &= ~0U << n;
		if (n > JX_BLOCK)
			skip = n;
	}
	seen->high |= high;
	*pp = p + skip;
	return 0;
}

/* To what ends a string: its quote, or what may not be in it. */
static const unsigned char *
jx_skip_string(const unsigned char *p, const unsigned char *end,
    struct jx_seen *seen)
{
	unsigned int k;

	while (end - p >= JX_BLOCK)
		if (jx_skip_block(&p, end, seen))
			return p;
	while (p < end && *p != '"' && *p >= 0x20) {
		k = 0;
		if (*p == '\\' && (k = jx_find_escape(p + 1, end)) == 0)
			break;
		seen->escaped |= k != 0;
		seen->high |= *p & 0x80;
		p += 1 + k;
	}
	return p;
}

/* Why a string may not go on, or end, at p. */
static const char *
jx_explain_stop(const unsigned char *p, const unsigned char *end)
{
	if (p == end)
		return "string does not end";
	if (*p != '\\')
		return "control character in a string";
	return end - p >= 2 && p[1] == 'u' ?
	    "unicode escape needs 4 digits" : "unknown escape";
}

static int
jx_scan_string(struct jx *x)
{
	const unsigned char *text = (const unsigned char *)x->text;
	const unsigned char *end = text + x->len, *p;
	struct jx_seen seen = { 0, 0 };
	struct jx_token *t;
	uint32_t at = 0;
	int r;

	x->pos++;
	if ((r = jx_add_token(x, JX_STRING, &at)) != 0)
		return r;
	p = jx_skip_string(text + x->pos, end, &seen);
	x->pos = (size_t)(p - text);
	if (p == end || *p != '"')
		return jx_fail_at(x, jx_explain_stop(p, end));
	jx_end_token(x, at);
	t = &x->tokens[at];
	if (seen.escaped)
		t->flags |= JX_ESCAPED;
	if (seen.high && !utf8_is_valid(x->text + t->off, t->len))
		t->flags |= JX_NOT_UTF8;
	x->pos++;
	return CL_OK;
}

static int
jx_scan_array(struct jx *x, int depth)
{
	uint32_t at = 0, n = 0;
	int r;

	if ((r = jx_add_token(x, JX_ARRAY, &at)) != 0)
		return r;
	x->pos++;
	jx_skip_space(x);
	while (jx_peek(x) != ']') {
		if (n > 0) {
			if (jx_peek(x) != ',')
				return jx_fail_at(x, "comma or ] expected");
			x->pos++;
			jx_skip_space(x);
		}
		if ((r = jx_scan_value(x, depth + 1)) != 0)
			return r;
		n++;
		jx_skip_space(x);
	}
	x->pos++;
	x->tokens[at].n = n;
	jx_end_token(x, at);
	return CL_OK;
}

/* Order of two keys by their code points; 0 when they mean the same. */
static int
jx_compare_keys(const struct jx *x, uint32_t a, uint32_t b)
{
	const struct jx_token *ta = &x->tokens[a], *tb = &x->tokens[b];
	const char *pa = x->text + ta->off, *pb = x->text + tb->off;
	const char *ea = pa + ta->len, *eb = pb + tb->len;
	size_t n = ta->len < tb->len ? ta->len : tb->len;
	uint32_t ra, rb;
	int r;

	if (ta->flags == 0 && tb->flags == 0) {
		/* Valid UTF-8 sorts as its code points do. */
		if ((r = memcmp(pa, pb, n)) != 0)
			return r;
		return (ta->len > tb->len) - (ta->len < tb->len);
	}
	while (pa < ea && pb < eb) {
		ra = jx_next_rune(&pa, ea);
		rb = jx_next_rune(&pb, eb);
		if (ra != rb)
			return ra < rb ? -1 : 1;
	}
	return (pa < ea) - (pb < eb);
}

/* Most keys differ in length already. */
static int
jx_is_same_key(const struct jx *x, uint32_t a, uint32_t b)
{
	const struct jx_token *ta = &x->tokens[a], *tb = &x->tokens[b];

	if (ta->flags == 0 && tb->flags == 0 && ta->len != tb->len)
		return 0;
	return jx_compare_keys(x, a, b) == 0;
}

static int
jx_compare_sorted(const void *a, const void *b, void *arg)
{
	return jx_compare_keys(arg, *(const uint32_t *)a,
	    *(const uint32_t *)b);
}

/* Sorting keeps a hostile object of thousands of members cheap. */
static int
jx_check_many_keys(struct jx *x, uint32_t at, uint32_t n)
{
	uint32_t *keys, key = at + 1, i;
	int r = CL_OK;

	if ((keys = calloc(n, sizeof(*keys))) == NULL)
		return jx_fail(x, CL_NOMEM, "out of memory");
	for (i = 0; i < n; i++) {
		keys[i] = key;
		key = x->tokens[key + 1].next;
	}
	qsort_r(keys, n, sizeof(*keys), jx_compare_sorted, x);
	for (i = 1; i < n && r == CL_OK; i++) {
		if (jx_compare_keys(x, keys[i - 1], keys[i]) == 0)
			r = jx_fail_at(x, "member given twice");
	}
	free(keys);
	return r;
}

static int
jx_check_keys(struct jx *x, uint32_t at, uint32_t n)
{
	uint32_t a, b, i, k;

	if (n > JX_FEW_MEMBERS)
		return jx_check_many_keys(x, at, n);
	for (i = 0, a = at + 1; i < n; i++, a = x->tokens[a + 1].next) {
		for (k = 0, b = at + 1; k < i;
		    k++, b = x->tokens[b + 1].next) {
			if (jx_is_same_key(x, a, b))
				return jx_fail_at(x, "member given twice");
		}
	}
	return CL_OK;
}

static int
jx_scan_member(struct jx *x, int depth)
{
	int r;

	if (jx_peek(x) != '"')
		return jx_fail_at(x, "member name expected");
	if ((r = jx_scan_string(x)) != 0)
		return r;
	jx_skip_space(x);
	if (jx_peek(x) != ':')
		return jx_fail_at(x, "colon expected");
	x->pos++;
	jx_skip_space(x);
	return jx_scan_value(x, depth + 1);
}

static int
jx_scan_object(struct jx *x, int depth)
{
	uint32_t at = 0, n = 0;
	int r;

	if ((r = jx_add_token(x, JX_OBJECT, &at)) != 0)
		return r;
	x->pos++;
	jx_skip_space(x);
	while (jx_peek(x) != '}') {
		if (n > 0) {
			if (jx_peek(x) != ',')
				return jx_fail_at(x, "comma or } expected");
			x->pos++;
			jx_skip_space(x);
		}
		if ((r = jx_scan_member(x, depth)) != 0)
			return r;
		if (++n > MAX_JSON_MEMBERS)
			return jx_fail(x, CL_LIMIT, "object of more than %d "
			    "members", MAX_JSON_MEMBERS);
		jx_skip_space(x);
	}
	x->pos++;
	x->tokens[at].n = n;
	jx_end_token(x, at);
	return jx_check_keys(x, at, n);
}

static int
jx_scan_value(struct jx *x, int depth)
{
	int c = jx_peek(x);

	if (depth > MAX_JSON_DEPTH_OPAQUE)
		return jx_fail_at(x, "nested too deep");
	switch (c) {
	case '{':
		return jx_scan_object(x, depth);
	case '[':
		return jx_scan_array(x, depth);
	case '"':
		return jx_scan_string(x);
	case 't':
		return jx_scan_word(x, "true", JX_TRUE);
	case 'f':
		return jx_scan_word(x, "false", JX_FALSE);
	case 'n':
		return jx_scan_word(x, "null", JX_NULL);
	case -1:
		return jx_fail_at(x, "text ends early");
	default:
		if (c == '-' || (c >= '0' && c <= '9'))
			return jx_scan_number(x);
		return jx_fail_at(x, "not a value");
	}
}

int
jx_scan(struct jx *x, const void *text, size_t len)
{
	int r;

	x->text = text;
	x->len = len;
	x->pos = 0;
	x->ntokens = 0;
	x->why[0] = '\0';
	/* Tokens hold 32-bit offsets. */
	if (len >= UINT32_MAX)
		return jx_fail(x, CL_TOOBIG, "text too long");
	jx_skip_space(x);
	if ((r = jx_scan_value(x, 1)) != 0) {
		x->ntokens = 0;
		return r;
	}
	jx_skip_space(x);
	if (x->pos != x->len) {
		x->ntokens = 0;
		return jx_fail_at(x, "something follows the value");
	}
	return CL_OK;
}

/* ------------------------------------------------- values of foreign shape */

static int
jx_walk(const char *key, struct json_object *v, jx_string_fn *fn, void *arg,
    int depth)
{
	struct json_object_iterator it, end;
	size_t i;
	int r = CL_OK;

	if (depth > MAX_JSON_DEPTH_OPAQUE)
		return CL_FORMAT;
	switch (json_object_get_type(v)) {
	case json_type_string:
		return fn(key, json_object_get_string(v),
		    (size_t)json_object_get_string_len(v), arg);
	case json_type_array:
		for (i = 0; i < json_object_array_length(v) && r == 0; i++)
			r = jx_walk(key, json_object_array_get_idx(v, i), fn,
			    arg, depth + 1);
		return r;
	case json_type_object:
		it = json_object_iter_begin(v);
		end = json_object_iter_end(v);
		while (r == 0 && !json_object_iter_equal(&it, &end)) {
			r = jx_walk(json_object_iter_peek_name(&it),
			    json_object_iter_peek_value(&it), fn, arg,
			    depth + 1);
			json_object_iter_next(&it);
		}
		return r;
	default:
		return CL_OK;
	}
}

int
jx_walk_strings(const struct jx *x, uint32_t at, jx_string_fn *fn, void *arg)
{
	struct json_tokener *tok;
	struct json_object *v;
	char *text = NULL;
	int r;

	/* The compact copy is valid UTF-8, whatever came in. */
	if ((r = jx_get_raw(x, at, 3 * (size_t)MAX_FRAME_LEN, &text)) != 0)
		return r;
	if (text == NULL)	/* null */
		return CL_OK;
	tok = json_tokener_new_ex(MAX_JSON_DEPTH_OPAQUE + 1);
	if (tok == NULL) {
		free(text);
		return CL_NOMEM;
	}
	/* With the NUL: a bare number or word ends there. */
	v = json_tokener_parse_ex(tok, text, (int)strlen(text) + 1);
	r = json_tokener_get_error(tok) == json_tokener_success ?
	    jx_walk("", v, fn, arg, 1) : CL_FORMAT;
	json_object_put(v);
	json_tokener_free(tok);
	free(text);
	return r;
}
