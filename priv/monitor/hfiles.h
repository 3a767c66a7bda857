/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The files of a handle: STATE/hub/handles/<hex of the id>/log and log.idx.
 * Opened here, written by cloopd-net, read by the operator's tools, each
 * through a descriptor of its own.
 */
#ifndef PRIV_HFILES_H
#define PRIV_HFILES_H

#include <stdint.h>

enum hfiles_which { HFILES_LOG, HFILES_INDEX, HFILES_PART, HFILES_BUNDLE,
	HFILES_PROJECT };

/* Directory and two empty files, 0700 and 0600.  CL_SYSTEM, CL_EXISTS. */
int hfiles_make(const char *state_dir, const char *handle_id);
/* writable: O_RDWR|O_APPEND for cloopd-net; else O_RDONLY.  CL_SYSTEM. */
int hfiles_open(const char *state_dir, const char *handle_id,
    enum hfiles_which which, int writable, int *fdp);
/*
 * Replace files that are missing or make no sense by empty ones; what was
 * there is kept as log.bad and log.idx.bad.  CL_SYSTEM.
 */
int hfiles_renew(const char *state_dir, const char *handle_id);
struct stat;
/* Without opening it.  CL_SYSTEM, CL_FORMAT: not a plain file. */
int hfiles_stat(const char *state_dir, const char *handle_id,
    enum hfiles_which which, struct stat *st);
/* Kept bytes; 0 when the file cannot be read. */
uint64_t hfiles_get_log_len(const char *state_dir, const char *handle_id);
/* Remove all of it; a missing directory is fine. */
int hfiles_del(const char *state_dir, const char *handle_id);
/*
 * Call fn for each directory whose name is the hex of an id; when it says 0
 * the directory is removed (a crash between files and row left it).
 */
typedef int hfiles_fn(const char *handle_id, void *arg);
int hfiles_sweep(const char *state_dir, hfiles_fn *fn, void *arg);

/* A new empty file in place of an old one; CL_SYSTEM. */
int hfiles_create(const char *state_dir, const char *handle_id,
    enum hfiles_which which, int *fdp);
int hfiles_rename(const char *state_dir, const char *handle_id,
    enum hfiles_which from, enum hfiles_which to);
void hfiles_unlink(const char *state_dir, const char *handle_id,
    enum hfiles_which which);

#endif
