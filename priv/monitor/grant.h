/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Whom a grant is for and under which conditions: pure judgement.  Matching
 * is exact; labels are those of the enrollment, never the ones a device
 * claims.
 */
#ifndef PRIV_GRANT_H
#define PRIV_GRANT_H

#include <stddef.h>
#include <stdint.h>

struct field_pair;
struct store_agent;
struct store_grant;

#define GRANT_SUBJECT_MAX 4096
#define GRANT_CHAIN_MAX 16	/* of superseding grants */

/* Who asks for a lease. */
struct grant_requester {
	const struct store_agent *agent;
	const char *project;	/* "" when the run names none */
	const char *actor;	/* "uid:1000" */
	int64_t now;
};

/*
 * The stored form of a subject an operator wrote: project paths cleaned,
 * labels sorted, "*" is "any".  NULL, or a constant text saying what is
 * wrong.
 */
const char *grant_parse_subject(const char *text,
    char dst[GRANT_SUBJECT_MAX]);
int grant_is_wildcard(const char *subject);
/* 1 when the grant is aimed at the requester, usable or not. */
int grant_is_aimed(const struct store_grant *g,
    const struct grant_requester *q);

/*
 * Constraints: ttl=15m (no lease longer than this), actor=uid:N (only that
 * operator), env=A,B (only these variables), repo=OWNER/NAME,... (git only).
 * The canonical JSON object of them; owned.  *whyp: constant or NULL.
 */
int grant_format_constraints(const struct field_pair *v, size_t n,
    char **textp, const char **whyp);

struct grant_terms {
	int64_t ttl_s;		/* 0: none */
	char env[512];		/* "A,B"; "": all */
	char repo[512];		/* "owner/name,..."; "": any repository */
};
/*
 * Why an aimed grant cannot be honoured now: a constant text, or NULL and
 * its terms.  What it does not understand it does not honour.
 */
const char *grant_check(const struct store_grant *g,
    const struct grant_requester *q, struct grant_terms *terms);
/* The ttl of its constraints in seconds; 0: none. */
int64_t grant_get_ttl(const struct store_grant *g);
/* 1 when the variable may be lent under these terms. */
int grant_has_env(const struct grant_terms *terms, const char *name,
    size_t len);
/* 1 when its allowlist has the repository; case does not matter. */
int grant_has_repo(const struct grant_terms *terms, const char *repo);

#endif
