/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Binding, stepping and reading rows, and the labels column.  Runs wherever
 * the store is open.  Sizes of what is read back are bounded by SQLite's
 * length limit, which store_open sets; what is written was bounded by the
 * caller against limits.h.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <bsd/stdlib.h>
#include <bsd/string.h>

#include "common/base/limits.h"
#include "common/json/canon.h"
#include "store_int.h"

static int
store_bind_text(sqlite3_stmt *st, int i, const char *text)
{
	if (text == NULL)
		text = "";
	return sqlite3_bind_text(st, i, text, -1, SQLITE_TRANSIENT);
}

static int
store_bind_args(sqlite3_stmt *st, const char *fmt, va_list ap)
{
	const void *p;
	int64_t t;
	int i, rc = SQLITE_OK;

	for (i = 1; rc == SQLITE_OK && *fmt != '\0'; i++, fmt++) {
		switch (*fmt) {
		case 't':
			rc = store_bind_text(st, i, va_arg(ap, const char *));
			break;
		case 'i':
			rc = sqlite3_bind_int64(st, i, va_arg(ap, int64_t));
			break;
		case 'd':
			rc = sqlite3_bind_int(st, i, va_arg(ap, int));
			break;
		case 'T':
			t = va_arg(ap, int64_t);
			rc = t == UTIL_TIME_ZERO ? sqlite3_bind_null(st, i) :
			    sqlite3_bind_int64(st, i, t);
			break;
		case 'b':
			p = va_arg(ap, const void *);
			rc = sqlite3_bind_blob64(st, i, p == NULL ? "" : p,
			    va_arg(ap, size_t), SQLITE_TRANSIENT);
			break;
		default:
			rc = SQLITE_MISUSE;
			break;
		}
	}
	return rc;
}

static int
store_bind_list(struct store *s, enum store_stmt id, sqlite3_stmt **stp,
    const char *fmt, va_list ap)
{
	sqlite3_stmt *st = s->stmt[id];
	int rc;

	*stp = NULL;
	if (sqlite3_stmt_busy(st)) {
		strlcpy(s->error, "a list inside itself", sizeof(s->error));
		return CL_STATE;
	}
	(void)sqlite3_reset(st);
	(void)sqlite3_clear_bindings(st);
	if ((rc = store_bind_args(st, fmt, ap)) != SQLITE_OK)
		return store_fail(s, rc);
	*stp = st;
	return CL_OK;
}

int
store_bind(struct store *s, enum store_stmt id, sqlite3_stmt **stp,
    const char *fmt, ...)
{
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = store_bind_list(s, id, stp, fmt, ap);
	va_end(ap);
	return r;
}

/*
 * A constraint that refused one statement leaves the turn alone: SQLite has
 * undone that statement.  Everything else ends the turn.
 */
static int
store_check_write(struct store *s, int rc)
{
	switch (rc) {
	case SQLITE_DONE:
	case SQLITE_ROW:
		return CL_OK;
	case SQLITE_CONSTRAINT_PRIMARYKEY:
	case SQLITE_CONSTRAINT_UNIQUE:
	case SQLITE_CONSTRAINT_ROWID:
		return CL_EXISTS;
	case SQLITE_CONSTRAINT_FOREIGNKEY:
		return CL_NOTFOUND;
	default:
		break;
	}
	if ((rc & 0xff) == SQLITE_CONSTRAINT) {
		strlcpy(s->error, sqlite3_errmsg(s->db), sizeof(s->error));
		return CL_FORMAT;
	}
	return store_fail(s, rc);
}

int
store_run(struct store *s, enum store_stmt id, int *nchangedp,
    const char *fmt, ...)
{
	sqlite3_stmt *st;
	va_list ap;
	int r;

	if (nchangedp != NULL)
		*nchangedp = 0;
	if ((r = store_want_write(s)) != 0)
		return r;
	va_start(ap, fmt);
	r = store_bind_list(s, id, &st, fmt, ap);
	va_end(ap);
	if (r != 0)
		return r;
	r = store_check_write(s, sqlite3_step(st));
	if (r == CL_OK && nchangedp != NULL)
		*nchangedp = sqlite3_changes(s->db);
	(void)sqlite3_reset(st);
	(void)sqlite3_clear_bindings(st);
	return r;
}

