/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Looking up the hub's name: a process of its own for one question, because
 * a resolver reads files and asks servers, which neither the monitor nor
 * the confined fetcher may.
 */
#ifndef CLOOP_RESOLVE_H
#define CLOOP_RESOLVE_H

#include <sys/types.h>

#include <stdint.h>

#include "common/model/url.h"
#include "common/msg/chan.h"

struct event;
struct event_base;

/* The answer to the question that was asked; borrowed. */
typedef void resolve_fn(void *arg, uint64_t id, const struct msg_addrs *ans);

struct resolve {
	struct event_base *base;
	resolve_fn *done;
	void *arg;
	struct chan chan;
	struct event *timer;
	pid_t pid;		/* 0: none running */
	uint64_t id;
	int is_asking;
	int ntries;		/* to start the child */
	char host[MAX_HOST_LEN + 1];
	uint16_t port;
};

/* CL_NOMEM. */
int resolve_init(struct resolve *r, struct event_base *base,
    resolve_fn *done, void *arg);
/* Ends a running question without an answer. */
void resolve_clear(struct resolve *r);
/*
 * Ask; one that cannot be asked for want of descriptors or memory is asked
 * again until the time of an answer is over.  `done` is called once, possibly
 * before this returns (an address needs no question).  A question under way
 * is dropped.
 */
void resolve_start(struct resolve *r, uint64_t id, const struct url *u);
void resolve_stop(struct resolve *r);
/* A child was reaped: 1 when it was this one. */
int resolve_on_exit(struct resolve *r, pid_t pid);

#endif
