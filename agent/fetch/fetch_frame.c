/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Frames from the hub, in agentd-fetch.  The hub may ask anything: what it
 * asks is decoded here, without privilege, and handed to the monitor as typed
 * values; the monitor decides again.  Requests for what this device does not
 * have get the negative answer of their own kind, so that none hangs.
 */
#include "fetch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/crash.h"
#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "common/model/spec.h"

#define FETCH_FRAME_SKEW_NS (30 * 1000000000LL)
#define FETCH_FRAME_PROVISION_MS (35 * 60 * 1000)
#define FETCH_FRAME_SEED_MS (5 * 60 * 1000)

union fetch_payload {
	struct frame_welcome welcome;
	struct frame_heartbeat_ack heartbeat_ack;
	struct spec start;
	struct frame_signal signal;
	struct frame_log_ack log_ack;
	struct frame_bye bye;
	struct frame_error error;
	struct lease_revoke revoke;
	struct frame_attach_open attach_open;
	struct frame_attach_data attach_data;
	struct frame_device_data device_data;
	struct frame_attach_resize attach_resize;
	struct frame_attach_close attach_close;
	struct frame_upgrade upgrade;
	struct frame_install_harness install_harness;
	struct frame_branch_chunk branch_chunk;
	struct lease_refresh secret_refresh;
	struct frame_device_open device_open;
	struct frame_device_close device_close;
	struct frame_isolation_probe isolation_probe;
	struct frame_empty empty;
};

/* At most so many jobs of the hub at once. */
static int
fetch_frame_is_busy(const struct fetch *f)
{
	return f->nasks >= (size_t)f->conf.max_concurrent + 16;
}

static void
fetch_frame_on_timeout(struct fetch *f, const struct fetch_ask *a)
{
	if (fetch_ask_is_wanted(f, a))
		fetch_send_error(f, a->corr, "protocol",
		    "the device did not answer in time");
}

static void
fetch_frame_on_start_timeout(struct fetch *f, const struct fetch_ask *a)
{
	if (fetch_ask_is_wanted(f, a))
		fetch_send_error(f, a->corr, "start_failed",
		    "the device did not start it in time");
	fetch_work_release(f, a->handle);
}

static int
fetch_frame_send_started(struct fetch *f, const char *id, const char *handle,
    int64_t pid, int64_t started_at, const char *error)
{
	struct frame_started s;

	frame_init_payload(FRAME_STARTED, &s);
	s.handle_id = FETCH_TEXT(handle);
	s.pid = pid;
	s.started_at = started_at;
	s.error = FETCH_TEXT(error);
	return fetch_send(f, FRAME_STARTED, id, handle, &s, NULL);
}

/* A tree that is fetched first takes its time; the monitor keeps the
 * deadline, this is for the case that it does not. */
static int64_t
fetch_frame_get_prepare_ms(const struct spec *spec)
{
	int has_tree = spec->workspace.kind != NULL &&
	    (strcmp(spec->workspace.kind, "git") == 0 ||
	    strcmp(spec->workspace.kind, "bundle") == 0);

	return (has_tree ? FETCH_FRAME_PROVISION_MS : 0) +
	    (spec->project_seed_len > 0 ? FETCH_FRAME_SEED_MS : 0);
}

/* DEV_START: the spec in a memfd, wiped here afterwards. */
static void
fetch_frame_ask_start(struct fetch *f, const struct frame_env *env,
    const struct spec *spec)
{
	struct msg_dev_start body = { .handle_id = env->handle };
	struct fetch_ask *a;
	int fd, r;

	if ((r = msg_make_memfd(&spec_start_table, spec, MAX_SPEC_LEN, &fd,
	    &body.len)) == 0) {
		fetch_in_end(f, env->handle);
		a = FETCH_ASK(f, DEV_START, &body, fd, SHIM_START_TIMEOUT_MS +
		    ASK_TIMEOUT_MS + fetch_frame_get_prepare_ms(spec));
		if (a == NULL)
			r = CL_NOMEM;
		else
			fetch_ask_set_frame(f, a, env,
			    fetch_frame_on_start_timeout);
		CRASH_POINT("start.heard");
	}
	if (r != 0)
		fetch_send_error(f, env->id, "start_failed", cl_strerror(r));
}

