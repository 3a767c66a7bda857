/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Where the device monitor's shims come from: they are its own children, or,
 * with ShimSocket, cloop-shimd starts them in its place and the monitor needs
 * no right to build a sandbox.  Nothing else differs: the monitor holds the
 * channel (dev_shim.def) either way.
 */
#ifndef CLOOP_SHIMS_H
#define CLOOP_SHIMS_H

#include <sys/types.h>

#include "common/msg/chan.h"

struct agentd;
struct event;
struct handledir;
struct shim_job;

struct shims {
	struct chan chan;	/* to cloop-shimd */
	struct event *sweep;	/* of the cgroups our own ones left */
};

/*
 * Connect to cloop-shimd; nothing to do without ShimSocket.  On failure
 * errno or the code says what is wrong with it: CL_SYSTEM, CL_TIMEOUT, CL_EOF
 * (it refused us), CL_FORMAT, CL_VERSION.
 */
int shims_open(struct agentd *a);
/*
 * A shim that waits for its orders on *fdp, which is ours.  *pidp: ours to
 * reap only when it is our child; else it may be gone at any time, as one
 * that was adopted.  Waits SHIMD_ANSWER_MS for a word of cloop-shimd, and
 * connects again, once, when it was replaced.  shims_open's errors; a shim
 * that was started all the same finds its channel closed, and ends.
 */
int shims_start(struct agentd *a, pid_t *pidp, int *fdp);
/* Shims have ended; one that was killed left its cgroup: it is removed, by
 * cloop-shimd or by us. */
void shims_sweep(struct agentd *a);
void shims_close(struct agentd *a);

/* Compile the allow-lists of all shims into a->filters_fd.  CL_SYSTEM,
 * CL_NOMEM. */
int shims_make_filters(struct agentd *a);

/* What a shim needs before its GO; all borrowed. */
struct shims_setup {
	const struct shim_job *job;
	const struct handledir *dir;
	int wake_fd;
	int tree_fd;
};
/* To one that waits for its orders.  As chan_send. */
int shims_send_setup(const struct agentd *a, struct chan *c,
    const struct shims_setup *s);
/* A copy of one of our descriptors. */
int shims_send_fd(struct chan *c, uint32_t type, int fd);

#endif
