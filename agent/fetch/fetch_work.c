/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The table of workloads in agentd-fetch: what the monitor told about each,
 * its spool (read-only) and the eventfd by which its shim says that there
 * is more.
 */
#include "fetch.h"

#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/util.h"

#define FETCH_WORK_ERROR_MAX MAX_ERROR_TEXT_LEN

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
	free(w->error);
	free(w);
}

/* One that was prepared runs now. */
static int
fetch_work_update(struct fetch_work *old, const struct fetch_work *w)
{
	old->pid = w->pid;
	old->started_at = w->started_at;
	return CL_OK;
}

/*
 * DEV_HANDLE: a workload to report about; again after our own restart, and
 * again with its pid when it was announced while it was prepared.
 */
int
fetch_work_on_handle(struct fetch *f, struct imsg *m)
{
	uint64_t acked_raw, acked_norm;
	struct fetch_work *w, *old;
	int r;

	if (f->nworks >= MAX_CONCURRENT + FETCH_OUT_TOLD_MAX)
		return CL_LIMIT;
	if ((w = calloc(1, sizeof(*w))) == NULL)
		return CL_NOMEM;
	w->f = f;
	w->wake_fd = -1;
	fetch_back_init(&w->back);
	w->slot = buf_get_u64(&m->body);
	buf_get_str(&m->body, w->handle, MAX_ID_LEN);
	w->pid = buf_get_i64(&m->body);
	w->started_at = buf_get_i64(&m->body);
	acked_raw = buf_get_u64(&m->body);
	acked_norm = buf_get_u64(&m->body);
	old = fetch_work_find_slot(f, w->slot);
	if ((r = buf_end(&m->body)) == 0)
		r = old != NULL ? fetch_work_update(old, w) :
		    spool_open(&w->spool, imsg_take_fd(m), 0);
	if (r != 0 || old != NULL) {
		free(w);
		return r;
	}
	fetch_out_init(&w->out, acked_raw, acked_norm);
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
fetch_work_on_wake(struct fetch *f, struct imsg *m)
{
	struct fetch_work *w;
	uint64_t slot;
	int fd, r;

	slot = buf_get_u64(&m->body);
	if ((r = buf_end(&m->body)) != 0)
		return r;
	if ((w = fetch_work_find_slot(f, slot)) == NULL)
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
fetch_work_on_exit(struct fetch *f, struct imsg *m)
{
	struct fetch_work *w;
	uint64_t slot, total_raw;
	int64_t code, started_at, finished_at;
	uint8_t state;
	char *error;
	int r;

	slot = buf_get_u64(&m->body);
	state = buf_get_u8(&m->body);
	code = buf_get_i64(&m->body);
	started_at = buf_get_i64(&m->body);
	finished_at = buf_get_i64(&m->body);
	error = buf_get_strdup(&m->body, FETCH_WORK_ERROR_MAX);
	total_raw = buf_get_u64(&m->body);
	if ((r = buf_end(&m->body)) != 0 ||
	    (w = fetch_work_find_slot(f, slot)) == NULL || w->exited) {
		free(error);
		return r;
	}
	/* Its start was refused, and whoever asked was told. */
	if (w->held && w->pid == 0) {
		free(error);
		fetch_work_del(w);
		return CL_OK;
	}
	w->exited = 1;
	w->state = state;
	w->exit_code = code;
	if (started_at != UTIL_TIME_ZERO)
		w->started_at = started_at;
	w->finished_at = finished_at;
	w->error = error;
	w->total_raw = total_raw;
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
	struct buf b;
	size_t len = strlen(reason);

	log_info("workload-refused", "handle=%s reason=%s", log_q(w->handle),
	    log_q(reason));
	if (len > MAX_REASON_LEN)
		len = utf8_cut(reason, MAX_REASON_LEN);
	buf_init(&b, MSG_BODY_MAX);
	buf_put_u64(&b, w->slot);
	buf_put_blob(&b, reason, len);	/* a str has the same form */
	fetch_tell(w->f, MSG_DEV_STOP, 0, &b, -1);
	buf_clear(&b);
	fetch_work_del(w);
}

int
fetch_work_put_status(struct fetch_work *w, const char *id, int final)
{
	struct frame_status f;
	struct frame_status_object *s = &f.status;

	frame_init_payload(FRAME_STATUS, &f);
	s->handle_id = w->handle;
	s->executor_id = w->f->conf.agent_id;
	/* Until the final status was sent, the workload runs: a terminal
	 * state would close the log at the hub. */
	s->state = (char *)(uintptr_t)frame_state_name(final ? w->state :
	    HS_RUNNING);
	s->pid = w->pid;
	s->started_at = w->started_at;
	if (final) {
		s->exit_code = w->exit_code;
		s->finished_at = w->finished_at;
		s->error = w->error;
		f.final_offset = (int64_t)w->out.norm;
	}
	return fetch_send(w->f, FRAME_STATUS, id, w->handle, &f,
	    final ? &w->status_pos : NULL);
}
