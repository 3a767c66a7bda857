/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * cloop-keygen -l: what a key is, its fingerprint, and the pin that devices
 * check.  Looking changes nothing.  Names in a certificate were chosen by
 * whoever made it, so they are printed escaped.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <bsd/string.h>

#include "common/base/b64.h"
#include "common/base/limits.h"
#include "common/base/pin.h"
#include "keygen.h"

/* "SHA256:" and base64 without padding, as ssh-keygen prints it. */
void
keygen_format_digest(const unsigned char *md, char *dst)
{
	strlcpy(dst, "SHA256:", KEYGEN_PRINT_LEN);
	b64_encode(md, 32, dst + 7);
	dst[strcspn(dst, "=")] = '\0';
}

static int
keygen_hash_spki(EVP_PKEY *key, unsigned char md[EVP_MAX_MD_SIZE])
{
	unsigned char *der = NULL;
	int len, ok;

	if ((len = i2d_PUBKEY(key, &der)) <= 0)
		return keygen_fail("the public key cannot be encoded");
	ok = EVP_Digest(der, (size_t)len, md, NULL, EVP_sha256(), NULL);
	OPENSSL_free(der);
	return ok == 1 ? KEYGEN_DONE : keygen_fail("SHA-256 failed");
}

int
keygen_format_print(EVP_PKEY *key, char dst[KEYGEN_PRINT_LEN])
{
	unsigned char md[EVP_MAX_MD_SIZE];
	int r;

	if ((r = keygen_hash_spki(key, md)) == 0)
		keygen_format_digest(md, dst);
	return r;
}

int
keygen_format_pin(EVP_PKEY *key, char *dst, size_t dstlen)
{
	unsigned char md[EVP_MAX_MD_SIZE];
	struct pin pin;
	char text[PIN_TEXT_LEN + 1];
	int r;

	if ((r = keygen_hash_spki(key, md)) != 0)
		return r;
	memcpy(pin.digest, md, sizeof(pin.digest));
	pin_format(&pin, text);
	strlcpy(dst, text, dstlen);
	return KEYGEN_DONE;
}

int
keygen_show_key(const char *label, EVP_PKEY *key, const char *what)
{
	char print[KEYGEN_PRINT_LEN];
	int r;

	if ((r = keygen_format_print(key, print)) == 0)
		printf("%s: %s\n  fingerprint %s\n", label, what, print);
	return r;
}

static const char *
keygen_find_type(EVP_PKEY *key, char *dst, size_t dstlen)
{
	char group[64] = "";
	size_t len;

	switch (EVP_PKEY_get_base_id(key)) {
	case EVP_PKEY_ED25519:
		return "Ed25519";
	case EVP_PKEY_EC:
		if (EVP_PKEY_get_group_name(key, group, sizeof(group),
		    &len) == 1 && strcmp(group, "prime256v1") == 0)
			return "ECDSA P-256";
		snprintf(dst, dstlen, "ECDSA %s", group);
		return dst;
	default:
		snprintf(dst, dstlen, "%s, %d bits",
		    EVP_PKEY_get0_type_name(key) != NULL ?
		    EVP_PKEY_get0_type_name(key) : "key",
		    EVP_PKEY_get_bits(key));
		return dst;
	}
}

static void
keygen_print_names(BIO *out, X509 *cert)
{
	GENERAL_NAMES *names;

	BIO_puts(out, "  subject ");
	X509_NAME_print_ex(out, X509_get_subject_name(cert), 0,
	    XN_FLAG_ONELINE & ~ASN1_STRFLGS_ESC_MSB);
	BIO_puts(out, "\n  names ");
	names = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
	if (names == NULL)
		BIO_puts(out, "none");
	else {
		int i, n = sk_GENERAL_NAME_num(names);

		for (i = 0; i < n; i++) {
			if (i > 0)
				BIO_puts(out, ", ");
			GENERAL_NAME_print(out,
			    sk_GENERAL_NAME_value(names, i));
		}
		GENERAL_NAMES_free(names);
	}
	BIO_puts(out, "\n  valid ");
	ASN1_TIME_print(out, X509_get0_notBefore(cert));
	BIO_puts(out, " to ");
	ASN1_TIME_print(out, X509_get0_notAfter(cert));
	BIO_puts(out, "\n");
}

/* What OpenSSL printed, with everything but plain text escaped. */
static void
keygen_print_escaped(BIO *bio)
{
	char *text;
	long i, len = BIO_get_mem_data(bio, &text);

	for (i = 0; i < len; i++) {
		if (text[i] == '\n' || (text[i] >= 0x20 && text[i] < 0x7f))
			putchar(text[i]);
		else
			printf("\\x%02x", (unsigned char)text[i]);
	}
}

