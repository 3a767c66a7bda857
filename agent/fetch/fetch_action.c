/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The session's state table and what each transition does: backoff, dial,
 * hello, welcome, resume, heartbeats, goodbye.  A missing cell means that the
 * event comes too late to matter.
 */
#include <arpa/inet.h>
#include <bsd/string.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "net/codec/ws.h"
#include "fetch_backoff.h"
#include "fetch_session.h"

static void
fs_ask_caps(struct fs *fs)
{
	fs->why[0] = '\0';
	if (fs->stopping || fs->fatal)
		fs_put_event(fs, FE_STOP);
	else if (fa_put(fs, MSG_DEV_CAPS, NULL, -1, ASK_TIMEOUT_MS) == NULL)
		fs_fail(fs, "out of memory");
}

/* A numeric host needs no resolver. */
static int
fs_parse_host(struct fs *fs)
{
	struct fl_addr *a = &fs->addrs[0];

	if (inet_pton(AF_INET, fs->conf.host, a->bytes) == 1)
		a->family = AF_INET;
	else if (inet_pton(AF_INET6, fs->conf.host, a->bytes) == 1)
		a->family = AF_INET6;
	else
		return CL_FORMAT;
	fs->naddrs = 1;
	return CL_OK;
}

static void
fs_ask_address(struct fs *fs)
{
	if (fs_parse_host(fs) == 0)
		fs_put_event(fs, FE_ADDRS);
	else if (fa_put(fs, MSG_RESOLVE, NULL, -1, RESOLVE_TIMEOUT_MS +
	    5000) == NULL)
		fs_fail(fs, "out of memory");
}

static void
fs_start_dial(struct fs *fs)
{
	struct fl_target t = { .host = fs->conf.host, .port = fs->conf.port,
	    .path = fs->conf.path, .user_agent = "cloop-agentd",
	    .bearer = (const char *)fs->conf.bearer.data, .ctx = fs->ctx,
	    .pins = fs->conf.pins, .npins = fs->conf.npins };
	int r;

	fs->negotiated = 0;
	if (fs->conf.insecure)
		log_warn("insecure-transport", "host=%s reason=\"the "
		    "connection is not encrypted\"", log_q(fs->conf.host));
	log_debug("dial", "host=%s port=%u tls=%d", log_q(fs->conf.host),
	    fs->conf.port, fs->conf.tls);
	fs_report_session(fs, LINK_CONNECTING, "");
	if ((r = fl_start(fs->link, &t, fs->addrs, fs->naddrs)) != 0) {
		snprintf(fs->why, sizeof(fs->why), "cannot dial: %s",
		    cl_strerror(r));
		fs_put_event(fs, FE_ENDED);
	}
}

static void
fs_put_hello(struct fs *fs)
{
	int r;

	fs->session++;
	fs->logged_types = 0;
	fs->logged_unknown = fs->logged_skew = 0;
	fs->heard_at = util_now_ms();
	if ((r = fs_send_hello(fs)) != 0)
		fs_fail(fs, "cannot say hello: %s", cl_strerror(r));
	caps_clear(&fs->caps);
}

/* FRESH: the credential must be on disk before anything else. */
static void
fs_ask_save(struct fs *fs)
{
	struct buf b;
	struct fa *a;

	fl_pause(fs->link, 1);
	buf_init(&b, MSG_BODY_MAX);
	buf_put_str(&b, fs->welcome.executor_id);
	buf_put_blob(&b, fs->welcome.credential.data,
	    fs->welcome.credential.len);	/* a str has the same form */
	a = fa_put(fs, MSG_ENROLLED, &b, -1, ASK_TIMEOUT_MS);
	buf_clear(&b);
	if (a == NULL)
		fs_fail(fs, "out of memory");
}

void
fs_on_saved(struct fs *fs, int saved, const char *error)
{
	if (fs->state != FS_SAVE)
		return;
	if (!saved) {
		log_error("credential-not-saved", "reason=%s", log_q(error));
		fs_fail(fs, "the credential cannot be stored; the token is "
		    "spent");
		return;
	}
	strlcpy(fs->conf.agent_id, fs->welcome.executor_id,
	    sizeof(fs->conf.agent_id));
	fs->conf.enrolling = 0;
	log_info("enrolled", "agent=%s", log_q(fs->conf.agent_id));
	fs_put_event(fs, FE_SAVED);
}

