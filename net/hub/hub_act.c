/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * From the request head to the welcome.  Runs in cloopd-net.  Whether a
 * credential is good, whom it names and whether a hello fits it is decided
 * by the monitor; this side only carries the question and writes the answer,
 * and says nothing specific to the peer.
 */
#include "hub_session.h"

#include <bsd/stdlib.h>
#include <bsd/string.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include <event2/buffer.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "net/codec/http1.h"
#include "hub.h"
#include "hub_route.h"

#define HS_SWITCHING_MAX 256
#define HS_BLOB_MAX (3 * MAX_FRAME_LEN)	/* a hello and its JSON again */

struct hs_hello {
	char id[MAX_ID_LEN + 1];
	struct caps_offer *offers;
	size_t noffers;
	struct frame_verdict *verdicts;	/* reasons are copies */
	size_t nverdicts;
};

void
hs_free_hello(struct hs *s)
{
	size_t i;

	if (s->hello == NULL)
		return;
	for (i = 0; i < s->hello->noffers; i++)
		free(s->hello->offers[i].handle_id);
	free(s->hello->offers);
	for (i = 0; i < s->hello->nverdicts; i++)
		free(s->hello->verdicts[i].reason);
	free(s->hello->verdicts);
	free(s->hello);
	s->hello = NULL;
}

/* ------------------------------------------------------------ the request */

/* A copy for a message: bounded, printable. */
static const char *
hs_clean(char dst[MAX_ORIGIN_LEN + 1], const char *text)
{
	size_t i;

	for (i = 0; text != NULL && text[i] != '\0' && i < MAX_ORIGIN_LEN; i++)
		dst[i] = (unsigned char)text[i] >= ' ' &&
		    (unsigned char)text[i] < 0x7f ? text[i] : '?';
	dst[i] = '\0';
	return dst;
}

static void
hs_report_origin(struct hs *s, const struct hr_request *q)
{
	char clean[MAX_ORIGIN_LEN + 1], host[MAX_ORIGIN_LEN + 1];
	struct msg_origin_refused body;
	const char *origin;

	(void)hr_check_origin(q, &origin);
	body.origin = hs_clean(clean, origin);
	body.host = hs_clean(host, http1_find_header(q->head, "Host"));
	body.peer = hs_peer_text(s);
	HUB_SEND(s->hub, ORIGIN_REFUSED, &body);
}

static const char *
hs_get_why(const struct http1_head *h, enum hr_why why)
{
	switch (why) {
	case HR_PATH_UNKNOWN:
		return "unknown path";
	case HR_ORIGIN:
		return "origin not allowed";
	case HR_NO_TOKEN:
		return "no credential";
	default:
		break;
	}
	/* BC-23: a proxy that strips these is named by what is missing. */
	if (h->minor < 1)
		return "HTTP/1.0: no upgrade";
	if (!http1_has_token(h, "Connection", "upgrade"))
		return "Connection header without upgrade";
	if (!http1_has_token(h, "Upgrade", "websocket"))
		return "Upgrade header without websocket";
	return "bad method or Sec-WebSocket header";
}

static enum hs_event
hs_refuse_request(struct hs *s, unsigned int status, const char *why)
{
	unsigned int suppressed = 0;

	s->status = (uint16_t)status;
	if (log_ratelimit(&s->hub->rl_refused, 10, 10, &suppressed))
		log_info("request-refused", "peer=%s status=%u reason=%s "
		    "suppressed=%u", hs_peer_text(s), status, log_q(why),
		    suppressed);
	return HE_REFUSE;
}

static enum hs_event
hs_check_request(struct hs *s, const struct http1_head *head)
{
	struct hr_request q = { head, &s->hub->conf, &s->peer, s->tls };
	unsigned int status = 429;
	enum hr_why why;
	size_t len;

	if (s->later)
		return hs_refuse_request(s, status, "rate limit");
	if ((s->bearer = calloc(1, MAX_TOKEN_LEN + 1)) == NULL ||
	    (s->switching = malloc(HS_SWITCHING_MAX)) == NULL)
		return hs_refuse_request(s, 503, "out of memory");
	why = hr_check_request(&q, s->bearer, &status);
	if (why == HR_ORIGIN)
		hs_report_origin(s, &q);
	if (why != HR_OK)
		return hs_refuse_request(s, status, hs_get_why(head, why));
	if (s->hub->sessions.nlive >= (size_t)s->hub->conf.net.max_agents)
		return hs_refuse_request(s, 503, "MaxAgents reached");
	if (http1_format_switching(s->switching, HS_SWITCHING_MAX, head,
	    &len) != CL_OK)
		return hs_refuse_request(s, 500, "no answer could be made");
	if (http1_find_header(head, "Authorization") == NULL &&
	    log_ratelimit(&s->hub->rl_refused, 10, 10, NULL))
		log_info("bearer-in-query", "peer=%s deprecated=yes",
		    hs_peer_text(s));
	return HE_REQUEST;
}

