/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Start a helper executable; runs in both monitors.  The child side between
 * clone and exec shares our memory and touches only descriptors and signals.
 * The new program is ours, found in a directory only root can change or in
 * the one that the person who started us named.
 */
#include "spawn.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/paths.h"
#include "common/msg/imsg.h"
#include "sandbox/self/self.h"

#define MAX_SPAWN_ARGS 32
#define SPAWN_ENV_LEN 1024
#define SPAWN_STACK_LEN 65536	/* of the child until it execs; four frames */
#ifdef CLOOP_TEST_HOOKS
#define SPAWN_NENV 7
#else
#define SPAWN_NENV 3
#endif

struct spawn_run {
	const struct spawn_opts *opts;
	char path[4096];
	const char *argv[MAX_SPAWN_ARGS + 2];
	char env[SPAWN_NENV][SPAWN_ENV_LEN];
	char *envp[SPAWN_NENV + 1];
	int null_fd;
	int channel[2];		/* ours, the child's */
	int err[2];		/* exec's errno comes back here */
	pid_t parent;
};

int
spawn_find_program(const char *name, char *dst, size_t dstlen)
{
	const char *dir = secure_getenv(ENV_LIBEXEC);
	struct stat st;
	int n;

	if (name[0] == '\0' || strchr(name, '/') != NULL)
		return CL_FORMAT;
	if (dir == NULL || dir[0] == '\0')
		dir = LIBEXECDIR;
	n = snprintf(dst, dstlen, "%s/%s", dir, name);
	if (n < 0 || (size_t)n >= dstlen)
		return CL_TOOBIG;
	if (stat(dst, &st) == -1 || !S_ISREG(st.st_mode) ||
	    access(dst, X_OK) == -1)
		return CL_NOTFOUND;
	return CL_OK;
}

/*
 * LANG and the sanitizer options, nothing else: a token in the monitor's
 * environment must not reach a child.  A leak check at exit needs ptrace,
 * which a confined child has not.
 */
static int
spawn_set_env(struct spawn_run *run)
{
	static const struct {
		const char *name;
		const char *add;
	} keep[SPAWN_NENV] = {
		{ "LANG", NULL },
		{ "ASAN_OPTIONS", "detect_leaks=0" },
		{ "UBSAN_OPTIONS", NULL },
#ifdef CLOOP_TEST_HOOKS
		{ "CLOOP_HOOKS", NULL },
		{ "CLOOP_FAULTS", NULL },
		{ "CLOOP_CLOCK", NULL },
		{ "LD_PRELOAD", NULL },
#endif
	};
	const char *value;
	size_t i, n = 0;
	int len;

	for (i = 0; i < SPAWN_NENV; i++) {
		value = getenv(keep[i].name);
		if (value == NULL && keep[i].add == NULL)
			continue;
		len = snprintf(run->env[n], SPAWN_ENV_LEN, "%s=%s%s%s",
		    keep[i].name, value != NULL ? value : "",
		    value != NULL && keep[i].add != NULL ? ":" : "",
		    keep[i].add != NULL ? keep[i].add : "");
		if (len < 0 || len >= SPAWN_ENV_LEN)
			return CL_TOOBIG;
		run->envp[n] = run->env[n];
		n++;
	}
	run->envp[n] = NULL;
	return CL_OK;
}

static int
spawn_set_args(struct spawn_run *run)
{
	const char *const *args = run->opts->args;
	size_t n = 0;

	run->argv[n++] = run->opts->program;
	for (; args != NULL && *args != NULL; args++) {
		if (n > MAX_SPAWN_ARGS)
			return CL_TOOBIG;
		run->argv[n++] = *args;
	}
	run->argv[n] = NULL;
	return CL_OK;
}

/* Dispositions and mask survive exec: give the child a clean set. */
static void
spawn_reset_signals(void)
{
	struct sigaction sa = { .sa_handler = SIG_DFL };
	sigset_t none;
	int sig;

	for (sig = 1; sig < NSIG; sig++)
		(void)sigaction(sig, &sa, NULL);	/* KILL, STOP fail */
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/*
 * All descriptors move above the fixed ones first, so that no dup2 can
 * overwrite one that is still needed.  *errp: the end for exec's errno.
 */
static int
spawn_set_fds(const struct spawn_run *run, int *errp)
{
	int log_fd = run->opts->log_fd != 0 ? run->opts->log_fd : 2;
	int channel = run->opts->channel_fd != 0 ? run->opts->channel_fd :
	    run->channel[1];
	int null_fd, chan_fd, err_fd;

	if ((null_fd = fcntl(run->null_fd, F_DUPFD_CLOEXEC, 10)) == -1 ||
	    (log_fd = fcntl(log_fd, F_DUPFD_CLOEXEC, 10)) == -1 ||
	    (chan_fd = fcntl(channel, F_DUPFD_CLOEXEC, 10)) == -1 ||
	    (err_fd = fcntl(run->err[1], F_DUPFD_CLOEXEC, 10)) == -1)
		return -1;
	if (dup2(null_fd, 0) == -1 || dup2(null_fd, 1) == -1 ||
	    dup2(log_fd, 2) == -1 || dup2(chan_fd, SPAWN_CHANNEL_FD) == -1 ||
	    dup3(err_fd, SPAWN_CHANNEL_FD + 1, O_CLOEXEC) == -1)
		return -1;
	*errp = SPAWN_CHANNEL_FD + 1;
	return close_range(SPAWN_CHANNEL_FD + 2, ~0U, 0);
}

/* Nothing of *run may change: it is our parent's.  ASan knows that one's
 * stack only. */
static int __attribute__((__no_sanitize_address__))
spawn_child(void *arg)
{
	const struct spawn_run *run = arg;
	int err_fd = run->err[1], saved;

	if ((run->opts->flags & SPAWN_SURVIVE) != 0) {
		if (setsid() == -1)
			goto fail;
	} else if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == -1 ||
	    getppid() != run->parent) {
		goto fail;
	}
	spawn_reset_signals();
	umask(077);
	if (run->opts->fsize != 0 &&
	    self_limit(RLIMIT_FSIZE, run->opts->fsize) != CL_OK)
		goto fail;
	if (run->opts->mnt_fd != 0 &&
	    setns(run->opts->mnt_fd, CLONE_NEWNS) == -1)
		goto fail;
	if (chdir("/") == -1 || spawn_set_fds(run, &err_fd) == -1)
		goto fail;
	execve(run->path, (char *const *)(uintptr_t)run->argv, run->envp);
fail:
	saved = errno;
	(void)!write(err_fd, &saved, sizeof(saved));
	_exit(127);
}

