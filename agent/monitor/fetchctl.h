/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The monitor's side of agentd-fetch: started as `agentd-fetch session`,
 * watched, answered, and started again when it dies.  Names are looked up by
 * a second process of the same program, `agentd-fetch resolver`, one for
 * each question.  Rows: dev_fetch.def in common/msg; what it asks is served
 * by fetchmsg.h.
 */
#ifndef CLOOP_FETCHCTL_H
#define CLOOP_FETCHCTL_H

#include <sys/types.h>

#include <stdint.h>

#include "common/msg/chan.h"
#include "resolve.h"

struct agentd;
struct event;
struct fetchctl;

/* Whom it tells; main() says who that is. */
struct fetchctl_ops {
	const struct fetchctl_row {	/* what it may say, to 0 */
		uint32_t type;
		/* CL_FORMAT ends the fetcher. */
		int (*fn)(struct fetchctl *f, struct imsg *m,
		    union msg_any *v);
	} *rows;
	void (*on_link)(struct agentd *a, int up);
	/* It is gone, with all that it began. */
	void (*on_end)(struct agentd *a);
	/* No process of ours is left. */
	void (*on_stopped)(struct agentd *a);
	/* The agent is to end: agentd_stop(). */
	void (*stop)(struct agentd *a, int exit_status, int kill_workloads);
};

struct fetchctl {
	struct agentd *a;
	const struct fetchctl_ops *ops;
	pid_t pid;		/* 0: none */
	struct chan chan;
	uint64_t generation;	/* of the process: answers are for one */
	int is_serving;		/* between READY and its end */
	int was_ready;		/* once, by any of them */
	int64_t ready_at;	/* this one, monotonic ms; 0: not yet */
	int is_short;		/* we could not have it, for now */
	int is_stopping;
	int link;		/* LINK_* */
	uint16_t negotiated;
	int64_t backoff_ms;	/* before the next one is started */
	struct event *timer;	/* ready, respawn or stop deadline */
	struct resolve resolve;
};

/* Nothing runs yet. */
struct fetchctl *fetchctl_new(struct agentd *a,
    const struct fetchctl_ops *ops);
void fetchctl_free(struct fetchctl *f);

/* Start the fetcher.  0, or CL_* when it cannot even be executed. */
int fetchctl_start(struct fetchctl *f);
/* FETCH_STOP; it says bye and exits, or is killed after a grace time. */
void fetchctl_stop(struct fetchctl *f);
/* 1 when no process of ours is left. */
int fetchctl_is_stopped(const struct fetchctl *f);
/* A child was reaped: 1 when it was one of ours. */
int fetchctl_on_exit(struct fetchctl *f, pid_t pid, int status);

/*
 * Send one message to the fetcher when it is serving, else drop it; takes
 * fd.  `generation` 0 is "whoever serves now"; otherwise only the process
 * that asked gets the answer.
 */
void fetchctl_send(struct fetchctl *f, uint32_t type, uint64_t id,
    uint64_t generation, const void *v, int fd);
/* With the type of v checked by the compiler. */
#define FETCHCTL_SEND(f, name, id, generation, v, fd)                          \
	fetchctl_send(f, MSG_##name, id, generation, MSG_BODY(name, v), fd)
/* 1 while a fetcher is serving; *generationp names it. */
int fetchctl_is_serving(const struct fetchctl *f, uint64_t *generationp);
/* 1 while its session with the hub is up. */
int fetchctl_is_link_up(const struct fetchctl *f);
int fetchctl_send_bearer(struct fetchctl *f);
/* Not now (r: why): end it, and start another one after a while. */
void fetchctl_pause(struct fetchctl *f, int r);
void fetchctl_set_link(struct fetchctl *f, int link);
/* One line about it for the state dump. */
void fetchctl_log_state(const struct fetchctl *f);

#endif
