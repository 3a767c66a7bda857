/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Ends and changes, in the monitor.  One place per rule: whoever notices
 * that a session or a handle is over calls here, and the store, the audit
 * chain, the workers and the waiting operators hear of it the same way.
 */
#include "life.h"

#include <string.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "common/model/ctlmsg.h"
#include "common/msg/msgcat.h"
#include "ctlout.h"
#include "devask.h"
#include "dispatch.h"
#include "hello.h"
#include "hfiles.h"
#include "hwork.h"
#include "logseal.h"
#include "monitor.h"
#include "penalty.h"

/* A live worker answers SESSION_DROP within a turn; bye may take 2 s. */
#define DROP_TIMEOUT_MS 10000

void
life_set_status(struct monitor *mon, struct agent *a, int status,
    const char *reason)
{
	int64_t now = util_wall_ns();
	int old = a->status, r;

	if (old == status)
		return;
	a->status = status;
	a->status_at = now;
	handle_set_text(&a->reason, reason);
	log_info("agent-status", "agent=%s name=%s from=%s to=%s reason=%s",
	    log_q(a->row.agent_id), log_q(a->row.name),
	    ctl_format_agent_status(old), ctl_format_agent_status(status),
	    log_q(reason));
	r = store_save_status(mon->store, a->row.agent_id, status, now,
	    reason);
	if (r == CL_OK)
		r = store_add_event(mon->store, now, "hub",
		    "executor.state_change", "", "executor", a->row.agent_id,
		    "from", ctl_format_agent_status(old), "to",
		    ctl_format_agent_status(status), "reason", reason,
		    (char *)NULL);
	if (r != CL_OK && r != CL_NOTFOUND)
		mon_set_error(mon, store_error(mon->store));
}

void
life_drop_session(struct monitor *mon, struct session *s, int how,
    const char *reason)
{
	struct child *c = mon_find_child(mon, s->generation);
	struct msg_session_drop body = { s->number, how, reason };

	if (s->dropped || c == NULL)
		return;
	s->dropped = 1;
	s->dropped_at = util_now_ms();
	MON_SEND(c, SESSION_DROP, 0, &body, -1);
}

void
life_check_drops(struct monitor *mon)
{
	struct session *s;
	struct child *c;
	int64_t now = util_now_ms();

	for (s = agents_next_session(&mon->agents, NULL); s != NULL;
	    s = agents_next_session(&mon->agents, s)) {
		if (!s->dropped || now - s->dropped_at < DROP_TIMEOUT_MS)
			continue;
		/* Its table of sessions changes with it: next tick goes on. */
		if ((c = mon_find_child(mon, s->generation)) != NULL)
			child_kill(c, "dropped session did not end");
		return;
	}
}

/* The session no longer has the agent's files open. */
static void
life_release_handles(struct monitor *mon, struct session *s)
{
	struct handle *h, *next;

	for (h = TAILQ_FIRST(&s->agent->handles); h != NULL; h = next) {
		next = TAILQ_NEXT(h, of_agent);
		if (h->session != s->number)
			continue;
		h->session = 0;
		if (handle_is_closed(h))
			logseal_release(mon, h);
		/* Where the device is to go on after a restart of the hub. */
		if (!handle_is_closed(h) && store_save_progress(mon->store,
		    h->row.number, h->row.received, h->row.log_bytes,
		    h->row.gapped) == CL_DB)
			mon_set_error(mon, store_error(mon->store));
		if (handle_is_closed(h))
			dispatch_settle(mon, h);
		/* Lost before started means dropped. */
		if (h->row.state == HS_PENDING && !handle_is_closed(h))
			dispatch_fail(mon, h, RES_SESSION_CLOSED, "", "");
	}
}

/*
 * A device that goes before it said a word may not have its credential on
 * disk (BC-35): its token is spent, and the audit must not look as if the
 * enrollment had come to its end.
 */
static void
life_note_unconfirmed(struct monitor *mon, const struct session *s,
    const char *reason)
{
	const struct agent *a = s->agent;

	if (!s->enrolled || a->row.confirmed_at != UTIL_TIME_ZERO ||
	    a->row.revoked_at != UTIL_TIME_ZERO)
		return;
	log_warn("enrollment-unconfirmed", "agent=%s name=%s enrollment=%s "
	    "peer=%s reason=%s", log_q(a->row.agent_id), log_q(a->row.name),
	    log_q(a->row.enrollment_id), log_q(s->peer), log_q(reason));
	if (store_add_event(mon->store, util_wall_ns(), "hub",
	    "executor.enroll", "", "executor", a->row.agent_id, "action",
	    "unconfirmed", "executor_id", a->row.agent_id, "name",
	    a->row.name, "enrollment_id", a->row.enrollment_id, "peer",
	    s->peer, "reason", reason, (char *)NULL) != CL_OK)
		mon_set_error(mon, store_error(mon->store));
}

