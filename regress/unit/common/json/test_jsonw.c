/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * common/json/jsonw: Go's form of JSON.
 */
#include "regress/unit/unit.h"

#include "common/base/err.h"
#include "common/base/util.h"
#include "common/json/jsonw.h"

static void
check_text(unsigned int flags, const void *p, size_t len, const char *want)
{
	struct jsonw w;

	unit_note("%s", want);
	jsonw_init(&w, 1024, flags);
	jsonw_put_text(&w, p, len);
	ASSERT_ERR(jsonw_error(&w), CL_OK);
	ASSERT_STRING_EQ(w.data, want);
	jsonw_clear(&w);
}

#define CHECK(text, want) check_text(0, text, sizeof(text) - 1, want)

static void
test_escapes(void)
{
	TEST_START("strings are escaped as Go 1.22 does");
	CHECK("", "\"\"");
	CHECK("a\"\\/", "\"a\\\"\\\\/\"");
	CHECK("\b\f\n\r\t", "\"\\b\\f\\n\\r\\t\"");
	CHECK("\0\x01\x1f\x7f", "\"\\u0000\\u0001\\u001f\x7f\"");
	CHECK("<a>&", "\"\\u003ca\\u003e\\u0026\"");
	check_text(JSONW_NO_HTML, "<a>&", 4, "\"<a>&\"");
	CHECK("\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xaa",
	    "\"\\u2028\\u2029\xe2\x80\xaa\"");
	CHECK("\xc3\xa9\xf0\x9f\x98\x80\xe2\x82\xac",
	    "\"\xc3\xa9\xf0\x9f\x98\x80\xe2\x82\xac\"");
	CHECK("\xef\xbf\xbd\xff", "\"\xef\xbf\xbd\\ufffd\"");
	CHECK("a\xe2\x80", "\"a\\ufffd\\ufffd\"");
	CHECK("\xc0\xaf\xed\xa0\x80",
	    "\"\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\"");
	CHECK("\xff\xe2\x80\xa8", "\"\\ufffd\\u2028\"");
}

static void
test_values(void)
{
	struct jsonw w;

	TEST_START("commas come by themselves, values in Go's form");
	jsonw_init(&w, 1024, 0);
	jsonw_open_object(&w);
	jsonw_put_key(&w, "a");
	jsonw_open_array(&w);
	jsonw_put_int(&w, INT64_MIN);
	jsonw_put_uint(&w, UINT64_MAX);
	jsonw_put_bool(&w, 0);
	jsonw_put_null(&w);
	jsonw_close_array(&w);
	jsonw_put_key(&w, "b");
	jsonw_open_object(&w);
	jsonw_close_object(&w);
	jsonw_put_key(&w, "t");
	jsonw_put_time(&w, UTIL_TIME_ZERO);
	jsonw_put_key(&w, "d");
	jsonw_put_bytes(&w, "<ok>&\xff", 6);
	jsonw_put_key(&w, "e");
	jsonw_put_bytes(&w, "", 0);
	jsonw_put_key(&w, "r");
	jsonw_put_raw(&w, "{\"x\":1}", 7);
	jsonw_close_object(&w);
	ASSERT_STRING_EQ(w.data, "{\"a\":[-9223372036854775808,"
	    "18446744073709551615,false,null],\"b\":{},"
	    "\"t\":\"0001-01-01T00:00:00Z\",\"d\":\"PG9rPib/\",\"e\":\"\","
	    "\"r\":{\"x\":1}}");
	ASSERT_SIZE_T_EQ(w.len, strlen(w.data));
	jsonw_clear(&w);
	ASSERT_PTR_EQ(w.data, NULL);
	jsonw_clear(&w);
}

static void
test_bounds(void)
{
	struct jsonw w;
	char *text;
	size_t len, i;

	TEST_START("the bound holds, and an error sticks");
	jsonw_init(&w, 6, 0);
	jsonw_put_str(&w, "abcd");
	ASSERT_ERR(jsonw_error(&w), CL_OK);
	ASSERT_SIZE_T_EQ(w.len, 6);
	jsonw_reset(&w);
	jsonw_put_str(&w, "abcde");
	ASSERT_ERR(jsonw_error(&w), CL_TOOBIG);
	jsonw_reset(&w);
	jsonw_put_bytes(&w, "abcd", 4);		/* 8 and the quotes */
	jsonw_put_null(&w);
	ASSERT_ERR(jsonw_error(&w), CL_TOOBIG);
	ASSERT_PTR_EQ(jsonw_take(&w, &len), NULL);
	jsonw_clear(&w);
	jsonw_init(&w, 1 << 20, 0);
	jsonw_open_array(&w);
	for (i = 0; i < 100000; i++)
		jsonw_put_int(&w, 7);
	jsonw_close_array(&w);
	text = jsonw_take(&w, &len);
	ASSERT_TRUE(text != NULL);
	ASSERT_SIZE_T_EQ(len, 200001);
	ASSERT_SIZE_T_EQ(strlen(text), len);
	free(text);
}

UNIT_MAIN(test_escapes, test_values, test_bounds)
