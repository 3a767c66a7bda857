/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Clients of the control socket and their jobs, in the monitor.  A client
 * that does not read costs its own rows only: no more than one batch of
 * each of its requests is ever under way.
 */
#include "clients.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/msg/msgcat.h"
#include "ctlout.h"
#include "monitor.h"

#define MAX_JOB_KEYS 1000000	/* handles in one listing */
#define CLIENT_MASK (~(uint64_t)UINT32_MAX)

struct ctl_client *
clients_find(struct monitor *mon, uint32_t client)
{
	struct ctl_client *c;

	LIST_FOREACH(c, &mon->clients, entry)
		if (c->client == client)
			return c;
	return NULL;
}

int
clients_add(struct monitor *mon, const struct msg_ctl_client *who)
{
	struct ctl_client *c;
	size_t n = 0;

	LIST_FOREACH(c, &mon->clients, entry) {
		if (c->client == who->client)
			return CL_EXISTS;
		n++;
	}
	if (n >= MAX_CTL_CLIENTS)
		return CL_LIMIT;
	if ((c = calloc(1, sizeof(*c))) == NULL)
		return CL_NOMEM;
	c->client = (uint32_t)who->client;
	c->role = (int)who->role;
	snprintf(c->actor, sizeof(c->actor), "uid:%u", (unsigned int)who->uid);
	LIST_INSERT_HEAD(&mon->clients, c, entry);
	return CL_OK;
}

static void
job_free(struct monitor *mon, struct ctl_job *j)
{
	struct job_keys k = { j->keys, j->nkeys, j->nkeys };

	TAILQ_REMOVE(&mon->jobs, j, entry);
	job_keys_clear(&k);
	free(j->state);
	free(j);
}

/* Forget what waits for requests whose masked id is this. */
static void
clients_forget(struct monitor *mon, uint64_t id, uint64_t mask)
{
	struct ctl_job *j, *jnext;
	struct waiter *w, *wnext;
	struct handle *h;

	for (j = TAILQ_FIRST(&mon->jobs); j != NULL; j = jnext) {
		jnext = TAILQ_NEXT(j, entry);
		if ((j->id & mask) == id)
			job_free(mon, j);
	}
	devask_forget(mon, id, mask);
	revoke_forget(mon, id, mask);
	refresh_forget(mon, id, mask);
	for (h = handles_next(&mon->handles, NULL); h != NULL;
	    h = handles_next(&mon->handles, h)) {
		for (w = TAILQ_FIRST(&h->waiters); w != NULL; w = wnext) {
			wnext = TAILQ_NEXT(w, entry);
			if ((w->id & mask) == id)
				handle_del_waiter(h, w);
		}
	}
}

void
clients_del(struct monitor *mon, uint32_t client)
{
	struct ctl_client *c = clients_find(mon, client);

	if (c == NULL)
		return;
	clients_forget(mon, (uint64_t)client << 32, CLIENT_MASK);
	LIST_REMOVE(c, entry);
	if (c->has_branch)
		close(c->branch_fd);
	free(c);
}

void
clients_clear(struct monitor *mon)
{
	struct ctl_client *c;

	while ((c = LIST_FIRST(&mon->clients)) != NULL)
		clients_del(mon, c->client);
}

void
clients_quit(struct monitor *mon, uint64_t id)
{
	clients_forget(mon, id, ~(uint64_t)0);
}

/* One slice; the job may be gone afterwards. */
static void
job_run(struct monitor *mon, struct ctl_job *j)
{
	int r = j->fn(mon, j);

	if (r == 0) {
		if (!j->busy) {
			j->paced = 1;
			MON_SEND(mon_get_ctl(mon), CTL_PACE, j->id, NULL, -1);
		}
		return;
	}
	if (r == 1)
		ctlout_send_done(mon, j->id);
	job_free(mon, j);
}

/* 1 when one more list with so many keys is too much, for all or for its
 * client: how far it reads is the client's choice, what it holds is not. */
static int
jobs_are_many(const struct monitor *mon, uint64_t id, size_t nkeys)
{
	const struct ctl_job *j;
	size_t n = 0, of_client = 0;

	TAILQ_FOREACH(j, &mon->jobs, entry) {
		n++;
		of_client += j->id >> 32 == id >> 32;
		nkeys += j->nkeys;
	}
	return n >= MAX_CTL_LISTS || of_client >= MAX_CTL_LISTS_PER_CLIENT ||
	    (n > 0 && nkeys > MAX_CTL_LIST_KEYS);
}

void
jobs_start(struct monitor *mon, uint64_t id, ctl_job_fn *fn,
    const struct ctl_job *init)
{
	struct job_keys k = { init->keys, init->nkeys, init->nkeys };
	int many = jobs_are_many(mon, id, init->nkeys);
	struct ctl_job *j = NULL;

	if (many || (j = calloc(1, sizeof(*j))) == NULL) {
		job_keys_clear(&k);
		free(init->state);
		ctlout_refuse(mon, id, many ? "busy" : "internal", "%s",
		    many ? "too many lists are not read to their end: read "
		    "them, or ask again later" : cl_strerror(CL_NOMEM));
		return;
	}
	*j = *init;
	j->id = id;
	j->fn = fn;
	TAILQ_INSERT_TAIL(&mon->jobs, j, entry);
	job_run(mon, j);
}

void
jobs_start_keys(struct monitor *mon, uint64_t id, ctl_job_fn *fn,
    const struct job_keys *keys)
{
	struct ctl_job job = { .keys = keys->v, .nkeys = keys->n };

	jobs_start(mon, id, fn, &job);
}

int
jobs_on_pace(struct monitor *mon, uint64_t id)
{
	struct ctl_job *j;

	TAILQ_FOREACH(j, &mon->jobs, entry) {
		if (j->id != id)
			continue;
		if (!j->paced)
			return CL_FORMAT;
		j->paced = 0;
		job_run(mon, j);
		return CL_OK;
	}
	return CL_OK;	/* quit meanwhile */
}

int
jobs_run_busy(struct monitor *mon)
{
	struct ctl_job *j, *next;
	int more = 0;

	for (j = TAILQ_FIRST(&mon->jobs); j != NULL; j = next) {
		next = TAILQ_NEXT(j, entry);
		if (j->busy)
			job_run(mon, j);
	}
	TAILQ_FOREACH(j, &mon->jobs, entry)
		more |= j->busy;
	return more;
}

int
job_keys_add(struct job_keys *k, const char *key)
{
	char **v;
	size_t cap;

	if (k->n == k->cap) {
		if (k->n >= MAX_JOB_KEYS)
			return CL_LIMIT;
		cap = k->cap == 0 ? 64 : 2 * k->cap;
		if ((v = reallocarray(k->v, cap, sizeof(*v))) == NULL)
			return CL_NOMEM;
		k->v = v;
		k->cap = cap;
	}
	if ((k->v[k->n] = strdup(key)) == NULL)
		return CL_NOMEM;
	k->n++;
	return CL_OK;
}

void
job_keys_clear(struct job_keys *k)
{
	size_t i;

	for (i = 0; i < k->n; i++)
		free(k->v[i]);
	free(k->v);
	memset(k, 0, sizeof(*k));
}
