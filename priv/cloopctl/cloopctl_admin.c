/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * cloopctl: logs, and what changes something or looks at the record:
 * signal, kill, abandon, audit, reload; and the shell completion.
 */
#include <sys/types.h>

#include <bsd/stdlib.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "common/base/conf.h"
#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/util.h"
#include "common/base/xmem.h"
#include "common/json/flatjson.h"
#include "common/msg/msgcat.h"
#include "cloopctl.h"

/* "10m" ago, or a time as RFC 3339. */
static int
admin_parse_since(const char *text, int64_t *wallp)
{
	uint64_t s;

	if (conf_parse_time(text, &s) == CL_OK) {
		if (s > INT64_MAX / 2000000000)
			return CL_TOOBIG;
		*wallp = util_wall_ns() - (int64_t)s * 1000000000;
		return CL_OK;
	}
	return util_parse_time(text, strlen(text), wallp);
}

/* --------------------------------------------------------------- logs */

struct logs_args {
	int follow;
	int64_t tail;		/* -1: all */
	int64_t since;
	uint64_t from;
	const char *handle;
};

static int
logs_parse(struct ctl *c, int argc, char **argv, struct logs_args *a)
{
	static const struct option options[] = {
		{ "follow", no_argument, NULL, 'f' },
		{ "tail", required_argument, NULL, 't' },
		{ "since", required_argument, NULL, 's' },
		{ "from", required_argument, NULL, 'o' },
		{ NULL, 0, NULL, 0 },
	};
	const char *why = NULL;
	int ch;

	a->tail = -1;
	a->since = INT64_MIN;
	while ((ch = getopt_long(argc, argv, "f", options, NULL)) != -1) {
		if (ch == 'f')
			a->follow = 1;
		else if (ch == 't')
			a->tail = strtonum(optarg, 0, LLONG_MAX, &why);
		else if (ch == 'o')
			a->from = (uint64_t)strtonum(optarg, 0, LLONG_MAX,
			    &why);
		else if (ch != 's')
			return ctl_usage(c, "unknown option");
		else if (admin_parse_since(optarg, &a->since) != CL_OK)
			why = "not a time";
		if (why != NULL)
			return ctl_usage(c, "%s: %s", optarg, why);
	}
	if (optind != argc - 1)
		return ctl_usage(c, "one handle");
	a->handle = argv[optind];
	return EXIT_DONE;
}

/* Set the starting point once both files are there. */
static int
logs_seek(struct follow *f, const struct logs_args *a)
{
	int r = CL_OK;

	logview_set_since(f->view, a->since);
	logview_set_from(f->view, a->from);
	if (a->tail >= 0)
		r = logview_set_tail(f->view, (uint64_t)a->tail);
	if (r == CL_OK)
		return EXIT_DONE;
	fprintf(stderr, "cloopctl: logs: %s\n", cl_strerror(r));
	return EXIT_REFUSED;
}

int
ctl_cmd_logs(struct ctl *c, int argc, char **argv)
{
	struct logs_args a;
	struct follow f;
	struct buf body;
	int r, status;

	memset(&a, 0, sizeof(a));
	if ((status = logs_parse(c, argc, argv, &a)) != EXIT_DONE ||
	    (status = ctl_connect(c)) != EXIT_DONE)
		return status;
	follow_init(&f, c);
	f.handle_id = xstrdup(a.handle);
	buf_init(&body, MSG_BODY_MAX);
	buf_put_str(&body, a.handle);
	buf_put_u8(&body, (uint8_t)a.follow);
	r = ctlclient_send(c->client, MSG_CTL_LOGS, &body, -1, &f.req);
	buf_clear(&body);
	if (r == CL_OK)
		status = follow_open(&f);
	if (status == -1 && f.view != NULL)
		status = logs_seek(&f, &a) == EXIT_DONE ? follow_run(&f) :
		    EXIT_REFUSED;
	follow_clear(&f);
	return r == CL_OK ? status : EXIT_NOHUB;
}

