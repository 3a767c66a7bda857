/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Operators, part five: secrets and grants.  A value comes in a sealed
 * memfd, is judged and sealed, and is gone; no answer, record or error
 * quotes any of it.
 */
#include <stdlib.h>
#include <string.h>

#include <bsd/stdlib.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/rule.h"
#include "common/base/util.h"
#include "common/model/leasemsg.h"
#include "common/msg/msgcat.h"
#include "answers.h"
#include "ctlout.h"
#include "grant.h"
#include "refuse.h"
#include "secretkind.h"

#include "store/db/store_lease.h"

#define NS INT64_C(1000000000)
#define SECRET_NAMES 64

/* The names of a secret's variables, borrowed from a copy. */
static size_t
answer_split(char *copy, char *dst[SECRET_NAMES])
{
	size_t n = 0;
	char *p;

	while (copy != NULL && n < SECRET_NAMES &&
	    (p = strsep(&copy, "\n")) != NULL)
		if (*p != '\0')
			dst[n++] = p;
	return n;
}

static void
answer_fill_secret(struct ctl_secret *row, const struct store_secret *s,
    char *names_copy, char *names[SECRET_NAMES])
{
	memset(row, 0, sizeof(*row));
	row->secret_id = s->id;
	row->name = s->name;
	row->kind = s->kind;
	row->owner = s->owner;
	row->version = (uint64_t)s->version;
	row->env_names = names;
	row->nenv_names = answer_split(names_copy, names);
	row->created_at = s->created_at;
	row->updated_at = s->updated_at;
	row->created_by = s->created_by;
}

/* --------------------------------------------------------------------- put */

/* The sealed memfd of a value, read into the one place it may be. */
static int
answer_load_secret(int fd, uint32_t len, struct secret *value)
{
	uint8_t *data;
	int r;

	r = util_load_memfd(fd, len, MAX_SECRET_FILE_LEN + 1, &data);
	if (r != CL_OK)
		return r;
	r = secret_init(value, data, len, MAX_SECRET_FILE_LEN + 1);
	freezero(data, len);
	return r;
}

static int
answer_is_name(const char *name)
{
	return rule_is_charset(name, strlen(name), "._-", MAX_NAME_LEN) &&
	    name[0] != '-';
}

static void
answer_put_secret(struct monitor *mon, uint64_t id, struct store_secret *s,
    const struct secret *value)
{
	char *names[SECRET_NAMES], *copy;
	struct ctl_secret row;
	int r;

	r = store_save_secret(mon->store, s, &mon->leases.keks, value);
	if (r == CL_OK)
		r = store_add_event(mon->store, s->updated_at, s->created_by,
		    "secret.mint", "allow", "secret", s->id, "secret_id",
		    s->id, "secret", s->name, "kind", s->kind, "owner",
		    s->owner, (char *)NULL);
	switch (r) {
	case CL_OK:
		break;
	case CL_NOTFOUND:
		ctlout_refuse(mon, id, "kek_missing", "the hub has no "
		    "key-encryption key; cloop-keygen -A makes it, and cloopd "
		    "reads it when it starts");
		return;
	case CL_STATE:
		ctlout_refuse(mon, id, "usage", "%s exists with another kind; "
		    "remove it first", s->name);
		return;
	case CL_DB:
		ctlout_refuse_store(mon, id);
		return;
	default:
		ctlout_refuse(mon, id, "internal", "%s cannot be sealed: %s",
		    s->name, cl_strerror(r));
		return;
	}
	log_info("secret-put", "secret=%s name=%s kind=%s version=%lld "
	    "actor=%s", s->id, log_q(s->name), s->kind,
	    (long long)s->version, s->created_by);
	if ((copy = strdup(s->names)) == NULL)
		return;
	answer_fill_secret(&row, s, copy, names);
	mon_add_after(mon, ctlout_on_commit, id, 0);
	CTL_DURABLE(mon, id, ROW_SECRET, &row);
	free(copy);
}

void
answer_ctl_secret_put(struct monitor *mon, struct ctl_client *cl,
    struct imsg *m, struct msg_ctl_secret_put *v)
{
	struct secret value = SECRET_INIT;
	const struct secret_kind *k;
	struct store_secret s;
	const char *why;
	char *names = NULL;
	int r;

