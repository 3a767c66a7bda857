/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * UTF-8: checking, and the streaming normaliser of workload output.
 */
#ifndef CLOOP_UTF8_H
#define CLOOP_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* 1 when all of it is valid UTF-8 (no surrogates, no overlongs). */
int utf8_is_valid(const void *p, size_t len);
/* Largest n <= len such that p[0..n) does not end inside a code point. */
size_t utf8_cut(const void *p, size_t len);

/*
 * Streaming normaliser: every maximal invalid subpart becomes U+FFFD, an
 * incomplete tail of at most 3 bytes is carried to the next call.  Output of
 * a call is at most 3 * (len + 3) bytes.
 */
struct utf8_norm {
	uint8_t tail[4];
	size_t tail_len;
};

void utf8_norm_init(struct utf8_norm *n);
/* Consumes all of src; dst must hold 3 * (len + 3).  Returns bytes out. */
size_t utf8_norm_put(struct utf8_norm *n, const void *src, size_t len,
    uint8_t *dst);
/* End of stream: the carried tail becomes U+FFFD (dst holds 9). */
size_t utf8_norm_end(struct utf8_norm *n, uint8_t *dst);

#endif
