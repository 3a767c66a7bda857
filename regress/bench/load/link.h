/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * One WebSocket client of the load generator, over TLS, up to and after the
 * upgrade.  Shaped for many: a connection that idles holds no buffer, all
 * share one to read into, and frames come ready-masked from the caller.
 */
#ifndef CLOOP_BENCH_LINK_H
#define CLOOP_BENCH_LINK_H

#include <sys/socket.h>

#include <stddef.h>
#include <stdint.h>

struct ssl_ctx_st;
struct ssl_st;
struct link;

enum link_state { LINK_DOWN, LINK_TCP, LINK_TLS, LINK_HTTP, LINK_OPEN };

struct link_env {
	int epoll;
	struct ssl_ctx_st *ctx;		/* NULL: no TLS */
	struct sockaddr_storage peer;
	socklen_t peer_len;
	/* The head of the upgrade; returns its length. */
	size_t (*format_request)(const struct link *, char *, size_t);
	/* The 101 came; a whole text message or a pong; the end, with why. */
	void (*on_open)(struct link *);
	void (*on_text)(struct link *, char *text, size_t len);
	void (*on_pong)(struct link *);
	void (*on_drain)(struct link *);	/* all was written */
	void (*on_down)(struct link *, const char *why);
};

struct link {
	struct link_env *env;
	struct ssl_st *ssl;
	uint8_t *out;			/* NULL: nothing waits */
	uint8_t *in;			/* a frame under way, or NULL */
	size_t out_len, out_off, in_len;
	int fd;
	uint8_t state;
	uint8_t events;			/* asked of epoll */
	const char *failed;
};

/* TLS 1.3 or better as a client; the peer is not verified. */
struct ssl_ctx_st *link_new_ctx(void);
/* source: host order, 0: the kernel's choice. */
void link_connect(struct link *l, uint32_t source);
void link_on_event(struct link *l, unsigned int events);
/* Bytes of ready frames.  What does not go at once is copied. */
void link_send(struct link *l, const void *data, size_t len);
/* After sending from outside a callback: tells of an end. */
void link_settle(struct link *l);
int link_is_full(const struct link *l);
/* A masked frame of text or control; returns its length. */
size_t link_format_frame(uint8_t *dst, int op, const char *text, size_t len);
void link_close(struct link *l);	/* silently */

#define LINK_TEXT 1
#define LINK_PING 9
#define LINK_HEAD_MAX 14
#define LINK_MASK 0x5a3c9617U	/* any will do: the work is the same */

#endif
