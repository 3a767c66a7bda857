/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The bytes of one connection, in cloopd-net and in agentd-fetch.  All that
 * is read here is hostile until its codec has taken it apart: sizes, queues,
 * pings and waits are bounded.  Output is collected and written when the
 * owner says so, which is once a turn of its loop.
 */
#include "conn.h"

#include <bsd/stdlib.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/event.h>

#include "common/base/err.h"
#include "common/base/limits.h"

/* Queued bytes above which a pong waits.  A hub's is worth nothing while
 * frames leave; a device's may stand between them. */
#define CONN_PONG_SERVER 0U
#define CONN_PONG_CLIENT 65535U

void
conn_init(struct conn *c, enum ws_role role, const struct conn_ops *ops,
    void *arg)
{
	memset(c, 0, sizeof(*c));
	c->ops = ops;
	c->arg = arg;
	ws_init(&c->ws, role, MAX_FRAME_LEN);
}

static void
conn_on_event(evutil_socket_t fd, short what, void *arg)
{
	struct conn *c = arg;

	(void)fd;
	(void)what;
	c->ops->on_ready(c->arg);
}

int
conn_open(struct conn *c, struct event_base *base, struct tlsio *io)
{
	int fd = tlsio_get_fd(io);

	c->io = io;
	c->in = evbuffer_new();
	c->out = evbuffer_new();
	c->ev_in = event_new(base, fd, EV_READ | EV_PERSIST, conn_on_event, c);
	c->ev_out = event_new(base, fd, EV_WRITE | EV_PERSIST, conn_on_event,
	    c);
	if (c->in == NULL || c->out == NULL || c->ev_in == NULL ||
	    c->ev_out == NULL)
		return CL_NOMEM;
	return CL_OK;
}

void
conn_close(struct conn *c)
{
	enum ws_role role = c->ws.role;

	if (c->ev_in != NULL)
		event_free(c->ev_in);
	if (c->ev_out != NULL)
		event_free(c->ev_out);
	if (c->in != NULL)
		evbuffer_free(c->in);
	if (c->out != NULL)
		evbuffer_free(c->out);
	tlsio_free(c->io);
	ws_clear(&c->ws);
	free(c->pong);
	conn_init(c, role, c->ops, c->arg);
}

void
conn_set_events(struct conn *c, unsigned int wants)
{
	unsigned int changed = wants ^ c->wants;

	c->wants = (uint8_t)wants;
	if (changed & TLSIO_READ) {
		if (wants & TLSIO_READ)
			(void)event_add(c->ev_in, NULL);
		else
			(void)event_del(c->ev_in);
	}
	if (changed & TLSIO_WRITE) {
		if (wants & TLSIO_WRITE)
			(void)event_add(c->ev_out, NULL);
		else
			(void)event_del(c->ev_out);
	}
}

unsigned int
conn_get_wants(const struct conn *c, int reading)
{
	return tlsio_get_wants(c->io, reading, conn_has_output(c));
}

/* -------------------------------------------------------------------- input */

/* At most one pong waits, the latest: a flood costs the peer, not us. */
static void
conn_on_ping(struct conn *c, const struct ws_event *ev)
{
	if (c->pong == NULL && (c->pong = malloc(WS_CONTROL_MAX)) == NULL)
		return;
	memcpy(c->pong, ev->data, ev->len);
	c->pong_len = (uint8_t)ev->len;
	c->has_pong = 1;
	if (c->ops->on_ping != NULL)
		c->ops->on_ping(c->arg);
}

static void
conn_on_ws_event(struct conn *c, const struct ws_event *ev, int64_t now)
{
	if (c->closing && ev->op != WS_CLOSE)
		return;
	if ((ev->op == WS_PING || ev->op == WS_PONG) &&
	    ws_pace_add(&c->pace, now) != CL_OK) {
		c->ops->on_fault(c->arg, CONN_PINGS);
		return;
	}
	switch (ev->op) {
	case WS_TEXT:
		c->ops->on_message(c->arg, ev->data, ev->len);
		break;
	case WS_BINARY:
		c->ops->on_fault(c->arg, CONN_BINARY);
		break;
	case WS_PING:
		conn_on_ping(c, ev);
		break;
	case WS_CLOSE:
		c->ops->on_close(c->arg, ev);
		break;
	default:
		break;
	}
}

