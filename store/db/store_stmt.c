/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * All SQL text of the hub store, prepared once at open.  Runs in the monitor
 * (and in cloop-enroll while no monitor runs).  Every conditional update
 * states its condition in its WHERE, and the caller looks at the number of
 * rows: never read-then-write.
 */
#include "store_int.h"

/*
 * Rollback journal: one process, so WAL would only add two files and their
 * system calls.  PERSIST keeps the journal's blocks between transactions:
 * fewer metadata writes, and a full disk still lets the journal be written.
 * Nothing is kept in temporary files.
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
	/* A deleted secret is overwritten, sealed as it was. */
	"PRAGMA secure_delete = ON",
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
	"last_seen, revoked_at, enrollment_id, confirmed_at"
#define BAN_COLS "name, at, actor, reason"
#define EXECUTOR_COLS                                                          \
	"agent_id, status, status_at, reason, agent_version, "                 \
	"agent_protocol, protocol, os, arch, caps"
#define HANDLE_COLS                                                            \
	"number, handle_id, agent_id, name, created_by, project_path, "        \
	"task_id, image, meta, secrets, dispatched_at, state, pid, "           \
	"exit_code, outcome, error, started_at, finished_at, closed_at, "      \
	"received, log_bytes, gapped, updated_at, log_sha256, "                \
	"log_modified_at, index_bytes, index_sha256, index_modified_at"
#define SECRET_COLS                                                            \
	"id, name, owner, kind, version, names, created_at, created_by, "      \
	"updated_at"
#define GRANT_COLS                                                             \
	"id, secret_id, secret_name, subject, constraints, created_at, "       \
	"created_by, expires_at, revoked_at, cause, superseded_by"
#define LEASE_COLS                                                             \
	"id, agent_id, handle, handle_id, project, actor, issued_at, "         \
	"expires_at, holder, state, closed_at, cause"
#define ITEM_COLS                                                              \
	"lease_id, grant_id, secret_id, name, kind, version, mode, "           \
	"withdrawn_at"
