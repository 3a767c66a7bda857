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

static void
hs_on_work(struct hub *hub, struct imsg *m)
{
	char branch[WORK_BRANCH_MAX + 1], failure[160];
	struct hlog *h;
	uint64_t cap;
	int asked, seeded, over;

	h = hlog_find(&hub->logs, buf_get_u64(&m->body));
	asked = buf_get_u8(&m->body);
	cap = buf_get_u64(&m->body);
	seeded = buf_get_bool(&m->body);
	over = buf_get_bool(&m->body);
	buf_get_str(&m->body, branch, sizeof(branch) - 1);
	buf_get_str(&m->body, failure, sizeof(failure) - 1);
	if (buf_end(&m->body) != CL_OK || asked > WORK_UNKNOWN)
		fatal("monitor-message", "type=HANDLE_WORK reason=malformed");
	if (h == NULL)
		return;
	htake_free(h->take);
	if ((h->take = htake_new(asked, cap, seeded, over, branch,
	    failure)) == NULL)
		log_error("handle-work", "handle=%s reason=out-of-memory",
		    log_q(h->id));
}

static void
hs_on_result_file(struct hub *hub, struct imsg *m)
{
	struct hlog *h = hlog_find(&hub->logs, buf_get_u64(&m->body));

	if (buf_end(&m->body) != CL_OK)
		fatal("monitor-message", "type=RESULT_FILE reason=malformed");
	if (h == NULL || h->take == NULL)
		return;
	if (htake_set_file(h->take, imsg_take_fd(m)) != CL_OK)
		fatal("monitor-message", "type=RESULT_FILE reason=no file");
}

void
hs_on_work_message(struct hub *hub, struct imsg *m)
{
	if (m->type == MSG_HANDLE_WORK)
		hs_on_work(hub, m);
	else if (m->type == MSG_RESULT_FILE)
		hs_on_result_file(hub, m);
	else
		hs_on_branch_file(hub, m);
}

