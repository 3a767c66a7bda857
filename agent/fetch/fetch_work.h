/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The workloads that agentd-fetch reports about, and their output on its way
 * from spool to hub.  Prefixes fw_ (table) and fo_ (output).
 *
 * Two counts run along the output: raw bytes of the spool, and bytes of
 * the normalised stream, which are the offsets of the wire.  A mark is a
 * pair of both at a code point boundary, from which normalising can begin
 * afresh; going back means going to the mark before and skipping.
 */
#ifndef CLOOP_FETCH_WORK_H
#define CLOOP_FETCH_WORK_H

#include <sys/queue.h>

#include <stddef.h>
#include <stdint.h>

#include "common/base/limits.h"
#include "common/base/utf8.h"
#include "common/output/spool.h"
#include "fetch_back.h"

struct event;
struct fs;
struct imsg;

#define FO_MARKS 80		/* 1 MiB of unacknowledged output at
				 * FO_MARK_LEN; thinned out above */
#define FO_TOLD_MAX 16		/* ends told and not confirmed */
#define FO_MARK_LEN 16384	/* normalised bytes between marks */

struct fo_mark {
	uint64_t raw;
	uint64_t norm;
};

struct fo {
	uint64_t raw;		/* next byte to read from the spool */
	uint64_t norm;		/* offset of what comes out next */
	uint64_t skip_to;	/* the hub has what is below */
	uint64_t acked_norm;	/* the hub said so; never sent again */
	struct utf8_norm tail;
	int flushed;		/* the end's tail went out */
	struct fo_mark marks[FO_MARKS];	/* ascending, at least one */
	size_t nmarks;
	/* What was queued on the link, and what of it is known written. */
	uint64_t queued_raw, queued_pos;
	uint64_t wait_raw, wait_pos;
	uint64_t sent_raw;
	int64_t chunk_at;	/* last chunk: coalescing */
	int64_t due_at;		/* 0, or when to look again */
};

struct fw {
	TAILQ_ENTRY(fw) entry;
	TAILQ_ENTRY(fw) dirty_entry;
	struct fs *fs;
	int dirty;		/* on the list of those to look at */
	uint64_t slot;		/* the monitor's number */
	char handle[MAX_ID_LEN + 1];
	int64_t pid;
	int64_t started_at;
	int held;		/* its start is not answered: say nothing */
	int offered;		/* named in this session's hello */
	struct spool spool;
	struct event *wake;	/* the shim's eventfd */
	int wake_fd;
	struct fo out;
	struct fb back;
	/* the end, once the monitor told it */
	int exited;
	uint8_t state;		/* HS_* */
	int64_t exit_code;
	int64_t finished_at;
	char *error;
	uint64_t total_raw;
	uint64_t status_pos;	/* of the final status on the link, or 0 */
	int told;		/* it is written; the hub may have it */
	uint64_t told_beat;	/* the first beat behind it */
};

TAILQ_HEAD(fw_list, fw);

/* Messages of the monitor; CL_* other than CL_OK is its violation. */
int fw_on_handle(struct fs *fs, struct imsg *m);
int fw_on_wake(struct fs *fs, struct imsg *m);
int fw_on_exit(struct fs *fs, struct imsg *m);

struct fw *fw_find_handle(struct fs *fs, const char *handle);
struct fw *fw_find_slot(struct fs *fs, uint64_t slot);
void fw_del(struct fw *w);
/* Have its output looked at in this turn. */
void fw_set_dirty(struct fw *w);
/* Its start was answered (or nobody waits for it any more). */
void fw_release(struct fs *fs, const char *handle);
/* DEV_STOP: the hub refused it; forgets it here. */
void fw_stop(struct fw *w, const char *reason);
/* Send a status; `id` NULL: unsolicited.  Final only from fo_. */
int fw_put_status(struct fw *w, const char *id, int final);

void fo_init(struct fo *o, uint64_t acked_raw, uint64_t acked_norm);
/* Normalised bytes produced so far, as well as it is known. */
uint64_t fo_get_total(const struct fw *w);
/* The hub wants bytes from here on (clamped to what there is). */
void fo_rewind(struct fw *w, uint64_t from);
void fo_on_ack(struct fw *w, uint64_t offset);
/* Nothing queued before counts any more: the link is gone. */
void fo_on_link_end(struct fw *w);
/*
 * The hub has the end of a workload (that it was written proves nothing, it
 * may be lost with the link or the hub): a log_ack of all of it that came
 * behind the status, which is how our hub says that it is on disk; else the
 * answer to a later beat, which our hub too gives only then; of a hub that is
 * not ours also a request, once TCP has nothing unacknowledged.
 */
void fo_on_end_ack(struct fs *fs, const char *handle, uint64_t offset);
void fo_on_beat_ack(struct fs *fs, uint64_t seq);
void fo_on_request(struct fs *fs);
/* The link took bytes: tell the monitor what was written. */
void fo_on_written(struct fs *fs);
/* Queue output, one chunk a workload in turn, while there is room. */
void fo_pump(struct fs *fs);

#endif
