/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Pending asks of cloopd-net.  Trusts the monitor, but not the order of
 * events: an owner may be gone when its answer comes, and an answer may come
 * after its deadline.
 */
#include "ask.h"

#include <stdlib.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/msg/imsg.h"

struct ask {
	RB_ENTRY(ask) node;
	TAILQ_ENTRY(ask) link;
	LIST_ENTRY(ask) own;
	struct ask_owner *owner;	/* alive: it would have stopped us */
	uint64_t id;
	uint32_t type;
	int64_t deadline;
	ask_fn *fn;
};

static int
ask_cmp(const struct ask *a, const struct ask *b)
{
	return a->id < b->id ? -1 : a->id > b->id;
}

RB_GENERATE_INTERNAL(ask_tree, ask, node, ask_cmp,
    __attribute__((__unused__)) static)

void
ask_init(struct ask_table *t, void *ctx, ask_send_fn *send)
{
	RB_INIT(&t->tree);
	TAILQ_INIT(&t->queue);
	t->nasks = 0;
	t->next_id = 1;
	t->ctx = ctx;
	t->send = send;
}

static void
ask_del(struct ask_table *t, struct ask *a)
{
	RB_REMOVE(ask_tree, &t->tree, a);
	TAILQ_REMOVE(&t->queue, a, link);
	LIST_REMOVE(a, own);
	a->owner->nasks--;
	t->nasks--;
	free(a);
}

void
ask_clear(struct ask_table *t)
{
	struct ask *a;

	while ((a = TAILQ_FIRST(&t->queue)) != NULL)
		ask_del(t, a);
}

void
ask_init_owner(struct ask_owner *o, uint64_t number)
{
	o->number = number;
	LIST_INIT(&o->asks);
	o->nasks = 0;
}

int
ask_start(struct ask_table *t, struct ask_owner *o, uint32_t type,
    const void *v, int fd, ask_fn *fn, int64_t now)
{
	struct ask *a;
	int r;

	if (o->nasks >= MAX_ASKS_PER_SESSION || t->nasks >= MAX_ASKS_TOTAL) {
		if (fd != -1)
			close(fd);
		return CL_LIMIT;
	}
	if ((a = calloc(1, sizeof(*a))) == NULL) {
		if (fd != -1)
			close(fd);
		return CL_NOMEM;
	}
	a->id = t->next_id++;
	if ((r = t->send(t->ctx, type, a->id, v, fd)) != CL_OK) {
		free(a);
		return r;
	}
	a->owner = o;
	a->type = type;
	a->fn = fn;
	a->deadline = now + ASK_TIMEOUT_MS;
	RB_INSERT(ask_tree, &t->tree, a);
	TAILQ_INSERT_TAIL(&t->queue, a, link);
	LIST_INSERT_HEAD(&o->asks, a, own);
	o->nasks++;
	t->nasks++;
	return CL_OK;
}

void
ask_stop(struct ask_table *t, struct ask_owner *o)
{
	struct ask *a;

	while ((a = LIST_FIRST(&o->asks)) != NULL)
		ask_del(t, a);
}

int
ask_answer(struct ask_table *t, const struct imsg *m, union msg_any *v)
{
	struct ask key = { .id = m->id }, *a;
	uint64_t owner;
	ask_fn *fn;

	if ((a = RB_FIND(ask_tree, &t->tree, &key)) == NULL)
		return CL_NOTFOUND;
	if (m->type != a->type + 1)
		return CL_FORMAT;
	/* Forgotten before the callback runs: it may end its owner. */
	owner = a->owner->number;
	fn = a->fn;
	ask_del(t, a);
	fn(t->ctx, owner, v);
	return CL_OK;
}

void
ask_on_time(struct ask_table *t, int64_t now)
{
	struct ask *a;
	uint64_t owner;
	ask_fn *fn;

	while ((a = TAILQ_FIRST(&t->queue)) != NULL && a->deadline <= now) {
		owner = a->owner->number;
		fn = a->fn;
		ask_del(t, a);
		fn(t->ctx, owner, NULL);
	}
}
