/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * common/output/redact: the first lines of the input are the values, the rest
 * is the stream.  Cut anywhere it comes out the same, all of it is accounted
 * for, and no value is left in what passed.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/output/redact.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

#define FUZZ_MAX 65536

struct fuzz_out {
	uint8_t text[2 * FUZZ_MAX];
	size_t len;
	uint64_t in_len;
	size_t from;		/* where the bytes since a marker begin */
	const struct redact *set;
};

static int
fuzz_on_value(void *arg, const void *data, size_t len)
{
	struct fuzz_out *o = arg;

	if (memmem(o->text + o->from, o->len - o->from, data, len) != NULL)
		abort();
	return 0;
}

static int
fuzz_on_piece(void *arg, const struct redact_piece *p)
{
	struct fuzz_out *o = arg;

	if (p->len == 0 || p->len > sizeof(o->text) - o->len ||
	    (!p->is_marker && p->len != p->in_len))
		abort();
	if (p->is_marker) {
		if (p->in_len < REDACT_VALUE_MIN)
			abort();
		(void)redact_walk(o->set, fuzz_on_value, o);
	}
	memcpy(o->text + o->len, p->data, p->len);
	o->len += p->len;
	o->in_len += p->in_len;
	if (p->is_marker)
		o->from = o->len;
	return 0;
}

static void
fuzz_feed(const struct redact *set, const uint8_t *p, size_t len, size_t step,
    struct fuzz_out *o)
{
	static struct redact_stream rs;
	size_t n, left = len;

	o->len = o->from = 0;
	o->in_len = 0;
	o->set = set;
	redact_stream_init(&rs);
	for (; left > 0; p += n, left -= n) {
		n = step < left ? step : left;
		if (redact_put(&rs, set, p, n, fuzz_on_piece, o) != 0 ||
		    rs.len > REDACT_HOLD_MAX)
			abort();
	}
	if (redact_end(&rs, set, fuzz_on_piece, o) != 0 || o->in_len != len ||
	    o->len > len * 5 / 4)
		abort();
	(void)redact_walk(set, fuzz_on_value, o);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct fuzz_out a, b;
	static const size_t steps[] = { 1, 3, 8, 61, 4096 };
	struct redact *set;
	const uint8_t *nl;
	size_t i, n;

	if (len > FUZZ_MAX || (set = redact_new()) == NULL)
		return 0;
	for (i = 0; i < 8 && (nl = memchr(data, '\n', len)) != NULL; i++) {
		n = (size_t)(nl - data);
		if (redact_add(set, data, n) != 0)
			abort();
		data += n + 1;
		len -= n + 1;
	}
	fuzz_feed(set, data, len, len + 1, &a);
	for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		fuzz_feed(set, data, len, steps[i], &b);
		if (a.len != b.len || memcmp(a.text, b.text, a.len) != 0)
			abort();
	}
	redact_free(set);
	return 0;
}
