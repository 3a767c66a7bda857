/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Supervision states.
 */
#include "regress/unit/unit.h"

#include "priv/monitor/supervise.h"
#include "montest.h"

static void
test_states(void)
{
	struct mt_device d;
	struct agent *a;

	mt_start();
	mt_connect(&d, MT_NET1, "edge", NULL);
	a = agents_find(&mt.agents, d.agent_id);

	TEST_START("a probe that finds the session says ready");
	supervise_probe(&mt);
	ASSERT_STRING_EQ(supervise_format_state(a), "ready");

	TEST_START("one failure is degraded, the third unreachable");
	mt_down(&d, AGENT_UNREACHABLE);
	supervise_probe(&mt);
	ASSERT_STRING_EQ(supervise_format_state(a), "degraded");
	supervise_probe(&mt);
	ASSERT_STRING_EQ(supervise_format_state(a), "degraded");
	supervise_probe(&mt);
	ASSERT_STRING_EQ(supervise_format_state(a), "unreachable");

	TEST_START("probes move nobody out of an administrative state");
	a->admin = ADMIN_CORDONED;
	supervise_probe(&mt);
	ASSERT_STRING_EQ(supervise_format_state(a), "cordoned");
	a->admin = ADMIN_DRAINING;
	ASSERT_STRING_EQ(supervise_format_state(a), "draining");

	TEST_START("uncordon lands in the state the probes justify");
	a->admin = ADMIN_READY;
	ASSERT_STRING_EQ(supervise_format_state(a), "unreachable");
	ASSERT_INT_EQ(mt_auth(&d, MT_NET1, d.credential), AUTH_OK);
	mt_hello(&d, d.agent_id, 26, NULL);
	mt_up(&d);
	supervise_probe(&mt);
	ASSERT_STRING_EQ(supervise_format_state(a), "ready");
	mt_stop();
}

/* The handle's agent after a run on label room=r. */
static const char *
place(uint32_t req)
{
	struct handle *h, *last = NULL;

	mt_run(MT_ID(1, req), "label:room=r", 1);
	for (h = handles_next(&mt.handles, NULL); h != NULL;
	    h = handles_next(&mt.handles, h))
		last = h;
	return last == NULL ? "" : last->agent->row.name;
}

static void
test_rank(void)
{
	struct mt_device d, e;

	mt_start();
	mt_connect(&d, MT_NET1, "one", "r");
	mt_connect(&e, MT_NET2, "two", "r");
	mt_operator(1, ROLE_OPERATOR);

	TEST_START("a degraded agent comes after a ready one that has more "
	    "to do");
	agents_find(&mt.agents, d.agent_id)->nfailures = 1;
	ASSERT_STRING_EQ(place(1), "two");
	ASSERT_STRING_EQ(place(2), "two");

	TEST_START("and gets new work when there is no other");
	mt_down(&e, AGENT_OFFLINE);
	ASSERT_STRING_EQ(place(3), "one");
	mt_stop();
}

UNIT_MAIN(test_states, test_rank)
