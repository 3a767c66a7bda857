/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Base64 of wire fields, ids and bundles.  The decoders meet bytes from
 * outside in unprivileged processes (frames) and from files an
 * administrator was given (bundles).
 */
#include "b64.h"

#include <string.h>

#include "err.h"

static const char b64_std[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char b64_url[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static size_t
b64_put(const uint8_t *p, size_t len, char *dst, const char *alphabet,
    int padded)
{
	char *d = dst;
	uint32_t v;
	size_t n, i;

	while (len > 0) {
		n = len > 3 ? 3 : len;
		v = (uint32_t)p[0] << 16;
		if (n > 1)
			v |= (uint32_t)p[1] << 8;
		if (n > 2)
			v |= p[2];
		for (i = 0; i < n + 1; i++)
			*d++ = alphabet[v >> (18 - 6 * i) & 63];
		for (; padded && i < 4; i++)
			*d++ = '=';
		p += n;
		len -= n;
	}
	*d = '\0';
	return (size_t)(d - dst);
}

size_t
b64_encode(const void *src, size_t len, char *dst)
{
	return b64_put(src, len, dst, b64_std, 1);
}

size_t
b64url_encode(const void *src, size_t len, char *dst)
{
	return b64_put(src, len, dst, b64_url, 0);
}

/* The value of one character, or -1; c62 and c63 are the last two. */
static int
b64_get_value(char c, char c62, char c63)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == c62)
		return 62;
	return c == c63 ? 63 : -1;
}

struct b64_state {
	uint8_t *dst;
	size_t max, len;
	uint32_t bits;		/* collected, not yet written */
	unsigned int nchars;	/* of the current group of four */
};

/* Write the n bytes of a group. */
static int
b64_put_group(struct b64_state *s, size_t n)
{
	size_t i;

	if (n > s->max - s->len)
		return CL_TOOBIG;
	for (i = 0; i < n; i++)
		s->dst[s->len++] = (uint8_t)(s->bits >> (16 - 8 * i));
	s->bits = 0;
	s->nchars = 0;
	return 0;
}

static int
b64_put_value(struct b64_state *s, int v)
{
	s->bits |= (uint32_t)v << (18 - 6 * s->nchars);
	if (++s->nchars < 4)
		return 0;
	return b64_put_group(s, 3);
}

int
b64_decode(const char *src, size_t len, uint8_t *dst, size_t dstmax,
    size_t *lenp)
{
	struct b64_state s = { .dst = dst, .max = dstmax };
	unsigned int npad = 0, want = 0;
	size_t i;
	int r, v;

	*lenp = 0;
	for (i = 0; i < len; i++) {
		if (src[i] == '\r' || src[i] == '\n')
			continue;
		if (src[i] == '=') {
			if (npad == 0) {
				if (s.nchars < 2)
					return CL_FORMAT;
				want = 4 - s.nchars;
			}
			if (++npad > want)
				return CL_FORMAT;
			continue;
		}
		v = b64_get_value(src[i], '+', '/');
		if (v < 0 || npad > 0)
			return CL_FORMAT;
		if ((r = b64_put_value(&s, v)) != 0)
			return r;
	}
	if (npad != want || (s.nchars != 0 && npad == 0))
		return CL_FORMAT;
	if (npad > 0 && (r = b64_put_group(&s, 3 - npad)) != 0)
		return r;
	*lenp = s.len;
	return 0;
}

int
b64url_decode(const char *src, size_t len, uint8_t *dst, size_t dstmax,
    size_t *lenp)
{
	struct b64_state s = { .dst = dst, .max = dstmax };
	size_t i;
	int r, v;

	*lenp = 0;
	for (i = 0; i < len; i++) {
		if ((v = b64_get_value(src[i], '-', '_')) < 0)
			return CL_FORMAT;
		if ((r = b64_put_value(&s, v)) != 0)
			return r;
	}
	if (s.nchars == 1)
		return CL_FORMAT;
	if (s.nchars > 0 && (r = b64_put_group(&s, s.nchars - 1)) != 0)
		return r;
	*lenp = s.len;
	return 0;
}
