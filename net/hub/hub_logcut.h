/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * LogLimit (cloopd.conf(5)): of a long output the first and the last half of
 * the limit are kept, the middle is punched out of the file as it grows,
 * piece by piece, and the index says so (LOGINDEX_CUT).
 */
#ifndef CLOOP_HUB_LOGCUT_H
#define CLOOP_HUB_LOGCUT_H

#include <stdint.h>

struct hlog;

/* The log grew to h->log_len, wire offset h->stored, at a chunk's end.
 * CL_OK; CL_NOMEM: try again at the next chunk. */
int hlog_cut_mark(struct hlog *h);
/* 1 when a piece is due. */
int hlog_cut_is_due(const struct hlog *h);
/*
 * Punch the pieces that are due and write their records; the index must be
 * flushed.  CL_UNSUPPORTED: this file system cannot (h->no_punch is set).
 * CL_SYSTEM: the record could not be written: again later.
 */
int hlog_cut_punch(struct hlog *h);
/* Read the marks of an existing log back from its index. */
int hlog_cut_load(struct hlog *h);
void hlog_cut_free(struct hlog *h);

/* Append one record to the index file; shared with hub_log.c. */
int hlog_put_record(struct hlog *h, const void *record);

#endif
