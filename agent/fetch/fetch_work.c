/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The table of workloads in agentd-fetch: what the monitor told about each,
 * its spool (read-only) and the eventfd by which its shim says that there
 * is more.
 */
#include "fetch.h"

#include <bsd/string.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/util.h"

struct fetch_work *
fetch_work_find_handle(struct fetch *f, const char *handle)
{
	struct fetch_work *w;

	/* One whose end was told is only kept in case it must be again. */
	TAILQ_FOREACH(w, &f->works, entry) {
		if (!w->told && strcmp(w->handle, handle) == 0)
			return w;
	}
	return NULL;
}

struct fetch_work *
fetch_work_find_slot(struct fetch *f, uint64_t slot)
{
	struct fetch_work *w;

	TAILQ_FOREACH(w, &f->works, entry) {
		if (w->slot == slot)
			return w;
	}
	return NULL;
}

void
fetch_work_set_dirty(struct fetch_work *w)
{
	if (w->dirty)
		return;
	if (w->out.due_at != 0)
		TAILQ_REMOVE(&w->f->waiting, w, dirty_entry);
	w->out.due_at = 0;
	w->dirty = 1;
	TAILQ_INSERT_TAIL(&w->f->dirty, w, dirty_entry);
	fetch_wake(w->f);
}

void
fetch_work_del(struct fetch_work *w)
{
	struct fetch *f = w->f;

	if (w->dirty)
		TAILQ_REMOVE(&f->dirty, w, dirty_entry);
	else if (w->out.due_at != 0)
		TAILQ_REMOVE(&f->waiting, w, dirty_entry);
	if (w->wake != NULL)
		event_free(w->wake);
	if (w->wake_fd != -1)
		close(w->wake_fd);
	if (w->spool.head != NULL)
		spool_close(&w->spool);
	TAILQ_REMOVE(&f->works, w, entry);
	f->nworks--;
	fetch_back_clear(&w->back);
	field_clear(&shim_exit_table, &w->end);
	free(w);
}

/* One that was prepared runs now. */
static int
fetch_work_update(struct fetch_work *w, const struct msg_dev_handle *h)
{
	w->pid = h->pid;
	w->started_at = h->started_at;
	return CL_OK;
}

/*
 * DEV_HANDLE: a workload to report about; again after our own restart, and
 * again with its pid when it was announced while it was prepared.
 */
int
fetch_work_on_handle(struct fetch *f, struct imsg *m, union msg_any *v)
{
	const struct msg_dev_handle *h = &v->DEV_HANDLE;
	struct fetch_work *w = fetch_work_find_slot(f, h->slot);
	int r;

	if (w != NULL)
		return fetch_work_update(w, h);
	if (f->nworks >= MAX_CONCURRENT + FETCH_OUT_TOLD_MAX)
		return CL_LIMIT;
	if ((w = calloc(1, sizeof(*w))) == NULL)
		return CL_NOMEM;
	w->f = f;
	w->wake_fd = -1;
	fetch_back_init(&w->back);
	w->slot = h->slot;
	strlcpy(w->handle, h->handle_id, sizeof(w->handle));
	(void)fetch_work_update(w, h);
	if ((r = spool_open(&w->spool, imsg_take_fd(m), 0)) != 0) {
		free(w);
		return r;
	}
	fetch_out_init(&w->out, h->acked_raw, h->acked_norm);
	w->held = fetch_ask_find_handle(f, MSG_DEV_START, w->handle) != NULL;
	TAILQ_INSERT_TAIL(&f->works, w, entry);
	f->nworks++;
	fetch_work_set_dirty(w);
	return CL_OK;
}

static void
fetch_work_on_growth(evutil_socket_t fd, short what, void *arg)
{
	struct fetch_work *w = arg;
	uint64_t n;

	(void)what;
	if (read(fd, &n, sizeof(n)) == sizeof(n))
		fetch_work_set_dirty(w);
}

int
fetch_work_on_wake(struct fetch *f, struct imsg *m, union msg_any *v)
{
	struct fetch_work *w = fetch_work_find_slot(f, v->DEV_WAKE.slot);
	int fd;

	if (w == NULL)
		return CL_OK;	/* refused by the hub meanwhile */
	fd = imsg_take_fd(m);
	if (w->wake != NULL)
		event_free(w->wake);
	if (w->wake_fd != -1)
		close(w->wake_fd);
	w->wake_fd = fd;
	w->wake = event_new(f->base, fd, EV_READ | EV_PERSIST,
	    fetch_work_on_growth, w);
	if (util_set_nonblock(fd) != 0 || w->wake == NULL ||
	    event_add(w->wake, NULL) == -1)
		return CL_NOMEM;
	fetch_work_set_dirty(w);
	return CL_OK;
}

int
fetch_work_on_exit(struct fetch *f, struct imsg *m, union msg_any *v)
{
	struct fetch_work *w = fetch_work_find_slot(f, v->DEV_EXIT.slot);

	(void)m;
	if (w == NULL || w->exited)
		return CL_OK;
	/* Its start was refused, and whoever asked was told. */
	if (w->held && w->pid == 0) {
		fetch_work_del(w);
		return CL_OK;
	}
	w->exited = 1;
	w->end = v->DEV_EXIT.end;	/* what it owns is ours */
	field_init(&shim_exit_table, &v->DEV_EXIT.end);
	if (w->end.started_at != UTIL_TIME_ZERO)
		w->started_at = w->end.started_at;
	fetch_work_set_dirty(w);
	return CL_OK;
}

void
fetch_work_release(struct fetch *f, const char *handle)
{
	struct fetch_work *w = fetch_work_find_handle(f, handle);

	if (w == NULL)
		return;
	w->held = 0;
	fetch_work_set_dirty(w);
}

void
fetch_work_stop(struct fetch_work *w, const char *reason)
{
	char cut[MAX_REASON_LEN + 1];
	struct msg_dev_stop body = { .slot = w->slot, .reason = cut };

	log_info("workload-refused", "handle=%s reason=%s", log_q(w->handle),
	    log_q(reason));
	fetch_cut_text(cut, sizeof(cut), reason);
	FETCH_TELL(w->f, DEV_STOP, &body);
	fetch_work_del(w);
}

int
fetch_work_put_status(struct fetch_work *w, const char *id, int final)
{
	struct frame_status f;
	struct frame_status_object *s = &f.status;

	frame_init_payload(FRAME_STATUS, &f);
	s->handle_id = w->handle;
	s->executor_id = FETCH_TEXT(w->f->conf.agent_id);
	/* Until the final status was sent, the workload runs: a terminal
	 * state would close the log at the hub. */
	s->state = FETCH_TEXT(frame_state_name(final ? (int)w->end.state :
	    HS_RUNNING));
	s->pid = w->pid;
	s->started_at = w->started_at;
	if (final) {
		s->exit_code = w->end.exit_code;
		s->finished_at = w->end.finished_at;
		s->error = FETCH_TEXT(w->end.error);
		f.final_offset = (int64_t)w->out.norm;
	}
	return fetch_send(w->f, FRAME_STATUS, id, w->handle, &f,
	    final ? &w->status_pos : NULL);
}
