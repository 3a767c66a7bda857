/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The life of a connection in cloopd-net: the state table, the deadlines,
 * the lists.  Actions never run the machine; they return the next event.
 * A connection is freed at the end of a loop turn, never in its callback.
 */
#include "hub_session.h"

#include <bsd/stdlib.h>
#include <bsd/string.h>
#include <malloc.h>
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
#include "hub.h"

/* The peer's close frame is answered with its own code (RFC 6455 5.5.1);
 * ours says what hs_set_end was told. */
static enum hs_event
hs_act_close(struct hs *s)
{
	if (s->close_code != 0 || s->peer_closed)
		(void)conn_put_close(&s->conn, s->close_code,
		    s->peer_closed ? "" : s->end_reason);
	return HE_NONE;
}

/* End our direction; what the peer still sends is read and dropped, for a
 * close with unread bytes would reset the connection under our last frame. */
static enum hs_event
hs_act_shut(struct hs *s)
{
	conn_shut(&s->conn);
	return HE_NONE;
}

const struct hs_row hs_table[HST_NSTATES][HE_NEVENTS] = {
	[HST_TLS] = {
		[HE_READY] = { HST_HEAD, NULL },
		[HE_CLOSE] = { HST_DEAD, NULL },
		[HE_EOF] = { HST_DEAD, NULL },
		[HE_FAIL] = { HST_DEAD, NULL },
		[HE_TIMEOUT] = { HST_DEAD, NULL },
	},
	[HST_HEAD] = {
		[HE_REQUEST] = { HST_AUTH, hs_act_ask_auth },
		[HE_REFUSE] = { HST_REPLY, hs_act_reply },
		[HE_DENIED] = { HST_DELAY, NULL },
		[HE_CLOSE] = { HST_DEAD, NULL },
		[HE_EOF] = { HST_DEAD, NULL },
		[HE_FAIL] = { HST_DEAD, NULL },
		[HE_TIMEOUT] = { HST_DEAD, NULL },
	},
	[HST_AUTH] = {
		[HE_GRANTED] = { HST_HELLO, hs_act_switch },
		[HE_REFUSE] = { HST_REPLY, hs_act_reply },
		[HE_DENIED] = { HST_DELAY, NULL },
		[HE_CLOSE] = { HST_DEAD, NULL },
		[HE_EOF] = { HST_DEAD, NULL },
		[HE_FAIL] = { HST_DEAD, NULL },
	},
	[HST_DELAY] = {
		[HE_TIMEOUT] = { HST_REPLY, hs_act_reply },
		[HE_CLOSE] = { HST_DEAD, NULL },
		[HE_EOF] = { HST_DEAD, NULL },
		[HE_FAIL] = { HST_DEAD, NULL },
	},
	[HST_REPLY] = {
		[HE_SENT] = { HST_LINGER, hs_act_shut },
		[HE_CLOSE] = { HST_DEAD, NULL },
		[HE_EOF] = { HST_DEAD, NULL },
		[HE_FAIL] = { HST_DEAD, NULL },
		[HE_TIMEOUT] = { HST_DEAD, NULL },
	},
	[HST_HELLO] = {
		[HE_MESSAGE] = { HST_VERIFY, hs_act_hello },
		[HE_CLOSE] = { HST_CLOSING, hs_act_close },
		[HE_CLOSED] = { HST_CLOSING, hs_act_close },
		[HE_EOF] = { HST_DEAD, NULL },
		[HE_FAIL] = { HST_DEAD, NULL },
		[HE_TIMEOUT] = { HST_CLOSING, hs_act_close },
	},
	[HST_VERIFY] = {
		[HE_VERIFIED] = { HST_WELCOME, hs_act_welcome },
		[HE_CLOSE] = { HST_CLOSING, hs_act_close },
		[HE_EOF] = { HST_DEAD, NULL },
		[HE_FAIL] = { HST_DEAD, NULL },
		[HE_TIMEOUT] = { HST_CLOSING, hs_act_close },
	},
	[HST_WELCOME] = {
		[HE_SENT] = { HST_LIVE, hs_act_up },
		[HE_CLOSE] = { HST_CLOSING, hs_act_close },
		[HE_EOF] = { HST_DEAD, NULL },
		[HE_FAIL] = { HST_DEAD, NULL },
		[HE_TIMEOUT] = { HST_DEAD, NULL },
	},
	[HST_LIVE] = {
		[HE_MESSAGE] = { HST_LIVE, hs_act_frame },
		[HE_CLOSE] = { HST_CLOSING, hs_act_close },
		[HE_CLOSED] = { HST_CLOSING, hs_act_close },
		[HE_EOF] = { HST_DEAD, NULL },
		[HE_FAIL] = { HST_DEAD, NULL },
		[HE_TIMEOUT] = { HST_CLOSING, hs_act_close },
	},
	[HST_CLOSING] = {
		[HE_SENT] = { HST_LINGER, hs_act_shut },
		[HE_CLOSE] = { HST_CLOSING, NULL },
		[HE_EOF] = { HST_DEAD, NULL },
		[HE_FAIL] = { HST_DEAD, NULL },
		[HE_TIMEOUT] = { HST_DEAD, NULL },
	},
	[HST_LINGER] = {
		[HE_CLOSE] = { HST_LINGER, NULL },
		[HE_EOF] = { HST_DEAD, NULL },
		[HE_FAIL] = { HST_DEAD, NULL },
		[HE_TIMEOUT] = { HST_DEAD, NULL },
	},
};

