/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Frames from the hub, in agentd-fetch.  The hub may ask anything: what it
 * asks is decoded here, without privilege, and handed to the monitor as typed
 * values; the monitor decides again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fetch_frame.h"
#include "common/base/crash.h"
#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "common/model/spec.h"
#include "fetch_session.h"

#define FF_SKEW_NS (30 * 1000000000LL)
#define FF_PROVISION_MS (35 * 60 * 1000)
#define FF_SEED_MS (5 * 60 * 1000)

union ff_payload {
	struct frame_welcome welcome;
	struct frame_heartbeat_ack heartbeat_ack;
	struct spec start;
	struct frame_signal signal;
	struct frame_log_ack log_ack;
	struct frame_bye bye;
	struct frame_error error;
	struct frame_revoke revoke;
	struct frame_attach_open attach_open;
	struct frame_attach_data attach_data;
	struct frame_device_data device_data;
	struct frame_attach_resize attach_resize;
	struct frame_attach_close attach_close;
	struct frame_upgrade upgrade;
	struct frame_install_harness install_harness;
	struct frame_branch_chunk branch_chunk;
	struct frame_secret_refresh secret_refresh;
	struct frame_device_open device_open;
	struct frame_device_close device_close;
	struct frame_isolation_probe isolation_probe;
	struct frame_empty empty;
};

/* At most so many jobs of the hub at once. */
static int
ff_is_busy(const struct fs *fs)
{
	return fs->nasks >= fs->conf.max_concurrent + 16;
}

/* Tie an ask to the frame it is for. */
static void
ff_set_ask(struct fs *fs, struct fa *a, const struct frame_env *env)
{
	a->session = fs->session;
	memcpy(a->corr, env->id, sizeof(a->corr));
	memcpy(a->handle, env->handle, sizeof(a->handle));
}

static int
ff_send_started(struct fs *fs, const char *id, const char *handle,
    int64_t pid, int64_t started_at, const char *error)
{
	struct frame_started s;

	frame_init_payload(FRAME_STARTED, &s);
	s.handle_id = (char *)(uintptr_t)handle;
	s.pid = pid;
	s.started_at = started_at;
	s.error = (char *)(uintptr_t)error;
	return fs_send(fs, FRAME_STARTED, id, handle, &s, NULL);
}

/* A tree that is fetched first takes its time; the monitor keeps the
 * deadline, this is for the case that it does not. */
static int64_t
ff_get_prepare_ms(const struct spec *spec)
{
	int has_tree = spec->workspace.kind != NULL &&
	    (strcmp(spec->workspace.kind, "git") == 0 ||
	    strcmp(spec->workspace.kind, "bundle") == 0);

	return (has_tree ? FF_PROVISION_MS : 0) +
	    (spec->project_seed_len > 0 ? FF_SEED_MS : 0);
}

/* DEV_START: the spec in a memfd, wiped here afterwards. */
static void
ff_ask_start(struct fs *fs, const struct frame_env *env,
    const struct spec *spec)
{
	struct buf blob, b;
	struct fa *a = NULL;
	int fd = -1, r;

	buf_init(&blob, MAX_SPEC_LEN);
	buf_init(&b, MSG_BODY_MAX);
	spec_put(spec, &blob);
	if ((r = buf_error(&blob)) != 0 ||
	    (r = util_make_memfd(blob.data, blob.len, &fd)) != 0)
		goto out;
	buf_put_str(&b, env->handle);
	buf_put_u32(&b, (uint32_t)blob.len);
	fi_end(fs, env->handle);
	a = fa_put(fs, MSG_DEV_START, &b, fd, SHIM_START_TIMEOUT_MS +
	    ASK_TIMEOUT_MS + ff_get_prepare_ms(spec));
	if (a == NULL)
		r = CL_NOMEM;
	else
		ff_set_ask(fs, a, env);
	CRASH_POINT("start.heard");
 out:
	buf_clear(&b);
	buf_clear(&blob);
	if (r != 0)
		fs_send_error(fs, env->id, "start_failed", cl_strerror(r));
}

static void
ff_on_start(struct fs *fs, const struct frame_env *env, void *payload)
{
	struct spec *spec = payload;

	if (spec->handle_id != NULL && spec->handle_id[0] != '\0' &&
	    strcmp(spec->handle_id, env->handle) != 0)
		fs_send_error(fs, env->id, "protocol",
		    "handle_id is not the handle of the frame");
	else if (!util_is_id(env->handle))
		fs_send_error(fs, env->id, "protocol",
		    "the handle cannot be used as one");
	else if (ff_is_busy(fs))
		fs_send_error(fs, env->id, "busy", "too many requests");
	else if (spec->refusal != NULL)
		ff_send_started(fs, env->id, env->handle, 0, UTIL_TIME_ZERO,
		    spec->refusal);
	else
		ff_ask_start(fs, env, spec);
	fi_drop(fs, env->handle);	/* what it did not take */
}

