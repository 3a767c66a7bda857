/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * cloopctl: what looks and changes nothing: status, agents, ps, show,
 * wait, inventory.
 */
#include <sys/types.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/rule.h"
#include "common/base/util.h"
#include "common/base/xmem.h"
#include "common/model/caps.h"
#include "common/msg/msgcat.h"
#include "cloopctl.h"

/* ----------------------------------------------------------------- status */

/* The hub and its processes, which come as rows of their own. */
struct cmd_hub {
	struct ctl_status s;	/* first: status_kind is about it */
	struct ctl_worker *workers;
	size_t nworkers;
};

static const struct row_col worker_cols[] = {
	COL("id"),
	COL_AT("program", 1, "PROCESS"),
	COL_AT("pid", 2, "PID"),
	COL_AT("sessions", 3, "SESSIONS"),
	COL_AT("restarts", 4, "RESTARTS"),
	COL_AT("last_end", 5, "LAST END"),
};
static const struct row_kind worker_kind = { .type = MSG_ROW_WORKER,
	.fields = &ctl_worker_table, .list = "workers",
	COLS(worker_cols) };

static void
cmd_put_workers(struct jsonw *w, const void *row)
{
	const struct cmd_hub *hub = row;
	size_t i;

	jsonw_open_array(w);
	for (i = 0; i < hub->nworkers; i++) {
		jsonw_open_object(w);
		rows_put(w, &worker_kind, &hub->workers[i]);
		jsonw_close_object(w);
	}
	jsonw_close_array(w);
}

static const struct row_col status_cols[] = {
	COL("version"), COL("uptime_s"), COL("server"), COL("pin"),
	{ .key = "workers", .put = cmd_put_workers },
	{ .key = "agents", .how = COL_OPEN },
	COL("online"), COL("offline"), COL("unreachable"),
	{ .key = "duplicate_identities", .field = "duplicates" },
	{ .how = COL_CLOSE },
	{ .key = "handles", .how = COL_OPEN },
	COL("running"), COL("draining"), COL("finished"),
	{ .how = COL_CLOSE },
	{ .key = "budget", .how = COL_OPEN },
	COL("pinned"), COL("limit_agent"), COL("limit_total"),
	{ .how = COL_CLOSE },
};
static const struct row_kind status_kind = { .type = MSG_ROW_STATUS,
	.fields = &ctl_status_table, COLS(status_cols) };

static int
cmd_on_status(struct tool *t, struct imsg *m, union msg_any *v, void *arg)
{
	struct cmd_hub *hub = arg;

	(void)t;
	if (m->type == MSG_ROW_WORKER) {
		hub->workers = xreallocarray(hub->workers, hub->nworkers + 1,
		    sizeof(*hub->workers));
		hub->workers[hub->nworkers++] = v->ROW_WORKER;
	} else if (m->type == MSG_ROW_STATUS) {
		field_clear(&ctl_status_table, &hub->s);
		hub->s = v->ROW_STATUS;
	} else
		return CL_FORMAT;
	memset(v, 0, sizeof(*v));	/* what it owns is ours */
	return CL_OK;
}

static void
cmd_print_status(struct tool *t, const struct cmd_hub *hub)
{
	const struct ctl_status *s = &hub->s;
	struct rows r;
	size_t i;

	printf("hub      %s, up %llus, %s\n", tool_clean(s->version),
	    (unsigned long long)s->uptime_s,
	    rule_is_empty(s->server) ? "no ExternalURL" :
	    tool_clean(s->server));
	printf("agents   %llu online, %llu offline, %llu unreachable\n",
	    (unsigned long long)s->online, (unsigned long long)s->offline,
	    (unsigned long long)s->unreachable);
	if (s->duplicates > 0)
		printf("         %llu of them: several hosts with one "
		    "identity, see issues of cloopctl agents\n",
		    (unsigned long long)s->duplicates);
	printf("handles  %llu running, %llu draining, %llu finished\n\n",
	    (unsigned long long)s->running, (unsigned long long)s->draining,
	    (unsigned long long)s->finished);
	rows_open(&r, t, &worker_kind);
	for (i = 0; i < hub->nworkers; i++)
		(void)rows_add(t, &hub->workers[i], -1, &r);
	(void)rows_close(&r, EXIT_DONE);
}

