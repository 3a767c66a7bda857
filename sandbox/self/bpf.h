/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Seccomp filters that were compiled before they are needed.  libseccomp
 * takes milliseconds for each; cloop-agentd compiles once, at its start, and
 * sends every shim the finished programs (SHIM_FILTERS).
 */
#ifndef CLOOP_BPF_H
#define CLOOP_BPF_H

#include <linux/filter.h>

#include "common/msg/buf.h"

/* Stands in a program for the number of the process that will load it; no
 * process can have it. */
#define BPF_OWN_PID 0x7fffffedU

/* Which process of a workload loads it. */
enum bpf_kind {
	BPF_WORKLOAD,		/* filter.h, between set-up and exec */
	BPF_INIT,		/* filter.h, of its pid namespace */
	BPF_SHIM,		/* self.h, SELF_SHIM */
	BPF_SHIM_SCAN,		/* self.h, SELF_SHIM_SCAN */
	BPF_NKINDS
};

/* Programs are owned; all zero is empty. */
struct bpf_set {
	struct sock_fprog prog[BPF_NKINDS];
};

/* Compile all of them.  CL_SYSTEM, CL_NOMEM; *s is empty then. */
int bpf_set_make(struct bpf_set *s);
void bpf_set_clear(struct bpf_set *s);

/* Body of SHIM_FILTERS' memfd; at most MAX_FILTERS_LEN bytes. */
void bpf_set_put(struct buf *b, const struct bpf_set *s);
/* CL_FORMAT, CL_NOMEM, CL_TRAILING...; *s is empty then.  Sizes are checked
 * here, the programs by the kernel. */
int bpf_set_get(struct buf *b, struct bpf_set *s);

/* Load it for this process and what it starts; no-new-privs must be set.
 * An empty one is CL_INTERNAL.  CL_SYSTEM. */
int bpf_start(const struct sock_fprog *p);
/* The same with our own number filled in, which must be asked for. */
int bpf_start_own(struct sock_fprog *p);

#endif
