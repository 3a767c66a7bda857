/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Where the members of a cgroup may send to: a packet filter of the kernel's
 * (BPF_CGROUP_INET_EGRESS) on the leaf of one job.  It looks at every IP
 * packet of every socket that was made in the group, whatever protocol, and
 * ends with the group.
 */
#ifndef CLOOP_CGROUP_NET_H
#define CLOOP_CGROUP_NET_H

#include <stddef.h>
#include <stdint.h>

#include "cgroup.h"

struct cgroup_peer {
	int family;		/* AF_INET, AF_INET6 */
	uint8_t addr[16];	/* network order; AF_INET: the first 4 */
};

/* An address as inet_ntop writes it.  CL_FORMAT. */
int cgroup_peer_parse(const char *text, struct cgroup_peer *p);
/*
 * From now on: to these addresses, n at most MAX_SHIM_PEERS, and nowhere
 * else; what is refused is dropped, and the sender gets EPERM where it can be
 * told.  CL_UNSUPPORTED: this kernel has none, or does not let us (errno);
 * CL_LIMIT, CL_SYSTEM.
 */
int cgroup_limit_net(const struct cgroup *c, const struct cgroup_peer *peers,
    size_t n);

#endif
