/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The types of configuration values: text to value, bounds, value to text.
 * The text of a value, read again, gives the same value (-T).
 */
#include "conf.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf_int.h"
#include "err.h"

#define CONF_MAX_LIST 1024		/* values of one keyword */

struct conf_unit {
	char letter;
	uint64_t factor;
};

/* Largest first: the dump takes the first that divides. */
static const struct conf_unit conf_sizes[] = {
	{ 'T', 1ULL << 40 }, { 'G', 1ULL << 30 }, { 'M', 1ULL << 20 },
	{ 'K', 1ULL << 10 }, { '\0', 1 },
};
static const struct conf_unit conf_times[] = {
	{ 'd', 86400 }, { 'h', 3600 }, { 'm', 60 }, { 's', 1 }, { '\0', 1 },
};

/* ------------------------------------------------------------ text to value */

/* A decimal number at *pp. */
static int
conf_parse_number(const char **pp, uint64_t *np)
{
	const char *p = *pp;
	uint64_t n = 0, digit;

	if (*p < '0' || *p > '9')
		return CL_FORMAT;
	for (; *p >= '0' && *p <= '9'; p++) {
		digit = (uint64_t)(*p - '0');
		if (n > (UINT64_MAX - digit) / 10)
			return CL_TOOBIG;
		n = n * 10 + digit;
	}
	*pp = p;
	*np = n;
	return 0;
}

