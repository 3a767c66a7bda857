/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The client side of TLS, HTTP upgrade and WebSocket for the load generator.
 * It trusts the server under test as far as its own memory allows: a frame
 * over FRAME_MAX or a masked one ends the connection.
 */
#include "link.h"

#include <sys/epoll.h>

#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READ_LEN 65536
#define FRAME_MAX (1U << 20)
#define REQUEST_MAX 2048

/* One for all: what stays of a frame is copied to the link. */
static uint8_t input[FRAME_MAX + READ_LEN];

struct ssl_ctx_st *
link_new_ctx(void)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());

	if (ctx == NULL ||
	    SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) != 1 ||
	    SSL_CTX_set1_groups_list(ctx, "X25519:P-256") != 1)
		errx(1, "no TLS context");
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_NONE, NULL);
	SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS |
	    SSL_MODE_ENABLE_PARTIAL_WRITE |
	    SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	return ctx;
}

/* The end of a connection; told when nobody works on the link any more. */
static void
link_fail(struct link *l, const char *why)
{
	if (l->failed == NULL)
		l->failed = why;
}

static void
link_want(struct link *l, unsigned int events)
{
	struct epoll_event ev = { .events = events, .data.ptr = l };

	if (l->events == events)
		return;
	if (epoll_ctl(l->env->epoll, l->events == 0 ? EPOLL_CTL_ADD :
	    EPOLL_CTL_MOD, l->fd, &ev) == -1)
		err(1, "epoll_ctl");
	l->events = (uint8_t)events;
}

void
link_close(struct link *l)
{
	SSL_free(l->ssl);
	if (l->fd != -1)
		close(l->fd);
	free(l->out);
	free(l->in);
	l->ssl = NULL;
	l->out = l->in = NULL;
	l->out_len = l->out_off = l->in_len = 0;
	l->fd = -1;
	l->events = 0;
	l->failed = NULL;
	l->state = LINK_DOWN;
}

static void
link_end(struct link *l)
{
	const char *why = l->failed;

	link_close(l);
	l->env->on_down(l, why);
}

void
link_settle(struct link *l)
{
	if (l->failed != NULL)
		link_end(l);
}

void
link_connect(struct link *l, uint32_t source)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	int one = 1;

	l->fd = socket(l->env->peer.ss_family, SOCK_STREAM | SOCK_NONBLOCK |
	    SOCK_CLOEXEC, 0);
	if (l->fd == -1)
		err(1, "socket");
	(void)setsockopt(l->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (source != 0) {
		/* The port is chosen with the peer in view. */
		(void)setsockopt(l->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT,
		    &one, sizeof(one));
		sin.sin_addr.s_addr = htonl(source);
		if (bind(l->fd, (struct sockaddr *)&sin, sizeof(sin)) == -1)
			err(1, "bind");
	}
	l->state = LINK_TCP;
	if (connect(l->fd, (struct sockaddr *)&l->env->peer,
	    l->env->peer_len) == -1 && errno != EINPROGRESS) {
		link_fail(l, strerror(errno));
		link_end(l);
		return;
	}
	link_want(l, EPOLLOUT);
}

/* ------------------------------------------------------------------ bytes */

/* After a call that did nothing: 0 when it would block, else the end. */
static ssize_t
link_wait(struct link *l, const char *why)
{
	switch (SSL_get_error(l->ssl, 0)) {
	case SSL_ERROR_WANT_READ:
	case SSL_ERROR_WANT_WRITE:
		return 0;
	default:
		link_fail(l, why);
		return -1;
	}
}

/* Bytes written, 0: would block, -1: failed. */
static ssize_t
link_write(struct link *l, const void *data, size_t len)
{
	size_t n = 0;
	ssize_t r;

	if (l->ssl == NULL) {
		r = send(l->fd, data, len, MSG_NOSIGNAL);
		if (r >= 0)
			return r;
		if (errno == EAGAIN)
			return 0;
		link_fail(l, strerror(errno));
		return -1;
	}
	ERR_clear_error();
	if (SSL_write_ex(l->ssl, data, len, &n) == 1)
		return (ssize_t)n;
	return link_wait(l, "write failed");
}

