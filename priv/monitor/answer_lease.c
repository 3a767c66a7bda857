/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Operators, part six: leases, devices out of rotation, and what devices
 * answer about leases.
 */
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "common/model/leasemsg.h"
#include "common/msg/msgcat.h"
#include "answers.h"
#include "ctlout.h"
#include "dispatch.h"
#include "refuse.h"

#include "store/db/store_lease.h"

/* ---------------------------------------------------------------------- ls */

static int
answer_leases_on_row(const struct store_lease *l, void *arg)
{
	return job_keys_add(arg, l->id);
}

/* The worst that is still owed; 0: nothing was ever asked back. */
static int
answer_on_revocation(const struct store_revocation *v, void *arg)
{
	static const int rank[] = { 0, 2, 1, 3, 4 };
	int *worst = arg;

	if (rank[v->state] > rank[*worst])
		*worst = v->state;
	return 0;
}

static const char *
answer_format_lease_state(int state)
{
	static const char *const words[] = {
		[STORE_LEASE_LIVE] = "live",
		[STORE_LEASE_RELEASED] = "released",
		[STORE_LEASE_REVOKED] = "revoked",
		[STORE_LEASE_EXPIRED] = "expired",
	};

	return state >= STORE_LEASE_LIVE && state <= STORE_LEASE_EXPIRED ?
	    words[state] : "unknown";
}

static void
answer_send_lease(struct monitor *mon, uint64_t id,
    const struct store_lease *l)
{
	char *names[MAX_WANTS], *grants[MAX_WANTS];
	struct agent *a = agents_find(&mon->agents, l->agent_id);
	struct item_list items = { NULL, 0, 0 };
	struct ctl_lease row;
	int worst = 0;
	size_t i;

	(void)store_list_items(mon->store, l->id, item_list_add, &items);
	(void)store_list_revocations(mon->store, l->id, answer_on_revocation,
	    &worst);
	memset(&row, 0, sizeof(row));
	row.lease_id = l->id;
	row.agent_id = l->agent_id;
	row.agent = a != NULL ? a->row.name : NULL;
	row.handle_id = l->handle_id;
	row.project = l->project;
	row.actor = l->actor;
	row.state = (char *)(uintptr_t)answer_format_lease_state(l->state);
	row.issued_at = l->issued_at;
	row.expires_at = l->expires_at;
	row.closed_at = l->closed_at;
	row.cause = l->cause;
	row.secrets = names;
	row.grants = grants;
	for (i = 0; i < items.n && i < MAX_WANTS; i++) {
		names[row.nsecrets++] = items.v[i].name;
		grants[row.ngrants++] = items.v[i].grant_id;
	}
	if (worst != 0)
		row.revocation = (char *)(uintptr_t)
		    revoke_format_state(worst);
	CTL_ROW(mon, id, ROW_LEASE, &row, -1);
	item_list_clear(&items);
}

static int
answer_leases_slice(struct monitor *mon, struct ctl_job *j)
{
	struct store_lease l;
	unsigned int i;

	for (i = 0; i < JOB_BATCH && j->next < j->nkeys; i++) {
		if (store_find_lease(mon->store, j->keys[j->next++], &l) !=
		    CL_OK)
			continue;
		answer_send_lease(mon, j->id, &l);
		store_lease_clear(&l);
	}
	return j->next == j->nkeys;
}

void
answer_ctl_leases(struct monitor *mon, struct ctl_client *cl, struct imsg *m,
    struct msg_all *v)
{
	struct job_keys k = { NULL, 0, 0 };

	(void)cl;
	if (store_list_leases(mon->store, NULL, !v->all, answer_leases_on_row,
	    &k) != CL_OK) {
		job_keys_clear(&k);
		ctlout_refuse_store(mon, m->id);
		return;
	}
	jobs_start_keys(mon, m->id, answer_leases_slice, &k);
}

/* --------------------------------------------------------- revoke, refresh */

/* A grant that the lease does not hold would be a revocation of nothing. */
static int
answer_has_grant(struct monitor *mon, const char *lease_id,
    const char *grant_id)
{
	struct item_list items = { NULL, 0, 0 };
	int found = grant_id[0] == '\0';
	size_t i;

	(void)store_list_items(mon->store, lease_id, item_list_add, &items);
	for (i = 0; i < items.n; i++)
		if (strcmp(items.v[i].grant_id, grant_id) == 0)
			found = 1;
	item_list_clear(&items);
	return found;
}

