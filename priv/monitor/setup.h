/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * What the monitor opens for its children: directories, the control socket,
 * key and certificate, key channels; and the messages that hand all of it,
 * and the listening sockets, to a child that starts.
 */
#ifndef PRIV_SETUP_H
#define PRIV_SETUP_H

#include <stddef.h>

struct child;
struct monitor;

/* Make the directories below state and runtime.  err is for the user. */
int setup_make_dirs(struct monitor *mon, char *err, size_t errlen);
/* On failure err names the path. */
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
