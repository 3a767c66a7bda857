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

/*
 * What is in both files: from there a device goes on after we died, and what
 * the log holds beyond its index is not believed by the next worker.
 */
void
hs_report_progress(void *ctx, struct hlog *h)
{
	struct msg_handle_progress body = { .handle = h->number,
	    .received = h->indexed, .gapped = h->gapped };

	CRASH_POINT("log.told");
	HUB_SEND(ctx, HANDLE_PROGRESS, &body);
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
hs_on_files(void *ctx, uint64_t conn, union msg_any *v)
{
	struct hub *hub = ctx;
	const struct msg_handle_files_ans *ans = v != NULL ?
	    &v->HANDLE_FILES_ANS : NULL;
	struct hs *s = hs_find_conn(&hub->sessions, conn);
	struct hlog *h = ans != NULL ? hlog_find(&hub->logs, ans->handle) :
	    NULL;

	if (h != NULL) {
		h->ask_at = h->opened ? 0 : hub->now + HS_AGAIN_MS;
		if (ans->result == FILES_GONE)
			hlog_shut(&hub->logs, h, hub->now);
	}
	if (s == NULL || s->state != HST_LIVE || s->files_of == 0 ||
	    (ans != NULL && s->files_of != ans->handle))
		return;
	s->paused = 0;
	s->files_of = 0;
	if (ans == NULL) {
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
	struct msg_handle_files body = { .session = s->session,
	    .handle = h->number, .renew = renew };
	int r = HUB_ASK(s, HANDLE_FILES, &body, -1, hs_on_files);

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
