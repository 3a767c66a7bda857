/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Operators, part three: work.  A spec comes typed in a sealed memfd, made
 * by the operator's own tool; it is decoded and checked here like anything
 * else from outside this process.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/util.h"
#include "common/model/spec.h"
#include "common/msg/msgcat.h"
#include "answers.h"
#include "ctlout.h"
#include "dispatch.h"
#include "hello.h"

#include "store/db/store.h"

static int
answer_run_load(struct imsg *m, uint32_t len, struct spec *spec)
{
	struct buf b;
	uint8_t *data;
	int r;

	if ((r = util_load_memfd(m->fd, len, MAX_SPEC_LEN, &data)) != CL_OK)
		return r;
	buf_init_read(&b, data, len);
	if ((r = spec_get(&b, spec)) == CL_OK &&
	    (r = buf_end(&b)) != CL_OK)
		spec_clear(spec);
	explicit_bzero(data, len);
	free(data);
	return r;
}

void
answer_ctl_run(struct monitor *mon, struct ctl_client *cl, struct imsg *m,
    struct msg_ctl_run *v)
{
	struct spec spec;
	struct dispatch d = { .ctl = m->id, .actor = cl->actor,
	    .where = v->where, .name = v->name, .detach = v->detach,
	    .spec = &spec, .wants = v->wants, .nwants = v->nwants };
	int r;

	if (mon->phase == MON_STOPPING) {
		ctlout_refuse(mon, m->id, "busy", "the hub is stopping");
		return;
	}
	if ((r = answer_run_load(m, (uint32_t)v->len, &spec)) != CL_OK) {
		ctlout_refuse(mon, m->id, r == CL_TOOBIG ? "usage" :
		    "protocol", "the workload description cannot be read: "
		    "%s", cl_strerror(r));
		return;
	}
	/* CTL_BRANCH came before, for this one run. */
	d.branch_fd = cl->has_branch ? cl->branch_fd : -1;
	d.branch_len = cl->branch_len;
	cl->has_branch = 0;
	dispatch_start(mon, &d);
	if (d.branch_fd != -1)
		close(d.branch_fd);
	spec_clear(&spec);
}

/* --- one handle --- */

/*
 * Find a handle in memory or in the store.  CL_OK: *hp, or row (with *hp
 * NULL; the caller clears it).  Otherwise the operator has been told.
 */
static int
answer_find_any(struct monitor *mon, uint64_t id, const char *handle_id,
    struct handle **hp, struct store_handle *row)
{
	int r;

	memset(row, 0, sizeof(*row));
	if ((*hp = handles_find_id(&mon->handles, handle_id)) != NULL)
		return CL_OK;
	if ((r = store_find_handle(mon->store, handle_id, row)) == CL_OK)
		return CL_OK;
	if (r == CL_NOTFOUND)
		ctlout_refuse(mon, id, "handle_not_found",
		    "there is no handle %s", handle_id);
	else
		ctlout_refuse_store(mon, id);
	return r;
}

void
answer_ctl_show(struct monitor *mon, struct ctl_client *cl, struct imsg *m,
    struct msg_name *v)
{
	struct store_handle row;
	struct handle *h;

	(void)cl;
	if (answer_find_any(mon, m->id, v->name, &h, &row) != CL_OK)
		return;
	if (h != NULL)
		ctlout_send_handle(mon, m->id, h);
	else
		ctlout_send_stored(mon, m->id, &row);
	store_handle_clear(&row);
	ctlout_send_done(mon, m->id);
}

/* Answer with the handle's end: now, or when it comes. */
static void
answer_end_or_wait(struct monitor *mon, uint64_t id, struct handle *h,
    const struct store_handle *row)
{
	if (h == NULL)
		ctlout_send_stored(mon, id, row);
	else if (handle_is_closed(h))
		ctlout_send_handle(mon, id, h);
	else if (handle_add_waiter(h, id, WAIT_END) == CL_OK)
		return;
	else {
		ctlout_refuse(mon, id, "internal", "%s",
		    cl_strerror(CL_NOMEM));
		return;
	}
	ctlout_send_done(mon, id);
}

void
answer_ctl_wait(struct monitor *mon, struct ctl_client *cl, struct imsg *m,
    struct msg_name *v)
{
	struct store_handle row;
	struct handle *h;

	(void)cl;
	if (answer_find_any(mon, m->id, v->name, &h, &row) != CL_OK)
		return;
	answer_end_or_wait(mon, m->id, h, &row);
	store_handle_clear(&row);
}

void
answer_ctl_logs(struct monitor *mon, struct ctl_client *cl, struct imsg *m,
    struct msg_ctl_logs *v)
{
	struct store_handle row;
	struct handle *h;
	int r;

	(void)cl;
	if (answer_find_any(mon, m->id, v->handle, &h, &row) != CL_OK)
		return;
	if ((r = ctlout_send_files(mon, m->id,
	    h != NULL ? &h->row : &row)) != CL_OK)
		ctlout_refuse(mon, m->id, "internal", "the output of %s "
		    "cannot be opened: %s", v->handle, cl_strerror(r));
	else if (v->follow)
		answer_end_or_wait(mon, m->id, h, &row);
	else
		ctlout_send_done(mon, m->id);
	store_handle_clear(&row);
}

static void
answer_signal_send(struct monitor *mon, const struct imsg *m,
    struct handle *h, int sig, const char *actor)
{
	struct session *s = agents_find_current(&mon->agents, h->agent);

	if (s == NULL || s->state != SESSION_CURRENT) {
		ctlout_refuse(mon, m->id, "agent_unreachable",
		    "%s has no live session", h->agent->row.name);
		return;
	}
	if (hello_open_handle(mon, s, h) != CL_OK) {
		ctlout_refuse(mon, m->id, "internal",
		    "the output files of %s cannot be opened",
		    h->row.handle_id);
		return;
	}
	if (store_add_event(mon->store, util_wall_ns(), actor,
	    "workload.signal", "allow", "handle", h->row.handle_id,
	    "executor_id", h->row.agent_id, "signal", sig == SIG_KILL ?
	    "kill" : sig == SIG_TERMINATE ? "terminate" : "interrupt",
	    (char *)NULL) != CL_OK)
		mon_set_error(mon, store_error(mon->store));
	devask_signal(mon, s, h->row.number, sig, m->id);
}

void
answer_ctl_signal(struct monitor *mon, struct ctl_client *cl, struct imsg *m,
    struct msg_ctl_signal *v)
{
	struct store_handle row;
	struct handle *h;

	if (answer_find_any(mon, m->id, v->handle, &h, &row) != CL_OK)
		return;
	store_handle_clear(&row);
	/* Of an ended one it is a success without a frame. */
	if (h == NULL || handle_is_closed(h)) {
		ctlout_send_done(mon, m->id);
		return;
	}
	answer_signal_send(mon, m, h, (int)v->sig, cl->actor);
}
