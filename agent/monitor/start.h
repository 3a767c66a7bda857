/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * DEV_START: from a decoded spec to a shim's job.
 */
#ifndef CLOOP_START_H
#define CLOOP_START_H

#include <stddef.h>
#include <stdint.h>

struct agentd;
struct secretset;
struct shim_job;
struct spec;
struct workload_ask;

/*
 * Serve one start: the answer goes out now or when the shim has decided.
 * CL_FORMAT: the fetcher sent something it may not send.
 */
int start_answer(struct agentd *a, const struct workload_ask *ask,
    const char *handle_id, const uint8_t *data, size_t len);

/*
 * What this device cannot honour must refuse the start, never be ignored:
 * NULL, or a constant text for started.error.
 */
const char *start_check_support(const struct agentd *a,
    const struct spec *s);
/* The job of a host-mode workload; *job cleared on failure.  CL_*. */
int start_make_job(const struct agentd *a, const struct spec *s,
    const char *handle_id, const char *tree, const char *home,
    struct shim_job *job);

/* Its lease directories, for the workload to use.  CL_LIMIT. */
int start_add_leases(const struct secretset *s, struct shim_job *job);

/*
 * The job of one step of a workload (wjob.h): a helper of ours, confined to
 * the tree and the system.  CL_NOTFOUND: there is no such helper.
 */
int start_make_step(const struct agentd *a, const char *handle_id,
    const char *program, const char *tree, int64_t timeout_s,
    struct shim_job *job);

#endif