static const struct hs_state_row {
	const char *name;
	int ms;
} hs_states[HST_NSTATES] = {
	[HST_NONE] = { "NONE", -1 },
#define X(name, ms) [HST_##name] = { #name, ms },
	HST_STATES(X)
#undef X
};

static const char *const hs_events[HE_NEVENTS] = {
	[HE_NONE] = "NONE",
#define X(name) [HE_##name] = #name,
	HE_EVENTS(X)
#undef X
};

const char *
hs_state_name(enum hs_state st)
{
	return st < HST_NSTATES ? hs_states[st].name : "?";
}

const char *
hs_event_name(enum hs_event ev)
{
	return ev < HE_NEVENTS ? hs_events[ev] : "?";
}

static int
hs_cmp_conn(const struct hs *a, const struct hs *b)
{
	return a->asks.number < b->asks.number ? -1 :
	    a->asks.number > b->asks.number;
}

static int
hs_cmp_number(const struct hs *a, const struct hs *b)
{
	return a->session < b->session ? -1 : a->session > b->session;
}

RB_GENERATE_INTERNAL(hs_conns, hs, by_conn, hs_cmp_conn,
    __attribute__((__unused__)) static)
RB_GENERATE_INTERNAL(hs_numbers, hs, by_number, hs_cmp_number,
    __attribute__((__unused__)) static)

void
hs_init(struct hs_table *t)
{
	memset(t, 0, sizeof(*t));
	RB_INIT(&t->conns);
	RB_INIT(&t->numbers);
	TAILQ_INIT(&t->young);
	TAILQ_INIT(&t->live);
	TAILQ_INIT(&t->dirty);
	TAILQ_INIT(&t->waiting);
	t->next_conn = 1;
}

struct hs *
hs_find_conn(struct hs_table *t, uint64_t conn)
{
	struct hs key = { .asks.number = conn };

	return RB_FIND(hs_conns, &t->conns, &key);
}

struct hs *
hs_find(struct hs_table *t, uint64_t session)
{
	struct hs key = { .session = session };

	return session == 0 ? NULL : RB_FIND(hs_numbers, &t->numbers, &key);
}

int
hs_set_number(struct hs *s, uint64_t session)
{
	if (session == 0 || s->session != 0 ||
	    hs_find(&s->hub->sessions, session) != NULL)
		return CL_EXISTS;
	s->session = session;
	RB_INSERT(hs_numbers, &s->hub->sessions.numbers, s);
	return CL_OK;
}

