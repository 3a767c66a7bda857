/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * cloopctl: watching one workload to its end, for `run` and `logs -f`.
 * Output is read from the log file itself through the passed descriptors;
 * the control socket only says what happened.  A hub that goes away while
 * the workload runs is waited for: the files and our place in them stay.
 */
#include <sys/types.h>

#include <bsd/stdlib.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/base/conf.h"
#include "common/base/err.h"
#include "common/base/util.h"
#include "common/base/xmem.h"
#include "common/msg/msgcat.h"
#include "cloopctl.h"

#define FOLLOW_BUSY_MS 5	/* between looks while output flows */
#define FOLLOW_IDLE_MS 40	/* and while it does not */
#define FOLLOW_RETRY_MS 500	/* between attempts to reach a hub */

static volatile sig_atomic_t follow_interrupts;

static void
follow_on_signal(int sig)
{
	(void)sig;
	follow_interrupts++;
}

void
follow_init(struct follow *f, struct tool *t)
{
	struct sigaction sa = { .sa_handler = follow_on_signal };

	memset(f, 0, sizeof(*f));
	f->t = t;
	f->log_fd = -1;
	field_init(&ctl_handle_table, &f->last);
	field_init(&ctl_log_table, &f->log);
	field_init(&ctl_log_table, &f->index);
	sigemptyset(&sa.sa_mask);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
}

int
follow_ask(struct follow *f, uint32_t type, const void *v, int fd)
{
	int r = ctlclient_send(f->t->client, type, v, fd, &f->req);

	if (r == CL_OK)
		return EXIT_DONE;
	fprintf(stderr, "cloopctl: %s: %s\n", f->t->command, cl_strerror(r));
	return EXIT_NOHUB;
}

void
follow_clear(struct follow *f)
{
	field_clear(&ctl_handle_table, &f->last);
	field_clear(&ctl_log_table, &f->log);
	field_clear(&ctl_log_table, &f->index);
	logview_free(f->view);
	f->view = NULL;
	free(f->handle_id);
	f->handle_id = NULL;
	if (f->log_fd != -1)
		close(f->log_fd);
	f->log_fd = -1;
}

static const struct row_col event_cols[] = {
	COL("handle_id"), COL("agent_id"), COL("agent"), COL("at"),
	{ .key = "pid", .how = COL_KNOWN },
	COL("started_at"),
};
static const struct row_kind event_kind = { .type = MSG_ROW_EVENT,
	.fields = &ctl_event_table, COLS(event_cols) };

static void
follow_open_doc(struct follow *f, const char *event)
{
	tool_open_doc(f->t);
	jsonw_put_key(&f->t->doc, "event");
	jsonw_put_str(&f->t->doc, event);
}

static void
follow_put_json(struct follow *f, const char *event,
    const struct ctl_event *ev)
{
	follow_open_doc(f, event);
	rows_put(&f->t->doc, ev != NULL ? &event_kind : &handle_kind,
	    ev != NULL ? (const void *)ev : &f->last);
	(void)tool_close_doc(f->t, EXIT_DONE);
}

static void
follow_on_event(struct follow *f, const struct ctl_event *ev)
{
	free(f->handle_id);
	f->handle_id = xstrdup(ev->handle_id);
	if (strcmp(ev->event, "started") == 0)
		f->started = 1;
	if (f->t->json && !f->detach)
		follow_put_json(f, ev->event, ev);
}

/* The log's descriptor comes first, its index second. */
static void
follow_on_file(struct follow *f, struct imsg *m, union msg_any *v)
{
	struct ctl_log *file = m->type == MSG_ROW_LOG ? &f->log : &f->index;
	int fd = imsg_take_fd(m);

	field_clear(&ctl_log_table, file);
	*file = m->type == MSG_ROW_LOG ? v->ROW_LOG : v->ROW_INDEX;
	memset(v, 0, sizeof(*v));	/* what it owns is ours */
	if (f->view != NULL) {
		close(fd);	/* reconnected: ours are open already */
	} else if (m->type == MSG_ROW_LOG) {
		if (f->log_fd != -1)
			close(f->log_fd);
		f->log_fd = fd;
	} else if (f->log_fd == -1) {
		close(fd);
	} else {
		f->view = logview_new(f->log_fd, fd);
		f->log_fd = -1;
	}
}

static int
follow_print(struct follow *f, size_t *np)
{
	int r;

	*np = 0;
	if (f->view == NULL || f->detach)
		return EXIT_DONE;
	if ((r = logview_print(f->t, f->view, np)) == CL_OK)
		return EXIT_DONE;
	fprintf(stderr, "cloopctl: output: %s\n", cl_strerror(r));
	return EXIT_REFUSED;
}