/* Bytes read, 0: would block, -1: ended. */
static ssize_t
link_read(struct link *l, void *data, size_t len)
{
	size_t n = 0;
	ssize_t r;

	if (l->ssl == NULL) {
		r = recv(l->fd, data, len, 0);
		if (r > 0)
			return r;
		if (r == -1 && errno == EAGAIN)
			return 0;
		link_fail(l, r == 0 ? "closed" : strerror(errno));
		return -1;
	}
	ERR_clear_error();
	if (SSL_read_ex(l->ssl, data, len, &n) == 1)
		return (ssize_t)n;
	return link_wait(l, "closed");
}

int
link_is_full(const struct link *l)
{
	return l->out != NULL;
}

static void
link_flush(struct link *l)
{
	ssize_t n;

	while (l->out != NULL && l->failed == NULL) {
		n = link_write(l, l->out + l->out_off, l->out_len -
		    l->out_off);
		if (n <= 0)
			break;
		l->out_off += (size_t)n;
		if (l->out_off < l->out_len)
			continue;
		free(l->out);
		l->out = NULL;
		l->out_off = l->out_len = 0;
	}
	if (l->failed == NULL)
		link_want(l, EPOLLIN | (l->out != NULL ? EPOLLOUT : 0));
}

void
link_send(struct link *l, const void *data, size_t len)
{
	const uint8_t *p = data;
	uint8_t *grown;
	ssize_t n = 1;

	if (l->state < LINK_HTTP || l->failed != NULL)
		return;
	while (l->out == NULL && len > 0 && (n = link_write(l, p, len)) > 0) {
		p += n;
		len -= (size_t)n;
	}
	if (len == 0 || n < 0)
		return;
	if ((grown = realloc(l->out, l->out_len + len)) == NULL)
		err(1, NULL);
	memcpy(grown + l->out_len, p, len);
	l->out = grown;
	l->out_len += len;
	link_want(l, EPOLLIN | EPOLLOUT);
}

/* ----------------------------------------------------------------- frames */

size_t
link_format_frame(uint8_t *dst, int op, const char *text, size_t len)
{
	const uint8_t mask[4] = { LINK_MASK >> 24, LINK_MASK >> 16 & 0xff,
		LINK_MASK >> 8 & 0xff, LINK_MASK & 0xff };
	size_t i, n = 2;

	dst[0] = (uint8_t)(0x80 | op);
	if (len < 126)
		dst[1] = (uint8_t)(0x80 | len);
	else if (len <= 0xffff) {
		dst[1] = 0x80 | 126;
		dst[n++] = (uint8_t)(len >> 8);
		dst[n++] = (uint8_t)len;
	} else {
		dst[1] = 0x80 | 127;
		for (i = 0; i < 8; i++)
			dst[n++] = (uint8_t)((uint64_t)len >> (56 - 8 * i));
	}
	memcpy(dst + n, mask, sizeof(mask));
	n += sizeof(mask);
	for (i = 0; i < len; i++)
		dst[n + i] = (uint8_t)text[i] ^ mask[i % 4];
	return n + len;
}

/* The frame at p; returns its length, 0 when it is not whole. */
static size_t
link_take_frame(struct link *l, uint8_t *p, size_t len)
{
	uint8_t pong[LINK_HEAD_MAX + 128];
	uint64_t n;
	size_t i, head = 2;

	if (len < 2)
		return 0;
	n = p[1] & 0x7f;
	if (n == 126)
		head = 4;
	else if (n == 127)
		head = 10;
	if (len < head)
		return 0;
	if (head > 2)
		for (n = 0, i = 2; i < head; i++)
			n = n << 8 | p[i];
	if ((p[1] & 0x80) != 0 || n > FRAME_MAX - head) {
		link_fail(l, "bad frame");
		return 0;
	}
	if (len - head < n)
		return 0;
	switch (p[0] & 0x0f) {
	case 1:
		l->env->on_text(l, (char *)p + head, (size_t)n);
		break;
	case 8:
		link_fail(l, "close frame");
		break;
	case 9:
		if (n <= 125)
			link_send(l, pong, link_format_frame(pong, 10,
			    (char *)p + head, (size_t)n));
		break;
	case 10:
		l->env->on_pong(l);
		break;
	default:
		break;
	}
	return head + (size_t)n;
}