const char *
hs_peer_text(const struct hs *s)
{
	static char text[4][HUB_ADDR_MAX + 8];
	static unsigned int turn;
	char addr[HUB_ADDR_MAX], *dst = text[turn++ % 4];

	hub_addr_format(&s->peer, addr);
	(void)snprintf(dst, sizeof(text[0]), hub_addr_is_ipv4(&s->peer) ?
	    "%s:%u" : "[%s]:%u", addr, s->peer_port);
	return dst;
}

void
hs_set_dirty(struct hs *s)
{
	if (!s->dirty) {
		s->dirty = 1;
		TAILQ_INSERT_TAIL(&s->hub->sessions.dirty, s, dirty_link);
	}
}

void
hs_new(struct hub *hub, int fd, int tls, const struct hub_addr *peer,
    uint16_t port, struct src *source, int later)
{
	struct hs_table *t = &hub->sessions;
	struct hs *s;

	if ((s = calloc(1, sizeof(*s))) == NULL) {
		src_put(source);
		close(fd);
		return;
	}
	s->hub = hub;
	s->tls = tls != 0;
	s->later = later != 0;
	s->peer = *peer;
	s->peer_port = port;
	s->source = source;
	s->seen_at = hub->now;
	ask_init_owner(&s->asks, t->next_conn++);
	RB_INIT(&s->logs);
	TAILQ_INIT(&s->requests);
	RB_INSERT(hs_conns, &t->conns, s);
	TAILQ_INSERT_TAIL(&t->young, s, link);
	t->nyoung++;
	s->state = HST_TLS;
	s->deadline = hub->now + HEAD_TIMEOUT_MS;
	hs_set_dirty(s);
	if (hs_open_io(s, fd) != CL_OK)
		hs_run(s, HE_FAIL);
}

static void
hs_free(struct hs *s)
{
	struct hs_table *t = &s->hub->sessions;

	conn_drop_unfinished(&s->conn, &t->assembling);
	conn_close(&s->conn);
	RB_REMOVE(hs_conns, &t->conns, s);
	if (s->session != 0)
		RB_REMOVE(hs_numbers, &t->numbers, s);
	TAILQ_REMOVE(&t->young, s, link);
	if (s->waits)
		TAILQ_REMOVE(&t->waiting, s, waiting_link);
	t->nyoung--;
	t->nfreed++;
	hs_free_hello(s);
	secret_clear(&s->credential);
	if (s->bearer != NULL)
		freezero(s->bearer, strlen(s->bearer));
	free(s->switching);
	free(s->agent_id);
	free(s->name);
	free(s->unknown_id);
	free(s->beat_id);
	free(s);
}

int
hs_evict(struct hub *hub)
{
	struct hs *s;

	TAILQ_FOREACH(s, &hub->sessions.young, link) {
		if (s->state != HST_TLS && s->state != HST_HEAD)
			continue;
		/* The list is in order of age. */
		if (hub->now - s->seen_at < HS_EVICT_MS)
			return 0;
		hs_set_end(s, AGENT_UNREACHABLE, 0, "made room for others");
		hs_run(s, HE_TIMEOUT);
		return 1;
	}
	return 0;
}

void
hs_set_end(struct hs *s, int status, uint16_t code, const char *reason)
{
	if (s->end_status != 0)
		return;
	s->end_status = (uint8_t)status;
	s->close_code = code;
	(void)strlcpy(s->end_reason, reason, sizeof(s->end_reason));
}

int
hs_is_end(enum hs_state st)
{
	return st == HST_CLOSING || st == HST_LINGER || st == HST_DEAD;
}

