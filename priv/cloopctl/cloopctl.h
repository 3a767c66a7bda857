/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * cloopctl inside: what its files share.  An operator's program, no
 * privileges; all it knows comes through common/client/ctlclient.h.  A
 * command is a row of cloopctl.c's table and a function that returns the exit
 * status: 0 done, 1 refused, 2 usage, 3 hub unreachable, 125 not started.
 */
#ifndef CLOOP_CLOOPCTL_H
#define CLOOP_CLOOPCTL_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/client/ctlclient.h"
#include "common/json/jsonw.h"
#include "common/model/ctlmsg.h"

#define EXIT_DONE 0
#define EXIT_REFUSED 1
#define EXIT_USAGE 2
#define EXIT_NOHUB 3
#define EXIT_NOSTART 125

/* A JSON document of ours: a fleet of MAX_AGENTS rows fits. */
#define MAX_JSON_OUT (256 * 1024 * 1024)

struct ctl {
	const char *socket;
	int json;
	int quiet;
	int color;
	int utc;
	const char *command;	/* for messages */
	struct ctlclient *client;
};

/* A command: argv[0] is its name. */
typedef int ctl_command_fn(struct ctl *c, int argc, char **argv);

ctl_command_fn ctl_cmd_status, ctl_cmd_agents, ctl_cmd_run, ctl_cmd_ps,
    ctl_cmd_show, ctl_cmd_wait, ctl_cmd_logs, ctl_cmd_signal,
    ctl_cmd_kill, ctl_cmd_abandon,
    ctl_cmd_inventory, ctl_cmd_audit, ctl_cmd_reload, ctl_cmd_completion,
    ctl_cmd_secret, ctl_cmd_grant, ctl_cmd_lease, ctl_cmd_cordon,
    ctl_cmd_uncordon, ctl_cmd_drain, ctl_cmd_result;

/* cloopctl.c */
int ctl_usage(struct ctl *c, const char *fmt, ...)
    __attribute__((__format__(__printf__, 2, 3)));
/* The one operand of a command that takes nothing else, after "--" too;
 * NULL when it is missing or not alone. */
const char *ctl_get_operand(int argc, char **argv);
/* All command names, for the completion. */
void ctl_print_commands(FILE *out);

/* cloopctl_out.c */
/* Connect unless connected; prints the reason.  0 or the exit status. */
int ctl_connect(struct ctl *c);
/* Print a refusal in the chosen form; returns the exit status for it. */
int ctl_print_error(struct ctl *c, const struct ctl_error *e);
/* Print the document and a line feed; clears w. */
int ctl_print_json(struct jsonw *w);
/* Ask (body NULL: empty), then call row() for each row of
 * the given type (0: any).  Returns the exit status; errors are printed. */
typedef int ctl_row_fn(struct ctl *c, struct imsg *m, void *arg);
int ctl_ask_rows(struct ctl *c, uint32_t type, const struct buf *body,
    uint32_t row_type, ctl_row_fn *row, void *arg);
/* Decode a row's whole body; CL_FORMAT ends the program with status 1. */
void ctl_get_row(const struct field_table *t, struct imsg *m, void *v);
/* "2m ago", or UTC when asked for; "-" when unknown.  Static buffer. */
const char *ctl_format_when(const struct ctl *c, int64_t wall_ns);
const char *ctl_format_size(uint64_t bytes);
/* RFC 3339 or null. */
void ctl_put_time(struct jsonw *w, const char *key, int64_t wall_ns);
/* A string, or null when empty. */
void ctl_put_str(struct jsonw *w, const char *key, const char *s);
/* A value for the terminal: control characters replaced.  Rotating. */
const char *ctl_clean(const char *s);

/* An aligned table: cells are copied; the first row is the head. */
struct ctl_table;
struct ctl_table *ctl_table_new(size_t ncolumns);
void ctl_table_add(struct ctl_table *t, const char *cell);
void ctl_table_print(struct ctl *c, struct ctl_table *t);	/* frees */
void ctl_table_free(struct ctl_table *t);	/* NULL is fine */
/* The end of a listing: print one of them when it went well; frees both and
 * returns the exit status. */
