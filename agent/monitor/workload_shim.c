/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The device monitor's talk with the shims.  A shim is started for us and
 * runs as root until it has become the workload's user; afterwards a
 * workload may have taken it over.  So its messages are held against the
 * catalogue, its numbers are reported to the hub but decide nothing here,
 * and it has deadlines: for the launch, and for each step of ending it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bsd/string.h>

#include <event2/event.h>

#include "common/base/crash.h"
#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "agentd.h"
#include "workload_int.h"

#define SHIM_QUEUE_MAX 64	/* messages to one shim; it reads at once */

/* ------------------------------------------------------------- its answers */

/* Refuse the start for everybody who asked, and forget it. */
static void
workload_shim_refuse(struct workload *w, const char *text)
{
	size_t i;

	log_info("workload-refused-start", "handle=%s reason=%s",
	    log_q(w->handle_id), log_q(text));
	shims_sweep(w->ws->a);
	/* Whoever hears of it finds nothing left. */
	workload_lease_release(w);
	for (i = 0; i < w->nasks; i++)
		workloads_refuse(w->ws, &w->asks[i], NULL, text);
	w->nasks = 0;
	workload_send_failed(w, text);
	workload_forget(w, "not started");
}

static void
workload_shim_decided(struct workload *w)
{
	int sig = w->pending_sig;

	w->pending_sig = 0;
	if (w->is_refused)
		workload_shim_terminate(w);
	else if (sig != 0)
		(void)workload_shim_signal(w, sig);
}

/*
 * A lease it was to be given was taken back while it started: it runs by now,
 * and is ended before anybody hears of it.
 */
static void
workload_shim_cancel(struct workload *w)
{
	static const char text[] = "lease revoked before launch";
	size_t i;

	log_info("workload-refused-start", "handle=%s reason=\"%s\"",
	    log_q(w->handle_id), text);
	for (i = 0; i < w->nasks; i++)
		workloads_refuse(w->ws, &w->asks[i], NULL, text);
	w->nasks = 0;
	workload_send_failed(w, text);
	w->is_refused = 1;
	w->nkills = 1;
	(void)workload_shim_signal(w, SIG_KILL);
	workload_set_timer(w, KILL_GRACE_MS);
}

static int
workload_shim_on_started(struct workload *w, const struct msg_shim_started *v)
{
	int was_adopting = w->state == WL_ADOPTING;

	if (w->state != WL_LAUNCHING && w->state != WL_ADOPTING)
		return CL_FORMAT;
	CRASH_POINT("start.started");
	w->pid = v->pid;
	/* Unknown: its group is not killed when its shim dies; its pid
	 * namespace is gone then. */
	(void)kern_load_ticks((pid_t)v->pid, &w->pid_ticks);
	w->started_at = v->started_at;
	w->chan.state = MS_SERVING;
	workload_enter_state(w, WL_RUNNING, was_adopting ? "adopted" :
	    "started");
	if (w->is_cancelled) {
		workload_shim_cancel(w);
		return CL_OK;
	}
	log_info(was_adopting ? "workload-adopted" : "workload-start",
	    "handle=%s pid=%lld shim=%ld", log_q(w->handle_id),
	    (long long)v->pid, (long)w->shim_pid);
	if (was_adopting)
		workload_adopt_check(w->ws);
	else	/* started before the first output */
		workload_tell_started(w);
	workload_shim_decided(w);
	return CL_OK;
}

static int
workload_shim_on_failed(struct workload *w, const char *text)
{
	if (w->state != WL_LAUNCHING)
		return CL_FORMAT;
	workload_shim_refuse(w, w->is_cancelled ?
	    "lease revoked before launch" :
	    *text == '\0' ? "the start failed" : text);
	return CL_OK;
}

static int
workload_shim_on_exited(struct workload *w, const struct shim_exit *end)
{
	if (w->state != WL_RUNNING || shim_exit_check(end) != 0)
		return CL_FORMAT;
	CRASH_POINT("end.told");
	/* The record is on disk: the shim has nothing left to do. */
	(void)chan_send(&w->chan, MSG_SHIM_RELEASE, 0, NULL, -1);
	chan_close(&w->chan);
	workload_end(w, end);
	CRASH_POINT("end.passed");
	return CL_OK;
}

static int
workload_shim_on_msg(void *arg, struct imsg *m, union msg_any *v)
{
	struct workload *w = arg;

	switch (m->type) {
	case MSG_SHIM_STARTED:
		return workload_shim_on_started(w, &v->SHIM_STARTED);
	case MSG_SHIM_FAILED:
		return workload_shim_on_failed(w, v->SHIM_FAILED.text);
	case MSG_SHIM_EXITED:
		return workload_shim_on_exited(w, &v->SHIM_EXITED);
	case MSG_SHIM_REDACT_ANS:
		if (m->id != 0)	/* 0: before the launch, which tells */
			w->ws->ops->on_redacted(w->ws, w->slot, m->id,
			    v->SHIM_REDACT_ANS.ok);
		return CL_OK;
	default:
		return CL_FORMAT;
	}
}

