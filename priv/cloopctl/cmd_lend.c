/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * cloopctl: secrets, who may borrow them, what is lent, and devices out of
 * rotation.  A value comes from standard input, a file or a prompt, never
 * from the command line, and lives in a struct secret until it is in the
 * sealed memfd that goes to the hub.  A revocation is done when the device
 * has confirmed it; anything else is said and is exit status 1.
 */
#include <sys/types.h>

#include <bsd/readpassphrase.h>
#include <bsd/string.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/conf.h"
#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/rule.h"
#include "common/base/secret.h"
#include "common/base/util.h"
#include "common/base/xmem.h"
#include "common/model/leasemsg.h"
#include "common/msg/msgcat.h"
#include "cloopctl.h"

/* --------------------------------------------------------------- outcomes */

static void
cmd_put_was_known(struct jsonw *w, const void *row)
{
	const struct ctl_outcome *o = row;

	if (o->acked_at == UTIL_TIME_ZERO)
		jsonw_put_null(w);
	else
		jsonw_put_bool(w, o->known);
}

static const struct row_col outcome_cols[] = {
	COL("agent_id"), COL("agent"), COL("lease_id"), COL("grant_id"),
	COL("state"), COL("action"), COL("reason"), COL("sent_at"),
	COL("acked_at"),
	{ .key = "known", .put = cmd_put_was_known },
	COL("files_removed"), COL("env_scrubbed"), COL("egress_dropped"),
	COL("killed"), COL("error"), COL("widened"),
};
static const struct row_kind outcome_kind = { .type = MSG_ROW_OUTCOME,
	.fields = &ctl_outcome_table, .list = "outcomes",
	COLS(outcome_cols) };

static void
cmd_print_outcome(struct tool *t, const struct ctl_outcome *o)
{
	printf("%s on %s: %s", o->lease_id, tool_clean(o->agent), o->state);
	if (o->acked_at != UTIL_TIME_ZERO)
		printf(" %s; files wiped %lld, variables taken off %zu, "
		    "workloads killed %zu", tool_format_when(t, o->acked_at),
		    (long long)o->files_removed, o->nenv_scrubbed,
		    o->nkilled);
	if (o->acked_at != UTIL_TIME_ZERO && !o->known)
		printf(" (not held there any more)");
	printf("\n");
	if (strcmp(o->state, "unreachable") == 0)
		printf("  unconfirmed: taken back when the device returns\n");
	if (!rule_is_empty(o->error))
		printf("  error: %s\n", tool_clean(o->error));
	if (!rule_is_empty(o->widened))
		printf("  note: %s\n", tool_clean(o->widened));
}

struct cmd_outcomes {
	struct rows rows;
	int nopen;		/* not confirmed */
};

static int
cmd_on_outcome(struct tool *t, void *row, int fd, void *arg)
{
	const struct ctl_outcome *o = row;
	struct cmd_outcomes *all = arg;

	if (strcmp(o->state, "revoked") != 0)
		all->nopen++;
	if (t->json)
		return rows_add(t, row, fd, &all->rows);
	if (!t->quiet)
		cmd_print_outcome(t, o);
	return CL_OK;
}

/* Ask, print the revocations that come of it; 1 when one of them is not
 * confirmed. */
static int
cmd_ask_outcomes(struct tool *t, uint32_t type, const void *v)
{
	struct cmd_outcomes all = { .nopen = 0 };
	int status;

	tool_open_doc(t);
	if (t->json)
		rows_open(&all.rows, t, &outcome_kind);
	status = tool_ask(t, type, v, -1, &outcome_kind, cmd_on_outcome,
	    &all);
	if (t->json)
		(void)rows_close(&all.rows, status);
	status = tool_close_doc(t, status);
	return status == EXIT_DONE && all.nopen > 0 ? EXIT_REFUSED : status;
}

/* ----------------------------------------------------------------- secret */