/* The answer to the upgrade; returns its length, 0 when it is not whole. */
static size_t
link_take_head(struct link *l, const uint8_t *p, size_t len)
{
	const uint8_t *end = memmem(p, len, "\r\n\r\n", 4);

	if (end == NULL)
		return 0;
	if (len < 12 || memcmp(p + 8, " 101", 4) != 0) {
		link_fail(l, len < 12 ? "no answer" :
		    memcmp(p + 8, " 429", 4) == 0 ? "status 429" :
		    memcmp(p + 8, " 503", 4) == 0 ? "status 503" :
		    memcmp(p + 8, " 401", 4) == 0 ? "status 401" :
		    "another status than 101");
		return 0;
	}
	l->state = LINK_OPEN;
	l->env->on_open(l);
	return (size_t)(end - p) + 4;
}

static void
link_take(struct link *l, size_t len)
{
	size_t n, off = 0;

	while (off < len && l->failed == NULL) {
		n = l->state == LINK_HTTP ?
		    link_take_head(l, input + off, len - off) :
		    link_take_frame(l, input + off, len - off);
		if (n == 0)
			break;
		off += n;
	}
	free(l->in);
	l->in = NULL;
	l->in_len = len - off;
	if (l->in_len == 0 || l->failed != NULL)
		return;
	if ((l->in = malloc(l->in_len)) == NULL)
		err(1, NULL);
	memcpy(l->in, input + off, l->in_len);
}

static void
link_receive(struct link *l)
{
	size_t have;
	ssize_t n;

	do {
		have = l->in_len;
		if (have > 0)
			memcpy(input, l->in, have);
		n = link_read(l, input + have, READ_LEN);
		if (n > 0)
			link_take(l, have + (size_t)n);
	} while (n == READ_LEN && l->failed == NULL);
	/* Records that TLS holds already: epoll will not tell. */
	while (l->failed == NULL && l->ssl != NULL &&
	    SSL_pending(l->ssl) > 0) {
		have = l->in_len;
		if (have > 0)
			memcpy(input, l->in, have);
		if ((n = link_read(l, input + have, READ_LEN)) > 0)
			link_take(l, have + (size_t)n);
	}
}

/* ------------------------------------------------------------- life of it */

static void
link_request(struct link *l)
{
	char text[REQUEST_MAX];
	size_t n = l->env->format_request(l, text, sizeof(text));

	l->state = LINK_HTTP;
	link_want(l, EPOLLIN);
	link_send(l, text, n);
}

static void
link_handshake(struct link *l)
{
	int r;

	ERR_clear_error();
	if ((r = SSL_do_handshake(l->ssl)) == 1) {
		link_request(l);
		return;
	}
	switch (SSL_get_error(l->ssl, r)) {
	case SSL_ERROR_WANT_READ:
		link_want(l, EPOLLIN);
		break;
	case SSL_ERROR_WANT_WRITE:
		link_want(l, EPOLLOUT);
		break;
	default:
		link_fail(l, "handshake failed");
		break;
	}
}

static void
link_on_tcp(struct link *l)
{
	socklen_t len = sizeof(int);
	int error = 0;

	if (getsockopt(l->fd, SOL_SOCKET, SO_ERROR, &error, &len) == -1)
		error = errno;
	if (error != 0) {
		link_fail(l, strerror(error));
		return;
	}
	if (l->env->ctx == NULL) {
		link_request(l);
		return;
	}
	if ((l->ssl = SSL_new(l->env->ctx)) == NULL ||
	    SSL_set_fd(l->ssl, l->fd) != 1)
		errx(1, "no TLS connection");
	SSL_set_connect_state(l->ssl);
	l->state = LINK_TLS;
	link_handshake(l);
}

void
link_on_event(struct link *l, unsigned int events)
{
	if (l->state == LINK_TCP)
		link_on_tcp(l);
	else if (l->state == LINK_TLS)
		link_handshake(l);
	else if (l->state != LINK_DOWN) {
		if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
			link_receive(l);
		if (l->failed == NULL && events & EPOLLOUT) {
			link_flush(l);
			if (l->out == NULL && l->failed == NULL)
				l->env->on_drain(l);
		}
	}
	link_settle(l);
}
