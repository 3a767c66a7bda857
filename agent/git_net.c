/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * What a git of cloop-git may say to the network, between fork and exec
 * (04 §8, 00 §3.2).  One that works on a tree gets no socket at all.  One
 * that speaks to the forge connects to the forge's port and its proxies'
 * only, where Landlock knows ports (Linux 6.7): the address is not looked
 * at, because the name may have another one at the next look.  Port 53 is
 * for answers that do not fit a datagram.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <bsd/stdlib.h>

#include "../common/err.h"
#include "../sandbox/bpf.h"
#include "../sandbox/landlock.h"
#include "git_job.h"

#define GN_HTTPS 443
#define GN_DNS 53
#define GN_PROXY 1080		/* libcurl's, of a proxy without a port */

/* The port of "host[:port][/...]". */
static uint16_t
gn_get_port(const char *host, uint16_t otherwise)
{
	const char *end = host + strcspn(host, "/"), *p = end, *errstr;
	char text[8];
	uint16_t port;

	while (p > host && p[-1] >= '0' && p[-1] <= '9')
		p--;
	if (p == host || p[-1] != ':' || p == end ||
	    (size_t)(end - p) >= sizeof(text))
		return otherwise;
	memcpy(text, p, (size_t)(end - p));
	text[end - p] = '\0';
	port = (uint16_t)strtonum(text, 1, 65535, &errstr);
	return errstr == NULL ? port : otherwise;
}

/* NAME=[scheme://][user@]host[:port]; NO_PROXY names no proxy. */
static int
gn_is_proxy(const char *entry, uint16_t *portp)
{
	const char *value = strchr(entry, '='), *at, *host;

	if (value == NULL || strncasecmp(entry, "NO_PROXY=", 9) == 0)
		return 0;
	value++;
	host = strstr(value, "://");
	host = host == NULL ? value : host + 3;
	at = strrchr(host, '@');
	*portp = gn_get_port(at == NULL ? host : at + 1,
	    strncasecmp(value, "https://", 8) == 0 ? GN_HTTPS : GN_PROXY);
	return 1;
}

size_t
gn_find_ports(const struct gj *g, uint16_t *ports, size_t max)
{
	size_t i, n = 0;

	if (g->host == NULL || max < 2)
		return 0;
	ports[n++] = gn_get_port(g->host, GN_HTTPS);
	ports[n++] = GN_DNS;
	for (i = 0; i < g->plan.nenv && n < max; i++)
		n += (size_t)gn_is_proxy(g->plan.env[i], &ports[n]);
	return n;
}

static int
gn_start_ports(const struct gj *g)
{
	uint16_t ports[GN_PORTS];
	size_t i, n = gn_find_ports(g, ports, GN_PORTS);
	struct landlock *l;
	int r;

	if ((r = landlock_new(LL_NO_TCP | LL_ANY_FILE, &l)) != CL_OK)
		return r == CL_UNSUPPORTED ? CL_OK : r;
	for (i = 0; i < n && r == CL_OK; i++)
		r = landlock_add_port(l, ports[i]);
	if (r == CL_OK)
		r = landlock_start(l);
	landlock_free(l);
	return r;
}

int
gn_start_walls(const struct gj *g, unsigned int flags,
    const struct sock_fprog *filter)
{
	if ((flags & GE_NETWORK) != 0)
		return gn_start_ports(g);
	return filter != NULL ? bpf_start(filter) : CL_OK;
}
