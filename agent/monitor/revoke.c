/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Taking a lease back, in the device monitor.  The scrub is done at once; a
 * kill is reported when the shims have said that nothing of their workloads
 * is left, which they only do once pid namespace and cgroup are empty.  Every
 * revoke is answered, within REVOKE_MAX_MS.
 *
 * What is said is what was done: the environment of a process that runs
 * cannot be changed by anybody, and no copy of it is kept here or in the
 * shim, so `env_scrubbed` stays empty unless there was one to scrub.
 */
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/rule.h"
#include "common/model/devlease.h"
#include "agentd.h"
#include "workload_int.h"

#define REVOKE_MAX_MS 12000	/* the hub waits 15 s */

/* A kill that waits for the ends of workloads. */
struct revoke {
	TAILQ_ENTRY(revoke) entry;
	struct workloads *ws;
	struct workload_ask ask;
	struct dev_revoke req;
	struct dev_revoked rep;
	struct secretnote note;
	struct event *timer;
	uint64_t *slots;		/* not ended yet */
	size_t nslots;
};

static void
revoke_free(struct revoke *rv)
{
	field_clear(&dev_revoke_table, &rv->req);
	field_clear(&dev_revoked_table, &rv->rep);
	if (rv->timer != NULL)
		event_free(rv->timer);
	free(rv->slots);
	free(rv);
}

void
revoke_free_all(struct workloads *ws)
{
	struct revoke *rv;

	while ((rv = TAILQ_FIRST(&ws->revokes)) != NULL) {
		TAILQ_REMOVE(&ws->revokes, rv, entry);
		revoke_free(rv);
	}
}

/* Report, and done with it. */
static void
revoke_finish(struct revoke *rv)
{
	struct dev_revoked *rep = &rv->rep;

	if (*rv->note.text != '\0')
		rep->error = strdup(rv->note.text);
	log_info("revoke", "lease=%s grant=%s action=%s known=%d files=%lld "
	    "killed=%zu reason=%s error=%s", log_q(rv->req.lease_id),
	    log_q(rv->req.grant_id), rv->req.kill ? "kill" : "scrub",
	    rep->known, (long long)rep->files_removed, rep->nkilled,
	    log_q(rv->req.reason), log_q(rep->error));
	workload_lease_answer(rv->ws, MSG_DEV_REVOKE_ANS, &rv->ask,
	    &dev_revoked_table, rep);
	TAILQ_REMOVE(&rv->ws->revokes, rv, entry);
	revoke_free(rv);
}

static void
revoke_on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct revoke *rv = arg;

	(void)fd;
	(void)what;
	secretnote_add(&rv->note, "%zu workloads have not ended",
	    rv->nslots);
	revoke_finish(rv);
}

/* Its shim, which would know, had to be killed: the kernel takes the rest
 * along, but nobody saw it empty. */
void
revoke_on_forced(struct workloads *ws, uint64_t slot)
{
	struct revoke *rv;
	size_t i;

	TAILQ_FOREACH(rv, &ws->revokes, entry)
		for (i = 0; i < rv->nslots; i++)
			if (rv->slots[i] == slot)
				secretnote_add(&rv->note, "a workload's "
				    "supervisor did not react and was "
				    "killed with it");
}

void
revoke_on_end(struct workloads *ws, uint64_t slot)
{
	struct revoke *rv, *next;
	size_t i;

	for (rv = TAILQ_FIRST(&ws->revokes); rv != NULL; rv = next) {
		next = TAILQ_NEXT(rv, entry);
		for (i = 0; i < rv->nslots; i++) {
			if (rv->slots[i] != slot)
				continue;
			rv->slots[i] = rv->slots[--rv->nslots];
			if (rv->nslots == 0)
				revoke_finish(rv);
			break;
		}
	}
}

/* ------------------------------------------------------------------- scrub */

static int
revoke_is_holder(const struct revoke *rv, const struct workload *w,
    int whole)
{
	unsigned int has;

	if (w->holding == NULL || w->state == WL_DEAD)
		return 0;
	has = holding_find(w->holding, rv->req.lease_id, rv->req.grant_id);
	return (has & (whole ? VAULT_HAS_LEASE : VAULT_HAS_GRANT)) != 0;
}

