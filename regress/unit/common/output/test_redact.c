/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * common/output/redact: every stream is fed in every way to cut it in two and
 * byte by byte, and must come out the same, with all of its input accounted
 * for.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/output/redact.h"
#include "regress/unit/unit.h"

#define OUT_MAX (1 << 20)

struct out {
	uint8_t *text;
	size_t len;
	uint64_t in_len;
	size_t nmarkers;
};

static int
on_piece(void *arg, const struct redact_piece *p)
{
	struct out *o = arg;

	if (p->len > OUT_MAX - o->len || p->len == 0)
		return CL_TOOBIG;
	if (!p->is_marker && p->in_len != p->len)
		return CL_FORMAT;
	memcpy(o->text + o->len, p->data, p->len);
	o->len += p->len;
	o->in_len += p->in_len;
	o->nmarkers += (size_t)p->is_marker;
	return 0;
}

/* Feed with pieces of `step` bytes after a first one of `cut`. */
static void
feed(const struct redact *set, const void *in, size_t len, size_t cut,
    size_t step, struct out *o)
{
	static struct redact_stream rs;
	const uint8_t *p = in;
	size_t n;

	o->len = o->nmarkers = 0;
	o->in_len = 0;
	redact_stream_init(&rs);
	while (len > 0) {
		n = cut > 0 ? cut : step;
		n = n < len ? n : len;
		ASSERT_INT_EQ(redact_put(&rs, set, p, n, on_piece, o), 0);
		p += n;
		len -= n;
		cut = 0;
		ASSERT_INT_EQ(o->in_len + redact_stream_get_held(&rs),
		    (size_t)(p - (const uint8_t *)in));
		ASSERT_TRUE(rs.len <= REDACT_HOLD_MAX);
	}
	ASSERT_INT_EQ(redact_end(&rs, set, on_piece, o), 0);
	ASSERT_INT_EQ(o->in_len, (size_t)(p - (const uint8_t *)in));
	ASSERT_INT_EQ(redact_stream_get_held(&rs), 0);
	for (n = 0; n < sizeof(rs.held); n++)
		ASSERT_INT_EQ(rs.held[n], 0);
}

static void
check(const struct redact *set, const char *in, const char *want)
{
	struct out o = { .text = malloc(OUT_MAX) };
	size_t cut, len = strlen(in);

	ASSERT_TRUE(o.text != NULL);
	for (cut = 0; cut <= len; cut++) {
		unit_note("%s cut at %zu", in, cut);
		feed(set, in, len, cut, len + 1, &o);
		ASSERT_BYTES_EQ(o.text, o.len, want, strlen(want));
		ASSERT_TRUE(o.len <= len * 5 / 4 + 1);
	}
	unit_note("%s byte by byte", in);
	feed(set, in, len, 0, 1, &o);
	ASSERT_BYTES_EQ(o.text, o.len, want, strlen(want));
	free(o.text);
}

static struct redact *
make(const char *const *values)
{
	struct redact *set = redact_new();

	ASSERT_TRUE(set != NULL);
	for (; *values != NULL; values++)
		ASSERT_INT_EQ(redact_add(set, *values, strlen(*values)), 0);
	return set;
}

#define SET(...) make((const char *const[]){ __VA_ARGS__, NULL })

static void
test_one(void)
{
	struct redact *set;

	TEST_START("a value is hidden wherever the stream is cut (BC-11)");
	set = SET("key123key123");
	check(set, "key123key123", "[redacted]");
	check(set, "a key123key123 b", "a [redacted] b");
	check(set, "key123key123key123key123", "[redacted]");
	check(set, "key123key12", "key123key12");
	check(set, "kkey123key123", "k[redacted]");
	check(set, "key123key123key12", "[redacted]key12");
	check(set, "key123kez123", "key123kez123");
	check(set, "", "");
	redact_free(set);
	set = SET("abcdefghij");
	check(set, "abcdefghijabcdefghij.", "[redacted][redacted].");
	redact_free(set);
}

