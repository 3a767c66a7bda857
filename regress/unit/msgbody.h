/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Structs made from their field tables alone, and their message form written
 * here once more without any check: what an honest process would refuse to
 * send.  For tests and for the seeds of fuzzers.
 */
#ifndef CLOOP_MSGBODY_H
#define CLOOP_MSGBODY_H

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/secret.h"
#include "common/msg/buf.h"
#include "common/msg/field.h"

#define MSGBODY_STATIC static __attribute__((__unused__))
#define MSGBODY_AT(type, v, off) (*(type *)(void *)((char *)(v) + (off)))

/* How a member is made; the first three make whole structs too. */
enum msgbody_how {
	MSGBODY_SMALLEST,	/* of its message form; ints at their least */
	MSGBODY_SHORT,		/* one item, one byte, one struct */
	MSGBODY_LARGEST,
	MSGBODY_MANY,		/* as many items as there may be, small ones */
	MSGBODY_BELOW,		/* one beyond the bound */
	MSGBODY_ABOVE,
	MSGBODY_ITEM_BELOW,	/* the same of an item in a list */
	MSGBODY_ITEM_ABOVE,
	MSGBODY_FALSE,		/* what only bytes can say: a bool of 2, a key
				 * twice; fine when put, refused when got */
	MSGBODY_NHOWS
};
#define MSGBODY_NO_CASE (-1000)	/* the member cannot be like that */

/* Member `target` (of all, those of structs inside too) is made `how`. */
struct msgbody_pick {
	int target;		/* -1: none */
	int n;			/* members seen */
	enum msgbody_how how;
	enum msgbody_how others;
	int result;		/* what putting and getting must say */
	const char *key;	/* of the member */
};

MSGBODY_STATIC void msgbody_fill(const struct field_table *, void *,
    struct msgbody_pick *);

/* len digits that count, so that keys differ and are sorted. */
MSGBODY_STATIC char *
msgbody_text(size_t len, size_t i)
{
	char *s = calloc(1, len + 1), digits[24];
	size_t n = (size_t)snprintf(digits, sizeof(digits), "%zu", i);

	if (s == NULL)
		abort();
	memset(s, '0', len);
	if (n <= len)
		memcpy(s + len - n, digits, n);
	return s;
}

MSGBODY_STATIC size_t
msgbody_len(const struct field *f, enum msgbody_how how)
{
	switch (how) {
	case MSGBODY_ABOVE:
		return f->max + 1;
	case MSGBODY_LARGEST:
		return f->max;
	case MSGBODY_SHORT:
		return f->max < 8 ? f->max : 8;
	default:
		return 0;
	}
}

/* Strings and bytes. */
MSGBODY_STATIC int
msgbody_set_data(const struct field *f, void *v, enum msgbody_how how)
{
	struct field_text *text = &MSGBODY_AT(struct field_text, v, f->off);
	struct secret *secret = &MSGBODY_AT(struct secret, v, f->off);
	size_t len = msgbody_len(f, how);
	char *data = NULL;

	if (how > MSGBODY_LARGEST && how != MSGBODY_ABOVE &&
	    (how != MSGBODY_FALSE || f->kind != FIELD_TEXT))
		return MSGBODY_NO_CASE;
	if (how != MSGBODY_SMALLEST || f->kind == FIELD_CSTR)
		data = msgbody_text(len, len);
	switch (f->kind) {
	case FIELD_SECRET:
	case FIELD_SBYTES:
		if (data != NULL && secret_init(secret, data, len, len) != 0)
			abort();
		free(data);
		break;
	case FIELD_TEXT:
		text->data = data;
		text->len = len;
		text->nreplaced = len / 3 + (how == MSGBODY_FALSE);
		break;
	case FIELD_BYTES:
		MSGBODY_AT(char *, v, f->off) = data;
		MSGBODY_AT(size_t, v, f->noff) = len;
		break;
	default:
		MSGBODY_AT(char *, v, f->off) = data;
		break;
	}
	return how == MSGBODY_ABOVE ? CL_TOOBIG :
	    how == MSGBODY_FALSE ? CL_FORMAT : CL_OK;
}

