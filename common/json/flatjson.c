/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Flat JSON objects.  Runs in the device monitor and in the hub's tools, as
 * root, on files that only root or the service user can have written and on
 * bundles an operator handed over; it trusts none of them.  There is no
 * recursion and no nesting; the only allocations are one per member name
 * and one per value, bounded by the length of the document.  Whatever is
 * not exactly a flat object is refused: a damaged credential must be
 * noticed, not guessed at.
 */
#include <stdlib.h>
#include <string.h>

#include <bsd/stdlib.h>

#include "flatjson.h"
#include "common/base/err.h"
#include "common/base/utf8.h"

struct reader {
	const char *p;
	const char *end;
};

void
flatjson_init(struct flatjson *doc)
{
	memset(doc, 0, sizeof(*doc));
}

static void
flatjson_clear_member(struct flatjson_member *m)
{
	if (m->key != NULL)
		freezero(m->key, strlen(m->key));
	if (m->value != NULL)
		freezero(m->value, strlen(m->value));
	memset(m, 0, sizeof(*m));
}

void
flatjson_clear(struct flatjson *doc)
{
	size_t i;

	if (doc == NULL)
		return;
	for (i = 0; i < doc->nmembers; i++)
		flatjson_clear_member(&doc->member[i]);
	doc->nmembers = 0;
}

static void
flatjson_skip_space(struct reader *rd)
{
	while (rd->p < rd->end && strchr(" \t\r\n", *rd->p) != NULL &&
	    *rd->p != '\0')
		rd->p++;
}

/* Consume one expected byte. */
static int
flatjson_skip_byte(struct reader *rd, char c)
{
	if (rd->p >= rd->end || *rd->p != c)
		return CL_FORMAT;
	rd->p++;
	return CL_OK;
}

static int
flatjson_parse_hex4(struct reader *rd, unsigned int *vp)
{
	unsigned int v = 0;
	const char *digits = "0123456789abcdef", *d;
	int i, c;

	*vp = 0;
	if (rd->end - rd->p < 4)
		return CL_FORMAT;
	for (i = 0; i < 4; i++) {
		c = (unsigned char)*rd->p++;
		if (c >= 'A' && c <= 'F')
			c += 'a' - 'A';
		if (c == '\0' || (d = strchr(digits, c)) == NULL)
			return CL_FORMAT;
		v = v << 4 | (unsigned int)(d - digits);
	}
	*vp = v;
	return CL_OK;
}

/* One code point as UTF-8; dst has room for four bytes. */
static size_t
flatjson_put_rune(unsigned int v, char *dst)
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

/*
 * After the backslash and the u.  A NUL would end the C string early and a
 * lone surrogate has no UTF-8 form: both are refused.
 */
static int
flatjson_parse_unicode(struct reader *rd, char *dst, size_t *np)
{
	unsigned int hi, lo;

	*np = 0;
	if (flatjson_parse_hex4(rd, &hi) != 0 || hi == 0)
		return CL_FORMAT;
	if (hi >= 0xdc00 && hi < 0xe000)
		return CL_FORMAT;
	if (hi >= 0xd800 && hi < 0xdc00) {
		if (flatjson_skip_byte(rd, '\\') != 0 ||
		    flatjson_skip_byte(rd, 'u') != 0 ||
		    flatjson_parse_hex4(rd, &lo) != 0 ||
		    lo < 0xdc00 || lo >= 0xe000)
			return CL_FORMAT;
		hi = 0x10000 + ((hi - 0xd800) << 10) + (lo - 0xdc00);
	}
	*np = flatjson_put_rune(hi, dst);
	return CL_OK;
}

static int
flatjson_parse_escape(struct reader *rd, char *dst, size_t *np)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *e;
	char c;

	*np = 0;
	if (rd->p >= rd->end)
		return CL_FORMAT;
	c = *rd->p++;
	if (c == 'u')
		return flatjson_parse_unicode(rd, dst, np);
	if (c == '\0' || (e = strchr(from, c)) == NULL)
		return CL_FORMAT;
	*dst = to[e - from];
	*np = 1;
	return CL_OK;
}

static int
flatjson_parse_string(struct reader *rd, char **sp)
{
	char *s, *o;
	size_t max, n;
	int r = CL_FORMAT;

	*sp = NULL;
	if (flatjson_skip_byte(rd, '"') != 0)
		return CL_FORMAT;
	/* An escape is never shorter than what it stands for. */
	max = (size_t)(rd->end - rd->p) + 1;
	if ((s = calloc(1, max)) == NULL)
		return CL_NOMEM;
	for (o = s; rd->p < rd->end && *rd->p != '"'; o += n) {
		n = 1;
		r = CL_FORMAT;
		if ((unsigned char)*rd->p < 0x20)
			goto out;
		if (*rd->p != '\\') {
			*o = *rd->p++;
			continue;
		}
		rd->p++;
		if ((r = flatjson_parse_escape(rd, o, &n)) != 0)
			goto out;
	}
	if ((r = flatjson_skip_byte(rd, '"')) != 0)
		goto out;
	if ((*sp = strdup(s)) == NULL)
		r = CL_NOMEM;
 out:
	freezero(s, max);
	return r;
}