static void
conn_on_ws_error(struct conn *c, int r)
{
	c->ops->on_fault(c->arg, r == CL_TOOBIG ? CONN_TOO_BIG :
	    r == CL_NOMEM ? CONN_NOMEM : CONN_PROTOCOL);
}

/* A message that is announced only, but nothing good can come of it. */
static int
conn_is_too_big(const struct ws_parser *p)
{
	return p->op < WS_CLOSE && p->left > p->max_len - p->message_len;
}

int
conn_process(struct conn *c, unsigned int max, int64_t now)
{
	struct evbuffer_iovec v;
	struct ws_event ev;
	unsigned int n;
	size_t used;
	int r;

	for (n = 0; c->ops->is_reading(c->arg); n++) {
		if (n == max)
			return 1;
		if (evbuffer_peek(c->in, -1, NULL, &v, 1) < 1) {
			v.iov_base = NULL;
			v.iov_len = 0;
		}
		r = ws_parse(&c->ws, v.iov_base, v.iov_len, &used, &ev);
		/* A welcome holds the credential: leave no copy. */
		if (c->ws.role == WS_CLIENT && used > 0)
			explicit_bzero(v.iov_base, used);
		evbuffer_drain(c->in, used);
		if (r == CL_OK)
			conn_on_ws_event(c, &ev, now);
		else if (r != CL_INCOMPLETE || conn_is_too_big(&c->ws)) {
			conn_on_ws_error(c, r == CL_INCOMPLETE ? CL_TOOBIG :
			    r);
			return 0;
		} else if (evbuffer_get_length(c->in) == 0)
			return 0;
	}
	return 0;
}

int
conn_has_input(const struct conn *c)
{
	return evbuffer_get_length(c->in) > 0 || tlsio_has_pending(c->io);
}

int
conn_drop_input(struct conn *c)
{
	char drop[4096];
	ssize_t n;
	int i;

	for (i = 0; i < 16; i++) {
		n = read(tlsio_get_fd(c->io), drop, sizeof(drop));
		if (n == -1 && (errno == EAGAIN || errno == EINTR))
			return CL_INCOMPLETE;
		if (n <= 0)
			return n == 0 ? CL_EOF : CL_SYSTEM;
	}
	return CL_INCOMPLETE;
}

int
conn_count_unfinished(struct conn *c, size_t *sump, int64_t now)
{
	if (c->ws.message_cap == c->unfinished)
		return 0;
	if (c->unfinished == 0)
		c->unfinished_at = now;
	*sump += c->ws.message_cap - c->unfinished;
	c->unfinished = (uint32_t)c->ws.message_cap;
	return *sump > MAX_ASSEMBLING_LEN;
}

void
conn_drop_unfinished(struct conn *c, size_t *sump)
{
	ws_clear(&c->ws);
	*sump -= c->unfinished;
	c->unfinished = 0;
}

/* ------------------------------------------------------------------- output */

/* After bytes were added to `out`: its time begins with the next flush. */
static int
conn_add_queued(struct conn *c, size_t len)
{
	c->queued += len;
	if (c->mark == 0) {
		c->mark = c->queued;
		c->mark_at = 0;
	}
	return CL_OK;
}

int
conn_put_bytes(struct conn *c, const void *data, size_t len)
{
	if (evbuffer_add(c->out, data, len) == -1)
		return CL_NOMEM;
	return conn_add_queued(c, len);
}

static void
conn_wipe_owned(const void *data, size_t len, void *arg)
{
	(void)arg;
	freezero((void *)(uintptr_t)data, len);
}

int
conn_put_owned(struct conn *c, void *data, size_t len)
{
	if (evbuffer_add_reference(c->out, data, len, conn_wipe_owned,
	    NULL) == -1) {
		freezero(data, len);
		return CL_NOMEM;
	}
	return conn_add_queued(c, len);
}

