/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * net/ws against libwslay as the server: what both accept, both read
 * alike.  Built to do nothing where libwslay is not installed.
 *
 * Known differences, left out of the comparison: wslay refuses text that
 * is not UTF-8 (we pass it on, 01 §1.6), lengths in a longer form than
 * needed (we take them), and it takes some close codes and endless empty
 * fragments that we refuse.  So: messages are compared as long as both go
 * on, and nothing more than a missing refusal of a frame error counts.
 */
#include "fuzz.h"

#if __has_include(<wslay/wslay.h>)
#include <wslay/wslay.h>

#include "../../common/err.h"
#include "../../net/ws.h"

#define FUZZ_MAX_LEN 65536
#define FUZZ_EVENTS 256

struct fuzz_seen {
	uint8_t op;
	size_t len;
	uint64_t digest;
};

struct fuzz_wslay {
	const uint8_t *data;
	size_t left;
	struct fuzz_seen seen[FUZZ_EVENTS];
	size_t n;
};

static uint64_t
fuzz_digest(const uint8_t *p, size_t len)
{
	uint64_t h = 14695981039346656037ULL;
	size_t i;

	for (i = 0; i < len; i++)
		h = (h ^ p[i]) * 0x100000001b3ULL;
	return h;
}

static ssize_t
fuzz_on_recv(wslay_event_context_ptr ctx, uint8_t *buf, size_t len, int flags,
    void *arg)
{
	struct fuzz_wslay *w = arg;

	(void)flags;
	if (w->left == 0) {
		wslay_event_set_error(ctx, WSLAY_ERR_WOULDBLOCK);
		return -1;
	}
	if (len > w->left)
		len = w->left;
	memcpy(buf, w->data, len);
	w->data += len;
	w->left -= len;
	return (ssize_t)len;
}

static void
fuzz_on_msg(wslay_event_context_ptr ctx,
    const struct wslay_event_on_msg_recv_arg *m, void *arg)
{
	struct fuzz_wslay *w = arg;

	(void)ctx;
	if (w->n == FUZZ_EVENTS)
		return;
	w->seen[w->n].op = m->opcode;
	w->seen[w->n].len = m->msg_length;
	w->seen[w->n].digest = fuzz_digest(m->msg, m->msg_length);
	w->n++;
}

static void
fuzz_run_wslay(struct fuzz_wslay *w)
{
	struct wslay_event_callbacks cb = { .recv_callback = fuzz_on_recv,
	    .on_msg_recv_callback = fuzz_on_msg };
	wslay_event_context_ptr ctx;

	FUZZ_CHECK(wslay_event_context_server_init(&ctx, &cb, w) == 0);
	wslay_event_config_set_max_recv_msg_length(ctx, FUZZ_MAX_LEN);
	while (w->left > 0 && wslay_event_want_read(ctx)) {
		if (wslay_event_recv(ctx) != 0)
			break;
	}
	wslay_event_context_free(ctx);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct fuzz_wslay w;
	struct ws_parser p;
	struct ws_event ev;
	size_t at = 0, used, i = 0;

	memset(&w, 0, sizeof(w));
	w.data = data;
	w.left = len;
	fuzz_run_wslay(&w);
	ws_init(&p, WS_SERVER, FUZZ_MAX_LEN);
	while (ws_parse(&p, data + at, len - at, &used, &ev) == CL_OK) {
		at += used;
		if (i >= w.n || ev.op == WS_CLOSE)
			break;
		FUZZ_CHECK(w.seen[i].op == ev.op);
		FUZZ_CHECK(w.seen[i].len == ev.len);
		FUZZ_CHECK(w.seen[i].digest == fuzz_digest(ev.data, ev.len));
		i++;
	}
	ws_clear(&p);
	return 0;
}
#else
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	(void)data;
	(void)len;
	return 0;
}
#endif
