/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * common/base/b64: RFC 4648 §10 vectors and the liberties of Go's decoder.
 */
#include "regress/unit/unit.h"

#include "common/base/b64.h"
#include "common/base/err.h"

static const struct {
	const char *raw, *std, *url;
} rows[] = {
	{ "", "", "" },
	{ "f", "Zg==", "Zg" },
	{ "fo", "Zm8=", "Zm8" },
	{ "foo", "Zm9v", "Zm9v" },
	{ "foob", "Zm9vYg==", "Zm9vYg" },
	{ "fooba", "Zm9vYmE=", "Zm9vYmE" },
	{ "foobar", "Zm9vYmFy", "Zm9vYmFy" },
	{ "\xfb\xff\xfe", "+//+", "-__-" },
};

static void
test_vectors(void)
{
	uint8_t raw[16];
	char text[32];
	size_t i, len, n;

	TEST_START("RFC 4648 §10: both alphabets, both ways");
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unit_note("row %zu", i);
		n = strlen(rows[i].raw);
		ASSERT_INT_EQ(b64_encode(rows[i].raw, n, text), B64_LEN(n));
		ASSERT_STRING_EQ(text, rows[i].std);
		ASSERT_ERR(b64_decode(text, strlen(text), raw, sizeof(raw),
		    &len), CL_OK);
		ASSERT_BYTES_EQ(raw, len, rows[i].raw, n);
		b64url_encode(rows[i].raw, n, text);
		ASSERT_STRING_EQ(text, rows[i].url);
		ASSERT_ERR(b64url_decode(text, strlen(text), raw,
		    sizeof(raw), &len), CL_OK);
		ASSERT_BYTES_EQ(raw, len, rows[i].raw, n);
	}
}

static void
test_refused(void)
{
	static const char *const bad[] = { "Z", "Zg", "Zg=", "Zg===", "Zm8",
	    "Zm9vY", "=", "====", "Z===", "Zg==Zg==", "Zm=8", "Zm9v=", " Zg==",
	    "Zg= =", "Z-==", "Zm9\xc3", "Zm8==", "Zm9v====" };
	static const char *const bad_url[] = { "Z", "Zg==", "Zm9v\n", "Z+",
	    "Z/", " Zg", "Zm9vY" };
	uint8_t raw[16];
	size_t i, len;

	TEST_START("padding, alphabet and white space are checked");
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		unit_note("\"%s\"", bad[i]);
		ASSERT_ERR(b64_decode(bad[i], strlen(bad[i]), raw,
		    sizeof(raw), &len), CL_FORMAT);
		ASSERT_INT_EQ(len, 0);
	}
	for (i = 0; i < sizeof(bad_url) / sizeof(bad_url[0]); i++) {
		unit_note("url \"%s\"", bad_url[i]);
		ASSERT_ERR(b64url_decode(bad_url[i], strlen(bad_url[i]), raw,
		    sizeof(raw), &len), CL_FORMAT);
	}
	ASSERT_ERR(b64_decode("Zm\0v", 4, raw, sizeof(raw), &len), CL_FORMAT);
}

static void
test_liberties(void)
{
	static const char text[] = "\r\nZm\n9v\rYg\n=\r\n=\n\n";
	uint8_t raw[16];
	size_t len;

	TEST_START("CR and LF are ignored anywhere, also around padding");
	ASSERT_ERR(b64_decode(text, strlen(text), raw, sizeof(raw), &len),
	    CL_OK);
	ASSERT_BYTES_EQ(raw, len, "foob", 4);
	TEST_START("stray bits in the last character are ignored");
	ASSERT_ERR(b64_decode("Zh==", 4, raw, sizeof(raw), &len), CL_OK);
	ASSERT_BYTES_EQ(raw, len, "f", 1);
}

static void
test_bounds(void)
{
	uint8_t raw[6];
	size_t len, i;
	char text[16];

	TEST_START("dstmax bytes fit, one more is too big");
	for (i = 1; i <= 6; i++) {
		unit_note("%zu bytes", i);
		b64_encode("foobar", i, text);
		memset(raw, 0xee, sizeof(raw));
		ASSERT_ERR(b64_decode(text, strlen(text), raw, i, &len),
		    CL_OK);
		ASSERT_INT_EQ(len, i);
		ASSERT_ERR(b64_decode(text, strlen(text), raw, i - 1, &len),
		    CL_TOOBIG);
		b64url_encode("foobar", i, text);
		ASSERT_ERR(b64url_decode(text, strlen(text), raw, i, &len),
		    CL_OK);
		ASSERT_ERR(b64url_decode(text, strlen(text), raw, i - 1,
		    &len), CL_TOOBIG);
	}
}

UNIT_MAIN(test_vectors, test_refused, test_liberties, test_bounds)
