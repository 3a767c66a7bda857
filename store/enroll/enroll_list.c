/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * cloop-enroll list, agents, show, bans; revoke, ban, unban and delete
 * (BC-42).  Reading commands change nothing; the others are the hub's
 * decision, which drops live sessions, too, when a hub runs.
 */
#include <stdio.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/rule.h"
#include "common/base/util.h"
#include "common/msg/msgcat.h"
#include "enroll.h"

#define LIST_TEXT_MAX 512	/* an operand or a reason in one message */

/* ------------------------------------------------------------------ kinds */

/*
 * One word about an agent.  It is unconfirmed when it was given a credential
 * and went away before it said another word (cloop-enroll(8)).
 */
static const char *
list_word_state(const void *row)
{
	const struct ctl_agent *a = row;

	if (a->banned)
		return "banned";
	if (a->revoked_at != UTIL_TIME_ZERO)
		return "revoked";
	return a->confirmed_at == UTIL_TIME_ZERO &&
	    a->status != AGENT_ONLINE ? "unconfirmed" : "active";
}

static void
list_put_revoked(struct jsonw *w, const void *row)
{
	jsonw_put_bool(w, ((const struct ctl_agent *)row)->revoked_at !=
	    UTIL_TIME_ZERO);
}

static const struct row_col agent_cols[] = {
	{ .key = "agent_id", .place = 1, .title = "AGENT", .width = 16 },
	{ .key = "name", .place = 2, .title = "NAME", .width = 20 },
	{ .place = 3, .title = "STATE", .width = 11,
	  .word = list_word_state },
	{ .key = "revoked", .put = list_put_revoked },
	COL("banned"), COL("confirmed_at"), COL("created_at"),
	{ .key = "last_seen", .place = 4, .title = "SEEN", .width = 9 },
	COL("revoked_at"), COL("enrollment_id"), COL("workdir_root"),
	COL_AT("labels", 5, "LABELS"),
};
const struct row_kind enroll_agent_kind = { .type = MSG_ROW_AGENT,
	.ask = MSG_CTL_AGENTS, .fields = &ctl_agent_table, .list = "agents",
	.none = "no agents", COLS(agent_cols) };

static const struct row_col token_cols[] = {
	{ .key = "enrollment_id", .place = 1, .title = "TOKEN", .width = 16 },
	{ .key = "name", .place = 2, .title = "NAME", .width = 20 },
	{ .key = "created_at", .place = 3, .title = "CREATED", .width = 9 },
	{ .key = "expires_at", .place = 4, .title = "EXPIRES", .width = 9 },
	{ .key = "created_by", .place = 5, .title = "BY", .width = 12 },
	COL("workdir_root"),
	COL_AT("labels", 6, "LABELS"),
};
const struct row_kind enroll_token_kind = { .type = MSG_ROW_ENROLLMENT,
	.ask = MSG_CTL_ENROLLMENTS, .fields = &ctl_enrollment_table,
	.list = "enrollments", .none = "no outstanding tokens",
	COLS(token_cols) };

static const struct row_col ban_cols[] = {
	{ .key = "name", .place = 1, .title = "NAME", .width = 20 },
	COL_AT("reason", 4, "REASON"),
	{ .key = "actor", .place = 3, .title = "BY", .width = 12 },
	{ .key = "at", .place = 2, .title = "BANNED", .width = 9 },
	COL("agents"),
};
const struct row_kind enroll_ban_kind = { .type = MSG_ROW_BAN,
	.ask = MSG_CTL_BANS, .fields = &ctl_ban_table, .list = "bans",
	.none = "no name is banned", COLS(ban_cols) };

static const struct row_col revoked_cols[] = {
	COL("kind"), COL("enrollment_id"), COL("agent_id"),
};
const struct row_kind enroll_revoked_kind = { .type = MSG_ROW_REVOKED,
	.fields = &ctl_revoked_table, COLS(revoked_cols) };

/* ------------------------------------------------------------------ lists */

/* One list as a member of the open document, or as a table. */
static int
list_print(struct enroll *e, const struct row_kind *k)
{
	struct rows r;

	rows_open(&r, &e->t, k);
	return rows_close(&r, e->ops->list(e, k, rows_add, &r));
}

/* A command without operands; second may be NULL. */
static int
list_run(struct enroll *e, int argc, char **argv,
    const struct row_kind *first, const struct row_kind *second)
{
	int n, r;

	if ((r = enroll_parse_options(e, argc, argv, NULL, NULL, NULL, 0,
	    &n)) != 0 || (r = enroll_open(e)) != EXIT_DONE)
		return r;
	tool_open_doc(&e->t);
	r = list_print(e, first);
	if (r == EXIT_DONE && second != NULL) {
		if (!e->t.json)
			putchar('\n');
		r = list_print(e, second);
	}
	return tool_close_doc(&e->t, r);
}

