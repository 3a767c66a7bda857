/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * sandbox/box/filter: each refused call of a workload is refused, and what
 * compilers and interpreters do is not.
 */
#include "regress/unit/unit.h"

#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include "common/base/err.h"
#include "sandbox/box/filter.h"
#include "sandbox/self/filter_git.h"
#include "sandbox/self/bpf.h"

struct call {
	const char *name;
	long nr;
	long a[3];
	int want;		/* errno; 0: must not be refused by us */
};

static const struct call calls[] = {
	{ "mount", SYS_mount, { 0 }, EPERM },
	{ "umount2", SYS_umount2, { 0 }, EPERM },
	{ "pivot_root", SYS_pivot_root, { 0 }, EPERM },
	{ "open_tree", SYS_open_tree, { 0 }, EPERM },
	{ "move_mount", SYS_move_mount, { 0 }, EPERM },
	{ "setns", SYS_setns, { -1, 0, 0 }, EPERM },
	{ "unshare user", SYS_unshare, { CLONE_NEWUSER, 0, 0 }, EPERM },
	{ "unshare mixed", SYS_unshare, { CLONE_FS | CLONE_NEWNET, 0, 0 },
	    EPERM },
	{ "unshare time", SYS_unshare, { 0x80, 0, 0 }, EPERM },
	{ "unshare files", SYS_unshare, { CLONE_FILES, 0, 0 }, 0 },
	{ "clone user", SYS_clone, { CLONE_NEWUSER | SIGCHLD, 0, 0 }, EPERM },
	{ "clone3", SYS_clone3, { 0 }, ENOSYS },
	{ "ptrace", SYS_ptrace, { PTRACE_TRACEME, 0, 0 }, EPERM },
	{ "process_vm_readv", SYS_process_vm_readv, { 1, 0, 0 }, EPERM },
	{ "keyctl", SYS_keyctl, { 0 }, EPERM },
	{ "bpf", SYS_bpf, { 0 }, EPERM },
	{ "perf_event_open", SYS_perf_event_open, { 0 }, EPERM },
	{ "userfaultfd", SYS_userfaultfd, { 0 }, EPERM },
	{ "io_uring_setup", SYS_io_uring_setup, { 1, 0, 0 }, ENOSYS },
	{ "kexec_load", SYS_kexec_load, { 0 }, EPERM },
	{ "init_module", SYS_init_module, { 0 }, EPERM },
	{ "reboot", SYS_reboot, { 0 }, EPERM },
	{ "swapon", SYS_swapon, { 0 }, EPERM },
	{ "acct", SYS_acct, { 0 }, EPERM },
	{ "open_by_handle_at", SYS_open_by_handle_at, { 0 }, EPERM },
	{ "TIOCSTI", SYS_ioctl, { 0, TIOCSTI, 0 }, EPERM },
	{ "TIOCSTI, high bits", SYS_ioctl, { 0, TIOCSTI | (1L << 32), 0 },
	    EPERM },
	{ "TIOCLINUX", SYS_ioctl, { 0, 0x541c, 0 }, EPERM },
	{ "TIOCGWINSZ", SYS_ioctl, { -1, TIOCGWINSZ, 0 }, 0 },
	{ "read implies exec", SYS_personality, { READ_IMPLIES_EXEC, 0, 0 },
	    EPERM },
	{ "personality query", SYS_personality, { 0xffffffffL, 0, 0 }, 0 },
	{ "vsock", SYS_socket, { AF_VSOCK, SOCK_STREAM, 0 }, EAFNOSUPPORT },
	{ "packet", SYS_socket, { AF_PACKET, SOCK_RAW, 0 }, EAFNOSUPPORT },
	{ "unix", SYS_socket, { AF_UNIX, SOCK_STREAM, 0 }, 0 },
	{ "netlink", SYS_socket, { AF_NETLINK, SOCK_RAW, 0 }, 0 },
	{ "tcp", SYS_socket, { AF_INET, SOCK_STREAM, 0 }, 0 },
	{ "getpid", SYS_getpid, { 0 }, 0 },
};

/* As the monitor and then a workload's process do it. */
static int
start_workload(void)
{
	struct sock_fprog p;
	int r;

	if ((r = filter_make_workload(&p)) == CL_OK)
		r = bpf_start(&p);
	return r;
}

/* Exit status of the child is the errno the call gave. */
static int
call_errno(const struct call *c)
{
	int status;
	pid_t pid;
	long rc;

	fflush(stdout);
	if ((pid = fork()) == 0) {
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
		    start_workload() != CL_OK)
			_exit(255);
		errno = 0;
		rc = syscall(c->nr, c->a[0], c->a[1], c->a[2], 0, 0, 0);
		_exit(rc == -1 ? errno : 0);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 254;
}

