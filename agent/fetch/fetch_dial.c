/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * From addresses to an upgraded connection, in agentd-fetch after
 * confinement: socket, connect, TLS with verification and pin, the upgrade
 * request, its answer.  The credential leaves only after the hub has proved
 * who it is.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "net/codec/tlsio.h"
#include "fetch_link_int.h"

#define FL_REQUEST_MAX (MAX_URL_LEN + MAX_TOKEN_LEN + 1024)
#define FL_HOST_MAX 300		/* name, brackets, port */
#define FL_INTERIM_MAX 4	/* 1xx answers before the real one */
#define FL_CONNECT_MIN_MS 2000
#define FL_NOTSENT_LEN 131072	/* unsent bytes the kernel may hold: what
				 * is called written is nearly on the wire */

union fl_sockaddr {
	struct sockaddr sa;
	struct sockaddr_in in4;
	struct sockaddr_in6 in6;
};

static void fl_connect_next(struct fl *);

static socklen_t
fl_get_sockaddr(const struct fl_addr *a, uint16_t port, union fl_sockaddr *su)
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
fl_format_peer(struct fl *l, const struct fl_addr *a)
{
	char text[INET6_ADDRSTRLEN] = "?";
	int v6 = a->family == AF_INET6;

	inet_ntop(a->family, a->bytes, text, sizeof(text));
	snprintf(l->peer, sizeof(l->peer), "%s%s%s:%u", v6 ? "[" : "", text,
	    v6 ? "]" : "", l->target.port);
}

/* None of these is worth failing for. */
static void
fl_set_options(int fd)
{
	int on = 1, notsent = FL_NOTSENT_LEN;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	util_set_probes(fd);
	setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &notsent,
	    sizeof(notsent));
}

/* Share what is left of the dial among the addresses that are left. */
int64_t
fl_get_connect_ms(const struct fl *l)
{
	int64_t left = l->dial_deadline_at - util_now_ms();
	int64_t share = left / (int64_t)(l->naddrs - l->next_addr + 1);

	if (share < FL_CONNECT_MIN_MS)
		share = FL_CONNECT_MIN_MS;
	return share < left ? share : left;
}

static int
fl_connect(struct fl *l, const struct fl_addr *a)
{
	union fl_sockaddr su;
	socklen_t len;

	fl_format_peer(l, a);
	l->fd = socket(a->family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
	    0);
	if (l->fd == -1)
		return CL_SYSTEM;
	fl_set_options(l->fd);
	len = fl_get_sockaddr(a, l->target.port, &su);
	if (connect(l->fd, &su.sa, len) == -1 && errno != EINPROGRESS)
		return CL_SYSTEM;
	return fl_open_events(l, l->fd);
}

static void
fl_close_attempt(struct fl *l)
{
	if (l->rd != NULL)
		event_free(l->rd);
	if (l->wr != NULL)
		event_free(l->wr);
	l->rd = l->wr = NULL;
	if (l->fd != -1)
		close(l->fd);
	l->fd = -1;
}

/* An address failed: say it, and try the next one. */
static void
fl_on_refused(struct fl *l, const char *why)
{
	fl_close_attempt(l);
	if (l->next_addr == l->naddrs) {
		fl_fail(l, "cannot connect to %s: %s", l->peer, why);
		return;
	}
	log_debug("dial", "peer=%s reason=\"%s\" next=yes", l->peer, why);
	fl_connect_next(l);
}

static void
fl_connect_next(struct fl *l)
{
	const struct fl_addr *a = &l->addrs[l->next_addr++];

	fl_enter_state(l, FL_CONNECT);
	if (fl_connect(l, a) != 0) {
		fl_on_refused(l, strerror(errno));
		return;
	}
	event_add(l->wr, NULL);
}

void
fl_on_connect_timeout(struct fl *l)
{
	fl_on_refused(l, "timed out");
}

int
fl_start(struct fl *l, const struct fl_target *t, const struct fl_addr *addrs,
    size_t naddrs)
{
	if (l->state != FL_IDLE || naddrs == 0)
		return CL_STATE;
	if (naddrs > MAX_RESOLVED)
		naddrs = MAX_RESOLVED;
	l->target = *t;
	memcpy(l->addrs, addrs, naddrs * sizeof(*addrs));
	l->naddrs = naddrs;
	l->next_addr = 0;
	l->why[0] = '\0';
	l->head_scanned = 0;
	l->ninterim = 0;
	l->queued = l->written = 0;
	l->paused = l->has_pong = 0;
	l->dial_deadline_at = util_now_ms() + DIAL_TIMEOUT_MS;
	fl_connect_next(l);
	return CL_OK;
}

/* host[:port] of the URL: the scheme's own port is not written. */
static void
fl_format_host(const struct fl *l, char *dst, size_t dstlen)
{
	const struct fl_target *t = &l->target;
	int v6 = strchr(t->host, ':') != NULL;
	uint16_t standard = t->ctx != NULL ? 443 : 80;
	char port[8] = "";

	if (t->port != standard)
		snprintf(port, sizeof(port), ":%u", t->port);
	snprintf(dst, dstlen, "%s%s%s%s", v6 ? "[" : "", t->host,
	    v6 ? "]" : "", port);
}

