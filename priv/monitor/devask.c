/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Pending requests to devices, in the monitor.  An answer for an ask that
 * is gone is dropped; one that was never asked ends the worker.
 */
#include "devask.h"

#include <stdlib.h>
#include <string.h>

#include <bsd/string.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/msg/msgcat.h"
#include "ctlout.h"
#include "monitor.h"
#include "refuse.h"

void
devask_init(struct monitor *mon)
{
	memset(&mon->asks, 0, sizeof(mon->asks));
	TAILQ_INIT(&mon->asks.list);
}

static void
devask_free(struct monitor *mon, struct devask *d)
{
	TAILQ_REMOVE(&mon->asks.list, d, entry);
	mon->asks.n--;
	free(d);
}

void
devask_clear(struct monitor *mon)
{
	struct devask *d;

	while ((d = TAILQ_FIRST(&mon->asks.list)) != NULL)
		devask_free(mon, d);
}

static void
devask_start(struct monitor *mon, struct session *s, uint32_t type,
    const void *v, uint64_t ctl)
{
	struct devask *d;

	if (mon->asks.n >= MAX_ASKS_TOTAL ||
	    (d = calloc(1, sizeof(*d))) == NULL) {
		if (ctl != 0)
			ctlout_refuse(mon, ctl, "busy",
			    "too many requests are waiting for devices");
		return;
	}
	d->id = ++mon->asks.last_id;
	d->session = s->number;
	d->generation = s->generation;
	d->ctl = ctl;
	d->type = type;
	strlcpy(d->agent_id, s->agent->row.agent_id, sizeof(d->agent_id));
	TAILQ_INSERT_TAIL(&mon->asks.list, d, entry);
	mon->asks.n++;
	mon_send_body(mon_find_child(mon, s->generation), type, d->id, v, -1);
}

void
devask_signal(struct monitor *mon, struct session *s, uint64_t handle,
    int sig, uint64_t ctl)
{
	struct msg_signal body = { s->number, handle, sig };

	devask_start(mon, s, MSG_SIGNAL, &body, ctl);
}

void
devask_inventory(struct monitor *mon, struct session *s, uint64_t ctl)
{
	struct msg_session body = { s->number };

	devask_start(mon, s, MSG_INVENTORY, &body, ctl);
}

static void
devask_finish(struct monitor *mon, struct devask *d, int result,
    const char *code, const char *text)
{
	struct agent *a = agents_find(&mon->agents, d->agent_id);
	struct refusal r;

	if (d->ctl == 0) {	/* nobody waits for it */
		log_debug("device-answer", "agent=%s result=%d",
		    log_q(d->agent_id), result);
	} else if (result != RES_OK) {
		refuse_set_result(&r, result, code, text, a != NULL ?
		    a->row.name : d->agent_id);
		ctlout_send_err(mon, d->ctl, &r);
	} else {
		if (d->type == MSG_INVENTORY && a != NULL)
			ctlout_send_agent(mon, d->ctl, a);
		ctlout_send_done(mon, d->ctl);
	}
	devask_free(mon, d);
}

static struct devask *
devask_find(struct monitor *mon, uint64_t id)
{
	struct devask *d;

	TAILQ_FOREACH(d, &mon->asks.list, entry)
		if (d->id == id)
			return d;
	return NULL;
}

int
devask_answer(struct monitor *mon, struct child *c, struct imsg *m,
    struct msg_device_ans *v)
{
	struct devask *d;

	if (m->id > mon->asks.last_id || m->id == 0)
		return CL_FORMAT;
	if ((d = devask_find(mon, m->id)) == NULL)
		return CL_OK;	/* the operator went away meanwhile */
	if (d->generation != c->generation || d->type + 1 != m->type)
		return CL_FORMAT;
	devask_finish(mon, d, (int)v->result, v->code, v->text);
	return CL_OK;
}

void
devask_end_session(struct monitor *mon, uint64_t session)
{
	struct devask *d, *next;

	for (d = TAILQ_FIRST(&mon->asks.list); d != NULL; d = next) {
		next = TAILQ_NEXT(d, entry);
		if (d->session == session)
			devask_finish(mon, d, RES_SESSION_CLOSED, "", "");
	}
}

void
devask_forget(struct monitor *mon, uint64_t ctl, uint64_t mask)
{
	struct devask *d, *next;

	for (d = TAILQ_FIRST(&mon->asks.list); d != NULL; d = next) {
		next = TAILQ_NEXT(d, entry);
		if ((d->ctl & mask) == (ctl & mask))
			devask_free(mon, d);
	}
}
