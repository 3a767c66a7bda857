/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * How long agentd-fetch waits.
 */
#ifndef CLOOP_FETCH_BACKOFF_H
#define CLOOP_FETCH_BACKOFF_H

#include <stdint.h>

/* A fresh uniform factor in [0.75, 1.25]. */
int64_t fb_get_jittered(int64_t ms);
/* Before the next attempt, after so many failed ones since a welcome. */
int64_t fb_get_delay(unsigned int nfailures);

#endif
