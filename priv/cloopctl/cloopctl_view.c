/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * cloopctl: what looks and changes nothing: status, agents, ps, show,
 * wait, inventory.  Each row of the hub becomes a line of a table or a
 * member of the JSON document.
 */
#include <sys/types.h>

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/util.h"
#include "common/base/xmem.h"
#include "common/model/caps.h"
#include "common/msg/msgcat.h"
#include "cloopctl.h"

static void
ctl_put_uint(struct jsonw *w, const char *key, uint64_t v)
{
	jsonw_put_key(w, key);
	jsonw_put_uint(w, v);
}

/* Zero is what the hub says for "unknown". */
static void
ctl_put_known(struct jsonw *w, const char *key, uint64_t v)
{
	jsonw_put_key(w, key);
	if (v == 0)
		jsonw_put_null(w);
	else
		jsonw_put_uint(w, v);
}

void
ctl_put_strs(struct jsonw *w, const char *key, char *const *v, size_t n)
{
	size_t i;

	jsonw_put_key(w, key);
	jsonw_open_array(w);
	for (i = 0; i < n; i++)
		jsonw_put_str(w, v[i]);
	jsonw_close_array(w);
}

static void
ctl_put_labels(struct jsonw *w, const char *key,
    const struct field_pair *v, size_t n)
{
	size_t i;

	jsonw_put_key(w, key);
	jsonw_open_object(w);
	for (i = 0; i < n; i++) {
		jsonw_put_key(w, v[i].key);
		jsonw_put_str(w, v[i].value);
	}
	jsonw_close_object(w);
}

/* ------------------------------------------------------------- status */

struct view_status {
	struct ctl_status s;
	struct jsonw w;		/* the workers, for the document */
	struct ctl_table *t;	/* the same, for people */
};

static int
view_on_status(struct ctl *c, struct imsg *m, void *arg)
{
	struct view_status *v = arg;
	struct ctl_worker k;
	char n[32];

	(void)c;
	if (m->type == MSG_ROW_STATUS) {
		ctl_get_row(&ctl_status_table, m, &v->s);
		return EXIT_DONE;
	}
	ctl_get_row(&ctl_worker_table, m, &k);
	jsonw_open_object(&v->w);
	ctl_put_uint(&v->w, "id", k.id);
	ctl_put_str(&v->w, "program", k.program);
	jsonw_put_key(&v->w, "pid");
	jsonw_put_int(&v->w, k.pid);
	ctl_put_uint(&v->w, "sessions", k.sessions);
	ctl_put_uint(&v->w, "restarts", k.restarts);
	ctl_put_str(&v->w, "last_end", k.last_end);
	jsonw_close_object(&v->w);
	ctl_table_add(v->t, k.program);
	snprintf(n, sizeof(n), "%lld", (long long)k.pid);
	ctl_table_add(v->t, n);
	snprintf(n, sizeof(n), "%llu", (unsigned long long)k.sessions);
	ctl_table_add(v->t, n);
	snprintf(n, sizeof(n), "%llu", (unsigned long long)k.restarts);
	ctl_table_add(v->t, n);
	ctl_table_add(v->t, k.last_end);
	field_clear(&ctl_worker_table, &k);
	return EXIT_DONE;
}

