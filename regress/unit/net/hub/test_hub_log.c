/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * net/hub/hub_log, net/hub/hub_logcut: the offset rules of log chunks, how
 * bytes are counted, a disk that is full (BC-01), LogLimit (BC-09).
 */
#include "regress/unit/unit.h"

#include <sys/stat.h>

#include <fcntl.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/msg/msgcat.h"
#include "net/hub/hub_log.h"

static struct hlog_table t;
static struct hlog_ids ids;
static struct hlog *h;
static int log_fd, index_fd;		/* our own, for reading back */
static int nreports;

static int
open_temp(int *keepp)
{
	char path[] = "/tmp/cloop-unit-XXXXXX";
	int fd = mkostemp(path, O_CLOEXEC | O_APPEND);

	ASSERT_INT_NE(fd, -1);
	if (*keepp > 0)
		close(*keepp);
	*keepp = fd;
	unlink(path);
	return fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

static void
set_up(uint64_t limit)
{
	struct msg_handle_open o = { .handle = 7, .session = 1,
		.handle_id = "h", .state = HS_RUNNING, .log_limit = limit };

	if (h != NULL)
		hlog_close(&t, &ids, h);
	h = NULL;
	hlog_init(&t);
	RB_INIT(&ids);
	ASSERT_ERR(hlog_open(&t, &ids, &o, &h), CL_OK);
	ASSERT_TRUE(hlog_needs_files(h));
	hlog_set_log(&t, h, open_temp(&log_fd));
	ASSERT_ERR(hlog_set_index(&t, h, open_temp(&index_fd)), CL_OK);
	nreports = 0;
}

static int
put(uint64_t off, const char *text, size_t nreplaced)
{
	struct hlog_chunk c = { .off = off, .text = text,
		.len = strlen(text), .nreplaced = nreplaced, .time = 5 };

	return hlog_put(&t, h, &c, 1000);
}

static void
expect_log(const char *want)
{
	char got[256];
	ssize_t n = pread(log_fd, got, sizeof(got), 0);

	ASSERT_INT_NE(n, -1);
	ASSERT_BYTES_EQ(got, (size_t)n, want, strlen(want));
}

static struct logindex_record
record(unsigned int i)
{
	uint8_t raw[LOGINDEX_RECORD_LEN];
	struct logindex_record r;

	ASSERT_INT_EQ(pread(index_fd, raw, sizeof(raw), (off_t)(i *
	    sizeof(raw))), sizeof(raw));
	ASSERT_ERR(logindex_parse(raw, &r), CL_OK);
	return r;
}

static void
test_rules(void)
{
	TEST_START("contiguous chunks are kept");
	set_up(0);
	ASSERT_ERR(put(0, "abc", 0), CL_OK);
	ASSERT_ERR(put(3, "def", 0), CL_OK);
	expect_log("abcdef");
	ASSERT_U64_EQ(h->received, 6);

	TEST_START("duplicates are ignored, of overlaps the rest is kept");
	ASSERT_ERR(put(0, "abcdef", 0), CL_OK);
	ASSERT_ERR(put(2, "cd", 0), CL_OK);
	ASSERT_ERR(put(0, "", 0), CL_OK);
	ASSERT_ERR(put(3, "defghi", 0), CL_OK);
	expect_log("abcdefghi");
	ASSERT_FALSE(h->gapped);

	TEST_START("a gap is for ever, and on record");
	ASSERT_ERR(put(20, "xyz", 0), CL_OK);
	expect_log("abcdefghixyz");
	ASSERT_TRUE(h->gapped);
	ASSERT_ERR(put(9, "late", 0), CL_OK);
	expect_log("abcdefghixyz");
	ASSERT_ERR(hlog_flush(&t, h, 1000), CL_OK);
	ASSERT_INT_EQ(record(0).file_len, 9);
	ASSERT_INT_EQ(record(1).kind, LOGINDEX_GAP);
	ASSERT_U64_EQ(record(1).wire_len, 11);
	ASSERT_U64_EQ(record(2).wire_off, 20);
	ASSERT_U64_EQ(record(2).file_off, 9);

	TEST_START("an offset that leaps beyond 2^50 is ignored");
	ASSERT_ERR(put(23 + (1ULL << 50) + 1, "x", 0), CL_LIMIT);
	ASSERT_ERR(put(INT64_MAX, "x", 0), CL_LIMIT);
	ASSERT_U64_EQ(h->received, 23);

	TEST_START("a closed handle ignores chunks without an error");
	hlog_shut(&t, h, 1000);
	ASSERT_ERR(put(23, "late", 0), CL_OK);
	expect_log("abcdefghixyz");
	ASSERT_U64_EQ(h->stored, 23);
}

static void
test_counting(void)
{
	TEST_START("an escape counts one byte and is three here");
	set_up(0);
	ASSERT_ERR(put(0, "a\xef\xbf\xbd" "b", 1), CL_OK);
	ASSERT_U64_EQ(h->received, 3);
	ASSERT_ERR(put(3, "c", 0), CL_OK);
	expect_log("a\xef\xbf\xbd" "bc");
	ASSERT_FALSE(h->gapped);

	TEST_START("a literal U+FFFD counts three");
	ASSERT_ERR(put(4, "\xef\xbf\xbd", 0), CL_OK);
	ASSERT_U64_EQ(h->received, 7);

	TEST_START("trimming an overlap counts wire bytes");
	set_up(0);
	ASSERT_ERR(put(0, "ab", 0), CL_OK);
	ASSERT_ERR(put(0, "a\xef\xbf\xbd" "cd", 1), CL_OK);
	expect_log("abcd");
	ASSERT_U64_EQ(h->received, 4);
	ASSERT_ERR(put(3, "\xe2\x82\xac", 0), CL_OK);
	expect_log("abcd\x82\xac");
}

static void
test_index(void)
{
	struct logindex_record r;

	TEST_START("small chunks share a record, another stream does not");
	set_up(0);
	ASSERT_ERR(put(0, "a", 0), CL_OK);
	ASSERT_ERR(put(1, "b", 0), CL_OK);
	{
		struct hlog_chunk c = { .off = 2, .text = "c", .len = 1,
			.stream = LOGINDEX_STDERR };

		ASSERT_ERR(hlog_put(&t, h, &c, 1000), CL_OK);
	}
	ASSERT_ERR(hlog_flush(&t, h, 1000), CL_OK);
	r = record(0);
	ASSERT_INT_EQ(r.file_len, 2);
	ASSERT_INT_EQ(record(1).stream, LOGINDEX_STDERR);

	TEST_START("an index is read back by its next worker");
	ASSERT_ERR(hlog_set_index(&t, h, fcntl(index_fd, F_DUPFD_CLOEXEC, 0)),
	    CL_OK);
	ASSERT_U64_EQ(h->received, 3);
	ASSERT_ERR(put(3, "d", 0), CL_OK);
	expect_log("abcd");
}

static void
count_report(void *ctx, struct hlog *log)
{
	(void)ctx;
	(void)log;
	nreports++;
}

static void
test_timer(void)
{
	TEST_START("progress is told four times a second at most");
	set_up(0);
	h->told_at = 1000;
	ASSERT_ERR(put(0, "a", 0), CL_OK);
	ASSERT_INT_EQ(hlog_on_time(&t, 1000 + HLOG_PROGRESS_MS - 1,
	    count_report, NULL), 1);
	ASSERT_INT_EQ(nreports, 0);
	ASSERT_INT_EQ(hlog_on_time(&t, 1000 + HLOG_PROGRESS_MS, count_report,
	    NULL), 0);
	ASSERT_INT_EQ(nreports, 1);
	ASSERT_INT_EQ(h->rec.wire_len, 0);
}

/* Put another file behind a descriptor of the handle's. */
static void
swap(int fd, const char *path, int *oldp)
{
	int new = open(path, O_RDWR | O_APPEND | O_CLOEXEC);

	ASSERT_INT_NE(new, -1);
	*oldp = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	ASSERT_INT_NE(dup2(new, fd), -1);
	close(new);
}

static void
swap_back(int fd, int old)
{
	ASSERT_INT_NE(dup2(old, fd), -1);
	close(old);
}

static void
test_full_disk(void)
{
	struct hlog_chunk big = { .len = HLOG_PENDING_MAX };
	uint64_t stored;
	int old;

	TEST_START("what a full disk refuses is not stored and not lost "
	    "(BC-01)");
	set_up(0);
	ASSERT_ERR(put(0, "one ", 0), CL_OK);
	swap(h->log_fd, "/dev/full", &old);
	ASSERT_ERR(put(4, "two ", 0), CL_SYSTEM);
	ASSERT_ERR(put(8, "three", 0), CL_SYSTEM);
	ASSERT_TRUE(h->failing);
	ASSERT_U64_EQ(h->stored, 4);
	ASSERT_U64_EQ(h->received, 13);
	ASSERT_INT_NE(hlog_flush(&t, h, 1000), CL_OK);
	swap_back(h->log_fd, old);
	ASSERT_INT_EQ(hlog_on_time(&t, 1000 + 2 * HLOG_RETRY_MS, count_report,
	    NULL), 0);
	ASSERT_FALSE(h->failing);
	ASSERT_U64_EQ(h->stored, 13);
	ASSERT_FALSE(h->gapped);
	expect_log("one two three");

	TEST_START("memory for waiting bytes is bounded; beyond it is a gap");
	swap(h->log_fd, "/dev/full", &old);
	ASSERT_ERR(put(13, "a", 0), CL_SYSTEM);
	big.off = 14;
	big.text = calloc(1, big.len);
	ASSERT_ERR(hlog_put(&t, h, &big, 1000), CL_SYSTEM);
	free((void *)(uintptr_t)big.text);
	ASSERT_U64_EQ(h->received, 14);
	ASSERT_SIZE_T_EQ(t.waiting_len, 1);
	swap_back(h->log_fd, old);
	stored = 14 + HLOG_PENDING_MAX;
	{
		struct hlog_chunk c = { .off = stored, .text = "z", .len = 1 };

		ASSERT_ERR(hlog_put(&t, h, &c, 99000), CL_OK);
	}
	ASSERT_TRUE(h->gapped);
	expect_log("one two threeaz");
	ASSERT_SIZE_T_EQ(t.waiting_len, 0);

	TEST_START("an index that cannot be written holds the log back too");
	set_up(0);
	ASSERT_ERR(put(0, "one ", 0), CL_OK);
	swap(h->index_fd, "/dev/full", &old);
	ASSERT_ERR(hlog_flush(&t, h, 1000), CL_SYSTEM);
	ASSERT_ERR(put(4, "two", 0), CL_SYSTEM);
	swap_back(h->index_fd, old);
	ASSERT_ERR(hlog_flush(&t, h, 2000), CL_OK);
	expect_log("one two");
	ASSERT_INT_EQ(record(0).file_len, 7);

	TEST_START("what still waits at the end is a gap, not a lie");
	set_up(0);
	swap(h->log_fd, "/dev/full", &old);
	ASSERT_ERR(put(0, "lost", 0), CL_SYSTEM);
	hlog_shut(&t, h, 1000);
	close(old);
	ASSERT_TRUE(h->gapped);
	ASSERT_U64_EQ(h->stored, 0);
	ASSERT_SIZE_T_EQ(t.waiting_len, 0);
}

#define CUT_LIMIT 262144
#define CUT_TOTAL (4 * 1048576)
#define CUT_CHUNK 1000

static void
fill(uint64_t from, uint64_t to)
{
	char text[CUT_CHUNK];
	struct hlog_chunk c = { .text = text, .len = sizeof(text) };

	for (c.off = from; c.off < to; c.off += CUT_CHUNK) {
		memset(text, 'a' + (int)(c.off / CUT_CHUNK % 26),
		    sizeof(text));
		ASSERT_ERR(hlog_put(&t, h, &c, 1000), CL_OK);
	}
	ASSERT_ERR(hlog_flush(&t, h, 1000), CL_OK);
}

/* The byte the source had at an offset. */
static int
source(uint64_t off)
{
	return 'a' + (int)(off / CUT_CHUNK % 26);
}

struct kept {
	uint64_t begin, end;	/* of the hole */
	uint64_t off;
};

static int
check_kept(void *arg, int at, const void *data, size_t len)
{
	const unsigned char *p = data;
	struct kept *k = arg;
	size_t i;

	for (i = 0; at == LOGINDEX_IN_LOG && i < len; i++) {
		if (k->off == k->begin)
			k->off = k->end;
		if (p[i] != source(k->off))
			ASSERT_U64_EQ(k->off, UINT64_MAX);
		k->off++;
	}
	return CL_OK;
}

/* What is sealed is what a reader gets: nothing of the hole. */
static void
check_seal(uint64_t begin, uint64_t end, uint64_t total)
{
	struct kept k = { begin, end, 0 };
	struct logindex_scan s;
	int r;

	ASSERT_ERR(logindex_scan_start(&s, log_fd, index_fd, 2 * CUT_LIMIT),
	    CL_OK);
	while ((r = logindex_scan_run(&s, 65536, check_kept, &k)) ==
	    CL_INCOMPLETE)
		;
	ASSERT_ERR(r, CL_OK);
	ASSERT_U64_EQ(k.off, total);
}

static void
check_cut(uint64_t total)
{
	struct logindex_record r;
	uint64_t begin = UINT64_MAX, end = 0, off, sum = 0;
	unsigned int i, n;
	char byte;
	struct stat sb;

	ASSERT_INT_EQ(fstat(log_fd, &sb), 0);
	ASSERT_U64_EQ(sb.st_size, total);
	ASSERT_INT_LE(sb.st_blocks * 512, CUT_LIMIT + 131072);
	ASSERT_INT_EQ(fstat(index_fd, &sb), 0);
	n = (unsigned int)(sb.st_size / LOGINDEX_RECORD_LEN);
	for (i = 0; i < n; i++) {
		r = record(i);
		if (r.kind != LOGINDEX_CUT)
			continue;
		ASSERT_U64_EQ(r.wire_len, r.file_len);
		sum += r.file_len;
		if (r.file_off < begin)
			begin = r.file_off;
		if (r.file_off + r.file_len > end)
			end = r.file_off + r.file_len;
	}
	ASSERT_INT_GE(begin, CUT_LIMIT / 2);
	ASSERT_INT_LE(begin, CUT_LIMIT / 2 + 65536 + CUT_CHUNK);
	ASSERT_INT_LE(sum, end - begin);
	ASSERT_INT_GE(total - end, CUT_LIMIT / 4);
	for (off = 0; off < total; off += off == begin - 1 ? end - begin + 1 :
	    1) {
		if (off >= begin && off < end)
			continue;
		if (off % 97 != 0 && off != begin - 1 && off != end)
			continue;
		ASSERT_INT_EQ(pread(log_fd, &byte, 1, (off_t)off), 1);
		ASSERT_INT_EQ(byte, source(off));
	}
	check_seal(begin, end, total);
}

static void
test_limit(void)
{
	struct msg_handle_open o = { .handle = 7, .session = 2,
		.handle_id = "h", .state = HS_RUNNING, .log_limit = CUT_LIMIT };
	struct logindex_state st;
	uint64_t total = CUT_TOTAL / CUT_CHUNK * CUT_CHUNK;

	TEST_START("of a long log the middle goes, beginning and end stay "
	    "(BC-09)");
	set_up(CUT_LIMIT);
	fill(0, total);
	check_cut(total);

	TEST_START("its index is still an index");
	ASSERT_ERR(logindex_load(log_fd, index_fd, 1, &st), CL_OK);
	ASSERT_U64_EQ(st.received, total);
	ASSERT_U64_EQ(st.log_len, total);

	TEST_START("the next worker goes on where the hole ends");
	hlog_close(&t, &ids, h);
	h = NULL;
	ASSERT_ERR(hlog_open(&t, &ids, &o, &h), CL_OK);
	hlog_set_log(&t, h, fcntl(log_fd, F_DUPFD_CLOEXEC, 0));
	ASSERT_ERR(hlog_set_index(&t, h, fcntl(index_fd, F_DUPFD_CLOEXEC, 0)),
	    CL_OK);
	fill(total, total + 1000 * CUT_CHUNK);
	check_cut(total + 1000 * CUT_CHUNK);

	TEST_START("at the length a file may have the rest is counted");
	set_up(CUT_LIMIT);
	h->max_len = CUT_LIMIT + CUT_CHUNK;
	fill(0, total);
	ASSERT_U64_EQ(h->log_len, CUT_LIMIT / CUT_CHUNK * CUT_CHUNK +
	    CUT_CHUNK);
	ASSERT_U64_EQ(h->stored, total);
	ASSERT_FALSE(h->failing);

	TEST_START("a file system without holes keeps the first bytes and "
	    "counts the rest");
	set_up(CUT_LIMIT);
	h->no_punch = 1;
	fill(0, total);
	ASSERT_INT_LE(h->log_len, CUT_LIMIT);
	ASSERT_INT_GT(h->log_len, CUT_LIMIT - CUT_CHUNK);
	ASSERT_U64_EQ(h->stored, total);
	ASSERT_ERR(logindex_load(log_fd, index_fd, 1, &st), CL_OK);
	ASSERT_U64_EQ(st.received, total);
	ASSERT_FALSE(st.gapped);
}

/* Fewer descriptors than workloads. */
static void
test_rest(void)
{
	struct msg_handle_open o = { .handle = 8, .session = 1,
		.handle_id = "i", .state = HS_RUNNING };
	int one = -1, two = -1;
	struct hlog *other;

	TEST_START("who was not written to for longest gives its files back");
	set_up(0);
	t.max_opened = 1;
	ASSERT_ERR(put(0, "abc", 0), CL_OK);
	ASSERT_ERR(hlog_open(&t, &ids, &o, &other), CL_OK);
	hlog_set_log(&t, other, open_temp(&one));
	ASSERT_ERR(hlog_set_index(&t, other, open_temp(&two)), CL_OK);
	ASSERT_INT_EQ(t.nopened, 1);
	ASSERT_TRUE(hlog_needs_files(h));
	ASSERT_U64_EQ(h->indexed, 3);
	ASSERT_ERR(hlog_flush(&t, h, 1000), CL_OK);

	TEST_START("it has them again and goes on");
	hlog_set_log(&t, h, fcntl(log_fd, F_DUPFD_CLOEXEC, 0));
	ASSERT_ERR(hlog_set_index(&t, h, fcntl(index_fd, F_DUPFD_CLOEXEC,
	    0)), CL_OK);
	ASSERT_TRUE(hlog_needs_files(other));
	ASSERT_ERR(put(3, "def", 0), CL_OK);
	expect_log("abcdef");

	TEST_START("progress is what is in both files");
	hlog_report(h, 5000, count_report, NULL);
	ASSERT_U64_EQ(h->told, 3);
	ASSERT_ERR(hlog_flush(&t, h, 5000), CL_OK);
	hlog_report(h, 6000, count_report, NULL);
	ASSERT_U64_EQ(h->told, 6);
	hlog_close(&t, &ids, other);
	close(one);
	close(two);
}

/* Streams that alternate a byte at a time, beats, and a gap now and then. */
static void
test_small_pieces(void)
{
	struct logindex_state st;
	struct stat sb;
	uint64_t off = 0;
	int64_t now = 1000;
	unsigned int i;

	TEST_START("an index has a quarter of what its log may have");
	set_up(1048576);
	for (i = 0; i < 200000; i++) {
		struct hlog_chunk c = { .off = off, .text = "x", .len = 1,
			.stream = (uint8_t)(1 + i % 2), .time = 5 };

		ASSERT_ERR(hlog_put(&t, h, &c, now), CL_OK);
		off += i % 100 == 99 ? 3 : 1;
		if (i % 10 != 0)
			continue;
		now++;
		ASSERT_ERR(hlog_settle(&t, h, now), CL_OK);
	}
	ASSERT_U64_EQ(h->stored, off - 2);
	ASSERT_ERR(hlog_flush(&t, h, now), CL_OK);
	ASSERT_U64_EQ(h->indexed, h->stored);
	ASSERT_INT_EQ(fstat(index_fd, &sb), 0);
	ASSERT_INT_LE(sb.st_size, 1048576 / HLOG_INDEX_SHARE);

	TEST_START("offsets stay exact");
	ASSERT_ERR(logindex_load(log_fd, index_fd, 0, &st), CL_OK);
	ASSERT_U64_EQ(st.received, off - 2);
	ASSERT_U64_EQ(st.log_len, 200000);
	ASSERT_TRUE(st.gapped);
}

UNIT_MAIN(test_rest, test_rules, test_counting, test_index, test_timer,
    test_full_disk, test_limit, test_small_pieces)
