/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * What tlsio.c and tlsio_ctx.c share.  Nobody else includes this.
 */
#ifndef CLOOP_TLSIO_INT_H
#define CLOOP_TLSIO_INT_H

#include <openssl/ssl.h>

struct tlsio_ctx {
	SSL_CTX *ssl_ctx;	/* counted: connections hold it themselves */
};

/* SHA-256 over the SubjectPublicKeyInfo of a certificate.  CL_CRYPTO. */
int tlsio_get_pin(const X509 *cert, struct pin *p);

#endif
