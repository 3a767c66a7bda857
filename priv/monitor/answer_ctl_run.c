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

/* One --secret of a run. */
struct answer_want {
	char name[MAX_NAME_LEN + 1];
	char owner[MAX_ID_LEN + 1];
};

/* The secrets a run wants to borrow.  texts[] holds what wants[] shows. */
static int
answer_run_wants(struct imsg *m, struct answer_want *texts,
    struct lease_want *wants, size_t *np)
{
	size_t i, n = buf_get_u16(&m->body);

	*np = 0;
	if (n > LEASE_ITEMS_MAX)
		return CL_LIMIT;
	for (i = 0; i < n; i++) {
		buf_get_str(&m->body, texts[i].name,
		    sizeof(texts[i].name) - 1);
		buf_get_str(&m->body, texts[i].owner,
		    sizeof(texts[i].owner) - 1);
		wants[i].name = texts[i].name;
		wants[i].owner = texts[i].owner;
		wants[i].mode = buf_get_u32(&m->body);
	}
	*np = n;
	return CL_OK;
}

int
answer_ctl_run(struct monitor *mon, struct child *c, struct imsg *m)
{
	char where[600], name[MAX_NAME_LEN + 1], actor[ACTOR_MAX];
	struct answer_want texts[LEASE_ITEMS_MAX];
	struct lease_want wants[LEASE_ITEMS_MAX];
	struct ctl_client *cl;
	struct dispatch d;
	struct spec spec;
	uint32_t len;
	int r;

	(void)c;
	if ((cl = answer_ctl_begin(mon, m)) == NULL)
		return CL_STATE;
	len = buf_get_u32(&m->body);
	buf_get_str(&m->body, where, sizeof(where) - 1);
	buf_get_str(&m->body, name, sizeof(name) - 1);
	d.detach = buf_get_bool(&m->body);
	if (answer_run_wants(m, texts, wants, &d.nwants) != CL_OK ||
	    buf_end(&m->body) != CL_OK)
		return answer_ctl_malformed(mon, m);
	d.wants = wants;
	if (mon->phase == MON_STOPPING) {
		ctlout_refuse(mon, m->id, "busy", "the hub is stopping");
		return CL_OK;
	}
	if ((r = answer_run_load(m, len, &spec)) != CL_OK) {
		ctlout_refuse(mon, m->id, r == CL_TOOBIG ? "usage" :
		    "protocol", "the workload description cannot be read: "
		    "%s", cl_strerror(r));
		return CL_OK;
	}
	answer_ctl_format_actor(cl, actor);
	d.ctl = m->id;
	d.actor = actor;
	d.where = where;
	d.name = name;
	d.spec = &spec;
	/* CTL_BRANCH came before, for this one run. */
	d.branch_fd = cl->has_branch ? cl->branch_fd : -1;
	d.branch_len = cl->branch_len;
	cl->has_branch = 0;
	dispatch_start(mon, &d);
	if (d.branch_fd != -1)
		close(d.branch_fd);
	spec_clear(&spec);
	return CL_OK;
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
		ctlout_refuse(mon, id, "internal", "the hub's store failed: "
		    "%s", store_error(mon->store));
	return r;
}

int
answer_ctl_show(struct monitor *mon, struct child *c, struct imsg *m)
{
	char handle_id[MAX_ID_LEN * 2 + 1];
	struct store_handle row;
	struct handle *h;

	(void)c;
	if (answer_ctl_begin(mon, m) == NULL)
		return CL_STATE;
	buf_get_str(&m->body, handle_id, sizeof(handle_id) - 1);
	if (buf_end(&m->body) != CL_OK)
		return answer_ctl_malformed(mon, m);
	if (answer_find_any(mon, m->id, handle_id, &h, &row) != CL_OK)
		return CL_OK;
	if (h != NULL)
		ctlout_send_handle(mon, m->id, h);
	else
		ctlout_send_stored(mon, m->id, &row);
	store_handle_clear(&row);
	ctlout_send_done(mon, m->id);
	return CL_OK;
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

int
answer_ctl_wait(struct monitor *mon, struct child *c, struct imsg *m)
{
	char handle_id[MAX_ID_LEN * 2 + 1];
	struct store_handle row;
	struct handle *h;

	(void)c;
	if (answer_ctl_begin(mon, m) == NULL)
		return CL_STATE;
	buf_get_str(&m->body, handle_id, sizeof(handle_id) - 1);
	if (buf_end(&m->body) != CL_OK)
		return answer_ctl_malformed(mon, m);
	if (answer_find_any(mon, m->id, handle_id, &h, &row) != CL_OK)
		return CL_OK;
	answer_end_or_wait(mon, m->id, h, &row);
	store_handle_clear(&row);
	return CL_OK;
}

int
answer_ctl_logs(struct monitor *mon, struct child *c, struct imsg *m)
{
	char handle_id[MAX_ID_LEN * 2 + 1];
	struct store_handle row;
	struct handle *h;
	int follow, r;

	(void)c;
	if (answer_ctl_begin(mon, m) == NULL)
		return CL_STATE;
	buf_get_str(&m->body, handle_id, sizeof(handle_id) - 1);
	follow = buf_get_bool(&m->body);
	if (buf_end(&m->body) != CL_OK)
		return answer_ctl_malformed(mon, m);
	if (answer_find_any(mon, m->id, handle_id, &h, &row) != CL_OK)
		return CL_OK;
	if ((r = ctlout_send_files(mon, m->id, handle_id)) != CL_OK)
		ctlout_refuse(mon, m->id, "internal", "the output of %s "
		    "cannot be opened: %s", handle_id, cl_strerror(r));
	else if (follow)
		answer_end_or_wait(mon, m->id, h, &row);
	else
		ctlout_send_done(mon, m->id);
	store_handle_clear(&row);
	return CL_OK;
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

int
answer_ctl_signal(struct monitor *mon, struct child *c, struct imsg *m)
{
	char handle_id[MAX_ID_LEN * 2 + 1], actor[ACTOR_MAX];
	struct store_handle row;
	struct ctl_client *cl;
	struct handle *h;
	int sig;

	(void)c;
	if ((cl = answer_ctl_begin(mon, m)) == NULL)
		return CL_STATE;
	buf_get_str(&m->body, handle_id, sizeof(handle_id) - 1);
	sig = buf_get_u8(&m->body);
	if (buf_end(&m->body) != CL_OK || sig < SIG_INTERRUPT ||
	    sig > SIG_KILL)
		return answer_ctl_malformed(mon, m);
	if (answer_find_any(mon, m->id, handle_id, &h, &row) != CL_OK)
		return CL_OK;
	store_handle_clear(&row);
	/* Of an ended one it is a success without a frame. */
	if (h == NULL || handle_is_closed(h)) {
		ctlout_send_done(mon, m->id);
		return CL_OK;
	}
	answer_ctl_format_actor(cl, actor);
	answer_signal_send(mon, m, h, sig, actor);
	return CL_OK;
}
