/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The seccomp filter of workloads: a deny list, because what people build
 * and run is not ours to enumerate.  Compilers, git, Python, Node work; what
 * would change the machine, look into other processes or make new
 * namespaces fails with EPERM, or ENOSYS where libraries then fall back.
 */
#ifndef CLOOP_FILTER_H
#define CLOOP_FILTER_H

#include <linux/filter.h>

/* Compile it, for bpf_start (bpf.h); the program is the caller's to free.
 * CL_SYSTEM, CL_NOMEM. */
int filter_make_workload(struct sock_fprog *p);
/* For the init of a workload's pid namespace: it may wait and end. */
int filter_make_init(struct sock_fprog *p);
#endif
