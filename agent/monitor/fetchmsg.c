/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * What agentd-fetch may say to the monitor.  Each handler reads its typed
 * fields to the last byte and checks them against the monitor's own records;
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
#include "common/msg/buf.h"
#include "agentd.h"
#include "caps_detect.h"
#include "fetchctl.h"
#include "fetchmsg.h"
#include "kern.h"
#include "leasing.h"
#include "start.h"
#include "workloads.h"

int
fetchmsg_on_ready(struct fetchctl *f, struct imsg *m)
{
	uint32_t version = buf_get_u32(&m->body);
	int r;

	if (buf_end(&m->body) != 0 || version != MSGCAT_VERSION)
		return CL_FORMAT;
	event_del(f->timer);
	f->chan.state = f->is_stopping ? MS_STOPPING : MS_SERVING;
	f->is_serving = 1;
	if (!f->was_ready)
		(void)util_notify("READY=1");
	f->was_ready = 1;
	/* What it does not know it would not offer, and the hub gave it up:
	 * rather no session for a moment. */
	if ((r = workloads_announce(f->a->workloads)) != 0)
		fetchctl_pause(f, r);
	return CL_OK;
}

int
fetchmsg_on_stopped(struct fetchctl *f, struct imsg *m)
{
	return buf_end(&m->body) != 0 || !f->is_stopping ? CL_FORMAT : CL_OK;
}

int
fetchmsg_on_resolve(struct fetchctl *f, struct imsg *m)
{
	if (buf_end(&m->body) != 0)
		return CL_FORMAT;
	resolve_start(&f->resolve, m->id, &f->a->url);
	return CL_OK;
}

