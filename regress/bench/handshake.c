/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Full TLS 1.3 handshakes, and what keeping the key apart costs.
 *
 *	handshake serve apart|inside PORT CERT KEY
 *		a server on cloopd-net's TLS code that does nothing else, the
 *		key in cloopd-key as the hub has it, or in the same process
 *	handshake drive PORT SECONDS PARALLEL
 *		connect, shake hands, close; prints handshakes/s
 *	handshake limit SECONDS CERT KEY
 *		client and server in one process without sockets, as many
 *		processes as processors; prints handshakes/s
 */
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include "common/base/err.h"
#include "common/base/util.h"
#include "common/msg/imsg.h"
#include "common/msg/msgcat.h"
#include "net/codec/tlsio.h"
#include "net/hub/tlskey.h"
#include "sandbox/box/spawn.h"

#define MAX_PEM 65536
#define MAX_PARALLEL 256
#define NEVENTS 64

static double
clock_now(void)
{
	struct timespec ts;

	if (clock_gettime(CLOCK_MONOTONIC, &ts) == -1)
		err(1, "clock_gettime");
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static size_t
load(const char *path, char *dst)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd == -1 || (n = read(fd, dst, MAX_PEM - 1)) <= 0)
		err(1, "%s", path);
	close(fd);
	dst[n] = '\0';
	return (size_t)n;
}

static EVP_PKEY *
load_key(const char *path)
{
	static char text[MAX_PEM];
	BIO *bio = BIO_new_mem_buf(text, (int)load(path, text));
	EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);

	if (key == NULL)
		errx(1, "%s: no key", path);
	BIO_free(bio);
	return key;
}

static struct sockaddr_in
make_address(const char *port)
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
		.sin_port = htons((uint16_t)strtoul(port, NULL, 10)),
		.sin_addr = { htonl(INADDR_LOOPBACK) } };

	return sin;
}

/* ------------------------------------------------------------------ serve */

static void
key_send(struct imsg_chan *c, uint32_t type, const struct buf *b, int fd)
{
	if (imsg_compose(c, type, 0, b, fd) != CL_OK ||
	    imsg_write(c) != CL_OK)
		errx(1, "cloopd-key: %s", msgcat_name(type));
}

/* A real cloopd-key with this key; our channel as its only cloopd-net. */
static int
start_key(const char *path)
{
	static char pem[MAX_PEM];
	static struct imsg_chan c;
	struct spawn_opts o = { .program = "cloopd-key" };
	struct pollfd pfd = { .events = POLLIN };
	size_t len = load(path, pem);
	struct imsg m;
	struct buf b;
	int fd, fds[2];
	pid_t pid;

	if (spawn_start(&o, &pid, &fd) != CL_OK ||
	    imsg_init(&c, fd, 16) != CL_OK ||
	    util_make_memfd(pem, len, &fd) != CL_OK || imsg_pair(fds) != CL_OK)
		err(1, "cloopd-key");
	key_send(&c, MSG_KEY_LOAD, NULL, fd);
	pfd.fd = c.fd;
	if (poll(&pfd, 1, 10000) != 1 || imsg_read(&c, &m) != CL_OK ||
	    m.type != MSG_KEY_READY)
		errx(1, "cloopd-key does not start");
	imsg_free(&m);
	buf_init(&b, 2);
	buf_put_u16(&b, 1);
	key_send(&c, MSG_KEY_CLIENT, &b, fds[1]);
	buf_clear(&b);
	return fds[0];
}

struct conn {
	struct tlsio *t;
	struct evbuffer *in;
	uint32_t events;
};

static void
conn_free(struct conn *c)
{
	tlsio_free(c->t);
	evbuffer_free(c->in);
	free(c);
}

