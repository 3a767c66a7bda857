/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Running git, in cloop-git: one process group at a time, with a deadline,
 * its output bounded, its words for error texts cut and freed of secrets.
 * What git prints comes from a server or a tree that is hostile: it is text
 * here and becomes a value only where git_run_load_id() and git_return.c check
 * its form.
 */
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/rule.h"
#include "common/base/util.h"
#include "sandbox/self/filter_git.h"
#include "git_job.h"

#define GIT_RUN_ARGS 24
#define GIT_RUN_STDERR 4096		/* the end of it is kept */
#define GIT_RUN_SAY_MS 5000		/* between two lines of progress */
#define GIT_RUN_KILL_MS 3000		/* TERM to KILL */
#define GIT_RUN_POLL_MS 100		/* how soon a cancellation is seen */

struct git_run_state {
	struct git_job *g;
	struct git_run *x;
	pid_t pid;
	int out_fd, err_fd;	/* our ends, -1 at their end */
	int cred_fd, ca_fd;	/* the child's, inherited by git */
	const struct sock_fprog *filter;	/* of a git without network */
	char err[GIT_RUN_STDERR];
	size_t err_len;
	int64_t say_at, kill_at;
	int is_killed;		/* signals sent */
	int is_over;		/* more output than allowed */
};

static void
git_run_close(int *fd)
{
	if (*fd != -1)
		close(*fd);
	*fd = -1;
}

/* ------------------------------------------------------------------- child */

static int
git_run_set_limits(const struct git_run *x)
{
	struct rlimit rl;

	if (x->max_file == 0)
		return 0;
	rl.rlim_cur = rl.rlim_max = (rlim_t)x->max_file;
	return setrlimit(RLIMIT_FSIZE, &rl);
}

static void __attribute__((__noreturn__))
git_run_child(const struct git_run_state *run, char *const *argv,
    char *const *envp, int out_fd, int err_fd)
{
	int null_fd;

	(void)signal(SIGPIPE, SIG_DFL);
	if (setpgid(0, 0) == -1 || (null_fd = open("/dev/null", O_RDWR |
	    O_CLOEXEC)) == -1 || dup2(null_fd, 0) == -1 ||
	    dup2(out_fd, 1) == -1 || dup2(err_fd, 2) == -1 ||
	    git_run_set_limits(run->x) == -1)
		_exit(127);
	/* These two are for git's own children. */
	if ((run->cred_fd != -1 && fcntl(run->cred_fd, F_SETFD, 0) == -1) ||
	    (run->ca_fd != -1 && fcntl(run->ca_fd, F_SETFD, 0) == -1))
		_exit(127);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1 ||
	    git_net_start_walls(run->g, run->x->flags, run->filter) != CL_OK)
		_exit(127);
	execve(argv[0], argv, envp);
	_exit(127);
}

/*
 * The credential goes into a pipe whose other end nobody holds when git runs:
 * who reads it first has it, and it is gone.
 */
static int
git_run_open_credential(struct git_run_state *run)
{
	const struct devjob_plan *p = &run->g->plan;
	const char *user = p->username != NULL && *p->username != '\0' ?
	    p->username : "x-access-token";
	struct git_run_part { const void *p; size_t n; } part[3] = {
		{ user, strlen(user) }, { "\n", 1 },
		{ p->password.data, p->password.len } };
	int fds[2];
	size_t i;

	if (part[0].n + part[2].n > 4000 || memchr(p->password.data, '\n',
	    p->password.len) != NULL || strchr(user, '\n') != NULL)
		return git_job_fail(run->g, "the credential cannot be used");
	if (pipe2(fds, O_CLOEXEC) == -1)
		return git_job_fail(run->g, "pipe: %s", strerror(errno));
	/* It fits the pipe: nobody has to read for this to end. */
	for (i = 0; i < 3; i++)
		if (util_write_all(fds[1], part[i].p, part[i].n) != 0)
			break;
	close(fds[1]);
	run->cred_fd = fds[0];
	return i == 3 ? CL_OK : git_job_fail(run->g, "pipe: %s",
	    strerror(errno));
}

static int
git_run_open_all(struct git_run_state *run, int out[2], int err[2])
{
	const struct devjob_plan *p = &run->g->plan;
	int r;

	if (run->x->flags & GIT_ENV_CREDENTIAL &&
	    (r = git_run_open_credential(run)) != 0)
		return r;
	if ((run->x->flags & GIT_ENV_NETWORK) != 0 && p->ca_len > 0 &&
	    util_make_memfd(p->ca, p->ca_len, &run->ca_fd) != 0)
		return git_job_fail(run->g, "memfd: %s", strerror(errno));
	if ((run->x->flags & GIT_ENV_NETWORK) == 0 &&
	    (r = filter_find_git(&run->filter)) != CL_OK)
		return git_job_fail(run->g, "seccomp: %s", cl_strerror(r));
	if (pipe2(out, O_CLOEXEC) == -1 || pipe2(err, O_CLOEXEC) == -1)
		return git_job_fail(run->g, "pipe: %s", strerror(errno));
	run->out_fd = out[0];
	run->err_fd = err[0];
	return CL_OK;
}