/* The only place that assigns a state. */
static void
hs_enter_state(struct hs *s, enum hs_state next, enum hs_event ev)
{
	struct hs_table *t = &s->hub->sessions;
	enum hs_state old = s->state;
	int ms = hs_states[next].ms;

	if (next == old)
		return;
	log_debug("session-state", "conn=%llu session=%llu from=%s to=%s "
	    "on=%s", (unsigned long long)s->asks.number,
	    (unsigned long long)s->session, hs_state_name(old),
	    hs_state_name(next), hs_event_name(ev));
	s->state = next;
	if (next == HST_DELAY)	/* jitter: no timing to learn from */
		ms = 100 + (int)arc4random_uniform((uint32_t)ms);
	if (ms > 0)
		s->deadline = s->hub->now + ms;
	else if (ms < 0)
		s->deadline = 0;
	if ((old == HST_LIVE) != (next == HST_LIVE)) {
		TAILQ_REMOVE(old == HST_LIVE ? &t->live : &t->young, s, link);
		TAILQ_INSERT_TAIL(next == HST_LIVE ? &t->live : &t->young, s,
		    link);
		t->nlive += next == HST_LIVE ? 1 : (size_t)-1;
		t->nyoung += next == HST_LIVE ? (size_t)-1 : 1;
	}
	if (next == HST_LIVE || hs_is_end(next)) {
		src_put(s->source);
		s->source = NULL;
	}
	if (hs_is_end(next) && !hs_is_end(old)) {
		ask_stop(&s->hub->asks, &s->asks);
		s->paused = s->held = 0;
		s->files_of = 0;
		s->again_at = 0;
		hs_report_down(s);
	}
}

void
hs_run(struct hs *s, enum hs_event ev)
{
	const struct hs_row *row;

	while (ev != HE_NONE && s->state != HST_DEAD) {
		row = &hs_table[s->state][ev];
		if (row->next == HST_NONE) {
			log_warn("session-event-unexpected",
			    "conn=%llu state=%s on=%s",
			    (unsigned long long)s->asks.number,
			    hs_state_name(s->state), hs_event_name(ev));
			hs_set_end(s, AGENT_UNREACHABLE, 0, "out of order");
			hs_enter_state(s, HST_DEAD, ev);
			break;
		}
		hs_enter_state(s, row->next, ev);
		ev = row->act != NULL ? row->act(s) : HE_NONE;
	}
	hs_set_dirty(s);
}

void
hs_start_turn(struct hs_table *t)
{
	t->turn++;
	t->handshakes_end = t->reads_end = 0;
}

int
hs_settle_all(struct hub *hub)
{
	struct hs_table *t = &hub->sessions;
	struct hs_queue now;
	struct hs *s;

	hs_pump_waiting(hub);
	/* What becomes dirty meanwhile waits for the next turn. */
	TAILQ_INIT(&now);
	TAILQ_CONCAT(&now, &t->dirty, dirty_link);
	while ((s = TAILQ_FIRST(&now)) != NULL) {
		TAILQ_REMOVE(&now, s, dirty_link);
		TAILQ_INSERT_TAIL(&t->dirty, s, dirty_link);
		/* Once a turn is enough for everybody. */
		if (s->more && s->state != HST_DEAD && s->turn != t->turn)
			hs_pump(s);
		if (s->state != HST_DEAD)
			hs_flush(s);
		if (s->state != HST_DEAD)
			hs_update_events(s);
		if (s->state != HST_DEAD && s->more)
			continue;
		TAILQ_REMOVE(&t->dirty, s, dirty_link);
		s->dirty = 0;
		if (s->state == HST_DEAD)
			hs_free(s);
	}
	return !TAILQ_EMPTY(&t->dirty) || !TAILQ_EMPTY(&t->waiting);
}

/* Frames of many sessions in one message. */
void
hs_report_seen(struct hs *from, struct hs *last)
{
	struct msg_seen seen[MAX_SEEN];
	struct msg_session_seen body = { .seen = seen };
	struct hs *s, *end = last != NULL ? TAILQ_NEXT(last, link) : NULL;

	for (s = from; s != end; s = TAILQ_NEXT(s, link)) {
		if (!s->seen)
			continue;
		s->seen = 0;
		seen[body.nseen].session = s->session;
		seen[body.nseen++].ago_ms =
		    (uint64_t)(s->hub->now - s->seen_at);
		if (body.nseen == MAX_SEEN) {
			HUB_SEND(s->hub, SESSION_SEEN, &body);
			body.nseen = 0;
		}
	}
	if (body.nseen > 0)
		HUB_SEND(from->hub, SESSION_SEEN, &body);
}

