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

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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
follow_init(struct follow *f, struct ctl *c)
{
	struct sigaction sa = { .sa_handler = follow_on_signal };

	memset(f, 0, sizeof(*f));
	f->c = c;
	f->log_fd = -1;
	field_init(&ctl_handle_table, &f->last);
	sigemptyset(&sa.sa_mask);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
}

void
follow_clear(struct follow *f)
{
	field_clear(&ctl_handle_table, &f->last);
	logview_free(f->view);
	f->view = NULL;
	free(f->handle_id);
	f->handle_id = NULL;
	if (f->log_fd != -1)
		close(f->log_fd);
	f->log_fd = -1;
}

static void
follow_put_json(struct follow *f, const char *event,
    const struct ctl_event *ev)
{
	struct jsonw w;

	jsonw_init(&w, MAX_JSON_OUT, JSONW_NO_HTML);
	jsonw_open_object(&w);
	jsonw_put_key(&w, "event");
	jsonw_put_str(&w, event);
	if (ev != NULL) {
		ctl_put_str(&w, "handle_id", ev->handle_id);
		ctl_put_str(&w, "agent_id", ev->agent_id);
		ctl_put_str(&w, "agent", ev->agent);
		ctl_put_time(&w, "at", ev->at);
		jsonw_put_key(&w, "pid");
		if (ev->pid > 0)
			jsonw_put_int(&w, ev->pid);
		else
			jsonw_put_null(&w);
		ctl_put_time(&w, "started_at", ev->started_at);
	} else {
		ctl_put_handle(&w, &f->last);
	}
	jsonw_close_object(&w);
	(void)ctl_print_json(&w);
}

static void
follow_on_event(struct follow *f, struct imsg *m)
{
	struct ctl_event ev;

	ctl_get_row(&ctl_event_table, m, &ev);
	free(f->handle_id);
	f->handle_id = xstrdup(ev.handle_id);
	if (strcmp(ev.event, "started") == 0)
		f->started = 1;
	if (f->c->json && !f->detach)
		follow_put_json(f, ev.event, &ev);
	field_clear(&ctl_event_table, &ev);
}

/* The log's descriptor comes first, its index second. */
static void
follow_on_file(struct follow *f, struct imsg *m)
{
	int fd = imsg_take_fd(m);

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
	if ((r = logview_print(f->c, f->view, np)) == CL_OK)
		return EXIT_DONE;
	fprintf(stderr, "cloopctl: output: %s\n", cl_strerror(r));
	return EXIT_REFUSED;
}

/* Ctrl-C: TERM once, KILL from the second time on. */
static void
follow_send_signals(struct follow *f)
{
	struct buf body;
	uint64_t req;
	uint8_t sig;

	while (f->run && f->handle_id != NULL &&
	    f->nsignals < (uint64_t)follow_interrupts) {
		sig = f->nsignals++ == 0 ? SIG_TERMINATE : SIG_KILL;
		if (!f->c->quiet)
			fprintf(stderr, "cloopctl: sending %s%s\n",
			    sig == SIG_KILL ? "KILL" : "TERM",
			    sig == SIG_KILL ? "" : " (again for KILL)");
		buf_init(&body, MSG_BODY_MAX);
		buf_put_str(&body, f->handle_id);
		buf_put_u8(&body, sig);
		(void)ctlclient_send(f->c->client, MSG_CTL_SIGNAL, &body, -1,
		    &req);
		buf_clear(&body);
	}
}

/* A refusal of our own request; one of a signal's is only said. */
static int
follow_on_error(struct follow *f, struct imsg *m)
{
	struct ctl_error e;
	struct jsonw w;

	(void)ctlclient_get_error(m, &e);
	if (m->id != f->req) {
		fprintf(stderr, "cloopctl: signal: %s\n",
		    ctl_clean(e.message));
		return -1;
	}
	if (f->run && !f->detach && f->c->json) {
		jsonw_init(&w, MAX_JSON_OUT, JSONW_NO_HTML);
		jsonw_open_object(&w);
		jsonw_put_key(&w, "event");
		jsonw_put_str(&w, "refused");
		jsonw_put_key(&w, "error");
		jsonw_open_object(&w);
		jsonw_put_key(&w, "code");
		jsonw_put_str(&w, e.code);
		jsonw_put_key(&w, "message");
		jsonw_put_str(&w, e.message);
		ctl_put_str(&w, "remedy", e.remedy);
		jsonw_close_object(&w);
		jsonw_close_object(&w);
		(void)ctl_print_json(&w);
		f->c->json = 0;		/* the words still go to stderr */
	}
	(void)ctl_print_error(f->c, &e);
	return f->run ? EXIT_NOSTART : EXIT_REFUSED;
}

