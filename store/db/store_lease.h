/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Grants, leases and revocations in the hub store, and the administrative
 * state of agents.  Include store.h first.  Conditional updates say CL_STATE
 * when their condition was false.
 */
#ifndef CLOOP_STORE_LEASE_H
#define CLOOP_STORE_LEASE_H

#include <stddef.h>
#include <stdint.h>

struct store;

struct store_grant {
	char *id;
	char *secret_id;
	char *secret_name;
	char *subject;
	char *constraints;	/* canonical JSON object of strings */
	int64_t created_at;
	char *created_by;
	int64_t expires_at;
	int64_t revoked_at;
	char *cause;
	char *superseded_by;
};

enum store_lease_state { STORE_LEASE_LIVE = 1, STORE_LEASE_RELEASED,
	STORE_LEASE_REVOKED, STORE_LEASE_EXPIRED };

struct store_lease {
	char *id;
	char *agent_id;
	uint64_t handle;	/* its number */
	char *handle_id;
	char *project;
	char *actor;
	int64_t issued_at;
	int64_t expires_at;
	char *holder;		/* the hub process that keeps it */
	int state;
	int64_t closed_at;
	char *cause;
};

/* One secret of a lease. */
struct store_item {
	char *lease_id;
	char *grant_id;
	char *secret_id;
	char *name;
	char *kind;
	int64_t version;
	int64_t mode;		/* of its file; 0: 0600 */
	int64_t withdrawn_at;
};

/* Only `revoked` is final; the others are owed. */
enum store_rev_state { STORE_REV_PENDING = 1, STORE_REV_REVOKED,
	STORE_REV_UNREACHABLE, STORE_REV_FAILED };

struct store_revocation {
	char *lease_id;
	char *grant_id;		/* "": the whole lease */
	char *agent_id;
	int action;		/* REVOKE_* of msgcat.h */
	char *reason;
	char *actor;
	int state;
	int64_t sent_at;
	int64_t acked_at;
	int known;
	int64_t files_removed;
	int egress_dropped;
	char *env_scrubbed;	/* names, one a line */
	char *killed;		/* handles, one a line */
	char *error;
	char *widened;		/* why the whole lease went; "" */
};

void store_grant_clear(struct store_grant *g);
void store_lease_clear(struct store_lease *l);
void store_item_clear(struct store_item *i);
void store_revocation_clear(struct store_revocation *v);

typedef int (*store_grant_fn)(const struct store_grant *, void *);
typedef int (*store_lease_fn)(const struct store_lease *, void *);
typedef int (*store_item_fn)(const struct store_item *, void *);
typedef int (*store_revocation_fn)(const struct store_revocation *, void *);

/* --- grants */
int store_add_grant(struct store *s, const struct store_grant *g);
int store_find_grant(struct store *s, const char *id, struct store_grant *g);
/* Oldest first; secret_id NULL: of all. */
int store_list_grants(struct store *s, const char *secret_id,
    store_grant_fn fn, void *arg);
int store_revoke_grant(struct store *s, const char *id, int64_t at,
    const char *cause);
/* Leases under `id` go on under `by`. */
int store_supersede_grant(struct store *s, const char *id, const char *by);

/* --- leases */
int store_add_lease(struct store *s, const struct store_lease *l);
int store_find_lease(struct store *s, const char *id, struct store_lease *l);
/* live_only: not closed; of all agents (agent_id NULL) also those that are
 * still owed to a device. */
int store_list_leases(struct store *s, const char *agent_id, int live_only,
    store_lease_fn fn, void *arg);
int store_list_handle_leases(struct store *s, uint64_t handle,
    store_lease_fn fn, void *arg);
/* Live ones whose time is up. */
int store_list_expired_leases(struct store *s, int64_t now,
    store_lease_fn fn, void *arg);
/* Only a live one of this holder that has not lapsed at `now`. */
int store_extend_lease(struct store *s, const char *id, const char *holder,
    int64_t now, int64_t expires_at);
/* The wall clock was set by so much: the time left of live ones stays. */
int store_shift_leases(struct store *s, int64_t by);
/* Take a live one over from its previous holder. */
int store_take_lease(struct store *s, const char *id, const char *from,
    const char *to);
int store_close_lease(struct store *s, const char *id, int state,
    int64_t at, const char *cause);
/* Closed before `before` and nothing owed: forget. */
int store_del_old_leases(struct store *s, int64_t before);

/* --- items */
int store_add_item(struct store *s, const struct store_item *i);
int store_list_items(struct store *s, const char *lease_id, store_item_fn fn,
    void *arg);
/* Of live leases, not withdrawn, under this grant. */
int store_list_grant_items(struct store *s, const char *grant_id,
    store_item_fn fn, void *arg);
/* grant_id "": all of the lease. */
int store_withdraw_item(struct store *s, const char *lease_id,
    const char *grant_id, int64_t at);
int store_save_item_version(struct store *s, const char *lease_id,
    const char *grant_id, int64_t version);

/* --- revocations */
/* Insert, or update unless the recorded one is final: CL_STATE. */
int store_save_revocation(struct store *s, const struct store_revocation *v);
int store_find_revocation(struct store *s, const char *lease_id,
    const char *grant_id, const char *agent_id, int action,
    struct store_revocation *v);
/* Oldest first. */
int store_list_owed(struct store *s, const char *agent_id,
    store_revocation_fn fn, void *arg);
int store_list_revocations(struct store *s, const char *lease_id,
    store_revocation_fn fn, void *arg);
/* Keep `max` rows; the oldest final ones go, owed ones never. */
int store_del_old_revocations(struct store *s, unsigned int max);

/* --- administrative state: ADMIN_* of msgcat.h; none stored: READY */
int store_save_admin(struct store *s, const char *agent_id, int state,
    const char *reason, int64_t at, const char *actor);
typedef int (*store_admin_fn)(const char *agent_id, int state, void *arg);
int store_list_admin(struct store *s, store_admin_fn fn, void *arg);

#endif
