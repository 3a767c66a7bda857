/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * git for cloopctl: one process with a clean environment, no user or system
 * configuration, bounded output, time and memory; for bytes that came from
 * a device also unable to write outside one directory (where the kernel has
 * Landlock), to open a socket or to do anything else git has no need of
 * (seccomp: it dies).
 */
#ifndef PRIV_GITJOB_H
#define PRIV_GITJOB_H

#include <stddef.h>
#include <stdint.h>

#define GITJOB_ARGS 32

struct gitjob {
	const char *repo;	/* -C; NULL: none */
	const char *write_dir;	/* confined to write here; NULL: trusted */
	int in_fd;		/* becomes standard input; -1: /dev/null */
	int out_fd;		/* standard output goes there; -1: to out */
	size_t out_max;
	/* results; gitjob_clear() */
	uint8_t *out;		/* NUL-terminated */
	size_t out_len;
	char err[512];		/* last words of standard error, cleaned */
	int status;		/* exit status; -1: killed */
};

void gitjob_init(struct gitjob *j, const char *repo, const char *write_dir);
/* Free the output; the settings stay. */
void gitjob_clear(struct gitjob *j);
/*
 * Run it.  CL_OK: exit status 0.  CL_STATE: another one, err has its words.
 * CL_TOOBIG: more output than out_max.  CL_TIMEOUT, CL_SYSTEM, CL_NOMEM.
 */
int gitjob_run(struct gitjob *j, const char *const *args);
/* The same for another program of the system. */
int gitjob_run_program(struct gitjob *j, const char *program,
    const char *const *args);
/* Output without its line feed, when it is exactly one line; else "". */
const char *gitjob_get_line(struct gitjob *j);

#endif
