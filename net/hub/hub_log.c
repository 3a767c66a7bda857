/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Output at the hub.  Runs in cloopd-net on files the monitor opened; the
 * text is what a device sent.  Order of writing: text, then index record,
 * and only then an acknowledgement: after a crash the log is cut back to
 * its index, and everything beyond is still at the device.
 */
#include "hub_log.h"

#include <sys/stat.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/crash.h"
#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/msg/msgcat.h"
#include "hub_logcut.h"
#include "hub_logredact.h"
#include "hub_take.h"

/* A chunk the disk would not take yet; the text follows the struct. */
struct hlog_wait {
	TAILQ_ENTRY(hlog_wait) link;
	struct hlog_chunk c;
	uint64_t wire_len;
	char text[];
};

static int
hlog_cmp_number(const struct hlog *a, const struct hlog *b)
{
	return a->number < b->number ? -1 : a->number > b->number;
}

static int
hlog_cmp_id(const struct hlog *a, const struct hlog *b)
{
	return strcmp(a->id, b->id);
}

RB_GENERATE_INTERNAL(hlog_numbers, hlog, by_number, hlog_cmp_number,
    __attribute__((__unused__)) static)
RB_GENERATE_INTERNAL(hlog_ids, hlog, by_id, hlog_cmp_id,
    __attribute__((__unused__)) static)

void
hlog_init(struct hlog_table *t)
{
	RB_INIT(&t->numbers);
	TAILQ_INIT(&t->busy);
	TAILQ_INIT(&t->opened);
	t->nopened = t->max_opened = t->nlogs = 0;
	t->waiting_len = 0;
	t->max_len = 0;
}

static void
hlog_set_busy(struct hlog_table *t, struct hlog *h)
{
	if (!h->busy) {
		TAILQ_INSERT_TAIL(&t->busy, h, link);
		h->busy = 1;
	}
}

int
hlog_open(struct hlog_table *t, struct hlog_ids *ids,
    const struct msg_handle_open *o, struct hlog **hp)
{
	struct hlog *h;

	*hp = NULL;
	if ((h = calloc(1, sizeof(*h))) == NULL ||
	    (h->id = strdup(o->handle_id)) == NULL) {
		free(h);
		return CL_NOMEM;
	}
	h->number = o->handle;
	h->session = o->session;
	h->log_fd = h->index_fd = -1;
	h->state = (uint8_t)o->state;
	h->gapped = h->told_gapped = o->gapped;
	h->closed = o->state == HS_EXITED || o->state == HS_FAILED ||
	    o->state == HS_KILLED;
	h->received = h->stored = h->indexed = h->told = o->received;
	h->log_limit = o->log_limit;
	h->max_len = t->max_len;
	TAILQ_INIT(&h->waits);
	RB_INSERT(hlog_numbers, &t->numbers, h);
	RB_INSERT(hlog_ids, ids, h);
	t->nlogs++;
	*hp = h;
	return CL_OK;
}

static void
hlog_close_files(struct hlog_table *t, struct hlog *h)
{
	if (h->opened) {
		TAILQ_REMOVE(&t->opened, h, by_use);
		t->nopened--;
	}
	h->opened = 0;
	if (h->log_fd != -1)
		close(h->log_fd);
	if (h->index_fd != -1)
		close(h->index_fd);
	h->log_fd = h->index_fd = -1;
}

/* Descriptors are few: they go where output comes. */
static void
hlog_rest_above(struct hlog_table *t, size_t max)
{
	struct hlog *h, *next;

	for (h = TAILQ_FIRST(&t->opened); h != NULL && t->nopened > max;
	    h = next) {
		next = TAILQ_NEXT(h, by_use);
		/* The numbers stay: nothing is read again for it. */
		if (!h->failing && hlog_flush(t, h, 0) == CL_OK)
			hlog_close_files(t, h);
	}
}

void
hlog_shed(struct hlog_table *t)
{
	hlog_rest_above(t, t->nopened / 2);
}

int
hlog_needs_files(const struct hlog *h)
{
	return !h->opened && !h->closed;
}

void
hlog_set_log(struct hlog_table *t, struct hlog *h, int fd)
{
	hlog_close_files(t, h);
	h->log_fd = fd;
}

/* 1: these are the files it had, as it left them. */
static int
hlog_is_same(const struct hlog *h)
{
	struct stat log_sb, index_sb;

	return h->loaded && fstat(h->log_fd, &log_sb) == 0 &&
	    fstat(h->index_fd, &index_sb) == 0 &&
	    (uint64_t)log_sb.st_size == h->log_len &&
	    (uint64_t)index_sb.st_size == h->index_len;
}