static void
fl_on_request_sent(const void *data, size_t len, void *arg)
{
	(void)arg;
	explicit_bzero((void *)(uintptr_t)data, len);
	free((void *)(uintptr_t)data);
}

/* The request holds the credential: one copy, wiped when it was sent. */
static int
fl_put_request(struct fl *l)
{
	struct http1_upgrade u = { .path = l->target.path,
	    .user_agent = l->target.user_agent, .bearer = l->target.bearer,
	    .key = l->key };
	char host[FL_HOST_MAX], *text;
	size_t len;
	int r;

	fl_format_host(l, host, sizeof(host));
	u.host = host;
	http1_format_key(l->key);
	if ((text = calloc(1, FL_REQUEST_MAX)) == NULL)
		return CL_NOMEM;
	r = http1_format_upgrade(text, FL_REQUEST_MAX, &u, &len);
	if (r == 0 && evbuffer_add_reference(l->out, text, len,
	    fl_on_request_sent, NULL) == -1)
		r = CL_NOMEM;
	if (r != 0) {
		explicit_bzero(text, FL_REQUEST_MAX);
		free(text);
	}
	return r;
}

static void
fl_on_connected(struct fl *l)
{
	socklen_t len = sizeof(int);
	int error = 0, r, fd = l->fd;

	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == -1)
		error = errno;
	if (error != 0) {
		fl_on_refused(l, strerror(error));
		return;
	}
	l->fd = -1;
	r = tlsio_new_client(l->target.ctx, fd, l->target.host,
	    l->target.pins, l->target.npins, &l->tls);
	if (r != 0) {
		fl_fail(l, "cannot start TLS: %s", cl_strerror(r));
		return;
	}
	fl_enter_state(l, FL_TLS);
}

static void
fl_on_handshake(struct fl *l)
{
	int r;

	if ((r = tlsio_handshake(l->tls)) == CL_INCOMPLETE)
		return;
	if (r != 0) {
		fl_fail(l, "%s", tlsio_get_error(l->tls));
		return;
	}
	if ((r = fl_put_request(l)) != 0) {
		fl_fail(l, "cannot write the request: %s", cl_strerror(r));
		return;
	}
	fl_enter_state(l, FL_HTTP);
}

/* What a refusal means and what to do about it. */
static void
fl_fail_status(struct fl *l, const struct http1_head *h)
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
	fl_fail(l, "the hub answered HTTP %u%s", h->status, why);
}

/* A whole head of *lenp bytes, pulled up; CL_INCOMPLETE. */
static int
fl_find_head(struct fl *l, uint8_t **headp, size_t *lenp)
{
	size_t n = evbuffer_get_length(l->in);
	int r;

	if (n > HTTP_HEAD_MAX + 1)
		n = HTTP_HEAD_MAX + 1;
	*headp = evbuffer_pullup(l->in, (ev_ssize_t)n);
	if (*headp == NULL)
		return n == 0 ? CL_INCOMPLETE : CL_NOMEM;
	r = http1_find_end(*headp, n, &l->head_scanned, lenp);
	return r;
}

/* The answer to the upgrade; interim 1xx answers are passed over. */
static void
fl_on_answer(struct fl *l)
{
	struct http1_head h;
	const char *why;
	uint8_t *head;
	size_t len;
	int r;

	while ((r = fl_find_head(l, &head, &len)) == 0) {
		if ((r = http1_parse_response(head, len, &h)) != 0)
			break;
		if (h.status >= 100 && h.status < 200 && h.status != 101 &&
		    l->ninterim++ < FL_INTERIM_MAX) {
			evbuffer_drain(l->in, len);
			l->head_scanned = 0;
			continue;
		}
		if (h.status != 101)
			fl_fail_status(l, &h);
		else if (http1_check_switching(&h, l->key, &why) != 0)
			fl_fail(l, "the upgrade failed: %s", why);
		else {
			l->has_end_acks = http1_has_token(&h, HTTP1_FEATURES,
			    HTTP1_END_ACK);
			evbuffer_drain(l->in, len);
			fl_enter_state(l, FL_OPEN);
		}
		return;
	}
	if (r != CL_INCOMPLETE)
		fl_fail(l, "the answer is not HTTP: %s", cl_strerror(r));
}

static void
fl_on_http(struct fl *l)
{
	int r;

	r = tlsio_write(l->tls, l->out);
	if (r == 0 || r == CL_INCOMPLETE)
		r = tlsio_read(l->tls, l->in, HTTP_HEAD_MAX);
	if (r == 0)
		fl_on_answer(l);
	else if (r != CL_INCOMPLETE)
		fl_fail(l, "before the hub answered: %s",
		    tlsio_get_error(l->tls));
}

void
fl_on_dial(struct fl *l)
{
	if (l->state == FL_CONNECT)
		fl_on_connected(l);
	if (l->state == FL_TLS)
		fl_on_handshake(l);
	if (l->state == FL_HTTP)
		fl_on_http(l);
}
