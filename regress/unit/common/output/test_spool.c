/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * common/output/spool: the window rule of spool.h, gaps, full disks.
 */
#include "regress/unit/unit.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/output/spool.h"

#define KIB 1024ULL

static struct spool w, r;

static void
spool_pair(uint64_t retain, uint64_t limit)
{
	int fd = memfd_create("spool", MFD_CLOEXEC);

	ASSERT_INT_GE(fd, 0);
	ASSERT_ERR(spool_init(&w, fd, retain, limit), CL_OK);
	ASSERT_ERR(spool_open(&r, fcntl(fd, F_DUPFD_CLOEXEC, 0), 0), CL_OK);
}

static void
spool_done(void)
{
	spool_close(&w);
	spool_close(&r);
}

/* Byte n of the stream. */
static void
fill(uint8_t *dst, size_t len, uint64_t at)
{
	size_t i;

	for (i = 0; i < len; i++)
		dst[i] = (uint8_t)((at + i) * 7 % 251);
}

static void
put_many(uint64_t len)
{
	static uint8_t block[10000];
	uint64_t at = spool_load_u64(&w.head->total), n;

	while (len > 0) {
		n = len > sizeof(block) ? sizeof(block) : len;
		fill(block, n, at);
		ASSERT_ERR(spool_put(&w, block, n), CL_OK);
		at += n;
		len -= n;
	}
}

/* Read everything from off on; returns where the read began after a gap. */
static uint64_t
check_all(uint64_t off)
{
	static uint8_t got[7777], want[7777];
	uint64_t first = UINT64_MAX;
	size_t n;

	for (;;) {
		ASSERT_ERR(spool_get(&r, &off, got, sizeof(got), &n), CL_OK);
		if (n == 0)
			break;
		if (first == UINT64_MAX)
			first = off;
		fill(want, n, off);
		ASSERT_MEM_EQ(got, want, n);
		off += n;
	}
	ASSERT_U64_EQ(off, spool_load_u64(&w.head->total));
	return first;
}

static void
test_window(void)
{
	TEST_START("unsent bytes are kept up to the limit (spool.h)");
	spool_pair(64 * KIB, 256 * KIB);
	put_many(256 * KIB - 1);
	ASSERT_U64_EQ(w.head->base, 0);
	put_many(1);
	ASSERT_U64_EQ(w.head->base, 0);
	ASSERT_U64_EQ(check_all(0), 0);
	put_many(1);
	ASSERT_U64_EQ(w.head->base, 1);
	ASSERT_U64_EQ(check_all(0), 1);
	spool_done();

	TEST_START("sent, not acknowledged bytes are kept up to retain");
	spool_pair(64 * KIB, 256 * KIB);
	put_many(100 * KIB);
	spool_save_u64(&w.head->sent, 100 * KIB);
	spool_trim(&w);
	ASSERT_U64_EQ(w.head->base, 36 * KIB);
	spool_save_u64(&w.head->sent, 100 * KIB);
	put_many(50 * KIB);
	/* retain wants 86 KiB gone, and that much was sent. */
	ASSERT_U64_EQ(w.head->base, 86 * KIB);
	spool_done();

	TEST_START("retain, one less, just that and one more");
	spool_pair(64 * KIB, 256 * KIB);
	put_many(64 * KIB - 1);
	spool_save_u64(&w.head->sent, 64 * KIB + 1);
	spool_trim(&w);
	ASSERT_U64_EQ(w.head->base, 0);
	put_many(1);
	ASSERT_U64_EQ(w.head->base, 0);
	ASSERT_U64_EQ(check_all(0), 0);
	put_many(1);
	ASSERT_U64_EQ(w.head->base, 1);
	ASSERT_U64_EQ(check_all(0), 1);
	spool_done();

	TEST_START("what was not sent is not dropped by retain");
	spool_pair(64 * KIB, 256 * KIB);
	spool_save_u64(&w.head->sent, 10 * KIB);
	put_many(200 * KIB);
	ASSERT_U64_EQ(w.head->base, 10 * KIB);
	ASSERT_U64_EQ(check_all(3 * KIB), 10 * KIB);
	spool_done();

	TEST_START("acknowledged bytes go at once, never past total");
	spool_pair(64 * KIB, 256 * KIB);
	put_many(20 * KIB);
	spool_save_u64(&w.head->acked_raw, 15 * KIB);
	spool_trim(&w);
	ASSERT_U64_EQ(w.head->base, 15 * KIB);
	spool_save_u64(&w.head->acked_raw, 1 << 30);
	spool_trim(&w);
	ASSERT_U64_EQ(w.head->base, 20 * KIB);
	spool_save_u64(&w.head->acked_raw, 0);
	spool_trim(&w);
	ASSERT_U64_EQ(w.head->base, 20 * KIB);
	spool_done();
}

