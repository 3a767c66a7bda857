/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * What the bench's programs read of the machine: clock, CPU time, memory.
 */
#ifndef CLOOP_BENCH_PROC_H
#define CLOOP_BENCH_PROC_H

#include <stddef.h>
#include <stdio.h>

double proc_now(void);			/* seconds, monotonic */
FILE *proc_open(long pid, const char *name);	/* NULL: it ended */
/* Seconds of all threads, from the scheduler's own account; -1: it ended. */
double proc_get_cpu(long pid);
double proc_get_pss(long pid);		/* KiB; -1: it ended */

#endif
