/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The link to the hub, in agentd-fetch, confined: dialled by fetch_dial.c,
 * then WebSocket messages over net/conn.  Everything that comes is from the
 * hub, or from whoever took it over.  The owner's callbacks run from the loop
 * only, and nothing is freed in its own callback.
 */
#include "fetch_link.h"

#include <event2/buffer.h>
#include <event2/event.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/util.h"
#include "net/conn/conn.h"

#define FLINK_READ_MAX 262144	/* of one turn, so that others get theirs */

enum fetch_link_state { FLINK_IDLE, FLINK_DIAL, FLINK_OPEN, FLINK_CLOSING,
    FLINK_ENDED };

struct fetch_link {
	const struct fetch_link_ops *ops;
	void *arg;
	enum fetch_link_state state;
	struct fetch_dial dial;
	struct conn conn;
	struct event *timer;	/* one deadline per state */
	struct event *turn;	/* activated by hand: flush, parse, end */
	int paused;
	char why[FETCH_WHY_MAX];
};

/* Have the turn event run. */
static void
fetch_link_wake(struct fetch_link *l)
{
	event_active(l->turn, EV_TIMEOUT, 0);
}

static void
fetch_link_set_timer(struct fetch_link *l, int64_t ms)
{
	struct timeval tv;

	if (ms < 0)
		ms = 0;
	tv.tv_sec = (time_t)(ms / 1000);
	tv.tv_usec = (suseconds_t)(ms % 1000 * 1000);
	evtimer_add(l->timer, &tv);
}

/* The only place where the state changes; arms the state's deadline. */
static void
fetch_link_enter_state(struct fetch_link *l, enum fetch_link_state state)
{
	l->state = state;
	evtimer_del(l->timer);
	switch (state) {
	case FLINK_IDLE:
		break;
	case FLINK_DIAL:
		fetch_link_set_timer(l,
		    fetch_dial_get_deadline(&l->dial) - util_now_ms());
		break;
	case FLINK_OPEN:
		l->ops->on_open(l->arg);
		/* Frames may have come with the answer. */
		fetch_link_wake(l);
		break;
	case FLINK_CLOSING:
		fetch_link_set_timer(l, BYE_TIMEOUT_MS);
		fetch_link_wake(l);
		break;
	case FLINK_ENDED:
		fetch_link_wake(l);
		break;
	}
}

/* Leave for ENDED; on_end follows from the loop.  The first reason wins. */
static void __attribute__((__format__(__printf__, 2, 3)))
fetch_link_fail(struct fetch_link *l, const char *fmt, ...)
{
	va_list ap;

	if (l->state == FLINK_IDLE || l->state == FLINK_ENDED)
		return;
	if (l->why[0] == '\0') {
		va_start(ap, fmt);
		vsnprintf(l->why, sizeof(l->why), fmt, ap);
		va_end(ap);
	}
	fetch_link_enter_state(l, FLINK_ENDED);
}

/* Dialling went a step further. */
static void
fetch_link_on_dial(struct fetch_link *l, int r)
{
	if (r == CL_OK)
		fetch_link_enter_state(l, FLINK_OPEN);
	else if (r == CL_INCOMPLETE)
		fetch_link_enter_state(l, FLINK_DIAL);
	else
		fetch_link_fail(l, "%s", l->dial.why);
}

int
fetch_link_start(struct fetch_link *l, const struct fetch_target *t,
    const struct fetch_addr *addrs, size_t naddrs)
{
	if (l->state != FLINK_IDLE || naddrs == 0)
		return CL_STATE;
	l->why[0] = '\0';
	l->paused = 0;
	l->state = FLINK_DIAL;
	fetch_link_on_dial(l, fetch_dial_start(&l->dial, t, addrs, naddrs));
	return CL_OK;
}

int
fetch_link_send(struct fetch_link *l, const void *text, size_t len,
    uint64_t *posp)
{
	int r;

	if (l->state != FLINK_OPEN)
		return CL_STATE;
	if (conn_is_full(&l->conn))
		return CL_LIMIT;
	if ((r = conn_put_text(&l->conn, text, len, 0)) != 0)
		return r;
	if (posp != NULL)
		*posp = l->conn.queued;
	fetch_link_wake(l);
	return CL_OK;
}

