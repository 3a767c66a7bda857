/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * cloop-enroll inside.  A command returns the exit status: 0 done, 1
 * refused or failed (it has said why), 2 usage.  What a command needs from
 * the hub goes through struct enroll_ops: a running hub's control socket, or
 * the store itself while no hub runs.
 */
#ifndef CLOOP_ENROLL_H
#define CLOOP_ENROLL_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/conf.h"
#include "common/client/rows.h"
#include "common/client/tool.h"
#include "common/model/ctlmsg.h"

struct enroll;
struct store;

/* Rows are zero values before, and to be cleared after EXIT_DONE. */
struct enroll_ops {
	/* What mint would put in when nothing is given. */
	int (*server)(struct enroll *e, char **serverp);
	int (*mint)(struct enroll *e, const struct ctl_mint *m,
	    struct ctl_minted *row);
	/* forget: the agent's rows go, too. */
	int (*revoke)(struct enroll *e, const char *id, const char *reason,
	    int forget, struct ctl_revoked *row);
	/* reason NULL: no longer banned. */
	int (*ban)(struct enroll *e, const char *what, const char *reason,
	    struct ctl_ban *row);
	/* Each row of one of the kinds below. */
	int (*list)(struct enroll *e, const struct row_kind *k, row_fn *fn,
	    void *arg);
	void (*close)(struct enroll *e);
};

struct enroll {
	struct conf_seen seen;		/* first: conf.h */
	struct tool t;
	char *socket;			/* ControlSocket, -s */
	char *state_dir;
	char *key_dir;
	char *external_url;
	char *token_file;		/* join */
	char *credential_file;
	int own_socket;			/* -s was given */
	int own_state;			/* StateDirectory was given */
	const struct enroll_ops *ops;	/* NULL: not connected */
	struct store *store;		/* while no hub runs */
};

/*
 * Options of a command: `--name value`, `--name=value`, in any order with
 * operands; "--" ends them.  An operand may look like an option when it is
 * as long as an id (ids may begin with '-').
 */
struct enroll_option {
	const char *name;	/* without "--"; NULL ends the table */
	const char **valuep;	/* NULL: a flag */
	int *flagp;
	int (*on)(void *arg, const char *value);	/* repeatable */
};
/* 0, or the usage status.  argv[0] is the command; options NULL: none;
 * operands go to operands[max]. */
int enroll_parse_options(struct enroll *e, int argc, char **argv,
    const struct enroll_option *options, void *arg, const char **operands,
    int max, int *noperandsp);

/* cloop_enroll.c */
int enroll_usage(struct enroll *e, const char *fmt, ...)
    __attribute__((__format__(__printf__, 2, 3)));

/* Connect, one way or the other.  0 or the exit status. */
int enroll_open(struct enroll *e);

/* enroll_list.c: what lists are of, and what revoke and mint come back as. */
extern const struct row_kind enroll_agent_kind, enroll_token_kind,
    enroll_ban_kind, enroll_revoked_kind;

typedef int enroll_command_fn(struct enroll *e, int argc, char **argv);
enroll_command_fn enroll_cmd_mint, enroll_cmd_list, enroll_cmd_agents,
    enroll_cmd_show, enroll_cmd_revoke, enroll_cmd_ban, enroll_cmd_unban,
    enroll_cmd_bans, enroll_cmd_delete, enroll_cmd_join;

#endif
