/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * What agentd-fetch may say to the monitor.  Each handler gets a decoded body
 * within its bounds and checks it against the monitor's own records;
 * CL_FORMAT from one of them kills the fetcher.  Nothing here parses what
 * the hub wrote: a spec arrives in its message form and is checked again.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include <bsd/stdlib.h>

#include <event2/event.h>

#include "common/base/crash.h"
#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/rule.h"
#include "common/base/util.h"
#include "common/model/caps.h"
#include "common/model/leasemsg.h"
#include "common/msg/msgcat.h"
#include "agentd.h"
#include "caps_detect.h"
#include "fetchctl.h"
#include "fetchmsg.h"
#include "kern.h"
#include "leasing.h"
#include "start.h"
#include "workloads.h"

int
fetchmsg_on_ready(struct fetchctl *f, struct imsg *m, union msg_any *v)
{
	int r;

	(void)m;
	if (v->FETCH_READY.version != MSGCAT_VERSION)
		return CL_FORMAT;
	event_del(f->timer);
	f->chan.state = f->is_stopping ? MS_STOPPING : MS_SERVING;
	f->is_serving = 1;
	if (!f->was_ready)
		(void)util_notify("READY=1");
	f->was_ready = 1;
	f->ready_at = util_now_ms();
	/* What it does not know it would not offer, and the hub gave it up:
	 * rather no session for a moment. */
	if ((r = workloads_announce(f->a->workloads)) != 0)
		fetchctl_pause(f, r);
	return CL_OK;
}

int
fetchmsg_on_stopped(struct fetchctl *f, struct imsg *m, union msg_any *v)
{
	(void)m;
	(void)v;
	return f->is_stopping ? CL_OK : CL_FORMAT;
}

int
fetchmsg_on_resolve(struct fetchctl *f, struct imsg *m, union msg_any *v)
{
	(void)v;
	resolve_start(&f->resolve, m->id, &f->a->url);
	return CL_OK;
}

int
fetchmsg_on_session(struct fetchctl *f, struct imsg *m, union msg_any *v)
{
	static const char *const links[] = { "?", "connecting", "up",
	    "down" };
	const char *detail = v->SESSION.detail;
	int state = (int)v->SESSION.state, fatal = (int)v->SESSION.fatal;

	(void)m;
	f->negotiated = (uint16_t)v->SESSION.negotiated;
	if (state == LINK_UP)
		f->backoff_ms = CHILD_BACKOFF_MIN_MS;
	if (state != f->link || fatal != FATAL_NONE || *detail != '\0')
		log_info("session", "link=%s version=%u detail=%s",
		    links[state], (unsigned int)f->negotiated,
		    log_q(*detail == '\0' ? NULL : detail));
	fetchctl_set_link(f, state);
	if (fatal == FATAL_NONE)
		return CL_OK;
	/* The hub will never collect what bye ended; after the other two an
	 * administrator may put things right, so that the workloads stay and
	 * are adopted. */
	log_error("refused", "reason=%s detail=%s remedy=%s",
	    fatal == FATAL_UNAUTHORIZED ? "unauthorized" :
	    fatal == FATAL_VERSION ? "version" : "bye", log_q(detail),
	    fatal == FATAL_VERSION ?
	    "\"upgrade this agent, or the hub if this device is newer\"" :
	    "\"remove the credential file and enroll again with a new "
	    "token\"");
	f->ops->stop(f->a, AGENTD_EXIT_REFUSED, fatal == FATAL_BYE);
	return CL_OK;
}

static void
fetchmsg_answer_enrolled(struct fetchctl *f, uint64_t id, int saved,
    const char *text)
{
	struct msg_enrolled_ans ans = { .saved = saved, .error = text };

	FETCHCTL_SEND(f, ENROLLED_ANS, id, 0, &ans, -1);
}

