/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Allocation for start-up and small fixed structs: these functions end the
 * process when memory is gone.  A size that a peer can influence uses plain
 * calloc after a check against limits.h instead.
 */
#ifndef CLOOP_XMEM_H
#define CLOOP_XMEM_H

#include <stddef.h>

void *xcalloc(size_t n, size_t size);
void *xreallocarray(void *p, size_t n, size_t size);
char *xstrdup(const char *s);
char *xstrndup(const char *s, size_t len);
int xasprintf(char **retp, const char *fmt, ...)
    __attribute__((__format__(__printf__, 2, 3)));

#endif
