/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Run one program with a fixed argv to its end: text on its stdin, a
 * deadline, the exit status.  For cloopd-fence; nothing else of ours waits
 * for a program.  Non-logging.
 */
#ifndef CLOOP_FENCE_RUN_H
#define CLOOP_FENCE_RUN_H

#include <stddef.h>

#define FENCE_TEXT_MAX 49152	/* below a pipe's 64 KiB: the write cannot
				 * wait for the reader */

/*
 * argv[0] is an absolute path; the environment is empty.  The first line it
 * wrote to stderr, printable, is left in err.  CL_OK: it exited 0;
 * CL_DENIED: it failed; CL_TIMEOUT: it was killed after ms; CL_TOOBIG,
 * CL_SYSTEM.  Never leaves a process behind.
 */
int fence_run(const char *const *argv, const char *text, size_t len, int ms,
    char *err, size_t errlen);

#endif
