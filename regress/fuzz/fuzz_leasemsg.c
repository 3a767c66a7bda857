/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The bodies about secrets, grants and leases that one process takes from
 * another on hub-net, control and dev-fetch (leasemsg.h).  Input: a table, a
 * mode, the rest.  Mode 0: the rest is the body.  Otherwise it is decisions
 * from which a body is built, within its bounds or one step beyond, so that
 * it is known whether it must be taken.  What is taken is within its bounds
 * and says the same when written again.
 */
#include "fuzz.h"

#include "common/base/limits.h"
#include "common/model/leasemsg.h"
#include "common/msg/buf.h"

static const struct field_table *const tables[] = {
	&lease_revoked_table, &lease_revoke_table, &lease_refreshed_table,
	&ctl_secret_table, &ctl_grant_add_table, &ctl_grant_table,
	&ctl_lease_table, &ctl_outcome_table, &ctl_refreshed_table,
	&dev_revoked_table, &lease_refresh_table, &dev_refreshed_table,
};
#define NTABLES (sizeof(tables) / sizeof(tables[0]))

/* Room for a frame and a few strings at their bounds. */
#define BODY_MAX (2 * MAX_SPEC_LEN)
#define ROOM (2 * MAX_SECRET_FILE_LEN)

struct input {
	const uint8_t *p;
	size_t len;
	size_t room;		/* for strings at their bounds */
	int is_good;		/* nothing beyond a bound was built */
};

/* ----------------------------------------------------------------- builder */

static unsigned int
take(struct input *in)
{
	if (in->len == 0)
		return 0;
	in->len--;
	return *in->p++;
}

/* 0, a few, the bound, one more. */
static size_t
take_size(struct input *in, size_t max, size_t few)
{
	unsigned int d = take(in);
	size_t n = d / 4;

	if (d % 4 == 0)
		return 0;
	/* Bounds are rare: mostly it stays good, and small. */
	if (d % 16 < 14 || max >= in->room) {
		if (n > few)
			n = few;
		return n > max ? max : n;
	}
	in->room -= max;
	if (d % 32 != 31)
		return max;
	in->is_good = 0;
	return max + 1;
}

static void
put_text(struct input *in, struct buf *b, size_t max)
{
	size_t n = take_size(in, max, 64), i;
	unsigned int seed = take(in);
	char *text = malloc(n + 1);

	if (text == NULL)
		abort();
	for (i = 0; i < n; i++)
		text[i] = (char)('!' + (seed + i) % 90);
	if (n > 0 && seed == 255) {
		text[n / 2] = '\0';
		in->is_good = 0;
	}
	buf_put_u32(b, (uint32_t)n);
	buf_put_raw(b, text, n);
	free(text);
}

static void
put_secret(struct input *in, struct buf *b, size_t max)
{
	int present = take(in) % 4 != 0;
	size_t n = take_size(in, max, 64);
	uint8_t *data = calloc(1, n + 1);

	if (data == NULL)
		abort();
	memset(data, (int)take(in), n);
	if (!present && n > 0)
		in->is_good = 0;
	buf_put_u8(b, (uint8_t)present);
	buf_put_blob(b, data, n);
	free(data);
}

static void
put_number(struct input *in, struct buf *b, const struct field *f)
{
	static const int64_t values[] = { 0, 1, -1, INT32_MAX, INT64_MAX,
		INT64_MIN };
	unsigned int d = take(in);
	int64_t v = values[d % 6];

	if (f->kind != FIELD_INT) {
		buf_put_i64(b, v);
		if (f->kind == FIELD_UINT && (uint64_t)v > f->max)
			in->is_good = 0;
		return;
	}
	if (d >= 128)
		v = f->min - (d == 255 && f->min > INT64_MIN);
	if (v < f->min || (v > 0 && (uint64_t)v > f->max))
		in->is_good = 0;
	buf_put_i64(b, v);
}

static void build(struct input *, struct buf *, const struct field_table *);

static void
put_many(struct input *in, struct buf *b, const struct field *f)
{
	size_t n = take_size(in, f->nmax, 3), i;
	char key[32];

	if (take(in) % 8 == 7 && n == 0) {
		buf_put_u32(b, 0);	/* nil */
		return;
	}
	buf_put_u32(b, (uint32_t)n + 1);
	for (i = 0; i < n; i++) {
		if (f->kind == FIELD_LIST)
			build(in, b, f->sub);
		else if (f->kind == FIELD_STRS)
			put_text(in, b, f->max);
		else {
			snprintf(key, sizeof(key), "key%zu", i);
			if (i > 0 && take(in) == 255) {
				snprintf(key, sizeof(key), "key0");
				in->is_good = 0;
			}
			buf_put_str(b, key);
			put_text(in, b, f->max);
		}
	}
}

