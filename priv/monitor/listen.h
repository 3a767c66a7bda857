/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The listening sockets of ListenAgents: bound here, or taken over from a
 * service manager that holds them (sd_listen_fds(3)), so that the hub needs
 * no network of its own.  Runs in the monitor before anything is started;
 * the workers get duplicates with NET_LISTEN.
 */
#ifndef PRIV_LISTEN_H
#define PRIV_LISTEN_H

#include <stddef.h>

#include "common/base/limits.h"
#include "config.h"

struct monitor;

/*
 * One ListenAgents value: a socket per worker (SO_REUSEPORT), or that of
 * the service manager for all of them; kept open so that connections wait
 * while a worker is replaced.
 */
struct listener {
	struct config_listen at;
	int fds[MAX_NET_WORKERS];	/* -1: unused */
};

/*
 * Fill mon->listeners.  When the service manager passed sockets these and
 * the ListenAgents lines must be the same addresses.  On failure err names
 * the address and what to do: CL_SYSTEM, CL_STATE.
 */
int listen_open(struct monitor *mon, char *err, size_t errlen);
void listen_close(struct monitor *mon);

#endif