MSGBODY_STATIC int
msgbody_set_int(const struct field *f, int64_t *vp, enum msgbody_how how)
{
	int64_t max = f->max > INT64_MAX ? INT64_MAX : (int64_t)f->max;

	switch (how) {
	case MSGBODY_SMALLEST:
		*vp = f->min;
		return CL_OK;
	case MSGBODY_SHORT:
		*vp = f->min > 0 ? f->min : 0;
		return CL_OK;
	case MSGBODY_LARGEST:
		*vp = max;
		return CL_OK;
	case MSGBODY_BELOW:
		if (f->min == INT64_MIN)
			return MSGBODY_NO_CASE;
		*vp = f->min - 1;
		return CL_FORMAT;
	case MSGBODY_ABOVE:
		if (max == INT64_MAX)
			return MSGBODY_NO_CASE;
		*vp = max + 1;
		return CL_FORMAT;
	default:
		return MSGBODY_NO_CASE;
	}
}

MSGBODY_STATIC int
msgbody_set_number(const struct field *f, void *v, enum msgbody_how how)
{
	struct field_optint *opt = &MSGBODY_AT(struct field_optint, v, f->off);
	uint64_t *up = &MSGBODY_AT(uint64_t, v, f->off);

	switch (f->kind) {
	case FIELD_INT:
		return msgbody_set_int(f, &MSGBODY_AT(int64_t, v, f->off),
		    how);
	case FIELD_OPTINT:
		opt->set = how != MSGBODY_SMALLEST;
		if (!opt->set)
			return CL_OK;
		return msgbody_set_int(f, &opt->v, how);
	case FIELD_BOOL:
		MSGBODY_AT(int, v, f->off) = how == MSGBODY_FALSE ? 2 :
		    how == MSGBODY_LARGEST;
		return how == MSGBODY_FALSE ? CL_FORMAT :
		    how <= MSGBODY_LARGEST ? CL_OK : MSGBODY_NO_CASE;
	case FIELD_TIME:
		MSGBODY_AT(int64_t, v, f->off) = how == MSGBODY_LARGEST ?
		    INT64_MAX : how == MSGBODY_SHORT ? 0 : INT64_MIN;
		return how <= MSGBODY_LARGEST ? CL_OK : MSGBODY_NO_CASE;
	default:	/* FIELD_UINT */
		if (how > MSGBODY_LARGEST && (how != MSGBODY_ABOVE ||
		    f->max == UINT64_MAX))
			return MSGBODY_NO_CASE;
		*up = how == MSGBODY_LARGEST ? f->max :
		    how == MSGBODY_ABOVE ? f->max + 1 : 0;
		return how == MSGBODY_ABOVE ? CL_FORMAT : CL_OK;
	}
}

/* One item of a list. */
MSGBODY_STATIC int
msgbody_set_item(const struct field *f, void *items, size_t i,
    enum msgbody_how how, struct msgbody_pick *pick)
{
	struct field_pair *pair;

	switch (f->kind) {
	case FIELD_STRS:
		((char **)items)[i] = msgbody_text(msgbody_len(f, how), i);
		return how == MSGBODY_BELOW ? MSGBODY_NO_CASE :
		    how == MSGBODY_ABOVE ? CL_TOOBIG : CL_OK;
	case FIELD_INTS:
		return msgbody_set_int(f, (int64_t *)items + i, how);
	case FIELD_MAP:
		pair = (struct field_pair *)items + i;
		pair->key = msgbody_text(how != MSGBODY_SMALLEST ?
		    msgbody_len(f, how) : i == 0 ? 0 :
		    msgbody_len(f, MSGBODY_SHORT), i);
		pair->value = msgbody_text(msgbody_len(f,
		    how == MSGBODY_ABOVE ? MSGBODY_SMALLEST : how), 0);
		return how == MSGBODY_BELOW ? MSGBODY_NO_CASE :
		    how == MSGBODY_ABOVE ? CL_TOOBIG : CL_OK;
	default:	/* FIELD_LIST */
		if (how > MSGBODY_LARGEST)
			return MSGBODY_NO_CASE;
		msgbody_fill(f->sub, (char *)items + i * f->sub->size, pick);
		return CL_OK;
	}
}

/* A second pair with the key of the first. */
MSGBODY_STATIC void
msgbody_repeat(struct field_pair *pairs)
{
	free(pairs[1].key);
	pairs[1].key = msgbody_text(strlen(pairs[0].key), 0);
}

