/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Sealing.  Runs in the monitor, the only process that holds the
 * key-encryption key.  Nonces are random: a data key seals a handful of
 * versions of one secret, and the key-encryption key as many data keys as
 * there are secrets, both far below what 96 random bits allow.  What is read
 * from the store is authenticated before a byte of it is used.
 */
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include <bsd/stdlib.h>
#include <bsd/string.h>

#include "seal.h"
#include "common/base/err.h"
#include "keyfile.h"

#define SEAL_VERSION 1
#define SEAL_NONCE_LEN 12
#define SEAL_TAG_LEN 16

/* What a blob is, as the first part of its associated data. */
static const char seal_secret[] = "cloop/seal/secret/v1";
static const char seal_key[] = "cloop/seal/key/v1";

int
seal_load_kek(const char *key_dir, struct secret *kek, char *err,
    size_t errlen)
{
	return keyfile_load_raw(key_dir, KEYFILE_KEK, kek, err, errlen);
}

int
seal_new_key(struct secret *key)
{
	uint8_t raw[SEAL_KEY_LEN];
	int r;

	arc4random_buf(raw, sizeof(raw));
	r = secret_init(key, raw, sizeof(raw), sizeof(raw));
	explicit_bzero(raw, sizeof(raw));
	return r;
}

/* Context with key, nonce and associated data: kind, NUL, record id. */
static int
seal_init_ctx(EVP_CIPHER_CTX *ctx, const struct secret *key,
    const char *kind, const char *id, const uint8_t *nonce, int enc)
{
	int n;

	if (key->len != SEAL_KEY_LEN || *id == '\0')
		return CL_FORMAT;
	if (EVP_CipherInit_ex(ctx, EVP_aes_256_gcm(), NULL, key->data, nonce,
	    enc) != 1 ||
	    EVP_CipherUpdate(ctx, NULL, &n, (const unsigned char *)kind,
	    (int)strlen(kind) + 1) != 1 ||
	    EVP_CipherUpdate(ctx, NULL, &n, (const unsigned char *)id,
	    (int)strlen(id)) != 1)
		return CL_CRYPTO;
	return CL_OK;
}

static int
seal_put_kind(const struct secret *key, const char *kind, const char *id,
    const struct secret *plain, uint8_t **blobp, size_t *lenp)
{
	EVP_CIPHER_CTX *ctx = NULL;
	uint8_t *blob = NULL, *text;
	int n = 0, r;

	*blobp = NULL;
	*lenp = 0;
	if (plain->len > SEAL_MAX_LEN)
		return CL_TOOBIG;
	r = CL_NOMEM;
	if ((blob = calloc(1, plain->len + SEAL_OVERHEAD)) == NULL ||
	    (ctx = EVP_CIPHER_CTX_new()) == NULL)
		goto out;
	blob[0] = SEAL_VERSION;
	arc4random_buf(blob + 1, SEAL_NONCE_LEN);
	text = blob + 1 + SEAL_NONCE_LEN;
	if ((r = seal_init_ctx(ctx, key, kind, id, blob + 1, 1)) != 0)
		goto out;
	r = CL_CRYPTO;
	if ((plain->len > 0 && EVP_CipherUpdate(ctx, text, &n, plain->data,
	    (int)plain->len) != 1) || (size_t)n != plain->len ||
	    EVP_CipherFinal_ex(ctx, text + plain->len, &n) != 1 || n != 0 ||
	    EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, SEAL_TAG_LEN,
	    text + plain->len) != 1)
		goto out;
	*blobp = blob;
	*lenp = plain->len + SEAL_OVERHEAD;
	blob = NULL;
	r = CL_OK;
 out:
	EVP_CIPHER_CTX_free(ctx);
	free(blob);
	return r;
}

static int
seal_get_kind(const struct secret *key, const char *kind, const char *id,
    const uint8_t *blob, size_t len, struct secret *plain)
{
	EVP_CIPHER_CTX *ctx = NULL;
	uint8_t *out = NULL, tag[SEAL_TAG_LEN];
	size_t text_len;
	int n = 0, r;

	if (len < SEAL_OVERHEAD || blob[0] != SEAL_VERSION)
		return CL_FORMAT;
	if ((text_len = len - SEAL_OVERHEAD) > SEAL_MAX_LEN)
		return CL_TOOBIG;
	memcpy(tag, blob + len - SEAL_TAG_LEN, SEAL_TAG_LEN);
	r = CL_NOMEM;
	if ((out = calloc(1, text_len + 1)) == NULL ||
	    (ctx = EVP_CIPHER_CTX_new()) == NULL)
		goto out;
	if ((r = seal_init_ctx(ctx, key, kind, id, blob + 1, 0)) != 0)
		goto out;
	r = CL_DENIED;
	if ((text_len > 0 && EVP_CipherUpdate(ctx, out, &n,
	    blob + 1 + SEAL_NONCE_LEN, (int)text_len) != 1) ||
	    (size_t)n != text_len ||
	    EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, SEAL_TAG_LEN,
	    tag) != 1 || EVP_CipherFinal_ex(ctx, out + text_len, &n) != 1)
		goto out;
	r = secret_init(plain, out, text_len, SEAL_MAX_LEN);
 out:
	EVP_CIPHER_CTX_free(ctx);
	if (out != NULL)
		freezero(out, text_len + 1);
	return r;
}

int
seal_put(const struct secret *key, const char *id,
    const struct secret *plain, uint8_t **blobp, size_t *lenp)
{
	return seal_put_kind(key, seal_secret, id, plain, blobp, lenp);
}

int
seal_get(const struct secret *key, const char *id, const uint8_t *blob,
    size_t len, struct secret *plain)
{
	return seal_get_kind(key, seal_secret, id, blob, len, plain);
}

int
seal_put_key(const struct secret *kek, const char *id,
    const struct secret *key, uint8_t **blobp, size_t *lenp)
{
	if (key->len != SEAL_KEY_LEN)
		return CL_FORMAT;
	return seal_put_kind(kek, seal_key, id, key, blobp, lenp);
}

int
seal_get_key(const struct secret *kek, const char *id, const uint8_t *blob,
    size_t len, struct secret *key)
{
	if (len != SEAL_KEY_LEN + SEAL_OVERHEAD)
		return CL_FORMAT;
	return seal_get_kind(kek, seal_key, id, blob, len, key);
}
