/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * One operator's connection in cloopd-ctl: who it is, what it asked, what
 * waits to be read by it.
 */
#ifndef PRIV_CTL_CLIENT_H
#define PRIV_CTL_CLIENT_H

#include <bsd/sys/queue.h>

#include <stddef.h>
#include <stdint.h>

#include "common/base/limits.h"
#include "common/msg/chan.h"

struct ctlc {
	LIST_ENTRY(ctlc) entry;
	struct ctl *ctl;
	uint32_t number;
	uint32_t uid, pid;
	int role;
	const char *unwanted;	/* why it may not stay; NULL */
	int greeted;		/* HELLO was answered; the monitor knows it */
	int closing;		/* close once the queue is written */
	int dead;		/* freed at the end of the turn */
	int64_t accepted_at;
	struct chan chan;
	uint32_t requests[MAX_CTL_REQUESTS];	/* outstanding; 0: free */
	uint32_t paces[MAX_CTL_REQUESTS];	/* CTL_PACE to answer */
};
LIST_HEAD(ctlc_list, ctlc);

/* The process. */
struct ctl {
	struct event_base *base;
	struct chan mon;
	struct event *accept_ev, *tick;
	int listen_fd;
	int has_config;
	uint32_t operator_gid, viewer_gid;
	uint32_t last_number;
	struct ctlc_list clients;
	unsigned int nclients, nunwanted;
	int stalled;		/* clients are not read: the monitor is busy */
};

/* Ends the process when r is not CL_OK: a message cannot go to the
 * monitor. */
void ctl_check_sent(int r, uint32_t type);
#define CTL_SEND(ctl, name, id, v)                                             \
	ctl_check_sent(CHAN_SEND(&(ctl)->mon, name, id, v, -1), MSG_##name)

/* A new connection; takes fd. */
void ctlc_new(struct ctl *ctl, int fd);
/* A row or answer for a client, with its descriptor. */
void ctlc_put(struct ctl *ctl, struct imsg *m);
/* CTL_PACE. */
void ctlc_pace(struct ctl *ctl, uint64_t id);
/* End of a turn: close, free, say which lists may go on. */
void ctlc_settle_all(struct ctl *ctl);
/* Connections that never said hello. */
void ctlc_on_tick(struct ctl *ctl);
/* Read the clients, or not while the monitor is behind. */
void ctlc_check_stall(struct ctl *ctl);

#endif
