/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Payloads that take secrets back or replace them: revoke, revoked,
 * secret_refresh, secret_refreshed.  Runs where frame.c runs.
 */
#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/rule.h"
#include "frame_int.h"

#define O FIELD_OMIT
#define PROSE (FIELD_OMIT | FIELD_PROSE)
#define MAX_NAMES 4096			/* variables, handles of a report */
#define MAX_REFRESH_FILES 1024

static const struct field frame_revoke_table_rows[] = {
	F_STR(struct frame_revoke, lease_id, "lease_id", 0, FRAME_TEXT_MAX),
	F_STR(struct frame_revoke, grant_id, "grant_id", O, FRAME_TEXT_MAX),
	F_STR(struct frame_revoke, reason, "reason", PROSE,
	    MAX_ERROR_TEXT_LEN),
	F_STR(struct frame_revoke, action, "action", O, FRAME_WORD_MAX),
};
F_TABLE(frame_revoke_table, struct frame_revoke);

static const struct field frame_revoked_table_rows[] = {
	F_STR(struct frame_revoked, lease_id, "lease_id", 0, FRAME_TEXT_MAX),
	F_STR(struct frame_revoked, grant_id, "grant_id", O, FRAME_TEXT_MAX),
	F_STR(struct frame_revoked, action, "action", PROSE, FRAME_WORD_MAX),
	F_BOOL(struct frame_revoked, known, "known", 0),
	F_STRS(struct frame_revoked, env_scrubbed, "env_scrubbed", O,
	    MAX_NAMES, FRAME_TEXT_MAX),
	F_INT64(struct frame_revoked, files_removed, "files_removed", O),
	F_BOOL(struct frame_revoked, egress_dropped, "egress_dropped", O),
	F_STRS(struct frame_revoked, killed, "killed", O, MAX_NAMES,
	    FRAME_TEXT_MAX),
	F_STR(struct frame_revoked, error, "error", PROSE,
	    MAX_ERROR_TEXT_LEN),
};
F_TABLE(frame_revoked_table, struct frame_revoked);

static const struct field frame_secret_refresh_table_rows[] = {
	F_STR(struct frame_secret_refresh, lease_id, "lease_id", 0,
	    FRAME_TEXT_MAX),
	F_LIST(struct frame_secret_refresh, files, "files", 0,
	    MAX_REFRESH_FILES, &spec_secret_file_table),
	F_STR(struct frame_secret_refresh, reason, "reason", PROSE,
	    MAX_ERROR_TEXT_LEN),
};
F_TABLE(frame_secret_refresh_table, struct frame_secret_refresh);

static const struct field frame_secret_refreshed_table_rows[] = {
	F_STR(struct frame_secret_refreshed, lease_id, "lease_id", 0,
	    FRAME_TEXT_MAX),
	F_BOOL(struct frame_secret_refreshed, known, "known", 0),
	F_INT64(struct frame_secret_refreshed, files_rewritten,
	    "files_rewritten", O),
	F_STRS(struct frame_secret_refreshed, handles, "handles", O,
	    MAX_NAMES, FRAME_TEXT_MAX),
	F_BOOL(struct frame_secret_refreshed, eventual, "eventual", O),
	F_BOOL(struct frame_secret_refreshed, unsupported, "unsupported", O),
	F_STR(struct frame_secret_refreshed, error, "error", PROSE,
	    MAX_ERROR_TEXT_LEN),
};
F_TABLE(frame_secret_refreshed_table, struct frame_secret_refreshed);

int
frame_check_revoke(struct jx *x, void *payload)
{
	const struct frame_revoke *p = payload;

	/* There is no wildcard: a blank lease never means all. */
	if (rule_is_blank(p->lease_id))
		return jx_fail(x, CL_FORMAT, "lease_id: blank");
	return CL_OK;
}

int
frame_check_secret_refresh(struct jx *x, void *payload)
{
	const struct frame_secret_refresh *p = payload;
	char *why = NULL;
	size_t i;
	int r;

	if (rule_is_blank(p->lease_id))
		return jx_fail(x, CL_FORMAT, "lease_id: blank");
	if (p->nfiles == 0)
		return jx_fail(x, CL_FORMAT, "files: empty");
	for (i = 0; i < p->nfiles; i++) {
		if (!rule_is_empty(p->files[i].lease_id) &&
		    !rule_is_equal(p->files[i].lease_id, p->lease_id))
			return jx_fail(x, CL_FORMAT,
			    "files[%zu].lease_id: another lease", i);
	}
	r = spec_check_secret_files(p->files, p->nfiles, &why);
	return frame_take_why(x, r, why);
}
