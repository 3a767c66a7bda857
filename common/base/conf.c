/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Configuration files, read by the daemons before they serve.  A file is
 * refused when somebody else could have written it; what is in it is
 * trusted, but every mistake is an error with its place, never a guess.
 * This file reads lines; what a value may be is in conf_value.c.
 */
#include "conf.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "conf_int.h"
#include "err.h"
#include "util.h"

#define CONF_MAX_FILE_LEN 1048576	/* an administrator's typing */
#define CONF_MAX_DEPTH 8		/* Include within Include */

struct conf_ctx {
	const struct conf_row *rows;
	uint8_t *base;
	uint64_t *seen;		/* which rows this source gave */
	uint64_t fixed;		/* rows that keep what they have (-o) */
	char *err;
	size_t errlen;
	int depth;
};

/* The place an error is reported at. */
struct conf_place {
	const char *path;
	unsigned int line;	/* 0: the place has no lines */
};

static int conf_load_nested(struct conf_ctx *x, const char *path);

static int conf_fail(struct conf_ctx *x, const struct conf_place *at,
    const char *fmt, ...) __attribute__((__format__(__printf__, 3, 4)));

static int
conf_fail(struct conf_ctx *x, const struct conf_place *at, const char *fmt,
    ...)
{
	va_list ap;
	int n;

	if (at->line > 0)
		n = snprintf(x->err, x->errlen, "%s:%u: ", at->path, at->line);
	else
		n = snprintf(x->err, x->errlen, "%s: ", at->path);
	if (n < 0 || (size_t)n >= x->errlen)
		return CL_FORMAT;
	va_start(ap, fmt);
	vsnprintf(x->err + n, x->errlen - (size_t)n, fmt, ap);
	va_end(ap);
	return CL_FORMAT;
}

/* The table itself must make sense; a mistake in it is ours. */
static int
conf_check_rows(const struct conf_row *rows, char *err, size_t errlen)
{
	size_t i;

	for (i = 0; rows[i].keyword != NULL; i++) {
		if (i < CONF_MAX_ROWS &&
		    rows[i].offset >= sizeof(struct conf_seen))
			continue;
		snprintf(err, errlen, "internal error: row of %s",
		    rows[i].keyword);
		return CL_INTERNAL;
	}
	return 0;
}

static const struct conf_row *
conf_find_row(const struct conf_row *rows, const char *keyword)
{
	for (; rows->keyword != NULL; rows++)
		if (strcasecmp(rows->keyword, keyword) == 0)
			return rows;
	return NULL;
}

/* ---------------------------------------------------------------- words */

/*
 * The next word of a line into dst, which holds as much as the line.
 * Returns 1, 0 at the end of the line, or -1 for a quote that never ends.
 */
static int
conf_get_word(const char **pp, char *dst, int *quotedp)
{
	const char *p = *pp;
	char end = '\0';

	*quotedp = 0;
	p += strspn(p, " \t");
	if (*p == '\0' || *p == '#') {
		*pp = p + strlen(p);
		return 0;
	}
	if (*p == '"') {
		end = *p++;
		*quotedp = 1;
	}
	for (; *p != '\0'; p++) {
		if (end == '\0' && (*p == ' ' || *p == '\t'))
			break;
		if (end != '\0' && *p == end)
			break;
		if (end != '\0' && *p == '\\' && (p[1] == '"' || p[1] == '\\'))
			p++;
		*dst++ = *p;
	}
	*dst = '\0';
	if (end == '\0') {
		*pp = p;
		return 1;
	}
	/* "a"b would be read by each reader in another way. */
	if (*p != end || (p[1] != '\0' && p[1] != ' ' && p[1] != '\t'))
		return -1;
	*pp = p + 1;
	return 1;
}

/* The value on the rest of a line: one word, or all of them. */
static int
conf_get_value(struct conf_ctx *x, const struct conf_place *at,
    const struct conf_row *row, const char *p, char *value, int *barep)
{
	int many = row->type == CONF_LIST || row->type == CONF_WORDS;
	int r, quoted, n = 0;
	char *dst = value;

	*barep = 1;
	while ((r = conf_get_word(&p, dst, &quoted)) == 1) {
		if (quoted)
			*barep = 0;
		if (++n > 1 && !many)
			return conf_fail(x, at, "%s: unexpected text \"%s\" "
			    "after the value", row->keyword, dst);
		dst += strlen(dst);
		*dst++ = ' ';
	}
	if (r == -1)
		return conf_fail(x, at, "%s: bad quotes", row->keyword);
	if (n == 0)
		return conf_fail(x, at, "%s: value missing", row->keyword);
	dst[-1] = '\0';
	return 0;
}

