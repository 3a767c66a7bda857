/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * UTF-8 of workload output and of values from outside.  Pure; any bytes may
 * come.  The second byte carries all the special cases (overlongs,
 * surrogates, above U+10FFFF), so the range of it depends on the first: table
 * 3-7 of the Unicode standard.
 */
#include "utf8.h"

#include <string.h>

/* Bytes after the first, and the range of the second; -1: no first byte. */
static int
utf8_get_lead(uint8_t c, uint8_t *lop, uint8_t *hip)
{
	*lop = 0x80;
	*hip = 0xbf;
	if (c < 0x80)
		return 0;
	if (c < 0xc2 || c > 0xf4)
		return -1;
	if (c < 0xe0)
		return 1;
	if (c == 0xe0)
		*lop = 0xa0;
	else if (c == 0xed)
		*hip = 0x9f;
	else if (c == 0xf0)
		*lop = 0x90;
	else if (c == 0xf4)
		*hip = 0x8f;
	return c < 0xf0 ? 2 : 3;
}

/*
 * Look at the sequence at p, len > 0.  Returns 1 and its length in *np when
 * it is whole; 0 when it is good so far but ends early; -1 when it is
 * invalid, with the length of the maximal invalid subpart.
 */
static int
utf8_get_sequence(const uint8_t *p, size_t len, size_t *np)
{
	uint8_t lo, hi;
	size_t i;
	int more;

	*np = 1;
	if ((more = utf8_get_lead(p[0], &lo, &hi)) < 0)
		return -1;
	for (i = 1; i <= (size_t)more; i++) {
		if (i == len)
			return 0;
		if (p[i] < lo || p[i] > hi)
			return -1;
		lo = 0x80;
		hi = 0xbf;
		*np = i + 1;
	}
	return 1;
}

int
utf8_is_valid(const void *p, size_t len)
{
	const uint8_t *s = p;
	uint64_t v;
	size_t n;

	while (len > 0) {
		/* Eight at a time: most text has few others. */
		while (len >= sizeof(v)) {
			memcpy(&v, s, sizeof(v));
			if ((v & UINT64_C(0x8080808080808080)) != 0)
				break;
			s += sizeof(v);
			len -= sizeof(v);
		}
		if (len == 0)
			return 1;
		if (utf8_get_sequence(s, len, &n) != 1)
			return 0;
		s += n;
		len -= n;
	}
	return 1;
}

size_t
utf8_cut(const void *p, size_t len)
{
	const uint8_t *s = p;
	size_t back, n;

	for (back = 1; back <= 3 && back <= len; back++)
		if (utf8_get_sequence(s + len - back, back, &n) == 0)
			return len - back;
	return len;
}

void
utf8_norm_init(struct utf8_norm *n)
{
	memset(n, 0, sizeof(*n));
}

static size_t
utf8_put_replacement(uint8_t *dst)
{
	memcpy(dst, "\xef\xbf\xbd", 3);
	return 3;
}

/* Finish the carried tail with bytes of *srcp; returns bytes out. */
static size_t
utf8_norm_put_tail(struct utf8_norm *n, const uint8_t **srcp, size_t *lenp,
    uint8_t *dst)
{
	size_t used;

	while (n->tail_len > 0 && *lenp > 0) {
		n->tail[n->tail_len] = **srcp;
		switch (utf8_get_sequence(n->tail, n->tail_len + 1, &used)) {
		case -1:
			/* The new byte broke it and starts afresh. */
			n->tail_len = 0;
			return utf8_put_replacement(dst);
		case 1:
			memcpy(dst, n->tail, used);
			n->tail_len = 0;
			(*srcp)++;
			(*lenp)--;
			return used;
		default:
			n->tail_len++;
			(*srcp)++;
			(*lenp)--;
		}
	}
	return 0;
}

size_t
utf8_norm_put(struct utf8_norm *n, const void *src, size_t len, uint8_t *dst)
{
	const uint8_t *s = src;
	uint8_t *d = dst;
	size_t used;
	int r;

	d += utf8_norm_put_tail(n, &s, &len, d);
	while (len > 0) {
		r = utf8_get_sequence(s, len, &used);
		if (r == 0) {
			memcpy(n->tail, s, len);
			n->tail_len = len;
			break;
		}
		if (r == 1) {
			memcpy(d, s, used);
			d += used;
		} else
			d += utf8_put_replacement(d);
		s += used;
		len -= used;
	}
	return (size_t)(d - dst);
}

size_t
utf8_norm_end(struct utf8_norm *n, uint8_t *dst)
{
	if (n->tail_len == 0)
		return 0;
	n->tail_len = 0;
	/* One maximal subpart, hence one replacement. */
	return utf8_put_replacement(dst);
}
