/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Operators, part two: everything that is only looked at.  Long lists are
 * jobs; each batch reads its rows anew, so nothing is copied that may be
 * gone when its turn comes.
 */
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/util.h"
#include "common/model/ctlmsg.h"
#include "common/msg/msgcat.h"
#include "answers.h"
#include "ctlout.h"
#include "dispatch.h"
#include "refuse.h"

/* Audit rows checked per turn: a few milliseconds. */
#define VERIFY_SLICE 2000

static void
answer_refuse_nomem(struct monitor *mon, uint64_t id)
{
	ctlout_refuse(mon, id, "internal", "%s", cl_strerror(CL_NOMEM));
}

/* --- agents --- */

static int
answer_agents_slice(struct monitor *mon, struct ctl_job *j)
{
	struct agent *a;
	unsigned int i;

	for (i = 0; i < JOB_BATCH && j->next < j->nkeys; i++)
		if ((a = agents_find(&mon->agents, j->keys[j->next++])) !=
		    NULL && !a->deleted)
			ctlout_send_agent(mon, j->id, a);
	return j->next == j->nkeys;
}

void
answer_ctl_agents(struct monitor *mon, struct ctl_client *cl, struct imsg *m,
    struct msg_name *v)
{
	struct job_keys k = { NULL, 0, 0 };
	struct refusal r;
	struct agent *a;

	(void)cl;
	if (v->name[0] != '\0') {
		/* One that is revoked may be looked at by its id. */
		if ((a = agents_find(&mon->agents, v->name)) == NULL ||
		    a->deleted)
			a = dispatch_find_agent(mon, v->name, &r);
		if (a == NULL) {
			ctlout_send_err(mon, m->id, &r);
			return;
		}
		ctlout_send_agent(mon, m->id, a);
		ctlout_send_done(mon, m->id);
		return;
	}
	/* A revoked one stays, offline: who it was matters. */
	for (a = agents_next(&mon->agents, NULL); a != NULL;
	    a = agents_next(&mon->agents, a))
		if (!a->deleted &&
		    job_keys_add(&k, a->row.agent_id) != CL_OK) {
			job_keys_clear(&k);
			answer_refuse_nomem(mon, m->id);
			return;
		}
	jobs_start_keys(mon, m->id, answer_agents_slice, &k);
}

void
answer_ctl_inventory(struct monitor *mon, struct ctl_client *cl, struct imsg *m,
    struct msg_ctl_inventory *v)
{
	struct session *s;
	struct refusal r;
	struct agent *a;

	(void)cl;
	if ((a = dispatch_find_agent(mon, v->name, &r)) == NULL) {
		ctlout_send_err(mon, m->id, &r);
		return;
	}
	if (!v->refresh) {
		ctlout_send_agent(mon, m->id, a);
		ctlout_send_done(mon, m->id);
		return;
	}
	s = agents_find_current(&mon->agents, a);
	if (s == NULL || s->state != SESSION_CURRENT)
		ctlout_refuse(mon, m->id, "agent_unreachable",
		    "%s has no live session", a->row.name);
	else if (s->protocol < 14)
		ctlout_refuse(mon, m->id, "protocol", "%s speaks protocol "
		    "%u: an inventory needs 14", a->row.name, s->protocol);
	else
		devask_inventory(mon, s, m->id);
}

/* --- handles --- */

static int
answer_ps_slice(struct monitor *mon, struct ctl_job *j)
{
	struct store_handle row;
	struct handle *h;
	const char *id;
	unsigned int i;

	for (i = 0; i < JOB_BATCH && j->next < j->nkeys; i++) {
		id = j->keys[j->next++];
		if ((h = handles_find_id(&mon->handles, id)) != NULL) {
			ctlout_send_handle(mon, j->id, h);
			continue;
		}
		memset(&row, 0, sizeof(row));
		if (store_find_handle(mon->store, id, &row) != CL_OK)
			continue;
		ctlout_send_stored(mon, j->id, &row);
		store_handle_clear(&row);
	}
	return j->next == j->nkeys;
}

static int
answer_ps_on_row(const struct store_handle *row, void *arg)
{
	return job_keys_add(arg, row->handle_id);
}

