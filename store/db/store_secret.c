/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Secrets at rest.  Runs in the monitor, and in cloop-keygen for a rotation
 * while no monitor runs.  What is read back is authenticated before a byte
 * of it is used, and opened only into a struct secret.
 */
#include "store_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bsd/stdlib.h>

#include "store_secret.h"
#include "keyfile.h"
#include "seal.h"

#define SECRET_AAD_MAX (STORE_ID_MAX + 24)

void
store_make_id(const char *prefix, char dst[STORE_ID_MAX])
{
	uint8_t raw[12];
	char hex[2 * sizeof(raw) + 1];

	arc4random_buf(raw, sizeof(raw));
	util_format_hex(raw, sizeof(raw), hex);
	snprintf(dst, STORE_ID_MAX, "%s%s", prefix, hex);
}

void
store_secret_clear(struct store_secret *row)
{
	free(row->id);
	free(row->name);
	free(row->owner);
	free(row->kind);
	free(row->names);
	free(row->created_by);
	memset(row, 0, sizeof(*row));
}

void
store_keks_clear(struct store_keks *keks)
{
	secret_clear(&keks->key[0]);
	secret_clear(&keks->key[1]);
	keks->n = 0;
}

int
store_load_keks(const char *key_dir, struct store_keks *keks, char *err,
    size_t errlen)
{
	char why[512];
	int r;

	memset(keks, 0, sizeof(*keks));
	if ((r = seal_load_kek(key_dir, &keks->key[0], err, errlen)) != CL_OK)
		return r;
	keks->n = 1;
	/* A rotation that was cut short left its new key (keygen_rotate.c):
	 * some secrets may be under it already. */
	r = keyfile_load_raw(key_dir, KEYFILE_KEK_NEXT, &keks->key[1], why,
	    sizeof(why));
	if (r == CL_OK)
		keks->n = 2;
	else if (r != CL_NOTFOUND) {
		snprintf(err, errlen, "%s", why);
		store_keks_clear(keks);
		return r;
	}
	return CL_OK;
}

/* Column order: SECRET_COLS. */
static int
store_get_secret(sqlite3_stmt *st, struct store_secret *row)
{
	int r = CL_OK;

	memset(row, 0, sizeof(*row));
	row->id = store_get_text(st, 0, &r);
	row->name = store_get_text(st, 1, &r);
	row->owner = store_get_text(st, 2, &r);
	row->kind = store_get_text(st, 3, &r);
	row->version = sqlite3_column_int64(st, 4);
	row->names = store_get_text(st, 5, &r);
	row->created_at = store_get_time(st, 6);
	row->created_by = store_get_text(st, 7, &r);
	row->updated_at = store_get_time(st, 8);
	if (r != CL_OK)
		store_secret_clear(row);
	return r;
}

static int
store_get_one_secret(struct store *s, sqlite3_stmt *st,
    struct store_secret *row)
{
	int r;

	if ((r = store_step(s, st)) != CL_OK)
		return r;
	r = store_get_secret(st, row);
	(void)sqlite3_reset(st);
	return r;
}

int
store_find_secret(struct store *s, const char *name, const char *owner,
    struct store_secret *row)
{
	sqlite3_stmt *st;
	int r;

	memset(row, 0, sizeof(*row));
	if ((r = store_bind(s, ST_SECRET_FIND, &st, "tt", name, owner)) != 0)
		return r;
	return store_get_one_secret(s, st, row);
}

int
store_find_secret_id(struct store *s, const char *id,
    struct store_secret *row)
{
	sqlite3_stmt *st;
	int r;

	memset(row, 0, sizeof(*row));
	if ((r = store_bind(s, ST_SECRET_FIND_ID, &st, "t", id)) != 0)
		return r;
	return store_get_one_secret(s, st, row);
}