static const struct row_col secret_cols[] = {
	COL("secret_id"),
	COL_AT("name", 1, "NAME"),
	COL_AT("kind", 2, "KIND"),
	{ .key = "owner", .place = 3, .title = "OWNER", .empty = "shared" },
	COL_AT("version", 4, "VERSION"),
	COL("env_names"), COL("created_at"),
	COL_AT("updated_at", 5, "CHANGED"),
	COL("created_by"),
};
static const struct row_kind secret_kind = { .type = MSG_ROW_SECRET,
	.ask = MSG_CTL_SECRETS, .fields = &ctl_secret_table,
	.list = "secrets", COLS(secret_cols) };

static int
cmd_print_secret(struct tool *t, void *row, int fd, void *arg)
{
	const struct ctl_secret *s = row;
	size_t i;

	(void)fd;
	(void)arg;
	printf("secret     %s (%s)\n", tool_clean(s->name), s->secret_id);
	printf("kind       %s, version %llu\n", tool_clean(s->kind),
	    (unsigned long long)s->version);
	printf("owner      %s\n", rule_is_empty(s->owner) ? "shared" :
	    tool_clean(s->owner));
	printf("variables ");
	for (i = 0; i < s->nenv_names; i++)
		printf(" %s", tool_clean(s->env_names[i]));
	printf("\nchanged    %s by %s\n", tool_format_when(t, s->updated_at),
	    tool_clean(s->created_by));
	return CL_OK;
}

/* The value, from where the operator said.  EXIT_DONE or the status. */
static int
cmd_load_value(struct tool *t, const char *file, struct secret *value)
{
	char line[4096];
	int fd = STDIN_FILENO, r;

	if (file == NULL && isatty(STDIN_FILENO)) {
		if (readpassphrase("value: ", line, sizeof(line),
		    RPP_REQUIRE_TTY) == NULL)
			return cmd_usage(t, "no value");
		r = secret_init(value, line, strlen(line), sizeof(line));
		explicit_bzero(line, sizeof(line));
		return r == CL_OK ? EXIT_DONE : EXIT_REFUSED;
	}
	if (file != NULL && (fd = open(file, O_RDONLY | O_CLOEXEC)) == -1)
		return cmd_usage(t, "%s: %s", file, strerror(errno));
	r = secret_load_fd(value, fd, MAX_SECRET_FILE_LEN);
	if (file != NULL)
		close(fd);
	if (r != CL_OK)
		return cmd_usage(t, "%s: %s", file != NULL ? file :
		    "standard input", r == CL_TOOBIG ? "over 256 KiB" :
		    cl_strerror(r));
	return EXIT_DONE;
}

static int
cmd_send_secret(struct tool *t, const char *name, const char *kind,
    int personal, const struct secret *value)
{
	struct msg_ctl_secret_put req = { value->len, name, kind, personal };
	struct ctl_secret s;
	int fd, r, status;

	if ((status = tool_connect(t)) != EXIT_DONE)
		return status;
	if ((r = util_make_memfd(value->data, value->len, &fd)) != CL_OK)
		return cmd_usage(t, "%s", cl_strerror(r));
	status = tool_ask_one(t, TOOL_REQUEST(CTL_SECRET_PUT, &req), fd,
	    &secret_kind, &s);
	if (status != EXIT_DONE)
		return status;
	if (t->json)
		(void)rows_print(t, &secret_kind, &s);
	else if (!t->quiet)
		printf("%s: version %llu sealed as %s\n", tool_clean(s.name),
		    (unsigned long long)s.version, s.secret_id);
	field_clear(&ctl_secret_table, &s);
	return EXIT_DONE;
}

static int
cmd_secret_put(struct tool *t, int argc, char **argv)
{
	const char *kind = "env", *file = NULL, *name;
	int personal = 0, status;
	const struct cmd_option options[] = {
		{ "kind", &kind, NULL },
		{ "file", &file, NULL },
		{ "personal", NULL, &personal },
		{ NULL, NULL, NULL },
	};
	struct secret value = SECRET_INIT;

	if ((status = cmd_parse(t, argc, argv, options, "one name; the value "
	    "comes from standard input or --file", &name)) != EXIT_DONE)
		return status;
	if ((status = cmd_load_value(t, file, &value)) == EXIT_DONE)
		status = cmd_send_secret(t, name, kind, personal, &value);
	secret_clear(&value);
	return status;
}

