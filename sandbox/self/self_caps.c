/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Which capabilities a process keeps, one reason a line, and cutting the
 * sets down to that.  Runs in the monitors and in every child before it
 * meets outside bytes.  A capability that is not in this table is gone for
 * the process and everything it starts.
 */
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <linux/securebits.h>

#include <cap-ng.h>
#include <errno.h>
#include <unistd.h>

#include "common/base/err.h"
#include "self_int.h"

#define W_HUB 0x01
#define W_DEVICE 0x02
#define W_SHIM 0x04
#define W_FENCE 0x08
#define W_SHIMS 0x10	/* whoever starts shims */

/* The hub's files stay root's: children get descriptors, never a file, and
 * are killed as their own user (spawn_kill). */
static const struct self_cap {
	unsigned int who;
	int cap;
	const char *reason;
} self_caps[] = {
	{ W_HUB, CAP_SETUID, "children become their own users" },
	{ W_HUB, CAP_SETGID, "children become their own groups" },
	{ W_HUB, CAP_SYS_CHROOT, "children enter an empty directory" },
	{ W_HUB, CAP_SETPCAP, "children empty their bounding set" },
	{ W_DEVICE, CAP_CHOWN, "trees and homes belong to the workload" },
	{ W_DEVICE, CAP_DAC_OVERRIDE, "cleaning trees of another user" },
	{ W_DEVICE, CAP_FOWNER, "modes of files it gave away" },
	{ W_DEVICE, CAP_SETUID, "the fetcher becomes its user" },
	{ W_DEVICE, CAP_SETGID, "the fetcher drops groups" },
	{ W_DEVICE, CAP_SYS_CHROOT, "the fetcher enters an empty directory" },
	{ W_DEVICE, CAP_KILL, "ending the fetcher and shims" },
	{ W_DEVICE, CAP_SETPCAP, "children empty their bounding set" },
	{ W_SHIMS, CAP_DAC_OVERRIDE, "a tree of another user is mounted" },
	{ W_SHIMS, CAP_SETUID, "workloads become their user" },
	{ W_SHIMS, CAP_SETGID, "workloads drop groups" },
	{ W_SHIMS, CAP_SYS_CHROOT, "the monitor's mount namespace" },
	{ W_SHIMS, CAP_KILL, "shims keep it, for their workload" },
	{ W_SHIMS, CAP_SETPCAP, "shims empty their bounding set" },
	{ W_SHIMS, CAP_SYS_ADMIN, "namespaces and mounts of a sandbox" },
	{ W_SHIMS, CAP_SETFCAP, "a workload's user namespace maps uid 0" },
	{ W_SHIM, CAP_KILL, "signals to the workload's user" },
	{ W_FENCE, CAP_NET_ADMIN, "nft: sources that may not connect" },
};

#define SELF_NCAPS (sizeof(self_caps) / sizeof(self_caps[0]))

static uint64_t
self_caps_mask(unsigned int who)
{
	uint64_t mask = 0;
	size_t i;

	for (i = 0; i < SELF_NCAPS; i++)
		if ((self_caps[i].who & who) != 0)
			mask |= 1ULL << self_caps[i].cap;
	return mask;
}

uint64_t
self_caps_find_monitor(enum self_monitor which)
{
	switch (which) {
	case SELF_MONITOR_HUB:
		return self_caps_mask(W_HUB);
	case SELF_MONITOR_DEVICE:
		return self_caps_mask(W_DEVICE);
	case SELF_MONITOR_DEVICE_SHIMS:
		return self_caps_mask(W_DEVICE | W_SHIMS);
	case SELF_MONITOR_SHIMS:
		return self_caps_mask(W_SHIMS);
	}
	return 0;
}

uint64_t
self_caps_find_child(enum self_profile p)
{
	if (p == SELF_SHIM || p == SELF_SHIM_SCAN)
		return self_caps_mask(W_SHIM);
	return p == SELF_FENCE ? self_caps_mask(W_FENCE) : 0;
}

/* Straight from the kernel: libcap-ng would read /proc, which is not there
 * after chroot. */
static int
self_caps_load(uint64_t *effectivep, uint64_t *permittedp)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { { 0, 0, 0 }, { 0, 0, 0 } };

	if (syscall(SYS_capget, &head, data) == -1)
		return CL_SYSTEM;
	*effectivep = data[0].effective |
	    (uint64_t)data[1].effective << 32;
	*permittedp = data[0].permitted |
	    (uint64_t)data[1].permitted << 32;
	return CL_OK;
}

int
self_caps_has(int cap)
{
	uint64_t effective, permitted;

	return self_caps_load(&effective, &permitted) == CL_OK &&
	    (effective & (1ULL << cap)) != 0;
}

int
self_caps_cut_bounding(uint64_t keep, int lock)
{
	int cap;

	if (!self_caps_has(CAP_SETPCAP))
		return CL_UNSUPPORTED;
	/* What is not in the bounding set no exec can give back. */
	for (cap = 0; cap < 64; cap++) {
		if ((keep & (1ULL << cap)) != 0 ||
		    prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0)
			continue;
		if (errno != EINVAL)
			return CL_SYSTEM;
		break;		/* past the kernel's last one */
	}
	if (!lock)
		return CL_OK;
	/* uid 0 means nothing to an exec any more, and nobody changes that. */
	if (prctl(PR_SET_SECUREBITS, SECBIT_NOROOT | SECBIT_NOROOT_LOCKED |
	    SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |
	    SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED, 0, 0, 0) == -1)
		return CL_SYSTEM;
	return CL_OK;
}

int
self_caps_cut(uint64_t keep)
{
	uint64_t effective, permitted;
	int cap, r;

	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) == -1 &&
	    errno != EINVAL)
		return CL_SYSTEM;
	if ((r = self_caps_load(&effective, &permitted)) != CL_OK)
		return r;
	keep &= permitted;
	capng_clear(CAPNG_SELECT_CAPS);
	for (cap = 0; cap <= CAP_LAST_CAP; cap++) {
		if ((keep & (1ULL << cap)) == 0)
			continue;
		if (capng_update(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED,
		    (unsigned int)cap) != 0)
			return CL_INTERNAL;
	}
	if (capng_apply(CAPNG_SELECT_CAPS) != 0)
		return CL_SYSTEM;
	/* Proof: ask the kernel again. */
	if ((r = self_caps_load(&effective, &permitted)) != CL_OK)
		return r;
	return ((effective | permitted) & ~keep) == 0 ? CL_OK : CL_DENIED;
}