/* Handshake, then whatever comes until the end. */
static void
conn_turn(int ep, struct conn *c)
{
	struct epoll_event ev = { .data = { .ptr = c } };
	int r = tlsio_handshake(c->t);
	unsigned int wants;

	while (r == CL_OK && (r = tlsio_read(c->t, c->in, 4096)) == CL_OK)
		(void)evbuffer_drain(c->in, evbuffer_get_length(c->in));
	if (r != CL_INCOMPLETE) {
		conn_free(c);
		return;
	}
	wants = tlsio_get_wants(c->t, 1, 0);
	ev.events = ((wants & TLSIO_READ) != 0 ? EPOLLIN : 0) |
	    ((wants & TLSIO_WRITE) != 0 ? EPOLLOUT : 0);
	if (ev.events != c->events && epoll_ctl(ep, c->events == 0 ?
	    EPOLL_CTL_ADD : EPOLL_CTL_MOD, tlsio_get_fd(c->t), &ev) == -1)
		err(1, "epoll_ctl");
	c->events = ev.events;
}

static void
accept_all(int ep, int fd, struct tlsio_ctx *ctx)
{
	struct conn *c;
	int new;

	while ((new = accept4(fd, NULL, NULL, SOCK_NONBLOCK |
	    SOCK_CLOEXEC)) != -1) {
		if ((c = calloc(1, sizeof(*c))) == NULL ||
		    (c->in = evbuffer_new()) == NULL ||
		    tlsio_new_server(ctx, new, &c->t) != CL_OK)
			errx(1, "out of memory");
		conn_turn(ep, c);
	}
}

static void
serve(const char *how, const char *port, const char *cert, const char *key)
{
	static char pem[MAX_PEM];
	struct sockaddr_in sin = make_address(port);
	struct epoll_event ev[NEVENTS] = { { .events = EPOLLIN } };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
	    0), ep = epoll_create1(EPOLL_CLOEXEC), i, n, one = 1;
	size_t len = load(cert, pem);
	struct tlsio_ctx *ctx;
	struct tlskey *k;
	EVP_PKEY *pkey;
	const char *why = "";

	if (strcmp(how, "apart") == 0) {
		if (tlskey_new((uint8_t *)pem, len, start_key(key), &k,
		    &why) != CL_OK)
			errx(1, "%s", why);
		pkey = tlskey_get_pkey(k);
	} else {
		pkey = load_key(key);
	}
	if (tlsio_ctx_new_server((uint8_t *)pem, len, pkey, &ctx,
	    &why) != CL_OK)
		errx(1, "%s", why);
	if (fd == -1 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one,
	    sizeof(one)) == -1 || bind(fd, (struct sockaddr *)&sin,
	    sizeof(sin)) == -1 || listen(fd, 1024) == -1 ||
	    epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev[0]) == -1)
		err(1, "port %s", port);
	for (;;) {
		n = epoll_wait(ep, ev, NEVENTS, -1);
		for (i = 0; i < n; i++) {
			if (ev[i].data.ptr == NULL)
				accept_all(ep, fd, ctx);
			else
				conn_turn(ep, ev[i].data.ptr);
		}
	}
}

/* ------------------------------------------------------------------ drive */

static SSL_CTX *
new_client(void)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());

	if (ctx == NULL || SSL_CTX_set_min_proto_version(ctx,
	    TLS1_3_VERSION) != 1)
		errx(1, "SSL_CTX_new");
	SSL_CTX_set_verify(ctx, SSL_VERIFY_NONE, NULL);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	return ctx;
}

static void
dial(int ep, SSL_CTX *ctx, const struct sockaddr_in *sin)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLOUT | EPOLLET };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
	    0);
	SSL *ssl = SSL_new(ctx);

	if (fd == -1 || ssl == NULL || SSL_set_fd(ssl, fd) != 1)
		err(1, "socket");
	if (connect(fd, (const struct sockaddr *)sin, sizeof(*sin)) == -1 &&
	    errno != EINPROGRESS)
		err(1, "connect");
	SSL_set_connect_state(ssl);
	ev.data.ptr = ssl;
	if (epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev) == -1)
		err(1, "epoll_ctl");
}

