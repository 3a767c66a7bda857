/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Start one of our own helper executables from a monitor (design: separate
 * executables, fork+exec, fixed descriptors).  The child sees 0 and 1
 * /dev/null, 2 the log, 3 its message channel, nothing else; default signal
 * dispositions, empty mask, umask 077, cwd /, and an environment of LANG
 * and the sanitizer options only.  Works when not root.
 */
#ifndef CLOOP_SPAWN_H
#define CLOOP_SPAWN_H

#include <sys/types.h>

#include <stddef.h>
#include <stdint.h>

#define SPAWN_CHANNEL_FD 3	/* the child's end */

#define SPAWN_SURVIVE 0x01	/* own session, no parent-death signal: a
				 * shim outlives its monitor */

struct spawn_opts {
	const char *program;	/* "cloopd-net": a name, not a path */
	/* Further arguments, NULL-terminated; NULL: none.  Never a secret:
	 * argv is readable by everybody. */
	const char *const *args;
	/* Account the child will become; checked to exist before anything
	 * is started (self_find_user); NULL: no check. */
	const char *user;
	int flags;		/* SPAWN_* */
	int log_fd;		/* becomes 2; 0: our own 2 */
	/* Becomes the channel; borrowed; *fdp is -1 then.  0: a new pair. */
	int channel_fd;
	/* RLIMIT_FSIZE; 0: ours. */
	uint64_t fsize;
	/* Mount namespace to start in; borrowed; needs CAP_SYS_ADMIN and
	 * CAP_SYS_CHROOT.  0: ours. */
	int mnt_fd;
};

/*
 * Path of a helper: in $CLOOP_LIBEXEC when that is set (ignored when we are
 * set-id), else LIBEXECDIR.  CL_NOTFOUND when there is no such executable,
 * CL_TOOBIG, CL_FORMAT for a name with a slash.
 */
int spawn_find_program(const char *name, char *dst, size_t dstlen);

/*
 * Start it.  *pidp is ours to reap; *fdp our end of the channel
 * (SEQPACKET, non-blocking, close-on-exec), for imsg_init.  Returns after
 * the exec succeeded; CL_SYSTEM with exec's errno otherwise, CL_NOTFOUND,
 * CL_DENIED (user).  Nothing is left behind on failure.
 */
int spawn_start(const struct spawn_opts *o, pid_t *pidp, int *fdp);
/*
 * SIGKILL to a child that becomes this user and is not reaped yet.  Sent as
 * that user, so that the hub's monitor needs no CAP_KILL and a wrong number
 * would hit nobody else; as ourselves when the child has not come so far.
 * CL_SYSTEM.
 */
int spawn_kill(pid_t pid, uid_t uid);

#endif
