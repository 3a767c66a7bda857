/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Channels.  The other end may have been taken over by a peer or by a
 * workload: nothing it sends reaches a decoder unless the catalogue allows
 * that message now, and it cannot keep the loop from anybody else, because a
 * turn reads a bounded number of its messages.
 */
#include "chan.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/util.h"

static void
chan_tell_want(struct chan *c)
{
	if (c->on_want != NULL)
		c->on_want(c);
}

int
chan_init(struct chan *c, int fd, enum msg_dir in, enum msg_dir out,
    size_t max_queued, chan_msg_fn *on_msg, chan_end_fn *on_end, void *arg)
{
	int r;

	memset(c, 0, sizeof(*c));
	if ((r = imsg_init(&c->im, fd, max_queued)) != 0)
		return r;
	c->in = in;
	c->out = out;
	c->state = MS_STARTING;
	c->mark = CHAN_MARK_LEN;
	c->on_msg = on_msg;
	c->on_end = on_end;
	c->arg = arg;
	c->is_open = 1;
	return CL_OK;
}

/* Read it or not: by its queue, its quotas and its owner. */
static void
chan_set_paused(struct chan *c)
{
	size_t mark = c->is_paused ? c->mark / 2 : c->mark;
	int paused = c->is_held || c->nspent > 0 ||
	    (c->im.queued_len > mark && !c->is_broken);

	if (paused != c->is_paused) {
		c->is_paused = paused;
		chan_tell_want(c);
	}
}

static int
chan_is_spent(const struct chan *c, const struct msg_row *row)
{
	size_t i = msgcat_get_place(row);

	return (row->open > 0 && c->quota->nopen[i] >= row->open) ||
	    (row->rate > 0 && c->quota->nrecent[i] >= row->rate);
}

/* A message that came takes of its row's quota.  CL_NOMEM. */
static int
chan_spend(struct chan *c, const struct msg_row *row)
{
	size_t i = msgcat_get_place(row);

	if (row->open == 0 && row->rate == 0)
		return CL_OK;
	if (c->quota == NULL &&
	    (c->quota = calloc(1, sizeof(*c->quota))) == NULL)
		return CL_NOMEM;
	if (chan_is_spent(c, row))	/* read before the pause took hold */
		c->nspent--;
	c->quota->nopen[i] += row->open > 0;
	c->quota->nrecent[i]++;
	if (chan_is_spent(c, row))
		c->nspent++;
	chan_set_paused(c);
	return CL_OK;
}

/* An answer gives back what its question took. */
static void
chan_give_back(struct chan *c, uint32_t type)
{
	const struct msg_row *row = msgcat_find(type - 1);
	size_t i;

	if (c->quota == NULL || type % 2 == 0 || row == NULL ||
	    row->open == 0 || c->quota->nopen[msgcat_get_place(row)] == 0)
		return;
	i = msgcat_get_place(row);
	if (chan_is_spent(c, row))
		c->nspent--;
	c->quota->nopen[i]--;
	if (chan_is_spent(c, row))
		c->nspent++;
}

void
chan_on_second(struct chan *c)
{
	const struct msg_row *rows;
	size_t n, i;

	if (!c->is_open || c->quota == NULL)
		return;
	memset(c->quota->nrecent, 0, sizeof(c->quota->nrecent));
	rows = msgcat_get_rows(&n);
	for (c->nspent = 0, i = 0; i < n; i++)
		c->nspent += (unsigned int)chan_is_spent(c, &rows[i]);
	chan_set_paused(c);
}

int
chan_check(struct chan *c, struct imsg *m, union msg_any *v,
    const char **whyp)
{
	const struct msg_row *row;
	int r;

	if ((r = msgcat_check(c->in, c->state, m, &c->seen, whyp)) != 0)
		return r;
	if ((row = msgcat_find(m->type)) == NULL)
		return CL_INTERNAL;
	if ((r = chan_spend(c, row)) != 0 || c->is_raw)
		return r;
	if ((r = msg_get(m->type, &m->body, v)) != 0) {
		*whyp = r == CL_NOMEM ? cl_strerror(r) : "malformed body";
		return r == CL_NOMEM ? r : CL_FORMAT;
	}
	return CL_OK;
}

int
chan_read_one(struct chan *c, struct imsg *m, union msg_any *v,
    const char **whyp)
{
	int r;

	*whyp = NULL;
	if (!c->is_open)
		return CL_EOF;
	if ((r = imsg_read(&c->im, m)) != 0) {
		*whyp = r == CL_FORMAT ? "malformed message" :
		    r == CL_SYSTEM ? strerror(errno) : NULL;
		return r;
	}
	if ((r = chan_check(c, m, v, whyp)) != 0)
		imsg_free(m);
	return r;
}

