/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * What cloopd-net knows of the configuration: the NET_CONFIG message, and
 * addresses as it needs them.
 */
#ifndef CLOOP_HUB_CONF_H
#define CLOOP_HUB_CONF_H

#include <stddef.h>
#include <stdint.h>

#include "common/msg/msgcat.h"

struct sockaddr;

/* An address without port: IPv4 is kept as ::ffff:a.b.c.d. */
struct hub_addr {
	uint8_t bytes[16];
};

struct hub_cidr {
	struct hub_addr addr;
	unsigned int bits;	/* of 128 */
};

struct hub_conf {
	struct msg_net_config net;	/* external_origin "": there is none */
	struct hub_cidr *proxies;
	size_t nproxies;
};

/*
 * What v owns moves into *c, whose old content is freed; CL_FORMAT, CL_NOMEM:
 * both are as they were.
 */
int hub_conf_set(struct hub_conf *c, struct msg_net_config *v);
void hub_conf_clear(struct hub_conf *c);

/* CL_FORMAT for a family that is neither IPv4 nor IPv6. */
int hub_addr_load(const struct sockaddr *sa, struct hub_addr *a);
int hub_addr_is_ipv4(const struct hub_addr *a);
int hub_addr_is_loopback(const struct hub_addr *a);
/* "192.0.2.1" or "2001:db8::1"; dst holds HUB_ADDR_MAX. */
#define HUB_ADDR_MAX 48
void hub_addr_format(const struct hub_addr *a, char dst[HUB_ADDR_MAX]);
int hub_addr_parse(const char *text, struct hub_addr *a);
/* "10.0.0.0/8", "::1", with or without a length. */
int hub_cidr_parse(const char *text, struct hub_cidr *c);
int hub_cidr_has(const struct hub_cidr *c, const struct hub_addr *a);

/* A peer whose X-Forwarded-* headers count: TrustedProxy, or loopback when
 * none is configured. */
int hub_conf_is_proxy(const struct hub_conf *c, const struct hub_addr *a);
/* Named in TrustedProxy: no per-source limits, it stands for many. */
int hub_conf_is_listed_proxy(const struct hub_conf *c,
    const struct hub_addr *a);

#endif
