/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * net/codec/ws: RFC 6455 frames.
 */
#include "regress/unit/unit.h"

#include "common/base/err.h"
#include "common/base/limits.h"
#include "net/codec/ws.h"

static const uint8_t mask[WS_MASK_LEN] = { 0x37, 0xfa, 0x21, 0x3d };

/* Feed all of it; the result of the last call, the last event in *ev. */
static int
feed(struct ws_parser *p, const void *data, size_t len, struct ws_event *ev)
{
	size_t used;

	return ws_parse(p, data, len, &used, ev);
}

static void
expect(enum ws_role role, const void *data, size_t len, int want)
{
	struct ws_parser p;
	struct ws_event ev;

	ws_init(&p, role, MAX_FRAME_LEN);
	ASSERT_ERR(feed(&p, data, len, &ev), want);
	ws_clear(&p);
}

static void
test_vectors(void)
{
	static const uint8_t plain[] = { 0x81, 0x05, 'H', 'e', 'l', 'l',
		'o' };
	static const uint8_t masked[] = { 0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d,
		0x7f, 0x9f, 0x4d, 0x51, 0x58 };
	static const uint8_t fragments[] = { 0x01, 0x03, 'H', 'e', 'l',
		0x80, 0x02, 'l', 'o' };
	struct ws_parser p;
	struct ws_event ev;

	TEST_START("the examples of RFC 6455 §5.7");
	ws_init(&p, WS_CLIENT, MAX_FRAME_LEN);
	ASSERT_ERR(feed(&p, plain, sizeof(plain), &ev), CL_OK);
	ASSERT_BYTES_EQ(ev.data, ev.len, "Hello", 5);
	ASSERT_ERR(feed(&p, fragments, sizeof(fragments), &ev), CL_OK);
	ASSERT_BYTES_EQ(ev.data, ev.len, "Hello", 5);
	ASSERT_INT_EQ(ev.op, WS_TEXT);
	ws_clear(&p);
	ws_init(&p, WS_SERVER, MAX_FRAME_LEN);
	ASSERT_ERR(feed(&p, masked, sizeof(masked), &ev), CL_OK);
	ASSERT_BYTES_EQ(ev.data, ev.len, "Hello", 5);
	ws_clear(&p);
}

static void
test_mask_rules(void)
{
	static const uint8_t plain[] = { 0x81, 0x00 };
	static const uint8_t masked[] = { 0x81, 0x80, 1, 2, 3, 4 };

	TEST_START("a client masks, a server does not (RFC 6455 §5.1)");
	expect(WS_SERVER, plain, sizeof(plain), CL_FORMAT);
	expect(WS_CLIENT, masked, sizeof(masked), CL_FORMAT);
	expect(WS_SERVER, masked, sizeof(masked), CL_OK);
	expect(WS_CLIENT, plain, sizeof(plain), CL_OK);
}

static void
test_violations(void)
{
	static const struct {
		const char *what;
		uint8_t data[16];
		size_t len;
	} rows[] = {
		{ "RSV1", { 0xc1, 0 }, 2 },
		{ "RSV2", { 0xa1, 0 }, 2 },
		{ "RSV3", { 0x91, 0 }, 2 },
		{ "opcode 3", { 0x83, 0 }, 2 },
		{ "opcode 7", { 0x87, 0 }, 2 },
		{ "opcode 11", { 0x8b, 0 }, 2 },
		{ "opcode 15", { 0x8f, 0 }, 2 },
		{ "stray continuation", { 0x80, 0 }, 2 },
		{ "message inside a fragmented one",
		    { 0x01, 1, 'a', 0x81, 0 }, 5 },
		{ "fragmented ping", { 0x09, 0 }, 2 },
		{ "fragmented close", { 0x08, 0 }, 2 },
		{ "ping of 126", { 0x89, 126 }, 2 },
		{ "length with the top bit", { 0x81, 127, 0x80, 0, 0, 0, 0, 0,
		    0, 0 }, 10 },
		{ "close of one byte", { 0x88, 1, 3 }, 3 },
		{ "close code 999", { 0x88, 2, 3, 231 }, 4 },
		{ "close code 1004", { 0x88, 2, 3, 236 }, 4 },
		{ "close code 1005", { 0x88, 2, 3, 237 }, 4 },
		{ "close code 1006", { 0x88, 2, 3, 238 }, 4 },
		{ "close code 1015", { 0x88, 2, 3, 247 }, 4 },
		{ "close code 2999", { 0x88, 2, 11, 183 }, 4 },
		{ "close code 5000", { 0x88, 2, 19, 136 }, 4 },
	};
	size_t i;

	TEST_START("violations end the parser");
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unit_note("%s", rows[i].what);
		expect(WS_CLIENT, rows[i].data, rows[i].len, CL_FORMAT);
	}
}

