/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * DEV_REVOKE and DEV_REFRESH: a lease of workloads is taken back, or gets new
 * files.  Prefixes leasing_, and revoke_ and refresh_ inside.
 */
#ifndef CLOOP_LEASING_H
#define CLOOP_LEASING_H

#include <stdint.h>

struct lease_refresh;
struct lease_revoke;
struct workload_ask;
struct workloads;

/* Answered when it is done, on every path.  The request is emptied. */
void leasing_revoke(struct workloads *ws, const struct workload_ask *ask,
    struct lease_revoke *req);
void leasing_refresh(struct workloads *ws, const struct workload_ask *ask,
    struct lease_refresh *req);
/* Answer one that cannot be served now. */
void leasing_refuse(struct workloads *ws, const struct workload_ask *ask,
    int is_refresh, const char *text);

/* What the table of workloads tells (struct workloads_ops). */
void leasing_on_end(struct workloads *ws, uint64_t slot);
/* Its shim, which would know, had to be killed: the kernel takes the rest
 * along, but nobody saw it empty. */
void leasing_on_forced(struct workloads *ws, uint64_t slot);
void leasing_on_redacted(struct workloads *ws, uint64_t slot, uint64_t id,
    int ok);
/* All that wait, unanswered. */
void leasing_clear(struct workloads *ws);

#endif