static void
build(struct input *in, struct buf *b, const struct field_table *t)
{
	size_t n, i;
	const struct field *f = t->get_rows(&n);
	unsigned int d;

	for (i = 0; i < n; i++, f++) {
		switch (f->kind) {
		case FIELD_STR:
			put_text(in, b, f->max);
			break;
		case FIELD_SBYTES:
			put_secret(in, b, f->max);
			break;
		case FIELD_BOOL:
			d = take(in);
			if (d >= 250)
				in->is_good = 0;
			buf_put_u8(b, (uint8_t)(d >= 250 ? d : d % 2));
			break;
		case FIELD_INT:
		case FIELD_UINT:
		case FIELD_TIME:
			put_number(in, b, f);
			break;
		case FIELD_STRS:
		case FIELD_MAP:
		case FIELD_LIST:
			put_many(in, b, f);
			break;
		case FIELD_OBJ:
			build(in, b, f->sub);
			break;
		default:
			abort();	/* a new kind: teach it here */
		}
	}
}

/* ------------------------------------------------------------------ checks */

/* Taken: written again it is the same body, but for the order of maps. */
static void
check_again(const struct field_table *t, const void *v, const uint8_t *data,
    size_t len, int is_sorted)
{
	struct buf b;

	buf_init(&b, BODY_MAX);
	field_put(t, v, &b);
	FUZZ_CHECK(buf_error(&b) == 0);
	FUZZ_CHECK(b.len == len);
	if (is_sorted)
		FUZZ_CHECK(memcmp(b.data, data, len) == 0);
	buf_clear(&b);
}

static int
has_map(const struct field_table *t)
{
	size_t n, i;
	const struct field *rows = t->get_rows(&n);

	for (i = 0; i < n; i++)
		if (rows[i].kind == FIELD_MAP)
			return 1;
	return 0;
}

/* Refused or given back: nothing of it is left, and no memory. */
static void
check_empty(const struct field_table *t, const void *v)
{
	void *zero = malloc(t->size);

	if (zero == NULL)
		abort();
	field_init(t, zero);
	FUZZ_CHECK(memcmp(zero, v, t->size) == 0);
	free(zero);
}

/* 1: the body was taken. */
static int
read_body(const struct field_table *t, const uint8_t *data, size_t len)
{
	struct buf b;
	void *v = malloc(t->size);
	int r;

	if (v == NULL)
		abort();
	buf_init_read(&b, data, len);
	r = field_get(t, &b, v);
	if (r == 0)
		check_again(t, v, data, b.off, !has_map(t));
	else
		FUZZ_CHECK(buf_end(&b) != 0);
	if (r == 0 && (r = buf_end(&b)) == 0)
		FUZZ_CHECK(b.off == len);
	if (b.error == 0)
		field_clear(t, v);
	check_empty(t, v);
	free(v);
	return r == 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const struct field_table *t;
	struct input in;
	struct buf b;
	uint8_t *cut;

	if (len < 2)
		return 0;
	t = tables[data[0] % NTABLES];
	if (data[1] % 4 == 0) {
		(void)read_body(t, data + 2, len - 2);
		return 0;
	}
	in.p = data + 2;
	in.len = len - 2;
	in.room = ROOM;
	in.is_good = 1;
	buf_init(&b, BODY_MAX);
	build(&in, &b, t);
	if (buf_error(&b) != 0) {
		buf_clear(&b);		/* beyond any message */
		return 0;
	}
	FUZZ_CHECK(read_body(t, b.data, b.len) == in.is_good);
	/* One byte less, in an allocation of that size; one byte more. */
	if ((cut = malloc(b.len + 1)) == NULL)
		abort();
	memcpy(cut, b.data, b.len);
	cut[b.len] = 0;
	FUZZ_CHECK(!read_body(t, cut, b.len + 1));
	free(cut);
	if (b.len > 0 && (cut = malloc(b.len - 1 > 0 ? b.len - 1 : 1)) !=
	    NULL) {
		memcpy(cut, b.data, b.len - 1);
		FUZZ_CHECK(!read_body(t, cut, b.len - 1));
		free(cut);
	}
	buf_clear(&b);
	return 0;
}
