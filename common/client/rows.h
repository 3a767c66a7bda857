/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * How the rows of the control protocol look.  Each kind is declared once:
 * its columns name the members of the row's field table (msg/field.h), and
 * from them come the JSON document and the table for people.  How a value is
 * written follows from the member's type:
 *
 *	text	JSON: null when empty		table: "-" when empty
 *	time	null or RFC 3339		"2m ago"
 *	list	array of strings		a,b,c
 *	map	object				k=v,k=v
 *
 * Nothing here asks anybody; tool.h does.
 */
#ifndef CLOOP_ROWS_H
#define CLOOP_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "tool.h"
#include "common/msg/field.h"

#define ROWS_COLUMNS 8		/* of a table, at most */

enum col_how {
	COL_PLAIN,		/* as its type says */
	COL_KNOWN,		/* a number: null unless above zero */
	COL_SIZE,		/* a number: with a unit in the table */
	COL_JSON,		/* text that is JSON already */
	COL_OPEN,		/* not a member: an object of that name ... */
	COL_CLOSE		/* ... and its end */
};

struct row_col {
	const char *key;	/* in the document; NULL: not there */
	const char *field;	/* the member when it is not called so */
	enum col_how how;
	int place;		/* column of the table, from 1; 0: not there */
	const char *title;
	int width;		/* of the column; 0: as the widest cell */
	const char *empty;	/* cell of an empty value; NULL: "-" */
	/* Instead of a member: words for both, or a value for the document. */
	const char *(*word)(const void *row);
	void (*put)(struct jsonw *w, const void *row);
};

struct row_kind {
	uint32_t type;		/* ROW_* of the control protocol */
	uint32_t ask;		/* CTL_* that lists them; 0: none */
	const struct field_table *fields;
	const char *list;	/* what the document calls a list of them */
	const char *none;	/* said for an empty list; NULL: the head */
	const struct row_col *cols;
	size_t ncols;
};

/* In the document only; there and in the table. */
#define COL(k) { .key = k }
#define COL_AT(k, at, head) { .key = k, .place = at, .title = head }
#define COLS(c) .cols = c, .ncols = sizeof(c) / sizeof((c)[0])

/* The members of one row's document, without braces. */
void rows_put(struct jsonw *w, const struct row_kind *k, const void *row);
/* "[a,b]" of strings, after its key. */
void rows_put_strs(struct jsonw *w, char *const *v, size_t n);
/* 1 when each column names a member, or needs none (for tests). */
int rows_check(const struct row_kind *k, const char **keyp);

/* A list: a member of t->doc, or a table.  rows_add is a row_fn. */
struct rows {
	const struct tool *t;
	const struct row_kind *kind;
	struct jsonw *doc;
	char **cells;
	size_t ncells;
	size_t n;		/* rows so far */
};
void rows_open(struct rows *r, struct tool *t, const struct row_kind *k);
int rows_add(struct tool *t, void *row, int fd, void *rows);
/* Print the table when status is 0; frees.  Returns status. */
int rows_close(struct rows *r, int status);

/* All of it: ask (k->ask, with the body v), print the list; the exit
 * status. */
int rows_list(struct tool *t, const struct row_kind *k, const void *v);

/*
 * Ask for one row: its document, or what print() says of it.  print may be
 * NULL.
 */
int rows_show(struct tool *t, uint32_t type, const void *v,
    const struct row_kind *k, row_fn *print, void *arg);
/* One that is there already. */
int rows_print(struct tool *t, const struct row_kind *k, const void *row);

#endif
