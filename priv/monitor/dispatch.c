/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Dispatch, in the monitor: gates, then the handle's row and files, then
 * one message to the worker that holds the session.  The spec is typed and
 * checked before anything is done with it; its bytes go on in a sealed
 * memfd that is wiped here.
 */
#include "dispatch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/string.h>

#include "common/base/crash.h"
#include "common/base/err.h"
#include "common/base/idgen.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "common/model/caps.h"
#include "common/model/spec.h"
#include "common/msg/msgcat.h"
#include "ctlout.h"
#include "gates.h"
#include "hello.h"
#include "hfiles.h"
#include "hwork.h"
#include "monitor.h"
#include "refuse.h"

/* --- where --- */

/* By name: one that is connected, else the newest record. */
static struct agent *
dispatch_find_name(struct monitor *mon, const char *name, struct refusal *r)
{
	struct agent *a, *best = NULL;
	unsigned int nonline = 0;

	for (a = agents_next(&mon->agents, NULL); a != NULL;
	    a = agents_next(&mon->agents, a)) {
		if (strcmp(a->row.name, name) != 0 ||
		    a->row.revoked_at != UTIL_TIME_ZERO)
			continue;
		if (a->session != 0)
			nonline++;
		if (best == NULL || (a->session != 0) > (best->session != 0) ||
		    ((a->session != 0) == (best->session != 0) &&
		    a->row.created_at > best->row.created_at))
			best = a;
	}
	if (nonline > 1) {
		refuse_set(r, "usage", "%u connected agents are called %s",
		    nonline, name);
		refuse_set_remedy(r, "name one by its id; cloopctl agents "
		    "shows them");
		return NULL;
	}
	return best;
}

struct agent *
dispatch_find_agent(struct monitor *mon, const char *where, struct refusal *r)
{
	struct agent *a = agents_find(&mon->agents, where);

	r->code = NULL;
	if (a != NULL && a->deleted)
		a = NULL;	/* as if it had never been */
	if (a != NULL && a->row.revoked_at != UTIL_TIME_ZERO) {
		refuse_set(r, "revoked", "%s (%s) is revoked", a->row.name,
		    a->row.agent_id);
		return NULL;
	}
	if (a == NULL)
		a = dispatch_find_name(mon, where, r);
	if (a == NULL && r->code == NULL)
		refuse_set(r, "agent_not_found", "there is no agent %s",
		    where);
	return a;
}

static int
dispatch_check(struct monitor *mon, struct agent *a, const struct spec *spec,
    const struct lease_plan *plan, struct refusal *r)
{
	struct session *s = agents_find_current(&mon->agents, a);
	struct gate_input in;
	struct caps caps;
	int bad, have;

	have = agents_get_caps(a, &caps) == CL_OK;
	if (!have)
		caps_init(&caps);
	in.spec = spec;
	in.agent = a->row.name;
	in.protocol = s != NULL && s->state == SESSION_CURRENT &&
	    !s->dropped ? s->protocol : 0;
	in.hub_protocol = PROTO_MAX;
	in.caps = &caps;
	in.nsecrets = plan->n;
	in.nfiles = plan->nfiles;
	bad = gates_check(&in, r);
	caps_clear(&caps);
	if (!bad && a->admin > ADMIN_READY) {
		refuse_set(r, "agent_cordoned", "%s is %s: it gets no new "
		    "work", a->row.name, a->admin == ADMIN_DRAINING ?
		    "being drained" : "cordoned");
		bad = 1;
	}
	if (!bad && a->nrunning >= MAX_HANDLES_PER_SESSION) {
		refuse_set(r, "agent_busy", "%s has %u workloads", a->row.name,
		    a->nrunning);
		bad = 1;
	}
	return bad;
}

/* Free places on a device, as far as it said; never negative. */
static int64_t
dispatch_find_load(const struct agent *a)
{
	struct caps caps;
	int64_t max = 0;

	if (agents_get_caps(a, &caps) == CL_OK) {
		max = caps.max_concurrent;
		caps_clear(&caps);
	}
	/* A full one comes after all others: the device would say busy. */
	return (int64_t)a->nrunning + (max > 0 &&
	    (int64_t)a->nrunning >= max ? 1000000 : 0) +
	    (a->nfailures > 0 ? 500000 : 0);	/* degraded */
}

