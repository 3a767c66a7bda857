/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Filling a struct from scanned JSON by its field table, with Go's rules:
 * null is the zero value, unknown members are ignored, keys match as Go
 * folds them, integers are integers, wrong types are errors.  Runs in
 * unprivileged network processes.  Every count and length is held against
 * the table before memory is allocated for it.
 */
#include "json.h"

#include <bsd/stdlib.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/b64.h"
#include "common/base/err.h"
#include "common/base/secret.h"
#include "common/base/utf8.h"
#include "common/base/util.h"
#include "common/msg/field.h"

#define AT(type, v, off) (*(type *)(void *)((char *)(v) + (off)))
#define JX_TIME_MAX 64		/* longest RFC 3339 text worth parsing */
#define JX_TEXT_MAX (3 * (size_t)1048576)	/* of a whole frame */
#define JX_CUT_MARK " [cut]"

static int jx_decode_rows(struct jx *, uint32_t, const struct field_table *,
    void *);

/* Put a path element in front of why. */
static int
jx_in_member(struct jx *x, int r, const char *name)
{
	char why[sizeof(x->why)];
	/* "name: text", "name.inner", "name[2]" */
	const char *dot = x->why[0] == '[' || x->why[0] == ':' ? "" : ".";

	if (r == CL_OK)
		return r;
	snprintf(why, sizeof(why), "%s%s%.150s", name, dot, x->why);
	memcpy(x->why, why, sizeof(why));
	return r;
}

static int
jx_in_element(struct jx *x, int r, size_t i)
{
	char name[32];

	snprintf(name, sizeof(name), "[%zu]", i);
	return jx_in_member(x, r, name);
}

/* The reason for the member itself; an empty one is the code's own. */
static int
jx_refuse(struct jx *x, int r, const char *what)
{
	if (r == CL_OK)
		return r;
	if (r == CL_TOOBIG)
		what = "too long";
	else if (r == CL_NOMEM)
		what = "out of memory";
	return jx_fail(x, r, ": %s", what);
}

static int
jx_decode_text(struct jx *x, uint32_t at, const struct field *f,
    struct field_text *text)
{
	return jx_refuse(x, jx_get_string(x, at, f->max, &text->data,
	    &text->len, &text->nreplaced), "not a string");
}

/* Prose from a peer: what a terminal could trip over goes, the rest stays. */
static void
jx_clean_prose(char **sp, size_t len, size_t max)
{
	char *s = *sp, *exact;
	size_t i, n;

	for (i = 0; i < len; i++) {
		if (((unsigned char)s[i] < 0x20 && s[i] != '\n' &&
		    s[i] != '\t') || s[i] == 0x7f)
			s[i] = ' ';
	}
	if (len <= max)
		return;
	n = max - strlen(JX_CUT_MARK);
	n = utf8_cut(s, n);
	memset(s + n, 0, len - n);
	memcpy(s + n, JX_CUT_MARK, strlen(JX_CUT_MARK));
	if ((exact = realloc(s, max + 1)) != NULL)
		*sp = exact;
}

/* A C string; "" becomes NULL when nullable. */
static int
jx_decode_cstr(struct jx *x, uint32_t at, const struct field *f, int nullable,
    char **sp)
{
	int prose = (f->flags & FIELD_PROSE) != 0, r;
	size_t len;

	r = jx_get_string(x, at, prose ? JX_TEXT_MAX : f->max, sp, &len, NULL);
	if (r != CL_OK)
		return jx_refuse(x, r, "not a string");
	if (prose && *sp != NULL)
		jx_clean_prose(sp, len, f->max);
	/* A C string would end here, and mean something else. */
	if (*sp != NULL && !prose && strlen(*sp) != len) {
		freezero(*sp, len);
		*sp = NULL;
		return jx_refuse(x, CL_FORMAT, "holds a NUL");
	}
	if (nullable && *sp != NULL && len == 0) {
		free(*sp);
		*sp = NULL;
	}
	if (!nullable && *sp == NULL && (*sp = strdup("")) == NULL)
		return jx_refuse(x, CL_NOMEM, "");
	return CL_OK;
}

