/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * What the device monitor and a job of a workload say to each other
 * (msgcat.h, dev-job): what to do with the tree before the command runs and
 * after it ended.  A job runs as the workload's user in a shim of its own;
 * its descriptor 0 is the channel.  The plan is one memfd, wiped by whoever
 * read it; the result fits one message.
 */
#ifndef CLOOP_DEVJOB_H
#define CLOOP_DEVJOB_H

enum devjob_op {
	DEVJOB_PROVISION = 1,	/* cloop-git: build the tree */
	DEVJOB_RETURN,		/* cloop-git: commit, bundle or push */
	DEVJOB_SEED,		/* cloop-seed: place the project's document */
	DEVJOB_PROJECT		/* cloop-seed: take its result */
};

#define MAX_DEVJOB_LEN (8 * 1048576)	/* a plan: a seed and change */

#define JOB_REF_MAX 255
#define JOB_WORD_MAX 64
#define JOB_MESSAGE_MAX 4096
#define JOB_SHALLOW_MAX 256
#define JOB_ENV_MAX 32
#define JOB_PINS_MAX 8	/* the forge and its proxies: FORGE_NAMES */

enum devjob_outcome { DEVJOB_OK = 1, DEVJOB_FAILED, DEVJOB_SKIPPED };

#define DEF_FILE "common/model/job.def"
#include "common/msg/def_struct.h"

#endif
