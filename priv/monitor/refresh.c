/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Refreshes, in the monitor.  Order: the grants are checked again, the hub
 * learns to hide the new values, and only then does the frame leave.  A
 * lease that was taken back is never refreshed: that is decided here, and
 * the frames of one session keep their order.
 */
#include "refresh.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/stdlib.h>
#include <bsd/string.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "common/model/leasemsg.h"
#include "common/msg/msgcat.h"
#include "ctlout.h"
#include "monitor.h"
#include "refuse.h"

#include "store/db/store_lease.h"

#define REFRESH_MAX 1024	/* on their way at once */

struct refresh {
	TAILQ_ENTRY(refresh) entry;
	uint64_t id;
	uint64_t session;
	uint64_t generation;
	uint64_t ctl;		/* 0: nobody waits */
	char lease_id[MAX_ID_LEN + 1];
	char agent_id[MAX_ID_LEN + 1];
	char actor[64];
};

void
refresh_init(struct monitor *mon)
{
	memset(&mon->refreshes, 0, sizeof(mon->refreshes));
	TAILQ_INIT(&mon->refreshes.list);
}

static void
refresh_free(struct monitor *mon, struct refresh *f)
{
	TAILQ_REMOVE(&mon->refreshes.list, f, entry);
	mon->refreshes.n--;
	free(f);
}

void
refresh_clear(struct monitor *mon)
{
	struct refresh *f;

	while ((f = TAILQ_FIRST(&mon->refreshes.list)) != NULL)
		refresh_free(mon, f);
}

/* ------------------------------------------------------------------ making */

/* One file of the newest version; CL_NOTFOUND: this item has none. */
static int
refresh_add_file(struct monitor *mon, const struct store_item *item,
    struct lease_refresh *msg)
{
	struct secret value = SECRET_INIT;
	struct spec_secret_file *v;
	struct store_secret row;
	int r;

	if ((r = store_find_secret_id(mon->store, item->secret_id, &row)) !=
	    CL_OK)
		return r;
	v = recallocarray(msg->files, msg->nfiles, msg->nfiles + 1,
	    sizeof(*v));
	if (v == NULL)
		r = CL_NOMEM;
	else {
		msg->files = v;
		r = store_load_secret(mon->store, &mon->leases.keks, row.id,
		    row.version, &value);
	}
	if (r == CL_OK && (r = lease_render_file(item, &value,
	    &msg->files[msg->nfiles])) == CL_OK) {
		msg->nfiles++;
		r = store_save_item_version(mon->store, item->lease_id,
		    item->grant_id, row.version);
	}
	secret_clear(&value);
	store_secret_clear(&row);
	return r;
}

/* All files that may still be lent; r is filled in when there are none. */
static int
refresh_make(struct monitor *mon, const struct store_lease *l,
    struct lease_refresh *msg, struct refusal *r)
{
	struct item_list items = { NULL, 0, 0 };
	const char *why = NULL;
	int64_t expires;
	size_t i;
	int rc;

	rc = store_list_items(mon->store, l->id, item_list_add, &items);
	for (i = 0; rc == CL_OK && i < items.n; i++) {
		why = lease_check_item(mon, l, &items.v[i], util_wall_ns(),
		    &expires);
		if (why != NULL)
			continue;
		rc = refresh_add_file(mon, &items.v[i], msg);
		if (rc == CL_NOTFOUND)
			rc = CL_OK;
	}
	item_list_clear(&items);
	if (rc == CL_OK && msg->nfiles > 0)
		return 0;
	if (rc != CL_OK)
		refuse_set(r, "internal", "the files of %s cannot be "
		    "prepared: %s", l->id, rc == CL_DB ?
		    store_error(mon->store) : cl_strerror(rc));
	else if (why != NULL)
		refuse_set(r, "secret_denied", "%s may not be refreshed: %s",
		    l->id, why);
	else
		refuse_set(r, "usage", "%s has no file to refresh; a "
		    "running process keeps the variables it began with",
		    l->id);
	return 1;
}

static int
refresh_make_memfd(struct lease_refresh *msg, int *fdp, size_t *lenp)
{
	struct buf b;
	int r;

	buf_init(&b, MAX_SPEC_LEN);
	field_put(&lease_refresh_table, msg, &b);
	if ((r = buf_error(&b)) == CL_OK)
		r = util_make_memfd(b.data, b.len, fdp);
	*lenp = b.len;
	buf_clear(&b);		/* wiped */
	return r;
}

