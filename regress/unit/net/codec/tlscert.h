/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Keys and self-signed certificates for the TLS tests, made on the spot.
 */
#ifndef CLOOP_TLSCERT_H
#define CLOOP_TLSCERT_H

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>

/* A certificate for `san` ("DNS:hub,IP:127.0.0.1") as PEM; owned. */
static inline char *
tlscert_make(EVP_PKEY *key, const char *san)
{
	X509 *cert = X509_new();
	X509_NAME *name = X509_get_subject_name(cert);
	BIO *bio = BIO_new(BIO_s_mem());
	X509_EXTENSION *ext;
	char *text = NULL, *data;
	long len;

	X509_set_version(cert, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
	X509_gmtime_adj(X509_getm_notBefore(cert), -60);
	X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
	X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
	    (const unsigned char *)"test", -1, -1, 0);
	X509_set_issuer_name(cert, name);
	X509_set_pubkey(cert, key);
	ext = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, san);
	X509_add_ext(cert, ext, -1);
	X509_EXTENSION_free(ext);
	ext = X509V3_EXT_conf_nid(NULL, NULL, NID_basic_constraints,
	    "critical,CA:TRUE");
	X509_add_ext(cert, ext, -1);
	X509_EXTENSION_free(ext);
	X509_sign(cert, key, EVP_sha256());
	PEM_write_bio_X509(bio, cert);
	len = BIO_get_mem_data(bio, &data);
	if ((text = calloc(1, (size_t)len + 1)) != NULL)
		memcpy(text, data, (size_t)len);
	BIO_free(bio);
	X509_free(cert);
	return text;
}

static inline char *
tlscert_format_key(EVP_PKEY *key)
{
	BIO *bio = BIO_new(BIO_s_mem());
	char *text, *data;
	long len;

	PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL);
	len = BIO_get_mem_data(bio, &data);
	if ((text = calloc(1, (size_t)len + 1)) != NULL)
		memcpy(text, data, (size_t)len);
	BIO_free(bio);
	return text;
}

#endif
