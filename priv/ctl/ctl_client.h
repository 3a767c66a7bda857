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
#include "common/msg/imsg.h"
#include "common/msg/msgcat.h"

struct event;
struct event_base;

struct ctlc {
	LIST_ENTRY(ctlc) entry;
	struct ctl *ctl;
	uint32_t number;
	uint32_t uid, pid;
	int role;
	int greeted;		/* HELLO was answered; the monitor knows it */
	int closing;		/* close once the queue is written */
	int dead;		/* freed at the end of the turn */
	int64_t accepted_at;
	struct imsg_chan chan;
	struct msgcat_seen seen;
	struct event *ev_in, *ev_out;
	uint32_t requests[MAX_CTL_REQUESTS];	/* outstanding; 0: free */
	uint32_t paces[MAX_CTL_REQUESTS];	/* CTL_PACE to answer */
};
LIST_HEAD(ctlc_list, ctlc);

/* The process. */
struct ctl {
	struct event_base *base;
	struct imsg_chan mon;
	struct msgcat_seen seen;
	struct event *mon_in, *mon_out, *accept_ev, *tick;
	unsigned int state;	/* MS_* */
	int listen_fd;
	int has_config;
	uint32_t operator_gid, viewer_gid;
	uint32_t last_number;
	struct ctlc_list clients;
	unsigned int nclients;
	int stalled;		/* clients are not read: the monitor is busy */
};

/* Send to the monitor; the process ends when that is impossible.  Takes
 * fd. */
void ctl_send(struct ctl *ctl, uint32_t type, uint64_t id,
    const struct buf *body, int fd);

/* A new connection; takes fd. */
void ctlc_new(struct ctl *ctl, int fd);
/* A row or answer for a client; takes fd. */
void ctlc_put(struct ctl *ctl, uint64_t id, uint32_t type,
    const struct buf *body, int fd);
/* CTL_PACE. */
void ctlc_pace(struct ctl *ctl, uint64_t id);
/* End of a turn: write, close, free; read again after a stall. */
void ctlc_settle_all(struct ctl *ctl);
/* Connections that never said hello. */
void ctlc_on_tick(struct ctl *ctl);
/* Read the clients again, or not. */
void ctlc_set_stalled(struct ctl *ctl, int stalled);

#endif