	if ((r = answer_load_secret(m->fd, (uint32_t)v->len, &value)) !=
	    CL_OK)
		ctlout_refuse(mon, m->id, "usage", "the value cannot be "
		    "taken: %s", cl_strerror(r));
	else if (!answer_is_name(v->name))
		ctlout_refuse(mon, m->id, "usage", "%s: a name is letters, "
		    "digits and . _ -", v->name);
	else if ((k = kind_find(v->kind, &why)) == NULL)
		ctlout_refuse(mon, m->id, "usage", "--kind %s %s", v->kind,
		    why);
	else if ((why = kind_check(k, &value, &names)) != NULL)
		ctlout_refuse(mon, m->id, "usage", "the value of %s %s",
		    v->name, why);
	else {
		memset(&s, 0, sizeof(s));
		s.name = (char *)(uintptr_t)v->name;
		s.owner = v->personal ? cl->actor : (char *)(uintptr_t)"";
		s.kind = (char *)(uintptr_t)v->kind;
		s.names = names;
		s.created_by = cl->actor;
		s.updated_at = util_wall_ns();
		answer_put_secret(mon, m->id, &s, &value);
		free(s.id);
	}
	free(names);
	secret_clear(&value);
}

/* ---------------------------------------------------------------------- ls */

static int
answer_secrets_on_row(const struct store_secret *s, void *arg)
{
	return job_keys_add(arg, s->id);
}

static int
answer_secrets_slice(struct monitor *mon, struct ctl_job *j)
{
	char *names[SECRET_NAMES], *copy;
	struct store_secret s;
	struct ctl_secret row;
	unsigned int i;

	for (i = 0; i < JOB_BATCH && j->next < j->nkeys; i++) {
		if (store_find_secret_id(mon->store, j->keys[j->next++],
		    &s) != CL_OK)
			continue;
		if ((copy = strdup(s.names)) != NULL) {
			answer_fill_secret(&row, &s, copy, names);
			CTL_ROW(mon, j->id, ROW_SECRET, &row, -1);
		}
		free(copy);
		store_secret_clear(&s);
	}
	return j->next == j->nkeys;
}

/* The one an operator means: a personal one first.  r: CL_*. */
static int
answer_find_secret(struct monitor *mon, const struct ctl_client *cl,
    const char *name, struct store_secret *s)
{
	int r;

	if ((r = store_find_secret(mon->store, name, cl->actor, s)) !=
	    CL_NOTFOUND)
		return r;
	return store_find_secret(mon->store, name, "", s);
}

static void
answer_refuse_secret(struct monitor *mon, uint64_t id, int r,
    const char *name)
{
	if (r == CL_NOTFOUND)
		ctlout_refuse(mon, id, "secret_not_found",
		    "there is no secret %s", name);
	else
		ctlout_refuse_store(mon, id);
}

void
answer_ctl_secrets(struct monitor *mon, struct ctl_client *cl, struct imsg *m,
    struct msg_name *v)
{
	struct job_keys k = { NULL, 0, 0 };
	struct store_secret s;
	int r;

	if (v->name[0] == '\0')
		r = store_list_secrets(mon->store, answer_secrets_on_row, &k);
	else if ((r = answer_find_secret(mon, cl, v->name, &s)) == CL_OK) {
		r = job_keys_add(&k, s.id);
		store_secret_clear(&s);
	}
	if (r != CL_OK) {
		job_keys_clear(&k);
		answer_refuse_secret(mon, m->id, r, v->name);
		return;
	}
	jobs_start_keys(mon, m->id, answer_secrets_slice, &k);
}

/* ------------------------------------------------------------------ grants */

static int
answer_grants_on_row(const struct store_grant *g, void *arg)
{
	return job_keys_add(arg, g->id);
}

static void
answer_fill_grant(struct ctl_grant *row, const struct store_grant *g)
{
	memset(row, 0, sizeof(*row));
	row->grant_id = g->id;
	row->secret = g->secret_name;
	row->secret_id = g->secret_id;
	row->subject = g->subject;
	row->constraints = g->constraints;
	row->created_at = g->created_at;
	row->created_by = g->created_by;
	row->expires_at = g->expires_at;
	row->revoked_at = g->revoked_at;
	row->cause = g->cause;
	row->superseded_by = g->superseded_by;
}

static int
answer_grants_slice(struct monitor *mon, struct ctl_job *j)
{
	struct store_grant g;
	struct ctl_grant row;
	unsigned int i;

	for (i = 0; i < JOB_BATCH && j->next < j->nkeys; i++) {
		if (store_find_grant(mon->store, j->keys[j->next++], &g) !=
		    CL_OK)
			continue;
		answer_fill_grant(&row, &g);
		CTL_ROW(mon, j->id, ROW_GRANT, &row, -1);
		store_grant_clear(&g);
	}
	return j->next == j->nkeys;
}