void
life_end_session(struct monitor *mon, struct session *s, int status,
    const char *reason)
{
	struct agent *a = s->agent;
	struct session *next;
	int was_current = a->session == s->number;

	log_info("session-end", "session=%llu agent=%s status=%s reason=%s",
	    (unsigned long long)s->number, log_q(a->row.agent_id),
	    ctl_format_agent_status(status), log_q(reason));
	life_release_handles(mon, s);
	devask_end_session(mon, s->number);
	revoke_end_session(mon, s->number);
	refresh_end_session(mon, s->number);
	life_note_unconfirmed(mon, s, reason);
	if (s->hello != NULL)	/* each question has its answer */
		hello_refuse(mon_find_child(mon, s->generation),
		    s->hello->ask, HELLO_GONE);
	agents_del_session(&mon->agents, s);
	/* What came to be owed to it meanwhile is forgotten too. */
	if (a->deleted && store_del_agent(mon->store, a->row.agent_id) !=
	    CL_OK)
		mon_set_error(mon, store_error(mon->store));
	if (!was_current || a->deleted)
		return;
	/* A newer one takes over: the agent never went away. */
	if ((next = agents_find_session(&mon->agents, a->waiting)) != NULL &&
	    mon_find_child(mon, next->generation) != NULL) {
		hello_finish(mon, next);
		return;
	}
	life_set_status(mon, a, status, reason);
}

void
life_end_worker(struct monitor *mon, uint64_t generation, int crashed)
{
	struct session *s, *next;
	struct penalty_source source;
	struct config_penalty p;

	(void)config_parse_penalty(mon->conf.penalty, &p);
	for (s = agents_next_session(&mon->agents, NULL); s != NULL;
	    s = next) {
		next = agents_next_session(&mon->agents, s);
		if (s->generation != generation)
			continue;
		/*
		 * Evidence: whoever was in the middle of its handshake may
		 * have caused the crash.  An agent that was at work for long
		 * is more likely its victim.
		 */
		if (crashed && p.enabled && s->state != SESSION_CURRENT &&
		    penalty_parse_source(s->peer, &source) == CL_OK)
			penalty_add(mon, NULL, &source, PEN_CRASH, p.crash_ms,
			    p.crash_ms);
		life_end_session(mon, s, AGENT_UNREACHABLE,
		    "the hub's network process ended");
	}
	logseal_end_worker(mon, generation);
}

void
life_save_handle(struct monitor *mon, struct handle *h)
{
	int r;

	h->row.updated_at = util_wall_ns();
	r = store_save_handle(mon->store, &h->row);
	if (r == CL_OK && handle_is_closed(h))
		r = store_save_seal(mon->store, &h->row);
	h->unsaved = r != CL_OK && r != CL_STATE;
	if (h->unsaved)
		mon_set_error(mon, store_error(mon->store));
}

void
life_confirm_end(struct monitor *mon, const struct handle *h)
{
	struct session *s = agents_find_session(&mon->agents, h->session);
	struct msg_handle body = { h->row.number };
	int durable = mon->durable;

	if (s == NULL || h->unsaved)
		return;
	mon->durable = 1;
	MON_SEND(mon_find_child(mon, s->generation), HANDLE_SHUT, 0, &body,
	    -1);
	mon->durable = durable;
}

void
life_retry_saves(struct monitor *mon)
{
	struct handle *h;

	for (h = handles_next(&mon->handles, NULL); h != NULL;
	    h = handles_next(&mon->handles, h)) {
		if (!h->unsaved)
			continue;
		life_save_handle(mon, h);
		if (handle_is_closed(h))
			life_confirm_end(mon, h);
	}
}

/* The commit that held the end of a handle failed: it is retried. */
static void
life_undo_save(struct monitor *mon, uint64_t number, uint64_t aux, int ok)
{
	struct handle *h = handles_find(&mon->handles, number);

	(void)aux;
	if (h != NULL && !ok)
		h->unsaved = 1;
}

