/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The revocation log and the administrative state of agents.  Runs in the
 * monitor.  What is owed to a device that is away is kept here, so that a
 * crash of the hub forgets none of it.
 */
#include "store_int.h"

#include <stdlib.h>
#include <string.h>

#include "store_lease.h"

void
store_revocation_clear(struct store_revocation *v)
{
	free(v->lease_id);
	free(v->grant_id);
	free(v->agent_id);
	free(v->reason);
	free(v->actor);
	free(v->env_scrubbed);
	free(v->killed);
	free(v->error);
	free(v->widened);
	memset(v, 0, sizeof(*v));
}

/* Column order: REVOCATION_COLS. */
static int
store_get_revocation(sqlite3_stmt *st, struct store_revocation *v)
{
	int r = CL_OK;

	memset(v, 0, sizeof(*v));
	v->lease_id = store_get_text(st, 0, &r);
	v->grant_id = store_get_text(st, 1, &r);
	v->agent_id = store_get_text(st, 2, &r);
	v->action = sqlite3_column_int(st, 3);
	v->reason = store_get_text(st, 4, &r);
	v->actor = store_get_text(st, 5, &r);
	v->state = sqlite3_column_int(st, 6);
	v->sent_at = store_get_time(st, 7);
	v->acked_at = store_get_time(st, 8);
	v->known = sqlite3_column_int(st, 9);
	v->files_removed = sqlite3_column_int64(st, 10);
	v->egress_dropped = sqlite3_column_int(st, 11);
	v->env_scrubbed = store_get_text(st, 12, &r);
	v->killed = store_get_text(st, 13, &r);
	v->error = store_get_text(st, 14, &r);
	v->widened = store_get_text(st, 15, &r);
	if (r != CL_OK)
		store_revocation_clear(v);
	return r;
}

int
store_save_revocation(struct store *s, const struct store_revocation *v)
{
	int n, r;

	r = store_run(s, ST_REVOCATION_SAVE, &n, "tttdttdTTdidtttt",
	    v->lease_id, v->grant_id, v->agent_id, v->action, v->reason,
	    v->actor, v->state, v->sent_at, v->acked_at, v->known,
	    v->files_removed, v->egress_dropped, v->env_scrubbed, v->killed,
	    v->error, v->widened);
	return r == CL_OK && n == 0 ? CL_STATE : r;
}

int
store_find_revocation(struct store *s, const char *lease_id,
    const char *grant_id, const char *agent_id, int action,
    struct store_revocation *v)
{
	sqlite3_stmt *st;
	int r;

	memset(v, 0, sizeof(*v));
	if ((r = store_bind(s, ST_REVOCATION_FIND, &st, "tttd", lease_id,
	    grant_id, agent_id, action)) != 0 ||
	    (r = store_step(s, st)) != CL_OK)
		return r;
	r = store_get_revocation(st, v);
	(void)sqlite3_reset(st);
	return r;
}

static int
store_list_by(struct store *s, enum store_stmt id, const char *key,
    store_revocation_fn fn, void *arg)
{
	struct store_revocation v;
	sqlite3_stmt *st;
	int r;

	if ((r = store_bind(s, id, &st, "t", key)) != 0)
		return r;
	while ((r = store_step(s, st)) == CL_OK) {
		if ((r = store_get_revocation(st, &v)) == CL_OK) {
			r = fn(&v, arg);
			store_revocation_clear(&v);
		}
		if (r != 0)
			break;
	}
	(void)sqlite3_reset(st);
	return r == CL_NOTFOUND ? CL_OK : r;
}

int
store_list_owed(struct store *s, const char *agent_id,
    store_revocation_fn fn, void *arg)
{
	return store_list_by(s, ST_REVOCATION_OWED, agent_id, fn, arg);
}

int
store_list_revocations(struct store *s, const char *lease_id,
    store_revocation_fn fn, void *arg)
{
	return store_list_by(s, ST_REVOCATION_LIST, lease_id, fn, arg);
}

int
store_del_old_revocations(struct store *s, unsigned int max)
{
	return store_run(s, ST_REVOCATION_OLD, NULL, "i", (int64_t)max);
}

/* ------------------------------------------------- administrative state */

int
store_save_admin(struct store *s, const char *agent_id, int state,
    const char *reason, int64_t at, const char *actor)
{
	return store_run(s, ST_ADMIN_SAVE, NULL, "tdtTt", agent_id, state,
	    reason, at, actor);
}

int
store_list_admin(struct store *s, store_admin_fn fn, void *arg)
{
	sqlite3_stmt *st;
	char *id;
	int r;

	if ((r = store_bind(s, ST_ADMIN_LIST, &st, "")) != 0)
		return r;
	while ((r = store_step(s, st)) == CL_OK) {
		if ((id = store_get_text(st, 0, &r)) != NULL)
			r = fn(id, sqlite3_column_int(st, 1), arg);
		free(id);
		if (r != 0)
			break;
	}
	(void)sqlite3_reset(st);
	return r == CL_NOTFOUND ? CL_OK : r;
}