static void
test_trimmed(void)
{
	struct redact *set;

	TEST_START("raw and trimmed, longest first");
	set = SET("\n top-secret-content\n");
	check(set, "\n top-secret-content\n.", "[redacted].");
	check(set, "<top-secret-content>", "<[redacted]>");
	check(set, "top-secret-content\n", "[redacted]\n");
	redact_free(set);
	set = SET("abcdefgh", "abcdefghijkl");
	check(set, "abcdefghijkl abcdefghijk", "[redacted] [redacted]ijk");
	redact_free(set);
}

static void
test_overlap(void)
{
	struct redact *set;

	TEST_START("values that overlap leave no rest of either");
	set = SET("12345678abc", "78abcDEFGH", "FGHxxxxxxx");
	check(set, "-12345678abcDEFGH-", "-[redacted]-");
	check(set, "-12345678abcDEFGHxxxxxxx-", "-[redacted]-");
	check(set, "-12345678abcDEFG-", "-[redacted]DEFG-");
	redact_free(set);
	set = SET("aaaaaaaa");
	check(set, "aaaaaaaaa", "[redacted]");
	check(set, "aaaaaaa", "aaaaaaa");
	check(set, "aaaaaaaaaaaaaaaaaaaa", "[redacted]");
	redact_free(set);
}

static void
test_skipped(void)
{
	struct redact *set;

	TEST_START("below 8 bytes and placeholders are skipped");
	set = SET("1234567", " 1234567 ", "<redacted>", "<redacted token>",
	    "   \n\n\n    ");
	check(set, "1234567 <redacted> <redacted token>",
	    "1234567 <redacted> <redacted token>");
	check(set, "x 1234567 x", "x[redacted]x");
	redact_free(set);
	set = SET("12345678");
	check(set, "12345678", "[redacted]");
	check(NULL, "12345678", "12345678");
	redact_free(set);
	set = redact_new();
	ASSERT_INT_EQ(redact_is_empty(set), 1);
	check(set, "12345678", "12345678");
	redact_free(set);
}

static void
test_env(void)
{
	char *env[] = { "TOKEN=tok-0123456789", "PLAIN=plain-0123456789",
	    "CLOOP_REDACT_ENV= TOKEN , ,MISSING,TOKENS", "TOKENX=other-012345",
	    "TOKEN=tok-second-0" };
	struct redact *set = redact_new();

	TEST_START("CLOOP_REDACT_ENV holds names");
	ASSERT_INT_EQ(redact_add_env(set, env, 5), 0);
	check(set, "tok-0123456789 plain-0123456789 other-012345 tok-second-0",
	    "[redacted] plain-0123456789 other-012345 [redacted]");
	redact_free(set);
}

/* A pseudo-random value without repetitions that matter. */
static void
fill(uint8_t *p, size_t len, uint32_t seed)
{
	size_t i;

	for (i = 0; i < len; i++) {
		seed = seed * 1664525 + 1013904223;
		p[i] = (uint8_t)(seed >> 24);
	}
}

static void
test_long(void)
{
	static const size_t lens[] = { 4095, 4096, 4097, 8192, 70000, 262144 };
	struct out o = { .text = malloc(OUT_MAX) };
	uint8_t *in = malloc(300000);
	struct redact *set;
	size_t i, k;
	static const size_t steps[] = { 1, 7, 4096, 65536, 300000 };

	TEST_START("a long value is one marker, however it comes (BC-11)");
	for (i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		memset(in, '.', 300000);
		fill(in + 100, lens[i], (uint32_t)i);
		set = redact_new();
		ASSERT_INT_EQ(redact_add(set, in + 100, lens[i]), 0);
		for (k = 0; k < sizeof(steps) / sizeof(steps[0]); k++) {
			unit_note("%zu bytes by %zu", lens[i], steps[k]);
			if (steps[k] == 1 && lens[i] > 10000)
				continue;
			feed(set, in, 200 + lens[i], 0, steps[k], &o);
			ASSERT_INT_EQ(o.nmarkers, 1);
			ASSERT_INT_EQ(o.len, 200 + REDACT_MARKER_LEN);
			ASSERT_BYTES_EQ(o.text + 100, REDACT_MARKER_LEN,
			    REDACT_MARKER, REDACT_MARKER_LEN);
		}
		redact_free(set);
	}
	TEST_START("a value of equal bytes costs one piece");
	memset(in, 'a', 262144);
	set = redact_new();
	ASSERT_INT_EQ(redact_add(set, in, 262144), 0);
	ASSERT_INT_EQ(redact_add(set, in, 262144), 0);
	feed(set, in, 262144, 0, 4096, &o);
	ASSERT_INT_EQ(o.len, REDACT_MARKER_LEN);
	redact_free(set);
	free(in);
	free(o.text);
}

