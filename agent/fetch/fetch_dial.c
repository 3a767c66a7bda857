/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Dialling the hub, in agentd-fetch after confinement: socket, connect, TLS
 * with verification and pin, the upgrade request, its answer.  The credential
 * leaves only after the hub has proved who it is.
 */
#include "fetch_link.h"

#include <arpa/inet.h>
#include <bsd/stdlib.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "net/conn/conn.h"

#define DIAL_REQUEST_MAX (MAX_URL_LEN + MAX_TOKEN_LEN + 1024)
#define DIAL_HOST_MAX 300	/* name, brackets, port */
#define DIAL_INTERIM_MAX 4	/* 1xx answers before the real one */
#define DIAL_CONNECT_MIN_MS 2000
#define DIAL_NOTSENT_LEN 131072	/* unsent bytes the kernel may hold: what
				 * is called written is nearly on the wire */

union dial_sockaddr {
	struct sockaddr sa;
	struct sockaddr_in in4;
	struct sockaddr_in6 in6;
};

static int dial_connect_next(struct fetch_dial *);

/* Say why not.  Returns CL_SYSTEM. */
static int __attribute__((__format__(__printf__, 2, 3)))
dial_fail(struct fetch_dial *d, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(d->why, sizeof(d->why), fmt, ap);
	va_end(ap);
	return CL_SYSTEM;
}

static socklen_t
dial_get_sockaddr(const struct fetch_addr *a, uint16_t port,
    union dial_sockaddr *su)
{
	memset(su, 0, sizeof(*su));
	if (a->family == AF_INET) {
		su->in4.sin_family = AF_INET;
		su->in4.sin_port = htons(port);
		memcpy(&su->in4.sin_addr, a->bytes, 4);
		return sizeof(su->in4);
	}
	su->in6.sin6_family = AF_INET6;
	su->in6.sin6_port = htons(port);
	memcpy(&su->in6.sin6_addr, a->bytes, 16);
	return sizeof(su->in6);
}

static void
dial_format_peer(struct fetch_dial *d, const struct fetch_addr *a)
{
	char text[INET6_ADDRSTRLEN] = "?";
	int v6 = a->family == AF_INET6;

	inet_ntop(a->family, a->bytes, text, sizeof(text));
	snprintf(d->peer, sizeof(d->peer), "%s%s%s:%u", v6 ? "[" : "", text,
	    v6 ? "]" : "", d->target.port);
}

/* None of these is worth failing for. */
static void
dial_set_options(int fd)
{
	int on = 1, notsent = DIAL_NOTSENT_LEN;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	util_set_probes(fd);
	setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &notsent,
	    sizeof(notsent));
}

/* Share what is left of the dial among the addresses that are left. */
static int64_t
dial_get_connect_ms(const struct fetch_dial *d, int64_t left)
{
	int64_t share = left / (int64_t)(d->naddrs - d->next_addr + 1);

	if (share < DIAL_CONNECT_MIN_MS)
		share = DIAL_CONNECT_MIN_MS;
	return share < left ? share : left;
}

static void
dial_on_connected(evutil_socket_t fd, short what, void *arg)
{
	struct fetch_dial *d = arg;

	(void)fd;
	(void)what;
	d->on_connected(d->arg);
}

static int
dial_connect(struct fetch_dial *d, const struct fetch_addr *a)
{
	union dial_sockaddr su;
	socklen_t len;

	dial_format_peer(d, a);
	d->fd = socket(a->family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
	    0);
	if (d->fd == -1)
		return CL_SYSTEM;
	dial_set_options(d->fd);
	len = dial_get_sockaddr(a, d->target.port, &su);
	if (connect(d->fd, &su.sa, len) == -1 && errno != EINPROGRESS)
		return CL_SYSTEM;
	d->connected = event_new(d->base, d->fd, EV_WRITE, dial_on_connected,
	    d);
	if (d->connected == NULL || event_add(d->connected, NULL) == -1)
		return CL_NOMEM;
	return CL_OK;
}

void
fetch_dial_stop(struct fetch_dial *d)
{
	if (d->connected != NULL)
		event_free(d->connected);
	d->connected = NULL;
	if (d->fd != -1)
		close(d->fd);
	d->fd = -1;
}

