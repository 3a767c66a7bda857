/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * What confinement of workloads is available on this machine to this user:
 * for the agent's banner and capability report.  Does nothing that lasts.
 */
#ifndef CLOOP_PROBE_H
#define CLOOP_PROBE_H

#include <stddef.h>

enum probe_cgroup {
	PROBE_CGROUP_NONE,	/* none writable for us */
	PROBE_CGROUP_V2,	/* unified hierarchy */
	PROBE_CGROUP_HYBRID	/* /sys/fs/cgroup/unified: kill and emptiness,
				 * no limits */
};

struct probe {
	int is_root;		/* effective uid 0 with CAP_SYS_ADMIN */
	int has_namespaces;	/* as root, or through a user namespace */
	int has_userns;		/* unprivileged user namespaces work */
	int landlock_abi;	/* 0: not there */
	int has_seccomp;
	enum probe_cgroup cgroup;
};

void probe_load(struct probe *p);
/* "root=yes namespaces=yes userns=yes landlock=7 seccomp=yes
 * cgroup=hybrid"; returns dst. */
#define PROBE_TEXT_MAX 160
const char *probe_format(const struct probe *p, char dst[PROBE_TEXT_MAX]);

#endif
