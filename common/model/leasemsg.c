/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The field tables of leasemsg.h.  Data only; linked into cloopd-net and
 * the monitor.  The bounds keep a report inside one message.
 */
#include "leasemsg.h"

#include "common/base/limits.h"

static const struct field lease_revoked_table_rows[] = {
	F_BOOL(struct lease_revoked, known, "known", 0),
	F_STRS(struct lease_revoked, env_scrubbed, "env_scrubbed", 0,
	    LEASE_NAMES_MAX, MAX_ID_LEN),
	F_INT(struct lease_revoked, files_removed, "files_removed", 0, 0,
	    INT64_MAX),
	F_BOOL(struct lease_revoked, egress_dropped, "egress_dropped", 0),
	F_STRS(struct lease_revoked, killed, "killed", 0, LEASE_NAMES_MAX,
	    MAX_ID_LEN),
	F_STR(struct lease_revoked, error, "error", 0, LEASE_ERROR_MAX),
};
F_TABLE(lease_revoked_table, struct lease_revoked);

static const struct field lease_refresh_table_rows[] = {
	F_STR(struct lease_refresh, lease_id, "lease_id", 0, MAX_ID_LEN),
	F_LIST(struct lease_refresh, files, "files", 0, 64,
	    &spec_secret_file_table),
	F_STR(struct lease_refresh, reason, "reason", 0, 512),
};
F_TABLE(lease_refresh_table, struct lease_refresh);

static const struct field lease_refreshed_table_rows[] = {
	F_BOOL(struct lease_refreshed, known, "known", 0),
	F_INT(struct lease_refreshed, files_rewritten, "files_rewritten", 0,
	    0, INT64_MAX),
	F_STRS(struct lease_refreshed, handles, "handles", 0,
	    LEASE_NAMES_MAX, MAX_ID_LEN),
	F_BOOL(struct lease_refreshed, eventual, "eventual", 0),
	F_BOOL(struct lease_refreshed, unsupported, "unsupported", 0),
	F_STR(struct lease_refreshed, error, "error", 0, LEASE_ERROR_MAX),
};
F_TABLE(lease_refreshed_table, struct lease_refreshed);
