/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * What the fetcher is told of workloads: that they are there, with their
 * spools, that a start was decided, and how they ended.  In the device
 * monitor.  What cannot be passed on for want of descriptors is owed, and
 * said later.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <bsd/string.h>

#include <event2/event.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "agentd.h"
#include "fetchctl.h"
#include "kern.h"
#include "workload_int.h"

void
workloads_set_again(struct workloads *ws)
{
	static const struct timeval pause = {
	    .tv_sec = WORKLOAD_AGAIN_MS / 1000 };

	if (!evtimer_pending(ws->again, NULL))
		evtimer_add(ws->again, &pause);
}

static void
workload_send_end(struct workload *w, const struct shim_exit *end)
{
	struct msg_dev_exit x = { .slot = w->slot, .end = *end };

	FETCHCTL_SEND(w->ws->a->fetch, DEV_EXIT, 0, 0, &x, -1);
}

void
workload_send_exit(struct workload *w)
{
	w->owes_exit = w->work != NULL && work_announce(w->work) != 0;
	if (w->owes_exit)
		workloads_set_again(w->ws);
	else
		workload_send_end(w, &w->end);
}

void
workload_send_failed(struct workload *w, const char *text)
{
	struct shim_exit end = { .state = HS_FAILED, .exit_code = -1,
	    .started_at = w->started_at, .finished_at = util_wall_ns() };
	char cut[MAX_SHIM_ERROR_LEN + 1];

	strlcpy(cut, text, sizeof(cut));
	end.error = cut;
	if (!w->is_refused)
		workload_send_end(w, &end);
}

/* Takes both descriptors. */
static void
workload_send_handle(struct workload *w, int spool_fd, int wake_fd)
{
	struct fetchctl *f = w->ws->a->fetch;
	struct msg_slot slot = { .slot = w->slot };
	struct spool_mark acked;
	struct msg_dev_handle h = { .slot = w->slot, .handle_id = w->handle_id,
	    .pid = w->pid, .started_at = w->started_at };

	/* One that is prepared counts from when it was asked for. */
	if (h.started_at == UTIL_TIME_ZERO)
		h.started_at = util_wall_ns();
	spool_get_acked(&w->spool, &acked);
	h.acked_raw = acked.raw;
	h.acked_norm = acked.norm;
	FETCHCTL_SEND(f, DEV_HANDLE, 0, 0, &h, spool_fd);
	if (wake_fd != -1)
		FETCHCTL_SEND(f, DEV_WAKE, 0, 0, &slot, wake_fd);
	if (w->state == WL_ENDED)
		workload_send_exit(w);
}

/* An error: not now, and nothing was said. */
static int
workload_try_announce(struct workload *w)
{
	int fd, wake = -1, r;

	if (w->is_refused || !w->has_spool || w->state == WL_DEAD ||
	    w->state == WL_ADOPTING ||
	    !fetchctl_is_serving(w->ws->a->fetch, NULL))
		return CL_OK;
	r = handledir_open_spool(&w->dir, O_RDONLY, &fd);
	/* One that ended writes no more. */
	if (r == 0 && w->wake_fd != -1 &&
	    (wake = fcntl(w->wake_fd, F_DUPFD_CLOEXEC, 0)) == -1) {
		r = CL_SYSTEM;
		close(fd);
	}
	if (r != 0) {
		log_error("workload-announce", "handle=%s reason=\"%s\"",
		    log_q(w->handle_id), cl_strerror(r));
		return kern_is_unsure(r) ? r : CL_OK;
	}
	workload_send_handle(w, fd, wake);
	return CL_OK;
}

void
workload_announce(struct workload *w)
{
	w->owes_announce = workload_try_announce(w) != 0;
	if (w->owes_announce)
		workloads_set_again(w->ws);
}

int
workloads_announce(struct workloads *ws)
{
	struct workload *w;
	int r;

	TAILQ_FOREACH(w, &ws->list, entry) {
		w->owes_announce = 0;
		if ((r = workload_try_announce(w)) != 0)
			return r;
	}
	return CL_OK;
}

/* DEV_START_ANS to one who asked. */
void
workload_send_started(struct workload *w, const struct workload_ask *ask)
{
	struct msg_dev_start_ans ans = { .result = RES_OK, .pid = w->pid,
	    .started_at = w->started_at };

	FETCHCTL_SEND(w->ws->a->fetch, DEV_START_ANS, ask->id,
	    ask->generation, &ans, -1);
}

void
workload_tell_started(struct workload *w)
{
	size_t i;

	workload_announce(w);
	if (w->owes_announce)
		return;
	for (i = 0; i < w->nasks; i++)
		workload_send_started(w, &w->asks[i]);
	w->nasks = 0;
}

void
workloads_refuse(struct workloads *ws, const struct workload_ask *ask,
    const char *code, const char *text)
{
	char cut[MAX_ERROR_TEXT_LEN + 1];
	struct msg_dev_start_ans ans = { .code = code, .text = cut,
	    .result = code != NULL ? RES_ERROR_FRAME : RES_NOT_STARTED,
	    .started_at = UTIL_TIME_ZERO };

	strlcpy(cut, text, sizeof(cut));
	FETCHCTL_SEND(ws->a->fetch, DEV_START_ANS, ask->id, ask->generation,
	    &ans, -1);
}
