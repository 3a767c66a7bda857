/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The output of the workloads a session has: which bytes are new, where they
 * go (log file first, then its index), what may be acknowledged.  Only what
 * is in both files counts as stored; what the disk refused waits in memory,
 * bounded, unacknowledged, and never stops the session.  Prefix hlog_; no
 * knowledge of sessions, frames or the loop.
 */
#ifndef CLOOP_HUB_LOG_H
#define CLOOP_HUB_LOG_H

#include <bsd/sys/queue.h>
#include <bsd/sys/tree.h>

#include <stddef.h>
#include <stdint.h>

#include "common/msg/msgcat.h"
#include "common/output/logindex.h"

#define HLOG_PENDING_MAX 262144		/* waiting bytes of one handle */
#define HLOG_PENDING_TOTAL (64 * 1048576) /* and of the whole worker */
#define HLOG_JUMP_MAX (1ULL << 50)	/* offset growth of one chunk */
#define HLOG_INDEX_MS 100		/* an index record may wait */
#define HLOG_PROGRESS_MS 250		/* HANDLE_PROGRESS, 4 a second */
#define HLOG_RETRY_MS 250		/* after a failed write */
#define HLOG_HOLD_MS 60000		/* an end waits for the disk */
#define HLOG_CUT_PIECES 16		/* the middle goes in such pieces */
/*
 * The index has a quarter of LogLimit.  When half of that is used, its
 * records become coarse: streams are not told apart, a gap is told by the
 * lengths alone, and none is written for less than this, or for longer.
 */
#define HLOG_INDEX_SHARE 4
#define HLOG_INDEX_MIN 65536
#define HLOG_COARSE_LEN 32768
#define HLOG_COARSE_MAX 1048576

struct hlog_wait;
struct hlog_cut;
struct hlog_redact;
struct htake;

struct hlog {
	RB_ENTRY(hlog) by_number;
	RB_ENTRY(hlog) by_id;
	TAILQ_ENTRY(hlog) link;		/* in the table's busy list */
	TAILQ_ENTRY(hlog) by_use;	/* in its list of open ones */
	uint64_t number;		/* the monitor's name for it */
	uint64_t session;
	char *id;
	int log_fd, index_fd;		/* -1: not open */
	uint8_t state;			/* HS_* of msgcat.h */
	unsigned int gapped : 1;
	unsigned int closed : 1;	/* terminal, or shut by the monitor */
	unsigned int spared : 1;	/* its one beat of grace is used */
	unsigned int busy : 1;		/* in the list */
	unsigned int ended : 1;		/* a terminal status came */
	unsigned int saved : 1;		/* and the monitor has it on disk */
	unsigned int failing : 1;	/* the last write failed */
	unsigned int no_punch : 1;	/* the file system cannot */
	unsigned int told_gapped : 1;
	unsigned int opened : 1;	/* has its files, in the list */
	unsigned int loaded : 1;	/* its index was read once */
	int64_t ask_at;			/* for its files: not before then */
	unsigned int listed : 1;	/* in the heartbeat at hand */
	int64_t running_at;		/* monotonic ms */
	uint64_t received;		/* accepted, waiting bytes included */
	uint64_t stored;		/* in the log, the index may lag */
	uint64_t indexed;		/* in both files */
	uint64_t acked;			/* on this session */
	uint64_t final;			/* what the terminal status said */
	char *end_text;			/* that frame, while it waits for the
					 * disk; NULL */
	size_t end_len;
	int64_t end_until;
	uint64_t told;			/* last HANDLE_PROGRESS */
	int64_t told_at;
	int64_t retry_at;
	uint64_t log_len;
	uint64_t index_len;
	uint64_t log_limit;		/* 0: none */
	uint64_t max_len;		/* of the log; 0: none */
	struct logindex_record rec;	/* not yet in the index; wire_len 0:
					 * none */
	uint64_t rec_len;		/* bytes of text in it */
	int64_t rec_at;
	TAILQ_HEAD(, hlog_wait) waits;
	size_t waiting_len;
	struct hlog_cut *cut;
	struct hlog_redact *redact;	/* NULL: nothing is hidden */
	struct htake *take;		/* NULL: nothing is to come back */
};