static void
revoke_scrub(struct revoke *rv, struct workload *w, int whole)
{
	rv->rep.files_removed += holding_scrub(w->holding, rv->req.lease_id,
	    rv->req.grant_id, whole, &rv->note);
	if (w->dir.fd != -1 && holding_save(w->holding, w->dir.fd) != 0)
		secretnote_add(&rv->note, "the scrub could not be recorded");
	/* What it would be given is gone: it must not begin without. */
	if (w->state == WL_LAUNCHING || w->state == WL_PREPARING)
		w->is_cancelled = 1;
	if (w->state == WL_PREPARING)
		work_cancel(w);
}

/* -------------------------------------------------------------------- kill */

/* It is to end: TERM now, KILL after 5 s, its shim after 5 more. */
static int
revoke_kill(struct revoke *rv, struct workload *w)
{
	struct dev_revoked *rep = &rv->rep;

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
	rv->slots[rv->nslots++] = w->slot;
	return CL_OK;
}

/* All holders, scrubbed; with kill, those that have to end. */
static int
revoke_run(struct revoke *rv)
{
	struct workloads *ws = rv->ws;
	struct workload *w;
	unsigned int has = 0;
	int r = CL_OK, whole;

	TAILQ_FOREACH(w, &ws->list, entry)
		if (w->holding != NULL && w->state != WL_DEAD)
			has |= holding_find(w->holding, rv->req.lease_id,
			    rv->req.grant_id);
	rv->rep.known = vault_decide(has, rv->req.grant_id, &whole);
	if (!rv->rep.known)
		return CL_OK;
	rv->slots = calloc(ws->n, sizeof(*rv->slots));
	rv->rep.killed = calloc(ws->n, sizeof(*rv->rep.killed));
	if (rv->slots == NULL || rv->rep.killed == NULL)
		r = CL_NOMEM;
	/* First every file of every holder, then the signals. */
	TAILQ_FOREACH(w, &ws->list, entry)
		if (revoke_is_holder(rv, w, whole))
			revoke_scrub(rv, w, whole);
	if (r != CL_OK || !rv->req.kill)
		return r;
	TAILQ_FOREACH(w, &ws->list, entry)
		if (r == CL_OK && revoke_is_holder(rv, w, whole))
			r = revoke_kill(rv, w);
	return r;
}

void
workloads_revoke(struct workloads *ws, const struct workload_ask *ask,
    struct dev_revoke *req)
{
	static const struct timeval max = { .tv_sec = REVOKE_MAX_MS / 1000 };
	struct dev_revoked none;
	struct revoke *rv = calloc(1, sizeof(*rv));
	int r;

	if (rv == NULL) {
		field_clear(&dev_revoke_table, req);
		field_init(&dev_revoked_table, &none);
		none.error = (char *)(uintptr_t)"out of memory";
		workload_lease_answer(ws, MSG_DEV_REVOKE_ANS, ask,
		    &dev_revoked_table, &none);
		return;
	}
	rv->ws = ws;
	rv->ask = *ask;
	rv->req = *req;
	field_init(&dev_revoke_table, req);
	field_init(&dev_revoked_table, &rv->rep);
	TAILQ_INSERT_TAIL(&ws->revokes, rv, entry);
	if ((r = revoke_run(rv)) != CL_OK)
		secretnote_add(&rv->note, "%s", cl_strerror(r));
	if (rv->nslots > 0) {
		rv->timer = event_new(ws->a->base, -1, 0, revoke_on_timer,
		    rv);
		if (rv->timer != NULL && event_add(rv->timer, &max) == 0)
			return;
		secretnote_add(&rv->note, "its end could not be awaited");
	}
	if (!rv->rep.known && tombstones_has(&ws->tombstones,
	    rv->req.lease_id))
		log_info("revoke-late", "lease=%s reason=\"it was given back "
		    "before\"", log_q(rv->req.lease_id));
	revoke_finish(rv);
}
