/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The form of tokens and credentials.  Runs in the monitor, and in
 * cloop-enroll while none runs.  A token is the one secret that a stranger
 * may send us: its length is capped before anything looks at it, its MAC is
 * compared in constant time before storage is touched, and what is stored is
 * a hash.  Texts with secrets in them are wiped where they end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <bsd/string.h>

#include "token.h"
#include "common/base/err.h"
#include "common/base/paths.h"
#include "common/base/util.h"
#include "keyfile.h"

#define TOKEN_SPACE " \t\r\n\v\f"

static const struct {
	const char *name;
	const char *hint;
} token_results[] = {
	[TOKEN_OK] = { "", "" },
	[TOKEN_INVALID] = { "token_invalid",
	    "check that the whole token was copied and the right hub is "
	    "addressed; else mint a new one" },
	[TOKEN_REVOKED] = { "revoked",
	    "mint a token and enroll again (remove the old credential file)" },
	[TOKEN_ALREADY_USED] = { "token_already_used",
	    "if it was not this device, someone else used a copy: revoke the "
	    "token id (this also revokes the agent it made) and mint anew; if "
	    "enrollment simply ran twice, the stored credential is enough" },
	[TOKEN_EXPIRED] = { "token_expired",
	    "tokens are short-lived on purpose: mint a new one, use it soon, "
	    "raise --ttl if shipping takes longer" },
	[TOKEN_CREDENTIAL_INVALID] = { "credential_invalid",
	    "mint a token and enroll again (remove the old credential file)" },
	[TOKEN_AGENT_NOT_FOUND] = { "agent_not_found",
	    "list the fleet; a device appears after its first connection" },
	[TOKEN_BANNED] = { "banned",
	    "lift the ban of the name with cloop-enroll unban" },
	[TOKEN_FAILED] = { "internal", "" },
};

const char *
token_format_result(enum token_result t)
{
	return token_results[t].name;
}

const char *
token_find_hint(enum token_result t)
{
	return token_results[t].hint;
}

int
token_load_key(const char *key_dir, struct secret *key, char *err,
    size_t errlen)
{
	const char *env = getenv(ENV_HMAC_KEY);
	int r;

	/* The raw bytes, no decoding and no trimming. */
	if (env != NULL && *env != '\0') {
		r = secret_init(key, env, strlen(env), KEYFILE_MAX_LEN);
		if (r != 0)
			snprintf(err, errlen, "%s: %s", ENV_HMAC_KEY,
			    cl_strerror(r));
		return r;
	}
	return keyfile_load_raw(key_dir, KEYFILE_MAC, key, err, errlen);
}

void
token_parts_clear(struct token_parts *p)
{
	explicit_bzero(p, sizeof(*p));
}

/* The first 32 hex digits of HMAC-SHA-256 over `body`. */
static int
token_make_mac(const struct secret *key, const char *body, size_t len,
    char dst[TOKEN_MAC_LEN + 1])
{
	unsigned char md[EVP_MAX_MD_SIZE];
	unsigned int md_len = 0;

	/* An empty key is legal; NULL would mean "the last one". */
	if (HMAC(EVP_sha256(), key->len == 0 ? (const void *)"" : key->data,
	    (int)key->len, (const unsigned char *)body, len, md,
	    &md_len) == NULL || md_len < TOKEN_MAC_LEN / 2)
		return CL_CRYPTO;
	util_format_hex(md, TOKEN_MAC_LEN / 2, dst);
	return CL_OK;
}

int
token_format(const struct secret *key, const char *prefix, const char *id,
    const char *secret, char *dst)
{
	char mac[TOKEN_MAC_LEN + 1];
	int n, r;

	n = snprintf(dst, MAX_TOKEN_LEN + 1, "%s.%s.%s", prefix, id, secret);
	if (n < 0 || n + 1 + TOKEN_MAC_LEN > MAX_TOKEN_LEN) {
		explicit_bzero(dst, MAX_TOKEN_LEN + 1);
		return CL_TOOBIG;
	}
	if ((r = token_make_mac(key, dst, (size_t)n, mac)) != 0) {
		explicit_bzero(dst, MAX_TOKEN_LEN + 1);
		return r;
	}
	snprintf(dst + n, MAX_TOKEN_LEN + 1 - (size_t)n, ".%s", mac);
	return CL_OK;
}

/* Split a trimmed text at its dots: exactly four parts, by position. */
static int
token_split(const char *text, size_t len, const char *part[4],
    size_t part_len[4])
{
	const char *p = text, *end = text + len, *dot;
	int n;

	for (n = 0; n < 4; n++) {
		dot = memchr(p, '.', (size_t)(end - p));
		if ((dot == NULL) != (n == 3))
			return CL_FORMAT;
		part[n] = p;
		part_len[n] = (size_t)((dot == NULL ? end : dot) - p);
		if (dot != NULL)
			p = dot + 1;
	}
	return CL_OK;
}

/* The length, the form, then the MAC. */
int
token_parse(const struct secret *key, const char *prefix, const char *text,
    struct token_parts *p)
{
	const char *part[4];
	char mac[TOKEN_MAC_LEN + 1];
	size_t len, part_len[4];
	int r;

	memset(p, 0, sizeof(*p));
	if ((len = strnlen(text, MAX_TOKEN_LEN + 1)) > MAX_TOKEN_LEN)
		return CL_TOOBIG;
	while (len > 0 && strchr(TOKEN_SPACE, *text) != NULL) {
		text++;
		len--;
	}
	while (len > 0 && strchr(TOKEN_SPACE, text[len - 1]) != NULL)
		len--;
	if (len == 0 || token_split(text, len, part, part_len) != 0 ||
	    part_len[0] != strlen(prefix) ||
	    memcmp(part[0], prefix, part_len[0]) != 0 ||
	    part_len[1] == 0 || part_len[2] == 0)
		return CL_FORMAT;
	if ((r = token_make_mac(key, text, (size_t)(part[3] - 1 - text),
	    mac)) != 0)
		return r;
	if (part_len[3] != TOKEN_MAC_LEN ||
	    !secret_is_equal_mem(mac, part[3], TOKEN_MAC_LEN))
		return CL_FORMAT;
	memcpy(p->id, part[1], part_len[1]);
	memcpy(p->secret, part[2], part_len[2]);
	return CL_OK;
}

int
token_hash(const char *secret, char dst[TOKEN_HASH_LEN + 1])
{
	unsigned char md[EVP_MAX_MD_SIZE];

	/* Of the characters as written, not of what they decode to. */
	if (EVP_Digest(secret, strlen(secret), md, NULL, EVP_sha256(),
	    NULL) != 1)
		return CL_CRYPTO;
	util_format_hex(md, TOKEN_HASH_LEN / 2, dst);
	return CL_OK;
}