/* ---------------------------------------------------------------- lines */

static int
conf_put_line_value(struct conf_ctx *x, const struct conf_place *at,
    const struct conf_row *row, const char *rest)
{
	uint64_t bit = 1ULL << (row - x->rows);
	char *value, why[128];
	int r, bare;

	if ((value = calloc(1, strlen(rest) + 2)) == NULL)
		return CL_NOMEM;
	if ((r = conf_get_value(x, at, row, rest, value, &bare)) != 0)
		goto out;
	if ((*x->seen & bit) != 0 && row->type != CONF_LIST) {
		r = conf_fail(x, at, "%s is given twice", row->keyword);
		goto out;
	}
	*x->seen |= bit;
	/* A value that -o overrides is checked all the same. */
	r = conf_value_put(row, (x->fixed & bit) != 0 ? NULL :
	    x->base + row->offset, value, bare, why, sizeof(why));
	if (r != 0 && r != CL_NOMEM)
		r = conf_fail(x, at, "%s \"%s\": %s", row->keyword, value,
		    why);
out:
	free(value);
	return r;
}

/* `Include pattern`: relative to the directory of the file it stands in. */
static int
conf_parse_include(struct conf_ctx *x, const struct conf_place *at,
    const char *rest)
{
	const char *slash = strrchr(at->path, '/');
	char word[1024], pattern[2048];
	glob_t g;
	size_t i;
	int r, quoted;

	if (strlen(rest) >= sizeof(word) ||
	    conf_get_word(&rest, word, &quoted) != 1 ||
	    rest[strspn(rest, " \t")] != '\0')
		return conf_fail(x, at, "Include: needs one pattern");
	if (x->depth >= CONF_MAX_DEPTH)
		return conf_fail(x, at, "Include \"%s\": nested too deeply",
		    word);
	if (word[0] == '/' || slash == NULL)
		snprintf(pattern, sizeof(pattern), "%s", word);
	else
		snprintf(pattern, sizeof(pattern), "%.*s/%s",
		    (int)(slash - at->path), at->path, word);
	r = glob(pattern, 0, NULL, &g);
	if (r == GLOB_NOMATCH) {
		/* No file in a directory is fine, a missing file is not. */
		if (strpbrk(pattern, "*?[") != NULL)
			return 0;
		return conf_fail(x, at, "Include \"%s\": no such file", word);
	}
	if (r != 0)
		return conf_fail(x, at, "Include \"%s\": cannot be read",
		    word);
	x->depth++;
	for (i = 0, r = 0; i < g.gl_pathc && r == 0; i++)
		r = conf_load_nested(x, g.gl_pathv[i]);
	x->depth--;
	globfree(&g);
	return r;
}

static int
conf_parse_line(struct conf_ctx *x, const struct conf_place *at,
    const char *line)
{
	const struct conf_row *row;
	const char *p = line + strspn(line, " \t");
	char keyword[64];
	size_t len = strcspn(p, " \t");

	if (*p == '\0' || *p == '#')
		return 0;
	snprintf(keyword, sizeof(keyword), "%.*s", (int)len, p);
	if (strcasecmp(keyword, "Include") == 0)
		return conf_parse_include(x, at, p + len);
	if (len >= sizeof(keyword) ||
	    (row = conf_find_row(x->rows, keyword)) == NULL)
		return conf_fail(x, at, "unknown keyword \"%s\"", keyword);
	return conf_put_line_value(x, at, row, p + len);
}

