/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Inside of fetchctl: for fetchctl.c (life) and fetchctl_msg.c (messages).
 */
#ifndef CLOOP_FETCHCTL_INT_H
#define CLOOP_FETCHCTL_INT_H

#include <sys/types.h>

#include <stdint.h>

#include "common/msg/chan.h"
#include "fetchctl.h"
#include "resolve.h"

struct event;

struct fetchctl {
	struct agentd *a;
	pid_t pid;		/* 0: none */
	struct chan chan;
	uint64_t generation;	/* of the process: answers are for one */
	int is_serving;		/* between READY and its end */
	int was_ready;		/* once, by any of them */
	int is_stopping;
	int link;		/* LINK_* */
	uint16_t negotiated;
	int64_t backoff_ms;	/* before the next one is started */
	struct event *timer;	/* ready, respawn or stop deadline */
	struct resolve resolve;
};

/* fetchctl.c */
int fetchctl_send_bearer(struct fetchctl *f);
void fetchctl_set_link(struct fetchctl *f, int link);
void fetchctl_check_gone(struct fetchctl *f);

/* fetchctl_msg.c */
int fetchctl_on_msg(void *arg, struct imsg *m, union msg_any *v);

#endif
