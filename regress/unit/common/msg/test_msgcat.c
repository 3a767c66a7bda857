/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * common/msg/msgcat: a walk through the whole catalogue, what is checked
 * before a body is decoded and what is when it is composed and decoded.
 *
 * MSGBODY_SEEDS=DIR writes the seeds of fuzz_body besides.
 */
#include "regress/unit/unit.h"

#include "common/base/err.h"
#include "common/msg/imsg.h"
#include "common/msg/msgcat.h"
#include "regress/unit/msgbody.h"

#define SEED_MAX 300		/* bytes; the largest bodies are left out */

static const uint8_t body[MSG_BODY_MAX + 1];
static const struct msg_row *rows;
static size_t nrows;

/* Check one message; "" when it is accepted, else the reason. */
static const char *
check(const struct msg_row *row, enum msg_dir dir, unsigned int state,
    size_t len, int fd, struct msgcat_seen *seen)
{
	struct msgcat_seen fresh = { { 0 } };
	struct imsg m = { .type = row->type, .fd = fd };
	const char *why;
	int r;

	buf_init_read(&m.body, body, len);
	r = msgcat_check(dir, state, &m, seen == NULL ? &fresh : seen, &why);
	if (r == 0) {
		ASSERT_PTR_EQ(why, NULL);
		return "";
	}
	ASSERT_ERR(r, CL_FORMAT);
	return why;
}

/* The same from who may send it, when it may. */
static const char *
check_size(const struct msg_row *row, size_t len, struct msgcat_seen *seen)
{
	return check(row, row->dir, row->states & -row->states, len,
	    row->fd - 1, seen);
}

static size_t
find_min(const struct msg_row *row)
{
	size_t min, max;

	msgcat_find_bounds(row, &min, &max);
	return min;
}

static size_t
find_max(const struct msg_row *row)
{
	size_t min, max;

	msgcat_find_bounds(row, &min, &max);
	return max;
}

static void
test_table(void)
{
	static uint8_t used[0x10000];
	const struct msg_row *request;
	char name[64];
	size_t i;

	rows = msgcat_get_rows(&nrows);
	TEST_START("each type is found, and none is used twice");
	for (i = 0; i < nrows; i++) {
		unit_note("%s", rows[i].name);
		ASSERT_INT_LT(rows[i].type, sizeof(used));
		ASSERT_FALSE(used[rows[i].type]);
		used[rows[i].type] = 1;
		ASSERT_PTR_EQ(msgcat_find(rows[i].type), &rows[i]);
		ASSERT_STRING_EQ(msgcat_name(rows[i].type), rows[i].name);
	}
	ASSERT_PTR_EQ(msgcat_find(0), NULL);
	ASSERT_PTR_EQ(msgcat_find(UINT32_MAX), NULL);
	ASSERT_STRING_EQ(msgcat_name(0x0101), "?");
	TEST_START("an odd type answers the request before it");
	for (i = 0; i < nrows; i++) {
		unit_note("%s", rows[i].name);
		if (rows[i].type % 2 == 0)
			continue;
		request = msgcat_find(rows[i].type - 1);
		ASSERT_PTR_NE(request, NULL);
		ASSERT_INT_NE(request->dir, rows[i].dir);
		snprintf(name, sizeof(name), "%s_ANS", request->name);
		if (strcmp(rows[i].name, "RES_ADDRS") != 0)
			ASSERT_STRING_EQ(rows[i].name, name);
	}
	TEST_START("bounds are bounds, and a message at its own fits");
	for (i = 0; i < nrows; i++) {
		unit_note("%s", rows[i].name);
		ASSERT_INT_LE(find_min(&rows[i]), find_max(&rows[i]));
		ASSERT_INT_LE(find_max(&rows[i]), MSG_BODY_MAX);
	}
}

static void
test_good(void)
{
	size_t i;

	TEST_START("each row accepts its smallest and its largest body");
	for (i = 0; i < nrows; i++) {
		unit_note("%s", rows[i].name);
		ASSERT_STRING_EQ(check_size(&rows[i], find_min(&rows[i]),
		    NULL), "");
		ASSERT_STRING_EQ(check_size(&rows[i], find_max(&rows[i]),
		    NULL), "");
	}
}

