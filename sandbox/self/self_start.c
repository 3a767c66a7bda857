/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Confinement of the processes that compile their own system call filter:
 * the long-lived children, and both monitors.
 */
#include "self.h"

#include <sys/prctl.h>
#include <sys/resource.h>

#include <string.h>

#include "common/base/err.h"
#include "self_int.h"

#ifdef CLOOP_SANITIZE
/*
 * LeakSanitizer looks for leaks by tracing its own process, which nobody may
 * do to a confined monitor any more: it would end it with an error of its
 * own.  The children are started with leak checks off.
 */
static int self_is_monitor;

int __lsan_is_turned_off(void);

int
__lsan_is_turned_off(void)
{
	return self_is_monitor;
}
#endif

int
self_confine(const struct self_opts *o, struct self_report *rep)
{
	int r;

	if ((r = self_confine_steps(o, rep)) != CL_OK)
		return r;
#ifdef CLOOP_VALGRIND
	/* valgrind makes calls of its own, executable memory among them.  For
	 * regress/valgrind.sh only; the report says that it is missing. */
	rep->missing |= SELF_SECCOMP;
#else
	if ((r = self_profile_start(o->profile)) != CL_OK)
		return r;
	rep->done |= SELF_SECCOMP;
#endif
	rep->step = NULL;
	return CL_OK;
}

int
self_confine_monitor(enum self_monitor which, struct self_report *rep)
{
	uint64_t keep = self_caps_find_monitor(which);
	int r;

#ifdef CLOOP_SANITIZE
	self_is_monitor = 1;
#endif
	memset(rep, 0, sizeof(*rep));
	rep->step = "caps";
	r = self_caps_cut_bounding(keep, 0);
	if (r == CL_UNSUPPORTED)
		rep->missing |= SELF_CAPS;
	else if (r != CL_OK)
		return r;
	if ((r = self_caps_cut(keep)) != CL_OK)
		return r;
	rep->done |= SELF_CAPS & ~rep->missing;
	rep->step = "limits";
	if ((r = self_limit(RLIMIT_CORE, 0)) != CL_OK)
		return r;
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == -1)
		return CL_SYSTEM;
	rep->done |= SELF_LIMITS;
	rep->step = "seccomp";
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1)
		return CL_SYSTEM;
	if ((r = self_profile_start_monitor(which)) != CL_OK)
		return r;
	rep->done |= SELF_SECCOMP;
	rep->step = NULL;
	return CL_OK;
}
