/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Secret files of one workload: one private directory for each distinct
 * declared one, on memory where there is any; made, filled, replaced, wiped.
 * A directory belongs to the workload's user, who may do in it what he likes:
 * everything here is relative to a descriptor that was opened without
 * following a link, and a file is only overwritten or replaced while it is
 * the one that was placed.
 *
 * Who may wipe a directory he has no record of: its makers hold a lock on
 * it, the agent and the workload's shim (SHIM_LEASE) each with a descriptor
 * of the same open file, so that it is locked as long as one of them lives.
 */
#ifndef CLOOP_SECRETFILES_H
#define CLOOP_SECRETFILES_H

#include <sys/stat.h>
#include <sys/types.h>

#include <stddef.h>
#include <stdint.h>

#include "record.h"

struct buf;
struct spec;

#define SECRETFILES_PREFIX "cloop-lease-"

/* What went wrong, joined by "; ", without values. */
struct secretnote {
	char text[1024];
};
void secretnote_add(struct secretnote *n, const char *fmt, ...)
    __attribute__((__format__(__printf__, 2, 3)));

void secretset_init(struct secretset *s);
void secretset_clear(struct secretset *s);	/* memory and locks only */
/* 0, or CL_FORMAT: what a record says must make sense before it is used. */
int secretset_check(const struct secretset *s);

/*
 * Where directories are made: RuntimeDirectory/lease when that is on memory
 * and programs may be run from it, /dev/shm, $TMPDIR, /tmp.  *pathp is owned;
 * *is_memoryp tells whether it is memory.
 */
int secretfiles_find_base(const char *runtime_dir, char **pathp,
    int *is_memoryp);

/*
 * Make and lock the directories for the secret files of a spec, empty, and
 * plan the files.  On failure nothing remains.  CL_LIMIT: too many
 * directories; CL_SYSTEM, CL_NOMEM.
 */
int secretfiles_make_dirs(const char *base, const struct spec *spec,
    uid_t uid, gid_t gid, struct secretset *s);
/* Rewrite the environment and the bindings of the spec. */
int secretfiles_relocate(const struct secretset *s, struct spec *spec);
/* Write the contents.  What was written stays on failure: wipe then. */
int secretfiles_place(struct secretset *s, const struct spec *spec);
/*
 * Replace one file by rename, same name, owner and mode.  CL_NOTFOUND: it is
 * not the file that was placed any more.  CL_SYSTEM.
 */
int secretfiles_replace(struct secretset *s, size_t file,
    const struct secret *content);

/* Overwrite and unlink one placed file; 1 when it was there, else 0. */
int secretfiles_wipe_file(struct secretset *s, size_t file,
    struct secretnote *note);
/* All that is in it and the directory itself. */
void secretfiles_wipe_dir(struct secretset *s, size_t dir,
    struct secretnote *note);
void secretfiles_wipe(struct secretset *s, struct secretnote *note);

/*
 * Wipe what nobody holds: directories of ours below `base`, owned by one of
 * two uids, unlocked, older than min_age_s.  Returns how many.
 */
size_t secretfiles_sweep(const char *base, uid_t own, uid_t work,
    int64_t min_age_s, struct secretnote *note);

/* ---------------------------- between secretfiles.c and secretfiles_wipe.c */

/* The directory as it was made; CL_NOTFOUND when it is gone. */
int secretfiles_open_dir(const struct secretset *s, size_t dir, int *fdp);
/* 1 when the name still is the file that was placed; its state in *st. */
int secretfiles_is_placed(const struct secretset *s, size_t file, int dir_fd,
    struct stat *st);
/* Without the white space around it; NULL when out of memory. */
char *secretfiles_trim(const char *text);

#endif
