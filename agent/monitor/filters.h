/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The seccomp filters that cloop-agentd compiles for its shims.
 */
#ifndef CLOOP_FILTERS_H
#define CLOOP_FILTERS_H

#include "common/msg/chan.h"

struct agentd;

/* Compile them into a->filters_fd.  CL_SYSTEM, CL_NOMEM. */
int filters_make(struct agentd *a);
/* SHIM_FILTERS to a shim.  As chan_send. */
int filters_send(const struct agentd *a, struct chan *c);

#endif
