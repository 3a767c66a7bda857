/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Rows of the control protocol about secrets, grants and leases: the rest
 * of ctlmsg.h, with the same rules.  No value of a secret is in any of them.
 */
#ifndef CLOOP_CTLLEASE_H
#define CLOOP_CTLLEASE_H

#include <stddef.h>
#include <stdint.h>

#include "common/msg/field.h"

/* ROW_SECRET */
struct ctl_secret {
	char *secret_id;
	char *name;
	char *kind;
	char *owner;		/* "uid:1000" when personal; "" shared */
	uint64_t version;
	char **env_names;	/* variables it sets; names only */
	size_t nenv_names;
	int64_t created_at;
	int64_t updated_at;
	char *created_by;
};

/* CTL_GRANT_ADD */
struct ctl_grant_add {
	char *secret;		/* its name */
	char *subject;		/* project:P executor:E label:k=v,.. any */
	int64_t ttl_s;		/* 0: GrantTTL */
	struct field_pair *constraints;
	size_t nconstraints;
	char *supersedes;	/* a grant this one replaces; "" */
};

/* ROW_GRANT */
struct ctl_grant {
	char *grant_id;
	char *secret;
	char *secret_id;
	char *subject;
	char *constraints;	/* canonical JSON object */
	int64_t created_at;
	char *created_by;
	int64_t expires_at;
	int64_t revoked_at;	/* UTIL_TIME_ZERO: not revoked */
	char *cause;
	char *superseded_by;
};

/* ROW_LEASE */
struct ctl_lease {
	char *lease_id;
	char *agent_id;
	char *agent;
	char *handle_id;
	char *project;
	char *actor;
	char *state;		/* live, released, revoked, expired */
	int64_t issued_at;
	int64_t expires_at;
	int64_t closed_at;
	char *cause;
	char **secrets;		/* names */
	size_t nsecrets;
	char **grants;
	size_t ngrants;
	char *revocation;	/* pending, revoked, unreachable, failed; "" */
};

/* ROW_OUTCOME: one revocation on one agent. */
struct ctl_outcome {
	char *agent_id;
	char *agent;
	char *lease_id;
	char *grant_id;
	char *state;		/* pending, revoked, unreachable, failed */
	char *action;		/* scrub, kill */
	char *reason;
	int64_t sent_at;
	int64_t acked_at;	/* UTIL_TIME_ZERO: no report came */
	int known;
	int64_t files_removed;
	char **env_scrubbed;
	size_t nenv_scrubbed;
	int egress_dropped;
	char **killed;
	size_t nkilled;
	char *error;
	char *widened;		/* why the whole lease went; "" */
};

/* ROW_REFRESHED */
struct ctl_refreshed {
	char *agent_id;
	char *agent;
	char *lease_id;
	int known;
	int64_t files_rewritten;
	char **handles;
	size_t nhandles;
	int eventual;
	int unsupported;
	char *error;
};

extern const struct field_table ctl_secret_table, ctl_grant_add_table,
    ctl_grant_table, ctl_lease_table, ctl_outcome_table,
    ctl_refreshed_table;

#endif
