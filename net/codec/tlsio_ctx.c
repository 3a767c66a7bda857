/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The TLS policy of both sides as SSL_CTX objects, in cloopd-net and
 * agentd-fetch.  Runs before confinement: the client side reads the system's
 * root certificates here, since nothing can be opened later.  Trusts the
 * administrator's PEM and the system store.
 */
#include "tlsio.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/pin.h"
#include "tlsio_int.h"

/* The whole list for TLS 1.2, in the server's order. */
#define TLSIO_SUITES_12                                                        \
	"ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:"           \
	"ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:"           \
	"ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305"

/*
 * The one signature scheme of a server: cloopd-key signs SHA-256 digests
 * with P-256 only, and every peer of ours offers it.
 */
#define TLSIO_SIGALGS "ECDSA+SHA256"

#define TLSIO_WHY_MAX 160

/* ALPN in wire form. */
static const unsigned char tlsio_http11[] = "\x08http/1.1";

static const char *const tlsio_root_files[] = {
	"/etc/ssl/certs/ca-certificates.crt",	/* Debian and its family */
	"/etc/pki/tls/certs/ca-bundle.crt",
	"/etc/ssl/cert.pem",
};

/* Returns r; fills *whyp with what and OpenSSL's reason, if there is one. */
static int
tlsio_set_why(int r, const char *what, const char **whyp)
{
	static char why[TLSIO_WHY_MAX];
	const char *reason = ERR_reason_error_string(ERR_peek_last_error());

	if (whyp != NULL) {
		snprintf(why, sizeof(why), "%s%s%s", what,
		    reason != NULL ? ": " : "", reason != NULL ? reason : "");
		*whyp = why;
	}
	ERR_clear_error();
	return r;
}

int
tlsio_get_pin(const X509 *cert, struct pin *p)
{
	unsigned char *der = NULL;
	unsigned int n = 0;
	int len, r = CL_CRYPTO;

	memset(p, 0, sizeof(*p));
	len = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(cert), &der);
	if (len <= 0)
		goto out;
	if (EVP_Digest(der, (size_t)len, p->digest, &n, EVP_sha256(),
	    NULL) == 1 && n == PIN_DIGEST_LEN)
		r = CL_OK;
 out:
	OPENSSL_free(der);
	return r;
}

