/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Seals: when a handle has ended the monitor, which reads no output itself,
 * hands its two files over read-only, and is told their lengths and digests
 * (logindex_scan).  A slice a turn, one after the other.
 */
#ifndef CLOOP_HUB_SEAL_H
#define CLOOP_HUB_SEAL_H

#include <bsd/sys/queue.h>

#include <stddef.h>

struct hseal;
struct hub;
struct imsg;
struct msg_handle_seal;

#define HSEAL_SLICE 1048576	/* bytes read in one turn */

TAILQ_HEAD(hseal_list, hseal);

void hseal_init(struct hseal_list *l);
/* HANDLE_SEAL: the index first, then the log. */
void hseal_on_file(struct hub *hub, struct imsg *m,
    struct msg_handle_seal *v);
/* One slice, and HANDLE_SEALED when that was the last.  1: there is more. */
int hseal_run(struct hub *hub);

#endif
