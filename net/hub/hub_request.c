/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * What the monitor wants of a device: handles it hands over, starts,
 * signals, questions.  Runs in cloopd-net.  A request is a correlation id
 * that waits for one reply, an error, its time or the end of the session;
 * the monitor gets exactly one answer to each.
 */
#include "hub_session.h"

#include <bsd/stdlib.h>
#include <bsd/string.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/crash.h"
#include "common/base/err.h"
#include "common/base/idgen.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/utf8.h"
#include "common/base/util.h"
#include "common/model/spec.h"
#include "hub.h"

#define HS_MAX_REQUESTS 1024	/* as many as handles */
#define HS_CODE_MAX 64

struct hs_request {
	TAILQ_ENTRY(hs_request) link;
	char id[IDGEN_CORR_LEN + 1];
	uint64_t ask_id;	/* of the monitor's message */
	uint64_t handle;	/* 0: none */
	int64_t deadline;	/* 0: none */
	uint32_t type;		/* MSG_START, ... */
	int gone;		/* nobody wants the workload any more */
};

static const struct hs_kind {
	uint32_t type;
	enum frame_type frame, reply;
	int64_t timeout_ms;	/* 0: the session's life */
} hs_kinds[] = {
	{ MSG_START, FRAME_START, FRAME_STARTED, 0 },
	{ MSG_SIGNAL, FRAME_SIGNAL, FRAME_STATUS, SIGNAL_TIMEOUT_MS },
	{ MSG_INVENTORY, FRAME_INVENTORY_REQ, FRAME_INVENTORY,
	    INVENTORY_TIMEOUT_MS },
	{ MSG_REVOKE, FRAME_REVOKE, FRAME_REVOKED, REVOKE_TIMEOUT_MS },
	{ MSG_REFRESH, FRAME_SECRET_REFRESH, FRAME_SECRET_REFRESHED,
	    REFRESH_TIMEOUT_MS },
};

static const struct hs_kind *
hs_find_kind(uint32_t type)
{
	size_t i;

	for (i = 0; i < sizeof(hs_kinds) / sizeof(hs_kinds[0]); i++)
		if (hs_kinds[i].type == type)
			return &hs_kinds[i];
	return NULL;
}

/* ---------------------------------------------------------------- answers */

void
hs_cut(char *dst, size_t dstlen, const char *text)
{
	strlcpy(dst, text != NULL ? text : "", dstlen);
	dst[utf8_cut(dst, strlen(dst))] = '\0';
}

/* reply: the frame that answers; NULL: there is none. */
static void
hs_send_answer(struct hub *hub, uint32_t type, uint64_t ask_id,
    const struct msg_device_ans *ans, const void *reply)
{
	const struct frame_started *f = reply;
	struct msg_start_ans start = { .ans = *ans,
	    .started_at = UTIL_TIME_ZERO };

	switch (type) {
	case MSG_START:
		if (f != NULL) {
			start.pid = f->pid;
			start.started_at = f->started_at;
		}
		(void)hub_send(hub, MSG_START_ANS, ask_id, &start, -1);
		break;
	case MSG_REVOKE:
		hs_send_revoked(hub, ask_id, ans, reply);
		break;
	case MSG_REFRESH:
		hs_send_refreshed(hub, ask_id, ans, reply);
		break;
	default:	/* SIGNAL, INVENTORY */
		(void)hub_send(hub, type + 1, ask_id, ans, -1);
		break;
	}
}

void
hs_send_failure(struct hub *hub, uint32_t type, uint64_t ask_id, int result,
    const char *text)
{
	struct msg_device_ans ans = { .result = result, .text = text };

	hs_send_answer(hub, type, ask_id, &ans, NULL);
}

static void
hs_del_request(struct hs *s, struct hs_request *q)
{
	TAILQ_REMOVE(&s->requests, q, link);
	s->nrequests--;
	s->hub->sessions.nrequests--;
	free(q);
}

/* Answer and forget.  What a device says of its own may hold a value that
 * was lent to it. */
static void
hs_end_request(struct hs *s, struct hs_request *q,
    const struct msg_device_ans *ans, const void *reply)
{
	char code[HS_CODE_MAX + 1], text[MAX_ERROR_TEXT_LEN + 1] = "";
	struct msg_device_ans clean = { ans->result, code, text };

	hs_cut(code, sizeof(code), ans->code);
	if (ans->text != NULL && ans->text[0] != '\0')
		hs_redact_text(s, ans->text, text, sizeof(text));
	if (!q->gone)
		hs_send_answer(s->hub, q->type, q->ask_id, &clean, reply);
	hs_del_request(s, q);
}

