/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Abandoned handles, in the monitor.  Nothing a device says afterwards
 * changes what was recorded here: its output is not taken, its statuses do
 * not replace ours, its offers are answered with "terminate".  After a
 * restart of the hub the row is closed and the handle unknown, which comes
 * to the same.
 */
#include "abandon.h"

#include <stdio.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/utf8.h"
#include "common/base/util.h"
#include "common/model/ctlmsg.h"
#include "common/msg/msgcat.h"
#include "answers.h"
#include "ctlout.h"
#include "hello.h"
#include "life.h"
#include "monitor.h"

#define ABANDON_TEXT "abandoned by the control plane: "

/* Asked for, not waited for: the verdict stands whatever becomes of it. */
static void
abandon_kill(struct monitor *mon, struct handle *h)
{
	struct session *s = agents_find_current(&mon->agents, h->agent);

	if (s == NULL || s->state != SESSION_CURRENT ||
	    hello_open_handle(mon, s, h) != CL_OK)
		return;
	devask_signal(mon, s, h->row.number, SIG_KILL, 0);
}

void
abandon_handle(struct monitor *mon, struct handle *h, const char *reason)
{
	char text[sizeof(ABANDON_TEXT) + MAX_REASON_LEN];
	size_t len = strlen(reason);

	if (h->abandoned == NULL) {
		if (len > MAX_REASON_LEN)
			len = utf8_cut(reason, MAX_REASON_LEN);
		snprintf(text, sizeof(text), "%.*s", (int)len, reason);
		handle_set_text(&h->abandoned, text);
	}
	if (h->abandoned == NULL || handle_is_closed(h))
		return;
	log_info("abandon", "handle=%s agent=%s reason=%s",
	    log_q(h->row.handle_id), log_q(h->row.agent_id),
	    log_q(h->abandoned));
	abandon_kill(mon, h);
	snprintf(text, sizeof(text), "%s%s", ABANDON_TEXT, h->abandoned);
	/* A start in flight has an end too, not a refusal: it may run. */
	if (h->row.state == HS_PENDING)
		h->row.state = HS_RUNNING;
	life_fail_handle(mon, h, text);
}

/* The row says it before the operator hears it. */
static void
abandon_after(struct monitor *mon, uint64_t id, uint64_t aux, int ok)
{
	(void)aux;
	if (!ok)
		ctlout_refuse(mon, id, "internal", "the hub's store failed: "
		    "%s; the workload is given up all the same",
		    mon->last_error);
}

void
answer_ctl_abandon(struct monitor *mon, struct ctl_client *cl, struct imsg *m,
    struct msg_name_reason *v)
{
	struct store_handle row;
	struct handle *h;
	int r = CL_OK;

	if ((h = handles_find_id(&mon->handles, v->name)) == NULL) {
		memset(&row, 0, sizeof(row));
		r = store_find_handle(mon->store, v->name, &row);
		store_handle_clear(&row);
	}
	if (r == CL_NOTFOUND)
		ctlout_refuse(mon, m->id, "handle_not_found",
		    "there is no handle %s", v->name);
	else if (r != CL_OK)
		ctlout_refuse_store(mon, m->id);
	if (r != CL_OK)
		return;
	if (h != NULL && !handle_is_closed(h) && store_add_event(mon->store,
	    util_wall_ns(), cl->actor, "workload.abandon", "allow", "handle",
	    h->row.handle_id, "executor_id", h->row.agent_id, "reason",
	    v->reason, (char *)NULL) != CL_OK)
		mon_set_error(mon, store_error(mon->store));
	if (h != NULL)
		abandon_handle(mon, h, v->reason[0] != '\0' ? v->reason :
		    "by an operator");
	mon_add_after(mon, abandon_after, m->id, 0);
	ctlout_send_durable(mon, m->id, 0, NULL);
}