void
answer_ctl_grants(struct monitor *mon, struct ctl_client *cl, struct imsg *m,
    struct msg_name *v)
{
	struct job_keys k = { NULL, 0, 0 };
	struct store_secret s;
	int r = CL_OK;

	memset(&s, 0, sizeof(s));
	if (v->name[0] != '\0')
		r = answer_find_secret(mon, cl, v->name, &s);
	if (r == CL_OK)
		r = store_list_grants(mon->store, s.id, answer_grants_on_row,
		    &k);
	store_secret_clear(&s);
	if (r != CL_OK) {
		job_keys_clear(&k);
		answer_refuse_secret(mon, m->id, r, v->name);
		return;
	}
	jobs_start_keys(mon, m->id, answer_grants_slice, &k);
}

/*
 * May this operator lend the secret so?  Personal ones: no wildcard, only
 * the owner.
 */
static int
answer_check_grant(const struct store_secret *s, const char *subject,
    const char *actor, struct refusal *r)
{
	if (s->owner[0] == '\0')
		return 0;
	if (strcmp(s->owner, actor) != 0)
		refuse_set(r, "secret_denied", "%s is personal: only its "
		    "owner lends it", s->name);
	else if (grant_is_wildcard(subject))
		refuse_set(r, "usage", "%s is personal: it cannot be lent to "
		    "everybody", s->name);
	else
		return 0;
	return 1;
}

static int
answer_save_grant(struct monitor *mon, const struct store_grant *g,
    const char *supersedes)
{
	struct store_grant old;
	char when[UTIL_TIME_MAX];
	int r = CL_OK;

	if (supersedes != NULL && supersedes[0] != '\0') {
		if ((r = store_find_grant(mon->store, supersedes, &old)) !=
		    CL_OK)
			return r;
		r = strcmp(old.secret_id, g->secret_id) == 0 ?
		    store_supersede_grant(mon->store, supersedes, g->id) :
		    CL_STATE;
		store_grant_clear(&old);
	}
	if (r != CL_OK || (r = store_add_grant(mon->store, g)) != CL_OK)
		return r;
	util_format_time(g->expires_at, when);
	return store_add_event(mon->store, g->created_at, g->created_by,
	    "secret.grant", "allow", "grant", g->id, "secret_id",
	    g->secret_id, "secret", g->secret_name, "grant_id", g->id,
	    "subject", g->subject, "constraints", g->constraints,
	    "supersedes", supersedes, "expires_at", when, (char *)NULL);
}

/* Everything about a request is good: store it and answer. */
static void
answer_add_grant(struct monitor *mon, uint64_t id,
    const struct ctl_grant_add *req, const struct store_secret *s,
    const char *subject, const char *actor, char *constraints)
{
	char grant_id[STORE_ID_MAX];
	struct store_grant g;
	struct ctl_grant row;
	int r;

	store_make_id("grant_", grant_id);
	memset(&g, 0, sizeof(g));
	g.id = grant_id;
	g.secret_id = s->id;
	g.secret_name = s->name;
	g.subject = (char *)(uintptr_t)subject;
	g.constraints = constraints;
	g.created_at = util_wall_ns();
	g.created_by = (char *)(uintptr_t)actor;
	g.expires_at = g.created_at + (req->ttl_s > 0 ? req->ttl_s :
	    (int64_t)mon->conf.grant_ttl) * NS;
	g.revoked_at = UTIL_TIME_ZERO;
	r = answer_save_grant(mon, &g, req->supersedes);
	if (r == CL_DB) {
		ctlout_refuse_store(mon, id);
		return;
	}
	if (r != CL_OK) {
		ctlout_refuse(mon, id, r == CL_NOTFOUND ? "grant_not_found" :
		    "usage", "%s cannot be superseded: %s", req->supersedes,
		    r == CL_NOTFOUND ? "there is no such grant" : "it is "
		    "revoked, superseded, or of another secret");
		return;
	}
	answer_fill_grant(&row, &g);
	mon_add_after(mon, ctlout_on_commit, id, 0);
	CTL_DURABLE(mon, id, ROW_GRANT, &row);
}

void
answer_ctl_grant_add(struct monitor *mon, struct ctl_client *cl,
    struct imsg *m, struct ctl_grant_add *v)
{
	char subject[GRANT_SUBJECT_MAX];
	char *constraints = NULL;
	struct store_secret s;
	const char *why;
	struct refusal r;
	int rc;