void
fetch_frame_on_start(struct fetch *f, const struct frame_env *env,
    void *payload)
{
	struct spec *spec = payload;

	if (spec->handle_id != NULL && spec->handle_id[0] != '\0' &&
	    strcmp(spec->handle_id, env->handle) != 0)
		fetch_send_error(f, env->id, "protocol",
		    "handle_id is not the handle of the frame");
	else if (!util_is_id(env->handle))
		fetch_send_error(f, env->id, "protocol",
		    "the handle cannot be used as one");
	else if (fetch_frame_is_busy(f))
		fetch_send_error(f, env->id, "busy", "too many requests");
	else if (spec->refusal != NULL)
		fetch_frame_send_started(f, env->id, env->handle, 0,
		    UTIL_TIME_ZERO, spec->refusal);
	else
		fetch_frame_ask_start(f, env, spec);
	fetch_in_drop(f, env->handle);	/* what it did not take */
}

int
fetch_frame_on_started(struct fetch *f, struct imsg *m, union msg_any *v)
{
	struct fetch_ask *a = fetch_ask_find(f, m->id, MSG_DEV_START);
	const struct msg_dev_start_ans *ans = &v->DEV_START_ANS;

	if (a == NULL)
		return CL_OK;
	CRASH_POINT("start.answered");
	if (!fetch_ask_is_wanted(f, a))
		;	/* the next hello offers it */
	else if (ans->result == RES_OK)
		fetch_frame_send_started(f, a->corr, a->handle, ans->pid,
		    ans->started_at, NULL);
	else if (ans->result == RES_NOT_STARTED)
		fetch_frame_send_started(f, a->corr, a->handle, 0,
		    UTIL_TIME_ZERO, ans->text);
	else
		fetch_send_error(f, a->corr, ans->code, ans->text);
	/* Its output may follow now: `started` is queued before it.  After a
	 * refusal another may still wait; else its end follows. */
	if (ans->result == RES_OK || !fetch_ask_is_wanted(f, a))
		fetch_work_release(f, a->handle);
	fetch_ask_del(f, a);
	return CL_OK;
}

void
fetch_frame_on_signal(struct fetch *f, const struct frame_env *env,
    void *payload)
{
	struct frame_signal *s = payload;
	struct fetch_work *w = fetch_work_find_handle(f, env->handle);
	struct msg_dev_signal body = { .handle_id = env->handle };
	struct fetch_ask *a;
	int sig = frame_parse_signal(s->signal != NULL ? s->signal : "");

	if (w == NULL &&
	    fetch_ask_find_handle(f, MSG_DEV_START, env->handle) == NULL) {
		fetch_send_error(f, env->id, "unknown_handle",
		    "this workload is not here");
		return;
	}
	if (sig == 0) {
		fetch_send_error(f, env->id, "protocol", "unknown signal");
		return;
	}
	if (w != NULL && w->exited) {
		fetch_work_put_status(w, env->id, 0);
		return;
	}
	body.sig = sig;
	a = fetch_frame_is_busy(f) ? NULL : FETCH_ASK(f, DEV_SIGNAL, &body, -1,
	    SIGNAL_TIMEOUT_MS);
	if (a != NULL)
		fetch_ask_set_frame(f, a, env, fetch_frame_on_timeout);
	else
		fetch_send_error(f, env->id, "busy", "too many requests");
}

/* A workload that is being started has no process to tell about yet. */
static void
fetch_frame_put_status(struct fetch *f, const char *id, const char *handle)
{
	struct fetch_work *w = fetch_work_find_handle(f, handle);
	struct frame_status s;

	if (w != NULL && w->pid != 0) {
		fetch_work_put_status(w, id, 0);
		return;
	}
	if (w == NULL &&
	    fetch_ask_find_handle(f, MSG_DEV_START, handle) == NULL) {
		fetch_send_error(f, id, "unknown_handle",
		    "this workload is not here");
		return;
	}
	frame_init_payload(FRAME_STATUS, &s);
	s.status.handle_id = FETCH_TEXT(handle);
	s.status.executor_id = FETCH_TEXT(f->conf.agent_id);
	s.status.state = (char *)(uintptr_t)frame_state_name(HS_PENDING);
	fetch_send(f, FRAME_STATUS, id, handle, &s, NULL);
}

