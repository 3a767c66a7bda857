/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * A monitor (montest.h) that lends: secrets, grants and runs as an operator
 * asks for them, and what the device hears and says.
 */
#ifndef CLOOP_LENDTEST_H
#define CLOOP_LENDTEST_H

#include "common/model/leasemsg.h"
#include "store/db/seal.h"
#include "store/db/store_lease.h"
#include "montest.h"

#define VALUE "s3cr3t-value-0123456789"

static char lease_id[64], grant_id[64], handle_id[64];
static uint64_t handle;

UNIT_STATIC void
set_up(struct mt_device *d)
{
	mt_start();
	ASSERT_INT_EQ(seal_new_key(&mt.leases.keks.key[0]), CL_OK);
	mt.leases.keks.n = 1;
	store_make_id("hub_", mt.leases.holder);
	mt_operator(1, ROLE_OPERATOR);
	mt_connect(d, MT_NET1, "edge", "a");
}

/* The next answer for a request: its type; rows are kept in *m. */
UNIT_STATIC uint32_t
answer(uint64_t id, uint32_t row, struct imsg *m)
{
	uint32_t got;

	mon_end_turn(&mt);
	while ((got = mt_hear(1, m)) != 0) {
		if (m->id == id && (got == row || got == MSG_CTL_DONE ||
		    got == MSG_CTL_ERR))
			return got;
		imsg_free(m);
	}
	return 0;
}

UNIT_STATIC void
put_secret(const char *name, const char *kind, const char *text)
{
	struct imsg m;
	struct buf b;
	int fd;

	ASSERT_INT_EQ(util_make_memfd(text, strlen(text), &fd), CL_OK);
	buf_init(&b, MSG_BODY_MAX);
	buf_put_u32(&b, (uint32_t)strlen(text));
	buf_put_str(&b, name);
	buf_put_str(&b, kind);
	buf_put_u8(&b, 0);
	mt_say(1, MSG_CTL_SECRET_PUT, MT_ID(1, 10), &b, fd);
	ASSERT_INT_EQ(answer(MT_ID(1, 10), MSG_ROW_SECRET, &m),
	    MSG_ROW_SECRET);
	mt_drain(1);
}

UNIT_STATIC void
add_grant(const char *name, const char *subject, int64_t ttl)
{
	struct ctl_grant_add req;
	struct ctl_grant g;
	struct imsg m;
	struct buf b;

	memset(&req, 0, sizeof(req));
	req.secret = (char *)(uintptr_t)name;
	req.subject = (char *)(uintptr_t)subject;
	req.ttl_s = ttl;
	buf_init(&b, MSG_BODY_MAX);
	field_put(&ctl_grant_add_table, &req, &b);
	mt_say(1, MSG_CTL_GRANT_ADD, MT_ID(1, 11), &b, -1);
	ASSERT_INT_EQ(answer(MT_ID(1, 11), MSG_ROW_GRANT, &m),
	    MSG_ROW_GRANT);
	ASSERT_INT_EQ(field_get(&ctl_grant_table, &m.body, &g), CL_OK);
	snprintf(grant_id, sizeof(grant_id), "%s", g.grant_id);
	field_clear(&ctl_grant_table, &g);
	mt_drain(1);
}

UNIT_STATIC void
run_with(const char *secret)
{
	static char *argv[] = { (char *)(uintptr_t)"true" };
	struct spec s;
	struct buf b;
	uint32_t len;
	int fd;

	spec_init(&s);
	s.argv = argv;
	s.nargv = 1;
	fd = mt_memfd(&spec_start_table, &s, &len);
	buf_init(&b, MSG_BODY_MAX);
	buf_put_u32(&b, len);
	buf_put_str(&b, "edge");
	buf_put_str(&b, "");
	buf_put_u8(&b, 1);
	buf_put_u16(&b, 1);
	buf_put_str(&b, secret);
	buf_put_str(&b, "");
	buf_put_u32(&b, 0);
	mt_say(1, MSG_CTL_RUN, MT_ID(1, 12), &b, fd);
	mon_end_turn(&mt);
}

