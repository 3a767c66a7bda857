/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * agent/fetch/fetch_output: offsets, going back, acknowledgements, gaps and the
 * end.  The link and the monitor are stand-ins here.
 */
#include "regress/unit/unit.h"

#include <sys/mman.h>

#include "agent/fetch/fetch_output.c"

/* What the hub has: bytes by offset, as its rules keep them. */
static uint8_t hub[1 << 20];
static uint64_t hub_received, first_offset;
static size_t nchunks, nstatus, max_chunk;
static uint64_t acked_raw, acked_norm, sent_raw;
static uint64_t link_queued, link_written;
static int told, done, settled, end_acks;

static struct fetch fetch;
static struct fetch_work *work;
static uint8_t raw[300000];

int
fetch_send(struct fetch *f, enum frame_type type, const char *id,
    const char *handle, const void *payload, uint64_t *posp)
{
	const struct frame_log_chunk *c = payload;
	uint64_t end;

	if (type != FRAME_LOG_CHUNK)
		return CL_INTERNAL;
	ASSERT_TRUE(utf8_is_valid(c->text.data, c->text.len));
	ASSERT_SIZE_T_EQ(utf8_cut(c->text.data, c->text.len), c->text.len);
	if (c->text.len > max_chunk)
		max_chunk = c->text.len;
	end = (uint64_t)c->offset + c->text.len;
	if (nchunks++ == 0)
		first_offset = (uint64_t)c->offset;
	ASSERT_TRUE(end <= sizeof(hub));
	memcpy(hub + c->offset, c->text.data, c->text.len);
	if (end > hub_received)
		hub_received = end;
	link_queued += c->text.len;
	*posp = link_queued;
	return CL_OK;
}

int
fetch_work_put_status(struct fetch_work *w, const char *id, int final)
{
	nstatus++;
	w->status_pos = ++link_queued;
	return CL_OK;
}

/* Nothing comes back here; see test_fetch_back.c. */
int
fetch_back_step(struct fetch_work *w)
{
	return CL_INCOMPLETE;
}

void
fetch_back_restart(struct fetch_work *w)
{
}

void
fetch_tell(struct fetch *f, uint32_t type, uint64_t id, const void *v, int fd)
{
	const struct msg_dev_acked *acked = v;

	if (type == MSG_DEV_ACKED) {
		acked_raw = acked->raw;
		acked_norm = acked->norm;
	} else if (type == MSG_DEV_SENT)
		sent_raw = ((const struct msg_dev_sent *)v)->raw;
	else if (type == MSG_DEV_TOLD)
		told = 1;
	else if (type == MSG_DEV_DONE)
		done = 1;
}

void
fetch_work_set_dirty(struct fetch_work *w)
{
	if (w->dirty)
		return;
	if (w->out.due_at != 0)
		TAILQ_REMOVE(&fetch.waiting, w, dirty_entry);
	w->out.due_at = 0;
	w->dirty = 1;
	TAILQ_INSERT_TAIL(&fetch.dirty, w, dirty_entry);
}

void
fetch_work_del(struct fetch_work *w)
{
	TAILQ_REMOVE(&fetch.works, w, entry);
}

size_t
fetch_link_get_queued(const struct fetch_link *l)
{
	return (size_t)(link_queued - link_written);
}

uint64_t
fetch_link_get_written(const struct fetch_link *l)
{
	return link_written;
}

int
fetch_link_is_settled(const struct fetch_link *l)
{
	return settled;
}

int
fetch_link_has_end_acks(const struct fetch_link *l)
{
	return end_acks;
}

static void
start(uint64_t limit)
{
	static struct fetch_work w;
	int fd = memfd_create("spool", MFD_CLOEXEC);

	memset(&w, 0, sizeof(w));
	memset(hub, 0, sizeof(hub));
	hub_received = nchunks = nstatus = max_chunk = 0;
	acked_raw = acked_norm = sent_raw = link_queued = link_written = 0;
	told = done = settled = end_acks = 0;
	fetch.beat_seq = 7;
	TAILQ_INIT(&fetch.works);
	TAILQ_INIT(&fetch.dirty);
	TAILQ_INIT(&fetch.waiting);
	fetch.state = FST_UP;
	w.f = &fetch;
	ASSERT_ERR(spool_init(&w.spool, fd, 1 << 20, limit), CL_OK);
	fetch_out_init(&w.out, 0, 0);
	TAILQ_INSERT_TAIL(&fetch.works, &w, entry);
	work = &w;
}

/* Pump with a link that takes everything, until nothing moves. */
static void
pump(void)
{
	uint64_t before;

	fetch_work_set_dirty(work);
	do {
		before = link_queued;
		work->out.chunk_at = 0;	/* no coalescing here */
		if (!TAILQ_EMPTY(&fetch.waiting))
			fetch_work_set_dirty(work);
		fetch_out_pump(&fetch);
		link_written = link_queued;
		fetch_out_on_written(&fetch);
	} while (link_queued != before && !told);
}

static void
put(const void *data, size_t len)
{
	ASSERT_ERR(spool_put(&work->spool, data, len), CL_OK);
}

