/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Leases, in the monitor: from a run's wish to rows in the store.  The
 * store is the truth; nothing about a lease is kept in memory, so a crash of
 * the hub loses none of its authority and none of its limits.
 */
#include "lease.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/stdlib.h>
#include <bsd/string.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "common/msg/buf.h"
#include "common/msg/imsg.h"
#include "common/msg/msgcat.h"
#include "monitor.h"
#include "refuse.h"
#include "secretkind.h"

#include "store/db/store_lease.h"

#define NS INT64_C(1000000000)
#define REDACT_VERSIONS 4	/* of one secret, newest first */
#define REDACT_BLOB_MAX (16 * 1048576)

/* ---------------------------------------------------------------- planning */

static int
lease_find_secret(struct monitor *mon, const struct msg_want *w,
    const char *actor, struct store_secret *row)
{
	const char *owner = w->owner;
	int r;

	if (strcmp(owner, "shared") == 0)
		owner = "";
	else if (owner[0] == '\0') {
		/* A personal one hides a shared one of the same name. */
		r = store_find_secret(mon->store, w->secret, actor, row);
		if (r != CL_NOTFOUND)
			return r;
	}
	return store_find_secret(mon->store, w->secret, owner, row);
}

int
lease_find_secrets(struct monitor *mon, struct lease_plan *p,
    const struct msg_want *wants, size_t nwants, struct refusal *r)
{
	const struct secret_kind *k;
	const char *why;
	size_t i;
	int rc;

	for (i = 0; i < nwants; i++) {
		rc = lease_find_secret(mon, &wants[i], p->actor,
		    &p->items[i].secret);
		if (rc == CL_NOTFOUND) {
			refuse_set(r, "secret_not_found", "there is no secret "
			    "%s", wants[i].secret);
			return 1;
		}
		if (rc != CL_OK) {
			refuse_set(r, "internal", "the hub's store failed: "
			    "%s", store_error(mon->store));
			return 1;
		}
		p->n = i + 1;
		p->items[i].mode = (uint32_t)wants[i].mode;
		if ((k = kind_find(p->items[i].secret.kind, &why)) == NULL) {
			refuse_set(r, "usage", "the kind %s of %s %s",
			    p->items[i].secret.kind, wants[i].secret, why);
			return 1;
		}
		if (k->file != NULL && p->nfiles++ > 0 && i > 0 &&
		    strcmp(p->items[i - 1].secret.kind, k->name) == 0) {
			refuse_set(r, "usage", "a run may borrow one secret "
			    "of the kind %s", k->name);
			return 1;
		}
	}
	return 0;
}

void
lease_plan_clear(struct lease_plan *p)
{
	size_t i;

	for (i = 0; i < MAX_WANTS; i++)
		store_secret_clear(&p->items[i].secret);
	free(p->project);
	memset(p, 0, sizeof(*p));
}

struct lease_choice {
	struct monitor *mon;
	struct lease_plan *p;
	struct lease_plan_item *item;
	struct grant_requester q;
	int64_t expires_at;	/* of the grant chosen */
	size_t naimed;
	const char *why;	/* of the last denial */
};

/* Every aimed grant that cannot be honoured leaves a row. */
static void
lease_deny(struct lease_choice *c, const char *grant_id, const char *why)
{
	if (store_add_event(c->mon->store, c->p->now, c->p->actor,
	    "secret.access_check", "deny", "secret", c->item->secret.id,
	    "secret", c->item->secret.name, "kind", c->item->secret.kind,
	    "grant_id", grant_id, "executor_id", c->q.agent->agent_id,
	    "project", c->q.project, "reason", why, (char *)NULL) != CL_OK)
		mon_set_error(c->mon, store_error(c->mon->store));
}

static int
lease_on_grant(const struct store_grant *g, void *arg)
{
	struct lease_choice *c = arg;
	struct grant_terms terms;
	const char *why;

	if (!grant_is_aimed(g, &c->q))
		return 0;
	c->naimed++;
	if ((why = grant_check(g, &c->q, &terms)) == NULL &&
	    c->item->is_workspace && !grant_has_repo(&terms, c->p->repo))
		why = "its allowlist excludes the repository";
	if (why != NULL) {
		lease_deny(c, g->id, why);
		c->why = why;
		return 0;
	}
	/* Of several the one that lasts longest. */
	if (c->item->grant_id[0] != '\0' && c->expires_at >= g->expires_at)
		return 0;
	strlcpy(c->item->grant_id, g->id, sizeof(c->item->grant_id));
	c->item->terms = terms;
	c->expires_at = g->expires_at;
	return 0;
}

static int64_t
lease_get_ttl(const struct monitor *mon)
{
	return (mon->conf.lease_ttl < mon->conf.lease_max_ttl ?
	    mon->conf.lease_ttl : mon->conf.lease_max_ttl) * NS;
}

