/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * What cloopctl and cloop-enroll have in common: they ask the hub, and what
 * comes back is words, a table or one JSON document; a refusal looks alike
 * in both.  Everything that a hub or a device wrote passes tool_clean()
 * before it reaches a terminal.  Runs as the operator; prints, never logs.
 */
#ifndef CLOOP_TOOL_H
#define CLOOP_TOOL_H

#include <stddef.h>
#include <stdint.h>

#include "ctlclient.h"
#include "common/json/jsonw.h"

#define EXIT_DONE 0
#define EXIT_REFUSED 1
#define EXIT_USAGE 2
#define EXIT_NOHUB 3		/* cloopctl only */

struct row_kind;
struct tool;

struct tool {
	const char *program;
	const char *command;	/* NULL: not known yet */
	const char *socket;
	int json;
	int quiet;
	int color;
	int utc;		/* times in UTC, not as "2m ago" */
	int nearest;		/* times to the nearest unit, not down */
	int nohub;		/* exit status when the hub is not there */
	struct ctlclient *client;	/* NULL: not connected */
	struct jsonw doc;	/* the document that is open */
	/* A row of another kind than was asked for; NULL: ignored. */
	void (*on_aside)(struct tool *t, struct imsg *m, union msg_any *v);
};

void tool_init(struct tool *t, const char *program, int nohub);
/* Disconnect.  A failed write turns status 0 into 1 and is said. */
int tool_end(struct tool *t, int status);

/* Print a refusal in the chosen form; returns the exit status for it. */
int tool_print_error(struct tool *t, const struct ctl_error *e);
int tool_fail(struct tool *t, const char *code, const char *remedy,
    const char *fmt, ...) __attribute__((__format__(__printf__, 4, 5)));
/* The members of an error, as one object. */
void tool_put_error(struct jsonw *w, const struct ctl_error *e);

/*
 * t->doc: an object.  Closing prints it when status is 0 and JSON was asked
 * for, forgets it otherwise, and returns the exit status.
 */
void tool_open_doc(struct tool *t);
int tool_close_doc(struct tool *t, int status);

/* A member whose value is null when it is empty. */
void tool_put_str(struct jsonw *w, const char *key, const char *s);
void tool_put_time(struct jsonw *w, const char *key, int64_t wall_ns);

/* Control characters become '?'.  These four rotate static memory: eight
 * results are good at a time. */
const char *tool_clean(const char *s);
/* The same after a prefix; "" when s is empty. */
const char *tool_clean_after(const char *prefix, const char *s);
/* "2m ago", "in 15m", UTC; "-" when unset. */
const char *tool_format_when(const struct tool *t, int64_t wall_ns);
const char *tool_format_size(uint64_t bytes);

/* Connect unless connected; prints the reason.  0 or the exit status. */
int tool_connect(struct tool *t);
/* A request and its body, the type of which the compiler checks. */
#define TOOL_REQUEST(name, v) MSG_##name, MSG_BODY(name, v)
/*
 * Send a request with fd (-1: none; taken), hand every row to fn until the
 * hub is done; fn returns CL_OK or ends it.  Returns the exit status; errors
 * are printed.
 */
typedef int tool_row_fn(struct tool *t, struct imsg *m, union msg_any *v,
    void *arg);
int tool_walk(struct tool *t, uint32_t type, const void *v, int fd,
    tool_row_fn *fn, void *arg);
/*
 * The same for rows of one kind (NULL: none is expected).  The row is
 * cleared after fn; fd is what came with it, borrowed.
 */
typedef int row_fn(struct tool *t, void *row, int fd, void *arg);
int tool_ask(struct tool *t, uint32_t type, const void *v, int fd,
    const struct row_kind *k, row_fn *fn, void *arg);
/* Exactly one row: *row is a zero value, or to be cleared. */
int tool_ask_one(struct tool *t, uint32_t type, const void *v, int fd,
    const struct row_kind *k, void *row);

#endif
