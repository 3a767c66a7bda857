/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Confine the calling process.  Runs in every child after set-up and in both
 * monitors; trusts only its caller's constants.  The order is a table, and
 * a step either is done, is not possible on this machine (reported), or
 * fails (the caller must not serve).
 */
#include "self.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <linux/capability.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/paths.h"
#include "bpf.h"
#include "landlock.h"
#include "self_int.h"

struct self_run {
	const struct self_opts *opts;
	const struct self_profile_row *row;
	struct self_user user;
	int is_root;
	pid_t parent;
};

#define KIB 1024ULL
#define MIB (1024 * KIB)

static const struct self_profile_row self_profiles[] = {
	[SELF_NET] = { "net", RLIM_INFINITY, 0, LL_NO_TCP, 0, 0, 0, 0 },
	[SELF_KEY] = { "key", 64 * KIB, 64, LL_NO_TCP | LL_NO_ABSTRACT,
	    0, 0, 0, 0 },
	[SELF_CTL] = { "ctl", 8 * MIB, 512, LL_NO_TCP | LL_NO_ABSTRACT,
	    0, 0, 0, 0 },
	[SELF_FETCH] = { "fetch", 129 * MIB, 0, LL_NO_ABSTRACT, 0, 0, 0, 0 },
	[SELF_RESOLVER] = { "resolver", 64 * KIB, 64, 0, 1, 0, 0, 0 },
	[SELF_SHIM] = { "shim", RLIM_INFINITY, 64,
	    LL_NO_TCP | LL_NO_ABSTRACT, 1, 1, 1, 0 },
	[SELF_SHIM_SCAN] = { "shim", RLIM_INFINITY, 256,
	    LL_NO_TCP | LL_NO_ABSTRACT, 1, 1, 1, 0 },
	[SELF_FENCE] = { "fence", 64 * KIB, 64, LL_NO_TCP | LL_NO_ABSTRACT,
	    1, 1, 1, 1 },
};

#define NELEM(a) (sizeof(a) / sizeof((a)[0]))

static const struct self_profile_row *
self_profile_find(enum self_profile p)
{
	if (p < SELF_NET || (size_t)p >= NELEM(self_profiles))
		return NULL;
	return &self_profiles[p];
}

/*
 * Ids for our accounts when nobody made them: from Debian's reserved range
 * 65000-65533 and above systemd's dynamic users (up to 65519), so that no
 * tool hands them out.  Each process still has its own.
 */
static const struct self_account {
	const char *name;
	uid_t id;
} self_accounts[] = {
	{ USER_NET, 65521 },
	{ USER_KEY, 65522 },
	{ USER_CTL, 65523 },
	{ USER_FETCH, 65524 },
	{ USER_WORK, 65534 },	/* nobody: programs want a name */
};

int
self_find_user(const char *name, struct self_user *u)
{
	const struct passwd *pw;
	size_t i;

	memset(u, 0, sizeof(*u));
	if ((pw = getpwnam(name)) != NULL) {
		if (pw->pw_uid == 0)
			return CL_DENIED;
		u->uid = pw->pw_uid;
		u->gid = pw->pw_gid;
		return CL_OK;
	}
	for (i = 0; i < NELEM(self_accounts); i++) {
		if (strcmp(self_accounts[i].name, name) != 0)
			continue;
		u->uid = self_accounts[i].id;
		u->gid = (gid_t)self_accounts[i].id;
		u->fallback = 1;
		return CL_OK;
	}
	return CL_NOTFOUND;
}

/* While /etc is still reachable and SETPCAP still held. */
static int
self_step_prepare(struct self_run *run)
{
	int r;

	if (run->is_root && !run->row->no_user && run->opts->user != NULL &&
	    (r = self_find_user(run->opts->user, &run->user)) != CL_OK)
		return r;
	/* The bounding set counts at exec only: the next steps keep what they
	 * need of the permitted set. */
	r = self_caps_cut_bounding(self_caps_find_child(run->opts->profile),
	    !run->row->starts);
	/* Not root: there is nothing in the set that could be used. */
	return r == CL_UNSUPPORTED ? CL_OK : r;
}

/*
 * The directory becomes our root, so nobody but root may put anything into
 * it: a device node or a library there would be ours to use.
 */
