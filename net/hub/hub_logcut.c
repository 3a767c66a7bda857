/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The middle of a long output.  Runs in cloopd-net on the files of hub_log.c.
 * A piece may only end where a chunk ended, since only there both offsets
 * are known; such places are remembered about every sixteenth of the limit.
 */
#include "hub_logcut.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "hub_log.h"

#define HLOG_CUT_MARKS (HLOG_CUT_PIECES + 2)
#define HLOG_CUT_BLOCK 100
#define HLOG_CUT_ALIGN 65536	/* no file system has larger blocks */

struct hlog_mark {
	uint64_t file;
	uint64_t wire;
};

struct hlog_cut {
	uint64_t begin;			/* of the hole, in the file */
	struct hlog_mark end;
	struct hlog_mark marks[HLOG_CUT_MARKS];
	unsigned int nmarks;
};

static uint64_t
hlog_cut_get_piece(const struct hlog *h)
{
	uint64_t piece = h->log_limit / HLOG_CUT_PIECES;

	return piece > 4096 ? piece : 4096;
}

/* The same, for a place known from the index. */
static int
hlog_cut_add(struct hlog *h, const struct hlog_mark *at)
{
	const struct hlog_mark *last;
	struct hlog_cut *c = h->cut;

	if (c == NULL) {
		if (at->file < h->log_limit / 2)
			return CL_OK;
		if ((h->cut = calloc(1, sizeof(*h->cut))) == NULL)
			return CL_NOMEM;
		h->cut->begin = at->file;
		h->cut->end = *at;
		return CL_OK;
	}
	last = c->nmarks > 0 ? &c->marks[c->nmarks - 1] : &c->end;
	if (at->file < last->file + hlog_cut_get_piece(h) ||
	    c->nmarks == HLOG_CUT_MARKS)
		return CL_OK;
	c->marks[c->nmarks++] = *at;
	return CL_OK;
}

int
hlog_cut_mark(struct hlog *h)
{
	struct hlog_mark at = { h->log_len, h->stored };

	if (h->log_limit == 0 || h->no_punch)
		return CL_OK;
	return hlog_cut_add(h, &at);
}

/* What lies behind a place may be at most half the limit. */
static int
hlog_cut_is_old(const struct hlog *h, const struct hlog_mark *m)
{
	uint64_t half = h->log_limit / 2, piece = hlog_cut_get_piece(h);
	uint64_t keep = half > piece ? half - piece : 0;

	return h->log_len - m->file >= keep &&
	    h->log_len - h->cut->end.file > half;
}

int
hlog_cut_is_due(const struct hlog *h)
{
	return h->cut != NULL && !h->no_punch && h->cut->nmarks > 0 &&
	    hlog_cut_is_old(h, &h->cut->marks[0]);
}

static int
hlog_cut_punch_one(struct hlog *h)
{
	struct hlog_cut *c = h->cut;
	struct logindex_record r = { 0 };
	struct hlog_mark m = c->marks[0];
	uint64_t from;
	int ret;

	r.kind = LOGINDEX_CUT;
	r.wire_off = c->end.wire;
	r.wire_len = m.wire - c->end.wire;
	r.file_off = c->end.file;
	r.file_len = (uint32_t)(m.file - c->end.file);
	/* First the record: a reader must not meet zeroes unwarned. */
	if ((ret = hlog_put_record(h, &r)) != CL_OK)
		return ret;
	/* The block that the piece before ended in becomes free only now. */
	from = r.file_off - c->begin > HLOG_CUT_ALIGN ?
	    r.file_off - HLOG_CUT_ALIGN : c->begin;
	if (fallocate(h->log_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
	    (off_t)from, (off_t)(m.file - from)) == -1 && errno != EINTR) {
		h->no_punch = 1;
		return CL_UNSUPPORTED;
	}
	c->end = m;
	c->nmarks--;
	memmove(&c->marks[0], &c->marks[1], c->nmarks * sizeof(c->marks[0]));
	return CL_OK;
}

int
hlog_cut_punch(struct hlog *h)
{
	int r = CL_OK;

	while (r == CL_OK && hlog_cut_is_due(h))
		r = hlog_cut_punch_one(h);
	return r;
}

typedef int hlog_cut_fn(struct hlog *h, const struct logindex_record *r,
    uint64_t *endp);

/* Call fn for every record of the index. */
static int
hlog_cut_walk(struct hlog *h, hlog_cut_fn *fn, uint64_t *endp)
{
	uint8_t raw[HLOG_CUT_BLOCK * LOGINDEX_RECORD_LEN];
	struct logindex_record rec;
	ssize_t n, i;
	off_t off = 0;
	int r;

	for (;;) {
		n = pread(h->index_fd, raw, sizeof(raw), off);
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			return CL_SYSTEM;
		for (i = 0; i + LOGINDEX_RECORD_LEN <= n;
		    i += LOGINDEX_RECORD_LEN)
			if ((r = logindex_parse(raw + i, &rec)) != CL_OK ||
			    (r = fn(h, &rec, endp)) != CL_OK)
				return r;
		if (n < LOGINDEX_RECORD_LEN)
			return CL_OK;
		off += n - n % LOGINDEX_RECORD_LEN;
	}
}

static int
hlog_cut_find_end(struct hlog *h, const struct logindex_record *r,
    uint64_t *endp)
{
	(void)h;
	if (r->kind == LOGINDEX_CUT && r->file_len != 0 &&
	    r->file_off + r->file_len > *endp)
		*endp = r->file_off + r->file_len;
	return CL_OK;
}

static int
hlog_cut_find_marks(struct hlog *h, const struct logindex_record *r,
    uint64_t *endp)
{
	struct hlog_mark at = { r->file_off + r->file_len,
		r->wire_off + r->wire_len };

	if (r->kind != LOGINDEX_DATA || at.file < *endp)
		return CL_OK;
	return hlog_cut_add(h, &at);
}

int
hlog_cut_load(struct hlog *h)
{
	uint64_t end = 0;
	int r;

	if (h->log_limit == 0 || h->log_len < h->log_limit / 2)
		return CL_OK;
	if ((r = hlog_cut_walk(h, hlog_cut_find_end, &end)) != CL_OK)
		return r;
	return hlog_cut_walk(h, hlog_cut_find_marks, &end);
}

void
hlog_cut_free(struct hlog *h)
{
	free(h->cut);
	h->cut = NULL;
}
