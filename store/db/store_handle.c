/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Handle rows: what was dispatched, and how it ended.  Runs in the monitor.
 * No spec and no value of a secret is here.  Texts that came from the device
 * (error, outcome) were cut to MAX_ERROR_TEXT_LEN and cleaned before they
 * reach this file.
 */
#include <bsd/string.h>
#include <stdlib.h>
#include <string.h>

#include "store_int.h"

void
store_handle_clear(struct store_handle *h)
{
	free(h->handle_id);
	free(h->agent_id);
	free(h->name);
	free(h->created_by);
	free(h->project_path);
	free(h->task_id);
	free(h->image);
	free(h->meta);
	free(h->secrets);
	free(h->outcome);
	free(h->error);
	memset(h, 0, sizeof(*h));
}

static void
store_get_digest(sqlite3_stmt *st, int col, char dst[65])
{
	const unsigned char *text = sqlite3_column_text(st, col);

	strlcpy(dst, text != NULL ? (const char *)text : "", 65);
}

/* Column order: HANDLE_COLS. */
static int
store_get_handle(sqlite3_stmt *st, struct store_handle *h)
{
	int r = CL_OK;

	memset(h, 0, sizeof(*h));
	h->number = (uint64_t)sqlite3_column_int64(st, 0);
	h->handle_id = store_get_text(st, 1, &r);
	h->agent_id = store_get_text(st, 2, &r);
	h->name = store_get_text(st, 3, &r);
	h->created_by = store_get_text(st, 4, &r);
	h->project_path = store_get_text(st, 5, &r);
	h->task_id = store_get_text(st, 6, &r);
	h->image = store_get_text(st, 7, &r);
	h->meta = store_get_text(st, 8, &r);
	h->secrets = store_get_text(st, 9, &r);
	h->dispatched_at = store_get_time(st, 10);
	h->state = sqlite3_column_int(st, 11);
	h->pid = sqlite3_column_int64(st, 12);
	h->has_exit_code = sqlite3_column_type(st, 13) != SQLITE_NULL;
	h->exit_code = sqlite3_column_int64(st, 13);
	h->outcome = store_get_text(st, 14, &r);
	h->error = store_get_text(st, 15, &r);
	h->started_at = store_get_time(st, 16);
	h->finished_at = store_get_time(st, 17);
	h->closed_at = store_get_time(st, 18);
	h->received = (uint64_t)sqlite3_column_int64(st, 19);
	h->log_bytes = (uint64_t)sqlite3_column_int64(st, 20);
	h->gapped = sqlite3_column_int(st, 21);
	h->updated_at = store_get_time(st, 22);
	store_get_digest(st, 23, h->log_sha256);
	h->log_modified_at = store_get_time(st, 24);
	h->index_bytes = (uint64_t)sqlite3_column_int64(st, 25);
	store_get_digest(st, 26, h->index_sha256);
	h->index_modified_at = store_get_time(st, 27);
	if (r != CL_OK)
		store_handle_clear(h);
	return r;
}

int
store_add_handle(struct store *s, struct store_handle *h)
{
	int r;

	h->number = 0;
	r = store_run(s, ST_HANDLE_ADD, NULL, "tttttttttidi", h->handle_id,
	    h->agent_id, h->name, h->created_by, h->project_path, h->task_id,
	    h->image, h->meta == NULL ? "{}" : h->meta, h->secrets,
	    h->dispatched_at, h->state, h->pid);
	if (r == CL_OK)
		h->number = (uint64_t)sqlite3_last_insert_rowid(s->db);
	return r;
}

int
store_find_handle(struct store *s, const char *handle_id,
    struct store_handle *h)
{
	sqlite3_stmt *st;
	int r;

	memset(h, 0, sizeof(*h));
	if ((r = store_bind(s, ST_HANDLE_FIND, &st, "t", handle_id)) != 0 ||
	    (r = store_step(s, st)) != 0)
		return r;
	r = store_get_handle(st, h);
	(void)sqlite3_reset(st);
	return r;
}

/* The update found no open row: say whether there is a closed one. */
static int
store_check_closed(struct store *s, uint64_t number)
{
	sqlite3_stmt *st;
	int r;

	if ((r = store_bind(s, ST_HANDLE_FIND_NUMBER, &st, "i",
	    (int64_t)number)) != 0 || (r = store_step(s, st)) != 0)
		return r;
	(void)sqlite3_reset(st);
	return CL_STATE;
}

