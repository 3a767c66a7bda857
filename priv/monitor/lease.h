/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Secrets on loan: choosing grants for a run, rendering them into its start,
 * and the life of the lease: extended while the workload lives, released
 * with it, taken back when its authority ends.  One lease per run.
 */
#ifndef PRIV_LEASE_H
#define PRIV_LEASE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/limits.h"
#include "common/base/secret.h"
#include "common/msg/msgcat.h"
#include "grant.h"

#include "store/db/store.h"
#include "store/db/store_secret.h"

struct agent;
struct buf;
struct handle;
struct monitor;
struct refusal;
struct session;
struct spec;
struct spec_secret_file;
struct store_item;
struct store_lease;

#define LEASE_DIR_MAX 128

/* The monitor's part of it. */
struct leases {
	struct store_keks keks;
	char holder[STORE_ID_MAX];	/* this hub process */
	int64_t janitor_at;		/* monotonic ms */
	int64_t keepalive_at;
	int64_t clock;		/* util_wall_offset_ns() at the last look */
};

struct lease_plan_item {
	struct store_secret secret;
	char grant_id[STORE_ID_MAX];
	struct grant_terms terms;
	uint32_t mode;
	int is_workspace;	/* for the fetch of the tree */
};

struct lease_plan {
	char id[STORE_ID_MAX];
	char actor[64];
	char *project;
	int64_t now, expires_at;	/* wall ns */
	struct lease_plan_item items[MAX_WANTS];
	size_t n;
	unsigned int nfiles;		/* for the gates */
	char repo[256];			/* owner/name of the workspace */
};

/* At the start: keys, and the leases of a previous process. */
int lease_load(struct monitor *mon, char *err, size_t errlen);
void lease_clear(struct monitor *mon);
/*
 * Was the wall clock set?  Then live leases, whose time is a length and not
 * a date, are moved along with it.  Before anything that makes or ends one.
 * CL_DB: not done, nothing may be ended.
 */
int lease_check_clock(struct monitor *mon);
/* Each second: janitor, keepalive. */
void lease_on_tick(struct monitor *mon);
/* Each hour: what nobody needs any more. */
void lease_sweep(struct monitor *mon, int64_t before);

/*
 * Steps of a dispatch.  0: go on; else r says why not.  Nothing is written
 * before lease_record but denials, which stay whatever happens.
 */
int lease_find_secrets(struct monitor *mon, struct lease_plan *p,
    const struct msg_want *wants, size_t nwants, struct refusal *r);
/* The same for the credential a git workspace names (--grant). */
int lease_find_workspace(struct monitor *mon, struct lease_plan *p,
    const struct spec *spec, struct refusal *r);
int lease_choose(struct monitor *mon, struct lease_plan *p,
    const struct agent *a, struct refusal *r);
/* Plaintext goes into spec, which the caller clears. */
int lease_render(struct monitor *mon, const struct lease_plan *p,
    struct spec *spec, struct refusal *r);
/* The rows, in the turn of the handle's.  CL_*. */
int lease_record(struct monitor *mon, const struct lease_plan *p,
    const struct handle *h);
void lease_plan_clear(struct lease_plan *p);

/* The bindings of a spec as the handle's row keeps them; owned. */
int lease_format_bindings(const struct spec *spec, char **textp);
/* The lease ids in them; owned array of owned strings. */
size_t lease_find_ids(const char *bindings, char ***idsp);

/*
 * The workload is over: its lease is given back.  is_lost: nobody knows
 * whether the device got it, so it is asked to take it off.
 */
void lease_release(struct monitor *mon, const struct handle *h, int is_lost,
    const char *cause);
/*
 * Tell the worker what to hide in a handle's output: everything that was
 * ever lent to it.  CL_OK also when nothing was.
 */
int lease_send_redactions(struct monitor *mon, const struct session *s,
    const struct handle *h);

/* lease_workspace.c: the credential of a start.  CL_NOMEM. */
int lease_render_workspace(const struct lease_plan *p,
    const struct secret *value, struct spec *spec);

/* lease_render.c: the file of an item, content included; CL_NOTFOUND when
 * its kind has none. */
int lease_render_file(const struct store_item *item,
    const struct secret *value, struct spec_secret_file *f);
void lease_format_dir(const char *lease_id, char dst[LEASE_DIR_MAX]);
/* Append the values of one secret as blobs. */
int lease_put_values(const char *kind, const struct secret *value,
    struct buf *b);

/* Why an item of a running lease may not go on; NULL: it may, until
 * *expiresp. */
const char *lease_check_item(struct monitor *mon,
    const struct store_lease *l, const struct store_item *item, int64_t now,
    int64_t *expiresp);

/* A list being collected, so that nothing changes what is being walked. */
struct lease_list {
	struct store_lease *v;
	size_t n, cap;
};
int lease_list_add(const struct store_lease *l, void *list);
void lease_list_clear(struct lease_list *list);
struct item_list {
	struct store_item *v;
	size_t n, cap;
};
int item_list_add(const struct store_item *i, void *list);
void item_list_clear(struct item_list *list);

#endif
