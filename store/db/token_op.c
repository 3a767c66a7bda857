/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Minting, redeeming, authenticating and revoking.  Runs in the monitor, and
 * in cloop-enroll while none runs.  The caller gives a token as it came from
 * the network; the checks come in Go's order, each with its own result, which
 * stays inside the hub: outside all refusals look the same.  Everything is
 * written in the caller's turn, so a token cannot be half-used: claim, agent
 * record and audit row are committed together or not at all.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bsd/string.h>

#include "common/base/err.h"
#include "common/base/idgen.h"
#include "common/base/utf8.h"
#include "common/base/util.h"
#include "token.h"

#define TOKEN_SPACE " \t\r\n\v\f"
#define NS_PER_S 1000000000LL

/* A trimmed copy; NULL: no memory. */
static char *
token_copy_trimmed(const char *text)
{
	size_t len;

	if (text == NULL)
		text = "";
	text += strspn(text, TOKEN_SPACE);
	for (len = strlen(text); len > 0 &&
	    strchr(TOKEN_SPACE, text[len - 1]) != NULL; len--)
		;
	return strndup(text, len);
}

/* A value that ends up on terminals and in bundles: UTF-8, no controls. */
static int
token_is_text(const char *text)
{
	const unsigned char *p;

	for (p = (const unsigned char *)text; *p != '\0'; p++)
		if (*p < 0x20 || *p == 0x7f)
			return 0;
	return utf8_is_valid(text, strlen(text));
}

static int
token_check_labels(const struct store_labels *l, const char **whyp)
{
	size_t i;

	for (i = 0; i < l->n; i++) {
		*whyp = "a label is too long";
		if (strlen(l->v[i].key) > MAX_LABEL_LEN ||
		    strlen(l->v[i].value) > MAX_LABEL_LEN)
			return CL_TOOBIG;
		*whyp = "a label needs a key, and text without control "
		    "characters";
		if (l->v[i].key[strspn(l->v[i].key, TOKEN_SPACE)] == '\0' ||
		    !token_is_text(l->v[i].key) ||
		    !token_is_text(l->v[i].value))
			return CL_FORMAT;
	}
	return CL_OK;
}

static int
token_copy_labels(const struct store_labels *l, struct store_labels *copy)
{
	size_t i;
	int r = CL_OK;

	for (i = 0; r == CL_OK && i < l->n; i++)
		r = store_labels_add(copy, l->v[i].key, l->v[i].value);
	return r;
}

/* Name, root, lifetime and labels. */
static int
token_check_mint(const struct token_mint *m, struct store_enrollment *e,
    const char **whyp)
{
	*whyp = "out of memory";
	if ((e->name = token_copy_trimmed(m->name)) == NULL ||
	    (e->workdir_root = token_copy_trimmed(m->workdir_root)) == NULL)
		return CL_NOMEM;
	*whyp = "the name must not be blank";
	if (*e->name == '\0')
		return CL_FORMAT;
	*whyp = "the name is longer than 128 bytes";
	if (strlen(e->name) > MAX_NAME_LEN)
		return CL_TOOBIG;
	*whyp = "the name must be UTF-8 without control characters";
	if (!token_is_text(e->name))
		return CL_FORMAT;
	*whyp = "the work directory root must be UTF-8 without control "
	    "characters, at most 4096 bytes";
	if (strlen(e->workdir_root) > MAX_PATH_LEN ||
	    !token_is_text(e->workdir_root))
		return CL_FORMAT;
	*whyp = "a lifetime above 24h is refused: tokens are meant to be "
	    "short-lived";
	if (m->ttl_s > TOKEN_TTL_MAX_S)
		return CL_TOOBIG;
	if (m->labels != NULL)
		return token_check_labels(m->labels, whyp);
	return CL_OK;
}

static void
token_format_labels(const struct store_labels *l, char *dst, size_t dstlen)
{
	size_t i;

	*dst = '\0';
	for (i = 0; i < l->n; i++) {
		strlcat(dst, i > 0 ? "," : "", dstlen);
		strlcat(dst, l->v[i].key, dstlen);
		strlcat(dst, "=", dstlen);
		strlcat(dst, l->v[i].value, dstlen);
	}
}

