/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Inside of cloop-git, the job that runs git for a workload.  Prefixes: gj_
 * (job, git_orders.c), ge_ (environment, git_env.c), gn_ (its network,
 * git_net.c), gx_ (running git, git_exec.c), gt_ (files, git_tree.c), gw_
 * (the workspace, git_workspace.c), gs_ (a repository of our own over the
 * tree's objects, git_shadow.c), gr_ (what goes back, git_return.c).
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

#define GJ_TAIL_MAX 400		/* of git's words in an error */
#define GJ_PATH_MAX 4352	/* the tree's path and what we add */
#define GIT_HEX_LEN 40

/* Whose repository git works on. */
enum gj_repo {
	GJ_NO_REPO,		/* git init */
	GJ_TREE,		/* DIR/.git, which we made or made safe */
	GJ_SHADOW		/* ours, over the objects of the tree's */
};

struct gj {
	struct chan chan;
	struct devjob_plan plan;
	struct devjob_result res;
	int has_plan, is_gone;
	int file_fd;		/* JOB_FILE, or -1 */
	int dir_fd;		/* the tree */
	int64_t deadline_at;	/* monotonic ms */
	struct redact *secrets;
	char *error;		/* the first failure's text */
	char shadow[64];	/* directory of GJ_SHADOW, or "" */
	char *host;		/* of plan.repo, with its port */
};

/* Set by SIGTERM: stop, roll back, say so. */
extern volatile int gj_cancelled;

/* --- git_orders.c --- */

/* No core, not to be looked at. */
void gj_harden(void);
/* Descriptor 0 is the channel.  CL_*. */
int gj_open(struct gj *g);
/* Until GO: 1.  -1: the monitor is gone, or no monitor. */
int gj_read_orders(struct gj *g);
/* The result, FAILED with the reason when r is not CL_OK. */
void gj_send_result(struct gj *g, int r);
/* The reason why this job fails; the first one stays.  Returns CL_DENIED. */
int gj_fail(struct gj *g, const char *fmt, ...)
    __attribute__((__format__(__printf__, 2, 3)));
/* A line "workspace: ..." in the workload's own output. */
void gj_say(const struct gj *g, const char *fmt, ...)
    __attribute__((__format__(__printf__, 2, 3)));
/* Out of time, or cancelled: gj_fail, not CL_OK. */
int gj_check(struct gj *g);

/* --- git_env.c --- */

#define GE_NETWORK 0x01		/* https may be spoken */
#define GE_CREDENTIAL 0x02	/* and our credential offered */
#define GE_FILE 0x04		/* a local bundle may be read */

struct ge {
	char **v;		/* NULL-terminated */
	size_t n, cap;
	unsigned int nconfig;
	int error;
};

/*
 * The whole environment of one git process.  `fd` is where the credential
 * can be read once (GE_CREDENTIAL), ca_fd a memfd of PEM roots or -1.
 */
int ge_make(const struct gj *g, enum gj_repo repo, unsigned int flags, int fd,
    int ca_fd, struct ge *e);
void ge_clear(struct ge *e);
/* "host[:port]" of an https URL, owned; NULL. */
char *ge_get_host(const char *url);
/* 1 when both name the same repository. */
int ge_is_same_url(const char *a, const char *b);

/* --- git_net.c --- */

#define GN_PORTS 8		/* the forge's, DNS, a few proxies' */

/* TCP ports a git of GE_NETWORK may connect to; how many. */
size_t gn_find_ports(const struct gj *g, uint16_t *ports, size_t max);
/* In the child, before exec: no network (the filter; NULL: the kernel has
 * none), or that of `flags` only.  CL_*. */
int gn_start_walls(const struct gj *g, unsigned int flags,
    const struct sock_fprog *filter);

/* --- git_exec.c --- */

struct gx {
	const char *what;	/* of error texts: "fetch" */
	const char *const *argv;	/* without "git"; NULL-terminated */
	enum gj_repo repo;
	unsigned int flags;	/* GE_* */
	int out_fd;		/* its stdout; 0: kept in `out` */
	int is_loud;		/* progress of long ones into the output */
	int is_quiet;		/* a failure is no failure of the job */
	uint64_t max_file;	/* RLIMIT_FSIZE; 0: none */
	/* what came of it */
	char *out;		/* owned; at most max_out bytes and a NUL */
	size_t out_len, max_out;
	int status;		/* of wait */
	char tail[GJ_TAIL_MAX * 3 + 1];	/* of stderr, collapsed */
};

/* CL_OK when git ended with 0.  Else gj_fail was called, unless quiet. */
int gx_run(struct gj *g, struct gx *x);
void gx_clear(struct gx *x);
/* A command whose output is one object name: into id.  gj_fail. */
int gx_load_id(struct gj *g, struct gx *x, char id[GIT_HEX_LEN + 1]);

/* --- git_tree.c: the tree is hostile, no symbolic link is followed --- */

/* 1 when it has no entry but our own reserved ones. */
int gt_is_empty(int dir_fd);
/* Remove all of it but WORKDIR_RESERVED names.  CL_SYSTEM. */
int gt_empty(int dir_fd);
/* Remove one entry, whatever it is; absent is CL_OK. */
int gt_remove(int dir_fd, const char *name);
/*
 * Sum of regular files, at most MAX_SIZE_ENTRIES entries.  CL_LIMIT: more
 * entries; *bytesp is what was counted so far.
 */
int gt_get_size(int dir_fd, uint64_t *bytesp);
/* A whole small regular file.  CL_NOTFOUND, CL_FORMAT (what is no file). */
int gt_load(int dir_fd, const char *path, size_t max, char **textp,
    size_t *lenp);
/* Create (replacing what is there) below real directories only. */
int gt_save(int dir_fd, const char *path, const void *data, size_t len);
/* Open a directory below dir_fd through real directories only. */
int gt_open_dir(int dir_fd, const char *path, int *fdp);
/* DIR/.git is a real directory: CL_OK, CL_NOTFOUND, or gj_fail. */
int gt_check_git(struct gj *g);
/* What a repository may refer to outside itself. */
int gt_cut_links(struct gj *g);

/* --- git_shadow.c --- */

/* The commit HEAD of the tree's repository names; git is not asked. */
int gs_find_head(struct gj *g, char id[GIT_HEX_LEN + 1]);
int gs_open(struct gj *g, const char *head);
void gs_close(struct gj *g);
/* Tell the tree's own repository: branch, HEAD, index.  Best effort. */
void gs_save_back(struct gj *g, const char *branch, const char *commit);

/* --- git_workspace.c, git_return.c --- */
int gw_provision(struct gj *g);
int gr_return(struct gj *g);

#endif
