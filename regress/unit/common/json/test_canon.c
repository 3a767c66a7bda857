/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * common/json/canon: JSON that has exactly one spelling.
 */
#include "regress/unit/unit.h"

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/json/canon.h"

static const char ref[] =
    "{\"schema_version\":1,\"artifact_id\":\"art_01jddjs2g0fc0800000000000a\","
    "\"kind\":\"input\",\"scope\":{\"levels\":[{\"key\":\"workspace\","
    "\"value\":\"ws_x\"},{\"key\":\"project\",\"value\":\"p1\"}]},"
    "\"principal\":\"alice@example\",\"name\":\"greeting\",\"media_type\":"
    "\"text/plain\",\"sha256\":\"5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af"
    "34d08286a2e846f6be03\",\"bytes\":6,\"source\":\"file:greeting.txt\","
    "\"created_at\":\"2026-11-29T00:00:00Z\",\"retain_until\":"
    "\"2026-11-30T00:00:00Z\"}";

static const char *const good[] = {
	ref, "{}",
	"{\"a\":null,\"b\":true,\"c\":false,\"d\":0,\"e\":[],\"f\":{}}",
	"{\"a\":9223372036854775807}", "{\"\":\"\"}", "{\"a\":[[[1,2],3]]}",
	"{\"s\":\"a\\\"\\\\/\x7f<&>\xe2\x80\xa8\\n\\u0001\xc3\xa9\"}",
	"{\"\\b\\t\\n\\f\\r\\u001f\\u000b\":1}", "{\"B\":1,\"A\":2}",
};

static const char *const bad[] = {
	/* not one object in valid UTF-8 */
	"", "1", "[]", "\"x\"", "null", "\xef\xbb\xbf{}", "{\"a\":\"\\u0000\"}",
	"{\"a\":\"\xc0\x80\"}", "{\"a\":\"\xed\xa0\x80\"}", "{\"a\":\"\xff\"}",
	"{}{}", "{}x", "{}\n", "{", "{\"a\"}", "{\"a\":}", "{a:1}", "{'a':1}",
	"{\"a\":1,}", "{,}", "{\"a\":[1,]}", "{\"a\":[,1]}", "{\"a\":[1}",
	"{\"a\":1]", "{\"a\":[1 2]}",
	/* white space */
	" {}", "{ }",
	"{\"a\": 1}", "{\"a\":1 }", "{\"a\" :1}", "{\"a\":[1, 2]}",
	/* a key twice */
	"{\"a\":1,\"a\":2}", "{\"a\":1,\"b\":2,\"a\":1}",
	/* not a plain integer, or too large */
	"{\"a\":-1}", "{\"a\":-0}", "{\"a\":+1}", "{\"a\":01}", "{\"a\":00}",
	"{\"a\":1.0}", "{\"a\":1e3}", "{\"a\":0x1}", "{\"a\":.5}",
	"{\"a\":9223372036854775808}", "{\"a\":18446744073709551616}",
	"{\"a\":99999999999999999999999}", "{\"a\":NaN}",
	/* another spelling of the same character */
	"{\"a\":\"\\/\"}", "{\"a\":\"\\u0041\"}", "{\"a\":\"\\u000a\"}",
	"{\"a\":\"\\u0022\"}", "{\"a\":\"\\u005c\"}", "{\"a\":\"\\u001F\"}",
	"{\"a\":\"\\u007f\"}", "{\"a\":\"\\u00e9\"}", "{\"a\":\"\\u2028\"}",
	"{\"a\":\"\\ud83d\\ude00\"}", "{\"a\":\"\\x41\"}", "{\"a\":\"\\\"}",
	"{\"a\":\"\\u00\"}", "{\"a\":\"\\u001\"}", "{\"a\":\"\\u00g1\"}",
	"{\"a\":\"\n\"}", "{\"a\":\"\t\"}", "{\"a\":\"\x1f\"}", "{\"a\":\"x}",
	"{\"a\":\"\\u0008\"}", "{\"a\":\"\\u0009\"}", "{\"a\":\"\\u000c\"}",
	"{\"a\":\"\\u000d\"}", "{\"a\\/\":1}",
	/* words */
	"{\"a\":nul}", "{\"a\":True}", "{\"a\":falsee}", "{\"a\":undefined}",
};

