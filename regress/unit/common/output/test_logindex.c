/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * common/output/logindex: records, their order, and what a crash leaves.
 */
#include "regress/unit/unit.h"

#include <sys/stat.h>

#include <fcntl.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/output/logindex.h"

static int log_fd, index_fd;

static int
open_temp(void)
{
	char path[] = "/tmp/cloop-unit-XXXXXX";
	int fd = mkostemp(path, O_CLOEXEC | O_APPEND);

	ASSERT_INT_NE(fd, -1);
	unlink(path);
	return fd;
}

static void
set_up(void)
{
	if (log_fd > 0)
		close(log_fd);
	if (index_fd > 0)
		close(index_fd);
	log_fd = open_temp();
	index_fd = open_temp();
}

static void
add(int kind, uint64_t wire_off, uint64_t wire_len, uint64_t file_off,
    uint32_t file_len)
{
	struct logindex_record r = { .wire_off = wire_off,
		.wire_len = wire_len, .file_off = file_off,
		.file_len = file_len, .time = 7, .kind = (uint8_t)kind,
		.stream = LOGINDEX_STDERR };
	uint8_t raw[LOGINDEX_RECORD_LEN];

	logindex_format(&r, raw);
	ASSERT_INT_EQ(write(index_fd, raw, sizeof(raw)), sizeof(raw));
}

static uint64_t
size_of(int fd)
{
	struct stat sb;

	ASSERT_INT_EQ(fstat(fd, &sb), 0);
	return (uint64_t)sb.st_size;
}

static void
test_record(void)
{
	struct logindex_record r = { 1ULL << 40, 5, -3, 0x123456789aULL, 9,
		LOGINDEX_DATA, LOGINDEX_STDOUT }, back;
	uint8_t raw[LOGINDEX_RECORD_LEN];

	TEST_START("a record survives the disk, a long gap too");
	logindex_format(&r, raw);
	ASSERT_ERR(logindex_parse(raw, &back), CL_OK);
	ASSERT_U64_EQ(back.wire_off, r.wire_off);
	ASSERT_U64_EQ(back.wire_len, r.wire_len);
	ASSERT_U64_EQ(back.file_off, 5);
	ASSERT_INT_EQ(back.file_len, 9);
	ASSERT_INT_EQ(back.time, -3);
	ASSERT_INT_EQ(back.stream, LOGINDEX_STDOUT);

	TEST_START("unknown kind, unknown stream and padding are refused");
	raw[32] = 0;
	ASSERT_ERR(logindex_parse(raw, &back), CL_FORMAT);
	raw[32] = LOGINDEX_CUT + 1;
	ASSERT_ERR(logindex_parse(raw, &back), CL_FORMAT);
	raw[32] = LOGINDEX_DATA;
	raw[33] = 3;
	ASSERT_ERR(logindex_parse(raw, &back), CL_FORMAT);
	raw[33] = 0;
	raw[39] = 1;
	ASSERT_ERR(logindex_parse(raw, &back), CL_FORMAT);

	TEST_START("ends beyond an off_t and a gap with bytes are refused");
	r.wire_off = INT64_MAX;
	r.wire_len = 1;
	logindex_format(&r, raw);
	ASSERT_ERR(logindex_parse(raw, &back), CL_FORMAT);
	r.wire_off = 0;
	r.kind = LOGINDEX_GAP;
	logindex_format(&r, raw);
	ASSERT_ERR(logindex_parse(raw, &back), CL_FORMAT);
}

static void
test_load(void)
{
	struct logindex_state st;

	TEST_START("data, gap and cut follow each other");
	set_up();
	ASSERT_INT_EQ(write(log_fd, "abcdef", 6), 6);
	add(LOGINDEX_DATA, 0, 3, 0, 3);
	add(LOGINDEX_GAP, 3, 7, 3, 0);
	add(LOGINDEX_DATA, 10, 1, 3, 3);
	add(LOGINDEX_CUT, 11, 4, 6, 0);
	add(LOGINDEX_CUT, 10, 1, 3, 3);
	ASSERT_ERR(logindex_load(log_fd, index_fd, 0, &st), CL_OK);
	ASSERT_U64_EQ(st.received, 15);
	ASSERT_U64_EQ(st.log_len, 6);
	ASSERT_TRUE(st.gapped);

	TEST_START("a record that does not follow is no index");
	add(LOGINDEX_DATA, 16, 1, 6, 0);
	ASSERT_ERR(logindex_load(log_fd, index_fd, 0, &st), CL_FORMAT);
	set_up();
	add(LOGINDEX_CUT, 0, 1, 0, 1);
	ASSERT_ERR(logindex_load(log_fd, index_fd, 0, &st), CL_FORMAT);
}