/*
 * label:k=v: the least loaded of those that pass all gates.  The refusal is
 * that of the first one that did not.
 */
static struct agent *
dispatch_find_label(struct monitor *mon, const char *label,
    const struct spec *spec, const struct lease_plan *plan,
    struct refusal *r)
{
	struct agent *a, *best = NULL;
	struct refusal *one;
	int64_t load, best_load = 0;
	const char *eq = strchr(label, '=');
	size_t i;

	r->code = NULL;
	if (eq == NULL || eq == label) {
		refuse_set(r, "usage", "label:%s: must be label:KEY=VALUE",
		    label);
		return NULL;
	}
	if ((one = calloc(1, sizeof(*one))) == NULL) {
		refuse_set(r, "internal", "%s", cl_strerror(CL_NOMEM));
		return NULL;
	}
	for (a = agents_next(&mon->agents, NULL); a != NULL;
	    a = agents_next(&mon->agents, a)) {
		for (i = 0; i < a->row.labels.n; i++)
			if (strncmp(a->row.labels.v[i].key, label,
			    (size_t)(eq - label)) == 0 &&
			    a->row.labels.v[i].key[eq - label] == '\0' &&
			    strcmp(a->row.labels.v[i].value, eq + 1) == 0)
				break;
		if (i == a->row.labels.n ||
		    a->row.revoked_at != UTIL_TIME_ZERO)
			continue;
		if (dispatch_check(mon, a, spec, plan, one)) {
			/* "unreachable" says least: anything else wins. */
			if (r->code == NULL || strcmp(r->code,
			    "agent_unreachable") == 0)
				*r = *one;
			continue;
		}
		load = dispatch_find_load(a);
		if (best == NULL || load < best_load) {
			best = a;
			best_load = load;
		}
	}
	free(one);
	if (best == NULL && r->code == NULL)
		refuse_set(r, "agent_not_found", "no agent has the label %s",
		    label);
	return best;
}

/* --- the operator's spec --- */

/*
 * What only the hub may fill in, and what this hub cannot carry yet.  A
 * start that looks complete and is not would be worse than a refusal.
 */
static int
dispatch_check_spec(const struct spec *s, struct refusal *r)
{
	const char *what = NULL;

	if (s->handle_id != NULL && s->handle_id[0] != '\0')
		what = "a handle id";
	else if (s->workspace_credential != NULL)
		what = "a workspace credential";
	else if (s->nsecrets > 0 || s->nsecret_files > 0)
		what = "secrets";
	else if (s->virtual != NULL)
		what = "a virtual executor";
	else if (s->nforwarded_devices > 0)
		what = "forwarded devices";
	if (what == NULL)
		return 0;
	refuse_set(r, "usage", "this hub does not handle %s in a run", what);
	return 1;
}

/* --- the handle --- */

static const char *
dispatch_find_project(const struct spec *s)
{
	const char *project = field_find_pair(s->labels, s->nlabels,
	    "project");

	return project != NULL ? project : "";
}

static void
dispatch_fill_row(struct store_handle *row, const struct dispatch *d,
    const struct agent *a, const struct work *work, const char *handle_id)
{
	const char *project = dispatch_find_project(d->spec);

	memset(row, 0, sizeof(*row));
	row->handle_id = strdup(handle_id);
	row->agent_id = strdup(a->row.agent_id);
	row->name = strdup(d->name);
	row->created_by = strdup(d->actor);
	row->project_path = strdup(project);
	row->task_id = strdup("");
	row->image = strdup(d->spec->sandbox.image != NULL ?
	    d->spec->sandbox.image : "");
	if (work != NULL)
		(void)work_format_meta(work, &row->meta);
	(void)lease_format_bindings(d->spec, &row->secrets);
	row->outcome = strdup("");
	row->error = strdup("");
	row->dispatched_at = util_wall_ns();
	row->state = HS_PENDING;
	row->started_at = row->finished_at = row->closed_at = UTIL_TIME_ZERO;
	row->updated_at = row->dispatched_at;
}

