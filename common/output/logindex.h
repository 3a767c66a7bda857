/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The kept output of a handle on the hub: `log`, the output bytes, and
 * `log.idx`, fixed records that map them to wire offsets and say when they
 * came.  Both are appended by cloopd-net (log first), read by the monitor at
 * start-up (the files are the truth: received = end of the last whole record;
 * a longer log is cut back) and by cloopctl.  Wire offsets and file offsets
 * differ by gaps, by replaced bytes (a Go agent's \ufffd counts one), by
 * redaction and by LogLimit.
 */
#ifndef CLOOP_LOGINDEX_H
#define CLOOP_LOGINDEX_H

#include <stddef.h>
#include <stdint.h>

#define LOGINDEX_RECORD_LEN 40

enum logindex_kind {
	LOGINDEX_DATA = 1,	/* file_len bytes at file_off */
	LOGINDEX_GAP,		/* wire_len bytes never came */
	LOGINDEX_CUT		/* wire_len bytes came and are not kept
				 * (LogLimit); see below */
};
/*
 * Order: a DATA, GAP or CUT record begins where the one before ended
 * (wire_off), GAP and CUT have file_len 0.  A CUT record with file_len > 0
 * stands outside that order: the range at file_off, kept until then, was
 * punched out of the log's middle and reads as zeroes (wire_off, wire_len:
 * the same range on the wire).  Such ranges touch each other and grow: whoever
 * prints the file skips all of them and says so once.
 */

enum logindex_stream { LOGINDEX_COMBINED, LOGINDEX_STDOUT, LOGINDEX_STDERR };

struct logindex_record {
	uint64_t wire_off;
	uint64_t file_off;
	int64_t time;		/* wall ns, the device's clock */
	uint64_t wire_len;	/* a gap may be long: one record all the same */
	uint32_t file_len;
	uint8_t kind;
	uint8_t stream;
	/* 2 bytes of zero follow on disk */
};

void logindex_format(const struct logindex_record *r,
    uint8_t dst[LOGINDEX_RECORD_LEN]);
/* CL_FORMAT for unknown kinds, nonzero padding, lengths that overflow. */
int logindex_parse(const uint8_t src[LOGINDEX_RECORD_LEN],
    struct logindex_record *r);

struct logindex_state {
	uint64_t received;	/* wire offset after the last record */
	uint64_t log_len;	/* file offset after the last record */
	int gapped;
};
/*
 * Read a whole index; ignores a torn last record.  When `repair`, truncates
 * both files to what the last whole record covers.  CL_FORMAT when records
 * do not follow each other, CL_SYSTEM.
 */
int logindex_load(int log_fd, int index_fd, int repair,
    struct logindex_state *st);

/*
 * What two files that have ended are known by: every byte of the index, and
 * of the log what lies outside the hole that the index tells of.  Read in
 * slices, so that a loop can go on in between.
 */
enum { LOGINDEX_IN_INDEX, LOGINDEX_IN_LOG };
struct logindex_scan {
	int fd[2];		/* borrowed; LOGINDEX_IN_*, the index first */
	uint64_t len[2];	/* at the beginning */
	uint64_t max;		/* bytes worth reading, of both together */
	uint64_t hole_start, hole_end;
	uint64_t off;
	int at;
};
typedef int logindex_scan_fn(void *arg, int at, const void *data, size_t len);

/* CL_SYSTEM */
int logindex_scan_start(struct logindex_scan *s, int log_fd, int index_fd,
    uint64_t max);
/*
 * Hand about `budget` more bytes to fn.  CL_OK: that was all;
 * CL_INCOMPLETE: there is more; CL_TOOBIG: more than max; CL_FORMAT: a file
 * shrank meanwhile; CL_SYSTEM; what fn returned.
 */
int logindex_scan_run(struct logindex_scan *s, size_t budget,
    logindex_scan_fn *fn, void *arg);

#endif