int
enroll_cmd_list(struct enroll *e, int argc, char **argv)
{
	return list_run(e, argc, argv, &enroll_token_kind, NULL);
}

int
enroll_cmd_agents(struct enroll *e, int argc, char **argv)
{
	return list_run(e, argc, argv, &enroll_agent_kind,
	    &enroll_token_kind);
}

int
enroll_cmd_bans(struct enroll *e, int argc, char **argv)
{
	return list_run(e, argc, argv, &enroll_ban_kind, NULL);
}

/* ------------------------------------------------------------------- show */

struct show {
	const char *id;
	size_t n;		/* found */
};

static void
show_print_time(const struct tool *t, const char *label, int64_t at)
{
	char text[UTIL_TIME_MAX];

	if (at == UTIL_TIME_ZERO)
		return;
	util_format_time(at - at % 1000000000, text);
	printf("%-11s%s (%s)\n", label, text, tool_format_when(t, at));
}

static void
show_print_str(const char *label, const char *value)
{
	if (!rule_is_empty(value))
		printf("%-11s%s\n", label, tool_clean(value));
}

static void
show_print_labels(const struct field_pair *v, size_t n)
{
	size_t i;

	printf("%-11s%s", "labels", n == 0 ? "-" : "");
	for (i = 0; i < n; i++)
		printf("%s%s=%s", i > 0 ? "," : "", tool_clean(v[i].key),
		    tool_clean(v[i].value));
	putchar('\n');
}

static void
show_put(struct tool *t, const char *key, const struct row_kind *k,
    const void *row)
{
	jsonw_put_key(&t->doc, key);
	jsonw_open_object(&t->doc);
	rows_put(&t->doc, k, row);
	jsonw_close_object(&t->doc);
}

static int
show_on_token(struct tool *t, void *arg_row, int fd, void *arg)
{
	const struct ctl_enrollment *row = arg_row;
	struct show *s = arg;

	(void)fd;
	if (strcmp(row->enrollment_id, s->id) != 0)
		return CL_OK;
	s->n++;
	if (t->json) {
		show_put(t, "enrollment", &enroll_token_kind, row);
		return CL_OK;
	}
	printf("token      %s, outstanding\n", tool_clean(s->id));
	show_print_str("name", row->name);
	show_print_time(t, "created", row->created_at);
	show_print_time(t, "expires", row->expires_at);
	show_print_str("by", row->created_by);
	show_print_str("root", row->workdir_root);
	show_print_labels(row->labels, row->nlabels);
	return CL_OK;
}

/* An agent is known by its id and by the token that made it. */
static int
show_on_agent(struct tool *t, void *row, int fd, void *arg)
{
	const struct ctl_agent *a = row;
	struct show *s = arg;

	(void)fd;
	if (strcmp(a->agent_id, s->id) != 0 &&
	    !rule_is_equal(a->enrollment_id, s->id))
		return CL_OK;
	if (s->n++ > 0)
		return CL_OK;
	if (t->json) {
		show_put(t, "agent", &enroll_agent_kind, a);
		return CL_OK;
	}
	printf("agent      %s, %s\n", tool_clean(a->agent_id),
	    list_word_state(a));
	show_print_str("name", a->name);
	show_print_str("token", a->enrollment_id);
	show_print_time(t, "enrolled", a->created_at);
	show_print_time(t, "seen", a->last_seen);
	show_print_time(t, "confirmed", a->confirmed_at);
	show_print_time(t, "revoked", a->revoked_at);
	show_print_str("root", a->workdir_root);
	show_print_labels(a->labels, a->nlabels);
	return CL_OK;
}

int
enroll_cmd_show(struct enroll *e, int argc, char **argv)
{
	struct show s = { .id = NULL };
	int n, r;

	if ((r = enroll_parse_options(e, argc, argv, NULL, NULL, &s.id, 1,
	    &n)) != 0)
		return r;
	if (n != 1)
		return enroll_usage(e, "an id is missing");
	if ((r = enroll_open(e)) != EXIT_DONE)
		return r;
	tool_open_doc(&e->t);
	r = e->ops->list(e, &enroll_token_kind, show_on_token, &s);
	if (r == EXIT_DONE && s.n == 0)
		r = e->ops->list(e, &enroll_agent_kind, show_on_agent, &s);
	if (r == EXIT_DONE && s.n == 0)
		r = tool_fail(&e->t, "agent_not_found", "cloop-enroll agents "
		    "shows what there is", "no agent and no outstanding "
		    "token has the id %s", tool_clean(s.id));
	return tool_close_doc(&e->t, r);
}

