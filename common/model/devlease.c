/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The field tables of devlease.h.  Data only; linked into agentd-fetch and
 * the device monitor.  The bounds are those of the frames.
 */
#include "devlease.h"

#include "common/base/limits.h"

#define MAX_LEASE_TEXT 4096		/* as net/codec/frame_int.h */
#define MAX_LEASE_FILES 1024

static const struct field dev_revoke_table_rows[] = {
	F_STR(struct dev_revoke, lease_id, "lease_id", 0, MAX_LEASE_TEXT),
	F_STR(struct dev_revoke, grant_id, "grant_id", 0, MAX_LEASE_TEXT),
	F_STR(struct dev_revoke, reason, "reason", 0, MAX_ERROR_TEXT_LEN),
	F_BOOL(struct dev_revoke, kill, "kill", 0),
};
F_TABLE(dev_revoke_table, struct dev_revoke);

static const struct field dev_revoked_table_rows[] = {
	F_BOOL(struct dev_revoked, known, "known", 0),
	F_STRS(struct dev_revoked, env_scrubbed, "env_scrubbed", 0, MAX_ENV,
	    MAX_LEASE_TEXT),
	F_INT(struct dev_revoked, files_removed, "files_removed", 0, 0,
	    INT64_MAX),
	F_BOOL(struct dev_revoked, egress_dropped, "egress_dropped", 0),
	F_STRS(struct dev_revoked, killed, "killed", 0, MAX_CONCURRENT,
	    MAX_ID_LEN),
	F_STR(struct dev_revoked, error, "error", 0, MAX_ERROR_TEXT_LEN),
};
F_TABLE(dev_revoked_table, struct dev_revoked);

static const struct field dev_refresh_table_rows[] = {
	F_STR(struct dev_refresh, lease_id, "lease_id", 0, MAX_LEASE_TEXT),
	F_LIST(struct dev_refresh, files, "files", 0, MAX_LEASE_FILES,
	    &spec_secret_file_table),
	F_STR(struct dev_refresh, reason, "reason", 0, MAX_ERROR_TEXT_LEN),
};
F_TABLE(dev_refresh_table, struct dev_refresh);

static const struct field dev_refreshed_table_rows[] = {
	F_BOOL(struct dev_refreshed, known, "known", 0),
	F_INT(struct dev_refreshed, files_rewritten, "files_rewritten", 0, 0,
	    INT64_MAX),
	F_STRS(struct dev_refreshed, handles, "handles", 0, MAX_CONCURRENT,
	    MAX_ID_LEN),
	F_STR(struct dev_refreshed, error, "error", 0, MAX_ERROR_TEXT_LEN),
};
F_TABLE(dev_refreshed_table, struct dev_refreshed);