static int
token_add_minted(struct store *s, const struct store_enrollment *e)
{
	char labels[1024], expires[UTIL_TIME_MAX];
	int r;

	if ((r = store_add_enrollment(s, e)) != 0)
		return r;
	util_format_time(e->expires_at, expires);
	token_format_labels(&e->labels, labels, sizeof(labels));
	return store_add_event(s, e->created_at, e->created_by,
	    "executor.enroll", "allow", "enrollment", e->id, "action", "mint",
	    "name", e->name, "expires_at", expires, "workdir_root",
	    e->workdir_root, "labels", labels, (char *)NULL);
}

int
token_mint(struct store *s, const struct secret *key,
    const struct token_mint *m, struct secret *token,
    struct store_enrollment *e, const char **whyp)
{
	char id[IDGEN_HANDLE_LEN + 1], secret[IDGEN_SECRET_LEN + 1];
	char text[MAX_TOKEN_LEN + 1], hash[TOKEN_HASH_LEN + 1];
	struct store_ban ban;
	int r;

	memset(e, 0, sizeof(*e));
	*whyp = NULL;
	idgen_handle(id);
	idgen_secret(secret);
	if ((r = token_check_mint(m, e, whyp)) != 0)
		goto out;
	memset(&ban, 0, sizeof(ban));
	*whyp = "the bans could not be read";
	if ((r = token_is_banned(s, e->name, &ban)) != 0) {
		store_ban_clear(&ban);
		if (r == 1)
			*whyp = "the name is banned: cloop-enroll bans says "
			    "by whom and why, unban lifts it";
		r = r == 1 ? CL_DENIED : CL_DB;
		goto out;
	}
	*whyp = "the token could not be made";
	if ((r = token_hash(secret, hash)) != 0 ||
	    (r = token_format(key, TOKEN_ENROLL, id, secret, text)) != 0)
		goto out;
	e->created_at = m->now;
	e->expires_at = m->now +
	    (m->ttl_s > 0 ? m->ttl_s : TOKEN_TTL_S) * NS_PER_S;
	e->redeemed_at = e->revoked_at = UTIL_TIME_ZERO;
	r = CL_NOMEM;
	if ((e->id = strdup(id)) == NULL ||
	    (e->secret_hash = strdup(hash)) == NULL ||
	    (e->created_by = token_copy_trimmed(m->created_by)) == NULL ||
	    (e->redeemed_agent_id = strdup("")) == NULL ||
	    (e->redeemed_peer = strdup("")) == NULL)
		goto out;
	if (m->labels != NULL &&
	    (r = token_copy_labels(m->labels, &e->labels)) != 0)
		goto out;
	*whyp = "the token could not be recorded";
	if ((r = secret_init(token, text, strlen(text), MAX_TOKEN_LEN)) != 0)
		goto out;
	if ((r = token_add_minted(s, e)) != 0)
		secret_clear(token);	/* not recorded: it never existed */
 out:
	explicit_bzero(secret, sizeof(secret));
	explicit_bzero(text, sizeof(text));
	if (r != 0)
		store_enrollment_clear(e);
	else
		*whyp = NULL;
	return r;
}

/* ------------------------------------------------------------- redeeming */

static int
token_check_secret(const char *secret, const char *stored)
{
	char hash[TOKEN_HASH_LEN + 1];

	return token_hash(secret, hash) == 0 &&
	    strlen(stored) == TOKEN_HASH_LEN &&
	    secret_is_equal_mem(hash, stored, TOKEN_HASH_LEN);
}

/* A replay is told before expiry: it is the more alarming. */
static enum token_result
token_check_redeem(const struct store_enrollment *e,
    const struct token_parts *p, int64_t now)
{
	if (e->revoked_at != UTIL_TIME_ZERO)
		return TOKEN_REVOKED;
	if (e->redeemed_at != UTIL_TIME_ZERO)
		return TOKEN_ALREADY_USED;
	if (e->expires_at != UTIL_TIME_ZERO && now > e->expires_at)
		return TOKEN_EXPIRED;
	if (!token_check_secret(p->secret, e->secret_hash))
		return TOKEN_INVALID;
	return TOKEN_OK;
}

/* Last of all, and before the claim: a ban that is lifted leaves it good. */
static enum token_result
token_check_ban(struct store *s, const char *name)
{
	struct store_ban ban;
	int r;

	if ((r = token_is_banned(s, name, &ban)) == 1)
		store_ban_clear(&ban);
	return r == 0 ? TOKEN_OK : r == 1 ? TOKEN_BANNED : TOKEN_FAILED;
}

