/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Output on its way from spool to hub, in agentd-fetch.  The bytes are the
 * workload's and mean nothing here: they are normalised, cut and counted.
 * Nothing is kept in memory but positions; what has to be sent again is read
 * again.
 */
#include "fetch.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/crash.h"
#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/util.h"

#define FETCH_OUT_HIGH 131072	/* queued bytes above which output waits */

void
fetch_out_init(struct fetch_out *o, uint64_t acked_raw, uint64_t acked_norm)
{
	memset(o, 0, sizeof(*o));
	utf8_norm_init(&o->tail);
	o->raw = o->sent_raw = acked_raw;
	o->norm = o->acked_norm = acked_norm;
	o->marks[0].raw = acked_raw;
	o->marks[0].norm = acked_norm;
	o->nmarks = 1;
}

/* Where we are: an incomplete character counts as not read yet. */
static struct fetch_out_mark
fetch_out_get_mark(const struct fetch_out *o)
{
	struct fetch_out_mark here = { o->raw - o->tail.tail_len, o->norm };

	return here;
}

uint64_t
fetch_out_get_total(const struct fetch_work *w)
{
	uint64_t total = spool_load_u64(&w->spool.head->total);

	return w->out.norm + (total > w->out.raw ? total - w->out.raw : 0);
}

/*
 * Remember the present position.  A full table is thinned to every other
 * mark: going back then reads a little more again, that is all.
 */
static void
fetch_out_add_mark(struct fetch_out *o, uint64_t distance)
{
	struct fetch_out_mark here = fetch_out_get_mark(o);
	size_t i, n;

	if (here.norm < o->marks[o->nmarks - 1].norm + distance ||
	    here.raw <= o->marks[o->nmarks - 1].raw)
		return;
	if (o->nmarks == FETCH_OUT_MARKS) {
		for (i = n = 0; i < FETCH_OUT_MARKS; i += 2)
			o->marks[n++] = o->marks[i];
		o->nmarks = n;
	}
	o->marks[o->nmarks++] = here;
}

/* Index of the last mark at or before this offset; 0 when there is none. */
static size_t
fetch_out_find_mark(const struct fetch_out *o, uint64_t norm)
{
	size_t i = o->nmarks - 1;

	while (i > 0 && o->marks[i].norm > norm)
		i--;
	return i;
}

static void
fetch_out_set_position(struct fetch_out *o, struct fetch_out_mark m)
{
	o->raw = m.raw;
	o->norm = m.norm;
	utf8_norm_init(&o->tail);
	o->flushed = 0;
}

void
fetch_out_rewind(struct fetch_work *w, uint64_t from)
{
	struct fetch_out *o = &w->out;
	uint64_t total = spool_load_u64(&w->spool.head->total);
	uint64_t most;

	/* What is not read yet may triple; beyond that it is a wild claim
	 * that would silence the workload. */
	most = o->norm + (total > o->raw ? (total - o->raw) : 0) * 3;
	if (from > most)
		from = most;
	if (from < o->acked_norm)
		from = o->acked_norm;
	fetch_out_add_mark(o, 1);
	fetch_out_set_position(o, o->marks[fetch_out_find_mark(o, from)]);
	o->skip_to = from;
	w->status_pos = 0;
	fetch_back_restart(w);
	fetch_work_set_dirty(w);
}

void
fetch_out_on_link_end(struct fetch_work *w)
{
	w->out.queued_pos = w->out.wait_pos = 0;
	w->status_pos = 0;
	fetch_back_restart(w);
	w->told = 0;
}

void
fetch_out_on_ack(struct fetch_work *w, uint64_t offset)
{
	struct fetch_out *o = &w->out;
	struct fetch_out_mark first = o->marks[0], here = fetch_out_get_mark(o);
	struct msg_dev_acked body = { .slot = w->slot };
	size_t i;

	if (offset > o->norm)
		offset = o->norm;
	if (offset <= o->acked_norm)
		return;
	o->acked_norm = offset;
	i = fetch_out_find_mark(o, offset);
	memmove(o->marks, o->marks + i, (o->nmarks - i) * sizeof(*o->marks));
	o->nmarks -= i;
	if (here.norm <= offset) {
		o->marks[0] = here;
		o->nmarks = 1;
	}
	if (o->marks[0].raw <= first.raw)
		return;
	CRASH_POINT("ack.fetch");
	body.raw = o->marks[0].raw;
	body.norm = o->marks[0].norm;
	FETCH_TELL(w->f, DEV_ACKED, &body);
}

/* One log_chunk.  CL_* of the link. */
static int
fetch_out_put_chunk(struct fetch_work *w, uint64_t offset, uint8_t *text,
    size_t len)
{
	struct frame_log_chunk c;
	struct fetch_out *o = &w->out;
	int r;

	frame_init_payload(FRAME_LOG_CHUNK, &c);
	c.stream = (char *)(uintptr_t)"combined";
	c.offset = (int64_t)offset;
	c.text.data = (char *)text;
	c.text.len = len;
	c.time = util_wall_ns();
	r = fetch_send(w->f, FRAME_LOG_CHUNK, NULL, w->handle, &c,
	    &o->queued_pos);
	if (r == 0)
		o->chunk_at = util_now_ms();
	return r;
}

