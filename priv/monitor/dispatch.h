/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * From an operator's wish to a started workload.
 */
#ifndef PRIV_DISPATCH_H
#define PRIV_DISPATCH_H

#include <stddef.h>
#include <stdint.h>

struct agent;
struct handle;
struct msg_want;
struct monitor;
struct refusal;
struct spec;

struct dispatch {
	uint64_t ctl;		/* who waits for it */
	const char *actor;	/* "uid:1000", for the record */
	const char *where;	/* name, id, or label:k=v */
	const char *name;	/* the operator's name for it; "" */
	int detach;
	struct spec *spec;	/* handle_id and leases are filled in here */
	const struct msg_want *wants;	/* --secret */
	size_t nwants;
	int branch_fd;		/* the bundle of a shipped branch; -1 */
	uint32_t branch_len;
};

/*
 * Choose the agent, pass the gates, record the handle, send the start.  All
 * answers go to d->ctl, the refusals too.
 */
void dispatch_start(struct monitor *mon, const struct dispatch *d);

/* The agent an operator means.  NULL: r says why not. */
struct agent *dispatch_find_agent(struct monitor *mon, const char *where,
    struct refusal *r);

/* The device started it (pid, its clock or UTIL_TIME_ZERO). */
void dispatch_finish(struct monitor *mon, struct handle *h, int64_t pid,
    int64_t started_at);
/*
 * It did not start: handle, row and files go, and whoever waits is told.
 * RES_* with code and text as in refuse_set_result.
 */
void dispatch_fail(struct monitor *mon, struct handle *h, int result,
    const char *code, const char *text);
/* A handle that ended before it was said to have started: answer those who
 * still wait for the start. */
void dispatch_settle(struct monitor *mon, struct handle *h);

#endif
