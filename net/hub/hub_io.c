/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The bytes of a connection in cloopd-net: TLS, WebSocket, what may be
 * read, what waits to be written.  Everything read here is hostile until
 * its codec has taken it apart.  Output is collected during a loop turn and
 * written once at its end; a peer that does not read stops being read
 * itself, and is closed when that does not help.
 */
#include "hub_session.h"

#include <errno.h>
#include <bsd/stdlib.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/event.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "net/codec/tlsio.h"
#include "hub.h"

#define HS_READ_LEN 65536
#define HS_READS 4		/* of that size in one turn */
#define HS_READS_MS 4		/* of a turn; after that little of each peer, so
				 * that a few who send much delay nobody */
#define HS_READ_LITTLE 16384	/* a TLS record */
#define HS_BATCH 128		/* messages handled in one turn */
#define HS_OUT_HIGH 262144	/* unsent: stop reading from this peer */
#define HS_HANDSHAKES_MS 4	/* for TLS handshakes in one turn: a storm must
				 * not hold up those who are in */
#define HS_ASSEMBLING_MIN 65536	/* nobody is closed for less */
#define HS_COPY_MAX 4096	/* longer texts are handed over, not copied */

static void
hs_on_event(evutil_socket_t fd, short what, void *arg)
{
	struct hs *s = arg;

	(void)fd;
	(void)what;
	if (s->state != HST_DEAD)
		hs_pump(s);
	hs_set_dirty(s);
}

int
hs_open_io(struct hs *s, int fd)
{
	struct tlsio_ctx *ctx = s->tls ? s->hub->tls.ctx : NULL;

	if (s->tls && ctx == NULL) {
		close(fd);
		return CL_STATE;
	}
	if (tlsio_new_server(ctx, fd, &s->io) != CL_OK)
		return CL_NOMEM;
	s->in = evbuffer_new();
	s->out = evbuffer_new();
	s->ev_in = event_new(s->hub->base, fd, EV_READ | EV_PERSIST,
	    hs_on_event, s);
	s->ev_out = event_new(s->hub->base, fd, EV_WRITE | EV_PERSIST,
	    hs_on_event, s);
	if (s->in == NULL || s->out == NULL || s->ev_in == NULL ||
	    s->ev_out == NULL)
		return CL_NOMEM;
	hs_update_events(s);
	return CL_OK;
}

void
hs_close_io(struct hs *s)
{
	if (s->ev_in != NULL)
		event_free(s->ev_in);
	if (s->ev_out != NULL)
		event_free(s->ev_out);
	if (s->in != NULL)
		evbuffer_free(s->in);
	if (s->out != NULL)
		evbuffer_free(s->out);
	tlsio_free(s->io);
	s->ev_in = s->ev_out = NULL;
	s->in = s->out = NULL;
	s->io = NULL;
}

int
hs_has_output(const struct hs *s)
{
	return s->pong || (s->out != NULL && evbuffer_get_length(s->out) > 0);
}

/* May frames or a request be taken from this peer now? */
static int
hs_is_reading(const struct hs *s)
{
	switch (s->state) {
	case HST_HEAD:
		return 1;
	case HST_HELLO:
	case HST_LIVE:
		return !s->paused &&
		    evbuffer_get_length(s->out) < HS_OUT_HIGH;
	case HST_CLOSING:
		return s->superseded;
	default:
		return 0;
	}
}

void
hs_update_events(struct hs *s)
{
	unsigned int wants, changed;

	if (s->waits)
		wants = 0;
	else if (s->state == HST_LINGER)
		wants = TLSIO_READ | (s->shut ? 0 : TLSIO_WRITE);
	else
		wants = tlsio_get_wants(s->io, hs_is_reading(s),
		    hs_has_output(s));
	changed = wants ^ s->ev_wants;
	s->ev_wants = (uint8_t)wants;
	if (changed & TLSIO_READ) {
		if (wants & TLSIO_READ)
			(void)event_add(s->ev_in, NULL);
		else
			(void)event_del(s->ev_in);
	}
	if (changed & TLSIO_WRITE) {
		if (wants & TLSIO_WRITE)
			(void)event_add(s->ev_out, NULL);
		else
			(void)event_del(s->ev_out);
	}
}

