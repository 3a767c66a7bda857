/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Messages as they come from the link: the envelope, the one answer to the
 * hello, and everything after it on its way to fetch_frame.c.
 */
#include <string.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "fetch_frame.h"
#include "fetch_session.h"

/* A refused hello: two codes mean "for good". */
static void
fs_on_refusal(struct fs *fs, const struct frame_env *env)
{
	struct frame_error e;
	const char *code;

	if (frame_decode_payload(&fs->jx, env, &e) != 0) {
		fs_fail(fs, "the hub refused the hello, unreadably");
		return;
	}
	code = e.code != NULL ? e.code : "";
	log_warn("hub-error", "code=%s message=%s", log_q(code),
	    log_q(e.message));
	if (strcmp(code, "unauthorized") == 0) {
		fs->fatal = FATAL_UNAUTHORIZED;
		fs_fail(fs, "the hub does not accept this device's identity; "
		    "enroll it again");
	} else if (strcmp(code, "version_unsupported") == 0) {
		fs->fatal = FATAL_VERSION;
		fs_fail(fs, "the hub does not speak this device's protocol "
		    "version; upgrade one of them");
	} else
		fs_fail(fs, "the hub refused the hello");
	frame_clear_payload(FRAME_ERROR, &e);
}

static void
fs_on_welcome(struct fs *fs, const struct frame_env *env)
{
	struct frame_welcome *w = &fs->welcome;

	if (frame_decode_payload(&fs->jx, env, w) != 0) {
		fs_fail(fs, "unreadable welcome");
		return;
	}
	fs->has_welcome = 1;
	if (w->protocol_version < PROTO_MIN ||
	    w->protocol_version > fs->conf.max_protocol) {
		fs_fail(fs, "the hub chose protocol version %lld",
		    (long long)w->protocol_version);
		return;
	}
	fs->negotiated = (int)w->protocol_version;
	/* What follows waits until the session is up. */
	fl_pause(fs->link, 1);
	if (w->credential.len == 0) {
		fs_put_event(fs, FE_WELCOME);
		return;
	}
	if (w->executor_id == NULL || !util_is_id(w->executor_id) ||
	    w->credential.len > MAX_TOKEN_LEN)
		fs_fail(fs, "a credential that cannot be used");
	else
		fs_put_event(fs, FE_FRESH);
}

void
fs_on_message(void *arg, const uint8_t *data, size_t len)
{
	struct fs *fs = arg;
	struct frame_env env;
	int r;

	if ((fs->state != FS_HELLO && fs->state != FS_UP) ||
	    fs->why[0] != '\0')
		return;		/* closing: nobody is interested */
	r = frame_decode_envelope(&fs->jx, data, len, &env);
	if (r == CL_NOMEM || r == CL_FORMAT) {
		log_warn("frame-bad", "len=%zu reason=%s", len,
		    r == CL_NOMEM ? "\"out of memory\"" : log_q(fs->jx.why));
		fs_fail(fs, "protocol error");
		return;
	}
	fs->heard_at = util_now_ms();
	if (fs->state == FS_HELLO) {
		if (r == 0 && env.type == FRAME_WELCOME)
			fs_on_welcome(fs, &env);
		else if (r == 0 && env.type == FRAME_ERROR)
			fs_on_refusal(fs, &env);
		else
			fs_fail(fs, "the hub did not answer the hello");
		return;
	}
	log_debug("frame-in", "type=%s id=%s handle=%s len=%zu",
	    log_q(env.type_name), log_q(env.id), log_q(env.handle),
	    env.payload_len);
	if (r == CL_LIMIT)
		fs_send_error(fs, env.id, "protocol", fs->jx.why);
	else if (r == 0)
		ff_on_frame(fs, &env);
	fs_wake(fs);
}
