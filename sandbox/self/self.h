/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Confine the calling process.  Every child calls self_confine() once, after
 * it received its configuration and warmed up its libraries and before it
 * reads the first outside byte; each monitor calls self_confine_monitor()
 * once its own set-up is done.  Non-logging: the report says what was done
 * and what this machine could not give, and the caller logs it.
 */
#ifndef CLOOP_SELF_H
#define CLOOP_SELF_H

#include <sys/types.h>

#include <stddef.h>
#include <stdint.h>

/* One row per process in self_profile.c. */
enum self_profile {
	SELF_NET = 1,	/* cloopd-net: accept4, epoll, passed files */
	SELF_KEY,	/* cloopd-key: its channels, nothing else */
	SELF_CTL,	/* cloopd-ctl: accept4 on the control socket */
	SELF_FETCH,	/* agentd-fetch, session role: stream sockets out */
	SELF_RESOLVER,	/* agentd-fetch, resolver role: may read /etc and ask
			 * name servers; no chroot */
	SELF_SHIM,	/* cloop-shim once the workload runs: pump and kill */
	SELF_SHIM_SCAN,	/* the same without a pid namespace: also reads /proc
			 * to find what has to be killed */
	SELF_FENCE	/* cloopd-fence: root with CAP_NET_ADMIN, runs nft */
};

/* Parts of the confinement, as bits of self_report. */
#define SELF_CHROOT 0x01	/* root is an empty directory */
#define SELF_USER 0x02		/* other uid, gid; no groups */
#define SELF_CAPS 0x04		/* capability sets cut */
#define SELF_LIMITS 0x08	/* rlimits, core 0, dumpable 0 */
#define SELF_LANDLOCK 0x10
#define SELF_SECCOMP 0x20	/* with no-new-privs */

struct self_opts {
	enum self_profile profile;
	/*
	 * User to become when root (paths.h USER_*); borrowed.  NULL: stay
	 * (SELF_SHIM keeps root and CAP_KILL only, SELF_FENCE root and
	 * CAP_NET_ADMIN).
	 */
	const char *user;
	/*
	 * Directory for chroot; NULL means PATH_EMPTY, made when missing.
	 * Must belong to root and be writable by nobody else.  Ignored by
	 * SELF_RESOLVER.
	 */
	const char *chroot_dir;
	/* RLIMIT_NOFILE; 0: the profile's.  Never raised above the hard
	 * limit. */
	uint64_t nofile;
	/*
	 * Directories whose entries stay usable, with LL_* of landlock.h, for
	 * SELF_SHIM* and SELF_FENCE; borrowed; ends with a NULL path.  NULL:
	 * none.
	 */
	const struct self_path {
		const char *path;
		unsigned int access;
	} *paths;
};

struct self_report {
	unsigned int done;	/* SELF_* in force */
	unsigned int missing;	/* wanted, not possible here (not root, old
				 * kernel): a lower capability, no failure */
	const char *step;	/* on failure: constant name of the step */
	int user_fallback;	/* the account does not exist; see below */
};

/*
 * Confine this process as its profile says.  0; or CL_SYSTEM, CL_DENIED
 * (something that had to be given up could be regained), CL_NOTFOUND
 * (user), with rep->step set: the caller must not serve (fatal).
 * After it every syscall outside the profile kills the process.
 */
int self_confine(const struct self_opts *o, struct self_report *rep);
/* The same with a filter that was compiled before (bpf.h). */
struct sock_fprog;
int self_confine_ready(const struct self_opts *o, struct sock_fprog *filter,
    struct self_report *rep);

enum self_monitor {
	SELF_MONITOR_HUB = 1,
	SELF_MONITOR_DEVICE,		/* its shims are cloop-shimd's */
	SELF_MONITOR_DEVICE_SHIMS,	/* starts them itself */
	SELF_MONITOR_SHIMS		/* cloop-shimd */
};

/*
 * Cut the monitor's capabilities to its table in self_caps.c, dumpable 0,
 * core 0, and refuse (EPERM) the syscalls no monitor needs: ptrace, modules,
 * bpf, keyctl, kexec, reboot...  Children inherit this.  Not root: the
 * capability part is reported missing.  0, CL_SYSTEM, CL_DENIED.
 */
int self_confine_monitor(enum self_monitor which, struct self_report *rep);

/*
 * The report as "done=chroot,user,... missing=landlock" for a log line.
 * Returns dst.
 */
#define SELF_REPORT_MAX 160
const char *self_format_report(const struct self_report *rep,
    char dst[SELF_REPORT_MAX]);

struct self_user {
	uid_t uid;
	gid_t gid;
	int fallback;
};

/*
 * Look up an account (getpwnam).  One of our own names (paths.h USER_*)
 * that was never created falls back to a fixed unprivileged id of its own,
 * USER_WORK to nobody, and says so: an install without sysusers still
 * separates its processes.  CL_NOTFOUND for any other unknown name; uid 0
 * is CL_DENIED.
 */
int self_find_user(const char *name, struct self_user *u);

/* Both limits of the caller, unless they are lower already.  CL_SYSTEM. */
int self_limit(int what, uint64_t value);

/* Compile it for bpf_start_own; the program is the caller's to free. */
struct sock_fprog;
int self_profile_make(enum self_profile p, struct sock_fprog *prog);
/* Cut the bounding set to `keep` and lock what root and ambient could
 * give back (children only).  CL_UNSUPPORTED without CAP_SETPCAP. */
int self_caps_cut_bounding(uint64_t keep, int lock);
/* Permitted and effective become what we have of `keep`, inheritable and
 * ambient empty.  Proves it.  CL_SYSTEM, CL_DENIED. */
int self_caps_cut(uint64_t keep);
/* 1 when the capability is in our effective set. */
int self_caps_has(int cap);

#endif