static size_t
flatjson_skip_digits(struct reader *rd)
{
	const char *p = rd->p;

	while (rd->p < rd->end && *rd->p >= '0' && *rd->p <= '9')
		rd->p++;
	return (size_t)(rd->p - p);
}

static int
flatjson_skip_number(struct reader *rd)
{
	const char *p;
	size_t n;

	(void)flatjson_skip_byte(rd, '-');
	p = rd->p;
	n = flatjson_skip_digits(rd);
	if (n == 0 || (n > 1 && *p == '0'))
		return CL_FORMAT;
	if (flatjson_skip_byte(rd, '.') == 0 && flatjson_skip_digits(rd) == 0)
		return CL_FORMAT;
	if (flatjson_skip_byte(rd, 'e') == 0 ||
	    flatjson_skip_byte(rd, 'E') == 0) {
		if (flatjson_skip_byte(rd, '+') != 0)
			(void)flatjson_skip_byte(rd, '-');
		if (flatjson_skip_digits(rd) == 0)
			return CL_FORMAT;
	}
	return CL_OK;
}

/* A number, true, false or null: kept as its own text. */
static int
flatjson_parse_scalar(struct reader *rd, char **sp)
{
	static const char *const words[] = { "true", "false", "null" };
	const char *p = rd->p;
	size_t i, n;

	*sp = NULL;
	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		n = strlen(words[i]);
		if ((size_t)(rd->end - rd->p) >= n &&
		    memcmp(rd->p, words[i], n) == 0) {
			rd->p += n;
			break;
		}
	}
	if (rd->p == p && flatjson_skip_number(rd) != 0)
		return CL_FORMAT;
	*sp = strndup(p, (size_t)(rd->p - p));
	return *sp == NULL ? CL_NOMEM : CL_OK;
}

static struct flatjson_member *
flatjson_find_member(const struct flatjson *doc, const char *key)
{
	size_t i;

	for (i = 0; i < doc->nmembers; i++)
		if (strcmp(doc->member[i].key, key) == 0)
			return (struct flatjson_member *)&doc->member[i];
	return NULL;
}

static int
flatjson_parse_member(struct reader *rd, struct flatjson *doc)
{
	struct flatjson_member *m;
	char *key;
	int r;

	if (doc->nmembers == FLATJSON_MAX_MEMBERS)
		return CL_TOOBIG;
	flatjson_skip_space(rd);
	if ((r = flatjson_parse_string(rd, &key)) != 0)
		return r;
	if (flatjson_find_member(doc, key) != NULL) {
		freezero(key, strlen(key));
		return CL_FORMAT;
	}
	m = &doc->member[doc->nmembers++];
	m->key = key;
	flatjson_skip_space(rd);
	if ((r = flatjson_skip_byte(rd, ':')) != 0)
		return r;
	flatjson_skip_space(rd);
	m->is_string = rd->p < rd->end && *rd->p == '"';
	if (m->is_string)
		r = flatjson_parse_string(rd, &m->value);
	else
		r = flatjson_parse_scalar(rd, &m->value);
	flatjson_skip_space(rd);
	return r;
}

static int
flatjson_parse_object(struct reader *rd, struct flatjson *doc)
{
	int r;

	flatjson_skip_space(rd);
	if ((r = flatjson_skip_byte(rd, '{')) != 0)
		return r;
	flatjson_skip_space(rd);
	if (flatjson_skip_byte(rd, '}') != 0) {
		do {
			if ((r = flatjson_parse_member(rd, doc)) != 0)
				return r;
		} while (flatjson_skip_byte(rd, ',') == 0);
		if ((r = flatjson_skip_byte(rd, '}')) != 0)
			return r;
	}
	flatjson_skip_space(rd);
	return rd->p == rd->end ? CL_OK : CL_FORMAT;
}

int
flatjson_parse(const void *p, size_t len, struct flatjson *doc)
{
	struct reader rd = { p, (const char *)p + len };
	int r;

	flatjson_init(doc);
	if (len > FLATJSON_MAX_LEN)
		return CL_TOOBIG;
	if (!utf8_is_valid(p, len))
		return CL_FORMAT;
	if ((r = flatjson_parse_object(&rd, doc)) != 0)
		flatjson_clear(doc);
	return r;
}

int
flatjson_find_string(const struct flatjson *doc, const char *key,
    const char **sp)
{
	const struct flatjson_member *m = flatjson_find_member(doc, key);

	*sp = NULL;
	if (m == NULL || (!m->is_string && strcmp(m->value, "null") == 0))
		return CL_NOTFOUND;
	if (!m->is_string)
		return CL_FORMAT;
	*sp = m->value;
	return CL_OK;
}

