/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * What the hub orders about a lease that workloads hold, in the device
 * monitor: take it back, or replace its files.  Every order is answered, when
 * all it waits for is decided or its time is over.
 *
 * Revoke: the scrub is done at once; a kill is reported when the shims have
 * said that nothing of their workloads is left, which they only do once pid
 * namespace and cgroup are empty.  What is said is what was done: the
 * environment of a process that runs cannot be changed by anybody, and no
 * copy of it is kept here or in the shim, so `env_scrubbed` stays empty
 * unless there was one to scrub.
 *
 * Refresh: the shims of all holders learn the new values first and say so;
 * only then is a file replaced, since the workload may print it at once.  A
 * holder whose shim does not answer keeps its old file, and the report says
 * that.  The contents are in this process until the last answer.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "leasing.h"
#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/rule.h"
#include "common/model/leasemsg.h"
#include "common/model/spec.h"
#include "agentd.h"
#include "workload_int.h"

#define LEASING_MAX 64		/* orders that wait; one more is refused */
#define REVOKE_MAX_MS 12000	/* the hub waits 15 s */
#define REFRESH_WAIT_MS 5000	/* shims answer within a turn */

/* A workload whose end, or whose shim's answer, is waited for. */
struct leasing_holder {
	uint64_t slot;
	uint64_t id;		/* of its SHIM_REDACT; 0: its end counts */
	int is_decided;
	int knows;		/* the values are hidden from now on */
};

struct leasing {
	TAILQ_ENTRY(leasing) entry;
	struct workloads *ws;
	struct workload_ask ask;
	int is_refresh;
	struct lease_revoke revoke;
	struct dev_revoked revoked;
	struct lease_refresh refresh;
	struct dev_refreshed refreshed;
	struct secretnote note;
	struct event *timer;
	struct leasing_holder *holders;
	size_t nholders;
	size_t nwaiting;
};

static void
leasing_free(struct leasing *o)
{
	field_clear(&lease_revoke_table, &o->revoke);
	field_clear(&dev_revoked_table, &o->revoked);
	field_clear(&lease_refresh_table, &o->refresh);	/* wipes */
	field_clear(&dev_refreshed_table, &o->refreshed);
	if (o->timer != NULL)
		event_free(o->timer);
	free(o->holders);
	free(o);
}

void
leasing_clear(struct workloads *ws)
{
	struct leasing *o;

	while ((o = TAILQ_FIRST(&ws->orders)) != NULL) {
		TAILQ_REMOVE(&ws->orders, o, entry);
		leasing_free(o);
	}
}

static void
leasing_answer(struct workloads *ws, const struct workload_ask *ask,
    int is_refresh, const void *rep)
{
	workload_lease_answer(ws, is_refresh ? MSG_DEV_REFRESH_ANS :
	    MSG_DEV_REVOKE_ANS, ask, is_refresh ? &dev_refreshed_table :
	    &dev_revoked_table, rep);
}

void
leasing_refuse(struct workloads *ws, const struct workload_ask *ask,
    int is_refresh, const char *text)
{
	struct dev_refreshed refreshed;
	struct dev_revoked revoked;

	field_init(&dev_refreshed_table, &refreshed);
	field_init(&dev_revoked_table, &revoked);
	refreshed.error = revoked.error = (char *)(uintptr_t)text;
	leasing_answer(ws, ask, is_refresh, is_refresh ? (void *)&refreshed :
	    (void *)&revoked);
}

/* The order, on its list; NULL: it was refused. */
static struct leasing *
leasing_new(struct workloads *ws, const struct workload_ask *ask,
    int is_refresh)
{
	struct leasing *o;
	size_t n = 0;

	TAILQ_FOREACH(o, &ws->orders, entry)
		n++;
	o = n < LEASING_MAX ? calloc(1, sizeof(*o)) : NULL;
	if (o == NULL || (o->holders = calloc(ws->n + 1,
	    sizeof(*o->holders))) == NULL) {
		free(o);
		leasing_refuse(ws, ask, is_refresh, n < LEASING_MAX ?
		    "out of memory" : "the device is busy with other leases");
		return NULL;
	}
	o->ws = ws;
	o->ask = *ask;
	o->is_refresh = is_refresh;
	field_init(&lease_revoke_table, &o->revoke);
	field_init(&dev_revoked_table, &o->revoked);
	field_init(&lease_refresh_table, &o->refresh);
	field_init(&dev_refreshed_table, &o->refreshed);
	TAILQ_INSERT_TAIL(&ws->orders, o, entry);
	return o;
}

