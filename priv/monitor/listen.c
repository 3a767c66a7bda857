/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Binding where agents connect, or finding it bound.  Runs in the monitor;
 * its input is the operator's own: configuration, environment, descriptors.
 */
#include "listen.h"

#include <sys/socket.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/listenfds.h"
#include "common/base/util.h"
#include "common/base/xmem.h"
#include "monitor.h"

#define LISTEN_BACKLOG 1024
#define LISTEN_TEXT_MAX (INET6_ADDRSTRLEN + sizeof("[]:65535"))

/* Sockets of the service manager; -1 once taken. */
struct passed {
	size_t n;
	struct {
		int fd;
		struct sockaddr_storage addr;
	} socks[MAX_LISTENERS];
};

/* ---------------------------------------------------------- passed to us */

static void
listen_format(const struct sockaddr_storage *ss, char *dst, size_t len)
{
	const struct sockaddr_in *in = (const void *)ss;
	const struct sockaddr_in6 *in6 = (const void *)ss;
	char host[INET6_ADDRSTRLEN] = "?";

	if (ss->ss_family == AF_INET) {
		(void)inet_ntop(AF_INET, &in->sin_addr, host, sizeof(host));
		snprintf(dst, len, "%s:%u", host, ntohs(in->sin_port));
	} else {
		(void)inet_ntop(AF_INET6, &in6->sin6_addr, host,
		    sizeof(host));
		snprintf(dst, len, "[%s]:%u", host, ntohs(in6->sin6_port));
	}
}

static int
listen_is_same(const struct sockaddr_storage *a,
    const struct sockaddr_storage *b)
{
	char text[2][LISTEN_TEXT_MAX];

	if (a->ss_family != b->ss_family)
		return 0;
	listen_format(a, text[0], sizeof(text[0]));
	listen_format(b, text[1], sizeof(text[1]));
	return strcmp(text[0], text[1]) == 0;
}

/* A TCP socket that listens? */
static int
listen_check_passed(int fd, struct sockaddr_storage *addr)
{
	socklen_t len = sizeof(int);
	int type = 0, listens = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == -1 ||
	    getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) == -1)
		return CL_SYSTEM;
	len = sizeof(*addr);
	if (getsockname(fd, (struct sockaddr *)addr, &len) == -1)
		return CL_SYSTEM;
	if (type != SOCK_STREAM || !listens ||
	    (addr->ss_family != AF_INET && addr->ss_family != AF_INET6))
		return CL_STATE;
	return CL_OK;
}

static int
listen_load_passed(struct passed *p, char *err, size_t errlen)
{
	size_t i;
	int fd, r;

	if ((r = listenfds_take(MAX_LISTENERS, &p->n, err, errlen)) != CL_OK)
		return r;
	for (i = 0; i < p->n; i++) {
		fd = LISTENFDS_FIRST + (int)i;
		if (listen_check_passed(fd, &p->socks[i].addr) != CL_OK) {
			snprintf(err, errlen, "descriptor %d of the service "
			    "manager is not a listening TCP socket: correct "
			    "cloopd.socket", fd);
			return CL_STATE;
		}
		p->socks[i].fd = fd;
	}
	return CL_OK;
}

/* One socket for all workers: each gets a duplicate.  err: for CL_STATE. */
static int
listen_take(struct passed *p, struct listener *l, unsigned int nworkers,
    char *err, size_t errlen)
{
	unsigned int w;
	size_t i;

	for (i = 0; i < p->n; i++)
		if (p->socks[i].fd != -1 &&
		    listen_is_same(&p->socks[i].addr, &l->at.addr))
			break;
	if (i == p->n) {
		snprintf(err, errlen, "ListenAgents %s: the service manager "
		    "passed no such socket: put ListenStream=%s into "
		    "cloopd.socket (systemctl edit cloopd.socket)",
		    l->at.text, l->at.text);
		return CL_STATE;
	}
	l->fds[0] = p->socks[i].fd;
	p->socks[i].fd = -1;
	util_set_probes(l->fds[0]);
	if (util_set_nonblock(l->fds[0]) != CL_OK ||
	    listen(l->fds[0], LISTEN_BACKLOG) == -1)
		return CL_SYSTEM;
	for (w = 1; w < nworkers; w++)
		if ((l->fds[w] = fcntl(l->fds[0], F_DUPFD_CLOEXEC, 0)) == -1)
			return CL_SYSTEM;
	return CL_OK;
}

