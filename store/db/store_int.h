/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Private to store/: the open database, its statements, and the helpers
 * that bind, step and read rows.
 */
#ifndef CLOOP_STORE_INT_H
#define CLOOP_STORE_INT_H

#include <sqlite3.h>

#include "common/base/err.h"
#include "common/base/util.h"
#include "store.h"

/* PRAGMA application_id: "CLB" and 0, the hub store. */
#define STORE_APPLICATION_ID 0x434c4200

/* The columns of a row are read in the order of its SELECT. */
#define STORE_STMTS(X)                                                         \
	X(BEGIN) X(COMMIT) X(ROLLBACK)                                         \
	X(META_SAVE)                                                           \
	X(ENROLLMENT_ADD) X(ENROLLMENT_FIND) X(ENROLLMENT_LIST)                \
	X(ENROLLMENT_OUTSTANDING) X(ENROLLMENT_REDEEM) X(ENROLLMENT_REVOKE)    \
	X(AGENT_ADD) X(AGENT_FIND) X(AGENT_LIST) X(AGENT_REVOKE) X(AGENT_SEEN) \
	X(AGENT_REVOKE_NAME) X(AGENT_CONFIRM)                                  \
	X(BAN_ADD) X(BAN_DEL) X(BAN_FIND) X(BAN_LIST)                          \
	X(FORGET_HANDLES) X(FORGET_LEASES) X(FORGET_REVOCATIONS)               \
	X(FORGET_ADMIN) X(FORGET_EXECUTOR) X(FORGET_AGENT)                     \
	X(EXECUTOR_SAVE) X(EXECUTOR_STATUS) X(EXECUTOR_FIND) X(EXECUTOR_LIST)  \
	X(EXECUTOR_RESET)                                                      \
	X(HANDLE_ADD) X(HANDLE_FIND) X(HANDLE_FIND_NUMBER) X(HANDLE_SAVE)      \
	X(HANDLE_PROGRESS) X(HANDLE_SECRETS) X(HANDLE_META) X(HANDLE_LIST)     \
	X(HANDLE_LIST_OPEN) X(HANDLE_LIST_AGENT) X(HANDLE_LIST_AGENT_OPEN)     \
	X(HANDLE_DEL) X(HANDLE_OLD) X(HANDLE_SEAL)                             \
	X(AUDIT_HEAD) X(AUDIT_ADD) X(AUDIT_LIST)                               \
	X(SECRET_ADD) X(SECRET_BUMP) X(SECRET_FIND) X(SECRET_FIND_ID)          \
	X(SECRET_LIST) X(SECRET_DEL) X(SECRET_TOMBSTONE)                       \
	X(VERSION_ADD) X(VERSION_FIND) X(VERSION_LIST) X(VERSION_WRAP)         \
	X(VERSION_OLD)                                                         \
	X(GRANT_ADD) X(GRANT_FIND) X(GRANT_LIST) X(GRANT_LIST_SECRET)          \
	X(GRANT_REVOKE) X(GRANT_SUPERSEDE)                                     \
	X(LEASE_ADD) X(LEASE_FIND) X(LEASE_LIST) X(LEASE_LIST_LIVE)            \
	X(LEASE_LIST_AGENT) X(LEASE_LIST_AGENT_LIVE) X(LEASE_LIST_HANDLE)      \
	X(LEASE_LIST_EXPIRED) X(LEASE_EXTEND) X(LEASE_SHIFT) X(LEASE_TAKE)     \
	X(LEASE_CLOSE) X(LEASE_OLD)                                            \
	X(ITEM_ADD) X(ITEM_LIST) X(ITEM_LIST_GRANT) X(ITEM_WITHDRAW)           \
	X(ITEM_VERSION)                                                        \
	X(REVOCATION_SAVE) X(REVOCATION_FIND) X(REVOCATION_OWED)               \
	X(REVOCATION_LIST) X(REVOCATION_OLD)                                   \
	X(ADMIN_SAVE) X(ADMIN_LIST)

enum store_stmt {
#define X(name) ST_##name,
	STORE_STMTS(X)
#undef X
	ST_NSTMT
};

struct store {
	sqlite3 *db;
	sqlite3_stmt *stmt[ST_NSTMT];
	int in_turn;
	int dirty;		/* BEGIN has been executed */
	int lost;		/* the turn failed and was rolled back */
	int in_request;
	int marked;		/* SAVEPOINT has been executed */
	char error[256];
};

/* store_stmt.c: the text of a statement, and the ones run at open. */
const char *store_find_sql(enum store_stmt id);
extern const char *const store_pragmas[];	/* NULL-terminated */

/* store_schema.c: bring the schema to our version.  CL_VERSION, CL_FORMAT,
 * CL_DB; s->error has the text. */
int store_check_schema(struct store *s);
int store_schema_version(void);

/* Record what SQLite said about `what`; ends the turn if one was open.
 * Returns CL_DB, or CL_STATE for "in use". */
int store_fail(struct store *s, int rc);
/* Run constant SQL text. */
int store_exec(struct store *s, const char *sql);

/*
 * Bind arguments by format: t const char * (NULL: ""), i int64_t, d int,
 * T int64_t time (UTIL_TIME_ZERO: NULL), b const void * and size_t.
 * CL_STATE when this statement is in the middle of a list.
 */
int store_bind(struct store *s, enum store_stmt id, sqlite3_stmt **stp,
    const char *fmt, ...);
/*
 * Bind and run one write in the turn.  *nchangedp (may be NULL) gets the
 * number of rows.  CL_EXISTS (unique key), CL_NOTFOUND (foreign key),
 * CL_FORMAT (a CHECK or trigger refused it), CL_STATE, CL_DB.
 */
int store_run(struct store *s, enum store_stmt id, int *nchangedp,
    const char *fmt, ...);
/* A write is coming: BEGIN at the first one of the turn.  CL_STATE outside
 * a turn, CL_DB when the turn is lost. */
int store_want_write(struct store *s);
/* The next row: CL_OK, CL_NOTFOUND at the end, CL_DB. */
int store_step(struct store *s, sqlite3_stmt *st);

/* Columns.  Texts are copied; *rp turns CL_NOMEM and stays so. */
char *store_get_text(sqlite3_stmt *st, int col, int *rp);
int64_t store_get_time(sqlite3_stmt *st, int col);

/* Labels as the canonical JSON text of a map, and back. */
int store_labels_format(const struct store_labels *l, char **textp);
int store_labels_parse(const char *text, struct store_labels *l);

#endif
