/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * cloop-keygen -t tls: an ECDSA P-256 key with a self-signed certificate, or
 * a request for somebody else to sign.  The pin depends on the key alone, so
 * a certificate can be made again, or signed by a CA, without touching a
 * device; hence a key that is there already is used, not replaced.
 */
#include <arpa/inet.h>

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <bsd/string.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "keygen.h"

#define KEYGEN_SAN_MAX 4096
#define KEYGEN_BACKDATE_S 3600	/* clocks of devices run late */

static int
keygen_is_address(const char *host)
{
	struct in6_addr addr;

	return inet_pton(AF_INET, host, &addr) == 1 ||
	    inet_pton(AF_INET6, host, &addr) == 1;
}

/* A DNS name, with a wildcard label at most in front. */
static int
keygen_is_hostname(const char *host)
{
	size_t len = strlen(host), label = 0;
	const char *p = host;

	if (strncmp(p, "*.", 2) == 0)
		p += 2;
	if (len > 253 || *p == '\0')
		return 0;
	for (; *p != '\0'; p++) {
		if (*p == '.') {
			if (label == 0)
				return 0;
			label = 0;
		} else if (isalnum((unsigned char)*p) || *p == '_' ||
		    (*p == '-' && label > 0)) {
			if (++label > 63)
				return 0;
		} else
			return 0;
	}
	return label > 0;
}

static int
keygen_add_san(char *san, size_t len, const char *host)
{
	size_t n;

	if (!keygen_is_address(host) && !keygen_is_hostname(host))
		return keygen_fail("%s: neither a host name nor an address",
		    host);
	if (*san != '\0')
		strlcat(san, ",", len);
	strlcat(san, keygen_is_address(host) ? "IP:" : "DNS:", len);
	n = strlcat(san, host, len);
	return n >= len ? keygen_fail("too many host names") : KEYGEN_DONE;
}

/* -n ..., or this host under its own name and on loopback. */
static int
keygen_format_san(const struct keygen *kg, char *san, size_t len,
    const char **firstp, char *self, size_t self_len)
{
	static const char *const loopback[] = { "localhost", "127.0.0.1",
		"::1" };
	size_t i;
	int r = KEYGEN_DONE;

	*san = '\0';
	if (kg->nhosts > 0) {
		*firstp = kg->hosts[0];
		for (i = 0; r == 0 && i < kg->nhosts; i++)
			r = keygen_add_san(san, len, kg->hosts[i]);
		return r;
	}
	*firstp = loopback[0];
	if (gethostname(self, self_len) == 0 &&
	    memchr(self, '\0', self_len) != NULL &&
	    strcmp(self, "localhost") != 0 && keygen_is_hostname(self)) {
		*firstp = self;
		r = keygen_add_san(san, len, self);
	}
	for (i = 0; r == 0 && i < sizeof(loopback) / sizeof(loopback[0]); i++)
		r = keygen_add_san(san, len, loopback[i]);
	return r;
}

static int
keygen_add_ext(X509 *cert, STACK_OF(X509_EXTENSION) *exts, int nid,
    const char *value)
{
	X509_EXTENSION *ext;
	X509V3_CTX ctx;
	int ok;

	X509V3_set_ctx_nodb(&ctx);
	X509V3_set_ctx(&ctx, cert, cert, NULL, NULL, 0);
	if ((ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value)) == NULL)
		return 0;
	if (cert != NULL)
		ok = X509_add_ext(cert, ext, -1);
	else if ((ok = sk_X509_EXTENSION_push(exts, ext) > 0) != 0)
		return 1;	/* the stack owns it */
	X509_EXTENSION_free(ext);
	return ok;
}