int
tlsio_load_pin(const uint8_t *chain_pem, size_t len, struct pin *p)
{
	X509 *leaf;
	BIO *bio;
	int r = CL_FORMAT;

	memset(p, 0, sizeof(*p));
	if (len > INT32_MAX || (bio = BIO_new_mem_buf(chain_pem, (int)len)) ==
	    NULL)
		return CL_NOMEM;
	if ((leaf = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL)
		r = tlsio_get_pin(leaf, p);
	X509_free(leaf);
	BIO_free(bio);
	ERR_clear_error();
	return r;
}

/* What both sides have in common. */
static int
tlsio_ctx_new(const SSL_METHOD *method, struct tlsio_ctx **ctxp)
{
	struct tlsio_ctx *ctx;

	*ctxp = NULL;
	ERR_clear_error();
	if ((ctx = calloc(1, sizeof(*ctx))) == NULL)
		return CL_NOMEM;
	if ((ctx->ssl_ctx = SSL_CTX_new(method)) == NULL ||
	    SSL_CTX_set_min_proto_version(ctx->ssl_ctx, TLS1_2_VERSION) != 1) {
		tlsio_ctx_free(ctx);
		return CL_CRYPTO;
	}
	SSL_CTX_set_options(ctx->ssl_ctx, SSL_OP_NO_RENEGOTIATION |
	    SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET |
	    SSL_OP_CIPHER_SERVER_PREFERENCE);
	SSL_CTX_set_session_cache_mode(ctx->ssl_ctx, SSL_SESS_CACHE_OFF);
	/* Release buffers: an idle agent costs the hub no record buffers. */
	SSL_CTX_set_mode(ctx->ssl_ctx, SSL_MODE_RELEASE_BUFFERS |
	    SSL_MODE_ENABLE_PARTIAL_WRITE |
	    SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	*ctxp = ctx;
	return CL_OK;
}

void
tlsio_ctx_free(struct tlsio_ctx *ctx)
{
	if (ctx == NULL)
		return;
	SSL_CTX_free(ctx->ssl_ctx);
	free(ctx);
}

/*
 * A client that offers ALPN gets http/1.1, and no protocol at all when it
 * did not offer that: refusing would break clients that send none of ours.
 */
static int
tlsio_on_alpn(SSL *ssl, const unsigned char **out, unsigned char *outlen,
    const unsigned char *in, unsigned int inlen, void *arg)
{
	unsigned char *selected;

	(void)ssl;
	(void)arg;
	if (SSL_select_next_proto(&selected, outlen, tlsio_http11,
	    sizeof(tlsio_http11) - 1, in, inlen) != OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_NOACK;
	*out = selected;
	return SSL_TLSEXT_ERR_OK;
}

/* The chain, leaf first.  CL_FORMAT when there is no certificate. */
static int
tlsio_load_chain(SSL_CTX *ssl_ctx, const uint8_t *pem, size_t len)
{
	X509 *cert;
	BIO *bio;
	size_t n = 0;
	int ok = 1;

	if (len > INT32_MAX || (bio = BIO_new_mem_buf(pem, (int)len)) == NULL)
		return CL_NOMEM;
	while (ok && (cert = PEM_read_bio_X509(bio, NULL, NULL, NULL)) !=
	    NULL) {
		if (n++ == 0)
			ok = SSL_CTX_use_certificate(ssl_ctx, cert);
		else
			ok = (int)SSL_CTX_add1_chain_cert(ssl_ctx, cert);
		X509_free(cert);
	}
	BIO_free(bio);
	if (n == 0)
		return CL_FORMAT;
	if (!ok)
		return CL_CRYPTO;
	ERR_clear_error();	/* "no start line" ends every PEM text */
	return CL_OK;
}

int
tlsio_ctx_new_server(const uint8_t *chain_pem, size_t len,
    struct evp_pkey_st *key, struct tlsio_ctx **ctxp, const char **whyp)
{
	struct tlsio_ctx *ctx;
	int r;

	*ctxp = NULL;
	if ((r = tlsio_ctx_new(TLS_server_method(), &ctx)) != 0)
		return tlsio_set_why(r, "cannot make a TLS context", whyp);
	SSL_CTX_set_num_tickets(ctx->ssl_ctx, 0);
	/* One read(2) for a whole frame instead of one for its head and one
	 * for the rest. */
	SSL_CTX_set_read_ahead(ctx->ssl_ctx, 1);
	SSL_CTX_set_alpn_select_cb(ctx->ssl_ctx, tlsio_on_alpn, NULL);
	r = CL_CRYPTO;
	if (SSL_CTX_set_cipher_list(ctx->ssl_ctx, TLSIO_SUITES_12) != 1 ||
	    SSL_CTX_set1_sigalgs_list(ctx->ssl_ctx, TLSIO_SIGALGS) != 1) {
		r = tlsio_set_why(r, "TLS suites are not available", whyp);
		goto fail;
	}
	if ((r = tlsio_load_chain(ctx->ssl_ctx, chain_pem, len)) != 0) {
		r = tlsio_set_why(r, r == CL_FORMAT ?
		    "there is no certificate in the file" :
		    "the certificate cannot be used", whyp);
		goto fail;
	}
	if (SSL_CTX_use_PrivateKey(ctx->ssl_ctx, key) != 1) {
		r = tlsio_set_why(CL_CRYPTO,
		    "the key does not belong to the certificate", whyp);
		goto fail;
	}
	*ctxp = ctx;
	return CL_OK;
 fail:
	tlsio_ctx_free(ctx);
	return r;
}

/* Add the certificates of a PEM text.  CL_FORMAT when there is none. */
static int
tlsio_load_roots(X509_STORE *store, const uint8_t *pem, size_t len)
{
	X509 *cert;
	BIO *bio;
	size_t n = 0;
	int ok = 1;

	if (len > INT32_MAX || (bio = BIO_new_mem_buf(pem, (int)len)) == NULL)
		return CL_NOMEM;
	while (ok && (cert = PEM_read_bio_X509(bio, NULL, NULL, NULL)) !=
	    NULL) {
		ok = X509_STORE_add_cert(store, cert);
		X509_free(cert);
		n++;
	}
	BIO_free(bio);
	if (n == 0)
		return CL_FORMAT;
	if (!ok)
		return CL_CRYPTO;
	ERR_clear_error();
	return CL_OK;
}

/*
 * The whole bundle at once: the directory of hashed names would be looked
 * up during a handshake, when this process can open nothing any more.
 */
static int
tlsio_load_system_roots(X509_STORE *store)
{
	size_t i;

	for (i = 0; i < sizeof(tlsio_root_files) /
	    sizeof(tlsio_root_files[0]); i++) {
		if (X509_STORE_load_file(store, tlsio_root_files[i]) == 1)
			return CL_OK;
	}
	ERR_clear_error();
	return CL_NOTFOUND;
}

int
tlsio_ctx_new_client(const uint8_t *ca_pem, size_t len,
    struct tlsio_ctx **ctxp, const char **whyp)
{
	struct tlsio_ctx *ctx;
	X509_STORE *store;
	int r;

	*ctxp = NULL;
	if ((r = tlsio_ctx_new(TLS_client_method(), &ctx)) != 0)
		return tlsio_set_why(r, "cannot make a TLS context", whyp);
	/* There is no way to turn this off. */
	SSL_CTX_set_verify(ctx->ssl_ctx, SSL_VERIFY_PEER, NULL);
	store = SSL_CTX_get_cert_store(ctx->ssl_ctx);
	r = tlsio_load_system_roots(store);
	if (r != 0 && ca_pem == NULL) {
		r = tlsio_set_why(r, "this system has no root certificates",
		    whyp);
		goto fail;
	}
	if (ca_pem != NULL &&
	    (r = tlsio_load_roots(store, ca_pem, len)) != 0) {
		r = tlsio_set_why(r, r == CL_FORMAT ?
		    "there is no certificate in the CA file" :
		    "a root certificate cannot be used", whyp);
		goto fail;
	}
	*ctxp = ctx;
	return CL_OK;
 fail:
	tlsio_ctx_free(ctx);
	return r;
}
