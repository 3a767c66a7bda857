/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Seccomp for a git that looks at bytes from elsewhere: a device's, in
 * cloopctl, and a tree's, in cloop-git.  Compiled by them, loaded between
 * fork and exec (bpf.h).  An allow list: reading and writing files (Landlock
 * says which), memory, children of its own.  No socket, no other process,
 * nothing of the machine.  What has no row kills it.
 */
#include "filter_git.h"

#include <sys/socket.h>

#include <errno.h>
#include <seccomp.h>
#include <stddef.h>

#include "common/base/err.h"
#include "bpf_export.h"

#define INT32 0xffffffffULL
/* Newer than Debian 12's headers; the same number everywhere. */
#define FILTER_NR_FCHMODAT2 452
#define FILTER_NR_MSEAL 462

static const int filter_git_allowed[] = {
	/* files */
	SCMP_SYS(read), SCMP_SYS(write), SCMP_SYS(readv), SCMP_SYS(writev),
	SCMP_SYS(pread64), SCMP_SYS(pwrite64), SCMP_SYS(preadv),
	SCMP_SYS(pwritev), SCMP_SYS(open), SCMP_SYS(openat),
	SCMP_SYS(openat2), SCMP_SYS(creat), SCMP_SYS(close),
	SCMP_SYS(close_range), SCMP_SYS(lseek), SCMP_SYS(stat),
	SCMP_SYS(lstat), SCMP_SYS(fstat), SCMP_SYS(newfstatat),
	SCMP_SYS(statx), SCMP_SYS(statfs), SCMP_SYS(fstatfs),
	SCMP_SYS(access), SCMP_SYS(faccessat), SCMP_SYS(faccessat2),
	SCMP_SYS(getdents64), SCMP_SYS(getcwd), SCMP_SYS(chdir),
	SCMP_SYS(fchdir), SCMP_SYS(mkdir), SCMP_SYS(mkdirat),
	SCMP_SYS(rmdir), SCMP_SYS(unlink), SCMP_SYS(unlinkat),
	SCMP_SYS(rename), SCMP_SYS(renameat), SCMP_SYS(renameat2),
	SCMP_SYS(link), SCMP_SYS(linkat), SCMP_SYS(symlink),
	SCMP_SYS(symlinkat), SCMP_SYS(readlink), SCMP_SYS(readlinkat),
	SCMP_SYS(chmod), SCMP_SYS(fchmod), SCMP_SYS(fchmodat),
	FILTER_NR_FCHMODAT2, SCMP_SYS(utime), SCMP_SYS(utimes),
	SCMP_SYS(utimensat), SCMP_SYS(truncate), SCMP_SYS(ftruncate),
	SCMP_SYS(fallocate), SCMP_SYS(fadvise64), SCMP_SYS(fsync),
	SCMP_SYS(fdatasync), SCMP_SYS(sync_file_range), SCMP_SYS(flock),
	SCMP_SYS(fcntl), SCMP_SYS(ioctl), SCMP_SYS(dup), SCMP_SYS(dup2),
	SCMP_SYS(dup3), SCMP_SYS(pipe), SCMP_SYS(pipe2), SCMP_SYS(umask),
	SCMP_SYS(copy_file_range), SCMP_SYS(sendfile),
	/* waiting */
	SCMP_SYS(poll), SCMP_SYS(ppoll), SCMP_SYS(select),
	SCMP_SYS(pselect6), SCMP_SYS(nanosleep), SCMP_SYS(clock_nanosleep),
	SCMP_SYS(restart_syscall), SCMP_SYS(alarm), SCMP_SYS(setitimer),
	SCMP_SYS(getitimer),
	/* memory, threads of the pack code */
	SCMP_SYS(brk), SCMP_SYS(mmap), SCMP_SYS(munmap), SCMP_SYS(mremap),
	SCMP_SYS(mprotect), SCMP_SYS(madvise), SCMP_SYS(futex),
	SCMP_SYS(set_robust_list), SCMP_SYS(set_tid_address),
	SCMP_SYS(rseq), SCMP_SYS(arch_prctl), SCMP_SYS(membarrier),
	SCMP_SYS(sched_yield), SCMP_SYS(sched_getaffinity),
	/* commands of its own: index-pack, rev-list */
	SCMP_SYS(vfork), SCMP_SYS(fork), SCMP_SYS(execve), SCMP_SYS(wait4),
	SCMP_SYS(waitid), SCMP_SYS(exit), SCMP_SYS(exit_group),
	SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigreturn), SCMP_SYS(sigaltstack), SCMP_SYS(setpgid),
	SCMP_SYS(kill), SCMP_SYS(tgkill),
	/* who and when */
	SCMP_SYS(getpid), SCMP_SYS(getppid), SCMP_SYS(gettid),
	SCMP_SYS(getuid), SCMP_SYS(geteuid), SCMP_SYS(getgid),
	SCMP_SYS(getegid), SCMP_SYS(getgroups), SCMP_SYS(getpgrp),
	SCMP_SYS(getpgid), SCMP_SYS(uname), SCMP_SYS(sysinfo),
	SCMP_SYS(getrusage), SCMP_SYS(getrlimit), SCMP_SYS(prlimit64),
	SCMP_SYS(getrandom), SCMP_SYS(clock_gettime), SCMP_SYS(clock_getres),
	SCMP_SYS(gettimeofday), SCMP_SYS(time), SCMP_SYS(times),
};

