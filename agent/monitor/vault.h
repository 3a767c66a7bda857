/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The vault: what each workload holds, by lease and grant, so that a revoke
 * finds it.  It knows names, paths and inodes, never a value.  A holding is
 * one workload's part; it is saved in the handle directory before the first
 * secret byte is written, and found there by the next agent.  A lease that
 * several workloads hold is a question to all of their holdings.
 *
 * Ids are compared without surrounding white space.
 */
#ifndef CLOOP_VAULT_H
#define CLOOP_VAULT_H

#include <stddef.h>
#include <stdint.h>

#include "secretfiles.h"

struct spec;

#define VAULT_RECORD "lease"		/* file in the handle directory */
#define MAX_VAULT_RECORD 4194304	/* paths of a full start fit */

/*
 * What the relocated spec says about what was planned for it.  Files nobody's
 * binding names are filed under the ids they came with.  CL_NOMEM.
 */
void holding_init(struct holding *h);
int holding_bind(struct holding *h, const struct spec *spec);
void holding_clear(struct holding *h);
/* 1 when there is nothing to remember: no file, no revocable binding. */
int holding_is_empty(const struct holding *h);

/* The record, written atomically; read back and checked.  CL_NOTFOUND,
 * CL_FORMAT, CL_SYSTEM, CL_NOMEM. */
int holding_save(const struct holding *h, int dir_fd);
int holding_load(struct holding *h, int dir_fd);
/* The record from its bytes; *h cleared on failure. */
int holding_parse(struct holding *h, const void *data, size_t len);

#define VAULT_HAS_LEASE 0x01
#define VAULT_HAS_GRANT 0x02
#define VAULT_HAS_LOOSE 0x04		/* material of no grant */
#define VAULT_HAS_LIVE 0x08		/* something is not scrubbed yet */
/* What of it a holding has; grant "" asks for the lease alone. */
unsigned int holding_find(const struct holding *h, const char *lease,
    const char *grant);
/*
 * What a revoke means when the holdings together have these: 1, and *wholep
 * tells whether it takes the whole lease; 0: not known here.
 */
int vault_decide(unsigned int has, const char *grant, int *wholep);

/*
 * Wipe the files of a lease, or of one grant of it, and directories that
 * then hold nothing live; mark it scrubbed.  Returns the number of files
 * that were there.  Idempotent.
 */
int64_t holding_scrub(struct holding *h, const char *lease,
    const char *grant, int whole, struct secretnote *note);

/*
 * The one live placed file of the lease with this base name; where two
 * directories have it, the declared one decides.  CL_NOTFOUND, CL_LIMIT (more
 * than one).
 */
int holding_find_file(const struct holding *h, const char *lease,
    const char *declared, const char *name, size_t *filep);

/* The last leases that were given back, for the wording of logs only. */
#define VAULT_TOMBSTONES 64
struct tombstones {
	char *ids[VAULT_TOMBSTONES];
	size_t next;
};
void tombstones_add(struct tombstones *t, const char *lease);
void tombstones_del(struct tombstones *t, const char *lease);
int tombstones_has(const struct tombstones *t, const char *lease);
void tombstones_clear(struct tombstones *t);

#endif
