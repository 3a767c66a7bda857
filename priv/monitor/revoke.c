/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Revocations, in the monitor: the log in the store, and the few that are
 * under way.  What a device reports about one is kept as its word; that the
 * lease has no authority any more does not depend on it.
 */
#include "revoke.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bsd/string.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "common/model/leasemsg.h"
#include "common/msg/msgcat.h"
#include "ctlout.h"
#include "monitor.h"
#include "refuse.h"
#include "revoke_int.h"

#include "store/db/store_lease.h"

/* One frame on its way, and who waits for what comes of it. */
struct revoke {
	TAILQ_ENTRY(revoke) entry;
	uint64_t id;
	uint64_t session;
	uint64_t generation;
	struct store_revocation row;	/* as it is in the log */
	uint64_t *groups;		/* numbers; a group may be gone */
	size_t ngroups;
};

void
revoke_init(struct monitor *mon)
{
	memset(&mon->revokes, 0, sizeof(mon->revokes));
	TAILQ_INIT(&mon->revokes.list);
	TAILQ_INIT(&mon->revokes.groups);
}

static void
revoke_free(struct monitor *mon, struct revoke *v)
{
	TAILQ_REMOVE(&mon->revokes.list, v, entry);
	mon->revokes.n--;
	store_revocation_clear(&v->row);
	free(v->groups);
	free(v);
}

void
revoke_clear(struct monitor *mon)
{
	struct revoke *v;

	while ((v = TAILQ_FIRST(&mon->revokes.list)) != NULL)
		revoke_free(mon, v);
	revoke_clear_groups(mon);
}

static struct revoke *
revoke_find(struct monitor *mon, uint64_t id)
{
	struct revoke *v;

	TAILQ_FOREACH(v, &mon->revokes.list, entry)
		if (v->id == id)
			return v;
	return NULL;
}

static struct revoke *
revoke_find_key(struct monitor *mon, const struct store_revocation *k)
{
	struct revoke *v;

	TAILQ_FOREACH(v, &mon->revokes.list, entry)
		if (strcmp(v->row.lease_id, k->lease_id) == 0 &&
		    strcmp(v->row.grant_id, k->grant_id) == 0 &&
		    strcmp(v->row.agent_id, k->agent_id) == 0 &&
		    v->row.action == k->action)
			return v;
	return NULL;
}

static int
revoke_add_group(struct monitor *mon, struct revoke *v, uint64_t group)
{
	uint64_t *grown;

	if (group == 0)
		return CL_OK;
	grown = reallocarray(v->groups, v->ngroups + 1, sizeof(*grown));
	if (grown == NULL)
		return CL_NOMEM;
	v->groups = grown;
	v->groups[v->ngroups++] = group;
	revoke_join_group(mon, group);
	return CL_OK;
}

/* -------------------------------------------------------------------- log */

/* A deep copy; NULL texts become "". */
static int
revoke_copy_row(struct store_revocation *dst,
    const struct store_revocation *src)
{
	*dst = *src;
	dst->lease_id = strdup(src->lease_id);
	dst->grant_id = strdup(src->grant_id);
	dst->agent_id = strdup(src->agent_id);
	dst->reason = strdup(src->reason != NULL ? src->reason : "");
	dst->actor = strdup(src->actor != NULL ? src->actor : "");
	dst->env_scrubbed = strdup(src->env_scrubbed != NULL ?
	    src->env_scrubbed : "");
	dst->killed = strdup(src->killed != NULL ? src->killed : "");
	dst->error = strdup(src->error != NULL ? src->error : "");
	dst->widened = strdup(src->widened != NULL ? src->widened : "");
	if (dst->lease_id != NULL && dst->grant_id != NULL &&
	    dst->agent_id != NULL && dst->reason != NULL &&
	    dst->actor != NULL && dst->env_scrubbed != NULL &&
	    dst->killed != NULL && dst->error != NULL &&
	    dst->widened != NULL)
		return CL_OK;
	store_revocation_clear(dst);
	return CL_NOMEM;
}

static void
revoke_save(struct monitor *mon, const struct store_revocation *row)
{
	int r = store_save_revocation(mon->store, row);

	if (r == CL_OK)
		r = store_del_old_revocations(mon->store, REVOKE_LOG_MAX);
	if (r != CL_OK && r != CL_STATE)
		mon_set_error(mon, store_error(mon->store));
}

static const char *
revoke_format_action(int action)
{
	return action == REVOKE_KILL ? "kill" : "scrub";
}