/* Result, code and text of a DEV_*_ANS. */
struct ff_answer {
	uint8_t result;
	char *code;
	char *text;
};

static void
ff_get_answer(struct imsg *m, struct ff_answer *ans)
{
	ans->result = buf_get_u8(&m->body);
	ans->code = buf_get_strdup(&m->body, MAX_ID_LEN);
	ans->text = buf_get_strdup(&m->body, MAX_ERROR_TEXT_LEN);
}

static void
ff_clear_answer(struct ff_answer *ans)
{
	free(ans->code);
	free(ans->text);
}

int
ff_is_wanted(const struct fs *fs, const struct fa *a)
{
	return a != NULL && a->session == fs->session && fs->state == FS_UP;
}

int
ff_on_started(struct fs *fs, struct imsg *m)
{
	struct fa *a = fa_find(fs, m->id, MSG_DEV_START);
	struct ff_answer ans;
	int64_t pid, started_at;
	int r;

	(void)buf_get_u64(&m->body);	/* slot: DEV_HANDLE said it */
	ff_get_answer(m, &ans);
	pid = buf_get_i64(&m->body);
	started_at = buf_get_i64(&m->body);
	if ((r = buf_end(&m->body)) != 0 || a == NULL)
		goto out;
	CRASH_POINT("start.answered");
	if (!ff_is_wanted(fs, a))
		;	/* the next hello offers it */
	else if (ans.result == RES_OK)
		ff_send_started(fs, a->corr, a->handle, pid, started_at, NULL);
	else if (ans.result == RES_NOT_STARTED)
		ff_send_started(fs, a->corr, a->handle, 0, UTIL_TIME_ZERO,
		    ans.text);
	else
		fs_send_error(fs, a->corr, ans.code, ans.text);
	/* Its output may follow now: `started` is queued before it.  After a
	 * refusal another may still wait; else its end follows. */
	if (ans.result == RES_OK || !ff_is_wanted(fs, a))
		fw_release(fs, a->handle);
	fa_del(fs, a);
 out:
	ff_clear_answer(&ans);
	return r;
}

static void
ff_on_signal(struct fs *fs, const struct frame_env *env, void *payload)
{
	struct frame_signal *s = payload;
	struct fw *w = fw_find_handle(fs, env->handle);
	struct buf b;
	struct fa *a;
	int sig = frame_parse_signal(s->signal != NULL ? s->signal : "");

	if (w == NULL && fa_find_handle(fs, MSG_DEV_START, env->handle) ==
	    NULL) {
		fs_send_error(fs, env->id, "unknown_handle",
		    "this workload is not here");
		return;
	}
	if (sig == 0) {
		fs_send_error(fs, env->id, "protocol", "unknown signal");
		return;
	}
	if (w != NULL && w->exited) {
		fw_put_status(w, env->id, 0);
		return;
	}
	buf_init(&b, MSG_BODY_MAX);
	buf_put_str(&b, env->handle);
	buf_put_u8(&b, (uint8_t)sig);
	a = ff_is_busy(fs) ? NULL : fa_put(fs, MSG_DEV_SIGNAL, &b, -1,
	    SIGNAL_TIMEOUT_MS);
	buf_clear(&b);
	if (a != NULL)
		ff_set_ask(fs, a, env);
	else
		fs_send_error(fs, env->id, "busy", "too many requests");
}

/* A workload that is being started has no process to tell about yet. */
static void
ff_put_status(struct fs *fs, const char *id, const char *handle)
{
	struct fw *w = fw_find_handle(fs, handle);
	struct frame_status s;

	if (w != NULL && w->pid != 0) {
		fw_put_status(w, id, 0);
		return;
	}
	if (w == NULL && fa_find_handle(fs, MSG_DEV_START, handle) == NULL) {
		fs_send_error(fs, id, "unknown_handle",
		    "this workload is not here");
		return;
	}
	frame_init_payload(FRAME_STATUS, &s);
	s.handle_id = (char *)(uintptr_t)handle;
	s.executor_id = fs->conf.agent_id;
	s.state = (char *)(uintptr_t)frame_state_name(HS_PENDING);
	fs_send(fs, FRAME_STATUS, id, handle, &s, NULL);
}