int
flatjson_put_string(struct flatjson *doc, const char *key, const char *value)
{
	struct flatjson_member *m = flatjson_find_member(doc, key), fresh;

	memset(&fresh, 0, sizeof(fresh));
	if (m == NULL && doc->nmembers == FLATJSON_MAX_MEMBERS)
		return CL_TOOBIG;
	fresh.is_string = 1;
	if ((fresh.key = strdup(key)) == NULL ||
	    (fresh.value = strdup(value)) == NULL) {
		flatjson_clear_member(&fresh);
		return CL_NOMEM;
	}
	if (m != NULL)
		flatjson_clear_member(m);
	else
		m = &doc->member[doc->nmembers++];
	*m = fresh;
	return CL_OK;
}

void
flatjson_del_member(struct flatjson *doc, const char *key)
{
	struct flatjson_member *m = flatjson_find_member(doc, key);

	if (m == NULL)
		return;
	flatjson_clear_member(m);
	doc->nmembers--;
	memmove(m, m + 1,
	    (size_t)(&doc->member[doc->nmembers] - m) * sizeof(*m));
	memset(&doc->member[doc->nmembers], 0, sizeof(*m));
}

/* A growing text: with dst NULL only the length is counted. */
struct writer {
	char *dst;
	size_t len;
};

static void
flatjson_put_raw(struct writer *w, const char *s, size_t len)
{
	if (w->dst != NULL)
		memcpy(w->dst + w->len, s, len);
	w->len += len;
}

static void
flatjson_put_text(struct writer *w, const char *s)
{
	flatjson_put_raw(w, s, strlen(s));
}

/* \u00XX for what Go's encoder does not write literally. */
static void
flatjson_put_unicode(struct writer *w, unsigned int v)
{
	static const char digits[] = "0123456789abcdef";
	char text[6] = { '\\', 'u', digits[v >> 12 & 15], digits[v >> 8 & 15],
	    digits[v >> 4 & 15], digits[v & 15] };

	flatjson_put_raw(w, text, sizeof(text));
}

static void
flatjson_put_quoted(struct writer *w, const char *s)
{
	flatjson_put_text(w, "\"");
	for (; *s != '\0'; s++) {
		if (*s == '"' || *s == '\\') {
			flatjson_put_raw(w, "\\", 1);
			flatjson_put_raw(w, s, 1);
		} else if (*s == '\n')
			flatjson_put_text(w, "\\n");
		else if (*s == '\r')
			flatjson_put_text(w, "\\r");
		else if (*s == '\t')
			flatjson_put_text(w, "\\t");
		else if ((unsigned char)*s < 0x20 || *s == '<' || *s == '>' ||
		    *s == '&')
			flatjson_put_unicode(w, (unsigned char)*s);
		else if (strncmp(s, "\xe2\x80\xa8", 3) == 0 ||
		    strncmp(s, "\xe2\x80\xa9", 3) == 0) {
			flatjson_put_unicode(w, s[2] == '\xa8' ? 0x2028 :
			    0x2029);
			s += 2;
		} else
			flatjson_put_raw(w, s, 1);
	}
	flatjson_put_text(w, "\"");
}

static void
flatjson_put_doc(struct writer *w, const struct flatjson *doc,
    unsigned int indent)
{
	const struct flatjson_member *m;
	unsigned int n;
	size_t i;

	flatjson_put_text(w, "{");
	for (i = 0; i < doc->nmembers; i++) {
		m = &doc->member[i];
		flatjson_put_text(w, i > 0 ? "," : "");
		flatjson_put_text(w, indent > 0 ? "\n" : "");
		for (n = 0; n < indent; n++)
			flatjson_put_text(w, " ");
		flatjson_put_quoted(w, m->key);
		flatjson_put_text(w, indent > 0 ? ": " : ":");
		if (m->is_string)
			flatjson_put_quoted(w, m->value);
		else
			flatjson_put_text(w, m->value);
	}
	if (indent > 0 && doc->nmembers > 0)
		flatjson_put_text(w, "\n");
	flatjson_put_text(w, indent > 0 ? "}\n" : "}");
}

int
flatjson_format(const struct flatjson *doc, unsigned int indent, char **textp,
    size_t *lenp)
{
	struct writer w = { NULL, 0 };
	char *text;

	*textp = NULL;
	*lenp = 0;
	flatjson_put_doc(&w, doc, indent);
	if ((text = calloc(1, w.len + 1)) == NULL)
		return CL_NOMEM;
	w.dst = text;
	w.len = 0;
	flatjson_put_doc(&w, doc, indent);
	*textp = text;
	*lenp = w.len;
	return CL_OK;
}
