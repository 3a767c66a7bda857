/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Supervision of agents: what may be placed where.
 */
#ifndef PRIV_SUPERVISE_H
#define PRIV_SUPERVISE_H

struct agent;
struct monitor;

/* Failed probes in a row that make an agent unreachable. */
#define SUPERVISE_FAILURES 3

/* Probe all of them: is there a session?  Once a beat, from the tick. */
void supervise_probe(struct monitor *mon);
/* "ready", "degraded", "unreachable", "cordoned" or "draining". */
const char *supervise_format_state(const struct agent *a);

#endif
