/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Operators, part four: who may connect.  Minting and revoking change the
 * store first; what follows from it happens when that is on disk.
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
answer_refuse_store(struct monitor *mon, uint64_t id)
{
	ctlout_refuse(mon, id, "internal", "the hub's store failed: %s",
	    store_error(mon->store));
}

/* The durable answer was dropped: say so instead. */
static void
answer_admin_after(struct monitor *mon, uint64_t id, uint64_t aux, int ok)
{
	(void)aux;
	if (!ok)
		ctlout_refuse(mon, id, "internal", "the hub's store failed: "
		    "%s", mon->last_error);
}

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
	mon_add_after(mon, answer_admin_after, id, 0);
	mon->durable = 1;
	ctlout_send_row(mon, id, MSG_ROW_MINT, &ctl_minted_table, &row, -1);
	ctlout_send_done(mon, id);
	mon->durable = 0;
	log_info("mint", "enrollment=%s name=%s actor=%s", log_q(e->id),
	    log_q(e->name), log_q(e->created_by));
}

int
answer_ctl_mint(struct monitor *mon, struct child *c, struct imsg *m)
{
	struct store_labels labels = { NULL, 0 };
	struct store_enrollment e;
	struct secret token = SECRET_INIT;
	struct ctl_client *cl;
	struct token_mint tm;
	struct ctl_mint req;
	char actor[ACTOR_MAX];
	const char *why = NULL;
	size_t i;
	int r;

	(void)c;
	if ((cl = answer_ctl_begin(mon, m)) == NULL)
		return CL_STATE;
	if (field_get(&ctl_mint_table, &m->body, &req) != CL_OK)
		return answer_ctl_malformed(mon, m);
	memset(&e, 0, sizeof(e));
	memset(&tm, 0, sizeof(tm));
	r = buf_end(&m->body);
	for (i = 0; i < req.nlabels && r == CL_OK; i++)
		r = store_labels_add(&labels, req.labels[i].key,
		    req.labels[i].value);
	answer_ctl_format_actor(cl, actor);
	tm.name = req.name != NULL ? req.name : "";
	tm.ttl_s = req.ttl_s;
	tm.workdir_root = req.workdir_root;
	tm.labels = &labels;
	tm.created_by = actor;
	tm.now = util_wall_ns();
	if (r == CL_OK)
		r = token_mint(mon->store, &mon->mac_key, &tm, &token, &e,
		    &why);
	if (r == CL_OK)
		answer_mint_send(mon, m->id, &req, &e, &token);
	else if (r == CL_DB)
		answer_refuse_store(mon, m->id);
	else
		ctlout_refuse(mon, m->id, r == CL_DENIED ? "revoked" :
		    "usage", "%s", why != NULL ? why :
		    cl_strerror(r));
	secret_clear(&token);
	store_enrollment_clear(&e);
	store_labels_clear(&labels);
	field_clear(&ctl_mint_table, &req);
	return CL_OK;
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
	ctlout_send_row(mon, id, MSG_ROW_ENROLLMENT, &ctl_enrollment_table,
	    &row, -1);
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

int
answer_ctl_enrollments(struct monitor *mon, struct child *c, struct imsg *m)
{
	struct job_keys k = { NULL, 0, 0 };
	struct ctl_job job;

	(void)c;
	if (answer_ctl_begin(mon, m) == NULL)
		return CL_STATE;
	if (store_list_enrollments(mon->store, util_wall_ns(),
	    answer_enrollments_on_row, &k) != CL_OK) {
		job_keys_clear(&k);
		answer_refuse_store(mon, m->id);
		return CL_OK;
	}
	memset(&job, 0, sizeof(job));
	job.keys = k.v;
	job.nkeys = k.n;
	jobs_start(mon, m->id, answer_enrollments_slice, &job);
	return CL_OK;
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
		answer_admin_after(mon, id, 0, 0);
	else if (a != NULL)
		life_evict(mon, a, "revoked: enroll again with a new token");
}

static void
answer_revoke_send(struct monitor *mon, uint64_t id,
    const struct token_revoked *rv, struct agent *a)
{
	struct ctl_revoked row;

	memset(&row, 0, sizeof(row));
	row.kind = (char *)(uintptr_t)rv->kind;
	row.enrollment_id = rv->enrollment_id;
	row.agent_id = rv->agent_id;
	row.name = rv->name;
	row.dropped = a != NULL && a->session != 0;
	row.nfailed = a != NULL ? a->nrunning : 0;
	if (a != NULL)
		mon_add_after(mon, answer_revoke_after, a->number, id);
	else
		mon_add_after(mon, answer_admin_after, id, 0);
	mon->durable = 1;
	ctlout_send_row(mon, id, MSG_ROW_REVOKED, &ctl_revoked_table, &row,
	    -1);
	ctlout_send_done(mon, id);
	mon->durable = 0;
}

int
answer_ctl_revoke(struct monitor *mon, struct child *c, struct imsg *m)
{
	char id[MAX_ID_LEN * 2 + 1], reason[513], actor[ACTOR_MAX];
	struct token_revoked rv;
	struct ctl_client *cl;
	enum token_result t;
	struct refusal r;

	(void)c;
	if ((cl = answer_ctl_begin(mon, m)) == NULL)
		return CL_STATE;
	buf_get_str(&m->body, id, sizeof(id) - 1);
	buf_get_str(&m->body, reason, sizeof(reason) - 1);
	if (buf_end(&m->body) != CL_OK)
		return answer_ctl_malformed(mon, m);
	memset(&rv, 0, sizeof(rv));
	answer_ctl_format_actor(cl, actor);
	t = token_revoke(mon->store, id, reason, actor, util_wall_ns(), &rv);
	if (t == TOKEN_FAILED)
		answer_refuse_store(mon, m->id);
	else if (t != TOKEN_OK) {
		refuse_set(&r, token_format_result(t), "there is no "
		    "enrollment or agent %s", id);
		refuse_set_remedy(&r, "%s", token_find_hint(t));
		ctlout_send_err(mon, m->id, &r);
	} else {
		log_info("revoke", "id=%s kind=%s actor=%s", log_q(id),
		    rv.kind, actor);
		answer_revoke_send(mon, m->id, &rv, rv.agent_id != NULL ?
		    agents_find(&mon->agents, rv.agent_id) : NULL);
	}
	token_revoked_clear(&rv);
	return CL_OK;
}
