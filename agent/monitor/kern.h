/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * What the device monitor asks the kernel, with three answers: yes, no, and
 * "cannot tell now" (no descriptor or memory left, a disk that fails).  Only a
 * no may end a workload; what cannot be told is asked again.  A process is
 * named across our own restart by its pid, its start time and the boot it
 * belongs to: a pid alone may belong to somebody else by then (BC-49).
 */
#ifndef CLOOP_KERN_H
#define CLOOP_KERN_H

#include <sys/types.h>

#include <stdint.h>

#define KERN_BOOT_LEN 36

/* Start time of a process in clock ticks since boot.  CL_OK; CL_NOTFOUND:
 * it is gone, or ended and not reaped; CL_SYSTEM: cannot tell now. */
int kern_load_ticks(pid_t pid, uint64_t *ticksp);
/* Is pid still the process that started at these ticks?  As above. */
int kern_check_process(pid_t pid, uint64_t ticks);
/* SIGKILL to it, or to the group it leads, if it still is.  CL_OK: sent, or
 * refused for good; else as above. */
int kern_kill(pid_t pid, uint64_t ticks);
int kern_kill_group(pid_t pid, uint64_t ticks);
/* The boot id as text.  CL_SYSTEM: cannot tell now. */
int kern_load_boot(char dst[KERN_BOOT_LEN + 1]);

/* Of a failure, while errno is that of the call: may it be otherwise later?
 * What is not there or makes no sense is a no. */
int kern_is_unsure(int r);
/* Is it a shortage of descriptors or memory?  Then it is unsure, too. */
int kern_is_short(int r);

/* Raise RLIMIT_NOFILE to the hard limit: how many we may have. */
unsigned int kern_raise_files(void);

#endif
