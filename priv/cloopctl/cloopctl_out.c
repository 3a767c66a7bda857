/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * cloopctl: connecting, asking, and how things look: errors, JSON
 * documents, aligned tables, times.
 */
#include <sys/types.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/err.h"
#include "common/base/util.h"
#include "common/base/xmem.h"
#include "common/msg/msgcat.h"
#include "cloopctl.h"

int
ctl_print_error(struct ctl *c, const struct ctl_error *e)
{
	struct jsonw w;

	if (c->json) {
		jsonw_init(&w, MAX_JSON_OUT, JSONW_NO_HTML);
		jsonw_open_object(&w);
		jsonw_put_key(&w, "error");
		jsonw_open_object(&w);
		jsonw_put_key(&w, "code");
		jsonw_put_str(&w, e->code);
		jsonw_put_key(&w, "message");
		jsonw_put_str(&w, e->message);
		ctl_put_str(&w, "remedy", e->remedy);
		jsonw_close_object(&w);
		jsonw_close_object(&w);
		(void)ctl_print_json(&w);
	}
	fprintf(stderr, "cloopctl: %s: %s\n", ctl_clean(c->command),
	    ctl_clean(e->message));
	if (e->remedy[0] != '\0')
		fprintf(stderr, "  try: %s\n", ctl_clean(e->remedy));
	return strcmp(e->code, "hub_unreachable") == 0 ? EXIT_NOHUB :
	    EXIT_REFUSED;
}

int
ctl_connect(struct ctl *c)
{
	struct ctl_error e = { .code = "" };
	int r;

	if (c->client != NULL)
		return EXIT_DONE;
	if ((r = ctlclient_open(c->socket, &c->client, &e)) == CL_OK)
		return EXIT_DONE;
	(void)ctl_print_error(c, &e);
	return r == CL_NOTFOUND || r == CL_TIMEOUT ? EXIT_NOHUB :
	    EXIT_REFUSED;
}

int
ctl_print_json(struct jsonw *w)
{
	int r = jsonw_error(w);

	if (r == CL_OK && (fwrite(w->data, 1, w->len, stdout) != w->len ||
	    putchar('\n') == EOF || fflush(stdout) != 0))
		r = CL_SYSTEM;
	jsonw_clear(w);
	return r;
}

int
ctl_ask_rows(struct ctl *c, uint32_t type, const struct buf *body,
    uint32_t row_type, ctl_row_fn *row, void *arg)
{
	struct ctl_error e = { .code = "hub_unreachable" };
	struct imsg m;
	uint64_t req;
	int r, status;

	if ((status = ctl_connect(c)) != EXIT_DONE)
		return status;
	if ((r = ctlclient_send(c->client, type, body, -1, &req)) != CL_OK)
		goto lost;
	for (;;) {
		r = ctlclient_read(c->client, -1, &m);
		if (r == CL_INCOMPLETE)
			continue;
		if (r != CL_OK)
			goto lost;
		if (m.type == MSG_CTL_DONE) {
			imsg_free(&m);
			return EXIT_DONE;
		}
		if (m.type == MSG_CTL_ERR) {
			(void)ctlclient_get_error(&m, &e);
			imsg_free(&m);
			return ctl_print_error(c, &e);
		}
		if (m.type == MSG_ROW_RESULT) {
			ctl_keep_result(&m);
			imsg_free(&m);
			continue;
		}
		status = row != NULL && (row_type == 0 || m.type == row_type) ?
		    row(c, &m, arg) : EXIT_DONE;
		imsg_free(&m);
		if (status != EXIT_DONE)
			return status;
	}
lost:
	snprintf(e.message, sizeof(e.message), "the hub went away: %s",
	    cl_strerror(r));
	return ctl_print_error(c, &e);
}

void
ctl_get_row(const struct field_table *t, struct imsg *m, void *v)
{
	int r;

	if ((r = field_get(t, &m->body, v)) != CL_OK ||
	    (r = buf_end(&m->body)) != CL_OK) {
		fprintf(stderr, "cloopctl: the hub's answer %s is %s\n",
		    msgcat_name(m->type), cl_strerror(r));
		exit(EXIT_REFUSED);
	}
}

