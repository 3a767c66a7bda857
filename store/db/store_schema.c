/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Versions of the hub store's schema.  Runs in whoever opens the store,
 * before anything else is read.  A version is one row: the SQL that takes
 * the schema from the version before.  A row that was released is never
 * changed; a change is a new row at the end.  Each runs in one transaction
 * together with the new user_version, so that a crash leaves the old or the
 * new schema.  A store from a newer cloop is refused, not guessed at.
 */
#include <stdio.h>

#include <bsd/string.h>

#include "store_int.h"

static const char store_schema_1[] =
    "CREATE TABLE meta ("
    " key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;"

    "CREATE TABLE enrollment ("
    " id TEXT PRIMARY KEY,"
    " name TEXT NOT NULL,"
    " secret_hash TEXT NOT NULL CHECK (length(secret_hash) = 64),"
    " workdir_root TEXT NOT NULL,"
    " labels TEXT NOT NULL,"
    " created_at INTEGER NOT NULL,"
    " expires_at INTEGER,"
    " created_by TEXT NOT NULL,"
    " redeemed_at INTEGER,"
    " redeemed_agent_id TEXT NOT NULL DEFAULT '',"
    " redeemed_peer TEXT NOT NULL DEFAULT '',"
    " revoked_at INTEGER) STRICT;"
    "CREATE INDEX enrollment_created ON enrollment (created_at);"

    "CREATE TABLE agent ("
    " agent_id TEXT PRIMARY KEY,"
    " name TEXT NOT NULL,"
    " secret_hash TEXT NOT NULL CHECK (length(secret_hash) = 64),"
    " workdir_root TEXT NOT NULL,"
    " labels TEXT NOT NULL,"
    " created_at INTEGER NOT NULL,"
    " last_seen INTEGER,"
    " revoked_at INTEGER,"
    " enrollment_id TEXT NOT NULL REFERENCES enrollment (id)) STRICT;"
    "CREATE INDEX agent_name ON agent (name);"

    "CREATE TABLE executor ("
    " agent_id TEXT PRIMARY KEY REFERENCES agent (agent_id),"
    " status INTEGER NOT NULL,"
    " status_at INTEGER,"
    " reason TEXT NOT NULL,"
    " agent_version TEXT NOT NULL,"
    " agent_protocol INTEGER NOT NULL,"
    " protocol INTEGER NOT NULL,"
    " os TEXT NOT NULL,"
    " arch TEXT NOT NULL,"
    " caps BLOB NOT NULL) STRICT;"

    /* AUTOINCREMENT: a number that a worker may still hold in a message must
     * never come to mean another handle. */
    "CREATE TABLE handle ("
    " number INTEGER PRIMARY KEY AUTOINCREMENT,"
    " handle_id TEXT NOT NULL UNIQUE,"
    " agent_id TEXT NOT NULL REFERENCES agent (agent_id),"
    " name TEXT NOT NULL,"
    " created_by TEXT NOT NULL,"
    " project_path TEXT NOT NULL,"
    " task_id TEXT NOT NULL,"
    " image TEXT NOT NULL,"
    " meta TEXT NOT NULL,"
    " secrets TEXT NOT NULL,"
    " dispatched_at INTEGER NOT NULL,"
    " state INTEGER NOT NULL,"
    " pid INTEGER NOT NULL,"
    " exit_code INTEGER,"
    " outcome TEXT NOT NULL DEFAULT '',"
    " error TEXT NOT NULL DEFAULT '',"
    " started_at INTEGER,"
    " finished_at INTEGER,"
    " closed_at INTEGER,"
    " received INTEGER NOT NULL DEFAULT 0 CHECK (received >= 0),"
    " log_bytes INTEGER NOT NULL DEFAULT 0 CHECK (log_bytes >= 0),"
    " gapped INTEGER NOT NULL DEFAULT 0 CHECK (gapped IN (0, 1)),"
    " updated_at INTEGER NOT NULL) STRICT;"
    "CREATE INDEX handle_agent ON handle (agent_id, closed_at);"
    "CREATE INDEX handle_open ON handle (number) WHERE closed_at IS NULL;"

    "CREATE TABLE audit ("
    " seq INTEGER PRIMARY KEY,"
    " at INTEGER NOT NULL,"
    " action TEXT NOT NULL,"
    " actor TEXT NOT NULL,"
    " decision TEXT NOT NULL,"
    " entity TEXT NOT NULL,"
    " subject TEXT NOT NULL,"
    " detail TEXT NOT NULL,"
    " prev BLOB NOT NULL CHECK (length(prev) = 32),"
    " hash BLOB NOT NULL CHECK (length(hash) = 32)) STRICT;"
    "CREATE INDEX audit_at ON audit (at);"
    /* The head makes a cut-off tail visible: the chain alone would not. */
    "CREATE TABLE audit_head ("
    " one INTEGER PRIMARY KEY CHECK (one = 1),"
    " seq INTEGER NOT NULL,"
    " hash BLOB NOT NULL CHECK (length(hash) = 32)) STRICT;"
    "INSERT INTO audit_head VALUES (1, 0, zeroblob(32));"
    "CREATE TRIGGER audit_update BEFORE UPDATE ON audit BEGIN"
    " SELECT RAISE(ABORT, 'audit rows are append-only'); END;"
    "CREATE TRIGGER audit_delete BEFORE DELETE ON audit BEGIN"
    " SELECT RAISE(ABORT, 'audit rows are append-only'); END;"
    "CREATE TRIGGER audit_insert BEFORE INSERT ON audit"
    " WHEN NOT EXISTS (SELECT 1 FROM audit_head"
    "  WHERE NEW.seq = seq + 1 AND NEW.prev = hash) BEGIN"
    " SELECT RAISE(ABORT, 'audit row does not follow the last one'); END;"
    "CREATE TRIGGER audit_inserted AFTER INSERT ON audit BEGIN"
    " UPDATE audit_head SET seq = NEW.seq, hash = NEW.hash; END;"
    "CREATE TRIGGER audit_head_update BEFORE UPDATE ON audit_head"
    " WHEN NEW.one <> 1 OR NEW.seq <> OLD.seq + 1 BEGIN"
    " SELECT RAISE(ABORT, 'the audit head only moves forward'); END;"
    "CREATE TRIGGER audit_head_delete BEFORE DELETE ON audit_head BEGIN"
    " SELECT RAISE(ABORT, 'audit rows are append-only'); END;";

