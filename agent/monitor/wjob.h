/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * A job of a workload, run by the device monitor: cloop-git or cloop-seed
 * in a shim of its own (common/model/devjob.h), before the command or after it.
 * Prefix wjob_.
 */
#ifndef CLOOP_WJOB_H
#define CLOOP_WJOB_H

#include <sys/types.h>

#include "sandbox/box/shim.h"

struct agentd;
struct devjob_plan;
struct devjob_result;
struct handledir;
struct wjob;

/*
 * Called once, from the loop, on every path: a job that died or lied has the
 * outcome DEVJOB_FAILED with a reason.  The result is borrowed from the
 * job, which its owner may free in here.
 */
typedef void wjob_fn(void *arg, const struct devjob_result *res);

struct wjob_opts {
	const char *program;		/* "cloop-git" */
	struct devjob_plan *plan;	/* borrowed */
	const char *handle_id;
	const struct handledir *dir;	/* borrowed, as wake_fd */
	int wake_fd;
	const char *tree;		/* path of the tree */
	int tree_fd;			/* borrowed */
	int file_fd;			/* JOB_FILE; -1: none */
	struct shim_list peers;		/* borrowed; of shim_job */
	wjob_fn *done;
	void *arg;
};

/* CL_*; `done` is not called then.  Else the file is taken, and the plan's
 * secrets are wiped. */
int wjob_start(struct agentd *a, const struct wjob_opts *o,
    struct wjob **jobp);
/* TERM, so that it can roll back; KILL when it does not. */
void wjob_cancel(struct wjob *j);
/* Close its channels: what still runs is killed by its shim. */
void wjob_free(struct wjob *j);
/* A child was reaped: 1 when it was this job's shim. */
int wjob_on_exit(struct wjob *j, pid_t pid);

#endif