int
store_step(struct store *s, sqlite3_stmt *st)
{
	int rc = sqlite3_step(st);

	if (rc == SQLITE_ROW)
		return CL_OK;
	(void)sqlite3_reset(st);
	return rc == SQLITE_DONE ? CL_NOTFOUND : store_fail(s, rc);
}

char *
store_get_text(sqlite3_stmt *st, int col, int *rp)
{
	const unsigned char *text = sqlite3_column_text(st, col);
	char *copy;

	if ((copy = strdup(text == NULL ? "" : (const char *)text)) == NULL)
		*rp = CL_NOMEM;
	return copy;
}

int64_t
store_get_time(sqlite3_stmt *st, int col)
{
	if (sqlite3_column_type(st, col) == SQLITE_NULL)
		return UTIL_TIME_ZERO;
	return sqlite3_column_int64(st, col);
}

/* ---------------------------------------------------------------- labels */

int
store_labels_add(struct store_labels *l, const char *key, const char *value)
{
	struct field_pair *v;
	char *k, *copy;
	size_t i;

	if ((copy = strdup(value)) == NULL)
		return CL_NOMEM;
	for (i = 0; i < l->n && strcmp(l->v[i].key, key) < 0; i++)
		;
	if (i < l->n && strcmp(l->v[i].key, key) == 0) {
		free(l->v[i].value);
		l->v[i].value = copy;
		return CL_OK;
	}
	if (l->n >= MAX_LABELS) {
		free(copy);
		return CL_LIMIT;
	}
	v = recallocarray(l->v, l->n, l->n + 1, sizeof(*v));
	if (v != NULL)
		l->v = v;
	if (v == NULL || (k = strdup(key)) == NULL) {
		free(copy);
		return CL_NOMEM;
	}
	memmove(&l->v[i + 1], &l->v[i], (l->n - i) * sizeof(*v));
	l->v[i].key = k;
	l->v[i].value = copy;
	l->n++;
	return CL_OK;
}

void
store_labels_clear(struct store_labels *l)
{
	size_t i;

	for (i = 0; i < l->n; i++) {
		free(l->v[i].key);
		free(l->v[i].value);
	}
	free(l->v);
	l->v = NULL;
	l->n = 0;
}

int
store_labels_format(const struct store_labels *l, char **textp)
{
	struct canon *o, *v;
	size_t i, len;
	int r = CL_OK;

	*textp = NULL;
	if ((o = canon_new_object()) == NULL)
		return CL_NOMEM;
	for (i = 0; r == CL_OK && i < l->n; i++) {
		v = canon_new_string(l->v[i].value, strlen(l->v[i].value));
		if (v == NULL)
			r = CL_NOMEM;
		else if ((r = canon_add_member(o, l->v[i].key, v)) != 0)
			canon_free(v);
	}
	if (r == CL_OK)
		r = canon_format(o, textp, &len);
	canon_free(o);
	return r;
}

int
store_labels_parse(const char *text, struct store_labels *l)
{
	struct canon *o;
	const struct canon *v;
	const char *key, *value;
	size_t i, len;
	int r;

	memset(l, 0, sizeof(*l));
	if ((r = canon_parse(text, strlen(text), &o)) != 0)
		return r;
	if (canon_get_type(o) != CANON_OBJECT)
		r = CL_FORMAT;
	for (i = 0; r == CL_OK && i < canon_get_count(o); i++) {
		if ((r = canon_get_member(o, i, &key, &v)) == 0 &&
		    (r = canon_get_string(v, &value, &len)) == 0)
			r = store_labels_add(l, key, value);
	}
	canon_free(o);
	if (r != CL_OK)
		store_labels_clear(l);
	return r;
}
