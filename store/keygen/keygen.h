/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * cloop-keygen inside: options, and the actions of its files.  An action
 * returns the exit status: 0 done, 1 failed (it has said why), 2 usage.
 */
#ifndef CLOOP_KEYGEN_H
#define CLOOP_KEYGEN_H

#include <stddef.h>

#include <openssl/evp.h>
#include <openssl/x509.h>

#include "common/base/conf.h"
#include "common/base/signify.h"
#include "store/db/keyfile.h"

#define KEYGEN_DONE 0
#define KEYGEN_FAILED 1
#define KEYGEN_USAGE 2

#define KEYGEN_MAX_HOSTS 32
#define KEYGEN_DAYS 365
#define KEYGEN_MAX_DAYS 3650
#define KEYGEN_PRINT_LEN 64	/* "SHA256:" and 43 characters */

struct keygen {
	struct conf_seen seen;	/* first: conf.h wants it there */
	char *key_dir;		/* KeyDirectory */
	char *state_dir;	/* StateDirectory: accepted as daemons do */
	const char *file;	/* -f */
	const char *sig;	/* -s */
	const char *hosts[KEYGEN_MAX_HOSTS];	/* -n */
	size_t nhosts;
	unsigned int days;	/* -d */
	int csr;		/* -R */
};

/* cloop_keygen.c: `cloop-keygen: ...` on stderr; returns KEYGEN_FAILED. */
int keygen_fail(const char *fmt, ...)
    __attribute__((__format__(__printf__, 1, 2)));
/* The path of a key: -f, or NAME in KeyDirectory (made when missing). */
int keygen_format_path(const struct keygen *kg, const char *name, char *dst,
    size_t dstlen);

/* keygen_key.c: files; what fails has been said. */
/* Save under a new name, with its mode. */
int keygen_save(const char *path, int mode, const void *text, size_t len);
/* What was written to a memory BIO; ok: 1 when that went well. */
int keygen_save_bio(const char *path, int mode, BIO *bio, int ok);
/* PKCS#8 PEM of a private key. */
int keygen_save_key(const char *path, EVP_PKEY *key);
int keygen_load_public(const char *path, struct secret *text);
/* Load a PEM private key, asking for its passphrase when it has one. */
int keygen_load_key(const char *path, EVP_PKEY **keyp, int *encryptedp);
/* FILE.key -> FILE + suffix. */
int keygen_format_sibling(const char *path, const char *suffix, char *dst,
    size_t dstlen);
int keygen_get_signify(EVP_PKEY *key, struct signify_key *k);
int keygen_change_pass(const struct keygen *kg);		/* -p */

/* keygen_raw.c */
int keygen_make_raw(const struct keygen *kg, const char *name);
/* What -l says of a symmetric key. */
int keygen_show_raw(const char *path, const char *purpose);
int keygen_rotate(const struct keygen *kg);			/* -r kek */

/* keygen_make.c */
int keygen_make_all(const struct keygen *kg);			/* -A */
int keygen_make_ed25519(const struct keygen *kg, const char *name);
int keygen_make_tls(const struct keygen *kg);

/* keygen_show.c */
int keygen_show(const struct keygen *kg);			/* -l */
void keygen_format_digest(const unsigned char *md, char *dst);
/* "SHA256:..." of a public key's SubjectPublicKeyInfo. */
int keygen_format_print(EVP_PKEY *key, char dst[KEYGEN_PRINT_LEN]);
int keygen_format_pin(EVP_PKEY *key, char *dst, size_t dstlen);
/* The lines of a certificate: subject names, dates, fingerprint, pin. */
int keygen_show_cert(const char *label, X509 *cert);
int keygen_show_cert_file(const char *path);
/* Type and fingerprint of an asymmetric key; `what` names it. */
int keygen_show_key(const char *label, EVP_PKEY *key, const char *what);

/* keygen_probe.c */
int keygen_show_host(const char *target);		/* -l host:port */

/* keygen_sign.c */
int keygen_sign(const struct keygen *kg, int nfiles, char **files);
int keygen_verify(const struct keygen *kg, int nfiles, char **files);

#endif