/*
 * As posix_spawn(3) does it: the child shares our memory, on a stack of its
 * own, and we sleep until it execs.  fork(2) would copy page tables, a tenth
 * of what the start of a workload costs.  No handler of ours may run in it.
 */
static pid_t
spawn_clone(struct spawn_run *run)
{
	sigset_t all, old;
	char *stack;
	pid_t pid;
	int saved;

	stack = mmap(NULL, SPAWN_STACK_LEN, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (stack == MAP_FAILED)
		return -1;
	sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &old);
	pid = clone(spawn_child, stack + SPAWN_STACK_LEN,
	    CLONE_VM | CLONE_VFORK | SIGCHLD, run);
	saved = errno;
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	(void)munmap(stack, SPAWN_STACK_LEN);
	errno = saved;
	return pid;
}

/* Until the exec closed the pipe, or its errno. */
static int
spawn_wait_exec(int fd)
{
	int err = 0;
	ssize_t n;

	do {
		n = read(fd, &err, sizeof(err));
	} while (n == -1 && errno == EINTR);
	if (n == 0)
		return CL_OK;
	errno = n == (ssize_t)sizeof(err) && err != 0 ? err : EIO;
	return CL_SYSTEM;
}

static void
spawn_close(int *fd)
{
	if (*fd != -1)
		close(*fd);
	*fd = -1;
}

static int
spawn_prepare(struct spawn_run *run)
{
	struct self_user user;
	int r;

	if (run->opts->user != NULL &&
	    (r = self_find_user(run->opts->user, &user)) != CL_OK)
		return r;
	if ((r = spawn_find_program(run->opts->program, run->path,
	    sizeof(run->path))) != CL_OK ||
	    (r = spawn_set_args(run)) != CL_OK ||
	    (r = spawn_set_env(run)) != CL_OK)
		return r;
	if ((run->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC)) == -1 ||
	    pipe2(run->err, O_CLOEXEC) == -1)
		return CL_SYSTEM;
	return run->opts->channel_fd != 0 ? CL_OK : imsg_pair(run->channel);
}

int
spawn_kill(pid_t pid, uid_t uid)
{
	int r, saved;

	if (geteuid() != 0 || setresuid(uid, uid, 0) == -1)
		return kill(pid, SIGKILL) == -1 ? CL_SYSTEM : CL_OK;
	r = kill(pid, SIGKILL);
	saved = errno;
	/* The saved id is still 0, so the way back cannot be refused. */
	if (setresuid(0, 0, 0) == -1)
		abort();
	errno = saved;
	if (r == -1 && errno == EPERM)
		r = kill(pid, SIGKILL);
	return r == -1 ? CL_SYSTEM : CL_OK;
}

int
spawn_start(const struct spawn_opts *o, pid_t *pidp, int *fdp)
{
	struct spawn_run run = { .opts = o, .null_fd = -1,
		.channel = { -1, -1 }, .err = { -1, -1 } };
	pid_t pid = -1;
	int r, saved;

	*pidp = -1;
	*fdp = -1;
	if ((r = spawn_prepare(&run)) != CL_OK)
		goto out;
	run.parent = getpid();
	if ((pid = spawn_clone(&run)) == -1) {
		r = CL_SYSTEM;
		goto out;
	}
	spawn_close(&run.err[1]);
	if ((r = spawn_wait_exec(run.err[0])) != CL_OK) {
		saved = errno;
		(void)waitpid(pid, NULL, 0);
		errno = saved;
		goto out;
	}
	*pidp = pid;
	*fdp = run.channel[0];
	run.channel[0] = -1;
out:
	saved = errno;
	spawn_close(&run.null_fd);
	spawn_close(&run.channel[0]);
	spawn_close(&run.channel[1]);
	spawn_close(&run.err[0]);
	spawn_close(&run.err[1]);
	errno = saved;
	return r;
}