int
ff_on_signalled(struct fs *fs, struct imsg *m)
{
	struct fa *a = fa_find(fs, m->id, MSG_DEV_SIGNAL);
	struct ff_answer ans;
	int r;

	ff_get_answer(m, &ans);
	if ((r = buf_end(&m->body)) == 0 && ff_is_wanted(fs, a)) {
		if (ans.result == RES_OK)
			ff_put_status(fs, a->corr, a->handle);
		else
			fs_send_error(fs, a->corr, ans.code, ans.text);
	}
	if (r == 0)
		fa_del(fs, a);
	ff_clear_answer(&ans);
	return r;
}

static void
ff_on_status_req(struct fs *fs, const struct frame_env *env, void *payload)
{
	(void)payload;
	ff_put_status(fs, env->id, env->handle);
}

static void
ff_on_inventory(struct fs *fs, const struct frame_env *env, void *payload)
{
	struct fa *a;

	(void)payload;
	a = ff_is_busy(fs) ? NULL : fa_put(fs, MSG_DEV_CAPS, NULL, -1,
	    INVENTORY_TIMEOUT_MS);
	if (a != NULL)
		ff_set_ask(fs, a, env);
	else
		fs_send_error(fs, env->id, "busy", "too many requests");
}

void
ff_on_caps(struct fs *fs, const struct fa *a, struct caps *c)
{
	struct frame_inventory inv = { .capabilities = *c };

	if (ff_is_wanted(fs, a))
		fs_send(fs, FRAME_INVENTORY, a->corr, NULL, &inv, NULL);
}

void
ff_on_timeout(struct fs *fs, const struct fa *a)
{
	int wanted = ff_is_wanted(fs, a);

	if (a->type == MSG_DEV_START) {
		if (wanted)
			fs_send_error(fs, a->corr, "start_failed",
			    "the device did not start it in time");
		fw_release(fs, a->handle);
	} else if (a->type == MSG_BRANCH_OPEN)
		fi_on_timeout(fs, a->handle);
	else if (wanted && a->arg != NULL)
		ff_on_lease_timeout(fs, a);
	else if (wanted)
		fs_send_error(fs, a->corr, "protocol",
		    "the device did not answer in time");
}

static void
ff_on_log_ack(struct fs *fs, const struct frame_env *env, void *payload)
{
	struct frame_log_ack *ack = payload;
	struct fw *w = fw_find_handle(fs, env->handle);

	if (w != NULL && ack->offset > 0)
		fo_on_ack(w, (uint64_t)ack->offset);
	else if (w == NULL && ack->offset >= 0)
		fo_on_end_ack(fs, env->handle, (uint64_t)ack->offset);
}

static void
ff_on_heartbeat_ack(struct fs *fs, const struct frame_env *env,
    void *payload)
{
	struct frame_heartbeat_ack *ack = payload;
	int64_t skew;

	(void)env;
	fo_on_beat_ack(fs, (uint64_t)ack->seq);
	if (ack->server_time == UTIL_TIME_ZERO || fs->logged_skew)
		return;
	skew = util_wall_ns() / 2 - ack->server_time / 2;
	if (skew < -FF_SKEW_NS / 2 || skew > FF_SKEW_NS / 2) {
		fs->logged_skew = 1;
		log_warn("clock-skew", "seconds=%lld reason=\"this clock and "
		    "the hub's differ\"", (long long)(skew / 500000000));
	}
}

static void
ff_on_error(struct fs *fs, const struct frame_env *env, void *payload)
{
	struct frame_error *e = payload;
	struct fw *w;

	if (e->code != NULL && strcmp(e->code, "write_back_failed") == 0 &&
	    (w = fw_find_handle(fs, env->handle)) != NULL)
		fb_refuse(w, e);
	log_warn("hub-error", "id=%s code=%s message=%s", log_q(env->id),
	    log_q(e->code), log_q(e->message));
}

static void
ff_on_bye(struct fs *fs, const struct frame_env *env, void *payload)
{
	struct frame_bye *bye = payload;
	char reason[MAX_CLOSE_REASON_LEN + 1];
	size_t i;

	(void)env;
	log_info("hub-bye", "reconnect=%s reason=%s",
	    bye->reconnect ? "yes" : "no", log_q(bye->reason));
	if (!bye->reconnect)
		fs->fatal = FATAL_BYE;
	/* Revoked, banned, deleted: whoever reads the last line wants to know.
	 * It stands between quotes. */
	(void)snprintf(reason, sizeof(reason), "%s",
	    bye->reason != NULL ? bye->reason : "");
	for (i = 0; reason[i] != '\0'; i++)
		if (reason[i] < 0x20 || reason[i] > 0x7e || reason[i] == '"')
			reason[i] = '?';
	fs_fail(fs, "the hub said bye%s%s", reason[0] != '\0' ? ": " : "",
	    reason);
}

static void
ff_on_branch_chunk(struct fs *fs, const struct frame_env *env, void *payload)
{
	fi_on_chunk(fs, env, payload);
}