enum hs_event
hs_check_head(struct hs *s)
{
	struct http1_head head;
	enum hs_event ev;
	size_t head_len, len = evbuffer_get_length(s->conn.in);
	uint8_t *data;
	int r;

	if (len == 0)
		return HE_NONE;
	if ((data = evbuffer_pullup(s->conn.in, -1)) == NULL)
		return hs_refuse_request(s, 503, "out of memory");
	r = http1_find_end(data, len, &s->head_scanned, &head_len);
	if (r == CL_INCOMPLETE)
		return HE_NONE;
	if (r == CL_OK)
		r = http1_parse_request(data, head_len, &head);
	else
		head_len = len;
	if (r == CL_OK)
		ev = hs_check_request(s, &head);
	else {
		hub_add_penalty(s->hub, &s->peer, PEN_PROTOCOL);
		ev = hs_refuse_request(s, r == CL_TOOBIG || r == CL_LIMIT ?
		    431 : r == CL_VERSION ? 505 : 400, "malformed request");
	}
	/* The head held the credential. */
	explicit_bzero(data, head_len);
	evbuffer_drain(s->conn.in, head_len);
	return ev;
}

/* ------------------------------------------------------------- credential */

/* What it says of the agent moves to the connection. */
static int
hs_take_auth(struct hs *s, struct msg_auth_ans *v)
{
	s->enrolled = v->enrolled != 0;
	s->agent_id = (char *)(uintptr_t)v->agent_id;
	s->name = (char *)(uintptr_t)v->name;
	s->credential = v->credential;
	v->agent_id = v->name = NULL;
	memset(&v->credential, 0, sizeof(v->credential));
	return hs_set_number(s, v->session);
}

/* The monitor's verdict about a credential. */
static void
hs_on_auth(void *ctx, uint64_t conn, union msg_any *v)
{
	struct hub *hub = ctx;
	struct hs *s = hs_find_conn(&hub->sessions, conn);

	if (s == NULL || s->state != HST_AUTH)
		return;
	switch (v != NULL ? v->AUTH_ANS.result : AUTH_UNAVAILABLE) {
	case AUTH_OK:
		if (hs_take_auth(s, &v->AUTH_ANS) != CL_OK)
			fatal("monitor-message", "type=AUTH_ANS "
			    "reason=\"a number twice\"");
		hs_run(s, HE_GRANTED);
		return;
	case AUTH_DENIED:
		hub_add_penalty(hub, &s->peer, PEN_AUTH);
		(void)hs_refuse_request(s, 401, "credential refused");
		hs_run(s, hub->conf.net.penalties ? HE_DENIED : HE_REFUSE);
		return;
	case AUTH_FAILED:
		(void)hs_refuse_request(s, 500, "the monitor failed");
		break;
	default:
		(void)hs_refuse_request(s, 503, "the store is unavailable");
		break;
	}
	hs_run(s, HE_REFUSE);
}

enum hs_event
hs_act_ask_auth(struct hs *s)
{
	struct msg_auth body = { .bearer = { (unsigned char *)s->bearer,
	    strlen(s->bearer) }, .peer = hs_peer_text(s) };
	int r = HUB_ASK(s, AUTH, &body, -1, hs_on_auth);

	freezero(s->bearer, strlen(s->bearer));
	s->bearer = NULL;
	if (r != CL_OK)
		return hs_refuse_request(s, 503, "busy");
	return HE_NONE;
}

enum hs_event
hs_act_reply(struct hs *s)
{
	char text[HR_ANSWER_MAX];
	size_t len = hr_format_answer(text, s->status);

	if (len == 0 || hs_put_bytes(s, text, len) != CL_OK)
		return HE_FAIL;
	return HE_NONE;
}

enum hs_event
hs_act_switch(struct hs *s)
{
	int r = hs_put_bytes(s, s->switching, strlen(s->switching));

	free(s->switching);
	s->switching = NULL;
	return r == CL_OK ? HE_NONE : HE_FAIL;
}