/* 1 when it is through: the next one may come. */
static int
drive_turn(SSL *ssl)
{
	int fd = SSL_get_fd(ssl), error, r;

	r = SSL_do_handshake(ssl);
	error = SSL_get_error(ssl, r);
	if (r != 1 && (error == SSL_ERROR_WANT_READ ||
	    error == SSL_ERROR_WANT_WRITE))
		return 0;
	if (r != 1)
		errx(1, "handshake refused: %d, %s", error, strerror(errno));
	if (SSL_session_reused(ssl))
		errx(1, "not a full handshake");
	(void)SSL_shutdown(ssl);
	SSL_free(ssl);
	close(fd);
	return 1;
}

static void
drive(const char *port, double seconds, int parallel)
{
	struct sockaddr_in sin = make_address(port);
	struct epoll_event ev[NEVENTS];
	int ep = epoll_create1(EPOLL_CLOEXEC), i, n;
	SSL_CTX *ctx = new_client();
	double begin, end;
	long count = 0;

	for (i = 0; i < parallel; i++)
		dial(ep, ctx, &sin);
	begin = clock_now();
	do {
		if ((n = epoll_wait(ep, ev, NEVENTS, 10000)) <= 0)
			errx(1, "nothing comes");
		for (i = 0; i < n; i++) {
			if (drive_turn(ev[i].data.ptr) == 0)
				continue;
			count++;
			dial(ep, ctx, &sin);
		}
		end = clock_now();
	} while (end - begin < seconds);
	printf("%.1f\n", (double)count / (end - begin));
}

/* ------------------------------------------------------------------ limit */

static void
shake_once(SSL_CTX *client, SSL_CTX *server)
{
	SSL *c = SSL_new(client), *s = SSL_new(server);
	BIO *a, *b;
	int i;

	if (c == NULL || s == NULL || BIO_new_bio_pair(&a, 0, &b, 0) != 1)
		errx(1, "SSL_new");
	SSL_set_bio(c, a, a);
	SSL_set_bio(s, b, b);
	SSL_set_connect_state(c);
	SSL_set_accept_state(s);
	for (i = 0; i < 8 && (!SSL_is_init_finished(c) ||
	    !SSL_is_init_finished(s)); i++) {
		(void)SSL_do_handshake(c);
		(void)SSL_do_handshake(s);
	}
	if (i == 8)
		errx(1, "no handshake");
	SSL_free(c);
	SSL_free(s);
}

static void
limit(double seconds, const char *cert, const char *key)
{
	SSL_CTX *client = new_client(), *server =
	    SSL_CTX_new(TLS_server_method());
	long i, n = sysconf(_SC_NPROCESSORS_ONLN), count = 0, total = 0;
	double begin;
	int out[2];

	if (SSL_CTX_use_certificate_chain_file(server, cert) != 1 ||
	    SSL_CTX_use_PrivateKey(server, load_key(key)) != 1 ||
	    SSL_CTX_set_num_tickets(server, 0) != 1 || pipe(out) == -1)
		errx(1, "%s", cert);
	for (i = 0; i < n; i++) {
		if (fork() != 0)
			continue;
		begin = clock_now();
		for (; clock_now() - begin < seconds; count++)
			shake_once(client, server);
		_exit(write(out[1], &count, sizeof(count)) !=
		    sizeof(count));
	}
	for (i = 0; i < n; i++) {
		if (read(out[0], &count, sizeof(count)) != sizeof(count))
			errx(1, "a process failed");
		total += count;
	}
	while (wait(NULL) != -1)
		;
	printf("%.1f\n", (double)total / seconds);
}

int
main(int argc, char **argv)
{
	(void)signal(SIGPIPE, SIG_IGN);
	if (argc == 6 && strcmp(argv[1], "serve") == 0)
		serve(argv[2], argv[3], argv[4], argv[5]);
	else if (argc == 5 && strcmp(argv[1], "drive") == 0)
		drive(argv[2], strtod(argv[3], NULL),
		    (int)strtol(argv[4], NULL, 10));
	else if (argc == 5 && strcmp(argv[1], "limit") == 0)
		limit(strtod(argv[2], NULL), argv[3], argv[4]);
	else
		errx(1, "handshake serve|drive|limit; see the source");
	return 0;
}
