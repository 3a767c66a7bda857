/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * WebSocket framing (RFC 6455), used by cloopd-net (server) and
 * agentd-fetch (client).  The first decoder that an outsider's bytes meet
 * after TLS: it touches nothing but its parser and the bytes it was given,
 * and trusts no length before as many bytes have come.
 */
#include "ws.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/utf8.h"

#define WS_FIN 0x80
#define WS_RSV 0x70
#define WS_OP_BITS 0x0f
#define WS_CONTROL_BIT 0x08
#define WS_MASKED 0x80
#define WS_LEN_BITS 0x7f
#define WS_LEN_16 126
#define WS_LEN_64 127
#define WS_ALLOC_MIN 1024	/* most of our frames fit */

void
ws_init(struct ws_parser *p, enum ws_role role, size_t max_len)
{
	memset(p, 0, sizeof(*p));
	p->role = role;
	p->max_len = max_len;
}

/* Messages carry credentials: nothing is given back unwiped. */
static void
ws_del_message(struct ws_parser *p)
{
	if (p->message != NULL) {
		explicit_bzero(p->message, p->message_cap);
		free(p->message);
	}
	p->message = NULL;
	p->message_len = p->message_cap = 0;
	p->message_op = 0;
	p->nempty = 0;
	p->done = 0;
}

void
ws_clear(struct ws_parser *p)
{
	ws_del_message(p);
	explicit_bzero(p->control, sizeof(p->control));
	p->closed = 1;
}

int
ws_is_idle(const struct ws_parser *p)
{
	return p->message == NULL && p->message_op == 0 && p->head_len == 0 &&
	    p->left == 0;
}

/* Grow by doubling, so that the cost stays linear; never past max_len. */
static int
ws_put_message(struct ws_parser *p, const uint8_t *data, size_t len)
{
	uint8_t *grown;
	size_t cap;

	if (len > p->max_len - p->message_len)
		return CL_TOOBIG;
	if (len > p->message_cap - p->message_len) {
		cap = p->message_cap < WS_ALLOC_MIN ? WS_ALLOC_MIN :
		    p->message_cap * 2;
		if (cap < p->message_len + len)
			cap = p->message_len + len;
		if (cap > p->max_len)
			cap = p->max_len;
		if ((grown = malloc(cap)) == NULL)
			return CL_NOMEM;
		if (p->message != NULL) {
			memcpy(grown, p->message, p->message_len);
			explicit_bzero(p->message, p->message_cap);
			free(p->message);
		}
		p->message = grown;
		p->message_cap = cap;
	}
	memcpy(p->message + p->message_len, data, len);
	p->message_len += len;
	return CL_OK;
}

void
ws_mask(uint8_t *data, size_t len, const uint8_t mask[WS_MASK_LEN],
    uint64_t off)
{
	uint8_t m[8];
	uint64_t word, key;
	size_t i;

	for (i = 0; i < sizeof(m); i++)
		m[i] = mask[(off + i) % WS_MASK_LEN];
	memcpy(&key, m, sizeof(key));
	for (i = 0; len - i >= sizeof(word); i += sizeof(word)) {
		memcpy(&word, data + i, sizeof(word));
		word ^= key;
		memcpy(data + i, &word, sizeof(word));
	}
	for (; i < len; i++)
		data[i] ^= m[i % sizeof(m)];
}

/* Bytes the head needs, once its first two are known. */
static uint8_t
ws_get_head_len(const struct ws_parser *p)
{
	uint8_t need = 2;

	if ((p->head[1] & WS_LEN_BITS) == WS_LEN_16)
		need += 2;
	else if ((p->head[1] & WS_LEN_BITS) == WS_LEN_64)
		need += 8;
	if (p->head[1] & WS_MASKED)
		need += WS_MASK_LEN;
	return need;
}

