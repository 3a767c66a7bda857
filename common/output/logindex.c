/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The index of a handle's kept output.  Runs in cloopd-net (appends), in
 * the monitor (loads and repairs at start-up) and in cloopctl (reads).
 * The files are our own, but a crash, a full disk or an old build may have
 * left anything in them: every record is checked, and what follows the last
 * good one is not believed.
 */
#include "logindex.h"

#include <sys/stat.h>
#include <sys/types.h>

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"

#define LOGINDEX_BLOCK 128	/* records read at once */
#define LOGINDEX_SCAN 1024	/* and by a scan */

static void
logindex_put(uint8_t *dst, uint64_t v, size_t len)
{
	while (len-- > 0) {
		dst[len] = v & 0xff;
		v >>= 8;
	}
}

static uint64_t
logindex_get(const uint8_t *src, size_t len)
{
	uint64_t v = 0;
	size_t i;

	for (i = 0; i < len; i++)
		v = v << 8 | src[i];
	return v;
}

void
logindex_format(const struct logindex_record *r,
    uint8_t dst[LOGINDEX_RECORD_LEN])
{
	memset(dst, 0, LOGINDEX_RECORD_LEN);
	logindex_put(dst, r->wire_off, 8);
	logindex_put(dst + 8, r->file_off, 8);
	logindex_put(dst + 16, (uint64_t)r->time, 8);
	logindex_put(dst + 24, r->wire_len & 0xffffffff, 4);
	logindex_put(dst + 28, r->file_len, 4);
	dst[32] = r->kind;
	dst[33] = r->stream;
	logindex_put(dst + 34, r->wire_len >> 32, 4);
}

int
logindex_parse(const uint8_t src[LOGINDEX_RECORD_LEN],
    struct logindex_record *r)
{
	memset(r, 0, sizeof(*r));
	if (src[32] < LOGINDEX_DATA || src[32] > LOGINDEX_CUT ||
	    src[33] > LOGINDEX_STDERR || src[38] != 0 || src[39] != 0)
		return CL_FORMAT;
	r->wire_off = logindex_get(src, 8);
	r->file_off = logindex_get(src + 8, 8);
	r->time = (int64_t)logindex_get(src + 16, 8);
	r->wire_len = logindex_get(src + 34, 4) << 32 |
	    logindex_get(src + 24, 4);
	r->file_len = (uint32_t)logindex_get(src + 28, 4);
	r->kind = src[32];
	r->stream = src[33];
	/* Both ends must stay what an off_t and an int64 can say. */
	if (r->wire_off > INT64_MAX || r->file_off > INT64_MAX ||
	    r->wire_len > INT64_MAX - r->wire_off ||
	    r->file_len > INT64_MAX - r->file_off)
		return CL_FORMAT;
	if (r->kind == LOGINDEX_GAP && r->file_len != 0)
		return CL_FORMAT;
	return CL_OK;
}

/*
 * Take one more record into the state.  CL_INCOMPLETE: it speaks of bytes
 * that the log does not have (the file system lost them): nothing from here
 * on counts.  CL_FORMAT: it does not follow.
 */
static int
logindex_add(struct logindex_state *st, const struct logindex_record *r,
    uint64_t log_size)
{
	if (r->kind == LOGINDEX_CUT && r->file_len != 0) {
		if (r->file_off + r->file_len > st->log_len ||
		    r->wire_off + r->wire_len > st->received)
			return CL_FORMAT;
		return CL_OK;
	}
	if (r->wire_off != st->received || r->file_off != st->log_len)
		return CL_FORMAT;
	if (r->file_off + r->file_len > log_size)
		return CL_INCOMPLETE;
	st->received += r->wire_len;
	st->log_len += r->file_len;
	if (r->kind == LOGINDEX_GAP)
		st->gapped = 1;
	return CL_OK;
}

static ssize_t
logindex_read(int fd, uint8_t *dst, size_t len, off_t off)
{
	size_t have = 0;
	ssize_t n;

	while (have < len) {
		n = pread(fd, dst + have, len - have, off + (off_t)have);
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			return -1;
		if (n == 0)
			break;
		have += (size_t)n;
	}
	return (ssize_t)have;
}

/* Walk the index; *goodp gets the number of records that count. */
static int
logindex_walk(int fd, uint64_t log_size, struct logindex_state *st,
    uint64_t *goodp)
{
	uint8_t block[LOGINDEX_BLOCK * LOGINDEX_RECORD_LEN];
	struct logindex_record r;
	ssize_t n, i;
	off_t off = 0;
	int ret;

	*goodp = 0;
	for (;;) {
		if ((n = logindex_read(fd, block, sizeof(block), off)) == -1)
			return CL_SYSTEM;
		for (i = 0; i + LOGINDEX_RECORD_LEN <= n;
		    i += LOGINDEX_RECORD_LEN) {
			if ((ret = logindex_parse(block + i, &r)) != CL_OK)
				return ret;
			ret = logindex_add(st, &r, log_size);
			if (ret == CL_INCOMPLETE)
				return CL_OK;
			if (ret != CL_OK)
				return ret;
			(*goodp)++;
		}
		if ((size_t)n < sizeof(block))
			return CL_OK;
		off += n;
	}
}

