/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * What every job of a workload has: its orders from the monitor and its
 * result to it (dev_job.def), its reason when it fails, its lines in
 * the workload's output.  In cloop-git and cloop-seed.
 */
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/stdlib.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/util.h"
#include "common/msg/msgcat.h"
#include "git_job.h"

#define GIT_JOB_LOOK_MS 1000		/* for a signal that came just before */
#define GIT_JOB_QUEUE 4

volatile int git_job_cancelled;

static void
git_job_on_term(int sig)
{
	(void)sig;
	git_job_cancelled = 1;
}

int
git_job_fail(struct git_job *g, const char *fmt, ...)
{
	char *text = NULL, clean[MAX_ERROR_TEXT_LEN / 2];
	va_list ap;

	if (g->error != NULL)
		return CL_DENIED;
	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) == -1)
		text = NULL;
	va_end(ap);
	if (text == NULL)
		return CL_DENIED;
	redact_format(g->secrets, text, clean, sizeof(clean));
	free(text);
	g->error = strdup(clean);
	return CL_DENIED;
}

void
git_job_say(const struct git_job *g, const char *fmt, ...)
{
	char text[4096], clean[4096], line[4200];
	va_list ap;
	size_t i;
	int n;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	for (i = 0; text[i] != '\0'; i++)
		if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
			text[i] = '?';
	redact_format(g->secrets, text, clean, sizeof(clean));
	n = snprintf(line, sizeof(line), "workspace: %s\n", clean);
	if (n > 0)
		(void)!write(1, line, strnlen(line, sizeof(line)));
}

int
git_job_check(struct git_job *g)
{
	if (git_job_cancelled)
		return git_job_fail(g, "cancelled by a signal");
	if (util_now_ms() >= g->deadline_at)
		return git_job_fail(g, "not done within %lld minutes",
		    (long long)g->plan.timeout_s / 60);
	return CL_OK;
}

/* ---------------------------------------------------------------- messages */

static int
git_job_on_plan(struct git_job *g, const struct imsg *m, size_t len)
{
	uint8_t *data = NULL;
	struct buf b;
	int r;

	if ((r = util_load_memfd(m->fd, len, MAX_DEVJOB_LEN, &data)) != 0)
		return r;
	buf_init_read(&b, data, len);
	r = field_get(&devjob_plan_table, &b, &g->plan);
	if (r == 0)
		r = buf_end(&b);
	freezero(data, len);
	g->has_plan = r == 0;
	return r;
}

/* 1 at GO, 0 for more, -1: give up. */
static int
git_job_on_msg(struct git_job *g, struct imsg *m, const union msg_any *v)
{
	switch (m->type) {
	case MSG_JOB_PLAN:
		return git_job_on_plan(g, m, v->JOB_PLAN.len) == 0 ? 0 : -1;
	case MSG_JOB_FILE:
		g->file_fd = imsg_take_fd(m);
		return 0;
	default:
		return g->has_plan ? 1 : -1;
	}
}

int
git_job_read_orders(struct git_job *g)
{
	union msg_any v;
	struct imsg m;
	const char *why;
	int r, done = 0;

	while (done == 0) {
		r = chan_wait(&g->chan, util_now_ms() + GIT_JOB_LOOK_MS, &m, &v,
		    &why);
		if (r == CL_TIMEOUT && !git_job_cancelled)
			continue;
		if (r != 0)
			return -1;
		done = git_job_on_msg(g, &m, &v);
		msg_clear(m.type, &v);
		imsg_free(&m);
	}
	return done;
}

void
git_job_send_result(struct git_job *g, int r)
{
	struct pollfd pfd = { .fd = g->chan.im.fd, .events = POLLOUT };

	if (r != 0) {
		g->res.outcome = DEVJOB_FAILED;
		free(g->res.error);
		g->res.error = strdup(g->error != NULL ? g->error :
		    cl_strerror(r));
		free(g->res.sha256);
		g->res.sha256 = NULL;
		g->res.bytes = 0;
	} else if (g->res.outcome == 0)
		g->res.outcome = DEVJOB_OK;
	if (CHAN_SEND(&g->chan, JOB_DONE, 0, &g->res, -1) != 0)
		return;
	while (chan_has_output(&g->chan) && poll(&pfd, 1, -1) != -1 &&
	    (pfd.revents & (POLLHUP | POLLERR)) == 0)
		chan_flush(&g->chan);
}

/* Descriptor 0 becomes the channel; what is started must not inherit it. */
int
git_job_open(struct git_job *g)
{
	struct sigaction term = { .sa_handler = git_job_on_term };
	struct sigaction ign = { .sa_handler = SIG_IGN };
	int fd;

	g->file_fd = g->dir_fd = -1;
	(void)sigaction(SIGTERM, &term, NULL);
	(void)sigaction(SIGPIPE, &ign, NULL);
	if ((fd = fcntl(0, F_DUPFD_CLOEXEC, 10)) == -1)
		return CL_SYSTEM;
	return chan_init(&g->chan, fd, MSG_M2J, MSG_J2M, GIT_JOB_QUEUE, NULL,
	    NULL, NULL);
}

void
git_job_harden(void)
{
	struct rlimit rl = { 0, 0 };

	(void)setrlimit(RLIMIT_CORE, &rl);
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	umask(077);
}
