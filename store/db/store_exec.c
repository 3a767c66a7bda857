/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Executor rows: what is known of a device between connections.  Runs in the
 * monitor.  Versions and names in them came from the device: the network
 * process bounded and cleaned them, the monitor checked again.
 */
#include <stdlib.h>
#include <string.h>

#include "common/base/limits.h"
#include "common/msg/msgcat.h"
#include "store_int.h"

void
store_executor_clear(struct store_executor *x)
{
	free(x->agent_id);
	free(x->reason);
	free(x->agent_version);
	free(x->os);
	free(x->arch);
	free(x->caps);
	memset(x, 0, sizeof(*x));
}

static int
store_get_caps(struct store *s, sqlite3_stmt *st, int col,
    struct store_executor *x)
{
	int len = sqlite3_column_bytes(st, col);
	const void *p = sqlite3_column_blob(st, col);

	if (len < 0 || len > MAX_CAPS_LEN)
		return store_fail(s, SQLITE_CORRUPT);
	if (len == 0)
		return CL_OK;
	if (p == NULL || (x->caps = malloc((size_t)len)) == NULL)
		return CL_NOMEM;
	memcpy(x->caps, p, (size_t)len);
	x->caps_len = (size_t)len;
	return CL_OK;
}

/* Column order: EXECUTOR_COLS. */
static int
store_get_executor(struct store *s, sqlite3_stmt *st,
    struct store_executor *x)
{
	int r = CL_OK;

	memset(x, 0, sizeof(*x));
	x->agent_id = store_get_text(st, 0, &r);
	x->status = sqlite3_column_int(st, 1);
	x->status_at = store_get_time(st, 2);
	x->reason = store_get_text(st, 3, &r);
	x->agent_version = store_get_text(st, 4, &r);
	x->agent_protocol = (unsigned int)sqlite3_column_int(st, 5);
	x->protocol = (unsigned int)sqlite3_column_int(st, 6);
	x->os = store_get_text(st, 7, &r);
	x->arch = store_get_text(st, 8, &r);
	if (r == CL_OK)
		r = store_get_caps(s, st, 9, x);
	if (r != CL_OK)
		store_executor_clear(x);
	return r;
}

int
store_save_executor(struct store *s, const struct store_executor *x)
{
	if (x->caps_len > MAX_CAPS_LEN)
		return CL_TOOBIG;
	return store_run(s, ST_EXECUTOR_SAVE, NULL, "tdTttddttb", x->agent_id,
	    x->status, x->status_at, x->reason, x->agent_version,
	    (int)x->agent_protocol, (int)x->protocol, x->os, x->arch,
	    (const void *)x->caps, x->caps_len);
}

int
store_save_status(struct store *s, const char *agent_id, int status,
    int64_t at, const char *reason)
{
	int n, r;

	r = store_run(s, ST_EXECUTOR_STATUS, &n, "tdTt", agent_id, status, at,
	    reason);
	return r == CL_OK && n != 1 ? CL_NOTFOUND : r;
}

int
store_find_executor(struct store *s, const char *agent_id,
    struct store_executor *x)
{
	sqlite3_stmt *st;
	int r;

	memset(x, 0, sizeof(*x));
	if ((r = store_bind(s, ST_EXECUTOR_FIND, &st, "t", agent_id)) != 0 ||
	    (r = store_step(s, st)) != 0)
		return r;
	r = store_get_executor(s, st, x);
	(void)sqlite3_reset(st);
	return r;
}

int
store_list_executors(struct store *s, store_executor_fn fn, void *arg)
{
	struct store_executor x;
	sqlite3_stmt *st;
	int r;

	if ((r = store_bind(s, ST_EXECUTOR_LIST, &st, "")) != 0)
		return r;
	while ((r = store_step(s, st)) == CL_OK) {
		if ((r = store_get_executor(s, st, &x)) == CL_OK) {
			r = fn(&x, arg);
			store_executor_clear(&x);
		}
		if (r != 0)
			break;
	}
	(void)sqlite3_reset(st);
	return r == CL_NOTFOUND ? CL_OK : r;
}

int
store_reset_executors(struct store *s, int64_t at, const char *reason)
{
	return store_run(s, ST_EXECUTOR_RESET, NULL, "dTt", AGENT_OFFLINE, at,
	    reason);
}
