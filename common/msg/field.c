/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * What a field table does to the memory of a struct and to its message
 * form, see field.h (the JSON form is in field_json.c).  Runs in every
 * process.  A message comes from another process of ours that may have been
 * taken over: every length is checked against the table and against what is
 * left of the message before memory is allocated for it.
 */
#include "field.h"

#include <bsd/stdlib.h>

#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/secret.h"
#include "common/base/util.h"
#include "buf.h"

/* Members of v by their row. */
#define AT(type, v, off) (*(type *)(void *)((char *)(v) + (off)))
#define CAT(type, v, off)                                                      \
	(*(const type *)(const void *)((const char *)(v) + (off)))

static void field_clear_rows(const struct field_table *, void *);

/* Times of a zeroed struct, and of the structs embedded in it. */
static void
field_init_times(const struct field_table *t, void *v)
{
	size_t n, i;
	const struct field *f = t->get_rows(&n);

	for (i = 0; i < n; i++, f++) {
		if (f->kind == FIELD_TIME)
			AT(int64_t, v, f->off) = UTIL_TIME_ZERO;
		else if (f->kind == FIELD_OBJ)
			field_init_times(f->sub, (char *)v + f->off);
	}
}

void
field_init(const struct field_table *t, void *v)
{
	memset(v, 0, t->size);
	field_init_times(t, v);
}

static void
field_free_str(char *s)
{
	if (s != NULL)
		freezero(s, strlen(s));
}

static void
field_free_strs(char **list, size_t n)
{
	size_t i;

	if (list == NULL)
		return;
	for (i = 0; i < n; i++)
		field_free_str(list[i]);
	free(list);
}

static void
field_free_pairs(struct field_pair *pairs, size_t n)
{
	size_t i;

	if (pairs == NULL)
		return;
	for (i = 0; i < n; i++) {
		field_free_str(pairs[i].key);
		field_free_str(pairs[i].value);
	}
	free(pairs);
}

static void
field_free_list(const struct field_table *sub, char *items, size_t n)
{
	size_t i;

	if (items == NULL)
		return;
	for (i = 0; i < n; i++)
		field_clear_rows(sub, items + i * sub->size);
	free(items);
}

static void
field_clear_member(const struct field *f, void *v)
{
	struct field_text *text;

	switch (f->kind) {
	case FIELD_STR:
	case FIELD_CSTR:
	case FIELD_RAW:
		field_free_str(AT(char *, v, f->off));
		break;
	case FIELD_SECRET:
	case FIELD_SBYTES:
		secret_clear(&AT(struct secret, v, f->off));
		break;
	case FIELD_TEXT:
		text = &AT(struct field_text, v, f->off);
		freezero(text->data, text->len);
		break;
	case FIELD_BYTES:
		freezero(AT(uint8_t *, v, f->off), AT(size_t, v, f->noff));
		break;
	case FIELD_STRS:
		field_free_strs(AT(char **, v, f->off), AT(size_t, v, f->noff));
		break;
	case FIELD_INTS:
		free(AT(int64_t *, v, f->off));
		break;
	case FIELD_MAP:
		field_free_pairs(AT(struct field_pair *, v, f->off),
		    AT(size_t, v, f->noff));
		break;
	case FIELD_OBJ:
		field_clear_rows(f->sub, (char *)v + f->off);
		break;
	case FIELD_PTR:
		field_free_list(f->sub, AT(char *, v, f->off), 1);
		break;
	case FIELD_LIST:
		field_free_list(f->sub, AT(char *, v, f->off),
		    AT(size_t, v, f->noff));
		break;
	default:
		break;
	}
}

static void
field_clear_rows(const struct field_table *t, void *v)
{
	size_t n, i;
	const struct field *rows = t->get_rows(&n);

	for (i = 0; i < n; i++)
		field_clear_member(&rows[i], v);
}

void
field_clear(const struct field_table *t, void *v)
{
	field_clear_rows(t, v);
	field_init(t, v);
}

static int
field_compare_pairs(const void *a, const void *b)
{
	const struct field_pair *pa = a, *pb = b;

	return strcmp(pa->key, pb->key);
}