int
cmd_status(struct tool *t, int argc, char **argv)
{
	struct cmd_hub hub = { .nworkers = 0 };
	int status;

	(void)argv;
	if (argc != 1)
		return cmd_usage(t, "takes no argument");
	field_init(&ctl_status_table, &hub.s);
	status = tool_walk(t, TOOL_REQUEST(CTL_STATUS, NULL), -1,
	    cmd_on_status, &hub);
	if (status == EXIT_DONE && t->json)
		status = rows_print(t, &status_kind, &hub);
	else if (status == EXIT_DONE)
		cmd_print_status(t, &hub);
	field_clear(&ctl_status_table, &hub.s);
	while (hub.nworkers > 0)
		field_clear(&ctl_worker_table, &hub.workers[--hub.nworkers]);
	free(hub.workers);
	return status;
}

/* ----------------------------------------------------------------- agents */

/* An agent and the capabilities that came along. */
struct cmd_agent {
	struct ctl_agent a;	/* first: agent_kind is about it */
	struct caps caps;
	int has_caps;
};

static const char *
cmd_word_status(const void *row)
{
	return ctl_format_agent_status(((const struct ctl_agent *)row)->status);
}

static const char *
cmd_word_state(const void *row)
{
	const struct ctl_agent *a = row;

	return a->banned ? "banned" : a->revoked_at != UTIL_TIME_ZERO ?
	    "revoked" : cmd_word_status(row);
}

static const char *
cmd_word_load(const void *row)
{
	const struct ctl_agent *a = row;
	static char text[64];

	snprintf(text, sizeof(text), "%llu/%llu",
	    (unsigned long long)a->running,
	    (unsigned long long)a->max_concurrent);
	return text;
}

static void
cmd_put_caps(struct jsonw *w, const void *row)
{
	const struct cmd_agent *a = row;

	if (a->has_caps)
		caps_format_json(&a->caps, w);
	else
		jsonw_put_null(w);
}

static void
cmd_put_denial_log(struct jsonw *w, const void *row)
{
	const struct cmd_agent *a = row;

	if (a->has_caps)
		jsonw_put_bool(w, a->caps.denial_log);
	else
		jsonw_put_null(w);
}

static const struct row_col agent_cols[] = {
	COL_AT("agent_id", 2, "ID"),
	COL_AT("name", 1, "NAME"),
	{ .key = "status", .word = cmd_word_status },
	{ .place = 3, .title = "STATUS", .word = cmd_word_state },
	COL("status_at"), COL("reason"),
	{ .key = "protocol", .how = COL_KNOWN },
	{ .key = "agent_protocol", .how = COL_KNOWN },
	COL_AT("agent_version", 5, "VERSION"),
	COL_AT("last_seen", 6, "LAST SEEN"),
	COL("created_at"), COL("revoked_at"), COL("confirmed_at"),
	COL("banned"), COL("enrollment_id"), COL("peer"), COL("labels"),
	{ .key = "capabilities", .put = cmd_put_caps },
	COL("cordoned"), COL("supervision"), COL("running"),
	{ .place = 4, .title = "RUNNING", .word = cmd_word_load },
	{ .key = "max_concurrent", .how = COL_KNOWN },
	{ .key = "denial_log", .put = cmd_put_denial_log },
	COL("issues"),
};
static const struct row_kind agent_kind = { .type = MSG_ROW_AGENT,
	.fields = &ctl_agent_table, .list = "agents", COLS(agent_cols) };

/* The capabilities that came with the row, or CL_NOTFOUND. */
static int
cmd_load_caps(int fd, size_t len, struct caps *caps)
{
	struct buf b;
	uint8_t *data = NULL;
	int r;

	caps_init(caps);
	if (len == 0)
		return CL_NOTFOUND;
	if ((r = util_load_memfd(fd, len, MAX_SPEC_LEN, &data)) != CL_OK)
		return r;
	buf_init_read(&b, data, len);
	if ((r = caps_get(&b, caps)) == CL_OK &&
	    (r = buf_end(&b)) != CL_OK)
		caps_clear(caps);
	free(data);
	return r;
}

static void
cmd_print_issue(const char *what, int able, const char *issue)
{
	printf("  %-22s%s%s%s\n", what, able ? "yes" : "no",
	    !able && issue != NULL && issue[0] != '\0' ? ": " : "",
	    able || issue == NULL ? "" : tool_clean(issue));
}

