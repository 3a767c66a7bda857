/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The workload's half of a start: what the forked process does to itself
 * before exec, as a table of steps for each mode, and the init of its pid
 * namespace.  Starts with the shim's privileges and ends without any; every
 * failure goes back to the shim as one line of text, nothing is skipped.
 *
 * How many tasks a workload may have: where its cgroup has a pids
 * controller, pids.max.  Else RLIMIT_NPROC, which the kernel counts per user
 * *and user namespace* (5.14): each confined workload has a namespace of its
 * own, so a fork bomb hits its own limit and nobody else's.  Without user
 * namespaces there is no limit of ours: a shared one would let one workload
 * stop all others of the same user.
 */
#include "shim_int.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "sandbox/box/ns.h"
#include "sandbox/self/bpf.h"
#include "sandbox/self/self.h"

#define SHIM_SOFT_NOFILE 1024	/* what programs expect; hard limit stays */
#define SHIM_DEFAULT_PATH                                                      \
	"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

struct shim_exec {
	struct shim_child *c;
	struct ns_view view;
	int has_view;
	int cwd_fd;
	const char *what;	/* detail of a failing step */
};

/* One line to the shim, then gone.  127 is never seen by anybody. */
static void __attribute__((__noreturn__))
shim_exec_fail(const struct shim_child *c, const char *step,
    const char *what, const char *why)
{
	char text[MAX_SHIM_ERROR_LEN], clean[MAX_SHIM_ERROR_LEN];
	int n;

	/* It may be the workload's argv[0]: what it was lent is taken out
	 * here, before anything is cut. */
	if (what != NULL) {
		redact_format(c->s->pump.redact, what, clean, sizeof(clean));
		what = clean;
	}
	n = snprintf(text, sizeof(text), "%s%s%s: %s", step,
	    what != NULL ? " " : "", what != NULL ? what : "", why);
	if (n >= (int)sizeof(text))
		n = sizeof(text) - 1;
	if (n > 0)
		(void)!write(c->err_fd, text, (size_t)n);
	_exit(127);
}

/* If the shim dies, everything it started dies. */
static int
shim_exec_tie(struct shim_exec *e)
{
	(void)e;
	return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == -1 ? CL_SYSTEM :
	    CL_OK;
}

static int
shim_exec_session(struct shim_exec *e)
{
	struct shim *s = e->c->s;

	if (setsid() == -1)
		return CL_SYSTEM;
	if (dup2(s->stdin_fd != -1 ? s->stdin_fd : s->null_fd, 0) == -1 ||
	    dup2(e->c->out_fd, 1) == -1 ||
	    dup2(e->c->out_fd, 2) == -1)
		return CL_SYSTEM;
	umask(077);
	return CL_OK;
}

static int
shim_exec_limits(struct shim_exec *e)
{
	struct rlimit rl = { 0, 0 };

	(void)e;
	if (setrlimit(RLIMIT_CORE, &rl) == -1 ||
	    getrlimit(RLIMIT_NOFILE, &rl) == -1)
		return CL_SYSTEM;
	if (rl.rlim_max > SHIM_SOFT_NOFILE)
		rl.rlim_cur = SHIM_SOFT_NOFILE;
	return setrlimit(RLIMIT_NOFILE, &rl) == -1 ? CL_SYSTEM : CL_OK;
}

static int
shim_exec_namespaces(struct shim_exec *e)
{
	int r;

	if (unshare(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS) == -1)
		return CL_SYSTEM;
	e->view.job = &e->c->s->job;
	e->view.tree_fd = e->c->s->tree_fd;
	if ((r = ns_start_view(&e->view)) != CL_OK) {
		e->what = e->view.step;
		return r;
	}
	e->cwd_fd = e->view.cwd_fd;
	e->has_view = 1;
	return CL_OK;
}

/*
 * Root only: a user namespace of the workload's own.  The shim writes the
 * maps, because that needs privilege outside.  Not possible: go on, there
 * is no bound of tasks then.
 */
static int
shim_exec_user_ns(struct shim_exec *e)
{
	char byte = 'n';

	if (!e->c->s->has_user_ns)
		return CL_OK;
	if (unshare(CLONE_NEWUSER) == 0)
		byte = 'u';
	else
		e->c->s->has_user_ns = 0;
	if (write(e->c->sync_fd, &byte, 1) != 1 ||
	    read(e->c->sync_fd, &byte, 1) != 1)
		return CL_SYSTEM;
	return CL_OK;
}