static void
test_later(void)
{
	static struct redact_stream rs;
	struct out o = { .text = malloc(OUT_MAX) };
	struct redact *set = SET("old-secret-1");

	TEST_START("a value added during the run holds from then on");
	redact_stream_init(&rs);
	ASSERT_INT_EQ(redact_put(&rs, set, "new-secret-2 old-s", 18, on_piece,
	    &o), 0);
	ASSERT_INT_EQ(redact_stream_get_held(&rs), 5);
	ASSERT_INT_EQ(redact_add(set, "new-secret-2", 12), 0);
	ASSERT_INT_EQ(redact_put(&rs, set, "ecret-1 new-secret-2", 20,
	    on_piece, &o), 0);
	ASSERT_INT_EQ(redact_end(&rs, set, on_piece, &o), 0);
	ASSERT_BYTES_EQ(o.text, o.len, "new-secret-2 [redacted] [redacted]",
	    34);
	redact_free(set);
	free(o.text);
}

static void
test_limits(void)
{
	struct redact *set = redact_new();
	uint8_t *in = malloc(262144);
	size_t i;
	int r = 0;

	TEST_START("the set is bounded");
	for (i = 0; r == 0 && i < 1000; i++) {
		fill(in, 262144, (uint32_t)i + 7);
		r = redact_add(set, in, 262144);
	}
	ASSERT_INT_EQ(r, CL_LIMIT);
	ASSERT_TRUE(i * 262144 > MAX_REDACT_LEN / 2);
	redact_free(set);
	set = redact_new();
	for (r = 0, i = 0; r == 0 && i <= MAX_REDACT_VALUES; i++) {
		snprintf((char *)in, 32, "%08zx", i);
		r = redact_add(set, in, 8);
	}
	ASSERT_INT_EQ(r, CL_LIMIT);
	redact_free(set);
	free(in);
}

static void
test_format(void)
{
	struct redact *set = SET("key123key123");
	char dst[16];

	TEST_START("a text is redacted before it is cut");
	redact_format(set, "at key123key123 end", dst, sizeof(dst));
	ASSERT_STRING_EQ(dst, "at [redacted] e");
	redact_format(set, "0123456789 key123key123", dst, sizeof(dst));
	ASSERT_STRING_EQ(dst, "0123456789 [red");
	redact_format(NULL, "key", dst, sizeof(dst));
	ASSERT_STRING_EQ(dst, "key");
	redact_free(set);
}

static int
on_fail(void *arg, const struct redact_piece *p)
{
	(void)p;
	++*(int *)arg;
	return CL_SYSTEM;
}

static void
test_failure(void)
{
	static struct redact_stream rs;
	struct redact *set = SET("key123key123");
	int n = 0;

	TEST_START("a failing reader ends the output");
	redact_stream_init(&rs);
	ASSERT_INT_EQ(redact_put(&rs, set, "a key123key123 b", 16, on_fail,
	    &n), CL_SYSTEM);
	ASSERT_INT_EQ(n, 1);
	redact_stream_clear(&rs);
	redact_free(set);
}

UNIT_MAIN(test_one, test_trimmed, test_overlap, test_skipped, test_env,
    test_long, test_later, test_limits, test_format, test_failure)