int
store_list_secrets(struct store *s, store_secret_fn fn, void *arg)
{
	struct store_secret row;
	sqlite3_stmt *st;
	int r;

	if ((r = store_bind(s, ST_SECRET_LIST, &st, "")) != 0)
		return r;
	while ((r = store_step(s, st)) == CL_OK) {
		if ((r = store_get_secret(st, &row)) == CL_OK) {
			r = fn(&row, arg);
			store_secret_clear(&row);
		}
		if (r != 0)
			break;
	}
	(void)sqlite3_reset(st);
	return r == CL_NOTFOUND ? CL_OK : r;
}

/* ---------------------------------------------------------------- sealing */

/* A sealed version opens only as itself. */
static void
store_format_aad(const char *id, int64_t version, char dst[SECRET_AAD_MAX])
{
	snprintf(dst, SECRET_AAD_MAX, "%s/%lld", id, (long long)version);
}

static int
store_add_version(struct store *s, const char *id, int64_t version,
    const struct store_keks *keks, const struct secret *value)
{
	struct secret key = SECRET_INIT;
	uint8_t *wrapped = NULL, *sealed = NULL;
	char aad[SECRET_AAD_MAX];
	size_t wrapped_len, sealed_len;
	int r;

	if (keks->n == 0)
		return CL_NOTFOUND;
	store_format_aad(id, version, aad);
	if ((r = seal_new_key(&key)) == CL_OK &&
	    (r = seal_put(&key, aad, value, &sealed, &sealed_len)) == CL_OK &&
	    (r = seal_put_key(&keks->key[keks->n - 1], aad, &key, &wrapped,
	    &wrapped_len)) == CL_OK)
		r = store_run(s, ST_VERSION_ADD, NULL, "tibb", id, version,
		    (const void *)wrapped, wrapped_len,
		    (const void *)sealed, sealed_len);
	secret_clear(&key);
	free(wrapped);
	free(sealed);
	return r;
}

static int
store_bump_secret(struct store *s, struct store_secret *row,
    const struct store_secret *old)
{
	int n, r;

	if (strcmp(old->kind, row->kind) != 0)
		return CL_STATE;
	if ((row->id = strdup(old->id)) == NULL)
		return CL_NOMEM;
	row->version = old->version + 1;
	row->created_at = old->created_at;
	r = store_run(s, ST_SECRET_BUMP, &n, "ttT", row->id, row->names,
	    row->updated_at);
	return r == CL_OK && n != 1 ? CL_NOTFOUND : r;
}

int
store_save_secret(struct store *s, struct store_secret *row,
    const struct store_keks *keks, const struct secret *value)
{
	struct store_secret old;
	char id[STORE_ID_MAX];
	int r;

	if (keks->n == 0)
		return CL_NOTFOUND;
	r = store_find_secret(s, row->name, row->owner, &old);
	if (r == CL_OK) {
		r = store_bump_secret(s, row, &old);
		store_secret_clear(&old);
	} else if (r == CL_NOTFOUND) {
		store_make_id("sec_", id);
		if ((row->id = strdup(id)) == NULL)
			return CL_NOMEM;
		row->version = 1;
		row->created_at = row->updated_at;
		r = store_run(s, ST_SECRET_ADD, NULL, "tttttTt", row->id,
		    row->name, row->owner, row->kind, row->names,
		    row->updated_at, row->created_by);
	}
	if (r != CL_OK)
		return r;
	return store_add_version(s, row->id, row->version, keks, value);
}

/* Copy of a blob column. */
static int
store_get_blob(sqlite3_stmt *st, int col, uint8_t **datap, size_t *lenp)
{
	const void *p = sqlite3_column_blob(st, col);
	int len = sqlite3_column_bytes(st, col);

	*datap = NULL;
	*lenp = 0;
	if (p == NULL || len <= 0)
		return CL_FORMAT;
	if ((*datap = malloc((size_t)len)) == NULL)
		return CL_NOMEM;
	memcpy(*datap, p, (size_t)len);
	*lenp = (size_t)len;
	return CL_OK;
}

