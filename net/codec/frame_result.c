/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Payloads of work that comes back and work that is shipped: result_chunk,
 * result, project_result, branch_chunk.  Runs where frame.c runs.
 */
#include <string.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/rule.h"
#include "frame_int.h"

#define O FIELD_OMIT
#define PROSE (FIELD_OMIT | FIELD_PROSE)
#define MAX_RESULT_CHUNK_LEN 262144
#define MAX_BRANCH_CHUNK_LEN 524288
#define MAX_PROJECT_RESULT_LEN 655360
#define MAX_PROJECT_ERROR_LEN 4096
#define MAX_BRANCH_LEN 200
#define MAX_OBJECT_NAME_LEN 64

#define FRAME_WRITE_BACK_ROWS(branch_max, name_max, bytes_min, bytes_max)      \
	F_STR(struct frame_write_back, mode, "mode", O, FRAME_WORD_MAX),       \
	F_STR(struct frame_write_back, branch, "branch", O, branch_max),       \
	F_STR(struct frame_write_back, commit_sha, "commit_sha", O, name_max), \
	F_STR(struct frame_write_back, base_sha, "base_sha", O, name_max),     \
	F_BOOL(struct frame_write_back, pushed, "pushed", O),                  \
	F_INT(struct frame_write_back, bundle_bytes, "bundle_bytes", O,        \
	    bytes_min, bytes_max),                                             \
	F_STR(struct frame_write_back, bundle_sha256, "bundle_sha256", O,      \
	    name_max),                                                         \
	F_INT64(struct frame_write_back, commits, "commits", O),               \
	F_INT64(struct frame_write_back, files_changed, "files_changed", O),   \
	F_BOOL(struct frame_write_back, skipped, "skipped", O),                \
	F_STR(struct frame_write_back, skip_reason, "skip_reason", PROSE,      \
	    MAX_ERROR_TEXT_LEN),                                               \
	F_STR(struct frame_write_back, error, "error", PROSE,                  \
	    MAX_ERROR_TEXT_LEN)

static const struct field frame_write_back_table_rows[] = {
	FRAME_WRITE_BACK_ROWS(MAX_BRANCH_LEN, MAX_OBJECT_NAME_LEN, 0,
	    MAX_BUNDLE_LEN),
};
F_TABLE(frame_write_back_table, struct frame_write_back);

static const struct field frame_write_back_info_table_rows[] = {
	FRAME_WRITE_BACK_ROWS(MAX_FRAME_LEN, MAX_FRAME_LEN, INT64_MIN,
	    INT64_MAX),
};
F_TABLE(frame_write_back_info_table, struct frame_write_back);

static const struct field frame_result_chunk_table_rows[] = {
	F_INT(struct frame_result_chunk, offset, "offset", 0, 0, INT64_MAX),
	F_BYTES(struct frame_result_chunk, data, "data", 0,
	    MAX_RESULT_CHUNK_LEN),
};
F_TABLE(frame_result_chunk_table, struct frame_result_chunk);

static const struct field frame_result_table_rows[] = {
	F_OBJ(struct frame_result, result, "result", 0,
	    &frame_write_back_table),
};
F_TABLE(frame_result_table, struct frame_result);

static const struct field frame_project_result_table_rows[] = {
	F_BYTES(struct frame_project_result, data, "data", O,
	    MAX_PROJECT_RESULT_LEN),
	F_STR(struct frame_project_result, error, "error", O,
	    MAX_PROJECT_ERROR_LEN),
};
F_TABLE(frame_project_result_table, struct frame_project_result);

static const struct field frame_branch_chunk_table_rows[] = {
	F_INT(struct frame_branch_chunk, offset, "offset", 0, 0, INT64_MAX),
	F_BYTES(struct frame_branch_chunk, data, "data", 0,
	    MAX_BRANCH_CHUNK_LEN),
	F_INT(struct frame_branch_chunk, total, "total", 0, 0,
	    MAX_BUNDLE_LEN),
};
F_TABLE(frame_branch_chunk_table, struct frame_branch_chunk);

/* A chunk of len bytes that must lie in [0, total). */
static int
frame_check_chunk(struct jx *x, int64_t offset, size_t len, int64_t total)
{
	if (len == 0)
		return jx_fail(x, CL_FORMAT, "data: empty");
	if (offset > total || (int64_t)len > total - offset)
		return jx_fail(x, CL_FORMAT, "data: ends behind %lld",
		    (long long)total);
	return CL_OK;
}

int
frame_check_result_chunk(struct jx *x, void *payload)
{
	const struct frame_result_chunk *p = payload;

	return frame_check_chunk(x, p->offset, p->data_len, MAX_BUNDLE_LEN);
}

int
frame_check_branch_chunk(struct jx *x, void *payload)
{
	const struct frame_branch_chunk *p = payload;

	if (p->total < 1)
		return jx_fail(x, CL_FORMAT, "total: 0");
	return frame_check_chunk(x, p->offset, p->data_len, p->total);
}

int
frame_check_result(struct jx *x, void *payload)
{
	const struct frame_result *p = payload;

	if (!rule_is_empty(p->result.mode) &&
	    !rule_is_one_of(p->result.mode, "push bundle"))
		return jx_fail(x, CL_FORMAT,
		    "result.mode: \"%.32s\" is unknown", p->result.mode);
	return CL_OK;
}

int
frame_check_project_result(struct jx *x, void *payload)
{
	const struct frame_project_result *p = payload;

	if ((p->data_len == 0) == rule_is_empty(p->error))
		return jx_fail(x, CL_FORMAT,
		    "needs either data or an error");
	return CL_OK;
}
