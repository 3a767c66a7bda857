/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The audit chain.  Runs in the monitor, or in cloop-enroll while none runs.
 * hash = SHA-256(prev ‖ row), where prev is the hash of the row before (32
 * zero bytes for the first) and row is the canonical JSON
 *   {"seq":1,"at":"...","action":"...","actor":"...","decision":"...",
 *    "entity":"...","subject":"...","detail":{...}}
 * with the members in this order: anybody can compute it again from what
 * `cloopctl audit --json` prints.  Triggers keep the table append-only and
 * the chain gapless; the walk finds what was done behind their back.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include <bsd/string.h>

#include "common/base/utf8.h"
#include "common/json/canon.h"
#include "store_int.h"

#define AUDIT_VALUE_MAX 1024	/* bytes of one value that are kept */
#define AUDIT_HASH_LEN 32

void
store_audit_clear(struct store_audit *a)
{
	free(a->action);
	free(a->actor);
	free(a->decision);
	free(a->entity);
	free(a->subject);
	free(a->detail);
	memset(a, 0, sizeof(*a));
}

/*
 * A string value from anywhere: cut, and made UTF-8 without NUL, so that the
 * canonical writer takes it.
 */
static struct canon *
store_new_string(const char *text)
{
	uint8_t out[3 * (AUDIT_VALUE_MAX + 3) + 9];
	struct utf8_norm norm;
	size_t len, n;

	len = strlen(text);
	if (len > AUDIT_VALUE_MAX)
		len = utf8_cut(text, AUDIT_VALUE_MAX);
	utf8_norm_init(&norm);
	n = utf8_norm_put(&norm, text, len, out);
	n += utf8_norm_end(&norm, out + n);
	return canon_new_string((const char *)out, n);
}

static int
store_add_string(struct canon *o, const char *key, const char *text)
{
	struct canon *v;
	int r;

	if ((v = store_new_string(text == NULL ? "" : text)) == NULL)
		return CL_NOMEM;
	if ((r = canon_add_member(o, key, v)) != 0)
		canon_free(v);
	return r;
}

static int
store_add_seq(struct canon *o, uint64_t seq)
{
	struct canon *v;
	int r;

	if ((v = canon_new_int((int64_t)seq)) == NULL)
		return CL_NOMEM;
	if ((r = canon_add_member(o, "seq", v)) != 0)
		canon_free(v);
	return r;
}

/* The canonical row of the head comment.  detail must be a canonical
 * object: CL_FORMAT. */
static int
store_format_row(const struct store_audit *a, char **textp, size_t *lenp)
{
	char at[UTIL_TIME_MAX];
	struct canon *o, *detail = NULL;
	int r;

	*textp = NULL;
	util_format_time(a->at, at);
	if ((o = canon_new_object()) == NULL)
		return CL_NOMEM;
	if ((r = canon_parse(a->detail, strlen(a->detail), &detail)) != 0 ||
	    (r = canon_get_type(detail) == CANON_OBJECT ? CL_OK :
	    CL_FORMAT) != 0 ||
	    (r = store_add_seq(o, a->seq)) != 0 ||
	    (r = store_add_string(o, "at", at)) != 0 ||
	    (r = store_add_string(o, "action", a->action)) != 0 ||
	    (r = store_add_string(o, "actor", a->actor)) != 0 ||
	    (r = store_add_string(o, "decision", a->decision)) != 0 ||
	    (r = store_add_string(o, "entity", a->entity)) != 0 ||
	    (r = store_add_string(o, "subject", a->subject)) != 0 ||
	    (r = canon_add_member(o, "detail", detail)) != 0)
		goto out;
	detail = NULL;
	r = canon_format(o, textp, lenp);
 out:
	canon_free(detail);
	canon_free(o);
	return r;
}

static int
store_hash_row(const struct store_audit *a,
    const uint8_t prev[AUDIT_HASH_LEN], uint8_t hash[AUDIT_HASH_LEN])
{
	EVP_MD_CTX *md = NULL;
	char *row = NULL;
	size_t len;
	int r;

	if ((r = store_format_row(a, &row, &len)) != 0)
		return r;
	r = CL_CRYPTO;
	if ((md = EVP_MD_CTX_new()) == NULL ||
	    EVP_DigestInit_ex(md, EVP_sha256(), NULL) != 1 ||
	    EVP_DigestUpdate(md, prev, AUDIT_HASH_LEN) != 1 ||
	    EVP_DigestUpdate(md, row, len) != 1 ||
	    EVP_DigestFinal_ex(md, hash, NULL) != 1)
		goto out;
	r = CL_OK;
 out:
	EVP_MD_CTX_free(md);
	free(row);
	return r;
}

