/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The JSON reader of the unprivileged network processes.  One strict pass
 * over the text (RFC 8259 grammar, nesting, size, duplicate members, UTF-8
 * noted) leaves an index of tokens; a field table then reads what it knows
 * straight from the index, with Go's rules.  What has a foreign shape is
 * handed to a json-c tree, after the same pass.
 *
 * A struct jx is reused from message to message and keeps its memory; the
 * text must stay in place as long as its tokens are used.
 */
#ifndef CLOOP_JSON_H
#define CLOOP_JSON_H

#include <stddef.h>
#include <stdint.h>

struct field_table;

#define MAX_JSON_TOKENS 131072	/* keys and values of one message; the
				 * largest start has about 20,000 */

enum jx_type { JX_NULL, JX_FALSE, JX_TRUE, JX_NUMBER, JX_STRING, JX_ARRAY,
	JX_OBJECT };

#define JX_ESCAPED 0x01		/* the string holds a backslash */
#define JX_NOT_UTF8 0x02	/* the string holds bad UTF-8 */

struct jx_token {
	uint32_t off;		/* of the literal; a string's first byte */
	uint32_t len;		/* a string without its quotes */
	uint32_t next;		/* index behind this value and all inside */
	uint32_t n;		/* elements, or members (2 tokens each) */
	uint8_t type;		/* enum jx_type */
	uint8_t flags;
};

struct jx;
/*
 * Called by jx_decode for each member no row of table t takes (unknown, or
 * FIELD_FOREIGN); v is the struct being filled.  Not CL_OK ends decoding.
 */
typedef int jx_unknown_fn(struct jx *x, const struct field_table *t, void *v,
    uint32_t key, uint32_t value);

struct jx {
	const char *text;
	size_t len;
	struct jx_token *tokens;	/* tokens[0] is the top value */
	size_t ntokens;
	size_t cap;
	size_t pos;			/* of the scan */
	jx_unknown_fn *unknown;		/* or NULL: unknown is ignored */
	char why[192];			/* of the last failure; printable */
};

/* Also draws json-c's hash seed: call before confinement. */
void jx_init(struct jx *x);
void jx_clear(struct jx *x);

/* Index a whole text.  CL_FORMAT (with why), CL_LIMIT, CL_NOMEM. */
int jx_scan(struct jx *x, const void *text, size_t len);

/*
 * Fill struct v (field_init is done here; cleared on failure) from the
 * object at token `at`.  null gives the zero value.  CL_FORMAT, CL_TOOBIG,
 * CL_NOMEM; x->why names the member: "spec.argv[2]: not a string".
 */
int jx_decode(struct jx *x, uint32_t at, const struct field_table *t,
    void *v);

/* Set why from a format; returns r.  Values from outside: %.*s only. */
int jx_fail(struct jx *x, int r, const char *fmt, ...)
    __attribute__((__format__(__printf__, 3, 4)));

/* Typed reading of single tokens (json_value.c).  null is the zero value. */
int jx_get_int(const struct jx *x, uint32_t at, int64_t *vp);
int jx_get_uint(const struct jx *x, uint32_t at, uint64_t *vp);
/* A string whose literal is its value (most are), borrowed and without a NUL
 * inside; NULL for anything else. */
const char *jx_find_plain(const struct jx *x, uint32_t at, size_t *lenp);
/* Unescaped, owned, NUL-terminated; *nreplacedp (or NULL): \ufffd escapes.
 * CL_FORMAT (not a string), CL_TOOBIG (more than max bytes), CL_NOMEM. */
int jx_get_string(const struct jx *x, uint32_t at, size_t max, char **sp,
    size_t *lenp, size_t *nreplacedp);
/* 1 when the key at `at` is `key` as Go matches keys. */
int jx_is_key(const struct jx *x, uint32_t at, const char *key);
/* The member of an object (key matched as Go does), or 0. */
uint32_t jx_find_member(const struct jx *x, uint32_t at, const char *key);
/* Compact copy of any value, valid UTF-8, owned.  CL_TOOBIG, CL_NOMEM. */
int jx_get_raw(const struct jx *x, uint32_t at, size_t max, char **textp);

/*
 * Visit every string inside a value of a foreign shape through a json-c
 * tree: fn(key of the nearest member or "", string, length, arg).
 * CL_FORMAT, CL_NOMEM, or what fn returned when not CL_OK.
 */
typedef int jx_string_fn(const char *key, const char *s, size_t len,
    void *arg);
int jx_walk_strings(const struct jx *x, uint32_t at, jx_string_fn *fn,
    void *arg);

#endif