static void
test_closed(void)
{
	static const uint8_t close_frame[] = { 0x88, 4, 3, 232, 'o', 'k' };
	static const uint8_t empty[] = { 0x88, 0 };
	static const uint8_t ping[] = { 0x89, 0 };
	struct ws_parser p;
	struct ws_event ev;

	TEST_START("a close frame has code and reason, and is the last");
	ws_init(&p, WS_CLIENT, MAX_FRAME_LEN);
	ASSERT_ERR(feed(&p, close_frame, sizeof(close_frame), &ev), CL_OK);
	ASSERT_INT_EQ(ev.op, WS_CLOSE);
	ASSERT_INT_EQ(ev.code, 1000);
	ASSERT_BYTES_EQ(ev.data, ev.len, "ok", 2);
	ASSERT_ERR(feed(&p, ping, sizeof(ping), &ev), CL_STATE);
	ws_clear(&p);

	TEST_START("an empty close frame has no code");
	ws_init(&p, WS_CLIENT, MAX_FRAME_LEN);
	ASSERT_ERR(feed(&p, empty, sizeof(empty), &ev), CL_OK);
	ASSERT_INT_EQ(ev.code, WS_CODE_NONE);
	ws_clear(&p);
}

static void
test_bounds(void)
{
	uint8_t *frame = calloc(1, MAX_FRAME_LEN + WS_HEAD_MAX + 1);
	struct ws_parser p;
	struct ws_event ev;
	size_t n;

	TEST_START("exactly 1 MiB is delivered");
	n = ws_format_head(frame, WS_TEXT, MAX_FRAME_LEN, NULL);
	ws_init(&p, WS_CLIENT, MAX_FRAME_LEN);
	ASSERT_ERR(feed(&p, frame, n + MAX_FRAME_LEN, &ev), CL_OK);
	ASSERT_SIZE_T_EQ(ev.len, MAX_FRAME_LEN);
	ws_clear(&p);

	TEST_START("one byte more is refused when it arrives, not before");
	n = ws_format_head(frame, WS_TEXT, MAX_FRAME_LEN + 1, NULL);
	ws_init(&p, WS_CLIENT, MAX_FRAME_LEN);
	ASSERT_ERR(feed(&p, frame, n + MAX_FRAME_LEN, &ev), CL_INCOMPLETE);
	ASSERT_ERR(feed(&p, frame, 1, &ev), CL_TOOBIG);
	ASSERT_PTR_EQ(p.message, NULL);
	ws_clear(&p);

	TEST_START("an announced length allocates nothing (BC-26)");
	n = ws_format_head(frame, WS_TEXT, (size_t)1 << 40, NULL);
	ws_init(&p, WS_CLIENT, MAX_FRAME_LEN);
	ASSERT_ERR(feed(&p, frame, n, &ev), CL_INCOMPLETE);
	ASSERT_SIZE_T_EQ(p.message_cap, 0);
	ASSERT_ERR(feed(&p, frame, 10, &ev), CL_INCOMPLETE);
	ASSERT_TRUE(p.message_cap <= 1024);
	ws_clear(&p);
	free(frame);
}