static void
cmd_print_caps(const struct caps *k)
{
	size_t i;

	printf("platform    %s/%s, %lld CPUs, %lld MiB\n", tool_clean(k->os),
	    tool_clean(k->arch), (long long)k->cpus, (long long)k->memory_mb);
	printf("work root   %s\n", tool_clean(k->workdir_root));
	printf("runtimes   ");
	for (i = 0; i < k->ncontainer_runtimes; i++)
		printf(" %s", tool_clean(k->container_runtimes[i]));
	printf("%s\nharnesses  ", k->ncontainer_runtimes == 0 ? " none" : "");
	for (i = 0; i < k->nharnesses; i++)
		printf(" %s", tool_clean(k->harnesses[i]));
	printf("%s\ncapabilities\n", k->nharnesses == 0 ? " none" : "");
	cmd_print_issue("workspace provisioning", k->workspace_provisioning,
	    NULL);
	cmd_print_issue("write-back", k->write_back, NULL);
	cmd_print_issue("branch bundles", k->branch_bundles, NULL);
	cmd_print_issue("virtualization", k->virtualization, NULL);
	cmd_print_issue("packet filter", k->packet_filter,
	    k->packet_filter_issue);
	cmd_print_issue("denial log", k->denial_log, k->denial_log_issue);
	cmd_print_issue("forwarded USB", k->forwarded_usb,
	    k->forwarded_usb_issue);
	cmd_print_issue("forwarded L2", k->forwarded_l2,
	    k->forwarded_l2_issue);
	cmd_print_issue("remote upgrade", k->remote_upgrade,
	    k->remote_upgrade_issue);
}

static void
cmd_print_agent(struct tool *t, const struct ctl_agent *a)
{
	size_t i;

	printf("agent       %s (%s)\n", tool_clean(a->name), a->agent_id);
	printf("status      %s since %s%s\n",
	    ctl_format_agent_status(a->status),
	    tool_format_when(t, a->status_at),
	    tool_clean_after(", ", a->reason));
	printf("protocol    %llu (speaks %llu), version %s\n",
	    (unsigned long long)a->protocol,
	    (unsigned long long)a->agent_protocol,
	    tool_clean(a->agent_version));
	printf("last seen   %s%s\n", tool_format_when(t, a->last_seen),
	    tool_clean_after(" from ", a->peer));
	printf("enrolled    %s\n", tool_format_when(t, a->created_at));
	if (a->revoked_at != UTIL_TIME_ZERO)
		printf("revoked     %s%s\n", tool_format_when(t,
		    a->revoked_at), a->banned ? ", the name is banned" : "");
	printf("workloads   %llu of %llu%s\n", (unsigned long long)a->running,
	    (unsigned long long)a->max_concurrent,
	    a->cordoned ? ", cordoned" : "");
	printf("supervised  %s\n", tool_clean(a->supervision));
	for (i = 0; i < a->nlabels; i++)
		printf("%-11s %s=%s\n", i == 0 ? "labels" : "",
		    tool_clean(a->labels[i].key),
		    tool_clean(a->labels[i].value));
}

/* arg: the list, or NULL for one agent with everything that is known. */
static int
cmd_on_agent(struct tool *t, void *row, int fd, void *arg)
{
	struct cmd_agent one = { .a = *(struct ctl_agent *)row };
	size_t i;

	one.has_caps = cmd_load_caps(fd, one.a.caps_len, &one.caps) == CL_OK;
	if (arg != NULL)
		(void)rows_add(t, &one, -1, arg);
	else if (t->json)
		rows_put(&t->doc, &agent_kind, &one);
	else {
		cmd_print_agent(t, &one.a);
		if (one.has_caps)
			cmd_print_caps(&one.caps);
		for (i = 0; i < one.a.nissues; i++)
			printf("issue       %s\n",
			    tool_clean(one.a.issues[i]));
	}
	if (one.has_caps)
		caps_clear(&one.caps);
	return CL_OK;
}

/* One of them is a list for a program, and details for people. */
int
cmd_agents(struct tool *t, int argc, char **argv)
{
	struct msg_name req = { argc == 1 ? "" :
	    cmd_get_operand(argc, argv) };
	struct rows r;
	int list, status;

	if (req.name == NULL)
		return cmd_usage(t, "one name at most");
	list = t->json || req.name[0] == '\0';
	tool_open_doc(t);
	if (list)
		rows_open(&r, t, &agent_kind);
	status = tool_ask(t, TOOL_REQUEST(CTL_AGENTS, &req), -1, &agent_kind,
	    cmd_on_agent, list ? &r : NULL);
	return tool_close_doc(t, list ? rows_close(&r, status) : status);
}

int
cmd_inventory(struct tool *t, int argc, char **argv)
{
	struct msg_ctl_inventory req = { NULL, 0 };
	int status;
	const struct cmd_option options[] = {
		{ "refresh", NULL, &req.refresh },
		{ NULL, NULL, NULL },
	};

	if ((status = cmd_parse(t, argc, argv, options, "one agent",
	    &req.name)) != EXIT_DONE)
		return status;
	tool_open_doc(t);
	return tool_close_doc(t, tool_ask(t, TOOL_REQUEST(CTL_INVENTORY,
	    &req), -1, &agent_kind, cmd_on_agent, NULL));
}