static void
test_round_trip(void)
{
	struct canon *root;
	char *text, *exact;
	size_t i, len;

	TEST_START("what is read is written back byte for byte");
	ASSERT_INT_EQ(strlen(ref), 430);
	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		unit_note("%s", good[i]);
		len = strlen(good[i]);
		/* No terminator: reading beyond the end would be seen. */
		exact = malloc(len);
		memcpy(exact, good[i], len);
		ASSERT_ERR(canon_parse(exact, len, &root), CL_OK);
		free(exact);
		ASSERT_ERR(canon_format(root, &text, &len), CL_OK);
		ASSERT_STRING_EQ(text, good[i]);
		ASSERT_INT_EQ(len, strlen(good[i]));
		canon_free(root);
		free(text);
	}
}

static void
test_refused(void)
{
	struct canon *root;
	char *exact;
	size_t i, len;

	TEST_START("every other spelling is refused");
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		unit_note("%s", bad[i]);
		len = strlen(bad[i]);
		exact = malloc(len == 0 ? 1 : len);
		memcpy(exact, bad[i], len);
		ASSERT_ERR(canon_parse(exact, len, &root), CL_FORMAT);
		ASSERT_PTR_EQ(root, NULL);
		free(exact);
	}
	ASSERT_ERR(canon_parse("{\"a\":\"\0\"}", 9, &root), CL_FORMAT);
	ASSERT_ERR(canon_parse("{\"a\":1\0}", 8, &root), CL_FORMAT);
	TEST_START("every prefix of a document is refused");
	for (len = 0; len < strlen(ref); len++) {
		unit_note("%zu bytes", len);
		exact = malloc(len == 0 ? 1 : len);
		memcpy(exact, ref, len);
		ASSERT_ERR(canon_parse(exact, len, &root), CL_FORMAT);
		free(exact);
	}
}

/* An object with n - 1 arrays or objects inside each other. */
static int
parse_nested(int n, int arrays)
{
	struct canon *root = NULL;
	char text[512] = "{\"a\":";
	size_t len = strlen(text);
	int i, r;

	for (i = 1; i < n; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s",
		    arrays ? "[" : i == n - 1 ? "{" : "{\"a\":");
	for (i = 1; i < n; i++)
		text[len++] = arrays ? ']' : '}';
	text[len++] = '}';
	r = canon_parse(text, len, &root);
	canon_free(root);
	return r;
}

/* The i-th member of an object, with what comes before it. */
static size_t
put_member(char *dst, size_t i)
{
	return (size_t)snprintf(dst, 32, "%s\"k%zu\":1", i == 0 ? "{" : ",",
	    i);
}

static void
test_limits(void)
{
	struct canon *root;
	char *text, *d;
	size_t i;

	TEST_START("depth 16 is read, 17 is not");
	ASSERT_ERR(parse_nested(MAX_CANON_DEPTH, 0), CL_OK);
	ASSERT_ERR(parse_nested(MAX_CANON_DEPTH + 1, 0), CL_LIMIT);
	ASSERT_ERR(parse_nested(MAX_CANON_DEPTH, 1), CL_OK);
	ASSERT_ERR(parse_nested(MAX_CANON_DEPTH + 1, 1), CL_LIMIT);
	TEST_START("members of an object, values of a document");
	text = malloc(MAX_CANON_LEN + 2);
	for (d = text, i = 0; i < MAX_CANON_MEMBERS; i++)
		d += put_member(d, i);
	*d = '}';
	ASSERT_ERR(canon_parse(text, (size_t)(d + 1 - text), &root), CL_OK);
	ASSERT_INT_EQ(canon_get_count(root), MAX_CANON_MEMBERS);
	canon_free(root);
	d += put_member(d, i);
	*d = '}';
	ASSERT_ERR(canon_parse(text, (size_t)(d + 1 - text), &root),
	    CL_LIMIT);
	memcpy(text, "{\"a\":[", 6);
	for (d = text + 6, i = 0; i < MAX_CANON_VALUES - 2; i++) {
		*d++ = '1';
		*d++ = ',';
	}
	memcpy(d - 1, "]}", 2);
	ASSERT_ERR(canon_parse(text, (size_t)(d + 1 - text), &root), CL_OK);
	canon_free(root);
	memcpy(d - 1, ",1]}", 4);
	ASSERT_ERR(canon_parse(text, (size_t)(d + 3 - text), &root),
	    CL_LIMIT);
	TEST_START("a document of MAX_CANON_LEN, and one byte more");
	memset(text, 'x', MAX_CANON_LEN + 1);
	memcpy(text, "{\"a\":\"", 6);
	memcpy(text + MAX_CANON_LEN - 2, "\"}", 2);
	ASSERT_ERR(canon_parse(text, MAX_CANON_LEN, &root), CL_OK);
	canon_free(root);
	ASSERT_ERR(canon_parse(text, MAX_CANON_LEN + 1, &root), CL_TOOBIG);
	free(text);
}