MSGBODY_STATIC int
msgbody_set_list(const struct field *f, void *v, enum msgbody_how how,
    struct msgbody_pick *pick)
{
	struct msgbody_pick whole = { .target = -1 }, *inside = pick;
	size_t size = f->kind == FIELD_STRS ? sizeof(char *) :
	    f->kind == FIELD_INTS ? sizeof(int64_t) :
	    f->kind == FIELD_MAP ? sizeof(struct field_pair) : f->sub->size;
	enum msgbody_how item = how;
	size_t n = 1, i;
	int r = CL_OK;
	char *items;

	if (how == MSGBODY_SMALLEST)
		return CL_OK;
	if (how == MSGBODY_BELOW ||
	    (how == MSGBODY_FALSE && f->kind != FIELD_MAP))
		return MSGBODY_NO_CASE;
	if (how == MSGBODY_MANY || how == MSGBODY_ABOVE) {
		n = f->nmax + (how == MSGBODY_ABOVE);
		item = MSGBODY_SMALLEST;
	} else if (how == MSGBODY_ITEM_BELOW || how == MSGBODY_ITEM_ABOVE) {
		item = how == MSGBODY_ITEM_BELOW ? MSGBODY_BELOW :
		    MSGBODY_ABOVE;
	} else if (how == MSGBODY_LARGEST) {
		n = f->nmax;
	} else if (how == MSGBODY_FALSE) {
		n = 2;
		item = MSGBODY_SHORT;
	}
	if (n > 1 || how != pick->others) {
		whole.others = item <= MSGBODY_LARGEST ? item :
		    MSGBODY_SMALLEST;
		inside = &whole;
	}
	if ((items = calloc(n, size)) == NULL)
		abort();
	MSGBODY_AT(char *, v, f->off) = items;
	MSGBODY_AT(size_t, v, f->noff) = n;
	for (i = 0; i < n; i++)
		r = msgbody_set_item(f, items, i, item, inside);
	if (how == MSGBODY_FALSE) {
		msgbody_repeat(MSGBODY_AT(struct field_pair *, v, f->off));
		return CL_FORMAT;
	}
	return how == MSGBODY_ABOVE ? CL_LIMIT : r;
}

MSGBODY_STATIC int
msgbody_set(const struct field *f, void *v, enum msgbody_how how,
    struct msgbody_pick *pick)
{
	void *p;

	switch (f->kind) {
	case FIELD_OBJ:
		msgbody_fill(f->sub, (char *)v + f->off, pick);
		return how <= MSGBODY_LARGEST ? CL_OK : MSGBODY_NO_CASE;
	case FIELD_PTR:
		if (how == MSGBODY_SMALLEST)
			return CL_OK;
		if ((p = calloc(1, f->sub->size)) == NULL)
			abort();
		MSGBODY_AT(void *, v, f->off) = p;
		msgbody_fill(f->sub, p, pick);
		return how <= MSGBODY_LARGEST ? CL_OK : MSGBODY_NO_CASE;
	case FIELD_STRS:
	case FIELD_INTS:
	case FIELD_MAP:
	case FIELD_LIST:
		return msgbody_set_list(f, v, how, pick);
	case FIELD_INT:
	case FIELD_UINT:
	case FIELD_BOOL:
	case FIELD_OPTINT:
	case FIELD_TIME:
		return msgbody_set_number(f, v, how);
	default:
		return msgbody_set_data(f, v, how);
	}
}

MSGBODY_STATIC void
msgbody_fill(const struct field_table *t, void *v, struct msgbody_pick *pick)
{
	size_t n, i;
	const struct field *rows = t->get_rows(&n);

	field_init(t, v);
	for (i = 0; i < n; i++) {
		if (pick->target == -1 || pick->n++ != pick->target) {
			(void)msgbody_set(&rows[i], v, pick->others, pick);
			continue;
		}
		pick->key = rows[i].key;
		pick->result = msgbody_set(&rows[i], v, pick->how, pick);
	}
}

/* All of it like this; ends with field_clear. */
MSGBODY_STATIC void
msgbody_make(const struct field_table *t, void *v, enum msgbody_how how)
{
	struct msgbody_pick pick = { .target = -1, .others = how };

	msgbody_fill(t, v, &pick);
}

/*
 * One member like this, the others short.  0: there is no such member; else
 * *resultp is what must come of putting and getting it, MSGBODY_NO_CASE when
 * it cannot be like this (v is made all the same).
 */