/* The connection ended by itself. */
static void
hs_fail(struct hs *s, int r)
{
	const char *text = tlsio_get_error(s->io);

	if (r == CL_EOF) {
		hs_set_end(s, AGENT_OFFLINE, 0, "the connection was closed");
		hs_run(s, HE_EOF);
		return;
	}
	if (s->state == HST_TLS)
		log_debug("tls-failed", "peer=%s reason=%s",
		    hs_peer_text(s), log_q(text));
	hs_set_end(s, AGENT_UNREACHABLE, 0, text);
	hs_run(s, HE_FAIL);
}

/* We end it, with a WebSocket close frame. */
static void
hs_refuse(struct hs *s, uint16_t code, const char *reason)
{
	hub_add_penalty(s->hub, &s->peer, PEN_PROTOCOL);
	hs_set_end(s, AGENT_UNREACHABLE, code, reason);
	hs_run(s, HE_CLOSE);
}

/* At most one pong waits, the latest: a flood costs the peer, not us. */
static void
hs_on_ping(struct hs *s, const struct ws_event *ev)
{
	if (s->pong_data == NULL &&
	    (s->pong_data = malloc(WS_CONTROL_MAX)) == NULL)
		return;
	memcpy(s->pong_data, ev->data, ev->len);
	s->pong_len = (uint8_t)ev->len;
	s->pong = 1;
	hs_set_dirty(s);
}

/* Two hosts have one identity, as it seems: the monitor judges. */
static void
hs_report_echo(struct hs *s)
{
	struct buf b;

	s->superseded = 0;
	buf_init(&b, 8);
	buf_put_u64(&b, s->session);
	(void)hub_send(s->hub, MSG_SESSION_ECHO, 0, &b, -1);
	buf_clear(&b);
	hs_set_dirty(s);
}

static void
hs_on_ws_event(struct hs *s, const struct ws_event *ev)
{
	if (s->superseded) {
		/* Only its answer to our close counts any more. */
		if (ev->op == WS_CLOSE)
			hs_report_echo(s);
		return;
	}
	if ((ev->op == WS_PING || ev->op == WS_PONG) &&
	    ws_pace_add(&s->pace, s->hub->now) != CL_OK) {
		hs_refuse(s, WS_CODE_POLICY, "too many pings or pongs");
		return;
	}
	switch (ev->op) {
	case WS_TEXT:
		s->msg = ev->data;
		s->msg_len = ev->len;
		hs_run(s, HE_MESSAGE);
		break;
	case WS_PING:
		hs_on_ping(s, ev);
		break;
	case WS_CLOSE:
		s->peer_closed = 1;
		hs_set_end(s, AGENT_OFFLINE, ev->code,
		    "the device closed the connection");
		hs_run(s, HE_CLOSED);
		break;
	case WS_BINARY:
		hs_refuse(s, WS_CODE_UNSUPPORTED, "a binary message");
		break;
	default:
		break;
	}
}

static void
hs_on_ws_error(struct hs *s, int r)
{
	if (s->superseded) {
		s->superseded = 0;
		hs_set_dirty(s);
		return;
	}
	switch (r) {
	case CL_TOOBIG:
		hs_refuse(s, WS_CODE_TOO_BIG, "the message is too big");
		break;
	case CL_NOMEM:
		hs_set_end(s, AGENT_UNREACHABLE, WS_CODE_INTERNAL,
		    "out of memory");
		hs_run(s, HE_CLOSE);
		break;
	default:
		hs_refuse(s, WS_CODE_PROTOCOL, "WebSocket protocol error");
		break;
	}
}