static void
test_calls(void)
{
	size_t i;
	int got;

	TEST_START("refused calls are refused, others reach the kernel");
	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		unit_note("%s", calls[i].name);
		got = call_errno(&calls[i]);
		if (calls[i].want != 0)
			ASSERT_INT_EQ(got, calls[i].want);
		else
			ASSERT_TRUE(got != EPERM && got != ENOSYS &&
			    got != EAFNOSUPPORT && got < 254);
	}
}

/* What git over a device's objects may not ask for: the signal it dies of,
 * or minus the errno it gets. */
static const struct git_call {
	const char *name;
	long nr;
	long a[3];
	int want;
} git_calls[] = {
	{ "tcp", SYS_socket, { AF_INET, SOCK_STREAM, 0 }, SIGSYS },
	{ "tcp6", SYS_socket, { AF_INET6, SOCK_STREAM, 0 }, SIGSYS },
	{ "netlink", SYS_socket, { AF_NETLINK, SOCK_RAW, 0 }, SIGSYS },
	{ "unix", SYS_socket, { AF_UNIX, SOCK_STREAM, 0 }, -EAFNOSUPPORT },
	{ "unix, high bits", SYS_socket, { AF_UNIX | (1L << 32),
	    SOCK_STREAM, 0 }, -EAFNOSUPPORT },
	{ "socketpair", SYS_socketpair, { AF_UNIX, SOCK_STREAM, 0 },
	    SIGSYS },
	{ "connect", SYS_connect, { -1, 0, 0 }, SIGSYS },
	{ "ptrace", SYS_ptrace, { PTRACE_TRACEME, 0, 0 }, SIGSYS },
	{ "process_vm_readv", SYS_process_vm_readv, { 1, 0, 0 }, SIGSYS },
	{ "pidfd_open", SYS_pidfd_open, { 1, 0, 0 }, SIGSYS },
	{ "mount", SYS_mount, { 0 }, SIGSYS },
	{ "chroot", SYS_chroot, { 0 }, SIGSYS },
	{ "unshare", SYS_unshare, { CLONE_NEWUSER, 0, 0 }, SIGSYS },
	{ "setns", SYS_setns, { -1, 0, 0 }, SIGSYS },
	{ "clone user", SYS_clone, { CLONE_NEWUSER | SIGCHLD, 0, 0 },
	    SIGSYS },
	{ "clone3", SYS_clone3, { 0 }, -ENOSYS },
	{ "setuid", SYS_setuid, { 0 }, SIGSYS },
	{ "bpf", SYS_bpf, { 0 }, SIGSYS },
	{ "io_uring_setup", SYS_io_uring_setup, { 1, 0, 0 }, SIGSYS },
	{ "keyctl", SYS_keyctl, { 0 }, SIGSYS },
	{ "memfd_create", SYS_memfd_create, { 0 }, SIGSYS },
	{ "prctl", SYS_prctl, { PR_SET_NAME, 0, 0 }, SIGSYS },
	{ "getpid", SYS_getpid, { 0 }, 0 },
	{ "close", SYS_close, { -1, 0, 0 }, -EBADF },
};

static int
git_call_end(const struct git_call *c)
{
	const struct sock_fprog *filter;
	struct rlimit none = { 0, 0 };
	int status;
	pid_t pid;
	long rc;

	ASSERT_ERR(filter_find_git(&filter), CL_OK);
	ASSERT_TRUE(filter != NULL);
	fflush(stdout);
	if ((pid = fork()) == 0) {
		(void)setrlimit(RLIMIT_CORE, &none);
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
		    bpf_start(filter) != CL_OK)
			_exit(255);
		errno = 0;
		rc = syscall(c->nr, c->a[0], c->a[1], c->a[2], 0, 0, 0);
		_exit(rc == -1 ? errno : 0);
	}
	waitpid(pid, &status, 0);
	return WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status);
}

static void
test_git(void)
{
	size_t i;

	TEST_START("git over foreign objects dies of a wrong call");
	for (i = 0; i < sizeof(git_calls) / sizeof(git_calls[0]); i++) {
		unit_note("%s", git_calls[i].name);
		ASSERT_INT_EQ(git_call_end(&git_calls[i]),
		    git_calls[i].want);
	}
}

static void
test_programs(void)
{
	static const char *const scripts[] = {
		"echo a | cat | wc -c >/dev/null",
		("python3 -c 'import threading; t = threading.Thread("
		    "target=int); t.start(); t.join()'"),
		"git --version >/dev/null",
	};
	size_t i;
	int status;
	pid_t pid;

	TEST_START("shells, threads and git run under the filter");
	for (i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
		unit_note("%s", scripts[i]);
		fflush(stdout);
		if ((pid = fork()) == 0) {
			if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
			    start_workload() != CL_OK)
				_exit(255);
			execl("/bin/sh", "sh", "-c", scripts[i], (char *)NULL);
			_exit(254);
		}
		waitpid(pid, &status, 0);
		ASSERT_INT_EQ(status, 0);
	}
}

UNIT_MAIN(test_calls, test_git, test_programs)