static int
store_get_hash(sqlite3_stmt *st, int col, uint8_t hash[AUDIT_HASH_LEN])
{
	if (sqlite3_column_bytes(st, col) != AUDIT_HASH_LEN)
		return CL_FORMAT;
	memcpy(hash, sqlite3_column_blob(st, col), AUDIT_HASH_LEN);
	return CL_OK;
}

/* seq and hash of the newest row as the head records them. */
static int
store_find_head(struct store *s, uint64_t *seqp, uint8_t hash[AUDIT_HASH_LEN])
{
	sqlite3_stmt *st;
	int r;

	*seqp = 0;
	if ((r = store_bind(s, ST_AUDIT_HEAD, &st, "")) != 0)
		return r;
	if ((r = store_step(s, st)) == CL_NOTFOUND)
		return store_fail(s, SQLITE_CORRUPT);
	if (r != 0)
		return r;
	*seqp = (uint64_t)sqlite3_column_int64(st, 0);
	r = store_get_hash(st, 1, hash);
	(void)sqlite3_reset(st);
	return r == CL_OK ? r : store_fail(s, SQLITE_CORRUPT);
}

int
store_find_audit_last(struct store *s, uint64_t *seqp)
{
	uint8_t hash[AUDIT_HASH_LEN];

	return store_find_head(s, seqp, hash);
}

/*
 * What the caller gave, in the form that is hashed and stored: the row that
 * is read back must hash to the same.
 */
static int
store_copy_clean(const char *text, char **copyp)
{
	struct canon *v;
	const char *s;
	size_t len;
	int r;

	*copyp = NULL;
	if ((v = store_new_string(text == NULL ? "" : text)) == NULL)
		return CL_NOMEM;
	if ((r = canon_get_string(v, &s, &len)) == 0 &&
	    (*copyp = strndup(s, len)) == NULL)
		r = CL_NOMEM;
	canon_free(v);
	return r;
}

static int
store_copy_audit(const struct store_audit *a, struct store_audit *row)
{
	int r;

	memset(row, 0, sizeof(*row));
	row->at = a->at;
	if ((r = store_copy_clean(a->action, &row->action)) != 0 ||
	    (r = store_copy_clean(a->actor, &row->actor)) != 0 ||
	    (r = store_copy_clean(a->decision, &row->decision)) != 0 ||
	    (r = store_copy_clean(a->entity, &row->entity)) != 0 ||
	    (r = store_copy_clean(a->subject, &row->subject)) != 0)
		return r;
	row->detail = strdup(a->detail == NULL ? "{}" : a->detail);
	return row->detail == NULL ? CL_NOMEM : CL_OK;
}

int
store_add_audit(struct store *s, const struct store_audit *a)
{
	uint8_t prev[AUDIT_HASH_LEN], hash[AUDIT_HASH_LEN];
	struct store_audit row;
	int r;

	/* In the turn before the head is read: nobody can come between. */
	if ((r = store_want_write(s)) != 0)
		return r;
	if ((r = store_copy_audit(a, &row)) != 0 ||
	    (r = store_find_head(s, &row.seq, prev)) != 0)
		goto out;
	row.seq++;
	if ((r = store_hash_row(&row, prev, hash)) != 0)
		goto out;
	r = store_run(s, ST_AUDIT_ADD, NULL, "iittttttbb", (int64_t)row.seq,
	    row.at, row.action, row.actor, row.decision, row.entity,
	    row.subject, row.detail, (const void *)prev, sizeof(prev),
	    (const void *)hash, sizeof(hash));
 out:
	store_audit_clear(&row);
	return r;
}

static int
store_format_detail(va_list ap, char **textp)
{
	const char *key, *value;
	struct canon *o;
	size_t len;
	int r = CL_OK;

	*textp = NULL;
	if ((o = canon_new_object()) == NULL)
		return CL_NOMEM;
	while (r == CL_OK && (key = va_arg(ap, const char *)) != NULL) {
		value = va_arg(ap, const char *);
		if (value != NULL && *value != '\0')
			r = store_add_string(o, key, value);
	}
	if (r == CL_OK)
		r = canon_format(o, textp, &len);
	canon_free(o);
	return r;
}

int
store_add_event(struct store *s, int64_t at, const char *actor,
    const char *action, const char *decision, const char *entity,
    const char *subject, ...)
{
	struct store_audit a;
	va_list ap;
	int r;

	memset(&a, 0, sizeof(a));
	va_start(ap, subject);
	r = store_format_detail(ap, &a.detail);
	va_end(ap);
	if (r != 0)
		return r;
	a.at = at;
	a.actor = (char *)(uintptr_t)actor;	/* read only */
	a.action = (char *)(uintptr_t)action;
	a.decision = (char *)(uintptr_t)decision;
	a.entity = (char *)(uintptr_t)entity;
	a.subject = (char *)(uintptr_t)subject;
	r = store_add_audit(s, &a);
	free(a.detail);
	return r;
}

