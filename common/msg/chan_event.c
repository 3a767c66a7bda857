/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Channels on libevent: the only file of common/ that knows an event loop, so
 * that daemons share one and programs that poll link none.
 */
#include "chan.h"

#include <event2/event.h>

#include "common/base/err.h"

static void
chan_on_readable(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	chan_turn(arg);
}

static void
chan_on_writable(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	chan_flush(arg);
}

static void
chan_on_want(struct chan *c)
{
	if (!c->is_open) {
		event_free(c->rd);
		event_free(c->wr);
		c->rd = c->wr = NULL;
		return;
	}
	if (c->is_paused)
		event_del(c->rd);
	else
		event_add(c->rd, NULL);
	if (chan_has_output(c))
		event_add(c->wr, NULL);
	else
		event_del(c->wr);
}

int
chan_watch(struct chan *c, struct event_base *base)
{
	c->rd = event_new(base, c->im.fd, EV_READ | EV_PERSIST,
	    chan_on_readable, c);
	c->wr = event_new(base, c->im.fd, EV_WRITE | EV_PERSIST,
	    chan_on_writable, c);
	c->on_want = chan_on_want;
	if (c->rd != NULL && c->wr != NULL && event_add(c->rd, NULL) == 0)
		return CL_OK;
	c->on_want = NULL;
	if (c->rd != NULL)
		event_free(c->rd);
	if (c->wr != NULL)
		event_free(c->wr);
	c->rd = c->wr = NULL;
	chan_close(c);
	return CL_NOMEM;
}

int
chan_open(struct chan *c, struct event_base *base, int fd, enum msg_dir in,
    enum msg_dir out, size_t max_queued, chan_msg_fn *on_msg,
    chan_end_fn *on_end, void *arg)
{
	int r;

	if ((r = chan_init(c, fd, in, out, max_queued, on_msg, on_end,
	    arg)) != 0)
		return r;
	return chan_watch(c, base);
}
