/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Operators, part one: cloopd-ctl itself, who is connected, and the small
 * requests.  cloopd-ctl is unprivileged and may be taken over; what it says
 * about roles is bounded by what it said when the client came, and nothing
 * here gives more than an operator could ask for.
 */
#include <stdio.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "common/model/ctlmsg.h"
#include "common/msg/msgcat.h"
#include "answers.h"
#include "ctlout.h"
#include "reload.h"

int
answer_ctl_ready(struct monitor *mon, struct child *c, struct imsg *m)
{
	uint32_t version;

	(void)mon;
	version = buf_get_u32(&m->body);
	if (buf_end(&m->body) != CL_OK || version != MSGCAT_VERSION)
		return CL_FORMAT;
	child_enter_serving(c);
	mon_on_ready(c);
	return CL_OK;
}

int
answer_ctl_client(struct monitor *mon, struct child *c, struct imsg *m)
{
	struct ctl_client cl;
	int r;

	(void)c;
	memset(&cl, 0, sizeof(cl));
	cl.client = buf_get_u32(&m->body);
	cl.uid = buf_get_u32(&m->body);
	cl.pid = buf_get_u32(&m->body);
	cl.role = buf_get_u8(&m->body);
	if (buf_end(&m->body) != CL_OK || cl.client == 0 ||
	    (cl.role != ROLE_VIEWER && cl.role != ROLE_OPERATOR))
		return CL_FORMAT;
	if ((r = clients_add(mon, &cl)) == CL_NOMEM)
		r = CL_OK;	/* its requests are refused below */
	log_debug("operator", "client=%u uid=%u pid=%u role=%d", cl.client,
	    cl.uid, cl.pid, cl.role);
	return r;
}

int
answer_ctl_gone(struct monitor *mon, struct child *c, struct imsg *m)
{
	uint32_t client;

	(void)c;
	client = buf_get_u32(&m->body);
	if (buf_end(&m->body) != CL_OK)
		return CL_FORMAT;
	clients_del(mon, client);
	return CL_OK;
}

int
answer_ctl_pace(struct monitor *mon, struct child *c, struct imsg *m)
{
	(void)c;
	return jobs_on_pace(mon, m->id);
}

/* cloopd-ctl answers these itself and never forwards them. */
int
answer_ctl_hello(struct monitor *mon, struct child *c, struct imsg *m)
{
	(void)mon;
	(void)c;
	(void)m;
	return CL_STATE;
}

struct ctl_client *
answer_ctl_begin(struct monitor *mon, const struct imsg *m)
{
	struct ctl_client *cl = clients_find(mon, (uint32_t)(m->id >> 32));
	int need = msgcat_role(m->type);

	if (cl == NULL || need == ROLE_NONE || cl->role < need)
		return NULL;
	return cl;
}

int
answer_ctl_malformed(struct monitor *mon, const struct imsg *m)
{
	ctlout_refuse(mon, m->id, "protocol", "%s: malformed request",
	    msgcat_name(m->type));
	return CL_OK;
}

void
answer_ctl_format_actor(const struct ctl_client *c, char dst[ACTOR_MAX])
{
	snprintf(dst, ACTOR_MAX, "uid:%u", c->uid);
}

int
answer_ctl_quit(struct monitor *mon, struct child *c, struct imsg *m)
{
	uint32_t req;

	(void)c;
	if (answer_ctl_begin(mon, m) == NULL)
		return CL_STATE;
	req = buf_get_u32(&m->body);
	if (buf_end(&m->body) != CL_OK)
		return answer_ctl_malformed(mon, m);
	/* No answer: the request it names gets none either. */
	clients_quit(mon, (m->id & ~(uint64_t)UINT32_MAX) | req);
	return CL_OK;
}

int
answer_ctl_reload(struct monitor *mon, struct child *c, struct imsg *m)
{
	char err[512];

	(void)c;
	if (answer_ctl_begin(mon, m) == NULL)
		return CL_STATE;
	if (reload_conf(mon, err, sizeof(err)) != CL_OK)
		ctlout_refuse(mon, m->id, "usage", "%s; the old "
		    "configuration stays", err);
	else
		ctlout_send_done(mon, m->id);
	return CL_OK;
}

static void
answer_count(struct monitor *mon, struct ctl_status *row)
{
	int64_t now = util_now_ms();
	struct agent *a;

	for (a = agents_next(&mon->agents, NULL); a != NULL;
	    a = agents_next(&mon->agents, a)) {
		if (a->row.revoked_at != UTIL_TIME_ZERO)
			continue;
		row->duplicates += dupid_is_suspect(&a->dup, now) != 0;
		if (a->status == AGENT_ONLINE)
			row->online++;
		else if (a->status == AGENT_UNREACHABLE)
			row->unreachable++;
		else
			row->offline++;
	}
	row->running = mon->handles.nrunning;
	row->finished = mon->handles.nclosed;
}

static void
answer_send_worker(struct monitor *mon, uint64_t id, struct child *c)
{
	struct ctl_worker row;
	struct session *s;

	memset(&row, 0, sizeof(row));
	row.id = c->index;
	row.program = (char *)(uintptr_t)c->program;
	row.pid = c->pid;
	row.restarts = c->nrestarts;
	row.last_end = c->last_end;
	for (s = agents_next_session(&mon->agents, NULL); s != NULL;
	    s = agents_next_session(&mon->agents, s))
		if (s->generation == c->generation &&
		    s->state == SESSION_CURRENT)
			row.sessions++;
	ctlout_send_row(mon, id, MSG_ROW_WORKER, &ctl_worker_table, &row, -1);
}

int
answer_ctl_status(struct monitor *mon, struct child *c, struct imsg *m)
{
	char server[MAX_URL_LEN + 64], version[] = CLOOP_VERSION;
	struct ctl_status row;
	size_t i;

	(void)c;
	if (answer_ctl_begin(mon, m) == NULL)
		return CL_STATE;
	memset(&row, 0, sizeof(row));
	row.version = version;
	row.uptime_s = (uint64_t)(util_now_ms() - mon->started_at) / 1000;
	answer_count(mon, &row);
	(void)config_format_server(&mon->conf, server, sizeof(server));
	row.server = server;
	row.pin = mon->pin;
	row.pinned = mon->handles.pinned;
	row.limit_agent = mon->conf.write_back_budget;
	row.limit_total = mon->conf.write_back_total;
	ctlout_send_row(mon, m->id, MSG_ROW_STATUS, &ctl_status_table, &row,
	    -1);
	/* The network workers first: they are what one asks about. */
	for (i = 2; i < mon->nchildren; i++)
		answer_send_worker(mon, m->id, &mon->children[i]);
	for (i = 0; i < 2; i++)
		answer_send_worker(mon, m->id, &mon->children[i]);
	ctlout_send_done(mon, m->id);
	return CL_OK;
}