/* A frame of a client: masked while it is copied. */
static int
conn_put_masked(struct conn *c, enum ws_op op, const void *data, size_t len)
{
	uint8_t mask[WS_MASK_LEN];
	struct evbuffer_iovec v;
	size_t n;

	arc4random_buf(mask, sizeof(mask));
	if (evbuffer_reserve_space(c->out, (ev_ssize_t)(WS_HEAD_MAX + len),
	    &v, 1) != 1)
		return CL_NOMEM;
	n = ws_format_frame(v.iov_base, v.iov_len, op, data, len, mask);
	if (n == 0)
		return CL_INTERNAL;
	v.iov_len = n;
	if (evbuffer_commit_space(c->out, &v, 1) == -1)
		return CL_NOMEM;
	return conn_add_queued(c, n);
}

int
conn_put_text(struct conn *c, const void *text, size_t len, int secret)
{
	uint8_t head[WS_HEAD_MAX], *copy;
	size_t n;

	if (c->ws.role == WS_CLIENT)
		return conn_put_masked(c, WS_TEXT, text, len);
	n = ws_format_head(head, WS_TEXT, len, NULL);
	if (len <= CONN_COPY_MAX && !secret) {
		if (evbuffer_add(c->out, head, n) == -1 ||
		    evbuffer_add(c->out, text, len) == -1)
			return CL_NOMEM;
		return conn_add_queued(c, n + len);
	}
	if ((copy = malloc(n + len)) == NULL)
		return CL_NOMEM;
	memcpy(copy, head, n);
	memcpy(copy + n, text, len);
	return conn_put_owned(c, copy, n + len);
}

static int
conn_put_control(struct conn *c, enum ws_op op, const void *data, size_t len)
{
	uint8_t frame[WS_HEAD_MAX + WS_CONTROL_MAX];
	size_t n;

	if (c->ws.role == WS_CLIENT)
		return conn_put_masked(c, op, data, len);
	n = ws_format_frame(frame, sizeof(frame), op, data, len, NULL);
	return n == 0 ? CL_INTERNAL : conn_put_bytes(c, frame, n);
}

int
conn_put_close(struct conn *c, uint16_t code, const char *reason)
{
	uint8_t payload[WS_CONTROL_MAX];
	size_t len = ws_format_close(payload, code, reason);

	c->closing = 1;
	return conn_put_control(c, WS_CLOSE, payload, len);
}

/* A server's mark moves when all that was queued with it has left, so that a
 * peer gets nothing for a byte now and then; a device waits for any. */
static void
conn_move_mark(struct conn *c, size_t before, int64_t now)
{
	size_t left = evbuffer_get_length(c->out);

	if (left == 0)
		c->mark = 0;
	else if (c->mark_at == 0)
		c->mark_at = now;
	if (left > 0 && (c->ws.role == WS_CLIENT ? left < before :
	    c->queued - left >= c->mark)) {
		c->mark = c->queued;
		c->mark_at = now;
	}
}

void
conn_put_pong(struct conn *c)
{
	if (!c->has_pong || evbuffer_get_length(c->out) >
	    (c->ws.role == WS_CLIENT ? CONN_PONG_CLIENT : CONN_PONG_SERVER))
		return;
	c->has_pong = 0;
	if (!c->closing)
		(void)conn_put_control(c, WS_PONG, c->pong, c->pong_len);
}

int
conn_flush(struct conn *c, int64_t now)
{
	size_t before;
	int r = CL_OK;

	conn_put_pong(c);
	before = evbuffer_get_length(c->out);
	if (before > 0)
		r = tlsio_write(c->io, c->out);
	conn_move_mark(c, before, now);
	return r;
}

void
conn_shut(struct conn *c)
{
	c->shut = tlsio_close(c->io) != CL_INCOMPLETE;
}

size_t
conn_get_queued(const struct conn *c)
{
	return c->out != NULL ? evbuffer_get_length(c->out) : 0;
}

uint64_t
conn_get_written(const struct conn *c)
{
	return c->queued - conn_get_queued(c);
}

int
conn_has_output(const struct conn *c)
{
	return c->has_pong || conn_get_queued(c) > 0;
}

int
conn_is_full(const struct conn *c)
{
	return conn_get_queued(c) > MAX_SESSION_OUT_LEN;
}

int
conn_is_stalled(const struct conn *c, int64_t now)
{
	return c->mark != 0 && c->mark_at != 0 &&
	    now - c->mark_at > WRITE_TIMEOUT_MS;
}