void
answer_ctl_ps(struct monitor *mon, struct ctl_client *cl, struct imsg *m,
    struct msg_all *v)
{
	struct job_keys k = { NULL, 0, 0 };
	struct handle *h;
	int r = CL_OK;

	(void)cl;
	if (v->all)
		r = store_list_handles(mon->store, NULL, 0, answer_ps_on_row,
		    &k);
	for (h = handles_next(&mon->handles, NULL); !v->all && h != NULL &&
	    r == CL_OK; h = handles_next(&mon->handles, h))
		if (!handle_is_closed(h))
			r = job_keys_add(&k, h->row.handle_id);
	if (r == CL_OK || r == CL_LIMIT) {
		jobs_start_keys(mon, m->id, answer_ps_slice, &k);
		return;
	}
	job_keys_clear(&k);
	if (r == CL_DB)
		ctlout_refuse_store(mon, m->id);
	else
		answer_refuse_nomem(mon, m->id);
}

/* --- audit --- */

struct answer_audit_arg {
	struct monitor *mon;
	struct ctl_job *job;
	unsigned int n;
};

static int
answer_audit_on_row(const struct store_audit *a, void *arg)
{
	struct answer_audit_arg *x = arg;
	struct ctl_audit row;

	memset(&row, 0, sizeof(row));
	row.seq = a->seq;
	row.at = a->at;
	row.action = a->action;
	row.actor = a->actor;
	row.decision = a->decision;
	row.entity = a->entity;
	row.subject = a->subject;
	row.detail = a->detail;
	row.prev = (char *)(uintptr_t)a->prev;
	row.hash = (char *)(uintptr_t)a->hash;
	CTL_ROW(x->mon, x->job->id, ROW_AUDIT, &row, -1);
	x->job->seq = a->seq;
	x->n++;
	return 0;
}

static int
answer_audit_slice(struct monitor *mon, struct ctl_job *j)
{
	struct answer_audit_arg x = { mon, j, 0 };
	unsigned int want = j->left < JOB_BATCH ? (unsigned int)j->left :
	    JOB_BATCH;

	if (store_list_audit(mon->store, j->seq, j->since, want,
	    answer_audit_on_row, &x) != CL_OK) {
		ctlout_refuse_store(mon, j->id);
		return -1;
	}
	j->left -= x.n < j->left ? x.n : j->left;
	return x.n < want || j->left == 0;
}

void
answer_ctl_audit(struct monitor *mon, struct ctl_client *cl, struct imsg *m,
    struct msg_ctl_audit *v)
{
	struct ctl_job job = { .seq = v->after_seq, .since = v->since,
	    .left = v->limit };

	(void)cl;
	if (job.left == 0 || job.left > AUDIT_PAGE)
		job.left = AUDIT_PAGE;
	jobs_start(mon, m->id, answer_audit_slice, &job);
}

static int
answer_verify_slice(struct monitor *mon, struct ctl_job *j)
{
	struct store_walk *w = j->state;
	struct ctl_verify row;
	char head[65];
	int r;

	r = store_check_audit(mon->store, w, VERIFY_SLICE);
	if (r == CL_OK && !w->done)
		return 0;
	if (r != CL_OK && r != CL_FORMAT) {
		ctlout_refuse_store(mon, j->id);
		return -1;
	}
	memset(&row, 0, sizeof(row));
	row.ok = r == CL_OK;
	row.nrows = w->seq;
	row.broken_seq = r == CL_OK ? 0 : w->broken_seq;
	row.reason = r == CL_OK ? NULL : (char *)(uintptr_t)w->reason;
	util_format_hex(w->prev, sizeof(w->prev), head);
	row.head = head;
	CTL_ROW(mon, j->id, ROW_VERIFY, &row, -1);
	return 1;
}

void
answer_ctl_verify(struct monitor *mon, struct ctl_client *cl, struct imsg *m,
    struct msg_empty *v)
{
	struct ctl_job job;

	(void)cl;
	(void)v;
	memset(&job, 0, sizeof(job));
	job.busy = 1;
	if ((job.state = calloc(1, sizeof(struct store_walk))) == NULL) {
		answer_refuse_nomem(mon, m->id);
		return;
	}
	jobs_start(mon, m->id, answer_verify_slice, &job);
}
