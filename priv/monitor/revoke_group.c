/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Operators who wait for revocations, in the monitor: each outcome is a
 * row, the last one ends the answer.  What they read is on disk by then.
 */
#include "revoke.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/util.h"
#include "common/model/leasemsg.h"
#include "common/msg/msgcat.h"
#include "ctlout.h"
#include "monitor.h"
#include "revoke_int.h"

#include "store/db/store_lease.h"

struct revoke_group {
	TAILQ_ENTRY(revoke_group) entry;
	uint64_t number;
	uint64_t ctl;
	size_t nwaiting;
	int ended;		/* nothing more is started for it */
	uint64_t agent;		/* its number: until nothing runs there; 0 */
};

const char *
revoke_format_state(int state)
{
	static const char *const words[] = {
		[STORE_REV_PENDING] = "pending",
		[STORE_REV_REVOKED] = "revoked",
		[STORE_REV_UNREACHABLE] = "unreachable",
		[STORE_REV_FAILED] = "failed",
	};

	return state >= STORE_REV_PENDING && state <= STORE_REV_FAILED ?
	    words[state] : "unknown";
}

static struct revoke_group *
revoke_find_group(struct monitor *mon, uint64_t number)
{
	struct revoke_group *g;

	TAILQ_FOREACH(g, &mon->revokes.groups, entry)
		if (g->number == number)
			return g;
	return NULL;
}

static void
revoke_free_group(struct monitor *mon, struct revoke_group *g)
{
	TAILQ_REMOVE(&mon->revokes.groups, g, entry);
	free(g);
}

void
revoke_clear_groups(struct monitor *mon)
{
	struct revoke_group *g;

	while ((g = TAILQ_FIRST(&mon->revokes.groups)) != NULL)
		revoke_free_group(mon, g);
}

uint64_t
revoke_new_group(struct monitor *mon, uint64_t ctl)
{
	struct revoke_group *g;

	if ((g = calloc(1, sizeof(*g))) == NULL) {
		ctlout_refuse(mon, ctl, "internal", "%s",
		    cl_strerror(CL_NOMEM));
		return 0;
	}
	g->number = ++mon->revokes.last_group;
	g->ctl = ctl;
	TAILQ_INSERT_TAIL(&mon->revokes.groups, g, entry);
	return g->number;
}

void
revoke_join_group(struct monitor *mon, uint64_t group)
{
	struct revoke_group *g = revoke_find_group(mon, group);

	if (g != NULL)
		g->nwaiting++;
}

/* The rows that were to be read now are not on disk. */
static void
revoke_after_group(struct monitor *mon, uint64_t ctl, uint64_t aux, int ok)
{
	(void)aux;
	if (!ok)
		ctlout_refuse(mon, ctl, "internal", "the hub's store failed: "
		    "%s", mon->last_error);
}

static int
revoke_is_empty(struct monitor *mon, const struct revoke_group *g)
{
	const struct agent *a = g->agent == 0 ? NULL :
	    agents_find_number(&mon->agents, g->agent);

	return a == NULL || a->nrunning == 0;
}

static void
revoke_check_group(struct monitor *mon, struct revoke_group *g)
{
	if (!g->ended || g->nwaiting > 0 || !revoke_is_empty(mon, g))
		return;
	mon_add_after(mon, revoke_after_group, g->ctl, 0);
	mon->durable = 1;
	ctlout_send_done(mon, g->ctl);
	mon->durable = 0;
	revoke_free_group(mon, g);
}

void
revoke_end_group(struct monitor *mon, uint64_t group, const struct agent *a)
{
	struct revoke_group *g = revoke_find_group(mon, group);

	if (g == NULL)
		return;
	g->ended = 1;
	g->agent = a != NULL ? a->number : 0;
	revoke_check_group(mon, g);
}

void
revoke_on_tick(struct monitor *mon)
{
	struct revoke_group *g, *next;

	for (g = TAILQ_FIRST(&mon->revokes.groups); g != NULL; g = next) {
		next = TAILQ_NEXT(g, entry);
		revoke_check_group(mon, g);
	}
}

/* "A\nB" as a list that borrows from a copy. */
static size_t
revoke_split(char *copy, char *dst[LEASE_NAMES_MAX])
{
	size_t n = 0;
	char *p;

	while (n < LEASE_NAMES_MAX && (p = strsep(&copy, "\n")) != NULL)
		if (*p != '\0')
			dst[n++] = p;
	return n;
}

static void
revoke_send_row(struct monitor *mon, uint64_t ctl,
    const struct store_revocation *v)
{
	char *env = strdup(v->env_scrubbed), *killed = strdup(v->killed);
	char *names[LEASE_NAMES_MAX], *handles[LEASE_NAMES_MAX];
	struct agent *a = agents_find(&mon->agents, v->agent_id);
	struct ctl_outcome row;

	memset(&row, 0, sizeof(row));
	row.agent_id = v->agent_id;
	row.agent = a != NULL ? a->row.name : NULL;
	row.lease_id = v->lease_id;
	row.grant_id = v->grant_id;
	row.state = (char *)(uintptr_t)revoke_format_state(v->state);
	row.action = (char *)(uintptr_t)(v->action == REVOKE_KILL ? "kill" :
	    "scrub");
	row.reason = v->reason;
	row.sent_at = v->sent_at;
	row.acked_at = v->acked_at;
	row.known = v->known;
	row.files_removed = v->files_removed;
	row.env_scrubbed = names;
	row.nenv_scrubbed = env != NULL ? revoke_split(env, names) : 0;
	row.egress_dropped = v->egress_dropped;
	row.killed = handles;
	row.nkilled = killed != NULL ? revoke_split(killed, handles) : 0;
	row.error = v->error;
	row.widened = v->widened;
	mon->durable = 1;
	CTL_ROW(mon, ctl, ROW_OUTCOME, &row, -1);
	mon->durable = 0;
	free(env);
	free(killed);
}

void
revoke_tell_group(struct monitor *mon, uint64_t group,
    const struct store_revocation *row, int was_joined)
{
	struct revoke_group *g = revoke_find_group(mon, group);

	if (g == NULL)
		return;
	revoke_send_row(mon, g->ctl, row);
	if (was_joined)
		g->nwaiting--;
	revoke_check_group(mon, g);
}

void
revoke_forget(struct monitor *mon, uint64_t ctl, uint64_t mask)
{
	struct revoke_group *g, *next;

	for (g = TAILQ_FIRST(&mon->revokes.groups); g != NULL; g = next) {
		next = TAILQ_NEXT(g, entry);
		if ((g->ctl & mask) == (ctl & mask))
			revoke_free_group(mon, g);
	}
}
