/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * cloopctl: secrets and grants.  A value comes from standard input, a file
 * or a prompt, never from the command line, and lives in a struct secret
 * until it is in the sealed memfd that goes to the hub.
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
#include "common/base/secret.h"
#include "common/base/util.h"
#include "common/base/xmem.h"
#include "common/model/ctllease.h"
#include "common/msg/msgcat.h"
#include "cloopctl.h"

int
ctl_find_verb(struct ctl *c, const struct ctl_verb *verbs, int argc,
    char **argv)
{
	size_t i;

	for (i = 0; argc > 1 && verbs[i].name != NULL; i++)
		if (strcmp(argv[1], verbs[i].name) == 0)
			return verbs[i].run(c, argc - 1, argv + 1);
	return argc > 1 ? ctl_usage(c, "%s: no such action", argv[1]) :
	    ctl_usage(c, "an action is missing");
}

/* ------------------------------------------------------------------ secret */

struct secret_rows {
	struct jsonw w;
	struct ctl_table *t;	/* NULL: one document, no table */
};

static void
secret_put_members(struct jsonw *w, const struct ctl_secret *s)
{
	ctl_put_str(w, "secret_id", s->secret_id);
	ctl_put_str(w, "name", s->name);
	ctl_put_str(w, "kind", s->kind);
	ctl_put_str(w, "owner", s->owner);
	jsonw_put_key(w, "version");
	jsonw_put_uint(w, s->version);
	ctl_put_strs(w, "env_names", s->env_names, s->nenv_names);
	ctl_put_time(w, "created_at", s->created_at);
	ctl_put_time(w, "updated_at", s->updated_at);
	ctl_put_str(w, "created_by", s->created_by);
}

static void
secret_print(struct ctl *c, const struct ctl_secret *s)
{
	size_t i;

	printf("secret     %s (%s)\n", ctl_clean(s->name), s->secret_id);
	printf("kind       %s, version %llu\n", ctl_clean(s->kind),
	    (unsigned long long)s->version);
	printf("owner      %s\n", s->owner != NULL && s->owner[0] != '\0' ?
	    ctl_clean(s->owner) : "shared");
	printf("variables ");
	for (i = 0; i < s->nenv_names; i++)
		printf(" %s", ctl_clean(s->env_names[i]));
	printf("\nchanged    %s by %s\n", ctl_format_when(c, s->updated_at),
	    ctl_clean(s->created_by));
}

static int
secret_on_row(struct ctl *c, struct imsg *m, void *arg)
{
	struct secret_rows *rows = arg;
	struct ctl_secret s;
	char version[24];

	ctl_get_row(&ctl_secret_table, m, &s);
	if (c->json) {
		jsonw_open_object(&rows->w);
		secret_put_members(&rows->w, &s);
		jsonw_close_object(&rows->w);
	} else if (rows->t != NULL) {
		snprintf(version, sizeof(version), "%llu",
		    (unsigned long long)s.version);
		ctl_table_add(rows->t, s.name);
		ctl_table_add(rows->t, s.kind);
		ctl_table_add(rows->t, s.owner != NULL &&
		    s.owner[0] != '\0' ? s.owner : "shared");
		ctl_table_add(rows->t, version);
		ctl_table_add(rows->t, ctl_format_when(c, s.updated_at));
	} else
		secret_print(c, &s);
	field_clear(&ctl_secret_table, &s);
	return EXIT_DONE;
}

/* The value, from where the operator said.  EXIT_DONE or the status. */
static int
secret_load_value(struct ctl *c, const char *file, struct secret *value)
{
	char line[4096];
	int fd = STDIN_FILENO, r;

	if (file == NULL && isatty(STDIN_FILENO)) {
		if (readpassphrase("value: ", line, sizeof(line),
		    RPP_REQUIRE_TTY) == NULL)
			return ctl_usage(c, "no value");
		r = secret_init(value, line, strlen(line), sizeof(line));
		explicit_bzero(line, sizeof(line));
		return r == CL_OK ? EXIT_DONE : EXIT_REFUSED;
	}
	if (file != NULL && (fd = open(file, O_RDONLY | O_CLOEXEC)) == -1)
		return ctl_usage(c, "%s: %s", file, strerror(errno));
	r = secret_load_fd(value, fd, MAX_SECRET_FILE_LEN);
	if (file != NULL)
		close(fd);
	if (r != CL_OK)
		return ctl_usage(c, "%s: %s", file != NULL ? file :
		    "standard input", r == CL_TOOBIG ? "over 256 KiB" :
		    cl_strerror(r));
	return EXIT_DONE;
}

