/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Work directories: every path below the work root is walked component by
 * component from a descriptor that is held for the life of the process, so
 * that no workload that shares the root can move a link under our feet.
 */
#ifndef CLOOP_WORKDIR_H
#define CLOOP_WORKDIR_H

#include <sys/types.h>

#define WORKDIR_RESERVED ".cloop-"	/* names below the root that are ours */

struct workdir_root {
	char *path;		/* resolved, absolute, without final slash */
	int fd;			/* O_PATH directory */
	uid_t uid;		/* owner of what is created; -1: leave */
	gid_t gid;
};

/*
 * Make the root (0700) when it is missing, resolve it once, hold it.  A root
 * that belongs to uid 0 is handed to `uid` (-1: nobody).  CL_SYSTEM,
 * CL_FORMAT (not absolute), CL_NOMEM.
 */
int workdir_open_root(const char *path, uid_t uid, gid_t gid,
    struct workdir_root *root);
void workdir_close_root(struct workdir_root *root);

struct workdir {
	char *path;		/* resolved */
	int fd;			/* directory; children fchdir to it */
	int is_root;
};

/*
 * Open the work directory of a spec, creating what is missing with 0700.
 * CL_DENIED: outside the root, or a reserved name (answer forbidden_path);
 * CL_LIMIT: more than 40 links; CL_EXISTS: something that is no directory is
 * in the way; CL_TOOBIG, CL_SYSTEM, CL_NOMEM.
 */
int workdir_open(const struct workdir_root *root, const char *work_dir,
    struct workdir *wd);
void workdir_close(struct workdir *wd);
/*
 * The part of that which needs no file system: CL_DENIED when the path as
 * written leaves the root or names something reserved, CL_TOOBIG.
 */
int workdir_check(const struct workdir_root *root, const char *work_dir);

/*
 * The private HOME of a workload: `.<basename>.home` beside its work
 * directory, a real directory of mode 0700.  *pathp is owned by the caller;
 * NULL when the work directory is the root itself.  CL_SYSTEM, CL_EXISTS,
 * CL_NOMEM.
 */
int workdir_open_home(const struct workdir_root *root,
    const struct workdir *wd, char **pathp);

#endif
