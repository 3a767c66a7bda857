/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * One WebSocket connection, at the hub or at the device: TLS or plaintext,
 * what has come and is not taken apart yet, what waits to be written, pings
 * and pongs, a peer that does not read.  It knows nothing of sessions, nor of
 * the frames inside of messages; the owner drives it from its own loop and
 * says when there is time to read and to write.  Embedded in what it belongs
 * to; nothing here is freed from inside a callback.
 */
#ifndef CLOOP_CONN_H
#define CLOOP_CONN_H

#include <stddef.h>
#include <stdint.h>

#include "net/codec/tlsio.h"
#include "net/codec/ws.h"

struct event;
struct event_base;
struct evbuffer;

/* What a peer did that ends the connection; the owner says so. */
enum conn_fault {
	CONN_PINGS,		/* pings or pongs without end: 1008 */
	CONN_BINARY,		/* a binary message: 1003 */
	CONN_TOO_BIG,		/* 1009 */
	CONN_NOMEM,		/* no fault of its: 1011 */
	CONN_PROTOCOL		/* not RFC 6455: 1002 */
};

/* All get the owner's arg; what they are handed is borrowed. */
struct conn_ops {
	/* The socket is ready for what was wanted. */
	void (*on_ready)(void *arg);
	/* May a message be taken from the peer now? */
	int (*is_reading)(void *arg);
	void (*on_message)(void *arg, const uint8_t *data, size_t len);
	/* The peer's close frame. */
	void (*on_close)(void *arg, const struct ws_event *ev);
	void (*on_fault)(void *arg, enum conn_fault fault);
	/* A pong waits for conn_flush(); NULL: it follows anyway. */
	void (*on_ping)(void *arg);
};

struct conn {
	const struct conn_ops *ops;
	void *arg;
	struct tlsio *io;		/* NULL: not open */
	struct event *ev_in, *ev_out;
	struct evbuffer *in, *out;
	struct ws_parser ws;
	struct ws_pace pace;
	uint64_t queued, mark;		/* bytes given to out; the mark that */
	int64_t mark_at;		/* must leave within WRITE_TIMEOUT_MS */
	int64_t unfinished_at;
	uint32_t unfinished;		/* its part of the budget, since */
	uint8_t wants;			/* TLSIO_*: polled for */
	uint8_t pong_len;
	unsigned int has_pong : 1;	/* one waits in pong: the latest */
	unsigned int closing : 1;	/* our close frame is queued */
	unsigned int shut : 1;		/* our direction is ended */
	uint8_t *pong;			/* NULL: never pinged */
};

void conn_init(struct conn *c, enum ws_role role, const struct conn_ops *ops,
    void *arg);
/*
 * Take over fd with a TLS layer made for it (tlsio_new_*).  CL_NOMEM;
 * conn_close() is needed then, too.
 */
int conn_open(struct conn *c, struct event_base *base, struct tlsio *io);
/* Closes the socket at once, wipes, and makes ready for another conn_open.
 * Legal when it is not open. */
void conn_close(struct conn *c);

/* Poll for TLSIO_* bits.  Nothing changes, nothing costs. */
void conn_set_events(struct conn *c, unsigned int wants);
/* What to poll for: reading or not, and writing as there is need. */
unsigned int conn_get_wants(const struct conn *c, int reading);

/*
 * Hand out what was read, as long as is_reading() says so and at most max
 * messages.  1: that limit was met, and there may be more.
 */
int conn_process(struct conn *c, unsigned int max, int64_t now);
/* Something may be there to be read or processed without an event. */
int conn_has_input(const struct conn *c);
/* After our end is shut: read and forget.  CL_INCOMPLETE until the peer's
 * end came (CL_EOF) or the connection broke (CL_SYSTEM). */
int conn_drop_input(struct conn *c);

/*
 * Messages that are not whole yet are each bounded; the bytes of many
 * connections have a sum, too.  Bring this one's part of it up to date; 1
 * when the sum is past MAX_ASSEMBLING_LEN and a victim is to be found.
 */
int conn_count_unfinished(struct conn *c, size_t *sump, int64_t now);
/* Give up the message under way, and its part of the sum. */
void conn_drop_unfinished(struct conn *c, size_t *sump);

/*
 * Queue bytes, one message of text, a close frame (after it only the peer's
 * own is handed out, and no pong goes).  CL_NOMEM.  A text that is long or
 * secret leaves no copy in memory that is not wiped.  conn_put_owned takes
 * data and wipes it when it has left.
 */
int conn_put_bytes(struct conn *c, const void *data, size_t len);
int conn_put_owned(struct conn *c, void *data, size_t len);
int conn_put_text(struct conn *c, const void *text, size_t len, int secret);
int conn_put_close(struct conn *c, uint16_t code, const char *reason);
#define CONN_COPY_MAX 4096	/* longer texts are handed over, not copied */

/* Queue the pong that waits, if (nearly) nothing else does. */
void conn_put_pong(struct conn *c);
/* The same, and write.  CL_OK, CL_INCOMPLETE; else the connection failed:
 * tlsio_get_error(). */
int conn_flush(struct conn *c, int64_t now);
/* End our direction; the socket stays open for the peer's end. */
void conn_shut(struct conn *c);

size_t conn_get_queued(const struct conn *c);
/* Bytes that went to the kernel: position in the count of `queued`. */
uint64_t conn_get_written(const struct conn *c);
int conn_has_output(const struct conn *c);	/* a pong counts */
/* More waits than a peer that reads would leave: MAX_SESSION_OUT_LEN. */
int conn_is_full(const struct conn *c);
/* Nothing has left for WRITE_TIMEOUT_MS though something waits. */
int conn_is_stalled(const struct conn *c, int64_t now);

#endif