/*
 * Normalised text that follows what came before: count it, leave out what
 * the hub has, send the rest in pieces that end between characters.
 */
static int
fetch_out_put_text(struct fetch_work *w, uint8_t *text, size_t len)
{
	struct fetch_out *o = &w->out;
	uint64_t offset = o->norm;
	size_t n;
	int r = CL_OK;

	o->norm += len;
	if (offset < o->skip_to) {
		n = o->skip_to - offset < len ? (size_t)(o->skip_to - offset) :
		    len;
		/* Inside a character: round up. */
		while (n < len && (text[n] & 0xc0) == 0x80)
			n++;
		text += n;
		len -= n;
		offset += n;
	}
	while (r == 0 && len > 0) {
		n = len;
		if (n > MAX_LOG_TEXT_LEN)
			n = utf8_cut(text, MAX_LOG_TEXT_LEN);
		r = fetch_out_put_chunk(w, offset, text, n);
		text += n;
		len -= n;
		offset += n;
	}
	return r;
}

/*
 * The spool lost what we wanted next; go on at `raw`.  A mark at or behind
 * it keeps offsets true that were sent before; without one the lost bytes
 * count one each.
 */
static void
fetch_out_skip_gap(struct fetch_work *w, uint64_t raw)
{
	struct fetch_out *o = &w->out;
	struct fetch_out_mark here = fetch_out_get_mark(o), to;
	size_t i;

	for (i = 0; i < o->nmarks && o->marks[i].raw < raw; i++)
		;
	if (i < o->nmarks && o->marks[i].norm >= here.norm)
		to = o->marks[i];
	else {
		to.raw = raw;
		to.norm = here.norm + (raw - here.raw);
	}
	log_warn("output-lost", "handle=%s bytes=%llu", log_q(w->handle),
	    (unsigned long long)(to.norm - here.norm));
	fetch_out_set_position(o, to);
	fetch_out_add_mark(o, 1);
}

/* Read, normalise and queue one piece.  CL_INCOMPLETE: there is none. */
static int
fetch_out_send_piece(struct fetch_work *w)
{
	struct fetch *f = w->f;
	struct fetch_out *o = &w->out;
	uint64_t raw = o->raw;
	size_t n, len;
	int r;

	/* With the carried bytes valid text then fits one chunk. */
	r = spool_get(&w->spool, &raw, f->raw,
	    sizeof(f->raw) - o->tail.tail_len, &n);
	if (r != 0) {
		log_error("spool-read", "handle=%s reason=\"%s\"",
		    log_q(w->handle), cl_strerror(r));
		return r;
	}
	if (raw != o->raw) {
		fetch_out_skip_gap(w, raw);
		if (o->raw != raw)
			return CL_OK;	/* at a mark behind it: read there */
	}
	if (n == 0)
		return CL_INCOMPLETE;
	len = utf8_norm_put(&o->tail, f->raw, n, f->text);
	o->raw += n;
	if ((r = fetch_out_put_text(w, f->text, len)) != 0)
		return r;
	CRASH_POINT("spool.chunk");
	o->queued_raw = fetch_out_get_mark(o).raw;
	fetch_out_add_mark(o, FETCH_OUT_MARK_LEN);
	return CL_OK;
}

/* All output was read and it has ended: the rest, what comes back, then the
 * status. */
static int
fetch_out_send_end(struct fetch_work *w)
{
	struct fetch_out *o = &w->out;
	size_t len;
	int r;

	/* What the shim could not keep counts, though it never comes. */
	if (o->raw < w->end.total_raw)
		fetch_out_skip_gap(w, w->end.total_raw);
	if (!o->flushed) {
		len = utf8_norm_end(&o->tail, w->f->text);
		o->flushed = 1;
		if ((r = fetch_out_put_text(w, w->f->text, len)) != 0)
			return r;
		o->queued_raw = o->raw;
	}
	if ((r = fetch_back_step(w)) != CL_INCOMPLETE)
		return r;
	log_info("workload-ended", "handle=%s state=%s code=%lld bytes=%llu",
	    log_q(w->handle), frame_state_name(w->end.state),
	    (long long)w->end.exit_code, (unsigned long long)o->norm);
	return fetch_work_put_status(w, NULL, 1);
}

/*
 * One turn of one workload.  CL_OK: look again; CL_INCOMPLETE: wait for its
 * shim; CL_TIMEOUT: wait until due_at; anything else: the session ends.
 */
