/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * A TLS private key that is somewhere else: the object has the public half
 * of the certificate, and each signature is asked of cloopd-key over an
 * imsg channel.  Runs in cloopd-net.  The ask blocks, since libssl asks
 * synchronously, at most KEY_SIGN_TIMEOUT_MS.
 *
 * Made with EC_KEY_METHOD: deprecated, but served by OpenSSL 3.0 (Debian
 * 12) and a tenth of what a provider (key management, signature, decoder
 * dispatch tables) needs for the same one operation.  ECDSA P-256 only.
 */
#ifndef CLOOP_TLSKEY_H
#define CLOOP_TLSKEY_H

#include <stddef.h>
#include <stdint.h>

struct evp_pkey_st;

/* TLS SignatureScheme ecdsa_secp256r1_sha256: the only one asked for. */
#define TLSKEY_SCHEME 0x0403

struct tlskey;

/*
 * A key for the leaf of this PEM chain; fd (taken, may be -1 for now) is
 * the channel of NET_KEY.  CL_FORMAT: no certificate; CL_UNSUPPORTED: not
 * ECDSA P-256 (RSA keys are refused); *whyp (may be NULL) gets a constant
 * text.
 */
int tlskey_new(const uint8_t *chain_pem, size_t len, int fd,
    struct tlskey **kp, const char **whyp);
/* Drop our reference; contexts that use the key keep it alive. */
void tlskey_free(struct tlskey *k);

/* Replace the channel (cloopd-key was respawned).  Takes fd. */
int tlskey_set_channel(struct tlskey *k, int fd);

/* Borrowed EVP_PKEY for tlsio_ctx_new_server(). */
struct evp_pkey_st *tlskey_get_pkey(struct tlskey *k);

/*
 * Ask for one signature (what the EVP_PKEY does inside): DER into
 * sig[*lenp].  CL_TIMEOUT, CL_EOF (cloopd-key is gone), CL_DENIED (it
 * refused), CL_FORMAT (it broke the rules: channel closed).
 */
int tlskey_sign(struct tlskey *k, const uint8_t digest[32], uint8_t *sig,
    size_t *lenp);

#endif
