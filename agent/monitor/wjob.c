/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Jobs of workloads, in the device monitor.  Two channels: to the shim,
 * which we started, and to the job in it, which reads what forges and
 * workloads wrote and may have been taken over by them.  What it says is
 * held against the catalogue, decoded to the last byte, and believed as far
 * as a workload is: its texts are shown, its names checked by the caller.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/stdlib.h>
#include <bsd/string.h>

#include <event2/event.h>

#include "wjob.h"
#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "common/base/xmem.h"
#include "common/model/devjob.h"
#include "agentd.h"
#include "handledir.h"
#include "kern.h"
#include "shims.h"
#include "start.h"

#define WJOB_QUEUE 32
/* Its own deadline comes first, and leaves it time to roll back. */
#define WJOB_GRACE_S 60

struct wjob {
	struct agentd *a;
	void *arg;
	char handle_id[MAX_ID_LEN + 1];
	struct chan shim;
	struct chan job;
	struct event *timer;
	struct event *turn;		/* `done` from the loop */
	pid_t pid;
	uint64_t ticks;
	wjob_fn *done;
	struct devjob_result res;
	int has_res;
	int is_done;
	int is_cancelled;
	char failure[MAX_SHIM_ERROR_LEN + 64];
};

/* The first reason stays. */
static void
wjob_fail(struct wjob *j, const char *why)
{
	if (j->failure[0] == '\0')
		strlcpy(j->failure, why, sizeof(j->failure));
}

static void
wjob_on_turn(evutil_socket_t fd, short what, void *arg)
{
	struct wjob *j = arg;

	(void)fd;
	(void)what;
	if (!j->has_res) {
		j->res.outcome = DEVJOB_FAILED;
		j->res.error = strdup(j->failure[0] != '\0' ? j->failure :
		    "the job ended without a result");
	}
	j->done(j->arg, &j->res);
}

/* Over: nothing of it is waited for any more. */
static void
wjob_finish(struct wjob *j)
{
	if (j->is_done)
		return;
	j->is_done = 1;
	event_del(j->timer);
	event_active(j->turn, EV_TIMEOUT, 0);
}

static void
wjob_kill(struct wjob *j)
{
	/* If that cannot be told, the end of its channel ends it. */
	(void)kern_kill(j->pid, j->ticks);
}

/* ----------------------------------------------------------- the job says */

static int
wjob_on_msg(void *arg, struct imsg *m, union msg_any *v)
{
	struct wjob *j = arg;

	if (m->type != MSG_JOB_DONE || v->JOB_DONE.outcome < DEVJOB_OK)
		return CL_FORMAT;
	j->res = v->JOB_DONE;	/* what it owns is ours */
	field_init(&devjob_result_table, &v->JOB_DONE);
	j->has_res = 1;
	return CL_OK;
}

static void
wjob_on_end(void *arg, const char *why)
{
	struct wjob *j = arg;

	if (why == NULL)
		return;		/* its shim says how it ended */
	log_error("child-violation", "child=job handle=%s reason=%s",
	    log_q(j->handle_id), log_q(why));
	wjob_fail(j, "the job broke the rules of its channel");
	wjob_kill(j);
}

/* ---------------------------------------------------------- the shim says */

static int
wjob_on_exited(struct wjob *j, const struct shim_exit *end)
{
	if (shim_exit_check(end) != 0)
		return CL_FORMAT;
	(void)chan_send(&j->shim, MSG_SHIM_RELEASE, 0, NULL, -1);
	if (end->state != HS_EXITED || end->exit_code != 0)
		wjob_fail(j, *end->error != '\0' ? end->error :
		    j->is_cancelled ? "cancelled by a signal" :
		    "the job died");
	return CL_OK;
}

static int
wjob_on_shim_msg(void *arg, struct imsg *m, union msg_any *v)
{
	struct wjob *j = arg;

	switch (m->type) {
	case MSG_SHIM_STARTED:
		j->shim.state = MS_SERVING;
		return CL_OK;
	case MSG_SHIM_FAILED:
		wjob_fail(j, v->SHIM_FAILED.text);
		return CL_OK;
	case MSG_SHIM_EXITED:
		return wjob_on_exited(j, &v->SHIM_EXITED);
	default:
		return CL_FORMAT;
	}
}

static void
wjob_on_shim_end(void *arg, const char *why)
{
	struct wjob *j = arg;

	if (why != NULL) {
		log_error("child-violation", "child=cloop-shim handle=%s "
		    "reason=%s", log_q(j->handle_id), log_q(why));
		wjob_kill(j);
	}
	shims_sweep(j->a);
	wjob_fail(j, "the job's supervisor died");
	/* What the job said before is in its channel: read that first. */
	wjob_finish(j);
}

/* ------------------------------------------------------------------ launch */

/* The orders of the job itself. */
static int
wjob_send_plan(struct wjob *j, const struct wjob_opts *o)
{
	struct msg_memfd plan;
	int fd, r;

	if ((r = msg_make_memfd(&devjob_plan_table, o->plan, MAX_DEVJOB_LEN,
	    &fd, &plan.len)) == 0)
		r = CHAN_SEND(&j->job, JOB_PLAN, 0, &plan, fd);
	if (r == 0 && o->file_fd != -1)
		r = shims_send_fd(&j->job, MSG_JOB_FILE, o->file_fd);
	return r != 0 ? r : chan_send(&j->job, MSG_JOB_GO, 0, NULL, -1);
}

