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

#define WORK_BRANCH_MAX 200
#define WORK_NAME_MAX 64		/* a commit, a digest */
#define WORK_TEXT_MAX 8192		/* prose, and room for redaction */
#define WORK_FAILURE_MAX 159		/* why bytes are dropped: our words */
#define WORK_CHUNK_COST 64		/* budget of a chunk beyond its bytes */
#define WORK_CAP_DEFAULT 33554432	/* max_bundle_bytes 0 */
#define WORK_PROJECT_MAX 655360
#define WORK_PROJECT_ERROR_MAX 4096

#define DEF_FILE "common/model/work.def"
#include "common/msg/def_struct.h"

#endif