static int
git_run_start(struct git_run_state *run)
{
	const char *argv[GIT_RUN_ARGS] = { run->g->plan.git };
	int out[2] = { -1, -1 }, err[2] = { -1, -1 }, r;
	struct git_env env;
	size_t n;

	for (n = 0; run->x->argv[n] != NULL && n + 2 < GIT_RUN_ARGS; n++)
		argv[n + 1] = run->x->argv[n];
	if ((r = git_run_open_all(run, out, err)) != 0)
		goto out;
	r = git_env_make(run->g, run->x->repo, run->x->flags, run->cred_fd,
	    run->ca_fd, &env);
	if (r != 0) {
		r = git_job_fail(run->g, "%s", cl_strerror(r));
		goto out;
	}
	if ((run->pid = fork()) == 0)
		git_run_child(run, (char *const *)(uintptr_t)argv, env.v,
		    run->x->out_fd != 0 ? run->x->out_fd : out[1], err[1]);
	git_env_clear(&env);
	if (run->pid == -1)
		r = git_job_fail(run->g, "fork: %s", strerror(errno));
	else
		(void)setpgid(run->pid, run->pid);
out:
	git_run_close(&out[1]);
	git_run_close(&err[1]);
	git_run_close(&run->cred_fd);
	git_run_close(&run->ca_fd);
	return r;
}

/* ------------------------------------------------------------------ output */

static void
git_run_read_out(struct git_run_state *run)
{
	struct git_run *x = run->x;
	char block[16384];
	ssize_t n;

	n = read(run->out_fd, block, sizeof(block));
	if (n <= 0) {
		if (n == 0 || (errno != EINTR && errno != EAGAIN))
			git_run_close(&run->out_fd);
		return;
	}
	if ((size_t)n > x->max_out - x->out_len) {
		run->is_over = 1;
		n = (ssize_t)(x->max_out - x->out_len);
	}
	memcpy(x->out + x->out_len, block, (size_t)n);
	x->out_len += (size_t)n;
	x->out[x->out_len] = '\0';
}

/* The last line of progress, now and then. */
static void
git_run_say_progress(struct git_run_state *run)
{
	int64_t now = util_now_ms();
	size_t end = run->err_len, at;

	if (!run->x->is_loud || now < run->say_at)
		return;
	while (end > 0 && strchr("\r\n", run->err[end - 1]) != NULL)
		end--;
	for (at = end; at > 0 && strchr("\r\n", run->err[at - 1]) == NULL;
	    at--)
		;
	if (end > at && end - at < 200)
		git_job_say(run->g, "%.*s", (int)(end - at), run->err + at);
	run->say_at = now + GIT_RUN_SAY_MS;
}

static void
git_run_read_err(struct git_run_state *run)
{
	char block[GIT_RUN_STDERR];
	size_t keep;
	ssize_t n;

	n = read(run->err_fd, block, sizeof(block));
	if (n <= 0) {
		if (n == 0 || (errno != EINTR && errno != EAGAIN))
			git_run_close(&run->err_fd);
		return;
	}
	keep = sizeof(run->err) - (size_t)n;
	if (run->err_len > keep) {
		memmove(run->err, run->err + run->err_len - keep, keep);
		run->err_len = keep;
	}
	memcpy(run->err + run->err_len, block, (size_t)n);
	run->err_len += (size_t)n;
	git_run_say_progress(run);
}

/* White space collapsed, control characters gone, secrets gone, the last
 * GIT_JOB_TAIL_MAX characters. */
static void
git_run_format_tail(struct git_run_state *run)
{
	char text[GIT_RUN_STDERR + 1], clean[2 * GIT_RUN_STDERR];
	size_t i, n = 0, len;

	for (i = 0; i < run->err_len; i++) {
		unsigned char c = (unsigned char)run->err[i];

		if (c > ' ' && c != 0x7f)
			text[n++] = (char)c;
		else if (n > 0 && text[n - 1] != ' ')
			text[n++] = ' ';
	}
	text[n] = '\0';
	redact_format(run->g->secrets, text, clean, sizeof(clean));
	len = strlen(clean);
	i = len > GIT_JOB_TAIL_MAX ? len - GIT_JOB_TAIL_MAX : 0;
	while (((unsigned char)clean[i] & 0xc0) == 0x80)
		i++;
	(void)snprintf(run->x->tail, sizeof(run->x->tail), "%s", clean + i);
	len = strlen(run->x->tail);
	if (len > 0 && run->x->tail[len - 1] == ' ')
		run->x->tail[len - 1] = '\0';
}

