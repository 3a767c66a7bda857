/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * From libseccomp's context to a program, for those who compile filters.
 */
#ifndef CLOOP_BPF_EXPORT_H
#define CLOOP_BPF_EXPORT_H

#include <seccomp.h>

#include "bpf.h"

/* The program of a context; the caller frees both.  CL_SYSTEM, CL_NOMEM. */
int bpf_export(scmp_filter_ctx ctx, struct sock_fprog *p);

#endif
