/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The typed, bounded buffer of every message between our processes.  The
 * reading half meets bytes of less trusted processes: each length is
 * compared with what is left (never added to a pointer) before it is used,
 * and the first failure sticks.
 */
#include "buf.h"

#include <bsd/stdlib.h>
#include <bsd/string.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"

#define BUF_MIN_CAP 64

void
buf_init(struct buf *b, size_t max)
{
	memset(b, 0, sizeof(*b));
	b->max = max;
}

void
buf_init_read(struct buf *b, const void *p, size_t len)
{
	memset(b, 0, sizeof(*b));
	/* cap 0 marks the memory as borrowed: nothing writes or frees it. */
	b->data = (uint8_t *)(uintptr_t)p;
	b->len = len;
}

void
buf_clear(struct buf *b)
{
	if (b->cap > 0)
		freezero(b->data, b->cap);
	b->data = NULL;
	b->len = b->off = b->cap = 0;
	b->error = 0;
}

void
buf_reset(struct buf *b)
{
	if (b->cap > 0)
		explicit_bzero(b->data, b->cap);
	else
		b->data = NULL;
	b->len = b->off = 0;
	b->error = 0;
}

int
buf_error(const struct buf *b)
{
	return b->error;
}

size_t
buf_left(const struct buf *b)
{
	return b->len - b->off;
}

/* Room for len more bytes, or NULL with the error set. */
static uint8_t *
buf_put_room(struct buf *b, size_t len)
{
	uint8_t *p;
	size_t cap;

	if (b->error != 0)
		return NULL;
	if (b->data != NULL && b->cap == 0) {
		b->error = CL_INTERNAL;		/* borrowed for reading */
		return NULL;
	}
	if (b->len > b->max || len > b->max - b->len) {
		b->error = CL_TOOBIG;
		return NULL;
	}
	if (len > b->cap - b->len) {
		cap = b->cap < BUF_MIN_CAP ? BUF_MIN_CAP : b->cap;
		while (cap - b->len < len)
			cap = cap > b->max / 2 ? b->max : cap * 2;
		if (cap < b->len + len)
			cap = b->len + len;
		p = recallocarray(b->data, b->cap, cap, 1);
		if (p == NULL) {
			b->error = CL_NOMEM;
			return NULL;
		}
		b->data = p;
		b->cap = cap;
	}
	p = b->data + b->len;
	b->len += len;
	return p;
}

/* An integer of n bytes, big-endian. */
static void
buf_put_int(struct buf *b, uint64_t v, size_t n)
{
	uint8_t *p;

	if ((p = buf_put_room(b, n)) == NULL)
		return;
	while (n > 0) {
		p[--n] = (uint8_t)v;
		v >>= 8;
	}
}

void
buf_put_u8(struct buf *b, uint8_t v)
{
	buf_put_int(b, v, 1);
}

void
buf_put_u16(struct buf *b, uint16_t v)
{
	buf_put_int(b, v, 2);
}

void
buf_put_u32(struct buf *b, uint32_t v)
{
	buf_put_int(b, v, 4);
}

void
buf_put_u64(struct buf *b, uint64_t v)
{
	buf_put_int(b, v, 8);
}

void
buf_put_i64(struct buf *b, int64_t v)
{
	buf_put_int(b, (uint64_t)v, 8);
}

void
buf_put_raw(struct buf *b, const void *p, size_t len)
{
	uint8_t *q;

	if (len == 0 || (q = buf_put_room(b, len)) == NULL)
		return;
	memcpy(q, p, len);
}

void
buf_put_blob(struct buf *b, const void *p, size_t len)
{
	if (len > UINT32_MAX) {
		if (b->error == 0)
			b->error = CL_TOOBIG;
		return;
	}
	buf_put_u32(b, (uint32_t)len);
	buf_put_raw(b, p, len);
}

void
buf_put_str(struct buf *b, const char *s)
{
	buf_put_blob(b, s, s == NULL ? 0 : strlen(s));
}

/* The next len bytes, or NULL with the error set. */
static const uint8_t *
buf_get_room(struct buf *b, size_t len)
{
	static const uint8_t nothing[1];
	const uint8_t *p;

	if (b->error != 0)
		return NULL;
	if (len > b->len - b->off) {
		b->error = CL_INCOMPLETE;
		return NULL;
	}
	if (len == 0)
		return nothing;
	p = b->data + b->off;
	b->off += len;
	return p;
}

static uint64_t
buf_get_int(struct buf *b, size_t n)
{
	const uint8_t *p;
	uint64_t v = 0;

	if ((p = buf_get_room(b, n)) == NULL)
		return 0;
	while (n-- > 0)
		v = v << 8 | *p++;
	return v;
}

uint8_t
buf_get_u8(struct buf *b)
{
	return (uint8_t)buf_get_int(b, 1);
}

uint16_t
buf_get_u16(struct buf *b)
{
	return (uint16_t)buf_get_int(b, 2);
}

uint32_t
buf_get_u32(struct buf *b)
{
	return (uint32_t)buf_get_int(b, 4);
}

uint64_t
buf_get_u64(struct buf *b)
{
	return buf_get_int(b, 8);
}

int64_t
buf_get_i64(struct buf *b)
{
	return (int64_t)buf_get_int(b, 8);
}

int
buf_get_bool(struct buf *b)
{
	uint8_t v = buf_get_u8(b);

	if (v > 1) {
		if (b->error == 0)
			b->error = CL_FORMAT;
		return 0;
	}
	return v;
}

const uint8_t *
buf_get_blob(struct buf *b, size_t max, size_t *lenp)
{
	const uint8_t *p;
	size_t len;

	*lenp = 0;
	len = buf_get_u32(b);
	if (b->error == 0 && len > max)
		b->error = CL_TOOBIG;
	if ((p = buf_get_room(b, len)) == NULL)
		return NULL;
	*lenp = len;
	return p;
}

/* A blob without a NUL inside. */
static const uint8_t *
buf_get_text(struct buf *b, size_t max, size_t *lenp)
{
	const uint8_t *p;

	if ((p = buf_get_blob(b, max, lenp)) == NULL)
		return NULL;
	if (memchr(p, '\0', *lenp) != NULL) {
		b->error = CL_FORMAT;
		*lenp = 0;
		return NULL;
	}
	return p;
}

void
buf_get_str(struct buf *b, char *dst, size_t max)
{
	const uint8_t *p;
	size_t len;

	dst[0] = '\0';
	if ((p = buf_get_text(b, max, &len)) == NULL)
		return;
	memcpy(dst, p, len);
	dst[len] = '\0';
}

char *
buf_get_strdup(struct buf *b, size_t max)
{
	const uint8_t *p;
	char *s;
	size_t len;

	if ((p = buf_get_text(b, max, &len)) == NULL)
		return NULL;
	if ((s = calloc(1, len + 1)) == NULL) {
		b->error = CL_NOMEM;
		return NULL;
	}
	memcpy(s, p, len);
	return s;
}

int
buf_end(struct buf *b)
{
	if (b->error != 0)
		return b->error;
	return b->off == b->len ? 0 : CL_TRAILING;
}