/* Groups, gid, uid; then prove that they are what was wanted. */
static int
shim_exec_user(struct shim_exec *e)
{
	const struct shim_job *j = &e->c->s->job;
	int r;

	/* While SETPCAP is held: nothing comes back at exec. */
	r = self_caps_cut_bounding(0, j->mode == SHIM_MODE_CONFINED);
	if (r != CL_OK && r != CL_UNSUPPORTED)
		return r;
	if (j->uid == SHIM_STAY)
		return CL_OK;
	if (setgroups(0, NULL) == -1 ||
	    setresgid(j->gid, j->gid, j->gid) == -1 ||
	    setresuid(j->uid, j->uid, j->uid) == -1)
		return CL_SYSTEM;
	if (geteuid() != j->uid || getegid() != j->gid ||
	    getgroups(0, NULL) != 0 ||
	    (j->uid != 0 && (setuid(0) == 0 || setgid(0) == 0)))
		return CL_DENIED;
	/* A change of uid unties us; the shim may be gone by now, but then
	 * it also is not there to read what follows. */
	return shim_exec_tie(e);
}

static int
shim_exec_caps(struct shim_exec *e)
{
	(void)e;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1)
		return CL_SYSTEM;
	return self_caps_cut(0);
}

/* Only inside an own user namespace, see the top. */
static int
shim_exec_tasks(struct shim_exec *e)
{
	struct rlimit rl;

	if (!e->c->s->has_user_ns || e->c->s->cgroup.has_pids)
		return CL_OK;
	if (getrlimit(RLIMIT_NPROC, &rl) == -1)
		return CL_SYSTEM;
	if (rl.rlim_max > MAX_WORKLOAD_TASKS)
		rl.rlim_max = MAX_WORKLOAD_TASKS;
	rl.rlim_cur = rl.rlim_max;
	return setrlimit(RLIMIT_NPROC, &rl) == -1 ? CL_SYSTEM : CL_OK;
}

static int
shim_exec_landlock(struct shim_exec *e)
{
	int r;

	r = shim_view_start_landlock(&e->c->s->job,
	    e->has_view ? &e->view : NULL, e->cwd_fd);
	return r == CL_UNSUPPORTED ? CL_OK : r;	/* the shim reported it */
}

static int
shim_exec_filter(struct shim_exec *e)
{
	return bpf_start(&e->c->s->filters.prog[BPF_WORKLOAD]);
}

/* Dispositions and mask survive exec. */
static int
shim_exec_signals(struct shim_exec *e)
{
	struct sigaction sa = { .sa_handler = SIG_DFL };
	sigset_t none;
	int sig;

	(void)e;
	for (sig = 1; sig < NSIG; sig++)
		(void)sigaction(sig, &sa, NULL);	/* KILL, STOP fail */
	sigemptyset(&none);
	return sigprocmask(SIG_SETMASK, &none, NULL) == -1 ? CL_SYSTEM :
	    CL_OK;
}

/* The directory is entered as the workload, through the descriptor. */
static int
shim_exec_cwd(struct shim_exec *e)
{
	e->what = e->c->s->job.tree;
	return fchdir(e->cwd_fd) == -1 ? CL_SYSTEM : CL_OK;
}

/* 0, 1 and 2 stay; err_fd must live until exec, so close-on-exec does it. */
static int
shim_exec_fds(struct shim_exec *e)
{
	(void)e;
	return close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) == -1 ? CL_SYSTEM :
	    CL_OK;
}

#define M_CONFINED 0x01
#define M_PLAIN 0x02
#define M_NS 0x04		/* confined, and namespaces are there */
#define M_ROOT 0x08		/* confined with them, as real root */
#define M_BOTH (M_CONFINED | M_PLAIN)

static const struct shim_exec_step {
	const char *name;
	unsigned int modes;
	int (*start)(struct shim_exec *e);
} shim_exec_steps[] = {
	{ "parent-death signal", M_BOTH, shim_exec_tie },
	{ "session", M_BOTH, shim_exec_session },
	{ "limits", M_BOTH, shim_exec_limits },
	{ "namespaces", M_NS, shim_exec_namespaces },
	{ "user namespace", M_ROOT, shim_exec_user_ns },
	{ "user", M_BOTH, shim_exec_user },
	{ "capabilities", M_BOTH, shim_exec_caps },
	{ "task limit", M_NS, shim_exec_tasks },
	{ "chdir", M_BOTH, shim_exec_cwd },
	{ "Landlock", M_CONFINED, shim_exec_landlock },
	{ "descriptors", M_BOTH, shim_exec_fds },
	{ "signals", M_BOTH, shim_exec_signals },
	{ "seccomp", M_CONFINED, shim_exec_filter },
};

static unsigned int
shim_exec_modes(const struct shim *s)
{
	if (s->job.mode == SHIM_MODE_PLAIN)
		return M_PLAIN;
	if ((s->missing & SHIM_NO_NAMESPACES) != 0)
		return M_CONFINED;
	return M_CONFINED | M_NS | (s->job.uid != SHIM_STAY ? M_ROOT : 0);
}