static void
hs_process_ws(struct hs *s)
{
	struct evbuffer_iovec v;
	struct ws_event ev;
	size_t used;
	int n, r;

	for (n = 0; hs_is_reading(s); n++) {
		if (n == HS_BATCH) {
			s->more = 1;
			return;
		}
		if (evbuffer_peek(s->in, -1, NULL, &v, 1) < 1) {
			v.iov_base = NULL;
			v.iov_len = 0;
		}
		r = ws_parse(&s->ws, v.iov_base, v.iov_len, &used, &ev);
		evbuffer_drain(s->in, used);
		if (r == CL_OK)
			hs_on_ws_event(s, &ev);
		else if (r != CL_INCOMPLETE) {
			hs_on_ws_error(s, r);
			return;
		} else if (s->ws.left > MAX_FRAME_LEN - s->ws.message_len) {
			/* Announced only, but nothing good can come of it. */
			hs_on_ws_error(s, CL_TOOBIG);
			return;
		} else if (evbuffer_get_length(s->in) == 0)
			return;
	}
}

static struct hs *
hs_find_longest(const struct hs_queue *q, struct hs *victim)
{
	struct hs *s;

	TAILQ_FOREACH(s, q, link)
		if (s->assembling >= HS_ASSEMBLING_MIN && (victim == NULL ||
		    s->assembling_at < victim->assembling_at))
			victim = s;
	return victim;
}

/*
 * Messages that are not whole yet: each is bounded, and so is their sum.
 * Past it the one that has been under way for longest goes.
 */
static void
hs_count_assembling(struct hs *s)
{
	struct hs_table *t = &s->hub->sessions;
	struct hs *victim;

	if (s->ws.message_cap == s->assembling)
		return;
	if (s->assembling == 0)
		s->assembling_at = s->hub->now;
	t->assembling += s->ws.message_cap - s->assembling;
	s->assembling = s->ws.message_cap;
	if (t->assembling <= MAX_ASSEMBLING_LEN)
		return;
	/* Who has not said hello yet holds memory, too. */
	victim = hs_find_longest(&t->young, hs_find_longest(&t->live, NULL));
	if (victim == NULL)
		return;
	hs_set_end(victim, AGENT_UNREACHABLE, WS_CODE_INTERNAL,
	    "too many unfinished messages");
	hs_run(victim, HE_CLOSE);
	ws_clear(&victim->ws);
	t->assembling -= victim->assembling;
	victim->assembling = 0;
}

/* What has been read already. */
static void
hs_process(struct hs *s)
{
	if (s->state == HST_HEAD)
		hs_run(s, hs_check_head(s));
	if (s->held && !s->paused && s->state == HST_LIVE) {
		/* The frame an ask was about: its message is still there. */
		s->held = 0;
		hs_run(s, HE_MESSAGE);
	}
	if (s->state == HST_HELLO || s->state == HST_LIVE ||
	    s->state == HST_CLOSING)
		hs_process_ws(s);
	if (s->state == HST_HELLO || s->state == HST_LIVE)
		hs_count_assembling(s);
}

/* After our own end is shut: read and forget until theirs is. */
static void
hs_drop_input(struct hs *s)
{
	char drop[4096];
	ssize_t n;
	int i;

	for (i = 0; i < 16; i++) {
		n = read(tlsio_get_fd(s->io), drop, sizeof(drop));
		if (n == -1 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) {
			hs_run(s, n == 0 ? HE_EOF : HE_FAIL);
			return;
		}
	}
}

/* Is there time for a handshake in this turn?  For one there always is. */
static int
hs_has_turn(struct hub *hub)
{
	int64_t now = util_now_ms();

	if (hub->sessions.handshakes_end == 0)
		hub->sessions.handshakes_end = now + HS_HANDSHAKES_MS;
	return now < hub->sessions.handshakes_end;
}

/* What may be read next of a peer, after n reads in this turn; 0: no more. */
static size_t
hs_get_read_len(struct hub *hub, int n)
{
	int64_t now = util_now_ms();

	if (hub->sessions.reads_end == 0)
		hub->sessions.reads_end = now + HS_READS_MS;
	if (now < hub->sessions.reads_end)
		return n < HS_READS ? HS_READ_LEN : 0;
	return n == 0 ? HS_READ_LITTLE : 0;
}

