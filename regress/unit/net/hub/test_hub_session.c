/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * net/hub/hub_session: a walk over every cell of the state table.
 * The list below is the one of cloop-protocol.7; a cell that is not in it
 * means "out of order: close".
 */
#include "regress/unit/unit.h"

#include "common/base/limits.h"
#include "net/hub/hub_session.h"

static const struct cell {
	const char *state, *event, *next;
} cells[] = {
	{ "TLS", "READY", "HEAD" }, { "TLS", "CLOSE", "DEAD" },
	{ "TLS", "EOF", "DEAD" }, { "TLS", "FAIL", "DEAD" },
	{ "TLS", "TIMEOUT", "DEAD" },
	{ "HEAD", "REQUEST", "AUTH" }, { "HEAD", "REFUSE", "REPLY" },
	{ "HEAD", "DENIED", "DELAY" }, { "HEAD", "CLOSE", "DEAD" },
	{ "HEAD", "EOF", "DEAD" }, { "HEAD", "FAIL", "DEAD" },
	{ "HEAD", "TIMEOUT", "DEAD" },
	{ "AUTH", "GRANTED", "HELLO" }, { "AUTH", "REFUSE", "REPLY" },
	{ "AUTH", "DENIED", "DELAY" }, { "AUTH", "CLOSE", "DEAD" },
	{ "AUTH", "EOF", "DEAD" }, { "AUTH", "FAIL", "DEAD" },
	{ "DELAY", "TIMEOUT", "REPLY" }, { "DELAY", "CLOSE", "DEAD" },
	{ "DELAY", "EOF", "DEAD" }, { "DELAY", "FAIL", "DEAD" },
	{ "REPLY", "SENT", "LINGER" }, { "REPLY", "CLOSE", "DEAD" },
	{ "REPLY", "EOF", "DEAD" }, { "REPLY", "FAIL", "DEAD" },
	{ "REPLY", "TIMEOUT", "DEAD" },
	{ "HELLO", "MESSAGE", "VERIFY" }, { "HELLO", "CLOSE", "CLOSING" },
	{ "HELLO", "CLOSED", "CLOSING" }, { "HELLO", "EOF", "DEAD" },
	{ "HELLO", "FAIL", "DEAD" }, { "HELLO", "TIMEOUT", "CLOSING" },
	{ "VERIFY", "VERIFIED", "WELCOME" }, { "VERIFY", "CLOSE", "CLOSING" },
	{ "VERIFY", "EOF", "DEAD" }, { "VERIFY", "FAIL", "DEAD" },
	{ "VERIFY", "TIMEOUT", "CLOSING" },
	{ "WELCOME", "SENT", "LIVE" }, { "WELCOME", "CLOSE", "CLOSING" },
	{ "WELCOME", "EOF", "DEAD" }, { "WELCOME", "FAIL", "DEAD" },
	{ "WELCOME", "TIMEOUT", "DEAD" },
	{ "LIVE", "MESSAGE", "LIVE" }, { "LIVE", "CLOSE", "CLOSING" },
	{ "LIVE", "CLOSED", "CLOSING" }, { "LIVE", "EOF", "DEAD" },
	{ "LIVE", "FAIL", "DEAD" }, { "LIVE", "TIMEOUT", "CLOSING" },
	{ "CLOSING", "SENT", "LINGER" }, { "CLOSING", "CLOSE", "CLOSING" },
	{ "CLOSING", "EOF", "DEAD" }, { "CLOSING", "FAIL", "DEAD" },
	{ "CLOSING", "TIMEOUT", "DEAD" },
	{ "LINGER", "CLOSE", "LINGER" }, { "LINGER", "EOF", "DEAD" },
	{ "LINGER", "FAIL", "DEAD" }, { "LINGER", "TIMEOUT", "DEAD" },
};

static const char *
find_cell(const char *state, const char *event)
{
	size_t i;

	for (i = 0; i < sizeof(cells) / sizeof(cells[0]); i++)
		if (strcmp(cells[i].state, state) == 0 &&
		    strcmp(cells[i].event, event) == 0)
			return cells[i].next;
	return hs_state_name(HST_NONE);
}

static void
test_walk(void)
{
	size_t n = 0;
	int st, ev;

	TEST_START("the allowed cells are the documented ones, no others");
	for (st = HST_NONE; st < HST_NSTATES; st++)
		for (ev = HE_NONE; ev < HE_NEVENTS; ev++) {
			unit_note("%s on %s", hs_state_name(st),
			    hs_event_name(ev));
			ASSERT_STRING_EQ(hs_state_name(hs_table[st][ev].next),
			    find_cell(hs_state_name(st), hs_event_name(ev)));
			n += hs_table[st][ev].next != HST_NONE;
		}
	ASSERT_SIZE_T_EQ(n, sizeof(cells) / sizeof(cells[0]));
}

/* States from which `to` can be reached in one step. */
static int
is_reached(int to)
{
	int st, ev;

	for (st = HST_NONE + 1; st < HST_NSTATES; st++)
		for (ev = HE_NONE + 1; ev < HE_NEVENTS; ev++)
			if (st != to && (int)hs_table[st][ev].next == to)
				return 1;
	return 0;
}

static void
test_ends(void)
{
	int st;

	TEST_START("every state but the first is reached, and every one can "
	    "end");
	for (st = HST_TLS; st < HST_DEAD; st++) {
		unit_note("%s", hs_state_name(st));
		ASSERT_INT_EQ(is_reached(st), st != HST_TLS);
		ASSERT_INT_EQ(hs_table[st][HE_FAIL].next, HST_DEAD);
		ASSERT_INT_EQ(hs_table[st][HE_EOF].next, HST_DEAD);
		ASSERT_INT_NE(hs_table[st][HE_CLOSE].next, HST_NONE);
	}

	TEST_START("only the credential's and the live state have no "
	    "deadline of their own");
	for (st = HST_TLS; st < HST_DEAD; st++) {
		unit_note("%s", hs_state_name(st));
		ASSERT_INT_EQ(hs_table[st][HE_TIMEOUT].next != HST_NONE,
		    st != HST_AUTH);
	}
}

UNIT_MAIN(test_walk, test_ends)
