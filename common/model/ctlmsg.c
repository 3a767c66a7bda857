/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The field tables of the control protocol's rows.  Data only: linked into
 * the monitor and the operator's tools.  Every bound keeps a row inside one
 * message; a map that would not fit is refused by field_put's buffer.
 */
#include "ctlmsg.h"

#include "common/base/limits.h"
#include "common/msg/msgcat.h"

/* Ids, names, addresses, versions: nothing longer is ever stored. */
#define MAX_SHORT 512
/* Audit details are bounded by the store; a row must fit one message. */
#define MAX_DETAIL 12288
#define MAX_ISSUES 32
#define MAX_LEASES 128

static const struct field ctl_status_table_rows[] = {
	F_STR(struct ctl_status, version, "version", 0, MAX_SHORT),
	F_UINT(struct ctl_status, uptime_s, "uptime_s", 0, UINT64_MAX),
	F_UINT(struct ctl_status, online, "online", 0, UINT64_MAX),
	F_UINT(struct ctl_status, offline, "offline", 0, UINT64_MAX),
	F_UINT(struct ctl_status, unreachable, "unreachable", 0, UINT64_MAX),
	F_UINT(struct ctl_status, duplicates, "duplicates", 0, UINT64_MAX),
	F_UINT(struct ctl_status, running, "running", 0, UINT64_MAX),
	F_UINT(struct ctl_status, draining, "draining", 0, UINT64_MAX),
	F_UINT(struct ctl_status, finished, "finished", 0, UINT64_MAX),
	F_UINT(struct ctl_status, pinned, "pinned", 0, UINT64_MAX),
	F_UINT(struct ctl_status, limit_agent, "limit_agent", 0, UINT64_MAX),
	F_UINT(struct ctl_status, limit_total, "limit_total", 0, UINT64_MAX),
	F_STR(struct ctl_status, server, "server", 0, MAX_URL_LEN),
	F_STR(struct ctl_status, pin, "pin", 0, MAX_SHORT),
};
F_TABLE(ctl_status_table, struct ctl_status);

static const struct field ctl_worker_table_rows[] = {
	F_UINT(struct ctl_worker, id, "id", 0, UINT64_MAX),
	F_STR(struct ctl_worker, program, "program", 0, MAX_SHORT),
	F_INT(struct ctl_worker, pid, "pid", 0, 0, INT64_MAX),
	F_UINT(struct ctl_worker, sessions, "sessions", 0, UINT64_MAX),
	F_UINT(struct ctl_worker, restarts, "restarts", 0, UINT64_MAX),
	F_STR(struct ctl_worker, last_end, "last_end", 0, MAX_SHORT),
};
F_TABLE(ctl_worker_table, struct ctl_worker);

static const struct field ctl_agent_table_rows[] = {
	F_STR(struct ctl_agent, agent_id, "agent_id", 0, MAX_SHORT),
	F_STR(struct ctl_agent, name, "name", 0, MAX_SHORT),
	F_INT(struct ctl_agent, status, "status", 0, AGENT_ONLINE,
	    AGENT_UNREACHABLE),
	F_TIME(struct ctl_agent, status_at, "status_at", 0),
	F_STR(struct ctl_agent, reason, "reason", 0, MAX_SHORT),
	F_UINT(struct ctl_agent, protocol, "protocol", 0, UINT32_MAX),
	F_UINT(struct ctl_agent, agent_protocol, "agent_protocol", 0,
	    UINT32_MAX),
	F_STR(struct ctl_agent, agent_version, "agent_version", 0, MAX_SHORT),
	F_TIME(struct ctl_agent, last_seen, "last_seen", 0),
	F_TIME(struct ctl_agent, created_at, "created_at", 0),
	F_TIME(struct ctl_agent, revoked_at, "revoked_at", 0),
	F_TIME(struct ctl_agent, confirmed_at, "confirmed_at", 0),
	F_BOOL(struct ctl_agent, banned, "banned", 0),
	F_STR(struct ctl_agent, enrollment_id, "enrollment_id", 0, MAX_SHORT),
	F_STR(struct ctl_agent, workdir_root, "workdir_root", 0, MAX_PATH_LEN),
	F_STR(struct ctl_agent, peer, "peer", 0, MAX_SHORT),
	F_MAP(struct ctl_agent, labels, "labels", 0, MAX_LABELS,
	    MAX_LABEL_LEN),
	F_BOOL(struct ctl_agent, cordoned, "cordoned", 0),
	F_STR(struct ctl_agent, supervision, "supervision", 0, MAX_SHORT),
	F_UINT(struct ctl_agent, running, "running", 0, UINT64_MAX),
	F_UINT(struct ctl_agent, max_concurrent, "max_concurrent", 0,
	    UINT64_MAX),
	F_STRS(struct ctl_agent, issues, "issues", 0, MAX_ISSUES, MAX_SHORT),
	F_UINT(struct ctl_agent, caps_len, "caps_len", 0, UINT32_MAX),
};
F_TABLE(ctl_agent_table, struct ctl_agent);

