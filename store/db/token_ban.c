/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The other two ways to be rid of an agent (BC-42).  Revoking (token_op.c)
 * ends a credential: the device may come back with a new token.  A ban ends
 * the name: no token is made for it or taken with it until the ban is
 * lifted.  Deleting forgets the agent.  Runs in the monitor, and in
 * cloop-enroll while none runs; inside the caller's turn, audit included.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bsd/string.h>

#include "common/base/err.h"
#include "common/base/utf8.h"
#include "common/base/util.h"
#include "token.h"

/* An agent, a token, or else the name itself.  CL_NOTFOUND: blank. */
static int
token_find_name(struct store *s, const char *what, char **namep)
{
	struct store_enrollment e;
	struct store_agent a;
	int r;

	*namep = NULL;
	if ((r = store_find_agent(s, what, &a)) == CL_OK) {
		*namep = strdup(a.name);
		store_agent_clear(&a);
	} else if (r == CL_NOTFOUND &&
	    (r = store_find_enrollment(s, what, &e)) == CL_OK) {
		*namep = strdup(e.name);
		store_enrollment_clear(&e);
	} else if (r == CL_NOTFOUND)
		*namep = strdup(what);
	else
		return r;
	if (*namep == NULL)
		return CL_NOMEM;
	return **namep == '\0' ? CL_NOTFOUND : CL_OK;
}

static int
token_put_ban(struct store *s, const struct store_ban *b, unsigned int *np)
{
	char count[24];
	int r;

	*np = 0;
	if ((r = store_add_ban(s, b)) != CL_OK && r != CL_EXISTS)
		return r;
	if ((r = store_revoke_name(s, b->name, b->at, np)) != CL_OK)
		return r;
	snprintf(count, sizeof(count), "%u", *np);
	return store_add_event(s, b->at, b->actor, "executor.ban", "allow",
	    "name", b->name, "action", "ban", "name", b->name, "agents",
	    count, "reason", b->reason, (char *)NULL);
}

enum token_result
token_ban(struct store *s, const char *what, const char *reason,
    const char *actor, int64_t now, struct store_ban *b, unsigned int *np)
{
	struct store_ban stands;	/* perhaps for longer */
	const unsigned char *p;
	int r;

	memset(b, 0, sizeof(*b));
	*np = 0;
	r = token_find_name(s, what, &b->name);
	if (r == CL_NOTFOUND)
		return TOKEN_AGENT_NOT_FOUND;
	if (r != CL_OK)
		return TOKEN_FAILED;
	/* What no token can be called need not be banned. */
	if (strlen(b->name) > MAX_NAME_LEN ||
	    !utf8_is_valid(b->name, strlen(b->name)))
		return TOKEN_INVALID;
	for (p = (const unsigned char *)b->name; *p != '\0'; p++)
		if (*p < 0x20 || *p == 0x7f)
			return TOKEN_INVALID;
	b->at = now;
	if ((b->actor = strdup(actor)) == NULL ||
	    (b->reason = strdup(reason)) == NULL ||
	    token_put_ban(s, b, np) != CL_OK ||
	    store_find_ban(s, b->name, &stands) != CL_OK)
		return TOKEN_FAILED;
	store_ban_clear(b);
	*b = stands;
	return TOKEN_OK;
}

enum token_result
token_unban(struct store *s, const char *name, const char *actor,
    int64_t now, struct store_ban *b)
{
	int r;

	if ((r = store_find_ban(s, name, b)) == CL_NOTFOUND)
		return TOKEN_AGENT_NOT_FOUND;
	if (r != CL_OK || store_del_ban(s, name) != CL_OK ||
	    store_add_event(s, now, actor, "executor.unban", "allow", "name",
	    name, "action", "unban", "name", name, (char *)NULL) != CL_OK)
		return TOKEN_FAILED;
	return TOKEN_OK;
}

int
token_is_banned(struct store *s, const char *name, struct store_ban *b)
{
	int r = store_find_ban(s, name, b);

	return r == CL_OK ? 1 : r == CL_NOTFOUND ? 0 : -1;
}

enum token_result
token_delete(struct store *s, const char *id, const char *reason,
    const char *actor, int64_t now, struct token_revoked *rv)
{
	struct store_enrollment e;
	struct store_agent a;
	int r;

	memset(rv, 0, sizeof(*rv));
	if ((r = store_find_agent(s, id, &a)) == CL_NOTFOUND &&
	    (r = store_find_enrollment(s, id, &e)) == CL_OK) {
		r = store_find_agent(s, e.redeemed_agent_id, &a);
		store_enrollment_clear(&e);
	}
	if (r != CL_OK)
		return r == CL_NOTFOUND ? TOKEN_AGENT_NOT_FOUND :
		    TOKEN_FAILED;
	strlcpy(rv->kind, "deleted", sizeof(rv->kind));
	rv->agent_id = strdup(a.agent_id);
	rv->name = strdup(a.name);
	rv->enrollment_id = strdup(a.enrollment_id);
	store_agent_clear(&a);
	if (rv->agent_id == NULL || rv->name == NULL ||
	    rv->enrollment_id == NULL ||
	    store_revoke_agent(s, rv->agent_id, now) != CL_OK ||
	    store_add_event(s, now, actor, "executor.delete", "allow",
	    "executor", rv->agent_id, "action", "delete", "executor_id",
	    rv->agent_id, "name", rv->name, "enrollment_id",
	    rv->enrollment_id, "reason", reason, (char *)NULL) != CL_OK)
		return TOKEN_FAILED;
	return TOKEN_OK;
}