static int
wjob_send_all(struct wjob *j, const struct wjob_opts *o, int job_fd)
{
	struct shim_job job;
	struct shims_setup setup = { .job = &job, .dir = o->dir,
	    .wake_fd = o->wake_fd, .tree_fd = o->tree_fd };
	int r;

	if ((r = start_make_step(j->a, o->handle_id, o->program, o->tree,
	    o->plan->timeout_s + WJOB_GRACE_S, &job)) != 0)
		return r;
	job.peers = o->peers;
	r = shims_send_setup(j->a, &j->shim, &setup);
	memset(&job.peers, 0, sizeof(job.peers));	/* not ours */
	shim_job_clear(&job);
	if (r != 0 || (r = shims_send_fd(&j->shim, MSG_SHIM_STDIN,
	    job_fd)) != 0)
		return r;
	return chan_send(&j->shim, MSG_SHIM_GO, 0, NULL, -1);
}

static void
wjob_on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct wjob *j = arg;

	(void)fd;
	(void)what;
	wjob_fail(j, j->is_cancelled ? "cancelled by a signal" :
	    "the job did not end in time");
	wjob_kill(j);
	wjob_finish(j);
}

static void
wjob_set_timer(struct wjob *j, int64_t s)
{
	struct timeval tv = { .tv_sec = s };

	event_del(j->timer);
	event_add(j->timer, &tv);
}

static int
wjob_open(struct wjob *j, const struct wjob_opts *o)
{
	struct event_base *base = j->a->base;
	int fds[2], fd, r;

	j->timer = event_new(base, -1, 0, wjob_on_timer, j);
	j->turn = event_new(base, -1, 0, wjob_on_turn, j);
	if (j->timer == NULL || j->turn == NULL)
		return CL_NOMEM;
	if ((r = shims_start(j->a, &j->pid, &fd)) != 0)
		return r;
	if ((r = kern_load_ticks(j->pid, &j->ticks)) == CL_SYSTEM) {
		close(fd);
		return r;
	}
	if ((r = chan_open(&j->shim, base, fd, MSG_S2M, MSG_M2S, WJOB_QUEUE,
	    wjob_on_shim_msg, wjob_on_shim_end, j)) != 0)
		return r;
	if ((r = imsg_pair(fds)) != 0)
		return r;
	if ((r = chan_open(&j->job, base, fds[0], MSG_J2M, MSG_M2J, WJOB_QUEUE,
	    wjob_on_msg, wjob_on_end, j)) == 0) {
		j->job.state = MS_SERVING;
		if ((r = wjob_send_plan(j, o)) == 0)
			r = wjob_send_all(j, o, fds[1]);
	}
	close(fds[1]);
	return r;
}

int
wjob_start(struct agentd *a, const struct wjob_opts *o, struct wjob **jobp)
{
	struct wjob *j = xcalloc(1, sizeof(*j));
	int r, saved;

	*jobp = NULL;
	j->a = a;
	j->arg = o->arg;
	strlcpy(j->handle_id, o->handle_id, sizeof(j->handle_id));
	j->done = o->done;
	field_init(&devjob_result_table, &j->res);
	if ((r = wjob_open(j, o)) != 0) {
		saved = errno;
		log_error("job-start", "program=%s handle=%s reason=\"%s\"",
		    o->program, log_q(j->handle_id), cl_strerror(r));
		wjob_free(j);
		errno = saved;
		return r;
	}
	if (o->file_fd != -1)
		close(o->file_fd);
	secret_clear(&o->plan->password);
	secret_clear(&o->plan->seed);
	wjob_set_timer(j, o->plan->timeout_s + 2 * WJOB_GRACE_S);
	log_info("job-start", "program=%s handle=%s shim=%ld", o->program,
	    log_q(j->handle_id), (long)j->pid);
	*jobp = j;
	return CL_OK;
}

void
wjob_cancel(struct wjob *j)
{
	struct msg_shim_signal body = { .sig = SIG_TERMINATE };

	if (j == NULL || j->is_cancelled || j->is_done)
		return;
	j->is_cancelled = 1;
	(void)CHAN_SEND(&j->shim, SHIM_SIGNAL, 0, &body, -1);
	wjob_set_timer(j, KILL_GRACE_MS / 1000 + 1);
}

void
wjob_free(struct wjob *j)
{
	if (j == NULL)
		return;
	chan_close(&j->job);
	chan_close(&j->shim);
	if (j->timer != NULL)
		event_free(j->timer);
	if (j->turn != NULL)
		event_free(j->turn);
	field_clear(&devjob_result_table, &j->res);
	free(j);
}

int
wjob_on_exit(struct wjob *j, pid_t pid)
{
	if (j == NULL || j->pid != pid)
		return 0;
	j->pid = 0;
	return 1;
}
