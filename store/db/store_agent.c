/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Enrollments and agents: who may come, and who came.  Runs in the monitor,
 * or in cloop-enroll while none runs.  Only hashes of secrets are here.
 * Names and labels were bounded and checked by token_mint.
 */
#include <stdlib.h>
#include <string.h>

#include "store_int.h"

void
store_enrollment_clear(struct store_enrollment *e)
{
	free(e->id);
	free(e->name);
	free(e->secret_hash);
	free(e->workdir_root);
	store_labels_clear(&e->labels);
	free(e->created_by);
	free(e->redeemed_agent_id);
	free(e->redeemed_peer);
	memset(e, 0, sizeof(*e));
}

void
store_agent_clear(struct store_agent *a)
{
	free(a->agent_id);
	free(a->name);
	free(a->secret_hash);
	free(a->workdir_root);
	store_labels_clear(&a->labels);
	free(a->enrollment_id);
	memset(a, 0, sizeof(*a));
}

static int
store_get_labels(struct store *s, sqlite3_stmt *st, int col,
    struct store_labels *l)
{
	const char *text = (const char *)sqlite3_column_text(st, col);
	int r;

	r = store_labels_parse(text == NULL ? "" : text, l);
	return r == CL_OK || r == CL_NOMEM ? r :
	    store_fail(s, SQLITE_CORRUPT);
}

/* Column order: ENROLLMENT_COLS. */
static int
store_get_enrollment(struct store *s, sqlite3_stmt *st,
    struct store_enrollment *e)
{
	int r = CL_OK;

	memset(e, 0, sizeof(*e));
	e->id = store_get_text(st, 0, &r);
	e->name = store_get_text(st, 1, &r);
	e->secret_hash = store_get_text(st, 2, &r);
	e->workdir_root = store_get_text(st, 3, &r);
	e->created_at = store_get_time(st, 5);
	e->expires_at = store_get_time(st, 6);
	e->created_by = store_get_text(st, 7, &r);
	e->redeemed_at = store_get_time(st, 8);
	e->redeemed_agent_id = store_get_text(st, 9, &r);
	e->redeemed_peer = store_get_text(st, 10, &r);
	e->revoked_at = store_get_time(st, 11);
	if (r == CL_OK)
		r = store_get_labels(s, st, 4, &e->labels);
	if (r != CL_OK)
		store_enrollment_clear(e);
	return r;
}

/* Column order: AGENT_COLS. */
static int
store_get_agent(struct store *s, sqlite3_stmt *st, struct store_agent *a)
{
	int r = CL_OK;

	memset(a, 0, sizeof(*a));
	a->agent_id = store_get_text(st, 0, &r);
	a->name = store_get_text(st, 1, &r);
	a->secret_hash = store_get_text(st, 2, &r);
	a->workdir_root = store_get_text(st, 3, &r);
	a->created_at = store_get_time(st, 5);
	a->last_seen = store_get_time(st, 6);
	a->revoked_at = store_get_time(st, 7);
	a->enrollment_id = store_get_text(st, 8, &r);
	a->confirmed_at = store_get_time(st, 9);
	if (r == CL_OK)
		r = store_get_labels(s, st, 4, &a->labels);
	if (r != CL_OK)
		store_agent_clear(a);
	return r;
}

int
store_add_enrollment(struct store *s, const struct store_enrollment *e)
{
	char *labels;
	int r;

	if ((r = store_labels_format(&e->labels, &labels)) != 0)
		return r;
	r = store_run(s, ST_ENROLLMENT_ADD, NULL, "tttttiTt", e->id, e->name,
	    e->secret_hash, e->workdir_root, labels, e->created_at,
	    e->expires_at, e->created_by);
	free(labels);
	return r;
}

int
store_find_enrollment(struct store *s, const char *id,
    struct store_enrollment *e)
{
	sqlite3_stmt *st;
	int r;

