/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Channels of the device monitor.  The other end is a child that may have
 * been taken over by the hub or by a workload: nothing it sends reaches a
 * decoder unless the catalogue allows that message now, and it cannot keep
 * the loop from anybody else, because a turn reads a bounded number of its
 * messages.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "chan.h"
#include "common/base/err.h"
#include "common/base/util.h"

#define CHAN_TURN 64	/* messages of one peer in one turn of the loop */

static void
chan_end(struct chan *c, const char *why)
{
	chan_close(c);
	c->on_end(c->arg, why);
}

static int
chan_read_one(struct chan *c)
{
	struct imsg m;
	const char *why = NULL;
	int r;

	r = imsg_read(&c->im, &m);
	if (r == CL_INCOMPLETE)
		return r;
	if (r != 0) {
		chan_end(c, r == CL_EOF ? NULL : r == CL_FORMAT ?
		    "malformed message" : strerror(errno));
		return r;
	}
	r = msgcat_check(c->dir, c->state, &m, &c->seen, &why);
	if (r == 0 && (r = c->on_msg(c->arg, &m)) != 0)
		why = msgcat_name(m.type);
	imsg_free(&m);
	if (r != 0 && c->is_open)
		chan_end(c, why == NULL ? "refused message" : why);
	return r;
}

static void
chan_on_read(evutil_socket_t fd, short what, void *arg)
{
	struct chan *c = arg;
	int i;

	(void)fd;
	(void)what;
	for (i = 0; i < CHAN_TURN && c->is_open; i++)
		if (chan_read_one(c) != 0)
			return;
}

static void
chan_flush(struct chan *c)
{
	int r = imsg_write(&c->im);

	if (r == CL_OK)
		event_del(c->wr);
	else if (r == CL_INCOMPLETE)
		event_add(c->wr, NULL);
	/* Any other error shows on the reading side too, once what the peer
	 * still had to say has been read. */
	else
		event_del(c->wr);
}

static void
chan_on_write(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	chan_flush(arg);
}

int
chan_open(struct chan *c, struct event_base *base, int fd, enum msg_dir dir,
    size_t max_queued, chan_msg_fn *on_msg, chan_end_fn *on_end, void *arg)
{
	int r;

	memset(c, 0, sizeof(*c));
	if ((r = imsg_init(&c->im, fd, max_queued)) != 0)
		return r;
	c->dir = dir;
	c->state = MS_STARTING;
	c->on_msg = on_msg;
	c->on_end = on_end;
	c->arg = arg;
	c->is_open = 1;
	c->rd = event_new(base, fd, EV_READ | EV_PERSIST, chan_on_read, c);
	c->wr = event_new(base, fd, EV_WRITE | EV_PERSIST, chan_on_write, c);
	if (c->rd == NULL || c->wr == NULL || event_add(c->rd, NULL) == -1) {
		chan_close(c);
		return CL_NOMEM;
	}
	return CL_OK;
}

void
chan_close(struct chan *c)
{
	if (!c->is_open)
		return;
	c->is_open = 0;
	if (c->rd != NULL)
		event_free(c->rd);
	if (c->wr != NULL)
		event_free(c->wr);
	c->rd = c->wr = NULL;
	imsg_clear(&c->im);
}

int
chan_send(struct chan *c, uint32_t type, uint64_t id, const struct buf *body,
    int fd)
{
	int r;

	if (!c->is_open) {
		if (fd != -1)
			close(fd);
		return CL_STATE;
	}
	if ((r = imsg_compose(&c->im, type, id, body, fd)) == 0)
		chan_flush(c);
	return r;
}

int
chan_send_memfd(struct chan *c, uint32_t type, uint64_t id, const void *data,
    size_t len)
{
	struct buf b;
	int fd, r;

	if ((r = util_make_memfd(data, len, &fd)) != 0)
		return r;
	buf_init(&b, 4);
	buf_put_u32(&b, (uint32_t)len);
	r = chan_send(c, type, id, &b, fd);
	buf_clear(&b);
	return r;
}
