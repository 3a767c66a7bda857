/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The resolver role of agentd-fetch: one name, one answer, exit.  It runs
 * whatever NSS modules the machine has on whatever a name server says, so
 * it holds no credential and talks to its monitor only.
 */
#include "fetch.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/paths.h"
#include "sandbox/self/self.h"

#define FETCH_RESOLVE_CHANNEL_FD 3
#define FETCH_RESOLVE_QUEUE_MAX 4

static void
fetch_resolve_confine(void)
{
	struct self_opts o = { .profile = SELF_RESOLVER, .user = USER_FETCH };
	struct self_report rep;
	int r;

	if ((r = self_confine(&o, &rep)) != 0)
		fatal("confine", "step=%s reason=\"%s\"", rep.step,
		    cl_strerror(r));
}

/* The one question; then msg_clear and imsg_free. */
static void
fetch_resolve_wait(struct chan *c, struct imsg *m, union msg_any *v)
{
	const char *why;
	int r = chan_wait(c, INT64_MAX, m, v, &why);

	if (r == CL_EOF)
		_exit(0);
	if (r != 0 || m->type != MSG_RES_NAME)
		fatal("monitor-violation", "role=resolver");
}

/* One address, unless it is there already. */
static size_t
fetch_resolve_add_addr(struct fetch_addr *addrs, size_t n,
    const struct addrinfo *ai)
{
	struct fetch_addr a;
	size_t i;

	memset(&a, 0, sizeof(a));
	a.family = ai->ai_family;
	if (ai->ai_family == AF_INET)
		memcpy(a.bytes, &((const struct sockaddr_in *)(const void *)
		    ai->ai_addr)->sin_addr, 4);
	else if (ai->ai_family == AF_INET6)
		memcpy(a.bytes, &((const struct sockaddr_in6 *)(const void *)
		    ai->ai_addr)->sin6_addr, 16);
	else
		return n;
	for (i = 0; i < n; i++) {
		if (memcmp(&addrs[i], &a, sizeof(a)) == 0)
			return n;
	}
	addrs[n] = a;
	return n + 1;
}

/* NULL, or why there is no address. */
static const char *
fetch_resolve_name(const struct msg_res_name *q, struct fetch_addr *addrs,
    size_t *np)
{
	struct addrinfo hints, *list = NULL, *ai;
	char port[8];
	int r;

	memset(&hints, 0, sizeof(hints));
	hints.ai_family = AF_UNSPEC;
	hints.ai_socktype = SOCK_STREAM;
	hints.ai_flags = AI_NUMERICSERV;
	*np = 0;
	(void)snprintf(port, sizeof(port), "%u", (unsigned int)q->port);
	if ((r = getaddrinfo(q->host, port, &hints, &list)) != 0)
		return gai_strerror(r);
	for (ai = list; ai != NULL && *np < MAX_RESOLVED; ai = ai->ai_next)
		*np = fetch_resolve_add_addr(addrs, *np, ai);
	freeaddrinfo(list);
	return *np == 0 ? "no address" : NULL;
}

int
fetch_resolve_main(void)
{
	struct fetch_addr addrs[MAX_RESOLVED];
	struct msg_addr out[MAX_RESOLVED];
	struct msg_addrs ans = { .addrs = out };
	struct pollfd pfd = { .fd = FETCH_RESOLVE_CHANNEL_FD,
	    .events = POLLOUT };
	struct chan c;
	struct imsg m;
	union msg_any v;
	size_t i;

	/* A name server that never answers must not keep us. */
	alarm(RESOLVE_TIMEOUT_MS / 1000);
	if (chan_init(&c, FETCH_RESOLVE_CHANNEL_FD, MSG_M2F, MSG_F2M,
	    FETCH_RESOLVE_QUEUE_MAX, NULL, NULL, NULL) != 0)
		fatal("start", "reason=\"no channel on descriptor 3\"");
	fetch_resolve_confine();
	fetch_resolve_wait(&c, &m, &v);
	ans.error = fetch_resolve_name(&v.RES_NAME, addrs, &ans.naddrs);
	for (i = 0; i < ans.naddrs; i++) {
		out[i].bytes = addrs[i].bytes;
		out[i].bytes_len = addrs[i].family == AF_INET ? 4 : 16;
	}
	if (CHAN_SEND(&c, RES_ADDRS, 0, &ans, -1) != 0)
		fatal("resolve", "reason=\"cannot answer\"");
	while (chan_has_output(&c) && poll(&pfd, 1, -1) == 1)
		chan_flush(&c);
	return 0;
}
