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
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "fetch_session.h"

#define FI_MAX 8
#define FI_IDLE_MS (15 * 60 * 1000)

static struct fi *
fi_find(struct fs *fs, const char *handle)
{
	struct fi *t;

	TAILQ_FOREACH(t, &fs->incoming, entry) {
		if (strcmp(t->handle, handle) == 0)
			return t;
	}
	return NULL;
}

static void __attribute__((__format__(__printf__, 2, 3)))
fi_fail(struct fi *t, const char *fmt, ...)
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
fi_free(struct fs *fs, struct fi *t)
{
	TAILQ_REMOVE(&fs->incoming, t, entry);
	fs->nincoming--;
	/* The hub waited for this one's file. */
	if (t->held != NULL)
		fl_pause(fs->link, 0);
	if (t->fd != -1)
		close(t->fd);
	free(t->held);
	free(t);
}

static void
fi_tell(struct fs *fs, uint32_t type, const char *handle,
    const char *failure)
{
	struct buf b;

	buf_init(&b, MSG_BODY_MAX);
	buf_put_str(&b, handle);
	if (failure != NULL)
		buf_put_str(&b, failure);
	fs_ask_monitor(fs, type, 0, &b, -1);
	buf_clear(&b);
}

/* Those nobody claimed. */
static void
fi_check_idle(struct fs *fs, int64_t now)
{
	struct fi *t, *next;

	for (t = TAILQ_FIRST(&fs->incoming); t != NULL; t = next) {
		next = TAILQ_NEXT(t, entry);
		if (t->held != NULL || now - t->used_at < FI_IDLE_MS)
			continue;
		log_info("branch-dropped", "handle=%s reason=\"nobody "
		    "claimed it\"", log_q(t->handle));
		fi_tell(fs, MSG_BRANCH_DROP, t->handle, NULL);
		fi_free(fs, t);
	}
}

static void
fi_write(struct fi *t, const uint8_t *data, size_t len)
{
	size_t done = 0;
	ssize_t n;

	while (done < len) {
		n = pwrite(t->fd, data + done, len - done,
		    t->received + (int64_t)done);
		if (n == -1 && errno == EINTR)
			continue;
		if (n <= 0) {
			fi_fail(t, "it cannot be kept on the device: %s",
			    n == 0 ? "no progress" : strerror(errno));
			return;
		}
		done += (size_t)n;
	}
	t->received += (int64_t)len;
}

/* A transfer begins: its file is asked for, its first chunk waits. */
static void
fi_open(struct fs *fs, const struct frame_env *env,
    const struct frame_branch_chunk *c)
{
	struct fi *t;
	struct fa *a;
	struct buf b;

	if (fs->nincoming >= FI_MAX ||
	    (t = calloc(1, sizeof(*t))) == NULL) {
		log_warn("branch-refused", "handle=%s reason=\"too many "
		    "branches are on their way\"", log_q(env->handle));
		return;
	}
	t->fd = -1;
	memcpy(t->handle, env->handle, sizeof(t->handle));
	t->total = c->total;
	TAILQ_INSERT_TAIL(&fs->incoming, t, entry);
	fs->nincoming++;
	buf_init(&b, MSG_BODY_MAX);
	buf_put_str(&b, t->handle);
	a = fa_put(fs, MSG_BRANCH_OPEN, &b, -1, ASK_TIMEOUT_MS);
	buf_clear(&b);
	t->held = malloc(c->data_len);
	if (a == NULL || t->held == NULL) {
		fs_fail(fs, "out of memory");
		return;
	}
	memcpy(t->held, c->data, c->data_len);
	t->held_len = c->data_len;
	memcpy(a->handle, env->handle, sizeof(a->handle));
	fl_pause(fs->link, 1);
}

void
fi_on_chunk(struct fs *fs, const struct frame_env *env,
    const struct frame_branch_chunk *c)
{
	struct fi *t = fi_find(fs, env->handle);
	int64_t now = util_now_ms();

	fi_check_idle(fs, now);
	if (t == NULL || c->offset == 0) {
		if (t != NULL)
			fi_free(fs, t);
		fi_open(fs, env, c);
		t = fi_find(fs, env->handle);
		if (t != NULL && c->offset != 0)
			fi_fail(t, "its first chunk is at %lld",
			    (long long)c->offset);
	} else if (c->total != t->total)
		fi_fail(t, "its total was %lld, and then %lld",
		    (long long)t->total, (long long)c->total);
	else if (c->offset != t->received)
		fi_fail(t, "a chunk at %lld came after %lld bytes",
		    (long long)c->offset, (long long)t->received);
	else if (t->failure[0] == '\0')
		fi_write(t, c->data, c->data_len);
	if (t != NULL)
		t->used_at = now;
}

void
fi_fail_handle(struct fs *fs, const char *handle, const char *why)
{
	struct fi *t = fi_find(fs, handle);

	if (t != NULL)
		fi_fail(t, "a chunk: %s", why);
}

int
fi_on_opened(struct fs *fs, struct imsg *m)
{
	struct fa *a = fa_find(fs, m->id, MSG_BRANCH_OPEN);
	int ok = buf_get_bool(&m->body), r;
	struct fi *t;

	if ((r = buf_end(&m->body)) != 0 || a == NULL)
		return r;
	t = fi_find(fs, a->handle);
	fa_del(fs, a);
	if (t == NULL || t->held == NULL)
		return CL_OK;
	t->fd = imsg_take_fd(m);
	if (!ok)
		fi_fail(t, "the device cannot keep it");
	if (t->failure[0] == '\0')
		fi_write(t, t->held, t->held_len);
	free(t->held);
	t->held = NULL;
	fl_pause(fs->link, 0);
	return CL_OK;
}

void
fi_on_timeout(struct fs *fs, const char *handle)
{
	struct fi *t = fi_find(fs, handle);

	if (t != NULL)
		fi_free(fs, t);
}

void
fi_end(struct fs *fs, const char *handle)
{
	struct fi *t = fi_find(fs, handle);

	if (t == NULL)
		return;
	if (t->received != t->total)
		fi_fail(t, "%lld of its %lld bytes came",
		    (long long)t->received, (long long)t->total);
	fi_tell(fs, MSG_BRANCH_END, handle, t->failure);
	fi_free(fs, t);
}

void
fi_drop(struct fs *fs, const char *handle)
{
	struct fi *t = fi_find(fs, handle);

	if (t == NULL)
		return;
	fi_tell(fs, MSG_BRANCH_DROP, t->handle, NULL);
	fi_free(fs, t);
}

void
fi_drop_all(struct fs *fs)
{
	struct fi *t;

	while ((t = TAILQ_FIRST(&fs->incoming)) != NULL)
		fi_drop(fs, t->handle);
}