/* 127 random bits, positive. */
static int
keygen_set_serial(X509 *cert)
{
	BIGNUM *bn;
	int ok;

	if ((bn = BN_new()) == NULL)
		return 0;
	ok = BN_rand(bn, 127, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1 &&
	    BN_to_ASN1_INTEGER(bn, X509_get_serialNumber(cert)) != NULL;
	BN_free(bn);
	return ok;
}

static int
keygen_set_subject(X509_NAME *name, const char *host)
{
	/* A common name is at most 64 bytes; the SAN is what counts. */
	return X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
	    (const unsigned char *)host, (int)strnlen(host, 64), -1, 0);
}

/*
 * CA:FALSE: devices take it as a trust anchor for itself (--ca-file), but
 * the TLS key cannot sign for other names.
 */
static X509 *
keygen_new_cert(EVP_PKEY *key, const char *san, const char *host,
    unsigned int days)
{
	X509 *cert;

	if ((cert = X509_new()) == NULL)
		return NULL;
	if (X509_set_version(cert, X509_VERSION_3) != 1 ||
	    !keygen_set_serial(cert) ||
	    !keygen_set_subject(X509_get_subject_name(cert), host) ||
	    X509_set_issuer_name(cert, X509_get_subject_name(cert)) != 1 ||
	    X509_gmtime_adj(X509_getm_notBefore(cert),
	    -KEYGEN_BACKDATE_S) == NULL ||
	    X509_time_adj_ex(X509_getm_notAfter(cert), (int)days, 0,
	    NULL) == NULL ||
	    X509_set_pubkey(cert, key) != 1 ||
	    !keygen_add_ext(cert, NULL, NID_basic_constraints,
	    "critical,CA:FALSE") ||
	    !keygen_add_ext(cert, NULL, NID_key_usage,
	    "critical,digitalSignature") ||
	    !keygen_add_ext(cert, NULL, NID_ext_key_usage, "serverAuth") ||
	    !keygen_add_ext(cert, NULL, NID_subject_key_identifier,
	    "hash") ||
	    !keygen_add_ext(cert, NULL, NID_subject_alt_name, san) ||
	    X509_sign(cert, key, EVP_sha256()) == 0) {
		X509_free(cert);
		return NULL;
	}
	return cert;
}

static int
keygen_save_bio(const char *path, BIO *bio, int ok)
{
	char *text, err[512];
	long len;

	if (!ok || (len = BIO_get_mem_data(bio, &text)) <= 0)
		return keygen_fail("%s: could not be encoded", path);
	if (keyfile_save_new(path, KEYFILE_MODE_PUB, text, (size_t)len, err,
	    sizeof(err)) != 0)
		return keygen_fail("%s", err);
	return KEYGEN_DONE;
}

static int
keygen_make_cert(const struct keygen *kg, EVP_PKEY *key, const char *path)
{
	char san[KEYGEN_SAN_MAX], self[256];
	const char *host;
	X509 *cert = NULL;
	BIO *bio = NULL;
	int r;

	if ((r = keygen_format_san(kg, san, sizeof(san), &host, self,
	    sizeof(self))) != 0)
		return r;
	cert = keygen_new_cert(key, san, host,
	    kg->days != 0 ? kg->days : KEYGEN_DAYS);
	bio = BIO_new(BIO_s_mem());
	if (cert == NULL || bio == NULL)
		r = keygen_fail("%s: the certificate could not be made",
		    path);
	else if ((r = keygen_save_bio(path, bio,
	    PEM_write_bio_X509(bio, cert))) == 0)
		r = keygen_show_cert(path, cert);
	BIO_free(bio);
	X509_free(cert);
	return r;
}

