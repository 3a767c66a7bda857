/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The session role of agentd-fetch: the state table, what each transition
 * does (back-off, dial, hello, welcome, resume, heartbeats, goodbye), and the
 * engine.  Events are queued by whoever sees them and run once per turn of
 * the loop; one timer serves all deadlines.  A missing cell means that the
 * event comes too late to matter.
 */
#include "fetch.h"

#include <arpa/inet.h>
#include <bsd/stdlib.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "common/base/xmem.h"
#include "net/codec/ws.h"

/*
 * Jitter comes after the cap: a fleet that has waited long enough for every
 * ladder to end must not return as one (BC-18).  Milliseconds, so that two
 * agents hardly ever agree.
 */
int64_t
fetch_get_jittered(int64_t ms)
{
	return ms - ms / 4 + (int64_t)arc4random_uniform((uint32_t)(ms / 2) +
	    1);
}

int64_t
fetch_get_delay(unsigned int nfailures)
{
	int64_t ms = BACKOFF_MAX_MS;

	if (nfailures < 7)	/* 2^7 s is beyond the cap */
		ms = (int64_t)BACKOFF_MIN_MS << nfailures;
	return fetch_get_jittered(ms < BACKOFF_MAX_MS ? ms : BACKOFF_MAX_MS);
}

/* ------------------------------------------------------------------ actions */

/* One offer for each workload that may go on, or is prepared. */
static int
fetch_make_offers(struct fetch *f, struct frame_hello *h)
{
	struct caps_offer *o;
	struct fetch_work *w;

	if (f->nworks == 0)
		return CL_OK;
	if ((h->resume = calloc(f->nworks, sizeof(*h->resume))) == NULL)
		return CL_NOMEM;
	TAILQ_FOREACH(w, &f->works, entry) {
		/* Nobody of this session waits for its `started`. */
		w->held = 0;
		w->offered = 1;
		o = &h->resume[h->nresume++];
		o->handle_id = w->handle;
		o->started_at = w->started_at;
		o->log_offset = (int64_t)fetch_out_get_total(w);
	}
	return CL_OK;
}

static int
fetch_send_hello(struct fetch *f)
{
	static char none[] = "";
	struct frame_hello h;
	int r;

	frame_init_payload(FRAME_HELLO, &h);
	h.protocol_version = f->conf.max_protocol;
	/* A token has no identity yet. */
	h.agent_id = f->auth.enrolling ? none :
	    FETCH_TEXT(f->conf.agent_id);
	h.name = FETCH_TEXT(f->conf.name);
	h.agent_version = FETCH_TEXT(f->conf.agent_version);
	h.capabilities = f->caps;
	if ((r = fetch_make_offers(f, &h)) == 0)
		r = fetch_send(f, FRAME_HELLO, "hello", NULL, &h, NULL);
	free(h.resume);
	return r;
}

static void
fetch_ask_caps(struct fetch *f)
{
	f->why[0] = '\0';
	if (f->stopping || f->fatal)
		fetch_put_event(f, FEV_STOP);
	else if (fetch_ask_put(f, MSG_DEV_CAPS, NULL, -1, ASK_TIMEOUT_MS) ==
	    NULL)
		fetch_fail(f, "out of memory");
}

/* A numeric host needs no resolver. */
static int
fetch_parse_host(struct fetch *f)
{
	struct fetch_addr *a = &f->addrs[0];

	if (inet_pton(AF_INET, f->conf.host, a->bytes) == 1)
		a->family = AF_INET;
	else if (inet_pton(AF_INET6, f->conf.host, a->bytes) == 1)
		a->family = AF_INET6;
	else
		return CL_FORMAT;
	f->naddrs = 1;
	return CL_OK;
}

static void
fetch_ask_address(struct fetch *f)
{
	if (fetch_parse_host(f) == 0)
		fetch_put_event(f, FEV_ADDRS);
	else if (fetch_ask_put(f, MSG_RESOLVE, NULL, -1,
	    RESOLVE_TIMEOUT_MS + 5000) == NULL)
		fetch_fail(f, "out of memory");
}