static void
view_print_status_json(struct view_status *v)
{
	struct ctl_status *s = &v->s;
	struct jsonw w;

	jsonw_init(&w, MAX_JSON_OUT, JSONW_NO_HTML);
	jsonw_open_object(&w);
	ctl_put_str(&w, "version", s->version);
	ctl_put_uint(&w, "uptime_s", s->uptime_s);
	ctl_put_str(&w, "server", s->server);
	ctl_put_str(&w, "pin", s->pin);
	jsonw_put_key(&w, "workers");
	jsonw_close_array(&v->w);
	jsonw_put_raw(&w, v->w.data, v->w.len);
	jsonw_put_key(&w, "agents");
	jsonw_open_object(&w);
	ctl_put_uint(&w, "online", s->online);
	ctl_put_uint(&w, "offline", s->offline);
	ctl_put_uint(&w, "unreachable", s->unreachable);
	ctl_put_uint(&w, "duplicate_identities", s->duplicates);
	jsonw_close_object(&w);
	jsonw_put_key(&w, "handles");
	jsonw_open_object(&w);
	ctl_put_uint(&w, "running", s->running);
	ctl_put_uint(&w, "draining", s->draining);
	ctl_put_uint(&w, "finished", s->finished);
	jsonw_close_object(&w);
	jsonw_put_key(&w, "budget");
	jsonw_open_object(&w);
	ctl_put_uint(&w, "pinned", s->pinned);
	ctl_put_uint(&w, "limit_agent", s->limit_agent);
	ctl_put_uint(&w, "limit_total", s->limit_total);
	jsonw_close_object(&w);
	jsonw_close_object(&w);
	(void)ctl_print_json(&w);
}

/* Both rows of status arrive through one callback. */
static int
view_ask_status(struct ctl *c, struct view_status *v)
{
	return ctl_ask_rows(c, MSG_CTL_STATUS, NULL, 0, view_on_status, v);
}

int
ctl_cmd_status(struct ctl *c, int argc, char **argv)
{
	struct view_status v;
	int status;

	(void)argv;
	if (argc != 1)
		return ctl_usage(c, "takes no argument");
	memset(&v, 0, sizeof(v));
	field_init(&ctl_status_table, &v.s);
	jsonw_init(&v.w, MAX_JSON_OUT, JSONW_NO_HTML);
	jsonw_open_array(&v.w);
	v.t = ctl_table_new(5);
	ctl_table_add(v.t, "PROCESS");
	ctl_table_add(v.t, "PID");
	ctl_table_add(v.t, "SESSIONS");
	ctl_table_add(v.t, "RESTARTS");
	ctl_table_add(v.t, "LAST END");
	if ((status = view_ask_status(c, &v)) != EXIT_DONE)
		return ctl_print_rows(c, status, &v.w, v.t);
	if (c->json) {
		view_print_status_json(&v);
		ctl_table_free(v.t);
	} else {
		printf("hub      %s, up %llus, %s\n", ctl_clean(v.s.version),
		    (unsigned long long)v.s.uptime_s,
		    v.s.server == NULL || v.s.server[0] == '\0' ?
		    "no ExternalURL" : ctl_clean(v.s.server));
		printf("agents   %llu online, %llu offline, %llu "
		    "unreachable\n", (unsigned long long)v.s.online,
		    (unsigned long long)v.s.offline,
		    (unsigned long long)v.s.unreachable);
		if (v.s.duplicates > 0)
			printf("         %llu of them: several hosts with "
			    "one identity, see issues of cloopctl agents\n",
			    (unsigned long long)v.s.duplicates);
		printf("handles  %llu running, %llu draining, %llu "
		    "finished\n\n", (unsigned long long)v.s.running,
		    (unsigned long long)v.s.draining,
		    (unsigned long long)v.s.finished);
		ctl_table_print(c, v.t);
	}
	field_clear(&ctl_status_table, &v.s);
	jsonw_clear(&v.w);
	return EXIT_DONE;
}

/* ------------------------------------------------------------- agents */

struct view_agents {
	struct jsonw w;
	struct ctl_table *t;
	int details;		/* one agent by name: everything known */
};

/* The capabilities that came with the row, or CL_NOTFOUND. */
static int
view_load_caps(struct imsg *m, size_t len, struct caps *caps)
{
	struct buf b;
	uint8_t *data = NULL;
	int r;

	caps_init(caps);
	if (len == 0)
		return CL_NOTFOUND;
	if ((r = util_load_memfd(m->fd, len, MAX_SPEC_LEN, &data)) != CL_OK)
		return r;
	buf_init_read(&b, data, len);
	if ((r = caps_get(&b, caps)) == CL_OK &&
	    (r = buf_end(&b)) != CL_OK)
		caps_clear(caps);
	free(data);
	return r;
}

