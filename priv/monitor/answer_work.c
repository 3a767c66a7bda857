/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Messages about work that goes and comes: workers ask for room and report
 * results, operators collect them.  A worker gets the unfinished bundle of a
 * handle that its own session has, and nothing else; what it reports can
 * only spoil that handle's own result.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "common/model/ctlmsg.h"
#include "common/model/workmsg.h"
#include "common/msg/msgcat.h"
#include "answers.h"
#include "ctlout.h"
#include "hfiles.h"
#include "hwork.h"

/* --- workers --- */

/* May bytes of a bundle come for this handle now? */
static int
answer_is_taking(const struct handle *h)
{
	return h != NULL && h->work != NULL && !handle_is_closed(h) &&
	    h->work->state == WORK_WAITING &&
	    (h->work->asked == WORK_BUNDLE || h->work->asked == WORK_UNKNOWN);
}

/* Give this session's worker the file; what an earlier one wrote stays. */
static int
answer_give_file(struct monitor *mon, struct child *c, struct handle *h)
{
	struct work *w = h->work;
	struct msg_handle body = { h->row.number };
	int fd, r;

	if (w->session == h->session)
		return CL_OK;
	r = w->bundle ? hfiles_open(mon->conf.state_dir, h->row.handle_id,
	    HFILES_PART, 1, &fd) : hfiles_create(mon->conf.state_dir,
	    h->row.handle_id, HFILES_PART, &fd);
	if (r != CL_OK) {
		log_error("result-file", "handle=%s reason=%s",
		    log_q(h->row.handle_id), log_q(cl_strerror(r)));
		return r;
	}
	w->bundle = 1;
	w->session = h->session;
	MON_SEND(c, RESULT_FILE, 0, &body, fd);
	return CL_OK;
}

int
answer_result_take(struct monitor *mon, struct child *c, struct imsg *m,
    msg_of_RESULT_TAKE *v)
{
	struct msg_result_take_ans body = { TAKE_FAILED, 0 };
	uint32_t granted = 0;
	struct handle *h;
	int r;

	if (v->max < v->min)
		return CL_FORMAT;
	r = answer_find_session_handle(mon, c, v->session, v->handle, &h);
	if (r != CL_OK)
		return r;
	if (answer_is_taking(h)) {
		r = answer_give_file(mon, c, h);
		if (r == CL_OK)
			body.result = work_reserve(mon, h, v->restart,
			    (uint32_t)v->min, (uint32_t)v->max, &granted);
		else if (r == CL_SYSTEM)
			body.result = TAKE_LATER;
	}
	body.granted = granted;
	MON_SEND(c, RESULT_TAKE_ANS, m->id, &body, -1);
	return CL_OK;
}

int
answer_result_failed(struct monitor *mon, struct child *c, struct imsg *m,
    msg_of_RESULT_FAILED *v)
{
	struct handle *h;
	int r;

	(void)m;
	r = answer_find_session_handle(mon, c, v->session, v->handle, &h);
	if (r == CL_OK && answer_is_taking(h))
		work_fail_bundle(mon, h, v->text);
	return r;
}

int
answer_result_end(struct monitor *mon, struct child *c, struct imsg *m,
    msg_of_RESULT_END *v)
{
	struct handle *h;
	int r;

	(void)m;
	r = answer_find_session_handle(mon, c, v->session, v->handle, &h);
	if (r == CL_OK && h != NULL && h->work != NULL &&
	    h->work->asked != WORK_NONE &&
	    h->work->state == WORK_WAITING && !handle_is_closed(h))
		r = work_end_bundle(mon, h, &v->end);
	return r;
}

int
answer_project(struct monitor *mon, struct child *c, struct imsg *m,
    msg_of_PROJECT *v)
{
	struct msg_project_ans body = { TAKE_FAILED };
	size_t len = (size_t)v->len;
	uint8_t *data = NULL;
	struct handle *h;
	int r;

	if ((len > 0) == (v->error[0] != '\0'))
		return CL_FORMAT;
	r = answer_find_session_handle(mon, c, v->session, v->handle, &h);
	if (r == CL_OK && len > 0)
		r = util_load_memfd(m->fd, len, WORK_PROJECT_MAX, &data);
	if (r != CL_OK)
		return r;
	if (h != NULL && h->work != NULL && h->work->seeded &&
	    !handle_is_closed(h))
		body.result = work_save_project(mon, h, data, len, v->error);
	free(data);
	MON_SEND(c, PROJECT_ANS, m->id, &body, -1);
	return CL_OK;
}

/* --- operators --- */

/* A handle that is in the table, or the record of one that no longer is;
 * then h is NULL and *wp the caller's to free.  Otherwise it was refused. */
static int
answer_find_work(struct monitor *mon, uint64_t id, const char *handle_id,
    struct handle **hp, struct work **wp, struct store_handle *row)
{
	int r;

	*wp = NULL;
	memset(row, 0, sizeof(*row));
	if ((*hp = handles_find_id(&mon->handles, handle_id)) != NULL)
		return CL_OK;
	if ((r = store_find_handle(mon->store, handle_id, row)) == CL_OK)
		return work_parse_meta(row->meta, wp);
	if (r == CL_NOTFOUND)
		ctlout_refuse(mon, id, "handle_not_found",
		    "there is no handle %s", handle_id);
	else
		ctlout_refuse_store(mon, id);
	return r;
}

