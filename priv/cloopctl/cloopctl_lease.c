/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * cloopctl: leases, and devices out of rotation.  A revocation is done when
 * the device has confirmed it; anything else is said and is exit status 1.
 */
#include <sys/types.h>

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/util.h"
#include "common/model/ctllease.h"
#include "common/msg/msgcat.h"
#include "cloopctl.h"

/* ---------------------------------------------------------------- outcomes */

struct outcomes {
	struct jsonw w;
	size_t n, nopen;	/* not confirmed */
};

static void
outcome_put_members(struct jsonw *w, const struct ctl_outcome *o)
{
	ctl_put_str(w, "agent_id", o->agent_id);
	ctl_put_str(w, "agent", o->agent);
	ctl_put_str(w, "lease_id", o->lease_id);
	ctl_put_str(w, "grant_id", o->grant_id);
	ctl_put_str(w, "state", o->state);
	ctl_put_str(w, "action", o->action);
	ctl_put_str(w, "reason", o->reason);
	ctl_put_time(w, "sent_at", o->sent_at);
	ctl_put_time(w, "acked_at", o->acked_at);
	jsonw_put_key(w, "known");
	if (o->acked_at == UTIL_TIME_ZERO)
		jsonw_put_null(w);
	else
		jsonw_put_bool(w, o->known);
	jsonw_put_key(w, "files_removed");
	jsonw_put_int(w, o->files_removed);
	ctl_put_strs(w, "env_scrubbed", o->env_scrubbed, o->nenv_scrubbed);
	jsonw_put_key(w, "egress_dropped");
	jsonw_put_bool(w, o->egress_dropped);
	ctl_put_strs(w, "killed", o->killed, o->nkilled);
	ctl_put_str(w, "error", o->error);
	ctl_put_str(w, "widened", o->widened);
}

static void
outcome_print(struct ctl *c, const struct ctl_outcome *o)
{
	printf("%s on %s: %s", o->lease_id, ctl_clean(o->agent), o->state);
	if (o->acked_at != UTIL_TIME_ZERO)
		printf(" %s; files wiped %lld, variables taken off %zu, "
		    "workloads killed %zu", ctl_format_when(c, o->acked_at),
		    (long long)o->files_removed, o->nenv_scrubbed,
		    o->nkilled);
	if (o->acked_at != UTIL_TIME_ZERO && !o->known)
		printf(" (not held there any more)");
	printf("\n");
	if (strcmp(o->state, "unreachable") == 0)
		printf("  unconfirmed: taken back when the device returns\n");
	if (o->error != NULL && o->error[0] != '\0')
		printf("  error: %s\n", ctl_clean(o->error));
	if (o->widened != NULL && o->widened[0] != '\0')
		printf("  note: %s\n", ctl_clean(o->widened));
}

static int
outcome_on_row(struct ctl *c, struct imsg *m, void *arg)
{
	struct outcomes *all = arg;
	struct ctl_outcome o;

	ctl_get_row(&ctl_outcome_table, m, &o);
	all->n++;
	if (strcmp(o.state, "revoked") != 0)
		all->nopen++;
	if (c->json) {
		jsonw_open_object(&all->w);
		outcome_put_members(&all->w, &o);
		jsonw_close_object(&all->w);
	} else if (!c->quiet)
		outcome_print(c, &o);
	field_clear(&ctl_outcome_table, &o);
	return EXIT_DONE;
}

int
ctl_ask_outcomes(struct ctl *c, uint32_t type, const struct buf *body)
{
	struct outcomes all;
	int status;

	memset(&all, 0, sizeof(all));
	jsonw_init(&all.w, MAX_JSON_OUT, JSONW_NO_HTML);
	jsonw_open_object(&all.w);
	jsonw_put_key(&all.w, "outcomes");
	jsonw_open_array(&all.w);
	status = ctl_ask_rows(c, type, body, MSG_ROW_OUTCOME, outcome_on_row,
	    &all);
	jsonw_close_array(&all.w);
	jsonw_close_object(&all.w);
	if (status == EXIT_DONE && c->json)
		(void)ctl_print_json(&all.w);
	else
		jsonw_clear(&all.w);
	return status == EXIT_DONE && all.nopen > 0 ? EXIT_REFUSED : status;
}

/* ---------------------------------------------------------------------- ls */

struct lease_rows {
	struct jsonw w;
	struct ctl_table *t;
};

