/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Namespaces of a workload: user namespaces and their maps, and the view of
 * the file system it gets (private /tmp, fresh /proc, other people's
 * directories covered, its own put back).  Called in cloop-shim and in the
 * workload's process before exec.
 */
#ifndef CLOOP_NS_H
#define CLOOP_NS_H

#include <sys/types.h>

#include <stddef.h>

#include "shim.h"

/*
 * Not root: enter a user namespace in which our own uid and gid are mapped
 * to themselves and we hold all capabilities.  CL_UNSUPPORTED when the
 * machine does not allow it.
 */
int ns_enter_user(void);
/*
 * Root: give the user namespace of `pid` the identity map, so that ids look
 * the same inside.  Why root needs one at all: RLIMIT_NPROC then counts per
 * workload, not per user (Linux 5.14).  CL_SYSTEM.
 */
int ns_set_identity(pid_t pid);
/* A procfs of the calling process's pid namespace, mounted nowhere; -1 with
 * errno.  Needs CAP_SYS_ADMIN. */
int ns_open_proc(void);

#define NS_MAX_COVERS (MAX_SHIM_PATHS + 16)
#define NS_MAX_KEEPS (2 * MAX_SHIM_PATHS + 8)

struct ns_view {
	const struct shim_job *job;	/* borrowed */
	int tree_fd;			/* of the caller's; decides */
	int cwd_fd;			/* out: the tree inside the view */
	const char *step;		/* out, on failure: what and where */
	int has_proc;			/* out: /proc shows only our own */
	struct ns_keep {
		const char *path;
		int fd;			/* detached copy of the mount */
		int optional;
	} keeps[NS_MAX_KEEPS];
	size_t nkeeps;
	dev_t covers[NS_MAX_COVERS];	/* tmpfs of ours */
	size_t ncovers;
};

/*
 * Build it for the calling process, which is in a new mount namespace
 * already (and, for /proc, in the new pid namespace).  CL_SYSTEM, CL_DENIED
 * (the tree is not what tree_fd is), with v->step.
 */
int ns_start_view(struct ns_view *v);

#endif
