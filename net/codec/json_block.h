/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The inside of a JSON string, sixteen bytes at a time: most of it is long
 * lines of a log.  Each function reads exactly JX_BLOCK bytes at p; bit i of
 * what it returns stands for byte i.
 */
#ifndef CLOOP_JSON_BLOCK_H
#define CLOOP_JSON_BLOCK_H

#include <stdint.h>

#define JX_BLOCK 16

/* Quotes, backslashes and control characters; in *highp those above 0x7f. */
static unsigned int jx_mark_special(const void *p, unsigned int *highp);
/* Backslashes. */
static unsigned int jx_mark_slash(const void *p);

#ifdef __SSE2__
#include <emmintrin.h>

static inline unsigned int
jx_mark_special(const void *p, unsigned int *highp)
{
	__m128i v = _mm_loadu_si128(p);
	__m128i quote = _mm_cmpeq_epi8(v, _mm_set1_epi8('"'));
	__m128i slash = _mm_cmpeq_epi8(v, _mm_set1_epi8('\\'));
	__m128i control = _mm_cmpeq_epi8(v,
	    _mm_min_epu8(v, _mm_set1_epi8(0x1f)));

	*highp = (unsigned int)_mm_movemask_epi8(v);
	return (unsigned int)_mm_movemask_epi8(
	    _mm_or_si128(_mm_or_si128(quote, slash), control));
}

static inline unsigned int
jx_mark_slash(const void *p)
{
	__m128i v = _mm_loadu_si128(p);

	return (unsigned int)_mm_movemask_epi8(
	    _mm_cmpeq_epi8(v, _mm_set1_epi8('\\')));
}

#else
#include <endian.h>
#include <string.h>

#define JX_BYTES(c) (UINT64_C(0x0101010101010101) * (c))
#define JX_LOW JX_BYTES(0x7f)

static inline uint64_t
jx_load8(const void *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return le64toh(v);
}

/* The highest bit of each byte that is not zero: no sum leaves its byte. */
static inline uint64_t
jx_mark_nonzero(uint64_t v)
{
	return ((v & JX_LOW) + JX_LOW) | v;
}

/* The highest bits of the bytes of v, as the eight lowest. */
static inline unsigned int
jx_gather(uint64_t v)
{
	v = v >> 7 & JX_BYTES(1);
	return (unsigned int)(v * UINT64_C(0x0102040810204080) >> 56);
}

static inline unsigned int
jx_mark_slash8(const void *p)
{
	return ~jx_gather(jx_mark_nonzero(jx_load8(p) ^ JX_BYTES('\\'))) & 0xff;
}

static inline unsigned int
jx_mark_special8(const void *p)
{
	uint64_t v = jx_load8(p);

	return ~jx_gather(jx_mark_nonzero(v ^ JX_BYTES('"')) &
	    jx_mark_nonzero(v ^ JX_BYTES('\\')) &
	    jx_mark_nonzero(v & JX_BYTES(0xe0))) & 0xff;
}

static inline unsigned int
jx_mark_special(const void *p, unsigned int *highp)
{
	const char *half = (const char *)p + 8;

	*highp = jx_gather(jx_load8(p)) | jx_gather(jx_load8(half)) << 8;
	return jx_mark_special8(p) | jx_mark_special8(half) << 8;
}

static inline unsigned int
jx_mark_slash(const void *p)
{
	return jx_mark_slash8(p) | jx_mark_slash8((const char *)p + 8) << 8;
}
#endif

#endif