static void
end(void)
{
	work->exited = 1;
	work->end.total_raw = spool_load_u64(&work->spool.head->total);
	pump();
}

static void
stop(void)
{
	spool_close(&work->spool);
}

/* The whole, normalised at once: what the hub must have. */
static size_t
normalise(const uint8_t *src, size_t len, uint8_t **dstp)
{
	struct utf8_norm n;
	size_t out;

	*dstp = malloc(3 * (len + 6));
	utf8_norm_init(&n);
	out = utf8_norm_put(&n, src, len, *dstp);
	return out + utf8_norm_end(&n, *dstp + out);
}

/* Output of every kind: ASCII, long characters, bytes of no meaning. */
static void
make_output(uint8_t *dst, size_t len)
{
	static const char euro[] = "\xe2\x82\xac";
	uint32_t seed = 12345;
	size_t i;

	for (i = 0; i < len; i++) {
		seed = seed * 1103515245 + 12345;
		if (i < len / 3)
			dst[i] = 'a' + seed % 26;
		else if (i < 2 * len / 3)
			dst[i] = (uint8_t)euro[i % 3];
		else
			dst[i] = (uint8_t)(seed >> 16);
	}
}

static void
test_stream(void)
{
	uint8_t *want;
	size_t len;

	TEST_START("everything arrives, in chunks of 32 KiB between "
	    "characters");
	make_output(raw, sizeof(raw));
	len = normalise(raw, sizeof(raw), &want);
	start(8 << 20);
	put(raw, sizeof(raw));
	pump();
	end();
	ASSERT_BYTES_EQ(hub, (size_t)hub_received, want, len);
	ASSERT_U64_EQ(work->out.norm, len);
	ASSERT_SIZE_T_EQ(max_chunk, MAX_LOG_TEXT_LEN);
	ASSERT_SIZE_T_EQ(nstatus, 1);
	ASSERT_U64_EQ(sent_raw, sizeof(raw));
	ASSERT_INT_EQ(told, 1);
	stop();
	free(want);
}

static void
test_rewind(void)
{
	uint64_t from;
	uint8_t *want;
	size_t len;
	int i;

	TEST_START("from any offset the same bytes come again");
	len = normalise(raw, sizeof(raw), &want);
	start(8 << 20);
	put(raw, sizeof(raw));
	pump();
	for (i = 0; i < 200; i++) {
		from = (uint64_t)i * 2467 % len;
		unit_note("from %llu", (unsigned long long)from);
		memset(hub + from, 0, sizeof(hub) - from);
		nchunks = 0;
		fetch_out_on_link_end(work);
		fetch_out_rewind(work, from);
		pump();
		ASSERT_TRUE(first_offset - from < 4);
		ASSERT_MEM_EQ(hub + first_offset, want + first_offset,
		    work->out.norm - first_offset);
	}
	end();
	ASSERT_U64_EQ(work->out.norm, len);
	stop();
	free(want);
}

static void
test_ack(void)
{
	uint8_t *want;
	size_t len, i;
	uint64_t norm;

	TEST_START("an acknowledged pair is exact and never asked again");
	start(8 << 20);
	put(raw, sizeof(raw));
	pump();
	for (i = 0; i < work->out.norm; i += 7001) {
		fetch_out_on_ack(work, i);
		len = normalise(raw, (size_t)acked_raw, &want);
		unit_note("ack %zu", i);
		ASSERT_U64_EQ(acked_norm, len);
		ASSERT_TRUE(acked_norm <= i);
		free(want);
	}
	norm = work->out.norm;
	fetch_out_on_ack(work, UINT64_MAX);
	ASSERT_U64_EQ(acked_norm, norm);
	nchunks = 0;
	fetch_out_rewind(work, 0);
	pump();
	ASSERT_SIZE_T_EQ(nchunks, 0);
	stop();
}

static void
test_restart(void)
{
	uint8_t *want;
	size_t len;

	TEST_START("a new process goes on from the acknowledged pair");
	len = normalise(raw, sizeof(raw), &want);
	start(8 << 20);
	put(raw, sizeof(raw));
	pump();
	fetch_out_on_ack(work, 150000);
	memset(hub + 200000, 0, sizeof(hub) - 200000);
	fetch_out_init(&work->out, acked_raw, acked_norm);
	nchunks = 0;
	fetch_out_rewind(work, 200000);
	pump();
	ASSERT_TRUE(first_offset - 200000 < 4);
	end();
	ASSERT_U64_EQ(hub_received, len);
	/* The bytes of the cut character are the hub's own. */
	memcpy(hub + 200000, want + 200000, first_offset - 200000);
	ASSERT_MEM_EQ(hub, want, len);
	stop();
	free(want);
}

