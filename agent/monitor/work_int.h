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
struct workload;

/* 1 when a tree is built or work is returned. */
int work_needs_git(const struct spec *s);
/*
 * Before a job that speaks to the forge: the addresses of the names it
 * connects to, into pins and peers of its struct work, for where the shim can
 * hold it to them.  1: `next` is called from the loop, with a text when no
 * name has an address; 0: there is nothing to look up, or it was.
 */
typedef void work_next_fn(struct workload *w, const char *why);
int work_find_forge(struct workload *w, work_next_fn *next);
/* Drop it, found or under way: the next job looks again. */
void work_forget_forge(struct work *k);
/* A look-up under way ends with a reason. */
void work_cancel_forge(struct work *k);
/* A child was reaped: 1 when it was the resolver. */
int work_on_resolver_exit(struct work *k, pid_t pid);

/* What every job of this workload is told. */
void work_init_plan(const struct work *k, struct devjob_plan *p);

#endif
