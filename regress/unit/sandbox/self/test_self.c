/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * sandbox/self/self: each profile in a forked child: what it needs works, what
 * it must not do kills it, and the kernel's own record says it is confined.
 */
#include "regress/unit/unit.h"

#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/paths.h"
#include "common/msg/imsg.h"
#include "sandbox/self/self.h"
#include "sandbox/self/self_int.h"

#define P(p) (1U << (p))
#define P_ALL (P(SELF_NET) | P(SELF_KEY) | P(SELF_CTL) | P(SELF_FETCH) |       \
	P(SELF_SHIM) | P(SELF_SHIM_SCAN))
#define P_NOSCAN (P_ALL & ~P(SELF_SHIM_SCAN))

static void
do_open(void)
{
	(void)!open("/etc/passwd", O_RDONLY | O_CLOEXEC);
}

static void
do_open_write(void)
{
	(void)!open("/tmp/cloop-x", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
}

static void
do_fork(void)
{
	if (fork() == 0)
		_exit(0);
}

static void
do_exec(void)
{
	char *argv[] = { (char *)(uintptr_t)"true", NULL };

	execv("/bin/true", argv);
}

static void
do_unix(void)
{
	(void)socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static void
do_udp(void)
{
	(void)socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

static void
do_tcp(void)
{
	(void)socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static void
do_kill(void)
{
	(void)kill(getppid(), 0);
}

static void
do_ptrace(void)
{
	(void)ptrace(PTRACE_TRACEME, 0, 0, 0);
}

static void
do_exec_memory(void)
{
	(void)mmap(NULL, 4096, PROT_READ | PROT_EXEC,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void
do_tgkill(void)
{
	(void)syscall(SYS_tgkill, getppid(), getppid(), 0);
}

static void
do_setuid(void)
{
	(void)!setuid(0);
}

static const struct {
	const char *name;
	void (*what)(void);
	unsigned int dies;	/* profiles in which it must not return */
	int asan_refuses;	/* softened for sanitizer reports */
} forbidden[] = {
	{ "open", do_open, P_NOSCAN, 1 },
	{ "create", do_open_write, P_ALL, 1 },
	{ "fork", do_fork, P_ALL, 1 },
	{ "exec", do_exec, P_ALL, 0 },
	{ "unix socket", do_unix, P_ALL, 0 },
	{ "udp socket", do_udp, P_ALL, 0 },
	{ "tcp socket", do_tcp, P_ALL & ~P(SELF_FETCH), 0 },
	{ "kill", do_kill, P_ALL & ~P(SELF_SHIM) & ~P(SELF_SHIM_SCAN), 0 },
	{ "ptrace", do_ptrace, P_ALL, 0 },
	{ "executable memory", do_exec_memory, P_ALL, 0 },
	{ "tgkill of others", do_tgkill, P_ALL, 0 },
	{ "setuid", do_setuid, P_ALL, 0 },
};

static int
is_asan(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(CLOOP_SANITIZE)
	return 1;
#else
	return 0;
#endif
}

/* Confine a child, run `what`; the wait status. */
static int
in_child(enum self_profile p, void (*what)(void))
{
	struct self_opts o = { .profile = p, .user = USER_NET };
	struct self_report rep;
	int status;
	pid_t pid;

	fflush(stdout);
	if ((pid = fork()) == 0) {
		if (self_confine(&o, &rep) != CL_OK)
			_exit(100);
		what();
		_exit(0);
	}
	waitpid(pid, &status, 0);
	return status;
}

static void
test_forbidden(void)
{
	size_t i;
	int p, status;

	TEST_START("what a profile does not allow kills the process");
	for (i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++) {
		for (p = SELF_NET; p <= SELF_FENCE; p++) {
			if ((forbidden[i].dies & P(p)) == 0)
				continue;
			if (is_asan() && forbidden[i].asan_refuses)
				continue;
			unit_note("%s, profile %d", forbidden[i].name, p);
			status = in_child((enum self_profile)p,
			    forbidden[i].what);
			ASSERT_TRUE(WIFSIGNALED(status));
			ASSERT_INT_EQ(WTERMSIG(status), SIGSYS);
		}
	}
}

static int chan[2];

static void
do_work(void)
{
	struct epoll_event ev = { .events = EPOLLIN };
	struct imsg_chan c;
	struct imsg m;
	char *p;

	if (imsg_init(&c, chan[0], 8) != CL_OK)
		_exit(1);
	if (epoll_ctl(chan[1], EPOLL_CTL_ADD, 0, &ev) == 0)
		_exit(2);
	if (imsg_compose(&c, 2, 7, NULL, -1) != CL_OK ||
	    imsg_write(&c) != CL_OK)
		_exit(3);
	if (imsg_read(&c, &m) != CL_INCOMPLETE)
		_exit(4);
	if ((p = malloc(4 << 20)) == NULL)
		_exit(5);
	memset(p, 1, 4 << 20);
	free(p);
	dprintf(2, "%s", "");
	fprintf(stderr, "%s", "");
	if (getpid() < 2 || time(NULL) == 0)
		_exit(6);
}

static void
do_abort(void)
{
	signal(SIGABRT, SIG_DFL);
	abort();
}

static void
test_allowed(void)
{
	int p, status;

	TEST_START("channels, memory and the log work in every profile");
	for (p = SELF_NET; p <= SELF_SHIM_SCAN; p++) {
		unit_note("profile %d", p);
		ASSERT_ERR(imsg_pair(chan), CL_OK);
		status = in_child((enum self_profile)p, do_work);
		close(chan[0]);
		close(chan[1]);
		ASSERT_INT_EQ(status, 0);
	}
	TEST_START("abort ends with SIGABRT, not with a violation");
	if (!is_asan()) {
		status = in_child(SELF_NET, do_abort);
		ASSERT_INT_EQ(WTERMSIG(status), SIGABRT);
	}
	TEST_START("the fetcher may make TCP sockets");
	ASSERT_INT_EQ(in_child(SELF_FETCH, do_tcp), 0);
	TEST_START("the resolver reads files, writes none, and lives");
	ASSERT_INT_EQ(in_child(SELF_RESOLVER, do_open), 0);
	ASSERT_INT_EQ(in_child(SELF_RESOLVER, do_open_write), 0);
	ASSERT_INT_EQ(access("/tmp/cloop-x", F_OK), -1);
}

static int status_fd;

static void
do_status(void)
{
	char text[4096];
	ssize_t n = pread(status_fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		_exit(1);
	text[n] = '\0';
	if (strstr(text, "CapEff:\t0000000000000000") == NULL ||
	    strstr(text, "CapPrm:\t0000000000000000") == NULL ||
	    strstr(text, "CapInh:\t0000000000000000") == NULL ||
	    strstr(text, "NoNewPrivs:\t1") == NULL ||
	    strstr(text, "Seccomp:\t2") == NULL)
		_exit(2);
	if (getenv("SELF_ROOT") != NULL &&
	    strstr(text, "\nUid:\t0\t") != NULL)
		_exit(3);
	if (strstr(text, "CapBnd:\t0000000000000000") == NULL &&
	    getenv("SELF_ROOT") != NULL)
		_exit(4);
}

static void
test_status(void)
{
	struct self_opts o = { .user = USER_KEY };
	struct self_report rep;
	int p, status;
	pid_t pid;

	TEST_START("the kernel agrees: uid, no capabilities, seccomp 2");
	if (geteuid() == 0)
		setenv("SELF_ROOT", "1", 1);
	for (p = SELF_NET; p <= SELF_FETCH; p++) {
		unit_note("profile %d", p);
		fflush(stdout);
		if ((pid = fork()) == 0) {
			status_fd = open("/proc/self/status",
			    O_RDONLY | O_CLOEXEC);
			o.profile = (enum self_profile)p;
			if (self_confine(&o, &rep) != CL_OK)
				_exit(100);
			do_status();
			_exit(0);
		}
		waitpid(pid, &status, 0);
		ASSERT_INT_EQ(status, 0);
	}
}

/* Exit status: 0 when everything is as it must be. */
static void
monitor_child(void)
{
	struct self_report rep;

	if (self_confine_monitor(SELF_MONITOR_HUB, &rep) != CL_OK)
		_exit(1);
	if (ptrace(PTRACE_TRACEME, 0, 0, 0) != -1 || errno != EPERM)
		_exit(2);
	if (syscall(SYS_keyctl, 0, 0, 0, 0, 0) != -1 || errno != EPERM)
		_exit(3);
	if (prctl(PR_GET_DUMPABLE) != 0)
		_exit(4);
	if (geteuid() == 0 && prctl(PR_CAPBSET_READ, 21) != 0)
		_exit(5);	/* CAP_SYS_ADMIN */
	if (geteuid() == 0 && (rep.missing != 0 ||
	    prctl(PR_CAPBSET_READ, 18) != 1))
		_exit(6);	/* CAP_SYS_CHROOT: children need it */
	do_fork();
	_exit(0);
}

static void
test_monitor(void)
{
	int status;
	pid_t pid;

	TEST_START("a monitor refuses itself ptrace, keyctl, spare "
	    "capabilities, and still forks");
	fflush(stdout);
	if ((pid = fork()) == 0)
		monitor_child();
	waitpid(pid, &status, 0);
	ASSERT_INT_EQ(status, 0);
}

static void
test_user(void)
{
	struct self_user u, v;

	TEST_START("our accounts are found or get an id of their own");
	ASSERT_ERR(self_find_user(USER_NET, &u), CL_OK);
	ASSERT_ERR(self_find_user(USER_FETCH, &v), CL_OK);
	ASSERT_INT_NE(u.uid, v.uid);
	ASSERT_INT_NE(u.uid, 0);
	ASSERT_ERR(self_find_user("root", &u), CL_DENIED);
	ASSERT_ERR(self_find_user("no-such-user-4711", &u), CL_NOTFOUND);
}

static void
test_report(void)
{
	struct self_report rep = { .done = SELF_CAPS | SELF_SECCOMP,
		.missing = SELF_CHROOT | SELF_USER };
	char text[SELF_REPORT_MAX];

	TEST_START("the report reads well in a log");
	ASSERT_STRING_EQ(self_format_report(&rep, text),
	    "done=caps,seccomp missing=chroot,user");
}

static void
test_unprivileged(void)
{
	int status;
	pid_t pid;

	TEST_START("not root: no chroot, no user; the rest all the same");
	if (geteuid() != 0)
		return;
	fflush(stdout);
	if ((pid = fork()) == 0) {
		if (setgroups(0, NULL) != 0 || setgid(65534) != 0 ||
		    setuid(65534) != 0)
			_exit(99);
		status = in_child(SELF_NET, do_unix);
		if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSYS)
			_exit(1);
		unsetenv("SELF_ROOT");
		_exit(0);
	}
	waitpid(pid, &status, 0);
	ASSERT_INT_EQ(status, 0);
}

UNIT_MAIN(test_forbidden, test_allowed, test_status, test_monitor, test_user,
    test_report, test_unprivileged)
