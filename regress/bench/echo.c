/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The physical limit of answering a frame over TLS: an epoll loop that reads
 * a record, looks at nothing, and writes a frame as long as a heartbeat_ack.
 * What it costs is the kernel's and OpenSSL's, and nobody can be faster.
 * echo PORT CERT KEY; it listens on 127.0.0.1.
 */
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/stdlib.h>

#define EVENTS 512
#define ANSWER_LEN 111		/* {"v":26,"type":"heartbeat_ack",... */

struct conn {
	SSL *ssl;
	int fd;
	int upgraded;
};

static const char switching[] = "HTTP/1.1 101 Switching Protocols\r\n"
    "Upgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
static char answer[2 + ANSWER_LEN];

static SSL_CTX *
new_ctx(const char *cert, const char *key)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());

	if (ctx == NULL || SSL_CTX_use_certificate_chain_file(ctx, cert) != 1 ||
	    SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) != 1)
		errx(1, "certificate or key cannot be used");
	SSL_CTX_set_num_tickets(ctx, 0);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_read_ahead(ctx, 1);
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE);
	return ctx;
}

static int
new_listener(const char *port)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	const char *why;
	int fd, one = 1;

	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	sin.sin_port = htons((uint16_t)strtonum(port, 1, 65535, &why));
	if (why != NULL)
		errx(1, "port %s: %s", port, why);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (fd == -1 ||
	    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) == -1 ||
	    bind(fd, (struct sockaddr *)&sin, sizeof(sin)) == -1 ||
	    listen(fd, 4096) == -1)
		err(1, "listen");
	return fd;
}

static void
add_conn(SSL_CTX *ctx, int epoll, int listener)
{
	struct epoll_event ev = { .events = EPOLLIN };
	struct conn *c;
	int fd, one = 1;

	while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) != -1) {
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one,
		    sizeof(one));
		if ((c = calloc(1, sizeof(*c))) == NULL ||
		    (c->ssl = SSL_new(ctx)) == NULL ||
		    SSL_set_fd(c->ssl, fd) != 1)
			errx(1, "out of memory");
		SSL_set_accept_state(c->ssl);
		c->fd = fd;
		ev.data.ptr = c;
		if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ev) == -1)
			err(1, "epoll_ctl");
	}
}

/* Each record is one frame here: so the load generator sends them. */
static void
serve(struct conn *c)
{
	char in[16384];
	size_t n;

	ERR_clear_error();
	if (SSL_read_ex(c->ssl, in, sizeof(in), &n) == 1) {
		if (c->upgraded)
			(void)SSL_write_ex(c->ssl, answer, sizeof(answer), &n);
		else
			(void)SSL_write_ex(c->ssl, switching,
			    sizeof(switching) - 1, &n);
		c->upgraded = 1;
		return;
	}
	switch (SSL_get_error(c->ssl, 0)) {
	case SSL_ERROR_WANT_READ:
	case SSL_ERROR_WANT_WRITE:
		return;
	default:
		SSL_free(c->ssl);
		close(c->fd);
		free(c);
	}
}

int
main(int argc, char **argv)
{
	static struct epoll_event ev[EVENTS];
	struct epoll_event on = { .events = EPOLLIN, .data.ptr = NULL };
	struct rlimit files;
	int epoll, i, listener, n;
	SSL_CTX *ctx;

	if (argc != 4)
		errx(1, "usage: echo PORT CERT KEY");
	signal(SIGPIPE, SIG_IGN);
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
	memset(answer, ' ', sizeof(answer));
	answer[0] = (char)0x81;
	answer[1] = ANSWER_LEN;
	ctx = new_ctx(argv[2], argv[3]);
	listener = new_listener(argv[1]);
	if ((epoll = epoll_create1(0)) == -1 ||
	    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &on) == -1)
		err(1, "epoll");
	for (;;) {
		n = epoll_wait(epoll, ev, EVENTS, -1);
		if (n == -1 && errno != EINTR)
			err(1, "epoll_wait");
		for (i = 0; i < n; i++) {
			if (ev[i].data.ptr == NULL)
				add_conn(ctx, epoll, listener);
			else
				serve(ev[i].data.ptr);
		}
	}
}
