/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * What every job of a workload has: its orders from the monitor and its
 * result to it (DEV_JOB_CATALOGUE), its reason when it fails, its lines in
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

#define GJ_LOOK_MS 1000		/* for a signal that came just before */
#define GJ_QUEUE 4

volatile int gj_cancelled;

static void
gj_on_term(int sig)
{
	(void)sig;
	gj_cancelled = 1;
}

int
gj_fail(struct gj *g, const char *fmt, ...)
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
gj_say(const struct gj *g, const char *fmt, ...)
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
gj_check(struct gj *g)
{
	if (gj_cancelled)
		return gj_fail(g, "cancelled by a signal");
	if (util_now_ms() >= g->deadline_at)
		return gj_fail(g, "not done within %lld minutes",
		    (long long)g->plan.timeout_s / 60);
	return CL_OK;
}

/* ---------------------------------------------------------------- messages */

static int
gj_on_plan(struct gj *g, const struct imsg *m, size_t len)
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
gj_on_msg(struct gj *g, struct imsg *m, const union msg_any *v)
{
	switch (m->type) {
	case MSG_JOB_PLAN:
		return gj_on_plan(g, m, v->JOB_PLAN.len) == 0 ? 0 : -1;
	case MSG_JOB_FILE:
		g->file_fd = imsg_take_fd(m);
		return 0;
	default:
		return g->has_plan ? 1 : -1;
	}
}

int
gj_read_orders(struct gj *g)
{
	union msg_any v;
	struct imsg m;
	const char *why;
	int r, done = 0;

	while (done == 0) {
		r = chan_wait(&g->chan, util_now_ms() + GJ_LOOK_MS, &m, &v,
		    &why);
		if (r == CL_TIMEOUT && !gj_cancelled)
			continue;
		if (r != 0)
			return -1;
		done = gj_on_msg(g, &m, &v);
		msg_clear(m.type, &v);
		imsg_free(&m);
	}
	return done;
}

void
gj_send_result(struct gj *g, int r)
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
gj_open(struct gj *g)
{
	struct sigaction term = { .sa_handler = gj_on_term };
	struct sigaction ign = { .sa_handler = SIG_IGN };
	int fd;

	g->file_fd = g->dir_fd = -1;
	(void)sigaction(SIGTERM, &term, NULL);
	(void)sigaction(SIGPIPE, &ign, NULL);
	if ((fd = fcntl(0, F_DUPFD_CLOEXEC, 10)) == -1)
		return CL_SYSTEM;
	return chan_init(&g->chan, fd, MSG_M2J, MSG_J2M, GJ_QUEUE, NULL, NULL,
	    NULL);
}

void
gj_harden(void)
{
	struct rlimit rl = { 0, 0 };

	(void)setrlimit(RLIMIT_CORE, &rl);
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	umask(077);
}