int
fetchmsg_on_session(struct fetchctl *f, struct imsg *m)
{
	static const char *const links[] = { "?", "connecting", "up",
	    "down" };
	uint8_t state = buf_get_u8(&m->body);
	uint16_t negotiated = buf_get_u16(&m->body);
	uint8_t fatal = buf_get_u8(&m->body);
	char detail[1024];

	buf_get_str(&m->body, detail, sizeof(detail) - 1);
	if (buf_end(&m->body) != 0 || state < LINK_CONNECTING ||
	    state > LINK_DOWN || negotiated > PROTO_MAX || fatal > FATAL_BYE)
		return CL_FORMAT;
	f->negotiated = negotiated;
	if (state == LINK_UP)
		f->backoff_ms = CHILD_BACKOFF_MIN_MS;
	if (state != f->link || fatal != FATAL_NONE || *detail != '\0')
		log_info("session", "link=%s version=%u detail=%s",
		    links[state], (unsigned int)negotiated,
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
	struct buf b;

	buf_init(&b, 1024);
	buf_put_u8(&b, (uint8_t)saved);
	buf_put_str(&b, text);
	fetchctl_send(f, MSG_ENROLLED_ANS, id, 0, &b, -1);
	buf_clear(&b);
}

int
fetchmsg_on_enrolled(struct fetchctl *f, struct imsg *m)
{
	char agent_id[MAX_ID_LEN + 1], credential[MAX_TOKEN_LEN + 1];
	int r;

	buf_get_str(&m->body, agent_id, MAX_ID_LEN);
	buf_get_str(&m->body, credential, MAX_TOKEN_LEN);
	if (buf_end(&m->body) != 0 || f->a->enrolled ||
	    !util_is_id(agent_id) || !credential_is_bearer(credential)) {
		explicit_bzero(credential, sizeof(credential));
		return CL_FORMAT;
	}
	CRASH_POINT("enroll.save");
	r = startup_save_enrolled(f->a, agent_id, credential);
	explicit_bzero(credential, sizeof(credential));
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
fetchmsg_on_caps(struct fetchctl *f, struct imsg *m)
{
	struct caps c;
	struct buf b;

	if (buf_end(&m->body) != 0)
		return CL_FORMAT;
	caps_detect(f->a, &c);
	buf_init(&b, MAX_CAPS_LEN);
	caps_put(&c, &b);
	if (buf_error(&b) == 0)
		(void)chan_send_memfd(&f->chan, MSG_DEV_CAPS_ANS, m->id,
		    b.data, b.len);
	else
		log_error("capabilities", "reason=\"%s\"",
		    cl_strerror(buf_error(&b)));
	buf_clear(&b);
	caps_clear(&c);
	return CL_OK;
}

int
fetchmsg_on_start(struct fetchctl *f, struct imsg *m)
{
	struct workload_ask ask = { m->id, f->generation };
	char handle_id[MAX_ID_LEN + 1];
	uint8_t *data;
	uint32_t len;
	int r;

	buf_get_str(&m->body, handle_id, MAX_ID_LEN);
	len = buf_get_u32(&m->body);
	if (buf_end(&m->body) != 0 || !util_is_id(handle_id))
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
fetchmsg_on_branch_open(struct fetchctl *f, struct imsg *m)
{
	char handle_id[MAX_ID_LEN + 1];
	struct buf b;
	int fd, r;

	buf_get_str(&m->body, handle_id, MAX_ID_LEN);
	if (buf_end(&m->body) != 0 || !util_is_id(handle_id))
		return CL_FORMAT;
	if ((r = incoming_open(f->a, handle_id, &fd)) != 0) {
		log_warn("branch-open", "handle=%s reason=\"%s\"",
		    log_q(handle_id), cl_strerror(r));
		/* Without one there is no answer; its time will be over. */
		if ((fd = open("/dev/null", O_RDWR | O_CLOEXEC)) == -1)
			return CL_OK;
	}
	buf_init(&b, 1);
	buf_put_u8(&b, r == 0);
	fetchctl_send(f, MSG_BRANCH_OPEN_ANS, m->id, f->generation, &b, fd);
	buf_clear(&b);
	return CL_OK;
}

int
fetchmsg_on_branch_end(struct fetchctl *f, struct imsg *m)
{
	char handle_id[MAX_ID_LEN + 1], failure[256];

	buf_get_str(&m->body, handle_id, MAX_ID_LEN);
	buf_get_str(&m->body, failure, sizeof(failure) - 1);
	if (buf_end(&m->body) != 0 || !util_is_id(handle_id))
		return CL_FORMAT;
	incoming_end(f->a, handle_id, failure);
	return CL_OK;
}

int
fetchmsg_on_branch_drop(struct fetchctl *f, struct imsg *m)
{
	char handle_id[MAX_ID_LEN + 1];

	buf_get_str(&m->body, handle_id, MAX_ID_LEN);
	if (buf_end(&m->body) != 0 || !util_is_id(handle_id))
		return CL_FORMAT;
	incoming_drop(f->a, handle_id);
	return CL_OK;
}

int
fetchmsg_on_sent(struct fetchctl *f, struct imsg *m)
{
	uint64_t slot = buf_get_u64(&m->body);
	uint64_t raw = buf_get_u64(&m->body);

	if (buf_end(&m->body) != 0)
		return CL_FORMAT;
	return workloads_on_sent(f->a->workloads, slot, raw);
}

int
fetchmsg_on_acked(struct fetchctl *f, struct imsg *m)
{
	uint64_t slot = buf_get_u64(&m->body);
	uint64_t raw = buf_get_u64(&m->body);
	uint64_t norm = buf_get_u64(&m->body);

	if (buf_end(&m->body) != 0)
		return CL_FORMAT;
	return workloads_on_acked(f->a->workloads, slot, raw, norm);
}

int
fetchmsg_on_told(struct fetchctl *f, struct imsg *m)
{
	uint64_t slot = buf_get_u64(&m->body);

	if (buf_end(&m->body) != 0)
		return CL_FORMAT;
	return workloads_on_told(f->a->workloads, slot);
}

int
fetchmsg_on_done(struct fetchctl *f, struct imsg *m)
{
	uint64_t slot = buf_get_u64(&m->body);

	if (buf_end(&m->body) != 0)
		return CL_FORMAT;
	return workloads_on_done(f->a->workloads, slot);
}

int
fetchmsg_on_refused(struct fetchctl *f, struct imsg *m)
{
	uint64_t slot = buf_get_u64(&m->body);
	char reason[512];

	buf_get_str(&m->body, reason, sizeof(reason) - 1);
	if (buf_end(&m->body) != 0)
		return CL_FORMAT;
	return workloads_on_refused(f->a->workloads, slot, reason);
}

int
fetchmsg_on_signal(struct fetchctl *f, struct imsg *m)
{
	char handle_id[MAX_ID_LEN + 1];
	struct buf b;
	uint8_t sig;
	int r;

	buf_get_str(&m->body, handle_id, MAX_ID_LEN);
	sig = buf_get_u8(&m->body);
	if (buf_end(&m->body) != 0 || sig < SIG_INTERRUPT || sig > SIG_KILL)
		return CL_FORMAT;
	r = workloads_signal(f->a->workloads, handle_id, sig);
	buf_init(&b, 1024);
	buf_put_u8(&b, r == 0 ? RES_OK : RES_ERROR_FRAME);
	buf_put_str(&b, r == 0 ? "" : r == CL_NOTFOUND ? "unknown_handle" :
	    "busy");
	buf_put_str(&b, r == 0 ? "" : r == CL_NOTFOUND ?
	    "this device does not know the handle" :
	    "the signal could not be delivered");
	fetchctl_send(f, MSG_DEV_SIGNAL_ANS, m->id, 0, &b, -1);
	buf_clear(&b);
	return CL_OK;
}

/* The memfd of a DEV_REVOKE or DEV_REFRESH.  CL_FORMAT: it may not say that;
 * CL_NOMEM: not now. */
static int
fetchmsg_load_table(struct imsg *m, const struct field_table *t, void *v)
{
	uint32_t len = buf_get_u32(&m->body);
	uint8_t *data;
	struct buf b;
	int r;

	if (buf_end(&m->body) != 0)
		return CL_FORMAT;
	if ((r = util_load_memfd(m->fd, len, MAX_SPEC_LEN, &data)) != 0)
		return kern_is_short(r) ? CL_NOMEM : CL_FORMAT;
	buf_init_read(&b, data, len);
	if ((r = field_get(t, &b, v)) == 0 && (r = buf_end(&b)) != 0)
		field_clear(t, v);
	freezero(data, len);
	return r;
}

static int
fetchmsg_refuse_lease(struct fetchctl *f, const struct workload_ask *ask,
    int is_refresh, int r)
{
	if (r != CL_NOMEM)
		return r;
	leasing_refuse(f->a->workloads, ask, is_refresh, "out of memory");
	return CL_OK;
}

/* There is no wildcard: a blank lease is no request at all. */
int
fetchmsg_on_revoke(struct fetchctl *f, struct imsg *m)
{
	struct workload_ask ask = { m->id, f->generation };
	struct lease_revoke req;
	int r;

	if ((r = fetchmsg_load_table(m, &lease_revoke_table, &req)) != 0)
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
fetchmsg_on_refresh(struct fetchctl *f, struct imsg *m)
{
	struct workload_ask ask = { m->id, f->generation };
	struct lease_refresh req;
	int r;

	if ((r = fetchmsg_load_table(m, &lease_refresh_table, &req)) != 0)
		return fetchmsg_refuse_lease(f, &ask, 1, r);
	if (fetchmsg_check_refresh(&req) != 0) {
		field_clear(&lease_refresh_table, &req);
		return CL_FORMAT;
	}
	leasing_refresh(f->a->workloads, &ask, &req);
	return CL_OK;
}
