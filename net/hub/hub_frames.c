/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * What the hub does with each frame of a live session, one row a type.  Runs
 * in cloopd-net.  A frame that names a handle is only acted on when the
 * handle is in this session's own table; about any other the monitor is
 * asked, and reading stops until it has answered.
 */
#include "hub_session.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/crash.h"
#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/utf8.h"
#include "common/base/util.h"
#include "hub.h"
#include "hub_logredact.h"

#define HF_HANDLE 0x01	/* about a handle of this session */
#define HF_UNKNOWN 0x02	/* error{unknown_handle} when nobody has it */
#define HF_LOUD 0x04	/* error{protocol} when it cannot be decoded */
#define HF_REPLY 0x08	/* only ever the answer to a request */
#define HF_FILES 0x10	/* the files of its output are needed */

union hf_payload {
	struct frame_hello hello;
	struct frame_heartbeat heartbeat;
	struct frame_started started;
	struct frame_status status;
	struct frame_log_chunk chunk;
	struct frame_bye bye;
	struct frame_error error;
	struct dev_revoked revoked;
	struct frame_result_chunk result_chunk;
	struct frame_result result;
	struct frame_attach_opened attach_opened;
	struct frame_attach_data attach_data;
	struct frame_device_data device_data;
	struct frame_attach_close attach_close;
	struct frame_upgrading upgrading;
	struct frame_harness_installed harness;
	struct frame_project_result project;
	struct frame_inventory inventory;
	struct dev_refreshed refreshed;
	struct frame_device_opened device_opened;
	struct frame_device_close device_close;
	struct frame_denials denials;
	struct frame_isolation_evidence evidence;
};

/* payload NULL: it could not be decoded (`jx.why`). */
typedef enum hs_event hf_fn(struct hs *s, const struct frame_env *env,
    const union hf_payload *p, struct hlog *h);

/* ---------------------------------------------------------------- reports */

void
hs_report_down(struct hs *s)
{
	struct msg_session_down body = { .session = s->session,
	    .reason = s->end_reason };
	struct hlog *h;

	hs_clear_requests(s);
	hs_clear_ships(s);
	hs_flush_logs(s, 0);
	while ((h = hlog_next(&s->logs, NULL)) != NULL)
		hlog_close(&s->hub->logs, &s->logs, h);
	s->nlogs = 0;
	if (s->session == 0 || s->down)
		return;
	if (s->seen)
		hs_report_seen(s, s);
	hs_set_end(s, AGENT_UNREACHABLE, 0, "the session broke");
	s->down = 1;
	body.status = s->end_status;
	HUB_SEND(s->hub, SESSION_DOWN, &body);
	log_info("agent-down", "session=%llu agent=%s peer=%s status=%s "
	    "reason=%s", (unsigned long long)s->session, log_q(s->agent_id),
	    hs_peer_text(s), s->end_status == AGENT_OFFLINE ? "offline" :
	    "unreachable", log_q(s->end_reason));
}

/* ---------------------------------------------------------- whose handle? */

static void
hs_set_unknown(struct hs *s, const char *id)
{
	free(s->unknown_id);
	s->unknown_id = strdup(id);
	s->unknown_at = s->hub->now;
}

static int
hs_is_unknown(const struct hs *s, const char *id)
{
	return s->unknown_id != NULL && strcmp(s->unknown_id, id) == 0 &&
	    s->hub->now - s->unknown_at < HS_ID_UNKNOWN_MS;
}

static void
hs_report_foreign(struct hs *s, const struct frame_env *env)
{
	struct msg_foreign body = { .session = s->session,
	    .handle = env->handle, .type = frame_name(env->type) };

	HUB_SEND(s->hub, FOREIGN, &body);
	log_warn("foreign-handle", "session=%llu agent=%s handle=%s type=%s "
	    "peer=%s", (unsigned long long)s->session, log_q(s->agent_id),
	    log_q(env->handle), frame_name(env->type), hs_peer_text(s));
	hs_set_end(s, AGENT_OFFLINE, WS_CODE_POLICY,
	    "a frame about another agent's workload");
}

