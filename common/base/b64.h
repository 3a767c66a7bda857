/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Base64 (RFC 4648): the standard alphabet with padding, and base64url
 * without.
 */
#ifndef CLOOP_B64_H
#define CLOOP_B64_H

#include <stddef.h>
#include <stdint.h>

/* Encoded length with padding, without the NUL. */
#define B64_LEN(n) ((((n) + 2) / 3) * 4)

/* dst holds B64_LEN(len) + 1.  Returns the length written. */
size_t b64_encode(const void *src, size_t len, char *dst);
size_t b64url_encode(const void *src, size_t len, char *dst);

/*
 * Strict decoding; dst holds at most dstmax bytes.  b64_decode: padding
 * required, CR and LF ignored anywhere, stray bits in the last character
 * ignored.  b64url_decode: no padding, no white space.  CL_FORMAT, CL_TOOBIG.
 */
int b64_decode(const char *src, size_t len, uint8_t *dst, size_t dstmax,
    size_t *lenp);
int b64url_decode(const char *src, size_t len, uint8_t *dst, size_t dstmax,
    size_t *lenp);

#endif
