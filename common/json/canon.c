/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Canonical JSON, the one JSON reader that may run with privilege.  Its
 * grammar has exactly one spelling for each value: no white space, no signs,
 * fractions or exponents, one escape per character.  What it accepts,
 * canon_format() writes back byte for byte (the fuzz target holds it to
 * that).  No recursion goes deeper than MAX_CANON_DEPTH.
 */
#include "canon.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/utf8.h"
#include "common/msg/buf.h"

struct canon_pair {
	char *key;		/* NULL in an array */
	struct canon *value;
};

struct canon {
	enum canon_type type;
	int64_t number;		/* of CANON_INT, CANON_BOOL */
	char *text;		/* of CANON_STRING, NUL-terminated */
	size_t len;		/* of text */
	struct canon_pair *kids;
	size_t nkids, kids_cap;
};

/* ------------------------------------------------------------- building */

static struct canon *
canon_new(enum canon_type type)
{
	struct canon *v;

	if ((v = calloc(1, sizeof(*v))) != NULL)
		v->type = type;
	return v;
}

struct canon *
canon_new_null(void)
{
	return canon_new(CANON_NULL);
}

struct canon *
canon_new_bool(int b)
{
	struct canon *v;

	if ((v = canon_new(CANON_BOOL)) != NULL)
		v->number = b != 0;
	return v;
}

struct canon *
canon_new_int(int64_t n)
{
	struct canon *v;

	if ((v = canon_new(CANON_INT)) != NULL)
		v->number = n;
	return v;
}

struct canon *
canon_new_string(const char *s, size_t len)
{
	struct canon *v;

	if ((v = canon_new(CANON_STRING)) == NULL)
		return NULL;
	if ((v->text = malloc(len + 1)) == NULL) {
		free(v);
		return NULL;
	}
	if (len > 0)
		memcpy(v->text, s, len);
	v->text[len] = '\0';
	v->len = len;
	return v;
}

struct canon *
canon_new_array(void)
{
	return canon_new(CANON_ARRAY);
}

struct canon *
canon_new_object(void)
{
	return canon_new(CANON_OBJECT);
}

void
canon_free(struct canon *root)
{
	size_t i;

	if (root == NULL)
		return;
	for (i = 0; i < root->nkids; i++) {
		free(root->kids[i].key);
		canon_free(root->kids[i].value);
	}
	free(root->kids);
	free(root->text);
	free(root);
}

/* Takes key and v on success. */
static int
canon_add_kid(struct canon *parent, char *key, struct canon *v)
{
	struct canon_pair *kids;
	size_t cap;

	if (parent->nkids == parent->kids_cap) {
		cap = parent->kids_cap == 0 ? 8 : parent->kids_cap * 2;
		kids = reallocarray(parent->kids, cap, sizeof(*kids));
		if (kids == NULL)
			return CL_NOMEM;
		parent->kids = kids;
		parent->kids_cap = cap;
	}
	parent->kids[parent->nkids].key = key;
	parent->kids[parent->nkids++].value = v;
	return 0;
}

int
canon_add_element(struct canon *array, struct canon *v)
{
	if (array == NULL || v == NULL)
		return CL_NOMEM;	/* a constructor failed */
	if (array->type != CANON_ARRAY)
		return CL_FORMAT;
	return canon_add_kid(array, NULL, v);
}

/* Takes key and v on success.  The quadratic search is bounded. */
static int
canon_add_pair(struct canon *object, char *key, struct canon *v)
{
	const struct canon *found;

	if (object->nkids >= MAX_CANON_MEMBERS)
		return CL_LIMIT;
	if (canon_find_member(object, key, &found) == 0)
		return CL_EXISTS;
	return canon_add_kid(object, key, v);
}

int
canon_add_member(struct canon *object, const char *key, struct canon *v)
{
	char *copy;
	int r;

	if (object == NULL || v == NULL)
		return CL_NOMEM;
	if (object->type != CANON_OBJECT)
		return CL_FORMAT;
	if ((copy = strdup(key)) == NULL)
		return CL_NOMEM;
	if ((r = canon_add_pair(object, copy, v)) != 0)
		free(copy);
	return r;
}

/* ------------------------------------------------------------ accessors */

enum canon_type
canon_get_type(const struct canon *v)
{
	return v->type;
}

int
canon_get_bool(const struct canon *v, int *bp)
{
	*bp = 0;
	if (v->type != CANON_BOOL)
		return CL_FORMAT;
	*bp = (int)v->number;
	return 0;
}

