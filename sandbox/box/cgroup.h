/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * A leaf cgroup of one workload, in a group "cloop" below the caller's own,
 * where the v2 hierarchy (or the `unified` one of a hybrid host) is writable
 * for us: killing everything at once and knowing that nothing is left.
 * Absent is no failure, the other means of sandbox/shim/shim_kill.c remain.
 */
#ifndef CLOOP_CGROUP_H
#define CLOOP_CGROUP_H

#include <stddef.h>

#define CGROUP_PATH_MAX 4096

struct cgroup {
	int parent_fd;		/* the group "cloop" */
	int dir_fd;		/* the leaf; for clone3(CLONE_INTO_CGROUP) */
	int kill_fd;		/* cgroup.kill, or -1 (before Linux 5.14) */
	int events_fd;		/* cgroup.events */
	char name[64];		/* in parent */
	int has_pids;		/* pids.max took the limit */
};

/* Our own group's directory in the v2 or `unified` hierarchy; *hybridp.
 * CL_NOTFOUND. */
int cgroup_find_own(char dst[CGROUP_PATH_MAX], int *hybridp);
/*
 * Make a leaf named after us and open it.  max_pids: written to pids.max
 * where that controller is on.  CL_UNSUPPORTED when there is no hierarchy
 * or it is not writable (c is then cleared); CL_SYSTEM.
 */
int cgroup_open(struct cgroup *c, unsigned int max_pids);
/* The calling process becomes a member.  CL_SYSTEM. */
int cgroup_join(const struct cgroup *c);
/* 1 after cgroup_open succeeded. */
int cgroup_is_open(const struct cgroup *c);
/*
 * 1 when a child can be born in it.  A delegated group can be made and yet
 * not entered (no common ancestor of ours); to learn that from the first
 * fork of a pid namespace is too late, for it spoils the namespace.
 */
int cgroup_can_enter(const struct cgroup *c);
/* SIGKILL to every member, also what is being forked.  CL_UNSUPPORTED. */
int cgroup_kill(struct cgroup *c);
/* 1 when nothing lives in it (a group that is gone is empty). */
int cgroup_is_empty(struct cgroup *c);
/* Remove the leaf (it may stay when busy) and close.  Legal when not open. */
void cgroup_close(struct cgroup *c);
/* The state of a group that was never opened. */
void cgroup_init(struct cgroup *c);
/*
 * Remove what nobody uses any more: empty leaves of shims that are gone, and
 * the group "cloop" itself when it is empty.  For the agent, at its start and
 * when a shim has ended.  1: one of a shim that is gone still has members.
 */
int cgroup_sweep(void);

#endif
