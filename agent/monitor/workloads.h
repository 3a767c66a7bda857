/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The table of tracked workloads: one entry per handle from its start to the
 * delivery of its end, each with a shim, a spool and a directory.  An entry
 * occupies a slot of MaxConcurrent until the hub was told its end.  Table and
 * descriptors are bounded: the oldest whose end was told makes room.
 */
#ifndef CLOOP_WORKLOADS_H
#define CLOOP_WORKLOADS_H

#include <sys/types.h>

#include <stdint.h>

struct agentd;
struct holding;
struct shim_job;
struct spec;
struct work;
struct workloads;

/* Where an answer to the fetcher goes. */
struct workload_ask {
	uint64_t id;
	uint64_t generation;
};

/* What the table tells those above it; main() says who that is. */
struct workloads_ops {
	/* One less, and nothing of it left. */
	void (*on_fewer)(struct agentd *a);
	/* Over; its shim was killed by us; its shim has learned a value. */
	void (*on_end)(struct workloads *ws, uint64_t slot);
	void (*on_forced)(struct workloads *ws, uint64_t slot);
	void (*on_redacted)(struct workloads *ws, uint64_t slot, uint64_t id,
	    int ok);
	/* The table goes: forget what waits for any of these. */
	void (*on_free)(struct workloads *ws);
};

/* Make the directories.  CL_SYSTEM with *whatp naming the path. */
int workloads_new(struct agentd *a, const struct workloads_ops *ops,
    struct workloads **wsp, const char **whatp);
/* Forget the table; processes and files stay (they are adopted later). */
void workloads_free(struct workloads *ws);

/*
 * Find what a dead agent left: shims by their sockets, ends by their records.
 * Asynchronous; `done` is called once all have answered or their time is
 * over.
 */
void workloads_adopt(struct workloads *ws, void (*done)(struct agentd *));

/*
 * A start for a handle that is already tracked: it is answered as the first
 * one was, now or when that is decided.  0 when the handle is new.
 */
int workloads_answer_again(struct workloads *ws, const char *handle_id,
    const struct workload_ask *ask);
/* Refuse a start: an error frame (code) or started.error (code NULL). */
void workloads_refuse(struct workloads *ws, const struct workload_ask *ask,
    const char *code, const char *text);
/* NULL: there is room for one more; else why not. */
const char *workloads_make_room(struct workloads *ws);
/*
 * Launch: directory, spool, secret files, work tree, shim.  The answer goes
 * to `ask` when the shim has decided.  On failure CL_*, and nothing is left;
 * the caller answers.
 */
struct workload_start {
	const char *handle_id;
	struct shim_job *job;
	int tree_fd;			/* work directory; taken */
	struct holding *holding;	/* taken; NULL: no lease */
	struct work *work;		/* taken; NULL: none */
	const struct spec *spec;	/* contents of its files */
	const struct workload_ask *ask;
};
int workloads_start(struct workloads *ws, const struct workload_start *st);
/* Wipe and free the holding of a start that came to nothing; NULL: no-op. */
void workload_lease_drop(struct holding *h);

/* What the fetcher says; 0, or CL_FORMAT when it may not say that. */
int workloads_on_sent(struct workloads *ws, uint64_t slot, uint64_t raw);
int workloads_on_acked(struct workloads *ws, uint64_t slot, uint64_t raw,
    uint64_t norm);
int workloads_on_told(struct workloads *ws, uint64_t slot);
int workloads_on_done(struct workloads *ws, uint64_t slot);
/* The hub refused it: TERM, KILL after 5 s, forget. */
int workloads_on_refused(struct workloads *ws, uint64_t slot,
    const char *reason);
/* CL_NOTFOUND: not tracked. */
int workloads_signal(struct workloads *ws, const char *handle_id, int sig);

/* Wipe lease directories nobody holds. */
void workloads_sweep(struct workloads *ws, int64_t min_age_s);

/* Tell a fresh fetcher about all of them.  An error: it must not say hello,
 * since it would not offer those it does not know. */
int workloads_announce(struct workloads *ws);
void workloads_set_link(struct workloads *ws, int up);
/* End everything (bye without reconnect). */
void workloads_stop_all(struct workloads *ws, const char *reason);
unsigned int workloads_get_count(const struct workloads *ws);
/* A child was reaped: 1 when it was a shim of ours. */
int workloads_on_exit(struct workloads *ws, pid_t pid, int status);
void workloads_log_state(const struct workloads *ws);

#endif