void
answer_ctl_lease_revoke(struct monitor *mon, struct ctl_client *cl,
    struct imsg *m, struct msg_ctl_lease_revoke *v)
{
	struct revoke_why why = { REVOKE_SCRUB, v->reason, cl->actor, 0 };
	struct store_lease l;
	int r;

	if (v->kill)
		why.action = REVOKE_KILL;
	if ((r = store_find_lease(mon->store, v->lease, &l)) != CL_OK) {
		if (r == CL_NOTFOUND)
			ctlout_refuse(mon, m->id, "lease_not_found",
			    "there is no lease %s", v->lease);
		else
			ctlout_refuse_store(mon, m->id);
		return;
	}
	if (!answer_has_grant(mon, l.id, v->grant)) {
		ctlout_refuse(mon, m->id, "grant_not_found", "%s holds "
		    "nothing of grant %s", l.id, v->grant);
		store_lease_clear(&l);
		return;
	}
	if (v->reason[0] == '\0')
		why.reason = "revoked by the operator";
	why.group = revoke_new_group(mon, m->id);
	revoke_lease(mon, &l, v->grant, &why);
	revoke_end_group(mon, why.group, NULL);
	store_lease_clear(&l);
}

void
answer_ctl_lease_refresh(struct monitor *mon, struct ctl_client *cl,
    struct imsg *m, struct msg_name *v)
{
	refresh_start(mon, v->name, cl->actor, m->id);
}

/* ------------------------------------------------------------------ cordon */

static const struct answer_admin {
	const char *action;	/* of the audit row */
	const char *state;
} answer_admins[] = {
	[ADMIN_READY] = { "executor.uncordon", "ready" },
	[ADMIN_CORDONED] = { "executor.cordon", "cordoned" },
	[ADMIN_DRAINING] = { "executor.drain", "draining" },
};

/* The state on disk decides; a failed commit is undone here. */
static void
answer_admin_undo(struct monitor *mon, uint64_t number, uint64_t old, int ok)
{
	struct agent *a = agents_find_number(&mon->agents, number);

	if (!ok && a != NULL)
		a->admin = (int)old;
}

static void
answer_set_admin(struct monitor *mon, struct agent *a, int state,
    const char *reason, const char *actor)
{
	const struct answer_admin *row = &answer_admins[state];
	int64_t now = util_wall_ns();
	int r;

	mon_add_after(mon, answer_admin_undo, a->number, (uint64_t)a->admin);
	a->admin = state;
	r = store_save_admin(mon->store, a->row.agent_id, state, reason, now,
	    actor);
	if (r == CL_OK)
		r = store_add_event(mon->store, now, actor, row->action, "",
		    "executor", a->row.agent_id, "action", row->action + 9,
		    "executor_id", a->row.agent_id, "name", a->row.name,
		    "reason", reason, "state", row->state, (char *)NULL);
	if (r != CL_OK)
		mon_set_error(mon, store_error(mon->store));
	log_info("agent-admin", "agent=%s name=%s state=%s actor=%s",
	    log_q(a->row.agent_id), log_q(a->row.name), row->state, actor);
}

void
answer_ctl_cordon(struct monitor *mon, struct ctl_client *cl, struct imsg *m,
    struct msg_ctl_cordon *v)
{
	struct revoke_why why = { REVOKE_SCRUB, v->reason, cl->actor, 0 };
	struct refusal r;
	struct agent *a;
	int state = (int)v->admin;

	if ((a = dispatch_find_agent(mon, v->agent, &r)) == NULL) {
		ctlout_send_err(mon, m->id, &r);
		return;
	}
	if (v->reason[0] == '\0')
		why.reason = state == ADMIN_READY ? "" : state ==
		    ADMIN_CORDONED ? "the device is cordoned" :
		    "the device is being drained";
	answer_set_admin(mon, a, state, why.reason, cl->actor);
	why.group = revoke_new_group(mon, m->id);
	/* Out of rotation means without a single lease. */
	if (state != ADMIN_READY)
		revoke_agent(mon, a, &why);
	revoke_end_group(mon, why.group, v->wait && state == ADMIN_DRAINING ?
	    a : NULL);
}