/*
 * A refused token that was genuine once: who used it first, and who tries
 * now (BC-37).  Losing this row must not turn a refusal into a failure.
 */
static void
token_add_refused(struct store *s, const struct store_enrollment *e,
    enum token_result t, const char *peer, int64_t now)
{
	char first_at[UTIL_TIME_MAX] = "";

	if (e->redeemed_at != UTIL_TIME_ZERO)
		util_format_time(e->redeemed_at, first_at);
	(void)store_add_event(s, now, "", "executor.enroll", "deny",
	    "enrollment", e->id, "action", "redeem", "reason",
	    token_format_result(t), "name", e->name, "peer", peer,
	    "first_agent_id", e->redeemed_agent_id, "first_peer",
	    e->redeemed_peer, "first_at", first_at, (char *)NULL);
}

static int
token_new_agent(const struct store_enrollment *e, const char *agent_id,
    const char *secret, int64_t now, struct store_agent *a)
{
	char hash[TOKEN_HASH_LEN + 1];
	int r;

	memset(a, 0, sizeof(*a));
	if ((r = token_hash(secret, hash)) != 0)
		return r;
	a->created_at = a->last_seen = now;
	a->revoked_at = a->confirmed_at = UTIL_TIME_ZERO;
	if ((a->agent_id = strdup(agent_id)) == NULL ||
	    (a->name = strdup(e->name)) == NULL ||
	    (a->secret_hash = strdup(hash)) == NULL ||
	    (a->workdir_root = strdup(e->workdir_root)) == NULL ||
	    (a->enrollment_id = strdup(e->id)) == NULL)
		return CL_NOMEM;
	return token_copy_labels(&e->labels, &a->labels);
}

/* The claim comes first, so a loser leaves nothing behind. */
static int
token_add_redeemed(struct store *s, const struct secret *key,
    const struct store_enrollment *e, const char *peer, int64_t now,
    struct secret *credential, struct store_agent *a)
{
	char id[IDGEN_HANDLE_LEN + 1], secret[IDGEN_SECRET_LEN + 1];
	char text[MAX_TOKEN_LEN + 1];
	int r;

	idgen_handle(id);
	idgen_secret(secret);
	if ((r = token_format(key, TOKEN_AGENT, id, secret, text)) != 0 ||
	    (r = token_new_agent(e, id, secret, now, a)) != 0 ||
	    (r = store_redeem_enrollment(s, e->id, id, peer, now)) != 0)
		goto out;
	if ((r = store_add_agent(s, a)) != 0 ||
	    (r = store_add_event(s, now, "", "executor.enroll", "allow",
	    "executor", id, "action", "redeem", "executor_id", id, "name",
	    e->name, "enrollment_id", e->id, "peer", peer,
	    (char *)NULL)) != 0 ||
	    (r = secret_init(credential, text, strlen(text),
	    MAX_TOKEN_LEN)) != 0) {
		/* Not a lost race: the claim must not stand alone. */
		(void)store_revoke_enrollment(s, e->id, now);
		if (r == CL_EXISTS)
			r = CL_INTERNAL;
	}
 out:
	explicit_bzero(secret, sizeof(secret));
	explicit_bzero(text, sizeof(text));
	return r;
}

enum token_result
token_redeem(struct store *s, const struct secret *key, const char *text,
    const char *peer, int64_t now, struct secret *credential,
    struct store_agent *agent)
{
	struct store_enrollment e;
	struct token_parts p;
	enum token_result t = TOKEN_INVALID;
	int r;

	memset(&e, 0, sizeof(e));
	memset(agent, 0, sizeof(*agent));
	if (token_parse(key, TOKEN_ENROLL, text, &p) != 0)
		return TOKEN_INVALID;
	if ((r = store_find_enrollment(s, p.id, &e)) != 0) {
		t = r == CL_NOTFOUND ? TOKEN_INVALID : TOKEN_FAILED;
		goto out;
	}
	if ((t = token_check_redeem(&e, &p, now)) == TOKEN_OK)
		t = token_check_ban(s, e.name);
	if (t == TOKEN_OK) {
		r = token_add_redeemed(s, key, &e, peer, now, credential,
		    agent);
		if (r != 0)
			t = r == CL_EXISTS ? TOKEN_ALREADY_USED : TOKEN_FAILED;
	}
	if (t != TOKEN_OK && t != TOKEN_FAILED)
		token_add_refused(s, &e, t, peer, now);
 out:
	if (t != TOKEN_OK)
		store_agent_clear(agent);
	token_parts_clear(&p);
	store_enrollment_clear(&e);
	return t;
}

