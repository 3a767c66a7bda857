/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Between secretfiles.c, secretfiles_wipe.c and vault.c.
 */
#ifndef CLOOP_SECRETFILES_INT_H
#define CLOOP_SECRETFILES_INT_H

#include <sys/stat.h>

#include "secretfiles.h"

/* The directory as it was made; CL_NOTFOUND when it is gone. */
int secretfiles_open_dir(const struct secretset *s, size_t dir, int *fdp);
/* 1 when the name still is the file that was placed; its state in *st. */
int secretfiles_is_placed(const struct secretset *s, size_t file, int dir_fd,
    struct stat *st);

/* Without the white space around it; NULL when out of memory. */
char *secretfiles_trim(const char *text);

#endif
