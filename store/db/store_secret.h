/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Secrets in the hub store: each version is sealed under a data key of its
 * own, which is wrapped by the key-encryption key; the record's id and
 * version are associated data of both.  Include store.h first.
 */
#ifndef CLOOP_STORE_SECRET_H
#define CLOOP_STORE_SECRET_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/secret.h"

struct store;

#define STORE_ID_MAX 48		/* "sec_", "grant_", "lease_" + 24 hex */

struct store_secret {
	char *id;
	char *name;
	char *owner;		/* "uid:N" when personal; "" shared */
	char *kind;
	int64_t version;	/* the newest */
	char *names;		/* variables, one a line; names only */
	int64_t created_at;
	char *created_by;
	int64_t updated_at;
};

/*
 * The key-encryption keys: the current one and, while a rotation is
 * unfinished, the next one.  Sealing uses the newest.
 */
struct store_keks {
	struct secret key[2];
	size_t n;
};

/* PREFIX and 24 random hex digits. */
void store_make_id(const char *prefix, char dst[STORE_ID_MAX]);

/*
 * A new secret, or a new version of the one with this name and owner:
 * s->id and s->version are filled in (id is owned).  CL_STATE: it exists
 * with another kind.  CL_NOTFOUND: no key.  CL_CRYPTO, CL_TOOBIG, CL_DB.
 */
int store_save_secret(struct store *s, struct store_secret *row,
    const struct store_keks *keks, const struct secret *value);
int store_find_secret(struct store *s, const char *name, const char *owner,
    struct store_secret *row);
int store_find_secret_id(struct store *s, const char *id,
    struct store_secret *row);
typedef int (*store_secret_fn)(const struct store_secret *, void *);
int store_list_secrets(struct store *s, store_secret_fn fn, void *arg);
/* Open one version.  CL_NOTFOUND: it is destroyed.  CL_DENIED: another key,
 * or somebody changed the store. */
int store_load_secret(struct store *s, const struct store_keks *keks,
    const char *id, int64_t version, struct secret *value);
/* Destroy the sealed data of all versions; a tombstone stays. */
int store_del_secret(struct store *s, const struct store_secret *row,
    int64_t at, const char *by, const char *cause, const char *reason);
/* Old versions that no open lease was given. */
int store_del_old_versions(struct store *s);
/*
 * Rewrap every data key that does not open under `to` yet; *np counts them.
 * CL_DENIED: one opens under neither.
 */
int store_rewrap_secrets(struct store *s, const struct secret *from,
    const struct secret *to, unsigned int *np);

void store_secret_clear(struct store_secret *row);
void store_keks_clear(struct store_keks *keks);
/* KeyDirectory/kek.key and, when a rotation is unfinished, kek.key.new. */
int store_load_keks(const char *key_dir, struct store_keks *keks, char *err,
    size_t errlen);

#endif