static void
test_tail(void)
{
	TEST_START("half a character waits for its rest, and for the end");
	start(8 << 20);
	put("x\xe2\x82", 3);
	pump();
	ASSERT_U64_EQ(hub_received, 1);
	fetch_out_on_ack(work, 1);
	ASSERT_U64_EQ(acked_raw, 1);
	put("\xac\xe2", 2);
	pump();
	ASSERT_BYTES_EQ(hub, (size_t)hub_received, "x\xe2\x82\xac", 4);
	end();
	ASSERT_BYTES_EQ(hub, (size_t)hub_received, "x\xe2\x82\xac\xef\xbf\xbd",
	    7);
	stop();

	TEST_START("an end that was not delivered is told again");
	start(8 << 20);
	put("abc", 3);
	work->exited = 1;
	work->end.total_raw = 3;
	fetch_work_set_dirty(work);
	fetch_out_pump(&fetch);
	fetch_out_pump(&fetch);
	ASSERT_SIZE_T_EQ(nstatus, 1);
	ASSERT_INT_EQ(told, 0);
	fetch_out_on_link_end(work);
	fetch_out_rewind(work, 3);
	pump();
	ASSERT_SIZE_T_EQ(nstatus, 2);
	ASSERT_INT_EQ(told, 1);
	stop();
}

static void
test_gap(void)
{
	size_t i;

	TEST_START("lost output keeps true offsets");
	memset(raw, 'x', sizeof(raw));
	start(65536);
	for (i = 0; i < sizeof(raw); i += 10000)
		put(raw, 10000);
	put("END", 3);
	pump();
	end();
	ASSERT_U64_EQ(work->out.norm, sizeof(raw) + 3);
	ASSERT_U64_EQ(hub_received, sizeof(raw) + 3);
	ASSERT_TRUE(first_offset > 0);
	ASSERT_MEM_EQ(hub + sizeof(raw), "END", 3);
	stop();
}

static void
test_held(void)
{
	TEST_START("nothing is said before `started`");
	start(8 << 20);
	work->held = 1;
	put("abc", 3);
	pump();
	ASSERT_SIZE_T_EQ(nchunks, 0);
	work->held = 0;
	pump();
	ASSERT_U64_EQ(hub_received, 3);
	stop();
}

static void
test_coalesce(void)
{
	TEST_START("first bytes at once, what trickles is put together");
	start(8 << 20);
	put("a", 1);
	fetch_work_set_dirty(work);
	fetch_out_pump(&fetch);
	ASSERT_SIZE_T_EQ(nchunks, 1);
	put("b", 1);
	put("c", 1);
	fetch_work_set_dirty(work);
	fetch_out_pump(&fetch);
	ASSERT_SIZE_T_EQ(nchunks, 1);
	ASSERT_TRUE(work->out.due_at != 0);
	pump();
	ASSERT_SIZE_T_EQ(nchunks, 2);
	ASSERT_MEM_EQ(hub, "abc", 3);
	stop();
}

/* A workload whose end was told, and not confirmed. */
static void
tell_end(void)
{
	start(1 << 20);
	snprintf(work->handle, sizeof(work->handle), "AAAAAAAAAAAAAAAA");
	put("12345", 5);
	work->exited = 1;
	work->end.state = HS_EXITED;
	work->end.total_raw = 5;
	pump();
	ASSERT_INT_EQ(told, 1);
	ASSERT_INT_EQ(done, 0);
}

static void
test_confirm(void)
{
	TEST_START("what is written may be lost: it is kept until the hub's "
	    "log_ack of all of it");
	tell_end();
	fetch_out_on_end_ack(&fetch, "BBBBBBBBBBBBBBBB", 5);
	fetch_out_on_end_ack(&fetch, "AAAAAAAAAAAAAAAA", 4);
	ASSERT_INT_EQ(done, 0);
	fetch_out_on_end_ack(&fetch, "AAAAAAAAAAAAAAAA", 5);
	ASSERT_INT_EQ(done, 1);

	TEST_START("or for the answer to a later beat");
	tell_end();
	fetch_out_on_beat_ack(&fetch, 7);
	ASSERT_INT_EQ(done, 0);
	fetch_out_on_beat_ack(&fetch, 8);
	ASSERT_INT_EQ(done, 1);

	TEST_START("a request says so too, once TCP has nothing "
	    "unacknowledged");
	tell_end();
	fetch_out_on_request(&fetch);
	ASSERT_INT_EQ(done, 0);
	settled = 1;
	fetch_out_on_request(&fetch);
	ASSERT_INT_EQ(done, 1);

	TEST_START("but not of a hub that confirms ends: it may be killed "
	    "before it has read this one");
	tell_end();
	settled = end_acks = 1;
	fetch_out_on_request(&fetch);
	ASSERT_INT_EQ(done, 0);

	TEST_START("a link that ends before tells it again on the next");
	tell_end();
	fetch_out_on_link_end(work);
	ASSERT_INT_EQ(work->told, 0);
	told = 0;
	nstatus = 0;
	fetch_out_rewind(work, 5);
	pump();
	ASSERT_INT_EQ(nstatus, 1);
	ASSERT_INT_EQ(told, 1);
}

UNIT_MAIN(test_confirm, test_stream, test_rewind, test_ack, test_restart,
    test_tail, test_gap, test_held, test_coalesce)