static void
hs_watch(struct hub *hub)
{
	int64_t silence = (int64_t)hub->conf.net.heartbeat_s * 1000 *
	    HEARTBEAT_MISSES;
	struct hs *s, *next;

	TAILQ_FOREACH_SAFE(s, &hub->sessions.live, link, next) {
		if (hub->now - s->seen_at > silence) {
			hs_set_end(s, AGENT_UNREACHABLE, WS_CODE_NORMAL,
			    "no frame for too long");
			hs_run(s, HE_TIMEOUT);
		} else if (conn_is_stalled(&s->conn, hub->now)) {
			hs_set_end(s, AGENT_UNREACHABLE, 0,
			    "it does not read what is sent");
			hs_run(s, HE_FAIL);
		}
	}
	hs_report_seen(TAILQ_FIRST(&hub->sessions.live), NULL);
}

/*
 * A handshake needs several times the memory of an idle session, and malloc
 * keeps what lies between the sessions that stay.  After many connections
 * its whole pages go back to the system.
 */
static void
hs_trim(struct hs_table *t)
{
	if (t->next_conn + t->nfreed - t->trimmed < HS_TRIM)
		return;
	t->trimmed = t->next_conn + t->nfreed;
	(void)malloc_trim(0);
}

/* Frames that waited for a shortage of the monitor's to pass. */
static void
hs_judge_again(struct hub *hub)
{
	struct hs *s;

	hub->sessions.nagain = 0;
	TAILQ_FOREACH(s, &hub->sessions.live, link) {
		if (s->again_at > hub->now)
			hub->sessions.nagain++;
		if (s->again_at == 0 || s->again_at > hub->now)
			continue;
		s->again_at = 0;
		s->paused = 0;
		s->held = 1;
		s->more = 1;
		hs_set_dirty(s);
	}
}

void
hs_on_time(struct hub *hub)
{
	struct hs *s, *next;

	TAILQ_FOREACH_SAFE(s, &hub->sessions.young, link, next)
		if (s->deadline != 0 && s->deadline <= hub->now) {
			/* A refusal that was held back is not an end. */
			if (s->state != HST_DELAY)
				hs_set_end(s, AGENT_UNREACHABLE,
				    WS_CODE_NORMAL,
				    "the handshake took too long");
			hs_run(s, HE_TIMEOUT);
		}
	if (hub->sessions.nrequests > 0)
		TAILQ_FOREACH(s, &hub->sessions.live, link)
			hs_expire_requests(s, hub->now);
	if (hub->sessions.nagain > 0)
		hs_judge_again(hub);
	if (hub->now >= hub->watch_at) {
		hub->watch_at = hub->now + WATCHDOG_MS;
		hs_watch(hub);
		hs_trim(&hub->sessions);
	}
}

void
hs_stop_all(struct hub *hub)
{
	struct frame_bye bye = { (char *)(uintptr_t)"the hub stops", 1 };
	struct hs *s, *next;

	TAILQ_FOREACH_SAFE(s, &hub->sessions.live, link, next) {
		(void)hs_put_frame(s, FRAME_BYE, s->negotiated, NULL, NULL,
		    &bye);
		hs_set_end(s, AGENT_OFFLINE, WS_CODE_NORMAL, "the hub stops");
		hs_run(s, HE_CLOSE);
	}
	TAILQ_FOREACH_SAFE(s, &hub->sessions.young, link, next) {
		hs_set_end(s, AGENT_OFFLINE, WS_CODE_GOING_AWAY,
		    "the hub stops");
		hs_run(s, HE_CLOSE);
	}
}
