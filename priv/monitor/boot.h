/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The monitor's life: start, serve, stop.
 */
#ifndef PRIV_BOOT_H
#define PRIV_BOOT_H

#include <stddef.h>

struct monitor;

/*
 * Open and load everything, bind, confine ourselves, start the children.
 * On failure err is a sentence for the user and nothing runs.
 */
int boot_start(struct monitor *mon, char *err, size_t errlen);
/* The event loop, until mon_stop(); returns the exit status. */
int boot_serve(struct monitor *mon);
/* Everything back; legal after a failed boot_start(). */
void boot_clear(struct monitor *mon);

/* An orderly stop begins. */
void boot_stop(struct monitor *mon);
/* A child became ready or went away: is the hub complete, or stopped? */
void boot_check(struct monitor *mon);

#endif
