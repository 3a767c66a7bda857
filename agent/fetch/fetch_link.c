/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The open link: WebSocket messages over the connection that fetch_dial.c
 * made.  In agentd-fetch, confined.  Everything that comes is from the
 * hub, or from whoever took it over: sizes, queues and waits are bounded.
 * The owner's callbacks run from the loop only, and nothing is freed in
 * its own callback.
 */
#include <bsd/stdlib.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/util.h"
#include "net/codec/tlsio.h"
#include "fetch_link_int.h"

#define FL_PONG_MARK 65536	/* queued bytes above which a pong waits */

static void fl_on_io(evutil_socket_t, short, void *);
static void fl_on_timer(evutil_socket_t, short, void *);
static void fl_on_turn(evutil_socket_t, short, void *);

struct fl *
fl_new(struct event_base *base, const struct fl_ops *ops, void *arg)
{
	struct fl *l;

	if ((l = calloc(1, sizeof(*l))) == NULL)
		return NULL;
	l->base = base;
	l->ops = ops;
	l->arg = arg;
	l->fd = -1;
	snprintf(l->peer, sizeof(l->peer), "-");
	ws_init(&l->ws, WS_CLIENT, MAX_FRAME_LEN);
	l->in = evbuffer_new();
	l->out = evbuffer_new();
	l->timer = evtimer_new(base, fl_on_timer, l);
	l->turn = event_new(base, -1, 0, fl_on_turn, l);
	if (l->in == NULL || l->out == NULL || l->timer == NULL ||
	    l->turn == NULL) {
		fl_free(l);
		return NULL;
	}
	return l;
}

/* Everything of one connection. */
static void
fl_close_connection(struct fl *l)
{
	if (l->rd != NULL)
		event_free(l->rd);
	if (l->wr != NULL)
		event_free(l->wr);
	l->rd = l->wr = NULL;
	if (l->fd != -1)
		close(l->fd);
	l->fd = -1;
	tlsio_free(l->tls);
	l->tls = NULL;
	ws_clear(&l->ws);
	evbuffer_drain(l->in, evbuffer_get_length(l->in));
	evbuffer_drain(l->out, evbuffer_get_length(l->out));
}

void
fl_free(struct fl *l)
{
	if (l == NULL)
		return;
	if (l->in != NULL && l->out != NULL)
		fl_close_connection(l);
	if (l->in != NULL)
		evbuffer_free(l->in);
	if (l->out != NULL)
		evbuffer_free(l->out);
	if (l->timer != NULL)
		event_free(l->timer);
	if (l->turn != NULL)
		event_free(l->turn);
	free(l);
}

void
fl_wake(struct fl *l)
{
	event_active(l->turn, EV_TIMEOUT, 0);
}

void
fl_fail(struct fl *l, const char *fmt, ...)
{
	va_list ap;

	if (l->state == FL_IDLE || l->state == FL_ENDED)
		return;
	if (l->why[0] == '\0') {
		va_start(ap, fmt);
		vsnprintf(l->why, sizeof(l->why), fmt, ap);
		va_end(ap);
	}
	fl_enter_state(l, FL_ENDED);
}

static void
fl_set_timer(struct fl *l, int64_t ms)
{
	struct timeval tv;

	if (ms < 0)
		ms = 0;
	tv.tv_sec = (time_t)(ms / 1000);
	tv.tv_usec = (suseconds_t)(ms % 1000 * 1000);
	evtimer_add(l->timer, &tv);
}

