/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The shim's half of a start: sockets and files it needs later, namespaces,
 * the processes, its own confinement.  Runs with what cloop-agentd has; when
 * it returns, the shim has CAP_KILL at most and can open nothing.
 */
#include "shim_int.h"

#include <linux/sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <bsd/string.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "sandbox/box/ns.h"
#include "sandbox/self/landlock.h"
#include "sandbox/self/self.h"

#define SHIM_PIPE_LEN (16 * SPOOL_BLOCK_LEN)	/* one turn of the pump */
#define SHIM_INIT_MS 5000	/* an init is set up in 0.1 ms */

struct shim_pipes {
	int out[2];
	int err[2];
	int sync[2];
};

static void
shim_close_fd(int *fd)
{
	if (*fd != -1)
		close(*fd);
	*fd = -1;
}

static int
shim_start_socket(struct shim *s)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	mode_t mask;
	int rc;

	if (s->job.socket == NULL || s->job.socket[0] == '\0')
		return CL_OK;
	if (strlcpy(sun.sun_path, s->job.socket, sizeof(sun.sun_path)) >=
	    sizeof(sun.sun_path))
		return CL_TOOBIG;
	s->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC |
	    SOCK_NONBLOCK, 0);
	if (s->listen_fd == -1)
		return CL_SYSTEM;
	/* A stale one of a shim that was killed. */
	(void)unlinkat(AT_FDCWD, sun.sun_path, 0);
	mask = umask(0177);
	rc = bind(s->listen_fd, (struct sockaddr *)&sun, sizeof(sun));
	(void)umask(mask);
	if (rc == -1 || listen(s->listen_fd, 4) == -1)
		return CL_SYSTEM;
	return CL_OK;
}

static int
shim_start_pipes(struct shim *s, struct shim_pipes *p)
{
	if (pipe2(p->out, O_CLOEXEC) == -1 ||
	    pipe2(p->err, O_CLOEXEC) == -1 ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p->sync) == -1)
		return CL_SYSTEM;
	/* Fewer switches; an ordinary user may be over the system's budget. */
	(void)fcntl(p->out[0], F_SETPIPE_SZ, SHIM_PIPE_LEN);
	if (util_set_nonblock(p->out[0]) != CL_OK)
		return CL_SYSTEM;
	if ((s->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC)) == -1)
		return CL_SYSTEM;
	return CL_OK;
}

/*
 * Namespaces for what is forked from here on.  Root has the privilege; an
 * unprivileged shim gets it inside a user namespace.  Neither: the other
 * fences stay, and the log says what is missing.
 */
static int
shim_start_namespaces(struct shim *s)
{
	int r;

	if (s->job.mode == SHIM_MODE_PLAIN)
		return CL_UNSUPPORTED;
	if (s->job.uid == SHIM_STAY && (r = ns_enter_user()) != CL_OK)
		return r;
	if (unshare(CLONE_NEWPID) == -1)
		return CL_UNSUPPORTED;
	s->has_user_ns = 1;
	return CL_OK;
}

/* The step's packet filter; in place before anything is in the group. */
static int
shim_start_limit_net(struct shim *s)
{
	struct cgroup_peer peers[MAX_SHIM_PEERS];
	const struct shim_list *l = &s->job.peers;
	size_t i;
	int r;

	for (i = 0; i < l->n; i++)
		if ((r = cgroup_peer_parse(l->v[i], &peers[i])) != CL_OK)
			return r;
	return cgroup_limit_net(&s->cgroup, peers, l->n);
}

static void
shim_start_features(struct shim *s)
{
	int r;

	r = cgroup_open(&s->cgroup, MAX_WORKLOAD_TASKS);
	if (r == CL_OK && geteuid() != 0 && !cgroup_can_enter(&s->cgroup)) {
		cgroup_close(&s->cgroup);
		r = CL_DENIED;
	}
	if (r != CL_OK)
		s->missing |= SHIM_NO_CGROUP;
	if (s->job.peers.n > 0 && cgroup_is_open(&s->cgroup) &&
	    (r = shim_start_limit_net(s)) != CL_OK)
		log_info("forge-filter", "handle=%s available=no reason=%s",
		    log_q(s->job.handle), log_q(r == CL_UNSUPPORTED ?
		    strerror(errno) : cl_strerror(r)));
	if (landlock_get_abi() == 0)
		s->missing |= SHIM_NO_LANDLOCK;
	if (shim_start_namespaces(s) == CL_OK)
		return;
	s->missing |= SHIM_NO_NAMESPACES;
	/* Orphans come to us instead, and we look for them in /proc. */
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	s->proc = opendir("/proc");
}

/*
 * Where clone3 is refused as a whole (a filter cannot see its flags: service
 * managers and container engines do that): the child goes into the group by
 * itself, before it is anything.
 */