void
chan_close(struct chan *c)
{
	if (!c->is_open)
		return;
	c->is_open = 0;
	chan_tell_want(c);
	imsg_clear(&c->im);
	free(c->quota);
	c->quota = NULL;
}

int
chan_wait(struct chan *c, int64_t deadline, struct imsg *m, union msg_any *v,
    const char **whyp)
{
	struct pollfd pfd = { .fd = c->im.fd };
	int64_t left;
	int r;

	while ((r = chan_read_one(c, m, v, whyp)) == CL_INCOMPLETE) {
		chan_flush(c);
		if ((left = deadline - util_now_ms()) <= 0)
			return CL_TIMEOUT;
		pfd.events = chan_has_output(c) ? POLLIN | POLLOUT : POLLIN;
		if (poll(&pfd, 1, left > INT32_MAX ? -1 : (int)left) == -1 &&
		    errno != EINTR)
			return CL_SYSTEM;
	}
	return r;
}

static void
chan_end(struct chan *c, const char *why)
{
	chan_close(c);
	c->on_end(c->arg, why);
}

/* CL_OK: go on reading. */
static int
chan_take(struct chan *c)
{
	struct imsg m;
	union msg_any v;
	const char *why;
	int r;

	if ((r = chan_read_one(c, &m, &v, &why)) == CL_INCOMPLETE)
		return r;
	if (r != 0) {
		chan_end(c, why);
		return r;
	}
	if ((r = c->on_msg(c->arg, &m, c->is_raw ? NULL : &v)) != 0)
		why = msgcat_name(m.type);
	if (!c->is_raw)
		msg_clear(m.type, &v);
	imsg_free(&m);
	if (r != 0 && c->is_open)
		chan_end(c, why);
	return r;
}

void
chan_turn(struct chan *c)
{
	int i;

	for (i = 0; i < CHAN_TURN && c->is_open && !c->is_paused; i++)
		if (chan_take(c) != 0)
			return;
}

void
chan_hold(struct chan *c)
{
	c->is_held = 1;
	chan_set_paused(c);
}

void
chan_go_on(struct chan *c)
{
	c->is_held = 0;
	chan_set_paused(c);
}

int
chan_has_output(const struct chan *c)
{
	return c->is_open && !c->is_broken && c->im.nqueued > 0;
}

void
chan_flush(struct chan *c)
{
	size_t before = c->im.queued_len;
	int r;

	if (!c->is_open)
		return;
	/* An error shows on the reading side too, once what the peer still
	 * had to say has been read: it is, whatever still waits for it. */
	if (!c->is_broken && (r = imsg_write(&c->im)) != CL_OK &&
	    r != CL_INCOMPLETE)
		c->is_broken = 1;
	if (c->im.queued_len != before)
		c->moved_at = util_now_ms();
	chan_set_paused(c);
	chan_tell_want(c);
}

int
chan_queue_buf(struct chan *c, uint32_t type, uint64_t id,
    const struct buf *body, int fd)
{
	int r, idle;

	if (!c->is_open) {
		if (fd != -1)
			close(fd);
		return CL_STATE;
	}
	idle = c->im.nqueued == 0;
	if ((r = imsg_compose(&c->im, type, id, body, fd)) == 0) {
		if (idle)
			c->moved_at = util_now_ms();
		chan_give_back(c, type);
		chan_set_paused(c);
	}
	return r;
}

int
chan_send_buf(struct chan *c, uint32_t type, uint64_t id,
    const struct buf *body, int fd)
{
	int r;

	if ((r = chan_queue_buf(c, type, id, body, fd)) == 0)
		chan_flush(c);
	return r;
}

int
chan_send(struct chan *c, uint32_t type, uint64_t id, const void *v, int fd)
{
	const struct msg_row *row = msgcat_find(type);
	struct buf b;
	int r;

	buf_init(&b, MSG_BODY_MAX);
	if (row == NULL || row->dir != c->out || row->fd != (fd != -1))
		r = CL_INTERNAL;
	else
		r = msg_put(type, v, &b);
	if (r == 0)
		r = chan_send_buf(c, type, id, &b, fd);
	else if (fd != -1)
		close(fd);
	buf_clear(&b);
	return r;
}

int
chan_send_memfd(struct chan *c, uint32_t type, uint64_t id, const void *data,
    size_t len)
{
	struct msg_memfd body = { .len = len };
	int fd, r;

	if ((r = util_make_memfd(data, len, &fd)) != 0)
		return r;
	return chan_send(c, type, id, &body, fd);
}

int
chan_check_stall(struct chan *c, int64_t now_ms, int64_t late_ms)
{
	if (!chan_has_output(c)) {
		c->moved_at = now_ms;
		return 0;
	}
	c->moved_at += late_ms;
	return now_ms - c->moved_at >= CHAN_STALL_MS;
}
