/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * cloop-keygen: the files of keys, loading and saving them; -p.  A file is
 * made with its final mode and never replaces another.  A passphrase comes
 * from the terminal, or from standard input when that is none; never from
 * argv or the environment.  Keys with one are PKCS#8 under scrypt and
 * AES-256-CBC, which every OpenSSL reads.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/x509.h>

#include <bsd/readpassphrase.h>
#include <bsd/string.h>

#include "common/base/err.h"
#include "common/base/util.h"
#include "keygen.h"

#define KEYGEN_PASS_MAX 1024
/* 16 MiB and about 50 ms per guess. */
#define KEYGEN_SCRYPT_N 16384
#define KEYGEN_SCRYPT_R 8
#define KEYGEN_SCRYPT_P 1

/* ------------------------------------------------------------------ files */

int
keygen_save(const char *path, int mode, const void *text, size_t len)
{
	char err[512];

	return keyfile_save_new(path, (mode_t)mode, text, len, err,
	    sizeof(err)) == 0 ? KEYGEN_DONE : keygen_fail("%s", err);
}

int
keygen_save_bio(const char *path, int mode, BIO *bio, int ok)
{
	char *text;
	long len;

	if (ok != 1 || (len = BIO_get_mem_data(bio, &text)) <= 0)
		return keygen_fail("%s: could not be encoded", path);
	return keygen_save(path, mode, text, (size_t)len);
}

int
keygen_save_key(const char *path, EVP_PKEY *key)
{
	/* Secure memory: wiped when the BIO goes. */
	BIO *bio = BIO_new(BIO_s_secmem());
	int r;

	r = keygen_save_bio(path, KEYFILE_MODE_KEY, bio, bio != NULL &&
	    PEM_write_bio_PKCS8PrivateKey(bio, key, NULL, NULL, 0, NULL,
	    NULL) == 1);
	BIO_free(bio);
	return r;
}

int
keygen_load_public(const char *path, struct secret *text)
{
	char err[512];

	return keyfile_load_public(NULL, path, text, err, sizeof(err)) == 0 ?
	    KEYGEN_DONE : keygen_fail("%s", err);
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

/* ------------------------------------------------------------ passphrases */

struct keygen_pass {
	char text[KEYGEN_PASS_MAX];
	const char *path;
	int asked;
};

static int
keygen_read_pass(const char *prompt, char *dst)
{
	int flags = isatty(STDIN_FILENO) ? RPP_REQUIRE_TTY : RPP_STDIN;

	if (readpassphrase(prompt, dst, KEYGEN_PASS_MAX,
	    RPP_ECHO_OFF | flags) == NULL)
		return keygen_fail("no passphrase could be read");
	return KEYGEN_DONE;
}

static int
keygen_on_pass(char *buf, int size, int rwflag, void *arg)
{
	struct keygen_pass *p = arg;
	char prompt[512];
	size_t len;

	(void)rwflag;
	snprintf(prompt, sizeof(prompt), "passphrase of %s: ", p->path);
	p->asked = 1;
	if (keygen_read_pass(prompt, p->text) != 0 ||
	    (len = strlen(p->text)) > (size_t)size)
		return -1;
	memcpy(buf, p->text, len);
	return (int)len;
}

int
keygen_load_key(const char *path, EVP_PKEY **keyp, int *encryptedp)
{
	struct secret text = SECRET_INIT;
	struct keygen_pass pass = { .path = path };
	char err[512];
	BIO *bio;

	*keyp = NULL;
	if (keyfile_load(NULL, path, &text, err, sizeof(err)) != 0)
		return keygen_fail("%s", err);
	if ((bio = BIO_new_mem_buf(text.data, (int)text.len)) != NULL)
		*keyp = PEM_read_bio_PrivateKey(bio, NULL, keygen_on_pass,
		    &pass);
	BIO_free(bio);
	secret_clear(&text);
	explicit_bzero(pass.text, sizeof(pass.text));
	*encryptedp = pass.asked;
	if (*keyp != NULL)
		return KEYGEN_DONE;
	return keygen_fail("%s: %s", path, pass.asked ?
	    "wrong passphrase" : "no private key in it");
}

/* PKCS#8 PEM under the passphrase. */
static int
keygen_put_encrypted(BIO *bio, EVP_PKEY *key, const char *pass)
{
	PKCS8_PRIV_KEY_INFO *info;
	X509_ALGOR *alg = NULL;
	X509_SIG *p8 = NULL;
	int ok = 0;

	if ((info = EVP_PKEY2PKCS8(key)) == NULL)
		return 0;
	alg = PKCS5_pbe2_set_scrypt(EVP_aes_256_cbc(), NULL, 0, NULL,
	    KEYGEN_SCRYPT_N, KEYGEN_SCRYPT_R, KEYGEN_SCRYPT_P);
	if (alg != NULL)
		p8 = PKCS8_set0_pbe(pass, (int)strlen(pass), info, alg);
	if (p8 == NULL)
		X509_ALGOR_free(alg);	/* otherwise p8 owns it */
	else
		ok = PEM_write_bio_PKCS8(bio, p8);
	X509_SIG_free(p8);
	PKCS8_PRIV_KEY_INFO_free(info);
	return ok;
}

static int
keygen_replace_key(const char *path, EVP_PKEY *key, const char *pass)
{
	BIO *bio;
	char *text;
	long len;
	int ok, r;

	if ((bio = BIO_new(BIO_s_secmem())) == NULL)
		return keygen_fail("out of memory");
	ok = *pass == '\0' ? PEM_write_bio_PKCS8PrivateKey(bio, key, NULL,
	    NULL, 0, NULL, NULL) : keygen_put_encrypted(bio, key, pass);
	if (ok != 1 || (len = BIO_get_mem_data(bio, &text)) <= 0)
		r = keygen_fail("%s: the key could not be encoded", path);
	else if ((r = util_save_file(path, KEYFILE_MODE_KEY, text,
	    (size_t)len)) != 0)
		r = keygen_fail("%s: %s", path, cl_strerror(r));
	BIO_free(bio);
	return r;
}

int
keygen_change_pass(const struct keygen *kg)
{
	char pass[KEYGEN_PASS_MAX] = "", again[KEYGEN_PASS_MAX] = "";
	EVP_PKEY *key;
	int encrypted, r;

	if ((r = keygen_load_key(kg->file, &key, &encrypted)) != 0)
		return r;
	if (EVP_PKEY_get_base_id(key) != EVP_PKEY_ED25519) {
		/* Daemons start without anybody to type a passphrase. */
		r = keygen_fail("%s: only release keys have a passphrase",
		    kg->file);
		goto out;
	}
	if ((r = keygen_read_pass("new passphrase (empty for none): ",
	    pass)) != 0 ||
	    (r = keygen_read_pass("the same again: ", again)) != 0)
		goto out;
	if (strcmp(pass, again) != 0)
		r = keygen_fail("the passphrases differ; nothing changed");
	else if ((r = keygen_replace_key(kg->file, key, pass)) == 0)
		printf("%s: %s\n", kg->file, *pass != '\0' ?
		    "passphrase set" : "has no passphrase now");
 out:
	explicit_bzero(pass, sizeof(pass));
	explicit_bzero(again, sizeof(again));
	EVP_PKEY_free(key);
	return r;
}
