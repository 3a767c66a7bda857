/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * common/base/utf8: the normaliser of output, at every way to cut the input.
 */
#include "regress/unit/unit.h"

#include "common/base/utf8.h"

#define R "\xef\xbf\xbd"

static const struct {
	const char *in, *out;
} rows[] = {
	{ "", "" },
	{ "plain\n\ttext\x7f", "plain\n\ttext\x7f" },
	{ "\xc2\x80 \xdf\xbf", "\xc2\x80 \xdf\xbf" },
	{ "\xe0\xa0\x80\xef\xbf\xbf", "\xe0\xa0\x80\xef\xbf\xbf" },
	{ "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf",
	    "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf" },
	/* bytes that begin nothing: one replacement each */
	{ "\x80", R }, { "\xbf\x80x", R R "x" }, { "\xff\xfe", R R },
	{ "\xf5\x80", R R }, { "\xf8\x88\x80\x80\x80", R R R R R },
	/* overlong: C0, C1, E0 80, F0 80 */
	{ "\xc0\x80", R R }, { "\xc1\xbf", R R }, { "\xe0\x80\x80", R R R },
	{ "\xe0\x9f\xbf", R R R }, { "\xf0\x80\x80\x80", R R R R },
	{ "\xf0\x8f\xbf\xbf", R R R R },
	/* surrogates and beyond U+10FFFF */
	{ "\xed\xa0\x80", R R R }, { "\xed\xbf\xbf", R R R },
	{ "\xed\x9f\xbf", "\xed\x9f\xbf" }, { "\xf4\x90\x80\x80", R R R R },
	/* a maximal subpart is one replacement (Unicode 15, 3.9) */
	{ "\xe2\x82", R }, { "\xe2\x82x", R "x" }, { "\xf0\x9f\x98", R },
	{ "\xf0\x9f\x98\xf0\x9f\x98\x80", R "\xf0\x9f\x98\x80" },
	{ "\xc3\xc3\xa9", R "\xc3\xa9" }, { "\xe2\xe2\x82\xac",
	    R "\xe2\x82\xac" },
	{ "\x61\xf1\x80\x80\xe1\x80\xc2\x62\x80\x63\x80\xbf\x64",
	    "a" R R R "b" R "c" R R "d" },
	{ "\xf4\x8f\xbf", R }, { "\xf0\x90", R }, { "\xc2", R },
};
#define NROWS (sizeof(rows) / sizeof(rows[0]))

/* Normalise in pieces of `step` bytes. */
static size_t
normalise(const char *in, size_t len, size_t step, uint8_t *out)
{
	struct utf8_norm n;
	uint8_t *piece, *dst;
	size_t i, part, got, total = 0;

	utf8_norm_init(&n);
	for (i = 0; i < len; i += part) {
		part = len - i < step ? len - i : step;
		/* Exact allocations: the sanitizer sees a byte too many. */
		piece = malloc(part);
		dst = malloc(3 * (part + 3));
		memcpy(piece, in + i, part);
		got = utf8_norm_put(&n, piece, part, dst);
		ASSERT_INT_LE(n.tail_len, 3);
		ASSERT_TRUE(utf8_is_valid(dst, got));
		memcpy(out + total, dst, got);
		total += got;
		free(piece);
		free(dst);
	}
	total += utf8_norm_end(&n, out + total);
	return total;
}

static void
test_norm(void)
{
	uint8_t out[256];
	size_t i, step, len, n;

	TEST_START("each vector, at every cut");
	for (i = 0; i < NROWS; i++) {
		len = strlen(rows[i].in);
		for (step = 1; step <= len + 1; step++) {
			unit_note("row %zu, pieces of %zu", i, step);
			n = normalise(rows[i].in, len, step, out);
			ASSERT_BYTES_EQ(out, n, rows[i].out,
			    strlen(rows[i].out));
		}
	}
	TEST_START("NUL is valid");
	n = normalise("a\0b", 3, 1, out);
	ASSERT_BYTES_EQ(out, n, "a\0b", 3);
}

static void
test_norm_pairs(void)
{
	uint8_t whole[64], cut[64];
	char in[4];
	unsigned int a, b;
	size_t n, m;

	TEST_START("all pairs of bytes: the cut makes no difference");
	for (a = 0; a < 256; a++)
		for (b = 0; b < 256; b++) {
			unit_note("%02x %02x", a, b);
			in[0] = (char)a;
			in[1] = (char)b;
			in[2] = (char)0x80;
			in[3] = 'x';
			n = normalise(in, 4, 4, whole);
			m = normalise(in, 4, 1, cut);
			ASSERT_BYTES_EQ(cut, m, whole, n);
		}
}

static void
test_valid(void)
{
	size_t i;

	TEST_START("valid is what the normaliser leaves alone");
	for (i = 0; i < NROWS; i++) {
		unit_note("row %zu", i);
		ASSERT_INT_EQ(utf8_is_valid(rows[i].in, strlen(rows[i].in)),
		    strcmp(rows[i].in, rows[i].out) == 0);
		ASSERT_TRUE(utf8_is_valid(rows[i].out,
		    strlen(rows[i].out)));
	}
}

static void
test_cut(void)
{
	static const char text[] = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80";
	static const size_t want[] = { 0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10 };
	size_t i;

	TEST_START("a cut never falls inside a code point");
	for (i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		unit_note("at %zu", i);
		ASSERT_INT_EQ(utf8_cut(text, i), want[i]);
	}
	TEST_START("what is invalid anyway is not held back");
	ASSERT_INT_EQ(utf8_cut("a\x80", 2), 2);
	ASSERT_INT_EQ(utf8_cut("a\xff", 2), 2);
	ASSERT_INT_EQ(utf8_cut("\x80\x80\x80\x80", 4), 4);
}

UNIT_MAIN(test_norm, test_norm_pairs, test_valid, test_cut)
