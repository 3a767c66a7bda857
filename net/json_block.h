/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The inside of a JSON string, sixteen bytes at a time: most of it is long
 * lines of a log.  Each function reads exactly JX_BLOCK bytes at p.
 */
#ifndef CLOOP_JSON_BLOCK_H
#define CLOOP_JSON_BLOCK_H

#include <stdint.h>

#define JX_BLOCK 16

/* How many bytes at p come before the first quote, backslash or control
 * character; *highp: not 0 when one of these is 0x80 or more. */
static unsigned int jx_count_plain(const void *p, unsigned int *highp);
/* How many come before the first backslash. */
static unsigned int jx_count_literal(const void *p);

#ifdef __SSE2__
#include <emmintrin.h>

/* Bit i stands for byte i. */
static inline unsigned int
jx_count_plain(const void *p, unsigned int *highp)
{
	__m128i v = _mm_loadu_si128(p);
	__m128i quote = _mm_cmpeq_epi8(v, _mm_set1_epi8('"'));
	__m128i slash = _mm_cmpeq_epi8(v, _mm_set1_epi8('\\'));
	__m128i control = _mm_cmpeq_epi8(v,
	    _mm_min_epu8(v, _mm_set1_epi8(0x1f)));
	unsigned int special = (unsigned int)_mm_movemask_epi8(
	    _mm_or_si128(_mm_or_si128(quote, slash), control));
	unsigned int n = (unsigned int)__builtin_ctz(special | 1U << JX_BLOCK);

	*highp |= (unsigned int)_mm_movemask_epi8(v) & ((1U << n) - 1);
	return n;
}

static inline unsigned int
jx_count_literal(const void *p)
{
	__m128i v = _mm_loadu_si128(p);
	unsigned int slash = (unsigned int)_mm_movemask_epi8(
	    _mm_cmpeq_epi8(v, _mm_set1_epi8('\\')));

	return (unsigned int)__builtin_ctz(slash | 1U << JX_BLOCK);
}

#else
#include <endian.h>
#include <string.h>

#define JX_BYTES(c) (UINT64_C(0x0101010101010101) * (c))
#define JX_HIGH JX_BYTES(0x80)

static inline uint64_t
jx_load8(const void *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return le64toh(v);
}

/*
 * The first set bit is in the first byte looked for; bits above it mean
 * nothing.  A byte that is too small borrows, from those above it, and shows
 * its highest bit; one of 0x80 and more had it before and is taken out.
 */
static inline uint64_t
jx_mark_slash(uint64_t v)
{
	uint64_t slash = v ^ JX_BYTES('\\');

	return (slash - JX_BYTES(1)) & ~slash & JX_HIGH;
}

static inline uint64_t
jx_mark_special(uint64_t v)
{
	uint64_t quote = v ^ JX_BYTES('"');

	return (((v - JX_BYTES(0x20)) & ~v & JX_HIGH) |
	    ((quote - JX_BYTES(1)) & ~quote & JX_HIGH) | jx_mark_slash(v));
}

static inline unsigned int
jx_count_plain(const void *p, unsigned int *highp)
{
	uint64_t v, special;
	unsigned int i;

	for (i = 0; i < JX_BLOCK; i += 8) {
		v = jx_load8((const char *)p + i);
		if ((special = jx_mark_special(v)) != 0)
			v &= (special & -special) - 1;	/* what is before */
		*highp |= (v & JX_HIGH) != 0;
		if (special != 0)
			return i + (unsigned int)__builtin_ctzll(special) / 8;
	}
	return JX_BLOCK;
}

static inline unsigned int
jx_count_literal(const void *p)
{
	uint64_t slash;
	unsigned int i;

	for (i = 0; i < JX_BLOCK; i += 8)
		if ((slash = jx_mark_slash(jx_load8((const char *)p + i))) != 0)
			return i + (unsigned int)__builtin_ctzll(slash) / 8;
	return JX_BLOCK;
}
#endif

#endif