void
fl_enter_state(struct fl *l, enum fl_state state)
{
	l->state = state;
	evtimer_del(l->timer);
	switch (state) {
	case FL_IDLE:
		break;
	case FL_CONNECT:
		fl_set_timer(l, fl_get_connect_ms(l));
		break;
	case FL_TLS:
	case FL_HTTP:
		fl_set_timer(l, l->dial_deadline_at - util_now_ms());
		break;
	case FL_OPEN:
		ws_init(&l->ws, WS_CLIENT, MAX_FRAME_LEN);
		memset(&l->pace, 0, sizeof(l->pace));
		l->has_pong = 0;
		l->queued = evbuffer_get_length(l->out);
		l->written = 0;
		l->ops->on_open(l->arg);
		fl_wake(l);	/* frames may have come with the answer */
		break;
	case FL_CLOSING:
		fl_set_timer(l, BYE_TIMEOUT_MS);
		fl_wake(l);
		break;
	case FL_ENDED:
		fl_wake(l);
		break;
	}
}

int
fl_open_events(struct fl *l, int fd)
{
	l->rd = event_new(l->base, fd, EV_READ | EV_PERSIST, fl_on_io, l);
	l->wr = event_new(l->base, fd, EV_WRITE | EV_PERSIST, fl_on_io, l);
	return l->rd == NULL || l->wr == NULL ? CL_NOMEM : CL_OK;
}

void
fl_set_events(struct fl *l)
{
	unsigned int wants;
	int reading, writing;

	if (l->tls == NULL || l->rd == NULL)
		return;
	reading = l->state != FL_OPEN || !l->paused;
	writing = evbuffer_get_length(l->out) > 0;
	wants = tlsio_get_wants(l->tls, reading, writing);
	if (wants & TLSIO_READ)
		event_add(l->rd, NULL);
	else
		event_del(l->rd);
	if (wants & TLSIO_WRITE)
		event_add(l->wr, NULL);
	else
		event_del(l->wr);
}

/* Put one frame behind what is queued, masked. */
static int
fl_put_frame(struct fl *l, enum ws_op op, const void *payload, size_t len)
{
	uint8_t mask[WS_MASK_LEN];
	struct evbuffer_iovec vec;
	size_t n;

	arc4random_buf(mask, sizeof(mask));
	if (evbuffer_reserve_space(l->out, (ev_ssize_t)(WS_HEAD_MAX + len),
	    &vec, 1) != 1)
		return CL_NOMEM;
	n = ws_format_frame(vec.iov_base, vec.iov_len, op, payload, len, mask);
	if (n == 0)
		return CL_INTERNAL;
	vec.iov_len = n;
	if (evbuffer_commit_space(l->out, &vec, 1) == -1)
		return CL_NOMEM;
	if (l->queued == l->written)
		l->progress_at = util_now_ms();
	l->queued += n;
	return CL_OK;
}

int
fl_send(struct fl *l, const void *text, size_t len, uint64_t *posp)
{
	int r;

	if (l->state != FL_OPEN)
		return CL_STATE;
	if (evbuffer_get_length(l->out) > MAX_SESSION_OUT_LEN)
		return CL_LIMIT;
	if ((r = fl_put_frame(l, WS_TEXT, text, len)) != 0)
		return r;
	if (posp != NULL)
		*posp = l->queued;
	fl_wake(l);
	return CL_OK;
}

uint64_t
fl_get_written(const struct fl *l)
{
	return l->written;
}

size_t
fl_get_queued(const struct fl *l)
{
	return evbuffer_get_length(l->out);
}

void
fl_pause(struct fl *l, int on)
{
	l->paused = on;
	if (!on && l->state == FL_OPEN)
		fl_wake(l);
}

void
fl_close(struct fl *l, uint16_t code, const char *reason)
{
	uint8_t payload[WS_CONTROL_MAX];
	size_t len;

	if (l->state == FL_CLOSING)
		return;
	if (l->state != FL_OPEN) {
		fl_fail(l, "%s", reason);
		return;
	}
	snprintf(l->why, sizeof(l->why), "%s", reason);
	len = ws_format_close(payload, code, reason);
	if (fl_put_frame(l, WS_CLOSE, payload, len) != 0)
		fl_enter_state(l, FL_ENDED);
	else
		fl_enter_state(l, FL_CLOSING);
}