int
canon_get_int(const struct canon *v, int64_t *np)
{
	*np = 0;
	if (v->type != CANON_INT)
		return CL_FORMAT;
	*np = v->number;
	return 0;
}

int
canon_get_string(const struct canon *v, const char **sp, size_t *lenp)
{
	*sp = NULL;
	if (lenp != NULL)
		*lenp = 0;
	if (v->type != CANON_STRING)
		return CL_FORMAT;
	*sp = v->text;
	if (lenp != NULL)
		*lenp = v->len;
	return 0;
}

size_t
canon_get_count(const struct canon *v)
{
	return v->nkids;
}

int
canon_get_element(const struct canon *v, size_t i, const struct canon **ep)
{
	*ep = NULL;
	if (v->type != CANON_ARRAY)
		return CL_FORMAT;
	if (i >= v->nkids)
		return CL_NOTFOUND;
	*ep = v->kids[i].value;
	return 0;
}

int
canon_get_member(const struct canon *v, size_t i, const char **keyp,
    const struct canon **mp)
{
	*keyp = NULL;
	*mp = NULL;
	if (v->type != CANON_OBJECT)
		return CL_FORMAT;
	if (i >= v->nkids)
		return CL_NOTFOUND;
	*keyp = v->kids[i].key;
	*mp = v->kids[i].value;
	return 0;
}

int
canon_find_member(const struct canon *v, const char *key,
    const struct canon **mp)
{
	size_t i;

	*mp = NULL;
	if (v->type != CANON_OBJECT)
		return CL_FORMAT;
	for (i = 0; i < v->nkids; i++)
		if (strcmp(v->kids[i].key, key) == 0) {
			*mp = v->kids[i].value;
			return 0;
		}
	return CL_NOTFOUND;
}

/* -------------------------------------------------------------- reading */

struct canon_reader {
	const char *p, *end;
	size_t nvalues;
};

static int canon_parse_value(struct canon_reader *rd, int depth,
    struct canon **vp);

static int
canon_has(struct canon_reader *rd, char c)
{
	if (rd->p == rd->end || *rd->p != c)
		return 0;
	rd->p++;
	return 1;
}

static int
canon_parse_word(struct canon_reader *rd, const char *word)
{
	size_t len = strlen(word);

	if (len > (size_t)(rd->end - rd->p) || memcmp(rd->p, word, len) != 0)
		return CL_FORMAT;
	rd->p += len;
	return 0;
}

static int
canon_parse_number(struct canon_reader *rd, struct canon **vp)
{
	const char *start = rd->p;
	int64_t n = 0;
	int digit;

	for (; rd->p != rd->end && *rd->p >= '0' && *rd->p <= '9'; rd->p++) {
		digit = *rd->p - '0';
		if (n > (INT64_MAX - digit) / 10)
			return CL_FORMAT;
		n = n * 10 + digit;
	}
	if (rd->p == start || (*start == '0' && rd->p - start > 1))
		return CL_FORMAT;
	*vp = canon_new_int(n);
	return *vp == NULL ? CL_NOMEM : 0;
}

/*
 * The escape after a backslash: the one spelling of its character.  \u0000
 * has no character: no string contains a NUL.
 */
static int
canon_parse_escape(struct canon_reader *rd, char *cp)
{
	static const char names[] = "\"\\btnfr";
	static const char chars[] = "\"\\\b\t\n\f\r";
	const char *name;
	int hi, lo;

	if (rd->p == rd->end)
		return CL_FORMAT;
	if (*rd->p != '\0' && (name = strchr(names, *rd->p)) != NULL) {
		rd->p++;
		*cp = chars[name - names];
		return 0;
	}
	if (rd->end - rd->p < 5 || memcmp(rd->p, "u00", 3) != 0)
		return CL_FORMAT;
	hi = (unsigned char)rd->p[3] - '0';
	lo = (unsigned char)rd->p[4];
	if (lo >= '0' && lo <= '9')
		lo -= '0';
	else if (lo >= 'a' && lo <= 'f')
		lo -= 'a' - 10;
	else
		return CL_FORMAT;
	if (hi < 0 || hi > 1 || (hi == 0 && lo == 0))
		return CL_FORMAT;
	*cp = (char)(hi << 4 | lo);
	/* What has a short form must use it. */
	if (strchr(chars, *cp) != NULL)
		return CL_FORMAT;
	rd->p += 5;
	return 0;
}

