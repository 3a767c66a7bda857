/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Accepting connections of agents.  Runs in cloopd-net on listening sockets
 * the monitor bound.  An address that has used up its share is closed
 * before a byte is read; descriptors for the files of running workloads are
 * held back, so that strangers cannot starve those who are in.
 */
#include "hub_listen.h"

#include <sys/socket.h>

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <bsd/string.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <event2/event.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "hub.h"

struct hl {
	TAILQ_ENTRY(hl) link;
	struct event *ev;
	int fd;
	int plaintext;
	char address[128];
};

void
hl_init(struct hl_table *t)
{
	TAILQ_INIT(&t->queue);
	t->nlisteners = 0;
	t->max_fds = 1024;
	t->pause_until = 0;
}

int
hl_add(struct hub *hub, int fd, int plaintext, const char *address)
{
	struct hl *l;
	int one = 1;

	if (util_set_nonblock(fd) != CL_OK ||
	    (l = calloc(1, sizeof(*l))) == NULL) {
		close(fd);
		return CL_SYSTEM;
	}
	/* Inherited by what is accepted: a turn's output is one write and
	 * should leave at once. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	l->fd = fd;
	l->plaintext = plaintext;
	(void)strlcpy(l->address, address, sizeof(l->address));
	TAILQ_INSERT_TAIL(&hub->listeners.queue, l, link);
	hub->listeners.nlisteners++;
	return CL_OK;
}

static void
hl_pause(struct hub *hub, const char *why)
{
	unsigned int suppressed = 0;
	struct hl *l;

	if (log_ratelimit(&hub->rl_pause, 1, 10, &suppressed))
		log_warn("accept-paused", "reason=%s sessions=%zu "
		    "pending=%zu suppressed=%u", log_q(why),
		    hub->sessions.nlive, hub->sessions.nyoung, suppressed);
	hub->listeners.pause_until = hub->now + HL_PAUSE_MS;
	TAILQ_FOREACH(l, &hub->listeners.queue, link)
		(void)event_del(l->ev);
}

void
hl_on_time(struct hub *hub)
{
	struct hl *l;

	if (hub->listeners.pause_until == 0 ||
	    hub->now < hub->listeners.pause_until)
		return;
	hub->listeners.pause_until = 0;
	TAILQ_FOREACH(l, &hub->listeners.queue, link)
		(void)event_add(l->ev, NULL);
}

/* Descriptors left for one more connection? */
static int
hl_has_room(const struct hub *hub)
{
	const struct hs_table *t = &hub->sessions;
	uint64_t used = t->nyoung + t->nlive + 2 * hub->logs.nopened;

	return used + HL_FD_RESERVE < hub->listeners.max_fds;
}

static void
hl_log_refused(struct hub *hub, const struct hub_addr *a, const char *why)
{
	unsigned int suppressed = 0;
	char text[HUB_ADDR_MAX];

	if (!log_ratelimit(&hub->rl_accept, 5, 10, &suppressed))
		return;
	hub_addr_format(a, text);
	log_info("connection-refused", "peer=%s reason=%s suppressed=%u",
	    text, why, suppressed);
}

static void
hl_on_connection(struct hub *hub, const struct hl *l, int fd,
    const struct sockaddr *sa)
{
	enum src_verdict verdict;
	struct hub_addr addr;
	struct src *source;
	uint16_t port;

	if (hub_addr_load(sa, &addr) != CL_OK) {
		close(fd);
		return;
	}
	port = sa->sa_family == AF_INET ?
	    ntohs(((const struct sockaddr_in *)(const void *)sa)->sin_port) :
	    ntohs(((const struct sockaddr_in6 *)(const void *)sa)->sin6_port);
	if (hub->sessions.nyoung >= (size_t)hub->conf.net.max_pending &&
	    !hs_evict(hub)) {
		hl_log_refused(hub, &addr, "MaxPending");
		close(fd);
		return;
	}
	verdict = src_get(&hub->sources, &addr, hub->now, &source);
	if (verdict == SRC_REFUSE) {
		hl_log_refused(hub, &addr, "MaxPerSource or penalty");
		close(fd);
		return;
	}
	hs_new(hub, fd, !l->plaintext, &addr, port, source,
	    verdict == SRC_LATER);
}

static void
hl_on_event(evutil_socket_t fd, short what, void *arg)
{
	union {
		struct sockaddr sa;
		struct sockaddr_in6 in6;
	} peer = { .in6 = { 0 } };
	struct hub *hub = arg;
	struct hl *l;
	socklen_t len;
	int i, conn;

	(void)what;
	hub->now = util_now_ms();
	TAILQ_FOREACH(l, &hub->listeners.queue, link)
		if (l->fd == fd)
			break;
	for (i = 0; l != NULL && i < HL_BATCH; i++) {
		if (!hl_has_room(hub)) {
			hl_pause(hub, "the rest of the descriptors is for "
			    "running workloads");
			return;
		}
		len = sizeof(peer);
		conn = accept4(fd, &peer.sa, &len,
		    SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (conn != -1) {
			hl_on_connection(hub, l, conn, &peer.sa);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
		    errno == ENOMEM) {
			hl_pause(hub, cl_strerror(CL_SYSTEM));
			return;
		}
		if (errno != EINTR && errno != ECONNABORTED)
			return;
	}
}

int
hl_start(struct hub *hub)
{
	struct hl *l;

	TAILQ_FOREACH(l, &hub->listeners.queue, link) {
		l->ev = event_new(hub->base, l->fd, EV_READ | EV_PERSIST,
		    hl_on_event, hub);
		if (l->ev == NULL || event_add(l->ev, NULL) == -1)
			return CL_NOMEM;
		log_debug("listening", "address=%s tls=%s",
		    log_q(l->address), l->plaintext ? "no" : "yes");
	}
	return CL_OK;
}

void
hl_clear(struct hub *hub)
{
	struct hl *l;

	while ((l = TAILQ_FIRST(&hub->listeners.queue)) != NULL) {
		TAILQ_REMOVE(&hub->listeners.queue, l, link);
		if (l->ev != NULL)
			event_free(l->ev);
		close(l->fd);
		free(l);
	}
	hub->listeners.nlisteners = 0;
	hub->listeners.pause_until = 0;
}