/* The monitor says whose handle it is; the frame is still in s->msg. */
static void
hs_on_who(void *ctx, uint64_t conn, union msg_any *v)
{
	struct hub *hub = ctx;
	struct hs *s = hs_find_conn(&hub->sessions, conn);
	struct frame_env env;
	int64_t whose;

	if (s == NULL || s->state != HST_LIVE || !s->paused)
		return;
	s->paused = 0;
	if (v == NULL || frame_decode_envelope(&hub->jx, s->msg, s->msg_len,
	    &env) != CL_OK) {
		hs_set_end(s, AGENT_UNREACHABLE, WS_CODE_INTERNAL, "busy");
		hs_run(s, HE_CLOSE);
		return;
	}
	whose = v->WHO_ANS.whose;
	if (whose == WHO_LATER) {
		hs_end_later(s);
		return;
	}
	if (whose == WHO_FOREIGN) {
		hs_report_foreign(s, &env);
		hs_run(s, HE_CLOSE);
		return;
	}
	if (whose != WHO_YOURS || hlog_find_id(&s->logs, env.handle) == NULL)
		hs_set_unknown(s, env.handle);
	s->held = 1;
	s->more = 1;
	hs_set_dirty(s);
}

static enum hs_event
hs_ask_who(struct hs *s, const char *handle)
{
	struct msg_who body = { s->session, handle };

	if (HUB_ASK(s, WHO, &body, -1, hs_on_who) != CL_OK) {
		hs_set_end(s, AGENT_UNREACHABLE, WS_CODE_INTERNAL, "busy");
		return HE_CLOSE;
	}
	s->paused = 1;
	return HE_NONE;
}

/* ------------------------------------------------------------------ types */

static void
hf_report_lost(struct hs *s, struct hlog *h)
{
	struct msg_session_handle body = { s->session, h->number };

	hlog_shut(&s->hub->logs, h, s->hub->now);
	hlog_report(h, s->hub->now, hs_report_progress, s->hub);
	h->state = HS_FAILED;
	HUB_SEND(s->hub, HANDLE_LOST, &body);
	log_info("handle-lost", "session=%llu handle=%s",
	    (unsigned long long)s->session, log_q(h->id));
}

/* What the beat does not list is lost.  A handle that just started is spared
 * once: the beat may have been composed before.  One whose end is here and
 * waits for the disk (hf_hold_end) is over for the device, not lost. */
static void
hf_reconcile(struct hs *s, const struct frame_heartbeat *beat)
{
	int64_t young = (int64_t)s->hub->conf.net.heartbeat_s * 1000;
	struct hlog *h = NULL;
	size_t i;

	while ((h = hlog_next(&s->logs, h)) != NULL)
		h->listed = 0;
	for (i = 0; i < beat->nactive_handles; i++)
		if ((h = hlog_find_id(&s->logs, beat->active_handles[i])) !=
		    NULL)
			h->listed = 1;
	h = NULL;
	while ((h = hlog_next(&s->logs, h)) != NULL) {
		if (h->listed || h->closed || h->end_text != NULL ||
		    h->state == HS_PENDING)
			continue;
		if (!h->spared && s->hub->now - h->running_at < young)
			h->spared = 1;
		else
			hf_report_lost(s, h);
	}
}

/* An end that came on this session and is not on disk yet. */
static int
hf_has_unsaved_end(struct hs *s)
{
	struct hlog *h = NULL;

	while ((h = hlog_next(&s->logs, h)) != NULL)
		if (h->end_text != NULL || (h->ended && !h->saved))
			return 1;
	return 0;
}

static void
hf_put_beat_ack(struct hs *s, const char *id, int64_t seq)
{
	struct frame_heartbeat_ack ack;

	ack.seq = seq;
	ack.server_time = util_wall_ns();
	(void)hs_put_frame(s, FRAME_HEARTBEAT_ACK, s->negotiated, id, NULL,
	    &ack);
}

/*
 * A device takes the answer to a beat for word that what it sent before has
 * arrived for good, and forgets an end it told: the answer waits until that
 * is on disk.  Of several beats that wait the newest is answered.
 */
static enum hs_event
hf_heartbeat(struct hs *s, const struct frame_env *env,
    const union hf_payload *p, struct hlog *h)
{
	(void)h;
	if (p == NULL)
		return HE_NONE;
	hf_reconcile(s, &p->heartbeat);
	hs_flush_logs(s, 1);
	free(s->beat_id);
	s->beat_id = NULL;
	if (hf_has_unsaved_end(s)) {
		/* Without memory for it the next beat is answered. */
		s->beat_id = strdup(env->id);
		s->beat_seq = p->heartbeat.seq;
	} else
		hf_put_beat_ack(s, env->id, p->heartbeat.seq);
	return HE_NONE;
}

void
hs_answer_beat(struct hs *s)
{
	if (s->beat_id == NULL || s->state != HST_LIVE ||
	    hf_has_unsaved_end(s))
		return;
	hf_put_beat_ack(s, s->beat_id, s->beat_seq);
	free(s->beat_id);
	s->beat_id = NULL;
}