/* The text between quotes, owned by the caller. */
static int
canon_parse_text(struct canon_reader *rd, char **textp, size_t *lenp)
{
	const char *close, *start;
	char *text, *d;
	int r = CL_FORMAT;

	if (!canon_has(rd, '"'))
		return CL_FORMAT;
	/* The closing quote, so that the allocation is as long as it gets. */
	for (close = rd->p; close != rd->end && *close != '"'; close++)
		if (*close == '\\' && ++close == rd->end)
			return CL_FORMAT;
	if (close == rd->end)
		return CL_FORMAT;
	if ((text = d = malloc((size_t)(close - rd->p) + 1)) == NULL)
		return CL_NOMEM;
	while (rd->p != close) {
		if ((unsigned char)*rd->p < 0x20)
			goto fail;
		if (*rd->p != '\\') {
			for (start = rd->p; rd->p != close &&
			    *rd->p != '\\' && (unsigned char)*rd->p >= 0x20;)
				rd->p++;
			memcpy(d, start, (size_t)(rd->p - start));
			d += rd->p - start;
			continue;
		}
		rd->p++;
		if ((r = canon_parse_escape(rd, d++)) != 0)
			goto fail;
		r = CL_FORMAT;
	}
	rd->p++;
	*d = '\0';
	*lenp = (size_t)(d - text);
	*textp = text;
	return 0;
fail:
	free(text);
	return r;
}

static int
canon_parse_string(struct canon_reader *rd, struct canon **vp)
{
	struct canon *v;
	int r;

	if ((v = canon_new(CANON_STRING)) == NULL)
		return CL_NOMEM;
	if ((r = canon_parse_text(rd, &v->text, &v->len)) != 0) {
		free(v);
		return r;
	}
	*vp = v;
	return 0;
}

static int
canon_parse_array(struct canon_reader *rd, int depth, struct canon *array)
{
	struct canon *v;
	int r;

	if (canon_has(rd, ']'))
		return 0;
	do {
		if ((r = canon_parse_value(rd, depth + 1, &v)) != 0)
			return r;
		if ((r = canon_add_element(array, v)) != 0) {
			canon_free(v);
			return r;
		}
	} while (canon_has(rd, ','));
	return canon_has(rd, ']') ? 0 : CL_FORMAT;
}

static int
canon_parse_object(struct canon_reader *rd, int depth, struct canon *object)
{
	struct canon *v;
	char *key;
	size_t len;
	int r;

	if (canon_has(rd, '}'))
		return 0;
	do {
		if ((r = canon_parse_text(rd, &key, &len)) != 0)
			return r;
		v = NULL;
		if (!canon_has(rd, ':'))
			r = CL_FORMAT;
		else
			r = canon_parse_value(rd, depth + 1, &v);
		if (r == 0 && (r = canon_add_pair(object, key, v)) ==
		    CL_EXISTS)
			r = CL_FORMAT;		/* twice */
		if (r != 0) {
			free(key);
			canon_free(v);
			return r;
		}
	} while (canon_has(rd, ','));
	return canon_has(rd, '}') ? 0 : CL_FORMAT;
}

static int
canon_parse_scalar(struct canon_reader *rd, struct canon **vp)
{
	int r;

	switch (*rd->p) {
	case 'n':
		r = canon_parse_word(rd, "null");
		*vp = r == 0 ? canon_new_null() : NULL;
		break;
	case 't':
		r = canon_parse_word(rd, "true");
		*vp = r == 0 ? canon_new_bool(1) : NULL;
		break;
	case 'f':
		r = canon_parse_word(rd, "false");
		*vp = r == 0 ? canon_new_bool(0) : NULL;
		break;
	case '"':
		return canon_parse_string(rd, vp);
	default:
		return canon_parse_number(rd, vp);
	}
	return r == 0 && *vp == NULL ? CL_NOMEM : r;
}

static int
canon_parse_value(struct canon_reader *rd, int depth, struct canon **vp)
{
	struct canon *v;
	int r;

	*vp = NULL;
	if (rd->p == rd->end)
		return CL_FORMAT;
	if (++rd->nvalues > MAX_CANON_VALUES)
		return CL_LIMIT;
	if (*rd->p != '{' && *rd->p != '[')
		return canon_parse_scalar(rd, vp);
	if (depth > MAX_CANON_DEPTH)
		return CL_LIMIT;
	v = *rd->p == '{' ? canon_new_object() : canon_new_array();
	if (v == NULL)
		return CL_NOMEM;
	if (*rd->p++ == '{')
		r = canon_parse_object(rd, depth, v);
	else
		r = canon_parse_array(rd, depth, v);
	if (r != 0)
		canon_free(v);
	else
		*vp = v;
	return r;
}