static void
view_put_agent(struct jsonw *w, const struct ctl_agent *a,
    const struct caps *caps)
{
	jsonw_open_object(w);
	ctl_put_str(w, "agent_id", a->agent_id);
	ctl_put_str(w, "name", a->name);
	ctl_put_str(w, "status", ctl_format_agent_status(a->status));
	ctl_put_time(w, "status_at", a->status_at);
	ctl_put_str(w, "reason", a->reason);
	ctl_put_known(w, "protocol", a->protocol);
	ctl_put_known(w, "agent_protocol", a->agent_protocol);
	ctl_put_str(w, "agent_version", a->agent_version);
	ctl_put_time(w, "last_seen", a->last_seen);
	ctl_put_time(w, "created_at", a->created_at);
	ctl_put_time(w, "revoked_at", a->revoked_at);
	ctl_put_time(w, "confirmed_at", a->confirmed_at);
	jsonw_put_key(w, "banned");
	jsonw_put_bool(w, a->banned);
	ctl_put_str(w, "enrollment_id", a->enrollment_id);
	ctl_put_str(w, "peer", a->peer);
	ctl_put_labels(w, "labels", a->labels, a->nlabels);
	jsonw_put_key(w, "capabilities");
	if (caps != NULL)
		caps_format_json(caps, w);
	else
		jsonw_put_null(w);
	jsonw_put_key(w, "cordoned");
	jsonw_put_bool(w, a->cordoned);
	ctl_put_str(w, "supervision", a->supervision);
	ctl_put_uint(w, "running", a->running);
	ctl_put_known(w, "max_concurrent", a->max_concurrent);
	jsonw_put_key(w, "denial_log");
	if (caps != NULL)
		jsonw_put_bool(w, caps->denial_log);
	else
		jsonw_put_null(w);
	ctl_put_strs(w, "issues", a->issues, a->nissues);
	jsonw_close_object(w);
}

static void
view_print_issue(const char *what, int able, const char *issue)
{
	printf("  %-22s%s%s%s\n", what, able ? "yes" : "no",
	    !able && issue != NULL && issue[0] != '\0' ? ": " : "",
	    able || issue == NULL ? "" : ctl_clean(issue));
}

static void
view_print_caps(const struct caps *k)
{
	size_t i;

	printf("platform    %s/%s, %lld CPUs, %lld MiB\n", ctl_clean(k->os),
	    ctl_clean(k->arch), (long long)k->cpus, (long long)k->memory_mb);
	printf("work root   %s\n", ctl_clean(k->workdir_root));
	printf("runtimes   ");
	for (i = 0; i < k->ncontainer_runtimes; i++)
		printf(" %s", ctl_clean(k->container_runtimes[i]));
	printf("%s\nharnesses  ", k->ncontainer_runtimes == 0 ? " none" : "");
	for (i = 0; i < k->nharnesses; i++)
		printf(" %s", ctl_clean(k->harnesses[i]));
	printf("%s\ncapabilities\n", k->nharnesses == 0 ? " none" : "");
	view_print_issue("workspace provisioning", k->workspace_provisioning,
	    NULL);
	view_print_issue("write-back", k->write_back, NULL);
	view_print_issue("branch bundles", k->branch_bundles, NULL);
	view_print_issue("virtualization", k->virtualization, NULL);
	view_print_issue("packet filter", k->packet_filter,
	    k->packet_filter_issue);
	view_print_issue("denial log", k->denial_log, k->denial_log_issue);
	view_print_issue("forwarded USB", k->forwarded_usb,
	    k->forwarded_usb_issue);
	view_print_issue("forwarded L2", k->forwarded_l2,
	    k->forwarded_l2_issue);
	view_print_issue("remote upgrade", k->remote_upgrade,
	    k->remote_upgrade_issue);
}

