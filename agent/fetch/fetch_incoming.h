/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Branches on their way in, in agentd-fetch: branch_chunk frames into a file
 * of the monitor's.  Prefix fi_.
 */
#ifndef CLOOP_FETCH_INCOMING_H
#define CLOOP_FETCH_INCOMING_H

#include <sys/queue.h>

#include <stdint.h>

#include "common/base/limits.h"

struct frame_branch_chunk;
struct frame_env;
struct fs;
struct imsg;

#define FI_FAILURE_MAX 160

struct fi {
	TAILQ_ENTRY(fi) entry;
	char handle[MAX_ID_LEN + 1];
	int fd;				/* -1: none yet, or never */
	int64_t total, received;
	int64_t used_at;		/* of its last chunk */
	uint8_t *held;			/* first chunk, the file is asked for */
	size_t held_len;
	char failure[FI_FAILURE_MAX];	/* "": none so far */
};
TAILQ_HEAD(fi_list, fi);

void fi_on_chunk(struct fs *fs, const struct frame_env *env,
    const struct frame_branch_chunk *c);
/* A chunk for this handle that does not decode. */
void fi_fail_handle(struct fs *fs, const char *handle, const char *why);
/* BRANCH_OPEN_ANS; CL_*. */
int fi_on_opened(struct fs *fs, struct imsg *m);
void fi_on_timeout(struct fs *fs, const char *handle);
/* Its start is about to be handed on: tell how the transfer went. */
void fi_end(struct fs *fs, const char *handle);
/* Nobody will claim it. */
void fi_drop(struct fs *fs, const char *handle);
/* The connection they belong to is gone. */
void fi_drop_all(struct fs *fs);

#endif
