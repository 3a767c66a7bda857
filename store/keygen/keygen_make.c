/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * cloop-keygen: -A, and the keys that are not for TLS.  Random bytes come
 * from the kernel, by arc4random or OpenSSL; a key lives in memory only until
 * it is in its file, which is made with its final mode and never replaces
 * another.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/bio.h>
#include <openssl/pem.h>

#include <bsd/stdlib.h>
#include <bsd/string.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/signify.h"
#include "keygen.h"

/* The fingerprint of a symmetric key says nothing about the key: a hash of
 * 256 random bits behind a prefix of its own. */
static int
keygen_print_raw(const char *path, const char *purpose,
    const uint8_t key[KEYFILE_RAW_LEN])
{
	static const char prefix[] = "cloop key fingerprint";
	uint8_t in[sizeof(prefix) + KEYFILE_RAW_LEN];
	uint8_t md[EVP_MAX_MD_SIZE];
	char text[KEYGEN_PRINT_LEN];
	int ok;

	memcpy(in, prefix, sizeof(prefix));
	memcpy(in + sizeof(prefix), key, KEYFILE_RAW_LEN);
	ok = EVP_Digest(in, sizeof(in), md, NULL, EVP_sha256(), NULL);
	explicit_bzero(in, sizeof(in));
	if (ok != 1)
		return keygen_fail("%s: SHA-256 failed", path);
	keygen_format_digest(md, text);
	printf("%s: %s key, 256 bits\n  fingerprint %s\n", path, purpose,
	    text);
	return KEYGEN_DONE;
}

int
keygen_make_raw(const struct keygen *kg, const char *name)
{
	uint8_t key[KEYFILE_RAW_LEN];
	char path[MAX_PATH_LEN], text[KEYFILE_RAW_MAX], err[512];
	const char *purpose = keyfile_find_purpose(name);
	size_t len;
	int r;

	if ((r = keygen_format_path(kg, name, path, sizeof(path))) != 0)
		return r;
	arc4random_buf(key, sizeof(key));
	len = keyfile_format_raw(purpose, key, text);
	if (keyfile_save_new(path, KEYFILE_MODE_KEY, text, len, err,
	    sizeof(err)) != 0)
		r = keygen_fail("%s", err);
	else
		r = keygen_print_raw(path, purpose, key);
	explicit_bzero(key, sizeof(key));
	explicit_bzero(text, sizeof(text));
	return r;
}

int
keygen_show_raw(const char *path, const char *purpose)
{
	struct secret text = SECRET_INIT;
	uint8_t key[KEYFILE_RAW_LEN];
	char err[512];
	int r;

	/* Read again as a key: one that others can read is refused. */
	if (keyfile_load(NULL, path, &text, err, sizeof(err)) != 0)
		return keygen_fail("%s", err);
	if (keyfile_parse_raw(purpose, (const char *)text.data, text.len,
	    key) != 0)
		r = keygen_fail("%s: not a %s key of cloop-keygen", path,
		    purpose);
	else
		r = keygen_print_raw(path, purpose, key);
	explicit_bzero(key, sizeof(key));
	secret_clear(&text);
	return r;
}

int
keygen_save_key(const char *path, EVP_PKEY *key)
{
	BIO *bio;
	char *text, err[512];
	long len;
	int r = KEYGEN_FAILED;

	/* Secure memory: wiped when the BIO goes. */
	if ((bio = BIO_new(BIO_s_secmem())) == NULL ||
	    PEM_write_bio_PKCS8PrivateKey(bio, key, NULL, NULL, 0, NULL,
	    NULL) != 1 || (len = BIO_get_mem_data(bio, &text)) <= 0)
		r = keygen_fail("%s: the key could not be encoded", path);
	else if (keyfile_save_new(path, KEYFILE_MODE_KEY, text, (size_t)len,
	    err, sizeof(err)) != 0)
		r = keygen_fail("%s", err);
	else
		r = KEYGEN_DONE;
	BIO_free(bio);
	return r;
}