/* Ctrl-C: TERM once, KILL from the second time on. */
static void
follow_send_signals(struct follow *f)
{
	struct msg_ctl_signal req;

	while (f->run && f->handle_id != NULL &&
	    f->nsignals < (uint64_t)follow_interrupts) {
		req.handle = f->handle_id;
		req.sig = f->nsignals++ == 0 ? SIG_TERMINATE : SIG_KILL;
		if (!f->t->quiet)
			fprintf(stderr, "cloopctl: sending %s%s\n",
			    req.sig == SIG_KILL ? "KILL" : "TERM",
			    req.sig == SIG_KILL ? "" : " (again for KILL)");
		(void)ctlclient_send(f->t->client,
		    TOOL_REQUEST(CTL_SIGNAL, &req), -1, NULL);
	}
}

/* A refusal of our own request; one of a signal's is only said. */
static int
follow_on_error(struct follow *f, uint64_t id, const struct msg_ctl_err *v)
{
	struct ctl_error e;

	ctlclient_copy_error(&e, v);
	if (id != f->req) {
		fprintf(stderr, "cloopctl: signal: %s\n",
		    tool_clean(e.message));
		return -1;
	}
	if (f->run && !f->detach && f->t->json) {
		follow_open_doc(f, "refused");
		tool_put_error(&f->t->doc, &e);
		(void)tool_close_doc(f->t, EXIT_DONE);
		f->t->json = 0;		/* the words still go to stderr */
	}
	(void)tool_print_error(f->t, &e);
	return f->run ? EXIT_NOSTART : EXIT_REFUSED;
}

/* One row; -1: go on, else the exit status. */
static int
follow_on_row(struct follow *f, struct imsg *m, union msg_any *v)
{
	switch (m->type) {
	case MSG_ROW_EVENT:
		follow_on_event(f, &v->ROW_EVENT);
		return -1;
	case MSG_ROW_LOG:
	case MSG_ROW_INDEX:
		follow_on_file(f, m, v);
		return -1;
	case MSG_ROW_RESULT:
		cmd_keep_result(f->t, m, v);
		return -1;
	case MSG_ROW_HANDLE:
		field_clear(&ctl_handle_table, &f->last);
		f->last = v->ROW_HANDLE;
		memset(v, 0, sizeof(*v));	/* what it owns is ours */
		f->have_last = 1;
		return -1;
	case MSG_CTL_ERR:
		return follow_on_error(f, m->id, &v->CTL_ERR);
	case MSG_CTL_DONE:
		if (m->id == f->req)
			f->done = 1;
		return -1;
	default:
		return -1;
	}
}

/* The hub is gone; wait for it and follow the handle again. */
static int
follow_reconnect(struct follow *f)
{
	struct timespec pause = { .tv_nsec = FOLLOW_RETRY_MS * 1000000L };
	struct msg_ctl_logs req = { f->handle_id, 1 };
	struct ctl_error e;
	int r;

	ctlclient_close(f->t->client);
	f->t->client = NULL;
	if (f->handle_id == NULL || (f->run && (!f->started || f->detach))) {
		fprintf(stderr, "cloopctl: the hub went away%s%s%s\n",
		    f->handle_id != NULL ? "; the state of handle " : "",
		    f->handle_id != NULL ? f->handle_id : "",
		    f->handle_id != NULL ? " is unknown" : "");
		return EXIT_NOHUB;
	}
	if (!f->t->quiet)
		fprintf(stderr, "cloopctl: the hub went away; waiting for "
		    "it (handle %s)\n", f->handle_id);
	while ((r = ctlclient_open(f->t->socket, &f->t->client, &e)) !=
	    CL_OK) {
		if (r == CL_DENIED || r == CL_VERSION || follow_interrupts > 0)
			return tool_print_error(f->t, &e);
		nanosleep(&pause, NULL);
	}
	return follow_ask(f, TOOL_REQUEST(CTL_LOGS, &req), -1) == EXIT_DONE ?
	    -1 : EXIT_NOHUB;
}

/* All rows that are there; waits at most wait_ms for the first. */
static int
follow_read(struct follow *f, int wait_ms)
{
	union msg_any v;
	struct imsg m;
	int r = CL_INCOMPLETE, status = -1;

	while (status == -1 && !f->done &&
	    (r = ctlclient_read(f->t->client, wait_ms, &m, &v)) ==
	    CL_OK) {
		status = follow_on_row(f, &m, &v);
		ctlclient_free(&m, &v);
		wait_ms = 0;
	}
	if (status != -1 || f->done || r == CL_INCOMPLETE)
		return status;
	return follow_reconnect(f);
}