/* The first two bytes: everything that can be refused before the length. */
static int
ws_check_head(const struct ws_parser *p)
{
	uint8_t op = p->head[0] & WS_OP_BITS;
	int fin = (p->head[0] & WS_FIN) != 0;
	int masked = (p->head[1] & WS_MASKED) != 0;

	if (p->head[0] & WS_RSV)
		return CL_FORMAT;
	/* RFC 6455 §5.1: a client masks, a server does not. */
	if (masked != (p->role == WS_SERVER))
		return CL_FORMAT;
	switch (op) {
	case WS_CLOSE:
	case WS_PING:
	case WS_PONG:
		if (!fin || (p->head[1] & WS_LEN_BITS) > WS_CONTROL_MAX)
			return CL_FORMAT;
		return CL_OK;
	case WS_CONT:
		return p->message_op != 0 ? CL_OK : CL_FORMAT;
	case WS_TEXT:
	case WS_BINARY:
		return p->message_op == 0 ? CL_OK : CL_FORMAT;
	default:
		return CL_FORMAT;
	}
}

/* The whole head is there: length and mask. */
static int
ws_parse_head(struct ws_parser *p)
{
	uint64_t len = p->head[1] & WS_LEN_BITS;
	size_t i, n = 2, nlen = 0;

	if (len == WS_LEN_16)
		nlen = 2;
	else if (len == WS_LEN_64)
		nlen = 8;
	if (nlen != 0) {
		/* A longer form than needed is accepted. */
		for (len = 0, i = 0; i < nlen; i++)
			len = len << 8 | p->head[n++];
	}
	if (len >> 63)
		return CL_FORMAT;
	if (p->head[1] & WS_MASKED)
		memcpy(p->mask, p->head + n, WS_MASK_LEN);
	p->op = p->head[0] & WS_OP_BITS;
	if (p->op == WS_TEXT || p->op == WS_BINARY)
		p->message_op = p->op;
	p->left = len;
	p->mask_off = 0;
	p->control_len = 0;
	return CL_OK;
}

/* Read what is missing of the head.  CL_OK: it is complete. */
static int
ws_read_head(struct ws_parser *p, const uint8_t *data, size_t len,
    size_t *usedp)
{
	int r;

	while (*usedp < len) {
		p->head[p->head_len++] = data[(*usedp)++];
		if (p->head_len == 2) {
			if ((r = ws_check_head(p)) != 0)
				return r;
			p->head_need = ws_get_head_len(p);
		}
		if (p->head_need != 0 && p->head_len == p->head_need)
			return ws_parse_head(p);
	}
	return CL_INCOMPLETE;
}

/* Take what there is of the payload.  CL_OK: the frame is complete. */
static int
ws_read_payload(struct ws_parser *p, const uint8_t *data, size_t len,
    size_t *usedp)
{
	size_t n = len - *usedp;
	uint8_t *dst;
	int r;

	if (n > p->left)
		n = (size_t)p->left;
	if (n > 0) {
		if (p->op & WS_CONTROL_BIT) {
			dst = p->control + p->control_len;
			memcpy(dst, data + *usedp, n);
			p->control_len += (uint8_t)n;
		} else {
			r = ws_put_message(p, data + *usedp, n);
			if (r != 0)
				return r;
			dst = p->message + p->message_len - n;
		}
		if (p->role == WS_SERVER)
			ws_mask(dst, n, p->mask, p->mask_off);
		p->mask_off += n;
		p->left -= n;
		*usedp += n;
	}
	return p->left == 0 ? CL_OK : CL_INCOMPLETE;
}

/* Codes a peer may put into a close frame (RFC 6455 §7.4). */
static int
ws_is_code(uint16_t code)
{
	return (code >= 1000 && code <= 1003) ||
	    (code >= 1007 && code <= 1014) || (code >= 3000 && code <= 4999);
}

static int
ws_parse_close(struct ws_parser *p, struct ws_event *ev)
{
	p->closed = 1;
	ws_del_message(p);	/* a message that was under way never ends */
	if (p->control_len == 0)
		return CL_OK;
	if (p->control_len == 1)
		return CL_FORMAT;
	ev->code = (uint16_t)(p->control[0] << 8 | p->control[1]);
	if (!ws_is_code(ev->code))
		return CL_FORMAT;
	ev->data = p->control + 2;
	ev->len = p->control_len - 2U;
	return CL_OK;
}