static int
lease_choose_one(struct lease_choice *c, const struct agent *a,
    struct refusal *r)
{
	struct lease_plan *p = c->p;

	c->item->grant_id[0] = '\0';
	c->expires_at = 0;
	c->naimed = 0;
	c->why = NULL;
	if (store_list_grants(c->mon->store, c->item->secret.id,
	    lease_on_grant, c) != CL_OK) {
		refuse_set(r, "internal", "the hub's store failed: %s",
		    store_error(c->mon->store));
		return 1;
	}
	if (c->item->grant_id[0] != '\0') {
		if (c->expires_at < p->expires_at)
			p->expires_at = c->expires_at;
		if (c->item->terms.ttl_s > 0 &&
		    p->now + c->item->terms.ttl_s * NS < p->expires_at)
			p->expires_at = p->now + c->item->terms.ttl_s * NS;
		return 0;
	}
	if (c->naimed == 0)
		lease_deny(c, NULL, "no grant is aimed at this run");
	refuse_set(r, "secret_denied", c->naimed == 0 ? "no grant lends %s "
	    "to %s for this run" : "no grant of %s to %s can be honoured: "
	    "%s", c->item->secret.name, a->row.name, c->why);
	refuse_set_remedy(r, "cloopctl grant add %s --to executor:%s",
	    c->item->secret.name, a->row.agent_id);
	return 1;
}

int
lease_choose(struct monitor *mon, struct lease_plan *p, const struct agent *a,
    struct refusal *r)
{
	struct lease_choice c;
	size_t i;

	memset(&c, 0, sizeof(c));
	c.mon = mon;
	c.p = p;
	store_make_id("lease_", p->id);
	(void)lease_check_clock(mon);
	p->now = util_wall_ns();
	p->expires_at = p->now + lease_get_ttl(mon);
	c.q.agent = &a->row;
	c.q.project = p->project != NULL ? p->project : "";
	c.q.actor = p->actor;
	c.q.now = p->now;
	for (i = 0; i < p->n; i++) {
		c.item = &p->items[i];
		if (lease_choose_one(&c, a, r))
			return 1;
	}
	return 0;
}

/* --------------------------------------------------------------- recording */

static int
lease_record_item(struct monitor *mon, const struct lease_plan *p,
    const struct lease_plan_item *pi, const struct handle *h)
{
	struct store_item item;
	char when[UTIL_TIME_MAX];
	int r;

	memset(&item, 0, sizeof(item));
	item.lease_id = (char *)(uintptr_t)p->id;
	item.grant_id = (char *)(uintptr_t)pi->grant_id;
	item.secret_id = pi->secret.id;
	item.name = pi->secret.name;
	item.kind = pi->secret.kind;
	item.version = pi->secret.version;
	item.mode = pi->mode;
	if ((r = store_add_item(mon->store, &item)) != CL_OK)
		return r;
	util_format_time(p->expires_at, when);
	return store_add_event(mon->store, p->now, p->actor, "secret.lease",
	    "allow", "lease", p->id, "lease_id", p->id, "secret_id",
	    pi->secret.id, "secret", pi->secret.name, "kind", pi->secret.kind,
	    "grant_id", pi->grant_id, "executor_id", h->row.agent_id,
	    "handle_id", h->row.handle_id, "project", p->project,
	    "expires_at", when, (char *)NULL);
}

int
lease_record(struct monitor *mon, const struct lease_plan *p,
    const struct handle *h)
{
	struct store_lease l;
	size_t i;
	int r;

	if (p->n == 0)
		return CL_OK;
	memset(&l, 0, sizeof(l));
	l.id = (char *)(uintptr_t)p->id;
	l.agent_id = h->row.agent_id;
	l.handle = h->row.number;
	l.handle_id = h->row.handle_id;
	l.project = p->project;
	l.actor = (char *)(uintptr_t)p->actor;
	l.issued_at = p->now;
	l.expires_at = p->expires_at;
	l.holder = mon->leases.holder;
	r = store_add_lease(mon->store, &l);
	for (i = 0; r == CL_OK && i < p->n; i++)
		r = lease_record_item(mon, p, &p->items[i], h);
	return r;
}

/* ------------------------------------------------------------- redactions */

static int
lease_has_bindings(const struct handle *h)
{
	return h->row.secrets != NULL && h->row.secrets[0] != '\0' &&
	    strcmp(h->row.secrets, "[]") != 0;
}

/* All versions that are still there: what was replaced may be printed yet. */
static int
lease_put_versions(struct monitor *mon, const struct store_item *item,
    struct buf *b)
{
	struct secret value = SECRET_INIT;
	struct store_secret row;
	int64_t v, least;
	int r;