static void
fetch_start_dial(struct fetch *f)
{
	struct fetch_target t = { .host = f->conf.host,
	    .port = (uint16_t)f->conf.port,
	    .path = f->conf.path, .user_agent = "cloop-agentd",
	    .bearer = (const char *)f->auth.bearer.data, .ctx = f->ctx,
	    .pins = (const struct pin *)(const void *)f->conf.pins,
	    .npins = f->conf.pins_len / PIN_DIGEST_LEN };
	int r;

	f->negotiated = 0;
	if (f->conf.insecure)
		log_warn("insecure-transport", "host=%s reason=\"the "
		    "connection is not encrypted\"", log_q(f->conf.host));
	log_debug("dial", "host=%s port=%u tls=%d", log_q(f->conf.host),
	    (unsigned int)f->conf.port, f->conf.tls);
	fetch_report_session(f, LINK_CONNECTING, "");
	if ((r = fetch_link_start(f->link, &t, f->addrs, f->naddrs)) != 0) {
		snprintf(f->why, sizeof(f->why), "cannot dial: %s",
		    cl_strerror(r));
		fetch_put_event(f, FEV_ENDED);
	}
}

static void
fetch_put_hello(struct fetch *f)
{
	int r;

	f->session++;
	f->logged_types = 0;
	f->logged_unknown = f->logged_skew = 0;
	f->heard_at = util_now_ms();
	if ((r = fetch_send_hello(f)) != 0)
		fetch_fail(f, "cannot say hello: %s", cl_strerror(r));
	caps_clear(&f->caps);
}

/* FRESH: the credential must be on disk before anything else. */
static void
fetch_ask_save(struct fetch *f)
{
	struct msg_enrolled e = { .agent_id = f->welcome.executor_id,
	    .credential = f->welcome.credential };

	fetch_link_pause(f->link, 1);
	if (FETCH_ASK(f, ENROLLED, &e, -1, ASK_TIMEOUT_MS) == NULL)
		fetch_fail(f, "out of memory");
}

void
fetch_set_saved(struct fetch *f, int saved, const char *error)
{
	if (f->state != FST_SAVE)
		return;
	if (!saved) {
		log_error("credential-not-saved", "reason=%s", log_q(error));
		fetch_fail(f, "the credential cannot be stored; the token is "
		    "spent");
		return;
	}
	free(FETCH_TEXT(f->conf.agent_id));
	f->conf.agent_id = xstrdup(f->welcome.executor_id);
	f->auth.enrolling = 0;
	log_info("enrolled", "agent=%s", log_q(f->conf.agent_id));
	fetch_put_event(f, FEV_SAVED);
}

static const struct frame_verdict *
fetch_find_verdict(const struct frame_welcome *wl, const char *handle)
{
	size_t i;

	for (i = 0; i < wl->nresume_accepted; i++) {
		if (wl->resume_accepted[i].handle_id != NULL &&
		    strcmp(wl->resume_accepted[i].handle_id, handle) == 0)
			return &wl->resume_accepted[i];
	}
	return NULL;
}

/* Continue (or a word we do not know), terminate, no entry. */
static void
fetch_apply_verdict(struct fetch *f, struct fetch_work *w)
{
	const struct frame_verdict *v;
	const char *reason = "the hub does not know it";

	w->offered = 0;
	v = fetch_find_verdict(&f->welcome, w->handle);
	if (v != NULL && v->reason != NULL && v->reason[0] != '\0')
		reason = v->reason;
	if (v == NULL ||
	    (v->action != NULL && strcmp(v->action, "terminate") == 0))
		fetch_work_stop(w, reason);
	else
		fetch_out_rewind(w, v->from_offset > 0 ?
		    (uint64_t)v->from_offset : 0);
}