/* Owned bytes of a base64 string, a NUL behind them; NULL for null. */
static int
jx_decode_bytes(struct jx *x, uint32_t at, const struct field *f,
    uint8_t **datap, size_t *lenp)
{
	size_t len, room, n = 0;
	uint8_t *data, *exact;
	char *text;
	int r;

	*datap = NULL;
	*lenp = 0;
	r = jx_get_string(x, at, JX_TEXT_MAX, &text, &len, NULL);
	if (r != CL_OK || text == NULL)
		return jx_refuse(x, r, "not a base64 string");
	room = len / 4 * 3 + 3;
	if (room > f->max)
		room = f->max;
	if ((data = malloc(room + 1)) == NULL) {
		freezero(text, len);
		return jx_refuse(x, CL_NOMEM, "");
	}
	r = b64_decode(text, len, data, room, &n);
	freezero(text, len);
	if (r != CL_OK) {
		freezero(data, room);
		return jx_refuse(x, r, "not base64");
	}
	data[n] = '\0';
	/* A text padded with newlines must not pin its size. */
	if (n < room && (exact = realloc(data, n + 1)) != NULL)
		data = exact;
	*datap = data;
	*lenp = n;
	return CL_OK;
}

static int
jx_decode_secret(struct jx *x, uint32_t at, const struct field *f,
    struct secret *s)
{
	uint8_t *data = NULL;
	char *text = NULL;
	size_t len = 0;
	int r;

	if (f->kind == FIELD_SBYTES) {
		r = jx_decode_bytes(x, at, f, &data, &len);
	} else {
		r = jx_refuse(x, jx_get_string(x, at, f->max, &text, &len,
		    NULL), "not a string");
		data = (uint8_t *)text;
	}
	if (r != CL_OK || data == NULL)
		return r;
	r = jx_refuse(x, secret_init(s, data, len, f->max), "");
	freezero(data, len);
	return r;
}

static int
jx_decode_int(struct jx *x, uint32_t at, const struct field *f, int64_t *vp)
{
	int r = jx_get_int(x, at, vp);

	if (r == CL_OK && (*vp < f->min ||
	    (*vp > 0 && (uint64_t)*vp > f->max)))
		return jx_fail(x, CL_FORMAT, ": %lld is out of range",
		    (long long)*vp);
	return jx_refuse(x, r, "not an integer");
}

static int
jx_decode_uint(struct jx *x, uint32_t at, const struct field *f,
    uint64_t *vp)
{
	int r = jx_get_uint(x, at, vp);

	if (r == CL_OK && *vp > f->max)
		return jx_fail(x, CL_FORMAT, ": %llu is out of range",
		    (unsigned long long)*vp);
	return jx_refuse(x, r, "not an unsigned integer");
}

static int
jx_decode_bool(struct jx *x, uint32_t at, int *vp)
{
	uint8_t type = x->tokens[at].type;

	*vp = type == JX_TRUE;
	if (type != JX_TRUE && type != JX_FALSE && type != JX_NULL)
		return jx_refuse(x, CL_FORMAT, "not a bool");
	return CL_OK;
}

static int
jx_decode_time(struct jx *x, uint32_t at, int64_t *vp)
{
	const char *plain;
	char *text;
	size_t len;
	int r;

	if ((plain = jx_find_plain(x, at, &len)) != NULL)
		return jx_refuse(x, len > JX_TIME_MAX ? CL_FORMAT :
		    util_parse_time(plain, len, vp), "not a time");
	r = jx_get_string(x, at, JX_TIME_MAX, &text, &len, NULL);
	if (r == CL_OK && text != NULL)
		r = util_parse_time(text, len, vp);
	free(text);
	return jx_refuse(x, r == CL_TOOBIG ? CL_FORMAT : r, "not a time");
}

/*
 * Room for the elements of an array or the members of an object, zeroed.
 * *itemsp stays NULL for null.
 */
static int
jx_start_list(struct jx *x, uint32_t at, enum jx_type type,
    const struct field *f, size_t size, void **itemsp)
{
	const struct jx_token *t = &x->tokens[at];

	if (t->type == JX_NULL)
		return CL_OK;
	if (t->type != type)
		return jx_refuse(x, CL_FORMAT,
		    type == JX_ARRAY ? "not an array" : "not an object");
	if (t->n > f->nmax)
		return jx_fail(x, CL_TOOBIG, ": %u elements, at most %zu",
		    t->n, f->nmax);
	*itemsp = calloc(t->n > 0 ? t->n : 1, size);
	if (*itemsp == NULL)
		return jx_refuse(x, CL_NOMEM, "");
	return CL_OK;
}