static void
hs_report_failed(struct hs *s, const struct hlog *h)
{
	struct buf b;

	log_warn("result-failed", "session=%llu handle=%s reason=%s",
	    (unsigned long long)s->session, log_q(h->id),
	    log_q(h->take->failure));
	buf_init(&b, 512);
	buf_put_u64(&b, s->session);
	buf_put_u64(&b, h->number);
	buf_put_str(&b, h->take->failure);
	(void)hub_send(s->hub, MSG_RESULT_FAILED, 0, &b, -1);
	buf_clear(&b);
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
hs_find_waiting(struct hub *hub, uint64_t conn, const struct imsg *m,
    struct frame_env *env)
{
	struct hs *s = hs_find_conn(&hub->sessions, conn);

	if (s == NULL || s->state != HST_LIVE || !s->paused)
		return NULL;
	s->paused = 0;
	if (m != NULL && frame_decode_envelope(&hub->jx, s->msg, s->msg_len,
	    env) == CL_OK)
		return s;
	hs_set_end(s, AGENT_UNREACHABLE, WS_CODE_INTERNAL, "busy");
	hs_run(s, HE_CLOSE);
	return NULL;
}

/* The monitor has no descriptor or no disk for it now: for a while that is
 * a pause, and then it fails.  1: it is judged again later. */
static int
hs_is_later(struct hs *s, struct hlog *h, int verdict)
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
hs_use_grant(struct hs *s, struct hlog *h, int verdict, uint32_t granted)
{
	struct htake *t = h->take;

	if (verdict == TAKE_AGENT)
		hs_fail_take(s, h, "the room for this device's returned work "
		    "is used up (WriteBackBudget)");
	else if (verdict == TAKE_TOTAL)
		hs_fail_take(s, h, "the hub's room for returned work is used "
		    "up (WriteBackTotal)");
	else if (verdict != TAKE_OK || t->fd == -1 ||
	    htake_grant(t, t->restarting, granted) != CL_OK)
		hs_fail_take(s, h, "the hub cannot store the bundle");
	t->restarting = 0;
}

static void
hs_on_taken(void *ctx, uint64_t conn, struct imsg *m)
{
	struct hub *hub = ctx;
	struct frame_env env;
	struct hlog *h;
	struct hs *s;
	uint32_t granted;
	int verdict;

	if ((s = hs_find_waiting(hub, conn, m, &env)) == NULL)
		return;
	verdict = buf_get_u8(&m->body);
	granted = buf_get_u32(&m->body);
	if (buf_end(&m->body) != CL_OK)
		fatal("monitor-message",
		    "type=RESULT_TAKE_ANS reason=malformed");
	h = hlog_find_id(&s->logs, env.handle);
	if (hs_is_later(s, h, verdict))
		return;
	if (h != NULL && h->take != NULL)
		hs_use_grant(s, h, verdict, granted);
	/* The chunk is judged once more, now with room or a reason. */
	s->held = 1;
	s->more = 1;
	hs_set_dirty(s);
}

static enum hs_event
hs_ask_room(struct hs *s, struct hlog *h, size_t len, int restart)
{
	uint32_t min, max;
	struct buf b;
	int r;

	htake_get_need(len, &min, &max);
	h->take->restarting = restart;
	buf_init(&b, 32);
	buf_put_u64(&b, s->session);
	buf_put_u64(&b, h->number);
	buf_put_u8(&b, (uint8_t)restart);
	buf_put_u32(&b, min);
	buf_put_u32(&b, max);
	r = ask_start(&s->hub->asks, &s->asks, MSG_RESULT_TAKE, &b, -1,
	    hs_on_taken, s->hub->now);
	buf_clear(&b);
	if (r != CL_OK) {
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
	char text[WORK_TEXT_MAX + 1];
	struct work_end end;
	const char *why;
	struct buf b;

	why = htake_end(h->take, h->closed, &f->result, &end);
	if (why != NULL)
		(void)hs_put_error(s, env->id, TAKE_REFUSED_CODE, "%s", why);
	if (why != NULL && !end.failed)
		return HE_NONE;
	hs_clean_prose(h, end.text != NULL ? end.text : "", text,
	    sizeof(text));
	end.text = text;
	buf_init(&b, MSG_BODY_MAX);
	buf_put_u64(&b, s->session);
	buf_put_u64(&b, h->number);
	field_put(&work_end_table, &end, &b);
	(void)hub_send(s->hub, MSG_RESULT_END, 0, &b, -1);
	buf_clear(&b);
	log_info("result", "session=%llu handle=%s mode=%s bytes=%llu "
	    "failed=%d", (unsigned long long)s->session, log_q(h->id),
	    log_q(end.mode), (unsigned long long)end.bytes, end.failed);
	return HE_NONE;
}

/* --------------------------------------------------------- project_result */

static void
hs_on_project(void *ctx, uint64_t conn, struct imsg *m)
{
	struct hub *hub = ctx;
	struct frame_env env;
	struct hs *s;
	int verdict;

	if ((s = hs_find_waiting(hub, conn, m, &env)) == NULL)
		return;
	verdict = buf_get_u8(&m->body);
	if (buf_end(&m->body) != CL_OK)
		fatal("monitor-message", "type=PROJECT_ANS reason=malformed");
	if (hs_is_later(s, hlog_find_id(&s->logs, env.handle), verdict))
		return;
	if (verdict != TAKE_OK)
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
	struct buf b;
	int fd, r;

	r = util_make_memfd(p->data, p->data_len, &fd);
	if (r == CL_OK) {
		hs_clean_prose(h, p->error != NULL ? p->error : "", error,
		    sizeof(error));
		buf_init(&b, MSG_BODY_MAX);
		buf_put_u64(&b, s->session);
		buf_put_u64(&b, h->number);
		buf_put_u32(&b, (uint32_t)p->data_len);
		buf_put_str(&b, error);
		r = ask_start(&s->hub->asks, &s->asks, MSG_PROJECT, &b, fd,
		    hs_on_project, s->hub->now);
		buf_clear(&b);
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