	why = grant_parse_subject(v->subject != NULL ? v->subject : "",
	    subject);
	if (why != NULL) {
		ctlout_refuse(mon, m->id, "usage", "--to %s: %s", v->subject !=
		    NULL ? v->subject : "", why);
		return;
	}
	if ((rc = answer_find_secret(mon, cl, v->secret != NULL ?
	    v->secret : "", &s)) != CL_OK) {
		answer_refuse_secret(mon, m->id, rc, v->secret);
		return;
	}
	rc = grant_format_constraints(v->constraints, v->nconstraints,
	    &constraints, &why);
	if (rc != CL_OK)
		ctlout_refuse(mon, m->id, why != NULL ? "usage" : "internal",
		    "%s", why != NULL ? why : cl_strerror(rc));
	else if (answer_check_grant(&s, subject, cl->actor, &r))
		ctlout_send_err(mon, m->id, &r);
	else
		answer_add_grant(mon, m->id, v, &s, subject,
		    cl->actor, constraints);
	free(constraints);
	store_secret_clear(&s);
}

/* ---------------------------------------------------------------------- rm */

/* End a grant and whatever runs under it. */
static int
answer_end_grant(struct monitor *mon, const struct store_grant *g,
    const struct revoke_why *why)
{
	int r;

	r = store_revoke_grant(mon->store, g->id, util_wall_ns(),
	    why->reason);
	if (r == CL_OK)
		r = store_add_event(mon->store, util_wall_ns(), why->actor,
		    "secret.revoke", "allow", "grant", g->id, "secret_id",
		    g->secret_id, "secret", g->secret_name, "grant_id", g->id,
		    "subject", g->subject, "reason", why->reason,
		    (char *)NULL);
	if (r == CL_OK || r == CL_STATE)
		revoke_grant(mon, g->id, why);
	return r == CL_STATE ? CL_OK : r;
}

void
answer_ctl_grant_rm(struct monitor *mon, struct ctl_client *cl, struct imsg *m,
    struct msg_name_reason *v)
{
	struct revoke_why why = { REVOKE_SCRUB, v->reason, cl->actor, 0 };
	struct store_grant g;
	int r;

	if ((r = store_find_grant(mon->store, v->name, &g)) != CL_OK) {
		if (r == CL_NOTFOUND)
			ctlout_refuse(mon, m->id, "grant_not_found",
			    "there is no grant %s", v->name);
		else
			ctlout_refuse_store(mon, m->id);
		return;
	}
	if (v->reason[0] == '\0')
		why.reason = "the grant was revoked";
	why.group = revoke_new_group(mon, m->id);
	if (answer_end_grant(mon, &g, &why) != CL_OK)
		mon_set_error(mon, store_error(mon->store));
	revoke_end_group(mon, why.group, NULL);
	store_grant_clear(&g);
}

static void
answer_del_secret(struct monitor *mon, const struct store_secret *s,
    const struct revoke_why *why)
{
	struct job_keys k = { NULL, 0, 0 };
	struct store_grant g;
	size_t i;
	int r;

	r = store_list_grants(mon->store, s->id, answer_grants_on_row, &k);
	for (i = 0; r == CL_OK && i < k.n; i++) {
		if (store_find_grant(mon->store, k.v[i], &g) != CL_OK)
			continue;
		r = answer_end_grant(mon, &g, why);
		store_grant_clear(&g);
	}
	job_keys_clear(&k);
	if (r == CL_OK)
		r = store_del_secret(mon->store, s, util_wall_ns(),
		    why->actor, "deleted", why->reason);
	if (r == CL_OK)
		r = store_add_event(mon->store, util_wall_ns(), why->actor,
		    "secret.delete", "allow", "secret", s->id, "secret_id",
		    s->id, "secret", s->name, "kind", s->kind, "owner",
		    s->owner, "reason", why->reason, (char *)NULL);
	if (r != CL_OK)
		mon_set_error(mon, r == CL_DB ? store_error(mon->store) :
		    cl_strerror(r));
}

void
answer_ctl_secret_rm(struct monitor *mon, struct ctl_client *cl, struct imsg *m,
    struct msg_name_reason *v)
{
	struct revoke_why why = { REVOKE_SCRUB, v->reason, cl->actor, 0 };
	struct store_secret s;
	int r;

	if ((r = answer_find_secret(mon, cl, v->name, &s)) != CL_OK)
	{
		answer_refuse_secret(mon, m->id, r, v->name);
		return;
	}
	if (v->reason[0] == '\0')
		why.reason = "the secret was deleted";
	log_info("secret-rm", "secret=%s name=%s actor=%s", s.id,
	    log_q(s.name), cl->actor);
	why.group = revoke_new_group(mon, m->id);
	answer_del_secret(mon, &s, &why);
	revoke_end_group(mon, why.group, NULL);
	store_secret_clear(&s);
}
