/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Rows to operators.  `id` is client << 32 | request; an answer ends with
 * exactly one of done and err.
 */
#ifndef PRIV_CTLOUT_H
#define PRIV_CTLOUT_H

#include <stdint.h>

#include "common/msg/msgcat.h"

struct agent;
struct handle;
struct monitor;
struct refusal;
struct store_handle;

/* A row from its struct; takes fd (-1: none). */
void ctlout_send_row(struct monitor *mon, uint64_t id, uint32_t type,
    const void *row, int fd);
#define CTL_ROW(mon, id, name, row, fd)                                        \
	ctlout_send_row(mon, id, MSG_##name, MSG_BODY(name, row), fd)
void ctlout_send_done(struct monitor *mon, uint64_t id);
/* A row (NULL: none) and the end of the answer, once what they say is on
 * disk.  Dropped when it does not get there: say so with mon_add_after() of
 * ctlout_on_commit, or what calls it. */
void ctlout_send_durable(struct monitor *mon, uint64_t id, uint32_t type,
    const void *row);
#define CTL_DURABLE(mon, id, name, row)                                        \
	ctlout_send_durable(mon, id, MSG_##name, MSG_BODY(name, row))
void ctlout_on_commit(struct monitor *mon, uint64_t id, uint64_t aux,
    int ok);
void ctlout_send_err(struct monitor *mon, uint64_t id,
    const struct refusal *r);
/* What the store says it is about. */
void ctlout_refuse_store(struct monitor *mon, uint64_t id);
/* A refusal in one call. */
void ctlout_refuse(struct monitor *mon, uint64_t id, const char *code,
    const char *fmt, ...) __attribute__((__format__(__printf__, 4, 5)));

void ctlout_send_handle(struct monitor *mon, uint64_t id,
    const struct handle *h);
/* A closed one that only the store knows. */
void ctlout_send_stored(struct monitor *mon, uint64_t id,
    const struct store_handle *row);
void ctlout_send_agent(struct monitor *mon, uint64_t id,
    const struct agent *a);
/* event: "dispatched", "started". */
void ctlout_send_event(struct monitor *mon, uint64_t id, const char *event,
    const struct handle *h);
/* ROW_LOG and ROW_INDEX with fresh descriptors; CL_SYSTEM. */
int ctlout_send_files(struct monitor *mon, uint64_t id,
    const struct store_handle *h);

/* ROW_RESULT, when there is anything to tell. */
struct work;
void ctlout_send_result(struct monitor *mon, uint64_t id,
    const struct work *w, const struct store_handle *h);

#endif
