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
gj_on_plan(struct gj *g, struct imsg *m)
{
	uint32_t len = buf_get_u32(&m->body);
	uint8_t *data = NULL;
	struct buf b;
	int r;

	if ((r = buf_end(&m->body)) != 0 ||
	    (r = util_load_memfd(m->fd, len, MAX_DEVJOB_LEN, &data)) != 0)
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
gj_on_msg(struct gj *g, struct imsg *m, struct msgcat_seen *seen)
{
	const char *why;

	if (msgcat_check(MSG_M2J, MS_STARTING, m, seen, &why) != 0)
		return -1;
	switch (m->type) {
	case MSG_JOB_PLAN:
		return gj_on_plan(g, m) == 0 ? 0 : -1;
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
	struct pollfd pfd = { .fd = g->chan.fd, .events = POLLIN };
	struct msgcat_seen seen;
	struct imsg m;
	int r, done = 0;

	memset(&seen, 0, sizeof(seen));
	while (done == 0) {
		if ((r = imsg_read(&g->chan, &m)) == CL_INCOMPLETE) {
			if (gj_cancelled)
				return -1;
			(void)poll(&pfd, 1, -1);
			continue;
		}
		if (r != 0)
			return -1;
		done = gj_on_msg(g, &m, &seen);
		imsg_free(&m);
	}
	return done;
}

void
gj_send_result(struct gj *g, int r)
{
	struct pollfd pfd = { .fd = g->chan.fd, .events = POLLOUT };
	struct buf b;

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
	buf_init(&b, MSG_BODY_MAX);
	field_put(&devjob_result_table, &g->res, &b);
	if (imsg_compose(&g->chan, MSG_JOB_DONE, 0, &b, -1) == 0)
		while (imsg_write(&g->chan) == CL_INCOMPLETE)
			(void)poll(&pfd, 1, -1);
	buf_clear(&b);
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
	return imsg_init(&g->chan, fd, GJ_QUEUE);
}

void
gj_harden(void)
{
	struct rlimit rl = { 0, 0 };

	(void)setrlimit(RLIMIT_CORE, &rl);
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	umask(077);
}
