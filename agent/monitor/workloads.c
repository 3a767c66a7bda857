/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The table of tracked workloads, in the device monitor.  It believes
 * neither side: what the fetcher says about a slot is held against the
 * spool's own counters, and a shim that breaks the rules is killed and its
 * workload reported as lost.  Entries are freed at the end of a turn, never
 * inside a callback of their own channel.  Output does not pass here: the
 * shim writes the spool, the fetcher reads it, this file only moves the
 * marks.
 */
#include <sys/eventfd.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/stdlib.h>
#include <bsd/string.h>

#include <event2/event.h>

#include "common/base/crash.h"
#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "common/base/xmem.h"
#include "agentd.h"
#include "fetchctl.h"
#include "shims.h"
#include "workload_int.h"

/* Descriptors: our own, of look-ups and of messages on their way; of one more
 * workload, with a directory for each of its leases; of its jobs. */
#define WORKLOADS_RESERVE 96
#define WORKLOADS_ONE_FILES 48
#define WORKLOADS_WORK_FILES 8

static const char *const workload_states[] = {
	[WL_PREPARING] = "preparing", [WL_RETURNING] = "returning",
	[WL_LAUNCHING] = "launching", [WL_ADOPTING] = "adopting",
	[WL_RUNNING] = "running", [WL_ENDED] = "ended", [WL_DEAD] = "dead",
};

static void workloads_on_again(evutil_socket_t fd, short what, void *arg);

static void
workloads_on_reap(evutil_socket_t fd, short what, void *arg)
{
	struct workloads *ws = arg;
	struct workload *w, *next;

	(void)fd;
	(void)what;
	for (w = TAILQ_FIRST(&ws->list); w != NULL; w = next) {
		next = TAILQ_NEXT(w, entry);
		if (w->state != WL_DEAD)
			continue;
		TAILQ_REMOVE(&ws->list, w, entry);
		if (w->timer != NULL)
			event_free(w->timer);
		free(w);
	}
	ws->ops->on_fewer(ws->a);
}

int
workloads_new(struct agentd *a, const struct workloads_ops *ops,
    struct workloads **wsp, const char **whatp)
{
	struct workloads *ws = xcalloc(1, sizeof(*ws));
	int r;

	*wsp = NULL;
	TAILQ_INIT(&ws->list);
	TAILQ_INIT(&ws->orders);
	ws->a = a;
	ws->ops = ops;
	*whatp = a->conf.state_dir;
	if ((r = handledir_open_base(a->conf.state_dir, &ws->base_fd)) != 0) {
		free(ws);
		return r;
	}
	xasprintf(&ws->socket_dir, "%s/shim", a->conf.runtime_dir);
	*whatp = a->conf.runtime_dir;
	if ((r = util_make_dirs(ws->socket_dir, 0700, (uid_t)-1,
	    (gid_t)-1)) != 0) {
		workloads_free(ws);
		return r;
	}
	ws->reap = event_new(a->base, -1, 0, workloads_on_reap, ws);
	ws->again = evtimer_new(a->base, workloads_on_again, ws);
	if (ws->reap == NULL || ws->again == NULL) {
		workloads_free(ws);
		return CL_NOMEM;
	}
	*wsp = ws;
	return CL_OK;
}

static void
workload_clear(struct workload *w)
{
	chan_close(&w->chan);
	work_free(w->work);
	w->work = NULL;
	if (w->has_spool)
		spool_close(&w->spool);
	w->has_spool = 0;
	if (w->wake_fd != -1)
		close(w->wake_fd);
	w->wake_fd = -1;
	if (w->timer != NULL)
		event_free(w->timer);
	w->timer = NULL;
	if (w->holding != NULL)	/* files stay: they are found again */
		holding_clear(w->holding);
	free(w->holding);
	w->holding = NULL;
	field_clear(&shim_exit_table, &w->end);
	handledir_close(&w->dir);
}

