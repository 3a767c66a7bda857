/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * cloop-enroll: asking the running hub through its control socket.  Rows are
 * checked against the catalogue by ctlclient and decoded by their tables.
 */
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/msg/msgcat.h"
#include "enroll.h"

static int
hub_mint(struct enroll *e, const struct ctl_mint *m, struct ctl_minted *row)
{
	static const struct row_kind kind = { .type = MSG_ROW_MINT,
		.fields = &ctl_minted_table };

	field_put(&ctl_mint_table, m, &e->t.body);
	return tool_ask_one(&e->t, MSG_CTL_MINT, -1, &kind, row);
}

static int
hub_revoke(struct enroll *e, const char *id, const char *reason, int forget,
    struct ctl_revoked *row)
{
	buf_put_str(&e->t.body, id);
	buf_put_str(&e->t.body, reason);
	return tool_ask_one(&e->t, forget ? MSG_CTL_DELETE : MSG_CTL_REVOKE,
	    -1, &enroll_revoked_kind, row);
}

static int
hub_ban(struct enroll *e, const char *what, const char *reason,
    struct ctl_ban *row)
{
	buf_put_str(&e->t.body, what);
	if (reason != NULL)
		buf_put_str(&e->t.body, reason);
	return tool_ask_one(&e->t, reason != NULL ? MSG_CTL_BAN :
	    MSG_CTL_UNBAN, -1, &enroll_ban_kind, row);
}

static int
hub_list(struct enroll *e, const struct row_kind *k, row_fn *fn, void *arg)
{
	if (k->ask == MSG_CTL_AGENTS)
		buf_put_str(&e->t.body, "");	/* all of them */
	return tool_ask(&e->t, k->ask, -1, k, fn, arg);
}

/* ROW_WORKERs follow the ROW_STATUS; only the latter knows the URL. */
static int
hub_server(struct enroll *e, char **serverp)
{
	static const struct row_kind kind = { .type = MSG_ROW_STATUS,
		.fields = &ctl_status_table };
	struct ctl_status st;
	int r;

	*serverp = NULL;
	if ((r = tool_ask_one(&e->t, MSG_CTL_STATUS, -1, &kind, &st)) !=
	    EXIT_DONE)
		return r;
	*serverp = st.server;
	st.server = NULL;
	field_clear(&ctl_status_table, &st);
	return EXIT_DONE;
}

static void
hub_close(struct enroll *e)
{
	e->ops = NULL;		/* tool_end() disconnects */
}

static const struct enroll_ops hub_ops = {
	.server = hub_server,
	.mint = hub_mint,
	.revoke = hub_revoke,
	.ban = hub_ban,
	.list = hub_list,
	.close = hub_close,
};

int
enroll_open_hub(struct enroll *e, struct ctl_error *err)
{
	int r;

	if ((r = ctlclient_open(e->socket, &e->t.client, err)) == CL_OK)
		e->ops = &hub_ops;
	return r;
}