void
field_sort_map(struct field_pair *pairs, size_t n)
{
	if (n > 1)
		qsort(pairs, n, sizeof(*pairs), field_compare_pairs);
}

const char *
field_find_pair(const struct field_pair *pairs, size_t n, const char *key)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (strcmp(pairs[i].key, key) == 0)
			return pairs[i].value;
	}
	return NULL;
}

/* ------------------------------------------------------------- writing */

static void
field_set_error(struct buf *b, int r)
{
	if (b->error == 0)
		b->error = r;
}

static void
field_put_str(struct buf *b, const char *s, size_t max)
{
	if (s != NULL && strlen(s) > max)
		field_set_error(b, CL_TOOBIG);
	buf_put_str(b, s);
}

/* Bytes that may be nil: a flag in front of the blob. */
static void
field_put_data(struct buf *b, const void *p, size_t len, size_t max)
{
	if (len > max)
		field_set_error(b, CL_TOOBIG);
	buf_put_u8(b, p != NULL);
	buf_put_blob(b, p, len);
}

static void
field_put_int(struct buf *b, const struct field *f, int64_t v)
{
	if (v < f->min || (v > 0 && (uint64_t)v > f->max))
		field_set_error(b, CL_FORMAT);
	buf_put_i64(b, v);
}

/* A count that may be nil: n + 1, 0 for nil. */
static void
field_put_count(struct buf *b, const struct field *f, const void *p, size_t n)
{
	if (n > f->nmax)
		field_set_error(b, CL_LIMIT);
	buf_put_u32(b, p == NULL ? 0 : (uint32_t)n + 1);
}

static void
field_put_list(struct buf *b, const struct field *f, const void *v)
{
	const char *items = CAT(char *, v, f->off);
	size_t n = items == NULL ? 0 : CAT(size_t, v, f->noff), i;

	field_put_count(b, f, items, n);
	for (i = 0; i < n && b->error == 0; i++)
		field_put(f->sub, items + i * f->sub->size, b);
}

/* Lists of scalars and maps. */
static void
field_put_many(struct buf *b, const struct field *f, const void *v)
{
	const void *items = CAT(void *, v, f->off);
	size_t n = items == NULL ? 0 : CAT(size_t, v, f->noff), i;
	const struct field_pair *pair;

	field_put_count(b, f, items, n);
	for (i = 0; i < n && b->error == 0; i++) {
		if (f->kind == FIELD_INTS) {
			field_put_int(b, f, ((const int64_t *)items)[i]);
		} else if (f->kind == FIELD_STRS) {
			field_put_str(b, ((char *const *)items)[i], f->max);
		} else {
			pair = (const struct field_pair *)items + i;
			field_put_str(b, pair->key, f->max);
			field_put_str(b, pair->value, f->max);
		}
	}
}

static void
field_put_scalar(struct buf *b, const struct field *f, const void *v)
{
	const struct field_optint *opt;
	uint64_t u;

	switch (f->kind) {
	case FIELD_INT:
		field_put_int(b, f, CAT(int64_t, v, f->off));
		break;
	case FIELD_UINT:
		if ((u = CAT(uint64_t, v, f->off)) > f->max)
			field_set_error(b, CL_FORMAT);
		buf_put_u64(b, u);
		break;
	case FIELD_BOOL:
		buf_put_u8(b, CAT(int, v, f->off) != 0);
		break;
	case FIELD_OPTINT:
		opt = &CAT(struct field_optint, v, f->off);
		buf_put_u8(b, opt->set != 0);
		field_put_int(b, f, opt->set ? opt->v : 0);
		break;
	default:	/* FIELD_TIME */
		buf_put_i64(b, CAT(int64_t, v, f->off));
		break;
	}
}