static int
secret_send(struct ctl *c, const char *name, const char *kind, int personal,
    const struct secret *value)
{
	struct ctl_error e = { .code = "internal" };
	struct ctl_secret s;
	struct buf body, row;
	struct jsonw w;
	int fd, r, status;

	field_init(&ctl_secret_table, &s);
	if ((status = ctl_connect(c)) != EXIT_DONE)
		return status;
	if ((r = util_make_memfd(value->data, value->len, &fd)) != CL_OK)
		return ctl_usage(c, "%s", cl_strerror(r));
	buf_init(&body, MSG_BODY_MAX);
	buf_put_u32(&body, (uint32_t)value->len);
	buf_put_str(&body, name);
	buf_put_str(&body, kind);
	buf_put_u8(&body, (uint8_t)personal);
	buf_init(&row, MSG_BODY_MAX);
	r = ctlclient_ask(c->client, MSG_CTL_SECRET_PUT, &body, fd,
	    MSG_ROW_SECRET, &row, &e);
	buf_clear(&body);
	if (r == CL_OK)
		r = field_get(&ctl_secret_table, &row, &s);
	if (r == CL_OK && c->json) {
		jsonw_init(&w, MAX_JSON_OUT, JSONW_NO_HTML);
		jsonw_open_object(&w);
		secret_put_members(&w, &s);
		jsonw_close_object(&w);
		(void)ctl_print_json(&w);
	} else if (r == CL_OK && !c->quiet)
		printf("%s: version %llu sealed as %s\n", ctl_clean(s.name),
		    (unsigned long long)s.version, s.secret_id);
	if (r == CL_OK)
		field_clear(&ctl_secret_table, &s);
	buf_clear(&row);
	return r == CL_OK ? EXIT_DONE : ctl_print_error(c, &e);
}