void
workloads_free(struct workloads *ws)
{
	struct workload *w;

	if (ws == NULL)
		return;
	ws->ops->on_free(ws);
	while ((w = TAILQ_FIRST(&ws->list)) != NULL) {
		TAILQ_REMOVE(&ws->list, w, entry);
		workload_clear(w);
		free(w);
	}
	tombstones_clear(&ws->tombstones);
	if (ws->reap != NULL)
		event_free(ws->reap);
	if (ws->sweep != NULL)
		event_free(ws->sweep);
	if (ws->again != NULL)
		event_free(ws->again);
	if (ws->base_fd != -1)
		close(ws->base_fd);
	free(ws->socket_dir);
	free(ws);
}

static struct workload *
workloads_find_slot(struct workloads *ws, uint64_t slot)
{
	struct workload *w;

	TAILQ_FOREACH(w, &ws->list, entry)
		if (w->slot == slot && w->state != WL_DEAD)
			return w;
	return NULL;
}

static struct workload *
workloads_find_handle(struct workloads *ws, const char *handle_id)
{
	struct workload *w;

	TAILQ_FOREACH(w, &ws->list, entry)
		if (w->state != WL_DEAD &&
		    strcmp(w->handle_id, handle_id) == 0)
			return w;
	return NULL;
}

static void
workload_on_event(evutil_socket_t fd, short what, void *arg)
{
	struct workload *w = arg;

	(void)fd;
	(void)what;
	if (w->state == WL_ADOPTING)
		workload_adopt_on_timer(w);
	else if (w->state != WL_DEAD)
		workload_shim_on_timer(w);
}

/* Slot 0 asks for a fresh one: random, so that no file of an earlier run can
 * be mistaken for ours. */
struct workload *
workload_new(struct workloads *ws, const char *handle_id, uint64_t slot,
    enum workload_state state)
{
	struct workload *w = xcalloc(1, sizeof(*w));

	while (slot == 0 || workloads_find_slot(ws, slot) != NULL)
		arc4random_buf(&slot, sizeof(slot));
	w->ws = ws;
	w->slot = slot;
	w->state = state;
	w->wake_fd = w->dir.fd = -1;
	w->started_at = UTIL_TIME_ZERO;
	strlcpy(w->handle_id, handle_id, sizeof(w->handle_id));
	w->timer = event_new(ws->a->base, -1, 0, workload_on_event, w);
	if (w->timer == NULL) {
		free(w);
		return NULL;
	}
	TAILQ_INSERT_TAIL(&ws->list, w, entry);
	ws->n++;
	return w;
}

void
workload_set_timer(struct workload *w, int64_t ms)
{
	struct timeval tv = { .tv_sec = ms / 1000,
	    .tv_usec = (ms % 1000) * 1000 };

	if (w->timer == NULL)
		return;
	event_del(w->timer);
	if (ms >= 0)
		event_add(w->timer, &tv);
}

void
workload_enter_state(struct workload *w, enum workload_state state,
    const char *why)
{
	log_debug("workload-state", "handle=%s old=%s new=%s reason=%s",
	    log_q(w->handle_id), workload_states[w->state],
	    workload_states[state], why);
	w->state = state;
	workload_set_timer(w, -1);
}

void
workload_forget(struct workload *w, const char *why)
{
	char path[PATH_MAX];
	struct workloads *ws = w->ws;

	if (w->state == WL_DEAD)
		return;
	workload_enter_state(w, WL_DEAD, why);
	workload_lease_release(w);
	if (workload_format_socket(w, path, sizeof(path)) == 0)
		(void)unlink(path);
	if (handledir_remove(ws->base_fd, &w->dir) != 0)
		log_error("workload-cleanup", "handle=%s reason=%s",
		    log_q(w->handle_id), strerror(errno));
	workload_clear(w);
	ws->n--;
	event_active(ws->reap, EV_TIMEOUT, 0);
}

void
workload_leave(struct workload *w)
{
	workload_enter_state(w, WL_DEAD, "left");
	workload_clear(w);
	w->ws->n--;
	event_active(w->ws->reap, EV_TIMEOUT, 0);
}