/* UP: resume verdicts, then output flows; beats begin one gap later. */
static void
fetch_start_session(struct fetch *f)
{
	struct fetch_work *w, *next;
	int64_t seconds = f->welcome.heartbeat_seconds;

	f->nfailures = 0;
	if (seconds < HEARTBEAT_MIN_S || seconds > HEARTBEAT_MAX_S)
		seconds = HEARTBEAT_S;
	f->beat_ms = seconds * 1000;
	f->heard_at = util_now_ms();
	f->beat_at = f->heard_at + fetch_get_jittered(f->beat_ms);
	log_info("link-up", "peer=%s tls=%s protocol=%d agent=%s",
	    fetch_link_get_peer(f->link), fetch_link_get_version(f->link),
	    f->negotiated, log_q(f->conf.agent_id));
	fetch_report_session(f, LINK_UP, "");
	for (w = TAILQ_FIRST(&f->works); w != NULL; w = next) {
		next = TAILQ_NEXT(w, entry);
		if (w->offered)
			fetch_apply_verdict(f, w);
		else	/* came between hello and welcome: all of it again */
			fetch_out_rewind(w, w->out.acked_norm);
	}
	frame_clear_payload(FRAME_WELCOME, &f->welcome);
	f->has_welcome = 0;
	fetch_link_pause(f->link, 0);
}

/* All workloads still tracked, and those whose start is under way. */
static size_t
fetch_find_active(struct fetch *f, char **active, size_t max)
{
	struct fetch_work *w;
	struct fetch_ask *a;
	size_t n = 0;

	TAILQ_FOREACH(w, &f->works, entry) {
		if (n < max && !w->told)
			active[n++] = w->handle;
	}
	TAILQ_FOREACH(a, &f->asks, entry) {
		if (a->type == MSG_DEV_START && n < max &&
		    fetch_work_find_handle(f, a->handle) == NULL)
			active[n++] = a->handle;
	}
	return n;
}

/* One process, one order: a beat behind a `started` names its handle. */
static void
fetch_put_beat(struct fetch *f)
{
	struct frame_heartbeat b;
	char id[32];
	size_t max = f->nworks + f->nasks;

	frame_init_payload(FRAME_HEARTBEAT, &b);
	b.seq = ++f->beat_seq;
	if (max > 0 && (b.active_handles =
	    calloc(max, sizeof(*b.active_handles))) == NULL) {
		/* A beat without them would have them declared lost. */
		fetch_fail(f, "out of memory");
		return;
	}
	b.nactive_handles = fetch_find_active(f, b.active_handles, max);
	snprintf(id, sizeof(id), "hb-%llu", (unsigned long long)b.seq);
	fetch_send(f, FRAME_HEARTBEAT, id, NULL, &b, NULL);
	free(b.active_handles);
	f->beat_at = util_now_ms() + fetch_get_jittered(f->beat_ms);
}

/* Close from our side; the bye of a stop goes first. */
static void
fetch_close_link(struct fetch *f)
{
	struct frame_bye bye = { .reason = NULL, .reconnect = 1 };

	if (f->stopping && fetch_link_is_open(f->link)) {
		bye.reason = (char *)(uintptr_t)"agent shutting down";
		fetch_send(f, FRAME_BYE, NULL, NULL, &bye, NULL);
	}
	if (f->stopping && f->why[0] == '\0')
		snprintf(f->why, sizeof(f->why), "shutting down");
	if (f->why[0] == '\0')
		snprintf(f->why, sizeof(f->why), "no answer to the hello");
	fetch_link_close(f->link, WS_CODE_NORMAL, f->why);
}

/* What belonged to the session goes with it. */
static void
fetch_end_session(struct fetch *f)
{
	struct fetch_work *w;

	TAILQ_FOREACH(w, &f->works, entry) {
		w->offered = 0;
		fetch_out_on_link_end(w);
	}
	fetch_in_drop_all(f);
	if (f->has_welcome)
		frame_clear_payload(FRAME_WELCOME, &f->welcome);
	f->has_welcome = 0;
	jsonw_clear(&f->out);
	jx_clear(&f->jx);
	jx_init(&f->jx);
}

/* WAIT: the next attempt after min(1 s * 2^(n-1), 120 s) ± 25 %. */
static void
fetch_back_off(struct fetch *f)
{
	int64_t ms;

	if (f->why[0] == '\0')
		snprintf(f->why, sizeof(f->why), "no answer in time");
	fetch_end_session(f);
	fetch_report_session(f, LINK_DOWN, f->why);
	if (f->stopping || f->fatal) {
		log_info("link-down", "reason=\"%s\" reconnect=no", f->why);
		fetch_put_event(f, FEV_STOP);
		return;
	}
	ms = fetch_get_delay(f->nfailures++);
	log_warn("link-down", "reason=\"%s\" reconnect_ms=%lld", f->why,
	    (long long)ms);
	f->state_deadline_at = util_now_ms() + ms;
}