/* The row's texts were cleaned on their way in. */
static void
revoke_audit(struct monitor *mon, const struct store_revocation *row,
    const char *action)
{
	char files[24] = "", env[512];
	size_t i;

	strlcpy(env, row->env_scrubbed, sizeof(env));
	for (i = 0; env[i] != '\0'; i++)
		if (env[i] == '\n')
			env[i] = ',';
	if (row->acked_at != UTIL_TIME_ZERO)
		snprintf(files, sizeof(files), "%lld",
		    (long long)row->files_removed);
	if (store_add_event(mon->store, util_wall_ns(), row->actor, action,
	    strcmp(action, "lease.revoke_failed") == 0 ? "deny" : "allow",
	    "lease", row->lease_id, "lease_id", row->lease_id, "grant_id",
	    row->grant_id, "executor_id", row->agent_id, "action",
	    revoke_format_action(row->action), "state",
	    revoke_format_state(row->state), "env_scrubbed", env,
	    "files_removed", files, "killed", row->killed, "widened",
	    row->widened, "error", row->error, "reason", row->reason,
	    (char *)NULL) != CL_OK)
		mon_set_error(mon, store_error(mon->store));
}

/* The last state of one is known: log, audit, tell, forget. */
static void
revoke_finish(struct monitor *mon, struct revoke *v)
{
	size_t i;

	revoke_save(mon, &v->row);
	revoke_audit(mon, &v->row, v->row.state == STORE_REV_REVOKED ?
	    "lease.revoke_acked" : "lease.revoke_failed");
	log_info("revoke-end", "lease=%s grant=%s agent=%s action=%s "
	    "state=%s known=%d files=%lld", log_q(v->row.lease_id),
	    log_q(v->row.grant_id), log_q(v->row.agent_id),
	    revoke_format_action(v->row.action),
	    revoke_format_state(v->row.state), v->row.known,
	    (long long)v->row.files_removed);
	for (i = 0; i < v->ngroups; i++)
		revoke_tell_group(mon, v->groups[i], &v->row, 1);
	revoke_free(mon, v);
}

/* ------------------------------------------------------------------ sending */

/* The row did not reach the disk: the frame was not sent. */
static void
revoke_undo(struct monitor *mon, uint64_t id, uint64_t aux, int ok)
{
	struct revoke *v = revoke_find(mon, id);

	(void)aux;
	if (ok || v == NULL)
		return;
	v->row.state = STORE_REV_FAILED;
	free(v->row.error);
	if ((v->row.error = strdup("the hub's store failed")) == NULL)
		fatal("revoke", "reason=%s", cl_strerror(CL_NOMEM));
	revoke_finish(mon, v);
}

/* row is pending and on record; takes its texts. */
static void
revoke_send(struct monitor *mon, struct session *s,
    struct store_revocation *row, uint64_t group)
{
	struct msg_revoke body = { .session = s->number };
	struct revoke *v;

	if ((v = calloc(1, sizeof(*v))) == NULL) {
		/* It stays owed: the next session sends it. */
		store_revocation_clear(row);
		return;
	}
	v->id = ++mon->revokes.last_id;
	v->session = s->number;
	v->generation = s->generation;
	v->row = *row;
	memset(row, 0, sizeof(*row));
	TAILQ_INSERT_TAIL(&mon->revokes.list, v, entry);
	mon->revokes.n++;
	(void)revoke_add_group(mon, v, group);
	body.lease = v->row.lease_id;
	body.grant = v->row.widened[0] != '\0' ? "" : v->row.grant_id;
	body.action = v->row.action;
	body.reason = v->row.reason;
	/* Pending is on record before the frame leaves. */
	mon_add_after(mon, revoke_undo, v->id, 0);
	mon->durable = 1;
	MON_SEND(mon_find_child(mon, s->generation), REVOKE, v->id, &body,
	    -1);
	mon->durable = 0;
}

static struct session *
revoke_find_session(struct monitor *mon, const char *agent_id)
{
	struct agent *a = agents_find(&mon->agents, agent_id);
	struct session *s = a != NULL ? agents_find_current(&mon->agents, a) :
	    NULL;

	return s != NULL && s->state == SESSION_CURRENT && !s->dropped &&
	    mon_find_child(mon, s->generation) != NULL ? s : NULL;
}

