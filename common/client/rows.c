/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Rows as JSON and as tables, by their declarations.  Runs in cloopctl and
 * cloop-enroll.
 */
#include "rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/secret.h"
#include "common/base/util.h"
#include "common/base/xmem.h"

#define ROWS_CELL_MAX 127	/* of a list in a table */

/* The member a column is about; NULL when it has none. */
static const struct field *
rows_find_field(const struct row_kind *k, const struct row_col *c)
{
	const char *name = c->field != NULL ? c->field : c->key;
	const struct field *f;
	size_t n, i;

	f = k->fields->get_rows(&n);
	for (i = 0; name != NULL && i < n; i++)
		if (strcmp(f[i].key, name) == 0)
			return &f[i];
	return NULL;
}

int
rows_check(const struct row_kind *k, const char **keyp)
{
	const struct row_col *c;
	size_t i;

	for (i = 0; i < k->ncols; i++) {
		c = &k->cols[i];
		*keyp = c->key != NULL ? c->key : c->title;
		if (c->how != COL_OPEN && c->how != COL_CLOSE &&
		    c->word == NULL && c->put == NULL &&
		    rows_find_field(k, c) == NULL)
			return 0;
		if (c->place > ROWS_COLUMNS ||
		    (c->place > 0) != (c->title != NULL))
			return 0;
	}
	return 1;
}

/* ------------------------------------------------------------------- JSON */

void
rows_put_strs(struct jsonw *w, char *const *v, size_t n)
{
	size_t i;

	jsonw_open_array(w);
	for (i = 0; i < n; i++)
		jsonw_put_str(w, v[i]);
	jsonw_close_array(w);
}

static void
rows_put_map(struct jsonw *w, const struct field_pair *v, size_t n)
{
	size_t i;

	jsonw_open_object(w);
	for (i = 0; i < n; i++) {
		jsonw_put_key(w, v[i].key);
		jsonw_put_str(w, v[i].value);
	}
	jsonw_close_object(w);
}

static void
rows_put_text(struct jsonw *w, enum col_how how, const char *s)
{
	if (s == NULL || s[0] == '\0')
		jsonw_put_null(w);
	else if (how == COL_JSON)
		jsonw_put_raw(w, s, strlen(s));
	else
		jsonw_put_str(w, s);
}

static void
rows_put_int(struct jsonw *w, enum col_how how, int64_t v)
{
	if (how == COL_KNOWN && v <= 0)
		jsonw_put_null(w);
	else
		jsonw_put_int(w, v);
}

static void
rows_put_uint(struct jsonw *w, enum col_how how, uint64_t v)
{
	if (how == COL_KNOWN && v == 0)
		jsonw_put_null(w);
	else
		jsonw_put_uint(w, v);
}

static void
rows_put_member(struct jsonw *w, const struct field *f, enum col_how how,
    const uint8_t *row)
{
	const void *p = row + f->off;
	size_t n = 0;

	if (f->kind == FIELD_STRS || f->kind == FIELD_MAP)
		n = *(const size_t *)(const void *)(row + f->noff);
	switch (f->kind) {
	case FIELD_STR:
		rows_put_text(w, how, *(char *const *)p);
		break;
	case FIELD_SECRET:
		rows_put_text(w, how,
		    (const char *)((const struct secret *)p)->data);
		break;
	case FIELD_INT:
		rows_put_int(w, how, *(const int64_t *)p);
		break;
	case FIELD_UINT:
		rows_put_uint(w, how, *(const uint64_t *)p);
		break;
	case FIELD_BOOL:
		jsonw_put_bool(w, *(const int *)p);
		break;
	case FIELD_OPTINT:
		if (((const struct field_optint *)p)->set)
			jsonw_put_int(w, ((const struct field_optint *)p)->v);
		else
			jsonw_put_null(w);
		break;
	case FIELD_TIME:
		if (*(const int64_t *)p == UTIL_TIME_ZERO)
			jsonw_put_null(w);
		else
			jsonw_put_time(w, *(const int64_t *)p);
		break;
	case FIELD_STRS:
		rows_put_strs(w, *(char *const *const *)p, n);
		break;
	case FIELD_MAP:
		rows_put_map(w, *(struct field_pair *const *)p, n);
		break;
	default:
		w->error = CL_INTERNAL;
	}
}

