/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * One connection: TLS on a non-blocking socket, or plaintext behind the
 * same calls.  In cloopd-net and agentd-fetch.  Touches its socket and the
 * evbuffers it is given; the peer is trusted with nothing, the client side
 * verifies chain, name and pin before a byte of ours is sent.
 */
#include "tlsio.h"

#include <sys/socket.h>

#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/pin.h"
#include "tlsio_int.h"

#define TLSIO_RECORD_LEN 16384	/* one TLS record, one read, one write */
#define TLSIO_SMALL_LEN 4096	/* a frame that no other one follows */
#define TLSIO_ERROR_MAX 384
#define TLSIO_HOST_MAX 255

struct tlsio {
	SSL *ssl;		/* NULL: plaintext */
	struct pin *pins;
	char *error;		/* allocated when there is one */
	size_t npins;
	int fd;
	int failed;		/* sticky CL_*, 0 while all is well */
	uint8_t ready;		/* handshake done */
	uint8_t clean;		/* the peer said goodbye */
	uint8_t more;		/* bytes are left inside */
	uint8_t closing;	/* our direction is closed */
	uint8_t handshake_wants;	/* TLSIO_*: what each call waits for */
	uint8_t read_wants;
	uint8_t write_wants;
};

static int tlsio_fail(struct tlsio *, int, const char *, ...)
    __attribute__((__format__(__printf__, 3, 4)));

/* Remember the end of this connection and its text; errno is kept. */
static int
tlsio_fail(struct tlsio *t, int r, const char *fmt, ...)
{
	va_list ap;
	int saved_errno = errno;

	t->failed = r;
	if (t->error == NULL && (t->error = malloc(TLSIO_ERROR_MAX)) != NULL) {
		va_start(ap, fmt);
		vsnprintf(t->error, TLSIO_ERROR_MAX, fmt, ap);
		va_end(ap);
	}
	errno = saved_errno;
	return r;
}

static int
tlsio_new(struct tlsio_ctx *ctx, int fd, struct tlsio **tp)
{
	struct tlsio *t;

	*tp = NULL;
	if ((t = calloc(1, sizeof(*t))) == NULL) {
		close(fd);
		return CL_NOMEM;
	}
	t->fd = fd;
	t->read_wants = TLSIO_READ;
	t->write_wants = TLSIO_WRITE;
	if (ctx == NULL)
		t->ready = 1;
	else if ((t->ssl = SSL_new(ctx->ssl_ctx)) == NULL ||
	    SSL_set_fd(t->ssl, fd) != 1) {
		tlsio_free(t);
		ERR_clear_error();
		return CL_NOMEM;
	}
	*tp = t;
	return CL_OK;
}

int
tlsio_new_server(struct tlsio_ctx *ctx, int fd, struct tlsio **tp)
{
	int r;

	if ((r = tlsio_new(ctx, fd, tp)) == 0 && ctx != NULL) {
		SSL_set_accept_state((*tp)->ssl);
		(*tp)->handshake_wants = TLSIO_READ;
	}
	return r;
}

/* The name the certificate must have; a name goes out as SNI too. */
static int
tlsio_set_host(struct tlsio *t, const char *host)
{
	char name[TLSIO_HOST_MAX + 1];
	unsigned char address[16];
	size_t len = strlen(host);

	/* "hub." and "hub" are one host; certificates have the latter. */
	if (len > 1 && host[len - 1] == '.')
		len--;
	if (len == 0 || len > TLSIO_HOST_MAX)
		return CL_FORMAT;
	memcpy(name, host, len);
	name[len] = '\0';
	if (inet_pton(AF_INET, name, address) == 1 ||
	    inet_pton(AF_INET6, name, address) == 1)
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(t->ssl),
		    name) == 1 ? CL_OK : CL_CRYPTO;
	SSL_set_hostflags(t->ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	if (SSL_set1_host(t->ssl, name) != 1 ||
	    SSL_set_tlsext_host_name(t->ssl, name) != 1)
		return CL_CRYPTO;
	return CL_OK;
}

int
tlsio_new_client(struct tlsio_ctx *ctx, int fd, const char *host,
    const struct pin *pins, size_t npins, struct tlsio **tp)
{
	struct tlsio *t;
	int r;

	if ((r = tlsio_new(ctx, fd, tp)) != 0 || ctx == NULL)
		return r;
	t = *tp;
	SSL_set_connect_state(t->ssl);
	t->handshake_wants = TLSIO_WRITE;
	r = tlsio_set_host(t, host);
	if (r == 0 && npins > 0) {
		t->pins = calloc(npins, sizeof(*pins));
		if (t->pins == NULL)
			r = CL_NOMEM;
		else {
			memcpy(t->pins, pins, npins * sizeof(*pins));
			t->npins = npins;
		}
	}
	if (r != 0) {
		tlsio_free(t);
		ERR_clear_error();
		*tp = NULL;
	}
	return r;
}