static void
workload_shim_on_end(void *arg, const char *why)
{
	struct workload *w = arg;

	if (why != NULL) {
		log_error("child-violation", "child=cloop-shim handle=%s "
		    "reason=%s", log_q(w->handle_id), log_q(why));
		(void)kern_kill(w->shim_pid, w->shim_ticks);
	}
	if (w->state == WL_ADOPTING)
		workload_set_timer(w, WORKLOAD_RETRY_MS);
	else if (w->state == WL_LAUNCHING || w->state == WL_PREPARING)
		workload_shim_refuse(w, "the workload's supervisor ended "
		    "before the start was decided");
	else if (w->state == WL_RUNNING)
		workload_shim_gone(w);
}

/*
 * No shim any more.  Its record says how the workload ended; without one it
 * is lost, and what may be left of it is killed: a process group that is
 * still the one we saw start, nobody else's (BC-49).  While neither can be
 * told, nothing is said.
 */
void
workload_shim_gone(struct workload *w)
{
	struct shim_exit end;
	int r;

	w->is_gone = 1;
	/* One that broke the rules: we wanted it to be dead. */
	r = kern_kill(w->shim_pid, w->shim_ticks);
	if (r == CL_NOTFOUND || r == CL_OK)
		r = shim_exit_load(w->dir.fd, &end);
	if (r == CL_OK) {
		workload_end(w, &end);
		field_clear(&shim_exit_table, &end);
		return;
	}
	if (kern_is_unsure(r) || kern_kill_group((pid_t)w->pid,
	    w->pid_ticks) == CL_SYSTEM) {
		log_warn("workload-unsure", "handle=%s reason=\"%s\"",
		    log_q(w->handle_id), cl_strerror(r));
		if (workload_is_patient(w)) {
			workload_set_timer(w, WORKLOAD_AGAIN_MS);
			return;
		}
	}
	workload_set_lost(w, &end, "the workload's supervisor died on the "
	    "device");
	workload_end(w, &end);
}

void
workload_set_lost(const struct workload *w, struct shim_exit *end,
    const char *why)
{
	memset(end, 0, sizeof(*end));
	end->state = HS_FAILED;
	end->exit_code = -1;
	end->started_at = w->started_at;
	end->finished_at = util_wall_ns();
	end->error = why;
	if (w->has_spool)
		end->total_raw = spool_load_u64(&w->spool.head->total);
}

int
workload_shim_open(struct workload *w, int fd)
{
	return chan_open(&w->chan, w->ws->a->base, fd, MSG_S2M, MSG_M2S,
	    SHIM_QUEUE_MAX, workload_shim_on_msg, workload_shim_on_end, w);
}

/* ------------------------------------------------------------------ launch */

static int
workload_shim_send_all(struct workload *w, const struct workload_start *st)
{
	struct shims_setup setup = { .job = st->job, .dir = &w->dir,
	    .wake_fd = w->wake_fd, .tree_fd = st->tree_fd };
	int r;

	if ((r = shims_send_setup(w->ws->a, &w->chan, &setup)) != 0)
		return r;
	return workload_lease_send(w, st->spec);
}

static int
workload_shim_send_go(struct workload *w)
{
	int r = chan_send(&w->chan, MSG_SHIM_GO, 0, NULL, -1);

	if (r == 0)
		workload_set_timer(w, SHIM_START_TIMEOUT_MS);
	return r;
}

/* The shim waited for its GO meanwhile, with all it needs. */
static void
workload_shim_on_prepared(void *arg, const char *why)
{
	struct workload *w = arg;

	if (w->state != WL_PREPARING)
		return;
	if (w->is_cancelled)
		why = "lease revoked before launch";
	workload_enter_state(w, WL_LAUNCHING, why == NULL ? "prepared" :
	    "not prepared");
	if (why == NULL && !w->is_refused && workload_shim_send_go(w) != 0)
		why = "the workload's supervisor cannot be started";
	if (why != NULL || w->is_refused)
		workload_shim_refuse(w, why != NULL ? why : "refused");
}

void
workload_place_work(struct workload *w)
{
	w->work->at = (struct work_place){ .a = w->ws->a,
	    .handle_id = w->handle_id, .slot = w->slot, .dir = &w->dir,
	    .wake_fd = w->wake_fd, .on_prepared = workload_shim_on_prepared,
	    .on_returned = workload_on_returned, .arg = w };
}

