/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The credential a device fetches a private tree with, in the monitor.  It
 * is part of the run's lease, bound to the host of the repository, and
 * reaches neither environment nor files of the workload.
 */
#include "lease.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bsd/string.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/model/spec.h"
#include "monitor.h"
#include "refuse.h"

#include "store/db/store_lease.h"

#define WORKSPACE_HOST_MAX 256

/* "https://HOST/OWNER/NAME[.git]".  CL_FORMAT: no allowlist could name it. */
static int
lease_parse_repo(const char *url, char *host, size_t hostlen, char *repo,
    size_t repolen)
{
	static const char scheme[] = "https://";
	const char *p, *slash;
	size_t n;

	if (strncmp(url, scheme, sizeof(scheme) - 1) != 0)
		return CL_FORMAT;
	p = url + sizeof(scheme) - 1;
	n = strcspn(p, "/");
	if (n == 0 || n >= hostlen || p[n] != '/')
		return CL_FORMAT;
	memcpy(host, p, n);
	host[n] = '\0';
	if (strlcpy(repo, p + n + 1, repolen) >= repolen)
		return CL_TOOBIG;
	n = strlen(repo);
	if (n > 4 && strcmp(repo + n - 4, ".git") == 0)
		repo[n - 4] = '\0';
	slash = strchr(repo, '/');
	return slash != NULL && slash != repo && slash[1] != '\0' &&
	    strchr(slash + 1, '/') == NULL ? CL_OK : CL_FORMAT;
}

/* By name (mine first), by the secret's id, or by a grant's. */
static int
lease_find_named(struct monitor *mon, const char *name, const char *actor,
    struct store_secret *row)
{
	struct store_grant g;
	int r;

	if ((r = store_find_secret(mon->store, name, actor, row)) !=
	    CL_NOTFOUND ||
	    (r = store_find_secret(mon->store, name, "", row)) !=
	    CL_NOTFOUND ||
	    (r = store_find_secret_id(mon->store, name, row)) != CL_NOTFOUND)
		return r;
	if ((r = store_find_grant(mon->store, name, &g)) != CL_OK)
		return r;
	r = store_find_secret_id(mon->store, g.secret_id, row);
	store_grant_clear(&g);
	return r;
}

int
lease_find_workspace(struct monitor *mon, struct lease_plan *p,
    const struct spec *spec, struct refusal *r)
{
	const struct spec_workspace *w = &spec->workspace;
	char host[WORKSPACE_HOST_MAX];
	struct lease_plan_item *item;
	int rc;

	if (w->credential_grant == NULL || w->credential_grant[0] == '\0')
		return 0;
	if (w->repo == NULL || lease_parse_repo(w->repo, host, sizeof(host),
	    p->repo, sizeof(p->repo)) != CL_OK) {
		refuse_set(r, "workspace_grant", "%s is not "
		    "https://HOST/OWNER/NAME: no grant can be for it",
		    w->repo != NULL ? w->repo : "");
		return 1;
	}
	if (p->n == MAX_WANTS) {
		refuse_set(r, "usage", "a run may borrow %d secrets at most",
		    MAX_WANTS);
		return 1;
	}
	item = &p->items[p->n];
	rc = lease_find_named(mon, w->credential_grant, p->actor,
	    &item->secret);
	if (rc != CL_OK) {
		refuse_set(r, rc == CL_NOTFOUND ? "workspace_grant" :
		    "internal", "there is no secret or grant %s",
		    w->credential_grant);
		return 1;
	}
	p->n++;
	item->is_workspace = 1;
	if (strcmp(item->secret.kind, "github_pat") == 0)
		return 0;
	refuse_set(r, "workspace_grant", "%s is of the kind %s: a tree is "
	    "fetched with a github_pat", item->secret.name,
	    item->secret.kind);
	return 1;
}

int
lease_render_workspace(const struct lease_plan *p,
    const struct secret *value, struct spec *spec)
{
	const char *token = (const char *)value->data;
	char host[WORKSPACE_HOST_MAX], repo[sizeof(p->repo)];
	struct spec_credential *c;
	size_t len = value->len;
	int r;

	while (len > 0 && isspace((unsigned char)token[len - 1]))
		len--;
	while (len > 0 && isspace((unsigned char)*token)) {
		token++;
		len--;
	}
	if ((r = lease_parse_repo(spec->workspace.repo, host, sizeof(host),
	    repo, sizeof(repo))) != CL_OK)
		return r;
	if (spec->workspace_credential != NULL)
		return CL_STATE;
	if ((c = calloc(1, sizeof(*c))) == NULL)
		return CL_NOMEM;
	spec->workspace_credential = c;	/* cleared with the spec */
	c->expires_at = p->expires_at;
	if ((c->username = strdup("x-access-token")) == NULL ||
	    (c->host = strdup(host)) == NULL)
		return CL_NOMEM;
	return secret_init(&c->password, token, len, MAX_SECRET_FILE_LEN);
}