/* All lines of a text, which is taken apart. */
static int
conf_parse_text(struct conf_ctx *x, const char *path, char *text, size_t len)
{
	struct conf_place at = { path, 0 };
	char *line, *next, *p;
	int r;

	if (memchr(text, '\0', len) != NULL)
		return conf_fail(x, &at, "contains a NUL byte");
	for (line = text; line != NULL; line = next) {
		at.line++;
		if ((next = strchr(line, '\n')) != NULL)
			*next++ = '\0';
		for (p = line; *p != '\0'; p++)
			if (((unsigned char)*p < 0x20 && *p != '\t') ||
			    *p == 0x7f)
				return conf_fail(x, &at, "control character "
				    "(byte 0x%02x)", (unsigned char)*p);
		if ((r = conf_parse_line(x, &at, line)) != 0)
			return r;
	}
	return 0;
}

static int
conf_load_nested(struct conf_ctx *x, const char *path)
{
	struct conf_place at = { path, 0 };
	uint8_t *text = NULL;
	size_t len;
	int fd, r;

	r = util_open_file(path, UTIL_OPEN_OWNED | UTIL_OPEN_NOWRITE, &fd,
	    NULL);
	if (r == 0) {
		r = util_load_fd(fd, CONF_MAX_FILE_LEN, &text, &len);
		close(fd);
	}
	switch (r) {
	case 0:
		r = conf_parse_text(x, path, (char *)text, len);
		break;
	case CL_DENIED:
		conf_fail(x, &at, "others could have written it: it must "
		    "belong to root or to us and not be writable by group or "
		    "others");
		break;
	case CL_FORMAT:
		conf_fail(x, &at, "not a regular file");
		break;
	default:
		conf_fail(x, &at, "%s", cl_strerror(r));
	}
	free(text);
	return r;
}

/* --------------------------------------------------------------- callers */

int
conf_load_file(const struct conf_row *rows, void *base, const char *path,
    char *err, size_t errlen)
{
	struct conf_seen *seen = base;
	struct conf_ctx x = { .rows = rows, .base = base, .seen = &seen->file,
	    .fixed = seen->option, .err = err, .errlen = errlen };
	int r;

	if ((r = conf_check_rows(rows, err, errlen)) != 0)
		return r;
	if ((r = conf_load_nested(&x, path)) == CL_NOMEM)
		snprintf(err, errlen, "%s: %s", path, cl_strerror(r));
	return r;
}

int
conf_parse_option(const struct conf_row *rows, void *base,
    const char *option, char *err, size_t errlen)
{
	struct conf_seen *seen = base;
	struct conf_ctx x = { .rows = rows, .base = base,
	    .seen = &seen->option, .err = err, .errlen = errlen };
	struct conf_place at = { "-o", 0 };
	const struct conf_row *row;
	char keyword[64];
	size_t len = strcspn(option, "= \t");
	const char *p;
	int r;

	if ((r = conf_check_rows(rows, err, errlen)) != 0)
		return r;
	snprintf(keyword, sizeof(keyword), "%.*s", (int)len, option);
	if (len == 0 || len >= sizeof(keyword) || option[len] == '\0')
		return conf_fail(&x, &at, "\"%s\" is not Keyword=value",
		    option);
	for (p = option; *p != '\0'; p++)
		if (((unsigned char)*p < 0x20 && *p != '\t') || *p == 0x7f)
			return conf_fail(&x, &at, "%s: control character",
			    keyword);
	if ((row = conf_find_row(rows, keyword)) == NULL)
		return conf_fail(&x, &at, "unknown keyword \"%s\"", keyword);
	r = conf_put_line_value(&x, &at, row, option + len + 1);
	if (r == CL_NOMEM)
		snprintf(err, errlen, "-o: %s", cl_strerror(r));
	return r;
}

int
conf_set_defaults(const struct conf_row *rows, void *base, char *err,
    size_t errlen)
{
	const struct conf_seen *seen = base;
	uint64_t given = seen->option | seen->file;
	char why[128];
	size_t i;
	int r;

	if ((r = conf_check_rows(rows, err, errlen)) != 0)
		return r;
	for (i = 0; rows[i].keyword != NULL; i++) {
		if ((given & 1ULL << i) != 0 || rows[i].def == NULL)
			continue;
		r = conf_value_put(&rows[i], (uint8_t *)base + rows[i].offset,
		    rows[i].def, 1, why, sizeof(why));
		if (r != 0) {
			snprintf(err, errlen, "default of %s \"%s\": %s",
			    rows[i].keyword, rows[i].def,
			    r == CL_NOMEM ? cl_strerror(r) : why);
			return r;
		}
	}
	return 0;
}
