/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Secrets taken out of a stream of bytes: a set of values, and any number of
 * streams that are held against it.
 *
 * Every place where a value occurs becomes "[redacted]"; places that overlap
 * become one marker together, so that no rest of either value is left.  What
 * comes out does not depend on how the stream was cut.  A tail in which a
 * value could begin is withheld until it is decided, at most
 * REDACT_HOLD_MAX bytes of it; redact_end() gives it out.
 *
 * A value of more than REDACT_KEY_MAX bytes is known by overlapping pieces
 * of that size: the whole becomes one marker, and so does a long part alone.
 *
 * Bounds: output <= input * 5 / 4 in total (a marker has 10 bytes, a value
 * at least 8).  Time: one table look-up for a byte at which no value begins
 * (memchr where all begin alike), else a comparison with each value that
 * begins with the same two bytes.
 */
#ifndef CLOOP_REDACT_H
#define CLOOP_REDACT_H

#include <stddef.h>
#include <stdint.h>

#define REDACT_MARKER "[redacted]"
#define REDACT_MARKER_LEN 10
#define REDACT_VALUE_MIN 8		/* shorter ones hide nothing and would
					 * riddle the text */
#define REDACT_KEY_MAX 4096
#define REDACT_HOLD_MAX (REDACT_KEY_MAX - 1)

struct redact;

/* NULL when out of memory.  redact_free wipes. */
struct redact *redact_new(void);
void redact_free(struct redact *set);

/*
 * Add a value: as it is and without the white space around it; what is
 * shorter than REDACT_VALUE_MIN, a placeholder "<redacted...>" or there
 * already is skipped.  Copied.  May be called between any two calls of a
 * stream and holds from the next byte that is still withheld.  Values are
 * never taken away.  CL_LIMIT past MAX_REDACT_LEN bytes or
 * MAX_REDACT_VALUES values, CL_NOMEM; nothing is added then.
 */
int redact_add(struct redact *set, const void *data, size_t len);
/*
 * Add the values of the variables that CLOOP_REDACT_ENV names in env
 * ("NAME=value", n of them).  As redact_add.
 */
int redact_add_env(struct redact *set, char *const *env, size_t n);
/* 1 when nothing would ever be redacted. */
int redact_is_empty(const struct redact *set);

/*
 * Visit what redact_add kept, pieces included: to hand a set on to another
 * process.  Stops at the first result that is not 0 and returns it.
 */
typedef int redact_value_fn(void *arg, const void *data, size_t len);
int redact_walk(const struct redact *set, redact_value_fn *fn, void *arg);

/*
 * One piece of output.  in_len says how many bytes of input it stands for:
 * len for bytes that passed, the length of what was hidden for a marker.
 * The sum over all pieces is the input, byte for byte, in order.  `data` is
 * valid during the call only.
 */
struct redact_piece {
	const uint8_t *data;
	size_t len;
	uint64_t in_len;
	int is_marker;
};
/* A result that is not 0 ends the output: redact_put returns it and the
 * stream must be cleared. */
typedef int redact_fn(void *arg, const struct redact_piece *piece);

struct redact_stream {
	uint64_t open;		/* input hidden by a marker not yet given out */
	size_t cover;		/* bytes of held that belong to it */
	size_t len;
	uint8_t held[2 * REDACT_KEY_MAX];	/* len of them; the rest is room
						 * to decide them in */
};

void redact_stream_init(struct redact_stream *rs);
void redact_stream_clear(struct redact_stream *rs);	/* wipes */
/* Input bytes that have not come out yet. */
uint64_t redact_stream_get_held(const struct redact_stream *rs);

/* `set` may be NULL: everything passes. */
int redact_put(struct redact_stream *rs, const struct redact *set,
    const void *data, size_t len, redact_fn *fn, void *arg);
/* The stream is over; it can be used for the next one afterwards. */
int redact_end(struct redact_stream *rs, const struct redact *set,
    redact_fn *fn, void *arg);

/*
 * A whole text at once, into dst (NUL-terminated, cut to fit).  A value that
 * the cut would part is still hidden: the text is redacted first.
 */
void redact_format(const struct redact *set, const char *text, char *dst,
    size_t dstlen);

#endif