void
fetch_link_pause(struct fetch_link *l, int on)
{
	l->paused = on;
	if (!on && l->state == FLINK_OPEN)
		fetch_link_wake(l);
}

void
fetch_link_close(struct fetch_link *l, uint16_t code, const char *reason)
{
	if (l->state == FLINK_CLOSING)
		return;
	if (l->state != FLINK_OPEN) {
		fetch_link_fail(l, "%s", reason);
		return;
	}
	snprintf(l->why, sizeof(l->why), "%s", reason);
	fetch_link_enter_state(l, conn_put_close(&l->conn, code, reason) != 0 ?
	    FLINK_ENDED : FLINK_CLOSING);
}

static int
fetch_link_is_reading(void *arg)
{
	struct fetch_link *l = arg;

	return l->state == FLINK_OPEN && !l->paused;
}

static void
fetch_link_on_text(void *arg, const uint8_t *data, size_t len)
{
	struct fetch_link *l = arg;

	l->ops->on_message(l->arg, data, len);
}

/* The hub closes: answer with its own code and end. */
static void
fetch_link_on_close(void *arg, const struct ws_event *ev)
{
	struct fetch_link *l = arg;
	char reason[WS_CONTROL_MAX + 1];
	size_t i;

	snprintf(reason, sizeof(reason), "%.*s", (int)ev->len,
	    (const char *)ev->data);
	fetch_link_close(l, ev->code, reason);
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
fetch_link_on_fault(void *arg, enum conn_fault fault)
{
	static const struct {
		uint16_t code;
		const char *reason;
	} faults[] = {
		[CONN_PINGS] = { WS_CODE_POLICY, "too many pings or pongs" },
		[CONN_BINARY] = { WS_CODE_NORMAL, "binary message" },
		[CONN_TOO_BIG] = { WS_CODE_TOO_BIG, "message over 1 MiB" },
		[CONN_NOMEM] = { WS_CODE_INTERNAL, "out of memory" },
		[CONN_PROTOCOL] = { WS_CODE_PROTOCOL, "WebSocket violation" },
	};

	fetch_link_close(arg, faults[fault].code, faults[fault].reason);
}

static void
fetch_link_flush(struct fetch_link *l)
{
	uint64_t before = conn_get_written(&l->conn), after;
	int r;

	r = conn_flush(&l->conn, util_now_ms());
	after = conn_get_written(&l->conn);
	if (r != 0 && r != CL_INCOMPLETE) {
		fetch_link_fail(l, "%s", tlsio_get_error(l->conn.io));
		return;
	}
	if (l->state != FLINK_OPEN)
		return;
	if (conn_get_queued(&l->conn) > 0 && !evtimer_pending(l->timer, NULL))
		fetch_link_set_timer(l, WRITE_TIMEOUT_MS);
	if (after != before)
		l->ops->on_written(l->arg);
}

static void
fetch_link_read(struct fetch_link *l)
{
	struct conn *c = &l->conn;
	int r;

	if (l->state == FLINK_OPEN && l->paused)
		return;
	r = tlsio_read(c->io, c->in, FLINK_READ_MAX);
	if (l->state == FLINK_CLOSING)
		evbuffer_drain(c->in, evbuffer_get_length(c->in));
	else
		(void)conn_process(c, UINT_MAX, util_now_ms());
	if (r == 0 && tlsio_has_pending(c->io))
		fetch_link_wake(l);
	else if (r != 0 && r != CL_INCOMPLETE)
		fetch_link_fail(l, "%s", tlsio_get_error(c->io));
}

/* Events of the socket, and the turn that was asked for. */
static void
fetch_link_run(void *arg)
{
	struct fetch_link *l = arg;

	if (l->state == FLINK_DIAL)
		fetch_link_on_dial(l, fetch_dial_run(&l->dial));
	if (l->state == FLINK_OPEN || l->state == FLINK_CLOSING)
		fetch_link_read(l);
	if (l->state == FLINK_OPEN || l->state == FLINK_CLOSING)
		fetch_link_flush(l);
	/* Our close frame is out: end our direction, await the other's. */
	if (l->state == FLINK_CLOSING && conn_get_queued(&l->conn) == 0)
		conn_shut(&l->conn);
	if (l->conn.io != NULL)
		conn_set_events(&l->conn, conn_get_wants(&l->conn,
		    l->state != FLINK_OPEN || !l->paused));
}

static const struct conn_ops fetch_link_conn_ops = {
	.on_ready = fetch_link_run,
	.is_reading = fetch_link_is_reading,
	.on_message = fetch_link_on_text,
	.on_close = fetch_link_on_close,
	.on_fault = fetch_link_on_fault,
};

static void
fetch_link_on_turn(evutil_socket_t fd, short what, void *arg)
{
	struct fetch_link *l = arg;
	char why[FETCH_WHY_MAX];

	(void)fd;
	(void)what;
	if (l->state != FLINK_ENDED) {
		/* Whether TCP is there, only its own event tells. */
		if (l->state != FLINK_DIAL)
			fetch_link_run(l);
		return;
	}
	snprintf(why, sizeof(why), "%s", l->why);
	fetch_dial_stop(&l->dial);
	conn_close(&l->conn);
	fetch_link_enter_state(l, FLINK_IDLE);
	l->ops->on_end(l->arg, why);
}

static void
fetch_link_on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct fetch_link *l = arg;
	int64_t quiet;

	(void)fd;
	(void)what;
	switch (l->state) {
	case FLINK_DIAL:
		fetch_link_on_dial(l, fetch_dial_expire(&l->dial));
		break;
	case FLINK_OPEN:
		quiet = util_now_ms() - l->conn.mark_at;
		if (conn_get_queued(&l->conn) == 0)
			break;
		if (quiet >= WRITE_TIMEOUT_MS)
			fetch_link_fail(l, "the hub took nothing for %d s",
			    WRITE_TIMEOUT_MS / 1000);
		else
			fetch_link_set_timer(l, WRITE_TIMEOUT_MS - quiet);
		break;
	case FLINK_CLOSING:
		fetch_link_fail(l, "closed");
		break;
	default:
		break;
	}
}

