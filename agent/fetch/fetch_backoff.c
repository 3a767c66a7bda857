/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Delays of the session role.  Jitter comes after the cap: a fleet that has
 * waited long enough for every ladder to end must not return as one
 * (BC-18).  Milliseconds, so that two agents hardly ever agree.
 */
#include "fetch_backoff.h"

#include <bsd/stdlib.h>

#include "common/base/limits.h"

int64_t
fb_get_jittered(int64_t ms)
{
	return ms - ms / 4 + (int64_t)arc4random_uniform((uint32_t)(ms / 2) +
	    1);
}

int64_t
fb_get_delay(unsigned int nfailures)
{
	int64_t ms = BACKOFF_MAX_MS;

	if (nfailures < 7)	/* 2^7 s is beyond the cap */
		ms = (int64_t)BACKOFF_MIN_MS << nfailures;
	return fb_get_jittered(ms < BACKOFF_MAX_MS ? ms : BACKOFF_MAX_MS);
}
