/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The field tables of workmsg.h.  Data only; linked into cloopd-net, the
 * monitor and cloopctl.
 */
#include "workmsg.h"

#include "common/base/limits.h"

static const struct field work_end_table_rows[] = {
	F_BOOL(struct work_end, failed, "failed", 0),
	F_BOOL(struct work_end, skipped, "skipped", 0),
	F_BOOL(struct work_end, pushed, "pushed", 0),
	F_STR(struct work_end, mode, "mode", 0, 16),
	F_STR(struct work_end, branch, "branch", 0, WORK_BRANCH_MAX),
	F_STR(struct work_end, commit, "commit", 0, WORK_NAME_MAX),
	F_STR(struct work_end, base, "base", 0, WORK_NAME_MAX),
	F_STR(struct work_end, sha256, "sha256", 0, WORK_NAME_MAX),
	F_UINT(struct work_end, bytes, "bytes", 0, MAX_BUNDLE_LEN),
	F_INT64(struct work_end, commits, "commits", 0),
	F_INT64(struct work_end, files_changed, "files_changed", 0),
	F_UINT(struct work_end, cost, "cost", 0, UINT64_MAX),
	F_STR(struct work_end, text, "text", 0, WORK_TEXT_MAX),
};
F_TABLE(work_end_table, struct work_end);

static const struct field work_result_table_rows[] = {
	F_STR(struct work_result, handle_id, "handle_id", 0, 256),
	F_STR(struct work_result, mode, "mode", 0, 16),
	F_BOOL(struct work_result, done, "done", 0),
	F_STR(struct work_result, branch, "branch", 0, WORK_BRANCH_MAX),
	F_STR(struct work_result, commit, "commit", 0, WORK_NAME_MAX),
	F_STR(struct work_result, base, "base", 0, WORK_NAME_MAX),
	F_UINT(struct work_result, bytes, "bytes", 0, UINT64_MAX),
	F_STR(struct work_result, sha256, "sha256", 0, WORK_NAME_MAX),
	F_INT64(struct work_result, commits, "commits", 0),
	F_INT64(struct work_result, files_changed, "files_changed", 0),
	F_BOOL(struct work_result, skipped, "skipped", 0),
	F_BOOL(struct work_result, pushed, "pushed", 0),
	F_STR(struct work_result, skip_reason, "skip_reason", 0,
	    WORK_TEXT_MAX),
	F_STR(struct work_result, error, "error", 0, WORK_TEXT_MAX),
	F_BOOL(struct work_result, held, "held", 0),
	F_BOOL(struct work_result, project_held, "project_held", 0),
	F_STR(struct work_result, project_error, "project_error", 0,
	    WORK_PROJECT_ERROR_MAX),
};
F_TABLE(work_result_table, struct work_result);