/* ---------------------------------------------------------------- handles */

static const char *
cmd_word_handle_state(const void *row)
{
	return ctl_format_handle_state(((const struct ctl_handle *)row)->state);
}

static void
cmd_put_handle_result(struct jsonw *w, const void *row)
{
	cmd_put_result(w, ((const struct ctl_handle *)row)->handle_id);
}

static const struct row_col handle_cols[] = {
	COL_AT("handle_id", 1, "HANDLE"),
	COL("agent_id"),
	COL_AT("agent", 3, "AGENT"),
	COL_AT("name", 2, "NAME"),
	{ .key = "state", .place = 4, .title = "STATE",
	  .word = cmd_word_handle_state },
	{ .key = "pid", .how = COL_KNOWN },
	COL_AT("exit_code", 5, "EXIT"),
	COL("outcome"), COL("error"),
	COL_AT("dispatched_at", 7, "DISPATCHED"),
	COL("started_at"), COL("finished_at"),
	{ .key = "log_bytes", .how = COL_SIZE, .place = 6,
	  .title = "OUTPUT" },
	COL("log_sha256"), COL("gapped"),
	{ .key = "result", .put = cmd_put_handle_result },
	COL("leases"),
};
const struct row_kind handle_kind = { .type = MSG_ROW_HANDLE,
	.ask = MSG_CTL_PS, .fields = &ctl_handle_table, .list = "handles",
	COLS(handle_cols) };

int
cmd_get_exit_status(const struct ctl_handle *h)
{
	int code = h->exit_code.set ? (int)(h->exit_code.v & 0xff) : 0;

	switch (h->state) {
	case HS_EXITED:
		return code;
	case HS_KILLED:
		/* The device says 128 + n; one with the Go agent says -1. */
		return h->exit_code.set && h->exit_code.v > 128 ? code : 137;
	default:
		return code != 0 ? code : EXIT_REFUSED;
	}
}

int
cmd_ps(struct tool *t, int argc, char **argv)
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
	return rows_list(t, &handle_kind, &req);
}

static int
cmd_print_handle(struct tool *t, void *row, int fd, void *arg)
{
	const struct ctl_handle *h = row;
	size_t i;

	(void)fd;
	(void)arg;
	printf("handle     %s%s\n", h->handle_id,
	    tool_clean_after("  ", h->name));
	printf("agent      %s (%s)\n", tool_clean(h->agent), h->agent_id);
	printf("state      %s", ctl_format_handle_state(h->state));
	if (h->exit_code.set)
		printf(", exit code %lld", (long long)h->exit_code.v);
	if (h->pid > 0)
		printf(", pid %lld on the device", (long long)h->pid);
	printf("\n");
	if (!rule_is_empty(h->error))
		printf("error      %s\n", tool_clean(h->error));
	printf("dispatched %s%s\n", tool_format_when(t, h->dispatched_at),
	    tool_clean_after(" by ", h->created_by));
	printf("started    %s\n", tool_format_when(t, h->started_at));
	printf("finished   %s\n", tool_format_when(t, h->finished_at));
	for (i = 0; i < h->nleases; i++)
		printf("lease      %s\n", tool_clean(h->leases[i]));
	printf("output     %llu bytes kept%s\n",
	    (unsigned long long)h->log_bytes,
	    h->gapped ? ", with gaps (cloopctl --json logs shows them)" : "");
	if (!rule_is_empty(h->log_sha256))
		printf("sealed     sha256 %s\n", tool_clean(h->log_sha256));
	return CL_OK;
}

int
cmd_show(struct tool *t, int argc, char **argv)
{
	struct msg_name req = { cmd_get_operand(argc, argv) };

	if (req.name == NULL)
		return cmd_usage(t, "one handle");
	return rows_show(t, TOOL_REQUEST(CTL_SHOW, &req), &handle_kind,
	    cmd_print_handle, NULL);
}

int
cmd_wait(struct tool *t, int argc, char **argv)
{
	struct msg_name req = { cmd_get_operand(argc, argv) };
	struct ctl_handle h;
	int status;

	if (req.name == NULL)
		return cmd_usage(t, "one handle");
	status = tool_ask_one(t, TOOL_REQUEST(CTL_WAIT, &req), -1,
	    &handle_kind, &h);
	if (status != EXIT_DONE)
		return status;
	if (t->json)
		(void)rows_print(t, &handle_kind, &h);
	status = cmd_get_exit_status(&h);
	field_clear(&ctl_handle_table, &h);
	return status;
}
