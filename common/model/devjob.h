/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * What the device monitor and a job of a workload say to each other
 * (msgcat.h, dev-job): what to do with the tree before the command runs and
 * after it ended.  A job runs as the workload's user in a shim of its own;
 * its descriptor 0 is the channel.  The plan is one memfd, wiped by whoever
 * read it; the result fits one message.
 */
#ifndef CLOOP_DEVJOB_H
#define CLOOP_DEVJOB_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/secret.h"
#include "common/msg/field.h"

enum devjob_op {
	DEVJOB_PROVISION = 1,	/* cloop-git: build the tree */
	DEVJOB_RETURN,		/* cloop-git: commit, bundle or push */
	DEVJOB_SEED,		/* cloop-seed: place the project's document */
	DEVJOB_PROJECT		/* cloop-seed: take its result */
};

#define MAX_DEVJOB_LEN (8 * 1048576)	/* a plan: a seed and change */

/* Empty strings and zeros are "not asked for".  All of it is owned. */
struct devjob_plan {
	uint64_t op;		/* enum devjob_op */
	char *dir;		/* the tree's path; the cwd of the job too */
	char *git;		/* absolute path of git */
	char *helper;		/* absolute path of cloop-git */
	char **env;		/* proxy variables that pass, NAME=value */
	size_t nenv;
	char **pins;		/* of the names git connects to,
				 * "host:port:address,..." */
	size_t npins;
	uint8_t *ca;		/* PEM roots for git; NULL: the system's */
	size_t ca_len;
	int64_t timeout_s;
	/* --- the workspace --- */
	char *kind;		/* "git", "bundle" */
	char *repo;
	char *upstream;
	char *ref;
	int64_t depth;
	int64_t size_limit_mb;
	char *branch;		/* shipped, or to be returned */
	char *head;
	int64_t bytes;		/* of the shipped bundle */
	char *sha256;
	char **shallow;
	size_t nshallow;
	int hide_cloop;		/* keep .cloop out of commits */
	/* --- the credential --- */
	char *username;
	struct secret password;	/* len 0: none */
	/* --- the write-back --- */
	char *mode;		/* "push", "bundle" */
	char *base;
	char *message;
	int64_t max_bundle_bytes;
	int failed;		/* the run did: only its own commits */
	/* --- the seed --- */
	struct secret seed;	/* gzip */
	char *record;		/* JSON of .cloop/sandbox-run.json */
};

enum devjob_outcome { DEVJOB_OK = 1, DEVJOB_FAILED, DEVJOB_SKIPPED };

struct devjob_result {
	uint64_t outcome;	/* enum devjob_outcome */
	char *error;		/* FAILED; the reason when SKIPPED */
	char *head;		/* provision: HEAD; return: its commit */
	int64_t commits;
	int64_t files_changed;
	int pushed;
	int64_t bytes;		/* written to the file it was given */
	char *sha256;		/* of them */
};

extern const struct field_table devjob_plan_table;
extern const struct field_table devjob_result_table;

#endif
