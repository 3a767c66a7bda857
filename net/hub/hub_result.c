/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Work that comes back: result_chunk, result and project_result of a live
 * session.  Runs in cloopd-net.  The rules are hub_take.c's; the monitor
 * opens the file and keeps the budget, which is why a chunk may wait, with
 * everything behind it, for one question to be answered.
 */
#include "hub_session.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/utf8.h"
#include "common/base/util.h"
#include "hub.h"
#include "hub_logredact.h"
#include "hub_take.h"

#define TAKE_REFUSED_CODE "write_back_failed"
#define TAKE_AGAIN_MS 1000

/* --------------------------------------------------------------- messages */

void
hs_on_handle_work(struct hub *hub, struct imsg *m, struct msg_handle_work *v)
{
	struct hlog *h = hlog_find(&hub->logs, v->handle);

	(void)m;
	if (h == NULL)
		return;
	htake_free(h->take);
	if ((h->take = htake_new(v)) == NULL)
		log_error("handle-work", "handle=%s reason=out-of-memory",
		    log_q(h->id));
}

void
hs_on_result_file(struct hub *hub, struct imsg *m, struct msg_handle *v)
{
	struct hlog *h = hlog_find(&hub->logs, v->handle);

	if (h == NULL || h->take == NULL)
		return;
	if (htake_set_file(h->take, imsg_take_fd(m)) != CL_OK)
		fatal("monitor-message", "type=RESULT_FILE reason=no file");
}

static void
hs_report_failed(struct hs *s, const struct hlog *h)
{
	struct msg_result_failed body = { s->session, h->number,
	    h->take->failure };

	log_warn("result-failed", "session=%llu handle=%s reason=%s",
	    (unsigned long long)s->session, log_q(h->id),
	    log_q(h->take->failure));
	HUB_SEND(s->hub, RESULT_FAILED, &body);
}

static void
hs_fail_take(struct hs *s, struct hlog *h, const char *why)
{
	htake_fail(h->take, why);
	hs_report_failed(s, h);
}

/*
 * The connection an answer is for, with the frame that waits still in
 * s->msg; NULL: it went, or it is closed because none came.
 */
static struct hs *
hs_find_waiting(struct hub *hub, uint64_t conn, const union msg_any *v,
    struct frame_env *env)
{
	struct hs *s = hs_find_conn(&hub->sessions, conn);

	if (s == NULL || s->state != HST_LIVE || !s->paused)
		return NULL;
	s->paused = 0;
	if (v != NULL && frame_decode_envelope(&hub->jx, s->msg, s->msg_len,
	    env) == CL_OK)
		return s;
	hs_set_end(s, AGENT_UNREACHABLE, WS_CODE_INTERNAL, "busy");
	hs_run(s, HE_CLOSE);
	return NULL;
}

/* The monitor has no descriptor or no disk for it now: for a while that is
 * a pause, and then it fails.  1: it is judged again later. */
static int
hs_is_later(struct hs *s, struct hlog *h, int64_t verdict)
{
	int64_t now = s->hub->now;

	if (h == NULL || h->take == NULL || verdict != TAKE_LATER) {
		if (h != NULL && h->take != NULL)
			h->take->wait_until = 0;
		return 0;
	}
	if (h->take->wait_until == 0)
		h->take->wait_until = now + HLOG_HOLD_MS;
	if (now >= h->take->wait_until)
		return 0;
	s->paused = 1;
	s->again_at = now + TAKE_AGAIN_MS;
	s->hub->sessions.nagain++;
	return 1;
}

/* ----------------------------------------------------------- result_chunk */

static void
hs_use_grant(struct hs *s, struct hlog *h, const struct msg_result_take_ans *v)
{
	struct htake *t = h->take;

	if (v->result == TAKE_AGENT)
		hs_fail_take(s, h, "the room for this device's returned work "
		    "is used up (WriteBackBudget)");
	else if (v->result == TAKE_TOTAL)
		hs_fail_take(s, h, "the hub's room for returned work is used "
		    "up (WriteBackTotal)");
	else if (v->result != TAKE_OK || t->fd == -1 ||
	    htake_grant(t, t->restarting, (uint32_t)v->granted) != CL_OK)
		hs_fail_take(s, h, "the hub cannot store the bundle");
	t->restarting = 0;
}

static void
hs_on_taken(void *ctx, uint64_t conn, union msg_any *v)
{
	struct hub *hub = ctx;
	struct frame_env env;
	struct hlog *h;
	struct hs *s;

	if ((s = hs_find_waiting(hub, conn, v, &env)) == NULL)
		return;
	h = hlog_find_id(&s->logs, env.handle);
	if (hs_is_later(s, h, v->RESULT_TAKE_ANS.result))
		return;
	if (h != NULL && h->take != NULL)
		hs_use_grant(s, h, &v->RESULT_TAKE_ANS);
	/* The chunk is judged once more, now with room or a reason. */
	s->held = 1;
	s->more = 1;
	hs_set_dirty(s);
}

