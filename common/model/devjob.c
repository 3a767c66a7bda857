/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The field tables of devjob.h.  Data only; linked into the device monitor
 * and into the jobs.
 */
#include "devjob.h"

#include "common/base/limits.h"

#define MAX_REF_LEN 255
#define MAX_SHORT 64
#define MAX_MESSAGE_LEN 4096
#define MAX_SHALLOW 256
#define MAX_PASS_ENV 32
#define MAX_PINS 8	/* the forge and its proxies: FORGE_NAMES */

static const struct field devjob_plan_table_rows[] = {
	F_UINT(struct devjob_plan, op, "op", 0, DEVJOB_PROJECT),
	F_STR(struct devjob_plan, dir, "dir", 0, MAX_PATH_LEN),
	F_STR(struct devjob_plan, git, "git", 0, MAX_PATH_LEN),
	F_STR(struct devjob_plan, helper, "helper", 0, MAX_PATH_LEN),
	F_STRS(struct devjob_plan, env, "env", 0, MAX_PASS_ENV, MAX_PATH_LEN),
	F_STRS(struct devjob_plan, pins, "pins", 0, MAX_PINS, MAX_PATH_LEN),
	F_BYTES(struct devjob_plan, ca, "ca", 0, MAX_SPEC_LEN),
	F_INT(struct devjob_plan, timeout_s, "timeout_s", 0, 0, INT32_MAX),
	F_STR(struct devjob_plan, kind, "kind", 0, MAX_SHORT),
	F_STR(struct devjob_plan, repo, "repo", 0, MAX_URL_LEN),
	F_STR(struct devjob_plan, upstream, "upstream", 0, MAX_URL_LEN),
	F_STR(struct devjob_plan, ref, "ref", 0, MAX_REF_LEN),
	F_INT(struct devjob_plan, depth, "depth", 0, 0, INT32_MAX),
	F_INT(struct devjob_plan, size_limit_mb, "size_limit_mb", 0, 0,
	    INT64_MAX),
	F_STR(struct devjob_plan, branch, "branch", 0, MAX_REF_LEN),
	F_STR(struct devjob_plan, head, "head", 0, MAX_SHORT),
	F_INT(struct devjob_plan, bytes, "bytes", 0, 0, MAX_BUNDLE_LEN),
	F_STR(struct devjob_plan, sha256, "sha256", 0, MAX_SHORT),
	F_STRS(struct devjob_plan, shallow, "shallow", 0, MAX_SHALLOW,
	    MAX_SHORT),
	F_BOOL(struct devjob_plan, hide_cloop, "hide_cloop", 0),
	F_STR(struct devjob_plan, username, "username", 0, MAX_PATH_LEN),
	F_SECRET(struct devjob_plan, password, "password", 0, MAX_SPEC_LEN),
	F_STR(struct devjob_plan, mode, "mode", 0, MAX_SHORT),
	F_STR(struct devjob_plan, base, "base", 0, MAX_SHORT),
	F_STR(struct devjob_plan, message, "message", 0, MAX_MESSAGE_LEN),
	F_INT(struct devjob_plan, max_bundle_bytes, "max_bundle_bytes", 0, 0,
	    MAX_BUNDLE_LEN),
	F_BOOL(struct devjob_plan, failed, "failed", 0),
	F_SBYTES(struct devjob_plan, seed, "seed", 0, MAX_SEED_LEN),
	F_STR(struct devjob_plan, record, "record", 0, MAX_ERROR_TEXT_LEN),
};
F_TABLE(devjob_plan_table, struct devjob_plan);

static const struct field devjob_result_table_rows[] = {
	F_UINT(struct devjob_result, outcome, "outcome", 0, DEVJOB_SKIPPED),
	F_STR(struct devjob_result, error, "error", 0, MAX_ERROR_TEXT_LEN),
	F_STR(struct devjob_result, head, "head", 0, MAX_SHORT),
	F_INT(struct devjob_result, commits, "commits", 0, 0, INT64_MAX),
	F_INT(struct devjob_result, files_changed, "files_changed", 0, 0,
	    INT64_MAX),
	F_BOOL(struct devjob_result, pushed, "pushed", 0),
	F_INT(struct devjob_result, bytes, "bytes", 0, 0, MAX_BUNDLE_LEN),
	F_STR(struct devjob_result, sha256, "sha256", 0, MAX_SHORT),
};
F_TABLE(devjob_result_table, struct devjob_result);