static void
test_idle(void)
{
	static const uint8_t text[] = { 0x81, 1, 'x' };
	struct ws_parser p;
	struct ws_event ev;

	TEST_START("the message's memory goes back with the next call");
	ws_init(&p, WS_CLIENT, MAX_FRAME_LEN);
	ASSERT_TRUE(ws_is_idle(&p));
	ASSERT_ERR(feed(&p, text, 2, &ev), CL_INCOMPLETE);
	ASSERT_FALSE(ws_is_idle(&p));
	ASSERT_ERR(feed(&p, text + 2, 1, &ev), CL_OK);
	ASSERT_FALSE(ws_is_idle(&p));
	ASSERT_ERR(feed(&p, text, 0, &ev), CL_INCOMPLETE);
	ASSERT_TRUE(ws_is_idle(&p));
	ws_clear(&p);
}

static void
test_fragments(void)
{
	static const uint8_t stream[] = { 0x01, 0, 0x89, 2, 'h', 'i', 0x00, 1,
		'a', 0x00, 0, 0x8a, 0, 0x80, 1, 'b' };
	struct ws_parser p;
	struct ws_event ev;
	size_t used, at;

	TEST_START("empty fragments and control frames between");
	ws_init(&p, WS_CLIENT, MAX_FRAME_LEN);
	ASSERT_ERR(ws_parse(&p, stream, sizeof(stream), &used, &ev), CL_OK);
	ASSERT_INT_EQ(ev.op, WS_PING);
	ASSERT_BYTES_EQ(ev.data, ev.len, "hi", 2);
	at = used;
	ASSERT_ERR(ws_parse(&p, stream + at, sizeof(stream) - at, &used, &ev),
	    CL_OK);
	ASSERT_INT_EQ(ev.op, WS_PONG);
	at += used;
	ASSERT_ERR(ws_parse(&p, stream + at, sizeof(stream) - at, &used, &ev),
	    CL_OK);
	ASSERT_INT_EQ(ev.op, WS_TEXT);
	ASSERT_BYTES_EQ(ev.data, ev.len, "ab", 2);
	ASSERT_SIZE_T_EQ(at + used, sizeof(stream));
	ws_clear(&p);
}

static void
test_empty_fragments(void)
{
	static const uint8_t first[] = { 0x01, 0 }, more[] = { 0x00, 0 };
	struct ws_parser p;
	struct ws_event ev;
	int i, r = CL_INCOMPLETE;

	TEST_START("empty fragments for ever are refused (BC-26)");
	ws_init(&p, WS_CLIENT, MAX_FRAME_LEN);
	ASSERT_ERR(feed(&p, first, 2, &ev), CL_INCOMPLETE);
	for (i = 1; i < WS_EMPTY_MAX; i++)
		ASSERT_ERR(feed(&p, more, 2, &ev), CL_INCOMPLETE);
	r = feed(&p, more, 2, &ev);
	ASSERT_ERR(r, CL_FORMAT);
	ws_clear(&p);
}

/* One stream of every kind of frame, delivered at every cut. */
static void
test_cuts(void)
{
	uint8_t stream[512], text[300];
	struct ws_parser p;
	struct ws_event ev;
	size_t len = 0, cut, at, used, nevents, bytes;

	memset(text, 'x', sizeof(text));
	len += ws_format_frame(stream + len, sizeof(stream) - len, WS_TEXT,
	    text, sizeof(text), mask);
	len += ws_format_frame(stream + len, sizeof(stream) - len, WS_PING,
	    "p", 1, mask);
	len += ws_format_frame(stream + len, sizeof(stream) - len, WS_BINARY,
	    "b", 1, mask);
	TEST_START("any cut gives the same events (BC-31)");
	for (cut = 1; cut < len; cut++) {
		unit_note("pieces of %zu", cut);
		ws_init(&p, WS_SERVER, MAX_FRAME_LEN);
		nevents = bytes = 0;
		for (at = 0; at < len; at += used) {
			if (ws_parse(&p, stream + at, len - at < cut ?
			    len - at : cut, &used, &ev) != CL_OK)
				continue;
			nevents++;
			bytes += ev.len;
			ASSERT_TRUE(ev.op != WS_TEXT ||
			    memcmp(ev.data, text, sizeof(text)) == 0);
		}
		ws_clear(&p);
		ASSERT_SIZE_T_EQ(nevents, 3);
		ASSERT_SIZE_T_EQ(bytes, 302);
	}
}

