/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * revoke and secret_refresh, in agentd-fetch: from the frame to the monitor
 * and back.  Each gets its own kind of answer on every path, a failure of
 * ours included: a revoke that nobody answers would be taken for a device
 * that is not there.  Contents are wiped as soon as they are in the monitor's
 * memfd.
 */
#include "fetch.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "common/model/leasemsg.h"

/* The monitor answers within 12 s and 5 s; the hub waits 15 and 20. */
#define LEASE_REVOKE_MS 14000
#define LEASE_REFRESH_MS 15000

/* What the answer has to repeat. */
struct fetch_lease {
	char *lease_id;
	char *grant_id;
	int kill;
};

static void
fetch_lease_free(void *arg)
{
	struct fetch_lease *l = arg;

	if (l == NULL)
		return;
	free(l->lease_id);
	free(l->grant_id);
	free(l);
}

static struct fetch_lease *
fetch_lease_new(const char *lease_id, const char *grant_id, int kill)
{
	struct fetch_lease *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return NULL;
	l->lease_id = strdup(lease_id);
	l->grant_id = strdup(grant_id == NULL ? "" : grant_id);
	l->kill = kill;
	if (l->lease_id == NULL || l->grant_id == NULL) {
		fetch_lease_free(l);
		return NULL;
	}
	return l;
}

static void fetch_lease_on_timeout(struct fetch *, const struct fetch_ask *);

/* Ask the monitor with a table in a memfd; takes l. */
static int
fetch_lease_ask(struct fetch *f, const struct frame_env *env, uint32_t type,
    const struct field_table *t, const void *v, struct fetch_lease *l)
{
	struct msg_memfd body;
	struct fetch_ask *a;
	int fd, r;

	if (l == NULL)
		return CL_NOMEM;
	if ((r = msg_make_memfd(t, v, MAX_SPEC_LEN, &fd, &body.len)) == 0) {
		a = fetch_ask_put(f, type, &body, fd, type == MSG_DEV_REVOKE ?
		    LEASE_REVOKE_MS : LEASE_REFRESH_MS);
		r = a == NULL ? CL_LIMIT : CL_OK;
	}
	if (r != CL_OK) {
		fetch_lease_free(l);
		return r;
	}
	fetch_ask_set_frame(f, a, env, fetch_lease_on_timeout);
	a->arg = l;
	a->free_arg = fetch_lease_free;
	return CL_OK;
}

/* ------------------------------------------------------------------- revoke */

static void
fetch_lease_send_revoked(struct fetch *f, const char *id,
    const struct fetch_lease *l, const struct dev_revoked *rep)
{
	struct dev_revoked p = *rep;	/* borrows */

	p.lease_id = l->lease_id;
	p.grant_id = l->grant_id;
	p.action = FETCH_TEXT(l->kill ? "kill" : "scrub");
	fetch_send(f, FRAME_REVOKED, id, NULL, &p, NULL);
}

/* Nothing is known of what happened: known, so that nobody takes the error
 * for "not held here". */
static void
fetch_lease_fail_revoke(struct fetch *f, const char *id,
    const struct fetch_lease *l, const char *error)
{
	struct dev_revoked rep;

	field_init(&dev_revoked_table, &rep);
	rep.known = 1;
	rep.error = FETCH_TEXT(error);
	fetch_lease_send_revoked(f, id, l, &rep);
}

void
fetch_lease_on_revoke(struct fetch *f, const struct frame_env *env,
    void *payload)
{
	struct lease_revoke *q = payload;
	struct fetch_lease l;
	int r;

	l.lease_id = q->lease_id;
	l.grant_id = q->grant_id;
	l.kill = q->action != NULL && strcmp(q->action, "kill") == 0;
	r = fetch_lease_ask(f, env, MSG_DEV_REVOKE, &lease_revoke_table, q,
	    fetch_lease_new(q->lease_id, q->grant_id, l.kill));
	if (r != 0)
		fetch_lease_fail_revoke(f, env->id, &l, r == CL_LIMIT ?
		    "too many requests" : cl_strerror(r));
}

/* ------------------------------------------------------------------ refresh */

static void
fetch_lease_send_refreshed(struct fetch *f, const char *id,
    const char *lease_id, const struct dev_refreshed *rep)
{
	struct dev_refreshed p = *rep;	/* borrows */

	p.lease_id = FETCH_TEXT(lease_id);
	fetch_send(f, FRAME_SECRET_REFRESHED, id, NULL, &p, NULL);
}

static void
fetch_lease_fail_refresh(struct fetch *f, const char *id, const char *lease_id,
    const char *error)
{
	struct dev_refreshed rep;

	field_init(&dev_refreshed_table, &rep);
	rep.known = 1;
	rep.error = FETCH_TEXT(error);
	fetch_lease_send_refreshed(f, id, lease_id, &rep);
}

void
fetch_lease_on_refresh(struct fetch *f, const struct frame_env *env,
    void *payload)
{
	struct lease_refresh *q = payload;
	int r;

	r = fetch_lease_ask(f, env, MSG_DEV_REFRESH, &lease_refresh_table, q,
	    fetch_lease_new(q->lease_id, NULL, 0));
	if (r != 0)
		fetch_lease_fail_refresh(f, env->id, q->lease_id,
		    r == CL_LIMIT ? "too many requests" : cl_strerror(r));
}

/* ------------------------------------------------------------------ answers */

static void
fetch_lease_on_timeout(struct fetch *f, const struct fetch_ask *a)
{
	static const char text[] = "the device did not answer in time";
	const struct fetch_lease *l = a->arg;

	if (!fetch_ask_is_wanted(f, a))
		return;
	if (a->type == MSG_DEV_REVOKE)
		fetch_lease_fail_revoke(f, a->corr, l, text);
	else
		fetch_lease_fail_refresh(f, a->corr, l->lease_id, text);
}

/* The answer goes to the session that asked, or nowhere: the hub asks a
 * device that comes back again. */
int
fetch_lease_on_revoked(struct fetch *f, struct imsg *m, union msg_any *v)
{
	struct fetch_ask *a = fetch_ask_find(f, m->id, MSG_DEV_REVOKE);
	struct dev_revoked rep;
	int r;

	if ((r = msg_load_memfd(m->fd, v->DEV_REVOKE_ANS.len, MAX_SPEC_LEN,
	    &dev_revoked_table, &rep)) != 0)
		return r;
	if (fetch_ask_is_wanted(f, a))
		fetch_lease_send_revoked(f, a->corr, a->arg, &rep);
	field_clear(&dev_revoked_table, &rep);
	fetch_ask_del(f, a);
	return CL_OK;
}

int
fetch_lease_on_refreshed(struct fetch *f, struct imsg *m, union msg_any *v)
{
	struct fetch_ask *a = fetch_ask_find(f, m->id, MSG_DEV_REFRESH);
	struct dev_refreshed rep;
	int r;

	if ((r = msg_load_memfd(m->fd, v->DEV_REFRESH_ANS.len, MAX_SPEC_LEN,
	    &dev_refreshed_table, &rep)) != 0)
		return r;
	if (fetch_ask_is_wanted(f, a))
		fetch_lease_send_refreshed(f, a->corr,
		    ((const struct fetch_lease *)a->arg)->lease_id, &rep);
	field_clear(&dev_refreshed_table, &rep);
	fetch_ask_del(f, a);
	return CL_OK;
}