/* ------------------------------------------------------- signal, kill */

static int
admin_send_signal(struct ctl *c, const char *handle, uint8_t sig)
{
	struct buf body;
	struct jsonw w;
	int status;

	buf_init(&body, MSG_BODY_MAX);
	buf_put_str(&body, handle);
	buf_put_u8(&body, sig);
	status = ctl_ask_rows(c, MSG_CTL_SIGNAL, &body, 0, NULL, NULL);
	buf_clear(&body);
	if (status != EXIT_DONE || !c->json)
		return status;
	jsonw_init(&w, MAX_JSON_OUT, JSONW_NO_HTML);
	jsonw_open_object(&w);
	ctl_put_str(&w, "handle_id", handle);
	ctl_put_str(&w, "signal", sig == SIG_INTERRUPT ? "interrupt" :
	    sig == SIG_TERMINATE ? "terminate" : "kill");
	jsonw_close_object(&w);
	(void)ctl_print_json(&w);
	return status;
}

int
ctl_cmd_signal(struct ctl *c, int argc, char **argv)
{
	static const struct {
		const char *name;
		uint8_t sig;
	} names[] = {
		{ "INT", SIG_INTERRUPT }, { "TERM", SIG_TERMINATE },
		{ "KILL", SIG_KILL },
	};
	const char *name;
	int i = 1;
	size_t k;

	if (argc > 1 && strcmp(argv[1], "--") == 0)
		i++;
	if (argc - i != 2)
		return ctl_usage(c, "a handle and INT, TERM or KILL");
	name = argv[i + 1];
	if (strncasecmp(name, "SIG", 3) == 0)
		name += 3;
	for (k = 0; k < sizeof(names) / sizeof(names[0]); k++)
		if (strcasecmp(name, names[k].name) == 0)
			return admin_send_signal(c, argv[i], names[k].sig);
	return ctl_usage(c, "%s: not INT, TERM or KILL", argv[i + 1]);
}

int
ctl_cmd_kill(struct ctl *c, int argc, char **argv)
{
	const char *handle = ctl_get_operand(argc, argv);

	if (handle == NULL)
		return ctl_usage(c, "one handle");
	return admin_send_signal(c, handle, SIG_KILL);
}

