/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Between work.c, work_check.c and work_steps.c only.
 */
#ifndef CLOOP_WORK_INT_H
#define CLOOP_WORK_INT_H

#include "work.h"

struct spec;

/* 1 when a tree is built or work is returned. */
int work_needs_git(const struct spec *s);
/* What every job of this workload is told. */
void work_init_plan(const struct work *k, struct devjob_plan *p);

#endif
