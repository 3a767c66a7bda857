/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * cloop-enroll list, agents, show and revoke.  Reading commands change
 * nothing; revoke is the hub's decision, which drops the live session too
 * when a hub runs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bsd/string.h>

#include "common/base/err.h"
#include "common/base/util.h"
#include "common/msg/msgcat.h"
#include "enroll.h"

static const struct enroll_option no_options[] = {
	{ NULL, NULL, NULL, NULL }
};

struct list {
	struct jsonw w;
	size_t n;
	const char *id;		/* show: only this one */
};

static void
list_put_enrollment(struct jsonw *w, const struct ctl_enrollment *row)
{
	jsonw_open_object(w);
	enroll_put_str(w, "enrollment_id", row->enrollment_id);
	enroll_put_str(w, "name", row->name);
	enroll_put_time(w, "created_at", row->created_at);
	enroll_put_time(w, "expires_at", row->expires_at);
	enroll_put_str(w, "created_by", row->created_by);
	enroll_put_str(w, "workdir_root", row->workdir_root);
	enroll_put_labels(w, row->labels, row->nlabels);
	jsonw_close_object(w);
}

static void
list_put_agent(struct jsonw *w, const struct ctl_agent *a)
{
	jsonw_open_object(w);
	enroll_put_str(w, "agent_id", a->agent_id);
	enroll_put_str(w, "name", a->name);
	jsonw_put_key(w, "revoked");
	jsonw_put_bool(w, a->revoked_at != UTIL_TIME_ZERO);
	jsonw_put_key(w, "banned");
	jsonw_put_bool(w, a->banned);
	enroll_put_time(w, "confirmed_at", a->confirmed_at);
	enroll_put_time(w, "created_at", a->created_at);
	enroll_put_time(w, "last_seen", a->last_seen);
	enroll_put_time(w, "revoked_at", a->revoked_at);
	enroll_put_str(w, "enrollment_id", a->enrollment_id);
	enroll_put_str(w, "workdir_root", a->workdir_root);
	enroll_put_labels(w, a->labels, a->nlabels);
	jsonw_close_object(w);
}

/*
 * One word about an agent.  It is unconfirmed when it was given a credential
 * and went away before it said another word (cloop-enroll(8)).
 */
static const char *
list_format_state(const struct ctl_agent *a)
{
	if (a->banned)
		return "banned";
	if (a->revoked_at != UTIL_TIME_ZERO)
		return "revoked";
	return a->confirmed_at == UTIL_TIME_ZERO &&
	    a->status != AGENT_ONLINE ? "unconfirmed" : "active";
}

static void
list_print_labels(const struct field_pair *v, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		printf("%s%s=%s", i > 0 ? "," : "", enroll_clean(v[i].key),
		    enroll_clean(v[i].value));
	if (n == 0)
		putchar('-');
}

static int
list_on_enrollment(struct enroll *e, const struct ctl_enrollment *row,
    void *arg)
{
	struct list *l = arg;
	char expires[ENROLL_TIME_LEN], created[ENROLL_TIME_LEN];

	l->n++;
	if (e->json) {
		list_put_enrollment(&l->w, row);
		return CL_OK;
	}
	if (l->n == 1)
		printf("%-16s  %-20s  %-9s  %-9s  %-12s  %s\n", "TOKEN",
		    "NAME", "CREATED", "EXPIRES", "BY", "LABELS");
	enroll_format_when(row->created_at, created);
	enroll_format_when(row->expires_at, expires);
	printf("%-16s  %-20s  %-9s  %-9s  %-12s  ",
	    enroll_clean(row->enrollment_id), enroll_clean(row->name),
	    created, expires, enroll_clean(row->created_by));
	list_print_labels(row->labels, row->nlabels);
	putchar('\n');
	return CL_OK;
}

static int
list_on_agent(struct enroll *e, const struct ctl_agent *a, void *arg)
{
	struct list *l = arg;
	char seen[ENROLL_TIME_LEN];

	l->n++;
	if (e->json) {
		list_put_agent(&l->w, a);
		return CL_OK;
	}
	if (l->n == 1)
		printf("%-16s  %-20s  %-11s  %-9s  %s\n", "AGENT", "NAME",
		    "STATE", "SEEN", "LABELS");
	enroll_format_when(a->last_seen, seen);
	printf("%-16s  %-20s  %-11s  %-9s  ", enroll_clean(a->agent_id),
	    enroll_clean(a->name), list_format_state(a), seen);
	list_print_labels(a->labels, a->nlabels);
	putchar('\n');
	return CL_OK;
}