static int
dispatch_is_complete(const struct store_handle *row)
{
	return row->handle_id != NULL && row->agent_id != NULL &&
	    row->name != NULL && row->created_by != NULL &&
	    row->project_path != NULL && row->task_id != NULL &&
	    row->image != NULL && row->meta != NULL && row->secrets != NULL &&
	    row->outcome != NULL && row->error != NULL;
}

static void
dispatch_audit(struct monitor *mon, const struct handle *h,
    const char *action, const char *error)
{
	const struct work *w = h->work;
	char ms[24] = "", depth[24] = "";

	if (w != NULL && strcmp(w->kind, "git") == 0) {
		if (w->depth > 0)
			snprintf(depth, sizeof(depth), "%lld",
			    (long long)w->depth);
		else
			strlcpy(depth, "full", sizeof(depth));
	}
	if (error != NULL)
		snprintf(ms, sizeof(ms), "%lld",
		    (long long)(util_now_ms() - h->begun_at));
	if (store_add_event(mon->store, util_wall_ns(), h->row.created_by,
	    action, error != NULL && error[0] != '\0' ? "deny" : "allow",
	    "handle", h->row.handle_id, "phase", error != NULL ? "end" :
	    "start", "executor_id", h->row.agent_id, "executor_kind",
	    "remote", "name", h->row.name, "project", h->row.project_path,
	    "kind", w != NULL ? w->kind : NULL, "repo",
	    w != NULL ? w->repo : NULL, "ref", w != NULL ? w->ref : NULL,
	    "depth", depth, "duration_ms", ms, "error", error,
	    (char *)NULL) != CL_OK)
		mon_set_error(mon, store_error(mon->store));
}

/* Row in the store and in the table, files on disk; NULL: r says why. */
static struct handle *
dispatch_make_handle(struct monitor *mon, const struct dispatch *d,
    struct agent *a, struct refusal *r)
{
	char id[IDGEN_HANDLE_LEN + 1];
	struct work *work = work_new(d->spec);
	struct store_handle row;
	struct handle *h = NULL;
	int rc;

	idgen_handle(id);
	dispatch_fill_row(&row, d, a, work, id);
	rc = dispatch_is_complete(&row) ? CL_OK : CL_NOMEM;
	if (rc == CL_OK && (rc = hfiles_make(mon->conf.state_dir, id)) !=
	    CL_OK)
		refuse_set(r, "internal", "cannot make the output files of a "
		    "handle below %s: %s", mon->conf.state_dir,
		    cl_strerror(rc));
	else if (rc == CL_OK && (rc = store_add_handle(mon->store, &row)) !=
	    CL_OK) {
		refuse_set(r, "internal", "the hub's store failed: %s",
		    rc == CL_DB ? store_error(mon->store) : cl_strerror(rc));
		(void)hfiles_del(mon->conf.state_dir, id);
	} else if (rc != CL_OK)
		refuse_set(r, "internal", "%s", cl_strerror(rc));
	if (rc != CL_OK)
		store_handle_clear(&row);
	else if ((h = handles_add(&mon->handles, a, &row)) == NULL) {
		refuse_set(r, "internal", "%s", cl_strerror(CL_NOMEM));
		(void)hfiles_del(mon->conf.state_dir, id);
	} else {
		h->begun_at = util_now_ms();
		h->work = work;
		work = NULL;
	}
	work_free(work);
	return h;
}

/* Tell the worker to forget a handle it has open. */
static void
dispatch_forget(struct monitor *mon, const struct handle *h)
{
	struct session *s = agents_find_session(&mon->agents, h->session);
	struct msg_handle body = { h->row.number };

	if (s != NULL)
		MON_SEND(mon_find_child(mon, s->generation), HANDLE_FORGET, 0,
		    &body, -1);
}

/* Remove a handle that never ran; the waiters have been told. */
static void
dispatch_drop(struct monitor *mon, struct handle *h)
{
	struct waiter *w;

	while ((w = TAILQ_FIRST(&h->waiters)) != NULL)
		handle_del_waiter(h, w);
	dispatch_forget(mon, h);
	(void)hfiles_del(mon->conf.state_dir, h->row.handle_id);
	handles_del(&mon->handles, h);
}

