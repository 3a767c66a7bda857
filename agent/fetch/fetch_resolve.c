/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The resolver role of agentd-fetch: one name, one answer, exit.  It runs
 * whatever NSS modules the machine has on whatever a name server says, so
 * it holds no credential and talks to its monitor only.
 */
#include "fetch.h"

#include <bsd/string.h>
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
#define FETCH_ERROR_MAX 512	/* of a resolver's reason */

int
fetch_addrs_get(struct buf *b, int *okp, char *why, size_t whylen,
    struct fetch_addr *addrs, size_t *np)
{
	char text[FETCH_ERROR_MAX + 1];
	const uint8_t *bytes;
	size_t i, len, n, want;
	uint8_t family;

	*np = 0;
	*okp = buf_get_bool(b);
	buf_get_str(b, text, FETCH_ERROR_MAX);
	n = buf_get_u8(b);
	if (n > MAX_RESOLVED)
		return CL_LIMIT;
	for (i = 0; i < n; i++) {
		family = buf_get_u8(b);
		bytes = buf_get_blob(b, sizeof(addrs[i].bytes), &len);
		want = family == 4 ? 4 : 16;
		if ((family != 4 && family != 6) || bytes == NULL ||
		    len != want)
			return CL_FORMAT;
		addrs[i].family = family == 4 ? AF_INET : AF_INET6;
		memcpy(addrs[i].bytes, bytes, len);
	}
	if (buf_end(b) != 0 || (*okp && n == 0))
		return CL_FORMAT;
	strlcpy(why, text, whylen);
	*np = n;
	return CL_OK;
}

void
fetch_addrs_put(struct buf *b, const char *error,
    const struct fetch_addr *addrs, size_t n)
{
	size_t i;

	buf_put_u8(b, error == NULL);
	buf_put_str(b, error);
	buf_put_u8(b, (uint8_t)n);
	for (i = 0; i < n; i++) {
		buf_put_u8(b, addrs[i].family == AF_INET ? 4 : 6);
		buf_put_blob(b, addrs[i].bytes,
		    addrs[i].family == AF_INET ? 4 : 16);
	}
}

struct fetch_resolve_question {
	char host[FETCH_HOST_MAX + 1];
	char port[8];
};

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

static void
fetch_resolve_get_question(struct imsg_chan *c,
    struct fetch_resolve_question *q)
{
	struct pollfd pfd = { .fd = FETCH_RESOLVE_CHANNEL_FD,
	    .events = POLLIN };
	struct msgcat_seen seen = { { 0 } };
	struct imsg m;
	const char *why;
	uint16_t port;
	int r;

	while ((r = imsg_read(c, &m)) == CL_INCOMPLETE)
		poll(&pfd, 1, -1);
	if (r == CL_EOF)
		_exit(0);
	if (r != 0 || msgcat_check(MSG_M2F, MS_STARTING, &m, &seen, &why) !=
	    0 || m.type != MSG_RES_NAME)
		fatal("monitor-violation", "role=resolver");
	buf_get_str(&m.body, q->host, FETCH_HOST_MAX);
	port = buf_get_u16(&m.body);
	if (buf_end(&m.body) != 0)
		fatal("monitor-violation", "role=resolver type=RES_NAME");
	snprintf(q->port, sizeof(q->port), "%u", port);
	imsg_free(&m);
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
fetch_resolve_name(const struct fetch_resolve_question *q,
    struct fetch_addr *addrs, size_t *np)
{
	struct addrinfo hints, *list = NULL, *ai;
	int r;

	memset(&hints, 0, sizeof(hints));
	hints.ai_family = AF_UNSPEC;
	hints.ai_socktype = SOCK_STREAM;
	hints.ai_flags = AI_NUMERICSERV;
	*np = 0;
	if ((r = getaddrinfo(q->host, q->port, &hints, &list)) != 0)
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
	struct imsg_chan c;
	struct fetch_resolve_question q;
	struct pollfd pfd = { .fd = FETCH_RESOLVE_CHANNEL_FD,
	    .events = POLLOUT };
	struct buf b;
	const char *error;
	size_t n;

	/* A name server that never answers must not keep us. */
	alarm(RESOLVE_TIMEOUT_MS / 1000);
	if (imsg_init(&c, FETCH_RESOLVE_CHANNEL_FD, FETCH_RESOLVE_QUEUE_MAX) !=
	    0)
		fatal("start", "reason=\"no channel on descriptor 3\"");
	fetch_resolve_confine();
	fetch_resolve_get_question(&c, &q);
	error = fetch_resolve_name(&q, addrs, &n);
	buf_init(&b, MSG_BODY_MAX);
	fetch_addrs_put(&b, error, addrs, n);
	if (imsg_compose(&c, MSG_RES_ADDRS, 0, &b, -1) != 0)
		fatal("resolve", "reason=\"cannot answer\"");
	buf_clear(&b);
	while (imsg_write(&c) == CL_INCOMPLETE)
		poll(&pfd, 1, -1);
	return 0;
}
