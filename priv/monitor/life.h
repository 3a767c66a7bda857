/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * What happens to agents, sessions and handles, whoever caused it: status
 * changes, the end of a session, the end of a handle.
 */
#ifndef PRIV_LIFE_H
#define PRIV_LIFE_H

#include <stdint.h>

struct agent;
struct child;
struct handle;
struct monitor;
struct session;
struct store_handle;

/* AGENT_*; logged, stored and audited when it is a change. */
void life_set_status(struct monitor *mon, struct agent *a, int status,
    const char *reason);
/* Ask the worker to end a session (DROP_*); SESSION_DOWN follows. */
void life_drop_session(struct monitor *mon, struct session *s, int how,
    const char *reason);
/* A session is gone: wake what waited for it, forget it. */
void life_end_session(struct monitor *mon, struct session *s, int status,
    const char *reason);
/* All sessions of a worker process are gone. */
void life_end_worker(struct monitor *mon, uint64_t generation, int crashed);
/* A worker that does not end dropped sessions is broken. */
void life_check_drops(struct monitor *mon);

/* Store the handle's state; on failure it is marked and retried. */
void life_save_handle(struct monitor *mon, struct handle *h);
void life_retry_saves(struct monitor *mon);
/*
 * Once the end of a handle is on disk the device may forget it; until then
 * it would tell it again.  The worker waits for this HANDLE_SHUT.
 */
void life_confirm_end(struct monitor *mon, const struct handle *h);
/* The row has become terminal: close, store, tell who waits.  is_written:
 * its output is on file (logseal.h). */
void life_end_handle(struct monitor *mon, struct handle *h, int is_written);
/* The hub decides: failed, with this text. */
void life_fail_handle(struct monitor *mon, struct handle *h,
    const char *text);
/* All that is not terminal of one agent; returns how many. */
unsigned int life_fail_all(struct monitor *mon, struct agent *a,
    const char *text);
/* The live half of revoking, in a turn after the store's: text is what the
 * device and the records get to read. */
void life_evict(struct monitor *mon, struct agent *a, const char *text);
/* A stored handle goes, with its files; store_handle_fn, arg the monitor. */
int life_on_old_handle(const struct store_handle *row, void *arg);
/* Retention: store rows and files of old handles go. */
void life_sweep(struct monitor *mon);

#endif
