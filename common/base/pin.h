/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * SPKI pins: "sha256:" + base64 of SHA-256 over the DER of the leaf
 * certificate's SubjectPublicKeyInfo.  Text only; whoever has a certificate
 * computes the digest (net/codec/tlsio, cloop-keygen).  Used by root programs
 * too, so: no OpenSSL, no allocation.
 */
#ifndef CLOOP_PIN_H
#define CLOOP_PIN_H

#include <stddef.h>
#include <stdint.h>

#define PIN_DIGEST_LEN 32
#define PIN_TEXT_LEN 51		/* "sha256:" and 44 characters */

struct pin {
	uint8_t digest[PIN_DIGEST_LEN];
};

/* The output form: prefix, standard alphabet, padded, NUL-terminated. */
void pin_format(const struct pin *p, char dst[PIN_TEXT_LEN + 1]);

/*
 * One pin without surrounding white space: prefix optional and in any case,
 * standard or URL-safe base64, padded or not, exactly 32 bytes.  CL_FORMAT;
 * *whyp (may be NULL) gets a constant text.
 */
int pin_parse(const char *text, size_t len, struct pin *p, const char **whyp);

/*
 * A list separated by commas and/or white space into pins[max].  Empty text
 * (or NULL) is no pinning: CL_OK with *np = 0.  CL_FORMAT for a bad pin and
 * for text that is not empty and yields none; CL_LIMIT above max.
 */
int pin_parse_list(const char *text, struct pin *pins, size_t max,
    size_t *np, const char **whyp);

/* 1 when the digest is one of pins[n]. */
int pin_has_digest(const struct pin *pins, size_t n,
    const uint8_t digest[PIN_DIGEST_LEN]);

#endif
