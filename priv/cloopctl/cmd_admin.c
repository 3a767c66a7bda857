/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * cloopctl: what changes a workload or looks at the record: signal, kill,
 * abandon, audit.
 */
#include <sys/types.h>

#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/rule.h"
#include "common/base/util.h"
#include "common/json/flatjson.h"
#include "common/msg/msgcat.h"
#include "cloopctl.h"

/* ------------------------------------------------------- signal, abandon */

/* Ask; what was done is a document of two members, and no words. */
static int
cmd_do(struct tool *t, uint32_t type, const void *v, const char *handle,
    const char *key, const char *value)
{
	tool_open_doc(t);
	tool_put_str(&t->doc, "handle_id", handle);
	tool_put_str(&t->doc, key, value);
	return tool_close_doc(t, tool_ask(t, type, v, -1, NULL, NULL,
	    NULL));
}

static int
cmd_send_signal(struct tool *t, const char *handle, uint8_t sig)
{
	struct msg_ctl_signal req = { handle, sig };

	return cmd_do(t, TOOL_REQUEST(CTL_SIGNAL, &req), handle, "signal",
	    sig == SIG_INTERRUPT ? "interrupt" :
	    sig == SIG_TERMINATE ? "terminate" : "kill");
}

int
cmd_signal(struct tool *t, int argc, char **argv)
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
		return cmd_usage(t, "a handle and INT, TERM or KILL");
	name = argv[i + 1];
	if (strncasecmp(name, "SIG", 3) == 0)
		name += 3;
	for (k = 0; k < sizeof(names) / sizeof(names[0]); k++)
		if (strcasecmp(name, names[k].name) == 0)
			return cmd_send_signal(t, argv[i], names[k].sig);
	return cmd_usage(t, "%s: not INT, TERM or KILL", argv[i + 1]);
}

int
cmd_kill(struct tool *t, int argc, char **argv)
{
	const char *handle = cmd_get_operand(argc, argv);

	return handle != NULL ? cmd_send_signal(t, handle, SIG_KILL) :
	    cmd_usage(t, "one handle");
}

int
cmd_abandon(struct tool *t, int argc, char **argv)
{
	struct msg_name_reason req = { NULL, "" };
	const struct cmd_option options[] = {
		{ "reason", &req.reason, NULL },
		{ NULL, NULL, NULL },
	};
	int status;

	if ((status = cmd_parse(t, argc, argv, options, "one handle",
	    &req.name)) != EXIT_DONE ||
	    (status = cmd_check_reason(t, req.reason)) != EXIT_DONE)
		return status;
	return cmd_do(t, TOOL_REQUEST(CTL_ABANDON, &req), req.name, "state",
	    "failed");
}

/* ------------------------------------------------------------------ audit */

struct cmd_page {
	uint64_t last;
	uint64_t nrows;
};

static const struct row_col audit_cols[] = {
	COL("seq"), COL("at"), COL("action"), COL("actor"), COL("decision"),
	COL("entity"), COL("subject"),
	{ .key = "detail", .how = COL_JSON },
	COL("prev"), COL("hash"),
};
static const struct row_kind audit_kind = { .type = MSG_ROW_AUDIT,
	.fields = &ctl_audit_table, COLS(audit_cols) };

/* What a row says beside its columns, as key=value. */
static void
cmd_print_detail(const struct ctl_audit *a)
{
	struct flatjson doc;
	size_t i;

	flatjson_init(&doc);
	if (a->detail == NULL || flatjson_parse(a->detail, strlen(a->detail),
	    &doc) != CL_OK) {
		printf(" %s", tool_clean(a->detail));
		return;
	}
	for (i = 0; i < doc.nmembers; i++) {
		if ((a->subject != NULL &&
		    strcmp(doc.member[i].value, a->subject) == 0) ||
		    strcmp(doc.member[i].value, "{}") == 0)
			continue;
		printf(" %s=%s", tool_clean(doc.member[i].key),
		    tool_clean(doc.member[i].value));
	}
	flatjson_clear(&doc);
}

static int
cmd_on_audit(struct tool *t, void *row, int fd, void *arg)
{
	const struct ctl_audit *a = row;
	struct cmd_page *page = arg;

	(void)fd;
	page->last = a->seq;
	page->nrows++;
	if (t->json) {
		(void)rows_print(t, &audit_kind, a);
		return CL_OK;
	}
	printf("%5llu  %-8s  %-25s  %-7s  %s", (unsigned long long)a->seq,
	    tool_format_when(t, a->at), tool_clean(a->action),
	    rule_is_empty(a->actor) ? "device" : tool_clean(a->actor),
	    tool_clean(a->subject));
	cmd_print_detail(a);
	putchar('\n');
	return CL_OK;
}

static int
cmd_list_audit(struct tool *t, int64_t since, int follow)
{
	struct timespec pause = { .tv_sec = 1 };
	struct cmd_page page = { 0, 0 };
	struct msg_ctl_audit req = { .since = since, .limit = AUDIT_PAGE };
	int status;

	for (;;) {
		page.nrows = 0;
		req.after_seq = page.last;
		status = tool_ask(t, TOOL_REQUEST(CTL_AUDIT, &req), -1,
		    &audit_kind, cmd_on_audit, &page);
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

static void
cmd_put_broken(struct jsonw *w, const void *row)
{
	const struct ctl_verify *v = row;

	if (v->ok)
		jsonw_put_null(w);
	else
		jsonw_put_uint(w, v->broken_seq);
}

static const struct row_col verify_cols[] = {
	COL("ok"), COL("rows"),
	{ .key = "broken_seq", .put = cmd_put_broken },
	COL("reason"), COL("head"),
};
static const struct row_kind verify_kind = { .type = MSG_ROW_VERIFY,
	.fields = &ctl_verify_table, COLS(verify_cols) };

static int
cmd_verify_audit(struct tool *t)
{
	struct ctl_verify v;
	int ok, status;

	status = tool_ask_one(t, TOOL_REQUEST(CTL_VERIFY, NULL), -1,
	    &verify_kind, &v);
	if (status != EXIT_DONE)
		return status;
	ok = v.ok;
	if (t->json)
		(void)rows_print(t, &verify_kind, &v);
	else if (ok)
		printf("%llu rows, chain whole, head %s\n",
		    (unsigned long long)v.nrows, tool_clean(v.head));
	else
		fprintf(stderr, "cloopctl: audit: row %llu: %s\n",
		    (unsigned long long)v.broken_seq, tool_clean(v.reason));
	field_clear(&ctl_verify_table, &v);
	return ok ? EXIT_DONE : EXIT_REFUSED;
}

int
cmd_audit(struct tool *t, int argc, char **argv)
{
	static const struct option options[] = {
		{ "since", required_argument, NULL, 's' },
		{ NULL, 0, NULL, 0 },
	};
	int64_t since = UTIL_TIME_ZERO;
	int ch, follow = 0;

	while ((ch = getopt_long(argc, argv, "f", options, NULL)) != -1) {
		if (ch == 'f')
			follow = 1;
		else if (ch != 's')
			return cmd_usage(t, "unknown option");
		else if (cmd_parse_since(optarg, &since) != CL_OK)
			return cmd_usage(t, "%s: not a time", optarg);
	}
	if (optind == argc)
		return cmd_list_audit(t, since, follow);
	if (optind != argc - 1 || strcmp(argv[optind], "verify") != 0)
		return cmd_usage(t, "%s: not verify", argv[optind]);
	return cmd_verify_audit(t);
}
