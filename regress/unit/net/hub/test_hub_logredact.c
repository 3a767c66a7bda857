/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * net/hub/hub_logredact: what is kept has no secret in it, and every byte of
 * the wire is accounted for (BC-11).
 */
#include "regress/unit/unit.h"

#include <sys/stat.h>

#include <fcntl.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/msg/buf.h"
#include "common/msg/msgcat.h"
#include "net/hub/hub_log.h"
#include "net/hub/hub_logredact.h"

#define SECRET "key123abc456"

static struct hlog_table t;
static struct hlog_ids ids;
static struct hlog *h;
static int log_fd, index_fd;

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
add(const char *value)
{
	struct buf b;

	buf_init(&b, 4096);
	buf_put_blob(&b, value, strlen(value));
	ASSERT_ERR(hlog_add_redactions(h, b.data, b.len), CL_OK);
	buf_clear(&b);
}

static void
set_up(void)
{
	struct msg_handle_open o = { .handle = 7, .session = 1,
		.handle_id = "h", .state = HS_RUNNING };

	if (h != NULL)
		hlog_close(&t, &ids, h);
	hlog_init(&t);
	RB_INIT(&ids);
	ASSERT_ERR(hlog_open(&t, &ids, &o, &h), CL_OK);
	hlog_set_log(&t, h, open_temp(&log_fd));
	ASSERT_ERR(hlog_set_index(&t, h, open_temp(&index_fd)), CL_OK);
	add(SECRET);
}

static void
put(uint64_t off, const char *text, size_t len, size_t nreplaced)
{
	struct hlog_chunk c = { .off = off, .text = text, .len = len,
		.nreplaced = nreplaced, .time = 5 };

	ASSERT_ERR(hlog_put(&t, h, &c, 1000), CL_OK);
}

static void
expect_log(const char *want)
{
	char got[512];
	ssize_t n = pread(log_fd, got, sizeof(got), 0);

	ASSERT_INT_NE(n, -1);
	ASSERT_BYTES_EQ(got, (size_t)n, want, strlen(want));
}

/* The index covers exactly wire bytes [0, wire) and the whole file. */
static void
expect_index(uint64_t wire)
{
	struct logindex_state st;

	ASSERT_ERR(logindex_load(log_fd, index_fd, 0, &st), CL_OK);
	ASSERT_U64_EQ(st.received, wire);
	ASSERT_U64_EQ(st.log_len, h->log_len);
}

static void
test_splits(void)
{
	static const char text[] = "a " SECRET " b " SECRET SECRET "\n";
	static const char want[] =
	    "a [redacted] b [redacted][redacted]\n";
	size_t len = sizeof(text) - 1, i, k;

	TEST_START("every split into two and three chunks (BC-11)");
	for (i = 0; i <= len; i++)
		for (k = i; k <= len; k += 3) {
			set_up();
			put(0, text, i, 0);
			put(i, text + i, k - i, 0);
			put(k, text + k, len - k, 0);
			ASSERT_U64_EQ(h->received, len);
			ASSERT_INT_EQ(hlog_flush(&t, h, 1000), CL_OK);
			ASSERT_U64_EQ(h->stored, len);
			expect_log(want);
			expect_index(len);
		}

	TEST_START("single bytes");
	set_up();
	for (i = 0; i < len; i++)
		put(i, text + i, 1, 0);
	ASSERT_INT_EQ(hlog_flush(&t, h, 1000), CL_OK);
	expect_log(want);
	expect_index(len);
}