static const struct frame_verdict *
fs_find_verdict(const struct frame_welcome *wl, const char *handle)
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
fs_apply_verdict(struct fs *fs, struct fw *w)
{
	const struct frame_verdict *v;
	const char *reason = "the hub does not know it";

	w->offered = 0;
	v = fs_find_verdict(&fs->welcome, w->handle);
	if (v != NULL && v->reason != NULL && v->reason[0] != '\0')
		reason = v->reason;
	if (v == NULL || (v->action != NULL &&
	    strcmp(v->action, "terminate") == 0))
		fw_stop(w, reason);
	else
		fo_rewind(w, v->from_offset > 0 ? (uint64_t)v->from_offset :
		    0);
}

/* UP: resume verdicts, then output flows; beats begin one gap later. */
static void
fs_start_session(struct fs *fs)
{
	struct fw *w, *next;
	int64_t seconds = fs->welcome.heartbeat_seconds;

	fs->nfailures = 0;
	if (seconds < HEARTBEAT_MIN_S || seconds > HEARTBEAT_MAX_S)
		seconds = HEARTBEAT_S;
	fs->beat_ms = seconds * 1000;
	fs->heard_at = util_now_ms();
	fs->beat_at = fs->heard_at + fb_get_jittered(fs->beat_ms);
	log_info("link-up", "peer=%s tls=%s protocol=%d agent=%s",
	    fl_get_peer(fs->link), fl_get_version(fs->link), fs->negotiated,
	    log_q(fs->conf.agent_id));
	fs_report_session(fs, LINK_UP, "");
	for (w = TAILQ_FIRST(&fs->works); w != NULL; w = next) {
		next = TAILQ_NEXT(w, entry);
		if (w->offered)
			fs_apply_verdict(fs, w);
		else	/* came between hello and welcome: all of it again */
			fo_rewind(w, w->out.acked_norm);
	}
	frame_clear_payload(FRAME_WELCOME, &fs->welcome);
	fs->has_welcome = 0;
	fl_pause(fs->link, 0);
}

/* All workloads still tracked, and those whose start is under way. */
static size_t
fs_find_active(struct fs *fs, char **active, size_t max)
{
	struct fw *w;
	struct fa *a;
	size_t n = 0;

	TAILQ_FOREACH(w, &fs->works, entry) {
		if (n < max && !w->told)
			active[n++] = w->handle;
	}
	TAILQ_FOREACH(a, &fs->asks, entry) {
		if (a->type == MSG_DEV_START && n < max &&
		    fw_find_handle(fs, a->handle) == NULL)
			active[n++] = a->handle;
	}
	return n;
}

/* One process, one order: a beat behind a `started` names its handle. */
void
fs_put_beat(struct fs *fs)
{
	struct frame_heartbeat b;
	char id[32];
	size_t max = fs->nworks + fs->nasks;

	frame_init_payload(FRAME_HEARTBEAT, &b);
	b.seq = ++fs->beat_seq;
	if (max > 0 && (b.active_handles = calloc(max,
	    sizeof(*b.active_handles))) == NULL) {
		/* A beat without them would have them declared lost. */
		fs_fail(fs, "out of memory");
		return;
	}
	b.nactive_handles = fs_find_active(fs, b.active_handles, max);
	snprintf(id, sizeof(id), "hb-%llu", (unsigned long long)b.seq);
	fs_send(fs, FRAME_HEARTBEAT, id, NULL, &b, NULL);
	free(b.active_handles);
	fs->beat_at = util_now_ms() + fb_get_jittered(fs->beat_ms);
}

/* Close from our side; the bye of a stop goes first. */
static void
fs_close_link(struct fs *fs)
{
	struct frame_bye bye = { .reason = NULL, .reconnect = 1 };

	if (fs->stopping && fl_is_open(fs->link)) {
		bye.reason = (char *)(uintptr_t)"agent shutting down";
		fs_send(fs, FRAME_BYE, NULL, NULL, &bye, NULL);
	}
	if (fs->stopping && fs->why[0] == '\0')
		snprintf(fs->why, sizeof(fs->why), "shutting down");
	if (fs->why[0] == '\0')
		snprintf(fs->why, sizeof(fs->why), "no answer to the hello");
	fl_close(fs->link, WS_CODE_NORMAL, fs->why);
}