/* One argument decides; the rest of the call's forms kill. */
static const struct filter_git_row {
	int nr;
	uint32_t action;
	unsigned int arg;
	unsigned long long mask, value;
	const char *reason;
} filter_git_rows[] = {
	{ SCMP_SYS(clone), SCMP_ACT_ALLOW, 0, 0x7e020080, 0,
	    "a child or a thread, no namespace" },
	/* getpwuid asks nscd; an answer of "no" is one. */
	{ SCMP_SYS(socket), SCMP_ACT_ERRNO(EAFNOSUPPORT), 0, INT32, AF_UNIX,
	    "name services" },
};

/* New calls that libc tries before the old ones. */
static const int filter_git_probes[] = {
	SCMP_SYS(clone3), SCMP_SYS(map_shadow_stack), FILTER_NR_MSEAL,
};

static int
filter_git_add(scmp_filter_ctx ctx)
{
	const struct filter_git_row *row;
	size_t i;
	int rc = 0;

#define N(a) (sizeof(a) / sizeof((a)[0]))
	/* EDOM: the call does not exist on this architecture. */
	for (i = 0; i < N(filter_git_allowed) && (rc == 0 || rc == -EDOM);
	    i++)
		rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW,
		    filter_git_allowed[i], 0);
	for (i = 0; i < N(filter_git_probes) && (rc == 0 || rc == -EDOM);
	    i++)
		rc = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS),
		    filter_git_probes[i], 0);
	for (i = 0; i < N(filter_git_rows) && (rc == 0 || rc == -EDOM);
	    i++) {
		row = &filter_git_rows[i];
		rc = seccomp_rule_add(ctx, row->action, row->nr, 1,
		    SCMP_CMP(row->arg, SCMP_CMP_MASKED_EQ, row->mask,
		    row->value));
	}
#undef N
	return rc == -EDOM ? 0 : rc;
}

int
filter_make_git(struct sock_fprog *p)
{
	scmp_filter_ctx ctx;
	int r, rc;

	if ((ctx = seccomp_init(SCMP_ACT_KILL_PROCESS)) == NULL)
		return CL_NOMEM;
	rc = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (rc == 0)
		rc = filter_git_add(ctx);
	if (rc == 0)
		r = bpf_export(ctx, p);
	else {
		errno = -rc;
		r = rc == -ENOMEM ? CL_NOMEM : CL_SYSTEM;
	}
	seccomp_release(ctx);
	return r;
}

int
filter_find_git(const struct sock_fprog **pp)
{
	static struct sock_fprog p;
	int r;

	*pp = NULL;
	if (!filter_has_seccomp())
		return CL_OK;
	if (p.len == 0 && (r = filter_make_git(&p)) != CL_OK)
		return r;
	*pp = &p;
	return CL_OK;
}
