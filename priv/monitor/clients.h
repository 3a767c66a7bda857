/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Operators as the monitor knows them (from cloopd-ctl, which asked the
 * kernel), and their long answers: a job sends a batch of rows, waits until
 * the operator has read it (CTL_PACE), and goes on.
 */
#ifndef PRIV_CLIENTS_H
#define PRIV_CLIENTS_H

#include <bsd/sys/queue.h>

#include <stddef.h>
#include <stdint.h>

#include "common/msg/msgcat.h"

struct monitor;

#define ACTOR_MAX 32

struct ctl_client {
	LIST_ENTRY(ctl_client) entry;
	uint32_t client;
	int role;		/* ROLE_* */
	char actor[ACTOR_MAX];	/* "uid:1000", for records */
	int has_branch;		/* CTL_BRANCH came; branch_fd is open */
	int branch_fd;
	uint32_t branch_len;
};
LIST_HEAD(ctl_client_list, ctl_client);

/* CL_EXISTS, CL_LIMIT, CL_NOMEM */
int clients_add(struct monitor *mon, const struct msg_ctl_client *who);
struct ctl_client *clients_find(struct monitor *mon, uint32_t client);
/* It is gone: forget it, and everything that waits for it. */
void clients_del(struct monitor *mon, uint32_t client);
void clients_clear(struct monitor *mon);
/* One request is not wanted any more. */
void clients_quit(struct monitor *mon, uint64_t id);

/* Rows of one batch. */
#define JOB_BATCH 16

struct ctl_job;
/*
 * Send some rows, at most JOB_BATCH.  0: there is more; 1: all was sent,
 * CTL_DONE is to follow; -1: it has answered with CTL_ERR itself.
 */
typedef int ctl_job_fn(struct monitor *, struct ctl_job *);

struct ctl_job {
	TAILQ_ENTRY(ctl_job) entry;
	uint64_t id;
	ctl_job_fn *fn;
	int paced;		/* waits for CTL_PACE_ANS */
	int busy;		/* computes: one slice a turn, no pacing */
	char **keys;		/* owned */
	size_t nkeys, next;
	uint64_t seq;
	int64_t since;
	uint64_t left;
	void *state;		/* owned, free(3)d */
};
TAILQ_HEAD(ctl_job_list, ctl_job);

/* Takes keys (may be NULL) and state.  Runs the first slice at once. */
void jobs_start(struct monitor *mon, uint64_t id, ctl_job_fn *fn,
    const struct ctl_job *init);
/* The same with keys alone, which are taken. */
struct job_keys;
void jobs_start_keys(struct monitor *mon, uint64_t id, ctl_job_fn *fn,
    const struct job_keys *keys);
/* CTL_PACE_ANS: CL_FORMAT when nothing waits for it. */
int jobs_on_pace(struct monitor *mon, uint64_t id);
/* Slices of busy jobs; 1 when there are any left. */
int jobs_run_busy(struct monitor *mon);

/* Growing list of owned strings for a job's keys. */
struct job_keys {
	char **v;
	size_t n, cap;
};
int job_keys_add(struct job_keys *k, const char *key);
void job_keys_clear(struct job_keys *k);

#endif
