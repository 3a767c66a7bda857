/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * net/codec/ws against libwslay as the server, event by event: operation,
 * length and content of every message, that neither has one more than the
 * other, and that what one calls a violation is one for the other.  Built to
 * do nothing where libwslay is not installed.
 *
 * Known differences, each recognised by itself and nothing beside it
 * excused: wslay refuses text that is not UTF-8 (1007; we pass it on),
 * lengths in a longer form than needed (we take them) and a message that
 * says it will be too long (we wait for its bytes); it takes some close
 * codes and endless empty fragments that we refuse.
 */
#include "fuzz.h"

#if __has_include(<wslay/wslay.h>)
#include <wslay/wslay.h>

#include "common/base/err.h"
#include "net/codec/ws.h"

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
	int closed;		/* the peer's close frame came */
	unsigned int code;	/* it closes with this; 0: it goes on */
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

static ssize_t
fuzz_on_send(wslay_event_context_ptr ctx, const uint8_t *buf, size_t len,
    int flags, void *arg)
{
	(void)ctx;
	(void)buf;
	(void)flags;
	(void)arg;
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
	    .send_callback = fuzz_on_send,
	    .on_msg_recv_callback = fuzz_on_msg };
	wslay_event_context_ptr ctx;

	FUZZ_CHECK(wslay_event_context_server_init(&ctx, &cb, w) == 0);
	wslay_event_config_set_max_recv_msg_length(ctx, FUZZ_MAX_LEN);
	while (w->left > 0 && wslay_event_want_read(ctx)) {
		if (wslay_event_recv(ctx) != 0)
			break;
	}
	w->closed = wslay_event_get_close_received(ctx);
	/* The code is known once the close frame is written. */
	while (wslay_event_want_write(ctx) && wslay_event_send(ctx) == 0)
		;
	if (wslay_event_get_close_sent(ctx))
		w->code = wslay_event_get_status_code_sent(ctx);
	wslay_event_context_free(ctx);
}

/* What the frames hold that the two treat differently. */
struct fuzz_odd {
	int length;		/* in a longer form than needed */
	int empty;		/* more empty fragments than we take */
};

static void
fuzz_scan(const uint8_t *p, size_t len, struct fuzz_odd *odd)
{
	uint64_t n, i, head, nempty = 0;

	memset(odd, 0, sizeof(*odd));
	while (len >= 2) {
		n = p[1] & 0x7f;
		head = n == 126 ? 4 : n == 127 ? 10 : 2;
		if (len < head)
			return;
		for (i = 2, n = head == 2 ? n : 0; i < head; i++)
			n = n << 8 | p[i];
		if ((head == 4 && n < 126) || (head == 10 && n < 65536))
			odd->length = 1;
		if (!(p[0] & 0x08) && n == 0 && ++nempty > WS_EMPTY_MAX)
			odd->empty = 1;
		head += p[1] & 0x80 ? 4 : 0;
		if (len < head || n > len - head)
			return;
		p += head + n;
		len -= head + n;
	}
}

/* We refuse a frame by its first two bytes, wslay by its head, and a length
 * by the whole head, wslay before the mask: so whoever goes on gets as many
 * bytes more as a head may lack. */
static unsigned int
fuzz_get_late_code(const uint8_t *data, size_t len)
{
	static struct fuzz_wslay late;
	uint8_t *longer = calloc(1, len + WS_HEAD_MAX);

	if (longer == NULL)
		abort();
	memcpy(longer, data, len);
	memset(&late, 0, sizeof(late));
	late.data = longer;
	late.left = len + WS_HEAD_MAX;
	fuzz_run_wslay(&late);
	free(longer);
	return late.code;
}

/* Ours has come to its end with r after i events that were the same. */
static void
fuzz_check_end(const struct fuzz_wslay *w, const struct fuzz_odd *odd, int r,
    size_t i)
{
	if (odd->length)
		return;		/* wslay stopped there */
	if (r == CL_INCOMPLETE) {
		FUZZ_CHECK(i == w->n);
		FUZZ_CHECK(!w->closed);
		/* 1007: it is pickier about text; 1009: it says so at once. */
		FUZZ_CHECK(w->code == 0 || w->code == 1007 ||
		    w->code == 1009);
		return;
	}
	if (r == CL_TOOBIG)
		FUZZ_CHECK(w->code == 1009 || w->code == 1007);
	else if (!odd->empty && !w->closed)
		/* 1005: it closes without a code for what is wrong in a
		 * frame's head. */
		FUZZ_CHECK(w->code == 1002 || w->code == 1005 ||
		    w->code == 1007 || w->code == 1009);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const uint8_t zeroes[WS_HEAD_MAX];
	static struct fuzz_wslay w;
	struct fuzz_odd odd;
	struct ws_parser p;
	struct ws_event ev;
	size_t at = 0, used, i = 0;
	int r;

	memset(&w, 0, sizeof(w));
	w.data = data;
	w.left = len;
	fuzz_run_wslay(&w);
	fuzz_scan(data, len, &odd);
	ws_init(&p, WS_SERVER, FUZZ_MAX_LEN);
	while ((r = ws_parse(&p, data + at, len - at, &used, &ev)) == CL_OK) {
		at += used;
		if (i >= w.n) {
			/* It stopped for one of its reasons, or knows no code
			 * that was registered after RFC 6455. */
			FUZZ_CHECK(w.code == 1007 || w.code == 1009 ||
			    odd.length || i == FUZZ_EVENTS ||
			    (ev.op == WS_CLOSE && w.code == 1002 &&
			    ev.code >= 1012 && ev.code <= 1014));
			break;
		}
		FUZZ_CHECK(w.seen[i].op == ev.op);
		if (ev.op == WS_CLOSE) {
			FUZZ_CHECK(w.closed && i + 1 == w.n);
			break;
		}
		FUZZ_CHECK(w.seen[i].len == ev.len);
		FUZZ_CHECK(w.seen[i].digest == fuzz_digest(ev.data, ev.len));
		i++;
	}
	if (r == CL_FORMAT && w.code == 0)
		w.code = fuzz_get_late_code(data, len);
	else if (r == CL_INCOMPLETE && (w.code == 1002 || w.code == 1005))
		r = ws_parse(&p, zeroes, sizeof(zeroes), &used, &ev);
	if (r != CL_OK && i < FUZZ_EVENTS)
		fuzz_check_end(&w, &odd, r, i);
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
