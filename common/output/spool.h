/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The output spool of one workload: one file, written by cloop-shim, read by
 * agentd-fetch through a read-only descriptor, trimmed by the shim on the
 * agentd monitor's word.  Page 0 is a header that all three map; raw byte r
 * of the output is at file offset SPOOL_DATA + r.  Bytes below `base` are
 * punched out of the file.
 *
 * Who writes which field: shim base, total, ended; monitor sent, acked_raw,
 * marks, link_up.  Fields are 64-bit and read and written with __atomic
 * builtins.  The shim raises `base` before it punches: a reader that copies
 * bytes and then finds base <= its start has copied real bytes.
 *
 * Window: the shim keeps every byte that was not sent, up to SpoolLimit,
 * and of the sent ones what was not acknowledged, up to RetainUnacked:
 *   base = max(acked_raw, min(sent, total - retain), total - limit)
 * (terms that would be negative count as 0).  While link_up is set and
 * SPOOL_HIGH_LEN bytes are unsent it stops reading the pipe until `sent`
 * moves, at most SPOOL_STALL_MAX_MS without any progress.
 */
#ifndef CLOOP_SPOOL_H
#define CLOOP_SPOOL_H

#include <stddef.h>
#include <stdint.h>

#define SPOOL_MAGIC 0x31504f4f4c43ULL	/* "CLOOP1", little-endian host */
#define SPOOL_DATA 4096

struct spool_head {
	uint64_t magic;
	uint64_t base;
	uint64_t total;
	uint64_t sent;
	uint64_t acked_raw;	/* what the shim may drop */
	uint64_t mark_at;	/* which of the marks counts: 0 or 1 */
	uint64_t link_up;
	uint64_t ended;		/* no more output will come */
	uint64_t retain;	/* RetainUnacked, bytes */
	uint64_t limit;		/* SpoolLimit, bytes */
	struct spool_mark {	/* of what was acknowledged; see below */
		uint64_t raw;
		uint64_t norm;	/* normalised bytes at raw */
	} marks[2];
};

struct spool {
	int fd;
	struct spool_head *head;	/* mapped */
	int writable;
};

/* Create with header in an empty file (O_RDWR).  Takes fd.  CL_SYSTEM. */
int spool_init(struct spool *s, int fd, uint64_t retain, uint64_t limit);
/* Map an existing one.  Takes fd.  CL_FORMAT, CL_SYSTEM. */
int spool_open(struct spool *s, int fd, int writable);
void spool_close(struct spool *s);

/* Append; evicts as described above.  CL_SYSTEM (ENOSPC included: the bytes
 * are counted in total and lost, base moves past them). */
int spool_put(struct spool *s, const void *data, size_t len);
/*
 * Copy at most len bytes from raw offset *offp.  When *offp is below base
 * it is moved to base first (a gap).  *np = 0: nothing there yet.
 */
int spool_get(struct spool *s, uint64_t *offp, void *dst, size_t len,
    size_t *np);
/* Raise base as the window rule says and punch. */
void spool_trim(struct spool *s);

/*
 * The acknowledged position, in both countings.  A monitor that dies in the
 * middle of saving it leaves the old pair or the new one, never a mixture:
 * a reader of a mixture would send bytes under the offsets of others.
 */
void spool_set_acked(struct spool *s, uint64_t raw, uint64_t norm);
void spool_get_acked(const struct spool *s, struct spool_mark *m);

uint64_t spool_load_u64(const uint64_t *field);	/* atomic */
void spool_save_u64(uint64_t *field, uint64_t v);

#endif