static int
self_step_chroot(struct self_run *run)
{
	const char *dir = run->opts->chroot_dir;
	struct stat st;

	if (run->row->no_chroot)
		return CL_OK;
	if (!run->is_root || !self_caps_has(CAP_SYS_CHROOT))
		return CL_UNSUPPORTED;
	if (dir == NULL) {
		dir = PATH_EMPTY;
		if ((mkdir(PATH_RUN_DIR, 0755) == -1 && errno != EEXIST) ||
		    (mkdir(PATH_EMPTY, 0755) == -1 && errno != EEXIST))
			return CL_SYSTEM;
	}
	if (chdir(dir) == -1 || stat(".", &st) == -1)
		return CL_SYSTEM;
	if (st.st_uid != 0 || (st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
		return CL_DENIED;
	if (chroot(".") == -1 || chdir("/") == -1)
		return CL_SYSTEM;
	return CL_OK;
}

/* What was given up must not come back: try it. */
static int
self_check_user(uid_t uid, gid_t gid)
{
	uid_t ru, eu, su;
	gid_t rg, eg, sg;

	if (getresuid(&ru, &eu, &su) == -1 || getresgid(&rg, &eg, &sg) == -1)
		return CL_SYSTEM;
	if (ru != uid || eu != uid || su != uid || rg != gid || eg != gid ||
	    sg != gid || getgroups(0, NULL) != 0)
		return CL_DENIED;
	if (setuid(0) == 0 || seteuid(0) == 0 || setgid(0) == 0 ||
	    setegid(0) == 0 || setgroups(0, NULL) == 0)
		return CL_DENIED;
	return CL_OK;
}

static int
self_step_user(struct self_run *run)
{
	if (run->row->no_user)
		return CL_OK;
	if (!run->is_root)
		return CL_UNSUPPORTED;
	if (run->opts->user == NULL)
		return CL_NOTFOUND;
	/* Groups while we still may, then gid, then uid: the order that
	 * leaves no way back. */
	if (setgroups(0, NULL) == -1 ||
	    setresgid(run->user.gid, run->user.gid, run->user.gid) == -1 ||
	    setresuid(run->user.uid, run->user.uid, run->user.uid) == -1)
		return CL_SYSTEM;
	return self_check_user(run->user.uid, run->user.gid);
}

static int
self_step_caps(struct self_run *run)
{
	return self_caps_cut(self_caps_find_child(run->opts->profile));
}

/* Lower both limits; never an error that they are lower already. */
int
self_limit(int what, uint64_t value)
{
	struct rlimit rl;

	if (getrlimit(what, &rl) == -1)
		return CL_SYSTEM;
	if (value > rl.rlim_max)
		value = rl.rlim_max;
#ifdef CLOOP_VALGRIND
	/* It keeps descriptors of its own above the limit, and writes its
	 * report at the end. */
	if (what == RLIMIT_NOFILE || what == RLIMIT_FSIZE)
		return CL_OK;
#endif
	rl.rlim_cur = rl.rlim_max = (rlim_t)value;
	return setrlimit(what, &rl) == -1 ? CL_SYSTEM : CL_OK;
}

/* The log may be a plain file: it must stay writable (SIGXFSZ otherwise). */
static rlim_t
self_log_room(uint64_t want)
{
	const uint64_t room = 256 * 1048576ULL;
	struct stat st;

	if (want == RLIM_INFINITY || fstat(2, &st) == -1 ||
	    !S_ISREG(st.st_mode) || (uint64_t)st.st_size + room < want)
		return (rlim_t)want;
	return (rlim_t)st.st_size + room;
}

static int
self_step_limits(struct self_run *run)
{
	uint64_t nofile = run->opts->nofile;
	int r;

	if (nofile == 0)
		nofile = run->row->nofile;
	if ((!run->row->starts &&
	    (r = self_limit(RLIMIT_NPROC, 0)) != CL_OK) ||
	    (r = self_limit(RLIMIT_CORE, 0)) != CL_OK ||
	    (r = self_limit(RLIMIT_MEMLOCK, 0)) != CL_OK ||
	    (r = self_limit(RLIMIT_FSIZE,
	    self_log_room(run->row->fsize))) != CL_OK)
		return r;
	if (nofile != 0 && (r = self_limit(RLIMIT_NOFILE, nofile)) != CL_OK)
		return r;
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == -1)
		return CL_SYSTEM;
	if (run->row->outlives)
		return CL_OK;
	/* Set here because a change of uid clears it; the monitor may have
	 * died in between. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == -1)
		return CL_SYSTEM;
	return getppid() == run->parent ? CL_OK : CL_EOF;
}

static int
self_step_landlock(struct self_run *run)
{
	const struct self_path *p;
	struct landlock *l = NULL;
	int r;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1)
		return CL_SYSTEM;
	if (run->opts->profile == SELF_RESOLVER)
		return CL_OK;	/* NSS reads where it is configured to */
	if ((r = landlock_new(run->row->landlock, &l)) != CL_OK)
		return r;
	for (p = run->opts->paths; p != NULL && p->path != NULL; p++) {
		if ((r = landlock_add_path(l, p->path, p->access)) != CL_OK)
			goto out;
	}
	r = landlock_start(l);
out:
	landlock_free(l);
	return r;
}

/* In this order; the system call filter comes last, below. */
static const struct self_step {
	const char *name;
	unsigned int part;
	int (*start)(struct self_run *run);
} self_steps[] = {
	{ "prepare", 0, self_step_prepare },
	{ "chroot", SELF_CHROOT, self_step_chroot },
	{ "user", SELF_USER, self_step_user },
	{ "caps", SELF_CAPS, self_step_caps },
	{ "limits", SELF_LIMITS, self_step_limits },
	{ "landlock", SELF_LANDLOCK, self_step_landlock },
};

#define SELF_NSTEPS (sizeof(self_steps) / sizeof(self_steps[0]))

/* Not a part of this process's confinement at all: neither done nor
 * missing. */
static unsigned int
self_parts_unused(const struct self_run *run)
{
	unsigned int parts = 0;

	if (run->row->no_chroot)
		parts |= SELF_CHROOT;
	if (run->row->no_user)
		parts |= SELF_USER;
	if (run->opts->profile == SELF_RESOLVER)
		parts |= SELF_LANDLOCK;
	return parts;
}

int
self_confine_steps(const struct self_opts *o, struct self_report *rep)
{
	struct self_run run = { 0 };
	unsigned int unused;
	size_t i;
	int r;

	memset(rep, 0, sizeof(*rep));
	rep->step = "profile";
	run.opts = o;
	run.parent = getppid();
	run.is_root = geteuid() == 0;
	if ((run.row = self_profile_find(o->profile)) == NULL)
		return CL_INTERNAL;
	unused = self_parts_unused(&run);
	for (i = 0; i < SELF_NSTEPS; i++) {
		rep->step = self_steps[i].name;
		r = self_steps[i].start(&run);
		if (r == CL_UNSUPPORTED)
			rep->missing |= self_steps[i].part & ~unused;
		else if (r != CL_OK)
			return r;
		else
			rep->done |= self_steps[i].part & ~unused;
	}
	rep->step = "seccomp";
	rep->user_fallback = run.user.fallback;
	return CL_OK;
}

int
self_confine_ready(const struct self_opts *o, struct sock_fprog *filter,
    struct self_report *rep)
{
	int r;

	if ((r = self_confine_steps(o, rep)) != CL_OK ||
	    (r = bpf_start_own(filter)) != CL_OK)
		return r;
	rep->done |= SELF_SECCOMP;
	rep->step = NULL;
	return CL_OK;
}

static void
self_format_parts(unsigned int parts, char *dst, size_t len)
{
	static const struct {
		unsigned int part;
		const char *name;
	} names[] = {
		{ SELF_CHROOT, "chroot" }, { SELF_USER, "user" },
		{ SELF_CAPS, "caps" }, { SELF_LIMITS, "limits" },
		{ SELF_LANDLOCK, "landlock" }, { SELF_SECCOMP, "seccomp" },
	};
	size_t i, at = 0;
	int n;

	(void)snprintf(dst, len, "none");
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if ((parts & names[i].part) == 0)
			continue;
		n = snprintf(dst + at, len - at, "%s%s", at == 0 ? "" : ",",
		    names[i].name);
		if (n < 0 || (size_t)n >= len - at)
			return;
		at += (size_t)n;
	}
}

const char *
self_format_report(const struct self_report *rep, char dst[SELF_REPORT_MAX])
{
	char done[64], missing[64];

	self_format_parts(rep->done, done, sizeof(done));
	self_format_parts(rep->missing, missing, sizeof(missing));
	(void)snprintf(dst, SELF_REPORT_MAX, "done=%s missing=%s%s", done,
	    missing, rep->user_fallback ? " account=missing" : "");
	return dst;
}
