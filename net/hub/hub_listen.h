/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The inherited listening sockets of cloopd-net: accepting, and refusing
 * before a byte was read.
 */
#ifndef CLOOP_HUB_LISTEN_H
#define CLOOP_HUB_LISTEN_H

#include <bsd/sys/queue.h>

#include <stddef.h>
#include <stdint.h>

struct hub;
struct hl;

#define HL_BATCH 16		/* connections accepted in one turn: about 1 ms
				 * that those who are in wait for */
#define HL_PAUSE_MS 500		/* without descriptors: stop asking */
#define HL_FD_RESERVE 64	/* for files of handles under way */

TAILQ_HEAD(hl_queue, hl);

struct hl_table {
	struct hl_queue queue;
	size_t nlisteners;
	uint64_t max_fds;
	int64_t pause_until;	/* 0: accepting */
};

void hl_init(struct hl_table *t);
/* A listening socket of NET_LISTEN; takes fd.  CL_SYSTEM, CL_NOMEM. */
int hl_add(struct hub *hub, int fd, int plaintext, const char *address);
/* Begin to accept; after confinement. */
int hl_start(struct hub *hub);
/* Resume after a pause. */
void hl_on_time(struct hub *hub);
/* Close all listeners. */
void hl_clear(struct hub *hub);

#endif
