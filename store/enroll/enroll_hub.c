/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * cloop-enroll: asking the running hub through its control socket.  Rows are
 * checked against the catalogue by ctlclient and decoded by their tables.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bsd/string.h>

#include "common/base/err.h"
#include "common/msg/msgcat.h"
#include "enroll.h"

/* Ask for one row; the refusal is printed. */
static int
hub_ask(struct enroll *e, uint32_t type, struct buf *body, uint32_t row_type,
    const struct field_table *table, void *row)
{
	struct ctl_error err = { .code = "internal" };
	struct buf answer;
	int r;

	buf_init(&answer, MSG_BODY_MAX);
	if ((r = body == NULL ? CL_OK : buf_error(body)) != CL_OK)
		snprintf(err.message, sizeof(err.message),
		    "the request is %s", cl_strerror(r));
	else if ((r = ctlclient_ask(e->client, type, body, -1, row_type,
	    &answer, &err)) == CL_OK &&
	    ((r = field_get(table, &answer, row)) != CL_OK ||
	    (r = buf_end(&answer)) != CL_OK))
		snprintf(err.message, sizeof(err.message),
		    "the hub's answer is %s", cl_strerror(r));
	buf_clear(&answer);
	return r == CL_OK ? ENROLL_DONE : enroll_print_error(e, &err);
}

static int
hub_mint(struct enroll *e, const struct ctl_mint *m, struct ctl_minted *row)
{
	struct buf body;
	int r;

	buf_init(&body, MSG_BODY_MAX);
	field_put(&ctl_mint_table, m, &body);
	r = hub_ask(e, MSG_CTL_MINT, &body, MSG_ROW_MINT, &ctl_minted_table,
	    row);
	buf_clear(&body);
	return r;
}

/* An id or a name, and a reason. */
static int
hub_ask_about(struct enroll *e, uint32_t type, const char *what,
    const char *reason, uint32_t row_type, const struct field_table *table,
    void *row)
{
	struct buf body;
	int r;

	buf_init(&body, MSG_BODY_MAX);
	buf_put_str(&body, what);
	if (reason != NULL)
		buf_put_str(&body, reason);
	r = hub_ask(e, type, &body, row_type, table, row);
	buf_clear(&body);
	return r;
}

static int
hub_revoke(struct enroll *e, const char *id, const char *reason,
    struct ctl_revoked *row)
{
	return hub_ask_about(e, MSG_CTL_REVOKE, id, reason, MSG_ROW_REVOKED,
	    &ctl_revoked_table, row);
}

static int
hub_forget(struct enroll *e, const char *id, const char *reason,
    struct ctl_revoked *row)
{
	return hub_ask_about(e, MSG_CTL_DELETE, id, reason, MSG_ROW_REVOKED,
	    &ctl_revoked_table, row);
}

static int
hub_ban(struct enroll *e, const char *what, const char *reason,
    struct ctl_ban *row)
{
	return hub_ask_about(e, MSG_CTL_BAN, what, reason, MSG_ROW_BAN,
	    &ctl_ban_table, row);
}

static int
hub_unban(struct enroll *e, const char *name, struct ctl_ban *row)
{
	return hub_ask_about(e, MSG_CTL_UNBAN, name, NULL, MSG_ROW_BAN,
	    &ctl_ban_table, row);
}

/* Send, and hand each row of row_type to on_row until CTL_DONE. */
static int
hub_list(struct enroll *e, uint32_t type, const struct buf *body,
    uint32_t row_type, int (*on_row)(struct enroll *, struct imsg *, void *),
    void *arg)
{
	struct ctl_error err = { .code = "internal" };
	struct imsg m;
	uint64_t req;
	int done = 0, r;

	r = ctlclient_send(e->client, type, body, -1, &req);
	while (r == CL_OK && !done) {
		if ((r = ctlclient_read(e->client, -1, &m)) == CL_INCOMPLETE) {
			r = CL_OK;	/* a signal */
			continue;
		}
		if (r != CL_OK)
			break;
		if (m.type == MSG_CTL_DONE)
			done = 1;
		else if (m.type == MSG_CTL_ERR) {
			(void)ctlclient_get_error(&m, &err);
			imsg_free(&m);
			return enroll_print_error(e, &err);
		} else if (m.type == row_type)
			r = on_row(e, &m, arg);
		imsg_free(&m);
	}
	if (r == CL_OK)
		return ENROLL_DONE;
	return enroll_fail(e, r == CL_EOF ? "hub_unreachable" : "internal",
	    "", "the hub's answer: %s", cl_strerror(r));
}

