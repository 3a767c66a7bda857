/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * What cloopd-fence may say to nft: a table of two sets with timeouts whose
 * sources cannot open connections to the hub's ports, additions to the
 * sets, and the table's end.  Text is made of numbers and addresses only;
 * nothing that came from outside as text gets here.  Non-logging.
 */
#ifndef CLOOP_FENCE_NFT_H
#define CLOOP_FENCE_NFT_H

#include <stddef.h>
#include <stdint.h>

/* IPv4 as ::ffff:a.b.c.d; IPv6: a /64, the rest zero.  ms: how long. */
struct fence_source {
	uint8_t addr[16];
	uint32_t ms;
};

/* Path of nft, or NULL: not installed. */
const char *fence_nft_find_program(void);

/* Each: the length of the text in dst, or CL_TOOBIG, CL_FORMAT (no port, a
 * source that is no source or has no time). */
int fence_nft_format_table(const int64_t *ports, size_t nports, char *dst,
    size_t len);
int fence_nft_format_add(const struct fence_source *s, size_t n, char *dst,
    size_t len);
int fence_nft_format_end(char *dst, size_t len);

#endif
