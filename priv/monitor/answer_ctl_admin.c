/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Operators, part four: who may connect, names that may not come back, and
 * agents that are forgotten (BC-42).  The store changes first; what follows
 * from it for live sessions happens when that is on disk.
 */
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "common/model/ctlmsg.h"
#include "common/msg/msgcat.h"
#include "answers.h"
#include "ctlout.h"
#include "life.h"
#include "refuse.h"

#include "store/db/token.h"

static void
answer_mint_send(struct monitor *mon, uint64_t id, const struct ctl_mint *req,
    const struct store_enrollment *e, struct secret *token)
{
	char server[MAX_URL_LEN + 64];
	struct ctl_minted row;

	memset(&row, 0, sizeof(row));
	(void)config_format_server(&mon->conf, server, sizeof(server));
	row.enrollment_id = e->id;
	row.name = e->name;
	row.token = *token;
	row.workdir_root = e->workdir_root;
	row.server = req->server != NULL && req->server[0] != '\0' ?
	    req->server : server;
	row.pin = req->pin != NULL && req->pin[0] != '\0' ? req->pin :
	    mon->pin;
	row.created_at = e->created_at;
	row.expires_at = e->expires_at;
	mon_add_after(mon, ctlout_on_commit, id, 0);
	CTL_DURABLE(mon, id, ROW_MINT, &row);
	log_info("mint", "enrollment=%s name=%s actor=%s", log_q(e->id),
	    log_q(e->name), log_q(e->created_by));
}

void
answer_ctl_mint(struct monitor *mon, struct ctl_client *cl, struct imsg *m,
    struct ctl_mint *v)
{
	struct store_labels labels = { NULL, 0 };
	struct store_enrollment e;
	struct secret token = SECRET_INIT;
	struct token_mint tm;
	const char *why = NULL;
	size_t i;
	int r = CL_OK;

	memset(&e, 0, sizeof(e));
	memset(&tm, 0, sizeof(tm));
	for (i = 0; i < v->nlabels && r == CL_OK; i++)
		r = store_labels_add(&labels, v->labels[i].key,
		    v->labels[i].value);
	tm.name = v->name != NULL ? v->name : "";
	tm.ttl_s = v->ttl_s;
	tm.workdir_root = v->workdir_root;
	tm.labels = &labels;
	tm.created_by = cl->actor;
	tm.now = util_wall_ns();
	if (r == CL_OK)
		r = token_mint(mon->store, &mon->mac_key, &tm, &token, &e,
		    &why);
	if (r == CL_OK)
		answer_mint_send(mon, m->id, v, &e, &token);
	else if (r == CL_DB)
		ctlout_refuse_store(mon, m->id);
	else
		ctlout_refuse(mon, m->id, r == CL_DENIED ? "revoked" :
		    "usage", "%s", why != NULL ? why :
		    cl_strerror(r));
	secret_clear(&token);
	store_enrollment_clear(&e);
	store_labels_clear(&labels);
}

/* --- enrollments --- */

static int
answer_enrollments_on_row(const struct store_enrollment *e, void *arg)
{
	return job_keys_add(arg, e->id);
}

static void
answer_enrollment_send(struct monitor *mon, uint64_t id,
    const struct store_enrollment *e)
{
	struct ctl_enrollment row;
	struct field_pair *labels;
	size_t i;

	if ((labels = calloc(e->labels.n + 1, sizeof(*labels))) == NULL)
		return;
	for (i = 0; i < e->labels.n; i++) {
		labels[i].key = e->labels.v[i].key;
		labels[i].value = e->labels.v[i].value;
	}
	memset(&row, 0, sizeof(row));
	row.enrollment_id = e->id;
	row.name = e->name;
	row.created_at = e->created_at;
	row.expires_at = e->expires_at;
	row.created_by = e->created_by;
	row.workdir_root = e->workdir_root;
	row.labels = labels;
	row.nlabels = e->labels.n;
	CTL_ROW(mon, id, ROW_ENROLLMENT, &row, -1);
	free(labels);
}

static int
answer_enrollments_slice(struct monitor *mon, struct ctl_job *j)
{
	struct store_enrollment e;
	unsigned int i;

	for (i = 0; i < JOB_BATCH && j->next < j->nkeys; i++) {
		memset(&e, 0, sizeof(e));
		if (store_find_enrollment(mon->store, j->keys[j->next++],
		    &e) != CL_OK)
			continue;
		answer_enrollment_send(mon, j->id, &e);
		store_enrollment_clear(&e);
	}
	return j->next == j->nkeys;
}

void
answer_ctl_enrollments(struct monitor *mon, struct ctl_client *cl,
    struct imsg *m, struct msg_empty *v)
{
	struct job_keys k = { NULL, 0, 0 };

