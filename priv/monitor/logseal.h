/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * What the output files of a handle may become, and what they were when it
 * had ended.  A worker writes them; the monitor looks at lengths and times
 * only.  Digests are a worker's work: HANDLE_SEAL, HANDLE_SEALED.
 */
#ifndef PRIV_LOGSEAL_H
#define PRIV_LOGSEAL_H

#include <stdint.h>

struct child;
struct handle;
struct hub_conf;
struct monitor;

/* RLIMIT_FSIZE of a worker: the length of a log, its hole counted. */
uint64_t logseal_get_file_max(const struct hub_conf *conf);
/* A worker gets the files: what they may grow to from here. */
void logseal_open(struct monitor *mon, struct handle *h);
/*
 * It has ended.  is_written: the worker has told the end itself, and writes
 * nothing after that; else what it still holds comes first.
 */
void logseal_end(struct monitor *mon, struct handle *h, int is_written);
/* No worker has its files any more. */
void logseal_release(struct monitor *mon, struct handle *h);
/* What this process was asked is asked again of another. */
void logseal_end_worker(struct monitor *mon, uint64_t generation);
/* Once a second: look at some of the files that grow. */
void logseal_on_tick(struct monitor *mon);

#endif
