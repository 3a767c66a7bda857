/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Private to self.c, self_caps.c and self_profile.c.
 */
#ifndef CLOOP_SELF_INT_H
#define CLOOP_SELF_INT_H

#include <sys/resource.h>
#include <sys/types.h>

#include <stdint.h>

#include "self.h"

/* The rows of one process that are not system calls. */
struct self_profile_row {
	const char *name;
	uint64_t fsize;		/* RLIMIT_FSIZE, bytes */
	uint64_t nofile;	/* RLIMIT_NOFILE; 0: leave */
	unsigned int landlock;	/* LL_NO_* */
	int no_chroot;
	int no_user;		/* keeps its user */
	int outlives;		/* no parent-death signal */
	int starts;		/* runs programs with what it keeps */
};

/* All of self_confine but the system call filter, which is its last step:
 * rep->step names it. */
int self_confine_steps(const struct self_opts *o, struct self_report *rep);

/* Compile and load the seccomp filter of a profile.  CL_SYSTEM, CL_NOMEM. */
int self_profile_start(enum self_profile p);
/* The monitors' refusals. */
int self_profile_start_monitor(enum self_monitor which);

/* Capabilities the table keeps for a monitor or SELF_SHIM, as a mask. */
uint64_t self_caps_find_monitor(enum self_monitor which);
uint64_t self_caps_find_child(enum self_profile p);
#endif
