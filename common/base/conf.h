/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Configuration files: one `Keyword value...` per line, # comments, double
 * quotes, `Include` with globs, keywords case-insensitive.  One table row per
 * keyword gives parsing, bounds, default, the -T dump and the reload rule.
 * Values are stored in a struct of the caller's by offset.
 */
#ifndef CLOOP_CONF_H
#define CLOOP_CONF_H

#include <stddef.h>
#include <stdint.h>

enum conf_type {
	CONF_BOOL,	/* int: yes|no */
	CONF_UINT,	/* unsigned int: min..max */
	CONF_SIZE,	/* uint64_t bytes: 512, 64K, 8M, 1G; min..max */
	CONF_TIME,	/* unsigned int seconds: 90, 15m, 24h, 14d; min..max */
	CONF_STRING,	/* char *: one word, at most max bytes; "none" = NULL */
	CONF_PATH,	/* char *: absolute; "none" = NULL */
	CONF_ENUM,	/* int: index into `words` */
	CONF_LIST,	/* struct conf_list: repeatable; one line per value */
	CONF_WORDS	/* char *: the rest of the line, checked by `check` */
};

#define CONF_RELOAD 0x01	/* takes effect on SIGHUP */
#define CONF_NONE_OK 0x02	/* "none" is allowed and means NULL */

struct conf_list {
	char **v;
	size_t n;
};

struct conf_row {
	const char *keyword;	/* spelling used by the dump */
	enum conf_type type;
	size_t offset;
	uint64_t min, max;	/* bounds of number, length or list */
	const char *def;	/* default as text; NULL: unset/empty list */
	int flags;
	const char *const *words;	/* CONF_ENUM, NULL-terminated */
	/*
	 * Optional check of one value (for a list: of each); returns NULL or
	 * a constant text saying what is wrong.
	 */
	const char *(*check)(const char *value);
};

/*
 * Which rows were given, by -o and by file.  It must be the first member of
 * the struct that the rows describe (a row at offset 0 is CL_INTERNAL).
 */
#define CONF_MAX_ROWS 64
struct conf_seen {
	uint64_t option, file;		/* bit i: row i */
};

/*
 * A value is one word, or a "quoted one" with \" and \\ inside; the values
 * of CONF_LIST and CONF_WORDS are the words of the rest of the line, joined
 * by one space.  `none` alone empties a list that has CONF_NONE_OK.
 *
 * All functions: `rows` ends with a row whose keyword is NULL; `base` is the
 * caller's zeroed struct.  Errors are `file:line: message` in err[errlen]
 * and name the keyword and the value.  CL_FORMAT for a bad file, CL_SYSTEM
 * when it cannot be read, CL_DENIED when it is group or world writable or
 * belongs to somebody other than root or us.
 */
int conf_load_file(const struct conf_row *rows, void *base, const char *path,
    char *err, size_t errlen);
/* One `Keyword=value` of -o; wins over the file, so call it first. */
int conf_parse_option(const struct conf_row *rows, void *base,
    const char *option, char *err, size_t errlen);
/* Fill in the defaults of everything not set.  Call last. */
int conf_set_defaults(const struct conf_row *rows, void *base, char *err,
    size_t errlen);
/* The effective configuration as text that parses to itself (-T). */
int conf_format(const struct conf_row *rows, const void *base, char **textp);
/* Free every value; the struct is zeroed. */
void conf_clear(const struct conf_row *rows, void *base, size_t size);
/* 1 when a keyword's value differs; for "restart needed" on reload. */
int conf_is_changed(const struct conf_row *row, const void *a, const void *b);

/* Parse helpers shared with the tools: 512M, 30m.  CL_FORMAT, CL_TOOBIG. */
int conf_parse_size(const char *text, uint64_t *bytesp);
int conf_parse_time(const char *text, uint64_t *secondsp);

#endif