static void
dispatch_tell(struct monitor *mon, struct handle *h, const struct refusal *r)
{
	struct waiter *w;

	TAILQ_FOREACH(w, &h->waiters, entry)
		ctlout_send_err(mon, w->id, r);
}

/* The commit failed: nothing was sent, nothing is kept. */
static void
dispatch_undo(struct monitor *mon, uint64_t number, uint64_t aux, int ok)
{
	struct handle *h = handles_find(&mon->handles, number);
	struct refusal r;

	(void)aux;
	if (h == NULL || ok)
		return;
	refuse_set(&r, "internal", "the hub's store failed: %s",
	    mon->last_error);
	dispatch_tell(mon, h, &r);
	dispatch_drop(mon, h);
}

void
dispatch_fail(struct monitor *mon, struct handle *h, int result,
    const char *code, const char *text)
{
	struct refusal r;

	refuse_set_result(&r, result, code, text, h->agent->row.name);
	log_info("start-refused", "handle=%s agent=%s code=%s reason=%s",
	    log_q(h->row.handle_id), log_q(h->row.agent_id), r.code,
	    log_q(r.message));
	dispatch_audit(mon, h, "workspace.provision_end", r.message);
	lease_release(mon, h, result == RES_SESSION_CLOSED ||
	    result == RES_TIMEOUT, "its workload did not start");
	if (store_del_handle(mon->store, h->row.number) != CL_OK)
		mon_set_error(mon, store_error(mon->store));
	dispatch_tell(mon, h, &r);
	dispatch_drop(mon, h);
}

/* --- sending --- */

static int
dispatch_send(struct monitor *mon, struct session *s, struct handle *h,
    struct spec *spec)
{
	struct msg_start body = { .session = s->number,
	    .handle = h->row.number };
	struct buf blob;
	int fd, r;

	if ((spec->handle_id = strdup(h->row.handle_id)) == NULL)
		return CL_NOMEM;
	buf_init(&blob, MAX_SPEC_LEN);
	spec_put(spec, &blob);
	if ((r = buf_error(&blob)) == CL_OK)
		r = util_make_memfd(blob.data, blob.len, &fd);
	body.len = blob.len;
	buf_clear(&blob);	/* wiped: a spec may carry secrets */
	if (r != CL_OK)
		return r;
	MON_SEND(mon_find_child(mon, s->generation), START, h->row.number,
	    &body, fd);
	return CL_OK;
}

static void
dispatch_run(struct monitor *mon, const struct dispatch *d,
    const struct lease_plan *plan, struct agent *a)
{
	struct session *s = agents_find_current(&mon->agents, a);
	struct refusal r;
	struct handle *h;
	int rc;

	if ((h = dispatch_make_handle(mon, d, a, &r)) == NULL) {
		ctlout_send_err(mon, d->ctl, &r);
		return;
	}
	CRASH_POINT("dispatch.row");
	dispatch_audit(mon, h, "workspace.provision_start", NULL);
	mon_add_after(mon, dispatch_undo, h->row.number, 0);
	/* Row and lease in one turn; what to hide before the start. */
	if ((rc = lease_record(mon, plan, h)) == CL_OK &&
	    (rc = handle_add_waiter(h, d->ctl, d->detach ? WAIT_STARTED :
	    WAIT_RUN)) == CL_OK)
		rc = hello_open_handle(mon, s, h);
	/* Nothing leaves before the row is on disk. */
	mon->durable = 1;
	if (rc == CL_OK)
		ctlout_send_event(mon, d->ctl, "dispatched", h);
	if (rc == CL_OK)
		rc = ctlout_send_files(mon, d->ctl, &h->row);
	if (rc == CL_OK)
		rc = work_send_branch(mon, s, h, d);
	if (rc == CL_OK)
		rc = dispatch_send(mon, s, h, d->spec);
	mon->durable = 0;
	CRASH_POINT("dispatch.queued");
	if (rc == CL_OK) {
		log_info("dispatch", "handle=%s agent=%s name=%s actor=%s",
		    log_q(h->row.handle_id), log_q(a->row.agent_id),
		    log_q(d->name), log_q(d->actor));
		return;
	}
	refuse_set(&r, rc == CL_TOOBIG ? "usage" : "internal",
	    "the start could not be prepared: %s", cl_strerror(rc));
	ctlout_send_err(mon, d->ctl, &r);
	lease_release(mon, h, 0, "its workload was not sent");
	(void)store_del_handle(mon->store, h->row.number);
	dispatch_drop(mon, h);
}