static void
hs_pump_now(struct hs *s)
{
	size_t len;
	int i, r;

	s->more = 0;
	s->turn = s->hub->sessions.turn;
	if (s->state == HST_TLS) {
		s->begun = 1;
		r = tlsio_handshake(s->io);
		if (r == CL_INCOMPLETE)
			return;
		if (r != CL_OK) {
			hs_fail(s, r);
			return;
		}
		hs_run(s, HE_READY);
	}
	if (s->state == HST_LINGER) {
		hs_drop_input(s);
		return;
	}
	for (i = 0;; i++) {
		hs_process(s);
		if (s->more || !hs_is_reading(s) ||
		    (i > 0 && !tlsio_has_pending(s->io)))
			return;
		if ((len = hs_get_read_len(s->hub, i)) == 0) {
			s->more = 1;
			return;
		}
		r = tlsio_read(s->io, s->in, len);
		if (r == CL_INCOMPLETE)
			return;
		if (r != CL_OK) {
			hs_fail(s, r);
			return;
		}
	}
}

/*
 * A handshake stands in line behind those that came before it.  A thousand
 * of them would otherwise be called in every turn, to be told to wait.  One
 * that has begun goes first: most of its work is done.
 */
void
hs_pump(struct hs *s)
{
	struct hs_table *t = &s->hub->sessions;

	if (s->state != HST_TLS || ((s->begun ||
	    TAILQ_EMPTY(&t->waiting)) && hs_has_turn(s->hub))) {
		hs_pump_now(s);
		return;
	}
	if (s->waits)
		return;
	s->waits = 1;
	if (s->begun)
		TAILQ_INSERT_HEAD(&t->waiting, s, waiting_link);
	else
		TAILQ_INSERT_TAIL(&t->waiting, s, waiting_link);
}

void
hs_pump_waiting(struct hub *hub)
{
	struct hs_table *t = &hub->sessions;
	struct hs *s;

	while ((s = TAILQ_FIRST(&t->waiting)) != NULL && hs_has_turn(hub)) {
		TAILQ_REMOVE(&t->waiting, s, waiting_link);
		s->waits = 0;
		if (s->state != HST_DEAD)
			hs_pump_now(s);
		hs_set_dirty(s);
	}
}

/* A pong goes out only when nothing else waits. */
static void
hs_put_pong(struct hs *s)
{
	if (!s->pong || evbuffer_get_length(s->out) > 0)
		return;
	s->pong = 0;
	if (!hs_is_end(s->state))
		hs_put_control(s, WS_PONG, s->pong_data, s->pong_len);
}

void
hs_flush(struct hs *s)
{
	size_t left;
	int r;

	/* The end was decided where the machine could not be run. */
	if (s->end_status != 0 && !hs_is_end(s->state))
		hs_run(s, HE_FAIL);
	if (s->state == HST_LINGER && !s->shut)
		s->shut = tlsio_close(s->io) != CL_INCOMPLETE;
	if (s->state == HST_DEAD || s->state == HST_LINGER ||
	    s->state == HST_TLS)
		return;
	hs_put_pong(s);
	hs_ship_branches(s);
	if (evbuffer_get_length(s->out) > 0) {
		r = tlsio_write(s->io, s->out);
		if (r != CL_OK && r != CL_INCOMPLETE) {
			hs_fail(s, r);
			return;
		}
	}
	left = evbuffer_get_length(s->out);
	if (left == 0)
		s->mark = 0;
	else if (s->queued - left >= s->mark) {
		s->mark = s->queued;
		s->mark_at = s->hub->now;
	}
	if (left == 0 && (s->state == HST_REPLY || s->state == HST_WELCOME ||
	    (s->state == HST_CLOSING && !s->superseded)))
		hs_run(s, HE_SENT);
	if (hs_is_shipping(s))
		s->more = 1;
	if ((s->state == HST_HELLO || s->state == HST_LIVE) &&
	    hs_is_reading(s) && (evbuffer_get_length(s->in) > 0 ||
	    tlsio_has_pending(s->io)))
		s->more = 1;
}

int
hs_is_stalled(const struct hs *s, int64_t now)
{
	return s->mark != 0 && now - s->mark_at > WRITE_TIMEOUT_MS;
}