static void
test_wrong(void)
{
	const struct msg_row *r;
	unsigned int state;
	int dir;

	TEST_START("each row refuses every other direction");
	for (r = rows; r < rows + nrows; r++)
		for (dir = 0; dir <= MSG_M2D + 1; dir++) {
			unit_note("%s, direction %d", r->name, dir);
			if (dir == (int)r->dir)
				continue;
			ASSERT_STRING_EQ(check(r, (enum msg_dir)dir,
			    r->states, find_min(r), r->fd - 1, NULL),
			    "wrong direction");
		}
	TEST_START("each row refuses every other state");
	for (r = rows; r < rows + nrows; r++)
		for (state = 0; state <= 2 * MS_STOPPING; state =
		    state == 0 ? 1 : state * 2) {
			unit_note("%s, state 0x%x", r->name, state);
			ASSERT_STRING_EQ(check(r, r->dir, state, find_min(r),
			    r->fd - 1, NULL), (r->states & state) != 0 ? "" :
			    "not in this state");
		}
	TEST_START("each row refuses one byte less and one byte more");
	for (r = rows; r < rows + nrows; r++) {
		unit_note("%s", r->name);
		if (find_min(r) > 0)
			ASSERT_STRING_EQ(check_size(r, find_min(r) - 1, NULL),
			    "too short");
		ASSERT_STRING_EQ(check_size(r, find_max(r) + 1, NULL),
		    "too long");
	}
	TEST_START("each row wants exactly the descriptor it declares");
	for (r = rows; r < rows + nrows; r++) {
		unit_note("%s", r->name);
		ASSERT_STRING_EQ(check(r, r->dir, r->states, find_min(r),
		    r->fd ? -1 : 0, NULL), r->fd ? "descriptor missing" :
		    "unexpected descriptor");
	}
}

static void
test_once(void)
{
	struct msgcat_seen seen = { { 0 } };
	const struct msg_row *r;

	TEST_START("what may come once is refused the second time");
	for (r = rows; r < rows + nrows; r++) {
		unit_note("%s", r->name);
		ASSERT_STRING_EQ(check_size(r, find_min(r), &seen), "");
		ASSERT_STRING_EQ(check_size(r, find_min(r), &seen),
		    r->once ? "sent twice" : "");
	}
	TEST_START("a refused message does not count as sent");
	memset(&seen, 0, sizeof(seen));
	for (r = rows; r < rows + nrows; r++) {
		if (!r->once)
			continue;
		unit_note("%s", r->name);
		ASSERT_STRING_EQ(check_size(r, find_max(r) + 1, &seen),
		    "too long");
		ASSERT_STRING_EQ(check_size(r, find_max(r), &seen), "");
	}
}

static void
test_unknown(void)
{
	struct msg_row row = { .dir = MSG_N2M };
	uint32_t type;

	TEST_START("every type that is no row is unknown");
	for (type = 0; type < 0x10000; type++) {
		if (msgcat_find(type) != NULL)
			continue;
		row.type = type;
		unit_note("type 0x%x", type);
		ASSERT_STRING_EQ(check(&row, MSG_N2M, MS_SERVING, 0, -1,
		    NULL), "unknown type");
	}
}

static void
test_role(void)
{
	const struct msg_row *r;

	TEST_START("only operators' requests have a role");
	for (r = rows; r < rows + nrows; r++) {
		unit_note("%s", r->name);
		if (r->dir != MSG_C2M)
			ASSERT_INT_EQ(msgcat_role(r->type), ROLE_NONE);
	}
	ASSERT_INT_EQ(msgcat_role(MSG_CTL_CLIENT), ROLE_NONE);
	ASSERT_INT_EQ(msgcat_role(MSG_CTL_READY), ROLE_NONE);
	TEST_START("viewers read, operators change");
	ASSERT_INT_EQ(msgcat_role(MSG_CTL_STATUS), ROLE_VIEWER);
	ASSERT_INT_EQ(msgcat_role(MSG_CTL_LOGS), ROLE_VIEWER);
	ASSERT_INT_EQ(msgcat_role(MSG_CTL_RUN), ROLE_OPERATOR);
	ASSERT_INT_EQ(msgcat_role(MSG_CTL_MINT), ROLE_OPERATOR);
	ASSERT_INT_EQ(msgcat_role(MSG_CTL_REVOKE), ROLE_OPERATOR);
	ASSERT_INT_EQ(msgcat_role(MSG_CTL_SIGNAL), ROLE_OPERATOR);
}

