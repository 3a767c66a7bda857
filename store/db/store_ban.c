/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Names that may not come back, and agents that are forgotten (BC-42).  Runs
 * in the monitor, or in cloop-enroll while none runs.  A ban outlives the
 * agents it was said of: it is about the name.
 */
#include <stdlib.h>
#include <string.h>

#include "store_int.h"

void
store_ban_clear(struct store_ban *b)
{
	free(b->name);
	free(b->actor);
	free(b->reason);
	memset(b, 0, sizeof(*b));
}

/* Column order: BAN_COLS. */
static int
store_get_ban(sqlite3_stmt *st, struct store_ban *b)
{
	int r = CL_OK;

	memset(b, 0, sizeof(*b));
	b->name = store_get_text(st, 0, &r);
	b->at = store_get_time(st, 1);
	b->actor = store_get_text(st, 2, &r);
	b->reason = store_get_text(st, 3, &r);
	if (r != CL_OK)
		store_ban_clear(b);
	return r;
}

int
store_add_ban(struct store *s, const struct store_ban *b)
{
	return store_run(s, ST_BAN_ADD, NULL, "titt", b->name, b->at,
	    b->actor, b->reason);
}

int
store_del_ban(struct store *s, const char *name)
{
	int n, r;

	r = store_run(s, ST_BAN_DEL, &n, "t", name);
	return r == CL_OK && n != 1 ? CL_NOTFOUND : r;
}

int
store_find_ban(struct store *s, const char *name, struct store_ban *b)
{
	sqlite3_stmt *st;
	int r;

	memset(b, 0, sizeof(*b));
	if ((r = store_bind(s, ST_BAN_FIND, &st, "t", name)) != 0 ||
	    (r = store_step(s, st)) != 0)
		return r;
	r = store_get_ban(st, b);
	(void)sqlite3_reset(st);
	return r;
}

int
store_list_bans(struct store *s, store_ban_fn fn, void *arg)
{
	struct store_ban b;
	sqlite3_stmt *st;
	int r;

	if ((r = store_bind(s, ST_BAN_LIST, &st, "")) != 0)
		return r;
	while ((r = store_step(s, st)) == CL_OK) {
		if ((r = store_get_ban(st, &b)) == CL_OK) {
			r = fn(&b, arg);
			store_ban_clear(&b);
		}
		if (r != 0)
			break;
	}
	(void)sqlite3_reset(st);
	return r == CL_NOTFOUND ? CL_OK : r;
}

int
store_revoke_name(struct store *s, const char *name, int64_t at,
    unsigned int *np)
{
	int n = 0, r = store_run(s, ST_AGENT_REVOKE_NAME, &n, "ti", name, at);

	*np = r == CL_OK && n > 0 ? (unsigned int)n : 0;
	return r;
}

int
store_del_agent(struct store *s, const char *agent_id)
{
	/* What refers to a row goes before the row. */
	static const enum store_stmt steps[] = {
		ST_FORGET_HANDLES, ST_FORGET_LEASES, ST_FORGET_REVOCATIONS,
		ST_FORGET_ADMIN, ST_FORGET_EXECUTOR, ST_FORGET_AGENT
	};
	size_t i;
	int r = CL_OK;

	for (i = 0; r == CL_OK && i < sizeof(steps) / sizeof(steps[0]); i++)
		r = store_run(s, steps[i], NULL, "t", agent_id);
	return r;
}

int
store_confirm_agent(struct store *s, const char *agent_id, int64_t at)
{
	int n, r;

	r = store_run(s, ST_AGENT_CONFIRM, &n, "ti", agent_id, at);
	return r == CL_OK && n != 1 ? CL_NOTFOUND : r;
}