/* ----------------------------------------------------------------- sending */

static void
refresh_undo(struct monitor *mon, uint64_t id, uint64_t aux, int ok)
{
	struct refresh *f;

	(void)aux;
	TAILQ_FOREACH(f, &mon->refreshes.list, entry)
		if (f->id == id)
			break;
	if (ok || f == NULL)
		return;
	if (f->ctl != 0)
		ctlout_refuse(mon, f->ctl, "internal",
		    "the hub's store failed: %s", mon->last_error);
	refresh_free(mon, f);
}

static void
refresh_audit(struct monitor *mon, const struct refresh *f,
    const char *phase, const char *decision, const char *error)
{
	if (store_add_event(mon->store, util_wall_ns(), f->actor,
	    "secret.renew", decision, "lease", f->lease_id, "lease_id",
	    f->lease_id, "executor_id", f->agent_id, "phase", phase,
	    "error", error, (char *)NULL) != CL_OK)
		mon_set_error(mon, store_error(mon->store));
}

static void
refresh_send(struct monitor *mon, struct session *s, struct refresh *f,
    int fd, size_t len)
{
	struct msg_session_memfd body = { s->number, len };

	f->id = ++mon->refreshes.last_id;
	f->session = s->number;
	f->generation = s->generation;
	TAILQ_INSERT_TAIL(&mon->refreshes.list, f, entry);
	mon->refreshes.n++;
	mon_add_after(mon, refresh_undo, f->id, 0);
	/* On record before it leaves, whoever waits for the answer. */
	refresh_audit(mon, f, "start", "allow", NULL);
	mon->durable = 1;
	MON_SEND(mon_find_child(mon, s->generation), REFRESH, f->id, &body,
	    fd);
	mon->durable = 0;
}

/* Where it could go; NULL: r says why nowhere. */
static struct session *
refresh_find_session(struct monitor *mon, const struct store_lease *l,
    struct refusal *r)
{
	struct agent *a = agents_find(&mon->agents, l->agent_id);
	struct session *s = a != NULL ? agents_find_current(&mon->agents, a) :
	    NULL;

	if (l->state != STORE_LEASE_LIVE || l->expires_at <= util_wall_ns()) {
		refuse_set(r, "lease_not_live", "%s is not lent any more",
		    l->id);
		return NULL;
	}
	if (s == NULL || s->state != SESSION_CURRENT || s->dropped) {
		refuse_set(r, "agent_unreachable", "%s has no live session",
		    a != NULL ? a->row.name : l->agent_id);
		return NULL;
	}
	if (s->protocol < 17) {
		refuse_set(r, "secret_refresh_unsupported", "%s speaks "
		    "protocol %u with this hub (%u): replacing files of a "
		    "running workload needs 17; what it holds lapses",
		    a->row.name, s->protocol, (unsigned int)PROTO_MAX);
		refuse_set_remedy(r, "upgrade the agent, or run it again");
		return NULL;
	}
	return s;
}

static int
refresh_run(struct monitor *mon, const struct store_lease *l,
    struct refresh *f, struct refusal *r)
{
	struct handle *h = handles_find(&mon->handles, l->handle);
	struct lease_refresh msg;
	struct session *s;
	size_t len = 0;
	int fd = -1, rc;

	if ((s = refresh_find_session(mon, l, r)) == NULL)
		return 1;
	field_init(&lease_refresh_table, &msg);
	if (refresh_make(mon, l, &msg, r)) {
		field_clear(&lease_refresh_table, &msg);
		return 1;
	}
	rc = (msg.lease_id = strdup(l->id)) == NULL ||
	    (msg.reason = strdup("refreshed by the operator")) == NULL ?
	    CL_NOMEM : refresh_make_memfd(&msg, &fd, &len);
	field_clear(&lease_refresh_table, &msg);	/* wipes */
	if (rc == CL_OK && h != NULL)
		rc = lease_send_redactions(mon, s, h);
	if (rc != CL_OK) {
		if (fd != -1)
			close(fd);
		refuse_set(r, "internal", "the files of %s cannot be sent: "
		    "%s", l->id, cl_strerror(rc));
		return 1;
	}
	refresh_send(mon, s, f, fd, len);
	return 0;
}