static void
lease_put_members(struct jsonw *w, const struct ctl_lease *l)
{
	ctl_put_str(w, "lease_id", l->lease_id);
	ctl_put_str(w, "agent_id", l->agent_id);
	ctl_put_str(w, "agent", l->agent);
	ctl_put_str(w, "handle_id", l->handle_id);
	ctl_put_str(w, "project", l->project);
	ctl_put_str(w, "actor", l->actor);
	ctl_put_str(w, "state", l->state);
	ctl_put_time(w, "issued_at", l->issued_at);
	ctl_put_time(w, "expires_at", l->expires_at);
	ctl_put_time(w, "closed_at", l->closed_at);
	ctl_put_str(w, "cause", l->cause);
	ctl_put_strs(w, "secrets", l->secrets, l->nsecrets);
	ctl_put_strs(w, "grants", l->grants, l->ngrants);
	ctl_put_str(w, "revocation", l->revocation);
}

static int
lease_on_row(struct ctl *c, struct imsg *m, void *arg)
{
	struct lease_rows *rows = arg;
	struct ctl_lease l;
	char names[128];
	size_t i, n = 0;

	ctl_get_row(&ctl_lease_table, m, &l);
	if (c->json) {
		jsonw_open_object(&rows->w);
		lease_put_members(&rows->w, &l);
		jsonw_close_object(&rows->w);
	} else {
		names[0] = '\0';
		for (i = 0; i < l.nsecrets && n < sizeof(names); i++)
			n += (size_t)snprintf(names + n, sizeof(names) - n,
			    "%s%s", i > 0 ? "," : "", l.secrets[i]);
		ctl_table_add(rows->t, l.lease_id);
		ctl_table_add(rows->t, names);
		ctl_table_add(rows->t, l.agent);
		ctl_table_add(rows->t, l.handle_id);
		ctl_table_add(rows->t, l.state);
		ctl_table_add(rows->t, ctl_format_when(c, l.expires_at));
		ctl_table_add(rows->t, l.revocation);
	}
	field_clear(&ctl_lease_table, &l);
	return EXIT_DONE;
}

static int
lease_cmd_ls(struct ctl *c, int argc, char **argv)
{
	static const char *const head[] = { "LEASE", "SECRETS", "AGENT",
		"HANDLE", "STATE", "EXPIRES", "REVOCATION" };
	struct lease_rows rows;
	struct buf body;
	int ch, all = 0, status;
	size_t i;

	while ((ch = getopt(argc, argv, "a")) != -1) {
		if (ch != 'a')
			return ctl_usage(c, "unknown option");
		all = 1;
	}
	if (optind != argc)
		return ctl_usage(c, "takes no argument");
	rows.t = ctl_table_new(7);
	for (i = 0; i < 7; i++)
		ctl_table_add(rows.t, head[i]);
	jsonw_init(&rows.w, MAX_JSON_OUT, JSONW_NO_HTML);
	jsonw_open_object(&rows.w);
	jsonw_put_key(&rows.w, "leases");
	jsonw_open_array(&rows.w);
	buf_init(&body, MSG_BODY_MAX);
	buf_put_u8(&body, (uint8_t)all);
	status = ctl_ask_rows(c, MSG_CTL_LEASES, &body, MSG_ROW_LEASE,
	    lease_on_row, &rows);
	buf_clear(&body);
	jsonw_close_array(&rows.w);
	jsonw_close_object(&rows.w);
	return ctl_print_rows(c, status, &rows.w, rows.t);
}

/* --------------------------------------------------------- revoke, refresh */