static int
fetch_out_run(struct fetch_work *w)
{
	struct fetch_out *o = &w->out;
	uint64_t total = spool_load_u64(&w->spool.head->total);
	int64_t next_at = o->chunk_at + COALESCE_MS;
	int r;

	if (w->held || w->status_pos != 0)
		return CL_INCOMPLETE;
	/* The first bytes go at once; what trickles is put together. */
	if (!w->exited && total > o->raw &&
	    total - o->raw < MAX_LOG_TEXT_LEN && util_now_ms() < next_at) {
		o->due_at = next_at;
		return CL_TIMEOUT;
	}
	r = fetch_out_send_piece(w);
	if (r == CL_INCOMPLETE && w->exited)
		return fetch_out_send_end(w);
	return r;
}

/* Those whose time has come. */
static void
fetch_out_check_waiting(struct fetch *f, int64_t now)
{
	struct fetch_work *w, *next;

	for (w = TAILQ_FIRST(&f->waiting); w != NULL; w = next) {
		next = TAILQ_NEXT(w, dirty_entry);
		if (w->out.due_at <= now)
			fetch_work_set_dirty(w);
	}
}

void
fetch_out_pump(struct fetch *f)
{
	struct fetch_work *w;
	int r;

	fetch_out_check_waiting(f, util_now_ms());
	while (f->state == FST_UP && fetch_link_get_queued(f->link) <
	    FETCH_OUT_HIGH && (w = TAILQ_FIRST(&f->dirty)) != NULL) {
		TAILQ_REMOVE(&f->dirty, w, dirty_entry);
		w->dirty = 0;
		r = fetch_out_run(w);
		if (r == CL_OK)
			fetch_work_set_dirty(w);
		else if (r == CL_TIMEOUT)
			TAILQ_INSERT_TAIL(&f->waiting, w, dirty_entry);
	}
}

static void
fetch_out_report_sent(struct fetch_work *w, uint64_t raw)
{
	struct msg_dev_sent body = { .slot = w->slot, .raw = raw };

	if (raw <= w->out.sent_raw)
		return;
	w->out.sent_raw = raw;
	FETCH_TELL(w->f, DEV_SENT, &body);
}

static void
fetch_out_report_done(struct fetch_work *w)
{
	struct msg_slot body = { .slot = w->slot };

	FETCH_TELL(w->f, DEV_DONE, &body);
	fetch_work_del(w);
}

void
fetch_out_on_end_ack(struct fetch *f, const char *handle, uint64_t offset)
{
	struct fetch_work *w, *next;

	for (w = TAILQ_FIRST(&f->works); w != NULL; w = next) {
		next = TAILQ_NEXT(w, entry);
		if (!w->told || strcmp(w->handle, handle) != 0 ||
		    offset < w->out.norm)
			continue;
		CRASH_POINT("end.acked");
		fetch_out_report_done(w);
	}
}

void
fetch_out_on_beat_ack(struct fetch *f, uint64_t seq)
{
	struct fetch_work *w, *next;

	for (w = TAILQ_FIRST(&f->works); w != NULL; w = next) {
		next = TAILQ_NEXT(w, entry);
		if (w->told && seq >= w->told_beat)
			fetch_out_report_done(w);
	}
}

void
fetch_out_on_request(struct fetch *f)
{
	struct fetch_work *w, *next;

	if (fetch_link_has_end_acks(f->link))
		return;
	for (w = TAILQ_FIRST(&f->works); w != NULL; w = next) {
		next = TAILQ_NEXT(w, entry);
		if (w->told && fetch_link_is_settled(f->link))
			fetch_out_report_done(w);
	}
}

/* Many ends that nobody confirms: the oldest go as delivered. */
static void
fetch_out_limit_told(struct fetch *f)
{
	struct fetch_work *w, *first = NULL;
	unsigned int n = 0;

	TAILQ_FOREACH(w, &f->works, entry) {
		if (!w->told)
			continue;
		if (first == NULL)
			first = w;
		n++;
	}
	if (n > FETCH_OUT_TOLD_MAX)
		fetch_out_report_done(first);
}

void
fetch_out_on_written(struct fetch *f)
{
	uint64_t written = fetch_link_get_written(f->link);
	struct fetch_work *w, *next;
	struct fetch_out *o;
	struct msg_slot told;

	for (w = TAILQ_FIRST(&f->works); w != NULL; w = next) {
		next = TAILQ_NEXT(w, entry);
		o = &w->out;
		if (o->wait_pos != 0 && written >= o->wait_pos) {
			fetch_out_report_sent(w, o->wait_raw);
			o->wait_pos = 0;
		}
		/* One position is watched at a time: the newest there was. */
		if (o->wait_pos == 0 && o->queued_pos > written) {
			o->wait_pos = o->queued_pos;
			o->wait_raw = o->queued_raw;
		} else if (o->wait_pos == 0 && o->queued_pos != 0)
			fetch_out_report_sent(w, o->queued_raw);
		if (w->told || w->status_pos == 0 || written < w->status_pos)
			continue;
		w->told = 1;
		w->told_beat = f->beat_seq + 1;
		CRASH_POINT("status.sent");
		told.slot = w->slot;
		FETCH_TELL(f, DEV_TOLD, &told);
	}
	fetch_out_limit_told(f);
}