/* A frame is complete.  CL_OK: *ev is set; CL_INCOMPLETE: no event. */
static int
ws_end_frame(struct ws_parser *p, struct ws_event *ev)
{
	int fin = (p->head[0] & WS_FIN) != 0;

	p->head_len = p->head_need = 0;
	ev->op = p->op;
	if (p->op & WS_CONTROL_BIT) {
		ev->data = p->control;
		ev->len = p->control_len;
		if (p->op == WS_CLOSE)
			return ws_parse_close(p, ev);
		return CL_OK;
	}
	/* Endless empty fragments would keep a reader busy for nothing. */
	if (p->mask_off == 0 && ++p->nempty > WS_EMPTY_MAX)
		return CL_FORMAT;
	if (!fin)
		return CL_INCOMPLETE;
	ev->op = p->message_op;
	/* An empty message has no buffer; callers still get a pointer. */
	ev->data = p->message != NULL ? p->message : p->control;
	ev->len = p->message_len;
	p->done = 1;
	return CL_OK;
}

int
ws_parse(struct ws_parser *p, const uint8_t *data, size_t len, size_t *usedp,
    struct ws_event *ev)
{
	int r;

	*usedp = 0;
	memset(ev, 0, sizeof(*ev));
	if (p->done)
		ws_del_message(p);
	if (p->closed)
		return CL_STATE;
	for (;;) {
		if (p->head_need == 0 || p->head_len < p->head_need) {
			r = ws_read_head(p, data, len, usedp);
			if (r == CL_INCOMPLETE)
				return r;
			if (r != 0)
				break;
		}
		r = ws_read_payload(p, data, len, usedp);
		if (r == CL_INCOMPLETE)
			return r;
		if (r != 0)
			break;
		r = ws_end_frame(p, ev);
		if (r == CL_OK)
			return r;
		if (r != CL_INCOMPLETE)
			break;
	}
	p->closed = 1;
	ws_del_message(p);
	memset(ev, 0, sizeof(*ev));
	return r;
}

int
ws_pace_add(struct ws_pace *p, int64_t now_ms)
{
	if (p->n == 0 || now_ms >= p->until) {
		p->n = 0;
		p->until = now_ms + CONTROL_WINDOW_MS;
	}
	if (p->n == MAX_CONTROL_FRAMES)
		return CL_LIMIT;
	p->n++;
	return CL_OK;
}

size_t
ws_format_head(uint8_t dst[WS_HEAD_MAX], enum ws_op op, size_t len,
    const uint8_t mask[WS_MASK_LEN])
{
	size_t i, n = 2, nlen = 0;

	dst[0] = (uint8_t)(WS_FIN | op);
	if (len < WS_LEN_16)
		dst[1] = (uint8_t)len;
	else if (len <= 0xffff) {
		dst[1] = WS_LEN_16;
		nlen = 2;
	} else {
		dst[1] = WS_LEN_64;
		nlen = 8;
	}
	for (i = 0; i < nlen; i++)
		dst[n++] = (uint8_t)((uint64_t)len >> (8 * (nlen - 1 - i)));
	if (mask != NULL) {
		dst[1] |= WS_MASKED;
		memcpy(dst + n, mask, WS_MASK_LEN);
		n += WS_MASK_LEN;
	}
	return n;
}

size_t
ws_format_frame(uint8_t *dst, size_t dstlen, enum ws_op op,
    const void *payload, size_t len, const uint8_t mask[WS_MASK_LEN])
{
	uint8_t head[WS_HEAD_MAX];
	size_t n;

	if (((unsigned int)op & WS_CONTROL_BIT) && len > WS_CONTROL_MAX)
		return 0;
	n = ws_format_head(head, op, len, mask);
	if (n > dstlen || len > dstlen - n)
		return 0;
	memcpy(dst, head, n);
	if (len > 0)
		memcpy(dst + n, payload, len);
	if (mask != NULL)
		ws_mask(dst + n, len, mask, 0);
	return n + len;
}

size_t
ws_format_close(uint8_t dst[WS_CONTROL_MAX], uint16_t code,
    const char *reason)
{
	size_t len = 0;

	if (code == WS_CODE_NONE)
		return 0;
	dst[0] = (uint8_t)(code >> 8);
	dst[1] = (uint8_t)code;
	if (reason != NULL) {
		len = strlen(reason);
		if (len > MAX_CLOSE_REASON_LEN)
			len = utf8_cut(reason, MAX_CLOSE_REASON_LEN);
		memcpy(dst + 2, reason, len);
	}
	return len + 2;
}
