/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Landlock: restrict the calling process to named file hierarchies, for our
 * own children (usually to none) and for workloads (their tree, system files
 * read-only).  Needs no privilege beyond no-new-privs, and the kernel may
 * not have it: then CL_UNSUPPORTED, and the caller reports it.
 */
#ifndef CLOOP_LANDLOCK_H
#define CLOOP_LANDLOCK_H

#include <stddef.h>
#include <stdint.h>

/* What a rule grants below its path; translated to the kernel's bits. */
#define LL_READ 0x01		/* read files, list directories */
#define LL_EXEC 0x02
#define LL_WRITE 0x04		/* write existing files, truncate */
#define LL_MAKE 0x08		/* create, link, rename */
#define LL_REMOVE 0x10		/* remove files and directories */
#define LL_DEVICE 0x20		/* ioctl on devices */
#define LL_LIST 0x40		/* list directories only */
#define LL_READONLY (LL_READ | LL_EXEC)
#define LL_ALL (LL_READ | LL_EXEC | LL_WRITE | LL_MAKE | LL_REMOVE)

/* What else the domain forbids, where the kernel can. */
#define LL_NO_TCP 0x01		/* bind and connect of TCP sockets (ABI 4) */
#define LL_NO_ABSTRACT 0x02	/* abstract unix sockets outside (ABI 6) */
#define LL_NO_SIGNAL 0x04	/* signals to processes outside (ABI 6) */
#define LL_ANY_FILE 0x08	/* files are not restricted at all */

/* The kernel's ABI version, 0 when Landlock is not there or disabled. */
int landlock_get_abi(void);

struct landlock;

/* A new rule set; CL_UNSUPPORTED (nothing would be restricted, too),
 * CL_NOMEM, CL_SYSTEM. */
int landlock_new(unsigned int forbid, struct landlock **lp);
void landlock_free(struct landlock *l);

/* Grant LL_* below the path (a file or a directory).  A path that does not
 * exist is no error: nothing is granted.  CL_SYSTEM. */
int landlock_add_path(struct landlock *l, const char *path,
    unsigned int access);
/* The same for an open descriptor (borrowed). */
int landlock_add_fd(struct landlock *l, int fd, unsigned int access);

/* LL_NO_TCP, but for connections to this port. */
int landlock_add_port(struct landlock *l, uint16_t port);

/* Enforce on this thread and what it starts; no-new-privs must be set. */
int landlock_start(const struct landlock *l);

#endif