static int
workload_shim_spawn(struct workload *w)
{
	struct handle_meta meta;
	int fd, r;

	if ((r = shims_start(w->ws->a, &w->shim_pid, &fd)) != 0)
		return r;
	if ((r = workload_shim_open(w, fd)) != 0)
		return r;
	/* One that is gone already says so on its channel. */
	if ((r = kern_load_ticks(w->shim_pid, &w->shim_ticks)) == CL_SYSTEM)
		return r;
	/* Before GO: from here on the workload may exist without us. */
	memset(&meta, 0, sizeof(meta));
	strlcpy(meta.handle_id, w->handle_id, sizeof(meta.handle_id));
	meta.slot = w->slot;
	meta.shim_pid = w->shim_pid;
	meta.shim_ticks = w->shim_ticks;
	if ((r = kern_load_boot(meta.boot_id)) != 0)
		return r;
	meta.created_at = util_wall_ns();
	return handledir_save_meta(&w->dir, &meta);
}

static int
workload_shim_make_files(struct workload *w)
{
	const struct agent_conf *c = &w->ws->a->conf;
	int fd, r;

	if ((r = handledir_make(w->ws->base_fd, w->handle_id, w->slot,
	    &w->dir)) != 0 ||
	    (r = handledir_open_spool(&w->dir, O_RDWR | O_CREAT | O_EXCL,
	    &fd)) != 0 ||
	    (r = spool_init(&w->spool, fd, c->retain_unacked,
	    c->spool_limit)) != 0)
		return r;
	w->has_spool = 1;
	spool_save_u64(&w->spool.head->link_up,
	    (uint64_t)w->ws->is_link_up);
	return workload_make_wake(w);
}

int
workload_shim_launch(struct workload *w, const struct workload_start *st)
{
	int r;

	if ((r = workload_shim_make_files(w)) != 0 ||
	    (r = workload_lease_place(w, st->spec)) != 0)
		return r;
	CRASH_POINT("start.files");
	if ((r = workload_shim_spawn(w)) != 0)
		return r;
	CRASH_POINT("start.record");
	if ((r = workload_shim_send_all(w, st)) != 0)
		return r;
	CRASH_POINT("start.go");
	if (w->work == NULL)
		return workload_shim_send_go(w);
	workload_enter_state(w, WL_PREPARING, "work");
	/* It may take long: a session that begins meanwhile offers it. */
	workload_announce(w);
	workload_place_work(w);
	work_prepare(w->work);
	return CL_OK;
}

/* Takes tree_fd and the holding; see workloads.h. */
int
workloads_start(struct workloads *ws, const struct workload_start *st)
{
	char path[108];		/* sun_path */
	struct workload *w;
	int r = CL_NOMEM;

	w = workload_new(ws, st->handle_id, 0, WL_LAUNCHING);
	if (w == NULL) {
		workload_lease_drop(st->holding);
		work_free(st->work);
		goto out;
	}
	w->holding = st->holding;
	w->work = st->work;
	w->asks[w->nasks++] = *st->ask;
	if (workload_format_socket(w, path, sizeof(path)) == 0)
		st->job->socket = strdup(path);
	else
		log_warn("workload-socket", "handle=%s reason=\"the path of "
		    "RuntimeDirectory is too long: the workload cannot be "
		    "found again after a restart\"", log_q(st->handle_id));
	if ((r = workload_shim_launch(w, st)) != 0) {
		int saved = errno;

		/* Its channel closes: a shim without GO exits by itself. */
		workload_forget(w, "launch failed");
		errno = saved;
	}
 out:
	close(st->tree_fd);
	return r;
}

/* ----------------------------------------------------------------- signals */

int
workload_shim_signal(struct workload *w, int sig)
{
	struct msg_shim_signal body = { .sig = sig };

	return CHAN_SEND(&w->chan, SHIM_SIGNAL, 0, &body, -1);
}

void
workload_shim_terminate(struct workload *w)
{
	w->nkills = 0;
	(void)workload_shim_signal(w, SHIM_SIG_STOP);
	workload_set_timer(w, KILL_GRACE_MS);
}

static void
workload_shim_on_late(struct workload *w)
{
	log_error("workload-start", "handle=%s reason=\"no answer from its "
	    "shim\"", log_q(w->handle_id));
	/* It may not go on unseen: not forgotten before it is dead. */
	if (kern_kill(w->shim_pid, w->shim_ticks) == CL_SYSTEM)
		workload_set_timer(w, WORKLOAD_AGAIN_MS);
	else
		workload_shim_refuse(w, "the start did not finish in time");
}

void
workload_shim_on_timer(struct workload *w)
{
	if (w->state == WL_LAUNCHING) {
		workload_shim_on_late(w);
		return;
	}
	if (w->state == WL_RUNNING && w->is_gone) {
		workload_shim_gone(w);
		return;
	}
	if (w->state != WL_RUNNING || (!w->is_refused && !w->is_killed))
		return;
	if (w->nkills++ == 0) {
		(void)workload_shim_signal(w, SIG_KILL);
		workload_set_timer(w, KILL_GRACE_MS);
		return;
	}
	/* It survives SIGKILL for 5 s: the shim itself does not react. */
	log_error("workload-kill", "handle=%s reason=\"its shim does not "
	    "react\"", log_q(w->handle_id));
	w->ws->ops->on_forced(w->ws, w->slot);
	chan_close(&w->chan);
	workload_shim_gone(w);
}
