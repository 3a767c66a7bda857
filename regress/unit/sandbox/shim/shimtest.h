/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * A small monitor for tests of the real cloop-shim: makes the directories,
 * sends the job, collects what comes back.  Everything has a deadline.
 */
#ifndef CLOOP_SHIMTEST_H
#define CLOOP_SHIMTEST_H

#include <sys/types.h>

#include "common/msg/imsg.h"
#include "common/output/spool.h"
#include "common/base/limits.h"
#include "common/msg/chan.h"
#include "sandbox/box/shim.h"

struct rig {
	char base[32];		/* below /tmp, removed at the end */
	char root[48], state[48];
	char tree[64], home[64], dir[64], other[64], socket[64];
	uid_t uid;		/* of the workload */
	int is_root;
	/* the job */
	struct shim_job job;
	const char *argv[16];
	const char *env[8];
	char word[32];		/* unique; scripts say "sleep $WORD" */
	char word_env[40];
	const char *hide[4];
	int no_filters;		/* leave SHIM_FILTERS out */
	size_t cut_filters;	/* bytes missing at its end */
	/* one run */
	pid_t shim;
	struct chan chan;
	int dir_fd, wake_fd;
	struct spool spool;
	int64_t pid;
	char failed[MAX_SHIM_ERROR_LEN + 1];
	struct shim_exit end;
	char out[65536];
	size_t out_len;
};

void rig_open(struct rig *g);
void rig_close(struct rig *g);
/* Prepare a job: sh -c script, confined. */
void rig_set(struct rig *g, const char *script);
void rig_set_argv(struct rig *g, const char *const *argv);
/* Start the shim and the job; 1 when started, 0 when refused (failed). */
int rig_start(struct rig *g);
/* Its two halves: a shim that has all but SHIM_GO; that. */
void rig_prepare(struct rig *g);
void rig_go(struct rig *g);
void rig_signal(struct rig *g, int sig);
/* Until SHIM_EXITED; asserts it comes within the time. */
void rig_wait(struct rig *g, int timeout_ms);
/* Until the output holds the text. */
void rig_wait_text(struct rig *g, const char *text);
/* Release and reap the shim; asserts that it goes. */
void rig_finish(struct rig *g);
/* The same for one that goes by itself. */
void rig_wait_end(struct rig *g);
/* All of it: set, start, wait, finish; output in g->out. */
void rig_run(struct rig *g, const char *script);
/* Close our end of the channel; and come back through the socket. */
void rig_abandon(struct rig *g);
void rig_adopt(struct rig *g);
/* Processes that have this word on their command line. */
int rig_count(const char *word);
/* Wait until there are none. */
void rig_wait_gone(const char *word);

#endif
