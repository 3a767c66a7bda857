/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * git for cloopctl, and bundles of branches judged by it.
 *
 * One git process has a clean environment, no user or system configuration,
 * bounded output, time and memory; for bytes that came from a device it is
 * also unable to write outside one directory (where the kernel has
 * Landlock), to open a socket or to do anything else git has no need of
 * (seccomp: it dies).  A bundle a device returned is judged before it lands:
 * its header here, its objects by such a git in a repository of their own
 * that borrows the operator's objects.
 */
#ifndef CLOOP_BUNDLEVET_H
#define CLOOP_BUNDLEVET_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

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
/* Its output as one line; "" when it failed or said anything else. */
const char *gitjob_ask(struct gitjob *j, const char *const *args);
#define GIT_ASK(j, ...)                                                        \
	gitjob_ask(j, (const char *const[]){ __VA_ARGS__, NULL })
#define GIT_RUN(j, ...)                                                        \
	gitjob_run(j, (const char *const[]){ __VA_ARGS__, NULL })

#define VET_PREREQUISITES 64
#define VET_HEADER_MAX 16384
#define VET_COMMITS 1000
#define VET_PATHS 20000
#define VET_PATH_MAX 4096
#define VET_BLOB_MAX (UINT64_C(512) << 20)

struct vet {
	/* what was promised */
	const char *branch;		/* cloop/... */
	const char *commit;
	const char *base;		/* by the hub's record */
	/* found */
	char prerequisite[VET_PREREQUISITES][41];
	size_t nprerequisites;
	off_t pack_off;
	char repo[PATH_MAX];		/* the one of its own; "" */
	size_t npaths;
	unsigned long ncommits;
	int is_head;			/* the operator has it checked out */
	char why[5120];			/* of a refusal */
};

/* Set why; CL_FORMAT. */
int vet_refuse(struct vet *v, const char *fmt, ...)
    __attribute__((__format__(__printf__, 2, 3)));
/* Length and SHA-256 of a file. */
int vet_hash(int fd, int64_t *lenp, char hex[65]);
/* The same, compared.  CL_FORMAT: why says what differs. */
int vet_check_digest(struct vet *v, int fd, uint64_t bytes,
    const char *sha256);
/* One branch, at the promised commit, on the recorded base. */
int vet_check_header(struct vet *v, int fd);
/* One path of a change; link: where a symbolic link points, else NULL.
 * NULL, or what is wrong. */
const char *vet_check_path(const char *path, const char *link);
const char *vet_check_mode(const char *mode);

/*
 * Import into a repository below dir that borrows the objects of `into`,
 * and judge all of the range.  CL_FORMAT: why.  vet_clear() removes it.
 */
int vet_import(struct vet *v, int fd, const char *into);
/* Put the branch into the operator's repository: CL_STATE: why. */
int vet_land(struct vet *v, const char *into);
/* "path | n +-" lines, owned; NULL when git gives none. */
char *vet_format_diffstat(struct vet *v);
void vet_clear(struct vet *v);

#endif
