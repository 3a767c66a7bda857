/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Questions of agentd-fetch to its monitor.  Prefix fa_.
 */
#ifndef CLOOP_FETCH_ASK_H
#define CLOOP_FETCH_ASK_H

#include <sys/queue.h>

#include <stdint.h>

#include "common/base/limits.h"

struct buf;
struct fs;

/* A question to the monitor.  Its answer may find nobody. */
struct fa {
	TAILQ_ENTRY(fa) entry;
	uint64_t id;
	uint32_t type;		/* MSG_* of the question */
	int64_t deadline_at;
	uint64_t session;	/* of the frame it is for; 0: none */
	char corr[MAX_ID_LEN + 1];	/* id of that frame */
	char handle[MAX_ID_LEN + 1];
	void *arg;		/* what its answer needs; owned, or NULL */
	void (*free_arg)(void *);
};
TAILQ_HEAD(fa_list, fa);

/* Send one; takes fd.  NULL: no memory or too many, nothing was sent. */
struct fa *fa_put(struct fs *fs, uint32_t type, const struct buf *body,
    int fd, int64_t timeout_ms);
struct fa *fa_find(struct fs *fs, uint64_t id, uint32_t type);
struct fa *fa_find_handle(struct fs *fs, uint32_t type, const char *handle);
void fa_del(struct fs *fs, struct fa *a);
void fa_check_deadlines(struct fs *fs, int64_t now);
int64_t fa_get_deadline(const struct fs *fs);	/* 0: none */

#endif
