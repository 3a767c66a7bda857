/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * RFC 6455 frames for both roles.  Pure: bytes in, events out; no I/O, no
 * clock, no knowledge of frames of ours.  No extensions.  Whole messages are
 * assembled up to a bound; memory exists only while a message is under way
 * and grows with the bytes that came, never with a length somebody
 * announced.
 */
#ifndef CLOOP_WS_H
#define CLOOP_WS_H

#include <stddef.h>
#include <stdint.h>

enum ws_role { WS_SERVER, WS_CLIENT };	/* what *we* are */

enum ws_op {
	WS_CONT = 0, WS_TEXT = 1, WS_BINARY = 2,
	WS_CLOSE = 8, WS_PING = 9, WS_PONG = 10
};

enum ws_code {
	WS_CODE_NONE = 0,		/* close frame without a code */
	WS_CODE_NORMAL = 1000, WS_CODE_GOING_AWAY = 1001,
	WS_CODE_PROTOCOL = 1002, WS_CODE_UNSUPPORTED = 1003,
	WS_CODE_POLICY = 1008, WS_CODE_TOO_BIG = 1009,
	WS_CODE_INTERNAL = 1011, WS_CODE_TRY_LATER = 1013
};

#define WS_HEAD_MAX 14
#define WS_CONTROL_MAX 125
#define WS_MASK_LEN 4
#define WS_EMPTY_MAX 1024	/* empty fragments of one message: they cost no
				 * bytes of max_len: a cap of their own */

/* What ws_parse found.  Pointers borrow until the next call on the parser. */
struct ws_event {
	enum ws_op op;		/* TEXT, BINARY (whole); PING, PONG, CLOSE */
	const uint8_t *data;	/* payload; CLOSE: reason, any bytes */
	size_t len;
	uint16_t code;		/* CLOSE only; WS_CODE_NONE: none given */
};

struct ws_parser {
	enum ws_role role;
	size_t max_len;		/* of a whole message */
	uint8_t head[WS_HEAD_MAX];
	uint8_t head_len;	/* bytes of the head so far */
	uint8_t head_need;	/* 0: not known yet */
	uint8_t op;		/* of the frame being read */
	uint8_t message_op;	/* of the message being assembled, or 0 */
	uint8_t done;		/* message was handed out: free it next */
	uint8_t closed;		/* close frame or violation seen */
	uint8_t control_len;
	uint16_t nempty;	/* empty fragments of this message */
	uint8_t mask[WS_MASK_LEN];
	uint64_t left;		/* payload bytes of the frame to come */
	uint64_t mask_off;
	uint8_t control[WS_CONTROL_MAX];
	uint8_t *message;
	size_t message_len;
	size_t message_cap;
};

void ws_init(struct ws_parser *p, enum ws_role role, size_t max_len);
void ws_clear(struct ws_parser *p);	/* wipes what it held */

/*
 * Feed bytes; consumes *usedp of them (all, unless it stops at an event).
 *   CL_OK          *ev holds an event; call again with the rest (even when
 *                  nothing is left: that call gives the message's memory
 *                  back)
 *   CL_INCOMPLETE  all consumed, nothing complete yet
 *   CL_FORMAT      violation: close with 1002
 *   CL_TOOBIG      a message byte past max_len arrived: close with 1009
 *   CL_NOMEM       close with 1011
 *   CL_STATE       a close frame or a violation came before: ignore
 * A ping is for the caller to answer (WS_PONG, same payload); a BINARY
 * message is complete and for the caller to refuse.
 */
int ws_parse(struct ws_parser *p, const uint8_t *data, size_t len,
    size_t *usedp, struct ws_event *ev);

/*
 * How many pings and pongs a peer sent: at most MAX_CONTROL_FRAMES in a
 * window of CONTROL_WINDOW_MS that begins with the first (BC-28).  Count one
 * at now_ms; CL_LIMIT when it is too many: close with 1008.
 */
struct ws_pace {
	int64_t until;
	unsigned int n;
};
int ws_pace_add(struct ws_pace *p, int64_t now_ms);

/* 1 when between messages with no memory held. */
int ws_is_idle(const struct ws_parser *p);

/*
 * Write the head of a final, unfragmented frame: mask is four random bytes
 * for a client, NULL for a server.  Returns its length (<= WS_HEAD_MAX).
 */
size_t ws_format_head(uint8_t dst[WS_HEAD_MAX], enum ws_op op, size_t len,
    const uint8_t mask[WS_MASK_LEN]);

/* XOR in place (both directions); off: position of data in the payload. */
void ws_mask(uint8_t *data, size_t len, const uint8_t mask[WS_MASK_LEN],
    uint64_t off);

/*
 * A whole frame into dst[dstlen]; dstlen >= WS_HEAD_MAX + len always fits.
 * Returns the length, 0 when it does not fit or a control frame is over 125.
 */
size_t ws_format_frame(uint8_t *dst, size_t dstlen, enum ws_op op,
    const void *payload, size_t len, const uint8_t mask[WS_MASK_LEN]);

/*
 * Payload of a close frame: code and reason cut to MAX_CLOSE_REASON_LEN at
 * a code point.  WS_CODE_NONE gives an empty payload.  Returns its length.
 */
size_t ws_format_close(uint8_t dst[WS_CONTROL_MAX], uint16_t code,
    const char *reason);

#endif
