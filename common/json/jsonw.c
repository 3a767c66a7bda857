/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * JSON writer, see jsonw.h.  Runs everywhere; touches memory only.  It
 * trusts its caller for the nesting, and nobody for the bytes of a string:
 * whatever they are, the text that comes out is valid JSON and UTF-8.
 */
#include "jsonw.h"

#include <bsd/stdlib.h>
#include <bsd/string.h>

#include <stdlib.h>
#include <string.h>

#include "common/base/b64.h"
#include "common/base/err.h"
#include "common/base/utf8.h"
#include "common/base/util.h"

#define JSONW_MIN_CAP 512

void
jsonw_init(struct jsonw *w, size_t max, unsigned int flags)
{
	memset(w, 0, sizeof(*w));
	w->max = max;
	w->flags = flags;
}

void
jsonw_clear(struct jsonw *w)
{
	size_t max = w->max;
	unsigned int flags = w->flags;

	if (w->data != NULL)
		freezero(w->data, w->cap);
	jsonw_init(w, max, flags);
}

void
jsonw_reset(struct jsonw *w)
{
	w->len = 0;
	w->comma = 0;
	w->error = 0;
	if (w->data != NULL)
		w->data[0] = '\0';
}

int
jsonw_error(const struct jsonw *w)
{
	return w->error;
}

char *
jsonw_take(struct jsonw *w, size_t *lenp)
{
	char *text;

	if (lenp != NULL)
		*lenp = 0;
	if (w->error != 0 || w->data == NULL)
		return NULL;
	text = w->data;
	if (lenp != NULL)
		*lenp = w->len;
	w->data = NULL;
	w->cap = 0;
	jsonw_clear(w);
	return text;
}

/* Room for len more bytes and the NUL: 0 when there is none. */
static int
jsonw_reserve(struct jsonw *w, size_t len)
{
	size_t cap;
	char *p;

	if (w->error != 0)
		return 0;
	if (len > w->max - w->len) {
		w->error = CL_TOOBIG;
		return 0;
	}
	if (w->data != NULL && len < w->cap - w->len)
		return 1;
	cap = w->cap < JSONW_MIN_CAP ? JSONW_MIN_CAP : w->cap;
	while (cap - w->len <= len)
		cap *= 2;
	/* recallocarray wipes what it gives back: the text may be secret. */
	p = recallocarray(w->data, w->cap, cap, 1);
	if (p == NULL) {
		w->error = CL_NOMEM;
		return 0;
	}
	w->data = p;
	w->cap = cap;
	return 1;
}

static void
jsonw_add(struct jsonw *w, const void *p, size_t len)
{
	if (!jsonw_reserve(w, len))
		return;
	memcpy(w->data + w->len, p, len);
	w->len += len;
	w->data[w->len] = '\0';
}

static void
jsonw_add_char(struct jsonw *w, char c)
{
	jsonw_add(w, &c, 1);
}

/* The comma before an element, and the note that the next one needs one. */
static void
jsonw_start_value(struct jsonw *w)
{
	if (w->comma)
		jsonw_add_char(w, ',');
	w->comma = 1;
}

static void
jsonw_open(struct jsonw *w, char c)
{
	jsonw_start_value(w);
	jsonw_add_char(w, c);
	w->comma = 0;
}

static void
jsonw_close(struct jsonw *w, char c)
{
	jsonw_add_char(w, c);
	w->comma = 1;
}

void
jsonw_open_object(struct jsonw *w)
{
	jsonw_open(w, '{');
}

void
jsonw_close_object(struct jsonw *w)
{
	jsonw_close(w, '}');
}

void
jsonw_open_array(struct jsonw *w)
{
	jsonw_open(w, '[');
}

void
jsonw_close_array(struct jsonw *w)
{
	jsonw_close(w, ']');
}

/* Bytes of a string by what they need; output goes through here. */
#define JW_ESCAPE 1	/* always escaped */
#define JW_HTML 2	/* escaped unless JSONW_NO_HTML */
#define JW_HIGH 4	/* copied when all of the text is UTF-8 */
#define JW_E2 8		/* may begin U+2028 or U+2029 */
static const unsigned char jsonw_class[256] = {
	[0 ... 0x1f] = JW_ESCAPE, ['"'] = JW_ESCAPE, ['\\'] = JW_ESCAPE,
	['<'] = JW_HTML, ['>'] = JW_HTML, ['&'] = JW_HTML,
	[0x80 ... 0xe1] = JW_HIGH, [0xe2] = JW_E2, [0xe3 ... 0xff] = JW_HIGH
};

/* Length of the code point at p, 0 when it is not UTF-8. */
static size_t
jsonw_rune_len(const unsigned char *p, size_t left)
{
	size_t n = *p >= 0xf0 ? 4 : *p >= 0xe0 ? 3 : 2;

	return n <= left && utf8_is_valid(p, n) ? n : 0;
}

