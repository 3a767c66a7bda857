/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * cloop-keygen -Y: detached Ed25519 signatures in signify's form, so that
 * signify-openbsd -V can check them and we can check signify's.  The file is
 * opened once and read whole: what was verified is what was read.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/util.h"
#include "keygen.h"

#define KEYGEN_FILE_MAX (256UL * 1024 * 1024)	/* a release archive */

static int
keygen_read_file(const char *path, uint8_t **datap, size_t *lenp)
{
	int fd, r;

	if ((r = util_open_file(path, 0, &fd, NULL)) != 0)
		return keygen_fail("%s: %s", path, r == CL_FORMAT ?
		    "not a regular file" : cl_strerror(r));
	if ((r = util_load_fd(fd, KEYGEN_FILE_MAX, datap, lenp)) != 0)
		(void)keygen_fail("%s: %s", path, cl_strerror(r));
	close(fd);
	return r == 0 ? KEYGEN_DONE : KEYGEN_FAILED;
}

static int
keygen_make_sig(EVP_PKEY *key, const uint8_t *data, size_t len,
    struct signify_sig *sig)
{
	struct signify_key k;
	EVP_MD_CTX *ctx;
	size_t sig_len = sizeof(sig->sig);
	int ok;

	if (keygen_get_signify(key, &k) != 0)
		return KEYGEN_FAILED;
	memcpy(sig->num, k.num, sizeof(sig->num));
	if ((ctx = EVP_MD_CTX_new()) == NULL)
		return keygen_fail("out of memory");
	ok = EVP_DigestSignInit(ctx, NULL, NULL, NULL, key) == 1 &&
	    EVP_DigestSign(ctx, sig->sig, &sig_len, data, len) == 1 &&
	    sig_len == sizeof(sig->sig);
	EVP_MD_CTX_free(ctx);
	return ok ? KEYGEN_DONE : keygen_fail("signing failed");
}

static int
keygen_sign_file(const struct keygen *kg, EVP_PKEY *key, const char *path)
{
	struct signify_sig sig;
	char out[MAX_PATH_LEN], comment[512], pub[MAX_PATH_LEN];
	char text[SIGNIFY_TEXT_MAX];
	const char *base;
	uint8_t *data = NULL;
	size_t len = 0;
	int n, r;

	n = snprintf(out, sizeof(out), "%s.sig", path);
	if (n < 0 || (size_t)n >= sizeof(out))
		return keygen_fail("%s: path too long", path);
	if ((r = keygen_format_sibling(kg->file, ".pub", pub,
	    sizeof(pub))) != 0)
		return r;
	base = strrchr(pub, '/');
	snprintf(comment, sizeof(comment), "verify with %.400s",
	    base == NULL ? pub : base + 1);
	if ((r = keygen_read_file(path, &data, &len)) != 0 ||
	    (r = keygen_make_sig(key, data, len, &sig)) != 0)
		goto out;
	len = signify_format_sig(&sig, comment, text);
	if ((r = keygen_save(out, KEYFILE_MODE_PUB, text, len)) == 0)
		printf("%s: signature in %s\n", path, out);
 out:
	free(data);
	return r;
}

int
keygen_sign(const struct keygen *kg, int nfiles, char **files)
{
	EVP_PKEY *key;
	int encrypted, i, r;

	if ((r = keygen_load_key(kg->file, &key, &encrypted)) != 0)
		return r;
	if (EVP_PKEY_get_base_id(key) != EVP_PKEY_ED25519)
		r = keygen_fail("%s: not an Ed25519 release key", kg->file);
	for (i = 0; r == 0 && i < nfiles; i++)
		r = keygen_sign_file(kg, key, files[i]);
	EVP_PKEY_free(key);
	return r;
}

static int
keygen_check_sig(const struct signify_key *k, const struct signify_sig *sig,
    const uint8_t *data, size_t len)
{
	EVP_MD_CTX *ctx = NULL;
	EVP_PKEY *key;
	int ok = 0;

	key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, k->key,
	    sizeof(k->key));
	if (key != NULL && (ctx = EVP_MD_CTX_new()) != NULL)
		ok = EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, key) == 1 &&
		    EVP_DigestVerify(ctx, sig->sig, sizeof(sig->sig), data,
		    len) == 1;
	EVP_MD_CTX_free(ctx);
	EVP_PKEY_free(key);
	return ok;
}

static int
keygen_load_sig(const char *path, struct signify_sig *sig)
{
	uint8_t *data = NULL;
	size_t len = 0;
	int r;

	if ((r = keygen_read_file(path, &data, &len)) != 0)
		return r;
	if (signify_parse_sig((const char *)data, len, sig) != 0)
		r = keygen_fail("%s: not a signature", path);
	free(data);
	return r;
}

static int
keygen_verify_file(const struct keygen *kg, const struct signify_key *k,
    const char *path)
{
	struct signify_sig sig;
	char sig_path[MAX_PATH_LEN];
	uint8_t *data = NULL;
	size_t len = 0;
	int n, r;

	n = kg->sig != NULL ?
	    snprintf(sig_path, sizeof(sig_path), "%s", kg->sig) :
	    snprintf(sig_path, sizeof(sig_path), "%s.sig", path);
	if (n < 0 || (size_t)n >= sizeof(sig_path))
		return keygen_fail("%s: path too long", path);
	if ((r = keygen_load_sig(sig_path, &sig)) != 0 ||
	    (r = keygen_read_file(path, &data, &len)) != 0)
		return r;
	/* The key number is a hint for humans; the signature decides, but
	 * "another key" is the better answer when it is one. */
	if (memcmp(sig.num, k->num, sizeof(sig.num)) != 0)
		r = keygen_fail("%s: signed by another key than %s", path,
		    kg->file);
	else if (!keygen_check_sig(k, &sig, data, len))
		r = keygen_fail("%s: BAD signature", path);
	else
		printf("%s: good signature of %s\n", path, kg->file);
	free(data);
	return r;
}

int
keygen_verify(const struct keygen *kg, int nfiles, char **files)
{
	struct secret text = SECRET_INIT;
	struct signify_key k;
	int i, one, r;

	if ((r = keygen_load_public(kg->file, &text)) != 0)
		return r;
	if (signify_parse_key((const char *)text.data, text.len, &k) != 0)
		r = keygen_fail("%s: not a release public key", kg->file);
	secret_clear(&text);
	if (r != 0)
		return r;
	/* Every file is looked at; one bad one makes it a failure. */
	for (i = 0; i < nfiles; i++)
		if ((one = keygen_verify_file(kg, &k, files[i])) != 0)
			r = one;
	return r;
}
