/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * All SQL text of the hub store, prepared once at open.  Runs in the monitor
 * (and in cloop-enroll while no monitor runs).  Every conditional update
 * states its condition in its WHERE, and the caller looks at the number of
 * rows: never read-then-write (02 §3.3).
 */
#include "store_int.h"

/*
 * Rollback journal: one process, so WAL would only add two files and their
 * system calls (style §5.4).  PERSIST keeps the journal's blocks between
 * transactions: fewer metadata writes, and a full disk still lets the
 * journal be written.  Nothing is kept in temporary files.
 */
const char *const store_pragmas[] = {
	"PRAGMA journal_mode = PERSIST",
	"PRAGMA journal_size_limit = 4194304",
	"PRAGMA synchronous = FULL",
	"PRAGMA foreign_keys = ON",
	"PRAGMA trusted_schema = OFF",
	"PRAGMA recursive_triggers = ON",
	"PRAGMA cell_size_check = ON",
	"PRAGMA temp_store = MEMORY",
	/*
	 * The lock, for good.  Taken in one step before the mode is set: in
	 * exclusive mode a shared lock is never given back, and two processes
	 * that each hold one would wait for each other.
	 */
	"BEGIN EXCLUSIVE",
	"PRAGMA locking_mode = EXCLUSIVE",
	"COMMIT",
	NULL
};

#define ENROLLMENT_COLS                                                        \
	"id, name, secret_hash, workdir_root, labels, created_at, "            \
	"expires_at, created_by, redeemed_at, redeemed_agent_id, "             \
	"redeemed_peer, revoked_at"
#define AGENT_COLS                                                             \
	"agent_id, name, secret_hash, workdir_root, labels, created_at, "      \
	"last_seen, revoked_at, enrollment_id"
#define EXECUTOR_COLS                                                          \
	"agent_id, status, status_at, reason, agent_version, "                 \
	"agent_protocol, protocol, os, arch, caps"
#define HANDLE_COLS                                                            \
	"number, handle_id, agent_id, name, created_by, project_path, "        \
	"task_id, image, meta, secrets, dispatched_at, state, pid, "           \
	"exit_code, outcome, error, started_at, finished_at, closed_at, "      \
	"received, log_bytes, gapped, updated_at"
#define AUDIT_COLS                                                             \
	"seq, at, action, actor, decision, entity, subject, detail, prev, hash"

