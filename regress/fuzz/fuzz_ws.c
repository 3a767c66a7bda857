/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * net/codec/ws: any bytes, as both roles.  Whatever the cuts, the same events
 * come out, memory follows the bytes that came, and what we write ourselves
 * is read back.
 */
#include "fuzz.h"

#include "common/base/err.h"
#include "net/codec/ws.h"

#define FUZZ_MAX_LEN 4096

/* A running digest of everything that came out. */
static uint64_t
fuzz_mix(uint64_t h, const void *p, size_t len)
{
	const uint8_t *s = p;
	size_t i;

	for (i = 0; i < len; i++)
		h = (h ^ s[i]) * 0x100000001b3ULL;
	return h * 0x100000001b3ULL + len;
}

static uint64_t
fuzz_read(enum ws_role role, const uint8_t *data, size_t len, size_t piece)
{
	struct ws_parser p;
	struct ws_event ev;
	uint64_t h = 14695981039346656037ULL;
	size_t at = 0, used, n;
	int r = CL_INCOMPLETE;

	ws_init(&p, role, FUZZ_MAX_LEN);
	while (at < len && (r == CL_OK || r == CL_INCOMPLETE)) {
		n = len - at < piece ? len - at : piece;
		r = ws_parse(&p, data + at, n, &used, &ev);
		FUZZ_CHECK(used <= n);
		FUZZ_CHECK(r != CL_INCOMPLETE || used == n);
		FUZZ_CHECK(p.message_cap <= 2 * len + 1024);
		FUZZ_CHECK(p.message_len <= FUZZ_MAX_LEN);
		if (r == CL_OK) {
			FUZZ_CHECK(used > 0);
			h = fuzz_mix(h, &ev.op, sizeof(ev.op));
			h = fuzz_mix(h, &ev.code, sizeof(ev.code));
			h = fuzz_mix(h, ev.data, ev.len);
		}
		at += used;
	}
	if (r == CL_OK)		/* gives the last message back */
		r = ws_parse(&p, data, 0, &used, &ev);
	h = fuzz_mix(h, &r, sizeof(r));
	FUZZ_CHECK(r == CL_INCOMPLETE || p.message == NULL);
	ws_clear(&p);
	FUZZ_CHECK(p.message == NULL);
	return h;
}

static void
fuzz_write(const uint8_t *data, size_t len)
{
	static const uint8_t mask[WS_MASK_LEN] = { 1, 0, 255, 7 };
	static uint8_t frame[FUZZ_MAX_LEN + WS_HEAD_MAX];
	struct ws_parser p;
	struct ws_event ev;
	size_t n, used;

	if (len > FUZZ_MAX_LEN)
		return;
	n = ws_format_frame(frame, sizeof(frame), WS_TEXT, data, len, mask);
	FUZZ_CHECK(n >= len);
	ws_init(&p, WS_SERVER, FUZZ_MAX_LEN);
	FUZZ_CHECK(ws_parse(&p, frame, n, &used, &ev) == CL_OK);
	FUZZ_CHECK(used == n && ev.len == len && ev.op == WS_TEXT);
	FUZZ_CHECK(len == 0 || memcmp(ev.data, data, len) == 0);
	ws_clear(&p);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint64_t h;
	int role;

	for (role = WS_SERVER; role <= WS_CLIENT; role++) {
		h = fuzz_read(role, data, len, len + 1);
		FUZZ_CHECK(fuzz_read(role, data, len, 1) == h);
		FUZZ_CHECK(fuzz_read(role, data, len, 7) == h);
	}
	fuzz_write(data, len);
	return 0;
}