/* One row; -1: go on, else the exit status. */
static int
follow_on_row(struct follow *f, struct imsg *m)
{
	switch (m->type) {
	case MSG_ROW_EVENT:
		follow_on_event(f, m);
		return -1;
	case MSG_ROW_LOG:
	case MSG_ROW_INDEX:
		follow_on_file(f, m);
		return -1;
	case MSG_ROW_RESULT:
		ctl_keep_result(m);
		return -1;
	case MSG_ROW_HANDLE:
		field_clear(&ctl_handle_table, &f->last);
		ctl_get_row(&ctl_handle_table, m, &f->last);
		f->have_last = 1;
		return -1;
	case MSG_CTL_ERR:
		return follow_on_error(f, m);
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
	struct ctl_error e;
	struct buf body;
	int r;

	ctlclient_close(f->c->client);
	f->c->client = NULL;
	if (f->handle_id == NULL || (f->run && (!f->started || f->detach))) {
		fprintf(stderr, "cloopctl: the hub went away%s%s%s\n",
		    f->handle_id != NULL ? "; the state of handle " : "",
		    f->handle_id != NULL ? f->handle_id : "",
		    f->handle_id != NULL ? " is unknown" : "");
		return EXIT_NOHUB;
	}
	if (!f->c->quiet)
		fprintf(stderr, "cloopctl: the hub went away; waiting for "
		    "it (handle %s)\n", f->handle_id);
	while ((r = ctlclient_open(f->c->socket, &f->c->client, &e)) !=
	    CL_OK) {
		if (r == CL_DENIED || r == CL_VERSION || follow_interrupts > 0)
			return ctl_print_error(f->c, &e);
		nanosleep(&pause, NULL);
	}
	buf_init(&body, MSG_BODY_MAX);
	buf_put_str(&body, f->handle_id);
	buf_put_u8(&body, 1);
	r = ctlclient_send(f->c->client, MSG_CTL_LOGS, &body, -1, &f->req);
	buf_clear(&body);
	return r == CL_OK ? -1 : EXIT_NOHUB;
}

/* All rows that are there; waits at most wait_ms for the first. */
static int
follow_read(struct follow *f, int wait_ms)
{
	struct imsg m;
	int r = CL_INCOMPLETE, status = -1;

	while (status == -1 && !f->done &&
	    (r = ctlclient_read(f->c->client, wait_ms, &m)) == CL_OK) {
		status = follow_on_row(f, &m);
		imsg_free(&m);
		wait_ms = 0;
	}
	if (status != -1 || f->done || r == CL_INCOMPLETE)
		return status;
	return follow_reconnect(f);
}

int
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
	struct jsonw w;

	jsonw_init(&w, MAX_JSON_OUT, JSONW_NO_HTML);
	jsonw_open_object(&w);
	jsonw_put_key(&w, "event");
	jsonw_put_str(&w, "result");
	ctl_put_str(&w, "handle_id", f->last.handle_id);
	ctl_put_result(&w, f->last.handle_id);
	jsonw_close_object(&w);
	if (ctl_has_result(f->last.handle_id))
		(void)ctl_print_json(&w);
	else
		jsonw_clear(&w);
}

static int
follow_end(struct follow *f)
{
	size_t n;

	if (follow_print(f, &n) != EXIT_DONE)
		return EXIT_REFUSED;
	if (!f->run || f->detach || !f->have_last)
		return EXIT_DONE;
	if (f->c->json) {
		follow_put_result(f);
		follow_put_json(f, "exit", NULL);
	} else if (!f->c->quiet)
		(void)ctl_print_result(stderr, f->last.handle_id);
	if (f->last.error != NULL && f->last.error[0] != '\0' && !f->c->quiet)
		fprintf(stderr, "cloopctl: workload %s: %s\n",
		    ctl_format_handle_state(f->last.state),
		    ctl_clean(f->last.error));
	return ctl_get_exit_status(&f->last);
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
