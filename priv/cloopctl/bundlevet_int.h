/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Shared by bundlevet.c (rules) and bundlevet_git.c (what git must say).
 */
#ifndef PRIV_BUNDLEVET_INT_H
#define PRIV_BUNDLEVET_INT_H

#include "bundlevet.h"

/* Set why; CL_FORMAT. */
int vet_refuse(struct vet *v, const char *fmt, ...)
    __attribute__((__format__(__printf__, 2, 3)));

#endif