/*
 * Gate 22: choose the grants and render them; then the gates once more,
 * with what is really sent.  0: go.
 */
static int
dispatch_lend(struct monitor *mon, const struct dispatch *d, struct agent *a,
    struct lease_plan *plan, struct refusal *r)
{
	if (plan->n == 0)
		return 0;
	return lease_choose(mon, plan, a, r) ||
	    lease_render(mon, plan, d->spec, r) ||
	    dispatch_check(mon, a, d->spec, plan, r);
}

static void
dispatch_plan(struct monitor *mon, const struct dispatch *d,
    struct lease_plan *plan)
{
	struct agent *a = NULL;
	struct refusal r;
	int bad = 0;

	r.code = NULL;
	if (dispatch_check_spec(d->spec, &r) || lease_find_secrets(mon, plan,
	    d->wants, d->nwants, &r) ||
	    lease_find_workspace(mon, plan, d->spec, &r))
		bad = 1;
	else if (strncmp(d->where, "label:", 6) == 0)
		a = dispatch_find_label(mon, d->where + 6, d->spec, plan,
		    &r);
	else if ((a = dispatch_find_agent(mon, d->where, &r)) != NULL)
		bad = dispatch_check(mon, a, d->spec, plan, &r);
	if (a != NULL && !bad)
		bad = work_check_branch(d, &r);
	if (a != NULL && !bad)
		bad = dispatch_lend(mon, d, a, plan, &r);
	if (a == NULL || bad) {
		log_info("dispatch-refused", "where=%s code=%s actor=%s",
		    log_q(d->where), r.code, log_q(d->actor));
		ctlout_send_err(mon, d->ctl, &r);
		return;
	}
	dispatch_run(mon, d, plan, a);
}

void
dispatch_start(struct monitor *mon, const struct dispatch *d)
{
	struct lease_plan *plan;

	if ((plan = calloc(1, sizeof(*plan))) == NULL ||
	    (plan->project = strdup(dispatch_find_project(d->spec))) ==
	    NULL) {
		free(plan);
		ctlout_refuse(mon, d->ctl, "internal", "%s",
		    cl_strerror(CL_NOMEM));
		return;
	}
	strlcpy(plan->actor, d->actor, sizeof(plan->actor));
	dispatch_plan(mon, d, plan);
	lease_plan_clear(plan);
	free(plan);
}

/* --- answers --- */

void
dispatch_settle(struct monitor *mon, struct handle *h)
{
	struct waiter *w, *next;

	for (w = TAILQ_FIRST(&h->waiters); w != NULL; w = next) {
		next = TAILQ_NEXT(w, entry);
		if (w->kind != WAIT_STARTED)
			continue;
		ctlout_send_handle(mon, w->id, h);
		ctlout_send_done(mon, w->id);
		handle_del_waiter(h, w);
	}
}

void
dispatch_finish(struct monitor *mon, struct handle *h, int64_t pid,
    int64_t started_at)
{
	struct waiter *w;

	CRASH_POINT("dispatch.answer");
	if (!handle_is_closed(h)) {
		h->row.state = HS_RUNNING;
		h->row.pid = pid;
		h->row.started_at = started_at != UTIL_TIME_ZERO ?
		    started_at : util_wall_ns();
	}
	if (!handle_is_closed(h)) {
		h->row.updated_at = util_wall_ns();
		if (store_save_handle(mon->store, &h->row) != CL_OK)
			h->unsaved = 1;
	}
	dispatch_audit(mon, h, "workspace.provision_end", "");
	TAILQ_FOREACH(w, &h->waiters, entry)
		if (w->kind != WAIT_END)
			ctlout_send_event(mon, w->id, "started", h);
	dispatch_settle(mon, h);
}
