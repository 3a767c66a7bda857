/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Returned work in messages (msgcat.h): what cloopd-net tells the monitor
 * about a device's result, and what operators are told about it.  The names
 * and the prose are the device's: bounded, cleaned, not believed.
 */
#ifndef CLOOP_WORKMSG_H
#define CLOOP_WORKMSG_H

#include <stdint.h>

#include "common/msg/field.h"

#define WORK_BRANCH_MAX 200
#define WORK_NAME_MAX 64		/* a commit, a digest */
#define WORK_TEXT_MAX 8192		/* prose, and room for redaction */
#define WORK_CHUNK_COST 64		/* budget of a chunk beyond its bytes */
#define WORK_CAP_DEFAULT 33554432	/* max_bundle_bytes 0 */
#define WORK_PROJECT_MAX 655360
#define WORK_PROJECT_ERROR_MAX 4096

/* RESULT_END: a result was accepted, as good or as a failure. */
struct work_end {
	int failed;		/* text is why; bytes are dropped */
	int skipped;		/* text is the reason */
	int pushed;
	char *mode;		/* "push", "bundle", "" */
	char *branch;
	char *commit;
	char *base;
	char *sha256;
	uint64_t bytes;
	int64_t commits;
	int64_t files_changed;
	uint64_t cost;		/* of the budget, for these bytes */
	char *text;		/* the device's, or ours when it failed here */
};

/* ROW_RESULT */
struct work_result {
	char *handle_id;
	char *mode;		/* of the result, else what was asked for */
	int done;		/* a result came, or never will */
	char *branch;
	char *commit;
	char *base;		/* the hub's own record */
	uint64_t bytes;
	char *sha256;
	int64_t commits;
	int64_t files_changed;
	int skipped;
	int pushed;
	char *skip_reason;
	char *error;
	int held;		/* bytes wait to be collected */
	int project_held;
	char *project_error;
};

extern const struct field_table work_end_table, work_result_table;

#endif