void
hs_clear_requests(struct hs *s)
{
	struct msg_device_ans ans = { .result = RES_SESSION_CLOSED,
	    .text = "the connection was lost" };
	struct hs_request *q;

	while ((q = TAILQ_FIRST(&s->requests)) != NULL)
		hs_end_request(s, q, &ans, NULL);
}

void
hs_expire_requests(struct hs *s, int64_t now)
{
	struct msg_device_ans ans = { .result = RES_TIMEOUT,
	    .text = "the device did not answer in time" };
	struct hs_request *q, *next;

	TAILQ_FOREACH_SAFE(q, &s->requests, link, next)
		if (q->deadline != 0 && q->deadline <= now)
			hs_end_request(s, q, &ans, NULL);
}

void
hs_forget_handle(struct hs *s, uint64_t handle)
{
	struct hs_request *q;

	TAILQ_FOREACH(q, &s->requests, link)
		if (q->handle == handle && q->type == MSG_START)
			q->gone = 1;
}

/* ----------------------------------------------------------- their replies */

/* Started, but nobody waits for it any more: it must not run on. */
static void
hs_kill_late(struct hs *s, const char *handle)
{
	struct frame_signal sig = { (char *)(uintptr_t)
		frame_signal_name(SIG_KILL) };
	char id[IDGEN_CORR_LEN + 1];

	idgen_corr(id);
	log_info("late-start-killed", "session=%llu handle=%s",
	    (unsigned long long)s->session, log_q(handle));
	(void)hs_put_frame(s, FRAME_SIGNAL, s->negotiated, id, handle, &sig);
}

static void
hs_take_started(struct hs *s, struct hs_request *q,
    const struct frame_env *env, const struct frame_started *f)
{
	struct msg_device_ans ans = { .result = RES_OK };
	struct hlog *h = hlog_find(&s->hub->logs, q->handle);

	CRASH_POINT("started.net");
	if (f->error != NULL && f->error[0] != '\0') {
		ans.result = RES_NOT_STARTED;
		ans.text = f->error;
	} else if (q->gone)
		hs_kill_late(s, env->handle);
	else if (h != NULL && !h->closed && h->state == HS_PENDING) {
		h->state = HS_RUNNING;
		h->running_at = s->hub->now;
	}
	hs_end_request(s, q, &ans, f);
}

static void
hs_take_inventory(struct hs *s, struct hs_request *q,
    const struct frame_inventory *f)
{
	struct msg_device_ans ans = { .result = RES_OK };
	struct msg_session_memfd body = { .session = s->session };
	struct caps_blob blob = { .caps = f->capabilities };
	struct buf bulk;
	struct jsonw w;
	int fd, r;

	caps_clean(&blob.caps);
	jsonw_init(&w, MAX_FRAME_LEN, 0);
	caps_format_json(&blob.caps, &w);
	blob.caps_json = w.data;
	buf_init(&bulk, 3 * MAX_FRAME_LEN);
	if ((r = jsonw_error(&w)) == CL_OK) {
		field_put(&caps_blob_table, &blob, &bulk);
		body.len = bulk.len;
		if ((r = buf_error(&bulk)) == CL_OK)
			r = util_make_memfd(bulk.data, bulk.len, &fd);
	}
	if (r == CL_OK)
		(void)hub_send(s->hub, MSG_CAPS, 0, &body, fd);
	else {
		ans.result = RES_PROTOCOL;
		ans.text = "the inventory is too large";
	}
	jsonw_clear(&w);
	buf_clear(&bulk);
	hs_end_request(s, q, &ans, NULL);
}

static struct hs_request *
hs_find_request(struct hs *s, const char *id)
{
	struct hs_request *q;

	TAILQ_FOREACH(q, &s->requests, link)
		if (strcmp(q->id, id) == 0)
			return q;
	return NULL;
}

/* 1 when the reply is of the right kind and about the right handle. */
static int
hs_is_reply(struct hs *s, const struct hs_request *q,
    const struct frame_env *env)
{
	const struct hs_kind *kind = hs_find_kind(q->type);
	const struct hlog *h;

	if (kind == NULL || env->type != kind->reply)
		return 0;
	h = hlog_find(&s->hub->logs, q->handle);
	return h == NULL || strcmp(h->id, env->handle) == 0;
}