void
tlsio_free(struct tlsio *t)
{
	if (t == NULL)
		return;
	SSL_free(t->ssl);
	if (t->fd != -1)
		close(t->fd);
	free(t->pins);
	free(t->error);
	free(t);
}

/* OpenSSL failed for good: its last reason, and the chain's if that is it. */
static int
tlsio_fail_ssl(struct tlsio *t)
{
	unsigned long code = ERR_peek_error();
	const char *reason = ERR_reason_error_string(code);
	long verify = SSL_get_verify_result(t->ssl);

	if (ERR_GET_REASON(code) == SSL_R_UNEXPECTED_EOF_WHILE_READING)
		return tlsio_fail(t, CL_EOF, t->ready ?
		    "the peer closed the connection" :
		    "the peer closed the connection during the handshake");
	if (ERR_GET_REASON(code) == SSL_R_CERTIFICATE_VERIFY_FAILED)
		return tlsio_fail(t, CL_CRYPTO,
		    "the certificate cannot be verified: %s",
		    X509_verify_cert_error_string(verify));
	return tlsio_fail(t, CL_CRYPTO, "TLS %s: %s",
	    t->ready ? "connection" : "handshake",
	    reason != NULL ? reason : "unknown error");
}

/* The result of an SSL_* call that did not succeed. */
static int
tlsio_check_result(struct tlsio *t, int ret, uint8_t *wantsp)
{
	switch (SSL_get_error(t->ssl, ret)) {
	case SSL_ERROR_WANT_READ:
		*wantsp = TLSIO_READ;
		return CL_INCOMPLETE;
	case SSL_ERROR_WANT_WRITE:
		*wantsp = TLSIO_WRITE;
		return CL_INCOMPLETE;
	case SSL_ERROR_ZERO_RETURN:
		t->clean = 1;
		return tlsio_fail(t, CL_EOF, "the peer closed the connection");
	case SSL_ERROR_SYSCALL:
		if (errno == 0)
			return tlsio_fail(t, CL_EOF,
			    "the peer closed the connection");
		return tlsio_fail(t, CL_SYSTEM, "%s", strerror(errno));
	default:
		return tlsio_fail_ssl(t);
	}
}

/* Stale errors would be taken for the result of the next call. */
static void
tlsio_del_errors(void)
{
	ERR_clear_error();
	errno = 0;
}

/*
 * On every handshake, resumed or not: the hook libraries offer for chains
 * is skipped when a session is resumed.  Verification came before.
 */
static int
tlsio_check_pin(struct tlsio *t)
{
	char want[PIN_TEXT_LEN + 1], got[PIN_TEXT_LEN + 1];
	struct pin p;
	X509 *leaf;
	int r;

	if (t->npins == 0)
		return CL_OK;
	if ((leaf = SSL_get1_peer_certificate(t->ssl)) == NULL)
		return tlsio_fail(t, CL_DENIED, "the peer has no certificate");
	r = tlsio_get_pin(leaf, &p);
	X509_free(leaf);
	if (r != 0)
		return tlsio_fail(t, r, "the peer's key cannot be read");
	if (pin_has_digest(t->pins, t->npins, p.digest))
		return CL_OK;
	pin_format(&t->pins[0], want);
	pin_format(&p, got);
	return tlsio_fail(t, CL_DENIED, "pin mismatch: the hub's key changed "
	    "(pin it again or enroll again) or this is an impostor; "
	    "expected %s%s, presented %s", want,
	    t->npins > 1 ? " or another" : "", got);
}

int
tlsio_handshake(struct tlsio *t)
{
	int ret, r;

	if (t->failed)
		return t->failed;
	if (t->ready)
		return CL_OK;
	tlsio_del_errors();
	if ((ret = SSL_do_handshake(t->ssl)) != 1)
		return tlsio_check_result(t, ret, &t->handshake_wants);
	if ((r = tlsio_check_pin(t)) != 0)
		return r;
	t->ready = 1;
	return CL_OK;
}

/* One read of at most one record into dst. */
static int
tlsio_read_record(struct tlsio *t, uint8_t *dst, size_t max, size_t *np)
{
	ssize_t n;

	*np = 0;
	if (t->ssl != NULL) {
		tlsio_del_errors();
		if (SSL_read_ex(t->ssl, dst, max, np) == 1)
			return CL_OK;
		return tlsio_check_result(t, 0, &t->read_wants);
	}
	do {
		n = recv(t->fd, dst, max, 0);
	} while (n == -1 && errno == EINTR);
	if (n > 0) {
		*np = (size_t)n;
		return CL_OK;
	}
	if (n == 0) {
		t->clean = 1;
		return tlsio_fail(t, CL_EOF, "the peer closed the connection");
	}
	if (errno == EAGAIN)
		return CL_INCOMPLETE;
	return tlsio_fail(t, CL_SYSTEM, "%s", strerror(errno));
}

