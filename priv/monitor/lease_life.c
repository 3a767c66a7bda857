/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The life of leases, in the monitor: keepalive while the workload lives and
 * its device is there, an end when either time or every grant is gone, and
 * the take-over from a hub process that is no more.
 */
#include "lease.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bsd/string.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "common/msg/msgcat.h"
#include "monitor.h"

#include "store/db/store_lease.h"

#define NS INT64_C(1000000000)
#define JANITOR_MS 60000
#define KEEPALIVE_MS 300000
#define CLOCK_JUMP (2 * NS)	/* a smaller step costs a lease no grace */

/* The grant a lease runs under now: the end of its chain. */
static const char *
lease_find_grant(struct monitor *mon, const char *id, struct store_grant *g)
{
	char next[STORE_ID_MAX];
	unsigned int i;

	strlcpy(next, id, sizeof(next));
	for (i = 0; i <= GRANT_CHAIN_MAX; i++) {
		if (store_find_grant(mon->store, next, g) != CL_OK)
			return "its grant is gone";
		if (g->revoked_at != UTIL_TIME_ZERO ||
		    g->superseded_by[0] == '\0')
			return NULL;
		strlcpy(next, g->superseded_by, sizeof(next));
		store_grant_clear(g);
	}
	return "its grant was superseded too often";
}

const char *
lease_check_item(struct monitor *mon, const struct store_lease *l,
    const struct store_item *item, int64_t now, int64_t *expiresp)
{
	struct store_grant g;
	const char *why;
	int64_t ttl;

	if (item->withdrawn_at != UTIL_TIME_ZERO)
		return "it was withdrawn";
	if ((why = lease_find_grant(mon, item->grant_id, &g)) != NULL)
		return why;
	if (g.revoked_at != UTIL_TIME_ZERO)
		why = "its grant is revoked";
	else if (g.expires_at <= now)
		why = "its grant has expired";
	*expiresp = g.expires_at;
	/* Extending must not stretch what the grant bounds. */
	if ((ttl = grant_get_ttl(&g)) > 0 &&
	    l->issued_at + ttl * NS < *expiresp)
		*expiresp = l->issued_at + ttl * NS;
	store_grant_clear(&g);
	return why;
}

static void
lease_audit(struct monitor *mon, const struct store_lease *l,
    const char *actor, const char *action, const char *reason)
{
	if (store_add_event(mon->store, util_wall_ns(), actor, action,
	    "allow", "lease", l->id, "lease_id", l->id, "executor_id",
	    l->agent_id, "handle_id", l->handle_id, "project", l->project,
	    "reason", reason, (char *)NULL) != CL_OK)
		mon_set_error(mon, store_error(mon->store));
}

void
lease_release(struct monitor *mon, const struct handle *h, int is_lost,
    const char *cause)
{
	struct revoke_why why = { REVOKE_SCRUB, cause, "hub", 0 };
	struct lease_list list = { NULL, 0, 0 };
	size_t i;

	if (strcmp(h->row.secrets, "[]") == 0 || h->row.secrets[0] == '\0')
		return;
	if (store_list_handle_leases(mon->store, h->row.number,
	    lease_list_add, &list) != CL_OK)
		mon_set_error(mon, store_error(mon->store));
	for (i = 0; i < list.n; i++) {
		/* Only by who holds it. */
		if (list.v[i].state != STORE_LEASE_LIVE ||
		    strcmp(list.v[i].holder, mon->leases.holder) != 0)
			continue;
		if (is_lost)
			revoke_lease(mon, &list.v[i], "", &why);
		else if (store_close_lease(mon->store, list.v[i].id,
		    STORE_LEASE_RELEASED, util_wall_ns(), cause) == CL_OK)
			lease_audit(mon, &list.v[i], "hub", "secret.release",
			    cause);
	}
	lease_list_clear(&list);
}

/* -------------------------------------------------------------- keepalive */

/*
 * Re-check every grant of a lease.  Those that are gone are taken back; 0
 * when none is left.  *expiresp: the earliest end of those that stand.
 */
