/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Signals to a workload and its end, in cloop-shim.  In order of strength:
 * the init of its pid namespace (one SIGKILL takes everything), its cgroup
 * (cgroup.kill, also what is being forked), and without both a search of
 * /proc for descendants, which never leave us because we are their
 * subreaper.  Pids are only signalled while they cannot have been reused:
 * our own unreaped children, or the group of an unreaped leader.
 */
#include "shim_int.h"

#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/util.h"

#define SHIM_NPIDS_MAX 65536	/* processes of one look at /proc */

struct shim_proc {
	pid_t pid, ppid;
	int is_ours;
};

void
shim_kill_signal(struct shim *s, int sig)
{
	int n = sig == SIG_INTERRUPT ? SIGINT :
	    sig == SIG_KILL ? SIGKILL : SIGTERM;

	if (s->state != SHIM_RUNNING && s->state != SHIM_DRAINING)
		return;		/* over: as ESRCH, a success */
	s->asked |= 1U << n;
	s->is_stopping |= sig == SHIM_SIG_STOP;
	if (n == SIGKILL)
		shim_kill_all(s);
	if (s->state == SHIM_DRAINING && (n == SIGKILL || s->is_stopping))
		shim_enter_state(s, SHIM_CLEARING);
	if (n == SIGKILL || s->state == SHIM_CLEARING)
		return;
	/* The leader is not reaped before SHIM_CLEARING, so its group's
	 * number is still its own. */
	(void)kill(-s->leader_pid, n);
}

/* Fields 4 of /proc/PID/stat; the name before it may hold anything. */
static pid_t
shim_kill_find_parent(int proc_fd, const char *name)
{
	char path[32], text[512], *end;
	ssize_t n;
	int fd;

	if (snprintf(path, sizeof(path), "%s/stat", name) >=
	    (int)sizeof(path) ||
	    (fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC)) == -1)
		return -1;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return -1;
	text[n] = '\0';
	if ((end = strrchr(text, ')')) == NULL || strlen(end) < 5)
		return -1;
	return (pid_t)strtol(end + 4, NULL, 10);	/* ") S PPID" */
}

static size_t
shim_kill_load_procs(struct shim *s, struct shim_proc *procs)
{
	struct dirent *de;
	size_t n = 0;

	rewinddir(s->proc);
	while (n < SHIM_NPIDS_MAX && (de = readdir(s->proc)) != NULL) {
		if (de->d_name[0] < '1' || de->d_name[0] > '9')
			continue;
		procs[n].pid = (pid_t)strtol(de->d_name, NULL, 10);
		procs[n].ppid = shim_kill_find_parent(dirfd(s->proc),
		    de->d_name);
		procs[n].is_ours = procs[n].ppid == getpid();
		n++;
	}
	return n;
}

/* Every descendant found in one look; the caller looks again. */
static void
shim_kill_search(struct shim *s)
{
	struct shim_proc *procs;
	size_t i, k, n, found;

	if ((procs = calloc(SHIM_NPIDS_MAX, sizeof(*procs))) == NULL)
		return;
	n = shim_kill_load_procs(s, procs);
	do {
		found = 0;
		for (i = 0; i < n; i++) {
			for (k = 0; !procs[i].is_ours && k < n; k++) {
				if (!procs[k].is_ours ||
				    procs[k].pid != procs[i].ppid)
					continue;
				procs[i].is_ours = 1;
				found++;
			}
		}
	} while (found > 0);
	/* Stopped first, so that they do not fork while the rest is hit. */
	for (i = 0; i < n; i++)
		if (procs[i].is_ours)
			(void)kill(procs[i].pid, SIGSTOP);
	for (i = 0; i < n; i++)
		if (procs[i].is_ours)
			(void)kill(procs[i].pid, SIGKILL);
	free(procs);
}

void
shim_kill_all(struct shim *s)
{
	if (cgroup_is_open(&s->cgroup))
		(void)cgroup_kill(&s->cgroup);
	if (s->init_pid > 0) {
		(void)kill(s->init_pid, SIGKILL);
		return;
	}
	if (s->leader_pid > 0 && s->state != SHIM_CLEARING)
		(void)kill(-s->leader_pid, SIGKILL);
	if (s->proc != NULL)
		shim_kill_search(s);
}

/* Names as kill(1) prints them. */
static void
shim_kill_format_signal(int sig, char *dst, size_t len)
{
	const char *name = sigabbrev_np(sig);

	if (name != NULL)
		(void)snprintf(dst, len, "SIG%s", name);
	else
		(void)snprintf(dst, len, "signal %d", sig);
}

void
shim_kill_format_end(struct shim *s, int code, int status)
{
	struct shim_exit *x = &s->end;
	char name[32];

	x->finished_at = util_wall_ns();
	x->error = s->end_text;
	s->end_text[0] = '\0';
	if (code == CLD_EXITED) {
		x->state = HS_EXITED;
		x->exit_code = status & 0xff;
		return;
	}
	x->state = HS_KILLED;
	x->exit_code = 128 + status;
	shim_kill_format_signal(status, name, sizeof(name));
	if (s->is_timeout && status == SIGKILL && s->job.timeout_text != NULL &&
	    s->job.timeout_text[0] != '\0')
		(void)snprintf(s->end_text, sizeof(s->end_text), "%s",
		    s->job.timeout_text);
	else if (s->is_timeout && status == SIGKILL)
		(void)snprintf(s->end_text, sizeof(s->end_text),
		    "timeout after %llu seconds",
		    (unsigned long long)s->job.timeout_s);
	else if (status < 32 && (s->asked & (1U << status)) != 0)
		(void)snprintf(s->end_text, sizeof(s->end_text),
		    "%s on request", name);
	else
		(void)snprintf(s->end_text, sizeof(s->end_text), "%s", name);
}

/* 1 when something was collected or seen. */
static int
shim_kill_reap_one(struct shim *s)
{
	siginfo_t si = { 0 };
	int flags = WEXITED | WNOHANG;

	/* The leader stays a zombie until everything is killed: its number
	 * must not be given to somebody else while we signal its group. */
	if (s->state != SHIM_CLEARING)
		flags |= WNOWAIT;
	if (waitid(P_ALL, 0, &si, flags) == -1 || si.si_pid == 0)
		return 0;
	if (si.si_pid == s->leader_pid) {
		if (!s->is_leader_gone)
			shim_kill_format_end(s, si.si_code, si.si_status);
		s->is_leader_gone = 1;
		if (s->state == SHIM_CLEARING)
			s->leader_pid = -1;
		return s->state == SHIM_CLEARING;
	}
	if (s->state != SHIM_CLEARING)
		(void)waitpid(si.si_pid, NULL, WNOHANG);
	if (si.si_pid == s->init_pid)
		s->init_pid = -1;
	return 1;
}

void
shim_kill_reap(struct shim *s)
{
	while (shim_kill_reap_one(s))
		;
}

int
shim_kill_is_done(struct shim *s)
{
	siginfo_t si = { 0 };

	if (waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT) == 0 ||
	    errno != ECHILD)
		return 0;
	return !cgroup_is_open(&s->cgroup) || cgroup_is_empty(&s->cgroup);
}
