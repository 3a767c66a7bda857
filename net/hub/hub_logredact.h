/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Redaction of a workload's output before it is written.  Offsets stay those
 * of the wire: each index record says which bytes of the wire the kept bytes
 * stand for, and what is withheld is not stored, so not acknowledged, so
 * sent again after a break.
 */
#ifndef CLOOP_HUB_LOGREDACT_H
#define CLOOP_HUB_LOGREDACT_H

#include <stddef.h>
#include <stdint.h>

struct hlog;
struct hlog_chunk;
struct hlog_table;

/*
 * Values to be hidden from now on (HANDLE_REDACT): n blobs, each u32 length
 * and bytes.  CL_FORMAT, CL_LIMIT, CL_NOMEM: whatever could be added is.
 */
int hlog_add_redactions(struct hlog *h, const void *data, size_t len);
/* Take a chunk that begins at or after h->received. */
int hlog_redact_put(struct hlog_table *t, struct hlog *h,
    const struct hlog_chunk *c, uint64_t wire_len, int64_t now);
/* Nothing follows: what is withheld comes out. */
void hlog_redact_end(struct hlog_table *t, struct hlog *h, int64_t now);
/* A whole text; h may be NULL. */
void hlog_redact_text(const struct hlog *h, const char *text, char *dst,
    size_t dstlen);
void hlog_redact_free(struct hlog *h);

#endif
