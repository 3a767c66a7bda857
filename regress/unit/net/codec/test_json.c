/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * net/codec/json: the strict scan and the typed decoder.
 */
#include "regress/unit/unit.h"

#include <bsd/string.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/util.h"
#include "common/msg/field.h"
#include "net/codec/json.h"

static struct jx x;

static void
check_scan(const char *text, size_t len, int want)
{
	unit_note("%.80s", text);
	ASSERT_ERR(jx_scan(&x, text, len), want);
	if (want != CL_OK)
		ASSERT_TRUE(x.why[0] != '\0' && x.ntokens == 0);
}

#define SCAN(text, want) check_scan(text, sizeof(text) - 1, want)

static void
test_grammar(void)
{
	TEST_START("RFC 8259, nothing more");
	jx_init(&x);
	SCAN("{}", CL_OK);
	SCAN(" [ ] ", CL_OK);
	SCAN("\t{\"a\" : [1, -0, 0.5, 1e9, 1E+9, 1.5e-3, true, false, null]"
	    "}\r\n", CL_OK);
	SCAN("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00aF\"", CL_OK);
	SCAN("\"\x7f\"", CL_OK);
	SCAN("", CL_FORMAT);
	SCAN("  ", CL_FORMAT);
	SCAN("{", CL_FORMAT);
	SCAN("{\"a\"}", CL_FORMAT);
	SCAN("{\"a\":}", CL_FORMAT);
	SCAN("{\"a\":1,}", CL_FORMAT);
	SCAN("{,}", CL_FORMAT);
	SCAN("{1:2}", CL_FORMAT);
	SCAN("{\"a\":1 \"b\":2}", CL_FORMAT);
	SCAN("[1,]", CL_FORMAT);
	SCAN("[,1]", CL_FORMAT);
	SCAN("[1 2]", CL_FORMAT);
	SCAN("[1", CL_FORMAT);
	SCAN("]", CL_FORMAT);
	SCAN("{} {}", CL_FORMAT);
	SCAN("{},", CL_FORMAT);
	SCAN("{}\0", CL_FORMAT);
	SCAN("\xef\xbb\xbf{}", CL_FORMAT);
	SCAN("'a'", CL_FORMAT);
	SCAN("tru", CL_FORMAT);
	SCAN("True", CL_FORMAT);
	SCAN("nul", CL_FORMAT);
	SCAN("NaN", CL_FORMAT);
	SCAN("// x\n{}", CL_FORMAT);
	SCAN("01", CL_FORMAT);
	SCAN("-", CL_FORMAT);
	SCAN("-a", CL_FORMAT);
	SCAN("+1", CL_FORMAT);
	SCAN(".5", CL_FORMAT);
	SCAN("1.", CL_FORMAT);
	SCAN("1e", CL_FORMAT);
	SCAN("0x10", CL_FORMAT);
	SCAN("\"", CL_FORMAT);
	SCAN("\"\\", CL_FORMAT);
	SCAN("\"\\x\"", CL_FORMAT);
	ASSERT_STRING_EQ(x.why, "offset 1: unknown escape");
	SCAN("\"\\u12\"", CL_FORMAT);
	ASSERT_STRING_EQ(x.why, "offset 1: unicode escape needs 4 digits");
	SCAN("\"\\u12g4\"", CL_FORMAT);
	SCAN("\"a\nb\"", CL_FORMAT);
	ASSERT_STRING_EQ(x.why, "offset 2: control character in a string");
	SCAN("\"a\0b\"", CL_FORMAT);
	jx_clear(&x);
}

static void
test_duplicates(void)
{
	char text[1024];
	size_t n, i;

	TEST_START("a member given twice is refused, however it is written");
	jx_init(&x);
	SCAN("{\"a\":1,\"b\":2}", CL_OK);
	SCAN("{\"a\":1,\"a\":1}", CL_FORMAT);
	SCAN("{\"x\":{\"a\":1,\"b\":[{}],\"a\":1}}", CL_FORMAT);
	SCAN("{\"a\":1,\"\\u0061\":1}", CL_FORMAT);
	SCAN("{\"\\u00e9\":1,\"\xc3\xa9\":1}", CL_FORMAT);
	SCAN("{\"\":1,\"\":1}", CL_FORMAT);
	SCAN("{\"a\":1,\"A\":1}", CL_OK);
	/* Two keys that differ in bytes that are not UTF-8. */
	SCAN("{\"k\xff\":1,\"k\xfe\":1}", CL_FORMAT);
	SCAN("{\"ab\":{\"a\":1},\"a\":{\"ab\":1}}", CL_OK);
	/* Many members take the sorting way. */
	n = (size_t)snprintf(text, sizeof(text), "{");
	for (i = 0; i < 40; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
		    "\"k%zu\":[%zu],", i * 7 % 40, i);
	snprintf(text + n, sizeof(text) - n, "\"z\":1}");
	check_scan(text, strlen(text), CL_OK);
	snprintf(text + n, sizeof(text) - n, "\"\\u006b5\":1}");
	check_scan(text, strlen(text), CL_FORMAT);
	jx_clear(&x);
}