static int
cmd_secret_ls(struct tool *t, int argc, char **argv)
{
	struct msg_name req = { "" };

	(void)argv;
	if (argc != 1)
		return cmd_usage(t, "takes no argument");
	return rows_list(t, &secret_kind, &req);
}

static int
cmd_secret_show(struct tool *t, int argc, char **argv)
{
	struct msg_name req = { cmd_get_operand(argc, argv) };

	if (req.name == NULL)
		return cmd_usage(t, "one secret");
	return rows_show(t, TOOL_REQUEST(CTL_SECRETS, &req), &secret_kind,
	    cmd_print_secret, NULL);
}

/* NAME [--reason TEXT], then the outcomes of what was taken back.  type: a
 * row whose body is a msg_name_reason. */
static int
cmd_end_lending(struct tool *t, int argc, char **argv, uint32_t type,
    const char *what)
{
	struct msg_name_reason req = { NULL, "" };
	const struct cmd_option options[] = {
		{ "reason", &req.reason, NULL },
		{ NULL, NULL, NULL },
	};
	int status;

	if ((status = cmd_parse(t, argc, argv, options, what,
	    &req.name)) != EXIT_DONE ||
	    (status = cmd_check_reason(t, req.reason)) != EXIT_DONE)
		return status;
	return cmd_ask_outcomes(t, type, &req);
}

static int
cmd_secret_rm(struct tool *t, int argc, char **argv)
{
	return cmd_end_lending(t, argc, argv, MSG_CTL_SECRET_RM,
	    "one secret");
}

int
cmd_secret(struct tool *t, int argc, char **argv)
{
	static const struct cmd_verb verbs[] = {
		{ "put", cmd_secret_put }, { "ls", cmd_secret_ls },
		{ "show", cmd_secret_show }, { "rm", cmd_secret_rm },
		{ NULL, NULL },
	};

	return cmd_find_verb(t, verbs, argc, argv);
}

/* ------------------------------------------------------------------ grant */

static const char *
cmd_word_grant(const void *row)
{
	const struct ctl_grant *g = row;

	if (g->revoked_at != UTIL_TIME_ZERO)
		return "revoked";
	if (!rule_is_empty(g->superseded_by))
		return "superseded";
	return g->expires_at <= util_wall_ns() ? "expired" : "active";
}

/* An object without members is a blank for people. */
static const char *
cmd_word_constraints(const void *row)
{
	const struct ctl_grant *g = row;

	return strcmp(g->constraints, "{}") == 0 ? "" : g->constraints;
}

static const struct row_col grant_cols[] = {
	COL_AT("grant_id", 1, "GRANT"),
	COL_AT("secret", 2, "SECRET"),
	COL("secret_id"),
	COL_AT("subject", 3, "SUBJECT"),
	{ .place = 4, .title = "STATE", .word = cmd_word_grant },
	{ .key = "constraints", .how = COL_JSON },
	{ .place = 6, .title = "CONSTRAINTS", .word = cmd_word_constraints },
	COL("created_at"), COL("created_by"),
	COL_AT("expires_at", 5, "EXPIRES"),
	COL("revoked_at"), COL("cause"), COL("superseded_by"),
};
static const struct row_kind grant_kind = { .type = MSG_ROW_GRANT,
	.ask = MSG_CTL_GRANTS, .fields = &ctl_grant_table, .list = "grants",
	COLS(grant_cols) };

static int
cmd_print_grant(struct tool *t, void *row, int fd, void *arg)
{
	const struct ctl_grant *g = row;

	(void)fd;
	(void)arg;
	if (!t->quiet)
		printf("%s: %s is lent to %s\n", g->grant_id,
		    tool_clean(g->secret), tool_clean(g->subject));
	return CL_OK;
}

static int
cmd_parse_grant(struct tool *t, int argc, char **argv,
    struct ctl_grant_add *req)
{
	static const struct option options[] = {
		{ "to", required_argument, NULL, 't' },
		{ "ttl", required_argument, NULL, 'l' },
		{ "constraint", required_argument, NULL, 'c' },
		{ "supersedes", required_argument, NULL, 's' },
		{ NULL, 0, NULL, 0 },
	};
	uint64_t s;
	int ch;