/* FILE.key -> FILE.pub; anything else gets .pub appended. */
int
keygen_format_sibling(const char *path, const char *suffix, char *dst,
    size_t dstlen)
{
	size_t len = strlen(path);
	int n;

	if (len > 4 && strcmp(path + len - 4, ".key") == 0)
		len -= 4;
	n = snprintf(dst, dstlen, "%.*s%s", (int)len, path, suffix);
	return n < 0 || (size_t)n >= dstlen ?
	    keygen_fail("%s: path too long", path) : KEYGEN_DONE;
}

/* signify's form, for release keys; the key number follows from the key. */
int
keygen_get_signify(EVP_PKEY *key, struct signify_key *k)
{
	uint8_t md[EVP_MAX_MD_SIZE];
	size_t len = sizeof(k->key);

	if (EVP_PKEY_get_raw_public_key(key, k->key, &len) != 1 ||
	    len != sizeof(k->key) ||
	    EVP_Digest(k->key, len, md, NULL, EVP_sha256(), NULL) != 1)
		return keygen_fail("not an Ed25519 key");
	memcpy(k->num, md, sizeof(k->num));
	return KEYGEN_DONE;
}

static int
keygen_save_signify(const char *path, EVP_PKEY *key)
{
	struct signify_key k;
	char text[SIGNIFY_TEXT_MAX], err[512];
	size_t len;

	if (keygen_get_signify(key, &k) != 0)
		return KEYGEN_FAILED;
	len = signify_format_key(&k, "cloop release public key", text);
	if (keyfile_save_new(path, KEYFILE_MODE_PUB, text, len, err,
	    sizeof(err)) != 0)
		return keygen_fail("%s", err);
	return KEYGEN_DONE;
}

static int
keygen_save_spki(const char *path, EVP_PKEY *key)
{
	BIO *bio;
	char *text, err[512];
	long len;
	int r;

	if ((bio = BIO_new(BIO_s_mem())) == NULL ||
	    PEM_write_bio_PUBKEY(bio, key) != 1 ||
	    (len = BIO_get_mem_data(bio, &text)) <= 0)
		r = keygen_fail("%s: the key could not be encoded", path);
	else if (keyfile_save_new(path, KEYFILE_MODE_PUB, text, (size_t)len,
	    err, sizeof(err)) != 0)
		r = keygen_fail("%s", err);
	else
		r = KEYGEN_DONE;
	BIO_free(bio);
	return r;
}

int
keygen_make_ed25519(const struct keygen *kg, const char *name)
{
	char path[MAX_PATH_LEN], pub[MAX_PATH_LEN];
	EVP_PKEY *key;
	int release = strcmp(name, KEYFILE_RELEASE) == 0, r;

	if ((r = keygen_format_path(kg, name, path, sizeof(path))) != 0 ||
	    (r = keygen_format_sibling(path, ".pub", pub, sizeof(pub))) != 0)
		return r;
	/* Both or neither: a new key beside an old .pub would mislead. */
	if (access(pub, F_OK) == 0)
		return keygen_fail("%s: already exists, not overwritten",
		    pub);
	if ((key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519")) == NULL)
		return keygen_fail("%s: no key could be made", path);
	if ((r = keygen_save_key(path, key)) == 0) {
		r = release ? keygen_save_signify(pub, key) :
		    keygen_save_spki(pub, key);
		if (r == 0)
			r = keygen_show_key(path, key, release ?
			    "Ed25519 release key" : "Ed25519 receipt key");
		if (r == 0)
			printf("  public key in %s\n", pub);
	}
	EVP_PKEY_free(key);
	return r;
}

int
keygen_make_all(const struct keygen *kg)
{
	static const struct {
		const char *name;
		int (*make)(const struct keygen *, const char *);
	} keys[] = {
		{ KEYFILE_MAC, keygen_make_raw },
		{ KEYFILE_KEK, keygen_make_raw },
		{ KEYFILE_RECEIPT, keygen_make_ed25519 },
	};
	char path[MAX_PATH_LEN];
	size_t i;
	int r;

	if ((r = keygen_make_missing_tls(kg)) != 0)
		return r;
	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if ((r = keygen_format_path(kg, keys[i].name, path,
		    sizeof(path))) != 0)
			return r;
		if (access(path, F_OK) == 0)
			printf("%s: kept\n", path);
		else if ((r = keys[i].make(kg, keys[i].name)) != 0)
			return r;
	}
	return KEYGEN_DONE;
}
