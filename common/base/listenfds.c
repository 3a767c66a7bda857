/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Runs in monitors before anything else of theirs; the environment is that
 * of whoever started them.
 */
#include "listenfds.h"

#include <bsd/stdlib.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "err.h"

int
listenfds_take(size_t max, size_t *np, char *err, size_t errlen)
{
	const char *pid = getenv("LISTEN_PID"), *n = getenv("LISTEN_FDS");
	const char *why = NULL;
	size_t i;

	*np = 0;
	if (pid == NULL || n == NULL ||
	    strtonum(pid, 1, INT_MAX, &why) != getpid())
		return CL_OK;
	*np = (size_t)strtonum(n, 0, (long long)max, &why);
	if (why != NULL) {
		snprintf(err, errlen, "LISTEN_FDS=%s is %s: 0 to %zu sockets "
		    "can be passed", n, why, max);
		return CL_STATE;
	}
	(void)unsetenv("LISTEN_PID");
	(void)unsetenv("LISTEN_FDS");
	(void)unsetenv("LISTEN_FDNAMES");
	for (i = 0; i < *np; i++)
		if (fcntl(LISTENFDS_FIRST + (int)i, F_SETFD,
		    FD_CLOEXEC) == -1) {
			snprintf(err, errlen, "descriptor %zu of the service "
			    "manager: %s", LISTENFDS_FIRST + i,
			    strerror(errno));
			return CL_SYSTEM;
		}
	return CL_OK;
}
