/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The environment of a host-mode workload.
 */
#ifndef CLOOP_ENVIRONMENT_H
#define CLOOP_ENVIRONMENT_H

#include <stddef.h>

#define ENVIRONMENT_PATH                                                       \
	"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define ENVIRONMENT_NDIRS 2

/* Where the agent looks for programs; strings owned. */
struct environment {
	char *path;			/* the agent's PATH, fixed (14.2) */
	char *dirs[ENVIRONMENT_NDIRS];	/* existing harness directories */
	size_t ndirs;
};

/*
 * `path` is the agent's own PATH (NULL or empty: the default), `home` the
 * home whose .local/bin and .npm-global/bin go in front when they exist
 * (NULL: none).  Again at each capability detection.
 */
void environment_init(struct environment *e, const char *path,
    const char *home);
void environment_clear(struct environment *e);

/*
 * The exact vector for a workload: with nenv 0 a harmless part of the
 * agent's own environment `inherit` (NULL-terminated), else the given
 * entries, last one wins; then PATH and HOME as the floor.  `home` is the
 * private HOME, or NULL for the work directory.  *vp is a NULL-terminated
 * vector owned by the caller (environment_free_vector).  CL_FORMAT for an
 * entry without a name, CL_NOMEM.
 */
int environment_make(const struct environment *e, char *const *env,
    size_t nenv, char *const *inherit, const char *work_dir,
    const char *home, char ***vp, size_t *np);
void environment_free_vector(char **v);

/* The executable regular file NAME on e->path: 1, and dst gets its path. */
int environment_find_program(const struct environment *e, const char *name,
    char *dst, size_t dstlen);

#endif