	memset(e, 0, sizeof(*e));
	if ((r = store_bind(s, ST_ENROLLMENT_FIND, &st, "t", id)) != 0 ||
	    (r = store_step(s, st)) != 0)
		return r;
	r = store_get_enrollment(s, st, e);
	(void)sqlite3_reset(st);
	return r;
}

int
store_list_enrollments(struct store *s, int64_t outstanding_at,
    store_enrollment_fn fn, void *arg)
{
	struct store_enrollment e;
	sqlite3_stmt *st;
	int r;

	if (outstanding_at != 0)
		r = store_bind(s, ST_ENROLLMENT_OUTSTANDING, &st, "i",
		    outstanding_at);
	else
		r = store_bind(s, ST_ENROLLMENT_LIST, &st, "");
	if (r != 0)
		return r;
	while ((r = store_step(s, st)) == CL_OK) {
		if ((r = store_get_enrollment(s, st, &e)) == CL_OK) {
			r = fn(&e, arg);
			store_enrollment_clear(&e);
		}
		if (r != 0)
			break;
	}
	(void)sqlite3_reset(st);
	return r == CL_NOTFOUND ? CL_OK : r;
}

int
store_redeem_enrollment(struct store *s, const char *id,
    const char *agent_id, const char *peer, int64_t at)
{
	int n, r;

	r = store_run(s, ST_ENROLLMENT_REDEEM, &n, "titt", id, at, agent_id,
	    peer);
	return r == CL_OK && n != 1 ? CL_EXISTS : r;
}

int
store_revoke_enrollment(struct store *s, const char *id, int64_t at)
{
	int n, r;

	r = store_run(s, ST_ENROLLMENT_REVOKE, &n, "ti", id, at);
	return r == CL_OK && n != 1 ? CL_NOTFOUND : r;
}

int
store_add_agent(struct store *s, const struct store_agent *a)
{
	char *labels;
	int r;

	if ((r = store_labels_format(&a->labels, &labels)) != 0)
		return r;
	r = store_run(s, ST_AGENT_ADD, NULL, "tttttiTt", a->agent_id, a->name,
	    a->secret_hash, a->workdir_root, labels, a->created_at,
	    a->last_seen, a->enrollment_id);
	free(labels);
	return r;
}

int
store_find_agent(struct store *s, const char *agent_id,
    struct store_agent *a)
{
	sqlite3_stmt *st;
	int r;

	memset(a, 0, sizeof(*a));
	if ((r = store_bind(s, ST_AGENT_FIND, &st, "t", agent_id)) != 0 ||
	    (r = store_step(s, st)) != 0)
		return r;
	r = store_get_agent(s, st, a);
	(void)sqlite3_reset(st);
	return r;
}

int
store_list_agents(struct store *s, store_agent_fn fn, void *arg)
{
	struct store_agent a;
	sqlite3_stmt *st;
	int r;

	if ((r = store_bind(s, ST_AGENT_LIST, &st, "")) != 0)
		return r;
	while ((r = store_step(s, st)) == CL_OK) {
		if ((r = store_get_agent(s, st, &a)) == CL_OK) {
			r = fn(&a, arg);
			store_agent_clear(&a);
		}
		if (r != 0)
			break;
	}
	(void)sqlite3_reset(st);
	return r == CL_NOTFOUND ? CL_OK : r;
}

int
store_revoke_agent(struct store *s, const char *agent_id, int64_t at)
{
	int n, r;

	r = store_run(s, ST_AGENT_REVOKE, &n, "ti", agent_id, at);
	return r == CL_OK && n != 1 ? CL_NOTFOUND : r;
}

int
store_save_seen(struct store *s, const char *agent_id, int64_t at)
{
	int n, r;

	r = store_run(s, ST_AGENT_SEEN, &n, "ti", agent_id, at);
	return r == CL_OK && n != 1 ? CL_NOTFOUND : r;
}
