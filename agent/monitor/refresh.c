/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * New contents for files of a lease, in the device monitor.  The shims of all
 * holders learn the new values first and say so; only then is a file
 * replaced, since the workload may print it at once.  A holder whose shim
 * does not answer keeps its old file, and the report says that.  The contents
 * are in this process until the last answer, REFRESH_WAIT_MS at most.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/model/devlease.h"
#include "common/model/spec.h"
#include "agentd.h"
#include "workload_int.h"

#define REFRESH_WAIT_MS 5000	/* shims answer within a turn */

struct refresh_holder {
	uint64_t slot;
	uint64_t id;		/* of its SHIM_REDACT */
	int is_decided;
	int knows;		/* the values are hidden from now on */
};

struct refresh {
	TAILQ_ENTRY(refresh) entry;
	struct workloads *ws;
	struct workload_ask ask;
	struct dev_refresh req;
	struct dev_refreshed rep;
	struct secretnote note;
	struct event *timer;
	struct refresh_holder *holders;
	size_t nholders;
	size_t nwaiting;
};

static void
refresh_free(struct refresh *rf)
{
	field_clear(&dev_refresh_table, &rf->req);	/* wipes */
	field_clear(&dev_refreshed_table, &rf->rep);
	if (rf->timer != NULL)
		event_free(rf->timer);
	free(rf->holders);
	free(rf);
}

void
refresh_free_all(struct workloads *ws)
{
	struct refresh *rf;

	while ((rf = TAILQ_FIRST(&ws->refreshes)) != NULL) {
		TAILQ_REMOVE(&ws->refreshes, rf, entry);
		refresh_free(rf);
	}
}

static struct workload *
refresh_find(struct refresh *rf, const struct refresh_holder *rh)
{
	struct workload *w;

	TAILQ_FOREACH(w, &rf->ws->list, entry)
		if (w->slot == rh->slot && w->state != WL_DEAD &&
		    w->holding != NULL)
			return w;
	return NULL;
}

/* ----------------------------------------------------------------- replace */

/* One file of one holder; 1 when it was replaced. */
static int
refresh_file(struct refresh *rf, struct workload *w,
    const struct spec_secret_file *f)
{
	size_t file;
	int r;

	r = holding_find_file(w->holding, rf->req.lease_id, f->dir, f->name,
	    &file);
	if (r == CL_OK)
		r = secretfiles_replace(&w->holding->set, file, &f->content);
	else if (r == CL_LIMIT) {
		secretnote_add(&rf->note, "%.64s: more than one file has "
		    "this name", f->name);
		return 0;
	}
	if (r == CL_OK)
		return 1;
	secretnote_add(&rf->note, "%.64s: %s", f->name, r == CL_NOTFOUND ?
	    "there is no such file that was placed here and is live" :
	    cl_strerror(r));
	return 0;
}

static int
refresh_holder(struct refresh *rf, struct workload *w)
{
	struct dev_refreshed *rep = &rf->rep;
	int64_t n = 0;
	size_t i;

	/* Revoked while its shim learned the values. */
	if ((holding_find(w->holding, rf->req.lease_id, "") &
	    VAULT_HAS_LIVE) == 0) {
		secretnote_add(&rf->note, "the lease was revoked here");
		return CL_OK;
	}
	for (i = 0; i < rf->req.nfiles; i++)
		n += refresh_file(rf, w, &rf->req.files[i]);
	if (n == 0)
		return CL_OK;
	rep->files_rewritten += n;
	if (holding_save(w->holding, w->dir.fd) != 0)
		secretnote_add(&rf->note, "the new files could not be "
		    "recorded");
	if ((rep->handles[rep->nhandles] = strdup(w->handle_id)) == NULL)
		return CL_NOMEM;
	rep->nhandles++;
	return CL_OK;
}

static void
refresh_finish(struct refresh *rf)
{
	struct workload *w;
	size_t i;
	int r = CL_OK;

	for (i = 0; r == CL_OK && i < rf->nholders; i++) {
		if ((w = refresh_find(rf, &rf->holders[i])) == NULL)
			continue;	/* it ended: nothing to replace */
		if (rf->holders[i].knows)
			r = refresh_holder(rf, w);
		else
			secretnote_add(&rf->note, "a workload's output "
			    "could not be prepared for the new value");
	}
	if (r != CL_OK)
		secretnote_add(&rf->note, "%s", cl_strerror(r));
	if (*rf->note.text != '\0')
		rf->rep.error = strdup(rf->note.text);
	log_info("refresh", "lease=%s known=%d files=%lld handles=%zu "
	    "reason=%s error=%s", log_q(rf->req.lease_id), rf->rep.known,
	    (long long)rf->rep.files_rewritten, rf->rep.nhandles,
	    log_q(rf->req.reason), log_q(rf->rep.error));
	workload_lease_answer(rf->ws, MSG_DEV_REFRESH_ANS, &rf->ask,
	    &dev_refreshed_table, &rf->rep);
	TAILQ_REMOVE(&rf->ws->refreshes, rf, entry);
	refresh_free(rf);
}