int
workload_is_patient(struct workload *w)
{
	if (w->unsure_until == 0)
		w->unsure_until = util_now_ms() + WORKLOAD_PATIENCE_MS;
	return util_now_ms() < w->unsure_until;
}

int
workload_format_socket(const struct workload *w, char *dst, size_t dstlen)
{
	int n = snprintf(dst, dstlen, "%s/%016llx.sock", w->ws->socket_dir,
	    (unsigned long long)w->slot);

	return n < 0 || (size_t)n >= dstlen ? CL_TOOBIG : CL_OK;
}

int
workload_make_wake(struct workload *w)
{
	w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return w->wake_fd == -1 ? CL_SYSTEM : CL_OK;
}

static void
workloads_on_again(evutil_socket_t fd, short what, void *arg)
{
	struct workloads *ws = arg;
	struct workload *w, *next;

	(void)fd;
	(void)what;
	for (w = TAILQ_FIRST(&ws->list); w != NULL; w = next) {
		next = TAILQ_NEXT(w, entry);
		if (w->state == WL_DEAD)
			continue;
		if (w->owes_announce && (w->state == WL_PREPARING ||
		    w->state == WL_LAUNCHING))
			workload_announce(w);
		else if (w->owes_announce)
			workload_tell_started(w);
		else if (w->owes_exit)
			workload_send_exit(w);
	}
	if (ws->is_unsure)
		workload_adopt_scan(ws);
}

int
workloads_answer_again(struct workloads *ws, const char *handle_id,
    const struct workload_ask *ask)
{
	struct workload *w = workloads_find_handle(ws, handle_id);

	if (w == NULL)
		return 0;
	if (w->state == WL_LAUNCHING || w->state == WL_PREPARING ||
	    w->owes_announce) {
		if (w->nasks < WORKLOAD_MAX_ASKS)
			w->asks[w->nasks++] = *ask;
		else
			workloads_refuse(ws, ask, "busy",
			    "this start is asked for too often");
		return 1;
	}
	workload_send_started(w, ask);
	return 1;
}

static unsigned int
workload_count_files(const struct workload *w)
{
	unsigned int n = 3;	/* directory, spool, eventfd */

	if (w->state != WL_ENDED)
		n += 2;		/* its shim; one on its way there */
	if (w->holding != NULL)
		n += (unsigned int)w->holding->set.ndirs;
	if (w->work != NULL && w->state != WL_ENDED)
		n += WORKLOADS_WORK_FILES;
	return n;
}

/* Would one more get all it needs, with what we need ourselves? */
static int
workloads_has_files(const struct workloads *ws)
{
	unsigned int max = ws->a->max_files, used = WORKLOADS_ONE_FILES;
	const struct workload *w;

	used += max / 4 < WORKLOADS_RESERVE ? max / 4 : WORKLOADS_RESERVE;
	TAILQ_FOREACH(w, &ws->list, entry)
		if (w->state != WL_DEAD)
			used += workload_count_files(w);
	return used <= max;
}

/* The one that ended first; one the hub was told of, unless `any`. */
static struct workload *
workloads_find_oldest(struct workloads *ws, int any)
{
	struct workload *w, *old = NULL;

	TAILQ_FOREACH(w, &ws->list, entry)
		if (w->state == WL_ENDED && (any || w->is_told) &&
		    (old == NULL || (w->is_told && !old->is_told) ||
		    (w->is_told == old->is_told &&
		    w->end.finished_at < old->end.finished_at)))
			old = w;
	return old;
}

int
workloads_drop_ended(struct workloads *ws, unsigned int max, int any)
{
	struct workload *w;

	while (ws->n >= max || !workloads_has_files(ws)) {
		if ((w = workloads_find_oldest(ws, any)) == NULL)
			return CL_LIMIT;
		log_warn("workload-dropped", "handle=%s told=%d reason=\"no "
		    "room for it any more\"", log_q(w->handle_id), w->is_told);
		workload_forget(w, "no room");
	}
	return CL_OK;
}

