/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Asynchronous asks from cloopd-net to the monitor.  An ask is an id, a
 * deadline and the number of its owner; the answer brings the id back and
 * the callback looks the owner up.  Stopping an owner forgets its asks: a
 * late answer finds nothing and is dropped.  No knowledge of sessions or of
 * libevent; the channel is a function of the caller's.
 */
#ifndef CLOOP_ASK_H
#define CLOOP_ASK_H

#include <bsd/sys/queue.h>
#include <bsd/sys/tree.h>

#include <stddef.h>
#include <stdint.h>

struct ask;
struct imsg;
union msg_any;

/*
 * The answer of one ask, or NULL: none came before the deadline.  The
 * owner's number is all that is known about who asked.
 */
typedef void ask_fn(void *ctx, uint64_t owner, union msg_any *v);
/* Queue a message to the monitor, as chan_send. */
typedef int ask_send_fn(void *ctx, uint32_t type, uint64_t id,
    const void *v, int fd);

RB_HEAD(ask_tree, ask);
TAILQ_HEAD(ask_queue, ask);

struct ask_table {
	struct ask_tree tree;		/* by id */
	struct ask_queue queue;		/* oldest first: deadlines in order */
	size_t nasks;
	uint64_t next_id;
	void *ctx;
	ask_send_fn *send;
};

/* Embedded in whoever asks; zero it and set the number. */
struct ask_owner {
	uint64_t number;
	LIST_HEAD(, ask) asks;
	unsigned int nasks;
};

void ask_init(struct ask_table *t, void *ctx, ask_send_fn *send);
/* Forget all asks without calling anybody. */
void ask_clear(struct ask_table *t);
void ask_init_owner(struct ask_owner *o, uint64_t number);

/*
 * Send request `type` with body v for an owner; takes fd (-1: none).
 * CL_LIMIT when the owner has MAX_ASKS_PER_SESSION or the table
 * MAX_ASKS_TOTAL: say "busy", nothing was queued.  CL_NOMEM, or what send
 * said.
 */
int ask_start(struct ask_table *t, struct ask_owner *o, uint32_t type,
    const void *v, int fd, ask_fn *fn, int64_t now);
/* The owner goes: its asks are forgotten. */
void ask_stop(struct ask_table *t, struct ask_owner *o);

/*
 * An answer came.  CL_OK: its callback ran.  CL_NOTFOUND: nobody waits any
 * more.  CL_FORMAT: it answers another kind of request (the monitor and we
 * do not agree: a broken invariant).
 */
int ask_answer(struct ask_table *t, const struct imsg *m,
    union msg_any *v);
/* Run the callbacks of asks whose deadline has passed. */
void ask_on_time(struct ask_table *t, int64_t now);

#endif