/* -------------------------------------------------------------------- wait */

static void
refresh_on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	refresh_finish(arg);
}

static void
refresh_decide(struct refresh *rf, struct refresh_holder *rh, int knows)
{
	if (rh->is_decided)
		return;
	rh->is_decided = 1;
	rh->knows = knows;
	if (--rf->nwaiting == 0)
		refresh_finish(rf);
}

/* id 0: the workload is over. */
static void
refresh_on_answer(struct workloads *ws, uint64_t slot, uint64_t id, int ok)
{
	struct refresh *rf, *next;
	size_t i;

	for (rf = TAILQ_FIRST(&ws->refreshes); rf != NULL; rf = next) {
		next = TAILQ_NEXT(rf, entry);
		for (i = 0; i < rf->nholders; i++) {
			if (rf->holders[i].slot != slot ||
			    (id != 0 && rf->holders[i].id != id))
				continue;
			refresh_decide(rf, &rf->holders[i], ok);
			break;
		}
	}
}

void
refresh_on_redacted(struct workloads *ws, uint64_t slot, uint64_t id, int ok)
{
	refresh_on_answer(ws, slot, id, ok);
}

void
refresh_on_end(struct workloads *ws, uint64_t slot)
{
	refresh_on_answer(ws, slot, 0, 0);
}

/* Tell the values to every shim whose workload holds the lease. */
static int
refresh_ask(struct refresh *rf)
{
	struct workloads *ws = rf->ws;
	struct refresh_holder *rh;
	unsigned int has = 0, one;
	struct workload *w;

	rf->holders = calloc(ws->n + 1, sizeof(*rf->holders));
	rf->rep.handles = calloc(ws->n + 1, sizeof(*rf->rep.handles));
	if (rf->holders == NULL || rf->rep.handles == NULL)
		return CL_NOMEM;
	TAILQ_FOREACH(w, &ws->list, entry) {
		if (w->holding == NULL || w->state == WL_DEAD)
			continue;
		one = holding_find(w->holding, rf->req.lease_id, "");
		has |= one;
		if ((one & VAULT_HAS_LIVE) == 0)
			continue;
		rh = &rf->holders[rf->nholders++];
		rh->slot = w->slot;
		rh->id = ++ws->next_redact;
		if (workload_lease_send_values(w, rh->id, rf->req.files,
		    rf->req.nfiles) == CL_OK)
			rf->nwaiting++;
		else
			rh->is_decided = 1;
	}
	rf->rep.known = (has & VAULT_HAS_LEASE) != 0;
	if (rf->rep.known && rf->nholders == 0)
		secretnote_add(&rf->note, "the lease was revoked here");
	return CL_OK;
}

void
workloads_refresh(struct workloads *ws, const struct workload_ask *ask,
    struct dev_refresh *req)
{
	static const struct timeval max = { .tv_sec = REFRESH_WAIT_MS / 1000 };
	struct dev_refreshed none;
	struct refresh *rf = calloc(1, sizeof(*rf));
	int r;

	if (rf == NULL) {
		field_clear(&dev_refresh_table, req);
		field_init(&dev_refreshed_table, &none);
		none.error = (char *)(uintptr_t)"out of memory";
		workload_lease_answer(ws, MSG_DEV_REFRESH_ANS, ask,
		    &dev_refreshed_table, &none);
		return;
	}
	rf->ws = ws;
	rf->ask = *ask;
	rf->req = *req;
	field_init(&dev_refresh_table, req);
	field_init(&dev_refreshed_table, &rf->rep);
	TAILQ_INSERT_TAIL(&ws->refreshes, rf, entry);
	if ((r = refresh_ask(rf)) != CL_OK)
		secretnote_add(&rf->note, "%s", cl_strerror(r));
	if (r == CL_OK && rf->nwaiting > 0) {
		rf->timer = event_new(ws->a->base, -1, 0, refresh_on_timer,
		    rf);
		if (rf->timer != NULL && event_add(rf->timer, &max) == 0)
			return;
	}
	refresh_finish(rf);
}
