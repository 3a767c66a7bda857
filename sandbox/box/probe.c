/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * What this machine offers for confining workloads, found by trying it in a
 * child: sysctls and LSMs refuse in too many ways to be read.  Runs in
 * cloop-agentd at start.
 */
#include "probe.h"

#include <sys/stat.h>
#include <sys/wait.h>

#include <linux/capability.h>

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "sandbox/self/filter_git.h"
#include "sandbox/self/landlock.h"
#include "sandbox/self/self.h"
#include "cgroup.h"
#include "filter.h"
#include "ns.h"

/* Does this work in a process of its own? */
static int
probe_try(int (*try)(void))
{
	int status;
	pid_t pid;

	if ((pid = fork()) == -1)
		return 0;
	if (pid == 0)
		_exit(try() == CL_OK ? 0 : 1);
	while (waitpid(pid, &status, 0) == -1)
		if (errno != EINTR)
			return 0;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static int
probe_try_user_ns(void)
{
	if (geteuid() != 0)
		return ns_enter_user();
	return unshare(CLONE_NEWUSER) == -1 ? CL_UNSUPPORTED : CL_OK;
}

static int
probe_try_namespaces(void)
{
	if (geteuid() != 0 && ns_enter_user() != CL_OK)
		return CL_UNSUPPORTED;
	return unshare(CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC |
	    CLONE_NEWUTS) == -1 ? CL_UNSUPPORTED : CL_OK;
}

static enum probe_cgroup
probe_find_cgroup(void)
{
	char path[CGROUP_PATH_MAX];
	struct cgroup c;
	int hybrid;

	if (cgroup_find_own(path, &hybrid) != CL_OK ||
	    cgroup_open(&c, 1) != CL_OK)
		return PROBE_CGROUP_NONE;
	cgroup_close(&c);
	(void)cgroup_sweep();
	return hybrid ? PROBE_CGROUP_HYBRID : PROBE_CGROUP_V2;
}

void
probe_load(struct probe *p)
{
	memset(p, 0, sizeof(*p));
	p->is_root = geteuid() == 0 && self_caps_has(CAP_SYS_ADMIN);
	p->has_userns = probe_try(probe_try_user_ns);
	p->has_namespaces = probe_try(probe_try_namespaces);
	p->landlock_abi = landlock_get_abi();
	p->has_seccomp = filter_has_seccomp();
	p->cgroup = probe_find_cgroup();
}

const char *
probe_format(const struct probe *p, char dst[PROBE_TEXT_MAX])
{
	static const char *const cgroups[] = { "no", "v2", "hybrid" };

	(void)snprintf(dst, PROBE_TEXT_MAX, "root=%s namespaces=%s userns=%s "
	    "landlock=%d seccomp=%s cgroup=%s", p->is_root ? "yes" : "no",
	    p->has_namespaces ? "yes" : "no", p->has_userns ? "yes" : "no",
	    p->landlock_abi, p->has_seccomp ? "yes" : "no",
	    cgroups[p->cgroup]);
	return dst;
}