static int
jx_decode_strs(struct jx *x, uint32_t at, const struct field *f, void *v)
{
	char ***listp = &AT(char **, v, f->off);
	size_t *np = &AT(size_t, v, f->noff), i;
	uint32_t n = x->tokens[at].n, el = at + 1;
	int r;

	r = jx_start_list(x, at, JX_ARRAY, f, sizeof(char *), (void **)listp);
	if (r != CL_OK || *listp == NULL)
		return r;
	for (i = 0; i < n; i++, el = x->tokens[el].next) {
		r = jx_decode_cstr(x, el, f, 0, &(*listp)[i]);
		if (r != CL_OK)
			return jx_in_element(x, r, i);
		*np = i + 1;
	}
	return CL_OK;
}

static int
jx_decode_ints(struct jx *x, uint32_t at, const struct field *f, void *v)
{
	int64_t **listp = &AT(int64_t *, v, f->off);
	size_t *np = &AT(size_t, v, f->noff), i;
	uint32_t n = x->tokens[at].n, el = at + 1;
	int r;

	r = jx_start_list(x, at, JX_ARRAY, f, sizeof(int64_t),
	    (void **)listp);
	if (r != CL_OK || *listp == NULL)
		return r;
	for (i = 0; i < n; i++, el = x->tokens[el].next) {
		r = jx_decode_int(x, el, f, &(*listp)[i]);
		if (r != CL_OK)
			return jx_in_element(x, r, i);
		*np = i + 1;
	}
	return CL_OK;
}

static int
jx_decode_map(struct jx *x, uint32_t at, const struct field *f, void *v)
{
	struct field_pair **listp = &AT(struct field_pair *, v, f->off);
	size_t *np = &AT(size_t, v, f->noff), i;
	uint32_t n = x->tokens[at].n, key = at + 1;
	int r;

	r = jx_start_list(x, at, JX_OBJECT, f, sizeof(struct field_pair),
	    (void **)listp);
	if (r != CL_OK || *listp == NULL)
		return r;
	for (i = 0; i < n; i++, key = x->tokens[key + 1].next) {
		/* Counted first: field_clear then frees half a pair too. */
		*np = i + 1;
		r = jx_decode_cstr(x, key, f, 0, &(*listp)[i].key);
		if (r == CL_OK)
			r = jx_decode_cstr(x, key + 1, f, 0,
			    &(*listp)[i].value);
		if (r != CL_OK)
			return jx_in_element(x, r, i);
	}
	field_sort_map(*listp, n);
	return CL_OK;
}

static int
jx_decode_list(struct jx *x, uint32_t at, const struct field *f, void *v)
{
	char **listp = &AT(char *, v, f->off);
	size_t *np = &AT(size_t, v, f->noff), i;
	uint32_t n = x->tokens[at].n, el = at + 1;
	char *item;
	int r;

	r = jx_start_list(x, at, JX_ARRAY, f, f->sub->size, (void **)listp);
	if (r != CL_OK || *listp == NULL)
		return r;
	for (i = 0; i < n; i++, el = x->tokens[el].next) {
		item = *listp + *np * f->sub->size;
		field_init(f->sub, item);
		++*np;
		r = jx_decode_rows(x, el, f->sub, item);
		if (r == CL_OK)
			continue;
		if (r == CL_NOMEM || (f->flags & FIELD_LAX) == 0)
			return jx_in_element(x, r, i);
		field_clear(f->sub, item);
		--*np;
	}
	return CL_OK;
}

static int
jx_decode_ptr(struct jx *x, uint32_t at, const struct field *f, void *v)
{
	void *p;
	int r;

	if (x->tokens[at].type == JX_NULL)
		return CL_OK;
	if ((p = malloc(f->sub->size)) == NULL)
		return jx_refuse(x, CL_NOMEM, "");
	field_init(f->sub, p);
	AT(void *, v, f->off) = p;
	r = jx_decode_rows(x, at, f->sub, p);
	if (r == CL_OK || r == CL_NOMEM || (f->flags & FIELD_LAX) == 0)
		return r;
	field_clear(f->sub, p);
	free(p);
	AT(void *, v, f->off) = NULL;
	return CL_OK;
}

static int
jx_decode_optint(struct jx *x, uint32_t at, const struct field *f,
    struct field_optint *opt)
{
	opt->set = x->tokens[at].type != JX_NULL;
	return jx_decode_int(x, at, f, &opt->v);
}