static void
field_put_member(struct buf *b, const struct field *f, const void *v)
{
	const struct secret *secret;
	const struct field_text *text;
	const void *p;

	switch (f->kind) {
	case FIELD_STR:
	case FIELD_CSTR:
	case FIELD_RAW:
		field_put_str(b, CAT(char *, v, f->off), f->max);
		break;
	case FIELD_SECRET:
	case FIELD_SBYTES:
		secret = &CAT(struct secret, v, f->off);
		field_put_data(b, secret->data, secret->len, f->max);
		break;
	case FIELD_TEXT:
		text = &CAT(struct field_text, v, f->off);
		field_put_data(b, text->data, text->len, f->max);
		buf_put_u32(b, (uint32_t)text->nreplaced);
		break;
	case FIELD_BYTES:
		field_put_data(b, CAT(void *, v, f->off),
		    CAT(size_t, v, f->noff), f->max);
		break;
	case FIELD_STRS:
	case FIELD_INTS:
	case FIELD_MAP:
		field_put_many(b, f, v);
		break;
	case FIELD_OBJ:
		field_put(f->sub, (const char *)v + f->off, b);
		break;
	case FIELD_PTR:
		p = CAT(void *, v, f->off);
		buf_put_u8(b, p != NULL);
		if (p != NULL)
			field_put(f->sub, p, b);
		break;
	case FIELD_LIST:
		field_put_list(b, f, v);
		break;
	default:
		field_put_scalar(b, f, v);
		break;
	}
}

void
field_put(const struct field_table *t, const void *v, struct buf *b)
{
	size_t n, i;
	const struct field *rows = t->get_rows(&n);

	for (i = 0; i < n && b->error == 0; i++)
		field_put_member(b, &rows[i], v);
}

/* ------------------------------------------------------------- reading */

static int field_get_rows(const struct field_table *, struct buf *, void *);

static int
field_get_str(struct buf *b, size_t max, char **sp)
{
	char *s = buf_get_strdup(b, max);

	if (s == NULL)
		return b->error != 0 ? b->error : CL_NOMEM;
	/* "" is stored as NULL: one spelling of the zero value. */
	if (*s == '\0') {
		free(s);
		s = NULL;
	}
	*sp = s;
	return CL_OK;
}

/* The same, not NULL when empty: list elements, map parts, messages. */
static int
field_get_element(struct buf *b, size_t max, char **sp)
{
	*sp = buf_get_strdup(b, max);
	if (*sp == NULL)
		return b->error != 0 ? b->error : CL_NOMEM;
	return CL_OK;
}

/* *pp stays NULL when there is none. */
static int
field_get_blob(struct buf *b, size_t max, const void **pp, size_t *lenp)
{
	int present = buf_get_bool(b);
	const void *p = buf_get_blob(b, max, lenp);

	if (b->error != 0)
		return b->error;
	if (!present)
		return *lenp == 0 ? CL_OK : CL_FORMAT;
	*pp = *lenp > 0 ? p : "";
	return CL_OK;
}

/* Owned copy of a blob with a NUL behind it; NULL stays NULL. */
static int
field_get_data(struct buf *b, size_t max, uint8_t **datap, size_t *lenp)
{
	const void *p = NULL;
	uint8_t *copy;
	size_t len;
	int r;

	if ((r = field_get_blob(b, max, &p, &len)) != 0 || p == NULL)
		return r;
	if ((copy = malloc(len + 1)) == NULL)
		return CL_NOMEM;
	memcpy(copy, p, len);
	copy[len] = '\0';
	*datap = copy;
	*lenp = len;
	return CL_OK;
}

static int
field_get_secret(struct buf *b, size_t max, struct secret *s)
{
	const void *p = NULL;
	size_t len;
	int r;

	if ((r = field_get_blob(b, max, &p, &len)) != 0 || p == NULL)
		return r;
	return secret_init(s, p, len, max);
}

static int
field_get_int(struct buf *b, const struct field *f, int64_t *vp)
{
	int64_t v = buf_get_i64(b);

	if (b->error != 0)
		return b->error;
	if (v < f->min || (v > 0 && (uint64_t)v > f->max))
		return CL_FORMAT;
	*vp = v;
	return CL_OK;
}

/*
 * The count of a list, and zeroed memory for it.  Each element takes at
 * least one byte of the message, so what is left bounds it too.
 */
