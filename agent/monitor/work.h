/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Work that goes in and comes back, in the device monitor: what has to happen
 * to a workload's tree before its command and after it.  Prefix work_.
 * work.c makes the plan of a start and keeps on disk what the next agent
 * needs to give the work back, work_steps.c runs it as jobs (wjob.h).
 */
#ifndef CLOOP_WORK_H
#define CLOOP_WORK_H

#include "record.h"

struct agentd;
struct event;
struct handledir;
struct redact;
struct spec;
struct wjob;
struct workdir;

/* Whose it is, and whom it calls. */
struct work_place {
	struct agentd *a;
	const char *handle_id;
	uint64_t slot;
	const struct handledir *dir;
	int wake_fd;			/* borrowed */
	void (*on_prepared)(void *arg, const char *why);
	void (*on_returned)(void *arg);
	void *arg;
};

struct work {
	struct work_place at;		/* set before anything runs */
	int has_failed;			/* the command did */
	int is_returning;		/* it is over */
	struct work_record rec;
	struct devjob_plan prov;	/* op 0: no tree is built */
	struct secret seed;
	char *placement;		/* JSON beside the seed */
	struct secret password;
	int64_t expires_at;
	int tree_fd;
	int file_fd;			/* shipped branch, or -1 */
	struct wjob *job;
	struct event *again;		/* a job that could not be started */
	struct work_forge *forge;	/* while its name is looked up */
	int has_forge;			/* it was, for the next job */
	char **pins;			/* of devjob_plan */
	size_t npins;
	char **peers;			/* of shim_job */
	size_t npeers;
	struct redact *redact;		/* of texts to the hub; or NULL */
};

#define WORK_BUNDLE_FILE "bundle"	/* in the handle directory */
#define WORK_PROJECT_FILE "project"

/*
 * What a checked spec asks for.  CL_OK and *workp (NULL: nothing); else
 * CL_DENIED and an owned text for started.error; CL_NOMEM.
 */
int work_make(struct agentd *a, const struct spec *s, const char *handle_id,
    const struct workdir *wd, struct work **workp, char **whyp);
void work_free(struct work *k);
/* Why this device cannot do what the spec asks for; NULL: it can. */
const char *work_check(const struct agentd *a, const struct spec *s);
/* The git the agent would run: 1, and its path. */
int work_find_git(const struct agentd *a, char *dst, size_t dstlen);

/*
 * Before the command: run what is to be run, then on_prepared() with NULL or
 * the text for started.error.  Calls back from the loop, or at once.
 */
void work_prepare(struct work *k);
/* After it: then on_returned(). */
void work_return(struct work *k, int has_failed);
/* NULL: no-op. */
void work_cancel(struct work *k);
/* A child was reaped: 1 when it was one of its jobs'. */
int work_on_exit(struct work *k, pid_t pid);
/* Tell the fetcher what comes back, before the end.  An error: not now, and
 * nothing was said. */
int work_announce(struct work *k);

/* CL_*; load: CL_NOTFOUND when there is none. */
int work_save(const struct work *k, const struct handledir *d);
int work_load(struct agentd *a, const struct handledir *d,
    struct work **workp);

/* ------------------------------------------- between work.c and work_*.c */

/*
 * Before a job that speaks to the forge: the addresses of the names it
 * connects to, into pins and peers of its struct work, for where the shim can
 * hold it to them.  1: `next` is called from the loop, with a text when no
 * name has an address; 0: there is nothing to look up, or it was.
 */
typedef void work_next_fn(struct work *k, const char *why);
int work_find_forge(struct work *k, work_next_fn *next);
/* Drop it, found or under way: the next job looks again. */
void work_forget_forge(struct work *k);
/* A look-up under way ends with a reason. */
void work_cancel_forge(struct work *k);
/* A child was reaped: 1 when it was the resolver. */
int work_on_resolver_exit(struct work *k, pid_t pid);

/* What every job of this workload is told. */
void work_init_plan(const struct work *k, struct devjob_plan *p);

#endif