int
fetchmsg_on_enrolled(struct fetchctl *f, struct imsg *m, union msg_any *v)
{
	const char *agent_id = v->ENROLLED.agent_id;
	const char *credential = (const char *)v->ENROLLED.credential.data;
	int r;

	if (f->a->enrolled || !util_is_id(agent_id) || credential == NULL ||
	    !credential_is_bearer(credential))
		return CL_FORMAT;
	CRASH_POINT("enroll.save");
	r = startup_save_enrolled(f->a, agent_id, credential);
	if (r == 0) {
		fetchmsg_answer_enrolled(f, m->id, 1, "");
		(void)fetchctl_send_bearer(f);
		return CL_OK;
	}
	log_error("enroll", "result=failed path=%s reason=\"%s\" remedy=\""
	    "this token is spent: mint a new one and enroll again\"",
	    f->a->conf.credential_file,
	    r == CL_SYSTEM ? strerror(errno) : cl_strerror(r));
	fetchmsg_answer_enrolled(f, m->id, 0, "the credential could not be "
	    "saved on the device");
	f->ops->stop(f->a, 1, 0);
	return CL_OK;
}

int
fetchmsg_on_caps(struct fetchctl *f, struct imsg *m, union msg_any *v)
{
	struct msg_memfd ans;
	struct caps c;
	int fd, r;

	(void)v;
	caps_detect(f->a, &c);
	r = msg_make_memfd(&caps_table, &c, MAX_CAPS_LEN, &fd, &ans.len);
	caps_clear(&c);
	if (r == 0)
		FETCHCTL_SEND(f, DEV_CAPS_ANS, m->id, 0, &ans, fd);
	else
		log_error("capabilities", "reason=\"%s\"", cl_strerror(r));
	return CL_OK;
}

int
fetchmsg_on_start(struct fetchctl *f, struct imsg *m, union msg_any *v)
{
	struct workload_ask ask = { m->id, f->generation };
	const char *handle_id = v->DEV_START.handle_id;
	size_t len = (size_t)v->DEV_START.len;
	uint8_t *data;
	int r;

	if (!util_is_id(handle_id))
		return CL_FORMAT;
	if ((r = util_load_memfd(m->fd, len, MAX_SPEC_LEN, &data)) != 0) {
		if (!kern_is_short(r))
			return CL_FORMAT;
		workloads_refuse(f->a->workloads, &ask, "busy",
		    "out of memory");
		return CL_OK;
	}
	CRASH_POINT("start.asked");
	r = start_answer(f->a, &ask, handle_id, data, len);
	freezero(data, len);
	return r;
}

/* Shipped branches: names of handles that need not exist yet. */
int
fetchmsg_on_branch_open(struct fetchctl *f, struct imsg *m, union msg_any *v)
{
	const char *handle_id = v->BRANCH_OPEN.handle_id;
	struct msg_ok ans;
	int fd, r;

	if (!util_is_id(handle_id))
		return CL_FORMAT;
	if ((r = incoming_open(f->a, handle_id, &fd)) != 0) {
		log_warn("branch-open", "handle=%s reason=\"%s\"",
		    log_q(handle_id), cl_strerror(r));
		/* Without one there is no answer; its time will be over. */
		if ((fd = open("/dev/null", O_RDWR | O_CLOEXEC)) == -1)
			return CL_OK;
	}
	ans.ok = r == 0;
	FETCHCTL_SEND(f, BRANCH_OPEN_ANS, m->id, f->generation, &ans, fd);
	return CL_OK;
}

int
fetchmsg_on_branch_end(struct fetchctl *f, struct imsg *m, union msg_any *v)
{
	const struct msg_branch_end *end = &v->BRANCH_END;

	(void)m;
	if (!util_is_id(end->handle_id))
		return CL_FORMAT;
	incoming_end(f->a, end->handle_id, end->failure);
	return CL_OK;
}

int
fetchmsg_on_branch_drop(struct fetchctl *f, struct imsg *m, union msg_any *v)
{
	const char *handle_id = v->BRANCH_DROP.handle_id;

	(void)m;
	if (!util_is_id(handle_id))
		return CL_FORMAT;
	incoming_drop(f->a, handle_id);
	return CL_OK;
}

int
fetchmsg_on_sent(struct fetchctl *f, struct imsg *m, union msg_any *v)
{
	(void)m;
	return workloads_on_sent(f->a->workloads, v->DEV_SENT.slot,
	    v->DEV_SENT.raw);
}

int
fetchmsg_on_acked(struct fetchctl *f, struct imsg *m, union msg_any *v)
{
	const struct msg_dev_acked *acked = &v->DEV_ACKED;

	(void)m;
	return workloads_on_acked(f->a->workloads, acked->slot, acked->raw,
	    acked->norm);
}