MSGBODY_STATIC int
msgbody_make_one(const struct field_table *t, void *v, int target,
    enum msgbody_how how, int *resultp, const char **keyp)
{
	struct msgbody_pick pick = { .target = target, .how = how,
	    .others = MSGBODY_SHORT, .key = NULL };

	msgbody_fill(t, v, &pick);
	*resultp = pick.result;
	*keyp = pick.key;
	return pick.key != NULL;
}

/* ----------------------------------------------------- the message form */

MSGBODY_STATIC void msgbody_encode(const struct field_table *, const void *,
    struct buf *);

/* Bytes that may be nil. */
MSGBODY_STATIC void
msgbody_encode_data(struct buf *b, const void *p, size_t len)
{
	buf_put_u8(b, p != NULL);
	buf_put_blob(b, p, len);
}

MSGBODY_STATIC void
msgbody_encode_list(const struct field *f, void *v, struct buf *b)
{
	char *items = MSGBODY_AT(char *, v, f->off);
	size_t n = items == NULL ? 0 : MSGBODY_AT(size_t, v, f->noff), i;
	struct field_pair *pair;

	buf_put_u32(b, items == NULL ? 0 : (uint32_t)n + 1);
	for (i = 0; i < n; i++) {
		if (f->kind == FIELD_STRS) {
			buf_put_str(b, ((char **)(void *)items)[i]);
		} else if (f->kind == FIELD_INTS) {
			buf_put_i64(b, ((int64_t *)(void *)items)[i]);
		} else if (f->kind == FIELD_MAP) {
			pair = (struct field_pair *)(void *)items + i;
			buf_put_str(b, pair->key);
			buf_put_str(b, pair->value);
		} else {
			msgbody_encode(f->sub, items + i * f->sub->size, b);
		}
	}
}

MSGBODY_STATIC void
msgbody_encode_member(const struct field *f, void *v, struct buf *b)
{
	struct secret *secret = &MSGBODY_AT(struct secret, v, f->off);
	struct field_text *text = &MSGBODY_AT(struct field_text, v, f->off);
	struct field_optint *opt = &MSGBODY_AT(struct field_optint, v, f->off);

	switch (f->kind) {
	case FIELD_SECRET:
	case FIELD_SBYTES:
		msgbody_encode_data(b, secret->data, secret->len);
		break;
	case FIELD_TEXT:
		msgbody_encode_data(b, text->data, text->len);
		buf_put_u32(b, (uint32_t)text->nreplaced);
		break;
	case FIELD_BYTES:
		msgbody_encode_data(b, MSGBODY_AT(void *, v, f->off),
		    MSGBODY_AT(size_t, v, f->noff));
		break;
	case FIELD_INT:
	case FIELD_TIME:
		buf_put_i64(b, MSGBODY_AT(int64_t, v, f->off));
		break;
	case FIELD_UINT:
		buf_put_u64(b, MSGBODY_AT(uint64_t, v, f->off));
		break;
	case FIELD_BOOL:
		buf_put_u8(b, (uint8_t)MSGBODY_AT(int, v, f->off));
		break;
	case FIELD_OPTINT:
		buf_put_u8(b, (uint8_t)opt->set);
		buf_put_i64(b, opt->v);
		break;
	case FIELD_STRS:
	case FIELD_INTS:
	case FIELD_MAP:
	case FIELD_LIST:
		msgbody_encode_list(f, v, b);
		break;
	case FIELD_OBJ:
		msgbody_encode(f->sub, (char *)v + f->off, b);
		break;
	case FIELD_PTR:
		buf_put_u8(b, MSGBODY_AT(void *, v, f->off) != NULL);
		if (MSGBODY_AT(void *, v, f->off) != NULL)
			msgbody_encode(f->sub, MSGBODY_AT(void *, v, f->off),
			    b);
		break;
	default:
		buf_put_str(b, MSGBODY_AT(char *, v, f->off));
		break;
	}
}

/* As field_put, whatever the bounds say. */
MSGBODY_STATIC void
msgbody_encode(const struct field_table *t, const void *v, struct buf *b)
{
	size_t n, i;
	const struct field *rows = t->get_rows(&n);

	for (i = 0; i < n; i++)
		msgbody_encode_member(&rows[i], (void *)(uintptr_t)v, b);
}

#endif
