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
	{ MSG_QUERY, FRAME_STATUS_REQ, FRAME_STATUS, STATUS_TIMEOUT_MS },
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

struct hs_result {
	int result;		/* RES_* */
	const char *code;
	const char *text;
	int64_t pid;
	int64_t started_at;
	const void *report;	/* of REVOKE, REFRESH; NULL: none came */
};

void
hs_put_cut(struct buf *b, const char *text, size_t max)
{
	char copy[MAX_ERROR_TEXT_LEN + 1];
	size_t len = text != NULL ? strlen(text) : 0;

	if (len > max)
		len = utf8_cut(text, max);
	if (len > 0)
		memcpy(copy, text, len);
	copy[len] = '\0';
	buf_put_str(b, copy);
}

static void
hs_send_result(struct hub *hub, uint32_t type, uint64_t ask_id,
    uint64_t handle, const struct hs_result *res)
{
	struct buf b;

	buf_init(&b, MSG_BODY_MAX);
	if (type == MSG_START)
		buf_put_u64(&b, handle);
	buf_put_u8(&b, (uint8_t)res->result);
	hs_put_cut(&b, res->code, HS_CODE_MAX);
	hs_put_cut(&b, res->text, MAX_ERROR_TEXT_LEN);
	if (type == MSG_START) {
		buf_put_i64(&b, res->pid);
		buf_put_i64(&b, res->started_at);
	}
	hs_put_report(&b, type, res->report);
	(void)hub_send(hub, type + 1, ask_id, &b, -1);
	buf_clear(&b);
}