int
fetch_frame_on_signalled(struct fetch *f, struct imsg *m, union msg_any *v)
{
	struct fetch_ask *a = fetch_ask_find(f, m->id, MSG_DEV_SIGNAL);
	const struct msg_device_ans *ans = &v->DEV_SIGNAL_ANS;

	if (fetch_ask_is_wanted(f, a)) {
		if (ans->result == RES_OK)
			fetch_frame_put_status(f, a->corr, a->handle);
		else
			fetch_send_error(f, a->corr, ans->code, ans->text);
	}
	fetch_ask_del(f, a);
	return CL_OK;
}

void
fetch_frame_on_status_req(struct fetch *f, const struct frame_env *env,
    void *payload)
{
	(void)payload;
	fetch_frame_put_status(f, env->id, env->handle);
}

void
fetch_frame_on_inventory(struct fetch *f, const struct frame_env *env,
    void *payload)
{
	struct fetch_ask *a;

	(void)payload;
	a = fetch_frame_is_busy(f) ? NULL : fetch_ask_put(f, MSG_DEV_CAPS, NULL,
	    -1, INVENTORY_TIMEOUT_MS);
	if (a != NULL)
		fetch_ask_set_frame(f, a, env, fetch_frame_on_timeout);
	else
		fetch_send_error(f, env->id, "busy", "too many requests");
}

void
fetch_frame_on_caps(struct fetch *f, const struct fetch_ask *a, struct caps *c)
{
	struct frame_inventory inv = { .capabilities = *c };

	if (fetch_ask_is_wanted(f, a))
		fetch_send(f, FRAME_INVENTORY, a->corr, NULL, &inv, NULL);
}

void
fetch_frame_on_log_ack(struct fetch *f, const struct frame_env *env,
    void *payload)
{
	struct frame_log_ack *ack = payload;
	struct fetch_work *w = fetch_work_find_handle(f, env->handle);

	if (w != NULL && ack->offset > 0)
		fetch_out_on_ack(w, (uint64_t)ack->offset);
	else if (w == NULL && ack->offset >= 0)
		fetch_out_on_end_ack(f, env->handle, (uint64_t)ack->offset);
}

void
fetch_frame_on_heartbeat_ack(struct fetch *f, const struct frame_env *env,
    void *payload)
{
	struct frame_heartbeat_ack *ack = payload;
	int64_t skew;

	(void)env;
	fetch_out_on_beat_ack(f, (uint64_t)ack->seq);
	if (ack->server_time == UTIL_TIME_ZERO || f->logged_skew)
		return;
	skew = util_wall_ns() / 2 - ack->server_time / 2;
	if (skew < -FETCH_FRAME_SKEW_NS / 2 || skew > FETCH_FRAME_SKEW_NS / 2) {
		f->logged_skew = 1;
		log_warn("clock-skew", "seconds=%lld reason=\"this clock and "
		    "the hub's differ\"", (long long)(skew / 500000000));
	}
}

void
fetch_frame_on_error(struct fetch *f, const struct frame_env *env,
    void *payload)
{
	struct frame_error *e = payload;

	fetch_back_refuse(f, env, e);
	log_warn("hub-error", "id=%s code=%s message=%s", log_q(env->id),
	    log_q(e->code), log_q(e->message));
}

void
fetch_frame_on_bye(struct fetch *f, const struct frame_env *env, void *payload)
{
	struct frame_bye *bye = payload;
	char reason[MAX_CLOSE_REASON_LEN + 1];
	size_t i;

	(void)env;
	log_info("hub-bye", "reconnect=%s reason=%s",
	    bye->reconnect ? "yes" : "no", log_q(bye->reason));
	if (!bye->reconnect)
		f->fatal = FATAL_BYE;
	/* Revoked, banned, deleted: whoever reads the last line wants to know.
	 * It stands between quotes. */
	(void)snprintf(reason, sizeof(reason), "%s",
	    bye->reason != NULL ? bye->reason : "");
	for (i = 0; reason[i] != '\0'; i++)
		if (reason[i] < 0x20 || reason[i] > 0x7e || reason[i] == '"')
			reason[i] = '?';
	fetch_fail(f, "the hub said bye%s%s", reason[0] != '\0' ? ": " : "",
	    reason);
}

void
fetch_frame_on_ignored(struct fetch *f, const struct frame_env *env,
    void *payload)
{
	(void)f;
	(void)payload;
	log_debug("frame-ignored", "type=%s id=%s", frame_name(env->type),
	    log_q(env->id));
}

/* ------------------------------------------------------------------ decline */