const char *
workloads_make_room(struct workloads *ws)
{
	const struct workload *w;
	unsigned int n = 0;

	TAILQ_FOREACH(w, &ws->list, entry)
		if (w->state != WL_DEAD && !w->is_told)
			n++;
	if (n >= ws->a->max_concurrent)
		return "the device runs as many workloads as it may";
	if (workloads_drop_ended(ws, ws->a->max_concurrent +
	    WORKLOADS_MAX_TOLD, 0) != 0)
		return "the device has no descriptors left";
	return NULL;
}

unsigned int
workloads_get_count(const struct workloads *ws)
{
	return ws->n;
}

/* ------------------------------------------------------------------- ends */

void
workload_end(struct workload *w, const struct shim_exit *end)
{
	int was_adopting = w->state == WL_ADOPTING;

	field_clear(&shim_exit_table, &w->end);
	w->end = *end;
	w->end.error = xstrdup(end->error != NULL ? end->error : "");
	if (w->started_at == UTIL_TIME_ZERO)
		w->started_at = end->started_at;
	log_info("workload-end", "handle=%s state=%s exit=%lld bytes=%llu "
	    "error=%s", log_q(w->handle_id), end->state == HS_EXITED ?
	    "exited" : end->state == HS_KILLED ? "killed" : "failed",
	    (long long)end->exit_code, (unsigned long long)end->total_raw,
	    log_q(*w->end.error == '\0' ? NULL : w->end.error));
	workload_enter_state(w, WL_RETURNING, "ended");
	shims_sweep(w->ws->a);
	/* No process of it is left: nor is its plaintext. */
	workload_lease_release(w);
	/* What the hub refused gives nothing back. */
	if (w->work != NULL && !w->is_refused) {
		workload_place_work(w);
		work_return(w->work, end->state != HS_EXITED ||
		    end->exit_code != 0);
	} else
		workload_on_returned(w);
	if (was_adopting)
		workload_adopt_check(w->ws);
}

void
workload_on_returned(void *arg)
{
	struct workload *w = arg;

	if (w->state != WL_RETURNING)
		return;
	workload_enter_state(w, WL_ENDED, "returned");
	if (w->is_refused) {
		workload_forget(w, "refused");
		return;
	}
	if (w->wake_fd != -1)	/* it writes no more */
		close(w->wake_fd);
	w->wake_fd = -1;
	workload_send_exit(w);
}

/* ----------------------------------------------- what the fetcher may say */

/*
 * A slot it names may just have been forgotten (the two cross): that is
 * ignored.  A value beyond what the shim wrote is a lie.
 */
int
workloads_on_sent(struct workloads *ws, uint64_t slot, uint64_t raw)
{
	struct workload *w = workloads_find_slot(ws, slot);

	if (w == NULL || !w->has_spool)
		return CL_OK;
	if (raw > spool_load_u64(&w->spool.head->total))
		return CL_FORMAT;
	spool_save_u64(&w->spool.head->sent, raw);
	CRASH_POINT("spool.sent");
	return CL_OK;
}

int
workloads_on_acked(struct workloads *ws, uint64_t slot, uint64_t raw,
    uint64_t norm)
{
	struct workload *w = workloads_find_slot(ws, slot);

	if (w == NULL || !w->has_spool)
		return CL_OK;
	if (raw > spool_load_u64(&w->spool.head->total) || norm / 3 > raw)
		return CL_FORMAT;
	if (raw < spool_load_u64(&w->spool.head->acked_raw))
		return CL_OK;
	spool_set_acked(&w->spool, raw, norm);
	return CL_OK;
}

int
workloads_on_told(struct workloads *ws, uint64_t slot)
{
	struct workload *w = workloads_find_slot(ws, slot);

	if (w == NULL)
		return CL_OK;
	if (w->state != WL_ENDED)
		return CL_FORMAT;
	w->is_told = 1;
	return CL_OK;
}

int
workloads_on_done(struct workloads *ws, uint64_t slot)
{
	struct workload *w = workloads_find_slot(ws, slot);

	if (w == NULL)
		return CL_OK;
	if (w->state != WL_ENDED)
		return CL_FORMAT;
	CRASH_POINT("end.delivered");
	workload_forget(w, "delivered");
	CRASH_POINT("end.forgotten");
	return CL_OK;
}