/* On record, then on its way: a row whose key and reason are filled in. */
static void
revoke_start(struct monitor *mon, const struct store_revocation *key,
    uint64_t group)
{
	struct session *s = revoke_find_session(mon, key->agent_id);
	struct store_revocation row = *key, copy;
	char text[192] = "", widened[192] = "";

	row.state = STORE_REV_PENDING;
	row.sent_at = util_wall_ns();
	row.acked_at = UTIL_TIME_ZERO;
	if (s == NULL)
		row.state = STORE_REV_UNREACHABLE;
	else if (s->protocol < 2) {
		row.state = STORE_REV_FAILED;
		snprintf(text, sizeof(text), "the agent speaks protocol %u: "
		    "taking a lease back needs 2; upgrade it", s->protocol);
	} else if (s->protocol < 19 && key->grant_id[0] != '\0')
		snprintf(widened, sizeof(widened), "the agent speaks "
		    "protocol %u: one grant alone needs 19, the whole lease "
		    "is taken back", s->protocol);
	row.error = text;
	row.widened = widened;
	row.env_scrubbed = row.killed = (char *)(uintptr_t)"";
	if (widened[0] != '\0') {
		(void)store_withdraw_item(mon->store, row.lease_id, "",
		    row.sent_at);
		(void)store_close_lease(mon->store, row.lease_id,
		    STORE_LEASE_REVOKED, row.sent_at, row.reason);
	}
	revoke_save(mon, &row);
	revoke_audit(mon, &row, "lease.revoke_sent");
	if (row.state != STORE_REV_PENDING) {
		if (row.state == STORE_REV_FAILED)
			revoke_audit(mon, &row, "lease.revoke_failed");
		revoke_tell_group(mon, group, &row, 0);
	} else if (revoke_copy_row(&copy, &row) == CL_OK)
		revoke_send(mon, s, &copy, group);
}

/* Ask for it once: what is final or under way is not asked for again. */
static void
revoke_ask(struct monitor *mon, const struct store_lease *l,
    const char *grant_id, const struct revoke_why *why)
{
	struct store_revocation key, old;
	struct revoke *v;

	memset(&key, 0, sizeof(key));
	key.lease_id = l->id;
	key.grant_id = (char *)(uintptr_t)grant_id;
	key.agent_id = l->agent_id;
	key.action = why->action;
	key.reason = (char *)(uintptr_t)why->reason;
	key.actor = (char *)(uintptr_t)why->actor;
	if ((v = revoke_find_key(mon, &key)) != NULL) {
		(void)revoke_add_group(mon, v, why->group);
		return;
	}
	if (store_find_revocation(mon->store, key.lease_id, key.grant_id,
	    key.agent_id, key.action, &old) == CL_OK) {
		if (old.state == STORE_REV_REVOKED) {
			revoke_tell_group(mon, why->group, &old, 0);
			store_revocation_clear(&old);
			return;
		}
		store_revocation_clear(&old);
	}
	revoke_start(mon, &key, why->group);
}

static int
revoke_on_item(const struct store_item *i, void *arg)
{
	size_t *leftp = arg;

	if (i->withdrawn_at == UTIL_TIME_ZERO)
		(*leftp)++;
	return 0;
}

void
revoke_lease(struct monitor *mon, const struct store_lease *l,
    const char *grant_id, const struct revoke_why *why)
{
	int64_t now = util_wall_ns();
	size_t left = 0;
	int r;

	r = store_withdraw_item(mon->store, l->id, grant_id, now);
	if (r == CL_OK || r == CL_STATE)
		r = store_list_items(mon->store, l->id, revoke_on_item,
		    &left);
	if (r == CL_OK && left == 0)
		r = store_close_lease(mon->store, l->id, STORE_LEASE_REVOKED,
		    now, why->reason);
	if (r != CL_OK && r != CL_STATE)
		mon_set_error(mon, store_error(mon->store));
	revoke_ask(mon, l, grant_id, why);
}

void
revoke_agent(struct monitor *mon, const struct agent *a,
    const struct revoke_why *why)
{
	struct lease_list list = { NULL, 0, 0 };
	size_t i;

	if (store_list_leases(mon->store, a->row.agent_id, 1, lease_list_add,
	    &list) != CL_OK)
		mon_set_error(mon, store_error(mon->store));
	for (i = 0; i < list.n; i++)
		revoke_lease(mon, &list.v[i], "", why);
	lease_list_clear(&list);
}

void
revoke_grant(struct monitor *mon, const char *grant_id,
    const struct revoke_why *why)
{
	struct item_list items = { NULL, 0, 0 };
	struct store_lease l;
	size_t i;

	if (store_list_grant_items(mon->store, grant_id, item_list_add,
	    &items) != CL_OK)
		mon_set_error(mon, store_error(mon->store));
	for (i = 0; i < items.n; i++) {
		if (store_find_lease(mon->store, items.v[i].lease_id, &l) !=
		    CL_OK)
			continue;
		revoke_lease(mon, &l, grant_id, why);
		store_lease_clear(&l);
	}
	item_list_clear(&items);
}