int
tlsio_read(struct tlsio *t, struct evbuffer *in, size_t max)
{
	/* Static: on the stack it would be zeroed for each small frame. */
	static uint8_t record[TLSIO_RECORD_LEN];
	size_t n, total = 0;
	int r;

	t->more = 0;
	if ((r = tlsio_handshake(t)) != 0)
		return r;
	while (total < max) {
		n = max - total;
		if (n > sizeof(record))
			n = sizeof(record);
		t->read_wants = TLSIO_READ;
		if ((r = tlsio_read_record(t, record, n, &n)) != 0)
			break;
		/* Copied: an evbuffer with room to read into would keep that
		 * room on each idle connection. */
		if (evbuffer_add(in, record, n) == -1) {
			r = tlsio_fail(t, CL_NOMEM, "out of memory");
			break;
		}
		total += n;
		/* Behind a small record, with nothing read ahead, the socket
		 * is empty nearly always: asking it would cost a call, and
		 * poll tells if it is not. */
		if (n < TLSIO_SMALL_LEN && t->ssl != NULL &&
		    SSL_get_read_ahead(t->ssl) && !SSL_has_pending(t->ssl))
			break;
	}
	explicit_bzero(record, total < sizeof(record) ? total :
	    sizeof(record));
	if (total == 0)
		return r;
	/* An end that came behind data is told by the next call. */
	t->more = t->failed != 0 || (r == 0 && (t->ssl == NULL ||
	    SSL_has_pending(t->ssl)));
	return CL_OK;
}

int
tlsio_has_pending(const struct tlsio *t)
{
	return t->more;
}

static int
tlsio_write_record(struct tlsio *t, const uint8_t *src, size_t len,
    size_t *np)
{
	ssize_t n;

	*np = 0;
	if (t->ssl != NULL) {
		tlsio_del_errors();
		if (SSL_write_ex(t->ssl, src, len, np) == 1)
			return CL_OK;
		return tlsio_check_result(t, 0, &t->write_wants);
	}
	do {
		n = send(t->fd, src, len, MSG_NOSIGNAL);
	} while (n == -1 && errno == EINTR);
	if (n >= 0) {
		*np = (size_t)n;
		return CL_OK;
	}
	if (errno == EAGAIN)
		return CL_INCOMPLETE;
	return tlsio_fail(t, CL_SYSTEM, "%s", strerror(errno));
}

int
tlsio_write(struct tlsio *t, struct evbuffer *out)
{
	unsigned char *src;
	size_t len, n;
	int r;

	if ((r = tlsio_handshake(t)) != 0)
		return r;
	if (t->closing)
		return CL_STATE;
	while ((len = evbuffer_get_length(out)) > 0) {
		/* The front of `out` only grows at its end, so a retry
		 * offers at least the bytes of the attempt before, as
		 * OpenSSL demands. */
		if (len > TLSIO_RECORD_LEN)
			len = TLSIO_RECORD_LEN;
		if ((src = evbuffer_pullup(out, (ev_ssize_t)len)) == NULL)
			return tlsio_fail(t, CL_NOMEM, "out of memory");
		t->write_wants = TLSIO_WRITE;
		if ((r = tlsio_write_record(t, src, len, &n)) != 0)
			return r;
		evbuffer_drain(out, n);
	}
	return CL_OK;
}

int
tlsio_close(struct tlsio *t)
{
	int ret, r;

	if (t->closing || (t->failed && t->failed != CL_EOF))
		return CL_OK;
	/* After a failure inside TLS nothing may be sent any more; a clean
	 * end of the other side still deserves an answer. */
	if (t->ssl != NULL && t->ready && (!t->failed || t->clean)) {
		tlsio_del_errors();
		if ((ret = SSL_shutdown(t->ssl)) < 0) {
			r = tlsio_check_result(t, ret, &t->write_wants);
			if (r == CL_INCOMPLETE && t->write_wants ==
			    TLSIO_WRITE)
				return r;
		}
	}
	t->closing = 1;
	shutdown(t->fd, SHUT_WR);
	return CL_OK;
}

unsigned int
tlsio_get_wants(const struct tlsio *t, int reading, int writing)
{
	unsigned int wants = 0;

	if (!t->ready)
		return t->handshake_wants;
	if (reading)
		wants |= t->read_wants;
	if (writing)
		wants |= t->write_wants;
	return wants;
}

int
tlsio_get_fd(const struct tlsio *t)
{
	return t->fd;
}

int
tlsio_is_tls(const struct tlsio *t)
{
	return t->ssl != NULL;
}

int
tlsio_is_clean(const struct tlsio *t)
{
	return t->clean;
}

const char *
tlsio_get_version(const struct tlsio *t)
{
	return t->ssl != NULL ? SSL_get_version(t->ssl) : "plaintext";
}

const char *
tlsio_get_suite(const struct tlsio *t)
{
	const char *name = NULL;

	if (t->ssl != NULL && t->ready)
		name = SSL_get_cipher_name(t->ssl);
	return name != NULL ? name : "-";
}

const char *
tlsio_get_error(const struct tlsio *t)
{
	if (t->error != NULL)
		return t->error;
	return t->failed ? cl_strerror(t->failed) : "no error";
}