/* The hub closes: answer with its own code and end. */
static void
fl_on_close_frame(struct fl *l, const struct ws_event *ev)
{
	char reason[WS_CONTROL_MAX + 1];
	size_t i;

	snprintf(reason, sizeof(reason), "%.*s", (int)ev->len,
	    (const char *)ev->data);
	fl_close(l, ev->code, reason);
	/* It goes into a log line: nothing that could end it or the quotes. */
	for (i = 0; reason[i] != '\0'; i++) {
		if (reason[i] < 0x20 || reason[i] > 0x7e || reason[i] == '"')
			reason[i] = '?';
	}
	snprintf(l->why, sizeof(l->why), "the hub closed the connection "
	    "(code %u, %s)", ev->code, reason[0] != '\0' ? reason :
	    "no reason");
}

static void
fl_on_event(struct fl *l, const struct ws_event *ev)
{
	if ((ev->op == WS_PING || ev->op == WS_PONG) &&
	    ws_pace_add(&l->pace, util_now_ms()) != CL_OK) {
		fl_close(l, WS_CODE_POLICY, "too many pings or pongs");
		return;
	}
	switch (ev->op) {
	case WS_TEXT:
		l->ops->on_message(l->arg, ev->data, ev->len);
		break;
	case WS_BINARY:
		fl_close(l, WS_CODE_NORMAL, "binary message");
		break;
	case WS_PING:
		memcpy(l->pong, ev->data, ev->len);
		l->pong_len = ev->len;
		l->has_pong = 1;
		break;
	case WS_CLOSE:
		fl_on_close_frame(l, ev);
		break;
	default:
		break;
	}
}

static void
fl_on_violation(struct fl *l, int r)
{
	if (r == CL_TOOBIG)
		fl_close(l, WS_CODE_TOO_BIG, "message over 1 MiB");
	else if (r == CL_NOMEM)
		fl_close(l, WS_CODE_INTERNAL, "out of memory");
	else
		fl_close(l, WS_CODE_PROTOCOL, "WebSocket violation");
}

/* Hand out what has come, until the owner pauses or closes. */
static void
fl_parse(struct fl *l)
{
	struct evbuffer_iovec vec;
	struct ws_event ev;
	size_t used;
	int r;

	while (l->state == FL_OPEN && !l->paused) {
		memset(&vec, 0, sizeof(vec));
		evbuffer_peek(l->in, -1, NULL, &vec, 1);
		r = ws_parse(&l->ws, vec.iov_base, vec.iov_len, &used, &ev);
		if (used > 0) {
			/* A welcome holds the credential: leave no copy. */
			explicit_bzero(vec.iov_base, used);
			evbuffer_drain(l->in, used);
		}
		if (r == 0)
			fl_on_event(l, &ev);
		else if (r != CL_INCOMPLETE)
			fl_on_violation(l, r);
		else if (evbuffer_get_length(l->in) == 0)
			break;
	}
}

static void
fl_flush(struct fl *l)
{
	size_t before = evbuffer_get_length(l->out), after;
	int r;

	if (l->has_pong && l->state == FL_OPEN && before < FL_PONG_MARK) {
		l->has_pong = 0;
		fl_put_frame(l, WS_PONG, l->pong, l->pong_len);
		before = evbuffer_get_length(l->out);
	}
	if (before == 0)
		return;
	r = tlsio_write(l->tls, l->out);
	after = evbuffer_get_length(l->out);
	if (after < before) {
		l->written += before - after;
		l->progress_at = util_now_ms();
	}
	if (r != 0 && r != CL_INCOMPLETE) {
		fl_fail(l, "%s", tlsio_get_error(l->tls));
		return;
	}
	if (l->state == FL_OPEN && after > 0 &&
	    !evtimer_pending(l->timer, NULL))
		fl_set_timer(l, WRITE_TIMEOUT_MS);
	if (l->state == FL_OPEN && after < before)
		l->ops->on_written(l->arg);
}

