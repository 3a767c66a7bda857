/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * common/msg/msgcat: a walk through the whole catalogue.
 */
#include "regress/unit/unit.h"

#include "common/base/err.h"
#include "common/msg/imsg.h"
#include "common/msg/msgcat.h"

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

static unsigned int
any_state(const struct msg_row *row)
{
	return row->states & -row->states;
}

static void
test_table(void)
{
	const struct msg_row *request;
	char name[64];
	size_t i;

	rows = msgcat_get_rows(&nrows);
	TEST_START("types ascend, so that each is found");
	for (i = 0; i < nrows; i++) {
		unit_note("%s", rows[i].name);
		ASSERT_TRUE(i == 0 || rows[i - 1].type < rows[i].type);
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
}

static void
test_good(void)
{
	size_t i;

	TEST_START("each row accepts its smallest and its largest body");
	for (i = 0; i < nrows; i++) {
		unit_note("%s", rows[i].name);
		ASSERT_STRING_EQ(check(&rows[i], rows[i].dir,
		    any_state(&rows[i]), rows[i].min, rows[i].fd - 1, NULL),
		    "");
		ASSERT_STRING_EQ(check(&rows[i], rows[i].dir,
		    any_state(&rows[i]), rows[i].max, rows[i].fd - 1, NULL),
		    "");
	}
}

static void
test_wrong(void)
{
	const struct msg_row *r;
	unsigned int state;
	int dir;
	size_t i;

	TEST_START("each row refuses every other direction");
	for (r = rows; r < rows + nrows; r++)
		for (dir = 0; dir <= MSG_M2J + 1; dir++) {
			unit_note("%s, direction %d", r->name, dir);
			if (dir == (int)r->dir)
				continue;
			ASSERT_STRING_EQ(check(r, (enum msg_dir)dir,
			    any_state(r), r->min, r->fd - 1, NULL),
			    "wrong direction");
		}
	TEST_START("each row refuses every other state");
	for (r = rows; r < rows + nrows; r++)
		for (state = 0; state <= 2 * MS_STOPPING; state =
		    state == 0 ? 1 : state * 2) {
			unit_note("%s, state 0x%x", r->name, state);
			ASSERT_STRING_EQ(check(r, r->dir, state, r->min,
			    r->fd - 1, NULL), (r->states & state) != 0 ? "" :
			    "not in this state");
		}
	TEST_START("each row refuses one byte less and one byte more");
	for (i = 0; i < nrows; i++) {
		r = &rows[i];
		unit_note("%s", r->name);
		if (r->min > 0)
			ASSERT_STRING_EQ(check(r, r->dir, any_state(r),
			    r->min - 1, r->fd - 1, NULL), "too short");
		ASSERT_STRING_EQ(check(r, r->dir, any_state(r), r->max + 1,
		    r->fd - 1, NULL), "too long");
	}
	TEST_START("each row wants exactly the descriptor it declares");
	for (r = rows; r < rows + nrows; r++) {
		unit_note("%s", r->name);
		ASSERT_STRING_EQ(check(r, r->dir, any_state(r), r->min,
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
		ASSERT_STRING_EQ(check(r, r->dir, any_state(r), r->min,
		    r->fd - 1, &seen), "");
		ASSERT_STRING_EQ(check(r, r->dir, any_state(r), r->min,
		    r->fd - 1, &seen), r->once ? "sent twice" : "");
	}
	TEST_START("a refused message does not count as sent");
	memset(&seen, 0, sizeof(seen));
	for (r = rows; r < rows + nrows; r++) {
		if (!r->once)
			continue;
		unit_note("%s", r->name);
		ASSERT_STRING_EQ(check(r, r->dir, any_state(r), r->max + 1,
		    r->fd - 1, &seen), "too long");
		ASSERT_STRING_EQ(check(r, r->dir, any_state(r), r->max,
		    r->fd - 1, &seen), "");
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

UNIT_MAIN(test_table, test_good, test_wrong, test_once, test_unknown,
    test_role)