static void
test_long_form(void)
{
	static const uint8_t form16[] = { 0x81, 126, 0, 1, 'x' };
	static const uint8_t form64[] = { 0x81, 127, 0, 0, 0, 0, 0, 0, 0, 1,
		'x' };

	TEST_START("a longer length form than needed is accepted");
	expect(WS_CLIENT, form16, sizeof(form16), CL_OK);
	expect(WS_CLIENT, form64, sizeof(form64), CL_OK);
}

static void
test_format(void)
{
	static const size_t lens[] = { 0, 125, 126, 65535, 65536 };
	static const size_t heads[] = { 2, 2, 4, 4, 10 };
	uint8_t head[WS_HEAD_MAX], frame[130], payload[WS_CONTROL_MAX];
	char reason[200];
	size_t i;

	TEST_START("the shortest length form is written");
	for (i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		unit_note("%zu", lens[i]);
		ASSERT_SIZE_T_EQ(ws_format_head(head, WS_TEXT, lens[i], NULL),
		    heads[i]);
		ASSERT_SIZE_T_EQ(ws_format_head(head, WS_TEXT, lens[i], mask),
		    heads[i] + WS_MASK_LEN);
	}

	TEST_START("what does not fit is not written");
	memset(reason, 'x', sizeof(reason));
	ASSERT_SIZE_T_EQ(ws_format_frame(frame, 3, WS_TEXT, "ab", 2, NULL), 0);
	ASSERT_SIZE_T_EQ(ws_format_frame(frame, 4, WS_TEXT, "ab", 2, NULL), 4);
	ASSERT_SIZE_T_EQ(ws_format_frame(frame, sizeof(frame), WS_PING,
	    reason, 126, NULL), 0);
	ASSERT_SIZE_T_EQ(ws_format_frame(frame, sizeof(frame), WS_PING,
	    reason, 125, NULL), 127);

	TEST_START("a close reason is cut at 120 bytes, between characters");
	memcpy(reason + 119, "\xc3\xa9", 2);
	reason[150] = '\0';
	ASSERT_SIZE_T_EQ(ws_format_close(payload, 1000, reason), 2 + 119);
	ASSERT_SIZE_T_EQ(ws_format_close(payload, WS_CODE_NONE, reason), 0);
	ASSERT_SIZE_T_EQ(ws_format_close(payload, 1000, NULL), 2);
}

static void
test_mask(void)
{
	uint8_t a[67], b[67];
	size_t i, off;

	TEST_START("masking by words is masking by bytes, at any offset");
	for (off = 0; off < 9; off++) {
		for (i = 0; i < sizeof(a); i++) {
			a[i] = (uint8_t)(i * 7);
			b[i] = a[i] ^ mask[(off + i) % WS_MASK_LEN];
		}
		ws_mask(a, sizeof(a), mask, off);
		ASSERT_MEM_EQ(a, b, sizeof(a));
	}
}

static void
test_pace(void)
{
	struct ws_pace p = { 0, 0 };
	unsigned int i;

	TEST_START("pings and pongs: as many as a window allows, no more "
	    "(BC-28)");
	for (i = 0; i < MAX_CONTROL_FRAMES; i++)
		ASSERT_ERR(ws_pace_add(&p, 500 + i % 2), CL_OK);
	ASSERT_ERR(ws_pace_add(&p, 501), CL_LIMIT);
	ASSERT_ERR(ws_pace_add(&p, 500 + CONTROL_WINDOW_MS - 1), CL_LIMIT);
	ASSERT_ERR(ws_pace_add(&p, 500 + CONTROL_WINDOW_MS), CL_OK);

	TEST_START("a ping every second never adds up to a flood");
	memset(&p, 0, sizeof(p));
	for (i = 0; i < 3 * MAX_CONTROL_FRAMES; i++)
		ASSERT_ERR(ws_pace_add(&p, 1000 * (int64_t)i), CL_OK);
}

UNIT_MAIN(test_vectors, test_mask_rules, test_violations, test_closed,
    test_bounds, test_idle, test_fragments, test_empty_fragments, test_cuts,
    test_long_form, test_format, test_mask, test_pace)