static int
secret_cmd_put(struct ctl *c, int argc, char **argv)
{
	static const struct option options[] = {
		{ "kind", required_argument, NULL, 'k' },
		{ "file", required_argument, NULL, 'f' },
		{ "personal", no_argument, NULL, 'p' },
		{ NULL, 0, NULL, 0 },
	};
	const char *kind = "env", *file = NULL;
	struct secret value = SECRET_INIT;
	int ch, personal = 0, status;

	while ((ch = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (ch) {
		case 'k':
			kind = optarg;
			break;
		case 'f':
			file = optarg;
			break;
		case 'p':
			personal = 1;
			break;
		default:
			return ctl_usage(c, "unknown option");
		}
	}
	if (optind != argc - 1)
		return ctl_usage(c, "one name; the value comes from standard "
		    "input or --file");
	if ((status = secret_load_value(c, file, &value)) == EXIT_DONE)
		status = secret_send(c, argv[optind], kind, personal, &value);
	secret_clear(&value);
	return status;
}

static int
secret_list(struct ctl *c, const char *name)
{
	static const char *const head[] = { "NAME", "KIND", "OWNER",
		"VERSION", "CHANGED" };
	struct secret_rows rows = { .t = NULL };
	struct buf body;
	int status;
	size_t i;

	jsonw_init(&rows.w, MAX_JSON_OUT, JSONW_NO_HTML);
	if (name[0] == '\0') {
		rows.t = ctl_table_new(5);
		for (i = 0; i < 5; i++)
			ctl_table_add(rows.t, head[i]);
		jsonw_open_object(&rows.w);
		jsonw_put_key(&rows.w, "secrets");
		jsonw_open_array(&rows.w);
	}
	buf_init(&body, MSG_BODY_MAX);
	buf_put_str(&body, name);
	status = ctl_ask_rows(c, MSG_CTL_SECRETS, &body, MSG_ROW_SECRET,
	    secret_on_row, &rows);
	buf_clear(&body);
	if (name[0] == '\0') {
		jsonw_close_array(&rows.w);
		jsonw_close_object(&rows.w);
	}
	return ctl_print_rows(c, status, &rows.w, rows.t);
}

static int
secret_cmd_ls(struct ctl *c, int argc, char **argv)
{
	(void)argv;
	return argc == 1 ? secret_list(c, "") :
	    ctl_usage(c, "takes no argument");
}

static int
secret_cmd_show(struct ctl *c, int argc, char **argv)
{
	const char *name = ctl_get_operand(argc, argv);

	return name != NULL ? secret_list(c, name) :
	    ctl_usage(c, "one secret");
}

/* NAME [--reason TEXT], then the outcomes of what was taken back. */
static int
secret_cmd_end(struct ctl *c, int argc, char **argv, uint32_t type)
{
	static const struct option options[] = {
		{ "reason", required_argument, NULL, 'r' },
		{ NULL, 0, NULL, 0 },
	};
	const char *reason = "";
	struct buf body;
	int ch, status;

	while ((ch = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (ch != 'r')
			return ctl_usage(c, "unknown option");
		reason = optarg;
	}
	if (optind != argc - 1)
		return ctl_usage(c, type == MSG_CTL_SECRET_RM ? "one secret" :
		    "one grant");
	if (strlen(reason) > MAX_REASON_LEN)
		return ctl_usage(c, "--reason: over %d bytes",
		    MAX_REASON_LEN);
	buf_init(&body, MSG_BODY_MAX);
	buf_put_str(&body, argv[optind]);
	buf_put_str(&body, reason);
	status = ctl_ask_outcomes(c, type, &body);
	buf_clear(&body);
	return status;
}

static int
secret_cmd_rm(struct ctl *c, int argc, char **argv)
{
	return secret_cmd_end(c, argc, argv, MSG_CTL_SECRET_RM);
}

int
ctl_cmd_secret(struct ctl *c, int argc, char **argv)
{
	static const struct ctl_verb verbs[] = {
		{ "put", secret_cmd_put }, { "ls", secret_cmd_ls },
		{ "show", secret_cmd_show }, { "rm", secret_cmd_rm },
		{ NULL, NULL },
	};

	return ctl_find_verb(c, verbs, argc, argv);
}

/* ------------------------------------------------------------------- grant */

static void
grant_put_members(struct jsonw *w, const struct ctl_grant *g)
{
	ctl_put_str(w, "grant_id", g->grant_id);
	ctl_put_str(w, "secret", g->secret);
	ctl_put_str(w, "secret_id", g->secret_id);
	ctl_put_str(w, "subject", g->subject);
	jsonw_put_key(w, "constraints");
	jsonw_put_raw(w, g->constraints, strlen(g->constraints));
	ctl_put_time(w, "created_at", g->created_at);
	ctl_put_str(w, "created_by", g->created_by);
	ctl_put_time(w, "expires_at", g->expires_at);
	ctl_put_time(w, "revoked_at", g->revoked_at);
	ctl_put_str(w, "cause", g->cause);
	ctl_put_str(w, "superseded_by", g->superseded_by);
}

static const char *
grant_format_state(const struct ctl_grant *g)
{
	if (g->revoked_at != UTIL_TIME_ZERO)
		return "revoked";
	if (g->superseded_by != NULL && g->superseded_by[0] != '\0')
		return "superseded";
	return g->expires_at <= util_wall_ns() ? "expired" : "active";
}

static int
grant_on_row(struct ctl *c, struct imsg *m, void *arg)
{
	struct secret_rows *rows = arg;
	struct ctl_grant g;

	ctl_get_row(&ctl_grant_table, m, &g);
	if (c->json) {
		jsonw_open_object(&rows->w);
		grant_put_members(&rows->w, &g);
		jsonw_close_object(&rows->w);
	} else if (rows->t != NULL) {
		ctl_table_add(rows->t, g.grant_id);
		ctl_table_add(rows->t, g.secret);
		ctl_table_add(rows->t, g.subject);
		ctl_table_add(rows->t, grant_format_state(&g));
		ctl_table_add(rows->t, ctl_format_when(c, g.expires_at));
		ctl_table_add(rows->t, strcmp(g.constraints, "{}") == 0 ?
		    "" : g.constraints);
	} else if (!c->quiet)
		printf("%s: %s is lent to %s\n", g.grant_id,
		    ctl_clean(g.secret), ctl_clean(g.subject));
	field_clear(&ctl_grant_table, &g);
	return EXIT_DONE;
}

static int
grant_add_constraint(struct ctl_grant_add *req, const char *text)
{
	const char *eq = strchr(text, '=');

	if (eq == NULL || eq == text)
		return CL_FORMAT;
	req->constraints = xreallocarray(req->constraints,
	    req->nconstraints + 1, sizeof(*req->constraints));
	req->constraints[req->nconstraints].key = xstrndup(text,
	    (size_t)(eq - text));
	req->constraints[req->nconstraints++].value = xstrdup(eq + 1);
	return CL_OK;
}

static int
grant_parse(struct ctl *c, int argc, char **argv, struct ctl_grant_add *req)
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
				return ctl_usage(c, "--ttl %s: not a time",
				    optarg);
			req->ttl_s = (int64_t)s;
		} else if (ch != 'c' || grant_add_constraint(req, optarg) !=
		    CL_OK)
			return ctl_usage(c, ch == 'c' ? "--constraint is "
			    "KEY=VALUE" : "unknown option");
	}
	if (optind != argc - 1 || req->subject == NULL)
		return ctl_usage(c, "one secret, and --to whom it is lent");
	req->secret = xstrdup(argv[optind]);
	return EXIT_DONE;
}

