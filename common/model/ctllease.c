/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The field tables of ctllease.h.  Data only: linked into the monitor and
 * the operator's tools.  Every bound keeps a row inside one message.
 */
#include "ctllease.h"

#include "common/base/limits.h"
#include "leasemsg.h"

#define MAX_SHORT 512
#define MAX_ITEMS 32		/* secrets of one lease; more is refused */
#define MAX_CONSTRAINTS 16

static const struct field ctl_secret_table_rows[] = {
	F_STR(struct ctl_secret, secret_id, "secret_id", 0, MAX_ID_LEN),
	F_STR(struct ctl_secret, name, "name", 0, MAX_NAME_LEN),
	F_STR(struct ctl_secret, kind, "kind", 0, MAX_ID_LEN),
	F_STR(struct ctl_secret, owner, "owner", 0, MAX_ID_LEN),
	F_UINT(struct ctl_secret, version, "version", 0, UINT64_MAX),
	F_STRS(struct ctl_secret, env_names, "env_names", 0, 64, 128),
	F_TIME(struct ctl_secret, created_at, "created_at", 0),
	F_TIME(struct ctl_secret, updated_at, "updated_at", 0),
	F_STR(struct ctl_secret, created_by, "created_by", 0, MAX_SHORT),
};
F_TABLE(ctl_secret_table, struct ctl_secret);

static const struct field ctl_grant_add_table_rows[] = {
	F_STR(struct ctl_grant_add, secret, "secret", 0, MAX_NAME_LEN),
	F_STR(struct ctl_grant_add, subject, "subject", 0, MAX_PATH_LEN),
	F_INT(struct ctl_grant_add, ttl_s, "ttl_s", 0, 0, INT32_MAX),
	F_MAP(struct ctl_grant_add, constraints, "constraints", 0,
	    MAX_CONSTRAINTS, MAX_SHORT),
	F_STR(struct ctl_grant_add, supersedes, "supersedes", 0, MAX_ID_LEN),
};
F_TABLE(ctl_grant_add_table, struct ctl_grant_add);

static const struct field ctl_grant_table_rows[] = {
	F_STR(struct ctl_grant, grant_id, "grant_id", 0, MAX_ID_LEN),
	F_STR(struct ctl_grant, secret, "secret", 0, MAX_NAME_LEN),
	F_STR(struct ctl_grant, secret_id, "secret_id", 0, MAX_ID_LEN),
	F_STR(struct ctl_grant, subject, "subject", 0, MAX_PATH_LEN),
	F_STR(struct ctl_grant, constraints, "constraints", 0, 10240),
	F_TIME(struct ctl_grant, created_at, "created_at", 0),
	F_STR(struct ctl_grant, created_by, "created_by", 0, MAX_SHORT),
	F_TIME(struct ctl_grant, expires_at, "expires_at", 0),
	F_TIME(struct ctl_grant, revoked_at, "revoked_at", 0),
	F_STR(struct ctl_grant, cause, "cause", 0, MAX_SHORT),
	F_STR(struct ctl_grant, superseded_by, "superseded_by", 0,
	    MAX_ID_LEN),
};
F_TABLE(ctl_grant_table, struct ctl_grant);

static const struct field ctl_lease_table_rows[] = {
	F_STR(struct ctl_lease, lease_id, "lease_id", 0, MAX_ID_LEN),
	F_STR(struct ctl_lease, agent_id, "agent_id", 0, MAX_ID_LEN),
	F_STR(struct ctl_lease, agent, "agent", 0, MAX_SHORT),
	F_STR(struct ctl_lease, handle_id, "handle_id", 0, MAX_ID_LEN),
	F_STR(struct ctl_lease, project, "project", 0, MAX_SHORT),
	F_STR(struct ctl_lease, actor, "actor", 0, MAX_ID_LEN),
	F_STR(struct ctl_lease, state, "state", 0, MAX_ID_LEN),
	F_TIME(struct ctl_lease, issued_at, "issued_at", 0),
	F_TIME(struct ctl_lease, expires_at, "expires_at", 0),
	F_TIME(struct ctl_lease, closed_at, "closed_at", 0),
	F_STR(struct ctl_lease, cause, "cause", 0, MAX_SHORT),
	F_STRS(struct ctl_lease, secrets, "secrets", 0, MAX_ITEMS,
	    MAX_NAME_LEN),
	F_STRS(struct ctl_lease, grants, "grants", 0, MAX_ITEMS, MAX_ID_LEN),
	F_STR(struct ctl_lease, revocation, "revocation", 0, MAX_ID_LEN),
};
F_TABLE(ctl_lease_table, struct ctl_lease);

static const struct field ctl_outcome_table_rows[] = {
	F_STR(struct ctl_outcome, agent_id, "agent_id", 0, MAX_ID_LEN),
	F_STR(struct ctl_outcome, agent, "agent", 0, MAX_SHORT),
	F_STR(struct ctl_outcome, lease_id, "lease_id", 0, MAX_ID_LEN),
	F_STR(struct ctl_outcome, grant_id, "grant_id", 0, MAX_ID_LEN),
	F_STR(struct ctl_outcome, state, "state", 0, MAX_ID_LEN),
	F_STR(struct ctl_outcome, action, "action", 0, MAX_ID_LEN),
	F_STR(struct ctl_outcome, reason, "reason", 0, MAX_SHORT),
	F_TIME(struct ctl_outcome, sent_at, "sent_at", 0),
	F_TIME(struct ctl_outcome, acked_at, "acked_at", 0),
	F_BOOL(struct ctl_outcome, known, "known", 0),
	F_INT(struct ctl_outcome, files_removed, "files_removed", 0, 0,
	    INT64_MAX),
	F_STRS(struct ctl_outcome, env_scrubbed, "env_scrubbed", 0,
	    LEASE_NAMES_MAX, MAX_ID_LEN),
	F_BOOL(struct ctl_outcome, egress_dropped, "egress_dropped", 0),
	F_STRS(struct ctl_outcome, killed, "killed", 0, LEASE_NAMES_MAX,
	    MAX_ID_LEN),
	F_STR(struct ctl_outcome, error, "error", 0, LEASE_ERROR_MAX),
	F_STR(struct ctl_outcome, widened, "widened", 0, MAX_SHORT),
};
F_TABLE(ctl_outcome_table, struct ctl_outcome);

static const struct field ctl_refreshed_table_rows[] = {
	F_STR(struct ctl_refreshed, agent_id, "agent_id", 0, MAX_ID_LEN),
	F_STR(struct ctl_refreshed, agent, "agent", 0, MAX_SHORT),
	F_STR(struct ctl_refreshed, lease_id, "lease_id", 0, MAX_ID_LEN),
	F_BOOL(struct ctl_refreshed, known, "known", 0),
	F_INT(struct ctl_refreshed, files_rewritten, "files_rewritten", 0, 0,
	    INT64_MAX),
	F_STRS(struct ctl_refreshed, handles, "handles", 0, LEASE_NAMES_MAX,
	    MAX_ID_LEN),
	F_BOOL(struct ctl_refreshed, eventual, "eventual", 0),
	F_BOOL(struct ctl_refreshed, unsupported, "unsupported", 0),
	F_STR(struct ctl_refreshed, error, "error", 0, LEASE_ERROR_MAX),
};
F_TABLE(ctl_refreshed_table, struct ctl_refreshed);
