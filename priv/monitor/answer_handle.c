/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * What devices say about handles, through their worker: started, status,
 * progress, lost.  A worker may speak of a handle only when the session
 * owns it; which agent and which handle it is, is never taken from the
 * message but from the tables.
 */
#include <string.h>

#include "common/base/crash.h"
#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "common/model/ctlmsg.h"
#include "common/msg/msgcat.h"
#include "answers.h"
#include "dispatch.h"
#include "hello.h"
#include "life.h"

/*
 * The handle a worker speaks of.  CL_OK with *hp NULL: it was forgotten
 * while the message was under way.  Anything the worker cannot have been
 * given is CL_FORMAT.
 */
static int
answer_find_handle(struct monitor *mon, const struct child *c,
    uint64_t number, struct handle **hp)
{
	struct session *s;
	struct handle *h;

	*hp = NULL;
	if (number == 0 || number > mon->handles.last_number)
		return CL_FORMAT;
	if ((h = handles_find(&mon->handles, number)) == NULL ||
	    h->session == 0)
		return CL_OK;
	s = agents_find_session(&mon->agents, h->session);
	if (s == NULL || s->generation != c->generation)
		return CL_FORMAT;
	*hp = h;
	return CL_OK;
}

int
answer_find_session_handle(struct monitor *mon, const struct child *c,
    uint64_t session, uint64_t number, struct handle **hp)
{
	struct session *s;
	int r;

	*hp = NULL;
	if (session == 0 || session > mon->agents.last_session)
		return CL_FORMAT;
	if ((s = answer_find_session(mon, c, session)) == NULL)
		return CL_OK;
	if ((r = answer_find_handle(mon, c, number, hp)) != CL_OK)
		return r;
	if (*hp != NULL && (*hp)->session != s->number)
		return CL_FORMAT;
	return CL_OK;
}

int
answer_start_ans(struct monitor *mon, struct child *c, struct imsg *m,
    msg_of_START_ANS *v)
{
	struct handle *h;
	int r;

	if ((r = answer_find_handle(mon, c, m->id, &h)) != CL_OK || h == NULL)
		return r;
	/* A terminal status may have come first. */
	if (h->row.state != HS_PENDING && !handle_is_closed(h))
		return CL_STATE;
	if (v->ans.result == RES_OK)
		dispatch_finish(mon, h, v->pid, v->started_at);
	else if (!handle_is_closed(h))
		dispatch_fail(mon, h, (int)v->ans.result, v->ans.code,
		    v->ans.text);
	else
		dispatch_settle(mon, h);
	return CL_OK;
}

static void
answer_apply_status(struct handle *h, const struct msg_handle_status *st)
{
	h->row.state = (int)st->state;
	if (st->pid != 0)
		h->row.pid = st->pid;
	/* A known start is kept when the new one is empty. */
	if (st->started_at != UTIL_TIME_ZERO)
		h->row.started_at = st->started_at;
	handle_set_text(&h->row.error, st->error);
	handle_set_text(&h->row.outcome, st->disk_limit ? "disk_limit" : "");
	if (!ctl_is_terminal(h->row.state))
		return;
	h->row.has_exit_code = 1;
	h->row.exit_code = st->exit_code;
	h->row.finished_at = st->finished_at;
}

static void
answer_use_status(struct monitor *mon, struct handle *h,
    const struct msg_handle_status *st)
{
	int terminal = ctl_is_terminal((int)st->state);

	if (handle_is_closed(h)) {
		/* Replaces the stored one, no more. */
		if (terminal && h->abandoned == NULL)
			answer_apply_status(h, st);
		if (terminal)
			life_confirm_end(mon, h);
		return;
	}
	if (!terminal) {
		/* Pending until started; then running, whatever it says. */
		if (h->row.state != HS_PENDING) {
			answer_apply_status(h, st);
			h->row.state = HS_RUNNING;
		}
		return;
	}
	answer_apply_status(h, st);
	if (h->row.started_at == UTIL_TIME_ZERO)
		h->row.started_at = h->row.dispatched_at;
	if (st->received > h->row.received)
		h->row.received = st->received;
	h->row.gapped |= st->gapped;
	if (st->final_offset > 0 &&
	    (uint64_t)st->final_offset > h->row.received)
		h->row.gapped = 1;
	CRASH_POINT("status.applied");
	life_end_handle(mon, h, 1);
	life_confirm_end(mon, h);
	CRASH_POINT("status.recorded");
}

int
answer_handle_status(struct monitor *mon, struct child *c, struct imsg *m,
    msg_of_HANDLE_STATUS *v)
{
	struct handle *h;
	int r;

	(void)m;
	r = answer_find_session_handle(mon, c, v->session, v->handle, &h);
	if (r == CL_OK && h != NULL)
		answer_use_status(mon, h, v);
	return r;
}

int
answer_handle_progress(struct monitor *mon, struct child *c, struct imsg *m,
    msg_of_HANDLE_PROGRESS *v)
{
	struct handle *h;
	int r;

	(void)m;
	if ((r = answer_find_handle(mon, c, v->handle, &h)) != CL_OK ||
	    h == NULL || handle_is_closed(h))
		return r;
	if (v->received > h->row.received)
		h->row.received = v->received;
	h->row.gapped |= v->gapped;
	return CL_OK;
}

int
answer_handle_files(struct monitor *mon, struct child *c, struct imsg *m,
    msg_of_HANDLE_FILES *v)
{
	struct msg_handle_files_ans body = { v->handle, FILES_GONE };
	struct handle *h;
	int r;

	r = answer_find_session_handle(mon, c, v->session, v->handle, &h);
	if (r != CL_OK)
		return r;
	if (h != NULL && !handle_is_closed(h))
		body.result = hello_give_files(mon, c, h, v->renew) ==
		    CL_OK ? FILES_OK : FILES_LATER;
	MON_SEND(c, HANDLE_FILES_ANS, m->id, &body, -1);
	return CL_OK;
}

int
answer_handle_lost(struct monitor *mon, struct child *c, struct imsg *m,
    msg_of_HANDLE_LOST *v)
{
	struct handle *h;
	int r;

	(void)m;
	r = answer_find_session_handle(mon, c, v->session, v->handle, &h);
	if (r != CL_OK || h == NULL)
		return r;
	/* A start in flight is exempt. */
	if (!handle_is_closed(h) && h->row.state != HS_PENDING)
		life_fail_handle(mon, h,
		    "agent no longer reports this workload as running");
	return CL_OK;
}