/* ------------------------------------------------------------- bodies */

/* In memory of exactly its size. */
static int
get(const struct msg_row *row, const struct buf *in, union msg_any *v)
{
	uint8_t *exact = malloc(in->len + 1);
	struct buf b;
	int r;

	if (in->len > 0)
		memcpy(exact, in->data, in->len);
	buf_init_read(&b, exact, in->len);
	r = msg_get(row->type, &b, v);
	free(exact);
	return r;
}

/* What is within bounds: one form, there and back. */
static void
check_accepted(const struct msg_row *row, const void *v,
    const struct buf *form)
{
	struct buf b;
	union msg_any back;

	buf_init(&b, MSG_BODY_MAX);
	if (form->len > MSG_BODY_MAX) {
		/* Each member may be as it is, but not all at once. */
		ASSERT_ERR(msg_put(row->type, v, &b), CL_TOOBIG);
		buf_clear(&b);
		return;
	}
	ASSERT_ERR(msg_put(row->type, v, &b), CL_OK);
	ASSERT_BYTES_EQ(b.data, b.len, form->data, form->len);
	ASSERT_STRING_EQ(check_size(row, b.len, NULL), "");
	buf_clear(&b);
	ASSERT_ERR(get(row, form, &back), CL_OK);
	buf_init(&b, MSG_BODY_MAX);
	ASSERT_ERR(msg_put(row->type, &back, &b), CL_OK);
	ASSERT_BYTES_EQ(b.data, b.len, form->data, form->len);
	buf_clear(&b);
	msg_clear(row->type, &back);
}

/* One member out of bounds: the same said at both ends. */
static void
check_refused(const struct msg_row *row, const void *v,
    const struct buf *form, int want, int put_too)
{
	union msg_any back;
	struct buf b;

	if (put_too) {
		buf_init(&b, MSG_BODY_MAX);
		ASSERT_ERR(msg_put(row->type, v, &b), want);
		buf_clear(&b);
	}
	ASSERT_ERR(get(row, form, &back), want);
}

/* Members of one row; the number of them. */
static int
walk_members(const struct msg_row *row, enum msgbody_how how)
{
	void *v = calloc(1, row->body->size);
	const char *key;
	struct buf form;
	int target, want;

	for (target = 0; msgbody_make_one(row->body, v, target, how, &want,
	    &key); target++) {
		unit_note("%s %s: %d", row->name, key, (int)how);
		buf_init(&form, SIZE_MAX / 2);
		msgbody_encode(row->body, v, &form);
		ASSERT_ERR(buf_error(&form), CL_OK);
		if (want == CL_OK)
			check_accepted(row, v, &form);
		else if (want != MSGBODY_NO_CASE)
			check_refused(row, v, &form, want,
			    how != MSGBODY_FALSE);
		buf_clear(&form);
		field_clear(row->body, v);
	}
	field_clear(row->body, v);
	free(v);
	return target;
}

static void
test_members(void)
{
	const struct msg_row *r;
	int how;

	TEST_START("compose checks as well as receipt: each member at its "
	    "bounds and beyond");
	for (how = MSGBODY_SMALLEST; how < MSGBODY_NHOWS; how++)
		for (r = rows; r < rows + nrows; r++)
			(void)walk_members(r, (enum msgbody_how)how);
}

static void
test_sizes(void)
{
	static const enum msgbody_how hows[] = { MSGBODY_SMALLEST,
	    MSGBODY_SHORT, MSGBODY_LARGEST };
	const struct msg_row *r;
	size_t i, bounds[2];
	struct buf form;
	void *v;

	TEST_START("the bounds of a row are its smallest and largest body");
	for (r = rows; r < rows + nrows; r++) {
		field_find_bounds(r->body, &bounds[0], &bounds[1]);
		for (i = 0; i < 3; i++) {
			unit_note("%s: %d", r->name, (int)hows[i]);
			v = calloc(1, r->body->size);
			msgbody_make(r->body, v, hows[i]);
			buf_init(&form, SIZE_MAX / 2);
			msgbody_encode(r->body, v, &form);
			if (i != 1)
				ASSERT_SIZE_T_EQ(form.len, bounds[i / 2]);
			check_accepted(r, v, &form);
			buf_clear(&form);
			field_clear(r->body, v);
			free(v);
		}
	}
}

