/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * common/base/util_time: RFC 3339 as Go writes it.
 */
#include "regress/unit/unit.h"

#include "common/base/err.h"
#include "common/base/util.h"

#define S 1000000000LL

static const struct {
	const char *text;
	int64_t ns;
} rows[] = {
	{ "1970-01-01T00:00:00Z", 0 },
	{ "1970-01-01T00:00:00.000000001Z", 1 },
	{ "1969-12-31T23:59:59.999999999Z", -1 },
	{ "2000-02-29T12:00:00Z", 951825600 * S },
	{ "2026-11-29T00:00:01.5Z", 1795910401 * S + S / 2 },
	{ "2100-03-01T00:00:00Z", 4107542400 * S },
	{ "1677-09-21T00:12:43.145224193Z", INT64_MIN + 1 },
	{ "2262-04-11T23:47:16.854775807Z", INT64_MAX },
	{ "0001-01-01T00:00:00Z", UTIL_TIME_ZERO },
};

static int64_t
parse(const char *text)
{
	int64_t ns;

	unit_note("%s", text);
	ASSERT_ERR(util_parse_time(text, strlen(text), &ns), CL_OK);
	return ns;
}

static void
test_round_trip(void)
{
	char text[UTIL_TIME_MAX];
	size_t i;

	TEST_START("written as Go does, without trailing zeros");
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unit_note("%s", rows[i].text);
		util_format_time(rows[i].ns, text);
		ASSERT_STRING_EQ(text, rows[i].text);
	}
	TEST_START("read back");
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]) - 3; i++)
		ASSERT_INT_EQ(parse(rows[i].text), rows[i].ns);
	ASSERT_INT_EQ(parse("0001-01-01T00:00:00Z"), UTIL_TIME_ZERO);
}

static void
test_zone(void)
{
	TEST_START("offsets, fractions beyond nine digits");
	ASSERT_INT_EQ(parse("1970-01-01T01:00:00+01:00"), 0);
	ASSERT_INT_EQ(parse("1969-12-31T18:30:00-05:30"), 0);
	ASSERT_INT_EQ(parse("1970-01-01T23:59:00+23:59"), 0);
	ASSERT_INT_EQ(parse("1970-01-01T00:00:00.1234567899Z"), 123456789);
	ASSERT_INT_EQ(parse("1970-01-01T00:00:00.10Z"), 100000000);
	ASSERT_INT_EQ(parse("0001-01-01T01:00:00+01:00"), UTIL_TIME_ZERO);
	TEST_START("out of range is clamped, but is not the zero time");
	ASSERT_INT_EQ(parse("0001-01-01T00:00:01Z"), UTIL_TIME_ZERO + 1);
	ASSERT_INT_EQ(parse("0000-01-01T00:00:00Z"), UTIL_TIME_ZERO + 1);
	ASSERT_INT_EQ(parse("9999-12-31T23:59:59Z"), INT64_MAX);
}

static void
test_refused(void)
{
	static const char *const bad[] = { "", "1970-01-01",
	    "1970-01-01T00:00Z",
	    "1970-01-01T00:00:00", "1970-01-01t00:00:00Z",
	    "1970-01-01T00:00:00z", "1970-01-01 00:00:00Z",
	    "1970-1-01T00:00:00Z", "70-01-01T00:00:00Z",
	    "1970-00-01T00:00:00Z", "1970-13-01T00:00:00Z",
	    "1970-01-00T00:00:00Z", "1970-01-32T00:00:00Z",
	    "1970-04-31T00:00:00Z", "1970-02-29T00:00:00Z",
	    "2100-02-29T00:00:00Z", "1970-01-01T24:00:00Z",
	    "1970-01-01T00:60:00Z", "1970-01-01T00:00:60Z",
	    "1970-01-01T00:00:00.Z", "1970-01-01T00:00:00,5Z",
	    "1970-01-01T00:00:00+24:00", "1970-01-01T00:00:00+00:60",
	    "1970-01-01T00:00:00+0000", "1970-01-01T00:00:00+00",
	    "1970-01-01T00:00:00Z ", " 1970-01-01T00:00:00Z",
	    "+1970-01-01T00:00:00Z", "-1970-01-01T00:00:00Z" };
	int64_t ns;
	size_t i, n;

	TEST_START("impossible and loose spellings are refused");
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		unit_note("%s", bad[i]);
		ASSERT_ERR(util_parse_time(bad[i], strlen(bad[i]), &ns),
		    CL_FORMAT);
	}
	TEST_START("every prefix is refused, and nothing beyond it is read");
	for (n = 0; n < 20; n++) {
		char *exact = malloc(n == 0 ? 1 : n);

		memcpy(exact, "1970-01-01T00:00:00Z", n);
		unit_note("%zu bytes", n);
		ASSERT_ERR(util_parse_time(exact, n, &ns), CL_FORMAT);
		free(exact);
	}
}

static void
test_calendar(void)
{
	char text[UTIL_TIME_MAX];
	int64_t day;

	TEST_START("every 13th day of two centuries survives the round trip");
	for (day = -36525; day < 36525 * 2; day += 13) {
		util_format_time(day * 86400 * S, text);
		ASSERT_INT_EQ(parse(text), day * 86400 * S);
	}
	TEST_START("the clocks run");
	ASSERT_INT_GT(util_now_ms(), 0);
	ASSERT_INT_GT(util_wall_ns(), 1700000000 * S);
}

UNIT_MAIN(test_round_trip, test_zone, test_refused, test_calendar)