static uint8_t
hf_get_stream(const char *name)
{
	if (name != NULL && strcmp(name, "stdout") == 0)
		return LOGINDEX_STDOUT;
	if (name != NULL && strcmp(name, "stderr") == 0)
		return LOGINDEX_STDERR;
	return LOGINDEX_COMBINED;
}

static enum hs_event
hf_log_chunk(struct hs *s, const struct frame_env *env,
    const union hf_payload *p, struct hlog *h)
{
	struct hub *hub = s->hub;
	unsigned int failing = h->failing;
	struct hlog_chunk c;
	int r;

	(void)env;
	c.off = (uint64_t)p->chunk.offset;
	c.text = p->chunk.text.data != NULL ? p->chunk.text.data : "";
	c.len = p->chunk.text.len;
	c.nreplaced = p->chunk.text.nreplaced;
	c.stream = hf_get_stream(p->chunk.stream);
	c.time = p->chunk.time;
	r = hlog_put(&hub->logs, h, &c, hub->now);
	/* Once when it begins; the session goes on, unacknowledged. */
	if (r == CL_SYSTEM && !failing)
		log_error("log-write-failed", "handle=%s offset=%llu "
		    "reason=%s", log_q(h->id), (unsigned long long)c.off,
		    cl_strerror(r));
	if (!h->failing && h->stored > h->acked &&
	    h->stored - h->acked >= LOG_ACK_LEN &&
	    hlog_settle(&hub->logs, h, hub->now) == CL_OK &&
	    h->indexed > h->acked)
		(void)hs_put_ack(s, h);
	return HE_NONE;
}

/* The word counts only beside figures that make sense. */
static int
hf_is_disk_limit(const struct frame_status_object *st)
{
	const struct frame_disk_limit *d = st->disk_limit;

	return st->outcome != NULL && strcmp(st->outcome, "disk_limit") == 0 &&
	    d != NULL && d->limit_mb > 0 && d->limit_mb <= 1048576 &&
	    d->used_bytes > d->limit_mb * 1048576;
}

static void
hf_put_status(struct hs *s, const struct frame_status *f, int state,
    const struct hlog *h)
{
	const struct frame_status_object *st = &f->status;
	char error[MAX_ERROR_TEXT_LEN + 1];
	struct msg_handle_status body = { .session = s->session,
	    .handle = h->number, .state = state, .pid = st->pid,
	    .exit_code = st->exit_code, .started_at = st->started_at,
	    .finished_at = st->finished_at, .error = error,
	    .disk_limit = hf_is_disk_limit(st),
	    .final_offset = f->final_offset, .received = h->indexed,
	    .gapped = h->gapped };

	CRASH_POINT("status.net");
	hlog_redact_text(h, st->error != NULL ? st->error : "", error,
	    sizeof(error));
	/* The cut may have parted a character. */
	error[utf8_cut(error, strlen(error))] = '\0';
	HUB_SEND(s->hub, HANDLE_STATUS, &body);
}

/*
 * An end may not overtake output that waits for a failing disk: with the
 * end the log is closed, and the device forgets what it could send again.
 * 1: it is kept for hs_release_ends.
 */
static int
hf_hold_end(struct hs *s, struct hlog *h)
{
	int64_t now = s->hub->now;

	if (h->end_text != NULL)
		return 1;
	if (hlog_flush(&s->hub->logs, h, now) == CL_OK ||
	    (h->end_until != 0 && now >= h->end_until) ||
	    (h->end_text = malloc(s->msg_len)) == NULL)
		return 0;
	memcpy(h->end_text, s->msg, s->msg_len);
	h->end_len = s->msg_len;
	h->end_until = now + HLOG_HOLD_MS;
	log_warn("handle-end-waits", "handle=%s reason=\"its output is not on "
	    "disk\"", log_q(h->id));
	return 1;
}

