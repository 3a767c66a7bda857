/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * What the monitor opens for its children: directories, listening sockets,
 * the control socket, key and certificate, key channels; and the messages
 * that hand all of it to a child that starts.
 */
#ifndef PRIV_SETUP_H
#define PRIV_SETUP_H

#include <stddef.h>

#include "config.h"

struct child;
struct monitor;

/* One ListenAgents value: a socket per worker (SO_REUSEPORT), kept open so
 * that connections wait while a worker is replaced. */
struct listener {
	struct config_listen at;
	int fds[16];		/* MAX_NET_WORKERS; -1 unused */
};

/* Make the directories below state and runtime.  err is for the user. */
int setup_make_dirs(struct monitor *mon, char *err, size_t errlen);
/* Bind everything.  On failure err names the address or path. */
int setup_open_listeners(struct monitor *mon, char *err, size_t errlen);
int setup_open_control(struct monitor *mon, char *err, size_t errlen);
void setup_close(struct monitor *mon);
/* Before anything is started: key and certificate can be read. */
int setup_check_keys(struct monitor *mon, char *err, size_t errlen);

/* Queue the configuration of a child that was just started. */
void setup_configure(struct child *c);
/* Queue it again after a reload. */
void setup_reconfigure(struct child *c);
/* Connect a cloopd-net with cloopd-key once both can take it. */
void setup_give_key(struct child *net);

#endif