static pid_t
shim_start_fork_join(struct shim *s)
{
	int ok[2];
	char byte;
	pid_t pid;

	if (pipe2(ok, O_CLOEXEC) == -1)
		return -1;
	if ((pid = fork()) == 0) {
		close(ok[0]);
		byte = cgroup_join(&s->cgroup) == CL_OK ? 'y' : 'n';
		if (byte == 'n')
			s->cgroup.has_pids = 0;
		if (write(ok[1], &byte, 1) != 1)
			_exit(1);
		close(ok[1]);
		return 0;
	}
	close(ok[1]);
	if (pid != -1 && (read(ok[0], &byte, 1) != 1 || byte != 'y')) {
		cgroup_close(&s->cgroup);
		s->missing |= SHIM_NO_CGROUP;
	}
	close(ok[0]);
	return pid;
}

/*
 * fork, into the workload's cgroup where there is one.  A failure is final:
 * after it the new pid namespace takes no process any more.
 */
static pid_t
shim_start_fork(struct shim *s)
{
	struct clone_args args = { .exit_signal = SIGCHLD };
	pid_t pid;

	if (!cgroup_is_open(&s->cgroup))
		return fork();
	args.flags = CLONE_INTO_CGROUP;
	args.cgroup = (uint64_t)s->cgroup.dir_fd;
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (pid == -1 && (errno == ENOSYS || errno == EPERM))
		return shim_start_fork_join(s);
	return pid;
}

/* The init of the pid namespace is set up; the leader is born after it. */
static int
shim_start_init(struct shim *s, struct shim_pipes *p)
{
	struct pollfd pfd = { .fd = p->sync[0], .events = POLLIN };
	long pid = (long)getpid();
	char byte;
	int n;

	if ((s->init_pid = shim_start_fork(s)) == -1)
		return CL_SYSTEM;
	if (s->init_pid == 0) {
		close(p->sync[0]);
		shim_exec_init(p->sync[1], pid, &s->filters.prog[BPF_INIT]);
	}
	/* One that died says nothing.  A word that came later would be taken
	 * for the leader's. */
	if ((n = poll(&pfd, 1, SHIM_INIT_MS)) == 0)
		return CL_TIMEOUT;
	return n == 1 && read(p->sync[0], &byte, 1) == 1 ? CL_OK : CL_SYSTEM;
}

static int
shim_start_processes(struct shim *s, struct shim_pipes *p)
{
	int r;
	struct shim_child child = { .s = s, .out_fd = p->out[1],
		.err_fd = p->err[1], .sync_fd = p->sync[1] };

	if ((s->missing & SHIM_NO_NAMESPACES) == 0) {
		/* The first one born in a pid namespace is its init. */
		if ((r = shim_start_init(s, p)) != CL_OK)
			return r;
	}
	if ((s->leader_pid = shim_start_fork(s)) == -1)
		return CL_SYSTEM;
	if (s->leader_pid == 0) {
		close(p->sync[0]);
		shim_exec_leader(&child);
	}
	return CL_OK;
}

/* Root: the workload made its user namespace and waits for its maps. */
static int
shim_start_maps(struct shim *s, struct shim_pipes *p)
{
	char byte = 0;
	int r;

	if (!s->has_user_ns || s->job.uid == SHIM_STAY)
		return CL_OK;
	if (read(p->sync[0], &byte, 1) != 1)
		return CL_OK;	/* it failed before; the reason comes */
	if (byte != 'u')
		s->has_user_ns = 0;
	else if ((r = ns_set_identity(s->leader_pid)) != CL_OK)
		return r;
	return write(p->sync[0], &byte, 1) == 1 ? CL_OK : CL_SYSTEM;
}

static int
shim_start_confine(struct shim *s, struct self_report *rep)
{
	char dir[64], group[64], sock[MAX_PATH_LEN + 1] = "", *slash;
	struct self_path paths[5];
	struct self_opts opts = { .profile = SELF_SHIM, .paths = paths };
	enum bpf_kind filter = BPF_SHIM;
	size_t n = 0;

	(void)snprintf(dir, sizeof(dir), "/proc/self/fd/%d", s->dir_fd);
	paths[n++] = (struct self_path){ dir, LL_MAKE | LL_REMOVE };
	if (s->listen_fd != -1) {
		(void)strlcpy(sock, s->job.socket, sizeof(sock));
		if ((slash = strrchr(sock, '/')) != NULL)
			*slash = '\0';
		paths[n++] = (struct self_path){ sock, LL_REMOVE };
	}
	if (cgroup_is_open(&s->cgroup)) {
		(void)snprintf(group, sizeof(group), "/proc/self/fd/%d",
		    s->cgroup.parent_fd);
		paths[n++] = (struct self_path){ group, LL_REMOVE };
	}
	if (s->proc != NULL) {
		opts.profile = SELF_SHIM_SCAN;
		filter = BPF_SHIM_SCAN;
		paths[n++] = (struct self_path){ "/proc", LL_READ };
	}
	paths[n] = (struct self_path){ NULL, 0 };
	return self_confine_ready(&opts, &s->filters.prog[filter], rep);
}

