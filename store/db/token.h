/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Enrollment tokens and agent credentials: minting, checking, redeeming,
 * authenticating, revoking, the checks in Go's order.  The functions that
 * take a store write inside the caller's turn, audit rows included; the
 * caller answers after the commit.
 */
#ifndef CLOOP_TOKEN_H
#define CLOOP_TOKEN_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/limits.h"
#include "common/base/secret.h"
#include "store.h"

#define TOKEN_ENROLL "clet1"
#define TOKEN_AGENT "clac1"
#define TOKEN_LEN 99
#define TOKEN_HASH_LEN 64
#define TOKEN_MAC_LEN 32
#define TOKEN_TTL_S (15 * 60)		/* DefaultEnrollTTL */
#define TOKEN_TTL_MAX_S (24 * 3600)	/* MaxEnrollTTL */

enum token_result {
	TOKEN_OK,
	TOKEN_INVALID,
	TOKEN_REVOKED,
	TOKEN_ALREADY_USED,
	TOKEN_EXPIRED,
	TOKEN_CREDENTIAL_INVALID,
	TOKEN_AGENT_NOT_FOUND,
	TOKEN_BANNED,		/* the name; inside the hub only */
	TOKEN_FAILED		/* the store; see store_error() */
};

/* The result in snake case: "token_already_used"; "" for TOKEN_OK. */
const char *token_format_result(enum token_result t);
/* What the operator can do; "" when there is no advice. */
const char *token_find_hint(enum token_result t);

/*
 * The MAC key: CLOOP_STATE_HMAC_KEY when set and not empty, else
 * KEY_DIR/mac.key.  CL_NOTFOUND when there is neither; err has the text.
 */
int token_load_key(const char *key_dir, struct secret *key, char *err,
    size_t errlen);

/* The two parts of a token that matter, copied. */
struct token_parts {
	char id[MAX_TOKEN_LEN + 1];
	char secret[MAX_TOKEN_LEN + 1];
};
/* Wipe the secret. */
void token_parts_clear(struct token_parts *p);

/* prefix.id.secret.mac; dst[MAX_TOKEN_LEN + 1].  CL_TOOBIG, CL_CRYPTO. */
int token_format(const struct secret *key, const char *prefix,
    const char *id, const char *secret, char *dst);
/* Length, form and MAC; no storage.  CL_FORMAT, CL_TOOBIG, CL_CRYPTO. */
int token_parse(const struct secret *key, const char *prefix,
    const char *text, struct token_parts *p);
/* Lowercase hex SHA-256 of the secret as written. */
int token_hash(const char *secret, char dst[TOKEN_HASH_LEN + 1]);

struct token_mint {
	const char *name;		/* trimmed here */
	int64_t ttl_s;			/* <= 0: the default */
	const char *workdir_root;	/* or NULL; trimmed here */
	const struct store_labels *labels;	/* or NULL */
	const char *created_by;		/* who asked, for the record */
	int64_t now;
};
/*
 * Mint: the record, the audit row, and the token, which exists here only.
 * CL_FORMAT, CL_TOOBIG or CL_DENIED (the name is banned) with a sentence in
 * *whyp, CL_DB.
 */
int token_mint(struct store *s, const struct secret *key,
    const struct token_mint *m, struct secret *token,
    struct store_enrollment *e, const char **whyp);

/*
 * Redeem.  TOKEN_OK: credential and agent are filled.  peer is the address of
 * who asks, for the record and the audit.
 */
enum token_result token_redeem(struct store *s, const struct secret *key,
    const char *text, const char *peer, int64_t now,
    struct secret *credential, struct store_agent *agent);
/*
 * Authenticate; only reads.  TOKEN_OK: agent is filled.  The caller moves
 * last_seen (store_save_seen, in a turn of its own).
 */
enum token_result token_authenticate(struct store *s,
    const struct secret *key, const char *text, struct store_agent *agent);

struct token_revoked {
	char kind[24];		/* enrollment, agent, enrollment+agent */
	char *enrollment_id;	/* or NULL */
	char *agent_id;		/* or NULL: no session to drop */
	char *name;
};
/*
 * Revoke by id.  TOKEN_OK, TOKEN_AGENT_NOT_FOUND (a blank id too),
 * TOKEN_FAILED.
 */
enum token_result token_revoke(struct store *s, const char *id,
    const char *reason, const char *actor, int64_t now,
    struct token_revoked *rv);
void token_revoked_clear(struct token_revoked *rv);

/*
 * Ban a name for ever, said by itself or by the id of an agent or token of
 * it: its *np agents are revoked.  A ban that is there already keeps its
 * words.  TOKEN_OK with *b filled; TOKEN_INVALID: no name; TOKEN_FAILED.
 * *b is to be cleared in any case.
 */
enum token_result token_ban(struct store *s, const char *what,
    const char *reason, const char *actor, int64_t now, struct store_ban *b,
    unsigned int *np);
/* Lift it; *b is what was.  TOKEN_AGENT_NOT_FOUND: it is not banned. */
enum token_result token_unban(struct store *s, const char *name,
    const char *actor, int64_t now, struct store_ban *b);
/* 1 with *b filled, 0, or -1: the store failed. */
int token_is_banned(struct store *s, const char *name, struct store_ban *b);
/*
 * Begin to forget an agent, by its id or that of its token: it is revoked
 * and the audit says so; store_del_agent does the rest.  TOKEN_OK,
 * TOKEN_AGENT_NOT_FOUND, TOKEN_FAILED.
 */
enum token_result token_delete(struct store *s, const char *id,
    const char *reason, const char *actor, int64_t now,
    struct token_revoked *rv);

#endif