static void
test_held(void)
{
	TEST_START("what is withheld is not stored, so not acknowledged");
	set_up();
	put(0, "x key123", 8, 0);
	ASSERT_U64_EQ(h->received, 8);
	ASSERT_U64_EQ(h->stored, 2);
	expect_log("x ");

	TEST_START("after a break it is sent again from there");
	ASSERT_INT_EQ(hlog_flush(&t, h, 1000), CL_OK);
	expect_index(2);
	{
		int lfd = fcntl(log_fd, F_DUPFD_CLOEXEC, 0);
		int ifd = fcntl(index_fd, F_DUPFD_CLOEXEC, 0);
		struct msg_handle_open o = { .handle = 7, .session = 2,
			.handle_id = "h", .state = HS_RUNNING };

		hlog_close(&t, &ids, h);
		ASSERT_ERR(hlog_open(&t, &ids, &o, &h), CL_OK);
		hlog_set_log(&t, h, lfd);
		ASSERT_ERR(hlog_set_index(&t, h, ifd), CL_OK);
		add(SECRET);
	}
	ASSERT_U64_EQ(h->received, 2);
	put(2, SECRET "!", 13, 0);
	ASSERT_INT_EQ(hlog_flush(&t, h, 1000), CL_OK);
	expect_log("x [redacted]!");
	expect_index(15);

	TEST_START("duplicates of withheld bytes are not taken twice");
	set_up();
	put(0, "key1", 4, 0);
	put(0, "key1", 4, 0);
	put(2, "y123abc456", 10, 0);
	ASSERT_INT_EQ(hlog_flush(&t, h, 1000), CL_OK);
	expect_log("[redacted]");
	expect_index(12);

	TEST_START("a harmless beginning comes out, at the latest at the end");
	set_up();
	put(0, "key123-", 7, 0);
	expect_log("key123-");
	put(7, "key12", 5, 0);
	expect_log("key123-");
	hlog_shut(&t, h, 1000);
	expect_log("key123-key12");
	expect_index(12);
	ASSERT_FALSE(h->gapped);
}

static void
test_gap(void)
{
	struct logindex_state st;

	TEST_START("a gap ends what was withheld");
	set_up();
	put(0, "key1", 4, 0);
	put(50, "23abc456", 8, 0);
	ASSERT_TRUE(h->gapped);
	hlog_shut(&t, h, 1000);
	expect_log("key123abc456");
	ASSERT_ERR(logindex_load(log_fd, index_fd, 0, &st), CL_OK);
	ASSERT_U64_EQ(st.received, 58);
	ASSERT_TRUE(st.gapped);
}

static void
test_escapes(void)
{
	TEST_START("an escape counts one wherever it is cut");
	set_up();
	/* 3 + 1 + 3 bytes here, 1 + 1 + 1 on the wire, then a secret. */
	put(0, "\xef\xbf\xbd" "k" "\xef\xbf\xbd" "key", 10, 2);
	ASSERT_U64_EQ(h->received, 6);
	ASSERT_U64_EQ(h->stored, 3);
	put(6, "123abc456" "\xef\xbf\xbd", 12, 1);
	ASSERT_INT_EQ(hlog_flush(&t, h, 1000), CL_OK);
	expect_log("\xef\xbf\xbd" "k" "\xef\xbf\xbd" "[redacted]"
	    "\xef\xbf\xbd");
	ASSERT_U64_EQ(h->received, 16);
	expect_index(16);
}

static void
test_late(void)
{
	char text[64];

	TEST_START("a value added later holds from then on");
	set_up();
	put(0, "newvalue-1\n", 11, 0);
	add("newvalue-1");
	put(11, "newvalue-1\n", 11, 0);
	expect_log("newvalue-1\n[redacted]\n");

	TEST_START("texts beside the output");
	hlog_redact_text(h, "bad " SECRET, text, sizeof(text));
	ASSERT_STRING_EQ(text, "bad [redacted]");
	hlog_redact_text(NULL, "plain", text, sizeof(text));
	ASSERT_STRING_EQ(text, "plain");

	TEST_START("a malformed list is refused");
	ASSERT_ERR(hlog_add_redactions(h, "\0\0\1\0x", 5), CL_FORMAT);
	hlog_close(&t, &ids, h);
	h = NULL;
}

UNIT_MAIN(test_splits, test_held, test_gap, test_escapes, test_late)
