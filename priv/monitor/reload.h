/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Reading the configuration again (SIGHUP, `cloopctl reload`).
 */
#ifndef PRIV_RELOAD_H
#define PRIV_RELOAD_H

#include <stddef.h>

struct monitor;

/*
 * Take over what may change while running (R in cloopd.conf(5)) and tell the
 * children.  A bad file keeps the old configuration; err is its line.
 */
int reload_conf(struct monitor *mon, char *err, size_t errlen);
/* Level and format of the log, by configuration and -d. */
void reload_log(struct monitor *mon);

#endif