static const char *
shim_exec_path(char *const *envp)
{
	/* The first, as getenv of the program; the monitor left no second. */
	for (; *envp != NULL; envp++)
		if (strncmp(*envp, "PATH=", 5) == 0 && (*envp)[5] != '\0')
			return *envp + 5;
	return SHIM_DEFAULT_PATH;
}

/*
 * execve of argv[0], looked up on the workload's own PATH when it has no
 * slash (an empty element is skipped, not the work directory).  No shell,
 * ever: a file without a magic number is an error.
 */
static void
shim_exec_program(char *const *argv, char *const *envp)
{
	const char *p, *end;
	char file[MAX_PATH_LEN + 1];
	int n, saved = ENOENT;

	if (strchr(argv[0], '/') != NULL) {
		execve(argv[0], argv, envp);
		return;
	}
	for (p = shim_exec_path(envp);; p = end + 1) {
		end = strchrnul(p, ':');
		n = snprintf(file, sizeof(file), "%.*s/%s", (int)(end - p), p,
		    argv[0]);
		if (end != p && n > 0 && n < (int)sizeof(file)) {
			execve(file, argv, envp);
			/* As execvp: a file that is there and may not be run
			 * is a better reason than one that is not there. */
			if (errno != ENOENT && errno != ENOTDIR)
				saved = errno;
		}
		if (*end == '\0')
			break;
	}
	errno = saved;
}

void
shim_exec_leader(struct shim_child *c)
{
	const struct shim_job *j = &c->s->job;
	struct shim_exec *e;
	unsigned int modes = shim_exec_modes(c->s);
	size_t i;
	int r;

	if ((e = calloc(1, sizeof(*e))) == NULL)
		shim_exec_fail(c, "start", NULL, "out of memory");
	e->c = c;
	e->cwd_fd = c->s->tree_fd;
	for (i = 0; i < sizeof(shim_exec_steps) / sizeof(*shim_exec_steps);
	    i++) {
		if ((shim_exec_steps[i].modes & modes) == 0)
			continue;
		e->what = NULL;
		r = shim_exec_steps[i].start(e);
		if (r != CL_OK)
			shim_exec_fail(c, shim_exec_steps[i].name, e->what,
			    cl_strerror(r));
	}
	shim_exec_program(j->argv.v, j->env.v);
	shim_exec_fail(c, "exec", j->argv.v[0],
	    errno == ENOENT && strchr(j->argv.v[0], '/') == NULL ?
	    "not found on PATH" : strerror(errno));
}

/*
 * Process numbers inside go on from the host's instead of beginning at 2: what
 * a workload prints about its processes cannot be mistaken for low numbers of
 * the host, and its own number is near the one the hub shows.  Needs nothing:
 * without it (no /proc, no privilege) they begin at 2.
 */
static void
shim_exec_number(long shim_pid)
{
	int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
	int proc_fd;

	/* Our service manager may have made that one read-only. */
	if (fd == -1 && errno == EROFS && (proc_fd = ns_open_proc()) != -1) {
		fd = openat(proc_fd, "sys/kernel/ns_last_pid",
		    O_WRONLY | O_CLOEXEC);
		close(proc_fd);
	}
	if (fd == -1)
		return;
	(void)dprintf(fd, "%ld", shim_pid + 1);
	close(fd);
}

/*
 * Process 1 of the workload's pid namespace.  SIGCHLD is ignored, so orphans
 * that become its children vanish by themselves; it has nothing else to do
 * than to exist, and when it is killed the kernel kills the rest.
 */
void
shim_exec_init(int sync_fd, long shim_pid, const struct sock_fprog *filter)
{
	struct pollfd pfd = { .fd = sync_fd, .events = 0 };
	struct sigaction sa = { .sa_handler = SIG_IGN };
	sigset_t all;

	sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	(void)sigaction(SIGCHLD, &sa, NULL);
	/* Tied to the shim; if that died before the line above took effect,
	 * its end of the pair is closed. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == -1 ||
	    (poll(&pfd, 1, 0) == 1 && (pfd.revents & POLLHUP) != 0))
		_exit(1);
	(void)prctl(PR_SET_NAME, "cloop-init");
	shim_exec_number(shim_pid);
	if (write(sync_fd, "i", 1) != 1)
		_exit(1);
	if (close_range(0, ~0U, 0) == -1 ||
	    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == -1 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1 ||
	    self_caps_cut(0) != CL_OK || bpf_start(filter) != CL_OK)
		_exit(1);
	for (;;)
		(void)poll(NULL, 0, -1);
}
