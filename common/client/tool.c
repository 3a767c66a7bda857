/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The face of the operator's programs: refusals, JSON documents, times and
 * sizes, and asking the hub.  Runs in cloopctl and cloop-enroll as whoever
 * called them.
 */
#include "tool.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/string.h>

#include "common/base/err.h"
#include "common/base/util.h"
#include "common/base/xmem.h"
#include "common/msg/field.h"
#include "rows.h"

/* A JSON document of ours: a fleet of MAX_AGENTS rows fits. */
#define TOOL_JSON_MAX (256 * 1024 * 1024)
#define TOOL_TEXTS 8

void
tool_init(struct tool *t, const char *program, int nohub)
{
	memset(t, 0, sizeof(*t));
	t->program = program;
	t->nohub = nohub;
}

int
tool_end(struct tool *t, int status)
{
	ctlclient_close(t->client);
	t->client = NULL;
	if (fflush(stdout) == 0 || status != EXIT_DONE)
		return status;
	fprintf(stderr, "%s: stdout: write failed\n", t->program);
	return EXIT_REFUSED;
}

/* -------------------------------------------------------------- documents */

static int
tool_print_json(struct tool *t, struct jsonw *w)
{
	int r = jsonw_error(w);

	if (r == CL_OK && (fwrite(w->data, 1, w->len, stdout) != w->len ||
	    putchar('\n') == EOF || fflush(stdout) != 0))
		r = CL_SYSTEM;
	jsonw_clear(w);
	if (r == CL_OK)
		return EXIT_DONE;
	fprintf(stderr, "%s: standard output: %s\n", t->program,
	    cl_strerror(r));
	return EXIT_REFUSED;
}

void
tool_open_doc(struct tool *t)
{
	jsonw_init(&t->doc, TOOL_JSON_MAX, JSONW_NO_HTML);
	jsonw_open_object(&t->doc);
}

int
tool_close_doc(struct tool *t, int status)
{
	jsonw_close_object(&t->doc);
	if (status == EXIT_DONE && t->json)
		return tool_print_json(t, &t->doc);
	jsonw_clear(&t->doc);
	return status;
}

void
tool_put_str(struct jsonw *w, const char *key, const char *s)
{
	jsonw_put_key(w, key);
	if (s == NULL || s[0] == '\0')
		jsonw_put_null(w);
	else
		jsonw_put_str(w, s);
}

void
tool_put_time(struct jsonw *w, const char *key, int64_t wall_ns)
{
	jsonw_put_key(w, key);
	if (wall_ns == UTIL_TIME_ZERO)
		jsonw_put_null(w);
	else
		jsonw_put_time(w, wall_ns);
}

/* --------------------------------------------------------------- refusals */

void
tool_put_error(struct jsonw *w, const struct ctl_error *e)
{
	jsonw_put_key(w, "error");
	jsonw_open_object(w);
	jsonw_put_key(w, "code");
	jsonw_put_str(w, e->code);
	jsonw_put_key(w, "message");
	jsonw_put_str(w, e->message);
	tool_put_str(w, "remedy", e->remedy);
	jsonw_close_object(w);
}

int
tool_print_error(struct tool *t, const struct ctl_error *e)
{
	struct jsonw w;		/* t->doc may be open, half full */

	if (t->json) {
		jsonw_init(&w, TOOL_JSON_MAX, JSONW_NO_HTML);
		jsonw_open_object(&w);
		tool_put_error(&w, e);
		jsonw_close_object(&w);
		(void)tool_print_json(t, &w);
	}
	fflush(stdout);
	fprintf(stderr, "%s: %s%s%s\n", t->program, tool_clean(t->command),
	    t->command != NULL ? ": " : "", tool_clean(e->message));
	if (e->remedy[0] != '\0')
		fprintf(stderr, "  try: %s\n", tool_clean(e->remedy));
	return strcmp(e->code, "hub_unreachable") == 0 ? t->nohub :
	    EXIT_REFUSED;
}

int
tool_fail(struct tool *t, const char *code, const char *remedy,
    const char *fmt, ...)
{
	struct ctl_error e = { .code = "" };
	va_list ap;

	strlcpy(e.code, code, sizeof(e.code));
	strlcpy(e.remedy, remedy, sizeof(e.remedy));
	va_start(ap, fmt);
	vsnprintf(e.message, sizeof(e.message), fmt, ap);
	va_end(ap);
	return tool_print_error(t, &e);
}

/* ------------------------------------------------------------------- text */

/* Keeps the text until seven others were kept. */
static char *
tool_keep(char *text)
{
	static char *kept[TOOL_TEXTS];
	static unsigned int turn;
	char **slot = &kept[turn++ % TOOL_TEXTS];

	free(*slot);
	return *slot = text;
}

/*
 * What a device or another operator wrote must not steer the terminal:
 * control characters become '?'.
 */
const char *
tool_clean(const char *s)
{
	return tool_clean_after("", s);
}

