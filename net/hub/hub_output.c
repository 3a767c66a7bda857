/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The output of a live session's workloads: whose files are open, what is
 * reported to the monitor and acknowledged to the device.  Runs in
 * cloopd-net.  Files are asked for when there is something to write, since
 * descriptors are few and a device may come back with all its workloads.
 */
#include "hub_session.h"

#include <string.h>

#include "common/base/crash.h"
#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "hub.h"

#define HS_AGAIN_MS 1000	/* files that could not be had, once more */
#define HS_ASK_MS 60000		/* longer than an answer takes */

/* ---------------------------------------------------------------- reports */

void
hs_report_progress(void *ctx, struct hlog *h)
{
	struct buf b;

	buf_init(&b, 32);
	buf_put_u64(&b, h->number);
	buf_put_u64(&b, h->stored);
	buf_put_u8(&b, h->gapped);
	CRASH_POINT("log.told");
	(void)hub_send(ctx, MSG_HANDLE_PROGRESS, 0, &b, -1);
	buf_clear(&b);
}

int
hs_put_ack(struct hs *s, struct hlog *h)
{
	struct frame_log_ack ack = { (int64_t)h->indexed };

	h->acked = h->indexed;
	CRASH_POINT("ack.hub");
	return hs_put_frame(s, FRAME_LOG_ACK, s->negotiated, NULL, h->id,
	    &ack);
}

void
hs_confirm_end(struct hs *s, struct hlog *h)
{
	struct frame_log_ack ack;

	CRASH_POINT("end.confirmed");
	h->saved = 1;
	/* All of it, whatever was given up: nothing more is wanted. */
	ack.offset = (int64_t)(h->final > h->stored ? h->final : h->stored);
	if (s->state == HST_LIVE)
		(void)hs_put_frame(s, FRAME_LOG_ACK, s->negotiated, NULL,
		    h->id, &ack);
}

void
hs_flush_logs(struct hs *s, int ack)
{
	struct hlog *h = NULL;
	struct hub *hub = s->hub;

	while ((h = hlog_next(&s->logs, h)) != NULL) {
		/* What is not on file is not acknowledged. */
		if ((ack ? hlog_settle : hlog_flush)(&hub->logs, h,
		    hub->now) != CL_OK)
			continue;
		hlog_report(h, hub->now, hs_report_progress, hub);
		if (ack && h->indexed > h->acked)
			(void)hs_put_ack(s, h);
	}
}

/* ------------------------------------------------------------- its files */

/* What cannot be told now is no reason to end anything: the device comes
 * back and offers it again. */
void
hs_end_later(struct hs *s)
{
	hs_set_end(s, AGENT_UNREACHABLE, WS_CODE_TRY_LATER,
	    "this hub cannot tell now; come again");
	hs_run(s, HE_CLOSE);
}

/*
 * The monitor gave the files of a handle, or cannot now.  A session that
 * waits goes on with the frame that asked: without files its output waits in
 * memory, as for a disk that fails, and is not acknowledged.
 */
static void
hs_on_files(void *ctx, uint64_t conn, struct imsg *m)
{
	struct hub *hub = ctx;
	struct hs *s = hs_find_conn(&hub->sessions, conn);
	struct hlog *h = NULL;
	uint64_t number = 0;
	int result = FILES_LATER;

	if (m != NULL) {
		number = buf_get_u64(&m->body);
		h = hlog_find(&hub->logs, number);
		result = buf_get_u8(&m->body);
		if (buf_end(&m->body) != CL_OK)
			fatal("monitor-message",
			    "type=HANDLE_FILES_ANS reason=malformed");
	}
	if (h != NULL) {
		h->ask_at = h->opened ? 0 : hub->now + HS_AGAIN_MS;
		if (result == FILES_GONE)
			hlog_shut(&hub->logs, h, hub->now);
	}
	if (s == NULL || s->state != HST_LIVE || s->files_of == 0 ||
	    (m != NULL && s->files_of != number))
		return;
	s->paused = 0;
	s->files_of = 0;
	if (m == NULL) {
		hs_end_later(s);
		return;
	}
	s->held = 1;
	s->more = 1;
	hs_set_dirty(s);
}

int
hs_ask_files(struct hs *s, struct hlog *h, int renew)
{
	struct buf b;
	int r;

	buf_init(&b, 17);
	buf_put_u64(&b, s->session);
	buf_put_u64(&b, h->number);
	buf_put_u8(&b, (uint8_t)renew);
	r = ask_start(&s->hub->asks, &s->asks, MSG_HANDLE_FILES, &b, -1,
	    hs_on_files, s->hub->now);
	buf_clear(&b);
	h->ask_at = s->hub->now + (r == CL_OK ? HS_ASK_MS : HS_AGAIN_MS);
	return r;
}

enum hs_event
hs_wait_files(struct hs *s, struct hlog *h)
{
	if (hs_ask_files(s, h, 0) != CL_OK) {
		hs_set_end(s, AGENT_UNREACHABLE, WS_CODE_TRY_LATER, "busy");
		return HE_CLOSE;
	}
	s->paused = 1;
	s->files_of = h->number;
	return HE_NONE;
}

/* Output waits in memory for files; nobody else may come to ask. */
void
hs_ask_waiting(struct hub *hub)
{
	struct hlog *h;
	struct hs *s;

	TAILQ_FOREACH(h, &hub->logs.busy, link)
		if (hlog_needs_files(h) && h->failing &&
		    hub->now >= h->ask_at && (s = hs_find(&hub->sessions,
		    h->session)) != NULL && s->state == HST_LIVE)
			(void)hs_ask_files(s, h, 0);
}
