/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * From the monitor's tables to the rows operators get.  Strings are lent to
 * the row structs (no copies): none of these structs is ever cleared.
 */
#include "ctlout.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "common/model/caps.h"
#include "common/model/ctlmsg.h"
#include "common/model/workmsg.h"
#include "common/msg/msgcat.h"
#include "store/db/token.h"
#include "hfiles.h"
#include "hwork.h"
#include "monitor.h"
#include "refuse.h"
#include "supervise.h"

void
ctlout_send_row(struct monitor *mon, uint64_t id, uint32_t type,
    const void *row, int fd)
{
	struct buf b;
	int r;

	buf_init(&b, MSG_BODY_MAX);
	if ((r = msg_put(type, row, &b)) != CL_OK) {
		/* A row that does not fit is a row the list goes without. */
		log_warn("row-too-big", "row=%s reason=%s",
		    msgcat_name(type), cl_strerror(r));
		buf_clear(&b);
		if (fd != -1)
			close(fd);
		return;
	}
	mon_send(mon_get_ctl(mon), type, id, &b, fd);
}

void
ctlout_send_done(struct monitor *mon, uint64_t id)
{
	MON_SEND(mon_get_ctl(mon), CTL_DONE, id, NULL, -1);
}

void
ctlout_send_durable(struct monitor *mon, uint64_t id, uint32_t type,
    const void *row)
{
	mon->durable = 1;
	if (row != NULL)
		ctlout_send_row(mon, id, type, row, -1);
	ctlout_send_done(mon, id);
	mon->durable = 0;
}

void
ctlout_on_commit(struct monitor *mon, uint64_t id, uint64_t aux, int ok)
{
	(void)aux;
	if (!ok)
		ctlout_refuse(mon, id, "internal", "the hub's store failed: "
		    "%s", mon->last_error);
}

void
ctlout_send_err(struct monitor *mon, uint64_t id, const struct refusal *r)
{
	struct msg_ctl_err err = { r->code, r->message, r->remedy };

	MON_SEND(mon_get_ctl(mon), CTL_ERR, id, &err, -1);
}

void
ctlout_refuse_store(struct monitor *mon, uint64_t id)
{
	ctlout_refuse(mon, id, "internal", "the hub's store failed: %s",
	    store_error(mon->store));
}

void
ctlout_refuse(struct monitor *mon, uint64_t id, const char *code,
    const char *fmt, ...)
{
	struct refusal r;
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	refuse_set(&r, code, "%s", text);
	ctlout_send_err(mon, id, &r);
}

/* What came back, before the handle's row; nothing when nothing may. */
void
ctlout_send_result(struct monitor *mon, uint64_t id, const struct work *w,
    const struct store_handle *h)
{
	struct work_result row;

	if (work_get_result(w, h->handle_id, h->closed_at != UTIL_TIME_ZERO,
	    &row))
		CTL_ROW(mon, id, ROW_RESULT, &row, -1);
}

static void
ctlout_fill_handle(struct ctl_handle *row, const struct store_handle *h)
{
	memset(row, 0, sizeof(*row));
	row->handle_id = h->handle_id;
	row->agent_id = h->agent_id;
	row->name = h->name;
	row->state = h->state;
	row->pid = h->pid;
	row->exit_code.set = h->has_exit_code;
	row->exit_code.v = h->exit_code;
	row->outcome = h->outcome;
	row->error = h->error;
	row->created_by = h->created_by;
	row->dispatched_at = h->dispatched_at;
	row->started_at = h->started_at;
	row->finished_at = h->finished_at;
	row->log_bytes = h->log_bytes;
	row->log_sha256 = (char *)(uintptr_t)h->log_sha256;
	row->received = h->received;
	row->gapped = h->gapped;
}

/* With the leases its bindings name. */
static void
ctlout_send_leased(struct monitor *mon, uint64_t id, struct ctl_handle *row,
    const char *bindings)
{
	size_t i;

	row->nleases = lease_find_ids(bindings, &row->leases);
	CTL_ROW(mon, id, ROW_HANDLE, row, -1);
	for (i = 0; i < row->nleases; i++)
		free(row->leases[i]);
	free(row->leases);
}

void
ctlout_send_handle(struct monitor *mon, uint64_t id, const struct handle *h)
{
	struct ctl_handle row;

	ctlout_send_result(mon, id, h->work, &h->row);
	ctlout_fill_handle(&row, &h->row);
	row.agent = h->agent->row.name;
	if (!handle_is_closed(h))
		row.log_bytes = hfiles_get_log_len(mon->conf.state_dir,
		    h->row.handle_id);
	ctlout_send_leased(mon, id, &row, h->row.secrets);
}

void
ctlout_send_stored(struct monitor *mon, uint64_t id,
    const struct store_handle *h)
{
	struct agent *a = agents_find(&mon->agents, h->agent_id);
	struct ctl_handle row;
	struct work *w;

	if (work_parse_meta(h->meta, &w) == CL_OK) {
		ctlout_send_result(mon, id, w, h);
		work_free(w);
	}
	ctlout_fill_handle(&row, h);
	row.agent = a != NULL ? a->row.name : NULL;
	ctlout_send_leased(mon, id, &row, h->secrets);
}