static int
lease_cmd_revoke(struct ctl *c, int argc, char **argv)
{
	static const struct option options[] = {
		{ "kill", no_argument, NULL, 'k' },
		{ "grant", required_argument, NULL, 'g' },
		{ "reason", required_argument, NULL, 'r' },
		{ NULL, 0, NULL, 0 },
	};
	const char *grant = "", *reason = "";
	struct buf body;
	int ch, kill = 0, status;

	while ((ch = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (ch == 'k')
			kill = 1;
		else if (ch == 'g')
			grant = optarg;
		else if (ch == 'r' && strlen(optarg) <= MAX_REASON_LEN)
			reason = optarg;
		else
			return ctl_usage(c, ch == 'r' ? "--reason: too long" :
			    "unknown option");
	}
	if (optind != argc - 1)
		return ctl_usage(c, "one lease");
	if (strlen(argv[optind]) > 40 || strlen(grant) > 40)
		return ctl_usage(c, "no lease or grant has such an id");
	buf_init(&body, MSG_BODY_MAX);
	buf_put_str(&body, argv[optind]);
	buf_put_str(&body, grant);
	buf_put_u8(&body, (uint8_t)kill);
	buf_put_str(&body, reason);
	status = ctl_ask_outcomes(c, MSG_CTL_LEASE_REVOKE, &body);
	buf_clear(&body);
	return status;
}

static int
lease_on_refreshed(struct ctl *c, struct imsg *m, void *arg)
{
	struct ctl_refreshed f;
	struct jsonw w;
	int *okp = arg;

	ctl_get_row(&ctl_refreshed_table, m, &f);
	*okp = !f.unsupported && (f.error == NULL || f.error[0] == '\0');
	if (c->json) {
		jsonw_init(&w, MAX_JSON_OUT, JSONW_NO_HTML);
		jsonw_open_object(&w);
		ctl_put_str(&w, "agent_id", f.agent_id);
		ctl_put_str(&w, "agent", f.agent);
		ctl_put_str(&w, "lease_id", f.lease_id);
		jsonw_put_key(&w, "known");
		jsonw_put_bool(&w, f.known);
		jsonw_put_key(&w, "files_rewritten");
		jsonw_put_int(&w, f.files_rewritten);
		ctl_put_strs(&w, "handles", f.handles, f.nhandles);
		jsonw_put_key(&w, "eventual");
		jsonw_put_bool(&w, f.eventual);
		jsonw_put_key(&w, "unsupported");
		jsonw_put_bool(&w, f.unsupported);
		ctl_put_str(&w, "error", f.error);
		jsonw_close_object(&w);
		(void)ctl_print_json(&w);
	} else if (!c->quiet) {
		printf("%s on %s: %lld files rewritten%s\n", f.lease_id,
		    ctl_clean(f.agent), (long long)f.files_rewritten,
		    f.known ? "" : " (not held there any more)");
		if (!*okp)
			printf("  error: %s\n", ctl_clean(f.error));
	}
	field_clear(&ctl_refreshed_table, &f);
	return EXIT_DONE;
}

static int
lease_cmd_refresh(struct ctl *c, int argc, char **argv)
{
	const char *lease = ctl_get_operand(argc, argv);
	struct buf body;
	int ok = 0, status;

	if (lease == NULL)
		return ctl_usage(c, "one lease");
	buf_init(&body, MSG_BODY_MAX);
	buf_put_str(&body, lease);
	status = ctl_ask_rows(c, MSG_CTL_LEASE_REFRESH, &body,
	    MSG_ROW_REFRESHED, lease_on_refreshed, &ok);
	buf_clear(&body);
	return status == EXIT_DONE && !ok ? EXIT_REFUSED : status;
}

int
ctl_cmd_lease(struct ctl *c, int argc, char **argv)
{
	static const struct ctl_verb verbs[] = {
		{ "ls", lease_cmd_ls }, { "revoke", lease_cmd_revoke },
		{ "refresh", lease_cmd_refresh }, { NULL, NULL },
	};

	return ctl_find_verb(c, verbs, argc, argv);
}

/* ----------------------------------------------------------------- cordon */

static int
admin_set_state(struct ctl *c, int argc, char **argv, uint8_t state)
{
	static const struct option options[] = {
		{ "reason", required_argument, NULL, 'r' },
		{ "no-wait", no_argument, NULL, 'n' },
		{ NULL, 0, NULL, 0 },
	};
	const char *reason = "";
	struct buf body;
	int ch, wait = state == ADMIN_DRAINING, status;

	while ((ch = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (ch == 'n')
			wait = 0;
		else if (ch == 'r' && strlen(optarg) <= MAX_REASON_LEN)
			reason = optarg;
		else
			return ctl_usage(c, ch == 'r' ? "--reason: too long" :
			    "unknown option");
	}
	if (optind != argc - 1)
		return ctl_usage(c, "one agent");
	buf_init(&body, MSG_BODY_MAX);
	buf_put_str(&body, argv[optind]);
	buf_put_u8(&body, state);
	buf_put_str(&body, reason);
	buf_put_u8(&body, (uint8_t)wait);
	status = ctl_ask_outcomes(c, MSG_CTL_CORDON, &body);
	buf_clear(&body);
	if (status == EXIT_DONE && !c->json && !c->quiet)
		printf("%s: %s\n", ctl_clean(argv[optind]),
		    state == ADMIN_READY ? "gets work again" :
		    state == ADMIN_CORDONED ? "gets no new work" :
		    wait ? "drained, gets no new work" : "is being drained");
	return status;
}

int
ctl_cmd_cordon(struct ctl *c, int argc, char **argv)
{
	return admin_set_state(c, argc, argv, ADMIN_CORDONED);
}

int
ctl_cmd_uncordon(struct ctl *c, int argc, char **argv)
{
	return admin_set_state(c, argc, argv, ADMIN_READY);
}

int
ctl_cmd_drain(struct ctl *c, int argc, char **argv)
{
	return admin_set_state(c, argc, argv, ADMIN_DRAINING);
}
