/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * common/msg/buf: every message body between our processes.
 */
#include "regress/unit/unit.h"

#include "common/base/err.h"
#include "common/msg/buf.h"

static void
test_put(void)
{
	static const uint8_t want[] = { 1, 2, 3, 4, 5, 6, 7, 0, 0, 0, 0, 0, 0,
	    0, 9, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe, 0, 0, 0, 2,
	    'h', 'i', 0, 0, 0, 0, 0, 0, 0, 1, 0, 'x' };
	struct buf b;

	TEST_START("fields are big-endian, strings carry their length");
	buf_init(&b, 1024);
	buf_put_u8(&b, 1);
	buf_put_u16(&b, 0x0203);
	buf_put_u32(&b, 0x04050607);
	buf_put_u64(&b, 9);
	buf_put_i64(&b, -2);
	buf_put_str(&b, "hi");
	buf_put_str(&b, NULL);
	buf_put_blob(&b, "", 1);
	buf_put_raw(&b, "x", 1);
	ASSERT_ERR(buf_error(&b), CL_OK);
	ASSERT_BYTES_EQ(b.data, b.len, want, sizeof(want));
	buf_clear(&b);
	ASSERT_PTR_EQ(b.data, NULL);
}

static void
test_get(void)
{
	struct buf w, b;
	const uint8_t *p;
	char text[3], *s;
	size_t len;

	TEST_START("what was put is got, and the end is the end");
	buf_init(&w, 1024);
	buf_put_u8(&w, 255);
	buf_put_u16(&w, 65535);
	buf_put_u32(&w, UINT32_MAX);
	buf_put_u64(&w, UINT64_MAX);
	buf_put_i64(&w, INT64_MIN);
	buf_put_u8(&w, 1);
	buf_put_str(&w, "hi");
	buf_put_str(&w, "there");
	buf_put_blob(&w, "a\0b", 3);
	buf_init_read(&b, w.data, w.len);
	ASSERT_INT_EQ(buf_get_u8(&b), 255);
	ASSERT_INT_EQ(buf_get_u16(&b), 65535);
	ASSERT_INT_EQ(buf_get_u32(&b), UINT32_MAX);
	ASSERT_U64_EQ(buf_get_u64(&b), UINT64_MAX);
	ASSERT_INT_EQ(buf_get_i64(&b), INT64_MIN);
	ASSERT_INT_EQ(buf_get_bool(&b), 1);
	buf_get_str(&b, text, sizeof(text) - 1);
	ASSERT_STRING_EQ(text, "hi");
	s = buf_get_strdup(&b, 5);
	ASSERT_STRING_EQ(s, "there");
	free(s);
	p = buf_get_blob(&b, 3, &len);
	ASSERT_BYTES_EQ(p, len, "a\0b", 3);
	ASSERT_INT_EQ(buf_left(&b), 0);
	ASSERT_ERR(buf_end(&b), CL_OK);
	buf_clear(&w);
}

static void
test_get_short(void)
{
	static const uint8_t bytes[9] = { 0 };
	struct buf b;
	size_t n;

	TEST_START("one byte short fails, sticks, and reads nothing");
	for (n = 0; n < 8; n++) {
		unit_note("%zu bytes", n);
		buf_init_read(&b, bytes, n);
		ASSERT_U64_EQ(buf_get_u64(&b), 0);
		ASSERT_ERR(b.error, CL_INCOMPLETE);
		ASSERT_INT_EQ(buf_get_u8(&b), 0);
		ASSERT_ERR(buf_end(&b), CL_INCOMPLETE);
	}
	TEST_START("one byte too many is trailing");
	buf_init_read(&b, bytes, 9);
	buf_get_u64(&b);
	ASSERT_INT_EQ(buf_left(&b), 1);
	ASSERT_ERR(buf_end(&b), CL_TRAILING);
	TEST_START("a bool is 0 or 1");
	buf_init_read(&b, "\002", 1);
	ASSERT_INT_EQ(buf_get_bool(&b), 0);
	ASSERT_ERR(buf_end(&b), CL_FORMAT);
}

static void
test_get_string(void)
{
	static const uint8_t abc[] = { 0, 0, 0, 3, 'a', 'b', 'c' };
	static const uint8_t nul[] = { 0, 0, 0, 3, 'a', 0, 'c' };
	static const uint8_t lies[] = { 0xff, 0xff, 0xff, 0xff, 'a' };
	struct buf b;
	char text[8];
	size_t len;

	TEST_START("a string of exactly max fits, one more is too big");
	buf_init_read(&b, abc, sizeof(abc));
	buf_get_str(&b, text, 3);
	ASSERT_ERR(buf_end(&b), CL_OK);
	ASSERT_STRING_EQ(text, "abc");
	buf_init_read(&b, abc, sizeof(abc));
	buf_get_str(&b, text, 2);
	ASSERT_STRING_EQ(text, "");
	ASSERT_ERR(buf_end(&b), CL_TOOBIG);
	buf_init_read(&b, abc, sizeof(abc));
	ASSERT_PTR_EQ(buf_get_strdup(&b, 2), NULL);
	ASSERT_ERR(buf_end(&b), CL_TOOBIG);
	TEST_START("a NUL inside a string is refused, in a blob it is data");
	buf_init_read(&b, nul, sizeof(nul));
	buf_get_str(&b, text, 7);
	ASSERT_ERR(buf_end(&b), CL_FORMAT);
	buf_init_read(&b, nul, sizeof(nul));
	ASSERT_PTR_NE(buf_get_blob(&b, 3, &len), NULL);
	ASSERT_ERR(buf_end(&b), CL_OK);
	TEST_START("a length beyond the message is incomplete");
	buf_init_read(&b, lies, sizeof(lies));
	ASSERT_PTR_EQ(buf_get_blob(&b, SIZE_MAX, &len), NULL);
	ASSERT_INT_EQ(len, 0);
	ASSERT_ERR(buf_end(&b), CL_INCOMPLETE);
	TEST_START("an empty blob is not a failure");
	buf_init_read(&b, "\0\0\0\0", 4);
	ASSERT_PTR_NE(buf_get_blob(&b, 0, &len), NULL);
	ASSERT_ERR(buf_end(&b), CL_OK);
}

static void
test_bounds(void)
{
	static const char bytes[101];
	struct buf b;

	TEST_START("max bytes fit, one more does not, and the error sticks");
	buf_init(&b, 100);
	buf_put_raw(&b, bytes, 100);
	ASSERT_ERR(buf_error(&b), CL_OK);
	buf_put_u8(&b, 0);
	ASSERT_ERR(buf_error(&b), CL_TOOBIG);
	ASSERT_INT_EQ(b.len, 100);
	buf_put_raw(&b, bytes, 0);
	ASSERT_ERR(buf_error(&b), CL_TOOBIG);
	buf_reset(&b);
	ASSERT_ERR(buf_error(&b), CL_OK);
	buf_put_raw(&b, bytes, 101);
	ASSERT_ERR(buf_error(&b), CL_TOOBIG);
	ASSERT_INT_EQ(b.len, 0);
	buf_clear(&b);
	TEST_START("a borrowed buffer is never written");
	buf_init_read(&b, bytes, sizeof(bytes));
	buf_put_u8(&b, 1);
	ASSERT_ERR(buf_error(&b), CL_INTERNAL);
	ASSERT_INT_EQ(bytes[0], 0);
}

UNIT_MAIN(test_put, test_get, test_get_short, test_get_string, test_bounds)