/* ------------------------------------------------------------------ hello */

static char *
hs_trim(char *text)
{
	size_t len;

	if (text == NULL)
		return NULL;
	while (isspace((unsigned char)*text))
		text++;
	len = strlen(text);
	while (len > 0 && isspace((unsigned char)text[len - 1]))
		text[--len] = '\0';
	return text;
}

static void hs_on_hello(void *, uint64_t, union msg_any *);

static int
hs_ask_hello(struct hs *s, struct frame_hello *f)
{
	struct msg_session_memfd body = { .session = s->session };
	struct hello_blob h;
	struct jsonw w;
	struct buf blob;
	int fd, r;

	caps_clean(&f->capabilities);
	jsonw_init(&w, MAX_FRAME_LEN, 0);
	caps_format_json(&f->capabilities, &w);
	buf_init(&blob, HS_BLOB_MAX);
	hello_blob_init(&h);
	h.protocol_version = f->protocol_version;
	h.agent_id = f->agent_id;
	h.name = f->name;
	h.agent_version = hs_trim(f->agent_version);
	h.caps = f->capabilities;
	h.offers = s->hello->offers;
	h.noffers = s->hello->noffers;
	h.caps_json = w.data;
	if ((r = jsonw_error(&w)) == CL_OK) {
		hello_blob_put(&h, &blob);
		body.len = blob.len;
		if ((r = buf_error(&blob)) == CL_OK && (r = util_make_memfd(
		    blob.data, blob.len, &fd)) == CL_OK)
			r = HUB_ASK(s, HELLO, &body, fd, hs_on_hello);
	}
	/* h only borrowed: nothing of it is freed. */
	jsonw_clear(&w);
	buf_clear(&blob);
	return r;
}

static enum hs_event
hs_refuse_hello(struct hs *s, const char *id, const char *code,
    const char *why)
{
	(void)hs_put_error(s, id, code, "%s", why);
	hs_set_end(s, AGENT_OFFLINE, WS_CODE_NORMAL, why);
	return HE_CLOSE;
}

enum hs_event
hs_act_hello(struct hs *s)
{
	struct jx *x = &s->hub->jx;
	struct frame_hello f;
	struct frame_env env;
	int r;

	r = frame_decode_envelope(x, s->msg, s->msg_len, &env);
	if (r == CL_LIMIT)
		return hs_refuse_hello(s, NULL, "protocol", x->why);
	if (r != CL_OK) {
		hub_add_penalty(s->hub, &s->peer, PEN_PROTOCOL);
		hs_set_end(s, AGENT_UNREACHABLE, WS_CODE_NORMAL, x->why);
		return HE_CLOSE;
	}
	if (env.type != FRAME_HELLO)
		return hs_refuse_hello(s, NULL, "protocol",
		    "the first frame must be a hello");
	if (frame_decode_payload(x, &env, &f) != CL_OK)
		return hs_refuse_hello(s, env.id, "protocol", x->why);
	s->seen_at = s->hub->now;
	if ((s->hello = calloc(1, sizeof(*s->hello))) == NULL)
		r = CL_NOMEM;
	else {
		memcpy(s->hello->id, env.id, sizeof(s->hello->id));
		s->hello->offers = f.resume;
		s->hello->noffers = f.nresume;
		f.resume = NULL;
		f.nresume = 0;
		r = hs_ask_hello(s, &f);
	}
	frame_clear_payload(FRAME_HELLO, &f);
	if (r == CL_TOOBIG || r == CL_FORMAT)
		return hs_refuse_hello(s, env.id, "protocol",
		    "the capabilities are too large");
	if (r != CL_OK) {
		hs_set_end(s, AGENT_UNREACHABLE, WS_CODE_INTERNAL, "busy");
		return HE_CLOSE;
	}
	return HE_NONE;
}