/* An address failed: say it, and try the next one. */
static int
dial_on_refused(struct fetch_dial *d, const char *why)
{
	fetch_dial_stop(d);
	if (d->next_addr == d->naddrs)
		return dial_fail(d, "cannot connect to %s: %s", d->peer, why);
	log_debug("dial", "peer=%s reason=\"%s\" next=yes", d->peer, why);
	return dial_connect_next(d);
}

static int
dial_connect_next(struct fetch_dial *d)
{
	const struct fetch_addr *a = &d->addrs[d->next_addr++];
	int64_t now = util_now_ms();

	d->stage = DIAL_CONNECT;
	d->connect_at = now + dial_get_connect_ms(d, d->deadline_at - now);
	if (dial_connect(d, a) != 0)
		return dial_on_refused(d, strerror(errno));
	return CL_INCOMPLETE;
}

void
fetch_dial_init(struct fetch_dial *d, struct event_base *base,
    struct conn *conn, void (*on_connected)(void *), void *arg)
{
	memset(d, 0, sizeof(*d));
	d->base = base;
	d->conn = conn;
	d->on_connected = on_connected;
	d->arg = arg;
	d->fd = -1;
	snprintf(d->peer, sizeof(d->peer), "-");
}

int64_t
fetch_dial_get_deadline(const struct fetch_dial *d)
{
	return d->stage == DIAL_CONNECT ? d->connect_at : d->deadline_at;
}

int
fetch_dial_expire(struct fetch_dial *d)
{
	if (d->stage == DIAL_CONNECT)
		return dial_on_refused(d, "timed out");
	return dial_fail(d, d->stage == DIAL_TLS ?
	    "no TLS handshake within %d s" :
	    "no answer to the upgrade within %d s", DIAL_TIMEOUT_MS / 1000);
}

int
fetch_dial_start(struct fetch_dial *d, const struct fetch_target *t,
    const struct fetch_addr *addrs, size_t naddrs)
{
	if (naddrs > MAX_RESOLVED)
		naddrs = MAX_RESOLVED;
	d->target = *t;
	memcpy(d->addrs, addrs, naddrs * sizeof(*addrs));
	d->naddrs = naddrs;
	d->next_addr = 0;
	d->head_scanned = 0;
	d->ninterim = 0;
	d->deadline_at = util_now_ms() + DIAL_TIMEOUT_MS;
	return dial_connect_next(d);
}

/* host[:port] of the URL: the scheme's own port is not written. */
static void
dial_format_host(const struct fetch_dial *d, char *dst, size_t dstlen)
{
	const struct fetch_target *t = &d->target;
	int v6 = strchr(t->host, ':') != NULL;
	uint16_t standard = t->ctx != NULL ? 443 : 80;
	char port[8] = "";

	if (t->port != standard)
		snprintf(port, sizeof(port), ":%u", t->port);
	snprintf(dst, dstlen, "%s%s%s%s", v6 ? "[" : "", t->host,
	    v6 ? "]" : "", port);
}

/* The request holds the credential: one copy, wiped when it was sent. */
static int
dial_put_request(struct fetch_dial *d)
{
	struct http1_upgrade u = { .path = d->target.path,
	    .user_agent = d->target.user_agent, .bearer = d->target.bearer,
	    .key = d->key };
	char host[DIAL_HOST_MAX], *text;
	size_t len;
	int r;

	dial_format_host(d, host, sizeof(host));
	u.host = host;
	http1_format_key(d->key);
	if ((text = calloc(1, DIAL_REQUEST_MAX)) == NULL)
		return CL_NOMEM;
	r = http1_format_upgrade(text, DIAL_REQUEST_MAX, &u, &len);
	if (r == 0)
		return conn_put_owned(d->conn, text, len);
	freezero(text, DIAL_REQUEST_MAX);
	return r;
}

/* TCP is there, or refused. */
static int
dial_on_connect(struct fetch_dial *d)
{
	socklen_t len = sizeof(int);
	struct tlsio *io;
	int error = 0, r, fd = d->fd;

	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == -1)
		error = errno;
	if (error != 0)
		return dial_on_refused(d, strerror(error));
	d->fd = -1;
	fetch_dial_stop(d);
	r = tlsio_new_client(d->target.ctx, fd, d->target.host,
	    d->target.pins, d->target.npins, &io);
	if (r != 0 || (r = conn_open(d->conn, d->base, io)) != 0)
		return dial_fail(d, "cannot start TLS: %s", cl_strerror(r));
	d->stage = DIAL_TLS;
	return CL_OK;
}

