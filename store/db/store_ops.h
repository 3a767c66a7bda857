/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The operations of the hub store; include store.h.  A list function calls
 * fn for each row (borrowed until fn returns) and stops when fn returns
 * non-zero, which it then returns.  fn may read and write the store, but not
 * start the same list again.
 */
#ifndef CLOOP_STORE_OPS_H
#define CLOOP_STORE_OPS_H

typedef int (*store_enrollment_fn)(const struct store_enrollment *, void *);
typedef int (*store_agent_fn)(const struct store_agent *, void *);
typedef int (*store_ban_fn)(const struct store_ban *, void *);
typedef int (*store_executor_fn)(const struct store_executor *, void *);
typedef int (*store_handle_fn)(const struct store_handle *, void *);
typedef int (*store_audit_fn)(const struct store_audit *, void *);

/* --- enrollments.  Add: CL_EXISTS for a known id. */
int store_add_enrollment(struct store *s, const struct store_enrollment *e);
int store_find_enrollment(struct store *s, const char *id,
    struct store_enrollment *e);
/* Newest first.  outstanding_at != 0: only what could be redeemed then. */
int store_list_enrollments(struct store *s, int64_t outstanding_at,
    store_enrollment_fn fn, void *arg);
/* The atomic claim: CL_EXISTS when redeemed already. */
int store_redeem_enrollment(struct store *s, const char *id,
    const char *agent_id, const char *peer, int64_t at);
/* Sets revoked_at unless set; CL_NOTFOUND. */
int store_revoke_enrollment(struct store *s, const char *id, int64_t at);

/* --- agents */
int store_add_agent(struct store *s, const struct store_agent *a);
int store_find_agent(struct store *s, const char *agent_id,
    struct store_agent *a);
int store_list_agents(struct store *s, store_agent_fn fn, void *arg);
int store_revoke_agent(struct store *s, const char *agent_id, int64_t at);
/*
 * last_seen; never moves back.  Keep it in memory and write the changed ones
 * now and then in a turn of their own: failing to must deny no login, and
 * 20000 reconnects must not be 20000 writes.
 */
int store_save_seen(struct store *s, const char *agent_id, int64_t at);

/* All of a name that are not revoked yet; *np of them. */
int store_revoke_name(struct store *s, const char *name, int64_t at,
    unsigned int *np);
/* Sets confirmed_at; CL_NOTFOUND when it is set or there is no agent. */
int store_confirm_agent(struct store *s, const char *agent_id, int64_t at);
/* With its handles, leases, what is owed to it; missing: CL_OK. */
int store_del_agent(struct store *s, const char *agent_id);

/* --- names that may not come back.  Add: CL_EXISTS; else CL_NOTFOUND. */
int store_add_ban(struct store *s, const struct store_ban *b);
int store_del_ban(struct store *s, const char *name);
int store_find_ban(struct store *s, const char *name, struct store_ban *b);
int store_list_bans(struct store *s, store_ban_fn fn, void *arg);

/* --- executors.  Save inserts or replaces. */
int store_save_executor(struct store *s, const struct store_executor *x);
/* Only status, status_at and reason; CL_NOTFOUND before the first save. */
int store_save_status(struct store *s, const char *agent_id, int status,
    int64_t at, const char *reason);
int store_find_executor(struct store *s, const char *agent_id,
    struct store_executor *x);
int store_list_executors(struct store *s, store_executor_fn fn, void *arg);
/* At boot: whatever is not offline becomes offline. */
int store_reset_executors(struct store *s, int64_t at, const char *reason);

/* --- handles.  Add fills in h->number; CL_EXISTS, CL_NOTFOUND (agent). */
int store_add_handle(struct store *s, struct store_handle *h);
int store_find_handle(struct store *s, const char *handle_id,
    struct store_handle *h);
/*
 * Write state, pid, exit code, outcome, error, started_at, finished_at,
 * closed_at, received, log_bytes, gapped and updated_at of h->number.  A row
 * whose closed_at is set already is left alone: CL_STATE.
 */
int store_save_handle(struct store *s, const struct store_handle *h);
/* What arrives after the end too; never moves back.  CL_NOTFOUND. */
int store_save_progress(struct store *s, uint64_t number, uint64_t received,
    uint64_t log_bytes, int gapped);
/* What its files were when it had ended.  CL_NOTFOUND. */
int store_save_seal(struct store *s, const struct store_handle *h);
/* The bindings of its secrets. */
int store_save_handle_secrets(struct store *s, uint64_t number,
    const char *secrets);
/* Its meta, closed or not.  CL_NOTFOUND. */
int store_save_handle_meta(struct store *s, uint64_t number,
    const char *meta);
/* Oldest first; agent_id NULL: of all; open_only: not closed. */
int store_list_handles(struct store *s, const char *agent_id, int open_only,
    store_handle_fn fn, void *arg);
int store_del_handle(struct store *s, uint64_t number);	/* missing: CL_OK */
/*
 * Retention: of the closed handles of an agent keep the `keep` newest, and
 * of those only the ones closed at or after `before` (UTIL_TIME_ZERO: any
 * age).  fn (may be NULL) hears of each that goes.
 */
int store_del_old_handles(struct store *s, const char *agent_id,
    unsigned int keep, int64_t before, store_handle_fn fn, void *arg);

/* --- audit.  detail NULL is {}; seq, prev and hash are filled in here. */
int store_add_audit(struct store *s, const struct store_audit *a);
/*
 * The same with the detail given as key, value pairs ended by (char *)NULL;
 * a pair whose value is NULL or "" is left out.  Bytes that are not UTF-8 are
 * replaced.
 */
int store_add_event(struct store *s, int64_t at, const char *actor,
    const char *action, const char *decision, const char *entity,
    const char *subject, ...) __attribute__((__sentinel__));
/* Rows with seq > after_seq and at >= since, oldest first, at most limit. */
int store_list_audit(struct store *s, uint64_t after_seq, int64_t since,
    unsigned int limit, store_audit_fn fn, void *arg);
/* The newest row's seq; 0 for none. */
int store_find_audit_last(struct store *s, uint64_t *seqp);

/*
 * Walk the chain, nrows at a time so that the caller's loop can breathe.
 * Start from a zeroed walk; go on until `done`.  CL_OK: intact so far;
 * CL_FORMAT: broken_seq and reason name the first broken row.  Rows added
 * while the walk lasts are walked too.
 */
struct store_walk {
	uint64_t seq;		/* rows checked so far */
	uint8_t prev[32];
	int done;
	uint64_t broken_seq;
	const char *reason;	/* constant */
};
int store_check_audit(struct store *s, struct store_walk *w,
    unsigned int nrows);

#endif