static enum hs_event
hs_ask_room(struct hs *s, struct hlog *h, size_t len, int restart)
{
	struct msg_result_take body = { .session = s->session,
	    .handle = h->number, .restart = restart };
	uint32_t min, max;

	htake_get_need(len, &min, &max);
	h->take->restarting = restart;
	body.min = min;
	body.max = max;
	if (HUB_ASK(s, RESULT_TAKE, &body, -1, hs_on_taken) != CL_OK) {
		hs_set_end(s, AGENT_UNREACHABLE, WS_CODE_INTERNAL, "busy");
		return HE_CLOSE;
	}
	s->paused = 1;
	return HE_NONE;
}

enum hs_event
hs_take_chunk(struct hs *s, const struct frame_env *env,
    const struct frame_result_chunk *c, struct hlog *h)
{
	const char *why;

	switch (htake_check(h->take, h->closed, (uint64_t)c->offset,
	    c->data_len, &why)) {
	case HTAKE_ROOM:
		return hs_ask_room(s, h, c->data_len, 0);
	case HTAKE_RESTART:
		return hs_ask_room(s, h, c->data_len, 1);
	case HTAKE_FITS:
		if (htake_put(h->take, c->data, c->data_len) == CL_OK)
			return HE_NONE;
		log_error("result-write-failed", "handle=%s reason=%s",
		    log_q(h->id), cl_strerror(CL_SYSTEM));
		why = "the hub cannot store the bundle";
		hs_fail_take(s, h, why);
		break;
	case HTAKE_FAILS:
		hs_fail_take(s, h, why);
		break;
	case HTAKE_REFUSED:
		break;
	}
	(void)hs_put_error(s, env->id, TAKE_REFUSED_CODE, "%s", why);
	return HE_NONE;
}

/* ----------------------------------------------------------------- result */

/* Prose of a device: what was lent to it is taken out, and it is cut. */
static void
hs_clean_prose(const struct hlog *h, const char *text, char *dst,
    size_t dstlen)
{
	hlog_redact_text(h, text, dst, dstlen);
	dst[utf8_cut(dst, strlen(dst))] = '\0';
}

enum hs_event
hs_take_result(struct hs *s, const struct frame_env *env,
    const struct frame_result *f, struct hlog *h)
{
	struct msg_result_end body = { s->session, h->number, { 0 } };
	struct work_end *end = &body.end;
	char text[WORK_TEXT_MAX + 1];
	const char *why;

	why = htake_end(h->take, h->closed, &f->result, end);
	if (why != NULL)
		(void)hs_put_error(s, env->id, TAKE_REFUSED_CODE, "%s", why);
	if (why != NULL && !end->failed)
		return HE_NONE;
	hs_clean_prose(h, end->text != NULL ? end->text : "", text,
	    sizeof(text));
	end->text = text;
	HUB_SEND(s->hub, RESULT_END, &body);
	log_info("result", "session=%llu handle=%s mode=%s bytes=%llu "
	    "failed=%d", (unsigned long long)s->session, log_q(h->id),
	    log_q(end->mode), (unsigned long long)end->bytes, end->failed);
	return HE_NONE;
}

/* --------------------------------------------------------- project_result */

static void
hs_on_project(void *ctx, uint64_t conn, union msg_any *v)
{
	struct hub *hub = ctx;
	struct frame_env env;
	struct hs *s;

	if ((s = hs_find_waiting(hub, conn, v, &env)) == NULL)
		return;
	if (hs_is_later(s, hlog_find_id(&s->logs, env.handle),
	    v->PROJECT_ANS.result))
		return;
	if (v->PROJECT_ANS.result != TAKE_OK)
		(void)hs_put_error(s, env.id, "protocol", "the hub has no "
		    "room for this project result");
	s->more = 1;
	hs_set_dirty(s);
}

static enum hs_event
hs_send_project(struct hs *s, const struct frame_project_result *p,
    struct hlog *h)
{
	char error[WORK_PROJECT_ERROR_MAX + 1];
	struct msg_project body = { s->session, h->number, p->data_len,
	    error };
	int fd, r;

	r = util_make_memfd(p->data, p->data_len, &fd);
	if (r == CL_OK) {
		hs_clean_prose(h, p->error != NULL ? p->error : "", error,
		    sizeof(error));
		r = HUB_ASK(s, PROJECT, &body, fd, hs_on_project);
	}
	if (r != CL_OK) {
		hs_set_end(s, AGENT_UNREACHABLE, WS_CODE_INTERNAL, "busy");
		return HE_CLOSE;
	}
	s->paused = 1;
	return HE_NONE;
}

enum hs_event
hs_take_project(struct hs *s, const struct frame_env *env,
    const struct frame_project_result *p, struct hlog *h)
{
	const char *why = NULL;

	if (h->take == NULL || !h->take->seeded)
		why = "no project result was asked for";
	else if (s->negotiated < 13)
		why = "a project result needs protocol 13";
	else if (h->closed)
		why = "the workload is over";
	if (why == NULL)
		return hs_send_project(s, p, h);
	(void)hs_put_error(s, env->id, "protocol", "%s", why);
	return HE_NONE;
}