static int
dial_on_tls(struct fetch_dial *d)
{
	int r;

	if ((r = tlsio_handshake(d->conn->io)) == CL_INCOMPLETE)
		return r;
	if (r != 0)
		return dial_fail(d, "%s", tlsio_get_error(d->conn->io));
	if ((r = dial_put_request(d)) != 0)
		return dial_fail(d, "cannot write the request: %s",
		    cl_strerror(r));
	d->stage = DIAL_HTTP;
	return CL_OK;
}

/* What a refusal means and what to do about it. */
static int
dial_fail_status(struct fetch_dial *d, const struct http1_head *h)
{
	const char *why = "";

	if (h->status == 401)
		why = ": the credential was rejected: it is invalid or "
		    "revoked, or the token was used already; mint a new "
		    "token on the hub and enroll again";
	else if (h->status == 403)
		why = ": the hub refused the Origin of the request; something "
		    "between adds one, look at AllowOrigin of the hub";
	else if (h->status == 426)
		why = ": the upgrade did not arrive; a proxy between strips "
		    "the Upgrade or Connection header";
	else if (h->status == 429)
		why = ": the hub asks for patience";
	else if (h->status >= 300 && h->status < 400)
		why = ": redirects are not followed";
	return dial_fail(d, "the hub answered HTTP %u%s", h->status, why);
}

/* A whole head of *lenp bytes, pulled up; CL_INCOMPLETE. */
static int
dial_find_head(struct fetch_dial *d, uint8_t **headp, size_t *lenp)
{
	size_t n = evbuffer_get_length(d->conn->in);

	if (n > HTTP_HEAD_MAX + 1)
		n = HTTP_HEAD_MAX + 1;
	*headp = evbuffer_pullup(d->conn->in, (ev_ssize_t)n);
	if (*headp == NULL)
		return n == 0 ? CL_INCOMPLETE : CL_NOMEM;
	return http1_find_end(*headp, n, &d->head_scanned, lenp);
}

/* The answer to the upgrade; interim 1xx answers are passed over. */
static int
dial_on_answer(struct fetch_dial *d)
{
	struct http1_head h;
	const char *why;
	uint8_t *head;
	size_t len;
	int r;

	while ((r = dial_find_head(d, &head, &len)) == 0) {
		if ((r = http1_parse_response(head, len, &h)) != 0)
			break;
		if (h.status >= 100 && h.status < 200 && h.status != 101 &&
		    d->ninterim++ < DIAL_INTERIM_MAX) {
			evbuffer_drain(d->conn->in, len);
			d->head_scanned = 0;
			continue;
		}
		if (h.status != 101)
			return dial_fail_status(d, &h);
		if (http1_check_switching(&h, d->key, &why) != 0)
			return dial_fail(d, "the upgrade failed: %s", why);
		d->has_end_acks = http1_has_token(&h, HTTP1_FEATURES,
		    HTTP1_END_ACK);
		evbuffer_drain(d->conn->in, len);
		d->stage = DIAL_DONE;
		return CL_OK;
	}
	return r == CL_INCOMPLETE ? r : dial_fail(d,
	    "the answer is not HTTP: %s", cl_strerror(r));
}

static int
dial_on_http(struct fetch_dial *d)
{
	struct conn *c = d->conn;
	int r;

	r = conn_flush(c, util_now_ms());
	if (r == 0 || r == CL_INCOMPLETE)
		r = tlsio_read(c->io, c->in, HTTP_HEAD_MAX);
	if (r == 0)
		return dial_on_answer(d);
	return r == CL_INCOMPLETE ? r : dial_fail(d,
	    "before the hub answered: %s", tlsio_get_error(c->io));
}

int
fetch_dial_run(struct fetch_dial *d)
{
	int r = CL_OK;

	if (d->stage == DIAL_CONNECT)
		r = dial_on_connect(d);
	if (r == 0 && d->stage == DIAL_TLS)
		r = dial_on_tls(d);
	if (r == 0 && d->stage == DIAL_HTTP)
		r = dial_on_http(d);
	return r;
}
