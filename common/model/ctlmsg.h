/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Bodies of the control protocol's rows (msgcat.h, hub-ctl): one struct and
 * one field table per ROW_* and for CTL_MINT.  Made by the monitor, read by
 * cloopctl and cloop-enroll; cloopd-ctl forwards them unread.  A body is
 * field_put(&ctl_xxx_table, &row, &body) and nothing after it; the reader
 * does field_get(), then buf_end().
 *
 * The keys are those of cloopctl's JSON, but the documents are its own
 * affair: there, unknown (0, "", UTIL_TIME_ZERO as noted) becomes null.
 */
#ifndef CLOOP_CTLMSG_H
#define CLOOP_CTLMSG_H

/* Ids, names, addresses, versions: nothing longer is ever stored. */
#define CTL_SHORT_MAX 512
/* Audit details are bounded by the store; a row must fit one message. */
#define CTL_DETAIL_MAX 12288
#define CTL_ISSUES_MAX 32
#define CTL_LEASES_MAX 128
#define CTL_ITEMS_MAX 32	/* secrets of one lease; more is refused */
#define CTL_CONSTRAINTS_MAX 16

#define DEF_FILE "common/model/ctl.def"
#include "common/msg/def_struct.h"

/* In words: "online", "running"; "unknown". */
const char *ctl_format_agent_status(int64_t status);
const char *ctl_format_handle_state(int64_t state);
/* 1 for exited, failed and killed. */
int ctl_is_terminal(int64_t state);

#endif