	(void)cl;
	(void)v;
	if (store_list_enrollments(mon->store, util_wall_ns(),
	    answer_enrollments_on_row, &k) != CL_OK) {
		job_keys_clear(&k);
		ctlout_refuse_store(mon, m->id);
		return;
	}
	jobs_start_keys(mon, m->id, answer_enrollments_slice, &k);
}

/* --- revoke --- */

/*
 * It is on disk: now the live half of revoking.  The answer comes last, so
 * that whoever reads it finds the workloads failed and the session closing.
 */
static void
answer_revoke_after(struct monitor *mon, uint64_t number, uint64_t id,
    int ok)
{
	struct agent *a = agents_find_number(&mon->agents, number);

	if (!ok)
		ctlout_on_commit(mon, id, 0, 0);
	else if (a != NULL)
		life_evict(mon, a, "revoked: enroll again with a new token");
}

static void
answer_fill_revoked(struct ctl_revoked *row, const struct token_revoked *rv,
    const struct agent *a)
{
	memset(row, 0, sizeof(*row));
	row->kind = (char *)(uintptr_t)rv->kind;
	row->enrollment_id = rv->enrollment_id;
	row->agent_id = rv->agent_id;
	row->name = rv->name;
	row->dropped = a != NULL && a->session != 0;
	row->nfailed = a != NULL ? a->nrunning : 0;
}

static void
answer_revoke_send(struct monitor *mon, uint64_t id,
    const struct token_revoked *rv, struct agent *a)
{
	struct ctl_revoked row;

	answer_fill_revoked(&row, rv, a);
	if (a != NULL)
		mon_add_after(mon, answer_revoke_after, a->number, id);
	else
		mon_add_after(mon, ctlout_on_commit, id, 0);
	CTL_DURABLE(mon, id, ROW_REVOKED, &row);
}

void
answer_ctl_revoke(struct monitor *mon, struct ctl_client *cl, struct imsg *m,
    struct msg_ctl_end *v)
{
	struct token_revoked rv;
	enum token_result t;
	struct refusal r;

	memset(&rv, 0, sizeof(rv));
	t = token_revoke(mon->store, v->name, v->reason, cl->actor,
	    util_wall_ns(), &rv);
	if (t == TOKEN_FAILED)
		ctlout_refuse_store(mon, m->id);
	else if (t != TOKEN_OK) {
		refuse_set(&r, token_format_result(t), "there is no "
		    "enrollment or agent %s", v->name);
		refuse_set_remedy(&r, "%s", token_find_hint(t));
		ctlout_send_err(mon, m->id, &r);
	} else {
		log_info("revoke", "id=%s kind=%s actor=%s", log_q(v->name),
		    rv.kind, cl->actor);
		answer_revoke_send(mon, m->id, &rv, rv.agent_id != NULL ?
		    agents_find(&mon->agents, rv.agent_id) : NULL);
	}
	token_revoked_clear(&rv);
}

/* --- bans: names that may not come back --- */

static void
answer_fill_ban(struct ctl_ban *row, const struct store_ban *b)
{
	memset(row, 0, sizeof(*row));
	row->name = b->name;
	row->reason = b->reason;
	row->actor = b->actor;
	row->at = b->at;
}

/* Everybody of that name; `aux` is the number of one of them. */
static void
answer_ban_after(struct monitor *mon, uint64_t id, uint64_t aux, int ok)
{
	struct agent *one = agents_find_number(&mon->agents, aux), *a;

	ctlout_on_commit(mon, id, 0, ok);
	if (!ok || one == NULL)
		return;
	for (a = agents_next(&mon->agents, NULL); a != NULL;
	    a = agents_next(&mon->agents, a))
		if (strcmp(a->row.name, one->row.name) == 0 && !a->deleted)
			life_evict(mon, a, "banned: this name may not "
			    "connect again");
}

static void
answer_ban_done(struct monitor *mon, uint64_t id, const struct store_ban *b,
    unsigned int nrevoked)
{
	struct ctl_ban row;
	struct agent *a;
	uint64_t one = 0;

	answer_fill_ban(&row, b);
	row.nagents = nrevoked;
	for (a = agents_next(&mon->agents, NULL); a != NULL;
	    a = agents_next(&mon->agents, a)) {
		if (strcmp(a->row.name, b->name) != 0 || a->deleted)
			continue;
		one = a->number;
		row.ndropped += a->session != 0;
		row.nfailed += a->nrunning;
	}
	mon_add_after(mon, answer_ban_after, id, one);
	CTL_DURABLE(mon, id, ROW_BAN, &row);
}

void
answer_ctl_ban(struct monitor *mon, struct ctl_client *cl, struct imsg *m,
    struct msg_ctl_end *v)
{
	struct store_ban b;
	enum token_result t;
	unsigned int n;