static const struct field ctl_handle_table_rows[] = {
	F_STR(struct ctl_handle, handle_id, "handle_id", 0, MAX_SHORT),
	F_STR(struct ctl_handle, agent_id, "agent_id", 0, MAX_SHORT),
	F_STR(struct ctl_handle, agent, "agent", 0, MAX_SHORT),
	F_STR(struct ctl_handle, name, "name", 0, MAX_SHORT),
	F_INT(struct ctl_handle, state, "state", 0, HS_PENDING, HS_UNKNOWN),
	F_INT(struct ctl_handle, pid, "pid", 0, INT64_MIN, INT64_MAX),
	F_OPTINT(struct ctl_handle, exit_code, "exit_code", 0, INT64_MIN,
	    INT64_MAX),
	F_STR(struct ctl_handle, outcome, "outcome", 0, MAX_SHORT),
	F_STR(struct ctl_handle, error, "error", 0, MAX_ERROR_TEXT_LEN),
	F_STR(struct ctl_handle, created_by, "created_by", 0, MAX_SHORT),
	F_TIME(struct ctl_handle, dispatched_at, "dispatched_at", 0),
	F_TIME(struct ctl_handle, started_at, "started_at", 0),
	F_TIME(struct ctl_handle, finished_at, "finished_at", 0),
	F_UINT(struct ctl_handle, log_bytes, "log_bytes", 0, UINT64_MAX),
	F_UINT(struct ctl_handle, received, "received", 0, UINT64_MAX),
	F_BOOL(struct ctl_handle, gapped, "gapped", 0),
	F_STRS(struct ctl_handle, leases, "leases", 0, MAX_LEASES,
	    MAX_ID_LEN),
};
F_TABLE(ctl_handle_table, struct ctl_handle);

static const struct field ctl_event_table_rows[] = {
	F_STR(struct ctl_event, event, "event", 0, MAX_SHORT),
	F_STR(struct ctl_event, handle_id, "handle_id", 0, MAX_SHORT),
	F_STR(struct ctl_event, agent_id, "agent_id", 0, MAX_SHORT),
	F_STR(struct ctl_event, agent, "agent", 0, MAX_SHORT),
	F_TIME(struct ctl_event, at, "at", 0),
	F_INT(struct ctl_event, pid, "pid", 0, INT64_MIN, INT64_MAX),
	F_TIME(struct ctl_event, started_at, "started_at", 0),
};
F_TABLE(ctl_event_table, struct ctl_event);

static const struct field ctl_file_table_rows[] = {
	F_STR(struct ctl_file, handle_id, "handle_id", 0, 256),
};
F_TABLE(ctl_file_table, struct ctl_file);

static const struct field ctl_audit_table_rows[] = {
	F_UINT(struct ctl_audit, seq, "seq", 0, UINT64_MAX),
	F_TIME(struct ctl_audit, at, "at", 0),
	F_STR(struct ctl_audit, action, "action", 0, MAX_SHORT),
	F_STR(struct ctl_audit, actor, "actor", 0, MAX_SHORT),
	F_STR(struct ctl_audit, decision, "decision", 0, MAX_SHORT),
	F_STR(struct ctl_audit, entity, "entity", 0, MAX_SHORT),
	F_STR(struct ctl_audit, subject, "subject", 0, MAX_SHORT),
	F_STR(struct ctl_audit, detail, "detail", 0, MAX_DETAIL),
	F_STR(struct ctl_audit, prev, "prev", 0, 64),
	F_STR(struct ctl_audit, hash, "hash", 0, 64),
};
F_TABLE(ctl_audit_table, struct ctl_audit);

static const struct field ctl_verify_table_rows[] = {
	F_BOOL(struct ctl_verify, ok, "ok", 0),
	F_UINT(struct ctl_verify, nrows, "rows", 0, UINT64_MAX),
	F_UINT(struct ctl_verify, broken_seq, "broken_seq", 0, UINT64_MAX),
	F_STR(struct ctl_verify, reason, "reason", 0, MAX_SHORT),
	F_STR(struct ctl_verify, head, "head", 0, 64),
};
F_TABLE(ctl_verify_table, struct ctl_verify);