/* OVER: stopped, or refused for good and waiting to be stopped. */
static void
fetch_end(struct fetch *f)
{
	if (!f->stopping)
		return;
	fetch_tell(f, MSG_FETCH_STOPPED, 0, NULL, -1);
	event_base_loopexit(f->base, NULL);
}

#define ROW(act, next) { act, FST_##next }

const struct fetch_row fetch_table[FST_NSTATES][FEV_NEVENTS] = {
	[FST_WAIT] = {
		[FEV_DUE] = ROW(fetch_ask_caps, CAPS),
		[FEV_STOP] = ROW(fetch_end, OVER),
	},
	[FST_CAPS] = {
		[FEV_CAPS] = ROW(fetch_ask_address, RESOLVE),
		[FEV_FAILED] = ROW(fetch_back_off, WAIT),
		[FEV_TIMEOUT] = ROW(fetch_back_off, WAIT),
		[FEV_STOP] = ROW(fetch_end, OVER),
	},
	[FST_RESOLVE] = {
		[FEV_ADDRS] = ROW(fetch_start_dial, DIAL),
		[FEV_FAILED] = ROW(fetch_back_off, WAIT),
		[FEV_TIMEOUT] = ROW(fetch_back_off, WAIT),
		[FEV_STOP] = ROW(fetch_end, OVER),
	},
	[FST_DIAL] = {
		[FEV_OPEN] = ROW(fetch_put_hello, HELLO),
		[FEV_ENDED] = ROW(fetch_back_off, WAIT),
		[FEV_STOP] = ROW(fetch_close_link, CLOSING),
	},
	[FST_HELLO] = {
		[FEV_WELCOME] = ROW(fetch_start_session, UP),
		[FEV_FRESH] = ROW(fetch_ask_save, SAVE),
		[FEV_FAILED] = ROW(fetch_close_link, CLOSING),
		[FEV_TIMEOUT] = ROW(fetch_close_link, CLOSING),
		[FEV_ENDED] = ROW(fetch_back_off, WAIT),
		[FEV_STOP] = ROW(fetch_close_link, CLOSING),
	},
	[FST_SAVE] = {
		[FEV_SAVED] = ROW(fetch_start_session, UP),
		[FEV_FAILED] = ROW(fetch_close_link, CLOSING),
		[FEV_TIMEOUT] = ROW(fetch_close_link, CLOSING),
		[FEV_ENDED] = ROW(fetch_back_off, WAIT),
		[FEV_STOP] = ROW(fetch_close_link, CLOSING),
	},
	[FST_UP] = {
		[FEV_FAILED] = ROW(fetch_close_link, CLOSING),
		[FEV_ENDED] = ROW(fetch_back_off, WAIT),
		[FEV_STOP] = ROW(fetch_close_link, CLOSING),
	},
	[FST_CLOSING] = {
		[FEV_ENDED] = ROW(fetch_back_off, WAIT),
	},
	[FST_OVER] = {
		[FEV_STOP] = ROW(fetch_end, OVER),
	},
};

/* ----------------------------------------------------- messages of the link */

/* A refused hello: two codes mean "for good". */
static void
fetch_on_refusal(struct fetch *f, const struct frame_env *env)
{
	struct frame_error e;
	const char *code;

	if (frame_decode_payload(&f->jx, env, &e) != 0) {
		fetch_fail(f, "the hub refused the hello, unreadably");
		return;
	}
	code = e.code != NULL ? e.code : "";
	log_warn("hub-error", "code=%s message=%s", log_q(code),
	    log_q(e.message));
	if (strcmp(code, "unauthorized") == 0) {
		f->fatal = FATAL_UNAUTHORIZED;
		fetch_fail(f, "the hub does not accept this device's identity; "
		    "enroll it again");
	} else if (strcmp(code, "version_unsupported") == 0) {
		f->fatal = FATAL_VERSION;
		fetch_fail(f, "the hub does not speak this device's protocol "
		    "version; upgrade one of them");
	} else
		fetch_fail(f, "the hub refused the hello");
	frame_clear_payload(FRAME_ERROR, &e);
}