const char *
ctl_format_when(const struct ctl *c, int64_t wall_ns)
{
	static char text[4][UTIL_TIME_MAX];
	static unsigned int turn;
	char *dst = text[turn++ % 4];
	int64_t s;

	if (wall_ns == UTIL_TIME_ZERO)
		return "-";
	if (c->utc) {
		util_format_time(wall_ns - wall_ns % 1000000000, dst);
		return dst;
	}
	s = (util_wall_ns() - wall_ns) / 1000000000;
	if (s < 0)
		snprintf(dst, UTIL_TIME_MAX, "in %llds", (long long)-s);
	else if (s < 120)
		snprintf(dst, UTIL_TIME_MAX, "%llds ago", (long long)s);
	else if (s < 7200)
		snprintf(dst, UTIL_TIME_MAX, "%lldm ago", (long long)s / 60);
	else if (s < 172800)
		snprintf(dst, UTIL_TIME_MAX, "%lldh ago", (long long)s / 3600);
	else
		snprintf(dst, UTIL_TIME_MAX, "%lldd ago",
		    (long long)s / 86400);
	return dst;
}

const char *
ctl_format_size(uint64_t bytes)
{
	static const char *const units[] = { "B", "K", "M", "G", "T" };
	static char text[2][32];
	static unsigned int turn;
	char *dst = text[turn++ % 2];
	double v = (double)bytes;
	size_t u = 0;

	while (v >= 1024 && u < 4) {
		v /= 1024;
		u++;
	}
	snprintf(dst, sizeof(text[0]), u == 0 ? "%.0f%s" : "%.1f%s", v,
	    units[u]);
	return dst;
}

void
ctl_put_time(struct jsonw *w, const char *key, int64_t wall_ns)
{
	jsonw_put_key(w, key);
	if (wall_ns == UTIL_TIME_ZERO)
		jsonw_put_null(w);
	else
		jsonw_put_time(w, wall_ns);
}

void
ctl_put_str(struct jsonw *w, const char *key, const char *s)
{
	jsonw_put_key(w, key);
	if (s == NULL || s[0] == '\0')
		jsonw_put_null(w);
	else
		jsonw_put_str(w, s);
}

/*
 * What a device or another operator wrote must not steer the terminal:
 * control characters become '?'.
 */
const char *
ctl_clean(const char *s)
{
	static char *text[8];
	static unsigned int turn;
	char **slot = &text[turn++ % 8], *p;

	free(*slot);
	*slot = xstrdup(s == NULL ? "" : s);
	for (p = *slot; *p != '\0'; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?';
	return *slot;
}

struct ctl_table {
	size_t ncolumns;
	size_t ncells;
	char **cells;
};

struct ctl_table *
ctl_table_new(size_t ncolumns)
{
	struct ctl_table *t = xcalloc(1, sizeof(*t));

	t->ncolumns = ncolumns;
	return t;
}

void
ctl_table_add(struct ctl_table *t, const char *cell)
{
	if (t->ncells % 64 == 0)
		t->cells = xreallocarray(t->cells, t->ncells + 64,
		    sizeof(*t->cells));
	t->cells[t->ncells++] = xstrdup(ctl_clean(
	    cell == NULL || cell[0] == '\0' ? "-" : cell));
}

void
ctl_table_print(struct ctl *c, struct ctl_table *t)
{
	size_t *width = xcalloc(t->ncolumns, sizeof(*width)), i, col;
	int head;

	for (i = 0; i < t->ncells; i++)
		if (strlen(t->cells[i]) > width[i % t->ncolumns])
			width[i % t->ncolumns] = strlen(t->cells[i]);
	for (i = 0; i < t->ncells; i++) {
		col = i % t->ncolumns;
		head = i < t->ncolumns;
		if (head && col == 0 && c->color)
			fputs("\033[1m", stdout);
		if (col == t->ncolumns - 1)
			printf("%s%s\n", t->cells[i],
			    head && c->color ? "\033[0m" : "");
		else
			printf("%-*s  ", (int)width[col], t->cells[i]);
	}
	free(width);
	ctl_table_free(t);
}

void
ctl_table_free(struct ctl_table *t)
{
	size_t i;

	if (t == NULL)
		return;
	for (i = 0; i < t->ncells; i++)
		free(t->cells[i]);
	free(t->cells);
	free(t);
}

int
ctl_print_rows(struct ctl *c, int status, struct jsonw *w,
    struct ctl_table *t)
{
	if (status == EXIT_DONE && !c->json && t != NULL) {
		ctl_table_print(c, t);
		t = NULL;
	}
	if (status == EXIT_DONE && c->json)
		status = ctl_print_json(w) == CL_OK ? EXIT_DONE :
		    EXIT_REFUSED;
	else
		jsonw_clear(w);
	ctl_table_free(t);
	return status;
}