enum token_result
token_authenticate(struct store *s, const struct secret *key,
    const char *text, struct store_agent *agent)
{
	struct token_parts p;
	enum token_result t = TOKEN_OK;
	int r;

	memset(agent, 0, sizeof(*agent));
	if (token_parse(key, TOKEN_AGENT, text, &p) != 0)
		return TOKEN_CREDENTIAL_INVALID;
	if ((r = store_find_agent(s, p.id, agent)) != 0)
		t = r == CL_NOTFOUND ? TOKEN_AGENT_NOT_FOUND : TOKEN_FAILED;
	else if (agent->revoked_at != UTIL_TIME_ZERO)
		t = TOKEN_REVOKED;
	else if (!token_check_secret(p.secret, agent->secret_hash))
		t = TOKEN_CREDENTIAL_INVALID;
	if (t != TOKEN_OK)
		store_agent_clear(agent);
	token_parts_clear(&p);
	return t;
}

/* -------------------------------------------------------------- revoking */

void
token_revoked_clear(struct token_revoked *rv)
{
	free(rv->enrollment_id);
	free(rv->agent_id);
	free(rv->name);
	memset(rv, 0, sizeof(*rv));
}

static int
token_revoke_agent(struct store *s, const char *id, int64_t now,
    struct token_revoked *rv)
{
	struct store_agent a;
	int r;

	if ((r = store_find_agent(s, id, &a)) != 0)
		return r;
	if ((r = store_revoke_agent(s, id, now)) == 0) {
		if (rv->name == NULL)
			rv->name = strdup(a.name);
		rv->agent_id = strdup(a.agent_id);
		strlcpy(rv->kind, rv->enrollment_id != NULL ?
		    "enrollment+agent" : "agent", sizeof(rv->kind));
		if (rv->name == NULL || rv->agent_id == NULL)
			r = CL_NOMEM;
	}
	store_agent_clear(&a);
	return r;
}

static int
token_revoke_enrollment(struct store *s, const char *id, int64_t now,
    struct token_revoked *rv)
{
	struct store_enrollment e;
	int r;

	if ((r = store_find_enrollment(s, id, &e)) != 0)
		return r;
	if ((r = store_revoke_enrollment(s, id, now)) != 0)
		goto out;
	strlcpy(rv->kind, "enrollment", sizeof(rv->kind));
	rv->enrollment_id = strdup(e.id);
	rv->name = strdup(e.name);
	if (rv->enrollment_id == NULL || rv->name == NULL)
		r = CL_NOMEM;
	else if (e.redeemed_at != UTIL_TIME_ZERO)
		r = token_revoke_agent(s, e.redeemed_agent_id, now, rv);
 out:
	store_enrollment_clear(&e);
	return r;
}

enum token_result
token_revoke(struct store *s, const char *id, const char *reason,
    const char *actor, int64_t now, struct token_revoked *rv)
{
	char *trimmed;
	int r;

	memset(rv, 0, sizeof(*rv));
	if ((trimmed = token_copy_trimmed(id)) == NULL)
		return TOKEN_FAILED;
	r = CL_NOTFOUND;
	if (*trimmed != '\0' &&
	    (r = token_revoke_enrollment(s, trimmed, now, rv)) ==
	    CL_NOTFOUND && rv->enrollment_id == NULL)
		r = token_revoke_agent(s, trimmed, now, rv);
	free(trimmed);
	if (r == CL_OK)
		r = store_add_event(s, now, actor, "executor.revoke", "allow",
		    rv->agent_id != NULL ? "executor" : "enrollment",
		    rv->agent_id != NULL ? rv->agent_id : rv->enrollment_id,
		    "action", "revoke", "executor_id", rv->agent_id,
		    "enrollment_id", rv->enrollment_id, "name", rv->name,
		    "kind", rv->kind, "reason", reason, (char *)NULL);
	if (r == CL_OK)
		return TOKEN_OK;
	if (r == CL_NOTFOUND && rv->enrollment_id == NULL)
		return TOKEN_AGENT_NOT_FOUND;
	return TOKEN_FAILED;
}