static void
view_print_agent(struct ctl *c, const struct ctl_agent *a,
    const struct caps *caps)
{
	size_t i;

	printf("agent       %s (%s)\n", ctl_clean(a->name), a->agent_id);
	printf("status      %s since %s%s%s\n",
	    ctl_format_agent_status(a->status),
	    ctl_format_when(c, a->status_at),
	    a->reason != NULL && a->reason[0] != '\0' ? ", " : "",
	    ctl_clean(a->reason));
	printf("protocol    %llu (speaks %llu), version %s\n",
	    (unsigned long long)a->protocol,
	    (unsigned long long)a->agent_protocol,
	    ctl_clean(a->agent_version));
	printf("last seen   %s%s%s\n", ctl_format_when(c, a->last_seen),
	    a->peer != NULL && a->peer[0] != '\0' ? " from " : "",
	    ctl_clean(a->peer));
	printf("enrolled    %s\n", ctl_format_when(c, a->created_at));
	if (a->revoked_at != UTIL_TIME_ZERO)
		printf("revoked     %s%s\n", ctl_format_when(c,
		    a->revoked_at), a->banned ? ", the name is banned" : "");
	printf("workloads   %llu of %llu%s\n", (unsigned long long)a->running,
	    (unsigned long long)a->max_concurrent,
	    a->cordoned ? ", cordoned" : "");
	printf("supervised  %s\n", ctl_clean(a->supervision));
	for (i = 0; i < a->nlabels; i++)
		printf("%-11s %s=%s\n", i == 0 ? "labels" : "",
		    ctl_clean(a->labels[i].key),
		    ctl_clean(a->labels[i].value));
	if (caps != NULL)
		view_print_caps(caps);
	for (i = 0; i < a->nissues; i++)
		printf("issue       %s\n", ctl_clean(a->issues[i]));
}

static void
view_add_agent(struct ctl *c, struct ctl_table *t, const struct ctl_agent *a)
{
	char n[64];

	ctl_table_add(t, a->name);
	ctl_table_add(t, a->agent_id);
	ctl_table_add(t, a->banned ? "banned" :
	    a->revoked_at != UTIL_TIME_ZERO ? "revoked" :
	    ctl_format_agent_status(a->status));
	snprintf(n, sizeof(n), "%llu/%llu", (unsigned long long)a->running,
	    (unsigned long long)a->max_concurrent);
	ctl_table_add(t, n);
	ctl_table_add(t, a->agent_version);
	ctl_table_add(t, ctl_format_when(c, a->last_seen));
}

static int
view_on_agent(struct ctl *c, struct imsg *m, void *arg)
{
	struct view_agents *v = arg;
	struct ctl_agent a;
	struct caps caps, *k = NULL;

	ctl_get_row(&ctl_agent_table, m, &a);
	if (view_load_caps(m, a.caps_len, &caps) == CL_OK)
		k = &caps;
	if (c->json)
		view_put_agent(&v->w, &a, k);
	else if (v->details)
		view_print_agent(c, &a, k);
	else
		view_add_agent(c, v->t, &a);
	if (k != NULL)
		caps_clear(k);
	field_clear(&ctl_agent_table, &a);
	return EXIT_DONE;
}

static struct ctl_table *
view_new_agents_table(void)
{
	static const char *const head[] = { "NAME", "ID", "STATUS", "RUNNING",
		"VERSION", "LAST SEEN" };
	struct ctl_table *t = ctl_table_new(6);
	size_t i;

	for (i = 0; i < 6; i++)
		ctl_table_add(t, head[i]);
	return t;
}

int
ctl_cmd_agents(struct ctl *c, int argc, char **argv)
{
	struct view_agents v;
	struct buf body;
	const char *name = argc == 1 ? "" : ctl_get_operand(argc, argv);
	int status;

	if (name == NULL)
		return ctl_usage(c, "one name at most");
	memset(&v, 0, sizeof(v));
	v.details = name[0] != '\0';
	v.t = v.details ? NULL : view_new_agents_table();
	jsonw_init(&v.w, MAX_JSON_OUT, JSONW_NO_HTML);
	jsonw_open_object(&v.w);
	jsonw_put_key(&v.w, "agents");
	jsonw_open_array(&v.w);
	buf_init(&body, MSG_BODY_MAX);
	buf_put_str(&body, name);
	status = ctl_ask_rows(c, MSG_CTL_AGENTS, &body, MSG_ROW_AGENT,
	    view_on_agent, &v);
	buf_clear(&body);
	jsonw_close_array(&v.w);
	jsonw_close_object(&v.w);
	return ctl_print_rows(c, status, &v.w, v.t);
}

