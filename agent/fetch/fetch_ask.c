/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Questions of agentd-fetch to its monitor.  Each has a deadline; what an
 * answer belongs to is found by id and may be gone.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "fetch_frame.h"
#include "fetch_session.h"

/* Asks that belong to no frame: resolve, caps, enrolled. */
#define FA_OWN_MAX 8
/* Jobs a hub may have running beyond the workloads it may start. */
#define FA_JOBS_EXTRA 16

struct fa *
fa_put(struct fs *fs, uint32_t type, const struct buf *body, int fd,
    int64_t timeout_ms)
{
	struct fa *a = NULL;

	if (fs->nasks < fs->conf.max_concurrent + FA_JOBS_EXTRA + FA_OWN_MAX)
		a = calloc(1, sizeof(*a));
	if (a == NULL) {
		if (fd != -1)
			close(fd);
		return NULL;
	}
	a->id = fs->next_ask++;
	a->type = type;
	a->deadline_at = util_now_ms() + timeout_ms;
	TAILQ_INSERT_TAIL(&fs->asks, a, entry);
	fs->nasks++;
	fs_ask_monitor(fs, type, a->id, body, fd);
	return a;
}

struct fa *
fa_find(struct fs *fs, uint64_t id, uint32_t type)
{
	struct fa *a;

	TAILQ_FOREACH(a, &fs->asks, entry) {
		if (a->id == id && a->type == type)
			return a;
	}
	return NULL;
}

struct fa *
fa_find_handle(struct fs *fs, uint32_t type, const char *handle)
{
	struct fa *a;

	TAILQ_FOREACH(a, &fs->asks, entry) {
		if (a->type == type && strcmp(a->handle, handle) == 0)
			return a;
	}
	return NULL;
}

void
fa_del(struct fs *fs, struct fa *a)
{
	if (a == NULL)
		return;
	TAILQ_REMOVE(&fs->asks, a, entry);
	fs->nasks--;
	if (a->free_arg != NULL)
		a->free_arg(a->arg);
	free(a);
}

void
fa_check_deadlines(struct fs *fs, int64_t now)
{
	struct fa *a, *next;

	for (a = TAILQ_FIRST(&fs->asks); a != NULL; a = next) {
		next = TAILQ_NEXT(a, entry);
		if (a->deadline_at > now)
			continue;
		log_warn("ask-timeout", "type=%s", msgcat_name(a->type));
		ff_on_timeout(fs, a);
		fa_del(fs, a);
	}
}

int64_t
fa_get_deadline(const struct fs *fs)
{
	const struct fa *a;
	int64_t at = 0;

	TAILQ_FOREACH(a, &fs->asks, entry) {
		if (at == 0 || a->deadline_at < at)
			at = a->deadline_at;
	}
	return at;
}