/* ------------------------------------------------------------------ replay */

struct revoke_owed {
	struct store_revocation *v;
	size_t n, cap;
};

static int
revoke_on_owed(const struct store_revocation *row, void *arg)
{
	struct revoke_owed *o = arg;
	struct store_revocation *v;

	if (o->n == o->cap) {
		v = reallocarray(o->v, o->cap * 2 + 8, sizeof(*v));
		if (v == NULL)
			return CL_NOMEM;
		o->v = v;
		o->cap = o->cap * 2 + 8;
	}
	if (revoke_copy_row(&o->v[o->n], row) != CL_OK)
		return CL_NOMEM;
	o->n++;
	return CL_OK;
}

void
revoke_replay(struct monitor *mon, struct session *s)
{
	struct revoke_owed o = { NULL, 0, 0 };
	size_t i;

	/* One snapshot: what is started from here on is not sent twice. */
	if (store_list_owed(mon->store, s->agent->row.agent_id,
	    revoke_on_owed, &o) != CL_OK)
		mon_set_error(mon, store_error(mon->store));
	for (i = 0; i < o.n; i++) {
		if (revoke_find_key(mon, &o.v[i]) == NULL)
			revoke_start(mon, &o.v[i], 0);
		store_revocation_clear(&o.v[i]);
	}
	if (o.n > 0)
		log_info("revoke-replay", "agent=%s owed=%zu",
		    log_q(s->agent->row.agent_id), o.n);
	free(o.v);
}

/* ----------------------------------------------------------------- answers */

/* Names, one a line: none of them has a line feed in it (util_is_id). */
static int
revoke_set_names(char **dst, char **v, size_t n)
{
	size_t i, len = 1;
	char *text;

	for (i = 0; i < n; i++) {
		if (!util_is_id(v[i]))
			return CL_FORMAT;
		len += strlen(v[i]) + 1;
	}
	if ((text = calloc(1, len)) == NULL)
		return CL_NOMEM;
	for (i = 0; i < n; i++) {
		strlcat(text, v[i], len);
		if (i + 1 < n)
			strlcat(text, "\n", len);
	}
	free(*dst);
	*dst = text;
	return CL_OK;
}

static int
revoke_use_report(struct store_revocation *row,
    const struct lease_revoked *rep)
{
	int r;

	row->acked_at = util_wall_ns();
	row->known = rep->known;
	row->files_removed = rep->files_removed;
	row->egress_dropped = rep->egress_dropped;
	handle_set_text(&row->error, rep->error);
	row->state = row->error[0] != '\0' ? STORE_REV_FAILED :
	    STORE_REV_REVOKED;
	if ((r = revoke_set_names(&row->env_scrubbed, rep->env_scrubbed,
	    rep->nenv_scrubbed)) != CL_OK)
		return r;
	return revoke_set_names(&row->killed, rep->killed, rep->nkilled);
}

static void
revoke_use_failure(struct monitor *mon, struct store_revocation *row,
    int result, const char *code, const char *text)
{
	struct agent *a = agents_find(&mon->agents, row->agent_id);
	struct refusal r;

	if (result == RES_SESSION_CLOSED || result == RES_TIMEOUT) {
		row->state = STORE_REV_UNREACHABLE;
		return;
	}
	refuse_set_result(&r, result, code, text, a != NULL ? a->row.name :
	    row->agent_id);
	row->state = STORE_REV_FAILED;
	handle_set_text(&row->error, r.message);
}

int
revoke_answer(struct monitor *mon, struct child *c, struct imsg *m,
    struct msg_revoke_ans *v)
{
	struct revoke *rv;
	int r = CL_OK;

	if (m->id == 0 || m->id > mon->revokes.last_id)
		return CL_FORMAT;
	if ((rv = revoke_find(mon, m->id)) == NULL)
		return CL_OK;
	if (rv->generation != c->generation)
		return CL_FORMAT;
	if (v->ans.result == RES_OK)
		r = revoke_use_report(&rv->row, &v->report);
	else
		revoke_use_failure(mon, &rv->row, (int)v->ans.result,
		    v->ans.code, v->ans.text);
	if (r == CL_OK)
		revoke_finish(mon, rv);
	return r == CL_NOMEM ? CL_OK : r;
}

void
revoke_end_session(struct monitor *mon, uint64_t session)
{
	struct revoke *v, *next;

	for (v = TAILQ_FIRST(&mon->revokes.list); v != NULL; v = next) {
		next = TAILQ_NEXT(v, entry);
		if (v->session != session)
			continue;
		v->row.state = STORE_REV_UNREACHABLE;
		revoke_finish(mon, v);
	}
}
