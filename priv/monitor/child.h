/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The hub's children: one slot per cloopd-net, cloopd-key, cloopd-ctl,
 * cloopd-fence that should run.  A slot outlives the processes that fill
 * it; `generation` names one process and is never used again.
 */
#ifndef PRIV_CHILD_H
#define PRIV_CHILD_H

#include <sys/types.h>

#include <stdint.h>

#include "common/msg/chan.h"

struct event;
struct monitor;

enum child_kind { CHILD_KEY, CHILD_CTL, CHILD_NET, CHILD_FENCE };

#define CHILD_DOWN 0		/* else one of MS_STARTING, MS_SERVING, ... */

struct child {
	struct monitor *mon;
	enum child_kind kind;
	unsigned int index;	/* 1.. among its kind */
	const char *program;
	const char *user;
	uid_t uid;		/* of user, as of the last start */
	unsigned int state;	/* CHILD_DOWN or MS_* */
	uint64_t generation;
	pid_t pid;		/* 0: none */
	struct chan chan;
	uint64_t nshort;	/* of the channel, when last looked at */
	size_t held_len;	/* what this turn holds for it (mon_send) */
	struct event *timer;	/* start deadline, or time of respawn */
	int has_key;		/* NET: NET_KEY was sent to this process */
	int has_start;		/* NET: NET_START was, with all penalties */
	unsigned int backoff_ms;
	int64_t ready_at;	/* monotonic ms */
	uint64_t nrestarts;
	char last_end[96];	/* why the last process went; "" */
};

/* Prepare a slot; nothing is started. */
void child_init(struct child *c, struct monitor *mon, enum child_kind kind,
    unsigned int index);
/*
 * Start a process in the slot and send it its configuration.  On failure
 * the next try is scheduled; the error is logged.
 */
int child_start(struct child *c);
/* It said READY. */
void child_enter_serving(struct child *c);
/* SIGKILL and forget the channel; reaped later.  why goes to the log. */
void child_kill(struct child *c, const char *why);
/* waitpid() for all children of the monitor. */
void child_reap_all(struct monitor *mon);
/* Ask it to stop (NET_STOP, or end of the channel). */
void child_stop(struct child *c);
/* Once a second; late_ms: by which the monitor itself was late. */
void child_on_second(struct child *c, int64_t late_ms);
/* Free events and channel; SIGKILLs what still runs. */
void child_clear(struct child *c);

/* "cloopd-net/2" for logs; static buffer. */
const char *child_format_name(const struct child *c);

#endif
