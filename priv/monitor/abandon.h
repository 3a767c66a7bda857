/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Giving a workload up.
 */
#ifndef PRIV_ABANDON_H
#define PRIV_ABANDON_H

struct handle;
struct monitor;

/*
 * The handle ends here and now, as failed; the device is told to kill it,
 * now when it is connected, else when it offers it again.  The first reason
 * stays (cut to MAX_REASON_LEN).  One that is closed already keeps its end
 * and is refused from now on.  The store write is part of the turn.
 */
void abandon_handle(struct monitor *mon, struct handle *h,
    const char *reason);

#endif
