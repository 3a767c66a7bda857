/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * JSON writer in the form of Go's encoding/json: compact, its escapes, its
 * base64, its times.  Runs in every process that prints or sends JSON; a
 * writer only, so that root may link it.
 *
 * jsonw_init(&w, max, flags), jsonw_put_*; commas come by themselves.  The
 * first failure sticks (CL_TOOBIG, CL_NOMEM), later puts are no-ops, and
 * jsonw_error() tells.  Old memory is wiped: frames carry secrets.
 */
#ifndef CLOOP_JSONW_H
#define CLOOP_JSONW_H

#include <stddef.h>
#include <stdint.h>

#define JSONW_NO_HTML 0x01	/* leave < > & alone (cloopctl --json) */

struct jsonw {
	char *data;		/* NUL-terminated past len; NULL when unused */
	size_t len;
	size_t cap;
	size_t max;		/* bytes of text */
	unsigned int flags;
	int comma;		/* a comma goes before the next element */
	int error;		/* sticky CL_*; 0 */
};

void jsonw_init(struct jsonw *w, size_t max, unsigned int flags);
/* Wipe and free. */
void jsonw_clear(struct jsonw *w);
/* Forget content and error, keep the memory for the next text (not wiped:
 * call jsonw_clear after a text with a secret). */
void jsonw_reset(struct jsonw *w);
int jsonw_error(const struct jsonw *w);
/* The text, owned by the caller (wipe it if it matters); w is as after
 * jsonw_clear.  NULL after an error. */
char *jsonw_take(struct jsonw *w, size_t *lenp);

void jsonw_open_object(struct jsonw *w);
void jsonw_close_object(struct jsonw *w);
void jsonw_open_array(struct jsonw *w);
void jsonw_close_array(struct jsonw *w);
/* A member's key; the value follows. */
void jsonw_put_key(struct jsonw *w, const char *key);

/* NULL is written as "". */
void jsonw_put_str(struct jsonw *w, const char *s);
/* Any bytes: a byte that is not UTF-8 becomes the escape \ufffd. */
void jsonw_put_text(struct jsonw *w, const void *p, size_t len);
/* Standard base64 with padding. */
void jsonw_put_bytes(struct jsonw *w, const void *p, size_t len);
void jsonw_put_int(struct jsonw *w, int64_t v);
void jsonw_put_uint(struct jsonw *w, uint64_t v);
void jsonw_put_bool(struct jsonw *w, int v);
void jsonw_put_null(struct jsonw *w);
/* RFC 3339 in UTC; UTIL_TIME_ZERO is Go's zero time. */
void jsonw_put_time(struct jsonw *w, int64_t wall_ns);
/* A value that is JSON text already. */
void jsonw_put_raw(struct jsonw *w, const char *text, size_t len);

#endif