/* ---------------------------------------------------------------- the wait */

static void
git_run_check_time(struct git_run_state *run)
{
	int64_t now = util_now_ms();

	if (run->is_killed == 0 && !git_job_cancelled && !run->is_over &&
	    now < run->g->deadline_at)
		return;
	if (run->is_killed > 0 && now < run->kill_at)
		return;
	/* Its own temporary files go with TERM. */
	(void)kill(-run->pid, run->is_killed == 0 ? SIGTERM : SIGKILL);
	run->is_killed++;
	run->kill_at = now + GIT_RUN_KILL_MS;
}

static void
git_run_wait(struct git_run_state *run)
{
	struct pollfd pfd[2];
	int gone = 0;

	while (!gone) {
		pfd[0].fd = run->out_fd;
		pfd[1].fd = run->err_fd;
		pfd[0].events = pfd[1].events = POLLIN;
		pfd[0].revents = pfd[1].revents = 0;
		(void)poll(pfd, 2, GIT_RUN_POLL_MS);
		if (pfd[0].revents != 0)
			git_run_read_out(run);
		if (pfd[1].revents != 0)
			git_run_read_err(run);
		git_run_check_time(run);
		/* At the end of both pipes the process is about to go. */
		if (run->out_fd == -1 && run->err_fd == -1) {
			gone = waitpid(run->pid, &run->x->status, WNOHANG) ==
			    run->pid;
			if (!gone)
				(void)poll(NULL, 0, 1);
		} else if (waitpid(run->pid, &run->x->status, WNOHANG) ==
		    run->pid) {
			gone = 1;
			while (run->out_fd != -1 && poll(pfd, 1, 0) == 1)
				git_run_read_out(run);
			while (run->err_fd != -1 && poll(pfd + 1, 1, 0) == 1)
				git_run_read_err(run);
		}
	}
	/* What it left behind in its group has nothing to do any more. */
	(void)kill(-run->pid, SIGKILL);
}

static int
git_run_judge(struct git_run_state *run)
{
	struct git_run *x = run->x;

	if (git_job_check(run->g) != 0)
		return CL_DENIED;
	if (run->is_over)
		return x->is_quiet ? CL_TOOBIG : git_job_fail(run->g,
		    "git %s: it printed too much", x->what);
	if (WIFEXITED(x->status) && WEXITSTATUS(x->status) == 0)
		return CL_OK;
	if (x->is_quiet)
		return CL_DENIED;
	if (WIFEXITED(x->status) && WEXITSTATUS(x->status) == 127 &&
	    x->tail[0] == '\0')
		return git_job_fail(run->g, "git cannot be run on this device");
	return git_job_fail(run->g, "git %s failed: %s", x->what,
	    x->tail[0] != '\0' ? x->tail : WIFSIGNALED(x->status) ?
	    strsignal(WTERMSIG(x->status)) : "no reason given");
}

int
git_run(struct git_job *g, struct git_run *x)
{
	struct git_run_state *run;
	int r;

	if ((r = git_job_check(g)) != 0)
		return r;
	if (x->max_out == 0)
		x->max_out = 4096;
	free(x->out);
	x->out_len = 0;
	if ((run = calloc(1, sizeof(*run))) == NULL ||
	    (x->out = calloc(1, x->max_out + 1)) == NULL) {
		free(run);
		return git_job_fail(g, "out of memory");
	}
	run->g = g;
	run->x = x;
	run->out_fd = run->err_fd = run->cred_fd = run->ca_fd = -1;
	run->say_at = util_now_ms() + GIT_RUN_SAY_MS;
	if ((r = git_run_start(run)) == 0) {
		git_run_wait(run);
		git_run_format_tail(run);
		r = git_run_judge(run);
	}
	git_run_close(&run->out_fd);
	git_run_close(&run->err_fd);
	free(run);
	return r;
}

void
git_run_clear(struct git_run *x)
{
	free(x->out);
	x->out = NULL;
	x->out_len = 0;
}

int
git_run_load_id(struct git_job *g, struct git_run *x, char id[GIT_HEX_LEN + 1])
{
	int r;

	id[0] = '\0';
	if ((r = git_run(g, x)) != 0)
		return r;
	if (x->out_len == GIT_HEX_LEN + 1 && x->out[GIT_HEX_LEN] == '\n') {
		x->out[GIT_HEX_LEN] = '\0';
		if (rule_is_hex(x->out, GIT_HEX_LEN)) {
			memcpy(id, x->out, GIT_HEX_LEN + 1);
			return CL_OK;
		}
	}
	return x->is_quiet ? CL_FORMAT : git_job_fail(g,
	    "git %s: it named no SHA-1 commit", x->what);
}