static struct leasing_holder *
leasing_add_holder(struct leasing *o, const struct workload *w)
{
	struct leasing_holder *h = &o->holders[o->nholders++];

	h->slot = w->slot;
	o->nwaiting++;
	return h;
}

/* Does it hold what the order is about: any of these VAULT_HAS_*? */
static int
leasing_holds(const struct workload *w, const char *lease, const char *grant,
    unsigned int any)
{
	return w->holding != NULL && w->state != WL_DEAD &&
	    (holding_find(w->holding, lease, grant) & any) != 0;
}

/* What all workloads together hold of it, VAULT_HAS_*. */
static unsigned int
leasing_find(struct workloads *ws, const char *lease, const char *grant)
{
	unsigned int has = 0;
	struct workload *w;

	TAILQ_FOREACH(w, &ws->list, entry)
		if (w->holding != NULL && w->state != WL_DEAD)
			has |= holding_find(w->holding, lease, grant);
	return has;
}

/* ------------------------------------------------------------------ revoke */

/* Any other word means a scrub. */
static int
revoke_is_kill(const struct leasing *o)
{
	return rule_is_equal(o->revoke.action, "kill");
}

static void
revoke_finish(struct leasing *o)
{
	struct dev_revoked *rep = &o->revoked;

	if (*o->note.text != '\0')
		rep->error = strdup(o->note.text);
	log_info("revoke", "lease=%s grant=%s action=%s known=%d files=%lld "
	    "killed=%zu reason=%s error=%s", log_q(o->revoke.lease_id),
	    log_q(o->revoke.grant_id), revoke_is_kill(o) ? "kill" : "scrub",
	    rep->known, (long long)rep->files_removed, rep->nkilled,
	    log_q(o->revoke.reason), log_q(rep->error));
	leasing_answer(o->ws, &o->ask, 0, rep);
}

static void
revoke_scrub(struct leasing *o, struct workload *w, int whole)
{
	o->revoked.files_removed += holding_scrub(w->holding,
	    o->revoke.lease_id, o->revoke.grant_id, whole, &o->note);
	if (w->dir.fd != -1 && holding_save(w->holding, w->dir.fd) != 0)
		secretnote_add(&o->note, "the scrub could not be recorded");
	/* What it would be given is gone: it must not begin without. */
	if (w->state == WL_LAUNCHING || w->state == WL_PREPARING)
		w->is_cancelled = 1;
	if (w->state == WL_PREPARING)
		work_cancel(w->work);
}

/* It is to end: TERM now, KILL after 5 s, its shim after 5 more. */
static int
revoke_kill(struct leasing *o, struct workload *w)
{
	struct dev_revoked *rep = &o->revoked;

	if (w->state == WL_RUNNING) {
		if (!w->is_refused && !w->is_killed)
			workload_shim_terminate(w);
		w->is_killed = 1;
		if ((rep->killed[rep->nkilled] = strdup(w->handle_id)) ==
		    NULL)
			return CL_NOMEM;
		rep->nkilled++;
	} else if (w->state != WL_LAUNCHING && w->state != WL_PREPARING)
		return CL_OK;
	/* One that launches is ended as soon as it is decided. */
	(void)leasing_add_holder(o, w);
	return CL_OK;
}

/* All holders, scrubbed; with kill, those that have to end. */
static int
revoke_run(struct leasing *o)
{
	const char *lease = o->revoke.lease_id, *grant = o->revoke.grant_id;
	struct workloads *ws = o->ws;
	struct workload *w;
	unsigned int any;
	int r = CL_OK, whole;

	o->revoked.known = vault_decide(leasing_find(ws, lease, grant), grant,
	    &whole);
	if (!o->revoked.known)
		return CL_OK;
	o->revoked.killed = calloc(ws->n, sizeof(*o->revoked.killed));
	if (o->revoked.killed == NULL)
		r = CL_NOMEM;
	any = whole ? VAULT_HAS_LEASE : VAULT_HAS_GRANT;
	/* First every file of every holder, then the signals. */
	TAILQ_FOREACH(w, &ws->list, entry)
		if (leasing_holds(w, lease, grant, any))
			revoke_scrub(o, w, whole);
	if (r != CL_OK || !revoke_is_kill(o))
		return r;
	TAILQ_FOREACH(w, &ws->list, entry)
		if (r == CL_OK && leasing_holds(w, lease, grant, any))
			r = revoke_kill(o, w);
	return r;
}

