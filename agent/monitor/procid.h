/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Naming a process across our own restart: a pid alone may belong to
 * somebody else by then (BC-49), a pid with its start time and the boot it
 * belongs to does not.
 */
#ifndef CLOOP_PROCID_H
#define CLOOP_PROCID_H

#include <sys/types.h>

#include <stdint.h>

#define PROCID_BOOT_LEN 36

/* Start time of a process in clock ticks since boot; 0 when it is gone. */
uint64_t procid_load_ticks(pid_t pid);
/* 1 when pid is still the process that started at these ticks. */
int procid_is_alive(pid_t pid, uint64_t ticks);
/* The boot id as text; "" when the kernel does not tell. */
void procid_load_boot(char dst[PROCID_BOOT_LEN + 1]);

#endif
