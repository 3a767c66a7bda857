/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The device monitor as a whole: what its modules share.  One of these
 * exists, made by main(); modules get a pointer, there are no globals.
 */
#ifndef CLOOP_AGENTD_H
#define CLOOP_AGENTD_H

#include <sys/types.h>

#include <stdint.h>

#include "common/base/pin.h"
#include "common/base/secret.h"
#include "common/model/url.h"
#include "agent_conf.h"
#include "credential.h"
#include "environment.h"
#include "incoming.h"
#include "shims.h"
#include "workdir.h"

#define AGENTD_EXIT_REFUSED 77	/* permanent end */

struct event_base;
struct fetchctl;
struct workloads;

struct agentd {
	int argc;
	char **argv;
	struct agent_conf conf;
	struct agent_flags flags;
	/* Who we are (startup.c). */
	struct credential cred;
	int enrolled;			/* cred is usable */
	struct bundle bundle;		/* of the flag or the token file */
	const char *token_path;		/* file to delete once enrolled */
	struct secret bearer;		/* token or credential */
	struct url url;
	char *pin_text;			/* pins in force, or NULL */
	struct pin pins[MAX_PINS];
	size_t npins;
	uint8_t *ca;			/* PEM text, or NULL */
	size_t ca_len;
	/* Where we work. */
	int lock_fd;
	struct workdir_root root;
	uid_t work_uid;			/* (uid_t)-1: our own */
	gid_t work_gid;
	char *work_home;		/* of the workload's user, or NULL */
	char *lease_base;		/* where lease directories are made */
	unsigned int max_concurrent;
	unsigned int max_files;		/* RLIMIT_NOFILE */
	int filters_fd;			/* memfd: bpf.h, for every shim */
	uint32_t filters_len;
	int has_kvm;			/* caps_detect.c: last answer, */
	int64_t kvm_at;			/* and when (monotonic ms) */
	/* What runs. */
	struct event_base *base;
	struct shims shims;
	struct fetchctl *fetch;
	struct workloads *workloads;
	struct incoming incoming[MAX_INCOMING];	/* shipped branches */
	int stopping;
	int is_killing;			/* workloads end with us */
	int exit_status;
};

void startup_init(struct agentd *a);
/* -t: what can be said of the configuration alone.  0 or -1, as below. */
int startup_check_conf(struct agentd *a);
/*
 * The start: everything that can fail for good, in order.  Errors are written
 * as one clear line and are final; -1 then.
 */
int startup_load(struct agentd *a);	/* who and where to */
int startup_prepare(struct agentd *a);	/* files, root, lock */
void startup_log_banner(const struct agentd *a);
void startup_clear(struct agentd *a);

/*
 * Keep what welcome gave us: the file first, then the token file goes, then
 * the bearer in memory is exchanged.  CL_*; 0 when it is saved.
 */
int startup_save_enrolled(struct agentd *a, const char *agent_id,
    const char *credential);

#endif