static void
test_limits(void)
{
	char *text = malloc(2 * MAX_JSON_TOKENS + 2);
	size_t i, n;

	TEST_START("nesting, values and members are bounded");
	jx_init(&x);
	memset(text, '[', MAX_JSON_DEPTH_OPAQUE + 1);
	memset(text + MAX_JSON_DEPTH_OPAQUE, ']', MAX_JSON_DEPTH_OPAQUE);
	check_scan(text, 2 * MAX_JSON_DEPTH_OPAQUE, CL_OK);
	memset(text, '[', MAX_JSON_DEPTH_OPAQUE + 1);
	memset(text + MAX_JSON_DEPTH_OPAQUE + 1, ']',
	    MAX_JSON_DEPTH_OPAQUE + 1);
	check_scan(text, 2 * MAX_JSON_DEPTH_OPAQUE + 2, CL_FORMAT);
	/* The array is a value too. */
	n = 2 * (MAX_JSON_TOKENS - 1) + 1;
	for (i = 0; i < n; i++)
		text[i] = i == 0 ? '[' : i % 2 == 1 ? '1' : ',';
	text[n - 1] = ']';
	ASSERT_ERR(jx_scan(&x, text, n), CL_OK);
	ASSERT_SIZE_T_EQ(x.ntokens, MAX_JSON_TOKENS);
	text[n - 1] = ',';
	text[n] = '1';
	text[n + 1] = ']';
	ASSERT_ERR(jx_scan(&x, text, n + 2), CL_LIMIT);
	free(text);
	jx_clear(&x);
}

static void
test_members(void)
{
	size_t n = 0, i, room = 16 * (MAX_JSON_MEMBERS + 2);
	char *text = malloc(room);

	TEST_START("members of one object are bounded, the check is quick");
	jx_init(&x);
	for (i = 0; i < MAX_JSON_MEMBERS; i++)
		n += (size_t)snprintf(text + n, room - n, "%c\"%zu\":0",
		    i == 0 ? '{' : ',', i);
	snprintf(text + n, room - n, "}");
	ASSERT_ERR(jx_scan(&x, text, strlen(text)), CL_OK);
	snprintf(text + n, room - n, ",\"x\":0}");
	ASSERT_ERR(jx_scan(&x, text, strlen(text)), CL_LIMIT);
	free(text);
	jx_clear(&x);
}

static void
check_string(const char *text, size_t len, const char *want, size_t want_len,
    size_t want_replaced)
{
	size_t got_len, nreplaced;
	char *got;

	check_scan(text, len, CL_OK);
	ASSERT_ERR(jx_get_string(&x, 0, 64, &got, &got_len, &nreplaced),
	    CL_OK);
	ASSERT_BYTES_EQ(got, got_len, want, want_len);
	ASSERT_SIZE_T_EQ(nreplaced, want_replaced);
	free(got);
}

#define STRING(text, want, n)                                                  \
	check_string(text, sizeof(text) - 1, want, sizeof(want) - 1, n)
#define BAD "\xef\xbf\xbd"

