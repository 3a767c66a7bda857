/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * A timer wheel: setting and running cost the same for any number.
 */
#include "wheel.h"

#include <stddef.h>

void
wheel_init(struct wheel *w, int64_t now_ms)
{
	int i;

	for (i = 0; i < WHEEL_SLOTS; i++)
		LIST_INIT(&w->slots[i]);
	w->at = now_ms / WHEEL_SLOT_MS;
}

void
wheel_del(struct wheel_timer *t)
{
	if (t->due != 0)
		LIST_REMOVE(t, link);
	t->due = 0;
}

void
wheel_set(struct wheel *w, struct wheel_timer *t, int64_t due_ms)
{
	int64_t slot = due_ms / WHEEL_SLOT_MS;

	wheel_del(t);
	if (slot < w->at)
		slot = w->at;
	t->due = due_ms > 0 ? due_ms : 1;
	LIST_INSERT_HEAD(&w->slots[slot % WHEEL_SLOTS], t, link);
}

void
wheel_run(struct wheel *w, int64_t now_ms, wheel_fn *fn)
{
	struct wheel_timer *t, *next;
	struct wheel_slot due;
	int64_t slot;

	while (w->at <= now_ms / WHEEL_SLOT_MS) {
		/* Taken off first: fn sets timers, at the earliest into the
		 * slot behind this one. */
		LIST_INIT(&due);
		slot = w->at++;
		LIST_FOREACH_SAFE(t, &w->slots[slot % WHEEL_SLOTS], link,
		    next) {
			if (t->due / WHEEL_SLOT_MS > slot)
				continue;
			LIST_REMOVE(t, link);
			LIST_INSERT_HEAD(&due, t, link);
		}
		while ((t = LIST_FIRST(&due)) != NULL) {
			wheel_del(t);
			fn(t);
		}
	}
}
