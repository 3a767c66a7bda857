/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * common/output/logindex: a record is refused or has one form on disk; a whole
 * index (first two bytes: length of the log beside it) loads without
 * touching anything, and what repair leaves loads again to the same state.
 */
#include "fuzz.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/output/logindex.h"

static void
check_record(const uint8_t *src)
{
	struct logindex_record r;
	uint8_t again[LOGINDEX_RECORD_LEN];

	if (logindex_parse(src, &r) != CL_OK)
		return;
	FUZZ_CHECK(r.wire_off + r.wire_len <= INT64_MAX);
	FUZZ_CHECK(r.file_off + r.file_len <= INT64_MAX);
	logindex_format(&r, again);
	FUZZ_CHECK(memcmp(again, src, sizeof(again)) == 0);
}

static uint64_t
file_len(int fd)
{
	struct stat st;

	if (fstat(fd, &st) == -1)
		abort();
	return (uint64_t)st.st_size;
}

static void
check_index(int log_fd, int index_fd)
{
	struct logindex_state st, again;
	uint64_t log_len = file_len(log_fd), index_len = file_len(index_fd);
	int r;

	r = logindex_load(log_fd, index_fd, 0, &st);
	FUZZ_CHECK(file_len(log_fd) == log_len);
	FUZZ_CHECK(file_len(index_fd) == index_len);
	if (r != CL_OK) {
		FUZZ_CHECK(r == CL_FORMAT);
		FUZZ_CHECK(logindex_load(log_fd, index_fd, 1, &again) == r);
		FUZZ_CHECK(file_len(index_fd) == index_len);
		return;
	}
	FUZZ_CHECK(st.log_len <= log_len);
	FUZZ_CHECK(logindex_load(log_fd, index_fd, 1, &again) == CL_OK);
	FUZZ_CHECK(memcmp(&st, &again, sizeof(st)) == 0);
	FUZZ_CHECK(file_len(log_fd) == st.log_len);
	FUZZ_CHECK(file_len(index_fd) <= index_len);
	FUZZ_CHECK(logindex_load(log_fd, index_fd, 1, &again) == CL_OK);
	FUZZ_CHECK(memcmp(&st, &again, sizeof(st)) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static int log_fd = -1, index_fd = -1;
	size_t at;

	if (log_fd == -1 && ((log_fd = memfd_create("log", 0)) == -1 ||
	    (index_fd = memfd_create("index", 0)) == -1))
		abort();
	if (len < 2)
		return 0;
	if (ftruncate(log_fd, 0) == -1 || ftruncate(index_fd, 0) == -1 ||
	    ftruncate(log_fd, data[0] << 8 | data[1]) == -1)
		abort();
	for (at = 2; len - at >= LOGINDEX_RECORD_LEN;
	    at += LOGINDEX_RECORD_LEN)
		check_record(data + at);
	if (pwrite(index_fd, data + 2, len - 2, 0) != (ssize_t)(len - 2))
		abort();
	check_index(log_fd, index_fd);
	return 0;
}
