/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Subjects and constraints of grants, in the monitor.  Both were written by
 * an operator and are kept in one spelling, so that what is matched is what
 * was shown.
 */
#include "grant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <bsd/stdlib.h>
#include <bsd/string.h>

#include "common/base/conf.h"
#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/rule.h"
#include "common/base/util.h"
#include "common/json/canon.h"

#include "store/db/store.h"
#include "store/db/store_lease.h"

/* ---------------------------------------------------------------- subjects */

/* "a//b/./c/" -> "a/b/c"; what climbs up is refused. */
static int
grant_clean_path(const char *in, char *dst, size_t dstlen)
{
	size_t n = 0, len;

	if (*in == '/' && dstlen > 1)
		dst[n++] = '/';
	while (*in != '\0') {
		in += strspn(in, "/");
		len = strcspn(in, "/");
		if (len == 2 && strncmp(in, "..", 2) == 0)
			return CL_FORMAT;
		if (len == 0 || (len == 1 && *in == '.')) {
			in += len;
			continue;
		}
		if (n > 0 && dst[n - 1] != '/')
			dst[n++] = '/';
		if (len >= dstlen - n)
			return CL_TOOBIG;
		memcpy(dst + n, in, len);
		n += len;
		in += len;
	}
	dst[n] = '\0';
	return n > 0 ? CL_OK : CL_FORMAT;
}

/* k=v,k=v in order of keys; a key once. */
static const char *
grant_parse_labels(const char *text, char *dst, size_t dstlen)
{
	struct store_labels l = { NULL, 0 };
	char part[2 * MAX_LABEL_LEN + 2];
	const char *why = NULL;
	char *eq;
	size_t len, i, n, before;

	for (; why == NULL; text += len + 1) {
		len = strcspn(text, ",");
		if (len >= sizeof(part)) {
			why = "has a label that is too long";
			break;
		}
		memcpy(part, text, len);
		part[len] = '\0';
		before = l.n;
		if ((eq = strchr(part, '=')) == NULL || eq == part)
			why = "needs labels as key=value";
		else {
			*eq = '\0';
			if (store_labels_add(&l, part, eq + 1) != CL_OK ||
			    l.n == before)
				why = "names a label twice, or too many";
		}
		if (text[len] == '\0')
			break;
	}
	n = strlcpy(dst, "label:", dstlen);
	for (i = 0; why == NULL && i < l.n; i++) {
		(void)strlcat(dst, i > 0 ? "," : "", dstlen);
		(void)strlcat(dst, l.v[i].key, dstlen);
		(void)strlcat(dst, "=", dstlen);
		n = strlcat(dst, l.v[i].value, dstlen);
	}
	store_labels_clear(&l);
	return why == NULL && n >= dstlen ? "is too long" : why;
}

const char *
grant_parse_subject(const char *text, char dst[GRANT_SUBJECT_MAX])
{
	dst[0] = '\0';
	if (rule_has_control(text))
		return "has control characters";
	if (strcmp(text, "any") == 0 || strcmp(text, "*") == 0) {
		strlcpy(dst, "any", GRANT_SUBJECT_MAX);
		return NULL;
	}
	if (strncmp(text, "executor:", 9) == 0) {
		if (!util_is_id(text + 9))
			return "needs an agent id after executor:";
		strlcpy(dst, text, GRANT_SUBJECT_MAX);
		return NULL;
	}
	if (strncmp(text, "project:", 8) == 0) {
		strlcpy(dst, "project:", GRANT_SUBJECT_MAX);
		if (grant_clean_path(text + 8, dst + 8,
		    GRANT_SUBJECT_MAX - 8) != CL_OK)
			return "needs a path without .. after project:";
		return NULL;
	}
	if (strncmp(text, "label:", 6) == 0)
		return grant_parse_labels(text + 6, dst, GRANT_SUBJECT_MAX);
	return "must be project:PATH, executor:ID, label:k=v,... or any";
}

int
grant_is_wildcard(const char *subject)
{
	return strcmp(subject, "any") == 0;
}

static int
grant_has_labels(const char *want, const struct store_labels *have)
{
	size_t len, klen, i;
	const char *eq;

	for (;; want += len + 1) {
		len = strcspn(want, ",");
		if ((eq = memchr(want, '=', len)) == NULL)
			return 0;
		klen = (size_t)(eq - want);
		for (i = 0; i < have->n; i++)
			if (strlen(have->v[i].key) == klen &&
			    memcmp(have->v[i].key, want, klen) == 0 &&
			    strlen(have->v[i].value) == len - klen - 1 &&
			    memcmp(have->v[i].value, eq + 1,
			    len - klen - 1) == 0)
				break;
		if (i == have->n)
			return 0;
		if (want[len] == '\0')
			return 1;
	}
}

int
grant_is_aimed(const struct store_grant *g, const struct grant_requester *q)
{
	char project[GRANT_SUBJECT_MAX];

	if (grant_is_wildcard(g->subject))
		return 1;
	if (strncmp(g->subject, "executor:", 9) == 0)
		return strcmp(g->subject + 9, q->agent->agent_id) == 0;
	if (strncmp(g->subject, "label:", 6) == 0)
		return grant_has_labels(g->subject + 6, &q->agent->labels);
	if (strncmp(g->subject, "project:", 8) == 0)
		return q->project[0] != '\0' && grant_clean_path(q->project,
		    project, sizeof(project)) == CL_OK &&
		    strcmp(g->subject + 8, project) == 0;
	return 0;
}

