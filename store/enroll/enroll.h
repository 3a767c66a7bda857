/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * cloop-enroll inside.  A command returns the exit status: 0 done, 1
 * refused or failed (it has said why), 2 usage.  What a command needs from
 * the hub goes through struct enroll_ops: a running hub's control socket
 * (enroll_hub.c), or the store itself while no hub runs (enroll_local.c).
 */
#ifndef CLOOP_ENROLL_H
#define CLOOP_ENROLL_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/conf.h"
#include "common/client/ctlclient.h"
#include "common/json/jsonw.h"
#include "common/model/ctlmsg.h"

#define ENROLL_DONE 0
#define ENROLL_REFUSED 1
#define ENROLL_USAGE 2

#define ENROLL_JSON_MAX (64 * 1024 * 1024)
#define ENROLL_TIME_LEN 64

struct enroll;
struct store;

typedef int enroll_agent_fn(struct enroll *e, const struct ctl_agent *a,
    void *arg);
typedef int enroll_row_fn(struct enroll *e, const struct ctl_enrollment *row,
    void *arg);

typedef int enroll_ban_fn(struct enroll *e, const struct ctl_ban *b,
    void *arg);

struct enroll_ops {
	/* What mint would put in when nothing is given. */
	int (*server)(struct enroll *e, char **serverp);
	int (*mint)(struct enroll *e, const struct ctl_mint *m,
	    struct ctl_minted *row);
	int (*revoke)(struct enroll *e, const char *id, const char *reason,
	    struct ctl_revoked *row);
	int (*ban)(struct enroll *e, const char *what, const char *reason,
	    struct ctl_ban *row);
	int (*unban)(struct enroll *e, const char *name,
	    struct ctl_ban *row);
	int (*bans)(struct enroll *e, enroll_ban_fn *fn, void *arg);
	/* As revoke, and the agent's rows go. */
	int (*forget)(struct enroll *e, const char *id, const char *reason,
	    struct ctl_revoked *row);
	int (*agents)(struct enroll *e, enroll_agent_fn *fn, void *arg);
	int (*enrollments)(struct enroll *e, enroll_row_fn *fn, void *arg);
	void (*close)(struct enroll *e);
};

struct enroll {
	struct conf_seen seen;		/* first: conf.h */
	char *socket;			/* ControlSocket, -s */
	char *state_dir;
	char *key_dir;
	char *external_url;
	char *token_file;		/* join */
	char *credential_file;
	int own_socket;			/* -s was given */
	int own_state;			/* StateDirectory was given */
	int json;
	const char *command;
	const struct enroll_ops *ops;	/* NULL: not connected */
	struct ctlclient *client;	/* enroll_hub.c */
	struct store *store;		/* enroll_local.c */
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
/* 0, or the usage status.  argv[0] is the command; operands go to
 * operands[max]. */
int enroll_parse_options(struct enroll *e, int argc, char **argv,
    const struct enroll_option *options, void *arg, const char **operands,
    int max, int *noperandsp);

/* cloop_enroll.c */
int enroll_usage(struct enroll *e, const char *fmt, ...)
    __attribute__((__format__(__printf__, 2, 3)));

/* enroll_out.c */
/* Print a refusal in the chosen form; ENROLL_REFUSED. */
int enroll_print_error(struct enroll *e, const struct ctl_error *err);
int enroll_fail(struct enroll *e, const char *code, const char *remedy,
    const char *fmt, ...) __attribute__((__format__(__printf__, 4, 5)));
int enroll_print_json(struct enroll *e, struct jsonw *w);
/* A member whose value is null when it is empty. */
void enroll_put_str(struct jsonw *w, const char *key, const char *s);
void enroll_put_time(struct jsonw *w, const char *key, int64_t t);
void enroll_put_labels(struct jsonw *w, const struct field_pair *v, size_t n);
/* "in 15m", "3h ago", "-". */
void enroll_format_when(int64_t t, char dst[ENROLL_TIME_LEN]);
/* Control characters of outside text become '?'; rotating buffers. */
const char *enroll_clean(const char *s);
/* For a shell: bare, or in single quotes; owned by the caller. */
char *enroll_format_quoted(const char *value);

/* Connect, one way or the other.  0 or the exit status. */
int enroll_open(struct enroll *e);
int enroll_open_hub(struct enroll *e, struct ctl_error *err);
int enroll_open_local(struct enroll *e);

typedef int enroll_command_fn(struct enroll *e, int argc, char **argv);
enroll_command_fn enroll_cmd_mint, enroll_cmd_list, enroll_cmd_agents,
    enroll_cmd_show, enroll_cmd_revoke, enroll_cmd_ban, enroll_cmd_unban,
    enroll_cmd_bans, enroll_cmd_delete, enroll_cmd_join;

#endif