/* Whoever connected to one that nobody serves would wait for ever. */
static int
listen_check_rest(struct passed *p, char *err, size_t errlen)
{
	char text[LISTEN_TEXT_MAX];
	size_t i;

	for (i = 0; i < p->n; i++) {
		if (p->socks[i].fd == -1)
			continue;
		listen_format(&p->socks[i].addr, text, sizeof(text));
		snprintf(err, errlen, "the service manager passed a socket "
		    "for %s, which no ListenAgents line names: add that line, "
		    "or take ListenStream=%s out of cloopd.socket", text,
		    text);
		return CL_STATE;
	}
	return CL_OK;
}

/* ----------------------------------------------------------- bound by us */

static int
listen_bind(const struct config_listen *at, int *fdp)
{
	int fd, on = 1, off = 0;

	fd = socket(at->addr.ss_family,
	    SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd == -1)
		return CL_SYSTEM;
	/* [::] serves IPv4 too: one default line listens everywhere. */
	if (at->addr.ss_family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off,
		    sizeof(off));
	util_set_probes(fd);
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == -1 ||
	    setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) == -1 ||
	    bind(fd, (const struct sockaddr *)&at->addr, at->addr_len) == -1 ||
	    listen(fd, LISTEN_BACKLOG) == -1) {
		on = errno;
		close(fd);
		errno = on;
		return CL_SYSTEM;
	}
	*fdp = fd;
	return CL_OK;
}

/*
 * SO_REUSEPORT would let two hubs of one user share a port in silence.  A
 * bind without it fails as long as anybody listens there.
 */
static int
listen_probe_port(const struct config_listen *at)
{
	int fd, on = 1, r;

	fd = socket(at->addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd == -1)
		return CL_SYSTEM;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	r = bind(fd, (const struct sockaddr *)&at->addr, at->addr_len);
	on = errno;
	close(fd);
	errno = on;
	return r == -1 ? CL_SYSTEM : CL_OK;
}

static int
listen_make(struct listener *l, unsigned int nworkers)
{
	unsigned int w;

	if (listen_probe_port(&l->at) != CL_OK)
		return CL_SYSTEM;
	for (w = 0; w < nworkers; w++)
		if (listen_bind(&l->at, &l->fds[w]) != CL_OK)
			return CL_SYSTEM;
	return CL_OK;
}

/* ------------------------------------------------------------------------ */

int
listen_open(struct monitor *mon, char *err, size_t errlen)
{
	unsigned int nworkers = config_find_workers(&mon->conf);
	struct passed passed;
	struct listener *l;
	size_t i;
	int r;

	if ((r = listen_load_passed(&passed, err, errlen)) != CL_OK)
		return r;
	mon->nlisteners = mon->conf.listen_agents.n;
	mon->listeners = xcalloc(mon->nlisteners, sizeof(*mon->listeners));
	for (i = 0; i < mon->nlisteners; i++)
		memset(mon->listeners[i].fds, 0xff,
		    sizeof(mon->listeners[i].fds));
	for (i = 0; i < mon->nlisteners; i++) {
		l = &mon->listeners[i];
		(void)config_parse_listen(mon->conf.listen_agents.v[i],
		    &l->at);
		if (!l->at.plaintext)
			mon->has_tls = 1;
		if (passed.n > 0)
			r = listen_take(&passed, l, nworkers, err, errlen);
		else
			r = listen_make(l, nworkers);
		if (r == CL_SYSTEM)
			snprintf(err, errlen, "ListenAgents %s: %s",
			    l->at.text, strerror(errno));
		if (r != CL_OK)
			return r;
	}
	return listen_check_rest(&passed, err, errlen);
}

void
listen_close(struct monitor *mon)
{
	size_t i, w;

	for (i = 0; i < mon->nlisteners; i++)
		for (w = 0; w < MAX_NET_WORKERS; w++)
			if (mon->listeners[i].fds[w] != -1)
				close(mon->listeners[i].fds[w]);
	free(mon->listeners);
	mon->listeners = NULL;
	mon->nlisteners = 0;
}
