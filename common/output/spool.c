/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The output spool: written in cloop-shim, read in agentd-fetch, positions
 * set by the agentd monitor.  All three map the same header page and trust
 * each other's numbers only as far as a wrong one shows wrong output: no
 * field is ever used as a memory index, file offsets past the end read as
 * "nothing there".
 */
#include "spool.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "common/base/crash.h"
#include "common/base/err.h"

/*
 * Holes are punched in whole units of this size: one system call per 64 KiB
 * of dropped output instead of one per append.  Up to this much more than
 * the window stays allocated.
 */
#define SPOOL_PUNCH_LEN 65536

uint64_t
spool_load_u64(const uint64_t *field)
{
	return __atomic_load_n(field, __ATOMIC_SEQ_CST);
}

void
spool_save_u64(uint64_t *field, uint64_t v)
{
	__atomic_store_n(field, v, __ATOMIC_SEQ_CST);
}

void
spool_set_acked(struct spool *s, uint64_t raw, uint64_t norm)
{
	uint64_t next = 1 - (spool_load_u64(&s->head->mark_at) & 1);

	spool_save_u64(&s->head->marks[next].raw, raw);
	spool_save_u64(&s->head->marks[next].norm, norm);
	CRASH_POINT("ack.half");
	spool_save_u64(&s->head->mark_at, next);
	CRASH_POINT("ack.marked");
	spool_save_u64(&s->head->acked_raw, raw);
	CRASH_POINT("ack.done");
}

void
spool_get_acked(const struct spool *s, struct spool_mark *m)
{
	uint64_t at = spool_load_u64(&s->head->mark_at) & 1;

	m->raw = spool_load_u64(&s->head->marks[at].raw);
	m->norm = spool_load_u64(&s->head->marks[at].norm);
}

static int
spool_map(struct spool *s, int fd, int writable)
{
	int prot = writable ? PROT_READ | PROT_WRITE : PROT_READ;
	void *p;

	p = mmap(NULL, SPOOL_DATA, prot, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return CL_SYSTEM;
	s->fd = fd;
	s->head = p;
	s->writable = writable;
	return CL_OK;
}

int
spool_init(struct spool *s, int fd, uint64_t retain, uint64_t limit)
{
	/* The whole page is written, not left sparse: a store to a mapped
	 * hole on a full disk would be SIGBUS instead of an error here. */
	static const uint8_t zero[SPOOL_DATA];
	ssize_t n;
	int r, saved;

	memset(s, 0, sizeof(*s));
	s->fd = -1;
	n = pwrite(fd, zero, sizeof(zero), 0);
	if (n != (ssize_t)sizeof(zero)) {
		if (n >= 0)
			errno = ENOSPC;
		r = CL_SYSTEM;
		goto fail;
	}
	if ((r = spool_map(s, fd, 1)) != CL_OK)
		goto fail;
	s->head->retain = retain;
	s->head->limit = limit;
	spool_save_u64(&s->head->magic, SPOOL_MAGIC);
	return CL_OK;
fail:
	saved = errno;
	close(fd);
	errno = saved;
	return r;
}

int
spool_open(struct spool *s, int fd, int writable)
{
	struct stat st;
	int r, saved;

	memset(s, 0, sizeof(*s));
	s->fd = -1;
	if (fstat(fd, &st) == -1) {
		r = CL_SYSTEM;
		goto fail;
	}
	if (!S_ISREG(st.st_mode) || st.st_size < SPOOL_DATA) {
		r = CL_FORMAT;
		goto fail;
	}
	if ((r = spool_map(s, fd, writable)) != CL_OK)
		goto fail;
	if (spool_load_u64(&s->head->magic) != SPOOL_MAGIC) {
		munmap(s->head, SPOOL_DATA);
		r = CL_FORMAT;
		goto fail;
	}
	return CL_OK;
fail:
	saved = errno;
	close(fd);
	memset(s, 0, sizeof(*s));
	s->fd = -1;
	errno = saved;
	return r;
}

void
spool_close(struct spool *s)
{
	if (s->head != NULL)
		munmap(s->head, SPOOL_DATA);
	if (s->fd != -1)
		close(s->fd);
	memset(s, 0, sizeof(*s));
	s->fd = -1;
}

/* Raise base to `to`, then give the storage below it back. */
static void
spool_drop(struct spool *s, uint64_t base, uint64_t to)
{
	uint64_t from_off, to_off;

	spool_save_u64(&s->head->base, to);
	CRASH_POINT("spool.dropped");
	from_off = base / SPOOL_PUNCH_LEN * SPOOL_PUNCH_LEN;
	to_off = to / SPOOL_PUNCH_LEN * SPOOL_PUNCH_LEN;
	if (to_off <= from_off || to_off > INT64_MAX - SPOOL_DATA)
		return;
	/* A file system without holes keeps the bytes: more disk, no error. */
	(void)fallocate(s->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
	    (off_t)(SPOOL_DATA + from_off), (off_t)(to_off - from_off));
}

static uint64_t
spool_sub(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

void
spool_trim(struct spool *s)
{
	uint64_t base, kept, total, want;

	base = spool_load_u64(&s->head->base);
	total = spool_load_u64(&s->head->total);
	want = spool_load_u64(&s->head->acked_raw);
	kept = spool_sub(total, spool_load_u64(&s->head->retain));
	if (kept > spool_load_u64(&s->head->sent))
		kept = spool_load_u64(&s->head->sent);
	if (kept > want)
		want = kept;
	kept = spool_sub(total, spool_load_u64(&s->head->limit));
	if (kept > want)
		want = kept;
	if (want > total)
		want = total;
	if (want > base)
		spool_drop(s, base, want);
}

int
spool_put(struct spool *s, const void *data, size_t len)
{
	const uint8_t *p = data;
	uint64_t total = spool_load_u64(&s->head->total);
	size_t done = 0;
	ssize_t n = 0;
	int saved;

	while (done < len) {
		n = pwrite(s->fd, p + done, len - done,
		    (off_t)(SPOOL_DATA + total + done));
		if (n == -1 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	CRASH_POINT("spool.written");
	if (done == len) {
		spool_save_u64(&s->head->total, total + len);
		CRASH_POINT("spool.counted");
		spool_trim(s);
		return CL_OK;
	}
	/* Counted and lost: the reader sees a gap, never wrong bytes. */
	saved = n == 0 ? ENOSPC : errno;
	spool_drop(s, spool_load_u64(&s->head->base), total + len);
	spool_save_u64(&s->head->total, total + len);
	errno = saved;
	return CL_SYSTEM;
}

int
spool_get(struct spool *s, uint64_t *offp, void *dst, size_t len, size_t *np)
{
	uint64_t base, total;
	size_t want;
	ssize_t n;

	*np = 0;
	for (;;) {
		base = spool_load_u64(&s->head->base);
		if (*offp < base)
			*offp = base;
		total = spool_load_u64(&s->head->total);
		if (*offp >= total || len == 0)
			return CL_OK;
		want = len;
		if (want > total - *offp)
			want = (size_t)(total - *offp);
		if (*offp > INT64_MAX - SPOOL_DATA)
			return CL_FORMAT;
		n = pread(s->fd, dst, want, (off_t)(SPOOL_DATA + *offp));
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			return CL_SYSTEM;
		/* The writer may have punched what we just copied; base is
		 * raised first, so this look tells. */
		if (spool_load_u64(&s->head->base) > *offp)
			continue;
		*np = (size_t)n;
		return CL_OK;
	}
}