static size_t
lease_check_items(struct monitor *mon, const struct store_lease *l,
    int64_t now, int64_t *expiresp)
{
	struct revoke_why why = { REVOKE_SCRUB, NULL, "hub", 0 };
	struct item_list items = { NULL, 0, 0 };
	int64_t expires;
	size_t i, left = 0;

	*expiresp = INT64_MAX;
	if (store_list_items(mon->store, l->id, item_list_add, &items) !=
	    CL_OK)
		mon_set_error(mon, store_error(mon->store));
	for (i = 0; i < items.n; i++) {
		if (items.v[i].withdrawn_at != UTIL_TIME_ZERO)
			continue;
		why.reason = lease_check_item(mon, l, &items.v[i], now,
		    &expires);
		if (why.reason != NULL) {
			revoke_lease(mon, l, items.v[i].grant_id, &why);
			continue;
		}
		left++;
		if (expires < *expiresp)
			*expiresp = expires;
	}
	item_list_clear(&items);
	return left;
}

/* BC-45: what cannot be extended runs out, and the janitor ends it. */
static void
lease_extend(struct monitor *mon, const struct store_lease *l, int64_t now)
{
	struct handle *h = handles_find(&mon->handles, l->handle);
	int64_t ttl, expires, grants;

	if (h == NULL || handle_is_closed(h) || l->expires_at <= now ||
	    agents_find_current(&mon->agents, h->agent) == NULL)
		return;
	if (lease_check_items(mon, l, now, &grants) == 0)
		return;
	ttl = mon->conf.lease_ttl < mon->conf.lease_max_ttl ?
	    mon->conf.lease_ttl : mon->conf.lease_max_ttl;
	/* The terms it was given under: never a longer piece than before. */
	expires = now + ttl * NS;
	if (grants < expires)
		expires = grants;
	if (expires <= l->expires_at)
		return;
	if (store_extend_lease(mon->store, l->id, mon->leases.holder, now,
	    expires) == CL_OK)
		log_debug("lease-extend", "lease=%s", l->id);
}

static void
lease_keepalive(struct monitor *mon)
{
	struct lease_list list = { NULL, 0, 0 };
	int64_t now = util_wall_ns();
	size_t i;

	if (store_list_leases(mon->store, NULL, 1, lease_list_add, &list) !=
	    CL_OK)
		mon_set_error(mon, store_error(mon->store));
	for (i = 0; i < list.n; i++)
		if (list.v[i].state == STORE_LEASE_LIVE)
			lease_extend(mon, &list.v[i], now);
	lease_list_clear(&list);
}

/* ----------------------------------------------------------------- janitor */

static void
lease_expire(struct monitor *mon)
{
	struct revoke_why why = { REVOKE_SCRUB, "lease TTL expired", "hub",
		0 };
	struct lease_list list = { NULL, 0, 0 };
	char n[24];
	size_t i;

	if (store_list_expired_leases(mon->store, util_wall_ns(),
	    lease_list_add, &list) != CL_OK)
		mon_set_error(mon, store_error(mon->store));
	for (i = 0; i < list.n; i++) {
		if (store_close_lease(mon->store, list.v[i].id,
		    STORE_LEASE_EXPIRED, util_wall_ns(), why.reason) != CL_OK)
			continue;
		revoke_lease(mon, &list.v[i], "", &why);
	}
	if (list.n > 0) {
		snprintf(n, sizeof(n), "%zu", list.n);
		if (store_add_event(mon->store, util_wall_ns(), "hub",
		    "secret.lease.sweep", "", "hub", "", "expired", n,
		    (char *)NULL) != CL_OK)
			mon_set_error(mon, store_error(mon->store));
	}
	lease_list_clear(&list);
}

