/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Timers of the load generator: one of each agent, in slots of 4 ms.
 */
#ifndef CLOOP_BENCH_WHEEL_H
#define CLOOP_BENCH_WHEEL_H

#include <bsd/sys/queue.h>

#include <stdint.h>

#define WHEEL_SLOTS 8192		/* 32 s; later ones go round */
#define WHEEL_SLOT_MS 4

struct wheel_timer {
	LIST_ENTRY(wheel_timer) link;
	int64_t due;			/* ms, 0: not set */
};
LIST_HEAD(wheel_slot, wheel_timer);

struct wheel {
	struct wheel_slot slots[WHEEL_SLOTS];
	int64_t at;			/* the slot looked at next, in slots */
};

typedef void wheel_fn(struct wheel_timer *);

void wheel_init(struct wheel *w, int64_t now_ms);
void wheel_set(struct wheel *w, struct wheel_timer *t, int64_t due_ms);
void wheel_del(struct wheel_timer *t);
void wheel_run(struct wheel *w, int64_t now_ms, wheel_fn *fn);

#endif