/* Our close frame is out: end our direction, wait for the other one. */
static void
fl_flush_closing(struct fl *l)
{
	fl_flush(l);
	if (l->state == FL_CLOSING && evbuffer_get_length(l->out) == 0)
		tlsio_close(l->tls);
}

static void
fl_read(struct fl *l)
{
	int r;

	if (l->state == FL_OPEN && l->paused)
		return;
	r = tlsio_read(l->tls, l->in, FL_READ_MAX);
	if (l->state == FL_CLOSING)
		evbuffer_drain(l->in, evbuffer_get_length(l->in));
	else
		fl_parse(l);
	if (r == 0 && tlsio_has_pending(l->tls))
		fl_wake(l);
	else if (r != 0 && r != CL_INCOMPLETE)
		fl_fail(l, "%s", tlsio_get_error(l->tls));
}

/* Events of the socket, and the turn that was asked for. */
static void
fl_run(struct fl *l)
{
	if (l->state >= FL_CONNECT && l->state <= FL_HTTP)
		fl_on_dial(l);
	if (l->state == FL_OPEN || l->state == FL_CLOSING)
		fl_read(l);
	if (l->state == FL_OPEN)
		fl_flush(l);
	if (l->state == FL_CLOSING)
		fl_flush_closing(l);
	fl_set_events(l);
}

static void
fl_on_io(evutil_socket_t fd, short what, void *arg)
{
	struct fl *l = arg;

	(void)fd;
	(void)what;
	fl_run(l);
}

static void
fl_on_turn(evutil_socket_t fd, short what, void *arg)
{
	struct fl *l = arg;
	char why[FL_WHY_MAX];

	(void)fd;
	(void)what;
	if (l->state != FL_ENDED) {
		if (l->state != FL_CONNECT)
			fl_run(l);
		return;
	}
	snprintf(why, sizeof(why), "%s", l->why);
	fl_close_connection(l);
	fl_enter_state(l, FL_IDLE);
	l->ops->on_end(l->arg, why);
}

static void
fl_on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct fl *l = arg;
	int64_t quiet;

	(void)fd;
	(void)what;
	switch (l->state) {
	case FL_CONNECT:
		fl_on_connect_timeout(l);
		break;
	case FL_TLS:
		fl_fail(l, "no TLS handshake within %d s",
		    DIAL_TIMEOUT_MS / 1000);
		break;
	case FL_HTTP:
		fl_fail(l, "no answer to the upgrade within %d s",
		    DIAL_TIMEOUT_MS / 1000);
		break;
	case FL_OPEN:
		quiet = util_now_ms() - l->progress_at;
		if (evbuffer_get_length(l->out) == 0)
			break;
		if (quiet >= WRITE_TIMEOUT_MS)
			fl_fail(l, "the hub took nothing for %d s",
			    WRITE_TIMEOUT_MS / 1000);
		else
			fl_set_timer(l, WRITE_TIMEOUT_MS - quiet);
		break;
	case FL_CLOSING:
		fl_fail(l, "closed");
		break;
	default:
		break;
	}
}

int
fl_is_settled(const struct fl *l)
{
	struct tcp_info ti;
	socklen_t len = sizeof(ti);

	memset(&ti, 0, sizeof(ti));
	/* The descriptor is the TLS layer's by now; its event knows it. */
	return l->rd != NULL && evbuffer_get_length(l->out) == 0 &&
	    getsockopt(event_get_fd(l->rd), IPPROTO_TCP, TCP_INFO, &ti,
	    &len) == 0 &&
	    ti.tcpi_unacked == 0;
}

int
fl_has_end_acks(const struct fl *l)
{
	return l->has_end_acks;
}

int
fl_is_open(const struct fl *l)
{
	return l->state == FL_OPEN;
}

const char *
fl_get_version(const struct fl *l)
{
	return l->tls != NULL ? tlsio_get_version(l->tls) : "-";
}

const char *
fl_get_peer(const struct fl *l)
{
	return l->peer;
}