struct fetch_link *
fetch_link_new(struct event_base *base, const struct fetch_link_ops *ops,
    void *arg)
{
	struct fetch_link *l;

	if ((l = calloc(1, sizeof(*l))) == NULL)
		return NULL;
	l->ops = ops;
	l->arg = arg;
	conn_init(&l->conn, WS_CLIENT, &fetch_link_conn_ops, l);
	fetch_dial_init(&l->dial, base, &l->conn, fetch_link_run, l);
	l->timer = evtimer_new(base, fetch_link_on_timer, l);
	l->turn = event_new(base, -1, 0, fetch_link_on_turn, l);
	if (l->timer == NULL || l->turn == NULL) {
		fetch_link_free(l);
		return NULL;
	}
	return l;
}

void
fetch_link_free(struct fetch_link *l)
{
	if (l == NULL)
		return;
	fetch_dial_stop(&l->dial);
	conn_close(&l->conn);
	if (l->timer != NULL)
		event_free(l->timer);
	if (l->turn != NULL)
		event_free(l->turn);
	free(l);
}

uint64_t
fetch_link_get_written(const struct fetch_link *l)
{
	return conn_get_written(&l->conn);
}

size_t
fetch_link_get_queued(const struct fetch_link *l)
{
	return conn_get_queued(&l->conn);
}

int
fetch_link_is_settled(const struct fetch_link *l)
{
	struct tcp_info ti;
	socklen_t len = sizeof(ti);

	memset(&ti, 0, sizeof(ti));
	return l->conn.io != NULL && conn_get_queued(&l->conn) == 0 &&
	    getsockopt(tlsio_get_fd(l->conn.io), IPPROTO_TCP, TCP_INFO, &ti,
	    &len) == 0 && ti.tcpi_unacked == 0;
}

int
fetch_link_has_end_acks(const struct fetch_link *l)
{
	return l->dial.has_end_acks;
}

int
fetch_link_is_open(const struct fetch_link *l)
{
	return l->state == FLINK_OPEN;
}

const char *
fetch_link_get_version(const struct fetch_link *l)
{
	return l->conn.io != NULL ? tlsio_get_version(l->conn.io) : "-";
}

const char *
fetch_link_get_peer(const struct fetch_link *l)
{
	return l->dial.peer;
}
