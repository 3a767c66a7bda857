/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Abandoned handles in the monitor: what the device is told, what the
 * record says, and that nothing revives them.
 */
#include "regress/unit/unit.h"

#include "montest.h"

/* A running workload on a connected device; its handle. */
static struct handle *
start_work(struct mt_device *d, int is_started)
{
	struct handle *h;

	mt_connect(d, MT_NET1, "edge", NULL);
	mt_operator(1, ROLE_OPERATOR);
	mt_run(MT_ID(1, 1), "edge", 1);
	h = handles_next(&mt.handles, NULL);
	ASSERT_PTR_NE(h, NULL);
	if (is_started)
		mt_started(MT_NET1, h->row.number, RES_OK, "");
	mt_drain(1);
	mt_drain(MT_NET1);
	return h;
}

static void
abandon(uint64_t id, const char *handle_id, const char *reason)
{
	mt_ask_reason(MSG_CTL_ABANDON, id, handle_id, reason);
}

/* The verdict about the one handle it offers; the reason, or NULL. */
static const char *
offer(struct mt_device *d, int64_t version, const char *handle_id)
{
	const struct msg_verdict *v;

	ASSERT_INT_EQ(mt_auth(d, MT_NET1, d->credential), AUTH_OK);
	mt_hello(d, d->agent_id, version, handle_id);
	v = mt_welcome(MT_NET1);
	ASSERT_TRUE(v != NULL);
	if (v->what == VERDICT_NONE)
		return NULL;
	ASSERT_INT_EQ(v->what, VERDICT_ABANDONED);
	return v->reason;
}

static void
test_connected(void)
{
	struct mt_device d;
	struct handle *h;
	struct store_handle row;
	struct imsg m;
	char id[64];

	mt_start();
	TEST_START("a connected device is told to kill");
	h = start_work(&d, 1);
	snprintf(id, sizeof(id), "%s", h->row.handle_id);
	abandon(MT_ID(1, 2), id, "moved to edge-2");
	mt_expect(MT_NET1, MSG_SIGNAL, &m);
	ASSERT_U64_EQ(mt_got.SIGNAL.handle, h->row.number);
	ASSERT_INT_EQ(mt_got.SIGNAL.sig, SIG_KILL);
	mt_expect(MT_NET1, MSG_HANDLE_SHUT, &m);
	mt_expect(1, MSG_CTL_DONE, &m);
	ASSERT_U64_EQ(m.id, MT_ID(1, 2));

	TEST_START("the row says failed, with the reason");
	ASSERT_INT_EQ(store_find_handle(mt.store, id, &row), CL_OK);
	ASSERT_INT_EQ(row.state, HS_FAILED);
	ASSERT_TRUE(row.closed_at != UTIL_TIME_ZERO);
	ASSERT_STRING_EQ(row.error,
	    "abandoned by the control plane: moved to edge-2");
	store_handle_clear(&row);

	TEST_START("no status of the device changes it");
	mt_status(&d, h->row.number, HS_EXITED, 0);
	mt_status(&d, h->row.number, HS_RUNNING, 0);
	ASSERT_INT_EQ(h->row.state, HS_FAILED);

	TEST_START("the first reason stays; the operator is answered again");
	abandon(MT_ID(1, 3), id, "something else");
	mt_expect(1, MSG_CTL_DONE, &m);
	ASSERT_STRING_EQ(h->abandoned, "moved to edge-2");

	TEST_START("an unknown handle is refused");
	abandon(MT_ID(1, 4), "AAAAAAAAAAAAAAAA", "");
	ASSERT_STRING_EQ(mt_refusal(MT_ID(1, 4)), "handle_not_found");
	mt_stop();
}

static void
test_offered(void)
{
	struct mt_device d;
	struct handle *h;
	char id[64], longer[MAX_REASON_LEN + 1];

	mt_start();
	TEST_START("an offer of it is terminated with the reason");
	h = start_work(&d, 1);
	snprintf(id, sizeof(id), "%s", h->row.handle_id);
	mt_down(&d, AGENT_UNREACHABLE);
	memset(longer, 'x', MAX_REASON_LEN);
	longer[MAX_REASON_LEN] = '\0';
	abandon(MT_ID(1, 2), id, longer);
	ASSERT_INT_EQ(h->row.state, HS_FAILED);
	ASSERT_STRING_EQ(offer(&d, 26, id), longer);
	mt_down(&d, AGENT_OFFLINE);
	ASSERT_STRING_EQ(offer(&d, 5, id), longer);
	mt_down(&d, AGENT_OFFLINE);

	TEST_START("below version 5 nothing is said of it");
	ASSERT_PTR_EQ(offer(&d, 4, id), NULL);
	mt_stop();
}

static void
test_pending(void)
{
	struct mt_device d;
	struct handle *h;
	struct imsg m;

	mt_start();
	TEST_START("one whose start is in flight ends too, and is killed");
	h = start_work(&d, 0);
	abandon(MT_ID(1, 2), h->row.handle_id, "");
	mt_expect(MT_NET1, MSG_SIGNAL, &m);
	ASSERT_INT_EQ(h->row.state, HS_FAILED);
	ASSERT_STRING_EQ(h->row.error,
	    "abandoned by the control plane: by an operator");

	TEST_START("its late answer answers who waited, and revives nothing");
	mt_drain(1);
	mt_started(MT_NET1, h->row.number, RES_OK, "");
	ASSERT_INT_EQ(h->row.state, HS_FAILED);
	mt_expect(1, MSG_CTL_DONE, &m);
	ASSERT_U64_EQ(m.id, MT_ID(1, 1));
	mt_stop();
}

static void
test_viewer(void)
{
	struct mt_device d;
	struct handle *h;

	mt_start();
	TEST_START("a viewer abandons nothing");
	h = start_work(&d, 1);
	mt_operator(2, ROLE_VIEWER);
	abandon(MT_ID(2, 1), h->row.handle_id, "");
	ASSERT_INT_EQ(mt.children[1].state, CHILD_DOWN);
	ASSERT_INT_EQ(h->row.state, HS_RUNNING);
	mt_stop();
}

UNIT_MAIN(test_connected, test_offered, test_pending, test_viewer)