void
rows_put(struct jsonw *w, const struct row_kind *k, const void *row)
{
	const struct row_col *c;
	const struct field *f;

	for (c = k->cols; c < k->cols + k->ncols; c++) {
		if (c->how == COL_CLOSE)
			jsonw_close_object(w);
		if (c->key == NULL)
			continue;
		jsonw_put_key(w, c->key);
		if (c->how == COL_OPEN)
			jsonw_open_object(w);
		else if (c->put != NULL)
			c->put(w, row);
		else if (c->word != NULL)
			rows_put_text(w, c->how, c->word(row));
		else if ((f = rows_find_field(k, c)) != NULL)
			rows_put_member(w, f, c->how, row);
		else
			w->error = CL_INTERNAL;
	}
}

/* ------------------------------------------------------------------ table */

static char *
rows_join_strs(char *const *v, size_t n)
{
	char *text = xstrdup(""), *longer;
	size_t i;

	for (i = 0; i < n && strlen(text) < ROWS_CELL_MAX; i++) {
		xasprintf(&longer, "%s%s%s", text, i > 0 ? "," : "", v[i]);
		free(text);
		text = longer;
	}
	if (strlen(text) > ROWS_CELL_MAX)
		text[ROWS_CELL_MAX] = '\0';
	return text;
}

static char *
rows_join_map(const struct field_pair *v, size_t n)
{
	char *text = xstrdup(""), *longer;
	size_t i;

	for (i = 0; i < n; i++) {
		xasprintf(&longer, "%s%s%s=%s", text, i > 0 ? "," : "",
		    v[i].key, v[i].value);
		free(text);
		text = longer;
	}
	return text;
}

/* A member as a cell, owned; "" when it is empty. */
static char *
rows_format_member(const struct tool *t, const struct field *f,
    enum col_how how, const uint8_t *row)
{
	const void *p = row + f->off;
	const char *s = "";
	char *text = NULL;

	switch (f->kind) {
	case FIELD_STR:
		s = *(char *const *)p;
		break;
	case FIELD_TIME:
		s = tool_format_when(t, *(const int64_t *)p);
		break;
	case FIELD_UINT:
		if (how == COL_SIZE)
			s = tool_format_size(*(const uint64_t *)p);
		else
			xasprintf(&text, "%llu",
			    (unsigned long long)*(const uint64_t *)p);
		break;
	case FIELD_INT:
		xasprintf(&text, "%lld", (long long)*(const int64_t *)p);
		break;
	case FIELD_OPTINT:
		if (((const struct field_optint *)p)->set)
			xasprintf(&text, "%lld", (long long)
			    ((const struct field_optint *)p)->v);
		break;
	case FIELD_STRS:
		text = rows_join_strs(*(char *const *const *)p,
		    *(const size_t *)(const void *)(row + f->noff));
		break;
	case FIELD_MAP:
		text = rows_join_map(*(struct field_pair *const *)p,
		    *(const size_t *)(const void *)(row + f->noff));
		break;
	default:
		break;
	}
	return text != NULL ? text : xstrdup(s != NULL ? s : "");
}

static void
rows_add_cell(struct rows *r, const char *text)
{
	if (r->ncells % 64 == 0)
		r->cells = xreallocarray(r->cells, r->ncells + 64,
		    sizeof(*r->cells));
	r->cells[r->ncells++] = xstrdup(tool_clean(text));
}

static const struct row_col *
rows_find_place(const struct row_kind *k, int place)
{
	size_t i;

	for (i = 0; i < k->ncols; i++)
		if (k->cols[i].place == place)
			return &k->cols[i];
	return NULL;
}

static int
rows_count_columns(const struct row_kind *k)
{
	int n = 0;

	while (rows_find_place(k, n + 1) != NULL)
		n++;
	return n;
}

