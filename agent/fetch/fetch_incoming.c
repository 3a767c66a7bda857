/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Shipped branches, in agentd-fetch.  Order, sizes and age of the chunks are
 * checked here and nothing is answered: what is wrong with a transfer is
 * told by the start that claims it.  While the monitor opens the file of a
 * new transfer no further frame is read, so that at most one chunk is held
 * in memory, whatever the hub sends.
 */
#include "fetch.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/util.h"

#define FETCH_IN_MAX 8
#define FETCH_IN_IDLE_MS (15 * 60 * 1000)

static struct fetch_in *
fetch_in_find(struct fetch *f, const char *handle)
{
	struct fetch_in *t;

	TAILQ_FOREACH(t, &f->incoming, entry) {
		if (strcmp(t->handle, handle) == 0)
			return t;
	}
	return NULL;
}

static void __attribute__((__format__(__printf__, 2, 3)))
fetch_in_fail(struct fetch_in *t, const char *fmt, ...)
{
	va_list ap;

	if (t->failure[0] != '\0')
		return;
	va_start(ap, fmt);
	(void)vsnprintf(t->failure, sizeof(t->failure), fmt, ap);
	va_end(ap);
	log_info("branch-failed", "handle=%s reason=%s", log_q(t->handle),
	    log_q(t->failure));
}

static void
fetch_in_free(struct fetch *f, struct fetch_in *t)
{
	TAILQ_REMOVE(&f->incoming, t, entry);
	f->nincoming--;
	/* The hub waited for this one's file. */
	if (t->held != NULL)
		fetch_link_pause(f->link, 0);
	if (t->fd != -1)
		close(t->fd);
	free(t->held);
	free(t);
}

static void
fetch_in_tell_drop(struct fetch *f, const char *handle)
{
	struct msg_handle_id body = { .handle_id = handle };

	FETCH_TELL(f, BRANCH_DROP, &body);
}

/* Those nobody claimed. */
static void
fetch_in_check_idle(struct fetch *f, int64_t now)
{
	struct fetch_in *t, *next;

	for (t = TAILQ_FIRST(&f->incoming); t != NULL; t = next) {
		next = TAILQ_NEXT(t, entry);
		if (t->held != NULL || now - t->used_at < FETCH_IN_IDLE_MS)
			continue;
		log_info("branch-dropped", "handle=%s reason=\"nobody "
		    "claimed it\"", log_q(t->handle));
		fetch_in_tell_drop(f, t->handle);
		fetch_in_free(f, t);
	}
}

static void
fetch_in_write(struct fetch_in *t, const uint8_t *data, size_t len)
{
	size_t done = 0;
	ssize_t n;

	while (done < len) {
		n = pwrite(t->fd, data + done, len - done,
		    t->received + (int64_t)done);
		if (n == -1 && errno == EINTR)
			continue;
		if (n <= 0) {
			fetch_in_fail(t, "it cannot be kept on the device: %s",
			    n == 0 ? "no progress" : strerror(errno));
			return;
		}
		done += (size_t)n;
	}
	t->received += (int64_t)len;
}

/* The monitor does not answer: nothing can be kept. */
static void
fetch_in_on_timeout(struct fetch *f, const struct fetch_ask *a)
{
	struct fetch_in *t = fetch_in_find(f, a->handle);

	if (t != NULL)
		fetch_in_free(f, t);
}