/* What `agents` lists under issues: features the device says it lacks. */
static size_t
ctlout_list_issues(const struct caps *c, char *issues[4])
{
	static char no_filter[] = "packet filter: not available";
	static char no_denials[] = "denial log: not available";
	size_t n = 0;

	if (!c->packet_filter)
		issues[n++] = c->packet_filter_issue != NULL &&
		    c->packet_filter_issue[0] != '\0' ?
		    c->packet_filter_issue : no_filter;
	if (!c->denial_log)
		issues[n++] = c->denial_log_issue != NULL &&
		    c->denial_log_issue[0] != '\0' ?
		    c->denial_log_issue : no_denials;
	if (c->forwarded_usb_issue != NULL && c->forwarded_usb_issue[0])
		issues[n++] = c->forwarded_usb_issue;
	if (c->forwarded_l2_issue != NULL && c->forwarded_l2_issue[0])
		issues[n++] = c->forwarded_l2_issue;
	return n;
}

static void
ctlout_fill_agent(struct monitor *mon, struct ctl_agent *row,
    const struct agent *a)
{
	struct session *s = agents_find_current(&mon->agents, a);
	struct store_ban ban;

	memset(row, 0, sizeof(*row));
	row->agent_id = a->row.agent_id;
	row->name = a->row.name;
	row->status = a->status;
	row->status_at = a->status_at;
	row->reason = a->reason;
	row->protocol = a->protocol;
	row->agent_protocol = a->agent_protocol;
	row->agent_version = a->agent_version;
	row->last_seen = a->row.last_seen;
	row->created_at = a->row.created_at;
	row->revoked_at = a->row.revoked_at;
	row->confirmed_at = a->row.confirmed_at;
	if (token_is_banned(mon->store, a->row.name, &ban) == 1) {
		row->banned = 1;
		store_ban_clear(&ban);
	}
	row->enrollment_id = a->row.enrollment_id;
	row->workdir_root = a->row.workdir_root;
	row->peer = s != NULL ? s->peer : NULL;
	row->cordoned = a->admin > ADMIN_READY;
	row->supervision = (char *)(uintptr_t)supervise_format_state(a);
	row->running = a->nrunning;
	row->caps_len = a->caps_len;
}

void
ctlout_send_agent(struct monitor *mon, uint64_t id, const struct agent *a)
{
	struct ctl_agent row;
	struct field_pair *labels;
	struct caps caps;
	char *issues[5], dup[512];
	size_t i, n = a->row.labels.n;
	int fd, have_caps;

	ctlout_fill_agent(mon, &row, a);
	if ((labels = calloc(n + 1, sizeof(*labels))) == NULL ||
	    util_make_memfd(a->caps, a->caps_len, &fd) != CL_OK) {
		free(labels);
		return;
	}
	for (i = 0; i < n; i++) {
		labels[i].key = a->row.labels.v[i].key;
		labels[i].value = a->row.labels.v[i].value;
	}
	row.labels = n > 0 ? labels : NULL;
	row.nlabels = n;
	if ((have_caps = agents_get_caps(a, &caps) == CL_OK)) {
		row.max_concurrent = caps.max_concurrent > 0 ?
		    (uint64_t)caps.max_concurrent : 0;
		row.nissues = ctlout_list_issues(&caps, issues);
	}
	row.issues = issues;
	if (dupid_is_suspect(&a->dup, util_now_ms())) {
		snprintf(dup, sizeof(dup), "duplicate identity: used by %s; "
		    "revoke it and enroll each host with a token of its own",
		    a->dup_peers != NULL ? a->dup_peers : "several hosts");
		issues[row.nissues++] = dup;
	}
	CTL_ROW(mon, id, ROW_AGENT, &row, fd);
	if (have_caps)
		caps_clear(&caps);
	free(labels);
}

void
ctlout_send_event(struct monitor *mon, uint64_t id, const char *event,
    const struct handle *h)
{
	struct ctl_event row;

	memset(&row, 0, sizeof(row));
	row.event = (char *)(uintptr_t)event;
	row.handle_id = h->row.handle_id;
	row.agent_id = h->row.agent_id;
	row.agent = h->agent->row.name;
	row.at = util_wall_ns();
	row.pid = h->row.pid;
	row.started_at = h->row.started_at;
	CTL_ROW(mon, id, ROW_EVENT, &row, -1);
}

int
ctlout_send_files(struct monitor *mon, uint64_t id,
    const struct store_handle *h)
{
	char *handle_id = h->handle_id;
	struct ctl_log log = { handle_id, h->log_bytes,
		(char *)(uintptr_t)h->log_sha256, h->log_modified_at };
	struct ctl_log index = { handle_id, h->index_bytes,
		(char *)(uintptr_t)h->index_sha256, h->index_modified_at };
	int log_fd, index_fd, r;

	if ((r = hfiles_open(mon->conf.state_dir, handle_id, HFILES_LOG, 0,
	    &log_fd)) != CL_OK)
		return r;
	if ((r = hfiles_open(mon->conf.state_dir, handle_id, HFILES_INDEX, 0,
	    &index_fd)) != CL_OK) {
		close(log_fd);
		return r;
	}
	CTL_ROW(mon, id, ROW_LOG, &log, log_fd);
	CTL_ROW(mon, id, ROW_INDEX, &index, index_fd);
	return CL_OK;
}