static void
test_cut(void)
{
	const struct msg_row *r;
	struct buf form, part;
	union msg_any back;
	void *v;
	size_t n;

	TEST_START("a body with a byte less or more is none");
	for (r = rows; r < rows + nrows; r++) {
		v = calloc(1, r->body->size);
		msgbody_make(r->body, v, MSGBODY_SHORT);
		buf_init(&form, MSG_BODY_MAX);
		ASSERT_ERR(msg_put(r->type, v, &form), CL_OK);
		for (n = 0; n < form.len; n++) {
			unit_note("%s, %zu of %zu bytes", r->name, n,
			    form.len);
			buf_init_read(&part, form.data, n);
			ASSERT_ERR(get(r, &part, &back), CL_INCOMPLETE);
		}
		unit_note("%s and a byte", r->name);
		buf_put_u8(&form, 0);
		ASSERT_ERR(get(r, &form, &back), CL_TRAILING);
		buf_clear(&form);
		field_clear(r->body, v);
		free(v);
	}
}

static void
test_none(void)
{
	const struct msg_row *r;
	union msg_any v;
	struct buf b;

	TEST_START("no body is that of a row without members, and no other's");
	for (r = rows; r < rows + nrows; r++) {
		unit_note("%s", r->name);
		buf_init(&b, MSG_BODY_MAX);
		ASSERT_ERR(msg_put(r->type, NULL, &b),
		    find_max(r) == 0 ? CL_OK : CL_INTERNAL);
		ASSERT_SIZE_T_EQ(b.len, 0);
		buf_clear(&b);
	}
	TEST_START("what is no row is neither put nor got nor cleared");
	buf_init(&b, 16);
	ASSERT_ERR(msg_put(0x0101, &v, &b), CL_INTERNAL);
	ASSERT_ERR(msg_get(0x0101, &b, &v), CL_INTERNAL);
	msg_clear(0x0101, &v);
	msg_clear(UINT32_MAX, &v);
	buf_clear(&b);
}

/* Two bytes of type, and a body. */
static void
write_seed(const char *dir, const struct msg_row *row, const char *how,
    const struct buf *form)
{
	char path[4096], *p;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s-%s", dir, row->name, how);
	for (p = path + strlen(dir) + 1; *p != '\0'; p++)
		*p = *p == '_' ? '-' : *p >= 'A' && *p <= 'Z' ?
		    (char)(*p - 'A' + 'a') : *p;
	f = fopen(path, "w");
	ASSERT_PTR_NE(f, NULL);
	fputc((int)(row->type >> 8), f);
	fputc((int)(row->type & 0xff), f);
	fwrite(form->data, 1, form->len, f);
	ASSERT_INT_EQ(fclose(f), 0);
}

/* One of each row, and its largest where that is small. */
static void
test_seeds(void)
{
	const char *dir = getenv("MSGBODY_SEEDS");
	struct buf form, most;
	const struct msg_row *r;
	void *v;

	if (dir == NULL)
		return;
	TEST_START("seeds of fuzz_body are written");
	for (r = rows; r < rows + nrows; r++) {
		v = calloc(1, r->body->size);
		buf_init(&form, SIZE_MAX / 2);
		buf_init(&most, SIZE_MAX / 2);
		msgbody_make(r->body, v, MSGBODY_SHORT);
		msgbody_encode(r->body, v, &form);
		field_clear(r->body, v);
		msgbody_make(r->body, v, MSGBODY_LARGEST);
		msgbody_encode(r->body, v, &most);
		field_clear(r->body, v);
		write_seed(dir, r, "short", &form);
		if (most.len > 0 && most.len <= SEED_MAX)
			write_seed(dir, r, "most", &most);
		buf_clear(&form);
		buf_clear(&most);
		free(v);
	}
}

UNIT_MAIN(test_table, test_good, test_wrong, test_once, test_unknown,
    test_role, test_members, test_sizes, test_cut, test_none, test_seeds)