/*
 * Secrets, grants, leases, revocations.  A lease's rows outlive its secrets:
 * they say what was lent.
 */
static const char store_schema_2[] =
    "CREATE TABLE secret ("
    " id TEXT PRIMARY KEY,"
    " name TEXT NOT NULL,"
    " owner TEXT NOT NULL,"
    " kind TEXT NOT NULL,"
    " version INTEGER NOT NULL CHECK (version > 0),"
    " names TEXT NOT NULL,"
    " created_at INTEGER NOT NULL,"
    " created_by TEXT NOT NULL,"
    " updated_at INTEGER NOT NULL,"
    " UNIQUE (name, owner)) STRICT;"
    "CREATE TABLE secret_version ("
    " secret_id TEXT NOT NULL REFERENCES secret (id) ON DELETE CASCADE,"
    " version INTEGER NOT NULL,"
    " wrapped BLOB NOT NULL,"
    " sealed BLOB NOT NULL,"
    " PRIMARY KEY (secret_id, version)) STRICT;"
    "CREATE TABLE tombstone ("
    " id TEXT PRIMARY KEY,"
    " name TEXT NOT NULL,"
    " owner TEXT NOT NULL,"
    " kind TEXT NOT NULL,"
    " deleted_at INTEGER NOT NULL,"
    " deleted_by TEXT NOT NULL,"
    " cause TEXT NOT NULL,"
    " reason TEXT NOT NULL) STRICT;"

    "CREATE TABLE secret_grant ("
    " id TEXT PRIMARY KEY,"
    " secret_id TEXT NOT NULL,"
    " secret_name TEXT NOT NULL,"
    " subject TEXT NOT NULL,"
    " constraints TEXT NOT NULL,"
    " created_at INTEGER NOT NULL,"
    " created_by TEXT NOT NULL,"
    " expires_at INTEGER,"
    " revoked_at INTEGER,"
    " cause TEXT NOT NULL DEFAULT '',"
    " superseded_by TEXT NOT NULL DEFAULT '') STRICT;"
    "CREATE INDEX secret_grant_secret ON secret_grant (secret_id);"

    "CREATE TABLE lease ("
    " id TEXT PRIMARY KEY,"
    " agent_id TEXT NOT NULL REFERENCES agent (agent_id),"
    " handle INTEGER NOT NULL,"
    " handle_id TEXT NOT NULL,"
    " project TEXT NOT NULL,"
    " actor TEXT NOT NULL,"
    " issued_at INTEGER NOT NULL,"
    " expires_at INTEGER NOT NULL,"
    " holder TEXT NOT NULL,"
    " state INTEGER NOT NULL CHECK (state BETWEEN 1 AND 4),"
    " closed_at INTEGER,"
    " cause TEXT NOT NULL DEFAULT '') STRICT;"
    "CREATE INDEX lease_agent ON lease (agent_id) WHERE state = 1;"
    "CREATE INDEX lease_expires ON lease (expires_at) WHERE state = 1;"
    "CREATE INDEX lease_handle ON lease (handle);"
    "CREATE TABLE lease_item ("
    " lease_id TEXT NOT NULL REFERENCES lease (id) ON DELETE CASCADE,"
    " grant_id TEXT NOT NULL,"
    " secret_id TEXT NOT NULL,"
    " name TEXT NOT NULL,"
    " kind TEXT NOT NULL,"
    " version INTEGER NOT NULL,"
    " mode INTEGER NOT NULL,"
    " withdrawn_at INTEGER,"
    " PRIMARY KEY (lease_id, grant_id)) STRICT;"
    "CREATE INDEX lease_item_grant ON lease_item (grant_id)"
    " WHERE withdrawn_at IS NULL;"

    "CREATE TABLE revocation ("
    " lease_id TEXT NOT NULL,"
    " grant_id TEXT NOT NULL,"
    " agent_id TEXT NOT NULL,"
    " action INTEGER NOT NULL,"
    " reason TEXT NOT NULL,"
    " actor TEXT NOT NULL,"
    " state INTEGER NOT NULL CHECK (state BETWEEN 1 AND 4),"
    " sent_at INTEGER NOT NULL,"
    " acked_at INTEGER,"
    " known INTEGER NOT NULL,"
    " files_removed INTEGER NOT NULL,"
    " egress_dropped INTEGER NOT NULL,"
    " env_scrubbed TEXT NOT NULL,"
    " killed TEXT NOT NULL,"
    " error TEXT NOT NULL,"
    " widened TEXT NOT NULL,"
    " PRIMARY KEY (lease_id, grant_id, agent_id, action)) STRICT;"
    "CREATE INDEX revocation_owed ON revocation (agent_id, sent_at)"
    " WHERE state <> 2;"

    "CREATE TABLE executor_admin ("
    " agent_id TEXT PRIMARY KEY REFERENCES agent (agent_id),"
    " state INTEGER NOT NULL,"
    " reason TEXT NOT NULL,"
    " at INTEGER NOT NULL,"
    " actor TEXT NOT NULL) STRICT;";