static int
keygen_make_csr(const struct keygen *kg, EVP_PKEY *key, const char *path)
{
	char san[KEYGEN_SAN_MAX], self[256], print[KEYGEN_PRINT_LEN];
	STACK_OF(X509_EXTENSION) *exts = NULL;
	const char *host;
	X509_REQ *req = NULL;
	BIO *bio = NULL;
	int r;

	if ((r = keygen_format_san(kg, san, sizeof(san), &host, self,
	    sizeof(self))) != 0)
		return r;
	if ((req = X509_REQ_new()) == NULL ||
	    (exts = sk_X509_EXTENSION_new_null()) == NULL ||
	    (bio = BIO_new(BIO_s_mem())) == NULL ||
	    !keygen_add_ext(NULL, exts, NID_subject_alt_name, san) ||
	    !keygen_set_subject(X509_REQ_get_subject_name(req), host) ||
	    X509_REQ_set_pubkey(req, key) != 1 ||
	    X509_REQ_add_extensions(req, exts) != 1 ||
	    X509_REQ_sign(req, key, EVP_sha256()) == 0)
		r = keygen_fail("%s: the request could not be made", path);
	else if ((r = keygen_save_bio(path, bio,
	    PEM_write_bio_X509_REQ(bio, req))) == 0 &&
	    (r = keygen_format_print(key, print)) == 0)
		printf("%s: certificate request for %s\n  fingerprint %s\n"
		    "  put the signed chain into %s\n", path, san, print,
		    KEYFILE_CERT);
	sk_X509_EXTENSION_pop_free(exts, X509_EXTENSION_free);
	X509_REQ_free(req);
	BIO_free(bio);
	return r;
}

/* The key of this path, made when it is missing. */
static int
keygen_want_key(const char *path, EVP_PKEY **keyp)
{
	int encrypted;

	*keyp = NULL;
	if (access(path, F_OK) == 0)
		return keygen_load_key(path, keyp, &encrypted);
	if ((*keyp = EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256")) == NULL)
		return keygen_fail("%s: no key could be made", path);
	return keygen_save_key(path, *keyp);
}

/* Key at `path`; certificate or request at `out`. */
static int
keygen_make_pair(const struct keygen *kg, const char *path, const char *out)
{
	char san[KEYGEN_SAN_MAX], self[256];
	const char *host;
	EVP_PKEY *key = NULL;
	int r;

	/* Bad names are found before anything is made. */
	if ((r = keygen_format_san(kg, san, sizeof(san), &host, self,
	    sizeof(self))) != 0)
		return r;
	if (access(out, F_OK) == 0)
		return keygen_fail("%s: already exists, not overwritten",
		    out);
	if ((r = keygen_want_key(path, &key)) == 0)
		r = kg->csr ? keygen_make_csr(kg, key, out) :
		    keygen_make_cert(kg, key, out);
	EVP_PKEY_free(key);
	return r;
}

int
keygen_make_tls(const struct keygen *kg)
{
	char path[MAX_PATH_LEN], out[MAX_PATH_LEN];
	int r;

	if ((r = keygen_format_path(kg, KEYFILE_TLS, path,
	    sizeof(path))) != 0 ||
	    (r = keygen_format_sibling(path, kg->csr ? ".csr" : ".crt", out,
	    sizeof(out))) != 0)
		return r;
	if (!kg->csr && access(path, F_OK) == 0)
		return keygen_fail("%s: already exists, not overwritten "
		    "(-A makes what is missing beside it)", path);
	return keygen_make_pair(kg, path, out);
}

int
keygen_make_missing_tls(const struct keygen *kg)
{
	char path[MAX_PATH_LEN], out[MAX_PATH_LEN];
	int r;

	if ((r = keygen_format_path(kg, KEYFILE_TLS, path,
	    sizeof(path))) != 0 ||
	    (r = keygen_format_sibling(path, ".crt", out, sizeof(out))) != 0)
		return r;
	if (access(out, F_OK) != 0)
		return keygen_make_pair(kg, path, out);
	if (access(path, F_OK) != 0)
		return keygen_fail("%s: is there, but its key %s is not; "
		    "restore the key or move the certificate away", out,
		    path);
	printf("%s: kept\n%s: kept\n", path, out);
	return keygen_show_cert_file(out);
}