struct hub_walk {
	enroll_agent_fn *agent;
	enroll_row_fn *enrollment;
	enroll_ban_fn *ban;
	void *arg;
};

static int
hub_on_agent(struct enroll *e, struct imsg *m, void *arg)
{
	struct hub_walk *w = arg;
	struct ctl_agent a;
	int r;

	if ((r = field_get(&ctl_agent_table, &m->body, &a)) != CL_OK)
		return r;
	if ((r = buf_end(&m->body)) == CL_OK)
		r = w->agent(e, &a, w->arg);
	field_clear(&ctl_agent_table, &a);
	return r;
}

static int
hub_agents(struct enroll *e, enroll_agent_fn *fn, void *arg)
{
	struct hub_walk w = { .agent = fn, .arg = arg };
	struct buf body;
	int r;

	buf_init(&body, MSG_BODY_MAX);
	buf_put_str(&body, "");
	r = hub_list(e, MSG_CTL_AGENTS, &body, MSG_ROW_AGENT, hub_on_agent,
	    &w);
	buf_clear(&body);
	return r;
}

static int
hub_on_enrollment(struct enroll *e, struct imsg *m, void *arg)
{
	struct hub_walk *w = arg;
	struct ctl_enrollment row;
	int r;

	if ((r = field_get(&ctl_enrollment_table, &m->body, &row)) != CL_OK)
		return r;
	if ((r = buf_end(&m->body)) == CL_OK)
		r = w->enrollment(e, &row, w->arg);
	field_clear(&ctl_enrollment_table, &row);
	return r;
}

static int
hub_enrollments(struct enroll *e, enroll_row_fn *fn, void *arg)
{
	struct hub_walk w = { .enrollment = fn, .arg = arg };

	return hub_list(e, MSG_CTL_ENROLLMENTS, NULL, MSG_ROW_ENROLLMENT,
	    hub_on_enrollment, &w);
}

static int
hub_on_ban(struct enroll *e, struct imsg *m, void *arg)
{
	struct hub_walk *w = arg;
	struct ctl_ban row;
	int r;

	if ((r = field_get(&ctl_ban_table, &m->body, &row)) != CL_OK)
		return r;
	if ((r = buf_end(&m->body)) == CL_OK)
		r = w->ban(e, &row, w->arg);
	field_clear(&ctl_ban_table, &row);
	return r;
}

static int
hub_bans(struct enroll *e, enroll_ban_fn *fn, void *arg)
{
	struct hub_walk w = { .ban = fn, .arg = arg };

	return hub_list(e, MSG_CTL_BANS, NULL, MSG_ROW_BAN, hub_on_ban, &w);
}

static int
hub_on_status(struct enroll *e, struct imsg *m, void *arg)
{
	struct ctl_status st;
	char **serverp = arg;
	int r;

	(void)e;
	if ((r = field_get(&ctl_status_table, &m->body, &st)) != CL_OK)
		return r;
	if ((r = buf_end(&m->body)) == CL_OK && *serverp == NULL &&
	    (*serverp = strdup(st.server == NULL ? "" : st.server)) == NULL)
		r = CL_NOMEM;
	field_clear(&ctl_status_table, &st);
	return r;
}

/* ROW_WORKERs follow the ROW_STATUS; only the latter knows the URL. */
static int
hub_server(struct enroll *e, char **serverp)
{
	*serverp = NULL;
	return hub_list(e, MSG_CTL_STATUS, NULL, MSG_ROW_STATUS,
	    hub_on_status, serverp);
}

static void
hub_close(struct enroll *e)
{
	ctlclient_close(e->client);
	e->client = NULL;
	e->ops = NULL;
}

static const struct enroll_ops hub_ops = {
	.server = hub_server,
	.mint = hub_mint,
	.revoke = hub_revoke,
	.ban = hub_ban,
	.unban = hub_unban,
	.bans = hub_bans,
	.forget = hub_forget,
	.agents = hub_agents,
	.enrollments = hub_enrollments,
	.close = hub_close,
};

int
enroll_open_hub(struct enroll *e, struct ctl_error *err)
{
	int r;

	if ((r = ctlclient_open(e->socket, &e->client, err)) == CL_OK)
		e->ops = &hub_ops;
	return r;
}