/*
 * Bans are of names, not of agents.  confirmed_at: when a device first showed
 * that it keeps its credential; whoever was here before this is taken to.
 */
static const char store_schema_3[] =
    "CREATE TABLE ban ("
    " name TEXT PRIMARY KEY,"
    " at INTEGER NOT NULL,"
    " actor TEXT NOT NULL,"
    " reason TEXT NOT NULL) STRICT;"
    "ALTER TABLE agent ADD COLUMN confirmed_at INTEGER;"
    "UPDATE agent SET confirmed_at = coalesce(last_seen, created_at);";

/* What the files of a handle were when it had ended. */
static const char store_schema_4[] =
    "ALTER TABLE handle ADD COLUMN log_sha256 TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE handle ADD COLUMN log_modified_at INTEGER;"
    "ALTER TABLE handle ADD COLUMN index_bytes INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE handle ADD COLUMN index_sha256 TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE handle ADD COLUMN index_modified_at INTEGER;";

/* Row n takes the schema from version n to n + 1. */
static const char *const store_migrations[] = {
	store_schema_1,
	store_schema_2,
	store_schema_3,
	store_schema_4,
};
#define STORE_NMIGRATIONS                                                      \
	((int)(sizeof(store_migrations) / sizeof(store_migrations[0])))