static int
field_get_count(struct buf *b, const struct field *f, size_t size, void **pp,
    size_t *np)
{
	uint32_t n = buf_get_u32(b);

	if (b->error != 0)
		return b->error;
	if (n == 0)
		return CL_OK;
	n--;
	if (n > f->nmax)
		return CL_LIMIT;
	if (n > buf_left(b))
		return CL_INCOMPLETE;
	if ((*pp = calloc(n > 0 ? n : 1, size)) == NULL)
		return CL_NOMEM;
	*np = n;
	return CL_OK;
}

static int
field_get_pairs(struct buf *b, const struct field *f,
    struct field_pair *pairs, size_t n)
{
	size_t i;
	int r;

	for (i = 0; i < n; i++) {
		if ((r = field_get_element(b, f->max, &pairs[i].key)) != 0 ||
		    (r = field_get_element(b, f->max, &pairs[i].value)) != 0)
			return r;
	}
	field_sort_map(pairs, n);
	for (i = 1; i < n; i++) {
		if (strcmp(pairs[i - 1].key, pairs[i].key) == 0)
			return CL_FORMAT;
	}
	return CL_OK;
}

static int
field_get_many(struct buf *b, const struct field *f, void *v)
{
	size_t size = f->kind == FIELD_STRS ? sizeof(char *) :
	    f->kind == FIELD_INTS ? sizeof(int64_t) : sizeof(struct field_pair);
	void **itemsp = &AT(void *, v, f->off);
	size_t *np = &AT(size_t, v, f->noff), i;
	int r;

	if ((r = field_get_count(b, f, size, itemsp, np)) != 0)
		return r;
	if (f->kind == FIELD_MAP) {
		if (*np > 0)
			return field_get_pairs(b, f, *itemsp, *np);
		return CL_OK;
	}
	for (i = 0; i < *np && r == 0; i++) {
		if (f->kind == FIELD_STRS)
			r = field_get_element(b, f->max, (char **)*itemsp + i);
		else
			r = field_get_int(b, f, (int64_t *)*itemsp + i);
	}
	return r;
}

static int
field_get_list(struct buf *b, const struct field *f, void *v)
{
	size_t *np = &AT(size_t, v, f->noff), i;
	int r;

	r = field_get_count(b, f, f->sub->size, &AT(void *, v, f->off), np);
	for (i = 0; i < *np && r == 0; i++) {
		char *item = AT(char *, v, f->off) + i * f->sub->size;

		field_init_times(f->sub, item);
		r = field_get_rows(f->sub, b, item);
	}
	return r;
}

static int
field_get_ptr(struct buf *b, const struct field *f, void *v)
{
	void *p;

	if (!buf_get_bool(b))
		return b->error;
	if ((p = calloc(1, f->sub->size)) == NULL)
		return CL_NOMEM;
	AT(void *, v, f->off) = p;
	field_init_times(f->sub, p);
	return field_get_rows(f->sub, b, p);
}

static int
field_get_scalar(struct buf *b, const struct field *f, void *v)
{
	struct field_optint *opt;
	uint64_t u;

	switch (f->kind) {
	case FIELD_INT:
		return field_get_int(b, f, &AT(int64_t, v, f->off));
	case FIELD_UINT:
		u = buf_get_u64(b);
		if (b->error == 0 && u > f->max)
			return CL_FORMAT;
		AT(uint64_t, v, f->off) = u;
		return b->error;
	case FIELD_BOOL:
		AT(int, v, f->off) = buf_get_bool(b);
		return b->error;
	case FIELD_OPTINT:
		opt = &AT(struct field_optint, v, f->off);
		opt->set = buf_get_bool(b);
		return field_get_int(b, f, &opt->v);
	default:	/* FIELD_TIME */
		AT(int64_t, v, f->off) = buf_get_i64(b);
		return b->error;
	}
}

static int
field_get_text(struct buf *b, const struct field *f, struct field_text *text)
{
	int r;

	r = field_get_data(b, f->max, (uint8_t **)&text->data, &text->len);
	if (r != 0)
		return r;
	text->nreplaced = buf_get_u32(b);
	if (b->error == 0 && text->nreplaced > text->len / 3)
		return CL_FORMAT;
	return b->error;
}

