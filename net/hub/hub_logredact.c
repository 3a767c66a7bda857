/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Between a chunk and its file, in cloopd-net.  The text is the device's;
 * the values are what the monitor lent to this workload, and they stay in
 * this process's memory until the handle is closed.
 */
#include "hub_logredact.h"

#include <bsd/stdlib.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/msg/buf.h"
#include "common/output/redact.h"
#include "hub_log.h"

struct hlog_redact {
	struct redact *set;
	struct redact_stream stream;
	uint64_t in, out;	/* input bytes that went in, that came out */
	uint64_t wire_off;	/* of the next byte to come out */
	/*
	 * Where (in input bytes) the \ufffd escapes that are still inside
	 * begin: 3 bytes here, one on the wire.
	 */
	uint64_t *escapes;
	size_t nescapes, cap;
	struct hlog_chunk last;	/* stream and time of what is withheld */
};

/* Output of one call. */
struct hlog_redact_out {
	char *data;
	size_t len, cap;
	uint64_t in_len;
};

static int
hlog_redact_new(struct hlog *h)
{
	struct hlog_redact *x;

	if (h->redact != NULL)
		return CL_OK;
	if ((x = calloc(1, sizeof(*x))) == NULL)
		return CL_NOMEM;
	if ((x->set = redact_new()) == NULL) {
		free(x);
		return CL_NOMEM;
	}
	redact_stream_init(&x->stream);
	h->redact = x;
	return CL_OK;
}

void
hlog_redact_free(struct hlog *h)
{
	struct hlog_redact *x = h->redact;

	if (x == NULL)
		return;
	redact_free(x->set);
	redact_stream_clear(&x->stream);
	free(x->escapes);
	free(x);
	h->redact = NULL;
}

int
hlog_add_redactions(struct hlog *h, const void *data, size_t len)
{
	const uint8_t *value;
	struct buf b;
	size_t n;
	int r, first = CL_OK;

	if ((r = hlog_redact_new(h)) != CL_OK)
		return r;
	buf_init_read(&b, data, len);
	while (buf_left(&b) > 0) {
		if ((value = buf_get_blob(&b, len, &n)) == NULL)
			return CL_FORMAT;
		if ((r = redact_add(h->redact->set, value, n)) != CL_OK &&
		    first == CL_OK)
			first = r;
	}
	return first;
}

void
hlog_redact_text(const struct hlog *h, const char *text, char *dst,
    size_t dstlen)
{
	redact_format(h != NULL && h->redact != NULL ? h->redact->set : NULL,
	    text, dst, dstlen);
}

/* The first nreplaced U+FFFD of a chunk are taken for escapes, as when it
 * is trimmed (hub_log.c). */
static int
hlog_redact_add_escapes(struct hlog_redact *x, const struct hlog_chunk *c)
{
	size_t i, n = c->nreplaced;
	uint64_t *v;

	if (n > x->cap - x->nescapes) {
		v = reallocarray(x->escapes, x->nescapes + n, sizeof(*v));
		if (v == NULL)
			return CL_NOMEM;
		x->escapes = v;
		x->cap = x->nescapes + n;
	}
	for (i = 0; n > 0 && i + 3 <= c->len; i++) {
		if (memcmp(c->text + i, "\xef\xbf\xbd", 3) != 0)
			continue;
		x->escapes[x->nescapes++] = x->in + i;
		i += 2;
		n--;
	}
	return CL_OK;
}

/* Wire bytes of the next in_len input bytes, which come out now. */
static uint64_t
hlog_redact_count(struct hlog_redact *x, uint64_t in_len)
{
	uint64_t end = x->out + in_len, wire = in_len, p;
	size_t i, done = 0;

	for (i = 0; i < x->nescapes && x->escapes[i] < end; i++)
		for (p = x->escapes[i] + 1; p <= x->escapes[i] + 2; p++)
			if (p >= x->out && p < end)
				wire--;
	while (done < x->nescapes && x->escapes[done] + 3 <= end)
		done++;
	x->nescapes -= done;
	if (x->nescapes > 0)
		memmove(x->escapes, x->escapes + done,
		    x->nescapes * sizeof(*x->escapes));
	x->out = end;
	return wire;
}

static int
hlog_redact_on_piece(void *arg, const struct redact_piece *piece)
{
	struct hlog_redact_out *o = arg;

	if (piece->len > o->cap - o->len)
		return CL_INTERNAL;
	memcpy(o->data + o->len, piece->data, piece->len);
	o->len += piece->len;
	o->in_len += piece->in_len;
	return CL_OK;
}

/* What came out goes to the files, or waits for them. */
static int
hlog_redact_keep(struct hlog_table *t, struct hlog *h,
    const struct hlog_redact_out *o, int64_t now)
{
	struct hlog_redact *x = h->redact;
	struct hlog_chunk c = x->last;
	uint64_t wire = hlog_redact_count(x, o->in_len);
	int r;

	/* Half of a replacement character alone: no byte of the wire. */
	if (wire == 0)
		return CL_OK;
	c.off = x->wire_off;
	c.text = o->data;
	c.len = o->len;
	c.nreplaced = 0;
	x->wire_off += wire;
	if ((r = hlog_keep(t, h, &c, wire, now)) == CL_LIMIT) {
		/* Lost, and what follows will be seen as after a gap. */
		h->gapped = 1;
		return CL_SYSTEM;
	}
	return r;
}

/* data NULL: the end. */
static int
hlog_redact_run(struct hlog_table *t, struct hlog *h, const char *data,
    size_t len, int64_t now)
{
	struct hlog_redact *x = h->redact;
	struct hlog_redact_out o = { NULL, 0, 0, 0 };
	uint64_t held = redact_stream_get_held(&x->stream);
	int r;

	/* redact.h: output <= input * 5 / 4. */
	o.cap = (size_t)(held + len) / 4 * 5 + 2 * REDACT_MARKER_LEN;
	if ((o.data = malloc(o.cap)) == NULL)
		return CL_NOMEM;
	if (data != NULL) {
		x->in += len;
		r = redact_put(&x->stream, x->set, data, len,
		    hlog_redact_on_piece, &o);
	} else
		r = redact_end(&x->stream, x->set, hlog_redact_on_piece, &o);
	if (r == CL_OK)
		r = hlog_redact_keep(t, h, &o, now);
	freezero(o.data, o.cap);
	return r;
}

void
hlog_redact_end(struct hlog_table *t, struct hlog *h, int64_t now)
{
	if (h->redact != NULL &&
	    redact_stream_get_held(&h->redact->stream) > 0)
		(void)hlog_redact_run(t, h, NULL, 0, now);
}

int
hlog_redact_put(struct hlog_table *t, struct hlog *h,
    const struct hlog_chunk *c, uint64_t wire_len, int64_t now)
{
	struct hlog_redact *x = h->redact;
	int r;

	(void)wire_len;
	/* What never came cannot complete what is withheld. */
	if (c->off > h->received)
		hlog_redact_end(t, h, now);
	if (redact_stream_get_held(&x->stream) == 0) {
		x->wire_off = c->off;
		x->out = x->in;
		x->nescapes = 0;
	}
	if ((r = hlog_redact_add_escapes(x, c)) != CL_OK)
		return r;
	x->last = *c;
	x->last.text = NULL;
	return hlog_redact_run(t, h, c->text, c->len, now);
}