/* Column order: AUDIT_COLS.  The binary hashes for the walk. */
static int
store_get_audit(sqlite3_stmt *st, struct store_audit *a,
    uint8_t prev[AUDIT_HASH_LEN], uint8_t hash[AUDIT_HASH_LEN])
{
	int r = CL_OK;

	memset(a, 0, sizeof(*a));
	a->seq = (uint64_t)sqlite3_column_int64(st, 0);
	a->at = sqlite3_column_int64(st, 1);
	a->action = store_get_text(st, 2, &r);
	a->actor = store_get_text(st, 3, &r);
	a->decision = store_get_text(st, 4, &r);
	a->entity = store_get_text(st, 5, &r);
	a->subject = store_get_text(st, 6, &r);
	a->detail = store_get_text(st, 7, &r);
	if (r != CL_OK || (r = store_get_hash(st, 8, prev)) != 0 ||
	    (r = store_get_hash(st, 9, hash)) != 0) {
		store_audit_clear(a);
		return r;
	}
	util_format_hex(prev, AUDIT_HASH_LEN, a->prev);
	util_format_hex(hash, AUDIT_HASH_LEN, a->hash);
	return CL_OK;
}

int
store_list_audit(struct store *s, uint64_t after_seq, int64_t since,
    unsigned int limit, store_audit_fn fn, void *arg)
{
	uint8_t prev[AUDIT_HASH_LEN], hash[AUDIT_HASH_LEN];
	struct store_audit a;
	sqlite3_stmt *st;
	int r;

	if ((r = store_bind(s, ST_AUDIT_LIST, &st, "iii", (int64_t)after_seq,
	    since, (int64_t)limit)) != 0)
		return r;
	while ((r = store_step(s, st)) == CL_OK) {
		if ((r = store_get_audit(st, &a, prev, hash)) == CL_OK) {
			r = fn(&a, arg);
			store_audit_clear(&a);
		}
		if (r != 0)
			break;
	}
	(void)sqlite3_reset(st);
	return r == CL_NOTFOUND ? CL_OK : r;
}

static int
store_set_broken(struct store_walk *w, uint64_t seq, const char *reason)
{
	w->broken_seq = seq;
	w->reason = reason;
	w->done = 1;
	return CL_FORMAT;
}

static int
store_check_row(sqlite3_stmt *st, struct store_walk *w)
{
	uint8_t prev[AUDIT_HASH_LEN], hash[AUDIT_HASH_LEN];
	uint8_t want[AUDIT_HASH_LEN];
	struct store_audit a;
	int r;

	if ((r = store_get_audit(st, &a, prev, hash)) == CL_FORMAT)
		return store_set_broken(w, w->seq + 1, "hash of wrong length");
	if (r != 0)
		return r;
	if (a.seq != w->seq + 1)
		r = store_set_broken(w, w->seq + 1, "row is missing");
	else if (memcmp(prev, w->prev, sizeof(prev)) != 0)
		r = store_set_broken(w, a.seq,
		    "does not follow the row before");
	else if ((r = store_hash_row(&a, prev, want)) == CL_FORMAT)
		r = store_set_broken(w, a.seq, "detail is not canonical JSON");
	else if (r == CL_OK && memcmp(hash, want, sizeof(hash)) != 0)
		r = store_set_broken(w, a.seq,
		    "content does not match its hash");
	store_audit_clear(&a);
	if (r == CL_OK) {
		w->seq++;
		memcpy(w->prev, hash, sizeof(w->prev));
	}
	return r;
}

/* The walk has come to the end of the rows: does the head agree? */
static int
store_check_head(struct store *s, struct store_walk *w)
{
	uint8_t hash[AUDIT_HASH_LEN];
	uint64_t seq;
	int r;

	if ((r = store_find_head(s, &seq, hash)) != 0)
		return r;
	if (seq > w->seq)
		return store_set_broken(w, w->seq + 1, "row is missing");
	if (seq < w->seq || memcmp(hash, w->prev, sizeof(hash)) != 0)
		return store_set_broken(w, w->seq, "is not the recorded head");
	w->done = 1;
	return CL_OK;
}

int
store_check_audit(struct store *s, struct store_walk *w, unsigned int nrows)
{
	sqlite3_stmt *st;
	unsigned int n;
	int r;

	if (w->done)
		return w->broken_seq != 0 ? CL_FORMAT : CL_OK;
	if ((r = store_bind(s, ST_AUDIT_LIST, &st, "iii", (int64_t)w->seq,
	    INT64_MIN, (int64_t)nrows)) != 0)
		return r;
	for (n = 0; (r = store_step(s, st)) == CL_OK; n++)
		if ((r = store_check_row(st, w)) != 0)
			break;
	(void)sqlite3_reset(st);
	if (r != CL_NOTFOUND)
		return r;
	return n < nrows ? store_check_head(s, w) : CL_OK;
}
