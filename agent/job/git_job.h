/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Inside of cloop-git, the job that runs git for a workload.  Prefixes:
 * git_job_ (orders, git_orders.c), git_env_ and git_net_ (what a git is given,
 * git_env.c), git_run_ (git_exec.c), git_tree_ (files, git_tree.c), git_work_
 * (git_workspace.c), git_shadow_ (a repository of our own over the tree's
 * objects, git_shadow.c), git_back_ (what goes back, git_return.c).
 */
#ifndef CLOOP_GIT_JOB_H
#define CLOOP_GIT_JOB_H

#include <sys/types.h>

#include <stddef.h>
#include <stdint.h>

#include "common/model/devjob.h"
#include "common/msg/chan.h"
#include "common/output/redact.h"

struct sock_fprog;

#define GIT_JOB_TAIL_MAX 400		/* of git's words in an error */
#define GIT_JOB_PATH_MAX 4352	/* the tree's path and what we add */
#define GIT_HEX_LEN 40

/* Whose repository git works on. */
enum git_repo {
	GIT_JOB_NO_REPO,		/* git init */
	GIT_JOB_TREE,		/* DIR/.git, which we made or made safe */
	GIT_JOB_SHADOW		/* ours, over the objects of the tree's */
};

struct git_job {
	struct chan chan;
	struct devjob_plan plan;
	struct devjob_result res;
	int has_plan, is_gone;
	int file_fd;		/* JOB_FILE, or -1 */
	int dir_fd;		/* the tree */
	int64_t deadline_at;	/* monotonic ms */
	struct redact *secrets;
	char *error;		/* the first failure's text */
	char shadow[64];	/* directory of GIT_JOB_SHADOW, or "" */
	char *host;		/* of plan.repo, with its port */
};

/* Set by SIGTERM: stop, roll back, say so. */
extern volatile int git_job_cancelled;

/* --- git_orders.c --- */

/* No core, not to be looked at. */
void git_job_harden(void);
/* Descriptor 0 is the channel.  CL_*. */
int git_job_open(struct git_job *g);
/* Until GO: 1.  -1: the monitor is gone, or no monitor. */
int git_job_read_orders(struct git_job *g);
/* The result, FAILED with the reason when r is not CL_OK. */
void git_job_send_result(struct git_job *g, int r);
/* The reason why this job fails; the first one stays.  Returns CL_DENIED. */
int git_job_fail(struct git_job *g, const char *fmt, ...)
    __attribute__((__format__(__printf__, 2, 3)));
/* A line "workspace: ..." in the workload's own output. */
void git_job_say(const struct git_job *g, const char *fmt, ...)
    __attribute__((__format__(__printf__, 2, 3)));
/* Out of time, or cancelled: git_job_fail, not CL_OK. */
int git_job_check(struct git_job *g);

/* --- git_env.c --- */

#define GIT_ENV_NETWORK 0x01		/* https may be spoken */
#define GIT_ENV_CREDENTIAL 0x02	/* and our credential offered */
#define GIT_ENV_FILE 0x04		/* a local bundle may be read */

struct git_env {
	char **v;		/* NULL-terminated */
	size_t n, cap;
	unsigned int nconfig;
	int error;
};

/*
 * The whole environment of one git process.  `fd` is where the credential
 * can be read once (GIT_ENV_CREDENTIAL), ca_fd a memfd of PEM roots or -1.
 */
int git_env_make(const struct git_job *g, enum git_repo repo,
    unsigned int flags, int fd, int ca_fd, struct git_env *e);
void git_env_clear(struct git_env *e);
/* "host[:port]" of an https URL, owned; NULL. */
char *git_env_get_host(const char *url);
/* 1 when both name the same repository. */
int git_env_is_same_url(const char *a, const char *b);

#define GIT_NET_PORTS 8		/* the forge's, DNS, a few proxies' */

/* TCP ports a git of GIT_ENV_NETWORK may connect to; how many. */
size_t git_net_find_ports(const struct git_job *g, uint16_t *ports, size_t max);
/* In the child, before exec: no network (the filter; NULL: the kernel has
 * none), or that of `flags` only.  CL_*. */
int git_net_start_walls(const struct git_job *g, unsigned int flags,
    const struct sock_fprog *filter);

/* --- git_exec.c --- */

struct git_run {
	const char *what;	/* of error texts: "fetch" */
	const char *const *argv;	/* without "git"; NULL-terminated */
	enum git_repo repo;
	unsigned int flags;	/* GIT_ENV_* */
	int out_fd;		/* its stdout; 0: kept in `out` */
	int is_loud;		/* progress of long ones into the output */
	int is_quiet;		/* a failure is no failure of the job */
	uint64_t max_file;	/* RLIMIT_FSIZE; 0: none */
	/* what came of it */
	char *out;		/* owned; at most max_out bytes and a NUL */
	size_t out_len, max_out;
	int status;		/* of wait */
	char tail[GIT_JOB_TAIL_MAX * 3 + 1];	/* of stderr, collapsed */
};

/* CL_OK when git ended with 0.  Else git_job_fail was called, unless quiet. */
int git_run(struct git_job *g, struct git_run *x);
void git_run_clear(struct git_run *x);
/* A command whose output is one object name: into id.  git_job_fail. */
int git_run_load_id(struct git_job *g, struct git_run *x,
    char id[GIT_HEX_LEN + 1]);

/* --- git_tree.c: the tree is hostile, no symbolic link is followed --- */

/* 1 when it has no entry but our own reserved ones. */
int git_tree_is_empty(int dir_fd);
/* Remove all of it but WORKDIR_RESERVED names.  CL_SYSTEM. */
int git_tree_empty(int dir_fd);
/* Remove one entry, whatever it is; absent is CL_OK. */
int git_tree_remove(int dir_fd, const char *name);
/*
 * Sum of regular files, at most MAX_SIZE_ENTRIES entries.  CL_LIMIT: more
 * entries; *bytesp is what was counted so far.
 */
int git_tree_get_size(int dir_fd, uint64_t *bytesp);
/* A whole small regular file.  CL_NOTFOUND, CL_FORMAT (what is no file). */
int git_tree_load(int dir_fd, const char *path, size_t max, char **textp,
    size_t *lenp);
/* Create (replacing what is there) below real directories only. */
int git_tree_save(int dir_fd, const char *path, const void *data, size_t len);
/* Open a directory below dir_fd through real directories only. */
int git_tree_open_dir(int dir_fd, const char *path, int *fdp);
/* DIR/.git is a real directory: CL_OK, CL_NOTFOUND, or git_job_fail. */
int git_tree_check_git(struct git_job *g);
/* What a repository may refer to outside itself. */
int git_tree_cut_links(struct git_job *g);

/* --- git_shadow.c --- */

/* The commit HEAD of the tree's repository names; git is not asked. */
int git_shadow_find_head(struct git_job *g, char id[GIT_HEX_LEN + 1]);
int git_shadow_open(struct git_job *g, const char *head);
void git_shadow_close(struct git_job *g);
/* Tell the tree's own repository: branch, HEAD, index.  Best effort. */
void git_shadow_save_back(struct git_job *g, const char *branch,
    const char *commit);

/* --- git_workspace.c, git_return.c --- */
int git_work_provision(struct git_job *g);
int git_back_return(struct git_job *g);

#endif
