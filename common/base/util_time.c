/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Clocks and RFC 3339.  The calendar is computed here: gmtime(3) may open
 * /etc/localtime, which a confined process must not, and the parser meets
 * texts from outside.
 */
#include "util.h"

#include <stdio.h>
#include <string.h>

#include "err.h"

#define NS_PER_S 1000000000LL
#define S_PER_DAY 86400LL

int64_t
util_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int64_t
util_wall_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

int64_t
util_wall_offset_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return util_wall_ns() - ((int64_t)ts.tv_sec * NS_PER_S + ts.tv_nsec);
}

/* Days from 1970-01-01 in the proleptic Gregorian calendar. */
static int64_t
util_days_of(int64_t year, int month, int day)
{
	int64_t era, yoe, doy;

	year -= month <= 2;		/* March first: leap day last */
	era = (year >= 0 ? year : year - 399) / 400;
	yoe = year - era * 400;
	doy = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
	return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}

static void
util_date_of(int64_t days, int64_t *yearp, int *monthp, int *dayp)
{
	int64_t era, doe, yoe, doy, mp;

	days += 719468;
	era = (days >= 0 ? days : days - 146096) / 146097;
	doe = days - era * 146097;
	yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
	mp = (5 * doy + 2) / 153;
	*dayp = (int)(doy - (153 * mp + 2) / 5 + 1);
	*monthp = (int)(mp < 10 ? mp + 3 : mp - 9);
	*yearp = yoe + era * 400 + (*monthp <= 2);
}

void
util_format_time(int64_t wall_ns, char dst[UTIL_TIME_MAX])
{
	int64_t s, ns, days, year;
	char fraction[16] = "";
	int month, day, n;

	if (wall_ns == UTIL_TIME_ZERO) {
		snprintf(dst, UTIL_TIME_MAX, "0001-01-01T00:00:00Z");
		return;
	}
	s = wall_ns / NS_PER_S;
	if ((ns = wall_ns % NS_PER_S) < 0) {
		ns += NS_PER_S;
		s--;
	}
	days = s / S_PER_DAY;
	if ((s %= S_PER_DAY) < 0) {
		s += S_PER_DAY;
		days--;
	}
	util_date_of(days, &year, &month, &day);
	if (ns != 0) {
		n = snprintf(fraction, sizeof(fraction), ".%09d", (int)ns);
		while (fraction[n - 1] == '0')
			fraction[--n] = '\0';
	}
	snprintf(dst, UTIL_TIME_MAX, "%04d-%02d-%02dT%02d:%02d:%02d%.10sZ",
	    (int)year, month, day, (int)(s / 3600), (int)(s / 60 % 60),
	    (int)(s % 60), fraction);
}

/* Exactly n digits at *pp, at most max. */
static int
util_parse_digits(const char **pp, const char *end, int n, int min, int max,
    int *vp)
{
	int v = 0;

	while (n-- > 0) {
		if (*pp == end || **pp < '0' || **pp > '9')
			return CL_FORMAT;
		v = v * 10 + (*(*pp)++ - '0');
	}
	*vp = v;
	return v < min || v > max ? CL_FORMAT : 0;
}

static int
util_parse_char(const char **pp, const char *end, char c)
{
	if (*pp == end || **pp != c)
		return CL_FORMAT;
	(*pp)++;
	return 0;
}

/* `.123` after the seconds; digits beyond nine are cut. */
static int
util_parse_fraction(const char **pp, const char *end, int64_t *nsp)
{
	const char *p = *pp, *start;
	int64_t unit = NS_PER_S / 10;

	*nsp = 0;
	if (p == end || *p != '.')
		return 0;
	for (start = ++p; p != end && *p >= '0' && *p <= '9'; p++) {
		*nsp += unit * (*p - '0');
		unit /= 10;
	}
	*pp = p;
	return p == start ? CL_FORMAT : 0;
}

/* `Z` or `+hh:mm`, in seconds. */
static int
util_parse_zone(const char **pp, const char *end, int64_t *offsetp)
{
	int sign, hour, minute, r;

	*offsetp = 0;
	if (util_parse_char(pp, end, 'Z') == 0)
		return 0;
	if (util_parse_char(pp, end, '+') == 0)
		sign = 1;
	else if (util_parse_char(pp, end, '-') == 0)
		sign = -1;
	else
		return CL_FORMAT;
	if ((r = util_parse_digits(pp, end, 2, 0, 23, &hour)) != 0 ||
	    (r = util_parse_char(pp, end, ':')) != 0 ||
	    (r = util_parse_digits(pp, end, 2, 0, 59, &minute)) != 0)
		return r;
	*offsetp = sign * (hour * 3600LL + minute * 60LL);
	return 0;
}

static int
util_count_month_days(int year, int month)
{
	static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31,
	    30, 31 };

	if (month == 2 && (year % 4 == 0 && (year % 100 != 0 ||
	    year % 400 == 0)))
		return 29;
	return days[month - 1];
}

/* `2026-01-02T03:04:05` as seconds since 1970. */
static int
util_parse_seconds(const char **pp, const char *end, int64_t *sp)
{
	int year, month, day, hour, minute, second, r;

	if ((r = util_parse_digits(pp, end, 4, 0, 9999, &year)) != 0 ||
	    (r = util_parse_char(pp, end, '-')) != 0 ||
	    (r = util_parse_digits(pp, end, 2, 1, 12, &month)) != 0 ||
	    (r = util_parse_char(pp, end, '-')) != 0 ||
	    (r = util_parse_digits(pp, end, 2, 1,
	    util_count_month_days(year, month), &day)) != 0 ||
	    (r = util_parse_char(pp, end, 'T')) != 0 ||
	    (r = util_parse_digits(pp, end, 2, 0, 23, &hour)) != 0 ||
	    (r = util_parse_char(pp, end, ':')) != 0 ||
	    (r = util_parse_digits(pp, end, 2, 0, 59, &minute)) != 0 ||
	    (r = util_parse_char(pp, end, ':')) != 0 ||
	    (r = util_parse_digits(pp, end, 2, 0, 59, &second)) != 0)
		return r;
	*sp = util_days_of(year, month, day) * S_PER_DAY + hour * 3600LL +
	    minute * 60LL + second;
	return 0;
}

int
util_parse_time(const char *text, size_t len, int64_t *wall_nsp)
{
	const char *p = text, *end = text + len;
	int64_t s, ns, offset;
	int r;

	*wall_nsp = 0;
	if ((r = util_parse_seconds(&p, end, &s)) != 0 ||
	    (r = util_parse_fraction(&p, end, &ns)) != 0 ||
	    (r = util_parse_zone(&p, end, &offset)) != 0)
		return r;
	if (p != end)
		return CL_FORMAT;
	s -= offset;
	if (ns == 0 && s == util_days_of(1, 1, 1) * S_PER_DAY)
		*wall_nsp = UTIL_TIME_ZERO;
	else if (s >= INT64_MAX / NS_PER_S)
		*wall_nsp = INT64_MAX;
	else if (s <= INT64_MIN / NS_PER_S)
		*wall_nsp = UTIL_TIME_ZERO + 1;
	else
		*wall_nsp = s * NS_PER_S + ns;
	return 0;
}