/* What belonged to the session goes with it. */
static void
fs_end_session(struct fs *fs)
{
	struct fw *w;

	TAILQ_FOREACH(w, &fs->works, entry) {
		w->offered = 0;
		fo_on_link_end(w);
	}
	fi_drop_all(fs);
	if (fs->has_welcome)
		frame_clear_payload(FRAME_WELCOME, &fs->welcome);
	fs->has_welcome = 0;
	jsonw_clear(&fs->out);
	jx_clear(&fs->jx);
	jx_init(&fs->jx);
}

/* WAIT: the next attempt after min(1 s * 2^(n-1), 120 s) ± 25 %. */
static void
fs_back_off(struct fs *fs)
{
	int64_t ms;

	if (fs->why[0] == '\0')
		snprintf(fs->why, sizeof(fs->why), "no answer in time");
	fs_end_session(fs);
	fs_report_session(fs, LINK_DOWN, fs->why);
	if (fs->stopping || fs->fatal) {
		log_info("link-down", "reason=\"%s\" reconnect=no", fs->why);
		fs_put_event(fs, FE_STOP);
		return;
	}
	ms = fb_get_delay(fs->nfailures++);
	log_warn("link-down", "reason=\"%s\" reconnect_ms=%lld", fs->why,
	    (long long)ms);
	fs->state_deadline_at = util_now_ms() + ms;
}

/* OVER: stopped, or refused for good and waiting to be stopped. */
static void
fs_end(struct fs *fs)
{
	if (!fs->stopping)
		return;
	fs_ask_monitor(fs, MSG_FETCH_STOPPED, 0, NULL, -1);
	event_base_loopexit(fs->base, NULL);
}

#define ROW(act, next) { act, FS_##next }

const struct fs_row fs_table[FS_NSTATES][FS_NEVENTS] = {
	[FS_WAIT] = {
		[FE_DUE] = ROW(fs_ask_caps, CAPS),
		[FE_STOP] = ROW(fs_end, OVER),
	},
	[FS_CAPS] = {
		[FE_CAPS] = ROW(fs_ask_address, RESOLVE),
		[FE_FAILED] = ROW(fs_back_off, WAIT),
		[FE_TIMEOUT] = ROW(fs_back_off, WAIT),
		[FE_STOP] = ROW(fs_end, OVER),
	},
	[FS_RESOLVE] = {
		[FE_ADDRS] = ROW(fs_start_dial, DIAL),
		[FE_FAILED] = ROW(fs_back_off, WAIT),
		[FE_TIMEOUT] = ROW(fs_back_off, WAIT),
		[FE_STOP] = ROW(fs_end, OVER),
	},
	[FS_DIAL] = {
		[FE_OPEN] = ROW(fs_put_hello, HELLO),
		[FE_ENDED] = ROW(fs_back_off, WAIT),
		[FE_STOP] = ROW(fs_close_link, CLOSING),
	},
	[FS_HELLO] = {
		[FE_WELCOME] = ROW(fs_start_session, UP),
		[FE_FRESH] = ROW(fs_ask_save, SAVE),
		[FE_FAILED] = ROW(fs_close_link, CLOSING),
		[FE_TIMEOUT] = ROW(fs_close_link, CLOSING),
		[FE_ENDED] = ROW(fs_back_off, WAIT),
		[FE_STOP] = ROW(fs_close_link, CLOSING),
	},
	[FS_SAVE] = {
		[FE_SAVED] = ROW(fs_start_session, UP),
		[FE_FAILED] = ROW(fs_close_link, CLOSING),
		[FE_TIMEOUT] = ROW(fs_close_link, CLOSING),
		[FE_ENDED] = ROW(fs_back_off, WAIT),
		[FE_STOP] = ROW(fs_close_link, CLOSING),
	},
	[FS_UP] = {
		[FE_FAILED] = ROW(fs_close_link, CLOSING),
		[FE_ENDED] = ROW(fs_back_off, WAIT),
		[FE_STOP] = ROW(fs_close_link, CLOSING),
	},
	[FS_CLOSING] = {
		[FE_ENDED] = ROW(fs_back_off, WAIT),
	},
	[FS_OVER] = {
		[FE_STOP] = ROW(fs_end, OVER),
	},
};