int
store_schema_version(void)
{
	return STORE_NMIGRATIONS;
}

/* The value of a PRAGMA or of a count that yields one integer. */
static int
store_get_integer(struct store *s, const char *sql, int64_t *np)
{
	sqlite3_stmt *st = NULL;
	int rc;

	*np = 0;
	rc = sqlite3_prepare_v2(s->db, sql, -1, &st, NULL);
	if (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		*np = sqlite3_column_int64(st, 0);
		rc = SQLITE_OK;
	}
	sqlite3_finalize(st);
	return rc == SQLITE_OK ? CL_OK : store_fail(s, rc);
}

static int
store_check_origin(struct store *s, int64_t version)
{
	int64_t id, ntables;
	int r;

	if ((r = store_get_integer(s, "PRAGMA application_id", &id)) != 0 ||
	    (r = store_get_integer(s, "SELECT count(*) FROM sqlite_schema",
	    &ntables)) != 0)
		return r;
	if (id == STORE_APPLICATION_ID && version > 0)
		return CL_OK;
	if (id == 0 && version == 0 && ntables == 0)
		return CL_OK;		/* a new file */
	strlcpy(s->error, "not a database of cloop", sizeof(s->error));
	return CL_FORMAT;
}

static int
store_add_version(struct store *s, int64_t version)
{
	char sql[128];
	int r;

	snprintf(sql, sizeof(sql),
	    "PRAGMA application_id = %d; PRAGMA user_version = %lld",
	    STORE_APPLICATION_ID, (long long)version + 1);
	if ((r = store_exec(s, "BEGIN IMMEDIATE")) != 0)
		return r;
	if ((r = store_exec(s, store_migrations[version])) != 0 ||
	    (r = store_exec(s, sql)) != 0 ||
	    (r = store_exec(s, "COMMIT")) != 0) {
		if (!sqlite3_get_autocommit(s->db))
			(void)sqlite3_exec(s->db, "ROLLBACK", NULL, NULL,
			    NULL);
	}
	return r;
}

int
store_check_schema(struct store *s)
{
	int64_t version;
	int r;

	if ((r = store_get_integer(s, "PRAGMA user_version", &version)) != 0 ||
	    (r = store_check_origin(s, version)) != 0)
		return r;
	if (version > STORE_NMIGRATIONS) {
		snprintf(s->error, sizeof(s->error), "written by a newer "
		    "cloop (schema %lld, this one knows up to %d)",
		    (long long)version, STORE_NMIGRATIONS);
		return CL_VERSION;
	}
	for (; version < STORE_NMIGRATIONS; version++)
		if ((r = store_add_version(s, version)) != 0)
			return r;
	return CL_OK;
}