int
logindex_load(int log_fd, int index_fd, int repair, struct logindex_state *st)
{
	struct stat log_sb, index_sb;
	uint64_t good;
	int r;

	memset(st, 0, sizeof(*st));
	if (fstat(log_fd, &log_sb) == -1 || fstat(index_fd, &index_sb) == -1)
		return CL_SYSTEM;
	if ((r = logindex_walk(index_fd, (uint64_t)log_sb.st_size, st,
	    &good)) != CL_OK)
		return r;
	if (!repair)
		return CL_OK;
	/* The index first: a log that is too long is harmless, a record
	 * without its bytes is not. */
	if ((uint64_t)index_sb.st_size != good * LOGINDEX_RECORD_LEN &&
	    ftruncate(index_fd, (off_t)(good * LOGINDEX_RECORD_LEN)) == -1)
		return CL_SYSTEM;
	if ((uint64_t)log_sb.st_size != st->log_len &&
	    ftruncate(log_fd, (off_t)st->log_len) == -1)
		return CL_SYSTEM;
	return CL_OK;
}

int
logindex_scan_start(struct logindex_scan *s, int log_fd, int index_fd,
    uint64_t max)
{
	struct stat st;
	int i;

	memset(s, 0, sizeof(*s));
	s->fd[LOGINDEX_IN_INDEX] = index_fd;
	s->fd[LOGINDEX_IN_LOG] = log_fd;
	s->max = max;
	for (i = 0; i < 2; i++) {
		if (fstat(s->fd[i], &st) == -1)
			return CL_SYSTEM;
		s->len[i] = (uint64_t)st.st_size;
	}
	return CL_OK;
}

/* A record that makes no sense tells of no hole. */
static void
logindex_scan_holes(struct logindex_scan *s, const uint8_t *block, size_t len)
{
	struct logindex_record r;
	size_t i;

	for (i = 0; i + LOGINDEX_RECORD_LEN <= len; i += LOGINDEX_RECORD_LEN) {
		if (logindex_parse(block + i, &r) != CL_OK ||
		    r.kind != LOGINDEX_CUT || r.file_len == 0)
			continue;
		if (s->hole_end == 0)
			s->hole_start = r.file_off;
		if (r.file_off + r.file_len > s->hole_end)
			s->hole_end = r.file_off + r.file_len;
	}
}

/* Step over the hole and from the index to the log. */
static int
logindex_scan_seek(struct logindex_scan *s)
{
	uint64_t len = s->len[LOGINDEX_IN_LOG], hole = s->hole_end;

	if (s->at == LOGINDEX_IN_INDEX) {
		if (s->len[s->at] > s->max)
			return CL_TOOBIG;
		if (s->off < s->len[s->at])
			return CL_INCOMPLETE;
		s->at = LOGINDEX_IN_LOG;
		s->off = 0;
		hole = hole < len ? hole : len;
		if (hole > s->hole_start)
			len -= hole - s->hole_start;
		if (len > s->max - s->len[LOGINDEX_IN_INDEX])
			return CL_TOOBIG;
	}
	if (s->off >= s->hole_start && s->off < s->hole_end)
		s->off = s->hole_end;
	return s->off < s->len[s->at] ? CL_INCOMPLETE : CL_OK;
}

int
logindex_scan_run(struct logindex_scan *s, size_t budget,
    logindex_scan_fn *fn, void *arg)
{
	uint8_t block[LOGINDEX_SCAN * LOGINDEX_RECORD_LEN];
	uint64_t end;
	ssize_t n;
	int r;

	for (; (r = logindex_scan_seek(s)) == CL_INCOMPLETE && budget > 0;
	    budget -= (size_t)n < budget ? (size_t)n : budget) {
		end = s->len[s->at];
		if (s->at == LOGINDEX_IN_LOG && s->off < s->hole_start &&
		    s->hole_start < end)
			end = s->hole_start;
		if (end - s->off > sizeof(block))
			end = s->off + sizeof(block);
		n = logindex_read(s->fd[s->at], block, end - s->off,
		    (off_t)s->off);
		if (n <= 0)
			return n == 0 ? CL_FORMAT : CL_SYSTEM;
		if (s->at == LOGINDEX_IN_INDEX)
			logindex_scan_holes(s, block, (size_t)n);
		if ((r = fn(arg, s->at, block, (size_t)n)) != CL_OK)
			return r;
		s->off += (uint64_t)n;
	}
	return r;
}
