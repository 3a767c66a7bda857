/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Work that goes in and comes back, in the device monitor: what has to happen
 * to a workload's tree before its command and after it.  Prefix work_.
 * work.c makes the plan of a start, work_steps.c runs it as jobs (wjob.h),
 * work_save.c keeps on disk what the next agent needs to give the work back.
 */
#ifndef CLOOP_WORK_H
#define CLOOP_WORK_H

#include <stdint.h>

#include "common/base/secret.h"
#include "common/model/devjob.h"

struct agentd;
struct handledir;
struct redact;
struct shim_exit;
struct spec;
struct wjob;
struct workdir;
struct workload;

/* What survives this process: no secret is in it. */
struct work_record {
	char *tree;
	char *git;
	char *mode;		/* of the write-back; "": none */
	char *branch;
	char *base;
	char *message;
	int64_t max_bundle_bytes;
	char *repo;
	char *username;
	int has_password;	/* there was one, in memory */
	int hide_cloop;
	int is_seeded;
	/* once it is known */
	int is_returned;
	struct devjob_result res;
	int has_project;	/* the file is there */
	char *project_error;
};

struct work {
	struct work_record rec;
	struct devjob_plan prov;	/* op 0: no tree is built */
	struct secret seed;
	char *placement;		/* JSON beside the seed */
	struct secret password;
	int64_t expires_at;
	int tree_fd;
	int file_fd;			/* shipped branch, or -1 */
	struct wjob *job;
	struct work_forge *forge;	/* while its name is looked up */
	int has_forge;			/* it was, for the next job */
	char **pins;			/* of devjob_plan */
	size_t npins;
	char **peers;			/* of shim_job */
	size_t npeers;
	struct redact *redact;		/* of texts to the hub; or NULL */
};

#define WORK_BUNDLE_FILE "bundle"	/* in the handle directory */
#define WORK_PROJECT_FILE "project"

/*
 * What a checked spec asks for.  CL_OK and *workp (NULL: nothing); else
 * CL_DENIED and an owned text for started.error; CL_NOMEM.
 */
int work_make(struct agentd *a, const struct spec *s, const char *handle_id,
    const struct workdir *wd, struct work **workp, char **whyp);
void work_free(struct work *k);
/* Free what a record holds (its table is work_save.c's). */
void work_clear_record(struct work_record *rec);
/* Why this device cannot do what the spec asks for; NULL: it can. */
const char *work_check(const struct agentd *a, const struct spec *s);
/* The git the agent would run: 1, and its path. */
int work_find_git(const struct agentd *a, char *dst, size_t dstlen);

/*
 * Before the command: run what is to be run, then workload_prepared() with
 * NULL or the text for started.error.  Calls back from the loop, or at once.
 */
void work_prepare(struct workload *w);
/* After it: then workload_returned(). */
void work_return(struct workload *w);
void work_cancel(struct workload *w);
/* A child was reaped: 1 when it was one of its jobs'. */
int work_on_exit(struct work *k, pid_t pid);
/* Tell the fetcher what comes back, before the end. */
void work_announce(struct workload *w);

/* CL_*; load: CL_NOTFOUND when there is none. */
int work_save(const struct work *k, const struct handledir *d);
int work_load(struct agentd *a, const struct handledir *d,
    struct work **workp);

#endif