int
store_save_handle(struct store *s, const struct store_handle *h)
{
	int n, r;

	r = store_run(s, ST_HANDLE_SAVE, &n, "ididittTTTiidi",
	    (int64_t)h->number, h->state, h->pid, h->has_exit_code,
	    h->exit_code, h->outcome, h->error, h->started_at,
	    h->finished_at, h->closed_at, (int64_t)h->received,
	    (int64_t)h->log_bytes, h->gapped, h->updated_at);
	return r == CL_OK && n != 1 ? store_check_closed(s, h->number) : r;
}

int
store_save_progress(struct store *s, uint64_t number, uint64_t received,
    uint64_t log_bytes, int gapped)
{
	int n, r;

	r = store_run(s, ST_HANDLE_PROGRESS, &n, "iiid", (int64_t)number,
	    (int64_t)received, (int64_t)log_bytes, gapped);
	return r == CL_OK && n != 1 ? CL_NOTFOUND : r;
}

int
store_save_seal(struct store *s, const struct store_handle *h)
{
	int n, r;

	r = store_run(s, ST_HANDLE_SEAL, &n, "iitTitT", (int64_t)h->number,
	    (int64_t)h->log_bytes, h->log_sha256, h->log_modified_at,
	    (int64_t)h->index_bytes, h->index_sha256, h->index_modified_at);
	return r == CL_OK && n != 1 ? CL_NOTFOUND : r;
}

int
store_save_handle_secrets(struct store *s, uint64_t number,
    const char *secrets)
{
	int n, r;

	r = store_run(s, ST_HANDLE_SECRETS, &n, "it", (int64_t)number,
	    secrets);
	return r == CL_OK && n != 1 ? CL_NOTFOUND : r;
}

static int
store_walk_handles(struct store *s, sqlite3_stmt *st, store_handle_fn fn,
    void *arg)
{
	struct store_handle h;
	int r;

	while ((r = store_step(s, st)) == CL_OK) {
		if ((r = store_get_handle(st, &h)) == CL_OK) {
			r = fn(&h, arg);
			store_handle_clear(&h);
		}
		if (r != 0)
			break;
	}
	(void)sqlite3_reset(st);
	return r == CL_NOTFOUND ? CL_OK : r;
}

int
store_list_handles(struct store *s, const char *agent_id, int open_only,
    store_handle_fn fn, void *arg)
{
	sqlite3_stmt *st;
	int r;

	if (agent_id == NULL)
		r = store_bind(s, open_only ? ST_HANDLE_LIST_OPEN :
		    ST_HANDLE_LIST, &st, "");
	else
		r = store_bind(s, open_only ? ST_HANDLE_LIST_AGENT_OPEN :
		    ST_HANDLE_LIST_AGENT, &st, "t", agent_id);
	return r != 0 ? r : store_walk_handles(s, st, fn, arg);
}

int
store_del_handle(struct store *s, uint64_t number)
{
	return store_run(s, ST_HANDLE_DEL, NULL, "i", (int64_t)number);
}

struct store_retention {
	struct store *s;
	store_handle_fn fn;
	void *arg;
};

static int
store_on_old_handle(const struct store_handle *h, void *arg)
{
	struct store_retention *rt = arg;
	int r;

	if (rt->fn != NULL && (r = rt->fn(h, rt->arg)) != 0)
		return r;
	return store_del_handle(rt->s, h->number);
}

int
store_del_old_handles(struct store *s, const char *agent_id,
    unsigned int keep, int64_t before, store_handle_fn fn, void *arg)
{
	struct store_retention rt = { s, fn, arg };
	sqlite3_stmt *st;
	int r;

	if ((r = store_bind(s, ST_HANDLE_OLD, &st, "tiT", agent_id,
	    (int64_t)keep, before)) != 0)
		return r;
	return store_walk_handles(s, st, store_on_old_handle, &rt);
}

int
store_save_handle_meta(struct store *s, uint64_t number, const char *meta)
{
	int n, r;

	r = store_run(s, ST_HANDLE_META, &n, "it", (int64_t)number, meta);
	return r == CL_OK && n != 1 ? CL_NOTFOUND : r;
}
