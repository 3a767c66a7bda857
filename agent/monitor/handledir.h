/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The directory of one workload below StateDirectory/handles: what a later
 * agent needs to find it again.  Files: `meta` (ours), `spool` (spool.h),
 * `exit` (shim.h).
 */
#ifndef CLOOP_HANDLEDIR_H
#define CLOOP_HANDLEDIR_H

#include <sys/types.h>

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/limits.h"
#include "kern.h"

#define HANDLEDIR_META_VERSION 1

struct buf;

struct handledir {
	char name[NAME_MAX + 1];	/* below the base */
	int fd;				/* O_RDONLY directory, or -1 */
};

struct handle_meta {
	char handle_id[MAX_ID_LEN + 1];
	uint64_t slot;			/* names the socket too */
	int64_t shim_pid;
	uint64_t shim_ticks;		/* kern.h */
	char boot_id[KERN_BOOT_LEN + 1];
	int64_t created_at;		/* wall ns */
};

/* Open (and make, 0700) the base directory.  CL_SYSTEM. */
int handledir_open_base(const char *state_dir, int *fdp);
/*
 * Make a fresh directory for a handle; a stale one of that name is emptied
 * first.  The name is the hex of the id, or of its start and the slot when
 * that is too long for a file name.  CL_SYSTEM.
 */
int handledir_make(int base_fd, const char *handle_id, uint64_t slot,
    struct handledir *d);
/* An existing one, no link.  CL_SYSTEM. */
int handledir_open(int base_fd, const char *name, struct handledir *d);
void handledir_close(struct handledir *d);
/* Remove its files and itself; closes it.  CL_SYSTEM. */
int handledir_remove(int base_fd, struct handledir *d);

/* The spool: O_RDWR | O_CREAT, O_RDWR or O_RDONLY.  CL_SYSTEM. */
int handledir_open_spool(const struct handledir *d, int flags, int *fdp);

/*
 * A file of it that holds b: written to a temporary name and renamed.  Not
 * synced: it must survive our death, not the machine's.  CL_SYSTEM, b's own
 * error.
 */
int handledir_save_file(int dir_fd, const char *name, const struct buf *b);
/* The record.  CL_SYSTEM. */
int handledir_save_meta(const struct handledir *d,
    const struct handle_meta *m);
/* CL_NOTFOUND, CL_FORMAT, CL_VERSION, CL_SYSTEM. */
int handledir_load_meta(const struct handledir *d, struct handle_meta *m);
/* The record from its bytes. */
int handledir_parse_meta(const void *p, size_t len, struct handle_meta *m);

#endif