/* The verdict on an offer as a row of the welcome, or nothing. */
static void
hs_add_verdict(struct hs *s, const struct caps_offer *offer,
    const struct msg_verdict *verdict)
{
	struct hs_hello *hello = s->hello;
	struct frame_verdict *v = &hello->verdicts[hello->nverdicts];
	struct hlog *h;

	/* Below version 5 a refusal is said by saying nothing. */
	if (verdict->what == VERDICT_NONE ||
	    (verdict->what != VERDICT_CONTINUE && s->negotiated < 5))
		return;
	hello->nverdicts++;
	v->handle_id = offer->handle_id;
	if (verdict->what != VERDICT_CONTINUE) {
		v->action = (char *)(uintptr_t)"terminate";
		v->reason = strdup(verdict->reason[0] != '\0' ?
		    verdict->reason : verdict->what == VERDICT_ABANDONED ?
		    "the workload was given up" :
		    "this hub does not know the workload");
		return;
	}
	v->action = (char *)(uintptr_t)"continue";
	/* What our files hold is the truth; the monitor may lag behind. */
	h = hlog_find_id(&s->logs, v->handle_id);
	v->from_offset = (int64_t)(h != NULL ? h->received :
	    verdict->from_offset);
}

static int
hs_add_verdicts(struct hs *s, const struct msg_hello_ans *v)
{
	size_t i;

	s->negotiated = (uint16_t)v->negotiated;
	s->hello->verdicts = calloc(s->hello->noffers + 1,
	    sizeof(*s->hello->verdicts));
	if (s->hello->verdicts == NULL)
		return CL_NOMEM;
	for (i = 0; i < v->nverdicts && i < s->hello->noffers; i++)
		hs_add_verdict(s, &s->hello->offers[i], &v->verdicts[i]);
	return CL_OK;
}

/* The monitor's verdict about a hello. */
static void
hs_on_hello(void *ctx, uint64_t conn, union msg_any *v)
{
	struct hub *hub = ctx;
	struct hs *s = hs_find_conn(&hub->sessions, conn);
	int64_t result;

	if (s == NULL || s->state != HST_VERIFY)
		return;
	if (v == NULL) {
		hs_set_end(s, AGENT_UNREACHABLE, WS_CODE_INTERNAL, "busy");
		hs_run(s, HE_CLOSE);
		return;
	}
	result = v->HELLO_ANS.result;
	if (hs_add_verdicts(s, &v->HELLO_ANS) == CL_OK &&
	    result == HELLO_OK && s->negotiated >= PROTO_MIN) {
		hs_run(s, HE_VERIFIED);
		return;
	}
	if (result == HELLO_UNAUTHORIZED)
		(void)hs_refuse_hello(s, s->hello->id, "unauthorized",
		    "not authorized");
	else if (result == HELLO_VERSION)
		(void)hs_refuse_hello(s, s->hello->id, "version_unsupported",
		    "no common protocol version");
	else if (result == HELLO_LATER)
		hs_set_end(s, AGENT_UNREACHABLE, WS_CODE_TRY_LATER,
		    "this hub cannot tell now; come again");
	else if (result == HELLO_DUPLICATE)
		/* Neither of the codes that make an agent stop for good: it
		 * may be the one the identity was given to. */
		(void)hs_refuse_hello(s, s->hello->id, "protocol",
		    "another host is connected with this identity");
	else
		hs_set_end(s, AGENT_OFFLINE, WS_CODE_NORMAL,
		    "the session is no longer wanted");
	hs_run(s, HE_CLOSE);
}

enum hs_event
hs_act_welcome(struct hs *s)
{
	struct frame_welcome w = { 0 };
	int r;

	w.protocol_version = s->negotiated;
	w.executor_id = s->agent_id;
	w.heartbeat_seconds = s->hub->conf.net.heartbeat_s;
	if (s->enrolled)
		w.credential = s->credential;
	w.resume_accepted = s->hello->verdicts;
	w.nresume_accepted = s->hello->nverdicts;
	r = hs_put_frame(s, FRAME_WELCOME, s->negotiated, s->hello->id, NULL,
	    &w);
	secret_clear(&s->credential);
	hs_free_hello(s);
	if (r != CL_OK) {
		hs_set_end(s, AGENT_UNREACHABLE, WS_CODE_INTERNAL,
		    "no welcome could be written");
		return HE_CLOSE;
	}
	return HE_NONE;
}

enum hs_event
hs_act_up(struct hs *s)
{
	struct msg_session body = { s->session };

	HUB_SEND(s->hub, SESSION_UP, &body);
	s->up = 1;
	s->seen_at = s->hub->now;
	log_info("agent-up", "session=%llu agent=%s name=%s peer=%s "
	    "protocol=%u enrolled=%s", (unsigned long long)s->session,
	    log_q(s->agent_id), log_q(s->name), hs_peer_text(s),
	    s->negotiated, s->enrolled ? "yes" : "no");
	return HE_NONE;
}
