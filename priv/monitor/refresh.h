/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * New contents for the files of a live lease.
 */
#ifndef PRIV_REFRESH_H
#define PRIV_REFRESH_H

#include <bsd/sys/queue.h>

#include <stddef.h>
#include <stdint.h>

struct child;
struct imsg;
struct msg_refresh_ans;
struct monitor;

struct refresh;
TAILQ_HEAD(refresh_list, refresh);

struct refreshes {
	struct refresh_list list;
	uint64_t last_id;
	size_t n;
};

void refresh_init(struct monitor *mon);
void refresh_clear(struct monitor *mon);
/* Refresh a lease for an operator, who is answered in any case. */
void refresh_start(struct monitor *mon, const char *lease_id,
    const char *actor, uint64_t ctl);
/* REFRESH_ANS.  CL_FORMAT: a violation. */
int refresh_answer(struct monitor *mon, struct child *c, struct imsg *m,
    struct msg_refresh_ans *v);
void refresh_end_session(struct monitor *mon, uint64_t session);
void refresh_forget(struct monitor *mon, uint64_t ctl, uint64_t mask);

#endif
