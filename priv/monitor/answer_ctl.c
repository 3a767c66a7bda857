/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Operators, part one: cloopd-ctl itself, who is connected, and the small
 * requests.  cloopd-ctl is unprivileged and may be taken over; what it says
 * about roles is bounded by what it said when the client came, and nothing
 * here gives more than an operator could ask for.
 */
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
answer_ctl_ready(struct monitor *mon, struct child *c, struct imsg *m,
    struct msg_version *v)
{
	(void)mon;
	(void)m;
	if (v->version != MSGCAT_VERSION)
		return CL_FORMAT;
	child_enter_serving(c);
	mon_on_ready(c);
	return CL_OK;
}

int
answer_ctl_client(struct monitor *mon, struct child *c, struct imsg *m,
    struct msg_ctl_client *v)
{
	int r;

	(void)c;
	(void)m;
	if (v->client == 0)
		return CL_FORMAT;
	if ((r = clients_add(mon, v)) == CL_NOMEM)
		r = CL_OK;	/* its requests are refused below */
	log_debug("operator", "client=%u uid=%u pid=%u role=%d",
	    (unsigned int)v->client, (unsigned int)v->uid,
	    (unsigned int)v->pid, (int)v->role);
	return r;
}

int
answer_ctl_gone(struct monitor *mon, struct child *c, struct imsg *m,
    struct msg_ctl_gone *v)
{
	(void)c;
	(void)m;
	clients_del(mon, (uint32_t)v->client);
	return CL_OK;
}

int
answer_ctl_pace(struct monitor *mon, struct child *c, struct imsg *m,
    struct msg_empty *v)
{
	(void)c;
	(void)v;
	return jobs_on_pace(mon, m->id);
}

/* cloopd-ctl answers these itself and never forwards them. */
int
answer_ctl_hello(struct monitor *mon, struct child *c, struct imsg *m,
    struct msg_version *v)
{
	(void)mon;
	(void)c;
	(void)m;
	(void)v;
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

void
answer_ctl_quit(struct monitor *mon, struct ctl_client *cl, struct imsg *m,
    struct msg_ctl_quit *v)
{
	(void)cl;
	/* No answer: the request it names gets none either. */
	clients_quit(mon, (m->id & ~(uint64_t)UINT32_MAX) |
	    v->request);
}

void
answer_ctl_reload(struct monitor *mon, struct ctl_client *cl, struct imsg *m,
    struct msg_empty *v)
{
	char err[512];

	(void)cl;
	(void)v;
	if (reload_conf(mon, err, sizeof(err)) != CL_OK)
		ctlout_refuse(mon, m->id, "usage", "%s; the old "
		    "configuration stays", err);
	else
		ctlout_send_done(mon, m->id);
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
	CTL_ROW(mon, id, ROW_WORKER, &row, -1);
}

void
answer_ctl_status(struct monitor *mon, struct ctl_client *cl, struct imsg *m,
    struct msg_empty *v)
{
	char server[MAX_URL_LEN + 64], version[] = CLOOP_VERSION;
	struct ctl_status row;
	size_t i;

	(void)cl;
	(void)v;
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
	CTL_ROW(mon, m->id, ROW_STATUS, &row, -1);
	/* The network workers first: they are what one asks about. */
	for (i = 2; i < mon->nchildren; i++)
		answer_send_worker(mon, m->id, &mon->children[i]);
	for (i = 0; i < 2; i++)
		answer_send_worker(mon, m->id, &mon->children[i]);
	ctlout_send_done(mon, m->id);
}
