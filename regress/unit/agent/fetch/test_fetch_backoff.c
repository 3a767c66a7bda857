/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Back-off: the ladder, and what a fleet does when its hub comes back after
 * half an hour (BC-18), on a virtual clock.
 */
#include "regress/unit/unit.h"

#include "agent/fetch/fetch.h"
#include "common/base/limits.h"

#define NAGENTS 500
#define NROUNDS 64
#define OUTAGE_MS (30 * 60 * 1000)
#define BIN_MS 100
#define NBINS (60000 / BIN_MS)

static void
test_ladder(void)
{
	int64_t ms, want, low, high;
	unsigned int n;
	int i;

	TEST_START("each step is within a quarter of min(120 s, 2^n s), on "
	    "both sides");
	for (n = 0; n < 40; n++) {
		want = n < 7 ? 1000LL << n : 120000;
		low = high = want;
		for (i = 0; i < 2000; i++) {
			ms = fetch_get_delay(n);
			ASSERT_INT_GE(ms, want - want / 4);
			ASSERT_INT_LE(ms, want + want / 4);
			low = ms < low ? ms : low;
			high = ms > high ? ms : high;
		}
		/* All of the range is used, beyond the cap too. */
		ASSERT_INT_LT(low, want - want / 5);
		ASSERT_INT_GT(high, want + want / 5);
	}
	ASSERT_INT_LE(fetch_get_delay(UINT32_MAX), 150000);

	TEST_START("nothing is jittered to nothing");
	for (i = 0; i < 100; i++) {
		ASSERT_INT_EQ(fetch_get_jittered(0), 0);
		ASSERT_INT_GE(fetch_get_jittered(1), 1);
	}
}

/* One agent through the outage; its attempts in the first minute after. */
static void
run_agent(unsigned int *bins, int64_t *schedule)
{
	int64_t now = 0, after;
	unsigned int n = 0, k = 0;

	for (;;) {
		now += fetch_get_delay(n++);
		if (schedule != NULL && k < 4 && n > 8)
			schedule[k++] = now;
		after = now - OUTAGE_MS;
		if (after < 0)
			continue;
		if (after < 60000)
			bins[after / BIN_MS]++;
		return;		/* it is welcome now */
	}
}

static void
test_stampede(void)
{
	static unsigned int bins[NBINS];
	static int64_t schedules[NAGENTS][4];
	unsigned int peak = 0, total = 0;
	size_t i, k;

	TEST_START("half an hour down, then up: no stampede (BC-18)");
	/* Each of 64 fleets of 500 began at the same instant; together they
	 * fill the bins enough for the ratio to mean something. */
	for (k = 0; k < NROUNDS; k++)
		for (i = 0; i < NAGENTS; i++)
			run_agent(bins, k == 0 ? schedules[i] : NULL);
	for (i = 0; i < NBINS; i++) {
		total += bins[i];
		if (bins[i] > peak)
			peak = bins[i];
	}
	/* Most of a period of 120 s fits the minute only in half. */
	ASSERT_INT_GT(total, NROUNDS * NAGENTS / 4);
	ASSERT_INT_LE(peak * NBINS, 3 * total);

	TEST_START("no two agents share a schedule (BC-18)");
	for (i = 0; i < NAGENTS; i++)
		for (k = 0; k < i; k++)
			ASSERT_TRUE(memcmp(schedules[i], schedules[k],
			    sizeof(schedules[i])) != 0);
}

UNIT_MAIN(test_ladder, test_stampede)