/* Until both files are there: -1, or the exit status when refused. */
static int
follow_open(struct follow *f)
{
	int status = -1;

	while (status == -1 && f->view == NULL && !f->done)
		status = follow_read(f, 200);
	return status;
}

/* What came back, as an event of its own. */
static void
follow_put_result(struct follow *f)
{
	if (!cmd_has_result(f->last.handle_id))
		return;
	follow_open_doc(f, "result");
	tool_put_str(&f->t->doc, "handle_id", f->last.handle_id);
	jsonw_put_key(&f->t->doc, "result");
	cmd_put_result(&f->t->doc, f->last.handle_id);
	(void)tool_close_doc(f->t, EXIT_DONE);
}

static int
follow_end(struct follow *f)
{
	size_t n;

	if (follow_print(f, &n) != EXIT_DONE)
		return EXIT_REFUSED;
	if (!f->run || f->detach || !f->have_last)
		return EXIT_DONE;
	if (f->t->json) {
		follow_put_result(f);
		follow_put_json(f, "exit", NULL);
	} else if (!f->t->quiet)
		cmd_print_result(stderr, f->last.handle_id);
	if (f->last.error != NULL && f->last.error[0] != '\0' && !f->t->quiet)
		fprintf(stderr, "cloopctl: workload %s: %s\n",
		    ctl_format_handle_state(f->last.state),
		    tool_clean(f->last.error));
	return cmd_get_exit_status(&f->last);
}

int
follow_run(struct follow *f)
{
	size_t n = 0;
	int status;

	for (;;) {
		status = follow_read(f, f->view == NULL || f->detach ? 200 :
		    n > 0 ? FOLLOW_BUSY_MS : FOLLOW_IDLE_MS);
		if (status != -1)
			return status;
		if (f->done)
			return follow_end(f);
		if (!f->run && follow_interrupts > 0)
			return EXIT_DONE;
		follow_send_signals(f);
		if (follow_print(f, &n) != EXIT_DONE)
			return EXIT_REFUSED;
	}
}

/* ------------------------------------------------------------------- logs */

/* "10m" ago, or a time as RFC 3339. */
int
cmd_parse_since(const char *text, int64_t *wallp)
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

struct cmd_logs_args {
	struct msg_ctl_logs req;
	int changed;		/* print it all the same */
	int64_t tail;		/* -1: all */
	int64_t since;
	uint64_t from;
};

static int
cmd_logs_parse(struct tool *t, int argc, char **argv, struct cmd_logs_args *a)
{
	const char *tail = NULL, *since = NULL, *from = NULL, *why = NULL;
	const struct cmd_option options[] = {
		{ "f", NULL, &a->req.follow },
		{ "follow", NULL, &a->req.follow },
		{ "changed", NULL, &a->changed },
		{ "tail", &tail, NULL },
		{ "since", &since, NULL },
		{ "from", &from, NULL },
		{ NULL, NULL, NULL },
	};
	int status;

	if ((status = cmd_parse(t, argc, argv, options, "one handle",
	    &a->req.handle)) != EXIT_DONE)
		return status;
	a->tail = tail == NULL ? -1 : strtonum(tail, 0, LLONG_MAX, &why);
	if (why != NULL)
		return cmd_usage(t, "%s: %s", tail, why);
	if (from != NULL)
		a->from = (uint64_t)strtonum(from, 0, LLONG_MAX, &why);
	if (why != NULL)
		return cmd_usage(t, "%s: %s", from, why);
	a->since = INT64_MIN;
	return since == NULL || cmd_parse_since(since, &a->since) == CL_OK ?
	    EXIT_DONE : cmd_usage(t, "%s: not a time", since);
}

/* Set the starting point once both files are there. */
static int
cmd_logs_seek(struct follow *f, const struct cmd_logs_args *a)
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
cmd_logs(struct tool *t, int argc, char **argv)
{
	struct cmd_logs_args a;
	struct follow f;
	int status;

	memset(&a, 0, sizeof(a));
	if ((status = cmd_logs_parse(t, argc, argv, &a)) != EXIT_DONE ||
	    (status = tool_connect(t)) != EXIT_DONE)
		return status;
	follow_init(&f, t);
	f.handle_id = xstrdup(a.req.handle);
	if ((status = follow_ask(&f, TOOL_REQUEST(CTL_LOGS, &a.req), -1)) ==
	    EXIT_DONE)
		status = follow_open(&f);
	if (status == -1 && f.view != NULL &&
	    !logview_check(f.view, &f.log, &f.index) && !a.changed)
		status = EXIT_DONE;
	else if (status == -1 && f.view != NULL)
		status = cmd_logs_seek(&f, &a) == EXIT_DONE ? follow_run(&f) :
		    EXIT_REFUSED;
	follow_clear(&f);
	return status;
}