static char
conf_fold(char c)
{
	return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

/* A number and its unit at *pp. */
static int
conf_parse_unit(const char **pp, const struct conf_unit *u, uint64_t *np)
{
	uint64_t n;
	int r;

	if ((r = conf_parse_number(pp, &n)) != 0)
		return r;
	for (; u->letter != '\0'; u++)
		if (conf_fold(u->letter) == conf_fold(**pp)) {
			(*pp)++;
			break;
		}
	if (n > UINT64_MAX / u->factor)
		return CL_TOOBIG;
	*np = n * u->factor;
	return 0;
}

int
conf_parse_size(const char *text, uint64_t *bytesp)
{
	uint64_t n;
	int r;

	*bytesp = 0;
	if ((r = conf_parse_unit(&text, conf_sizes, &n)) != 0)
		return r;
	if (*text != '\0')
		return CL_FORMAT;
	*bytesp = n;
	return 0;
}

int
conf_parse_time(const char *text, uint64_t *secondsp)
{
	uint64_t n, sum = 0;
	int r;

	/* 90, 30m, and also 1h30m. */
	*secondsp = 0;
	do {
		if ((r = conf_parse_unit(&text, conf_times, &n)) != 0)
			return r;
		if (n > UINT64_MAX - sum)
			return CL_TOOBIG;
		sum += n;
	} while (*text != '\0');
	*secondsp = sum;
	return 0;
}

static void
conf_format_unit(const struct conf_unit *u, uint64_t n, char *dst, size_t len)
{
	while (u->letter != '\0' && (n == 0 || n % u->factor != 0))
		u++;
	if (u->letter == '\0')
		snprintf(dst, len, "%" PRIu64, n);
	else
		snprintf(dst, len, "%" PRIu64 "%c", n / u->factor, u->letter);
}

/* A bound as the administrator would write it. */
static void
conf_format_number(const struct conf_row *row, uint64_t n, char *dst,
    size_t len)
{
	if (row->type == CONF_SIZE)
		conf_format_unit(conf_sizes, n, dst, len);
	else if (row->type == CONF_TIME)
		conf_format_unit(conf_times, n, dst, len);
	else
		snprintf(dst, len, "%" PRIu64, n);
}

/* Numbers of all three kinds, within the row's bounds. */
static int
conf_value_parse_number(const struct conf_row *row, const char *text,
    uint64_t *np, char *why, size_t whylen)
{
	char lo[32], hi[32];
	const char *p = text;
	int r;

	if (row->type == CONF_SIZE)
		r = conf_parse_size(text, np);
	else if (row->type == CONF_TIME)
		r = conf_parse_time(text, np);
	else if ((r = conf_parse_number(&p, np)) == 0 && *p != '\0')
		r = CL_FORMAT;
	if (r == CL_FORMAT) {
		snprintf(why, whylen, row->type == CONF_SIZE ?
		    "not a size (512, 64K, 8M, 1G)" : row->type == CONF_TIME ?
		    "not a time (90, 15m, 24h, 14d)" : "not a number");
		return r;
	}
	if (r == 0 && *np >= row->min && *np <= row->max)
		return 0;
	conf_format_number(row, row->min, lo, sizeof(lo));
	conf_format_number(row, row->max, hi, sizeof(hi));
	snprintf(why, whylen, "must be between %s and %s", lo, hi);
	return CL_FORMAT;
}

static int
conf_value_parse_enum(const struct conf_row *row, const char *text, int *ip,
    char *why, size_t whylen)
{
	static const char *const yes_no[] = { "no", "yes", NULL };
	const char *const *words;
	size_t len;
	int i;

	words = row->type == CONF_BOOL ? yes_no : row->words;
	for (i = 0; words[i] != NULL; i++)
		if (strcmp(words[i], text) == 0) {
			*ip = i;
			return 0;
		}
	snprintf(why, whylen, "must be");
	for (i = 0; words[i] != NULL; i++) {
		len = strlen(why);
		snprintf(why + len, whylen - len, "%s %s", i == 0 ? "" :
		    words[i + 1] == NULL ? " or" : ",", words[i]);
	}
	return CL_FORMAT;
}

/* Length, form and the row's own check of a text. */
static int
conf_value_check_text(const struct conf_row *row, const char *text, char *why,
    size_t whylen)
{
	if (row->type == CONF_PATH && text[0] != '/')
		snprintf(why, whylen, "must be an absolute path");
	else if (row->type != CONF_LIST && row->max > 0 &&
	    strlen(text) > row->max)
		snprintf(why, whylen, "longer than %" PRIu64 " bytes",
		    row->max);
	else if (row->type != CONF_LIST && strlen(text) < row->min)
		snprintf(why, whylen, "shorter than %" PRIu64 " bytes",
		    row->min);
	else
		return 0;
	return CL_FORMAT;
}

static int
conf_list_add(const struct conf_row *row, struct conf_list *l,
    const char *text, char *why, size_t whylen)
{
	uint64_t max = row->max == 0 ? CONF_MAX_LIST : row->max;
	char **v, *s;

	if (l->n >= max) {
		snprintf(why, whylen, "more than %" PRIu64 " values", max);
		return CL_FORMAT;
	}
	if ((s = strdup(text)) == NULL)
		return CL_NOMEM;
	if ((v = reallocarray(l->v, l->n + 1, sizeof(*v))) == NULL) {
		free(s);
		return CL_NOMEM;
	}
	l->v = v;
	l->v[l->n++] = s;
	return 0;
}

static int
conf_value_put_text(const struct conf_row *row, void *slot, const char *text,
    int is_none, char *why, size_t whylen)
{
	char *s = NULL, **sp = slot;
	int r;

	if (!is_none) {
		r = conf_value_check_text(row, text, why, whylen);
		if (r != 0)
			return r;
	}
	if (slot == NULL)
		return 0;
	if (row->type == CONF_LIST)
		return is_none ? 0 :
		    conf_list_add(row, slot, text, why, whylen);
	if (!is_none && (s = strdup(text)) == NULL)
		return CL_NOMEM;
	free(*sp);
	*sp = s;
	return 0;
}

static int
conf_value_put_number(const struct conf_row *row, void *slot,
    const char *text, char *why, size_t whylen)
{
	uint64_t n;
	int r;

	r = conf_value_parse_number(row, text, &n, why, whylen);
	if (r != 0 || slot == NULL)
		return r;
	if (row->type == CONF_SIZE)
		*(uint64_t *)slot = n;
	else if (n <= UINT32_MAX)
		*(unsigned int *)slot = (unsigned int)n;
	else
		return CL_FORMAT;
	return 0;
}

static int
conf_value_put_enum(const struct conf_row *row, void *slot, const char *text,
    char *why, size_t whylen)
{
	int i, r;

	r = conf_value_parse_enum(row, text, &i, why, whylen);
	if (r == 0 && slot != NULL)
		*(int *)slot = i;
	return r;
}

int
conf_value_put(const struct conf_row *row, void *slot, const char *text,
    int is_bare, char *why, size_t whylen)
{
	int is_none = is_bare && (row->flags & CONF_NONE_OK) != 0 &&
	    strcmp(text, "none") == 0;
	const char *wrong;

	snprintf(why, whylen, "bad value");
	if (!is_none && row->check != NULL &&
	    (wrong = row->check(text)) != NULL) {
		snprintf(why, whylen, "%s", wrong);
		return CL_FORMAT;
	}
	switch (row->type) {
	case CONF_BOOL:
	case CONF_ENUM:
		return conf_value_put_enum(row, slot, text, why, whylen);
	case CONF_UINT:
	case CONF_SIZE:
	case CONF_TIME:
		return conf_value_put_number(row, slot, text, why, whylen);
	default:
		return conf_value_put_text(row, slot, text, is_none, why,
		    whylen);
	}
}

/* ------------------------------------------------------------ value to text */

/* Whether a value read back without quotes would be another one. */
static int
conf_needs_quotes(const struct conf_row *row, const char *s)
{
	int many = row->type == CONF_LIST || row->type == CONF_WORDS;
	size_t len = strlen(s);

	if (len == 0 || strchr(s, '"') != NULL || strchr(s, '#') != NULL ||
	    strchr(s, '\t') != NULL || strstr(s, "  ") != NULL ||
	    s[0] == ' ' || s[len - 1] == ' ')
		return 1;
	if (!many && strchr(s, ' ') != NULL)
		return 1;
	return (row->flags & CONF_NONE_OK) != 0 && strcmp(s, "none") == 0;
}

static void
conf_put_text(FILE *fp, const struct conf_row *row, const char *s)
{
	fprintf(fp, "%s ", row->keyword);
	if (!conf_needs_quotes(row, s)) {
		fprintf(fp, "%s\n", s);
		return;
	}
	putc('"', fp);
	for (; *s != '\0'; s++) {
		if (*s == '"' || *s == '\\')
			putc('\\', fp);
		putc(*s, fp);
	}
	fprintf(fp, "\"\n");
}

static void
conf_put_row(FILE *fp, const struct conf_row *row, const void *slot)
{
	const struct conf_list *l = slot;
	const char *s;
	char number[32];
	size_t i;

	switch (row->type) {
	case CONF_BOOL:
		fprintf(fp, "%s %s\n", row->keyword,
		    *(const int *)slot ? "yes" : "no");
		return;
	case CONF_ENUM:
		fprintf(fp, "%s %s\n", row->keyword,
		    row->words[*(const int *)slot]);
		return;
	case CONF_UINT:
	case CONF_TIME:
	case CONF_SIZE:
		conf_format_number(row, row->type == CONF_SIZE ?
		    *(const uint64_t *)slot : *(const unsigned int *)slot,
		    number, sizeof(number));
		fprintf(fp, "%s %s\n", row->keyword, number);
		return;
	case CONF_LIST:
		for (i = 0; i < l->n; i++)
			conf_put_text(fp, row, l->v[i]);
		if (l->n == 0 && (row->flags & CONF_NONE_OK) != 0)
			fprintf(fp, "%s none\n", row->keyword);
		return;
	default:
		s = *(char *const *)slot;
		if (s != NULL)
			conf_put_text(fp, row, s);
		else if ((row->flags & CONF_NONE_OK) != 0)
			fprintf(fp, "%s none\n", row->keyword);
	}
}

int
conf_format(const struct conf_row *rows, const void *base, char **textp)
{
	char *text = NULL;
	size_t len;
	FILE *fp;
	int failed;

	*textp = NULL;
	if ((fp = open_memstream(&text, &len)) == NULL)
		return CL_NOMEM;
	for (; rows->keyword != NULL; rows++)
		conf_put_row(fp, rows, (const uint8_t *)base + rows->offset);
	failed = ferror(fp);
	if (fclose(fp) != 0 || failed) {
		free(text);
		return CL_NOMEM;
	}
	*textp = text;
	return 0;
}

static void
conf_clear_list(struct conf_list *l)
{
	size_t i;

	for (i = 0; i < l->n; i++)
		free(l->v[i]);
	free(l->v);
}

void
conf_clear(const struct conf_row *rows, void *base, size_t size)
{
	uint8_t *slot;

	for (; rows->keyword != NULL; rows++) {
		slot = (uint8_t *)base + rows->offset;
		if (rows->type == CONF_LIST)
			conf_clear_list((struct conf_list *)(void *)slot);
		else if (rows->type == CONF_STRING ||
		    rows->type == CONF_PATH || rows->type == CONF_WORDS)
			free(*(char **)(void *)slot);
	}
	memset(base, 0, size);
}

static int
conf_is_other_text(const char *a, const char *b)
{
	if (a == NULL || b == NULL)
		return a != b;
	return strcmp(a, b) != 0;
}

int
conf_is_changed(const struct conf_row *row, const void *a, const void *b)
{
	const void *sa = (const uint8_t *)a + row->offset;
	const void *sb = (const uint8_t *)b + row->offset;
	const struct conf_list *la = sa, *lb = sb;
	size_t i;

	switch (row->type) {
	case CONF_BOOL:
	case CONF_ENUM:
		return *(const int *)sa != *(const int *)sb;
	case CONF_UINT:
	case CONF_TIME:
		return *(const unsigned int *)sa != *(const unsigned int *)sb;
	case CONF_SIZE:
		return *(const uint64_t *)sa != *(const uint64_t *)sb;
	case CONF_LIST:
		if (la->n != lb->n)
			return 1;
		for (i = 0; i < la->n; i++)
			if (strcmp(la->v[i], lb->v[i]) != 0)
				return 1;
		return 0;
	default:
		return conf_is_other_text(*(char *const *)sa,
		    *(char *const *)sb);
	}
}