static void
ff_on_decline(struct fs *fs, const struct frame_env *env, void *payload)
{
	ff_decline(fs, env, payload);
}

static void
ff_on_ignored(struct fs *fs, const struct frame_env *env, void *payload)
{
	(void)fs;
	(void)payload;
	log_debug("frame-ignored", "type=%s id=%s", frame_name(env->type),
	    log_q(env->id));
}

/* What to do, and whether a payload that does not decode is answered. */
#define FF_ANSWER 1
#define FF_SILENT 0

static const struct ff_row {
	void (*handler)(struct fs *, const struct frame_env *, void *);
	int on_failure;
} ff_rows[FRAME_NTYPES] = {
	[FRAME_START] = { ff_on_start, FF_ANSWER },
	[FRAME_SIGNAL] = { ff_on_signal, FF_ANSWER },
	[FRAME_STATUS_REQ] = { ff_on_status_req, FF_SILENT },
	[FRAME_LOG_ACK] = { ff_on_log_ack, FF_SILENT },
	[FRAME_HEARTBEAT_ACK] = { ff_on_heartbeat_ack, FF_SILENT },
	[FRAME_INVENTORY_REQ] = { ff_on_inventory, FF_ANSWER },
	[FRAME_BYE] = { ff_on_bye, FF_SILENT },
	[FRAME_ERROR] = { ff_on_error, FF_SILENT },
	[FRAME_REVOKE] = { ff_on_revoke, FF_ANSWER },
	[FRAME_SECRET_REFRESH] = { ff_on_refresh, FF_ANSWER },
	[FRAME_UPGRADE] = { ff_on_decline, FF_ANSWER },
	[FRAME_INSTALL_HARNESS] = { ff_on_decline, FF_ANSWER },
	[FRAME_ISOLATION_PROBE] = { ff_on_decline, FF_ANSWER },
	[FRAME_ATTACH_OPEN] = { ff_on_decline, FF_ANSWER },
	[FRAME_DEVICE_OPEN] = { ff_on_decline, FF_ANSWER },
	[FRAME_ATTACH_DATA] = { ff_on_ignored, FF_ANSWER },
	[FRAME_ATTACH_RESIZE] = { ff_on_ignored, FF_SILENT },
	[FRAME_ATTACH_CLOSE] = { ff_on_ignored, FF_SILENT },
	[FRAME_DEVICE_DATA] = { ff_on_ignored, FF_SILENT },
	[FRAME_DEVICE_CLOSE] = { ff_on_ignored, FF_SILENT },
	[FRAME_BRANCH_CHUNK] = { ff_on_branch_chunk, FF_SILENT },
};

/* Said once per type and session, never answered. */
static void
ff_on_unknown(struct fs *fs, const struct frame_env *env)
{
	uint64_t bit = 1ULL << env->type;

	if (env->type == FRAME_UNKNOWN ? fs->logged_unknown :
	    (fs->logged_types & bit) != 0)
		return;
	fs->logged_types |= bit;
	fs->logged_unknown |= env->type == FRAME_UNKNOWN;
	log_info("frame-unknown", "type=%s id=%s", log_q(env->type_name),
	    log_q(env->id));
}

/* An undecodable bye is no reason to stay away for good. */
static void
ff_on_undecodable(struct fs *fs, const struct frame_env *env,
    const struct ff_row *row)
{
	log_info("frame-undecodable", "type=%s id=%s reason=%s",
	    frame_name(env->type), log_q(env->id), log_q(fs->jx.why));
	if (env->type == FRAME_BYE)
		fs_fail(fs, "the hub said bye, unreadably");
	else if (env->type == FRAME_BRANCH_CHUNK)
		fi_fail_handle(fs, env->handle, fs->jx.why);
	else if (row->on_failure == FF_ANSWER)
		fs_send_error(fs, env->id, "protocol", fs->jx.why);
}

void
ff_on_frame(struct fs *fs, const struct frame_env *env)
{
	const struct ff_row *row = &ff_rows[env->type];
	union ff_payload payload;
	int r;

	if (!frame_is_inbound(env->type, FRAME_H2A) || row->handler == NULL) {
		ff_on_unknown(fs, env);
		return;
	}
	if (env->id[0] != '\0' && env->type != FRAME_HEARTBEAT_ACK)
		fo_on_request(fs);
	/* A status_req's payload is not read at all. */
	if (env->type == FRAME_STATUS_REQ) {
		row->handler(fs, env, NULL);
		return;
	}
	r = frame_decode_payload(&fs->jx, env, &payload);
	if (r != 0) {
		ff_on_undecodable(fs, env, row);
		return;
	}
	row->handler(fs, env, &payload);
	frame_clear_payload(env->type, &payload);
}
