/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * TLS, or plaintext with the same calls, on a non-blocking socket, over
 * evbuffers.  No loop of its own: the caller polls for tlsio_get_wants() and
 * calls read and write again.  TLS 1.2+, no renegotiation, no compression,
 * no tickets, no session cache.  The process must ignore SIGPIPE: libssl
 * writes without MSG_NOSIGNAL.
 */
#ifndef CLOOP_TLSIO_H
#define CLOOP_TLSIO_H

#include <stddef.h>
#include <stdint.h>

struct evbuffer;
struct evp_pkey_st;		/* EVP_PKEY */
struct pin;

struct tlsio_ctx;		/* refcounted by its connections */
struct tlsio;

/*
 * Server: a PEM chain, leaf first, and its key (tlskey_get_pkey(); a
 * reference is taken).  CL_FORMAT: no certificate in the text; CL_CRYPTO:
 * key and leaf do not fit; *whyp (may be NULL) says it and borrows a static
 * buffer.
 */
int tlsio_ctx_new_server(const uint8_t *chain_pem, size_t len,
    struct evp_pkey_st *key, struct tlsio_ctx **ctxp, const char **whyp);
/*
 * Client: system roots, read from files now (call before confinement), plus
 * the roots in ca_pem (NULL: none).  CL_FORMAT: ca_pem has no certificate.
 * A missing system store is no error when ca_pem is given.
 */
int tlsio_ctx_new_client(const uint8_t *ca_pem, size_t len,
    struct tlsio_ctx **ctxp, const char **whyp);
void tlsio_ctx_free(struct tlsio_ctx *ctx);

/* SHA-256 of the leaf's SubjectPublicKeyInfo, leaf = first certificate. */
int tlsio_load_pin(const uint8_t *chain_pem, size_t len, struct pin *p);

/*
 * A connection on fd (taken, also on failure; must be non-blocking).  ctx
 * NULL: plaintext.  Client: host is verified and sent as SNI when it is a
 * name; pins[npins] are copied, and one of them must be the leaf's.
 */
int tlsio_new_server(struct tlsio_ctx *ctx, int fd, struct tlsio **tp);
int tlsio_new_client(struct tlsio_ctx *ctx, int fd, const char *host,
    const struct pin *pins, size_t npins, struct tlsio **tp);
/* Close the socket at once; NULL is legal. */
void tlsio_free(struct tlsio *t);

/*
 * All of the following: CL_INCOMPLETE means "poll for tlsio_get_wants()".
 * CL_EOF: the peer is gone; CL_SYSTEM: errno is valid; CL_CRYPTO: TLS
 * failed; CL_DENIED: verified, but no pin matches.  After anything but
 * CL_OK and CL_INCOMPLETE only tlsio_get_error and tlsio_free are useful.
 */
int tlsio_handshake(struct tlsio *t);	/* plaintext: CL_OK at once */

/*
 * Append at most max bytes to `in`.  CL_OK: some came (perhaps more is
 * there: tlsio_has_pending, or poll, which must be level-triggered);
 * handshakes first if need be.  An end without close_notify is CL_EOF too,
 * and tlsio_is_clean() is then 0.
 */
int tlsio_read(struct tlsio *t, struct evbuffer *in, size_t max);
/* 1: decrypted or undecrypted bytes wait inside, poll will not tell. */
int tlsio_has_pending(const struct tlsio *t);
/* Send and drain the front of `out`; CL_OK: it is empty.  Never remove
 * bytes from `out` yourself once it was given here. */
int tlsio_write(struct tlsio *t, struct evbuffer *out);
/* Send close_notify and end our direction.  CL_OK, CL_INCOMPLETE. */
int tlsio_close(struct tlsio *t);

#define TLSIO_READ 0x01
#define TLSIO_WRITE 0x02
/*
 * Which events to poll for, given whether the caller wants to read now and
 * has bytes to write.  On any event call read and write both.
 */
unsigned int tlsio_get_wants(const struct tlsio *t, int reading, int writing);

int tlsio_get_fd(const struct tlsio *t);
int tlsio_is_tls(const struct tlsio *t);
int tlsio_is_clean(const struct tlsio *t);
/* For logs: "TLSv1.3" and suite, or "plaintext" and "-".  Constant. */
const char *tlsio_get_version(const struct tlsio *t);
const char *tlsio_get_suite(const struct tlsio *t);
/* What went wrong, for people; never NULL; lives as long as t. */
const char *tlsio_get_error(const struct tlsio *t);

#endif