static void
jsonw_add_ascii(struct jsonw *w, unsigned char c)
{
	static const char shorts[] = "\"\"\\\\\bb\ff\nn\rr\tt";
	static const char hex[] = "0123456789abcdef";
	char esc[6] = { '\\', 'u', '0', '0', hex[c >> 4], hex[c & 15] };
	size_t i;

	for (i = 0; i + 1 < sizeof(shorts); i += 2) {
		if ((unsigned char)shorts[i] != c)
			continue;
		esc[1] = shorts[i + 1];
		jsonw_add(w, esc, 2);
		return;
	}
	jsonw_add(w, esc, 6);
}

/* One byte or code point that is not plain; returns its length. */
static size_t
jsonw_add_special(struct jsonw *w, const unsigned char *p, size_t left)
{
	size_t n;

	if (*p < 0x80) {
		jsonw_add_ascii(w, *p);
		return 1;
	}
	if ((n = jsonw_rune_len(p, left)) == 0) {
		jsonw_add(w, "\\ufffd", 6);
		return 1;
	}
	if (n == 3 && memcmp(p, "\xe2\x80\xa8", 3) == 0)
		jsonw_add(w, "\\u2028", 6);
	else if (n == 3 && memcmp(p, "\xe2\x80\xa9", 3) == 0)
		jsonw_add(w, "\\u2029", 6);
	else
		jsonw_add(w, p, n);
	return n;
}

static void
jsonw_add_quoted(struct jsonw *w, const void *text, size_t len)
{
	const unsigned char *p = text;
	unsigned int special = JW_ESCAPE | JW_E2;
	size_t i = 0, run;

	if ((w->flags & JSONW_NO_HTML) == 0)
		special |= JW_HTML;
	if (len > 0 && !utf8_is_valid(p, len))
		special |= JW_HIGH;
	jsonw_add_char(w, '"');
	while (i < len && w->error == 0) {
		run = i;
		while (run < len && (jsonw_class[p[run]] & special) == 0)
			run++;
		if (run > i)
			jsonw_add(w, p + i, run - i);
		i = run;
		if (i < len)
			i += jsonw_add_special(w, p + i, len - i);
	}
	jsonw_add_char(w, '"');
}

void
jsonw_put_key(struct jsonw *w, const char *key)
{
	jsonw_start_value(w);
	jsonw_add_quoted(w, key, strlen(key));
	jsonw_add_char(w, ':');
	w->comma = 0;
}

void
jsonw_put_text(struct jsonw *w, const void *p, size_t len)
{
	jsonw_start_value(w);
	jsonw_add_quoted(w, p, len);
}

void
jsonw_put_str(struct jsonw *w, const char *s)
{
	if (s == NULL)
		s = "";
	jsonw_put_text(w, s, strlen(s));
}

void
jsonw_put_bytes(struct jsonw *w, const void *p, size_t len)
{
	jsonw_start_value(w);
	jsonw_add_char(w, '"');
	if (len > w->max)
		w->error = w->error != 0 ? w->error : CL_TOOBIG;
	else if (len > 0 && jsonw_reserve(w, B64_LEN(len)))
		w->len += b64_encode(p, len, w->data + w->len);
	jsonw_add_char(w, '"');
}

void
jsonw_put_raw(struct jsonw *w, const char *text, size_t len)
{
	jsonw_start_value(w);
	jsonw_add(w, text, len);
}

/* Decimal digits, by hand: three numbers go out with every chunk. */
static void
jsonw_put_digits(struct jsonw *w, int minus, uint64_t v)
{
	char num[24];
	size_t i = sizeof(num);

	do {
		num[--i] = (char)('0' + v % 10);
		v /= 10;
	} while (v != 0);
	if (minus)
		num[--i] = '-';
	jsonw_put_raw(w, num + i, sizeof(num) - i);
}

void
jsonw_put_int(struct jsonw *w, int64_t v)
{
	/* Unsigned arithmetic: -INT64_MIN does not fit an int64_t. */
	jsonw_put_digits(w, v < 0, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

void
jsonw_put_uint(struct jsonw *w, uint64_t v)
{
	jsonw_put_digits(w, 0, v);
}

void
jsonw_put_bool(struct jsonw *w, int v)
{
	jsonw_put_raw(w, v ? "true" : "false", v ? 4 : 5);
}

void
jsonw_put_null(struct jsonw *w)
{
	jsonw_put_raw(w, "null", 4);
}

void
jsonw_put_time(struct jsonw *w, int64_t wall_ns)
{
	char text[UTIL_TIME_MAX];

	util_format_time(wall_ns, text);
	jsonw_put_str(w, text);
}
