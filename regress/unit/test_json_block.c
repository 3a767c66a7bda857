/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * net/json_block.h as machines without SSE2 compile it; test_json has what
 * this machine uses.
 */
#undef __SSE2__
#include "../../net/json_block.h"

#include "unit.h"

static const unsigned char fills[] = { 'a', 0x20, 0x21, 0x23, 0x5b, 0x5d, 0x7f,
	0x80, 0xdc, 0xa2, 0xff };

static void
check_block(const unsigned char *p)
{
	unsigned int high = 0, want_high = 0, n;

	for (n = 0; n < JX_BLOCK && p[n] >= 0x20 && p[n] != '"' &&
	    p[n] != '\\'; n++)
		want_high |= p[n] >= 0x80;
	ASSERT_INT_EQ(jx_count_plain(p, &high), n);
	ASSERT_INT_EQ(high != 0, want_high != 0);
	for (n = 0; n < JX_BLOCK && p[n] != '\\'; n++)
		continue;
	ASSERT_INT_EQ(jx_count_literal(p), n);
}

static void
test_pairs(void)
{
	unsigned char block[JX_BLOCK];
	unsigned int c, i, k, f;

	TEST_START("each byte at each place, before and behind each other");
	for (f = 0; f < sizeof(fills); f++) {
		for (c = 0; c < 256 * JX_BLOCK; c++) {
			i = c % JX_BLOCK;
			memset(block, fills[f], sizeof(block));
			block[i] = (unsigned char)(c / JX_BLOCK);
			check_block(block);
			/* What borrows from its neighbour. */
			for (k = i + 1; k < JX_BLOCK; k++) {
				block[k] = "\"\\\x1f\x80"[k % 4];
				check_block(block);
			}
		}
	}
}

UNIT_MAIN(test_pairs)
