/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Enrollment bundles and the flat JSON reader below them.
 */
#include "common/base/err.h"
#include "common/json/flatjson.h"
#include "common/model/bundle.h"
#include "regress/unit/unit.h"

#define VECTOR \
    "cloopenroll1.eyJzZXJ2ZXIiOiJ3c3M6Ly9odWIuZXhhbXBsZS9hcGkvZXhlY3V0b3JzL2" \
    "Nvbm5lY3QiLCJ0b2tlbiI6ImNsZXQxLkFBRUNBd1FGQmdjSUNRb0wuSUNFaUl5UWxKaWNv" \
    "S1NvckxDMHVMekF4TWpNME5UWTNPRGs2T3p3OVBqOC5lNTdmZjY4ZWY4ODcyZTczZGYwMj" \
    "RlZWY0NDc1YTY0YiIsImVucm9sbG1lbnRfaWQiOiJBQUVDQXdRRkJnY0lDUW9MIiwibmFt" \
    "ZSI6ImVkZ2UtMSIsImV4cGlyZXNfYXQiOiIyMDI2LTAxLTAyVDAzOjA0OjA1WiJ9"
#define TOKEN "clet1.AAECAwQFBgcICQoL.ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6" \
    "Ozw9Pj8.e57ff68ef8872e73df024eef4475a64b"

static void
test_vector(void)
{
	struct bundle b;
	const char *why;
	char *text;

	TEST_START("a bundle decodes");
	ASSERT_ERR(bundle_parse(VECTOR, strlen(VECTOR), &b, &why), CL_OK);
	ASSERT_STRING_EQ(b.server, "wss://hub.example/api/executors/connect");
	ASSERT_STRING_EQ(b.token, TOKEN);
	ASSERT_STRING_EQ(b.enrollment_id, "AAECAwQFBgcICQoL");
	ASSERT_STRING_EQ(b.name, "edge-1");
	ASSERT_STRING_EQ(b.expires_at, "2026-01-02T03:04:05Z");
	ASSERT_PTR_EQ(b.pin, NULL);
	ASSERT_PTR_EQ(b.workdir_root, NULL);
	TEST_START("and is what we write");
	ASSERT_ERR(bundle_format(&b, &text), CL_OK);
	ASSERT_STRING_EQ(text, VECTOR);
	free(text);
	bundle_clear(&b);
	TEST_START("white space around, line ends inside");
	ASSERT_ERR(bundle_parse("\n " VECTOR " \r\n", strlen(VECTOR) + 5, &b,
	    &why), CL_OK);
	bundle_clear(&b);
	text = strdup("cloopenroll1.eyJzZXJ2ZXIi\r\nOiJ4IiwidG9rZW4iOiJ5In0");
	ASSERT_ERR(bundle_parse(text, strlen(text), &b, &why), CL_OK);
	ASSERT_STRING_EQ(b.token, "y");
	free(text);
	bundle_clear(&b);
}

static void
test_bad_bundle(void)
{
	static const char *const t[] = { "", "cloopenroll1.",
		"cloopenroll1.!!!!", "cloopenroll1.e30", "cloopenroll2.e30",
		"CLOOPENROLL1.e30", "cloopenroll1.e30=",
		/* {"server":"x"} and {"server":"x","token":" "} */
		"cloopenroll1.eyJzZXJ2ZXIiOiJ4In0",
		"cloopenroll1.eyJzZXJ2ZXIiOiJ4IiwidG9rZW4iOiIgIn0",
		/* {"server":1,"token":"y"} */
		"cloopenroll1.eyJzZXJ2ZXIiOjEsInRva2VuIjoieSJ9",
		/* [] */
		"cloopenroll1.W10" };
	struct bundle b;
	const char *why;
	size_t i;

	TEST_START("bad bundles are errors with a reason");
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		unit_note("%s", t[i]);
		ASSERT_INT_NE(bundle_parse(t[i], strlen(t[i]), &b, &why),
		    CL_OK);
		ASSERT_TRUE(why != NULL && *why != '\0');
		ASSERT_PTR_EQ(b.server, NULL);
	}
}

static int
parse(const char *text, struct flatjson *doc)
{
	return flatjson_parse(text, strlen(text), doc);
}

