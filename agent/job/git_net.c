/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * What a git of cloop-git may say to the network, between fork and exec.  One
 * that works on a tree gets no socket at all.  One that speaks to the forge
 * connects to the forge's port and its proxies' only, where Landlock knows
 * ports (Linux 6.7); where the shim could put a packet filter on our cgroup
 * it also reaches no address but theirs, and looks no name up (work_forge.c).
 * Port 53 is for where it could not.
 */
#include "common/base/err.h"
#include "common/model/forge.h"
#include "sandbox/self/bpf.h"
#include "sandbox/self/landlock.h"
#include "git_job.h"

#define GN_DNS 53

size_t
gn_find_ports(const struct gj *g, uint16_t *ports, size_t max)
{
	struct forge_name names[FORGE_NAMES];
	size_t i, n, nnames;

	nnames = forge_find_names(g->plan.repo, g->plan.env, g->plan.nenv,
	    names, FORGE_NAMES);
	if (nnames == 0 || max < 2)
		return 0;
	ports[0] = names[0].port;
	ports[1] = GN_DNS;
	for (i = 1, n = 2; i < nnames && n < max; i++)
		ports[n++] = names[i].port;
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
