/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The JSON form of a struct by its field table, as Go's encoding/json
 * writes it: member order is table order, omitempty drops empty values but
 * neither objects nor times, nil lists are null, map keys are sorted.  Runs
 * in every process that writes JSON; writes only.
 */
#include "common/msg/field.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/secret.h"
#include "jsonw.h"

#define CAT(type, v, off)                                                      \
	(*(const type *)(const void *)((const char *)(v) + (off)))

/* What Go's omitempty drops. */
static int
field_is_empty(const struct field *f, const void *v)
{
	const char *s;

	switch (f->kind) {
	case FIELD_STR:
	case FIELD_CSTR:
	case FIELD_RAW:
		s = CAT(char *, v, f->off);
		return s == NULL || *s == '\0';
	case FIELD_SECRET:
	case FIELD_SBYTES:
		return CAT(struct secret, v, f->off).len == 0;
	case FIELD_TEXT:
		return CAT(struct field_text, v, f->off).len == 0;
	case FIELD_INT:
		return CAT(int64_t, v, f->off) == 0;
	case FIELD_UINT:
		return CAT(uint64_t, v, f->off) == 0;
	case FIELD_BOOL:
		return CAT(int, v, f->off) == 0;
	case FIELD_OPTINT:
		return !CAT(struct field_optint, v, f->off).set;
	case FIELD_PTR:
		return CAT(void *, v, f->off) == NULL;
	case FIELD_BYTES:
	case FIELD_STRS:
	case FIELD_INTS:
	case FIELD_MAP:
	case FIELD_LIST:
		return CAT(size_t, v, f->noff) == 0;
	default:	/* FIELD_TIME, FIELD_OBJ */
		return 0;
	}
}

static void
field_format_strs(char *const *list, size_t n, struct jsonw *w)
{
	size_t i;

	jsonw_open_array(w);
	for (i = 0; i < n; i++)
		jsonw_put_str(w, list[i]);
	jsonw_close_array(w);
}

static void
field_format_ints(const int64_t *list, size_t n, struct jsonw *w)
{
	size_t i;

	jsonw_open_array(w);
	for (i = 0; i < n; i++)
		jsonw_put_int(w, list[i]);
	jsonw_close_array(w);
}

static void
field_format_map(const struct field_pair *pairs, size_t n, struct jsonw *w)
{
	struct field_pair *sorted = NULL;
	size_t i;

	if (n > 0) {
		/* Pointers only; the strings stay the caller's. */
		if ((sorted = calloc(n, sizeof(*sorted))) == NULL) {
			w->error = w->error != 0 ? w->error : CL_NOMEM;
			return;
		}
		memcpy(sorted, pairs, n * sizeof(*sorted));
		field_sort_map(sorted, n);
	}
	jsonw_open_object(w);
	for (i = 0; i < n; i++) {
		jsonw_put_key(w, sorted[i].key);
		jsonw_put_str(w, sorted[i].value);
	}
	jsonw_close_object(w);
	free(sorted);
}

static void
field_format_list(const struct field_table *sub, const char *items, size_t n,
    struct jsonw *w)
{
	size_t i;

	jsonw_open_array(w);
	for (i = 0; i < n; i++)
		field_format_json(sub, items + i * sub->size, w);
	jsonw_close_array(w);
}

/* What is null in JSON when its pointer is: Go's nil. */
static void
field_format_nullable(const struct field *f, const void *v, struct jsonw *w)
{
	const void *p = CAT(void *, v, f->off);
	size_t n;

	if (p == NULL) {
		jsonw_put_null(w);
		return;
	}
	if (f->kind == FIELD_PTR) {
		field_format_json(f->sub, p, w);
		return;
	}
	if (f->kind == FIELD_RAW) {
		jsonw_put_raw(w, p, strlen(p));
		return;
	}
	n = CAT(size_t, v, f->noff);
	if (f->kind == FIELD_BYTES)
		jsonw_put_bytes(w, p, n);
	else if (f->kind == FIELD_STRS)
		field_format_strs(p, n, w);
	else if (f->kind == FIELD_INTS)
		field_format_ints(p, n, w);
	else if (f->kind == FIELD_MAP)
		field_format_map(p, n, w);
	else
		field_format_list(f->sub, p, n, w);
}

static void
field_format_secret(const struct field *f, const struct secret *s,
    struct jsonw *w)
{
	if (f->kind == FIELD_SECRET)
		jsonw_put_text(w, s->data, s->len);
	else if (s->data == NULL)
		jsonw_put_null(w);
	else
		jsonw_put_bytes(w, s->data, s->len);
}

static void
field_format_member(const struct field *f, const void *v, struct jsonw *w)
{
	const struct field_text *text;

	switch (f->kind) {
	case FIELD_STR:
	case FIELD_CSTR:
		jsonw_put_str(w, CAT(char *, v, f->off));
		break;
	case FIELD_SECRET:
	case FIELD_SBYTES:
		field_format_secret(f, &CAT(struct secret, v, f->off), w);
		break;
	case FIELD_TEXT:
		text = &CAT(struct field_text, v, f->off);
		jsonw_put_text(w, text->data, text->len);
		break;
	case FIELD_INT:
		jsonw_put_int(w, CAT(int64_t, v, f->off));
		break;
	case FIELD_UINT:
		jsonw_put_uint(w, CAT(uint64_t, v, f->off));
		break;
	case FIELD_BOOL:
		jsonw_put_bool(w, CAT(int, v, f->off));
		break;
	case FIELD_OPTINT:
		if (CAT(struct field_optint, v, f->off).set)
			jsonw_put_int(w,
			    CAT(struct field_optint, v, f->off).v);
		else
			jsonw_put_null(w);
		break;
	case FIELD_TIME:
		jsonw_put_time(w, CAT(int64_t, v, f->off));
		break;
	case FIELD_OBJ:
		field_format_json(f->sub, (const char *)v + f->off, w);
		break;
	default:
		field_format_nullable(f, v, w);
		break;
	}
}

void
field_format_json(const struct field_table *t, const void *v, struct jsonw *w)
{
	size_t n, i;
	const struct field *f = t->get_rows(&n);

	jsonw_open_object(w);
	for (i = 0; i < n && w->error == 0; i++, f++) {
		if ((f->flags & FIELD_HIDDEN) != 0)
			continue;
		if ((f->flags & FIELD_OMIT) != 0 && field_is_empty(f, v))
			continue;
		jsonw_put_key(w, f->key);
		field_format_member(f, v, w);
	}
	jsonw_close_object(w);
}