void
life_end_handle(struct monitor *mon, struct handle *h, int is_written)
{
	struct waiter *w;

	h->row.closed_at = util_wall_ns();
	h->row.log_bytes = hfiles_get_log_len(mon->conf.state_dir,
	    h->row.handle_id);
	logseal_end(mon, h, is_written);
	if (h->row.finished_at == UTIL_TIME_ZERO)
		h->row.finished_at = h->row.closed_at;
	work_close(mon, h);
	life_save_handle(mon, h);
	mon_add_after(mon, life_undo_save, h->row.number, 0);
	lease_release(mon, h, 0, "its workload ended");
	log_info("handle-end", "handle=%s agent=%s state=%s exit-code=%lld "
	    "log-bytes=%llu gapped=%d", log_q(h->row.handle_id),
	    log_q(h->row.agent_id), ctl_format_handle_state(h->row.state),
	    (long long)h->row.exit_code,
	    (unsigned long long)h->row.log_bytes, h->row.gapped);
	/* Recorded first, then told. */
	while ((w = TAILQ_FIRST(&h->waiters)) != NULL) {
		if (w->kind == WAIT_STARTED) {
			/* Its end came before started; that one answers. */
			w = TAILQ_NEXT(w, entry);
			while (w != NULL && w->kind == WAIT_STARTED)
				w = TAILQ_NEXT(w, entry);
			if (w == NULL)
				break;
		}
		ctlout_send_handle(mon, w->id, h);
		ctlout_send_done(mon, w->id);
		handle_del_waiter(h, w);
	}
	handles_close(&mon->handles, h);
}

void
life_fail_handle(struct monitor *mon, struct handle *h, const char *text)
{
	struct session *s = agents_find_session(&mon->agents, h->session);
	struct msg_handle body = { h->row.number };

	if (handle_is_closed(h))
		return;
	if (h->row.state == HS_PENDING) {
		dispatch_fail(mon, h, RES_SESSION_CLOSED, "", text);
		return;
	}
	h->row.state = HS_FAILED;
	handle_set_text(&h->row.error, text);
	if (s != NULL)
		MON_SEND(mon_find_child(mon, s->generation), HANDLE_SHUT, 0,
		    &body, -1);
	life_end_handle(mon, h, 0);
}

unsigned int
life_fail_all(struct monitor *mon, struct agent *a, const char *text)
{
	struct handle *h, *next;
	unsigned int n = 0;

	for (h = TAILQ_FIRST(&a->handles); h != NULL; h = next) {
		next = TAILQ_NEXT(h, of_agent);
		if (handle_is_closed(h))
			continue;
		life_fail_handle(mon, h, text);
		n++;
	}
	return n;
}

void
life_evict(struct monitor *mon, struct agent *a, const char *text)
{
	const struct revoke_why why = { REVOKE_SCRUB, text, "hub", 0 };
	struct session *s;

	if (a->row.revoked_at == UTIL_TIME_ZERO)
		a->row.revoked_at = util_wall_ns();
	/* The frames leave before the bye does. */
	revoke_agent(mon, a, &why);
	(void)life_fail_all(mon, a, text);
	for (s = agents_next_session(&mon->agents, NULL); s != NULL;
	    s = agents_next_session(&mon->agents, s))
		if (s->agent == a)
			life_drop_session(mon, s, DROP_REVOKED, text);
}

/* The files go with the row. */
int
life_on_old_handle(const struct store_handle *row, void *arg)
{
	struct monitor *mon = arg;
	struct handle *h = handles_find(&mon->handles, row->number);

	if (h != NULL && handle_is_closed(h) && TAILQ_EMPTY(&h->waiters))
		handles_del(&mon->handles, h);
	(void)hfiles_del(mon->conf.state_dir, row->handle_id);
	return 0;
}

void
life_sweep(struct monitor *mon)
{
	struct config_retention keep;
	struct agent *a;
	int64_t before;

	(void)config_parse_retention(mon->conf.retention, &keep);
	before = util_wall_ns() - (int64_t)keep.age_s * 1000000000;
	for (a = agents_next(&mon->agents, NULL); a != NULL;
	    a = agents_next(&mon->agents, a))
		if (store_del_old_handles(mon->store, a->row.agent_id,
		    keep.per_agent, before, life_on_old_handle, mon) != CL_OK)
			mon_set_error(mon, store_error(mon->store));
	lease_sweep(mon, before);
}
