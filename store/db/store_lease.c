/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Grants, leases and their items.  Runs in the monitor.  Whether a grant may
 * be used and when a lease ends is decided above; here every change states
 * its condition and says whether it held.
 */
#include "store_int.h"

#include <stdlib.h>
#include <string.h>

#include "store_lease.h"

void
store_grant_clear(struct store_grant *g)
{
	free(g->id);
	free(g->secret_id);
	free(g->secret_name);
	free(g->subject);
	free(g->constraints);
	free(g->created_by);
	free(g->cause);
	free(g->superseded_by);
	memset(g, 0, sizeof(*g));
}

void
store_lease_clear(struct store_lease *l)
{
	free(l->id);
	free(l->agent_id);
	free(l->handle_id);
	free(l->project);
	free(l->actor);
	free(l->holder);
	free(l->cause);
	memset(l, 0, sizeof(*l));
}

void
store_item_clear(struct store_item *i)
{
	free(i->lease_id);
	free(i->grant_id);
	free(i->secret_id);
	free(i->name);
	free(i->kind);
	memset(i, 0, sizeof(*i));
}

/* A conditional update that found nothing to change. */
static int
store_check_changed(int r, int n)
{
	return r == CL_OK && n == 0 ? CL_STATE : r;
}

/* ----------------------------------------------------------------- grants */

/* Column order: GRANT_COLS. */
static int
store_get_grant(sqlite3_stmt *st, struct store_grant *g)
{
	int r = CL_OK;

	memset(g, 0, sizeof(*g));
	g->id = store_get_text(st, 0, &r);
	g->secret_id = store_get_text(st, 1, &r);
	g->secret_name = store_get_text(st, 2, &r);
	g->subject = store_get_text(st, 3, &r);
	g->constraints = store_get_text(st, 4, &r);
	g->created_at = store_get_time(st, 5);
	g->created_by = store_get_text(st, 6, &r);
	g->expires_at = store_get_time(st, 7);
	g->revoked_at = store_get_time(st, 8);
	g->cause = store_get_text(st, 9, &r);
	g->superseded_by = store_get_text(st, 10, &r);
	if (r != CL_OK)
		store_grant_clear(g);
	return r;
}

int
store_add_grant(struct store *s, const struct store_grant *g)
{
	return store_run(s, ST_GRANT_ADD, NULL, "tttttTtT", g->id,
	    g->secret_id, g->secret_name, g->subject, g->constraints,
	    g->created_at, g->created_by, g->expires_at);
}

int
store_find_grant(struct store *s, const char *id, struct store_grant *g)
{
	sqlite3_stmt *st;
	int r;

	memset(g, 0, sizeof(*g));
	if ((r = store_bind(s, ST_GRANT_FIND, &st, "t", id)) != 0 ||
	    (r = store_step(s, st)) != CL_OK)
		return r;
	r = store_get_grant(st, g);
	(void)sqlite3_reset(st);
	return r;
}

int
store_list_grants(struct store *s, const char *secret_id, store_grant_fn fn,
    void *arg)
{
	struct store_grant g;
	sqlite3_stmt *st;
	int r;

	if (secret_id == NULL)
		r = store_bind(s, ST_GRANT_LIST, &st, "");
	else
		r = store_bind(s, ST_GRANT_LIST_SECRET, &st, "t", secret_id);
	if (r != 0)
		return r;
	while ((r = store_step(s, st)) == CL_OK) {
		if ((r = store_get_grant(st, &g)) == CL_OK) {
			r = fn(&g, arg);
			store_grant_clear(&g);
		}
		if (r != 0)
			break;
	}
	(void)sqlite3_reset(st);
	return r == CL_NOTFOUND ? CL_OK : r;
}

int
store_revoke_grant(struct store *s, const char *id, int64_t at,
    const char *cause)
{
	int n, r;

	r = store_run(s, ST_GRANT_REVOKE, &n, "tTt", id, at, cause);
	return store_check_changed(r, n);
}

int
store_supersede_grant(struct store *s, const char *id, const char *by)
{
	int n, r;

	r = store_run(s, ST_GRANT_SUPERSEDE, &n, "tt", id, by);
	return store_check_changed(r, n);
}

/* ----------------------------------------------------------------- leases */

/* Column order: LEASE_COLS. */
static int
store_get_lease(sqlite3_stmt *st, struct store_lease *l)
{
	int r = CL_OK;

	memset(l, 0, sizeof(*l));
	l->id = store_get_text(st, 0, &r);
	l->agent_id = store_get_text(st, 1, &r);
	l->handle = (uint64_t)sqlite3_column_int64(st, 2);
	l->handle_id = store_get_text(st, 3, &r);
	l->project = store_get_text(st, 4, &r);
	l->actor = store_get_text(st, 5, &r);
	l->issued_at = store_get_time(st, 6);
	l->expires_at = store_get_time(st, 7);
	l->holder = store_get_text(st, 8, &r);
	l->state = sqlite3_column_int(st, 9);
	l->closed_at = store_get_time(st, 10);
	l->cause = store_get_text(st, 11, &r);
	if (r != CL_OK)
		store_lease_clear(l);
	return r;
}

int
store_add_lease(struct store *s, const struct store_lease *l)
{
	return store_run(s, ST_LEASE_ADD, NULL, "ttitttTTt", l->id,
	    l->agent_id, (int64_t)l->handle, l->handle_id, l->project,
	    l->actor, l->issued_at, l->expires_at, l->holder);
}

int
store_find_lease(struct store *s, const char *id, struct store_lease *l)
{
	sqlite3_stmt *st;
	int r;

	memset(l, 0, sizeof(*l));
	if ((r = store_bind(s, ST_LEASE_FIND, &st, "t", id)) != 0 ||
	    (r = store_step(s, st)) != CL_OK)
		return r;
	r = store_get_lease(st, l);
	(void)sqlite3_reset(st);
	return r;
}