static const char *const store_sql[ST_NSTMT] = {
	[ST_BEGIN] = "BEGIN IMMEDIATE",
	[ST_COMMIT] = "COMMIT",
	[ST_ROLLBACK] = "ROLLBACK",
	[ST_META_SAVE] =
	    "INSERT INTO meta (key, value) VALUES (?1, ?2) "
	    "ON CONFLICT (key) DO UPDATE SET value = ?2",

	[ST_ENROLLMENT_ADD] =
	    "INSERT INTO enrollment (id, name, secret_hash, workdir_root, "
	    "labels, created_at, expires_at, created_by) "
	    "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
	[ST_ENROLLMENT_FIND] =
	    "SELECT " ENROLLMENT_COLS " FROM enrollment WHERE id = ?1",
	[ST_ENROLLMENT_LIST] =
	    "SELECT " ENROLLMENT_COLS " FROM enrollment "
	    "ORDER BY created_at DESC, rowid DESC",
	[ST_ENROLLMENT_OUTSTANDING] =
	    "SELECT " ENROLLMENT_COLS " FROM enrollment "
	    "WHERE redeemed_at IS NULL AND revoked_at IS NULL "
	    "AND (expires_at IS NULL OR expires_at >= ?1) "
	    "ORDER BY created_at DESC, rowid DESC",
	[ST_ENROLLMENT_REDEEM] =
	    "UPDATE enrollment SET redeemed_at = ?2, redeemed_agent_id = ?3, "
	    "redeemed_peer = ?4 WHERE id = ?1 AND redeemed_at IS NULL",
	[ST_ENROLLMENT_REVOKE] =
	    "UPDATE enrollment SET revoked_at = coalesce(revoked_at, ?2) "
	    "WHERE id = ?1",

	[ST_AGENT_ADD] =
	    "INSERT INTO agent (" AGENT_COLS ") "
	    "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, NULL, ?8)",
	[ST_AGENT_FIND] =
	    "SELECT " AGENT_COLS " FROM agent WHERE agent_id = ?1",
	[ST_AGENT_LIST] =
	    "SELECT " AGENT_COLS " FROM agent ORDER BY name, agent_id",
	[ST_AGENT_REVOKE] =
	    "UPDATE agent SET revoked_at = coalesce(revoked_at, ?2) "
	    "WHERE agent_id = ?1",
	[ST_AGENT_SEEN] =
	    "UPDATE agent SET last_seen = max(coalesce(last_seen, ?2), ?2) "
	    "WHERE agent_id = ?1",

	[ST_EXECUTOR_SAVE] =
	    "INSERT OR REPLACE INTO executor (" EXECUTOR_COLS ") "
	    "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
	[ST_EXECUTOR_STATUS] =
	    "UPDATE executor SET status = ?2, status_at = ?3, reason = ?4 "
	    "WHERE agent_id = ?1",
	[ST_EXECUTOR_FIND] =
	    "SELECT " EXECUTOR_COLS " FROM executor WHERE agent_id = ?1",
	[ST_EXECUTOR_LIST] =
	    "SELECT " EXECUTOR_COLS " FROM executor ORDER BY agent_id",
	[ST_EXECUTOR_RESET] =
	    "UPDATE executor SET status = ?1, status_at = ?2, reason = ?3 "
	    "WHERE status <> ?1",

	[ST_HANDLE_ADD] =
	    "INSERT INTO handle (handle_id, agent_id, name, created_by, "
	    "project_path, task_id, image, meta, secrets, dispatched_at, "
	    "state, pid, updated_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, "
	    "?8, ?9, ?10, ?11, ?12, ?10)",
	[ST_HANDLE_FIND] =
	    "SELECT " HANDLE_COLS " FROM handle WHERE handle_id = ?1",
	[ST_HANDLE_FIND_NUMBER] =
	    "SELECT closed_at FROM handle WHERE number = ?1",
	[ST_HANDLE_SAVE] =
	    "UPDATE handle SET state = ?2, pid = ?3, "
	    "exit_code = CASE ?4 WHEN 0 THEN NULL ELSE ?5 END, outcome = ?6, "
	    "error = ?7, started_at = ?8, finished_at = ?9, closed_at = ?10, "
	    "received = ?11, log_bytes = ?12, gapped = ?13, updated_at = ?14 "
	    "WHERE number = ?1 AND closed_at IS NULL",
	[ST_HANDLE_PROGRESS] =
	    "UPDATE handle SET received = max(received, ?2), "
	    "log_bytes = max(log_bytes, ?3), gapped = max(gapped, ?4) "
	    "WHERE number = ?1",
	[ST_HANDLE_SECRETS] =
	    "UPDATE handle SET secrets = ?2 WHERE number = ?1",
	[ST_HANDLE_LIST] =
	    "SELECT " HANDLE_COLS " FROM handle ORDER BY number",
	[ST_HANDLE_LIST_OPEN] =
	    "SELECT " HANDLE_COLS " FROM handle WHERE closed_at IS NULL "
	    "ORDER BY number",
	[ST_HANDLE_LIST_AGENT] =
	    "SELECT " HANDLE_COLS " FROM handle WHERE agent_id = ?1 "
	    "ORDER BY number",
	[ST_HANDLE_LIST_AGENT_OPEN] =
	    "SELECT " HANDLE_COLS " FROM handle WHERE agent_id = ?1 "
	    "AND closed_at IS NULL ORDER BY number",
	[ST_HANDLE_DEL] = "DELETE FROM handle WHERE number = ?1",
	/* Newest first, so that OFFSET skips the ones to keep. */
	[ST_HANDLE_OLD] =
	    "SELECT " HANDLE_COLS " FROM handle WHERE agent_id = ?1 "
	    "AND closed_at IS NOT NULL AND (closed_at < ?3 OR number NOT IN "
	    "(SELECT number FROM handle WHERE agent_id = ?1 "
	    "AND closed_at IS NOT NULL ORDER BY closed_at DESC, number DESC "
	    "LIMIT ?2)) ORDER BY number",

	[ST_AUDIT_HEAD] = "SELECT seq, hash FROM audit_head",
	[ST_AUDIT_ADD] =
	    "INSERT INTO audit (" AUDIT_COLS ") "
	    "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
	[ST_AUDIT_LIST] =
	    "SELECT " AUDIT_COLS " FROM audit WHERE seq > ?1 AND at >= ?2 "
	    "ORDER BY seq LIMIT ?3",
};

const char *
store_find_sql(enum store_stmt id)
{
	return store_sql[id];
}
