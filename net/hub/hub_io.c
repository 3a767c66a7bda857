/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * A session's connection in cloopd-net: whose turn it is to shake hands, to
 * be read and to be written to, and what its peer did wrong.  The bytes
 * themselves are net/conn's.  Output is collected during a loop turn and
 * written once at its end; a peer that does not read stops being read
 * itself, and is closed when that does not help.
 */
#include "hub_session.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/util.h"
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

/* May frames or a request be taken from this peer now? */
static int
hs_is_reading(void *arg)
{
	const struct hs *s = arg;

	switch (s->state) {
	case HST_HEAD:
		return 1;
	case HST_HELLO:
	case HST_LIVE:
		return !s->paused && conn_get_queued(&s->conn) < HS_OUT_HIGH;
	case HST_CLOSING:
		return s->superseded;
	default:
		return 0;
	}
}

void
hs_update_events(struct hs *s)
{
	if (s->waits)
		conn_set_events(&s->conn, 0);
	else if (s->state == HST_LINGER)
		conn_set_events(&s->conn, TLSIO_READ |
		    (s->conn.shut ? 0 : TLSIO_WRITE));
	else
		conn_set_events(&s->conn, conn_get_wants(&s->conn,
		    hs_is_reading(s)));
}

/* The connection ended by itself. */
static void
hs_fail(struct hs *s, int r)
{
	const char *text = tlsio_get_error(s->conn.io);

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

/* Two hosts have one identity, as it seems: the monitor judges. */
static void
hs_report_echo(struct hs *s)
{
	struct msg_session body = { s->session };

	s->superseded = 0;
	HUB_SEND(s->hub, SESSION_ECHO, &body);
	hs_set_dirty(s);
}

static void
hs_on_ready(void *arg)
{
	struct hs *s = arg;

	if (s->state != HST_DEAD)
		hs_pump(s);
	hs_set_dirty(s);
}

static void
hs_on_text(void *arg, const uint8_t *data, size_t len)
{
	struct hs *s = arg;

	if (s->superseded)
		return;
	s->msg = data;
	s->msg_len = len;
	hs_run(s, HE_MESSAGE);
}

static void
hs_on_close(void *arg, const struct ws_event *ev)
{
	struct hs *s = arg;

	if (s->superseded) {
		/* Only its answer to our close counts any more. */
		hs_report_echo(s);
		return;
	}
	s->peer_closed = 1;
	hs_set_end(s, AGENT_OFFLINE, ev->code,
	    "the device closed the connection");
	hs_run(s, HE_CLOSED);
}

/* What a fault is called, and the code it is closed with. */
static const struct hs_fault {
	uint16_t code;
	const char *reason;
} hs_faults[] = {
	[CONN_PINGS] = { WS_CODE_POLICY, "too many pings or pongs" },
	[CONN_BINARY] = { WS_CODE_UNSUPPORTED, "a binary message" },
	[CONN_TOO_BIG] = { WS_CODE_TOO_BIG, "the message is too big" },
	[CONN_NOMEM] = { WS_CODE_INTERNAL, "out of memory" },
	[CONN_PROTOCOL] = { WS_CODE_PROTOCOL, "WebSocket protocol error" },
};

/* We end it, with a WebSocket close frame. */
static void
hs_on_fault(void *arg, enum conn_fault fault)
{
	const struct hs_fault *row = &hs_faults[fault];
	struct hs *s = arg;

	if (s->superseded) {
		s->superseded = 0;
		hs_set_dirty(s);
		return;
	}
	if (fault != CONN_NOMEM)
		hub_add_penalty(s->hub, &s->peer, PEN_PROTOCOL);
	hs_set_end(s, AGENT_UNREACHABLE, row->code, row->reason);
	hs_run(s, HE_CLOSE);
}

static void
hs_on_ping(void *arg)
{
	hs_set_dirty(arg);
}

static const struct conn_ops hs_conn_ops = { hs_on_ready, hs_is_reading,
	hs_on_text, hs_on_close, hs_on_fault, hs_on_ping };

int
hs_open_io(struct hs *s, int fd)
{
	struct tlsio_ctx *ctx = s->tls ? s->hub->tls.ctx : NULL;
	struct tlsio *io;

	conn_init(&s->conn, WS_SERVER, &hs_conn_ops, s);
	if (s->tls && ctx == NULL) {
		close(fd);
		return CL_STATE;
	}
	if (tlsio_new_server(ctx, fd, &io) != CL_OK ||
	    conn_open(&s->conn, s->hub->base, io) != CL_OK)
		return CL_NOMEM;
	hs_update_events(s);
	return CL_OK;
}

static struct hs *
hs_find_longest(const struct hs_queue *q, struct hs *victim)
{
	struct hs *s;

	TAILQ_FOREACH(s, q, link)
		if (s->conn.unfinished >= HS_ASSEMBLING_MIN &&
		    (victim == NULL || s->conn.unfinished_at <
		    victim->conn.unfinished_at))
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

	if (!conn_count_unfinished(&s->conn, &t->assembling, s->hub->now))
		return;
	/* Who has not said hello yet holds memory, too. */
	victim = hs_find_longest(&t->young, hs_find_longest(&t->live, NULL));
	if (victim == NULL)
		return;
	hs_set_end(victim, AGENT_UNREACHABLE, WS_CODE_INTERNAL,
	    "too many unfinished messages");
	hs_run(victim, HE_CLOSE);
	conn_drop_unfinished(&victim->conn, &t->assembling);
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
		s->more |= (unsigned int)conn_process(&s->conn, HS_BATCH,
		    s->hub->now);
	if (s->state == HST_HELLO || s->state == HST_LIVE)
		hs_count_assembling(s);
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
		r = tlsio_handshake(s->conn.io);
		if (r == CL_INCOMPLETE)
			return;
		if (r != CL_OK) {
			hs_fail(s, r);
			return;
		}
		hs_run(s, HE_READY);
	}
	if (s->state == HST_LINGER) {
		if ((r = conn_drop_input(&s->conn)) != CL_INCOMPLETE)
			hs_run(s, r == CL_EOF ? HE_EOF : HE_FAIL);
		return;
	}
	for (i = 0;; i++) {
		hs_process(s);
		if (s->more || !hs_is_reading(s) ||
		    (i > 0 && !tlsio_has_pending(s->conn.io)))
			return;
		if ((len = hs_get_read_len(s->hub, i)) == 0) {
			s->more = 1;
			return;
		}
		r = tlsio_read(s->conn.io, s->conn.in, len);
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

void
hs_flush(struct hs *s)
{
	int r;

	/* The end was decided where the machine could not be run. */
	if (s->end_status != 0 && !hs_is_end(s->state))
		hs_run(s, HE_FAIL);
	if (s->state == HST_LINGER && !s->conn.shut)
		conn_shut(&s->conn);
	if (s->state == HST_DEAD || s->state == HST_LINGER ||
	    s->state == HST_TLS)
		return;
	conn_put_pong(&s->conn);
	hs_ship_branches(s);
	r = conn_flush(&s->conn, s->hub->now);
	if (r != CL_OK && r != CL_INCOMPLETE) {
		hs_fail(s, r);
		return;
	}
	if (conn_get_queued(&s->conn) == 0 && (s->state == HST_REPLY ||
	    s->state == HST_WELCOME ||
	    (s->state == HST_CLOSING && !s->superseded)))
		hs_run(s, HE_SENT);
	if (hs_is_shipping(s))
		s->more = 1;
	if ((s->state == HST_HELLO || s->state == HST_LIVE) &&
	    hs_is_reading(s) && conn_has_input(&s->conn))
		s->more = 1;
}

/* After bytes were put: do they fit what may wait? */
static int
hs_check_queue(struct hs *s, int r)
{
	if (r == CL_OK) {
		hs_set_dirty(s);
		if (!conn_is_full(&s->conn))
			return CL_OK;
		r = CL_LIMIT;
	}
	hs_set_end(s, AGENT_UNREACHABLE, 0, r == CL_LIMIT ?
	    "it does not read what is sent" : "out of memory");
	return r;
}

int
hs_put_bytes(struct hs *s, const void *data, size_t len)
{
	return hs_check_queue(s, conn_put_bytes(&s->conn, data, len));
}

/* The writer gives back what is not to stay in memory. */
static void
hs_clear_writer(struct jsonw *w)
{
	jsonw_clear(w);
	jsonw_init(w, MAX_FRAME_LEN, 0);
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
		if (secret)
			hs_clear_writer(w);
		return r;
	}
	if (log_get_level() >= LOGL_DEBUG)
		log_debug("frame-out", "session=%llu type=%s id=%s handle=%s "
		    "len=%zu", (unsigned long long)s->session,
		    frame_name(type), log_q(id), log_q(handle), w->len);
	r = conn_put_text(&s->conn, w->data, w->len, secret);
	if (secret || w->len > CONN_COPY_MAX)
		hs_clear_writer(w);
	return hs_check_queue(s, r);
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
