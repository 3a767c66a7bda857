/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Operators, part five: names that may not come back, and agents that are
 * forgotten (BC-42).  As with revoking, the store changes first, and what
 * follows for live sessions happens when that is on disk.
 */
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
answer_refuse_failed(struct monitor *mon, uint64_t id)
{
	ctlout_refuse(mon, id, "internal", "the hub's store failed: %s",
	    store_error(mon->store));
}

/* What was promised did not reach the disk. */
static int
answer_ban_is_lost(struct monitor *mon, uint64_t id, int ok)
{
	if (!ok)
		ctlout_refuse(mon, id, "internal", "the hub's store failed: "
		    "%s", mon->last_error);
	return !ok;
}

/* Sender and words of a request with two strings. */
static struct ctl_client *
answer_ban_get(struct monitor *mon, struct imsg *m, char what[513],
    char reason[513], char actor[ACTOR_MAX], int *rp)
{
	struct ctl_client *cl = answer_ctl_begin(mon, m);

	*rp = CL_STATE;
	if (cl == NULL)
		return NULL;
	buf_get_str(&m->body, what, 512);
	reason[0] = '\0';
	if (m->type != MSG_CTL_UNBAN)
		buf_get_str(&m->body, reason, 512);
	answer_ctl_format_actor(cl, actor);
	*rp = CL_OK;
	if (buf_end(&m->body) == CL_OK)
		return cl;
	*rp = answer_ctl_malformed(mon, m);
	return NULL;
}

/* ------------------------------------------------------------------ bans */

static void
answer_ban_send_row(struct monitor *mon, uint64_t id,
    const struct store_ban *b, const struct ctl_ban *counts)
{
	struct ctl_ban row = *counts;

	row.name = b->name;
	row.reason = b->reason;
	row.actor = b->actor;
	row.at = b->at;
	ctlout_send_row(mon, id, MSG_ROW_BAN, &ctl_ban_table, &row, -1);
}

/* Everybody of that name; `aux` is the number of one of them. */
static void
answer_ban_after(struct monitor *mon, uint64_t id, uint64_t aux, int ok)
{
	struct agent *one = agents_find_number(&mon->agents, aux), *a;

	if (answer_ban_is_lost(mon, id, ok) || one == NULL)
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
	struct ctl_ban counts;
	struct agent *a;
	uint64_t one = 0;

	memset(&counts, 0, sizeof(counts));
	counts.nagents = nrevoked;
	for (a = agents_next(&mon->agents, NULL); a != NULL;
	    a = agents_next(&mon->agents, a)) {
		if (strcmp(a->row.name, b->name) != 0 || a->deleted)
			continue;
		one = a->number;
		counts.ndropped += a->session != 0;
		counts.nfailed += a->nrunning;
	}
	mon_add_after(mon, answer_ban_after, id, one);
	mon->durable = 1;
	answer_ban_send_row(mon, id, b, &counts);
	ctlout_send_done(mon, id);
	mon->durable = 0;
}

int
answer_ctl_ban(struct monitor *mon, struct child *c, struct imsg *m)
{
	char what[513], reason[513], actor[ACTOR_MAX];
	struct store_ban b;
	enum token_result t;
	unsigned int n;
	int r;

	(void)c;
	if (answer_ban_get(mon, m, what, reason, actor, &r) == NULL)
		return r;
	t = token_ban(mon->store, what, reason, actor, util_wall_ns(), &b,
	    &n);
	if (t == TOKEN_OK) {
		log_info("ban", "name=%s agents=%u actor=%s", log_q(b.name),
		    n, actor);
		answer_ban_done(mon, m->id, &b, n);
	} else if (t == TOKEN_FAILED)
		answer_refuse_failed(mon, m->id);
	else
		ctlout_refuse(mon, m->id, "usage", "%s: not a name that a "
		    "token could have", what);
	store_ban_clear(&b);
	return CL_OK;
}

/* Nothing follows but the answer. */
static void
answer_unban_after(struct monitor *mon, uint64_t id, uint64_t aux, int ok)
{
	(void)aux;
	(void)answer_ban_is_lost(mon, id, ok);
}