/* A transfer begins: its file is asked for, its first chunk waits. */
static void
fetch_in_open(struct fetch *f, const struct frame_env *env,
    const struct frame_branch_chunk *c)
{
	struct msg_handle_id body = { .handle_id = env->handle };
	struct fetch_in *t;
	struct fetch_ask *a;

	if (f->nincoming >= FETCH_IN_MAX ||
	    (t = calloc(1, sizeof(*t))) == NULL) {
		log_warn("branch-refused", "handle=%s reason=\"too many "
		    "branches are on their way\"", log_q(env->handle));
		return;
	}
	t->fd = -1;
	memcpy(t->handle, env->handle, sizeof(t->handle));
	t->total = c->total;
	TAILQ_INSERT_TAIL(&f->incoming, t, entry);
	f->nincoming++;
	a = FETCH_ASK(f, BRANCH_OPEN, &body, -1, ASK_TIMEOUT_MS);
	t->held = malloc(c->data_len);
	if (a == NULL || t->held == NULL) {
		fetch_fail(f, "out of memory");
		return;
	}
	memcpy(t->held, c->data, c->data_len);
	t->held_len = c->data_len;
	fetch_ask_set_frame(f, a, env, fetch_in_on_timeout);
	fetch_link_pause(f->link, 1);
}

void
fetch_in_on_chunk(struct fetch *f, const struct frame_env *env, void *payload)
{
	const struct frame_branch_chunk *c = payload;
	struct fetch_in *t = fetch_in_find(f, env->handle);
	int64_t now = util_now_ms();

	fetch_in_check_idle(f, now);
	if (t == NULL || c->offset == 0) {
		if (t != NULL)
			fetch_in_free(f, t);
		fetch_in_open(f, env, c);
		t = fetch_in_find(f, env->handle);
		if (t != NULL && c->offset != 0)
			fetch_in_fail(t, "its first chunk is at %lld",
			    (long long)c->offset);
	} else if (c->total != t->total)
		fetch_in_fail(t, "its total was %lld, and then %lld",
		    (long long)t->total, (long long)c->total);
	else if (c->offset != t->received)
		fetch_in_fail(t, "a chunk at %lld came after %lld bytes",
		    (long long)c->offset, (long long)t->received);
	else if (t->failure[0] == '\0')
		fetch_in_write(t, c->data, c->data_len);
	if (t != NULL)
		t->used_at = now;
}

void
fetch_in_fail_handle(struct fetch *f, const char *handle, const char *why)
{
	struct fetch_in *t = fetch_in_find(f, handle);

	if (t != NULL)
		fetch_in_fail(t, "a chunk: %s", why);
}

int
fetch_in_on_opened(struct fetch *f, struct imsg *m, union msg_any *v)
{
	struct fetch_ask *a = fetch_ask_find(f, m->id, MSG_BRANCH_OPEN);
	struct fetch_in *t;

	if (a == NULL)
		return CL_OK;
	t = fetch_in_find(f, a->handle);
	fetch_ask_del(f, a);
	if (t == NULL || t->held == NULL)
		return CL_OK;
	t->fd = imsg_take_fd(m);
	if (!v->BRANCH_OPEN_ANS.ok)
		fetch_in_fail(t, "the device cannot keep it");
	if (t->failure[0] == '\0')
		fetch_in_write(t, t->held, t->held_len);
	free(t->held);
	t->held = NULL;
	fetch_link_pause(f->link, 0);
	return CL_OK;
}

void
fetch_in_end(struct fetch *f, const char *handle)
{
	struct fetch_in *t = fetch_in_find(f, handle);
	struct msg_branch_end body = { .handle_id = handle };

	if (t == NULL)
		return;
	if (t->received != t->total)
		fetch_in_fail(t, "%lld of its %lld bytes came",
		    (long long)t->received, (long long)t->total);
	body.failure = t->failure;
	FETCH_TELL(f, BRANCH_END, &body);
	fetch_in_free(f, t);
}

void
fetch_in_drop(struct fetch *f, const char *handle)
{
	struct fetch_in *t = fetch_in_find(f, handle);

	if (t == NULL)
		return;
	fetch_in_tell_drop(f, t->handle);
	fetch_in_free(f, t);
}

void
fetch_in_drop_all(struct fetch *f)
{
	struct fetch_in *t;

	while ((t = TAILQ_FIRST(&f->incoming)) != NULL)
		fetch_in_drop(f, t->handle);
}