/* One list as the member `key` of the open document, or as a table. */
static int
list_enrollments(struct enroll *e, struct list *l)
{
	int r;

	jsonw_put_key(&l->w, "enrollments");
	jsonw_open_array(&l->w);
	l->n = 0;
	r = e->ops->enrollments(e, list_on_enrollment, l);
	jsonw_close_array(&l->w);
	if (r == ENROLL_DONE && l->n == 0 && !e->json)
		printf("no outstanding tokens\n");
	return r;
}

int
enroll_cmd_list(struct enroll *e, int argc, char **argv)
{
	struct list l = { .n = 0 };
	int n, r;

	if ((r = enroll_parse_options(e, argc, argv, no_options, NULL, NULL,
	    0, &n)) != 0 || (r = enroll_open(e)) != ENROLL_DONE)
		return r;
	jsonw_init(&l.w, ENROLL_JSON_MAX, JSONW_NO_HTML);
	jsonw_open_object(&l.w);
	r = list_enrollments(e, &l);
	jsonw_close_object(&l.w);
	if (r == ENROLL_DONE && e->json)
		return enroll_print_json(e, &l.w);
	jsonw_clear(&l.w);
	return r;
}

int
enroll_cmd_agents(struct enroll *e, int argc, char **argv)
{
	struct list l = { .n = 0 };
	int n, r;

	if ((r = enroll_parse_options(e, argc, argv, no_options, NULL, NULL,
	    0, &n)) != 0 || (r = enroll_open(e)) != ENROLL_DONE)
		return r;
	jsonw_init(&l.w, ENROLL_JSON_MAX, JSONW_NO_HTML);
	jsonw_open_object(&l.w);
	jsonw_put_key(&l.w, "agents");
	jsonw_open_array(&l.w);
	r = e->ops->agents(e, list_on_agent, &l);
	jsonw_close_array(&l.w);
	if (r == ENROLL_DONE && !e->json) {
		if (l.n == 0)
			printf("no agents\n");
		putchar('\n');
	}
	if (r == ENROLL_DONE)
		r = list_enrollments(e, &l);
	jsonw_close_object(&l.w);
	if (r == ENROLL_DONE && e->json)
		return enroll_print_json(e, &l.w);
	jsonw_clear(&l.w);
	return r;
}

/* ------------------------------------------------------------------ show */

static void
show_print_time(const char *label, int64_t t)
{
	char text[UTIL_TIME_MAX], when[ENROLL_TIME_LEN];

	if (t == UTIL_TIME_ZERO)
		return;
	util_format_time(t - t % 1000000000, text);
	enroll_format_when(t, when);
	printf("%-11s%s (%s)\n", label, text, when);
}

static void
show_print_str(const char *label, const char *value)
{
	if (value != NULL && *value != '\0')
		printf("%-11s%s\n", label, enroll_clean(value));
}

static int
show_on_enrollment(struct enroll *e, const struct ctl_enrollment *row,
    void *arg)
{
	struct list *l = arg;

	if (strcmp(row->enrollment_id, l->id) != 0)
		return CL_OK;
	l->n++;
	if (e->json) {
		jsonw_put_key(&l->w, "enrollment");
		list_put_enrollment(&l->w, row);
		return CL_OK;
	}
	printf("token      %s, outstanding\n", enroll_clean(l->id));
	show_print_str("name", row->name);
	show_print_time("created", row->created_at);
	show_print_time("expires", row->expires_at);
	show_print_str("by", row->created_by);
	show_print_str("root", row->workdir_root);
	printf("%-11s", "labels");
	list_print_labels(row->labels, row->nlabels);
	putchar('\n');
	return CL_OK;
}