static int
jx_decode_value(struct jx *x, uint32_t at, const struct field *f, void *v)
{
	switch (f->kind) {
	case FIELD_STR:
	case FIELD_CSTR:
		return jx_decode_cstr(x, at, f, 1, &AT(char *, v, f->off));
	case FIELD_RAW:
		return jx_refuse(x, jx_get_raw(x, at, f->max,
		    &AT(char *, v, f->off)), "");
	case FIELD_SECRET:
	case FIELD_SBYTES:
		return jx_decode_secret(x, at, f,
		    &AT(struct secret, v, f->off));
	case FIELD_TEXT:
		return jx_decode_text(x, at, f,
		    &AT(struct field_text, v, f->off));
	case FIELD_BYTES:
		return jx_decode_bytes(x, at, f, &AT(uint8_t *, v, f->off),
		    &AT(size_t, v, f->noff));
	case FIELD_INT:
		return jx_decode_int(x, at, f, &AT(int64_t, v, f->off));
	case FIELD_UINT:
		return jx_decode_uint(x, at, f, &AT(uint64_t, v, f->off));
	case FIELD_BOOL:
		return jx_decode_bool(x, at, &AT(int, v, f->off));
	case FIELD_OPTINT:
		return jx_decode_optint(x, at, f,
		    &AT(struct field_optint, v, f->off));
	case FIELD_TIME:
		return jx_decode_time(x, at, &AT(int64_t, v, f->off));
	case FIELD_STRS:
		return jx_decode_strs(x, at, f, v);
	case FIELD_INTS:
		return jx_decode_ints(x, at, f, v);
	case FIELD_MAP:
		return jx_decode_map(x, at, f, v);
	case FIELD_OBJ:
		return jx_decode_rows(x, at, f->sub, (char *)v + f->off);
	case FIELD_PTR:
		return jx_decode_ptr(x, at, f, v);
	case FIELD_LIST:
		return jx_decode_list(x, at, f, v);
	}
	return jx_fail(x, CL_INTERNAL, ": unknown kind");
}

/* The row a key names, or nrows; the search begins where the last ended,
 * for members come in table order. */
static size_t
jx_find_row(const struct jx *x, uint32_t key, const struct field *rows,
    size_t nrows, size_t hint)
{
	size_t i, k;

	for (i = 0; i < nrows; i++) {
		k = (hint + i) % nrows;
		if ((rows[k].flags & (FIELD_HIDDEN | FIELD_FOREIGN)) == 0 &&
		    jx_is_key(x, key, rows[k].key))
			return k;
	}
	return nrows;
}

static int
jx_decode_rows(struct jx *x, uint32_t at, const struct field_table *t,
    void *v)
{
	uint32_t n = x->tokens[at].n, key = at + 1, i;
	uint64_t seen = 0;
	size_t nrows, k = 0;
	const struct field *rows = t->get_rows(&nrows);
	int r = CL_OK;

	if (x->tokens[at].type == JX_NULL)
		return CL_OK;
	if (x->tokens[at].type != JX_OBJECT)
		return jx_refuse(x, CL_FORMAT, "not an object");
	if (nrows > 64)
		return jx_fail(x, CL_INTERNAL, ": table too large");
	for (i = 0; i < n; i++, key = x->tokens[key + 1].next) {
		k = jx_find_row(x, key, rows, nrows, k);
		if (k == nrows) {
			if (x->unknown != NULL && (r = x->unknown(x, t, v,
			    key, key + 1)) != CL_OK)
				return r;
			k = 0;
			continue;
		}
		/* "type" and "TYPE": peers that fold differently would read
		 * different values; refused like an exact duplicate. */
		if ((seen & (UINT64_C(1) << k)) != 0)
			return jx_in_member(x, jx_refuse(x, CL_FORMAT,
			    "given twice"), rows[k].key);
		seen |= UINT64_C(1) << k;
		r = jx_decode_value(x, key + 1, &rows[k], v);
		if (r != CL_OK)
			return jx_in_member(x, r, rows[k].key);
		k++;
	}
	return CL_OK;
}

int
jx_decode(struct jx *x, uint32_t at, const struct field_table *t, void *v)
{
	int r;

	field_init(t, v);
	x->why[0] = '\0';
	if (at >= x->ntokens)
		return jx_fail(x, CL_INTERNAL, "no such value");
	if ((r = jx_decode_rows(x, at, t, v)) != CL_OK)
		field_clear(t, v);
	return r;
}
