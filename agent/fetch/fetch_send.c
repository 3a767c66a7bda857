/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * What agentd-fetch says: frames to the hub, messages to the monitor.
 * Payloads are never logged.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/utf8.h"
#include "common/base/util.h"
#include "fetch_session.h"

#define FS_OUT_KEEP 65536	/* writer memory kept between frames */
#define FS_DETAIL_MAX 480	/* of a SESSION message */

int
fs_send(struct fs *fs, enum frame_type type, const char *id,
    const char *handle, const void *payload, uint64_t *posp)
{
	/* Before the welcome: readable for hubs of any age. */
	int v = fs->negotiated != 0 ? fs->negotiated : PROTO_MIN;
	int r;

	jsonw_reset(&fs->out);
	r = frame_encode(&fs->out, type, v, id, handle, payload);
	if (r != 0) {
		log_error("frame-out", "type=%s reason=\"%s\"",
		    frame_name(type), cl_strerror(r));
		return r;
	}
	log_debug("frame-out", "type=%s id=%s handle=%s len=%zu",
	    frame_name(type), log_q(id), log_q(handle), fs->out.len);
	r = fl_send(fs->link, fs->out.data, fs->out.len, posp);
	if (r == CL_LIMIT)
		fs_fail(fs, "the hub does not read what it asked for");
	else if (r != 0 && r != CL_STATE)
		fs_fail(fs, "cannot send: %s", cl_strerror(r));
	if (fs->out.cap > FS_OUT_KEEP)
		jsonw_clear(&fs->out);
	return r;
}

int
fs_send_error(struct fs *fs, const char *id, const char *code,
    const char *message)
{
	struct frame_error e = { .code = (char *)(uintptr_t)code,
	    .message = (char *)(uintptr_t)message };

	log_debug("frame-refused", "id=%s code=%s reason=%s", log_q(id), code,
	    log_q(message));
	return fs_send(fs, FRAME_ERROR, id, NULL, &e, NULL);
}

/* One offer for each workload that may go on, or is prepared. */
static int
fs_make_offers(struct fs *fs, struct frame_hello *h)
{
	struct caps_offer *o;
	struct fw *w;

	if (fs->nworks == 0)
		return CL_OK;
	if ((h->resume = calloc(fs->nworks, sizeof(*h->resume))) == NULL)
		return CL_NOMEM;
	TAILQ_FOREACH(w, &fs->works, entry) {
		/* Nobody of this session waits for its `started`. */
		w->held = 0;
		w->offered = 1;
		o = &h->resume[h->nresume++];
		o->handle_id = w->handle;
		o->started_at = w->started_at;
		o->log_offset = (int64_t)fo_get_total(w);
	}
	return CL_OK;
}

int
fs_send_hello(struct fs *fs)
{
	static char none[] = "";
	struct frame_hello h;
	int r;

	frame_init_payload(FRAME_HELLO, &h);
	h.protocol_version = fs->conf.max_protocol;
	/* A token has no identity yet. */
	h.agent_id = fs->conf.enrolling ? none : fs->conf.agent_id;
	h.name = fs->conf.name;
	h.agent_version = fs->conf.agent_version;
	h.capabilities = fs->caps;
	if ((r = fs_make_offers(fs, &h)) == 0)
		r = fs_send(fs, FRAME_HELLO, "hello", NULL, &h, NULL);
	free(h.resume);
	return r;
}

void
fs_ask_monitor(struct fs *fs, uint32_t type, uint64_t id,
    const struct buf *body, int fd)
{
	int r;

	if ((r = chan_send(&fs->chan, type, id, body, fd)) != 0)
		fatal("monitor-write", "type=%s reason=\"%s\"",
		    msgcat_name(type), cl_strerror(r));
}

void
fs_report_session(struct fs *fs, uint8_t link_state, const char *why)
{
	struct buf b;
	size_t len = strlen(why);

	if (len > FS_DETAIL_MAX)
		len = utf8_cut(why, FS_DETAIL_MAX);
	buf_init(&b, MSG_BODY_MAX);
	buf_put_u8(&b, link_state);
	buf_put_u16(&b, (uint16_t)fs->negotiated);
	buf_put_u8(&b, (uint8_t)(link_state == LINK_DOWN ? fs->fatal :
	    FATAL_NONE));
	buf_put_blob(&b, why, len);	/* a str has the same form */
	fs_ask_monitor(fs, MSG_SESSION, 0, &b, -1);
	buf_clear(&b);
}
