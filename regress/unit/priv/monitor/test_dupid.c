/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * priv/monitor/dupid: when two hosts with one identity are noticed, and how
 * often they change places then (BC-38).
 */
#include "regress/unit/unit.h"

#include "priv/monitor/dupid.h"

static void
test_window(void)
{
	struct dupid d;
	int64_t now;

	TEST_START("three answers within a minute are an alarm, two are not");
	memset(&d, 0, sizeof(d));
	ASSERT_INT_EQ(dupid_add(&d, 1000), DUPID_NOTHING);
	ASSERT_INT_EQ(dupid_add(&d, 2000), DUPID_NOTHING);
	ASSERT_FALSE(dupid_is_quiet(&d, 2000));
	ASSERT_FALSE(dupid_is_suspect(&d, 2000));
	ASSERT_INT_EQ(dupid_add(&d, 3000), DUPID_ALARM);
	ASSERT_TRUE(dupid_is_quiet(&d, 3000));
	ASSERT_TRUE(dupid_is_suspect(&d, 3000));

	TEST_START("the third counts up to the end of the window");
	memset(&d, 0, sizeof(d));
	(void)dupid_add(&d, 1000);
	(void)dupid_add(&d, 2000);
	ASSERT_INT_EQ(dupid_add(&d, 1000 + DUPID_WINDOW_MS), DUPID_NOTHING);
	ASSERT_INT_EQ(dupid_add(&d, 2000 + DUPID_WINDOW_MS - 1),
	    DUPID_ALARM);

	TEST_START("a link that freezes now and then is never one");
	memset(&d, 0, sizeof(d));
	for (now = 1000; now < 3600000; now += DUPID_WINDOW_MS / 2)
		ASSERT_INT_EQ(dupid_add(&d, now), DUPID_NOTHING);
}

/* Both try every second; whoever may, replaces the other, who answers. */
static unsigned int
count_changes(struct dupid *d, int64_t from, int64_t to)
{
	unsigned int n = 0;
	int64_t now;

	for (now = from; now < to; now += 1000)
		if (!dupid_is_quiet(d, now)) {
			(void)dupid_add(d, now);
			n++;
		}
	return n;
}

static void
test_pace(void)
{
	struct dupid d;
	unsigned int n;

	TEST_START("once noticed, two hosts change places once a minute");
	memset(&d, 0, sizeof(d));
	ASSERT_INT_EQ(count_changes(&d, 1000, 4000), 3);
	ASSERT_INT_EQ(count_changes(&d, 4000, 4000 + 600000), 10);

	TEST_START("and are told of once, not once a minute");
	n = dupid_add(&d, 700000);
	ASSERT_INT_EQ(n, DUPID_AGAIN);

	TEST_START("ten minutes without an answer, and it is forgotten");
	ASSERT_TRUE(dupid_is_suspect(&d, 700000 + DUPID_KEEP_MS - 1));
	ASSERT_FALSE(dupid_is_suspect(&d, 700000 + DUPID_KEEP_MS));
	ASSERT_INT_EQ(dupid_add(&d, 700000 + DUPID_KEEP_MS), DUPID_NOTHING);
}

UNIT_MAIN(test_window, test_pace)