static int
store_walk_leases(struct store *s, sqlite3_stmt *st, store_lease_fn fn,
    void *arg)
{
	struct store_lease l;
	int r;

	while ((r = store_step(s, st)) == CL_OK) {
		if ((r = store_get_lease(st, &l)) == CL_OK) {
			r = fn(&l, arg);
			store_lease_clear(&l);
		}
		if (r != 0)
			break;
	}
	(void)sqlite3_reset(st);
	return r == CL_NOTFOUND ? CL_OK : r;
}

int
store_list_leases(struct store *s, const char *agent_id, int live_only,
    store_lease_fn fn, void *arg)
{
	sqlite3_stmt *st;
	int r;

	if (agent_id == NULL)
		r = store_bind(s, live_only ? ST_LEASE_LIST_LIVE :
		    ST_LEASE_LIST, &st, "");
	else
		r = store_bind(s, live_only ? ST_LEASE_LIST_AGENT_LIVE :
		    ST_LEASE_LIST_AGENT, &st, "t", agent_id);
	return r != 0 ? r : store_walk_leases(s, st, fn, arg);
}

int
store_list_handle_leases(struct store *s, uint64_t handle, store_lease_fn fn,
    void *arg)
{
	sqlite3_stmt *st;
	int r;

	r = store_bind(s, ST_LEASE_LIST_HANDLE, &st, "i", (int64_t)handle);
	return r != 0 ? r : store_walk_leases(s, st, fn, arg);
}

int
store_list_expired_leases(struct store *s, int64_t now, store_lease_fn fn,
    void *arg)
{
	sqlite3_stmt *st;
	int r;

	r = store_bind(s, ST_LEASE_LIST_EXPIRED, &st, "i", now);
	return r != 0 ? r : store_walk_leases(s, st, fn, arg);
}

int
store_extend_lease(struct store *s, const char *id, const char *holder,
    int64_t now, int64_t expires_at)
{
	int n, r;

	r = store_run(s, ST_LEASE_EXTEND, &n, "ttii", id, holder, now,
	    expires_at);
	return store_check_changed(r, n);
}

int
store_shift_leases(struct store *s, int64_t by)
{
	return store_run(s, ST_LEASE_SHIFT, NULL, "i", by);
}

int
store_take_lease(struct store *s, const char *id, const char *from,
    const char *to)
{
	int n, r;

	r = store_run(s, ST_LEASE_TAKE, &n, "ttt", id, from, to);
	return store_check_changed(r, n);
}

int
store_close_lease(struct store *s, const char *id, int state, int64_t at,
    const char *cause)
{
	int n, r;

	r = store_run(s, ST_LEASE_CLOSE, &n, "tdTt", id, state, at, cause);
	return store_check_changed(r, n);
}

int
store_del_old_leases(struct store *s, int64_t before)
{
	return store_run(s, ST_LEASE_OLD, NULL, "i", before);
}

/* ------------------------------------------------------------------ items */

/* Column order: ITEM_COLS. */
static int
store_get_item(sqlite3_stmt *st, struct store_item *i)
{
	int r = CL_OK;

	memset(i, 0, sizeof(*i));
	i->lease_id = store_get_text(st, 0, &r);
	i->grant_id = store_get_text(st, 1, &r);
	i->secret_id = store_get_text(st, 2, &r);
	i->name = store_get_text(st, 3, &r);
	i->kind = store_get_text(st, 4, &r);
	i->version = sqlite3_column_int64(st, 5);
	i->mode = sqlite3_column_int64(st, 6);
	i->withdrawn_at = store_get_time(st, 7);
	if (r != CL_OK)
		store_item_clear(i);
	return r;
}

int
store_add_item(struct store *s, const struct store_item *i)
{
	return store_run(s, ST_ITEM_ADD, NULL, "tttttii", i->lease_id,
	    i->grant_id, i->secret_id, i->name, i->kind, i->version, i->mode);
}

static int
store_walk_items(struct store *s, sqlite3_stmt *st, store_item_fn fn,
    void *arg)
{
	struct store_item i;
	int r;

	while ((r = store_step(s, st)) == CL_OK) {
		if ((r = store_get_item(st, &i)) == CL_OK) {
			r = fn(&i, arg);
			store_item_clear(&i);
		}
		if (r != 0)
			break;
	}
	(void)sqlite3_reset(st);
	return r == CL_NOTFOUND ? CL_OK : r;
}

int
store_list_items(struct store *s, const char *lease_id, store_item_fn fn,
    void *arg)
{
	sqlite3_stmt *st;
	int r = store_bind(s, ST_ITEM_LIST, &st, "t", lease_id);

	return r != 0 ? r : store_walk_items(s, st, fn, arg);
}

int
store_list_grant_items(struct store *s, const char *grant_id,
    store_item_fn fn, void *arg)
{
	sqlite3_stmt *st;
	int r = store_bind(s, ST_ITEM_LIST_GRANT, &st, "t", grant_id);

	return r != 0 ? r : store_walk_items(s, st, fn, arg);
}

int
store_withdraw_item(struct store *s, const char *lease_id,
    const char *grant_id, int64_t at)
{
	int n, r;

	r = store_run(s, ST_ITEM_WITHDRAW, &n, "ttT", lease_id, grant_id, at);
	return store_check_changed(r, n);
}

int
store_save_item_version(struct store *s, const char *lease_id,
    const char *grant_id, int64_t version)
{
	int n, r;

	r = store_run(s, ST_ITEM_VERSION, &n, "tti", lease_id, grant_id,
	    version);
	return store_check_changed(r, n);
}