int
ctl_cmd_inventory(struct ctl *c, int argc, char **argv)
{
	static const struct option options[] = {
		{ "refresh", no_argument, NULL, 'r' },
		{ NULL, 0, NULL, 0 },
	};
	struct view_agents v;
	struct buf body;
	int ch, refresh = 0, status;

	while ((ch = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (ch != 'r')
			return ctl_usage(c, "unknown option");
		refresh = 1;
	}
	if (optind != argc - 1)
		return ctl_usage(c, "one agent");
	memset(&v, 0, sizeof(v));
	v.details = 1;
	jsonw_init(&v.w, MAX_JSON_OUT, JSONW_NO_HTML);
	buf_init(&body, MSG_BODY_MAX);
	buf_put_str(&body, argv[optind]);
	buf_put_u8(&body, (uint8_t)refresh);
	status = ctl_ask_rows(c, MSG_CTL_INVENTORY, &body, MSG_ROW_AGENT,
	    view_on_agent, &v);
	buf_clear(&body);
	if (status == EXIT_DONE && c->json)
		(void)ctl_print_json(&v.w);
	return status;
}

/* ------------------------------------------------------------ handles */

void
ctl_put_handle(struct jsonw *w, const struct ctl_handle *h)
{
	ctl_put_str(w, "handle_id", h->handle_id);
	ctl_put_str(w, "agent_id", h->agent_id);
	ctl_put_str(w, "agent", h->agent);
	ctl_put_str(w, "name", h->name);
	ctl_put_str(w, "state", ctl_format_handle_state(h->state));
	ctl_put_known(w, "pid", h->pid > 0 ? (uint64_t)h->pid : 0);
	jsonw_put_key(w, "exit_code");
	if (h->exit_code.set)
		jsonw_put_int(w, h->exit_code.v);
	else
		jsonw_put_null(w);
	ctl_put_str(w, "outcome", h->outcome);
	ctl_put_str(w, "error", h->error);
	ctl_put_time(w, "dispatched_at", h->dispatched_at);
	ctl_put_time(w, "started_at", h->started_at);
	ctl_put_time(w, "finished_at", h->finished_at);
	ctl_put_uint(w, "log_bytes", h->log_bytes);
	jsonw_put_key(w, "gapped");
	jsonw_put_bool(w, h->gapped);
	ctl_put_result(w, h->handle_id);
	ctl_put_strs(w, "leases", h->leases, h->nleases);
}

int
ctl_get_exit_status(const struct ctl_handle *h)
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

static void
view_add_handle(struct ctl *c, struct ctl_table *t, const struct ctl_handle *h)
{
	char n[32] = "-";

	if (h->exit_code.set)
		snprintf(n, sizeof(n), "%lld", (long long)h->exit_code.v);
	ctl_table_add(t, h->handle_id);
	ctl_table_add(t, h->name);
	ctl_table_add(t, h->agent);
	ctl_table_add(t, ctl_format_handle_state(h->state));
	ctl_table_add(t, n);
	ctl_table_add(t, ctl_format_size(h->log_bytes));
	ctl_table_add(t, ctl_format_when(c, h->dispatched_at));
}

struct view_handles {
	struct jsonw w;
	struct ctl_table *t;
	int status;		/* exit status of the last one */
};

static int
view_on_handle(struct ctl *c, struct imsg *m, void *arg)
{
	struct view_handles *v = arg;
	struct ctl_handle h;

	ctl_get_row(&ctl_handle_table, m, &h);
	if (c->json) {
		jsonw_open_object(&v->w);
		ctl_put_handle(&v->w, &h);
		jsonw_close_object(&v->w);
	} else if (v->t != NULL) {
		view_add_handle(c, v->t, &h);
	}
	v->status = ctl_get_exit_status(&h);
	field_clear(&ctl_handle_table, &h);
	return EXIT_DONE;
}

int
ctl_cmd_ps(struct ctl *c, int argc, char **argv)
{
	static const char *const head[] = { "HANDLE", "NAME", "AGENT", "STATE",
		"EXIT", "OUTPUT", "DISPATCHED" };
	struct view_handles v;
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
	memset(&v, 0, sizeof(v));
	v.t = ctl_table_new(7);
	for (i = 0; i < 7; i++)
		ctl_table_add(v.t, head[i]);
	jsonw_init(&v.w, MAX_JSON_OUT, JSONW_NO_HTML);
	jsonw_open_object(&v.w);
	jsonw_put_key(&v.w, "handles");
	jsonw_open_array(&v.w);
	buf_init(&body, MSG_BODY_MAX);
	buf_put_u8(&body, (uint8_t)all);
	status = ctl_ask_rows(c, MSG_CTL_PS, &body, MSG_ROW_HANDLE,
	    view_on_handle, &v);
	buf_clear(&body);
	jsonw_close_array(&v.w);
	jsonw_close_object(&v.w);
	return ctl_print_rows(c, status, &v.w, v.t);
}

static int
view_on_show(struct ctl *c, struct imsg *m, void *arg)
{
	struct ctl_handle h;
	size_t i;

	if (c->json)
		return view_on_handle(c, m, arg);
	ctl_get_row(&ctl_handle_table, m, &h);
	printf("handle     %s%s%s\n", h.handle_id,
	    h.name != NULL && h.name[0] != '\0' ? "  " : "",
	    ctl_clean(h.name));
	printf("agent      %s (%s)\n", ctl_clean(h.agent), h.agent_id);
	printf("state      %s", ctl_format_handle_state(h.state));
	if (h.exit_code.set)
		printf(", exit code %lld", (long long)h.exit_code.v);
	if (h.pid > 0)
		printf(", pid %lld on the device", (long long)h.pid);
	printf("\n");
	if (h.error != NULL && h.error[0] != '\0')
		printf("error      %s\n", ctl_clean(h.error));
	printf("dispatched %s%s%s\n", ctl_format_when(c, h.dispatched_at),
	    h.created_by != NULL && h.created_by[0] != '\0' ? " by " : "",
	    ctl_clean(h.created_by));
	printf("started    %s\n", ctl_format_when(c, h.started_at));
	printf("finished   %s\n", ctl_format_when(c, h.finished_at));
	for (i = 0; i < h.nleases; i++)
		printf("lease      %s\n", ctl_clean(h.leases[i]));
	printf("output     %llu bytes kept%s\n",
	    (unsigned long long)h.log_bytes,
	    h.gapped ? ", with gaps (cloopctl --json logs shows them)" : "");
	field_clear(&ctl_handle_table, &h);
	return EXIT_DONE;
}

/* show and wait: one handle, one row. */
static int
view_ask_handle(struct ctl *c, int argc, char **argv, uint32_t type,
    ctl_row_fn *row, struct view_handles *v)
{
	const char *handle = ctl_get_operand(argc, argv);
	struct buf body;
	int status;

	if (handle == NULL)
		return ctl_usage(c, "one handle");
	memset(v, 0, sizeof(*v));
	jsonw_init(&v->w, MAX_JSON_OUT, JSONW_NO_HTML);
	buf_init(&body, MSG_BODY_MAX);
	buf_put_str(&body, handle);
	status = ctl_ask_rows(c, type, &body, MSG_ROW_HANDLE, row, v);
	buf_clear(&body);
	if (status == EXIT_DONE && c->json)
		(void)ctl_print_json(&v->w);
	return status;
}

int
ctl_cmd_show(struct ctl *c, int argc, char **argv)
{
	struct view_handles v;

	return view_ask_handle(c, argc, argv, MSG_CTL_SHOW, view_on_show, &v);
}

int
ctl_cmd_wait(struct ctl *c, int argc, char **argv)
{
	struct view_handles v = { 0 };
	int status;

	status = view_ask_handle(c, argc, argv, MSG_CTL_WAIT, view_on_handle,
	    &v);
	return status == EXIT_DONE ? v.status : status;
}