static void
test_flat_good(void)
{
	struct flatjson doc;
	const char *s;
	char *text;
	size_t len;

	TEST_START("strings, escapes, surrogates, other scalars");
	ASSERT_ERR(parse(" { \"a\" : \"x\\u00e9\\ud83d\\ude00\\n\\/\", \"b\":"
	    "-1.5e+3 ,\"c\":null,\"d\":true,\"e\":\"\" }\n", &doc), CL_OK);
	ASSERT_ERR(flatjson_find_string(&doc, "a", &s), CL_OK);
	ASSERT_STRING_EQ(s, "x\xc3\xa9\xf0\x9f\x98\x80\n/");
	ASSERT_ERR(flatjson_find_string(&doc, "b", &s), CL_FORMAT);
	ASSERT_ERR(flatjson_find_string(&doc, "c", &s), CL_NOTFOUND);
	ASSERT_ERR(flatjson_find_string(&doc, "z", &s), CL_NOTFOUND);
	TEST_START("what is not understood is written back as it was");
	ASSERT_ERR(flatjson_put_string(&doc, "a", "<&>\"\\\x01\t\xe2\x80\xa8"),
	    CL_OK);
	flatjson_del_member(&doc, "d");
	ASSERT_ERR(flatjson_format(&doc, 0, &text, &len), CL_OK);
	ASSERT_STRING_EQ(text, "{\"a\":\"\\u003c\\u0026\\u003e\\\"\\\\\\u0001"
	    "\\t\\u2028\",\"b\":-1.5e+3,\"c\":null,\"e\":\"\"}");
	ASSERT_SIZE_T_EQ(len, strlen(text));
	free(text);
	flatjson_clear(&doc);
	TEST_START("indented as Go does it");
	flatjson_init(&doc);
	ASSERT_ERR(flatjson_format(&doc, 2, &text, &len), CL_OK);
	ASSERT_STRING_EQ(text, "{}\n");
	free(text);
	ASSERT_ERR(flatjson_put_string(&doc, "a", "b"), CL_OK);
	ASSERT_ERR(flatjson_put_string(&doc, "c", "d"), CL_OK);
	ASSERT_ERR(flatjson_format(&doc, 2, &text, &len), CL_OK);
	ASSERT_STRING_EQ(text, "{\n  \"a\": \"b\",\n  \"c\": \"d\"\n}\n");
	free(text);
	flatjson_clear(&doc);
}

static void
test_flat_bad(void)
{
	static const char *const t[] = { "", "{", "}", "[]", "\"a\"", "null",
		"{\"a\"}", "{\"a\":}", "{\"a\":\"b\",}", "{,}",
		"{\"a\":\"b\"}x",
		"{a:\"b\"}", "{'a':'b'}", "{\"a\":\"b\" \"c\":\"d\"}",
		"{\"a\":{}}", "{\"a\":[]}", "{\"a\":\"b\",\"a\":\"c\"}",
		"{\"a\":\"\\u0000\"}", "{\"a\":\"\\ud800\"}",
		"{\"a\":\"\\udc00\\ud800\"}", "{\"a\":\"\\ud800\\u0041\"}",
		"{\"a\":\"\\/\n\"}", "{\"\\n\x01\":1}",
		"{\"a\":\"\\x\"}", "{\"a\":\"\n\"}", "{\"a\":\"\\u12g4\"}",
		"{\"a\":\"\xff\"}", "{\"a\":\"\xc0\x80\"}", "{\"a\":01}",
		"{\"a\":-}", "{\"a\":1.}", "{\"a\":1e}", "{\"a\":+1}",
		"{\"a\":NaN}", "{\"a\":truex}", "{\"a\":\"b", "{\"a\":\"\\",
		"{\"a\":\"\\u12", "\xef\xbb\xbf{}", "{} {}" };
	char big[FLATJSON_MAX_LEN + 2];
	struct flatjson doc;
	size_t i, n;

	TEST_START("everything else is refused");
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		unit_note("%s", t[i]);
		ASSERT_ERR(parse(t[i], &doc), CL_FORMAT);
		ASSERT_SIZE_T_EQ(doc.nmembers, 0);
	}
	ASSERT_ERR(flatjson_parse("{\"a\":\"\0\"}", 9, &doc), CL_FORMAT);
	TEST_START("length and members are bounded (flatjson.h)");
	memset(big, ' ', sizeof(big));
	memcpy(big, "{}", 2);
	ASSERT_ERR(flatjson_parse(big, FLATJSON_MAX_LEN, &doc), CL_OK);
	ASSERT_ERR(flatjson_parse(big, FLATJSON_MAX_LEN + 1, &doc),
	    CL_TOOBIG);
	for (n = FLATJSON_MAX_MEMBERS; n <= FLATJSON_MAX_MEMBERS + 1; n++) {
		big[0] = '\0';
		for (i = 0; i < n; i++)
			snprintf(big + strlen(big), 32, "%s\"k%zu\":\"\"",
			    i == 0 ? "{" : ",", i);
		snprintf(big + strlen(big), 2, "}");
		ASSERT_ERR(parse(big, &doc), n <= FLATJSON_MAX_MEMBERS ?
		    CL_OK : CL_TOOBIG);
		flatjson_clear(&doc);
	}
}

UNIT_MAIN(test_vector, test_bad_bundle, test_flat_good, test_flat_bad)