static void
test_storage(void)
{
	struct stat st;

	TEST_START("dropped bytes give their storage back");
	spool_pair(64 * KIB, 256 * KIB);
	put_many(4096 * KIB);
	ASSERT_INT_EQ(fstat(w.fd, &st), 0);
	ASSERT_INT_EQ(st.st_size, SPOOL_DATA + 4096 * KIB);
	ASSERT_INT_LE(st.st_blocks * 512, SPOOL_DATA + (256 + 65) * KIB);
	ASSERT_U64_EQ(check_all(0), (4096 - 256) * KIB);
	spool_done();
}

static void
test_full(void)
{
	uint8_t block[4096] = { 0 };
	struct rlimit old, small;
	uint64_t off = 0;
	size_t n;

	TEST_START("a full disk: counted, lost, and the reader sees a gap");
	spool_pair(64 * KIB, 256 * KIB);
	put_many(10 * KIB);
	signal(SIGXFSZ, SIG_IGN);
	ASSERT_INT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
	small = old;
	small.rlim_cur = SPOOL_DATA + 12 * KIB;
	ASSERT_INT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
	ASSERT_ERR(spool_put(&w, block, sizeof(block)), CL_SYSTEM);
	ASSERT_INT_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
	ASSERT_U64_EQ(w.head->total, 14 * KIB);
	ASSERT_U64_EQ(w.head->base, 14 * KIB);
	put_many(3 * KIB);
	ASSERT_U64_EQ(check_all(0), 14 * KIB);
	ASSERT_ERR(spool_get(&r, &off, block, 10, &n), CL_OK);
	ASSERT_U64_EQ(off, 14 * KIB);
	ASSERT_SIZE_T_EQ(n, 10);
	spool_done();
}

static void
test_open(void)
{
	uint8_t zero[SPOOL_DATA] = { 0 };
	struct spool s;
	int fd;

	TEST_START("what is no spool is refused: short, no magic, no file");
	fd = memfd_create("x", MFD_CLOEXEC);
	ASSERT_ERR(spool_open(&s, fd, 0), CL_FORMAT);
	fd = memfd_create("x", MFD_CLOEXEC);
	ASSERT_INT_EQ(write(fd, zero, sizeof(zero)), SPOOL_DATA);
	ASSERT_ERR(spool_open(&s, fd, 0), CL_FORMAT);
	ASSERT_ERR(spool_open(&s, open("/dev/null", O_RDWR | O_CLOEXEC), 0),
	    CL_FORMAT);
	ASSERT_INT_EQ(s.fd, -1);
	spool_close(&s);
}

static void
test_positions(void)
{
	uint64_t off = 500;
	uint8_t b[8];
	size_t n = 9;

	TEST_START("an offset past the end: nothing there yet");
	spool_pair(64 * KIB, 256 * KIB);
	put_many(100);
	ASSERT_ERR(spool_get(&r, &off, b, sizeof(b), &n), CL_OK);
	ASSERT_SIZE_T_EQ(n, 0);
	ASSERT_U64_EQ(off, 500);
	TEST_START("hostile header values give an error or nothing, no crash");
	off = 0;
	spool_save_u64(&w.head->total, UINT64_MAX);
	spool_save_u64(&w.head->base, UINT64_MAX - 1);
	ASSERT_ERR(spool_get(&r, &off, b, sizeof(b), &n), CL_FORMAT);
	spool_trim(&w);
	spool_done();
}

static void
test_acked(void)
{
	struct spool_mark m;
	struct spool s;
	int fd = memfd_create("spool", MFD_CLOEXEC);

	TEST_START("an acknowledged position is the old or the new one, never "
	    "half of each");
	ASSERT_ERR(spool_init(&s, fd, 1 << 20, 1 << 20), CL_OK);
	spool_get_acked(&s, &m);
	ASSERT_U64_EQ(m.raw + m.norm, 0);
	spool_set_acked(&s, 100, 300);
	spool_set_acked(&s, 200, 500);
	spool_get_acked(&s, &m);
	ASSERT_U64_EQ(m.raw, 200);
	ASSERT_U64_EQ(m.norm, 500);
	ASSERT_U64_EQ(s.head->acked_raw, 200);
	/* As it is when the writer dies before the last step but one. */
	s.head->marks[1 - s.head->mark_at].raw = 900;
	spool_get_acked(&s, &m);
	ASSERT_U64_EQ(m.raw, 200);
	ASSERT_U64_EQ(m.norm, 500);
	spool_close(&s);
}

UNIT_MAIN(test_acked, test_window, test_storage, test_full, test_open,
    test_positions)