void
fetch_decline_upgrade(struct fetch *f, const struct frame_env *env,
    void *payload)
{
	const struct frame_upgrade *q = payload;
	struct frame_upgrading a;

	frame_init_payload(FRAME_UPGRADING, &a);
	a.reason = FETCH_TEXT("this device does not upgrade itself");
	a.from_version = FETCH_TEXT(f->conf.agent_version);
	a.target_version = q->target_version;
	fetch_send(f, FRAME_UPGRADING, env->id, NULL, &a, NULL);
}

void
fetch_decline_harness(struct fetch *f, const struct frame_env *env,
    void *payload)
{
	const struct frame_install_harness *q = payload;
	struct frame_harness_installed a;

	frame_init_payload(FRAME_HARNESS_INSTALLED, &a);
	a.harness = q->harness;
	a.reason = FETCH_TEXT("this device installs no harness");
	fetch_send(f, FRAME_HARNESS_INSTALLED, env->id, NULL, &a, NULL);
}

void
fetch_decline_probe(struct fetch *f, const struct frame_env *env, void *payload)
{
	const struct frame_isolation_probe *q = payload;
	const char *mode = q->sandbox.mode;
	struct frame_isolation_evidence a;

	frame_init_payload(FRAME_ISOLATION_EVIDENCE, &a);
	if (mode == NULL || strcmp(mode, "container") != 0)
		a.error = FETCH_TEXT("only container sandboxes can be probed");
	else
		a.error = FETCH_TEXT("this device runs no container sandbox");
	fetch_send(f, FRAME_ISOLATION_EVIDENCE, env->id, NULL, &a, NULL);
}

void
fetch_decline_terminal(struct fetch *f, const struct frame_env *env,
    void *payload)
{
	(void)payload;
	if (fetch_work_find_handle(f, env->handle) == NULL)
		fetch_send_error(f, env->id, "unknown_handle",
		    "this workload is not here");
	else
		fetch_send_error(f, env->id, "protocol",
		    "this device opens no terminals");
}

void
fetch_decline_device(struct fetch *f, const struct frame_env *env,
    void *payload)
{
	(void)payload;
	fetch_send_error(f, env->id, "protocol",
	    "this device attaches no forwarded devices");
}

/* ----------------------------------------------------------------- dispatch */

/* Said once per type and session, never answered. */
static void
fetch_frame_on_unknown(struct fetch *f, const struct frame_env *env)
{
	uint64_t bit = 1ULL << env->type;

	if (env->type == FRAME_UNKNOWN ? f->logged_unknown :
	    (f->logged_types & bit) != 0)
		return;
	f->logged_types |= bit;
	f->logged_unknown |= env->type == FRAME_UNKNOWN;
	log_info("frame-unknown", "type=%s id=%s", log_q(env->type_name),
	    log_q(env->id));
}

/* An undecodable bye is no reason to stay away for good. */
static void
fetch_frame_on_undecodable(struct fetch *f, const struct frame_env *env,
    const struct fetch_frame_row *row)
{
	log_info("frame-undecodable", "type=%s id=%s reason=%s",
	    frame_name(env->type), log_q(env->id), log_q(f->jx.why));
	if (env->type == FRAME_BYE)
		fetch_fail(f, "the hub said bye, unreadably");
	else if (env->type == FRAME_BRANCH_CHUNK)
		fetch_in_fail_handle(f, env->handle, f->jx.why);
	else if (row->is_answered)
		fetch_send_error(f, env->id, "protocol", f->jx.why);
}

void
fetch_on_frame(struct fetch *f, const struct frame_env *env)
{
	const struct fetch_frame_row *row = &f->frames[env->type];
	union fetch_payload payload;
	int r;

	if (!frame_is_inbound(env->type, FRAME_H2A) || row->handler == NULL) {
		fetch_frame_on_unknown(f, env);
		return;
	}
	if (env->id[0] != '\0' && env->type != FRAME_HEARTBEAT_ACK)
		fetch_out_on_request(f);
	/* A status_req's payload is not read at all. */
	if (env->type == FRAME_STATUS_REQ) {
		row->handler(f, env, NULL);
		return;
	}
	r = frame_decode_payload(&f->jx, env, &payload);
	if (r != 0) {
		fetch_frame_on_undecodable(f, env, row);
		return;
	}
	row->handler(f, env, &payload);
	frame_clear_payload(env->type, &payload);
}
