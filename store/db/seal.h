/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Sealed blobs: AES-256-GCM under a data key of the secret's own, which is
 * itself sealed under the key-encryption key.  The record's id is associated
 * data of both: a blob moved to another record does not open.
 *
 *	blob = 0x01 ‖ nonce (12) ‖ ciphertext ‖ tag (16)
 */
#ifndef CLOOP_SEAL_H
#define CLOOP_SEAL_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/secret.h"

#define SEAL_KEY_LEN 32
#define SEAL_OVERHEAD 29
#define SEAL_MAX_LEN (1024 * 1024)	/* plain bytes of one secret */

/* Load KeyDirectory/kek.key; errors as keyfile_load_raw. */
int seal_load_kek(const char *key_dir, struct secret *kek, char *err,
    size_t errlen);
/* A fresh data key. */
int seal_new_key(struct secret *key);

/*
 * Seal plain for the record `id`; *blobp is owned by the caller.  CL_FORMAT
 * for a key that is not 32 bytes, CL_TOOBIG, CL_CRYPTO, CL_NOMEM.
 */
int seal_put(const struct secret *key, const char *id,
    const struct secret *plain, uint8_t **blobp, size_t *lenp);
/* Open it again.  CL_DENIED: another key, another record, or damaged. */
int seal_get(const struct secret *key, const char *id, const uint8_t *blob,
    size_t len, struct secret *plain);
/* The same for data keys under the key-encryption key; blobs of one kind do
 * not open as the other. */
int seal_put_key(const struct secret *kek, const char *id,
    const struct secret *key, uint8_t **blobp, size_t *lenp);
int seal_get_key(const struct secret *kek, const char *id,
    const uint8_t *blob, size_t len, struct secret *key);

#endif