/* ------------------------------------------------------------- constraints */

static const char *
grant_check_constraint(const char *key, const char *value)
{
	uint64_t s;

	if (value[0] == '\0' || rule_has_control(value))
		return "a constraint needs a value";
	if (strcmp(key, "ttl") == 0)
		return conf_parse_time(value, &s) == CL_OK && s > 0 &&
		    s <= 86400 ? NULL : "ttl must be a time of at most 24h";
	if (strcmp(key, "actor") == 0)
		return strncmp(value, "uid:", 4) == 0 ? NULL :
		    "actor must be uid:NUMBER";
	if (strcmp(key, "env") == 0 || strcmp(key, "repo") == 0)
		return strlen(value) < sizeof(((struct grant_terms *)0)->env)
		    ? NULL : "the list is too long";
	return "constraints are ttl, actor, env and repo";
}

int
grant_format_constraints(const struct field_pair *v, size_t n, char **textp,
    const char **whyp)
{
	struct canon *o, *value;
	size_t i, len;
	int r = CL_OK;

	*textp = NULL;
	*whyp = NULL;
	if ((o = canon_new_object()) == NULL)
		return CL_NOMEM;
	for (i = 0; r == CL_OK && i < n; i++) {
		*whyp = grant_check_constraint(v[i].key, v[i].value);
		if (*whyp != NULL)
			r = CL_FORMAT;
		else if ((value = canon_new_string(v[i].value,
		    strlen(v[i].value))) == NULL)
			r = CL_NOMEM;
		else if ((r = canon_add_member(o, v[i].key, value)) != 0) {
			canon_free(value);
			*whyp = "a constraint is given twice";
		}
	}
	if (r == CL_OK)
		r = canon_format(o, textp, &len);
	canon_free(o);
	return r;
}

static const char *
grant_use_constraint(const char *key, const char *value,
    const struct grant_requester *q, struct grant_terms *terms)
{
	uint64_t s;

	if (strcmp(key, "ttl") == 0 && conf_parse_time(value, &s) == CL_OK) {
		terms->ttl_s = (int64_t)s;
		return NULL;
	}
	if (strcmp(key, "actor") == 0)
		return strcmp(value, q->actor) == 0 ? NULL :
		    "it is for another operator";
	if (strcmp(key, "env") == 0) {
		strlcpy(terms->env, value, sizeof(terms->env));
		return NULL;
	}
	if (strcmp(key, "repo") == 0) {
		strlcpy(terms->repo, value, sizeof(terms->repo));
		return NULL;
	}
	return "it has a constraint this hub does not know";
}

const char *
grant_check(const struct store_grant *g, const struct grant_requester *q,
    struct grant_terms *terms)
{
	const char *key, *value, *why = NULL;
	const struct canon *v;
	struct canon *o;
	size_t i, len;

	memset(terms, 0, sizeof(*terms));
	if (g->revoked_at != UTIL_TIME_ZERO)
		return "it is revoked";
	if (g->superseded_by[0] != '\0')
		return "it is superseded";
	if (g->expires_at != UTIL_TIME_ZERO && g->expires_at <= q->now)
		return "it has expired";
	if (canon_parse(g->constraints, strlen(g->constraints), &o) != CL_OK)
		return "its constraints cannot be read";
	for (i = 0; why == NULL && i < canon_get_count(o); i++) {
		if (canon_get_member(o, i, &key, &v) != CL_OK ||
		    canon_get_string(v, &value, &len) != CL_OK)
			why = "its constraints cannot be read";
		else
			why = grant_use_constraint(key, value, q, terms);
	}
	canon_free(o);
	return why;
}

int
grant_has_repo(const struct grant_terms *terms, const char *repo)
{
	const char *p = terms->repo;
	size_t n;

	if (*p == '\0')
		return 1;
	for (;; p += n + 1) {
		n = strcspn(p, ",");
		if (n == strlen(repo) && strncasecmp(p, repo, n) == 0)
			return 1;
		if (p[n] == '\0')
			return 0;
	}
}

int64_t
grant_get_ttl(const struct store_grant *g)
{
	const struct canon *v;
	const char *value;
	struct canon *o;
	uint64_t s = 0;
	size_t len;

	if (canon_parse(g->constraints, strlen(g->constraints), &o) != CL_OK)
		return 0;
	if (canon_find_member(o, "ttl", &v) != CL_OK ||
	    canon_get_string(v, &value, &len) != CL_OK ||
	    conf_parse_time(value, &s) != CL_OK)
		s = 0;
	canon_free(o);
	return (int64_t)s;
}

int
grant_has_env(const struct grant_terms *terms, const char *name, size_t len)
{
	const char *p = terms->env;
	size_t n;

	if (*p == '\0')
		return 1;
	for (;; p += n + 1) {
		n = strcspn(p, ",");
		if (n == len && memcmp(p, name, len) == 0)
			return 1;
		if (p[n] == '\0')
			return 0;
	}
}