	while ((ch = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (ch == 't') {
			free(req->subject);
			req->subject = xstrdup(optarg);
		} else if (ch == 's') {
			free(req->supersedes);
			req->supersedes = xstrdup(optarg);
		} else if (ch == 'l') {
			if (conf_parse_time(optarg, &s) != CL_OK || s == 0 ||
			    s > INT32_MAX)
				return cmd_usage(t, "--ttl %s: not a time",
				    optarg);
			req->ttl_s = (int64_t)s;
		} else if (ch != 'c' || cmd_add_pair(&req->constraints,
		    &req->nconstraints, optarg) != CL_OK)
			return cmd_usage(t, ch == 'c' ? "--constraint is "
			    "KEY=VALUE" : "unknown option");
	}
	if (optind != argc - 1 || req->subject == NULL)
		return cmd_usage(t, "one secret, and --to whom it is lent");
	req->secret = xstrdup(argv[optind]);
	return EXIT_DONE;
}

static int
cmd_grant_add(struct tool *t, int argc, char **argv)
{
	struct ctl_grant_add req;
	int status;

	field_init(&ctl_grant_add_table, &req);
	if ((status = cmd_parse_grant(t, argc, argv, &req)) == EXIT_DONE) {
		field_sort_map(req.constraints, req.nconstraints);
		status = rows_show(t, TOOL_REQUEST(CTL_GRANT_ADD, &req),
		    &grant_kind, cmd_print_grant, NULL);
	}
	field_clear(&ctl_grant_add_table, &req);
	return status;
}

static int
cmd_grant_ls(struct tool *t, int argc, char **argv)
{
	struct msg_name req = { argc == 2 ? argv[1] : "" };

	if (argc > 2)
		return cmd_usage(t, "at most one secret");
	return rows_list(t, &grant_kind, &req);
}

static int
cmd_grant_rm(struct tool *t, int argc, char **argv)
{
	return cmd_end_lending(t, argc, argv, MSG_CTL_GRANT_RM, "one grant");
}

int
cmd_grant(struct tool *t, int argc, char **argv)
{
	static const struct cmd_verb verbs[] = {
		{ "add", cmd_grant_add }, { "ls", cmd_grant_ls },
		{ "rm", cmd_grant_rm }, { NULL, NULL },
	};

	return cmd_find_verb(t, verbs, argc, argv);
}

/* ------------------------------------------------------------------ lease */

static const struct row_col lease_cols[] = {
	COL_AT("lease_id", 1, "LEASE"),
	COL("agent_id"),
	COL_AT("agent", 3, "AGENT"),
	COL_AT("handle_id", 4, "HANDLE"),
	COL("project"), COL("actor"),
	COL_AT("state", 5, "STATE"),
	COL("issued_at"),
	COL_AT("expires_at", 6, "EXPIRES"),
	COL("closed_at"), COL("cause"),
	COL_AT("secrets", 2, "SECRETS"),
	COL("grants"),
	COL_AT("revocation", 7, "REVOCATION"),
};
static const struct row_kind lease_kind = { .type = MSG_ROW_LEASE,
	.ask = MSG_CTL_LEASES, .fields = &ctl_lease_table, .list = "leases",
	COLS(lease_cols) };

static int
cmd_lease_ls(struct tool *t, int argc, char **argv)
{
	struct msg_all req = { 0 };
	int status;
	const struct cmd_option options[] = {
		{ "a", NULL, &req.all },
		{ NULL, NULL, NULL },
	};

	if ((status = cmd_parse(t, argc, argv, options, NULL, NULL)) !=
	    EXIT_DONE)
		return status;
	return rows_list(t, &lease_kind, &req);
}

static int
cmd_lease_revoke(struct tool *t, int argc, char **argv)
{
	struct msg_ctl_lease_revoke req = { NULL, "", 0, "" };
	int status;
	const struct cmd_option options[] = {
		{ "kill", NULL, &req.kill },
		{ "grant", &req.grant, NULL },
		{ "reason", &req.reason, NULL },
		{ NULL, NULL, NULL },
	};

	if ((status = cmd_parse(t, argc, argv, options, "one lease",
	    &req.lease)) != EXIT_DONE ||
	    (status = cmd_check_reason(t, req.reason)) != EXIT_DONE)
		return status;
	if (strlen(req.lease) > 40 || strlen(req.grant) > 40)
		return cmd_usage(t, "no lease or grant has such an id");
	return cmd_ask_outcomes(t, TOOL_REQUEST(CTL_LEASE_REVOKE, &req));
}

static const struct row_col refreshed_cols[] = {
	COL("agent_id"), COL("agent"), COL("lease_id"), COL("known"),
	COL("files_rewritten"), COL("handles"), COL("eventual"),
	COL("unsupported"), COL("error"),
};
static const struct row_kind refreshed_kind = { .type = MSG_ROW_REFRESHED,
	.fields = &ctl_refreshed_table, COLS(refreshed_cols) };

static int
cmd_lease_refresh(struct tool *t, int argc, char **argv)
{
	struct msg_name req = { cmd_get_operand(argc, argv) };
	struct ctl_refreshed f;
	int ok, status;

	if (req.name == NULL)
		return cmd_usage(t, "one lease");
	status = tool_ask_one(t, TOOL_REQUEST(CTL_LEASE_REFRESH, &req), -1,
	    &refreshed_kind, &f);
	if (status != EXIT_DONE)
		return status;
	ok = !f.unsupported && rule_is_empty(f.error);
	if (t->json)
		(void)rows_print(t, &refreshed_kind, &f);
	else if (!t->quiet) {
		printf("%s on %s: %lld files rewritten%s\n", f.lease_id,
		    tool_clean(f.agent), (long long)f.files_rewritten,
		    f.known ? "" : " (not held there any more)");
		if (!ok)
			printf("  error: %s\n", tool_clean(f.error));
	}
	field_clear(&ctl_refreshed_table, &f);
	return ok ? EXIT_DONE : EXIT_REFUSED;
}

int
cmd_lease(struct tool *t, int argc, char **argv)
{
	static const struct cmd_verb verbs[] = {
		{ "ls", cmd_lease_ls }, { "revoke", cmd_lease_revoke },
		{ "refresh", cmd_lease_refresh }, { NULL, NULL },
	};

	return cmd_find_verb(t, verbs, argc, argv);
}

/* ----------------------------------------------------------------- cordon */

static int
cmd_set_state(struct tool *t, int argc, char **argv, uint8_t state)
{
	struct msg_ctl_cordon req = { .admin = state, .reason = "" };
	int no_wait = state != ADMIN_DRAINING, status;
	const struct cmd_option options[] = {
		{ "reason", &req.reason, NULL },
		{ "no-wait", NULL, &no_wait },
		{ NULL, NULL, NULL },
	};

	if ((status = cmd_parse(t, argc, argv, options, "one agent",
	    &req.agent)) != EXIT_DONE ||
	    (status = cmd_check_reason(t, req.reason)) != EXIT_DONE)
		return status;
	req.wait = !no_wait;
	status = cmd_ask_outcomes(t, TOOL_REQUEST(CTL_CORDON, &req));
	if (status == EXIT_DONE && !t->json && !t->quiet)
		printf("%s: %s\n", tool_clean(req.agent),
		    state == ADMIN_READY ? "gets work again" :
		    state == ADMIN_CORDONED ? "gets no new work" :
		    no_wait ? "is being drained" :
		    "drained, gets no new work");
	return status;
}

int
cmd_cordon(struct tool *t, int argc, char **argv)
{
	return cmd_set_state(t, argc, argv, ADMIN_CORDONED);
}

int
cmd_uncordon(struct tool *t, int argc, char **argv)
{
	return cmd_set_state(t, argc, argv, ADMIN_READY);
}

int
cmd_drain(struct tool *t, int argc, char **argv)
{
	return cmd_set_state(t, argc, argv, ADMIN_DRAINING);
}