/* After bytes were added to `out`. */
static int
hs_check_queue(struct hs *s, size_t len)
{
	s->queued += len;
	if (s->mark == 0) {
		s->mark = s->queued;
		s->mark_at = s->hub->now;
	}
	hs_set_dirty(s);
	if (evbuffer_get_length(s->out) > MAX_SESSION_OUT_LEN) {
		hs_set_end(s, AGENT_UNREACHABLE, 0,
		    "it does not read what is sent");
		return CL_LIMIT;
	}
	return CL_OK;
}

int
hs_put_bytes(struct hs *s, const void *data, size_t len)
{
	if (evbuffer_add(s->out, data, len) == -1) {
		hs_set_end(s, AGENT_UNREACHABLE, 0, "out of memory");
		return CL_NOMEM;
	}
	return hs_check_queue(s, len);
}

void
hs_put_control(struct hs *s, enum ws_op op, const void *data, size_t len)
{
	uint8_t frame[WS_HEAD_MAX + WS_CONTROL_MAX];
	size_t n;

	n = ws_format_frame(frame, sizeof(frame), op, data, len, NULL);
	if (n > 0)
		(void)hs_put_bytes(s, frame, n);
}

static void
hs_wipe_frame(const void *data, size_t len, void *arg)
{
	(void)arg;
	freezero((void *)(uintptr_t)data, len);
}

/* The text of hub->jw as one message; long ones, and those with a secret,
 * in memory of their own that is wiped when it has left. */
static int
hs_put_text(struct hs *s, int secret)
{
	struct jsonw *w = &s->hub->jw;
	uint8_t head[WS_HEAD_MAX], *copy;
	size_t n = ws_format_head(head, WS_TEXT, w->len, NULL);

	if (w->len <= HS_COPY_MAX && !secret) {
		if (evbuffer_add(s->out, head, n) == -1 ||
		    evbuffer_add(s->out, w->data, w->len) == -1)
			goto nomem;
		return hs_check_queue(s, n + w->len);
	}
	if ((copy = malloc(n + w->len)) == NULL)
		goto nomem;
	memcpy(copy, head, n);
	memcpy(copy + n, w->data, w->len);
	n += w->len;
	jsonw_clear(w);
	jsonw_init(w, MAX_FRAME_LEN, 0);
	if (evbuffer_add_reference(s->out, copy, n, hs_wipe_frame, NULL) ==
	    -1) {
		freezero(copy, n);
		goto nomem;
	}
	return hs_check_queue(s, n);
nomem:
	hs_set_end(s, AGENT_UNREACHABLE, 0, "out of memory");
	return CL_NOMEM;
}

int
hs_put_frame(struct hs *s, enum frame_type type, int v, const char *id,
    const char *handle, const void *payload)
{
	struct jsonw *w = &s->hub->jw;
	int r, secret = type == FRAME_START || type == FRAME_WELCOME ||
	    type == FRAME_SECRET_REFRESH;

	if (hs_is_end(s->state))
		return CL_STATE;
	if ((r = frame_encode(w, type, v, id, handle, payload)) != CL_OK) {
		if (secret) {
			jsonw_clear(w);
			jsonw_init(w, MAX_FRAME_LEN, 0);
		}
		return r;
	}
	if (log_get_level() >= LOGL_DEBUG)
		log_debug("frame-out", "session=%llu type=%s id=%s handle=%s "
		    "len=%zu", (unsigned long long)s->session,
		    frame_name(type), log_q(id), log_q(handle), w->len);
	return hs_put_text(s, secret);
}

int
hs_put_error(struct hs *s, const char *id, const char *code, const char *fmt,
    ...)
{
	struct frame_error e;
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	e.code = (char *)(uintptr_t)code;
	e.message = text;
	if (log_ratelimit(&s->hub->rl_frame, 20, 10, NULL))
		log_info("frame-refused", "session=%llu agent=%s code=%s "
		    "reason=%s", (unsigned long long)s->session,
		    log_q(s->agent_id), code, log_q(text));
	/* Error frames say version 1 at any time. */
	return hs_put_frame(s, FRAME_ERROR, PROTO_MIN, id, NULL, &e);
}