static void
test_strings(void)
{
	size_t len;
	char *s;

	TEST_START("strings: escapes, bad bytes, surrogates, \\ufffd counted");
	jx_init(&x);
	STRING("\"\"", "", 0);
	STRING("\"a\\u0000b\"", "a\0b", 0);
	STRING("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t", 0);
	STRING("\"\\u00e9\\u20AC\\ud83d\\ude00\"",
	    "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 0);
	STRING("\"\xff\xc0\xaf\xed\xa0\x80\xc3\"",
	    BAD BAD BAD BAD BAD BAD BAD, 0);
	STRING("\"\\ud800\"", BAD, 0);
	STRING("\"\\udc00x\"", BAD "x", 0);
	STRING("\"\\ud800\\ud83d\\ude00\"", BAD "\xf0\x9f\x98\x80", 0);
	STRING("\"\\ud800\\n\"", BAD "\n", 0);
	STRING("\"" BAD "\\ufffd\\\\ufffd\\uFFFD\"",
	    BAD BAD "\\ufffd" BAD, 1);
	SCAN("\"12345\"", CL_OK);
	ASSERT_ERR(jx_get_string(&x, 0, 4, &s, &len, NULL), CL_TOOBIG);
	ASSERT_PTR_EQ(s, NULL);
	ASSERT_ERR(jx_get_string(&x, 0, 5, &s, &len, NULL), CL_OK);
	free(s);
	SCAN("5", CL_OK);
	ASSERT_ERR(jx_get_string(&x, 0, 4, &s, &len, NULL), CL_FORMAT);
	jx_clear(&x);
}

static void
check_int(const char *text, int want, int64_t v)
{
	int64_t got;

	check_scan(text, strlen(text), CL_OK);
	ASSERT_ERR(jx_get_int(&x, 0, &got), want);
	if (want == CL_OK)
		ASSERT_INT_EQ(got, v);
}

static void
check_uint(const char *text, int want, uint64_t v)
{
	uint64_t got;

	check_scan(text, strlen(text), CL_OK);
	ASSERT_ERR(jx_get_uint(&x, 0, &got), want);
	if (want == CL_OK)
		ASSERT_U64_EQ(got, v);
}

static void
test_integers(void)
{
	TEST_START("integers are integers and fit");
	jx_init(&x);
	check_int("9223372036854775807", CL_OK, INT64_MAX);
	check_int("9223372036854775808", CL_FORMAT, 0);
	check_int("-9223372036854775808", CL_OK, INT64_MIN);
	check_int("-9223372036854775809", CL_FORMAT, 0);
	check_int("-0", CL_OK, 0);
	check_int("1.0", CL_FORMAT, 0);
	check_int("1e3", CL_FORMAT, 0);
	check_int("99999999999999999999999999", CL_FORMAT, 0);
	check_int("\"1\"", CL_FORMAT, 0);
	check_int("true", CL_FORMAT, 0);
	check_int("null", CL_OK, 0);
	check_uint("18446744073709551615", CL_OK, UINT64_MAX);
	check_uint("18446744073709551616", CL_FORMAT, 0);
	check_uint("-0", CL_FORMAT, 0);
	check_uint("-1", CL_FORMAT, 0);
	check_uint("0", CL_OK, 0);
	jx_clear(&x);
}

#define DEF_FILE "regress/unit/net/codec/thing.def"
#include "common/msg/def_struct.h"
#define DEF_FILE "regress/unit/net/codec/thing.def"
#include "common/msg/def_table.h"

/* Decode; the reason must be `why` (NULL: success). */
static void
check_decode(const char *text, struct thing *v, const char *why)
{
	check_scan(text, strlen(text), CL_OK);
	ASSERT_INT_EQ(jx_decode(&x, 0, &thing_table, v) == CL_OK,
	    why == NULL);
	if (why != NULL)
		ASSERT_STRING_EQ(x.why, why);
}

static void
test_decode(void)
{
	struct thing v;

	TEST_START("a table reads what it knows, as Go would");
	jx_init(&x);
	check_decode("{\"NAME\":\"a\",\"\\u006e\":3,\"x\":[{}],\"ta\xc5\xbf"
	    "\xe2\x84\xaa\":\"\\ufffd\\u0000\",\"data\":\"aG\\nkK\","
	    "\"at\":\"1970-01-01T00:00:01Z\",\"list\":[null,\"b\"],"
	    "\"inner\":{\"n\":1},\"raw\":{ \"q\" : [ 1 , \" \\\" \" ] }}", &v,
	    NULL);
	ASSERT_STRING_EQ(v.name, "a");
	ASSERT_INT_EQ(v.n, 3);
	ASSERT_BYTES_EQ(v.text.data, v.text.len, BAD "\0", 4);
	ASSERT_SIZE_T_EQ(v.text.nreplaced, 1);
	ASSERT_BYTES_EQ(v.data, v.data_len, "hi\n", 3);
	ASSERT_INT_EQ(v.at, 1000000000);
	ASSERT_SIZE_T_EQ(v.nlist, 2);
	ASSERT_STRING_EQ(v.list[0], "");
	ASSERT_INT_EQ(v.inner->n, 1);
	ASSERT_TRUE(v.inner->at == UTIL_TIME_ZERO);
	ASSERT_STRING_EQ(v.raw, "{\"q\":[1,\" \\\" \"]}");
	field_clear(&thing_table, &v);
	check_decode("{\"name\":null,\"list\":null,\"inner\":null,\"raw\":null,"
	    "\"data\":null,\"at\":null,\"task\":null,\"n\":null}", &v, NULL);
	ASSERT_TRUE(v.name == NULL && v.list == NULL && v.inner == NULL &&
	    v.raw == NULL && v.data == NULL && v.at == UTIL_TIME_ZERO);
	check_decode("null", &v, NULL);
	ASSERT_TRUE(v.at == UTIL_TIME_ZERO);
	jx_clear(&x);
}

static void
test_refused(void)
{
	struct thing v;

	TEST_START("a refusal names the member");
	jx_init(&x);
	check_decode("[]", &v, ": not an object");
	check_decode("{\"name\":5}", &v, "name: not a string");
	check_decode("{\"name\":\"123456789\"}", &v, "name: too long");
	check_decode("{\"name\":\"a\\u0000b\"}", &v, "name: holds a NUL");
	check_decode("{\"n\":11}", &v, "n: 11 is out of range");
	check_decode("{\"n\":1.0}", &v, "n: not an integer");
	check_decode("{\"task\":\"123456789\"}", &v, "task: too long");
	check_decode("{\"data\":\"aGkK\",\"DATA\":\"\"}", &v,
	    "data: given twice");
	check_decode("{\"data\":\"aGkKaA==\"}", &v, "data: too long");
	check_decode("{\"data\":\"aGk\"}", &v, "data: not base64");
	check_decode("{\"at\":\"2031-05-04\"}", &v, "at: not a time");
	check_decode("{\"list\":[\"a\",{}]}", &v, "list[1]: not a string");
	check_decode("{\"list\":[\"a\",\"b\",\"c\"]}", &v,
	    "list: 3 elements, at most 2");
	check_decode("{\"list\":{}}", &v, "list: not an array");
	check_decode("{\"inner\":{\"inner\":{\"n\":-1}}}", &v,
	    "inner.inner.n: -1 is out of range");
	check_decode("{\"raw\":[1,2,3,4,5,6,7,8]}", &v, "raw: too long");
	jx_clear(&x);
}

static void
test_prose(void)
{
	struct thing v;

	TEST_START("prose is cut at a code point and loses its controls");
	jx_init(&x);
	check_decode("{\"prose\":\"a\\u001b[1m\\n\\u0000\\t\\u007f\"}", &v,
	    NULL);
	ASSERT_STRING_EQ(v.prose, "a [1m\n \t ");
	field_clear(&thing_table, &v);
	check_decode("{\"prose\":\"1234567890123456\"}", &v, NULL);
	ASSERT_STRING_EQ(v.prose, "1234567890123456");
	field_clear(&thing_table, &v);
	check_decode("{\"prose\":\"123456789\xc3\xa9" "123456\"}", &v, NULL);
	ASSERT_STRING_EQ(v.prose, "123456789 [cut]");
	field_clear(&thing_table, &v);
	jx_clear(&x);
}

static int
on_string(const char *key, const char *s, size_t len, void *arg)
{
	char *out = arg;

	snprintf(out + strlen(out), 100, "%s=%.*s;", key, (int)len, s);
	return CL_OK;
}

static void
test_walk(void)
{
	char out[256] = "";
	int64_t v;
	uint32_t at;

	TEST_START("foreign shapes: every string with its key");
	jx_init(&x);
	SCAN("{\"a\":\"1\",\"b\":[\"2\",{\"c\":\"3\xff\"},7,null]}", CL_OK);
	ASSERT_ERR(jx_walk_strings(&x, 0, on_string, out), CL_OK);
	ASSERT_STRING_EQ(out, "a=1;b=2;c=3" BAD ";");
	at = jx_find_member(&x, 0, "B");
	ASSERT_INT_EQ(x.tokens[at].type, JX_ARRAY);
	ASSERT_ERR(jx_get_int(&x, at + 5, &v), CL_OK);
	ASSERT_INT_EQ(v, 7);
	ASSERT_INT_EQ(jx_find_member(&x, 0, "z"), 0);
	ASSERT_INT_EQ(jx_find_member(&x, at, "z"), 0);
	jx_clear(&x);
}

/* One byte c at a place of a string of fill. */
static void
check_byte(int fill, size_t len, size_t at, int c)
{
	char text[64], *s;
	size_t n, nreplaced;
	int ends = c == '"' || c == '\\' || c < 0x20;

	unit_note("byte %d at %zu of %zu, others %d", c, at, len, fill);
	text[0] = '"';
	memset(text + 1, fill, len);
	text[at + 1] = (char)c;
	text[len + 1] = '"';
	ASSERT_ERR(jx_scan(&x, text, len + 2), ends ? CL_FORMAT : CL_OK);
	if (ends)
		return;
	ASSERT_ERR(jx_get_string(&x, 0, 256, &s, &n, &nreplaced), CL_OK);
	ASSERT_U64_EQ(n, c < 0x80 ? len : len + 2);
	ASSERT_INT_EQ(memcmp(s, text + 1, at), 0);
	ASSERT_INT_EQ(memcmp(s + at, c < 0x80 ? text + at + 1 :
	    "\xef\xbf\xbd", c < 0x80 ? len - at : 3), 0);
	free(s);
}

static void
test_places(void)
{
	/* Neighbours of what is looked for, which a carry would reach. */
	static const int fills[] = { 'a', ' ', '!', '#', '[', ']', 0x7f };
	size_t f, len, at;
	int c;

	TEST_START("every byte at every place of a string");
	jx_init(&x);
	for (f = 0; f < sizeof(fills) / sizeof(fills[0]); f++) {
		for (len = 1; len <= 34; len++) {
			for (at = 0; at < len; at++) {
				for (c = 0; c < 256; c++)
					check_byte(fills[f], len, at, c);
			}
		}
	}
	jx_clear(&x);
}


/* Two escapes, before the letters a and b of a string of len letters, each
 * as many bytes as letter has. */
static void
check_escapes(const char *escape, const char *is, const char *letter,
    size_t len, size_t a, size_t b)
{
	char text[512], want[256], *s;
	size_t i, n, got;

	text[0] = '"';
	text[1] = want[0] = '\0';
	for (i = 0; i <= len; i++) {
		if (i == a || i == b) {
			strlcat(text, escape, sizeof(text));
			strlcat(want, is, sizeof(want));
		}
		if (i < len) {
			strlcat(text, letter, sizeof(text));
			strlcat(want, letter, sizeof(want));
		}
	}
	n = strlcat(text, "\"", sizeof(text));
	unit_note("%s", text);
	ASSERT_ERR(jx_scan(&x, text, n), CL_OK);
	ASSERT_ERR(jx_get_string(&x, 0, 256, &s, &got, NULL), CL_OK);
	ASSERT_BYTES_EQ(s, got, want, strlen(want));
	ASSERT_INT_EQ(s[got], '\0');
	free(s);
	/* Without its end it is none, wherever a block would begin. */
	ASSERT_ERR(jx_scan(&x, text, n - 1), CL_FORMAT);
}

static void
test_escapes(void)
{
	static const struct {
		const char *escape, *is;
	} rows[] = { { "\\n", "\n" }, { "\\\"", "\"" }, { "\\\\", "\\" },
		{ "\\u0041", "A" }, { "\\ud83d\\ude00", "\xf0\x9f\x98\x80" },
		{ "\\ud800", "\xef\xbf\xbd" } };
	static const char *const letters[] = { "a", "\xc3\xa9",
		"\xe2\x9c\x93", "\xf0\x9f\x98\x80" };
	size_t r, l, len, a, b;

	TEST_START("two escapes, each at every place of a string");
	jx_init(&x);
	for (r = 0; r < sizeof(rows) / sizeof(rows[0]); r++)
		for (l = 0; l < sizeof(letters) / sizeof(letters[0]); l++)
			for (len = 0; len <= 50 / (l + 1); len++)
				for (a = 0; a <= len; a++)
					for (b = a; b <= len; b++)
						check_escapes(rows[r].escape,
						    rows[r].is, letters[l],
						    len, a, b);
	jx_clear(&x);
}

UNIT_MAIN(test_grammar, test_places, test_escapes, test_duplicates,
    test_limits, test_members, test_strings, test_integers, test_decode,
    test_refused, test_prose, test_walk)