	r = store_find_secret_id(mon->store, item->secret_id, &row);
	if (r == CL_NOTFOUND)
		return CL_OK;	/* destroyed: the device still knows it */
	if (r != CL_OK)
		return r;
	least = item->version < row.version - REDACT_VERSIONS ?
	    item->version : row.version - REDACT_VERSIONS;
	for (v = row.version; r == CL_OK && v > 0 && v >= least; v--) {
		r = store_load_secret(mon->store, &mon->leases.keks,
		    item->secret_id, v, &value);
		if (r == CL_OK)
			r = lease_put_values(item->kind, &value, b);
		else if (r == CL_NOTFOUND)
			r = CL_OK;
		else if (r == CL_DENIED || r == CL_FORMAT) {
			/* A lost key must not end workloads that run: their
			 * device hides the value as well. */
			log_error("redact", "secret=%s version=%lld "
			    "reason=\"cannot be opened\"",
			    item->secret_id, (long long)v);
			r = CL_OK;
		}
		secret_clear(&value);
	}
	store_secret_clear(&row);
	return r;
}

static int
lease_put_all(struct monitor *mon, const struct handle *h, struct buf *b)
{
	struct lease_list leases = { NULL, 0, 0 };
	struct item_list items = { NULL, 0, 0 };
	size_t i, k;
	int r;

	r = store_list_handle_leases(mon->store, h->row.number,
	    lease_list_add, &leases);
	for (i = 0; r == CL_OK && i < leases.n; i++)
		r = store_list_items(mon->store, leases.v[i].id,
		    item_list_add, &items);
	for (k = 0; r == CL_OK && k < items.n; k++)
		r = lease_put_versions(mon, &items.v[k], b);
	item_list_clear(&items);
	lease_list_clear(&leases);
	return r;
}

int
lease_send_redactions(struct monitor *mon, const struct session *s,
    const struct handle *h)
{
	struct msg_handle_redact body = { .handle = h->row.number };
	struct buf blob;
	int fd, r;

	if (!lease_has_bindings(h))
		return CL_OK;
	buf_init(&blob, REDACT_BLOB_MAX);
	if ((r = lease_put_all(mon, h, &blob)) == CL_OK &&
	    (r = buf_error(&blob)) == CL_OK && blob.len > 0 &&
	    (r = util_make_memfd(blob.data, blob.len, &fd)) == CL_OK) {
		body.len = blob.len;
		MON_SEND(mon_find_child(mon, s->generation), HANDLE_REDACT,
		    0, &body, fd);
	}
	buf_clear(&blob);	/* wiped */
	return r;
}

/* ------------------------------------------------------------------ lists */

int
lease_list_add(const struct store_lease *l, void *arg)
{
	static const size_t texts[] = {
		offsetof(struct store_lease, id),
		offsetof(struct store_lease, agent_id),
		offsetof(struct store_lease, handle_id),
		offsetof(struct store_lease, project),
		offsetof(struct store_lease, actor),
		offsetof(struct store_lease, holder),
		offsetof(struct store_lease, cause),
	};
	struct lease_list *list = arg;
	struct store_lease *v, *dst;
	const char *text;
	size_t i;

	if (list->n == list->cap) {
		v = recallocarray(list->v, list->cap, list->cap * 2 + 8,
		    sizeof(*v));
		if (v == NULL)
			return CL_NOMEM;
		list->v = v;
		list->cap = list->cap * 2 + 8;
	}
	dst = &list->v[list->n++];
	*dst = *l;
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		*(char **)(void *)((char *)dst + texts[i]) = NULL;
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		text = *(char *const *)(const void *)
		    ((const char *)l + texts[i]);
		if ((*(char **)(void *)((char *)dst + texts[i]) =
		    strdup(text != NULL ? text : "")) == NULL)
			return CL_NOMEM;
	}
	return CL_OK;
}

void
lease_list_clear(struct lease_list *list)
{
	size_t i;

	for (i = 0; i < list->n; i++)
		store_lease_clear(&list->v[i]);
	free(list->v);
	memset(list, 0, sizeof(*list));
}

int
item_list_add(const struct store_item *i, void *arg)
{
	struct item_list *list = arg;
	struct store_item *v, *dst;

	if (list->n == list->cap) {
		v = recallocarray(list->v, list->cap, list->cap * 2 + 8,
		    sizeof(*v));
		if (v == NULL)
			return CL_NOMEM;
		list->v = v;
		list->cap = list->cap * 2 + 8;
	}
	dst = &list->v[list->n++];
	*dst = *i;
	dst->lease_id = strdup(i->lease_id);
	dst->grant_id = strdup(i->grant_id);
	dst->secret_id = strdup(i->secret_id);
	dst->name = strdup(i->name);
	dst->kind = strdup(i->kind);
	return dst->lease_id != NULL && dst->grant_id != NULL &&
	    dst->secret_id != NULL && dst->name != NULL &&
	    dst->kind != NULL ? CL_OK : CL_NOMEM;
}

void
item_list_clear(struct item_list *list)
{
	size_t i;

	for (i = 0; i < list->n; i++)
		store_item_clear(&list->v[i]);
	free(list->v);
	memset(list, 0, sizeof(*list));
}
