/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * What cloop-agentd tells a cloop-shim and what the shim leaves behind:
 * the job (SHIM_JOB's memfd) and the exit record.  The rows themselves are
 * dev_shim.def in common/msg.
 *
 * Course: spawn_start("cloop-shim", SPAWN_SURVIVE); SHIM_JOB, SHIM_SPOOL,
 * SHIM_WAKE, SHIM_DIR, SHIM_TREE, SHIM_FILTERS, SHIM_GO in any order, GO last;
 * answered by SHIM_STARTED, or SHIM_FAILED (its text goes to started.error) and
 * exit.  At the end the shim saves the exit record, sends SHIM_EXITED and
 * waits for SHIM_RELEASE.  When the channel closes before GO it exits; later
 * it keeps running and listens on job.socket: a new monitor connects
 * (SEQPACKET), sends SHIM_ADOPT with MSGCAT_VERSION, and gets SHIM_STARTED
 * (and SHIM_EXITED when the workload is over).  The last adopter wins.
 * Without a monitor it exits as soon as the exit record is on disk: the
 * record and the spool say all it could.
 */
#ifndef CLOOP_SHIM_H
#define CLOOP_SHIM_H

#include <stddef.h>
#include <stdint.h>

#include "common/msg/msgcat.h"

enum shim_mode {
	SHIM_MODE_CONFINED = 1,	/* namespaces, seccomp, Landlock, own /tmp */
	SHIM_MODE_PLAIN		/* as the reference: session and process group
				 * only, no new privileges */
};

/* Ids that mean "stay what the shim is" (an unprivileged install). */
#define SHIM_STAY UINT32_MAX

/* Flags of a job. */
#define SHIM_F_STEP 0x01	/* one of several of a handle: it leaves no exit
				 * record, and the spool goes on after it */
#define SHIM_F_NARROW 0x02	/* sees its tree and what git needs only */

#define MAX_SHIM_PATHS 32	/* hide or writable; a handful is used */
#define MAX_SHIM_PEERS 64	/* a forge and its proxies, 8 addresses each */

struct shim_list {
	char **v;
	size_t n;
};

/* All strings owned; absolute paths; NULL is the same as "". */
struct shim_job {
	char *handle;		/* for logs only */
	uint8_t mode;		/* SHIM_MODE_* */
	uint8_t flags;		/* SHIM_F_* */
	uint8_t log_level;	/* enum log_level */
	uint32_t uid, gid;	/* of the workload; SHIM_STAY */
	struct shim_list argv;	/* at least one; argv[0] is looked up on the
				 * PATH of env when it has no slash */
	struct shim_list env;	/* exact, NAME=value */
	char *tree;		/* the work directory's path; SHIM_TREE is
				 * its descriptor, which decides */
	char *home;		/* private HOME outside the tree, or "" */
	char *work_root;	/* other trees below it are hidden */
	struct shim_list hide;	/* directories and files the workload must
				 * not see: state, keys, credential, runtime.
				 * Missing ones are skipped */
	struct shim_list writable;	/* further directories it may use
					 * (lease directory) */
	struct shim_list readable;	/* the same without writing (harness
					 * directories of the agent's home) */
	struct shim_list peers;	/* a step: addresses it may send to, where
				 * the kernel can see to it (cgroup_net.h);
				 * none: no such limit */
	uint64_t timeout_s;	/* 0: none */
	char *timeout_text;	/* reason at the deadline, for instance
				 * "timeout after 5m"; "" gives
				 * "timeout after N seconds" */
	char *socket;		/* re-adoption socket, made by the shim 0600,
				 * removed by it; "": none.  Path limit of
				 * sockaddr_un: 107 bytes */
};

/* Encoded as one memfd; at most MAX_SPEC_LEN bytes. */
void shim_job_put(struct buf *b, const struct shim_job *j);
/* Decode and check (shim_job_check).  CL_FORMAT, CL_TOOBIG, CL_NOMEM,
 * CL_TRAILING; *j is cleared on failure. */
int shim_job_get(struct buf *b, struct shim_job *j);
/* Bounds and meaning: modes, absolute paths, NAME=value.  CL_FORMAT. */
int shim_job_check(const struct shim_job *j);
void shim_job_clear(struct shim_job *j);
/* Forget the environment, which may carry leased values. */
void shim_job_wipe_env(struct shim_job *j);

/* How it ended (struct shim_exit, words.def), as a file. */
#define SHIM_EXIT_FILE "exit"	/* in the handle directory */

/* What a shim may say: HS_EXITED or HS_KILLED, and a code.  CL_FORMAT. */
int shim_exit_check(const struct shim_exit *x);
/*
 * The record file: opened under a temporary name while the shim may still
 * open files, filled and renamed when the workload is over.  CL_SYSTEM;
 * shim_exit_save may then be tried again.
 */
int shim_exit_open(int dir_fd, int *fdp);
int shim_exit_save(int dir_fd, int fd, const struct shim_exit *x);
/* CL_NOTFOUND when the workload did not end (or its shim was killed),
 * CL_FORMAT, CL_SYSTEM, CL_NOMEM; else x ends with field_clear. */
int shim_exit_load(int dir_fd, struct shim_exit *x);

#endif