void
rows_open(struct rows *r, struct tool *t, const struct row_kind *k)
{
	int place, n = rows_count_columns(k);

	memset(r, 0, sizeof(*r));
	r->t = t;
	r->kind = k;
	r->doc = &t->doc;
	if (t->json) {
		jsonw_put_key(r->doc, k->list);
		jsonw_open_array(r->doc);
		return;
	}
	for (place = 1; place <= n; place++)
		rows_add_cell(r, rows_find_place(k, place)->title);
}

int
rows_add(struct tool *t, void *row, int fd, void *arg)
{
	struct rows *r = arg;
	const struct row_col *c;
	const struct field *f;
	const char *s;
	char *text;
	int place;

	(void)fd;
	r->n++;
	if (t->json) {
		jsonw_open_object(r->doc);
		rows_put(r->doc, r->kind, row);
		jsonw_close_object(r->doc);
		return CL_OK;
	}
	for (place = 1; (c = rows_find_place(r->kind, place)) != NULL;
	    place++) {
		text = NULL;
		s = c->word != NULL ? c->word(row) : "";
		if (c->word == NULL && (f = rows_find_field(r->kind, c)) !=
		    NULL)
			s = text = rows_format_member(t, f, c->how, row);
		rows_add_cell(r, s[0] != '\0' ? s :
		    c->empty != NULL ? c->empty : "-");
		free(text);
	}
	return CL_OK;
}

static void
rows_print_table(struct rows *r)
{
	size_t width[ROWS_COLUMNS] = { 0 }, i, col, n;
	int head;

	n = (size_t)rows_count_columns(r->kind);
	for (i = 0; i < r->ncells; i++)
		if (strlen(r->cells[i]) > width[i % n])
			width[i % n] = strlen(r->cells[i]);
	for (col = 0; col < n; col++)
		if (rows_find_place(r->kind, (int)col + 1)->width > 0)
			width[col] = (size_t)rows_find_place(r->kind,
			    (int)col + 1)->width;
	for (i = 0; i < r->ncells; i++) {
		col = i % n;
		head = i < n && r->t->color;
		if (head && col == 0)
			fputs("\033[1m", stdout);
		if (col == n - 1)
			printf("%s%s\n", r->cells[i], head ? "\033[0m" : "");
		else
			printf("%-*s  ", (int)width[col], r->cells[i]);
	}
}

int
rows_close(struct rows *r, int status)
{
	if (r->t->json)
		jsonw_close_array(r->doc);
	else if (status == EXIT_DONE && r->n == 0 && r->kind->none != NULL)
		printf("%s\n", r->kind->none);
	else if (status == EXIT_DONE)
		rows_print_table(r);
	while (r->ncells > 0)
		free(r->cells[--r->ncells]);
	free(r->cells);
	r->cells = NULL;
	return status;
}

/* ----------------------------------------------------------------- asking */

int
rows_list(struct tool *t, const struct row_kind *k, const void *v)
{
	struct rows r;

	tool_open_doc(t);
	rows_open(&r, t, k);
	return tool_close_doc(t, rows_close(&r, tool_ask(t, k->ask, v,
	    -1, k, rows_add, &r)));
}

struct rows_one {
	const struct row_kind *kind;
	row_fn *print;
	void *arg;
};

static int
rows_on_one(struct tool *t, void *row, int fd, void *arg)
{
	struct rows_one *one = arg;

	if (t->json)
		rows_put(&t->doc, one->kind, row);
	return !t->json && one->print != NULL ?
	    one->print(t, row, fd, one->arg) : CL_OK;
}

int
rows_show(struct tool *t, uint32_t type, const void *v,
    const struct row_kind *k, row_fn *print, void *arg)
{
	struct rows_one one = { k, print, arg };

	tool_open_doc(t);
	return tool_close_doc(t, tool_ask(t, type, v, -1, k,
	    rows_on_one, &one));
}

int
rows_print(struct tool *t, const struct row_kind *k, const void *row)
{
	tool_open_doc(t);
	rows_put(&t->doc, k, row);
	return tool_close_doc(t, EXIT_DONE);
}
