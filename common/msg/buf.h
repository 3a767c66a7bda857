/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * A bounded byte buffer with typed fields, the body of every message
 * between our processes.  Integers are big-endian and of fixed width, a
 * string is u32 length + bytes without NUL inside, a blob the same with
 * any bytes.
 *
 * Writing: buf_init(&b, max), buf_put_*; the first failure sticks, all
 * later puts are no-ops, and buf_error() tells (CL_TOOBIG, CL_NOMEM,
 * CL_FORMAT for a string with a NUL inside).
 * Reading: buf_init_read(&b, p, len) borrows; buf_get_* fail with
 * CL_INCOMPLETE past the end (sticky too); buf_end() is CL_TRAILING unless
 * everything was consumed, and the sticky error otherwise: a decoder may
 * read all its fields and check buf_end() alone.
 */
#ifndef CLOOP_BUF_H
#define CLOOP_BUF_H

#include <stddef.h>
#include <stdint.h>

struct buf {
	uint8_t *data;
	size_t len;		/* valid bytes */
	size_t off;		/* read position */
	size_t cap;		/* allocated; 0 when borrowed */
	size_t max;
	int error;		/* sticky CL_*; 0 */
};

void buf_init(struct buf *b, size_t max);
void buf_init_read(struct buf *b, const void *p, size_t len);
/* Free owned memory (wiped: a message may have carried a secret). */
void buf_clear(struct buf *b);
/* Forget content and error, keep the memory (wiped). */
void buf_reset(struct buf *b);

int buf_error(const struct buf *b);
size_t buf_left(const struct buf *b);	/* unread bytes */

void buf_put_u8(struct buf *b, uint8_t v);
void buf_put_u16(struct buf *b, uint16_t v);
void buf_put_u32(struct buf *b, uint32_t v);
void buf_put_u64(struct buf *b, uint64_t v);
void buf_put_i64(struct buf *b, int64_t v);
/* NULL is written as the empty string. */
void buf_put_str(struct buf *b, const char *s);
void buf_put_blob(struct buf *b, const void *p, size_t len);
/* Bytes without a length in front. */
void buf_put_raw(struct buf *b, const void *p, size_t len);

uint8_t buf_get_u8(struct buf *b);
uint16_t buf_get_u16(struct buf *b);
uint32_t buf_get_u32(struct buf *b);
uint64_t buf_get_u64(struct buf *b);
int64_t buf_get_i64(struct buf *b);
/* As u8, but anything except 0 and 1 is CL_FORMAT. */
int buf_get_bool(struct buf *b);
/*
 * A string of at most max bytes into dst[max + 1]; longer is CL_TOOBIG, a
 * NUL inside CL_FORMAT.  dst is "" on failure.
 */
void buf_get_str(struct buf *b, char *dst, size_t max);
/* The same, allocated and owned by the caller; NULL on failure. */
char *buf_get_strdup(struct buf *b, size_t max);
/* Borrow the bytes of a blob of at most max bytes; NULL on failure. */
const uint8_t *buf_get_blob(struct buf *b, size_t max, size_t *lenp);

int buf_end(struct buf *b);

#endif