int
hs_answer_request(struct hs *s, const struct frame_env *env,
    const void *payload, const char *bad)
{
	struct msg_device_ans ans = { .result = RES_OK };
	const struct frame_error *e = payload;
	struct hs_request *q;

	if (env->id[0] == '\0' || (q = hs_find_request(s, env->id)) == NULL)
		return 0;
	if (env->type == FRAME_ERROR && payload != NULL) {
		ans.result = RES_ERROR_FRAME;
		ans.code = e->code;
		ans.text = e->message;
		payload = NULL;
	} else if (payload == NULL || !hs_is_reply(s, q, env)) {
		ans.result = RES_PROTOCOL;
		ans.text = bad != NULL ? bad :
		    "the device answered with another frame";
		payload = NULL;
	} else if (env->type == FRAME_STARTED) {
		hs_take_started(s, q, env, payload);
		return 1;
	} else if (env->type == FRAME_INVENTORY) {
		hs_take_inventory(s, q, payload);
		return 1;
	}
	hs_end_request(s, q, &ans, payload);
	return 1;
}

/* --------------------------------------------------------------- requests */

/*
 * Send a request frame and remember it.  The id is unique in the session:
 * 64 random bits.
 */
void
hs_start_request(struct hs *s, const struct imsg *m, uint64_t handle,
    const char *handle_id, const void *payload)
{
	const struct hs_kind *kind = hs_find_kind(m->type);
	struct hs_request *q;
	int r;

	if (s->nrequests >= HS_MAX_REQUESTS ||
	    (q = calloc(1, sizeof(*q))) == NULL) {
		hs_send_failure(s->hub, m->type, m->id, RES_PROTOCOL,
		    "too many requests to this device");
		return;
	}
	idgen_corr(q->id);
	r = hs_put_frame(s, kind->frame, s->negotiated, q->id, handle_id,
	    payload);
	if (r != CL_OK) {
		free(q);
		hs_send_failure(s->hub, m->type, m->id,
		    r == CL_TOOBIG ? RES_TOO_BIG : RES_SESSION_CLOSED,
		    r == CL_TOOBIG ? "the frame would exceed 1 MiB" :
		    "the connection was lost");
		return;
	}
	CRASH_POINT("start.net");
	q->type = m->type;
	q->ask_id = m->id;
	q->handle = handle;
	q->deadline = kind->timeout_ms == 0 ? 0 :
	    s->hub->now + kind->timeout_ms;
	TAILQ_INSERT_TAIL(&s->requests, q, link);
	s->nrequests++;
	s->hub->sessions.nrequests++;
}

void
hs_send_start(struct hs *s, struct imsg *m, struct hlog *h, size_t len)
{
	struct spec spec;
	uint8_t *data;
	struct buf b;
	int r;

	if ((r = util_load_memfd(m->fd, len, MAX_SPEC_LEN, &data)) != CL_OK)
		fatal("monitor-message", "type=START reason=%s",
		    cl_strerror(r));
	buf_init_read(&b, data, len);
	r = spec_get(&b, &spec);
	if (r == CL_OK && (r = buf_end(&b)) != CL_OK)
		spec_clear(&spec);
	freezero(data, len);
	if (r == CL_NOMEM) {
		hs_send_failure(s->hub, m->type, m->id,
		    RES_SESSION_CLOSED, "out of memory");
		return;
	}
	if (r != CL_OK)
		fatal("monitor-message", "type=START reason=%s",
		    cl_errname(r));
	free(spec.handle_id);
	if ((spec.handle_id = strdup(h->id)) == NULL)
		hs_send_failure(s->hub, m->type, m->id,
		    RES_SESSION_CLOSED, "out of memory");
	else
		hs_start_request(s, m, h->number, h->id, &spec);
	spec_clear(&spec);
}

struct hs *
hs_find_live(struct hub *hub, const struct imsg *m, uint64_t session)
{
	struct hs *s = hs_find(&hub->sessions, session);

	if (s != NULL && s->state == HST_LIVE)
		return s;
	hs_send_failure(hub, m->type, m->id, RES_SESSION_CLOSED,
	    "the connection was lost");
	return NULL;
}

/* The same, which must have the handle. */
static struct hs *
hs_find_owner(struct hub *hub, const struct imsg *m, uint64_t session,
    const struct hlog *h)
{
	return hs_find_live(hub, m, h != NULL && h->session == session ?
	    session : 0);
}

void
hs_on_start(struct hub *hub, struct imsg *m, struct msg_start *v)
{
	struct hlog *h = hlog_find(&hub->logs, v->handle);
	struct hs *s = hs_find_owner(hub, m, v->session, h);

	if (s != NULL && !hs_hold_start(s, m, h, (size_t)v->len))
		hs_send_start(s, m, h, (size_t)v->len);
}