	t = token_ban(mon->store, v->name, v->reason, cl->actor,
	    util_wall_ns(), &b, &n);
	if (t == TOKEN_OK) {
		log_info("ban", "name=%s agents=%u actor=%s", log_q(b.name),
		    n, cl->actor);
		answer_ban_done(mon, m->id, &b, n);
	} else if (t == TOKEN_FAILED)
		ctlout_refuse_store(mon, m->id);
	else
		ctlout_refuse(mon, m->id, "usage", "%s: not a name that a "
		    "token could have", v->name);
	store_ban_clear(&b);
}

void
answer_ctl_unban(struct monitor *mon, struct ctl_client *cl, struct imsg *m,
    struct msg_name *v)
{
	struct ctl_ban row;
	struct store_ban b;
	enum token_result t;
	struct refusal why;

	t = token_unban(mon->store, v->name, cl->actor, util_wall_ns(), &b);
	if (t == TOKEN_OK) {
		log_info("unban", "name=%s actor=%s", log_q(b.name),
		    cl->actor);
		mon_add_after(mon, ctlout_on_commit, m->id, 0);
		answer_fill_ban(&row, &b);
		CTL_DURABLE(mon, m->id, ROW_BAN, &row);
	} else if (t == TOKEN_FAILED)
		ctlout_refuse_store(mon, m->id);
	else {
		refuse_set(&why, "agent_not_found", "the name %s is not "
		    "banned", v->name);
		refuse_set_remedy(&why, "cloop-enroll bans shows which are");
		ctlout_send_err(mon, m->id, &why);
	}
	store_ban_clear(&b);
}

static int
answer_bans_on_row(const struct store_ban *b, void *arg)
{
	return job_keys_add(arg, b->name);
}

static int
answer_bans_slice(struct monitor *mon, struct ctl_job *j)
{
	struct ctl_ban row;
	struct store_ban b;
	unsigned int i;

	for (i = 0; i < JOB_BATCH && j->next < j->nkeys; i++)
		if (store_find_ban(mon->store, j->keys[j->next++], &b) ==
		    CL_OK) {
			answer_fill_ban(&row, &b);
			CTL_ROW(mon, j->id, ROW_BAN, &row, -1);
			store_ban_clear(&b);
		}
	return j->next == j->nkeys;
}

void
answer_ctl_bans(struct monitor *mon, struct ctl_client *cl, struct imsg *m,
    struct msg_empty *v)
{
	struct job_keys k = { NULL, 0, 0 };

	(void)cl;
	(void)v;
	if (store_list_bans(mon->store, answer_bans_on_row, &k) != CL_OK) {
		job_keys_clear(&k);
		ctlout_refuse_store(mon, m->id);
		return;
	}
	jobs_start_keys(mon, m->id, answer_bans_slice, &k);
}

/* --- deleting: agents that are forgotten --- */

/*
 * The rows go in a turn of their own: until they do, the agent is revoked,
 * and the operator has no answer yet and asks again.
 */
static void
answer_delete_after(struct monitor *mon, uint64_t id, uint64_t aux, int ok)
{
	struct agent *a = agents_find_number(&mon->agents, aux);

	ctlout_on_commit(mon, id, 0, ok);
	if (!ok || a == NULL)
		return;
	life_evict(mon, a, "deleted: the hub has forgotten this device");
	a->deleted = 1;
	if (store_list_handles(mon->store, a->row.agent_id, 0,
	    life_on_old_handle, mon) != CL_OK ||
	    store_del_agent(mon->store, a->row.agent_id) != CL_OK)
		mon_set_error(mon, store_error(mon->store));
}

void
answer_ctl_delete(struct monitor *mon, struct ctl_client *cl, struct imsg *m,
    struct msg_ctl_end *v)
{
	struct token_revoked rv;
	enum token_result t;
	struct ctl_revoked row;
	struct refusal why;
	struct agent *a;

	t = token_delete(mon->store, v->name, v->reason, cl->actor,
	    util_wall_ns(), &rv);
	if (t == TOKEN_OK) {
		a = agents_find(&mon->agents, rv.agent_id);
		answer_fill_revoked(&row, &rv, a);
		log_info("delete", "agent=%s name=%s actor=%s",
		    log_q(rv.agent_id), log_q(rv.name), cl->actor);
		mon_add_after(mon, answer_delete_after, m->id,
		    a != NULL ? a->number : 0);
		CTL_DURABLE(mon, m->id, ROW_REVOKED, &row);
	} else if (t == TOKEN_FAILED)
		ctlout_refuse_store(mon, m->id);
	else {
		refuse_set(&why, "agent_not_found", "there is no agent %s",
		    v->name);
		refuse_set_remedy(&why, "%s", token_find_hint(t));
		ctlout_send_err(mon, m->id, &why);
	}
	token_revoked_clear(&rv);
}
