/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The seccomp filter of a git that reads objects which came from elsewhere:
 * its starter loads it between fork and exec.
 */
#ifndef CLOOP_FILTER_GIT_H
#define CLOOP_FILTER_GIT_H

#include <linux/filter.h>

/* For cloopctl result and cloop-git: an allow list that kills.  Compile it;
 * the program is the caller's to free.  CL_SYSTEM, CL_NOMEM. */
int filter_make_git(struct sock_fprog *p);
/* The same, compiled at the first call and borrowed; NULL where the kernel has
 * no filters. */
int filter_find_git(const struct sock_fprog **pp);
/* 1 when this kernel has seccomp filters. */
int filter_has_seccomp(void);

#endif