static int
field_get_member(struct buf *b, const struct field *f, void *v)
{
	switch (f->kind) {
	case FIELD_CSTR:
		return field_get_element(b, f->max, &AT(char *, v, f->off));
	case FIELD_STR:
	case FIELD_RAW:
		return field_get_str(b, f->max, &AT(char *, v, f->off));
	case FIELD_SECRET:
	case FIELD_SBYTES:
		return field_get_secret(b, f->max,
		    &AT(struct secret, v, f->off));
	case FIELD_TEXT:
		return field_get_text(b, f, &AT(struct field_text, v, f->off));
	case FIELD_BYTES:
		return field_get_data(b, f->max, &AT(uint8_t *, v, f->off),
		    &AT(size_t, v, f->noff));
	case FIELD_STRS:
	case FIELD_INTS:
	case FIELD_MAP:
		return field_get_many(b, f, v);
	case FIELD_OBJ:
		return field_get_rows(f->sub, b, (char *)v + f->off);
	case FIELD_PTR:
		return field_get_ptr(b, f, v);
	case FIELD_LIST:
		return field_get_list(b, f, v);
	default:
		return field_get_scalar(b, f, v);
	}
}

static int
field_get_rows(const struct field_table *t, struct buf *b, void *v)
{
	size_t n, i;
	const struct field *rows = t->get_rows(&n);
	int r = b->error;

	for (i = 0; i < n && r == 0; i++)
		r = field_get_member(b, &rows[i], v);
	return r;
}

int
field_get(const struct field_table *t, struct buf *b, void *v)
{
	int r;

	field_init(t, v);
	if ((r = field_get_rows(t, b, v)) != 0) {
		/* One failure makes buf_end() fail too. */
		field_set_error(b, r);
		field_clear(t, v);
	}
	return r;
}

/* ------------------------------------------------------------- bounds */

/* n * each, at most SIZE_MAX. */
static size_t
field_mul(size_t n, size_t each)
{
	return each != 0 && n > SIZE_MAX / each ? SIZE_MAX : n * each;
}

static size_t
field_add(size_t a, size_t b)
{
	return a > SIZE_MAX - b ? SIZE_MAX : a + b;
}

static void
field_find_member(const struct field *f, size_t *minp, size_t *maxp)
{
	static const size_t fixed[] = {
		[FIELD_STR] = 4, [FIELD_CSTR] = 4, [FIELD_RAW] = 4,
		[FIELD_SECRET] = 5, [FIELD_SBYTES] = 5, [FIELD_BYTES] = 5,
		[FIELD_TEXT] = 9, [FIELD_INT] = 8, [FIELD_UINT] = 8,
		[FIELD_TIME] = 8, [FIELD_OPTINT] = 9, [FIELD_BOOL] = 1,
		[FIELD_STRS] = 4, [FIELD_INTS] = 4, [FIELD_MAP] = 4,
		[FIELD_LIST] = 4, [FIELD_PTR] = 1, [FIELD_OBJ] = 0
	};
	size_t min = 0, n = f->nmax, each = f->max;

	if (f->sub != NULL)
		field_find_bounds(f->sub, &min, &each);
	if (f->kind == FIELD_INTS)
		each = sizeof(int64_t);
	else if (f->kind == FIELD_STRS || f->kind == FIELD_MAP)
		each = field_add(sizeof(uint32_t), f->max);
	if (f->kind == FIELD_MAP)
		each = field_mul(2, each);
	else if (f->kind < FIELD_INT || f->kind == FIELD_PTR ||
	    f->kind == FIELD_OBJ)
		n = 1;
	*minp = fixed[f->kind] + (f->kind == FIELD_OBJ ? min : 0);
	*maxp = field_add(fixed[f->kind], field_mul(n, each));
}

void
field_find_bounds(const struct field_table *t, size_t *minp, size_t *maxp)
{
	size_t n, i, min, max;
	const struct field *rows = t->get_rows(&n);

	*minp = *maxp = 0;
	for (i = 0; i < n; i++) {
		field_find_member(&rows[i], &min, &max);
		*minp = field_add(*minp, min);
		*maxp = field_add(*maxp, max);
	}
}
