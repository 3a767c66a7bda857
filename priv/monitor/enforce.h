/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * PerSourcePenalty "enforce nft", in the monitor: penalised sources wait
 * here for cloopd-fence, which gets one order at a time.  The kernel only
 * saves work: what it does not hold off, cloopd-net still refuses.
 */
#ifndef PRIV_ENFORCE_H
#define PRIV_ENFORCE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/limits.h"
#include "penalty.h"

struct child;
struct hub_conf;
struct monitor;

struct enforce {
	struct enforce_row {
		struct penalty_source source;
		int64_t until;		/* monotonic ms */
	} queue[MAX_FENCE_QUEUE];
	size_t n;
	struct child *child;		/* NULL: not enforced */
	int busy;			/* an order is out, since */
	int64_t asked_at;
	uint64_t ndropped;		/* the queue was full */
};

/* For -t and the start: CL_OK, or CL_NOTFOUND with the line for the user. */
int enforce_check(const struct hub_conf *c, const char *file, char *err,
    size_t errlen);
/* The child's slot is its own; before the monitor gives up capabilities. */
void enforce_init(struct monitor *mon, struct child *c);
/* FENCE_OPEN with the ports of all listeners. */
void enforce_configure(struct child *c);
/* This source has left_ms to wait. */
void enforce_add(struct monitor *mon, const struct penalty_source *s,
    uint32_t left_ms);
/* Deadline of the order that is out. */
void enforce_on_tick(struct monitor *mon);
/* cloopd-fence ended; it cannot be started again. */
void enforce_on_down(struct monitor *mon);

#endif