static enum hs_event
hf_status(struct hs *s, const struct frame_env *env,
    const union hf_payload *p, struct hlog *h)
{
	const struct frame_status_object *st = &p->status.status;
	int64_t final = p->status.final_offset;
	int state = frame_parse_state(st->state);
	int terminal = state == HS_EXITED || state == HS_FAILED ||
	    state == HS_KILLED;

	if (terminal && !h->closed && hf_hold_end(s, h))
		return HE_NONE;
	if (terminal && !h->closed) {
		/* All output is on file before the end is told. */
		hlog_shut(&s->hub->logs, h, s->hub->now);
		if (final > 0 && (uint64_t)final > h->stored)
			h->gapped = 1;
		h->state = (uint8_t)state;
		log_info("handle-ended", "session=%llu handle=%s state=%s "
		    "exit=%lld", (unsigned long long)s->session,
		    log_q(h->id), frame_state_name(state),
		    (long long)st->exit_code);
	}
	if (terminal) {
		h->ended = 1;
		h->saved = 0;
		h->final = final > 0 ? (uint64_t)final : 0;
	}
	/* Stale news about an ended workload changes nothing. */
	if (terminal || !h->closed)
		hf_put_status(s, &p->status, state, h);
	if (env->id[0] != '\0')
		(void)hs_answer_request(s, env, p, NULL);
	return HE_NONE;
}

/* Those whose disk takes writes again, or will not in time. */
void
hs_release_ends(struct hub *hub)
{
	struct hlog *h, *next;
	struct frame_env env;
	union hf_payload p;
	struct hs *s;
	char *text;

	TAILQ_FOREACH_SAFE(h, &hub->logs.busy, link, next) {
		if (h->end_text == NULL || (hub->now < h->end_until &&
		    (h->failing || hlog_flush(&hub->logs, h, hub->now) !=
		    CL_OK)) ||
		    (s = hs_find(&hub->sessions, h->session)) == NULL)
			continue;
		text = h->end_text;
		h->end_text = NULL;
		h->end_until = hub->now;	/* and not once more */
		if (frame_decode_envelope(&hub->jx, text, h->end_len,
		    &env) == CL_OK &&
		    frame_decode_payload(&hub->jx, &env, &p) == CL_OK) {
			(void)hf_status(s, &env, &p, h);
			frame_clear_payload(env.type, &p);
		}
		free(text);
	}
}

static enum hs_event
hf_reply(struct hs *s, const struct frame_env *env,
    const union hf_payload *p, struct hlog *h)
{
	(void)h;
	if (!hs_answer_request(s, env, p, p == NULL ? s->hub->jx.why : NULL))
		log_debug("frame-unasked", "session=%llu type=%s id=%s",
		    (unsigned long long)s->session, frame_name(env->type),
		    log_q(env->id));
	return HE_NONE;
}

static enum hs_event
hf_result_chunk(struct hs *s, const struct frame_env *env,
    const union hf_payload *p, struct hlog *h)
{
	return hs_take_chunk(s, env, &p->result_chunk, h);
}

static enum hs_event
hf_result(struct hs *s, const struct frame_env *env,
    const union hf_payload *p, struct hlog *h)
{
	return hs_take_result(s, env, &p->result, h);
}

static enum hs_event
hf_project(struct hs *s, const struct frame_env *env,
    const union hf_payload *p, struct hlog *h)
{
	return hs_take_project(s, env, &p->project, h);
}

/* A channel that is not open, or a report nobody keeps: an answer would
 * confirm a guess. */
static enum hs_event
hf_drop(struct hs *s, const struct frame_env *env,
    const union hf_payload *p, struct hlog *h)
{
	(void)p;
	(void)h;
	log_debug("frame-dropped", "session=%llu type=%s",
	    (unsigned long long)s->session, frame_name(env->type));
	return HE_NONE;
}

static enum hs_event
hf_bye(struct hs *s, const struct frame_env *env, const union hf_payload *p,
    struct hlog *h)
{
	(void)env;
	(void)h;
	hs_set_end(s, AGENT_OFFLINE, WS_CODE_NORMAL, p != NULL &&
	    p->bye.reason != NULL && p->bye.reason[0] != '\0' ?
	    p->bye.reason : "bye");
	return HE_CLOSE;
}

static enum hs_event
hf_hello(struct hs *s, const struct frame_env *env,
    const union hf_payload *p, struct hlog *h)
{
	(void)p;
	(void)h;
	(void)hs_put_error(s, env->id, "protocol", "hello a second time");
	hs_set_end(s, AGENT_OFFLINE, WS_CODE_NORMAL, "hello a second time");
	return HE_CLOSE;
}

