/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The files of KeyDirectory: names, modes, safe loading and saving, and the
 * text form of symmetric keys:
 *
 *	untrusted comment: cloop mac key
 *	<base64 of 32 bytes>
 *
 * The comment says what the key is for and is checked: a file under the
 * wrong name is not taken for another key.  TLS, receipt and release keys are
 * PEM (PKCS#8); release.pub has signify's form (common/base/signify.h).
 */
#ifndef CLOOP_KEYFILE_H
#define CLOOP_KEYFILE_H

#include <sys/types.h>

#include <stddef.h>
#include <stdint.h>

#include "common/base/secret.h"

#define KEYFILE_MAX_LEN 65536	/* a certificate chain fits */
#define KEYFILE_RAW_LEN 32	/* symmetric keys: 256 bits */
#define KEYFILE_RAW_MAX 128	/* their text form */

#define KEYFILE_TLS "tls.key"
#define KEYFILE_CERT "tls.crt"
#define KEYFILE_CSR "tls.csr"
#define KEYFILE_MAC "mac.key"
#define KEYFILE_KEK "kek.key"
#define KEYFILE_KEK_NEXT "kek.key.new"	/* of a rotation under way */
#define KEYFILE_RECEIPT "receipt.key"
#define KEYFILE_RECEIPT_PUB "receipt.pub"
#define KEYFILE_RELEASE "release.key"
#define KEYFILE_RELEASE_PUB "release.pub"

#define KEYFILE_MODE_KEY 0600
#define KEYFILE_MODE_PUB 0644

/* "mac" for mac.key, "kek" for kek.key; NULL when not a symmetric key. */
const char *keyfile_find_purpose(const char *name);

/* The text form; dst[KEYFILE_RAW_MAX].  Returns its length. */
size_t keyfile_format_raw(const char *purpose,
    const uint8_t key[KEYFILE_RAW_LEN], char *dst);
/* CL_FORMAT unless it is exactly that form for that purpose. */
int keyfile_parse_raw(const char *purpose, const char *text, size_t len,
    uint8_t key[KEYFILE_RAW_LEN]);

/*
 * Load DIR/NAME or, with dir NULL, the file NAME: a regular file of root or
 * ours that nobody else may read or write.  err has a sentence that names
 * the file.  CL_NOTFOUND (no such file), CL_DENIED, CL_FORMAT, CL_SYSTEM.
 */
int keyfile_load(const char *dir, const char *name, struct secret *text,
    char *err, size_t errlen);
/* The same for a public file: others may read it, not write it. */
int keyfile_load_public(const char *dir, const char *name,
    struct secret *text, char *err, size_t errlen);
/* A symmetric key; the purpose follows from the name. */
int keyfile_load_raw(const char *dir, const char *name, struct secret *key,
    char *err, size_t errlen);

/*
 * Write a new file, never over an old one: CL_EXISTS.  Temporary file,
 * fsync, link(2) to the name, directory fsync.
 */
int keyfile_save_new(const char *path, mode_t mode, const void *data,
    size_t len, char *err, size_t errlen);

#endif