/* The start as the worker gets it: redactions first. */
UNIT_STATIC void
expect_start(struct mt_device *d, struct spec *spec)
{
	uint8_t *data;
	struct imsg m;
	struct buf b;
	size_t len;

	mt_expect(d->net, MSG_HANDLE_REDACT, &m);
	handle = mt_got.HANDLE_REDACT.handle;
	len = (size_t)mt_got.HANDLE_REDACT.len;
	ASSERT_INT_EQ(util_load_memfd(m.fd, len, 65536, &data), CL_OK);
	ASSERT_TRUE(memmem(data, len, VALUE, strlen(VALUE)) != NULL);
	free(data);
	imsg_free(&m);
	mt_expect(d->net, MSG_START, &m);
	ASSERT_U64_EQ(mt_got.START.handle, handle);
	len = (size_t)mt_got.START.len;
	ASSERT_INT_EQ(util_load_memfd(m.fd, len, MAX_SPEC_LEN, &data),
	    CL_OK);
	buf_init_read(&b, data, len);
	ASSERT_INT_EQ(spec_get(&b, spec), CL_OK);
	free(data);
	imsg_free(&m);
	ASSERT_SIZE_T_EQ(spec->nsecrets, 1);
	snprintf(lease_id, sizeof(lease_id), "%s", spec->secrets[0].lease_id);
	snprintf(handle_id, sizeof(handle_id), "%s", spec->handle_id);
}

/* A running workload with one lent secret. */
UNIT_STATIC void
lend(struct mt_device *d, const char *kind, const char *text)
{
	struct spec spec;

	put_secret("tok", kind, text);
	add_grant("tok", "any", 0);
	run_with("tok");
	expect_start(d, &spec);
	spec_clear(&spec);
	mt_started(d->net, handle, RES_OK, "");
	mt_drain(1);
}

UNIT_STATIC void
ask_revoke(uint32_t req, int kill)
{
	struct buf b;

	buf_init(&b, MSG_BODY_MAX);
	buf_put_str(&b, lease_id);
	buf_put_str(&b, "");
	buf_put_u8(&b, (uint8_t)kill);
	buf_put_str(&b, "");
	mt_say(1, MSG_CTL_LEASE_REVOKE, MT_ID(1, req), &b, -1);
	mon_end_turn(&mt);
}

/* The next REVOKE for the device: its id, 0 when there is none. */
UNIT_STATIC uint64_t
hear_revoke(struct mt_device *d, int *actionp)
{
	struct imsg m;
	uint64_t id = 0;
	uint32_t got;

	while ((got = mt_hear(d->net, &m)) != 0) {
		if (got == MSG_REVOKE) {
			id = m.id;
			*actionp = (int)mt_got.REVOKE.action;
			ASSERT_STRING_EQ(mt_got.REVOKE.lease, lease_id);
		}
		imsg_free(&m);
		if (got == MSG_REVOKE)
			return id;
	}
	return 0;
}

UNIT_STATIC void
say_revoked(struct mt_device *d, uint64_t id, const char *error)
{
	struct msg_revoke_ans body = { .report = { .known = 1,
	    .files_removed = 1, .error = (char *)(uintptr_t)error } };

	MT_SAY(d->net, REVOKE_ANS, id, &body, -1);
}

/* The state of the outcome a request got. */
UNIT_STATIC void
expect_outcome(uint32_t req, const char *want)
{
	struct ctl_outcome o;
	struct imsg m;

	ASSERT_INT_EQ(answer(MT_ID(1, req), MSG_ROW_OUTCOME, &m),
	    MSG_ROW_OUTCOME);
	ASSERT_INT_EQ(field_get(&ctl_outcome_table, &m.body, &o), CL_OK);
	ASSERT_STRING_EQ(o.state, want);
	field_clear(&ctl_outcome_table, &o);
	imsg_free(&m);
	ASSERT_INT_EQ(answer(MT_ID(1, req), MSG_ROW_OUTCOME, &m),
	    MSG_CTL_DONE);
	imsg_free(&m);
}

UNIT_STATIC int
lease_state(void)
{
	struct store_lease l;
	int state;

	ASSERT_INT_EQ(store_find_lease(mt.store, lease_id, &l), CL_OK);
	state = l.state;
	store_lease_clear(&l);
	return state;
}

UNIT_STATIC void
lapse(void)
{
	ASSERT_INT_EQ(store_extend_lease(mt.store, lease_id,
	    mt.leases.holder, 0, util_wall_ns() - 1), CL_OK);
}

#endif