static void
test_access(void)
{
	static const char text[] =
	    "{\"n\":7,\"b\":true,\"s\":\"x\",\"l\":[1]}";
	struct canon *root;
	const struct canon *v, *e;
	const char *s;
	size_t len;
	int64_t n;
	int b;

	TEST_START("accessors check the type and the presence");
	ASSERT_ERR(canon_parse(text, strlen(text), &root), CL_OK);
	ASSERT_INT_EQ(canon_get_type(root), CANON_OBJECT);
	ASSERT_INT_EQ(canon_get_count(root), 4);
	ASSERT_ERR(canon_find_member(root, "n", &v), CL_OK);
	ASSERT_ERR(canon_get_int(v, &n), CL_OK);
	ASSERT_INT_EQ(n, 7);
	ASSERT_ERR(canon_get_bool(v, &b), CL_FORMAT);
	ASSERT_ERR(canon_get_string(v, &s, &len), CL_FORMAT);
	ASSERT_ERR(canon_get_element(v, 0, &e), CL_FORMAT);
	ASSERT_ERR(canon_find_member(v, "n", &e), CL_FORMAT);
	ASSERT_ERR(canon_find_member(root, "N", &v), CL_NOTFOUND);
	ASSERT_PTR_EQ(v, NULL);
	ASSERT_ERR(canon_get_member(root, 1, &s, &v), CL_OK);
	ASSERT_STRING_EQ(s, "b");
	ASSERT_ERR(canon_get_bool(v, &b), CL_OK);
	ASSERT_INT_EQ(b, 1);
	ASSERT_ERR(canon_get_member(root, 4, &s, &v), CL_NOTFOUND);
	ASSERT_ERR(canon_find_member(root, "l", &v), CL_OK);
	ASSERT_ERR(canon_get_element(v, 0, &e), CL_OK);
	ASSERT_ERR(canon_get_element(v, 1, &e), CL_NOTFOUND);
	ASSERT_ERR(canon_get_int(root, &n), CL_FORMAT);
	canon_free(root);
	canon_free(NULL);
}

static void
test_build(void)
{
	struct canon *root = canon_new_object(), *l = canon_new_array(), *v;
	char *text;
	size_t len;

	TEST_START("a built document is canonical");
	ASSERT_ERR(canon_add_element(l, canon_new_int(INT64_MAX)), CL_OK);
	ASSERT_ERR(canon_add_element(l, canon_new_string("a\n", 2)), CL_OK);
	ASSERT_ERR(canon_add_member(root, "l", l), CL_OK);
	ASSERT_ERR(canon_add_member(root, "n", canon_new_null()), CL_OK);
	ASSERT_ERR(canon_add_member(root, "b", canon_new_bool(5)), CL_OK);
	ASSERT_ERR(canon_format(root, &text, &len), CL_OK);
	ASSERT_STRING_EQ(text,
	    "{\"l\":[9223372036854775807,\"a\\n\"],\"n\":null,\"b\":true}");
	free(text);
	TEST_START("what has no canonical form is not written");
	v = canon_new_null();
	ASSERT_ERR(canon_add_member(root, "n", v), CL_EXISTS);
	ASSERT_ERR(canon_add_element(root, v), CL_FORMAT);
	ASSERT_ERR(canon_add_member(l, "x", v), CL_FORMAT);
	ASSERT_ERR(canon_add_member(root, "x", NULL), CL_NOMEM);
	canon_free(v);
	ASSERT_ERR(canon_add_element(l, canon_new_int(-1)), CL_OK);
	ASSERT_ERR(canon_format(root, &text, &len), CL_FORMAT);
	ASSERT_PTR_EQ(text, NULL);
	canon_free(root);
	v = canon_new_string("\xff", 1);
	ASSERT_ERR(canon_format(v, &text, &len), CL_FORMAT);
	canon_free(v);
	v = canon_new_string("a\0b", 3);
	ASSERT_ERR(canon_format(v, &text, &len), CL_FORMAT);
	canon_free(v);
}

UNIT_MAIN(test_round_trip, test_refused, test_limits, test_access, test_build)
