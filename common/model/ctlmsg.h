/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Bodies of the control protocol's rows (msgcat.h, hub-ctl): one struct and
 * one field table per ROW_* and for CTL_MINT.  Made by the monitor, read by
 * cloopctl and cloop-enroll; cloopd-ctl forwards them unread.  A body is
 * field_put(&ctl_xxx_table, &row, &body) and nothing after it; the reader
 * does field_get(), then buf_end().
 *
 * The keys are those of cloopctl's JSON, but the documents are its own
 * affair: there, unknown (0, "", UTIL_TIME_ZERO as noted) becomes null.
 */
#ifndef CLOOP_CTLMSG_H
#define CLOOP_CTLMSG_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/secret.h"
#include "common/msg/field.h"

/* ROW_STATUS */
struct ctl_status {
	char *version;		/* of cloopd */
	uint64_t uptime_s;
	uint64_t online, offline, unreachable;
	uint64_t duplicates;	/* identities that several hosts use */
	uint64_t running, draining, finished;
	uint64_t pinned, limit_agent, limit_total;	/* returned work */
	char *server;		/* URL agents dial; "" without ExternalURL */
	char *pin;		/* "sha256:..." of the TLS key */
};

/* ROW_WORKER: one per child of the hub, the cloopd-net workers first. */
struct ctl_worker {
	uint64_t id;		/* 1.. among those of its program */
	char *program;		/* "cloopd-net", "cloopd-key", "cloopd-ctl" */
	int64_t pid;		/* 0: not running now */
	uint64_t sessions;
	uint64_t restarts;
	char *last_end;		/* why it was last replaced; "" never */
};

/* ROW_AGENT, with a memfd: struct caps (caps.h) in message form, or
 * an empty one when caps_len is 0 (never connected). */
struct ctl_agent {
	char *agent_id;
	char *name;
	int64_t status;		/* AGENT_* */
	int64_t status_at;
	char *reason;		/* of the last transition */
	uint64_t protocol;	/* negotiated; 0: never connected */
	uint64_t agent_protocol;	/* newest it speaks; 0 unknown */
	char *agent_version;
	int64_t last_seen;
	int64_t created_at;
	int64_t revoked_at;	/* UTIL_TIME_ZERO: not revoked */
	int64_t confirmed_at;	/* UTIL_TIME_ZERO: it may have lost its
				 * credential before it could save it */
	int banned;		/* its name is */
	char *enrollment_id;
	char *workdir_root;	/* from the enrollment */
	char *peer;		/* address of the session; "" when none */
	struct field_pair *labels;	/* of the enrollment: they authorise */
	size_t nlabels;
	int cordoned;
	char *supervision;	/* ready, degraded, ... */
	uint64_t running;
	uint64_t max_concurrent;	/* 0 unknown */
	char **issues;		/* sentences */
	size_t nissues;
	uint64_t caps_len;
};

/* ROW_HANDLE */
struct ctl_handle {
	char *handle_id;
	char *agent_id;
	char *agent;		/* its name */
	char *name;		/* what --name said; "" */
	int64_t state;		/* HS_* */
	int64_t pid;		/* 0 unknown */
	struct field_optint exit_code;	/* set once terminal */
	char *outcome;		/* "disk_limit" or "" */
	char *error;
	char *created_by;
	int64_t dispatched_at;	/* hub clock */
	int64_t started_at;	/* UTIL_TIME_ZERO: not yet */
	int64_t finished_at;
	uint64_t log_bytes;	/* kept bytes of the log file */
	uint64_t received;	/* wire offset */
	int gapped;
	char **leases;
	size_t nleases;
};

/* ROW_EVENT: steps of a CTL_RUN.  How it ends is the ROW_HANDLE (or the
 * CTL_ERR: then nothing runs and no handle is kept). */
struct ctl_event {
	char *event;		/* "dispatched", "started" */
	char *handle_id;
	char *agent_id;
	char *agent;
	int64_t at;		/* hub clock */
	int64_t pid;		/* started only */
	int64_t started_at;	/* started only, device clock */
};

/* ROW_LOG and ROW_INDEX: which handle the descriptor belongs to. */
struct ctl_file {
	char *handle_id;
};

/* ROW_AUDIT */
struct ctl_audit {
	uint64_t seq;
	int64_t at;
	char *action;
	char *actor;
	char *decision;		/* "allow", "deny" or "" */
	char *entity;		/* executor, enrollment, handle, ... */
	char *subject;
	char *detail;		/* canonical JSON object */
	char *prev;		/* 64 hex digits */
	char *hash;
};

/* ROW_VERIFY */
struct ctl_verify {
	int ok;
	uint64_t nrows;		/* rows walked */
	uint64_t broken_seq;	/* first broken row; 0 */
	char *reason;
	char *head;		/* hash of the last good row; "" */
};

/* CTL_MINT */
struct ctl_mint {
	char *name;
	int64_t ttl_s;		/* 0: the default */
	char *workdir_root;
	struct field_pair *labels;
	size_t nlabels;
	char *server;		/* "": from ExternalURL */
	char *pin;		/* "": of the hub's TLS key */
};

/* ROW_MINT.  The bundle is made of it by the client (common/model/bundle.h). */
struct ctl_minted {
	char *enrollment_id;
	char *name;
	struct secret token;	/* the only time it exists */
	char *workdir_root;
	char *server;		/* "" when neither given nor configured */
	char *pin;
	int64_t created_at;
	int64_t expires_at;
};

/* ROW_ENROLLMENT */
struct ctl_enrollment {
	char *enrollment_id;
	char *name;
	int64_t created_at;
	int64_t expires_at;
	char *created_by;
	char *workdir_root;
	struct field_pair *labels;
	size_t nlabels;
};

/* ROW_REVOKED */
struct ctl_revoked {
	char *kind;		/* enrollment, agent, enrollment+agent */
	char *enrollment_id;	/* "" */
	char *agent_id;		/* "" */
	char *name;
	int dropped;		/* a live session was closed */
	uint64_t nfailed;	/* workloads that were failed by it */
};

/* ROW_BAN */
struct ctl_ban {
	char *name;
	char *reason;
	char *actor;
	int64_t at;
	uint64_t nagents;	/* revoked by CTL_BAN */
	uint64_t ndropped;	/* sessions closed */
	uint64_t nfailed;	/* workloads */
};

extern const struct field_table ctl_status_table, ctl_worker_table,
    ctl_agent_table, ctl_handle_table, ctl_event_table, ctl_file_table,
    ctl_audit_table, ctl_verify_table, ctl_mint_table, ctl_minted_table,
    ctl_enrollment_table, ctl_revoked_table, ctl_ban_table;

/* In words: "online", "running"; "unknown". */
const char *ctl_format_agent_status(int64_t status);
const char *ctl_format_handle_state(int64_t state);
/* 1 for exited, failed and killed. */
int ctl_is_terminal(int64_t state);

#endif
