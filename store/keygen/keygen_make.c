/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * cloop-keygen -A and -t: the keys that have a public half.
 *
 * TLS: an ECDSA P-256 key with a self-signed certificate, or a request for
 * somebody else to sign.  The pin depends on the key alone, so a certificate
 * can be made again, or signed by a CA, without touching a device; hence a
 * key that is there already is used, not replaced.
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

#include "common/base/limits.h"
#include "keygen.h"

#define KEYGEN_BACKDATE_S 3600	/* clocks of devices run late */

/* ---------------------------------------------------------------- Ed25519 */

static int
keygen_save_public(const char *path, EVP_PKEY *key, int release)
{
	struct signify_key k;
	char text[SIGNIFY_TEXT_MAX];
	BIO *bio;
	int r;

	if (release) {
		if (keygen_get_signify(key, &k) != 0)
			return KEYGEN_FAILED;
		return keygen_save(path, KEYFILE_MODE_PUB, text,
		    signify_format_key(&k, "cloop release public key", text));
	}
	bio = BIO_new(BIO_s_mem());
	r = keygen_save_bio(path, KEYFILE_MODE_PUB, bio,
	    bio != NULL && PEM_write_bio_PUBKEY(bio, key) == 1);
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
		r = keygen_save_public(pub, key, release);
		if (r == 0)
			r = keygen_show_key(path, key, release ?
			    "Ed25519 release key" : "Ed25519 receipt key");
		if (r == 0)
			printf("  public key in %s\n", pub);
	}
	EVP_PKEY_free(key);
	return r;
}

/* -------------------------------------------------------------- host names */

/* The names of a certificate. */
struct keygen_names {
	char san[4096];
	char self[256];
	const char *first;	/* becomes the subject */
};

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
keygen_add_san(struct keygen_names *v, const char *host)
{
	const size_t len = sizeof(v->san);
	size_t n;

	if (!keygen_is_address(host) && !keygen_is_hostname(host))
		return keygen_fail("%s: neither a host name nor an address",
		    host);
	if (*v->san != '\0')
		strlcat(v->san, ",", len);
	strlcat(v->san, keygen_is_address(host) ? "IP:" : "DNS:", len);
	n = strlcat(v->san, host, len);
	return n >= len ? keygen_fail("too many host names") : KEYGEN_DONE;
}

/* -n ..., or this host under its own name and on loopback. */
static int
keygen_find_names(const struct keygen *kg, struct keygen_names *v)
{
	static const char *const loopback[] = { "localhost", "127.0.0.1",
		"::1" };
	const char *const *hosts = kg->nhosts > 0 ? kg->hosts : loopback;
	size_t n = kg->nhosts > 0 ? kg->nhosts : 3, i;
	int r = KEYGEN_DONE;

	memset(v, 0, sizeof(*v));
	v->first = hosts[0];
	if (kg->nhosts == 0 && gethostname(v->self, sizeof(v->self)) == 0 &&
	    memchr(v->self, '\0', sizeof(v->self)) != NULL &&
	    strcmp(v->self, "localhost") != 0 &&
	    keygen_is_hostname(v->self)) {
		v->first = v->self;
		r = keygen_add_san(v, v->self);
	}
	for (i = 0; r == 0 && i < n; i++)
		r = keygen_add_san(v, hosts[i]);
	return r;
}

/* ------------------------------------------------------------------- TLS */

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
keygen_new_cert(EVP_PKEY *key, const struct keygen_names *v,
    unsigned int days)
{
	X509 *cert;

	if ((cert = X509_new()) == NULL)
		return NULL;
	if (X509_set_version(cert, X509_VERSION_3) != 1 ||
	    !keygen_set_serial(cert) ||
	    !keygen_set_subject(X509_get_subject_name(cert), v->first) ||
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
	    !keygen_add_ext(cert, NULL, NID_subject_alt_name, v->san) ||
	    X509_sign(cert, key, EVP_sha256()) == 0) {
		X509_free(cert);
		return NULL;
	}
	return cert;
}

static int
keygen_make_cert(const struct keygen *kg, EVP_PKEY *key,
    const struct keygen_names *v, const char *path)
{
	X509 *cert;
	BIO *bio;
	int r;

	cert = keygen_new_cert(key, v, kg->days != 0 ? kg->days :
	    KEYGEN_DAYS);
	bio = BIO_new(BIO_s_mem());
	if ((r = keygen_save_bio(path, KEYFILE_MODE_PUB, bio, cert != NULL &&
	    bio != NULL && PEM_write_bio_X509(bio, cert) == 1)) == 0)
		r = keygen_show_cert(path, cert);
	BIO_free(bio);
	X509_free(cert);
	return r;
}

static int
keygen_make_csr(EVP_PKEY *key, const struct keygen_names *v,
    const char *path)
{
	STACK_OF(X509_EXTENSION) *exts = sk_X509_EXTENSION_new_null();
	X509_REQ *req = X509_REQ_new();
	BIO *bio = BIO_new(BIO_s_mem());
	char print[KEYGEN_PRINT_LEN];
	int ok, r;

	ok = req != NULL && exts != NULL && bio != NULL &&
	    keygen_add_ext(NULL, exts, NID_subject_alt_name, v->san) &&
	    keygen_set_subject(X509_REQ_get_subject_name(req), v->first) &&
	    X509_REQ_set_pubkey(req, key) == 1 &&
	    X509_REQ_add_extensions(req, exts) == 1 &&
	    X509_REQ_sign(req, key, EVP_sha256()) != 0 &&
	    PEM_write_bio_X509_REQ(bio, req) == 1;
	if ((r = keygen_save_bio(path, KEYFILE_MODE_PUB, bio, ok)) == 0 &&
	    (r = keygen_format_print(key, print)) == 0)
		printf("%s: certificate request for %s\n  fingerprint %s\n"
		    "  put the signed chain into %s\n", path, v->san, print,
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
	struct keygen_names v;
	EVP_PKEY *key = NULL;
	int r;

	/* Bad names are found before anything is made. */
	if ((r = keygen_find_names(kg, &v)) != 0)
		return r;
	if (access(out, F_OK) == 0)
		return keygen_fail("%s: already exists, not overwritten",
		    out);
	if ((r = keygen_want_key(path, &key)) == 0)
		r = kg->csr ? keygen_make_csr(key, &v, out) :
		    keygen_make_cert(kg, key, &v, out);
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

/* For -A: what is missing of the pair. */
static int
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