static void
test_repair(void)
{
	struct logindex_state st;

	TEST_START("a torn record and unindexed bytes are cut off");
	set_up();
	ASSERT_INT_EQ(write(log_fd, "abcdefgh", 8), 8);
	add(LOGINDEX_DATA, 0, 3, 0, 3);
	ASSERT_INT_EQ(write(index_fd, "half of a record", 16), 16);
	ASSERT_ERR(logindex_load(log_fd, index_fd, 0, &st), CL_OK);
	ASSERT_U64_EQ(size_of(log_fd), 8);
	ASSERT_ERR(logindex_load(log_fd, index_fd, 1, &st), CL_OK);
	ASSERT_U64_EQ(st.received, 3);
	ASSERT_U64_EQ(size_of(log_fd), 3);
	ASSERT_U64_EQ(size_of(index_fd), LOGINDEX_RECORD_LEN);

	TEST_START("a record without its bytes does not count");
	add(LOGINDEX_DATA, 3, 5, 3, 5);
	add(LOGINDEX_DATA, 8, 5, 8, 5);
	ASSERT_ERR(logindex_load(log_fd, index_fd, 1, &st), CL_OK);
	ASSERT_U64_EQ(st.received, 3);
	ASSERT_U64_EQ(size_of(index_fd), LOGINDEX_RECORD_LEN);

	TEST_START("an empty pair is a fresh one");
	set_up();
	ASSERT_ERR(logindex_load(log_fd, index_fd, 1, &st), CL_OK);
	ASSERT_U64_EQ(st.received, 0);
	ASSERT_FALSE(st.gapped);
}

static char scanned[2][256];
static size_t scanned_len[2];

static int
keep(void *arg, int at, const void *data, size_t len)
{
	(void)arg;
	ASSERT_INT_LE(scanned_len[at] + len, sizeof(scanned[at]));
	memcpy(scanned[at] + scanned_len[at], data, len);
	scanned_len[at] += len;
	return CL_OK;
}

static int
scan(uint64_t max, size_t budget)
{
	struct logindex_scan s;
	int r;

	scanned_len[0] = scanned_len[1] = 0;
	ASSERT_ERR(logindex_scan_start(&s, log_fd, index_fd, max), CL_OK);
	while ((r = logindex_scan_run(&s, budget, keep, NULL)) ==
	    CL_INCOMPLETE)
		;
	return r;
}

static void
test_scan(void)
{
	struct logindex_scan s;

	TEST_START("an empty pair is read to its end");
	set_up();
	ASSERT_ERR(scan(0, 1), CL_OK);

	TEST_START("of the log only what is outside the hole");
	ASSERT_INT_EQ(write(log_fd, "abcdefghijklmnop", 16), 16);
	add(LOGINDEX_DATA, 0, 16, 0, 16);
	ASSERT_ERR(scan(56, 1), CL_OK);
	ASSERT_BYTES_EQ(scanned[1], scanned_len[1], "abcdefghijklmnop", 16);
	add(LOGINDEX_CUT, 4, 4, 4, 4);
	add(LOGINDEX_CUT, 8, 4, 8, 4);
	ASSERT_ERR(scan(128, 1), CL_OK);
	ASSERT_U64_EQ(scanned_len[0], 3 * LOGINDEX_RECORD_LEN);
	ASSERT_BYTES_EQ(scanned[1], scanned_len[1], "abcdmnop", 8);
	ASSERT_ERR(scan(UINT64_MAX, SIZE_MAX), CL_OK);
	ASSERT_BYTES_EQ(scanned[1], scanned_len[1], "abcdmnop", 8);

	TEST_START("more than is worth reading is not read");
	ASSERT_ERR(scan(127, SIZE_MAX), CL_TOOBIG);
	ASSERT_U64_EQ(scanned_len[1], 0);
	ASSERT_ERR(scan(119, SIZE_MAX), CL_TOOBIG);
	ASSERT_U64_EQ(scanned_len[0], 0);

	TEST_START("an index that makes no sense is read as it is");
	ASSERT_INT_EQ(write(index_fd, "half of a record", 16), 16);
	add(LOGINDEX_CUT, 0, UINT32_MAX, 0, UINT32_MAX);
	ASSERT_ERR(scan(UINT64_MAX, 7), CL_OK);
	ASSERT_U64_EQ(scanned_len[0], 4 * LOGINDEX_RECORD_LEN + 16);

	TEST_START("a file that shrinks meanwhile");
	set_up();
	ASSERT_INT_EQ(write(log_fd, "abcdefgh", 8), 8);
	ASSERT_ERR(logindex_scan_start(&s, log_fd, index_fd, 100), CL_OK);
	ASSERT_INT_EQ(ftruncate(log_fd, 0), 0);
	ASSERT_ERR(logindex_scan_run(&s, 100, keep, NULL), CL_FORMAT);
}

UNIT_MAIN(test_record, test_load, test_repair, test_scan)
