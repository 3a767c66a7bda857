/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The bundle one workload sends back, put together: which chunk is taken,
 * what ends the transfer for good, whether a result is what the bytes are.
 * Bytes go straight into a file the monitor opened; room in the budget is
 * the monitor's to give.  Prefix htake_; no knowledge of sessions, frames or
 * the loop.
 */
#ifndef CLOOP_HUB_TAKE_H
#define CLOOP_HUB_TAKE_H

#include <stddef.h>
#include <stdint.h>

#include "common/model/workmsg.h"

struct evp_md_ctx_st;
struct frame_write_back;
struct msg_handle_work;

#define HTAKE_AHEAD 65536	/* budget asked for at once, at least */

struct htake {
	int asked;			/* WORK_* of msgcat.h */
	int seeded;
	int over;			/* a result was judged: nothing more */
	int restarting;			/* room was asked for a new beginning */
	int64_t wait_until;		/* its file cannot be had; 0: it can */
	uint64_t cap;
	char branch[WORK_BRANCH_MAX + 1];
	char failure[WORK_FAILURE_MAX + 1]; /* "": it has not failed */
	int fd;				/* -1: none yet */
	uint64_t size;			/* bytes in the file */
	uint64_t left;			/* budget granted and not used */
	uint64_t cost;			/* budget these bytes used */
	struct evp_md_ctx_st *md;	/* of the first `hashed` bytes */
	uint64_t hashed;
};

/* What a start asked for; NULL without memory. */
struct htake *htake_new(const struct msg_handle_work *v);
void htake_free(struct htake *t);	/* NULL is legal */

/* The file (RESULT_FILE); takes fd.  Its length is what is there. */
int htake_set_file(struct htake *t, int fd);

enum htake_verdict {
	HTAKE_ROOM = 1,		/* ask for budget (htake_get_need), again */
	HTAKE_RESTART,		/* the same, and give back what is held */
	HTAKE_FITS,		/* htake_put() */
	HTAKE_REFUSED,		/* this chunk only; *whyp */
	HTAKE_FAILS		/* the transfer; htake_fail(t, *whyp) */
};
/* The rules in their order.  closed: the handle is. */
enum htake_verdict htake_check(struct htake *t, int closed, uint64_t off,
    size_t len, const char **whyp);
/* Budget for a chunk: at least, and what is worth asking for. */
void htake_get_need(size_t len, uint32_t *minp, uint32_t *maxp);
/* It was granted; restart: everything before is gone. */
int htake_grant(struct htake *t, int restart, uint32_t granted);
/* Append.  CL_SYSTEM: the disk refused, errno says why; nothing changed. */
int htake_put(struct htake *t, const void *data, size_t len);
/* Permanent.  The text is remembered, the bytes are not. */
void htake_fail(struct htake *t, const char *why);

/*
 * Judge a result.  NULL: `end` is filled in with borrowed strings, a good
 * one.  Otherwise the reason, and `end` is a failure, or -- when
 * end->failed is 0 -- there is nothing to be told to anybody but the device.
 */
const char *htake_end(struct htake *t, int closed,
    const struct frame_write_back *wb, struct work_end *end);

#endif