static void
fetch_on_welcome(struct fetch *f, const struct frame_env *env)
{
	struct frame_welcome *w = &f->welcome;

	if (frame_decode_payload(&f->jx, env, w) != 0) {
		fetch_fail(f, "unreadable welcome");
		return;
	}
	f->has_welcome = 1;
	if (w->protocol_version < PROTO_MIN ||
	    w->protocol_version > f->conf.max_protocol) {
		fetch_fail(f, "the hub chose protocol version %lld",
		    (long long)w->protocol_version);
		return;
	}
	f->negotiated = (int)w->protocol_version;
	/* What follows waits until the session is up. */
	fetch_link_pause(f->link, 1);
	if (w->credential.len == 0) {
		fetch_put_event(f, FEV_WELCOME);
		return;
	}
	if (w->executor_id == NULL || !util_is_id(w->executor_id) ||
	    w->credential.len > MAX_TOKEN_LEN)
		fetch_fail(f, "a credential that cannot be used");
	else
		fetch_put_event(f, FEV_FRESH);
}

static void
fetch_on_message(void *arg, const uint8_t *data, size_t len)
{
	struct fetch *f = arg;
	struct frame_env env;
	int r;

	if ((f->state != FST_HELLO && f->state != FST_UP) || f->why[0] != '\0')
		return;		/* closing: nobody is interested */
	r = frame_decode_envelope(&f->jx, data, len, &env);
	if (r == CL_NOMEM || r == CL_FORMAT) {
		log_warn("frame-bad", "len=%zu reason=%s", len,
		    r == CL_NOMEM ? "\"out of memory\"" : log_q(f->jx.why));
		fetch_fail(f, "protocol error");
		return;
	}
	f->heard_at = util_now_ms();
	if (f->state == FST_HELLO) {
		if (r == 0 && env.type == FRAME_WELCOME)
			fetch_on_welcome(f, &env);
		else if (r == 0 && env.type == FRAME_ERROR)
			fetch_on_refusal(f, &env);
		else
			fetch_fail(f, "the hub did not answer the hello");
		return;
	}
	log_debug("frame-in", "type=%s id=%s handle=%s len=%zu",
	    log_q(env.type_name), log_q(env.id), log_q(env.handle),
	    env.payload_len);
	if (r == CL_LIMIT)
		fetch_send_error(f, env.id, "protocol", f->jx.why);
	else if (r == 0)
		fetch_on_frame(f, &env);
	fetch_wake(f);
}

/* ------------------------------------------------------------------- engine */

/* How long a state may last; WAIT sets its own, UP has its watchdog. */
static const int64_t fetch_state_ms[FST_NSTATES] = {
	[FST_CAPS] = ASK_TIMEOUT_MS,
	[FST_RESOLVE] = RESOLVE_TIMEOUT_MS + 5000,
	[FST_HELLO] = HANDSHAKE_TIMEOUT_MS,
	[FST_SAVE] = ASK_TIMEOUT_MS,
	/* DIAL and CLOSING: the link has deadlines and always ends. */
};

static void
fetch_enter_state(struct fetch *f, enum fetch_state state, enum fetch_event ev)
{
	log_debug("state", "from=%s to=%s event=%s",
	    fetch_state_names[f->state], fetch_state_names[state],
	    fetch_event_names[ev]);
	f->state = state;
	f->state_deadline_at = fetch_state_ms[state] == 0 ? 0 :
	    util_now_ms() + fetch_state_ms[state];
}

static void
fetch_run_event(struct fetch *f, enum fetch_event ev)
{
	const struct fetch_row *row = &fetch_table[f->state][ev];

	if (row->act == NULL) {
		/* Late news about a state that is over. */
		log_debug("state-ignored", "state=%s event=%s",
		    fetch_state_names[f->state], fetch_event_names[ev]);
		return;
	}
	fetch_enter_state(f, row->next, ev);
	row->act(f);
}