static void
workload_refuse(struct workload *w, const char *reason)
{
	if (w->state == WL_DEAD || w->is_refused)
		return;
	log_info("workload-refused", "handle=%s reason=%s",
	    log_q(w->handle_id), log_q(reason));
	w->is_refused = 1;
	if (w->state == WL_ENDED)
		workload_forget(w, "refused");
	else if (w->state == WL_RUNNING)
		workload_shim_terminate(w);
	else if (w->state == WL_PREPARING || w->state == WL_RETURNING)
		work_cancel(w->work);
	/* LAUNCHING and ADOPTING: once they are decided. */
}

int
workloads_on_refused(struct workloads *ws, uint64_t slot, const char *reason)
{
	struct workload *w = workloads_find_slot(ws, slot);

	if (w != NULL)
		workload_refuse(w, reason);
	return CL_OK;
}

int
workloads_signal(struct workloads *ws, const char *handle_id, int sig)
{
	struct workload *w = workloads_find_handle(ws, handle_id);

	if (w == NULL || w->is_refused)
		return CL_NOTFOUND;
	log_info("workload-signal", "handle=%s signal=%s",
	    log_q(handle_id), sig == SIG_INTERRUPT ? "interrupt" :
	    sig == SIG_TERMINATE ? "terminate" : "kill");
	if (w->state == WL_LAUNCHING || w->state == WL_ADOPTING) {
		if (sig > w->pending_sig)
			w->pending_sig = sig;
		return CL_OK;
	}
	if (w->state == WL_PREPARING) {
		work_cancel(w->work);	/* the start fails then */
		return CL_OK;
	}
	/* Draining: the process is gone, which is success. */
	if (w->state == WL_ENDED || w->state == WL_RETURNING)
		return CL_OK;
	return workload_shim_signal(w, sig);
}

void
workloads_set_link(struct workloads *ws, int up)
{
	struct workload *w;

	ws->is_link_up = up;
	TAILQ_FOREACH(w, &ws->list, entry)
		if (w->has_spool)
			spool_save_u64(&w->spool.head->link_up,
			    (uint64_t)up);
}

void
workloads_stop_all(struct workloads *ws, const char *reason)
{
	struct workload *w, *next;

	for (w = TAILQ_FIRST(&ws->list); w != NULL; w = next) {
		next = TAILQ_NEXT(w, entry);
		workload_refuse(w, reason);
	}
}

void
workloads_log_state(const struct workloads *ws)
{
	const struct workload *w;

	TAILQ_FOREACH(w, &ws->list, entry)
		log_info("state-workload", "handle=%s state=%s pid=%lld "
		    "shim=%ld total=%llu sent=%llu acked=%llu",
		    log_q(w->handle_id), workload_states[w->state],
		    (long long)w->pid, (long)w->shim_pid,
		    (unsigned long long)(w->has_spool ?
		    spool_load_u64(&w->spool.head->total) : 0),
		    (unsigned long long)(w->has_spool ?
		    spool_load_u64(&w->spool.head->sent) : 0),
		    (unsigned long long)(w->has_spool ?
		    spool_load_u64(&w->spool.head->acked_raw) : 0));
}

int
workloads_on_exit(struct workloads *ws, pid_t pid, int status)
{
	struct workload *w;

	TAILQ_FOREACH(w, &ws->list, entry)
		if (w->state != WL_DEAD && (w->shim_pid == pid ||
		    (w->work != NULL && work_on_exit(w->work, pid))))
			break;
	if (w == NULL)
		return 0;
	if (w->shim_pid != pid)
		return 1;
	w->shim_pid = 0;
	if (w->state == WL_LAUNCHING || w->state == WL_RUNNING)
		log_warn("shim-exit", "handle=%s status=%#x",
		    log_q(w->handle_id), (unsigned int)status);
	/* What it still had to say is in the channel: its end decides. */
	return 1;
}
