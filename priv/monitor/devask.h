/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Requests of operators that a device has to answer: signal and inventory.
 * An ask is an id and what to tell whom; the cloopd-net worker keeps the
 * device's deadline and always answers, unless it dies.
 */
#ifndef PRIV_DEVASK_H
#define PRIV_DEVASK_H

#include <bsd/sys/queue.h>

#include <stddef.h>
#include <stdint.h>

struct child;
struct imsg;
struct monitor;
struct msg_device_ans;
struct session;

struct devask {
	TAILQ_ENTRY(devask) entry;
	uint64_t id;
	uint64_t session;
	uint64_t generation;
	uint64_t ctl;		/* client << 32 | request */
	uint32_t type;		/* MSG_SIGNAL, MSG_INVENTORY */
	char agent_id[129];
};
TAILQ_HEAD(devask_list, devask);

struct devasks {
	struct devask_list list;
	uint64_t last_id;
	size_t n;
};

void devask_init(struct monitor *mon);
void devask_clear(struct monitor *mon);
/* Ask a session's device for an operator; ctl 0: for nobody. */
void devask_signal(struct monitor *mon, struct session *s, uint64_t handle,
    int sig, uint64_t ctl);
void devask_inventory(struct monitor *mon, struct session *s, uint64_t ctl);
/* SIGNAL_ANS, INVENTORY_ANS.  CL_FORMAT: a violation. */
int devask_answer(struct monitor *mon, struct child *c, struct imsg *m,
    struct msg_device_ans *v);
/* The session ended: its asks fail. */
void devask_end_session(struct monitor *mon, uint64_t session);
/* The operator went away: forget; mask ~0 for one request, or the high 32
 * bits for all of a client's. */
void devask_forget(struct monitor *mon, uint64_t ctl, uint64_t mask);

#endif