int
keygen_show_cert(const char *label, X509 *cert)
{
	unsigned char md[EVP_MAX_MD_SIZE];
	char pin[PIN_TEXT_LEN + 1], print[KEYGEN_PRINT_LEN], type[128];
	EVP_PKEY *key;
	BIO *bio;
	int r;

	if ((key = X509_get0_pubkey(cert)) == NULL)
		return keygen_fail("%s: a key type we do not know", label);
	if ((bio = BIO_new(BIO_s_mem())) == NULL)
		return keygen_fail("out of memory");
	if (X509_digest(cert, EVP_sha256(), md, NULL) != 1)
		r = keygen_fail("%s: SHA-256 failed", label);
	else if ((r = keygen_format_pin(key, pin, sizeof(pin))) == 0) {
		keygen_format_digest(md, print);
		printf("%s: certificate, %s\n", label,
		    keygen_find_type(key, type, sizeof(type)));
		keygen_print_names(bio, cert);
		keygen_print_escaped(bio);
		printf("  fingerprint %s\n  pin %s\n", print, pin);
	}
	BIO_free(bio);
	return r;
}

static int
keygen_show_pem_cert(const char *path, const struct secret *text)
{
	X509 *cert = NULL;
	BIO *bio;
	int r;

	/* The first CERTIFICATE block is the leaf. */
	if ((bio = BIO_new_mem_buf(text->data, (int)text->len)) != NULL)
		cert = PEM_read_bio_X509(bio, NULL, NULL, NULL);
	r = cert != NULL ? keygen_show_cert(path, cert) :
	    keygen_fail("%s: no certificate in it", path);
	X509_free(cert);
	BIO_free(bio);
	return r;
}

int
keygen_show_cert_file(const char *path)
{
	struct secret text = SECRET_INIT;
	int r;

	if ((r = keygen_load_public(path, &text)) != 0)
		return r;
	r = keygen_show_pem_cert(path, &text);
	secret_clear(&text);
	return r;
}

static int
keygen_show_pem_key(const char *path, const struct secret *text)
{
	char type[160], what[192];
	EVP_PKEY *key = NULL;
	int encrypted = 0, r;

	if (memmem(text->data, text->len, "PUBLIC KEY-----", 15) != NULL) {
		BIO *bio = BIO_new_mem_buf(text->data, (int)text->len);

		if (bio != NULL)
			key = PEM_read_bio_PUBKEY(bio, NULL, NULL, NULL);
		BIO_free(bio);
		if (key == NULL)
			return keygen_fail("%s: no public key in it", path);
		snprintf(what, sizeof(what), "public key, %s",
		    keygen_find_type(key, type, sizeof(type)));
	} else {
		if ((r = keygen_load_key(path, &key, &encrypted)) != 0)
			return r;
		snprintf(what, sizeof(what), "private key, %s%s",
		    keygen_find_type(key, type, sizeof(type)),
		    encrypted ? ", with passphrase" : "");
	}
	r = keygen_show_key(path, key, what);
	EVP_PKEY_free(key);
	return r;
}

static int
keygen_show_signify(const char *path, const struct signify_key *k)
{
	EVP_PKEY *key;
	int r;

	key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, k->key,
	    sizeof(k->key));
	if (key == NULL)
		return keygen_fail("%s: not an Ed25519 key", path);
	r = keygen_show_key(path, key, "release public key, Ed25519");
	EVP_PKEY_free(key);
	return r;
}

static int
keygen_has_text(const struct secret *s, const char *text)
{
	return memmem(s->data, s->len, text, strlen(text)) != NULL;
}

/* A file is known by its content, not by its name. */
static int
keygen_show_file(const char *path)
{
	struct secret text = SECRET_INIT;
	struct signify_key k;
	int r;

	/* A public file may be public; a key is checked when it is one. */
	if ((r = keygen_load_public(path, &text)) != 0)
		return r;
	if (signify_parse_key((const char *)text.data, text.len, &k) == 0)
		r = keygen_show_signify(path, &k);
	else if (keygen_has_text(&text, "-----BEGIN CERTIFICATE-----"))
		r = keygen_show_pem_cert(path, &text);
	else if (keygen_has_text(&text, " KEY-----"))
		r = keygen_show_pem_key(path, &text);
	else if (keygen_has_text(&text, "cloop mac key\n"))
		r = keygen_show_raw(path, "mac");
	else if (keygen_has_text(&text, "cloop kek key\n"))
		r = keygen_show_raw(path, "kek");
	else
		r = keygen_fail("%s: neither a key nor a certificate", path);
	secret_clear(&text);
	return r;
}

int
keygen_show(const struct keygen *kg)
{
	static const char *const names[] = { KEYFILE_CERT, KEYFILE_MAC,
		KEYFILE_KEK, KEYFILE_RECEIPT_PUB, KEYFILE_RELEASE_PUB };
	char path[MAX_PATH_LEN];
	size_t i, n = 0;
	int r = KEYGEN_DONE, one;

	if (kg->file != NULL)
		return keygen_show_file(kg->file);
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		one = snprintf(path, sizeof(path), "%s/%s", kg->key_dir,
		    names[i]);
		if (one < 0 || (size_t)one >= sizeof(path))
			return keygen_fail("%s: path too long", kg->key_dir);
		if (access(path, F_OK) != 0)
			continue;
		n++;
		if ((one = keygen_show_file(path)) != 0)
			r = one;
	}
	if (n == 0)
		return keygen_fail("%s: no keys there; make them with "
		    "cloop-keygen -A", kg->key_dir);
	return r;
}