RB_HEAD(hlog_numbers, hlog);
RB_HEAD(hlog_ids, hlog);
TAILQ_HEAD(hlog_busy, hlog);

struct hlog_table {
	struct hlog_numbers numbers;
	struct hlog_busy busy;
	struct hlog_busy opened;	/* longest unused first */
	size_t nopened, max_opened;	/* max_opened 0: no bound */
	size_t nlogs;
	size_t waiting_len;
	uint64_t max_len;		/* of one file; 0: none */
};

/* One decoded log_chunk. */
struct hlog_chunk {
	uint64_t off;
	const char *text;
	size_t len;
	size_t nreplaced;	/* \ufffd escapes: 1 wire byte, 3 here */
	uint8_t stream;		/* LOGINDEX_* */
	int64_t time;
};

void hlog_init(struct hlog_table *t);
void hlog_clear(struct hlog_table *t);

/*
 * A handle of a session (HANDLE_OPEN), without files yet.  `ids` is the
 * session's own tree.  CL_NOMEM.  A handle of the same number is replaced by
 * the caller first (hlog_close).
 */
int hlog_open(struct hlog_table *t, struct hlog_ids *ids,
    const struct msg_handle_open *o, struct hlog **hp);
/* 1: it is open for output and has no files (HANDLE_FILES). */
int hlog_needs_files(const struct hlog *h);
/* The first file (HANDLE_LOG).  Takes fd. */
void hlog_set_log(struct hlog_table *t, struct hlog *h, int fd);
/*
 * The second (HANDLE_INDEX).  Takes fd.  The files are the truth: stored
 * becomes what they hold, torn ends are cut off.  To have no more than
 * max_opened, the one that was not written for longest gives its files back.
 * CL_FORMAT: the index is broken, CL_SYSTEM; then it has no files.
 */
int hlog_set_index(struct hlog_table *t, struct hlog *h, int fd);
void hlog_close(struct hlog_table *t, struct hlog_ids *ids, struct hlog *h);
/* Terminal or shut: write what waits, close the files, keep the numbers. */
void hlog_shut(struct hlog_table *t, struct hlog *h, int64_t now);

/* Descriptors run out: half of the open ones give their files back. */
void hlog_shed(struct hlog_table *t);

struct hlog *hlog_find(struct hlog_table *t, uint64_t number);
struct hlog *hlog_find_id(struct hlog_ids *ids, const char *id);
/* In order of id; next of NULL is the first. */
struct hlog *hlog_next(struct hlog_ids *ids, struct hlog *h);

/*
 * Take a chunk by the offset rules of log chunks.  CL_OK: taken, or nothing
 * new; CL_LIMIT: the offset grows too far, ignored; CL_SYSTEM: it was taken
 * but waits for the disk, or was dropped because too much waits.  errno is
 * of the first failure; `failing` turns on once.
 */
int hlog_put(struct hlog_table *t, struct hlog *h,
    const struct hlog_chunk *c, int64_t now);
/*
 * The last step of hlog_put: to the files or, while they fail, to memory.
 * CL_SYSTEM: it waits; CL_LIMIT: there was no room, it is dropped.
 */
int hlog_keep(struct hlog_table *t, struct hlog *h,
    const struct hlog_chunk *c, uint64_t wire_len, int64_t now);
/*
 * Before an acknowledgement: bring the index up to date, if what would be
 * gained is worth a record (`indexed` says how far it is).
 */
int hlog_settle(struct hlog_table *t, struct hlog *h, int64_t now);
/* Bring the index up to date: after CL_OK everything up to `stored` is in
 * both files. */
int hlog_flush(struct hlog_table *t, struct hlog *h, int64_t now);

/*
 * The timer: write old index records, retry, report progress through fn.
 * Returns 1 when something is left to do soon.
 */
typedef void hlog_progress_fn(void *ctx, struct hlog *h);
int hlog_on_time(struct hlog_table *t, int64_t now, hlog_progress_fn *fn,
    void *ctx);
/* Report now if there is news: what is in both files. */
void hlog_report(struct hlog *h, int64_t now, hlog_progress_fn *fn,
    void *ctx);

#endif
