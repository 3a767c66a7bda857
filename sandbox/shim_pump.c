/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Workload output: pipe to spool, in cloop-shim.  Bytes are moved, never
 * looked at.  Back-pressure is the rule of common/spool.h: a connected
 * consumer that is behind slows the workload, a dead or absent one never
 * stops it for long.
 */
#include "shim_int.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "../common/err.h"
#include "../common/limits.h"
#include "../common/log.h"

#define SHIM_STALL_POLL_MS 10	/* how soon a consumer's progress is seen */
#define SHIM_PUMP_ROUNDS 16	/* blocks per turn: messages get their turn */

void
shim_pump_init(struct shim_pump *p)
{
	memset(p, 0, sizeof(*p));
	p->fd = p->wake_fd = -1;
	p->spool.fd = -1;
}

int
shim_pump_may_read(struct shim_pump *p, int64_t now_ms, int *wait_msp)
{
	struct spool_head *h = p->spool.head;
	uint64_t sent = spool_load_u64(&h->sent);
	uint64_t total = spool_load_u64(&h->total);

	*wait_msp = -1;
	if (spool_load_u64(&h->link_up) == 0 || sent > total ||
	    total - sent < SPOOL_HIGH_LEN) {
		p->stall_at = 0;
		return 1;
	}
	if (p->stall_at == 0 || p->stall_sent != sent) {
		p->stall_at = now_ms;
		p->stall_sent = sent;
	}
	if (now_ms - p->stall_at >= SPOOL_STALL_MAX_MS)
		return 1;	/* no progress at all: it is not reading */
	*wait_msp = SHIM_STALL_POLL_MS;
	return 0;
}

static void
shim_pump_wake(struct shim_pump *p)
{
	const uint64_t one = 1;

	/* EAGAIN: the counter is full, so the reader has yet to wake up. */
	if (p->wake_fd != -1)
		(void)!write(p->wake_fd, &one, sizeof(one));
}

static void
shim_pump_put(struct shim_pump *p, size_t len)
{
	if (spool_put(&p->spool, p->block, len) != CL_OK) {
		if (!p->is_lossy)
			log_warn("spool-full", "reason=%s",
			    log_q(cl_strerror(CL_SYSTEM)));
		p->is_lossy = 1;
	}
}

static void
shim_pump_close(struct shim_pump *p)
{
	if (p->fd != -1)
		close(p->fd);
	p->fd = -1;
}

/* 1 when there may be more. */
static int
shim_pump_step(struct shim_pump *p, int *movedp)
{
	ssize_t n;

	n = read(p->fd, p->block, SPOOL_BLOCK_LEN);
	if (n > 0) {
		shim_pump_put(p, (size_t)n);
		*movedp = 1;
		return 1;
	}
	if (n == -1 && errno == EINTR)
		return 1;
	if (n == -1 && errno == EAGAIN)
		return 0;
	shim_pump_close(p);
	return 0;
}

void
shim_pump_read(struct shim_pump *p)
{
	int i, moved = 0;

	for (i = 0; i < SHIM_PUMP_ROUNDS && p->fd != -1; i++)
		if (!shim_pump_step(p, &moved))
			break;
	if (moved)
		shim_pump_wake(p);
}

void
shim_pump_end(struct shim_pump *p)
{
	int i, moved = 0;

	/* Bounded: whoever could still write is dead, or holds an end that
	 * was passed out of the sandbox and must not keep us here. */
	for (i = 0; i < SHIM_PUMP_ROUNDS && p->fd != -1; i++)
		if (!shim_pump_step(p, &moved))
			break;
	shim_pump_close(p);
	spool_save_u64(&p->spool.head->ended, 1);
	shim_pump_wake(p);
}