int
fetchmsg_on_told(struct fetchctl *f, struct imsg *m, union msg_any *v)
{
	(void)m;
	return workloads_on_told(f->a->workloads, v->DEV_TOLD.slot);
}

int
fetchmsg_on_done(struct fetchctl *f, struct imsg *m, union msg_any *v)
{
	(void)m;
	return workloads_on_done(f->a->workloads, v->DEV_DONE.slot);
}

int
fetchmsg_on_refused(struct fetchctl *f, struct imsg *m, union msg_any *v)
{
	(void)m;
	return workloads_on_refused(f->a->workloads, v->DEV_STOP.slot,
	    v->DEV_STOP.reason);
}

int
fetchmsg_on_signal(struct fetchctl *f, struct imsg *m, union msg_any *v)
{
	struct msg_device_ans ans = { .result = RES_OK };
	int r;

	r = workloads_signal(f->a->workloads, v->DEV_SIGNAL.handle_id,
	    (int)v->DEV_SIGNAL.sig);
	if (r == CL_NOTFOUND)
		ans = (struct msg_device_ans){ RES_ERROR_FRAME,
		    "unknown_handle", "this device does not know the handle" };
	else if (r != 0)
		ans = (struct msg_device_ans){ RES_ERROR_FRAME, "busy",
		    "the signal could not be delivered" };
	FETCHCTL_SEND(f, DEV_SIGNAL_ANS, m->id, 0, &ans, -1);
	return CL_OK;
}

/* The memfd of a DEV_REVOKE or DEV_REFRESH.  CL_FORMAT: it may not say that;
 * else it cannot be read now. */
static int
fetchmsg_load_table(const struct imsg *m, const struct msg_memfd *body,
    const struct field_table *t, void *v)
{
	int r = msg_load_memfd(m->fd, body->len, MAX_SPEC_LEN, t, v);

	return r == CL_OK || kern_is_short(r) ? r : CL_FORMAT;
}

static int
fetchmsg_refuse_lease(struct fetchctl *f, const struct workload_ask *ask,
    int is_refresh, int r)
{
	if (r == CL_FORMAT)
		return r;
	leasing_refuse(f->a->workloads, ask, is_refresh, "out of memory");
	return CL_OK;
}

/* There is no wildcard: a blank lease is no request at all. */
int
fetchmsg_on_revoke(struct fetchctl *f, struct imsg *m, union msg_any *v)
{
	struct workload_ask ask = { m->id, f->generation };
	struct lease_revoke req;
	int r;

	if ((r = fetchmsg_load_table(m, &v->DEV_REVOKE, &lease_revoke_table,
	    &req)) != 0)
		return fetchmsg_refuse_lease(f, &ask, 0, r);
	if (rule_is_blank(req.lease_id)) {
		field_clear(&lease_revoke_table, &req);
		return CL_FORMAT;
	}
	leasing_revoke(f->a->workloads, &ask, &req);
	return CL_OK;
}

/* Once more: the fetcher's word for it is not enough. */
static int
fetchmsg_check_refresh(const struct lease_refresh *req)
{
	size_t i;

	if (rule_is_blank(req->lease_id) || req->nfiles == 0)
		return CL_FORMAT;
	for (i = 0; i < req->nfiles; i++)
		if (!rule_is_empty(req->files[i].lease_id) &&
		    !rule_is_equal(req->files[i].lease_id, req->lease_id))
			return CL_FORMAT;
	return spec_check_secret_files(req->files, req->nfiles, NULL);
}

int
fetchmsg_on_refresh(struct fetchctl *f, struct imsg *m, union msg_any *v)
{
	struct workload_ask ask = { m->id, f->generation };
	struct lease_refresh req;
	int r;

	if ((r = fetchmsg_load_table(m, &v->DEV_REFRESH, &lease_refresh_table,
	    &req)) != 0)
		return fetchmsg_refuse_lease(f, &ask, 1, r);
	if (fetchmsg_check_refresh(&req) != 0) {
		field_clear(&lease_refresh_table, &req);
		return CL_FORMAT;
	}
	leasing_refresh(f->a->workloads, &ask, &req);
	return CL_OK;
}