int
canon_parse(const void *p, size_t len, struct canon **rootp)
{
	struct canon_reader rd = { .p = p, .end = (const char *)p + len };
	int r;

	*rootp = NULL;
	if (len > MAX_CANON_LEN)
		return CL_TOOBIG;
	/* Object, UTF-8; an unescaped NUL falls to the string grammar. */
	if (len == 0 || *rd.p != '{' || !utf8_is_valid(p, len))
		return CL_FORMAT;
	if ((r = canon_parse_value(&rd, 1, rootp)) != 0)
		return r;
	if (rd.p == rd.end)
		return 0;
	canon_free(*rootp);
	*rootp = NULL;
	return CL_FORMAT;
}

/* -------------------------------------------------------------- writing */

static void
canon_put_text(struct buf *b, const char *s)
{
	buf_put_raw(b, s, strlen(s));
}

static int
canon_put_string(struct buf *b, const char *s, size_t len)
{
	static const char hex[] = "0123456789abcdef";
	static const char names[] = "\"\\btnfr";
	static const char chars[] = "\"\\\b\t\n\f\r";
	char escape[] = "\\u00xx";
	const char *found;
	size_t i;

	if (!utf8_is_valid(s, len) || memchr(s, '\0', len) != NULL)
		return CL_FORMAT;
	buf_put_u8(b, '"');
	for (i = 0; i < len; i++) {
		if ((found = strchr(chars, s[i])) != NULL) {
			buf_put_u8(b, '\\');
			buf_put_u8(b, (uint8_t)names[found - chars]);
		} else if ((unsigned char)s[i] < 0x20) {
			escape[4] = hex[s[i] >> 4];
			escape[5] = hex[s[i] & 15];
			canon_put_text(b, escape);
		} else
			buf_put_u8(b, (uint8_t)s[i]);
	}
	buf_put_u8(b, '"');
	return 0;
}

static int
canon_put_int(struct buf *b, int64_t n)
{
	char digits[24];
	size_t i = sizeof(digits);

	if (n < 0)
		return CL_FORMAT;	/* no signs */
	do
		digits[--i] = (char)('0' + n % 10);
	while ((n /= 10) != 0);
	buf_put_raw(b, digits + i, sizeof(digits) - i);
	return 0;
}

static int canon_put_value(struct buf *b, const struct canon *v, int depth);

static int
canon_put_kids(struct buf *b, const struct canon *v, int depth)
{
	int is_object = v->type == CANON_OBJECT, r = 0;
	size_t i;

	if (depth > MAX_CANON_DEPTH)
		return CL_LIMIT;
	buf_put_u8(b, is_object ? '{' : '[');
	for (i = 0; i < v->nkids && r == 0; i++) {
		if (i > 0)
			buf_put_u8(b, ',');
		if (is_object) {
			r = canon_put_string(b, v->kids[i].key,
			    strlen(v->kids[i].key));
			buf_put_u8(b, ':');
		}
		if (r == 0)
			r = canon_put_value(b, v->kids[i].value, depth + 1);
	}
	buf_put_u8(b, is_object ? '}' : ']');
	return r;
}

static int
canon_put_value(struct buf *b, const struct canon *v, int depth)
{
	switch (v->type) {
	case CANON_NULL:
		canon_put_text(b, "null");
		return 0;
	case CANON_BOOL:
		canon_put_text(b, v->number ? "true" : "false");
		return 0;
	case CANON_INT:
		return canon_put_int(b, v->number);
	case CANON_STRING:
		return canon_put_string(b, v->text, v->len);
	default:
		return canon_put_kids(b, v, depth);
	}
}

int
canon_format(const struct canon *v, char **textp, size_t *lenp)
{
	struct buf b;
	int r;

	*textp = NULL;
	*lenp = 0;
	buf_init(&b, MAX_CANON_LEN + 1);
	r = canon_put_value(&b, v, 1);
	buf_put_u8(&b, '\0');
	if (r == 0)
		r = buf_error(&b);
	if (r == 0 && (*textp = malloc(b.len)) == NULL)
		r = CL_NOMEM;
	if (r == 0) {
		memcpy(*textp, b.data, b.len);
		*lenp = b.len - 1;
	}
	buf_clear(&b);
	return r;
}