static const struct hf_row {
	hf_fn *fn;		/* NULL: not a type the hub may receive */
	unsigned int flags;
} hf_rows[FRAME_NTYPES] = {
	[FRAME_HELLO] = { hf_hello, HF_REPLY },
	[FRAME_HEARTBEAT] = { hf_heartbeat, 0 },
	[FRAME_LOG_CHUNK] = { hf_log_chunk,
	    HF_HANDLE | HF_UNKNOWN | HF_FILES },
	[FRAME_STATUS] = { hf_status, HF_HANDLE | HF_FILES },
	[FRAME_BYE] = { hf_bye, HF_REPLY },
	[FRAME_RESULT_CHUNK] = { hf_result_chunk,
	    HF_HANDLE | HF_UNKNOWN | HF_LOUD },
	[FRAME_RESULT] = { hf_result, HF_HANDLE | HF_UNKNOWN | HF_LOUD },
	[FRAME_PROJECT_RESULT] = { hf_project,
	    HF_HANDLE | HF_UNKNOWN | HF_LOUD },
	[FRAME_ATTACH_DATA] = { hf_drop, HF_LOUD },
	[FRAME_ATTACH_CLOSE] = { hf_drop, HF_LOUD },
	[FRAME_DEVICE_DATA] = { hf_drop, HF_LOUD },
	[FRAME_DEVICE_CLOSE] = { hf_drop, HF_LOUD },
	[FRAME_DENIALS] = { hf_drop, HF_HANDLE },
	[FRAME_STARTED] = { hf_reply, HF_REPLY },
	[FRAME_REVOKED] = { hf_reply, HF_REPLY },
	[FRAME_SECRET_REFRESHED] = { hf_reply, HF_REPLY },
	[FRAME_UPGRADING] = { hf_reply, HF_REPLY },
	[FRAME_HARNESS_INSTALLED] = { hf_reply, HF_REPLY },
	[FRAME_INVENTORY] = { hf_reply, HF_REPLY },
	[FRAME_ISOLATION_EVIDENCE] = { hf_reply, HF_REPLY },
	[FRAME_ATTACH_OPENED] = { hf_reply, HF_REPLY },
	[FRAME_DEVICE_OPENED] = { hf_reply, HF_REPLY },
	[FRAME_ERROR] = { hf_reply, HF_REPLY },
};

/* The payload is decoded: look the handle up and act. */
static enum hs_event
hs_act_payload(struct hs *s, const struct frame_env *env,
    const union hf_payload *p)
{
	const struct hf_row *row = &hf_rows[env->type];
	struct hlog *h = NULL;

	if (row->flags & HF_HANDLE) {
		h = hlog_find_id(&s->logs, env->handle);
		if (h == NULL && env->handle[0] != '\0' &&
		    !hs_is_unknown(s, env->handle))
			return hs_ask_who(s, env->handle);
		if (h == NULL && row->flags & HF_UNKNOWN)
			(void)hs_put_error(s, env->id, "unknown_handle",
			    "the workload is not known here");
		if (h == NULL)
			return HE_NONE;
		if (row->flags & HF_FILES && hlog_needs_files(h) &&
		    s->hub->now >= h->ask_at)
			return hs_wait_files(s, h);
	}
	return row->fn(s, env, p, h);
}

enum hs_event
hs_act_frame(struct hs *s)
{
	struct jx *x = &s->hub->jx;
	const struct hf_row *row;
	union hf_payload p;
	struct frame_env env;
	enum hs_event ev;
	int r;

	r = frame_decode_envelope(x, s->msg, s->msg_len, &env);
	if (r == CL_LIMIT) {
		s->seen_at = s->hub->now;
		(void)hs_put_error(s, env.id, "protocol", "%s", x->why);
		return HE_NONE;
	}
	if (r != CL_OK) {
		hub_add_penalty(s->hub, &s->peer, PEN_PROTOCOL);
		hs_set_end(s, AGENT_UNREACHABLE, WS_CODE_NORMAL, x->why);
		return HE_CLOSE;
	}
	s->seen_at = s->hub->now;
	s->seen = 1;
	if (log_get_level() >= LOGL_DEBUG)
		log_debug("frame-in", "session=%llu type=%s id=%s handle=%s "
		    "len=%zu", (unsigned long long)s->session,
		    log_q(env.type_name), log_q(env.id), log_q(env.handle),
		    env.payload_len);
	row = &hf_rows[env.type];
	if (row->fn == NULL || !frame_is_inbound(env.type, FRAME_A2H)) {
		(void)hs_put_error(s, env.id, "protocol",
		    "a frame of an unknown type");
		return HE_NONE;
	}
	if (frame_decode_payload(x, &env, &p) != CL_OK) {
		if (row->flags & HF_REPLY)
			return row->fn(s, &env, NULL, NULL);
		if (row->flags & HF_LOUD)
			(void)hs_put_error(s, env.id, "protocol", "%s",
			    x->why);
		return HE_NONE;
	}
	ev = hs_act_payload(s, &env, &p);
	frame_clear_payload(env.type, &p);
	return ev;
}
