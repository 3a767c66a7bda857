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
say_secret(uint64_t id, const char *name, const char *kind, int personal,
    const char *text)
{
	struct msg_ctl_secret_put v = { strlen(text), name, kind, personal };
	int fd;

	ASSERT_INT_EQ(util_make_memfd(text, strlen(text), &fd), CL_OK);
	MT_SAY(1, CTL_SECRET_PUT, id, &v, fd);
}

UNIT_STATIC void
put_secret(const char *name, const char *kind, const char *text)
{
	struct imsg m;

	say_secret(MT_ID(1, 10), name, kind, 0, text);
	ASSERT_INT_EQ(answer(MT_ID(1, 10), MSG_ROW_SECRET, &m),
	    MSG_ROW_SECRET);
	mt_drain(1);
}

UNIT_STATIC void
add_grant(const char *name, const char *subject, int64_t ttl)
{
	struct ctl_grant_add req;
	struct imsg m;

	memset(&req, 0, sizeof(req));
	req.secret = (char *)(uintptr_t)name;
	req.subject = (char *)(uintptr_t)subject;
	req.ttl_s = ttl;
	MT_SAY(1, CTL_GRANT_ADD, MT_ID(1, 11), &req, -1);
	ASSERT_INT_EQ(answer(MT_ID(1, 11), MSG_ROW_GRANT, &m),
	    MSG_ROW_GRANT);
	snprintf(grant_id, sizeof(grant_id), "%s", mt_got.ROW_GRANT.grant_id);
	mt_drain(1);
}

UNIT_STATIC void
run_with(const char *secret)
{
	struct msg_want want = { .secret = secret };
	struct msg_ctl_run v = { .where = "edge", .detach = 1,
	    .wants = &want, .nwants = 1 };
	struct spec s;

	spec_init(&s);
	mt_run_spec(MT_ID(1, 12), &v, &s);
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
	struct msg_ctl_lease_revoke v = { .lease = lease_id, .kill = kill };

	MT_SAY(1, CTL_LEASE_REVOKE, MT_ID(1, req), &v, -1);
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
	struct imsg m;

	ASSERT_INT_EQ(answer(MT_ID(1, req), MSG_ROW_OUTCOME, &m),
	    MSG_ROW_OUTCOME);
	ASSERT_STRING_EQ(mt_got.ROW_OUTCOME.state, want);
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