static int
store_open_key(const struct store_keks *keks, const char *aad,
    const uint8_t *wrapped, size_t len, struct secret *key)
{
	size_t i;
	int r = CL_NOTFOUND;

	for (i = 0; i < keks->n; i++)
		if ((r = seal_get_key(&keks->key[i], aad, wrapped, len,
		    key)) != CL_DENIED)
			break;
	return r == CL_NOTFOUND ? CL_DENIED : r;
}

int
store_load_secret(struct store *s, const struct store_keks *keks,
    const char *id, int64_t version, struct secret *value)
{
	struct secret key = SECRET_INIT;
	uint8_t *wrapped = NULL, *sealed = NULL;
	char aad[SECRET_AAD_MAX];
	size_t wrapped_len = 0, sealed_len = 0;
	sqlite3_stmt *st;
	int r;

	if ((r = store_bind(s, ST_VERSION_FIND, &st, "ti", id,
	    version)) != 0 || (r = store_step(s, st)) != CL_OK)
		return r;
	if ((r = store_get_blob(st, 0, &wrapped, &wrapped_len)) == CL_OK)
		r = store_get_blob(st, 1, &sealed, &sealed_len);
	(void)sqlite3_reset(st);
	store_format_aad(id, version, aad);
	if (r == CL_OK)
		r = store_open_key(keks, aad, wrapped, wrapped_len, &key);
	if (r == CL_OK)
		r = seal_get(&key, aad, sealed, sealed_len, value);
	secret_clear(&key);
	free(wrapped);
	free(sealed);
	return r;
}

/* ------------------------------------------------------------- the way out */

int
store_del_secret(struct store *s, const struct store_secret *row, int64_t at,
    const char *by, const char *cause, const char *reason)
{
	int n, r;

	if ((r = store_run(s, ST_SECRET_TOMBSTONE, NULL, "ttttTttt", row->id,
	    row->name, row->owner, row->kind, at, by, cause, reason)) != 0)
		return r;
	/* Its versions go with it. */
	r = store_run(s, ST_SECRET_DEL, &n, "t", row->id);
	return r == CL_OK && n != 1 ? CL_NOTFOUND : r;
}

int
store_del_old_versions(struct store *s)
{
	return store_run(s, ST_VERSION_OLD, NULL, "");
}

/* One data key: CL_OK when it is under `to` now. */
static int
store_rewrap_one(struct store *s, const struct secret *from,
    const struct secret *to, sqlite3_stmt *st, unsigned int *np)
{
	struct secret key = SECRET_INIT;
	uint8_t *wrapped = NULL, *again = NULL;
	char aad[SECRET_AAD_MAX], *id;
	int64_t version = sqlite3_column_int64(st, 1);
	size_t len, again_len;
	int r = CL_OK;

	if ((id = store_get_text(st, 0, &r)) == NULL ||
	    (r = store_get_blob(st, 2, &wrapped, &len)) != CL_OK) {
		free(id);
		return r;
	}
	store_format_aad(id, version, aad);
	if ((r = seal_get_key(to, aad, wrapped, len, &key)) == CL_DENIED &&
	    (r = seal_get_key(from, aad, wrapped, len, &key)) == CL_OK &&
	    (r = seal_put_key(to, aad, &key, &again, &again_len)) == CL_OK &&
	    (r = store_run(s, ST_VERSION_WRAP, NULL, "tib", id, version,
	    (const void *)again, again_len)) == CL_OK)
		(*np)++;
	secret_clear(&key);
	free(again);
	free(wrapped);
	free(id);
	return r;
}

int
store_rewrap_secrets(struct store *s, const struct secret *from,
    const struct secret *to, unsigned int *np)
{
	sqlite3_stmt *st;
	int r;

	*np = 0;
	if ((r = store_bind(s, ST_VERSION_LIST, &st, "")) != 0)
		return r;
	while ((r = store_step(s, st)) == CL_OK)
		if ((r = store_rewrap_one(s, from, to, st, np)) != CL_OK)
			break;
	(void)sqlite3_reset(st);
	return r == CL_NOTFOUND ? CL_OK : r;
}