const char *
tool_clean_after(const char *prefix, const char *s)
{
	char *text, *p;

	if (s == NULL || s[0] == '\0')
		return "";
	xasprintf(&text, "%s%s", prefix, s);
	for (p = text; *p != '\0'; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?';
	return tool_keep(text);
}

const char *
tool_format_when(const struct tool *t, int64_t wall_ns)
{
	static const struct {
		int64_t s, below;
		char unit;
	} units[] = {
		{ 1, 120, 's' }, { 60, 7200, 'm' }, { 3600, 172800, 'h' },
		{ 86400, INT64_MAX, 'd' },
	};
	char *text = xcalloc(1, UTIL_TIME_MAX);
	int64_t s, left;
	size_t i = 0;

	if (wall_ns == UTIL_TIME_ZERO)
		strlcpy(text, "-", UTIL_TIME_MAX);
	else if (t->utc)
		util_format_time(wall_ns - wall_ns % 1000000000, text);
	else {
		left = (wall_ns - util_wall_ns()) / 1000000000;
		s = left < 0 ? -left : left;
		while (s >= units[i].below)
			i++;
		/* To the nearest: what was minted for 15 minutes says so. */
		if (t->nearest)
			s += units[i].s / 2;
		else if (left > 0)
			i = 0;
		snprintf(text, UTIL_TIME_MAX, "%s%lld%c%s",
		    left > 0 ? "in " : "", (long long)(s / units[i].s),
		    units[i].unit, left > 0 ? "" : " ago");
	}
	return tool_keep(text);
}

const char *
tool_format_size(uint64_t bytes)
{
	static const char units[] = "BKMGT";
	double v = (double)bytes;
	size_t u = 0;
	char *text;

	while (v >= 1024 && u < 4) {
		v /= 1024;
		u++;
	}
	xasprintf(&text, u == 0 ? "%.0f%c" : "%.1f%c", v, units[u]);
	return tool_keep(text);
}

/* ----------------------------------------------------------------- asking */

int
tool_connect(struct tool *t)
{
	struct ctl_error e = { .code = "" };
	int r;

	if (t->client != NULL)
		return EXIT_DONE;
	if ((r = ctlclient_open(t->socket, &t->client, &e)) == CL_OK)
		return EXIT_DONE;
	(void)tool_print_error(t, &e);
	return r == CL_NOTFOUND || r == CL_TIMEOUT ? t->nohub : EXIT_REFUSED;
}

/* One message for the walk; *donep: no more will come. */
static int
tool_on_message(struct tool *t, struct imsg *m, union msg_any *v,
    tool_row_fn *fn, void *arg, int *donep)
{
	struct ctl_error e;
	int r;

	*donep = m->type == MSG_CTL_DONE || m->type == MSG_CTL_ERR;
	if (m->type == MSG_CTL_ERR) {
		ctlclient_copy_error(&e, &v->CTL_ERR);
		return tool_print_error(t, &e);
	}
	if (*donep || (r = fn(t, m, v, arg)) == CL_OK)
		return EXIT_DONE;
	*donep = 1;
	return tool_fail(t, "internal", "", "the hub's answer %s is %s",
	    msgcat_name(m->type), cl_strerror(r));
}

static int
tool_send(struct tool *t, uint32_t type, const void *v, int fd)
{
	int r, status;

	if ((status = tool_connect(t)) != EXIT_DONE) {
		if (fd != -1)
			close(fd);
		return status;
	}
	switch (r = ctlclient_send(t->client, type, v, fd, NULL)) {
	case CL_OK:
		return EXIT_DONE;
	case CL_TOOBIG:
	case CL_LIMIT:
	case CL_FORMAT:
		return tool_fail(t, "usage", "", "the request is %s",
		    cl_strerror(r));
	default:
		return tool_fail(t, "hub_unreachable", "", "the hub went "
		    "away: %s", cl_strerror(r));
	}
}

int
tool_walk(struct tool *t, uint32_t type, const void *v, int fd,
    tool_row_fn *fn, void *arg)
{
	union msg_any row;
	struct imsg m;
	int done = 0, r, status;

	status = tool_send(t, type, v, fd);
	while (status == EXIT_DONE && !done) {
		r = ctlclient_read(t->client, -1, &m, &row);
		if (r == CL_INCOMPLETE)
			continue;	/* a signal */
		if (r != CL_OK)
			return tool_fail(t, "hub_unreachable", "", "the hub "
			    "went away: %s", cl_strerror(r));
		status = tool_on_message(t, &m, &row, fn, arg, &done);
		ctlclient_free(&m, &row);
	}
	return status;
}

struct tool_rows {
	const struct row_kind *kind;
	row_fn *fn;
	void *arg;
};

static int
tool_on_row(struct tool *t, struct imsg *m, union msg_any *v, void *arg)
{
	struct tool_rows *rows = arg;

	if (rows->kind != NULL && m->type == rows->kind->type)
		return rows->fn(t, v, m->fd, rows->arg);
	if (t->on_aside != NULL)
		t->on_aside(t, m, v);
	return CL_OK;
}

int
tool_ask(struct tool *t, uint32_t type, const void *v, int fd,
    const struct row_kind *k, row_fn *fn, void *arg)
{
	struct tool_rows rows = { k, fn, arg };

	return tool_walk(t, type, v, fd, tool_on_row, &rows);
}

struct tool_one {
	const struct row_kind *kind;
	void *row;
	int n;
};

/* The row moves to the caller. */
static int
tool_on_one(struct tool *t, void *row, int fd, void *arg)
{
	struct tool_one *one = arg;

	(void)t;
	(void)fd;
	if (one->n++ > 0)
		return CL_FORMAT;
	memcpy(one->row, row, one->kind->fields->size);
	memset(row, 0, one->kind->fields->size);
	return CL_OK;
}

int
tool_ask_one(struct tool *t, uint32_t type, const void *v, int fd,
    const struct row_kind *k, void *row)
{
	struct tool_one one = { k, row, 0 };
	int status;

	field_init(k->fields, row);
	status = tool_ask(t, type, v, fd, k, tool_on_one, &one);
	if (status == EXIT_DONE && one.n != 1)
		status = tool_fail(t, "internal", "", "the hub's answer is "
		    "%s", cl_strerror(CL_FORMAT));
	if (status != EXIT_DONE)
		field_clear(k->fields, row);
	return status;
}