static int
grant_cmd_add(struct ctl *c, int argc, char **argv)
{
	struct secret_rows rows = { .t = NULL };
	struct ctl_grant_add req;
	struct buf body;
	int status;

	field_init(&ctl_grant_add_table, &req);
	if ((status = grant_parse(c, argc, argv, &req)) == EXIT_DONE) {
		jsonw_init(&rows.w, MAX_JSON_OUT, JSONW_NO_HTML);
		buf_init(&body, MSG_BODY_MAX);
		field_sort_map(req.constraints, req.nconstraints);
		field_put(&ctl_grant_add_table, &req, &body);
		status = buf_error(&body) != CL_OK ? ctl_usage(c,
		    "a value is too long") : ctl_ask_rows(c,
		    MSG_CTL_GRANT_ADD, &body, MSG_ROW_GRANT, grant_on_row,
		    &rows);
		buf_clear(&body);
		if (status == EXIT_DONE && c->json)
			(void)ctl_print_json(&rows.w);
	}
	field_clear(&ctl_grant_add_table, &req);
	return status;
}

static int
grant_cmd_ls(struct ctl *c, int argc, char **argv)
{
	static const char *const head[] = { "GRANT", "SECRET", "SUBJECT",
		"STATE", "EXPIRES", "CONSTRAINTS" };
	struct secret_rows rows;
	struct buf body;
	int status;
	size_t i;

	if (argc > 2)
		return ctl_usage(c, "at most one secret");
	rows.t = ctl_table_new(6);
	for (i = 0; i < 6; i++)
		ctl_table_add(rows.t, head[i]);
	jsonw_init(&rows.w, MAX_JSON_OUT, JSONW_NO_HTML);
	jsonw_open_object(&rows.w);
	jsonw_put_key(&rows.w, "grants");
	jsonw_open_array(&rows.w);
	buf_init(&body, MSG_BODY_MAX);
	buf_put_str(&body, argc == 2 ? argv[1] : "");
	status = ctl_ask_rows(c, MSG_CTL_GRANTS, &body, MSG_ROW_GRANT,
	    grant_on_row, &rows);
	buf_clear(&body);
	jsonw_close_array(&rows.w);
	jsonw_close_object(&rows.w);
	return ctl_print_rows(c, status, &rows.w, rows.t);
}

static int
grant_cmd_rm(struct ctl *c, int argc, char **argv)
{
	return secret_cmd_end(c, argc, argv, MSG_CTL_GRANT_RM);
}

int
ctl_cmd_grant(struct ctl *c, int argc, char **argv)
{
	static const struct ctl_verb verbs[] = {
		{ "add", grant_cmd_add }, { "ls", grant_cmd_ls },
		{ "rm", grant_cmd_rm }, { NULL, NULL },
	};

	return ctl_find_verb(c, verbs, argc, argv);
}
