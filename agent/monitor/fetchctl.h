/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The monitor's side of agentd-fetch: started as `agentd-fetch session`,
 * watched, answered, and started again when it dies.  Names are looked up by
 * a second process of the same program, `agentd-fetch resolver`, one for
 * each question.  Rows: DEV_FETCH_CATALOGUE in common/msg/msgcat.h.
 */
#ifndef CLOOP_FETCHCTL_H
#define CLOOP_FETCHCTL_H

#include <sys/types.h>

#include <stdint.h>

#include "common/msg/buf.h"

struct agentd;
struct fetchctl;

/* Nothing runs yet. */
struct fetchctl *fetchctl_new(struct agentd *a);
void fetchctl_free(struct fetchctl *f);

/* Start the fetcher.  0, or CL_* when it cannot even be executed. */
int fetchctl_start(struct fetchctl *f);
/* FETCH_STOP; it says bye and exits, or is killed after a grace time. */
void fetchctl_stop(struct fetchctl *f);
/* 1 when no process of ours is left. */
int fetchctl_is_stopped(const struct fetchctl *f);
/* A child was reaped: 1 when it was one of ours. */
int fetchctl_on_exit(struct fetchctl *f, pid_t pid, int status);

/*
 * Send one message to the fetcher when it is serving, else drop it; takes
 * fd.  `generation` 0 is "whoever serves now"; otherwise only the process
 * that asked gets the answer.
 */
void fetchctl_send(struct fetchctl *f, uint32_t type, uint64_t id,
    uint64_t generation, const struct buf *body, int fd);
/* 1 while a fetcher is serving; *generationp names it. */
int fetchctl_is_serving(const struct fetchctl *f, uint64_t *generationp);
/* 1 while its session with the hub is up. */
int fetchctl_is_link_up(const struct fetchctl *f);
/* One line about it for the state dump. */
void fetchctl_log_state(const struct fetchctl *f);

#endif