/* ----------------------------------------------------------------- refresh */

/* One file of one holder; 1 when it was replaced. */
static int
refresh_file(struct leasing *o, struct workload *w,
    const struct spec_secret_file *f)
{
	size_t file;
	int r;

	r = holding_find_file(w->holding, o->refresh.lease_id, f->dir,
	    f->name, &file);
	if (r == CL_OK)
		r = secretfiles_replace(&w->holding->set, file, &f->content);
	else if (r == CL_LIMIT) {
		secretnote_add(&o->note, "%.64s: more than one file has "
		    "this name", f->name);
		return 0;
	}
	if (r == CL_OK)
		return 1;
	secretnote_add(&o->note, "%.64s: %s", f->name, r == CL_NOTFOUND ?
	    "there is no such file that was placed here and is live" :
	    cl_strerror(r));
	return 0;
}

static int
refresh_holder(struct leasing *o, struct workload *w)
{
	struct dev_refreshed *rep = &o->refreshed;
	int64_t n = 0;
	size_t i;

	/* Revoked while its shim learned the values. */
	if (!leasing_holds(w, o->refresh.lease_id, "", VAULT_HAS_LIVE)) {
		secretnote_add(&o->note, "the lease was revoked here");
		return CL_OK;
	}
	for (i = 0; i < o->refresh.nfiles; i++)
		n += refresh_file(o, w, &o->refresh.files[i]);
	if (n == 0)
		return CL_OK;
	rep->files_rewritten += n;
	if (holding_save(w->holding, w->dir.fd) != 0)
		secretnote_add(&o->note, "the new files could not be "
		    "recorded");
	if ((rep->handles[rep->nhandles] = strdup(w->handle_id)) == NULL)
		return CL_NOMEM;
	rep->nhandles++;
	return CL_OK;
}

static struct workload *
refresh_find(struct leasing *o, const struct leasing_holder *h)
{
	struct workload *w;

	TAILQ_FOREACH(w, &o->ws->list, entry)
		if (w->slot == h->slot && w->state != WL_DEAD &&
		    w->holding != NULL)
			return w;
	return NULL;
}

static void
refresh_finish(struct leasing *o)
{
	struct dev_refreshed *rep = &o->refreshed;
	struct workload *w;
	size_t i;
	int r = CL_OK;

	for (i = 0; r == CL_OK && i < o->nholders; i++) {
		if ((w = refresh_find(o, &o->holders[i])) == NULL)
			continue;	/* it ended: nothing to replace */
		if (o->holders[i].knows)
			r = refresh_holder(o, w);
		else
			secretnote_add(&o->note, "a workload's output "
			    "could not be prepared for the new value");
	}
	if (r != CL_OK)
		secretnote_add(&o->note, "%s", cl_strerror(r));
	if (*o->note.text != '\0')
		rep->error = strdup(o->note.text);
	log_info("refresh", "lease=%s known=%d files=%lld handles=%zu "
	    "reason=%s error=%s", log_q(o->refresh.lease_id), rep->known,
	    (long long)rep->files_rewritten, rep->nhandles,
	    log_q(o->refresh.reason), log_q(rep->error));
	leasing_answer(o->ws, &o->ask, 1, rep);
}

/* Tell the values to every shim whose workload holds the lease. */
static int
refresh_run(struct leasing *o)
{
	struct workloads *ws = o->ws;
	struct leasing_holder *h;
	struct workload *w;

	o->refreshed.handles = calloc(ws->n + 1,
	    sizeof(*o->refreshed.handles));
	if (o->refreshed.handles == NULL)
		return CL_NOMEM;
	TAILQ_FOREACH(w, &ws->list, entry) {
		if (!leasing_holds(w, o->refresh.lease_id, "",
		    VAULT_HAS_LIVE))
			continue;
		h = leasing_add_holder(o, w);
		h->id = ++ws->next_redact;
		if (workload_lease_send_values(w, h->id, o->refresh.files,
		    o->refresh.nfiles) == CL_OK)
			continue;
		h->is_decided = 1;
		o->nwaiting--;
	}
	o->refreshed.known = (leasing_find(ws, o->refresh.lease_id, "") &
	    VAULT_HAS_LEASE) != 0;
	if (o->refreshed.known && o->nholders == 0)
		secretnote_add(&o->note, "the lease was revoked here");
	return CL_OK;
}

