/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * cloop-enroll ban, unban, bans and delete (BC-42): who may never come back,
 * and who is forgotten.  The hub decides; this prints what it did.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/util.h"
#include "enroll.h"

#define BAN_TEXT_MAX 512

static const struct enroll_option no_options[] = {
	{ NULL, NULL, NULL, NULL }
};

/* One operand that is not blank, and perhaps --reason. */
static int
ban_parse(struct enroll *e, int argc, char **argv, int with_reason,
    const char *what, const char **operandp, const char **reasonp)
{
	const struct enroll_option options[] = {
		{ "reason", reasonp, NULL, NULL },
		{ NULL, NULL, NULL, NULL }
	};
	int n, r;

	*operandp = *reasonp = NULL;
	if ((r = enroll_parse_options(e, argc, argv, with_reason ? options :
	    no_options, NULL, operandp, 1, &n)) != 0)
		return r;
	if (n != 1 || (*operandp)[strspn(*operandp, " \t\r\n")] == '\0')
		return enroll_usage(e, "%s is missing", what);
	if (*reasonp == NULL)
		*reasonp = "";
	/* What one message to the hub carries. */
	if (strlen(*operandp) > BAN_TEXT_MAX ||
	    strlen(*reasonp) > BAN_TEXT_MAX)
		return enroll_usage(e, "%s or a reason is longer than %d "
		    "bytes", what, BAN_TEXT_MAX);
	return enroll_open(e);
}

static void
ban_put(struct jsonw *w, const struct ctl_ban *b)
{
	jsonw_open_object(w);
	enroll_put_str(w, "name", b->name);
	enroll_put_str(w, "reason", b->reason);
	enroll_put_str(w, "actor", b->actor);
	enroll_put_time(w, "at", b->at);
	jsonw_put_key(w, "agents");
	jsonw_put_uint(w, b->nagents);
	jsonw_close_object(w);
}

static int
ban_print(struct enroll *e, const struct ctl_ban *b, const char *done)
{
	struct jsonw w;

	if (e->json) {
		jsonw_init(&w, ENROLL_JSON_MAX, JSONW_NO_HTML);
		ban_put(&w, b);
		return enroll_print_json(e, &w);
	}
	printf("%s %s", done, enroll_clean(b->name));
	if (b->nagents > 0)
		printf("; %llu agents were revoked",
		    (unsigned long long)b->nagents);
	putchar('\n');
	if (b->ndropped > 0)
		printf("%llu sessions were closed; %llu workloads were "
		    "failed\n", (unsigned long long)b->ndropped,
		    (unsigned long long)b->nfailed);
	return ENROLL_DONE;
}

int
enroll_cmd_ban(struct enroll *e, int argc, char **argv)
{
	const char *what, *reason;
	struct ctl_ban row;
	int r;

	if ((r = ban_parse(e, argc, argv, 1, "a name or an id", &what,
	    &reason)) != ENROLL_DONE)
		return r;
	field_init(&ctl_ban_table, &row);
	if ((r = e->ops->ban(e, what, reason, &row)) == ENROLL_DONE)
		r = ban_print(e, &row, "banned");
	field_clear(&ctl_ban_table, &row);
	return r;
}

int
enroll_cmd_unban(struct enroll *e, int argc, char **argv)
{
	const char *name, *reason;
	struct ctl_ban row;
	int r;

	if ((r = ban_parse(e, argc, argv, 0, "a name", &name, &reason)) !=
	    ENROLL_DONE)
		return r;
	field_init(&ctl_ban_table, &row);
	if ((r = e->ops->unban(e, name, &row)) == ENROLL_DONE)
		r = ban_print(e, &row, "no longer banned:");
	field_clear(&ctl_ban_table, &row);
	return r;
}

struct ban_list {
	struct jsonw w;
	size_t n;
};

static int
ban_on_row(struct enroll *e, const struct ctl_ban *b, void *arg)
{
	struct ban_list *l = arg;
	char when[ENROLL_TIME_LEN];

	l->n++;
	if (e->json) {
		ban_put(&l->w, b);
		return CL_OK;
	}
	if (l->n == 1)
		printf("%-20s  %-9s  %-12s  %s\n", "NAME", "BANNED", "BY",
		    "REASON");
	enroll_format_when(b->at, when);
	printf("%-20s  %-9s  %-12s  %s\n", enroll_clean(b->name), when,
	    enroll_clean(b->actor), b->reason != NULL &&
	    b->reason[0] != '\0' ? enroll_clean(b->reason) : "-");
	return CL_OK;
}

int
enroll_cmd_bans(struct enroll *e, int argc, char **argv)
{
	struct ban_list l = { .n = 0 };
	int n, r;

	if ((r = enroll_parse_options(e, argc, argv, no_options, NULL, NULL,
	    0, &n)) != 0 || (r = enroll_open(e)) != ENROLL_DONE)
		return r;
	jsonw_init(&l.w, ENROLL_JSON_MAX, JSONW_NO_HTML);
	jsonw_open_object(&l.w);
	jsonw_put_key(&l.w, "bans");
	jsonw_open_array(&l.w);
	r = e->ops->bans(e, ban_on_row, &l);
	jsonw_close_array(&l.w);
	jsonw_close_object(&l.w);
	if (r == ENROLL_DONE && e->json)
		return enroll_print_json(e, &l.w);
	jsonw_clear(&l.w);
	if (r == ENROLL_DONE && l.n == 0)
		printf("no name is banned\n");
	return r;
}

static int
delete_print(struct enroll *e, const struct ctl_revoked *rv)
{
	struct jsonw w;

	if (e->json) {
		jsonw_init(&w, ENROLL_JSON_MAX, JSONW_NO_HTML);
		jsonw_open_object(&w);
		enroll_put_str(&w, "kind", rv->kind);
		enroll_put_str(&w, "enrollment_id", rv->enrollment_id);
		enroll_put_str(&w, "agent_id", rv->agent_id);
		enroll_put_str(&w, "name", rv->name);
		jsonw_close_object(&w);
		return enroll_print_json(e, &w);
	}
	printf("deleted %s (agent %s)\n", enroll_clean(rv->name),
	    enroll_clean(rv->agent_id));
	if (rv->dropped)
		printf("its session was closed; %llu workloads were failed\n",
		    (unsigned long long)rv->nfailed);
	return ENROLL_DONE;
}

int
enroll_cmd_delete(struct enroll *e, int argc, char **argv)
{
	const char *id, *reason;
	struct ctl_revoked row;
	int r;

	if ((r = ban_parse(e, argc, argv, 1, "an id", &id, &reason)) !=
	    ENROLL_DONE)
		return r;
	field_init(&ctl_revoked_table, &row);
	if ((r = e->ops->forget(e, id, reason, &row)) == ENROLL_DONE)
		r = delete_print(e, &row);
	field_clear(&ctl_revoked_table, &row);
	return r;
}
