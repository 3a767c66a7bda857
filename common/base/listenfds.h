/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Sockets that a service manager holds for us and passes at our start, as
 * sd_listen_fds(3) describes it.
 */
#ifndef CLOOP_LISTENFDS_H
#define CLOOP_LISTENFDS_H

#include <stddef.h>

#define LISTENFDS_FIRST 3	/* descriptors from here on */

/*
 * *np: how many were passed to this process, 0 to max; they are close-on-exec
 * now, and nobody we start will think that they were passed on.  CL_STATE
 * with the value and what may be in err; CL_SYSTEM: one of them is not open.
 */
int listenfds_take(size_t max, size_t *np, char *err, size_t errlen);

#endif