/* Why there is nothing to hand out; 0: there is. */
static int
answer_refuse_bundle(struct monitor *mon, uint64_t id,
    const struct work_result *res, int any)
{
	static const char code[] = "write_back_unavailable";

	if (!any || res->mode[0] == '\0')
		ctlout_refuse(mon, id, code, "this workload was not asked to "
		    "return work");
	else if (!res->done)
		ctlout_refuse(mon, id, code, "the workload has not returned "
		    "its work yet");
	else if (res->error != NULL && res->error[0] != '\0')
		ctlout_refuse(mon, id, code, "nothing came back: %.900s",
		    res->error);
	else if (res->skipped)
		ctlout_refuse(mon, id, code, "there is nothing to land: "
		    "%.900s", res->skip_reason != NULL &&
		    res->skip_reason[0] != '\0' ? res->skip_reason :
		    "the device gave no reason");
	else if (strcmp(res->mode, "push") == 0)
		ctlout_refuse(mon, id, code, "the device pushed branch %s "
		    "itself; fetch it from the repository",
		    res->branch != NULL ? res->branch : "");
	else if (!res->held)
		ctlout_refuse(mon, id, code, "the work was collected before, "
		    "or released 15 minutes after the workload ended");
	else
		return 0;
	return 1;
}

static void
answer_send_work_file(struct monitor *mon, uint64_t id,
    const char *handle_id, enum hfiles_which which)
{
	struct ctl_file row = { (char *)(uintptr_t)handle_id };
	int fd;

	if (hfiles_open(mon->conf.state_dir, handle_id, which, 0, &fd) !=
	    CL_OK) {
		ctlout_refuse(mon, id, "internal", "the returned work of %s "
		    "cannot be opened: %s", handle_id,
		    cl_strerror(CL_SYSTEM));
		return;
	}
	CTL_ROW(mon, id, ROW_WORK_FILE, &row, fd);
	ctlout_send_done(mon, id);
}

/* What was asked of the work of one handle. */
static void
answer_result_what(struct monitor *mon, uint64_t id, int what,
    const char *handle_id, const struct work *w, int closed)
{
	struct work_result res;
	int any = work_get_result(w, handle_id, closed, &res);

	if (any)
		CTL_ROW(mon, id, ROW_RESULT, &res, -1);
	if (what == CTL_WORK_SHOW)
		ctlout_send_done(mon, id);
	else if (what == CTL_WORK_BUNDLE) {
		if (!answer_refuse_bundle(mon, id, &res, any))
			answer_send_work_file(mon, id, handle_id,
			    HFILES_BUNDLE);
	} else if (!any || !res.project_held)
		ctlout_refuse(mon, id, "write_back_unavailable",
		    "no project result is held%s%.900s", any &&
		    res.project_error != NULL && res.project_error[0] != '\0' ?
		    ": " : "", any && res.project_error != NULL ?
		    res.project_error : "");
	else
		answer_send_work_file(mon, id, handle_id, HFILES_PROJECT);
}

void
answer_ctl_result(struct monitor *mon, struct ctl_client *cl, struct imsg *m,
    struct msg_ctl_work *v)
{
	struct store_handle row;
	struct handle *h;
	struct work *w;
	int what = (int)v->what;

	(void)cl;
	if (answer_find_work(mon, m->id, v->handle, &h, &w, &row) != CL_OK)
		return;
	if (h != NULL)
		answer_result_what(mon, m->id, what, h->row.handle_id,
		    h->work, handle_is_closed(h));
	else
		answer_result_what(mon, m->id, what, row.handle_id, w, 1);
	work_free(w);
	store_handle_clear(&row);
}

void
answer_ctl_collected(struct monitor *mon, struct ctl_client *cl,
    struct imsg *m, struct msg_ctl_work *v)
{
	struct handle *h = handles_find_id(&mon->handles, v->handle);
	int what = (int)v->what;

	if (what == CTL_WORK_SHOW) {
		ctlout_refuse(mon, m->id, "protocol", "nothing was taken");
		return;
	}
	if (h != NULL && h->work != NULL && h->work->state == WORK_DONE &&
	    what == CTL_WORK_BUNDLE)
		work_drop_bundle(mon, h);
	else if (h != NULL && what == CTL_WORK_PROJECT)
		work_drop_project(mon, h);
	if (h != NULL && store_add_event(mon->store, util_wall_ns(), cl->actor,
	    "workload.result_collected", "allow", "handle", h->row.handle_id,
	    "executor_id", h->row.agent_id, "what", what == CTL_WORK_BUNDLE ?
	    "bundle" : "project", (char *)NULL) != CL_OK)
		mon_set_error(mon, store_error(mon->store));
	ctlout_send_done(mon, m->id);
}

void
answer_ctl_branch(struct monitor *mon, struct ctl_client *cl, struct imsg *m,
    struct msg_memfd *v)
{
	if (cl->has_branch)
		close(cl->branch_fd);
	cl->branch_fd = imsg_take_fd(m);
	cl->branch_len = (uint32_t)v->len;
	cl->has_branch = 1;
	ctlout_send_done(mon, m->id);
}