/* Until the exec closed the pipe; else the reason. */
static int
shim_start_wait(int fd, char *why, size_t whylen)
{
	ssize_t n;

	do {
		n = read(fd, why, whylen - 1);
	} while (n == -1 && errno == EINTR);
	why[n > 0 ? n : 0] = '\0';
	return n == 0 ? CL_OK : CL_DENIED;
}

static void
shim_start_undo(struct shim *s)
{
	if (cgroup_is_open(&s->cgroup))
		(void)cgroup_kill(&s->cgroup);
	if (s->leader_pid > 0) {
		(void)kill(s->leader_pid, SIGKILL);
		(void)waitpid(s->leader_pid, NULL, 0);
	}
	if (s->init_pid > 0) {
		(void)kill(s->init_pid, SIGKILL);
		(void)waitpid(s->init_pid, NULL, 0);
	}
	s->leader_pid = s->init_pid = -1;
	cgroup_close(&s->cgroup);
	if (s->listen_fd != -1)
		(void)unlinkat(AT_FDCWD, s->job.socket, 0);
	if (s->exit_fd != -1)
		(void)unlinkat(s->dir_fd, SHIM_EXIT_FILE ".tmp", 0);
}

static void
shim_start_report(struct shim *s, const struct self_report *rep)
{
	char text[SELF_REPORT_MAX];

	if (!s->has_user_ns && !s->cgroup.has_pids)
		s->missing |= SHIM_NO_TASKS;
	if (s->job.mode == SHIM_MODE_CONFINED &&
	    (s->missing & ~(unsigned int)SHIM_NO_CGROUP) != 0)
		log_warn("workload-confinement", "handle=%s missing=%s%s%s",
		    log_q(s->job.handle),
		    (s->missing & SHIM_NO_NAMESPACES) ? "namespaces," : "",
		    (s->missing & SHIM_NO_LANDLOCK) ? "landlock," : "",
		    (s->missing & SHIM_NO_TASKS) ? "task-limit," : "");
	if (s->job.peers.n > 0 && !cgroup_is_open(&s->cgroup))
		log_info("forge-filter", "handle=%s available=no "
		    "reason=\"no cgroup of version 2 is ours\"",
		    log_q(s->job.handle));
	log_debug("shim-confined", "%s cgroup=%s",
	    self_format_report(rep, text),
	    cgroup_is_open(&s->cgroup) ? "yes" : "no");
}

static int
shim_start_all(struct shim *s, struct shim_pipes *p, const char **stepp)
{
	struct self_report rep;
	int r;

	*stepp = "socket";
	if ((r = shim_start_socket(s)) != CL_OK)
		return r;
	*stepp = "exit record";
	s->pump.is_step = (s->job.flags & SHIM_F_STEP) != 0;
	if (!s->pump.is_step &&
	    (r = shim_exit_open(s->dir_fd, &s->exit_fd)) != CL_OK)
		return r;
	*stepp = "pipe";
	if ((r = shim_start_pipes(s, p)) != CL_OK)
		return r;
	shim_start_features(s);
	*stepp = "fork";
	if ((r = shim_start_processes(s, p)) != CL_OK)
		return r;
	shim_close_fd(&p->out[1]);
	shim_close_fd(&p->err[1]);
	shim_close_fd(&p->sync[1]);
	*stepp = "user namespace";
	if ((r = shim_start_maps(s, p)) != CL_OK)
		return r;
	/* Nothing more to open: give it up while the workload's side is
	 * still busy with its own. */
	*stepp = "confine";
	if ((r = shim_start_confine(s, &rep)) != CL_OK) {
		*stepp = rep.step;
		return r;
	}
	shim_start_report(s, &rep);
	return CL_OK;
}

int
shim_start(struct shim *s, char *why, size_t whylen)
{
	struct shim_pipes p = { { -1, -1 }, { -1, -1 }, { -1, -1 } };
	const char *step = "";
	int i, r;

	if ((r = shim_start_all(s, &p, &step)) != CL_OK) {
		(void)snprintf(why, whylen, "sandbox: %s: %s", step,
		    cl_strerror(r));
		goto out;
	}
	if ((r = shim_start_wait(p.err[0], why, whylen)) != CL_OK)
		goto out;
	s->end.started_at = util_wall_ns();
	s->reported_pid = s->leader_pid;
	s->pump.fd = p.out[0];
	p.out[0] = -1;
	if (s->job.timeout_s != 0)
		s->deadline_at = util_now_ms() +
		    (int64_t)s->job.timeout_s * 1000;
out:
	for (i = 0; i < 2; i++) {
		shim_close_fd(&p.out[i]);
		shim_close_fd(&p.err[i]);
		shim_close_fd(&p.sync[i]);
	}
	shim_close_fd(&s->tree_fd);
	shim_close_fd(&s->null_fd);
	shim_close_fd(&s->stdin_fd);
	bpf_set_clear(&s->filters);
	if (r != CL_OK)
		shim_start_undo(s);
	return r;
}