void
hs_send_failure(struct hub *hub, uint32_t type, uint64_t ask_id,
    uint64_t handle, int result, const char *text)
{
	struct hs_result res = { result, "", text, 0, UTIL_TIME_ZERO, NULL };

	hs_send_result(hub, type, ask_id, handle, &res);
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
hs_end_request(struct hs *s, struct hs_request *q, const struct hs_result *res)
{
	char text[MAX_ERROR_TEXT_LEN + 1];
	struct hs_result clean = *res;

	if (res->text[0] != '\0') {
		hs_redact_text(s, res->text, text, sizeof(text));
		clean.text = text;
	}
	if (!q->gone)
		hs_send_result(s->hub, q->type, q->ask_id, q->handle, &clean);
	hs_del_request(s, q);
}

void
hs_clear_requests(struct hs *s)
{
	struct hs_result res = { RES_SESSION_CLOSED, "",
		"the connection was lost", 0, UTIL_TIME_ZERO, NULL };
	struct hs_request *q;

	while ((q = TAILQ_FIRST(&s->requests)) != NULL)
		hs_end_request(s, q, &res);
}

void
hs_expire_requests(struct hs *s, int64_t now)
{
	struct hs_result res = { RES_TIMEOUT, "",
		"the device did not answer in time", 0, UTIL_TIME_ZERO, NULL };
	struct hs_request *q, *next;

	TAILQ_FOREACH_SAFE(q, &s->requests, link, next)
		if (q->deadline != 0 && q->deadline <= now)
			hs_end_request(s, q, &res);
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
hs_on_started(struct hs *s, struct hs_request *q, const struct frame_env *env,
    const struct frame_started *f)
{
	struct hs_result res = { RES_OK, "", "", f->pid, f->started_at, NULL };
	struct hlog *h = hlog_find(&s->hub->logs, q->handle);

	CRASH_POINT("started.net");
	if (f->error != NULL && f->error[0] != '\0') {
		res.result = RES_NOT_STARTED;
		res.text = f->error;
	} else if (q->gone)
		hs_kill_late(s, env->handle);
	else if (h != NULL && !h->closed && h->state == HS_PENDING) {
		h->state = HS_RUNNING;
		h->running_at = s->hub->now;
	}
	hs_end_request(s, q, &res);
}

static void
hs_on_inventory(struct hs *s, struct hs_request *q,
    const struct frame_inventory *f)
{
	struct hs_result res = { RES_OK, "", "", 0, UTIL_TIME_ZERO, NULL };
	struct caps_blob blob = { .caps = f->capabilities };
	struct buf body, bulk;
	struct jsonw w;
	int fd = -1, r;

	caps_clean(&blob.caps);
	jsonw_init(&w, MAX_FRAME_LEN, 0);
	caps_format_json(&blob.caps, &w);
	blob.caps_json = w.data;
	buf_init(&bulk, 3 * MAX_FRAME_LEN);
	buf_init(&body, 12);
	if ((r = jsonw_error(&w)) == CL_OK) {
		field_put(&caps_blob_table, &blob, &bulk);
		if ((r = buf_error(&bulk)) == CL_OK)
			r = util_make_memfd(bulk.data, bulk.len, &fd);
	}
	if (r == CL_OK) {
		buf_put_u64(&body, s->session);
		buf_put_u32(&body, (uint32_t)bulk.len);
		(void)hub_send(s->hub, MSG_CAPS, 0, &body, fd);
	} else {
		res.result = RES_PROTOCOL;
		res.text = "the inventory is too large";
	}
	jsonw_clear(&w);
	buf_clear(&bulk);
	buf_clear(&body);
	hs_end_request(s, q, &res);
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
	struct hs_result res = { RES_OK, "", "", 0, UTIL_TIME_ZERO, NULL };
	const struct frame_error *e = payload;
	struct hs_request *q;

	if (env->id[0] == '\0' || (q = hs_find_request(s, env->id)) == NULL)
		return 0;
	if (env->type == FRAME_ERROR && payload != NULL) {
		res.result = RES_ERROR_FRAME;
		res.code = e->code;
		res.text = e->message;
	} else if (payload == NULL || !hs_is_reply(s, q, env)) {
		res.result = RES_PROTOCOL;
		res.text = bad != NULL ? bad :
		    "the device answered with another frame";
	} else if (env->type == FRAME_STARTED) {
		hs_on_started(s, q, env, payload);
		return 1;
	} else if (env->type == FRAME_INVENTORY) {
		hs_on_inventory(s, q, payload);
		return 1;
	} else if (env->type == FRAME_REVOKED ||
	    env->type == FRAME_SECRET_REFRESHED)
		res.report = payload;
	hs_end_request(s, q, &res);
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
		hs_send_failure(s->hub, m->type, m->id, handle, RES_PROTOCOL,
		    "too many requests to this device");
		return;
	}
	idgen_corr(q->id);
	r = hs_put_frame(s, kind->frame, s->negotiated, q->id, handle_id,
	    payload);
	if (r != CL_OK) {
		free(q);
		hs_send_failure(s->hub, m->type, m->id, handle,
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
hs_send_start(struct hs *s, struct imsg *m, struct hlog *h, uint32_t len)
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
		hs_send_failure(s->hub, m->type, m->id, h->number,
		    RES_SESSION_CLOSED, "out of memory");
		return;
	}
	if (r != CL_OK)
		fatal("monitor-message", "type=START reason=%s",
		    cl_errname(r));
	free(spec.handle_id);
	if ((spec.handle_id = strdup(h->id)) == NULL)
		hs_send_failure(s->hub, m->type, m->id, h->number,
		    RES_SESSION_CLOSED, "out of memory");
	else
		hs_start_request(s, m, h->number, h->id, &spec);
	spec_clear(&spec);
}

static void
hs_on_device_request(struct hub *hub, struct imsg *m)
{
	struct frame_signal sig = { NULL };
	struct frame_empty empty = { 0 };
	uint64_t session, handle = 0;
	uint32_t len = 0;
	struct hlog *h;
	struct hs *s;

	session = buf_get_u64(&m->body);
	if (m->type != MSG_INVENTORY)
		handle = buf_get_u64(&m->body);
	if (m->type == MSG_START)
		len = buf_get_u32(&m->body);
	if (m->type == MSG_SIGNAL)
		sig.signal = (char *)(uintptr_t)frame_signal_name(
		    buf_get_u8(&m->body));
	if (buf_end(&m->body) != CL_OK)
		fatal("monitor-message", "type=%s reason=malformed",
		    msgcat_name(m->type));
	s = hs_find(&hub->sessions, session);
	h = hlog_find(&hub->logs, handle);
	if (s == NULL || s->state != HST_LIVE ||
	    (m->type != MSG_INVENTORY && (h == NULL ||
	    h->session != session))) {
		hs_send_failure(hub, m->type, m->id, handle,
		    RES_SESSION_CLOSED, "the connection was lost");
		return;
	}
	switch (m->type) {
	case MSG_START:
		if (!hs_hold_start(s, m, h, len))
			hs_send_start(s, m, h, len);
		break;
	case MSG_SIGNAL:
		hs_start_request(s, m, handle, h->id, &sig);
		break;
	case MSG_QUERY:
		hs_start_request(s, m, handle, h->id, &empty);
		break;
	default:
		hs_start_request(s, m, 0, NULL, &empty);
		break;
	}
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

static void
hs_on_handle_open(struct hub *hub, struct imsg *m)
{
	char id[MAX_ID_LEN + 1];
	struct hlog_open o = { .id = id };
	struct hlog *h;
	struct hs *s;

	o.number = buf_get_u64(&m->body);
	o.session = buf_get_u64(&m->body);
	buf_get_str(&m->body, id, MAX_ID_LEN);
	o.received = buf_get_u64(&m->body);
	o.state = buf_get_u8(&m->body);
	o.gapped = buf_get_bool(&m->body);
	o.log_limit = buf_get_u64(&m->body);
	if (buf_end(&m->body) != CL_OK)
		fatal("monitor-message", "type=HANDLE_OPEN reason=malformed");
	if ((h = hlog_find(&hub->logs, o.number)) != NULL) {
		/* It moves to a newer session: what is known goes to file. */
		(void)hlog_flush(&hub->logs, h, hub->now);
		hs_drop_handle(hub, h);
	}
	s = hs_find(&hub->sessions, o.session);
	if (s == NULL || hs_is_end(s->state) ||
	    hlog_find_id(&s->logs, id) != NULL || !hs_evict_handle(s))
		return;		/* its session is over; so is this */
	if (hlog_open(&hub->logs, &s->logs, &o, &h) != CL_OK) {
		log_error("handle-open", "handle=%s reason=out-of-memory",
		    log_q(id));
		return;
	}
	s->nlogs++;
	h->running_at = hub->now;
	if (s->unknown_id != NULL) {
		free(s->unknown_id);
		s->unknown_id = NULL;
	}
}

/*
 * An index that makes no sense is begun anew, with its log; what the device
 * still has it sends again.  The disk that fails is asked again later.
 */
static void
hs_set_index(struct hub *hub, struct hlog *h, int fd)
{
	struct hs *s = hs_find(&hub->sessions, h->session);
	int r = hlog_set_index(&hub->logs, h, fd);

	if (r == CL_OK || r == CL_STATE)
		return;
	log_error("handle-index", "handle=%s reason=%s", log_q(h->id),
	    cl_strerror(r));
	if (r == CL_FORMAT && s != NULL)
		(void)hs_ask_files(s, h, 1);
}

static void
hs_on_handle(struct hub *hub, struct imsg *m)
{
	struct hlog *h = hlog_find(&hub->logs, buf_get_u64(&m->body));
	struct hs *s;

	if (buf_end(&m->body) != CL_OK)
		fatal("monitor-message", "type=%s reason=malformed",
		    msgcat_name(m->type));
	if (h == NULL)
		return;
	switch (m->type) {
	case MSG_HANDLE_LOG:
		hlog_set_log(&hub->logs, h, imsg_take_fd(m));
		break;
	case MSG_HANDLE_INDEX:
		hs_set_index(hub, h, imsg_take_fd(m));
		break;
	case MSG_HANDLE_SHUT:
		hlog_shut(&hub->logs, h, hub->now);
		if ((s = hs_find(&hub->sessions, h->session)) == NULL)
			break;
		if (h->ended) {
			hs_confirm_end(s, h);
			hs_answer_beat(s);
		} else
			hs_forget_handle(s, h->number);
		break;
	default:
		hs_drop_handle(hub, h);
		break;
	}
}

void
hs_on_request(struct hub *hub, struct imsg *m)
{
	switch (m->type) {
	case MSG_HANDLE_OPEN:
		hs_on_handle_open(hub, m);
		break;
	case MSG_HANDLE_LOG:
	case MSG_HANDLE_INDEX:
	case MSG_HANDLE_SHUT:
	case MSG_HANDLE_FORGET:
		hs_on_handle(hub, m);
		break;
	case MSG_HANDLE_REDACT:
	case MSG_REVOKE:
	case MSG_REFRESH:
		hs_on_lease(hub, m);
		break;
	default:
		hs_on_device_request(hub, m);
		break;
	}
}
