/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * net/codec/json_block.h as machines without SSE2 compile it; test_json has
 * what this machine uses.
 */
#undef __SSE2__
#include "net/codec/json_block.h"

#include "regress/unit/unit.h"

static const unsigned char fills[] = { 'a', 0x20, 0x21, 0x23, 0x5b, 0x5d, 0x7f,
	0x80, 0xdc, 0xa2, 0xff };

static void
check_block(const unsigned char *p)
{
	unsigned int special = 0, slash = 0, high = 0, got_high, i;

	for (i = 0; i < JX_BLOCK; i++) {
		special |= (unsigned int)(p[i] < 0x20 || p[i] == '"' ||
		    p[i] == '\\') << i;
		slash |= (unsigned int)(p[i] == '\\') << i;
		high |= (unsigned int)(p[i] >= 0x80) << i;
	}
	ASSERT_INT_EQ(jx_mark_special(p, &got_high), special);
	ASSERT_INT_EQ(got_high, high);
	ASSERT_INT_EQ(jx_mark_slash(p), slash);
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