void
refresh_start(struct monitor *mon, const char *lease_id, const char *actor,
    uint64_t ctl)
{
	struct store_lease l;
	struct refresh *f;
	struct refusal r;
	int bad, rc;

	if ((rc = store_find_lease(mon->store, lease_id, &l)) != CL_OK) {
		ctlout_refuse(mon, ctl, rc == CL_NOTFOUND ?
		    "lease_not_found" : "internal", "%s%s", rc ==
		    CL_NOTFOUND ? "there is no lease " : "the hub's store "
		    "failed: ", rc == CL_NOTFOUND ? lease_id :
		    store_error(mon->store));
		return;
	}
	if ((f = calloc(1, sizeof(*f))) == NULL) {
		store_lease_clear(&l);
		ctlout_refuse(mon, ctl, "internal", "%s",
		    cl_strerror(CL_NOMEM));
		return;
	}
	f->ctl = ctl;
	strlcpy(f->lease_id, l.id, sizeof(f->lease_id));
	strlcpy(f->agent_id, l.agent_id, sizeof(f->agent_id));
	strlcpy(f->actor, actor, sizeof(f->actor));
	if (mon->refreshes.n >= REFRESH_MAX) {
		refuse_set(&r, "busy", "%zu refreshes wait for their devices",
		    mon->refreshes.n);
		bad = 1;
	} else if ((bad = refresh_run(mon, &l, f, &r)) != 0)
		store_undo_request(mon->store);
	if (bad) {
		refresh_audit(mon, f, "end", "deny", r.message);
		ctlout_send_err(mon, ctl, &r);
		free(f);
	}
	store_lease_clear(&l);
}

/* ----------------------------------------------------------------- answers */

static void
refresh_finish(struct monitor *mon, struct refresh *f, int result,
    const char *code, const char *text, const struct lease_refreshed *rep)
{
	struct agent *a = agents_find(&mon->agents, f->agent_id);
	struct ctl_refreshed row;
	struct refusal r;

	if (result != RES_OK) {
		refuse_set_result(&r, result, code, text, a != NULL ?
		    a->row.name : f->agent_id);
		refresh_audit(mon, f, "end", "deny", r.message);
		if (f->ctl != 0)
			ctlout_send_err(mon, f->ctl, &r);
		refresh_free(mon, f);
		return;
	}
	memset(&row, 0, sizeof(row));
	row.agent_id = f->agent_id;
	row.agent = a != NULL ? a->row.name : NULL;
	row.lease_id = f->lease_id;
	row.known = rep->known;
	row.files_rewritten = rep->files_rewritten;
	row.handles = rep->handles;
	row.nhandles = rep->nhandles;
	row.eventual = rep->eventual;
	row.unsupported = rep->unsupported;
	row.error = rep->error;
	refresh_audit(mon, f, "end", rep->unsupported || (rep->error != NULL &&
	    rep->error[0] != '\0') ? "deny" : "allow", rep->error);
	if (f->ctl != 0) {
		CTL_ROW(mon, f->ctl, ROW_REFRESHED, &row, -1);
		ctlout_send_done(mon, f->ctl);
	}
	refresh_free(mon, f);
}

int
refresh_answer(struct monitor *mon, struct child *c, struct imsg *m,
    struct msg_refresh_ans *v)
{
	struct refresh *f;

	if (m->id == 0 || m->id > mon->refreshes.last_id)
		return CL_FORMAT;
	TAILQ_FOREACH(f, &mon->refreshes.list, entry)
		if (f->id == m->id)
			break;
	if (f != NULL && f->generation != c->generation)
		return CL_FORMAT;
	if (f != NULL)
		refresh_finish(mon, f, (int)v->ans.result, v->ans.code,
		    v->ans.text, &v->report);
	return CL_OK;
}

void
refresh_end_session(struct monitor *mon, uint64_t session)
{
	struct refresh *f, *next;

	for (f = TAILQ_FIRST(&mon->refreshes.list); f != NULL; f = next) {
		next = TAILQ_NEXT(f, entry);
		if (f->session == session)
			refresh_finish(mon, f, RES_SESSION_CLOSED, "", "",
			    NULL);
	}
}

/* Nobody waits for it any more; it is on its way, and its end goes on
 * record. */
void
refresh_forget(struct monitor *mon, uint64_t ctl, uint64_t mask)
{
	struct refresh *f;

	TAILQ_FOREACH(f, &mon->refreshes.list, entry)
		if ((f->ctl & mask) == (ctl & mask))
			f->ctl = 0;
}
