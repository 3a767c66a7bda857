/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Whether this kernel has filters at all, for programs that compile none.
 */
#include "filter_git.h"

#include <sys/prctl.h>

int
filter_has_seccomp(void)
{
	return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != -1;
}