#define REVOCATION_COLS                                                        \
	"lease_id, grant_id, agent_id, action, reason, actor, state, "         \
	"sent_at, acked_at, known, files_removed, egress_dropped, "            \
	"env_scrubbed, killed, error, widened"
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
	    "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, NULL, ?8, NULL)",
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

	[ST_AGENT_REVOKE_NAME] =
	    "UPDATE agent SET revoked_at = ?2 "
	    "WHERE name = ?1 AND revoked_at IS NULL",
	[ST_AGENT_CONFIRM] =
	    "UPDATE agent SET confirmed_at = ?2 "
	    "WHERE agent_id = ?1 AND confirmed_at IS NULL",

	[ST_BAN_ADD] =
	    "INSERT INTO ban (" BAN_COLS ") VALUES (?1, ?2, ?3, ?4)",
	[ST_BAN_DEL] = "DELETE FROM ban WHERE name = ?1",
	[ST_BAN_FIND] = "SELECT " BAN_COLS " FROM ban WHERE name = ?1",
	[ST_BAN_LIST] = "SELECT " BAN_COLS " FROM ban ORDER BY name",

	[ST_FORGET_HANDLES] = "DELETE FROM handle WHERE agent_id = ?1",
	[ST_FORGET_LEASES] = "DELETE FROM lease WHERE agent_id = ?1",
	[ST_FORGET_REVOCATIONS] =
	    "DELETE FROM revocation WHERE agent_id = ?1",
	[ST_FORGET_ADMIN] =
	    "DELETE FROM executor_admin WHERE agent_id = ?1",
	[ST_FORGET_EXECUTOR] = "DELETE FROM executor WHERE agent_id = ?1",
	[ST_FORGET_AGENT] = "DELETE FROM agent WHERE agent_id = ?1",

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
	[ST_HANDLE_SEAL] =
	    "UPDATE handle SET log_bytes = ?2, log_sha256 = ?3, "
	    "log_modified_at = ?4, index_bytes = ?5, index_sha256 = ?6, "
	    "index_modified_at = ?7 WHERE number = ?1",
	[ST_HANDLE_SECRETS] =
	    "UPDATE handle SET secrets = ?2 WHERE number = ?1",
	[ST_HANDLE_META] =
	    "UPDATE handle SET meta = ?2 WHERE number = ?1",
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

	[ST_SECRET_ADD] =
	    "INSERT INTO secret (" SECRET_COLS ") "
	    "VALUES (?1, ?2, ?3, ?4, 1, ?5, ?6, ?7, ?6)",
	[ST_SECRET_BUMP] =
	    "UPDATE secret SET version = version + 1, names = ?2, "
	    "updated_at = ?3 WHERE id = ?1",
	[ST_SECRET_FIND] =
	    "SELECT " SECRET_COLS " FROM secret WHERE name = ?1 "
	    "AND owner = ?2",
	[ST_SECRET_FIND_ID] =
	    "SELECT " SECRET_COLS " FROM secret WHERE id = ?1",
	[ST_SECRET_LIST] =
	    "SELECT " SECRET_COLS " FROM secret ORDER BY name, owner",
	[ST_SECRET_DEL] = "DELETE FROM secret WHERE id = ?1",
	[ST_SECRET_TOMBSTONE] =
	    "INSERT INTO tombstone (id, name, owner, kind, deleted_at, "
	    "deleted_by, cause, reason) "
	    "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
	[ST_VERSION_ADD] =
	    "INSERT INTO secret_version (secret_id, version, wrapped, "
	    "sealed) VALUES (?1, ?2, ?3, ?4)",
	[ST_VERSION_FIND] =
	    "SELECT wrapped, sealed FROM secret_version "
	    "WHERE secret_id = ?1 AND version = ?2",
	[ST_VERSION_LIST] =
	    "SELECT secret_id, version, wrapped FROM secret_version "
	    "ORDER BY secret_id, version",
	[ST_VERSION_WRAP] =
	    "UPDATE secret_version SET wrapped = ?3 "
	    "WHERE secret_id = ?1 AND version = ?2",
	/* What a workload that still prints was given must stay known. */
	[ST_VERSION_OLD] =
	    "DELETE FROM secret_version WHERE version < (SELECT version "
	    "FROM secret WHERE id = secret_id) AND NOT EXISTS (SELECT 1 "
	    "FROM lease_item JOIN lease ON lease.id = lease_item.lease_id "
	    "JOIN handle ON handle.number = lease.handle "
	    "WHERE lease_item.secret_id = secret_version.secret_id "
	    "AND handle.closed_at IS NULL)",

	[ST_GRANT_ADD] =
	    "INSERT INTO secret_grant (id, secret_id, secret_name, subject, "
	    "constraints, created_at, created_by, expires_at) "
	    "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
	[ST_GRANT_FIND] =
	    "SELECT " GRANT_COLS " FROM secret_grant WHERE id = ?1",
	[ST_GRANT_LIST] =
	    "SELECT " GRANT_COLS " FROM secret_grant "
	    "ORDER BY created_at, rowid",
	[ST_GRANT_LIST_SECRET] =
	    "SELECT " GRANT_COLS " FROM secret_grant WHERE secret_id = ?1 "
	    "ORDER BY created_at, rowid",
	[ST_GRANT_REVOKE] =
	    "UPDATE secret_grant SET revoked_at = ?2, cause = ?3 "
	    "WHERE id = ?1 AND revoked_at IS NULL",
	[ST_GRANT_SUPERSEDE] =
	    "UPDATE secret_grant SET superseded_by = ?2 "
	    "WHERE id = ?1 AND superseded_by = '' AND revoked_at IS NULL",

	[ST_LEASE_ADD] =
	    "INSERT INTO lease (id, agent_id, handle, handle_id, project, "
	    "actor, issued_at, expires_at, holder, state) "
	    "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 1)",
	[ST_LEASE_FIND] = "SELECT " LEASE_COLS " FROM lease WHERE id = ?1",
	[ST_LEASE_LIST] =
	    "SELECT " LEASE_COLS " FROM lease ORDER BY issued_at, rowid",
	[ST_LEASE_LIST_LIVE] =
	    "SELECT " LEASE_COLS " FROM lease WHERE state = 1 OR id IN "
	    "(SELECT lease_id FROM revocation WHERE state <> 2) "
	    "ORDER BY issued_at, rowid",
	[ST_LEASE_LIST_AGENT] =
	    "SELECT " LEASE_COLS " FROM lease WHERE agent_id = ?1 "
	    "ORDER BY issued_at, rowid",
	[ST_LEASE_LIST_AGENT_LIVE] =
	    "SELECT " LEASE_COLS " FROM lease WHERE agent_id = ?1 "
	    "AND state = 1 ORDER BY issued_at, rowid",
	[ST_LEASE_LIST_HANDLE] =
	    "SELECT " LEASE_COLS " FROM lease WHERE handle = ?1 "
	    "ORDER BY issued_at, rowid",
	[ST_LEASE_LIST_EXPIRED] =
	    "SELECT " LEASE_COLS " FROM lease WHERE state = 1 "
	    "AND expires_at <= ?1 ORDER BY expires_at, rowid",
	[ST_LEASE_EXTEND] =
	    "UPDATE lease SET expires_at = ?4 WHERE id = ?1 "
	    "AND holder = ?2 AND state = 1 AND expires_at > ?3",
	[ST_LEASE_SHIFT] =
	    "UPDATE lease SET expires_at = expires_at + ?1 WHERE state = 1",
	[ST_LEASE_TAKE] =
	    "UPDATE lease SET holder = ?3 WHERE id = ?1 AND holder = ?2 "
	    "AND state = 1",
	[ST_LEASE_CLOSE] =
	    "UPDATE lease SET state = ?2, closed_at = ?3, cause = ?4 "
	    "WHERE id = ?1 AND state = 1",
	[ST_LEASE_OLD] =
	    "DELETE FROM lease WHERE closed_at < ?1 AND NOT EXISTS "
	    "(SELECT 1 FROM revocation WHERE lease_id = lease.id "
	    "AND state <> 2)",

	[ST_ITEM_ADD] =
	    "INSERT INTO lease_item (lease_id, grant_id, secret_id, name, "
	    "kind, version, mode) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
	[ST_ITEM_LIST] =
	    "SELECT " ITEM_COLS " FROM lease_item WHERE lease_id = ?1 "
	    "ORDER BY rowid",
	[ST_ITEM_LIST_GRANT] =
	    "SELECT " ITEM_COLS " FROM lease_item WHERE grant_id = ?1 "
	    "AND withdrawn_at IS NULL AND lease_id IN (SELECT id FROM lease "
	    "WHERE state = 1) ORDER BY rowid",
	[ST_ITEM_WITHDRAW] =
	    "UPDATE lease_item SET withdrawn_at = ?3 WHERE lease_id = ?1 "
	    "AND (?2 = '' OR grant_id = ?2) AND withdrawn_at IS NULL",
	[ST_ITEM_VERSION] =
	    "UPDATE lease_item SET version = ?3 WHERE lease_id = ?1 "
	    "AND grant_id = ?2",

	[ST_REVOCATION_SAVE] =
	    "INSERT INTO revocation (" REVOCATION_COLS ") "
	    "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, "
	    "?13, ?14, ?15, ?16) "
	    "ON CONFLICT (lease_id, grant_id, agent_id, action) DO UPDATE "
	    "SET reason = ?5, actor = ?6, state = ?7, sent_at = ?8, "
	    "acked_at = ?9, known = ?10, files_removed = ?11, "
	    "egress_dropped = ?12, env_scrubbed = ?13, killed = ?14, "
	    "error = ?15, widened = ?16 WHERE state <> 2",
	[ST_REVOCATION_FIND] =
	    "SELECT " REVOCATION_COLS " FROM revocation "
	    "WHERE lease_id = ?1 AND grant_id = ?2 AND agent_id = ?3 "
	    "AND action = ?4",
	[ST_REVOCATION_OWED] =
	    "SELECT " REVOCATION_COLS " FROM revocation "
	    "WHERE agent_id = ?1 AND state <> 2 ORDER BY sent_at, rowid",
	[ST_REVOCATION_LIST] =
	    "SELECT " REVOCATION_COLS " FROM revocation "
	    "WHERE lease_id = ?1 ORDER BY sent_at, rowid",
	[ST_REVOCATION_OLD] =
	    "DELETE FROM revocation WHERE state = 2 AND rowid IN "
	    "(SELECT rowid FROM revocation WHERE state = 2 "
	    "ORDER BY sent_at, rowid LIMIT max(0, "
	    "(SELECT count(*) FROM revocation) - ?1))",

	[ST_ADMIN_SAVE] =
	    "INSERT OR REPLACE INTO executor_admin (agent_id, state, "
	    "reason, at, actor) VALUES (?1, ?2, ?3, ?4, ?5)",
	[ST_ADMIN_LIST] = "SELECT agent_id, state FROM executor_admin",
};

const char *
store_find_sql(enum store_stmt id)
{
	return store_sql[id];
}