/* An agent is known by its id and by the token that made it. */
static int
show_on_agent(struct enroll *e, const struct ctl_agent *a, void *arg)
{
	struct list *l = arg;

	if (strcmp(a->agent_id, l->id) != 0 && (a->enrollment_id == NULL ||
	    strcmp(a->enrollment_id, l->id) != 0))
		return CL_OK;
	if (l->n++ > 0)
		return CL_OK;
	if (e->json) {
		jsonw_put_key(&l->w, "agent");
		list_put_agent(&l->w, a);
		return CL_OK;
	}
	printf("agent      %s, %s\n", enroll_clean(a->agent_id),
	    list_format_state(a));
	show_print_str("name", a->name);
	show_print_str("token", a->enrollment_id);
	show_print_time("enrolled", a->created_at);
	show_print_time("seen", a->last_seen);
	show_print_time("confirmed", a->confirmed_at);
	show_print_time("revoked", a->revoked_at);
	show_print_str("root", a->workdir_root);
	printf("%-11s", "labels");
	list_print_labels(a->labels, a->nlabels);
	putchar('\n');
	return CL_OK;
}

int
enroll_cmd_show(struct enroll *e, int argc, char **argv)
{
	struct list l = { .id = NULL };
	int n, r;

	if ((r = enroll_parse_options(e, argc, argv, no_options, NULL, &l.id,
	    1, &n)) != 0)
		return r;
	if (n != 1)
		return enroll_usage(e, "an id is missing");
	if ((r = enroll_open(e)) != ENROLL_DONE)
		return r;
	jsonw_init(&l.w, ENROLL_JSON_MAX, JSONW_NO_HTML);
	jsonw_open_object(&l.w);
	r = e->ops->enrollments(e, show_on_enrollment, &l);
	if (r == ENROLL_DONE && l.n == 0)
		r = e->ops->agents(e, show_on_agent, &l);
	jsonw_close_object(&l.w);
	if (r == ENROLL_DONE && l.n == 0)
		r = enroll_fail(e, "agent_not_found", "cloop-enroll agents "
		    "shows what there is", "no agent and no outstanding "
		    "token has the id %s", enroll_clean(l.id));
	else if (r == ENROLL_DONE && e->json)
		return enroll_print_json(e, &l.w);
	jsonw_clear(&l.w);
	return r;
}

/* ---------------------------------------------------------------- revoke */

static int
revoke_print(struct enroll *e, const struct ctl_revoked *rv)
{
	struct jsonw w;

	if (!e->json) {
		printf("revoked %s", enroll_clean(rv->kind));
		if (rv->name != NULL && *rv->name != '\0')
			printf(" of %s", enroll_clean(rv->name));
		if (rv->agent_id != NULL && *rv->agent_id != '\0')
			printf(" (agent %s)", enroll_clean(rv->agent_id));
		printf("\n");
		if (rv->dropped)
			printf("its session was closed; %llu workloads were "
			    "failed\n", (unsigned long long)rv->nfailed);
		return ENROLL_DONE;
	}
	jsonw_init(&w, ENROLL_JSON_MAX, JSONW_NO_HTML);
	jsonw_open_object(&w);
	enroll_put_str(&w, "kind", rv->kind);
	enroll_put_str(&w, "enrollment_id", rv->enrollment_id);
	enroll_put_str(&w, "agent_id", rv->agent_id);
	jsonw_close_object(&w);
	return enroll_print_json(e, &w);
}

int
enroll_cmd_revoke(struct enroll *e, int argc, char **argv)
{
	const char *reason = NULL, *id = NULL;
	const struct enroll_option options[] = {
		{ "reason", &reason, NULL, NULL },
		{ NULL, NULL, NULL, NULL }
	};
	struct ctl_revoked rv;
	int n, r;

	if ((r = enroll_parse_options(e, argc, argv, options, NULL, &id, 1,
	    &n)) != 0)
		return r;
	if (n != 1 || id[strspn(id, " \t\r\n")] == '\0')
		return enroll_usage(e, "an id is missing");
	if ((r = enroll_open(e)) != ENROLL_DONE)
		return r;
	field_init(&ctl_revoked_table, &rv);
	r = e->ops->revoke(e, id, reason == NULL ? "" : reason, &rv);
	if (r == ENROLL_DONE)
		r = revoke_print(e, &rv);
	field_clear(&ctl_revoked_table, &rv);
	return r;
}
