/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * cloopctl inside: what its files share.  An operator's program, no
 * privileges; all it knows comes through common/client.  A command is a row
 * of cloopctl.c's table and a function that returns the exit status: 0 done,
 * 1 refused, 2 usage, 3 hub unreachable, 125 not started.
 */
#ifndef CLOOP_CLOOPCTL_H
#define CLOOP_CLOOPCTL_H

#include <sys/types.h>

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/client/rows.h"
#include "common/client/tool.h"
#include "common/model/ctlmsg.h"

#define EXIT_NOSTART 125

/* A command: argv[0] is its name. */
typedef int cmd_fn(struct tool *t, int argc, char **argv);

cmd_fn cmd_status, cmd_agents, cmd_run, cmd_ps, cmd_show, cmd_wait, cmd_logs,
    cmd_signal, cmd_kill, cmd_abandon, cmd_inventory, cmd_audit, cmd_reload,
    cmd_secret, cmd_grant, cmd_lease, cmd_cordon, cmd_uncordon, cmd_drain,
    cmd_result;

/* cloopctl.c */
int cmd_usage(struct tool *t, const char *fmt, ...)
    __attribute__((__format__(__printf__, 2, 3)));
/*
 * An option of a command: what it sets.  The table ends with a NULL name; a
 * name of one letter is -x.
 */
struct cmd_option {
	const char *name;
	const char **valuep;	/* takes a value; NULL: a flag */
	int *flagp;
};
/*
 * Options, then exactly one operand, which is `what` in words; what NULL: no
 * operand.  EXIT_DONE, or the status of wrong use.
 */
int cmd_parse(struct tool *t, int argc, char **argv,
    const struct cmd_option *options, const char *what,
    const char **operandp);
/* The one operand of a command that takes nothing else, after "--" too;
 * NULL when it is missing or not alone. */
const char *cmd_get_operand(int argc, char **argv);
/* "KEY=VALUE": CL_OK, or CL_FORMAT without a key. */
int cmd_add_pair(struct field_pair **v, size_t *n, const char *text);
/* --reason: EXIT_DONE when it fits. */
int cmd_check_reason(struct tool *t, const char *reason);
/* Actions of a command, ended by a NULL name. */
struct cmd_verb {
	const char *name;
	cmd_fn *run;
};
int cmd_find_verb(struct tool *t, const struct cmd_verb *verbs, int argc,
    char **argv);

/* cmd_view.c */
extern const struct row_kind handle_kind;
/* What run and wait exit with for a finished workload. */
int cmd_get_exit_status(const struct ctl_handle *h);

/* cmd_result.c: returned work. */
/* A ROW_RESULT belongs to the next ROW_HANDLE; on_aside of struct tool. */
void cmd_keep_result(struct tool *t, struct imsg *m, union msg_any *v);
/* The value of "result" in a handle's document: null, or what came. */
void cmd_put_result(struct jsonw *w, const char *handle_id);
/* 1 when that is not null. */
int cmd_has_result(const char *handle_id);
/* "landed with: cloopctl result H" and the like for a terminal. */
void cmd_print_result(FILE *out, const char *handle_id);

/* cmd_ship.c: what goes along with a run. */
struct spec;
struct cmd_ship {
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
int cmd_add_work(struct tool *t, const struct cmd_ship *w, struct spec *s,
    int *fdp);

/* logview.c: kept output of one handle, read through passed fds. */
struct logview;
/* Takes both descriptors. */
struct logview *logview_new(int log_fd, int index_fd);
void logview_free(struct logview *v);
/* Print everything that is new since the last call.  CL_SYSTEM when stdout
 * failed or the files are broken; *np: bytes printed. */
int logview_print(struct tool *t, struct logview *v, size_t *np);
/* Start at the last n lines / at records of that time / at wire offset. */
int logview_set_tail(struct logview *v, uint64_t nlines);
void logview_set_since(struct logview *v, int64_t wall_ns);
void logview_set_from(struct logview *v, uint64_t wire_off);

/*
 * 1: the files are what they were when it had ended, or that is not known
 * (still running).  0: they are not, which has been said.
 */
int logview_check(struct logview *v, const struct ctl_log *log,
    const struct ctl_log *index);

/* follow.c: one workload, watched to its end. */
struct follow {
	struct tool *t;
	uint64_t req;		/* whose rows we read */
	char *handle_id;
	struct logview *view;
	int log_fd;		/* came first, its index has not yet */
	struct ctl_log log, index;	/* what they are to be */
	int started;
	int detach;
	int run;		/* events go to stdout as JSON lines */
	int done;		/* CTL_DONE came */
	struct ctl_handle last;
	int have_last;
	uint64_t nsignals;	/* Ctrl-C so far */
};
void follow_init(struct follow *f, struct tool *t);
void follow_clear(struct follow *f);
/* Send a request with its body and fd (taken); EXIT_DONE, or the hub is
 * gone. */
int follow_ask(struct follow *f, uint32_t type, const void *v, int fd);
/*
 * Read rows until the request is done: output is printed as it comes, a hub
 * that goes away once the workload runs is waited for, Ctrl-C sends TERM and
 * then KILL when `run` is set.  Returns the exit status.
 */
int follow_run(struct follow *f);
/* "10m" ago, or a time as RFC 3339. */
int cmd_parse_since(const char *text, int64_t *wallp);

#endif