/* --------------------------------------------------------- revoke, delete */

/* One operand that is not blank, and perhaps --reason; then connect. */
static int
end_parse(struct enroll *e, int argc, char **argv, int with_reason,
    const char *what, const char **operandp, const char **reasonp)
{
	const struct enroll_option options[] = {
		{ "reason", reasonp, NULL, NULL },
		{ NULL, NULL, NULL, NULL }
	};
	int n, r;

	*operandp = *reasonp = NULL;
	if ((r = enroll_parse_options(e, argc, argv, with_reason ? options :
	    NULL, NULL, operandp, 1, &n)) != 0)
		return r;
	if (n != 1 || (*operandp)[strspn(*operandp, " \t\r\n")] == '\0')
		return enroll_usage(e, "%s is missing", what);
	if (*reasonp == NULL)
		*reasonp = "";
	if (strlen(*operandp) > LIST_TEXT_MAX ||
	    strlen(*reasonp) > LIST_TEXT_MAX)
		return enroll_usage(e, "%s or a reason is longer than %d "
		    "bytes", what, LIST_TEXT_MAX);
	return enroll_open(e);
}

static void
end_print(const struct ctl_revoked *rv, int forget)
{
	if (forget)
		printf("deleted %s (agent %s)\n", tool_clean(rv->name),
		    tool_clean(rv->agent_id));
	else {
		printf("revoked %s%s", tool_clean(rv->kind),
		    tool_clean_after(" of ", rv->name));
		if (!rule_is_empty(rv->agent_id))
			printf(" (agent %s)", tool_clean(rv->agent_id));
		putchar('\n');
	}
	if (rv->dropped)
		printf("its session was closed; %llu workloads were failed\n",
		    (unsigned long long)rv->nfailed);
}

static int
end_run(struct enroll *e, int argc, char **argv, int forget)
{
	const char *id, *reason;
	struct ctl_revoked rv;
	int r;

	if ((r = end_parse(e, argc, argv, 1, "an id", &id, &reason)) !=
	    EXIT_DONE || (r = e->ops->revoke(e, id, reason, forget, &rv)) !=
	    EXIT_DONE)
		return r;
	tool_open_doc(&e->t);
	rows_put(&e->t.doc, &enroll_revoked_kind, &rv);
	if (forget)
		tool_put_str(&e->t.doc, "name", rv.name);
	if (!e->t.json)
		end_print(&rv, forget);
	field_clear(&ctl_revoked_table, &rv);
	return tool_close_doc(&e->t, EXIT_DONE);
}

int
enroll_cmd_revoke(struct enroll *e, int argc, char **argv)
{
	return end_run(e, argc, argv, 0);
}

int
enroll_cmd_delete(struct enroll *e, int argc, char **argv)
{
	return end_run(e, argc, argv, 1);
}

/* ------------------------------------------------------------- ban, unban */

static int
ban_run(struct enroll *e, int argc, char **argv, int ban)
{
	const char *what, *reason;
	struct ctl_ban row;
	int r;

	if ((r = end_parse(e, argc, argv, ban, ban ? "a name or an id" :
	    "a name", &what, &reason)) != EXIT_DONE ||
	    (r = e->ops->ban(e, what, ban ? reason : NULL, &row)) !=
	    EXIT_DONE)
		return r;
	if (e->t.json)
		r = rows_print(&e->t, &enroll_ban_kind, &row);
	else {
		printf("%s %s", ban ? "banned" : "no longer banned:",
		    tool_clean(row.name));
		if (row.nagents > 0)
			printf("; %llu agents were revoked",
			    (unsigned long long)row.nagents);
		putchar('\n');
		if (row.ndropped > 0)
			printf("%llu sessions were closed; %llu workloads "
			    "were failed\n",
			    (unsigned long long)row.ndropped,
			    (unsigned long long)row.nfailed);
	}
	field_clear(&ctl_ban_table, &row);
	return r;
}

int
enroll_cmd_ban(struct enroll *e, int argc, char **argv)
{
	return ban_run(e, argc, argv, 1);
}

int
enroll_cmd_unban(struct enroll *e, int argc, char **argv)
{
	return ban_run(e, argc, argv, 0);
}