int
ctl_cmd_abandon(struct ctl *c, int argc, char **argv)
{
	static const struct option options[] = {
		{ "reason", required_argument, NULL, 'r' },
		{ NULL, 0, NULL, 0 },
	};
	const char *reason = "";
	struct buf body;
	struct jsonw w;
	int ch, status;

	while ((ch = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (ch != 'r')
			return ctl_usage(c, "unknown option");
		reason = optarg;
	}
	if (strlen(reason) > MAX_REASON_LEN)
		return ctl_usage(c, "the reason is longer than %d bytes",
		    MAX_REASON_LEN);
	if (optind != argc - 1)
		return ctl_usage(c, "one handle");
	buf_init(&body, MSG_BODY_MAX);
	buf_put_str(&body, argv[optind]);
	buf_put_str(&body, reason);
	status = ctl_ask_rows(c, MSG_CTL_ABANDON, &body, 0, NULL, NULL);
	buf_clear(&body);
	if (status != EXIT_DONE || !c->json)
		return status;
	jsonw_init(&w, MAX_JSON_OUT, JSONW_NO_HTML);
	jsonw_open_object(&w);
	ctl_put_str(&w, "handle_id", argv[optind]);
	ctl_put_str(&w, "state", "failed");
	jsonw_close_object(&w);
	(void)ctl_print_json(&w);
	return status;
}

/* -------------------------------------------------------------- audit */

struct audit_page {
	uint64_t last;
	uint64_t nrows;
};

/* What a row says beside its columns, as key=value. */
static void
audit_print_detail(const struct ctl_audit *a)
{
	struct flatjson doc;
	size_t i;

	flatjson_init(&doc);
	if (a->detail == NULL || flatjson_parse(a->detail, strlen(a->detail),
	    &doc) != CL_OK) {
		printf(" %s", ctl_clean(a->detail));
		return;
	}
	for (i = 0; i < doc.nmembers; i++) {
		if ((a->subject != NULL &&
		    strcmp(doc.member[i].value, a->subject) == 0) ||
		    strcmp(doc.member[i].value, "{}") == 0)
			continue;
		printf(" %s=%s", ctl_clean(doc.member[i].key),
		    ctl_clean(doc.member[i].value));
	}
	flatjson_clear(&doc);
}

static int
audit_on_row(struct ctl *c, struct imsg *m, void *arg)
{
	struct audit_page *page = arg;
	struct ctl_audit a;
	struct jsonw w;

	ctl_get_row(&ctl_audit_table, m, &a);
	page->last = a.seq;
	page->nrows++;
	if (c->json) {
		jsonw_init(&w, MAX_JSON_OUT, JSONW_NO_HTML);
		jsonw_open_object(&w);
		jsonw_put_key(&w, "seq");
		jsonw_put_uint(&w, a.seq);
		ctl_put_time(&w, "at", a.at);
		ctl_put_str(&w, "action", a.action);
		ctl_put_str(&w, "actor", a.actor);
		ctl_put_str(&w, "decision", a.decision);
		ctl_put_str(&w, "entity", a.entity);
		ctl_put_str(&w, "subject", a.subject);
		jsonw_put_key(&w, "detail");
		if (a.detail != NULL && a.detail[0] != '\0')
			jsonw_put_raw(&w, a.detail, strlen(a.detail));
		else
			jsonw_put_null(&w);
		ctl_put_str(&w, "prev", a.prev);
		ctl_put_str(&w, "hash", a.hash);
		jsonw_close_object(&w);
		(void)ctl_print_json(&w);
	} else {
		printf("%5llu  %-8s  %-25s  %-7s  %s", (unsigned long long)
		    a.seq, ctl_format_when(c, a.at), ctl_clean(a.action),
		    a.actor == NULL || a.actor[0] == '\0' ? "device" :
		    ctl_clean(a.actor), ctl_clean(a.subject));
		audit_print_detail(&a);
		putchar('\n');
	}
	field_clear(&ctl_audit_table, &a);
	return EXIT_DONE;
}

static int
audit_list(struct ctl *c, int64_t since, int follow)
{
	struct timespec pause = { .tv_sec = 1 };
	struct audit_page page = { 0, 0 };
	struct buf body;
	int status;

	for (;;) {
		page.nrows = 0;
		buf_init(&body, MSG_BODY_MAX);
		buf_put_u64(&body, page.last);
		buf_put_i64(&body, since);
		buf_put_u32(&body, AUDIT_PAGE);
		status = ctl_ask_rows(c, MSG_CTL_AUDIT, &body, MSG_ROW_AUDIT,
		    audit_on_row, &page);
		buf_clear(&body);
		if (status != EXIT_DONE)
			return status;
		if (page.nrows == AUDIT_PAGE)
			continue;
		if (!follow)
			return EXIT_DONE;
		if (fflush(stdout) != 0)
			return EXIT_REFUSED;
		nanosleep(&pause, NULL);
	}
}

static int
audit_on_verify(struct ctl *c, struct imsg *m, void *arg)
{
	struct ctl_verify v;
	struct jsonw w;
	int *okp = arg;

	ctl_get_row(&ctl_verify_table, m, &v);
	*okp = v.ok;
	if (c->json) {
		jsonw_init(&w, MAX_JSON_OUT, JSONW_NO_HTML);
		jsonw_open_object(&w);
		jsonw_put_key(&w, "ok");
		jsonw_put_bool(&w, v.ok);
		jsonw_put_key(&w, "rows");
		jsonw_put_uint(&w, v.nrows);
		jsonw_put_key(&w, "broken_seq");
		if (v.ok)
			jsonw_put_null(&w);
		else
			jsonw_put_uint(&w, v.broken_seq);
		ctl_put_str(&w, "reason", v.reason);
		ctl_put_str(&w, "head", v.head);
		jsonw_close_object(&w);
		(void)ctl_print_json(&w);
	} else if (v.ok) {
		printf("%llu rows, chain whole, head %s\n",
		    (unsigned long long)v.nrows, ctl_clean(v.head));
	} else {
		fprintf(stderr, "cloopctl: audit: row %llu: %s\n",
		    (unsigned long long)v.broken_seq, ctl_clean(v.reason));
	}
	field_clear(&ctl_verify_table, &v);
	return EXIT_DONE;
}

int
ctl_cmd_audit(struct ctl *c, int argc, char **argv)
{
	static const struct option options[] = {
		{ "since", required_argument, NULL, 's' },
		{ NULL, 0, NULL, 0 },
	};
	int64_t since = UTIL_TIME_ZERO;
	int ch, follow = 0, ok = 0, status;

	while ((ch = getopt_long(argc, argv, "f", options, NULL)) != -1) {
		if (ch == 'f')
			follow = 1;
		else if (ch != 's')
			return ctl_usage(c, "unknown option");
		else if (admin_parse_since(optarg, &since) != CL_OK)
			return ctl_usage(c, "%s: not a time", optarg);
	}
	if (optind == argc)
		return audit_list(c, since, follow);
	if (optind != argc - 1 || strcmp(argv[optind], "verify") != 0)
		return ctl_usage(c, "%s: not verify", argv[optind]);
	status = ctl_ask_rows(c, MSG_CTL_VERIFY, NULL, MSG_ROW_VERIFY,
	    audit_on_verify, &ok);
	return status == EXIT_DONE && !ok ? EXIT_REFUSED : status;
}

/* --------------------------------------------------- reload, completion */

int
ctl_cmd_reload(struct ctl *c, int argc, char **argv)
{
	int status;

	(void)argv;
	if (argc != 1)
		return ctl_usage(c, "takes no argument");
	status = ctl_ask_rows(c, MSG_CTL_RELOAD, NULL, 0, NULL, NULL);
	if (status == EXIT_DONE && c->json)
		printf("{\"reloaded\":true}\n");
	else if (status == EXIT_DONE && !c->quiet)
		printf("configuration reloaded\n");
	return status;
}

int
ctl_cmd_completion(struct ctl *c, int argc, char **argv)
{
	const char *shell = ctl_get_operand(argc, argv);

	if (shell == NULL)
		return ctl_usage(c, "bash, zsh or fish");
	if (strcmp(shell, "fish") == 0) {
		printf("complete -c cloopctl -n __fish_use_subcommand -f -a '");
		ctl_print_commands(stdout);
		printf("'\n");
		return EXIT_DONE;
	}
	if (strcmp(shell, "bash") != 0 && strcmp(shell, "zsh") != 0)
		return ctl_usage(c, "%s: not bash, zsh or fish", shell);
	if (strcmp(shell, "zsh") == 0)
		printf("autoload -U +X bashcompinit && bashcompinit\n");
	printf("_cloopctl() {\n\tlocal cur=${COMP_WORDS[COMP_CWORD]}\n"
	    "\tif [ \"$COMP_CWORD\" -eq 1 ]; then\n"
	    "\t\tCOMPREPLY=($(compgen -W '");
	ctl_print_commands(stdout);
	printf("' -- \"$cur\"))\n"
	    "\telif [ \"${COMP_WORDS[COMP_CWORD-1]}\" = --on ]; then\n"
	    "\t\tCOMPREPLY=($(compgen -W \"$(cloopctl agents 2>/dev/null |\n"
	    "\t\t    awk 'NR > 1 { print $1 }')\" -- \"$cur\"))\n"
	    "\tfi\n}\ncomplete -F _cloopctl cloopctl\n");
	return EXIT_DONE;
}
