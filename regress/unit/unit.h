/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The unit test harness: TAP on stdout, nothing else.
 *
 *	static void
 *	test_put(void)
 *	{
 *		TEST_START("integers are big-endian");
 *		ASSERT_INT_EQ(b.data[0], 1);
 *	}
 *	UNIT_MAIN(test_put, test_get)
 *
 * A point lasts until the next TEST_START or the end of its function.  A
 * failed assertion ends the function (from helpers too), the others still
 * run.  unit_note() says in which row of a table we are.  A test may
 * include the .c under test; its objects are listed in regress/objects.mk.
 */
#ifndef CLOOP_UNIT_H
#define CLOOP_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNIT_STATIC static __attribute__((__unused__))

static struct {
	jmp_buf out;
	const char *point;	/* NULL: none open */
	char note[256];
	int passed, failed, skipped;
} unit;

UNIT_STATIC int
unit_count(void)
{
	return unit.passed + unit.failed + unit.skipped;
}

UNIT_STATIC void
unit_end(void)
{
	if (unit.point == NULL)
		return;
	unit.passed++;
	printf("ok %d - %s\n", unit_count(), unit.point);
	unit.point = NULL;
}

UNIT_STATIC void
unit_start(const char *point)
{
	unit_end();
	unit.point = point;
	unit.note[0] = '\0';
}

UNIT_STATIC __attribute__((__format__(__printf__, 1, 2))) void
unit_note(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(unit.note, sizeof(unit.note), fmt, ap);
	va_end(ap);
}

UNIT_STATIC __attribute__((__noreturn__, __format__(__printf__, 3, 4))) void
unit_fail(const char *file, int line, const char *fmt, ...)
{
	va_list ap;

	unit.failed++;
	printf("not ok %d - %s\n# %s:%d: ", unit_count(),
	    unit.point == NULL ? "(no TEST_START)" : unit.point, file, line);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("%s%s\n", unit.note[0] == '\0' ? "" : "\n# at: ", unit.note);
	unit.point = NULL;
	longjmp(unit.out, 1);
}

UNIT_STATIC __attribute__((__noreturn__)) void
unit_skip(const char *reason)
{
	unit.skipped++;
	printf("ok %d - %s # SKIP %s\n", unit_count(),
	    unit.point == NULL ? "" : unit.point, reason);
	unit.point = NULL;
	longjmp(unit.out, 1);
}

/* Bytes as text, for messages; rotating buffers. */
UNIT_STATIC const char *
unit_show(const void *p, size_t len)
{
	static char bufs[2][3 * 64 + 8];
	static unsigned int next;
	char *s = bufs[next++ % 2], *d = s;
	size_t i;

	if (p == NULL)
		return "NULL";
	for (i = 0; i < len && i < 64; i++)
		d += snprintf(d, 4, "%02x ", ((const uint8_t *)p)[i]);
	snprintf(d, 4, "%s", i < len ? "..." : "");
	return s;
}

UNIT_STATIC void
unit_check_mem(const char *file, int line, const char *what, const void *got,
    size_t got_len, const void *want, size_t want_len)
{
	if (got_len == want_len &&
	    (want_len == 0 || memcmp(got, want, want_len) == 0))
		return;
	unit_fail(file, line, "%s is %zu bytes %s, expected %zu bytes %s",
	    what, got_len, unit_show(got, got_len), want_len,
	    unit_show(want, want_len));
}

UNIT_STATIC void
unit_check_string(const char *file, int line, const char *what,
    const char *got, const char *want)
{
	if (got == want || (got != NULL && want != NULL &&
	    strcmp(got, want) == 0))
		return;
	unit_fail(file, line, "%s is \"%s\", expected \"%s\"", what,
	    got == NULL ? "(null)" : got, want == NULL ? "(null)" : want);
}

UNIT_STATIC int
unit_run(void (*const *tests)(void), size_t ntests)
{
	volatile size_t i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (i = 0; i < ntests; i++) {
		if (setjmp(unit.out) == 0)
			tests[i]();
		unit_end();
	}
	printf("1..%d\n# %d passed, %d failed, %d skipped\n", unit_count(),
	    unit.passed, unit.failed, unit.skipped);
	return unit.failed != 0;
}

#define UNIT_MAIN(...)                                                         \
	int                                                                    \
	main(void)                                                             \
	{                                                                      \
		void (*const tests[])(void) = { __VA_ARGS__ };                 \
		return unit_run(tests, sizeof(tests) / sizeof(tests[0]));      \
	}

#define TEST_START(text) unit_start(text)
#define TEST_DONE() unit_end()
#define TEST_SKIP(reason) unit_skip(reason)

#define UNIT_FAIL(...) unit_fail(__FILE__, __LINE__, __VA_ARGS__)
#define UNIT_COMPARE(a, op, b, type, fmt) do {                                 \
	type unit_a = (a);                                                     \
	type unit_b = (b);                                                     \
	if (!(unit_a op unit_b))                                               \
		UNIT_FAIL("%s is " fmt ", expected %s " fmt, #a, unit_a, #op,  \
		    unit_b);                                                   \
} while (0)

#define ASSERT_INT_EQ(a, b) UNIT_COMPARE(a, ==, b, long long, "%lld")
#define ASSERT_INT_NE(a, b) UNIT_COMPARE(a, !=, b, long long, "%lld")
#define ASSERT_INT_LT(a, b) UNIT_COMPARE(a, <, b, long long, "%lld")
#define ASSERT_INT_LE(a, b) UNIT_COMPARE(a, <=, b, long long, "%lld")
#define ASSERT_INT_GT(a, b) UNIT_COMPARE(a, >, b, long long, "%lld")
#define ASSERT_INT_GE(a, b) UNIT_COMPARE(a, >=, b, long long, "%lld")
#define ASSERT_U64_EQ(a, b)                                                    \
	UNIT_COMPARE(a, ==, b, unsigned long long, "%llu")
#define ASSERT_SIZE_T_EQ(a, b) UNIT_COMPARE(a, ==, b, size_t, "%zu")
#define ASSERT_PTR_EQ(a, b) UNIT_COMPARE(a, ==, b, const void *, "%p")
#define ASSERT_PTR_NE(a, b) UNIT_COMPARE(a, !=, b, const void *, "%p")
#define ASSERT_TRUE(e) do {                                                    \
	if (!(e))                                                              \
		UNIT_FAIL("%s is false", #e);                                  \
} while (0)
#define ASSERT_FALSE(e) do {                                                   \
	if (e)                                                                 \
		UNIT_FAIL("%s is true", #e);                                   \
} while (0)
#define ASSERT_STRING_EQ(a, b)                                                 \
	unit_check_string(__FILE__, __LINE__, #a, a, b)
/* The same length for both, or one for each. */
#define ASSERT_MEM_EQ(a, b, len)                                               \
	unit_check_mem(__FILE__, __LINE__, #a, a, len, b, len)
#define ASSERT_BYTES_EQ(a, alen, b, blen)                                      \
	unit_check_mem(__FILE__, __LINE__, #a, a, alen, b, blen)
/* A CL_* result, shown by name (needs common/base/err.h). */
#define ASSERT_ERR(e, want) do {                                               \
	int unit_r = (e), unit_w = (want);                                     \
	if (unit_r != unit_w)                                                  \
		UNIT_FAIL("%s is %s, expected %s", #e, cl_errname(unit_r),     \
		    cl_errname(unit_w));                                       \
} while (0)

#endif