int ctl_print_rows(struct ctl *c, int status, struct jsonw *w,
    struct ctl_table *t);

/* cloopctl_secret.c: actions of a command, ended by a NULL name. */
struct ctl_verb {
	const char *name;
	ctl_command_fn *run;
};
int ctl_find_verb(struct ctl *c, const struct ctl_verb *verbs, int argc,
    char **argv);

/* cloopctl_lease.c: ask, print the revocations that come of it; 1 when one
 * of them is not confirmed. */
int ctl_ask_outcomes(struct ctl *c, uint32_t type, const struct buf *body);

/* cloopctl_view.c */
/* A list of strings. */
void ctl_put_strs(struct jsonw *w, const char *key, char *const *v,
    size_t n);
/* The document of show, and the members alone. */
void ctl_put_handle(struct jsonw *w, const struct ctl_handle *h);
/* What run and wait exit with for a finished workload. */
int ctl_get_exit_status(const struct ctl_handle *h);

/* cloopctl_result.c: returned work. */
/* A ROW_RESULT belongs to the next ROW_HANDLE. */
void ctl_keep_result(struct imsg *m);
/* The member "result" of a handle's document: null, or what came. */
void ctl_put_result(struct jsonw *w, const char *handle_id);
/* 1 when that member is not null. */
int ctl_has_result(const char *handle_id);
/* "landed with: cloopctl result H" and the like for a terminal; 1 when
 * anything was printed. */
int ctl_print_result(FILE *out, const char *handle_id);

/* cloopctl_ship.c: what goes along with a run. */
struct spec;
struct run_work {
	const char *git;	/* URL[@REF] */
	const char *seed;	/* directory */
	const char *branch_bundle;	/* REPOSITORY:BRANCH */
	const char *write_back;	/* push, bundle */
	const char *branch;
	const char *max_bundle;
	const char *depth;
};
/* Into the spec; *fdp: the bundle in a sealed memfd, -1 without one.
 * Returns the exit status; errors are printed. */
int run_add_work(struct ctl *c, const struct run_work *w, struct spec *s,
    int *fdp);

/* cloopctl_logview.c: kept output of one handle, read through passed fds. */
struct logview;
/* Takes both descriptors. */
struct logview *logview_new(int log_fd, int index_fd);
void logview_free(struct logview *v);
/* Print everything that is new since the last call.  CL_SYSTEM when stdout
 * failed or the files are broken; *np: bytes printed. */
int logview_print(struct ctl *c, struct logview *v, size_t *np);
/* Start at the last n lines / at records of that time / at wire offset. */
int logview_set_tail(struct logview *v, uint64_t nlines);
void logview_set_since(struct logview *v, int64_t wall_ns);
void logview_set_from(struct logview *v, uint64_t wire_off);

/* cloopctl_follow.c: one workload, watched to its end. */
struct follow {
	struct ctl *c;
	uint64_t req;		/* whose rows we read */
	char *handle_id;
	struct logview *view;
	int log_fd;		/* came first, its index has not yet */
	int started;
	int detach;
	int run;		/* events go to stdout as JSON lines */
	int done;		/* CTL_DONE came */
	struct ctl_handle last;
	int have_last;
	uint64_t nsignals;	/* Ctrl-C so far */
};
void follow_init(struct follow *f, struct ctl *c);
void follow_clear(struct follow *f);
/* Wait until both files are there: -1, or the exit status when refused. */
int follow_open(struct follow *f);
/*
 * Read rows until the request is done: output is printed as it comes, a hub
 * that goes away once the workload runs is waited for, Ctrl-C sends TERM and
 * then KILL when `run` is set.  Returns the exit status.
 */
int follow_run(struct follow *f);

#endif