static const struct field ctl_mint_table_rows[] = {
	F_STR(struct ctl_mint, name, "name", 0, MAX_SHORT),
	F_INT(struct ctl_mint, ttl_s, "ttl_s", 0, INT64_MIN, INT64_MAX),
	F_STR(struct ctl_mint, workdir_root, "workdir_root", 0, MAX_PATH_LEN),
	F_MAP(struct ctl_mint, labels, "labels", 0, MAX_LABELS,
	    MAX_LABEL_LEN),
	F_STR(struct ctl_mint, server, "server", 0, MAX_URL_LEN),
	F_STR(struct ctl_mint, pin, "pin", 0, 1024),
};
F_TABLE(ctl_mint_table, struct ctl_mint);

static const struct field ctl_minted_table_rows[] = {
	F_STR(struct ctl_minted, enrollment_id, "enrollment_id", 0, MAX_SHORT),
	F_STR(struct ctl_minted, name, "name", 0, MAX_SHORT),
	F_SECRET(struct ctl_minted, token, "token", 0, MAX_TOKEN_LEN),
	F_STR(struct ctl_minted, workdir_root, "workdir_root", 0,
	    MAX_PATH_LEN),
	F_STR(struct ctl_minted, server, "server", 0, MAX_URL_LEN),
	F_STR(struct ctl_minted, pin, "pin", 0, 1024),
	F_TIME(struct ctl_minted, created_at, "created_at", 0),
	F_TIME(struct ctl_minted, expires_at, "expires_at", 0),
};
F_TABLE(ctl_minted_table, struct ctl_minted);

static const struct field ctl_enrollment_table_rows[] = {
	F_STR(struct ctl_enrollment, enrollment_id, "enrollment_id", 0,
	    MAX_SHORT),
	F_STR(struct ctl_enrollment, name, "name", 0, MAX_SHORT),
	F_TIME(struct ctl_enrollment, created_at, "created_at", 0),
	F_TIME(struct ctl_enrollment, expires_at, "expires_at", 0),
	F_STR(struct ctl_enrollment, created_by, "created_by", 0, MAX_SHORT),
	F_STR(struct ctl_enrollment, workdir_root, "workdir_root", 0,
	    MAX_PATH_LEN),
	F_MAP(struct ctl_enrollment, labels, "labels", 0, MAX_LABELS,
	    MAX_LABEL_LEN),
};
F_TABLE(ctl_enrollment_table, struct ctl_enrollment);

static const struct field ctl_revoked_table_rows[] = {
	F_STR(struct ctl_revoked, kind, "kind", 0, 64),
	F_STR(struct ctl_revoked, enrollment_id, "enrollment_id", 0,
	    MAX_SHORT),
	F_STR(struct ctl_revoked, agent_id, "agent_id", 0, MAX_SHORT),
	F_STR(struct ctl_revoked, name, "name", 0, MAX_SHORT),
	F_BOOL(struct ctl_revoked, dropped, "dropped", 0),
	F_UINT(struct ctl_revoked, nfailed, "failed", 0, UINT64_MAX),
};
F_TABLE(ctl_revoked_table, struct ctl_revoked);

static const struct field ctl_ban_table_rows[] = {
	F_STR(struct ctl_ban, name, "name", 0, MAX_SHORT),
	F_STR(struct ctl_ban, reason, "reason", 0, MAX_SHORT),
	F_STR(struct ctl_ban, actor, "actor", 0, MAX_SHORT),
	F_TIME(struct ctl_ban, at, "at", 0),
	F_UINT(struct ctl_ban, nagents, "agents", 0, UINT64_MAX),
	F_UINT(struct ctl_ban, ndropped, "dropped", 0, UINT64_MAX),
	F_UINT(struct ctl_ban, nfailed, "failed", 0, UINT64_MAX),
};
F_TABLE(ctl_ban_table, struct ctl_ban);

const char *
ctl_format_agent_status(int64_t status)
{
	static const char *const words[] = {
		[AGENT_ONLINE] = "online",
		[AGENT_OFFLINE] = "offline",
		[AGENT_UNREACHABLE] = "unreachable",
	};

	if (status < AGENT_ONLINE || status > AGENT_UNREACHABLE)
		return "unknown";
	return words[status];
}

const char *
ctl_format_handle_state(int64_t state)
{
	static const char *const words[] = {
		[HS_PENDING] = "pending", [HS_RUNNING] = "running",
		[HS_EXITED] = "exited", [HS_FAILED] = "failed",
		[HS_KILLED] = "killed", [HS_UNKNOWN] = "unknown",
	};

	if (state < HS_PENDING || state > HS_UNKNOWN)
		return "unknown";
	return words[state];
}

int
ctl_is_terminal(int64_t state)
{
	return state == HS_EXITED || state == HS_FAILED || state == HS_KILLED;
}