static int
hlog_load(struct hlog *h)
{
	struct logindex_state st;
	struct stat sb;
	int r;

	if (hlog_is_same(h))
		return CL_OK;
	if ((r = logindex_load(h->log_fd, h->index_fd, 1, &st)) != CL_OK)
		return r;
	if (fstat(h->index_fd, &sb) == -1)
		return CL_SYSTEM;
	/* What was reported beyond this was never acknowledged: the device
	 * still has it and sends it again. */
	h->stored = h->indexed = st.received;
	if (TAILQ_EMPTY(&h->waits) || h->received < st.received)
		h->received = st.received;
	h->log_len = st.log_len;
	h->index_len = (uint64_t)sb.st_size;
	if (st.gapped)
		h->gapped = 1;
	hlog_cut_free(h);
	if ((r = hlog_cut_load(h)) == CL_OK)
		h->loaded = 1;
	return r;
}

int
hlog_set_index(struct hlog_table *t, struct hlog *h, int fd)
{
	int r;

	if (h->index_fd != -1)
		close(h->index_fd);
	h->index_fd = fd;
	r = h->log_fd == -1 || h->closed ? CL_STATE : hlog_load(h);
	if (r != CL_OK) {
		hlog_close_files(t, h);
		return r;
	}
	if (h->opened)
		return CL_OK;
	if (t->max_opened != 0)
		hlog_rest_above(t, t->max_opened - 1);
	h->opened = 1;
	TAILQ_INSERT_TAIL(&t->opened, h, by_use);
	t->nopened++;
	return CL_OK;
}

static void
hlog_drop_wait(struct hlog_table *t, struct hlog *h, struct hlog_wait *w)
{
	TAILQ_REMOVE(&h->waits, w, link);
	h->waiting_len -= w->c.len;
	t->waiting_len -= w->c.len;
	explicit_bzero(w->text, w->c.len);
	free(w);
}

/* No more output will come. */
static void
hlog_end_files(struct hlog_table *t, struct hlog *h)
{
	struct hlog_wait *w;

	while ((w = TAILQ_FIRST(&h->waits)) != NULL)
		hlog_drop_wait(t, h, w);
	free(h->end_text);
	h->end_text = NULL;
	hlog_close_files(t, h);
	h->rec.wire_len = 0;
	hlog_cut_free(h);
}

void
hlog_close(struct hlog_table *t, struct hlog_ids *ids, struct hlog *h)
{
	hlog_end_files(t, h);
	hlog_redact_free(h);
	htake_free(h->take);
	if (h->busy)
		TAILQ_REMOVE(&t->busy, h, link);
	RB_REMOVE(hlog_numbers, &t->numbers, h);
	RB_REMOVE(hlog_ids, ids, h);
	t->nlogs--;
	free(h->id);
	free(h);
}

void
hlog_clear(struct hlog_table *t)
{
	struct hlog *h;

	while ((h = RB_MIN(hlog_numbers, &t->numbers)) != NULL) {
		RB_REMOVE(hlog_numbers, &t->numbers, h);
		hlog_end_files(t, h);
		hlog_redact_free(h);
		htake_free(h->take);
		free(h->id);
		free(h);
	}
	hlog_init(t);
}

struct hlog *
hlog_find(struct hlog_table *t, uint64_t number)
{
	struct hlog key = { .number = number };

	return RB_FIND(hlog_numbers, &t->numbers, &key);
}

struct hlog *
hlog_find_id(struct hlog_ids *ids, const char *id)
{
	struct hlog key = { .id = (char *)(uintptr_t)id };

	return RB_FIND(hlog_ids, ids, &key);
}

struct hlog *
hlog_next(struct hlog_ids *ids, struct hlog *h)
{
	return h == NULL ? RB_MIN(hlog_ids, ids) : RB_NEXT(hlog_ids, ids, h);
}