int
lease_check_clock(struct monitor *mon)
{
	int64_t by = util_wall_offset_ns() - mon->leases.clock;
	int r;

	if (by > -CLOCK_JUMP && by < CLOCK_JUMP)
		return CL_OK;
	log_warn("clock-jump", "seconds=%lld reason=\"this host's wall clock "
	    "was set; leases keep the time they had left, grants and tokens "
	    "end by the new time\"", (long long)(by / NS));
	if ((r = store_shift_leases(mon->store, by)) != CL_OK) {
		mon_set_error(mon, store_error(mon->store));
		return r;
	}
	mon->leases.clock += by;
	/* A grant ends at a date: look at each at once. */
	mon->leases.keepalive_at = util_now_ms() - KEEPALIVE_MS;
	return CL_OK;
}

void
lease_on_tick(struct monitor *mon)
{
	int64_t now = util_now_ms(), period;

	if (mon->phase != MON_SERVING)
		return;
	revoke_on_tick(mon);
	if (lease_check_clock(mon) != CL_OK)
		return;
	period = (int64_t)mon->conf.lease_ttl * 1000 / 3;
	if (period > KEEPALIVE_MS)
		period = KEEPALIVE_MS;
	if (now - mon->leases.keepalive_at >= period) {
		mon->leases.keepalive_at = now;
		lease_keepalive(mon);
	}
	period = (int64_t)mon->conf.lease_ttl * 1000 / 3;
	if (period > JANITOR_MS)
		period = JANITOR_MS;
	if (now - mon->leases.janitor_at >= period) {
		mon->leases.janitor_at = now;
		lease_expire(mon);
	}
}

void
lease_sweep(struct monitor *mon, int64_t before)
{
	if (store_del_old_leases(mon->store, before) != CL_OK ||
	    store_del_old_versions(mon->store) != CL_OK)
		mon_set_error(mon, store_error(mon->store));
}

/* ----------------------------------------------------------------- restore */

/* Take a lease over from the process that held it. */
static int
lease_restore(struct monitor *mon, const struct store_lease *l, int64_t now)
{
	struct handle *h = handles_find(&mon->handles, l->handle);
	int64_t grants;

	if (h == NULL || handle_is_closed(h)) {
		lease_audit(mon, l, "hub", "secret.release",
		    "its workload ended");
		return store_close_lease(mon->store, l->id,
		    STORE_LEASE_RELEASED, now, "its workload ended");
	}
	/* Lapsed: the janitor takes it back from the device. */
	if (l->expires_at <= now ||
	    lease_check_items(mon, l, now, &grants) == 0)
		return CL_OK;
	return store_take_lease(mon->store, l->id, l->holder,
	    mon->leases.holder);
}

static int
lease_on_admin(const char *agent_id, int state, void *arg)
{
	struct monitor *mon = arg;
	struct agent *a = agents_find(&mon->agents, agent_id);

	if (a != NULL)
		a->admin = state;
	return 0;
}

int
lease_load(struct monitor *mon, char *err, size_t errlen)
{
	struct lease_list list = { NULL, 0, 0 };
	int64_t now = util_wall_ns();
	size_t i;
	int r;

	store_make_id("hub_", mon->leases.holder);
	mon->leases.clock = util_wall_offset_ns();
	store_keks_clear(&mon->leases.keks);
	r = store_load_keks(mon->conf.key_dir, &mon->leases.keks, err,
	    errlen);
	if (r == CL_NOTFOUND)
		log_warn("kek", "reason=%s", log_q(err));
	else if (r != CL_OK)
		return r;
	r = store_list_admin(mon->store, lease_on_admin, mon);
	if (r == CL_OK)
		r = store_list_leases(mon->store, NULL, 1, lease_list_add,
		    &list);
	for (i = 0; r == CL_OK && i < list.n; i++)
		if (list.v[i].state == STORE_LEASE_LIVE &&
		    (r = lease_restore(mon, &list.v[i], now)) == CL_STATE)
			r = CL_OK;
	lease_list_clear(&list);
	if (r != CL_OK)
		snprintf(err, errlen, "the leases cannot be read: %s",
		    r == CL_DB ? store_error(mon->store) : cl_strerror(r));
	mon->leases.janitor_at = mon->leases.keepalive_at = util_now_ms();
	return r;
}

void
lease_clear(struct monitor *mon)
{
	store_keks_clear(&mon->leases.keks);
}