int
answer_ctl_unban(struct monitor *mon, struct child *c, struct imsg *m)
{
	char name[513], none[513], actor[ACTOR_MAX];
	static const struct ctl_ban counts;
	struct store_ban b;
	enum token_result t;
	struct refusal why;
	int r;

	(void)c;
	if (answer_ban_get(mon, m, name, none, actor, &r) == NULL)
		return r;
	t = token_unban(mon->store, name, actor, util_wall_ns(), &b);
	if (t == TOKEN_OK) {
		log_info("unban", "name=%s actor=%s", log_q(b.name), actor);
		mon_add_after(mon, answer_unban_after, m->id, 0);
		mon->durable = 1;
		answer_ban_send_row(mon, m->id, &b, &counts);
		ctlout_send_done(mon, m->id);
		mon->durable = 0;
	} else if (t == TOKEN_FAILED)
		answer_refuse_failed(mon, m->id);
	else {
		refuse_set(&why, "agent_not_found", "the name %s is not "
		    "banned", name);
		refuse_set_remedy(&why, "cloop-enroll bans shows which are");
		ctlout_send_err(mon, m->id, &why);
	}
	store_ban_clear(&b);
	return CL_OK;
}

static int
answer_bans_on_row(const struct store_ban *b, void *arg)
{
	return job_keys_add(arg, b->name);
}

static int
answer_bans_slice(struct monitor *mon, struct ctl_job *j)
{
	static const struct ctl_ban counts;
	struct store_ban b;
	unsigned int i;

	for (i = 0; i < JOB_BATCH && j->next < j->nkeys; i++)
		if (store_find_ban(mon->store, j->keys[j->next++], &b) ==
		    CL_OK) {
			answer_ban_send_row(mon, j->id, &b, &counts);
			store_ban_clear(&b);
		}
	return j->next == j->nkeys;
}

int
answer_ctl_bans(struct monitor *mon, struct child *c, struct imsg *m)
{
	struct job_keys k = { NULL, 0, 0 };
	struct ctl_job job;

	(void)c;
	if (answer_ctl_begin(mon, m) == NULL)
		return CL_STATE;
	if (store_list_bans(mon->store, answer_bans_on_row, &k) != CL_OK) {
		job_keys_clear(&k);
		answer_refuse_failed(mon, m->id);
		return CL_OK;
	}
	memset(&job, 0, sizeof(job));
	job.keys = k.v;
	job.nkeys = k.n;
	jobs_start(mon, m->id, answer_bans_slice, &job);
	return CL_OK;
}

/* -------------------------------------------------------------- deleting */

/*
 * The rows go in a turn of their own: until they do, the agent is revoked,
 * and the operator has no answer yet and asks again.
 */
static void
answer_delete_after(struct monitor *mon, uint64_t id, uint64_t aux, int ok)
{
	struct agent *a = agents_find_number(&mon->agents, aux);

	if (answer_ban_is_lost(mon, id, ok) || a == NULL)
		return;
	life_evict(mon, a, "deleted: the hub has forgotten this device");
	a->deleted = 1;
	if (store_list_handles(mon->store, a->row.agent_id, 0,
	    life_on_old_handle, mon) != CL_OK ||
	    store_del_agent(mon->store, a->row.agent_id) != CL_OK)
		mon_set_error(mon, store_error(mon->store));
}

int
answer_ctl_delete(struct monitor *mon, struct child *c, struct imsg *m)
{
	char what[513], reason[513], actor[ACTOR_MAX];
	struct token_revoked rv;
	enum token_result t;
	struct ctl_revoked row;
	struct refusal why;
	struct agent *a;
	int r;

	(void)c;
	if (answer_ban_get(mon, m, what, reason, actor, &r) == NULL)
		return r;
	t = token_delete(mon->store, what, reason, actor, util_wall_ns(),
	    &rv);
	if (t == TOKEN_OK) {
		a = agents_find(&mon->agents, rv.agent_id);
		memset(&row, 0, sizeof(row));
		row.kind = rv.kind;
		row.enrollment_id = rv.enrollment_id;
		row.agent_id = rv.agent_id;
		row.name = rv.name;
		row.dropped = a != NULL && a->session != 0;
		row.nfailed = a != NULL ? a->nrunning : 0;
		log_info("delete", "agent=%s name=%s actor=%s",
		    log_q(rv.agent_id), log_q(rv.name), actor);
		mon_add_after(mon, answer_delete_after, m->id,
		    a != NULL ? a->number : 0);
		mon->durable = 1;
		ctlout_send_row(mon, m->id, MSG_ROW_REVOKED,
		    &ctl_revoked_table, &row, -1);
		ctlout_send_done(mon, m->id);
		mon->durable = 0;
	} else if (t == TOKEN_FAILED)
		answer_refuse_failed(mon, m->id);
	else {
		refuse_set(&why, "agent_not_found", "there is no agent %s",
		    what);
		refuse_set_remedy(&why, "%s", token_find_hint(t));
		ctlout_send_err(mon, m->id, &why);
	}
	token_revoked_clear(&rv);
	return CL_OK;
}