static void
fetch_check_deadlines(struct fetch *f)
{
	int64_t now = util_now_ms();

	if (f->state_deadline_at != 0 && f->state_deadline_at <= now) {
		f->state_deadline_at = 0;
		fetch_put_event(f, f->state == FST_WAIT ? FEV_DUE :
		    FEV_TIMEOUT);
	}
	fetch_ask_check_deadlines(f, now);
	if (f->state != FST_UP)
		return;
	if (f->beat_at <= now)
		fetch_put_beat(f);
	/* The hub answers each beat; nothing at all means that the connection
	 * is dead, whatever TCP believes. */
	if (now - f->heard_at > 3 * f->beat_ms + HEARTBEAT_S * 1000)
		fetch_fail(f, "the hub said nothing for %lld s",
		    (long long)(now - f->heard_at) / 1000);
}

static int64_t
fetch_get_earlier(int64_t a, int64_t b)
{
	if (a == 0 || b == 0)
		return a != 0 ? a : b;
	return a < b ? a : b;
}

static void
fetch_set_timer(struct fetch *f)
{
	struct timeval tv;
	struct fetch_work *w;
	int64_t at, left;

	at = fetch_get_earlier(f->state_deadline_at, fetch_ask_get_deadline(f));
	if (f->state == FST_UP) {
		at = fetch_get_earlier(at, f->beat_at);
		at = fetch_get_earlier(at,
		    f->heard_at + 3 * f->beat_ms + HEARTBEAT_S * 1000 + 1);
		TAILQ_FOREACH(w, &f->waiting, dirty_entry)
			at = fetch_get_earlier(at, w->out.due_at);
	}
	evtimer_del(f->timer);
	if (at == 0)
		return;
	if ((left = at - util_now_ms()) < 0)
		left = 0;
	tv.tv_sec = (time_t)(left / 1000);
	tv.tv_usec = (suseconds_t)(left % 1000 * 1000);
	evtimer_add(f->timer, &tv);
}

static void
fetch_on_turn(evutil_socket_t fd, short what, void *arg)
{
	struct fetch *f = arg;
	enum fetch_event ev;

	(void)fd;
	(void)what;
	fetch_check_deadlines(f);
	while (f->nqueue > 0) {
		ev = f->queue[0];
		f->nqueue--;
		memmove(f->queue, f->queue + 1,
		    f->nqueue * sizeof(f->queue[0]));
		fetch_run_event(f, ev);
	}
	if (f->state == FST_UP)
		fetch_out_pump(f);
	fetch_set_timer(f);
}

static void
fetch_on_open(void *arg)
{
	fetch_put_event(arg, FEV_OPEN);
}

static void
fetch_on_written(void *arg)
{
	struct fetch *f = arg;

	fetch_out_on_written(f);
	fetch_wake(f);
}

static void
fetch_on_end(void *arg, const char *why)
{
	struct fetch *f = arg;

	if (f->why[0] == '\0')
		snprintf(f->why, sizeof(f->why), "%s", why);
	fetch_put_event(f, FEV_ENDED);
}

static const struct fetch_link_ops fetch_link_ops = { fetch_on_open,
    fetch_on_message,
	fetch_on_written, fetch_on_end };

int
fetch_open(struct fetch *f, struct event_base *base)
{
	f->base = base;
	TAILQ_INIT(&f->works);
	TAILQ_INIT(&f->dirty);
	TAILQ_INIT(&f->waiting);
	TAILQ_INIT(&f->incoming);
	TAILQ_INIT(&f->asks);
	f->next_ask = 1;
	f->state = FST_WAIT;
	caps_init(&f->caps);
	jx_init(&f->jx);
	jsonw_init(&f->out, MAX_FRAME_LEN, 0);
	f->turn = event_new(base, -1, 0, fetch_on_turn, f);
	f->timer = evtimer_new(base, fetch_on_turn, f);
	f->link = fetch_link_new(base, &fetch_link_ops, f);
	if (f->turn == NULL || f->timer == NULL || f->link == NULL)
		return CL_NOMEM;
	return CL_OK;
}
