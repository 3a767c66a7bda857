/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The configuration of cloopd-net.  Runs unprivileged; the addresses in the
 * monitor's message are text.
 */
#include "hub_conf.h"

#include <sys/socket.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include <bsd/stdlib.h>
#include <bsd/string.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"

static const uint8_t hub_mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff,
	0xff };

int
hub_addr_load(const struct sockaddr *sa, struct hub_addr *a)
{
	const struct sockaddr_in6 *six;
	const struct sockaddr_in *four;

	memset(a, 0, sizeof(*a));
	if (sa->sa_family == AF_INET) {
		four = (const void *)sa;
		memcpy(a->bytes, hub_mapped, sizeof(hub_mapped));
		memcpy(a->bytes + 12, &four->sin_addr, 4);
		return CL_OK;
	}
	if (sa->sa_family == AF_INET6) {
		six = (const void *)sa;
		memcpy(a->bytes, &six->sin6_addr, 16);
		return CL_OK;
	}
	return CL_FORMAT;
}

int
hub_addr_is_ipv4(const struct hub_addr *a)
{
	return memcmp(a->bytes, hub_mapped, sizeof(hub_mapped)) == 0;
}

int
hub_addr_is_loopback(const struct hub_addr *a)
{
	static const uint8_t six[16] = { [15] = 1 };

	if (hub_addr_is_ipv4(a))
		return a->bytes[12] == 127;
	return memcmp(a->bytes, six, sizeof(six)) == 0;
}

void
hub_addr_format(const struct hub_addr *a, char dst[HUB_ADDR_MAX])
{
	if (hub_addr_is_ipv4(a))
		(void)inet_ntop(AF_INET, a->bytes + 12, dst, HUB_ADDR_MAX);
	else
		(void)inet_ntop(AF_INET6, a->bytes, dst, HUB_ADDR_MAX);
}

int
hub_addr_parse(const char *text, struct hub_addr *a)
{
	memset(a, 0, sizeof(*a));
	if (inet_pton(AF_INET, text, a->bytes + 12) == 1) {
		memcpy(a->bytes, hub_mapped, sizeof(hub_mapped));
		return CL_OK;
	}
	return inet_pton(AF_INET6, text, a->bytes) == 1 ? CL_OK : CL_FORMAT;
}

int
hub_cidr_parse(const char *text, struct hub_cidr *c)
{
	char copy[HUB_ADDR_MAX], *slash;
	const char *why = NULL;
	unsigned int max, bits;
	int r;

	if (strlcpy(copy, text, sizeof(copy)) >= sizeof(copy))
		return CL_FORMAT;
	if ((slash = strchr(copy, '/')) != NULL)
		*slash++ = '\0';
	if ((r = hub_addr_parse(copy, &c->addr)) != CL_OK)
		return r;
	max = strchr(copy, ':') == NULL ? 32 : 128;
	bits = max;
	if (slash != NULL) {
		bits = (unsigned int)strtonum(slash, 0, max, &why);
		if (why != NULL)
			return CL_FORMAT;
	}
	c->bits = bits + (128 - max);
	return CL_OK;
}

int
hub_cidr_has(const struct hub_cidr *c, const struct hub_addr *a)
{
	unsigned int whole = c->bits / 8, rest = c->bits % 8;
	uint8_t mask;

	if (memcmp(c->addr.bytes, a->bytes, whole) != 0)
		return 0;
	if (rest == 0)
		return 1;
	mask = (uint8_t)(0xff << (8 - rest));
	return (c->addr.bytes[whole] & mask) == (a->bytes[whole] & mask);
}

int
hub_conf_is_listed_proxy(const struct hub_conf *c, const struct hub_addr *a)
{
	size_t i;

	for (i = 0; i < c->nproxies; i++)
		if (hub_cidr_has(&c->proxies[i], a))
			return 1;
	return 0;
}

int
hub_conf_is_proxy(const struct hub_conf *c, const struct hub_addr *a)
{
	if (c->nproxies == 0)
		return hub_addr_is_loopback(a);
	return hub_conf_is_listed_proxy(c, a);
}

void
hub_conf_clear(struct hub_conf *c)
{
	field_clear(&msg_net_config_table, &c->net);
	free(c->proxies);
	memset(c, 0, sizeof(*c));
}

int
hub_conf_set(struct hub_conf *c, struct msg_net_config *v)
{
	struct hub_cidr *proxies;
	size_t i;

	if ((proxies = calloc(v->nproxies + 1, sizeof(*proxies))) == NULL)
		return CL_NOMEM;
	for (i = 0; i < v->nproxies; i++)
		if (hub_cidr_parse(v->proxies[i], &proxies[i]) != CL_OK) {
			free(proxies);
			return CL_FORMAT;
		}
	hub_conf_clear(c);
	c->net = *v;
	c->proxies = proxies;
	c->nproxies = v->nproxies;
	field_init(&msg_net_config_table, v);
	return CL_OK;
}