void
hs_on_signal(struct hub *hub, struct imsg *m, struct msg_signal *v)
{
	struct frame_signal sig = { (char *)(uintptr_t)frame_signal_name(
	    (int)v->sig) };
	struct hlog *h = hlog_find(&hub->logs, v->handle);
	struct hs *s = hs_find_owner(hub, m, v->session, h);

	if (s != NULL)
		hs_start_request(s, m, v->handle, h->id, &sig);
}

void
hs_on_inventory(struct hub *hub, struct imsg *m, struct msg_session *v)
{
	struct frame_empty empty = { 0 };
	struct hs *s;

	if ((s = hs_find_live(hub, m, v->session)) != NULL)
		hs_start_request(s, m, 0, NULL, &empty);
}

/* ---------------------------------------------------------------- handles */

/* Room for one more handle: the oldest ended one is forgotten. */
static int
hs_evict_handle(struct hs *s)
{
	struct hlog *h = NULL;

	if (s->nlogs < MAX_HANDLES_PER_SESSION)
		return 1;
	while ((h = hlog_next(&s->logs, h)) != NULL)
		if (h->closed) {
			hlog_close(&s->hub->logs, &s->logs, h);
			s->nlogs--;
			return 1;
		}
	return 0;
}

static void
hs_drop_handle(struct hub *hub, struct hlog *h)
{
	struct hs *s = hs_find(&hub->sessions, h->session);

	/* A handle lives in its session's tree: one is never without. */
	if (s == NULL)
		return;
	hs_forget_handle(s, h->number);
	hlog_close(&hub->logs, &s->logs, h);
	s->nlogs--;
	hs_answer_beat(s);
}

void
hs_on_handle_open(struct hub *hub, struct imsg *m, struct msg_handle_open *v)
{
	struct hlog *h;
	struct hs *s;

	(void)m;
	if ((h = hlog_find(&hub->logs, v->handle)) != NULL) {
		/* It moves to a newer session: what is known goes to file. */
		(void)hlog_flush(&hub->logs, h, hub->now);
		hs_drop_handle(hub, h);
	}
	s = hs_find(&hub->sessions, v->session);
	if (s == NULL || hs_is_end(s->state) ||
	    hlog_find_id(&s->logs, v->handle_id) != NULL ||
	    !hs_evict_handle(s))
		return;		/* its session is over; so is this */
	if (hlog_open(&hub->logs, &s->logs, v, &h) != CL_OK) {
		log_error("handle-open", "handle=%s reason=out-of-memory",
		    log_q(v->handle_id));
		return;
	}
	s->nlogs++;
	h->running_at = hub->now;
	if (s->unknown_id != NULL) {
		free(s->unknown_id);
		s->unknown_id = NULL;
	}
}

void
hs_on_handle_log(struct hub *hub, struct imsg *m, struct msg_handle *v)
{
	struct hlog *h = hlog_find(&hub->logs, v->handle);

	if (h != NULL)
		hlog_set_log(&hub->logs, h, imsg_take_fd(m));
}

/*
 * An index that makes no sense is begun anew, with its log; what the device
 * still has it sends again.  The disk that fails is asked again later.
 */
void
hs_on_handle_index(struct hub *hub, struct imsg *m, struct msg_handle *v)
{
	struct hlog *h = hlog_find(&hub->logs, v->handle);
	struct hs *s;
	int r;

	if (h == NULL)
		return;
	r = hlog_set_index(&hub->logs, h, imsg_take_fd(m));
	if (r == CL_OK || r == CL_STATE)
		return;
	log_error("handle-index", "handle=%s reason=%s", log_q(h->id),
	    cl_strerror(r));
	if (r == CL_FORMAT &&
	    (s = hs_find(&hub->sessions, h->session)) != NULL)
		(void)hs_ask_files(s, h, 1);
}

void
hs_on_handle_shut(struct hub *hub, struct imsg *m, struct msg_handle *v)
{
	struct hlog *h = hlog_find(&hub->logs, v->handle);
	struct hs *s;

	(void)m;
	if (h == NULL)
		return;
	hlog_shut(&hub->logs, h, hub->now);
	if ((s = hs_find(&hub->sessions, h->session)) == NULL)
		return;
	if (h->ended) {
		hs_confirm_end(s, h);
		hs_answer_beat(s);
	} else
		hs_forget_handle(s, h->number);
}

void
hs_on_handle_forget(struct hub *hub, struct imsg *m, struct msg_handle *v)
{
	struct hlog *h = hlog_find(&hub->logs, v->handle);

	(void)m;
	if (h != NULL)
		hs_drop_handle(hub, h);
}