/* -------------------------------------------------------------------- wait */

/* Report, and done with it. */
static void
leasing_finish(struct leasing *o)
{
	if (o->is_refresh)
		refresh_finish(o);
	else
		revoke_finish(o);
	TAILQ_REMOVE(&o->ws->orders, o, entry);
	leasing_free(o);
}

static void
leasing_on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct leasing *o = arg;

	(void)fd;
	(void)what;
	if (!o->is_refresh)
		secretnote_add(&o->note, "%zu workloads have not ended",
		    o->nwaiting);
	leasing_finish(o);
}

/* Finish now, or when the last of those it waits for is decided. */
static void
leasing_wait(struct leasing *o, int r, int64_t ms)
{
	const struct timeval max = { .tv_sec = ms / 1000 };

	if (r != CL_OK)
		secretnote_add(&o->note, "%s", cl_strerror(r));
	if (o->nwaiting > 0) {
		o->timer = event_new(o->ws->a->base, -1, 0, leasing_on_timer,
		    o);
		if (o->timer != NULL && event_add(o->timer, &max) == 0)
			return;
		secretnote_add(&o->note, "it could not be awaited");
	}
	leasing_finish(o);
}

/* id 0: the workload is over. */
static void
leasing_decide(struct workloads *ws, uint64_t slot, uint64_t id, int ok)
{
	struct leasing *o, *next;
	struct leasing_holder *h;
	size_t i;

	for (o = TAILQ_FIRST(&ws->orders); o != NULL; o = next) {
		next = TAILQ_NEXT(o, entry);
		for (i = 0; i < o->nholders; i++) {
			h = &o->holders[i];
			if (h->slot != slot || h->is_decided ||
			    (id != 0 && h->id != id))
				continue;
			h->is_decided = 1;
			h->knows = ok;
			if (--o->nwaiting == 0)
				leasing_finish(o);
			break;
		}
	}
}

void
leasing_on_redacted(struct workloads *ws, uint64_t slot, uint64_t id, int ok)
{
	leasing_decide(ws, slot, id, ok);
}

void
leasing_on_end(struct workloads *ws, uint64_t slot)
{
	leasing_decide(ws, slot, 0, 0);
}

void
leasing_on_forced(struct workloads *ws, uint64_t slot)
{
	struct leasing *o;
	size_t i;

	TAILQ_FOREACH(o, &ws->orders, entry)
		for (i = 0; !o->is_refresh && i < o->nholders; i++)
			if (o->holders[i].slot == slot)
				secretnote_add(&o->note, "a workload's "
				    "supervisor did not react and was "
				    "killed with it");
}

/* -------------------------------------------------------------------- asks */

void
leasing_revoke(struct workloads *ws, const struct workload_ask *ask,
    struct lease_revoke *req)
{
	struct leasing *o = leasing_new(ws, ask, 0);
	int r;

	if (o == NULL) {
		field_clear(&lease_revoke_table, req);
		return;
	}
	o->revoke = *req;
	field_init(&lease_revoke_table, req);
	r = revoke_run(o);
	if (!o->revoked.known && tombstones_has(&ws->tombstones,
	    o->revoke.lease_id))
		log_info("revoke-late", "lease=%s reason=\"it was given back "
		    "before\"", log_q(o->revoke.lease_id));
	leasing_wait(o, r, REVOKE_MAX_MS);
}

void
leasing_refresh(struct workloads *ws, const struct workload_ask *ask,
    struct lease_refresh *req)
{
	struct leasing *o = leasing_new(ws, ask, 1);

	if (o == NULL) {
		field_clear(&lease_refresh_table, req);
		return;
	}
	o->refresh = *req;
	field_init(&lease_refresh_table, req);
	leasing_wait(o, refresh_run(o), REFRESH_WAIT_MS);
}