/* All of it or nothing: what a full disk took of it is cut off again. */
static int
hlog_write(int fd, const void *data, size_t len, uint64_t old_len)
{
	const char *p = data;
	size_t left = len;
	ssize_t n;
	int error;

	while (left > 0) {
		n = write(fd, p, left);
		if (n == -1 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		p += n;
		left -= (size_t)n;
	}
	if (left == 0)
		return CL_OK;
	error = n == 0 ? ENOSPC : errno;
	if (left != len && ftruncate(fd, (off_t)old_len) == -1)
		error = errno;
	errno = error;
	return CL_SYSTEM;
}

int
hlog_put_record(struct hlog *h, const void *record)
{
	uint8_t raw[LOGINDEX_RECORD_LEN];
	int r;

	logindex_format(record, raw);
	r = hlog_write(h->index_fd, raw, sizeof(raw), h->index_len);
	if (r == CL_OK)
		h->index_len += sizeof(raw);
	return r;
}

/* The record under way, and then the pieces of the middle that are due. */
static int
hlog_flush_record(struct hlog *h)
{
	int r;

	if (h->index_fd == -1) {
		errno = EBADF;
		return CL_SYSTEM;
	}
	if (h->rec.wire_len != 0) {
		if ((r = hlog_put_record(h, &h->rec)) != CL_OK)
			return r;
		CRASH_POINT("log.indexed");
		h->rec.wire_len = 0;
		h->indexed = h->stored;
	}
	if (hlog_cut_is_due(h) && hlog_cut_punch(h) == CL_SYSTEM)
		return CL_SYSTEM;
	return CL_OK;
}

static int
hlog_put_gap(struct hlog *h, const struct hlog_chunk *c)
{
	struct logindex_record gap = { 0 };
	int r;

	if ((r = hlog_flush_record(h)) != CL_OK)
		return r;
	gap.wire_off = h->stored;
	gap.file_off = h->log_len;
	gap.wire_len = c->off - h->stored;
	gap.time = c->time;
	gap.kind = LOGINDEX_GAP;
	gap.stream = c->stream;
	if ((r = hlog_put_record(h, &gap)) != CL_OK)
		return r;
	h->stored = h->indexed = c->off;
	return CL_OK;
}

/* What the index may grow to; beyond, its records only get longer. */
static uint64_t
hlog_get_quota(const struct hlog *h)
{
	uint64_t all = h->log_limit != 0 ? h->log_limit : 64 * 1048576 +
	    h->log_len;

	return all / HLOG_INDEX_SHARE > HLOG_INDEX_MIN ?
	    all / HLOG_INDEX_SHARE : HLOG_INDEX_MIN;
}

static int
hlog_is_coarse(const struct hlog *h)
{
	return h->index_len >= hlog_get_quota(h) / 2;
}

/* 1 when the record under way can take this chunk too. */
static int
hlog_is_fitting(const struct hlog *h, const struct hlog_chunk *c, int kind)
{
	if (h->rec.wire_len == 0)
		return 1;
	if (hlog_is_coarse(h))
		return h->rec.kind == kind && c->len <= HLOG_COARSE_MAX -
		    h->rec_len;
	return h->rec.kind == kind && h->rec.stream == c->stream &&
	    c->len <= MAX_LOG_INDEX_GAP_LEN - h->rec.file_len &&
	    h->rec.wire_len < MAX_LOG_INDEX_GAP_LEN;
}

/* What is missing before a chunk: a record of its own, or the length of the
 * one under way. */
static int
hlog_pass_gap(struct hlog *h, const struct hlog_chunk *c, int kind)
{
	if (c->off <= h->stored)
		return CL_OK;
	if (!hlog_is_coarse(h) || h->rec.wire_len == 0 ||
	    !hlog_is_fitting(h, c, kind))
		return hlog_put_gap(h, c);
	h->rec.wire_len += c->off - h->stored;
	h->stored = c->off;
	return CL_OK;
}

/* 0: the file cannot take it, and the middle cannot go, or is not enough. */
static int
hlog_has_room(const struct hlog *h, size_t len)
{
	uint64_t max = h->max_len != 0 ? h->max_len : UINT64_MAX;

	if (h->no_punch && h->log_limit != 0 && h->log_limit < max)
		max = h->log_limit;
	return h->log_len < max && len <= max - h->log_len;
}

/* Write a chunk that begins at or after `stored`.  Nothing has changed
 * when it fails, except that a gap before it may be on record. */
static int
hlog_store(struct hlog *h, const struct hlog_chunk *c, uint64_t wire_len,
    int64_t now)
{
	int r, kind = LOGINDEX_DATA;

	if (!hlog_has_room(h, c->len))
		kind = LOGINDEX_CUT;
	if ((r = hlog_pass_gap(h, c, kind)) != CL_OK)
		return r;
	if (!hlog_is_fitting(h, c, kind) &&
	    (r = hlog_flush_record(h)) != CL_OK)
		return r;
	if (h->index_fd == -1 || h->log_fd == -1) {
		errno = EBADF;
		return CL_SYSTEM;
	}
	if (kind == LOGINDEX_DATA && (r = hlog_write(h->log_fd, c->text,
	    c->len, h->log_len)) != CL_OK)
		return r;
	CRASH_POINT("log.written");
	if (h->rec.wire_len == 0) {
		memset(&h->rec, 0, sizeof(h->rec));
		h->rec.wire_off = h->stored;
		h->rec.file_off = h->log_len;
		h->rec.time = c->time;
		h->rec.kind = (uint8_t)kind;
		h->rec.stream = c->stream;
		h->rec_at = now;
		h->rec_len = 0;
	} else if (h->rec.stream != c->stream)
		h->rec.stream = LOGINDEX_COMBINED;
	h->rec_len += c->len;
	h->rec.wire_len += wire_len;
	h->stored += wire_len;
	if (kind == LOGINDEX_DATA) {
		h->rec.file_len += (uint32_t)c->len;
		h->log_len += c->len;
		(void)hlog_cut_mark(h);
	}
	return CL_OK;
}

/* Keep a chunk in memory until the disk takes it.  CL_LIMIT: no room. */
static int
hlog_add_wait(struct hlog_table *t, struct hlog *h,
    const struct hlog_chunk *c, uint64_t wire_len)
{
	struct hlog_wait *w;

	if (c->len > HLOG_PENDING_MAX - h->waiting_len ||
	    c->len > HLOG_PENDING_TOTAL - t->waiting_len ||
	    (w = malloc(sizeof(*w) + c->len)) == NULL)
		return CL_LIMIT;
	w->c = *c;
	memcpy(w->text, c->text, c->len);
	w->c.text = w->text;
	w->wire_len = wire_len;
	TAILQ_INSERT_TAIL(&h->waits, w, link);
	h->waiting_len += c->len;
	t->waiting_len += c->len;
	return CL_OK;
}

/*
 * Cut the first `skip` wire bytes off.  The text holds nreplaced bytes that
 * count one and are three here; where a literal U+FFFD stands among them
 * nothing can tell them apart, and the first ones are taken for escapes.
 */
static void
hlog_trim(struct hlog_chunk *c, uint64_t skip)
{
	size_t i = 0;

	while (skip > 0 && i < c->len) {
		if (c->nreplaced > 0 && c->len - i >= 3 &&
		    memcmp(c->text + i, "\xef\xbf\xbd", 3) == 0) {
			c->nreplaced--;
			i += 3;
		} else
			i++;
		skip--;
		c->off++;
	}
	c->text += i;
	c->len -= i;
}

/* The files came later than it, and hold some of it already. */
static void
hlog_trim_wait(const struct hlog *h, struct hlog_chunk *c, uint64_t *wire_lenp)
{
	uint64_t skip = h->stored > c->off ? h->stored - c->off : 0;

	if (skip > *wire_lenp)
		skip = *wire_lenp;
	hlog_trim(c, skip);
	*wire_lenp -= skip;
}

static int
hlog_retry(struct hlog_table *t, struct hlog *h, int64_t now)
{
	struct hlog_chunk c;
	struct hlog_wait *w;
	uint64_t wire_len;
	int r;

	h->retry_at = now + HLOG_RETRY_MS;
	while ((w = TAILQ_FIRST(&h->waits)) != NULL) {
		c = w->c;
		wire_len = w->wire_len;
		hlog_trim_wait(h, &c, &wire_len);
		if (wire_len > 0 &&
		    (r = hlog_store(h, &c, wire_len, now)) != CL_OK)
			return r;
		hlog_drop_wait(t, h, w);
	}
	if ((r = hlog_flush_record(h)) == CL_OK)
		h->failing = 0;
	return r;
}

int
hlog_keep(struct hlog_table *t, struct hlog *h, const struct hlog_chunk *c,
    uint64_t wire_len, int64_t now)
{
	int r = CL_OK;

	if (h->failing && now >= h->retry_at)
		(void)hlog_retry(t, h, now);
	if (h->failing)
		r = CL_SYSTEM;
	else if ((r = hlog_store(h, c, wire_len, now)) != CL_OK) {
		h->failing = 1;
		h->retry_at = now + HLOG_RETRY_MS;
	}
	hlog_set_busy(t, h);
	if (h->opened && TAILQ_NEXT(h, by_use) != NULL) {
		TAILQ_REMOVE(&t->opened, h, by_use);
		TAILQ_INSERT_TAIL(&t->opened, h, by_use);
	}
	if (r != CL_OK && hlog_add_wait(t, h, c, wire_len) != CL_OK)
		return CL_LIMIT;
	return r;
}

int
hlog_put(struct hlog_table *t, struct hlog *h, const struct hlog_chunk *in,
    int64_t now)
{
	struct hlog_chunk c = *in;
	uint64_t wire_len = c.len - 2 * c.nreplaced;
	int r;

	if (h->closed)
		return CL_OK;
	if (c.off > INT64_MAX - wire_len ||
	    (c.off > h->received && c.off - h->received > HLOG_JUMP_MAX))
		return CL_LIMIT;
	if (c.off + wire_len <= h->received)
		return CL_OK;
	if (c.off < h->received) {
		hlog_trim(&c, h->received - c.off);
		wire_len = c.len - 2 * c.nreplaced;
	}
	if (h->redact != NULL)
		r = hlog_redact_put(t, h, &c, wire_len, now);
	else
		r = hlog_keep(t, h, &c, wire_len, now);
	/* Not taken at all: the next chunk will be seen as after a gap. */
	if (r == CL_LIMIT || r == CL_NOMEM)
		return CL_SYSTEM;
	if (c.off > h->received)
		h->gapped = 1;
	h->received = c.off + wire_len;
	return r;
}

int
hlog_flush(struct hlog_table *t, struct hlog *h, int64_t now)
{
	int r;

	if (!h->opened)
		return TAILQ_EMPTY(&h->waits) ? CL_OK : CL_SYSTEM;
	if (h->failing || !TAILQ_EMPTY(&h->waits))
		return hlog_retry(t, h, now);
	if (h->rec.wire_len == 0 && !hlog_cut_is_due(h))
		return CL_OK;
	if ((r = hlog_flush_record(h)) != CL_OK) {
		h->failing = 1;
		h->retry_at = now + HLOG_RETRY_MS;
		hlog_set_busy(t, h);
	}
	return r;
}

/* How long an index record may wait: a log of very many small pieces must
 * not grow an index larger than itself. */
static int64_t
hlog_get_delay(const struct hlog *h)
{
	if (hlog_is_coarse(h))
		return 100 * HLOG_INDEX_MS;
	return h->index_len < 1048576 ? HLOG_INDEX_MS : 10 * HLOG_INDEX_MS;
}

int
hlog_settle(struct hlog_table *t, struct hlog *h, int64_t now)
{
	if (h->opened && !h->failing && hlog_is_coarse(h) &&
	    h->rec.wire_len != 0 && h->rec_len < HLOG_COARSE_LEN &&
	    now - h->rec_at < hlog_get_delay(h))
		return CL_OK;
	return hlog_flush(t, h, now);
}

void
hlog_shut(struct hlog_table *t, struct hlog *h, int64_t now)
{
	hlog_redact_end(t, h, now);
	(void)hlog_flush(t, h, now);
	if (h->received > h->stored) {
		/* The disk never took it and now it never will. */
		h->gapped = 1;
		h->received = h->stored;
	}
	h->closed = 1;
	h->failing = 0;
	hlog_end_files(t, h);
}

void
hlog_report(struct hlog *h, int64_t now, hlog_progress_fn *fn, void *ctx)
{
	if (h->told == h->indexed && h->told_gapped == h->gapped)
		return;
	h->told = h->indexed;
	h->told_gapped = h->gapped;
	h->told_at = now;
	fn(ctx, h);
}

int
hlog_on_time(struct hlog_table *t, int64_t now, hlog_progress_fn *fn,
    void *ctx)
{
	struct hlog *h, *next;

	TAILQ_FOREACH_SAFE(h, &t->busy, link, next) {
		if (h->failing) {
			if (now >= h->retry_at)
				(void)hlog_retry(t, h, now);
		} else if (h->rec.wire_len != 0 &&
		    now - h->rec_at >= hlog_get_delay(h))
			(void)hlog_flush(t, h, now);
		if (now - h->told_at >= HLOG_PROGRESS_MS)
			hlog_report(h, now, fn, ctx);
		if (!h->failing && h->rec.wire_len == 0 &&
		    h->end_text == NULL && h->told == h->indexed &&
		    h->told_gapped == h->gapped) {
			TAILQ_REMOVE(&t->busy, h, link);
			h->busy = 0;
		}
	}
	return !TAILQ_EMPTY(&t->busy);
}
