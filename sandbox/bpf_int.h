/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * For filter.c and self_profile.c, which compile.
 */
#ifndef CLOOP_BPF_INT_H
#define CLOOP_BPF_INT_H

#include <seccomp.h>

#include "bpf.h"

/* The program of a context; the caller frees both.  CL_SYSTEM, CL_NOMEM. */
int bpf_export(scmp_filter_ctx ctx, struct sock_fprog *p);

#endif
