/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The plan of a start's work, in the device monitor.  The spec was checked
 * by spec_check(); what is decided here needs this device's configuration,
 * the clock, or the shipped branch.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/rule.h"
#include "common/base/util.h"
#include "common/base/xmem.h"
#include "common/json/jsonw.h"
#include "common/model/spec.h"
#include "common/output/redact.h"
#include "sandbox/box/spawn.h"
#include "agentd.h"
#include "incoming.h"
#include "wjob.h"
#include "work_int.h"

#define WORK_PROVISION_S (30 * 60)

/* What may pass from our environment to git. */
static const char *const work_env[] = {
	"HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY",
	"no_proxy",
};
static const char *const work_ca_env[] = { "GIT_SSL_CAINFO",
	"SSL_CERT_FILE" };

void
work_free(struct work *k)
{
	if (k == NULL)
		return;
	work_clear_record(&k->rec);
	field_clear(&devjob_plan_table, &k->prov);
	secret_clear(&k->seed);
	secret_clear(&k->password);
	free(k->placement);
	wjob_free(k->job);
	work_forget_forge(k);
	redact_free(k->redact);
	if (k->tree_fd != -1)
		close(k->tree_fd);
	if (k->file_fd != -1)
		close(k->file_fd);
	free(k);
}

static char *
work_dup(const char *s)
{
	return xstrdup(s == NULL ? "" : s);
}

/* --------------------------------------------------------------- the plan */

static void
work_put_env(struct devjob_plan *p)
{
	uint8_t *data = NULL;
	const char *value;
	size_t i, len;
	int fd;

	p->env = xcalloc(sizeof(work_env) / sizeof(work_env[0]),
	    sizeof(*p->env));
	for (i = 0; i < sizeof(work_env) / sizeof(work_env[0]); i++)
		if ((value = getenv(work_env[i])) != NULL &&
		    *value != '\0' && strlen(value) < 2048)
			xasprintf(&p->env[p->nenv++], "%s=%s", work_env[i],
			    value);
	/* The job does not see the file: its roots travel in the plan. */
	for (i = 0; i < sizeof(work_ca_env) / sizeof(work_ca_env[0]) &&
	    p->ca_len == 0; i++) {
		if ((value = getenv(work_ca_env[i])) == NULL ||
		    (fd = open(value, O_RDONLY | O_CLOEXEC)) == -1)
			continue;
		if (util_load_fd(fd, MAX_SPEC_LEN, &data, &len) == 0) {
			p->ca = data;
			p->ca_len = len;
		}
		close(fd);
	}
}

void
work_init_plan(const struct work *k, struct devjob_plan *p)
{
	char path[MAX_PATH_LEN + 1];

	field_init(&devjob_plan_table, p);
	p->dir = work_dup(k->rec.tree);
	p->git = work_dup(k->rec.git);
	if (spawn_find_program("cloop-git", path, sizeof(path)) != 0)
		path[0] = '\0';
	p->helper = work_dup(path);
	p->repo = work_dup(k->rec.repo);
	p->branch = work_dup(k->rec.branch);
	p->username = work_dup(k->rec.username);
	p->hide_cloop = k->rec.hide_cloop;
	work_put_env(p);
}

static int
work_put_bundle(struct agentd *a, const struct spec *s,
    const char *handle_id, struct work *k, char **whyp)
{
	const struct spec_bundle *b = s->workspace.branch_bundle;
	struct devjob_plan *p = &k->prov;
	const char *no;
	char why[256];
	size_t i;

	if (b == NULL)
		return CL_OK;
	free(p->branch);
	p->branch = work_dup(b->branch);
	p->head = work_dup(b->head);
	p->bytes = b->bytes;
	p->sha256 = work_dup(b->sha256);
	p->hide_cloop = 1;
	p->shallow = xcalloc(b->nshallow + 1, sizeof(*p->shallow));
	for (i = 0; i < b->nshallow; i++)
		p->shallow[p->nshallow++] = xstrdup(b->shallow[i]);
	if (b->bytes == 0)
		return CL_OK;
	no = incoming_claim(a, handle_id, b->bytes, &k->file_fd, why);
	if (no == NULL)
		return CL_OK;
	*whyp = xstrdup(no);
	return CL_DENIED;
}

static int
work_put_workspace(const struct spec *s, struct work *k)
{
	const struct spec_workspace *ws = &s->workspace;
	const struct spec_credential *c = s->workspace_credential;
	struct devjob_plan *p = &k->prov;

	work_init_plan(k, p);
	p->op = DEVJOB_PROVISION;
	p->timeout_s = WORK_PROVISION_S;
	p->kind = work_dup(ws->kind);
	p->upstream = work_dup(ws->upstream);
	p->ref = work_dup(ws->ref);
	p->depth = ws->depth;
	p->size_limit_mb = ws->size_limit_mb;
	free(p->branch);
	p->branch = work_dup("");
	if (c == NULL || c->password.len == 0)
		return CL_OK;
	k->expires_at = c->expires_at;
	k->rec.has_password = 1;
	/* The second copy is for the way back. */
	if (rule_is_equal(s->write_back.mode, "push") &&
	    secret_init(&k->password, c->password.data, c->password.len,
	    MAX_SPEC_LEN) != 0)
		return CL_NOMEM;
	return secret_init(&p->password, c->password.data, c->password.len,
	    MAX_SPEC_LEN);
}

/* .cloop/sandbox-run.json. */
static char *
work_format_placement(const struct agentd *a, const struct spec *s)
{
	struct jsonw w;
	const char *run;

	run = field_find_pair(s->labels, s->nlabels, "run_id");
	jsonw_init(&w, MAX_ERROR_TEXT_LEN, 0);
	jsonw_open_object(&w);
	jsonw_put_key(&w, "executor_id");
	jsonw_put_str(&w, a->cred.agent_id);
	jsonw_put_key(&w, "kind");
	jsonw_put_str(&w, "remote");
	jsonw_put_key(&w, "isolation");
	jsonw_put_str(&w, "remote");
	jsonw_put_key(&w, "run_id");
	jsonw_put_str(&w, run);
	jsonw_put_key(&w, "started_at");
	jsonw_put_time(&w, util_wall_ns());
	jsonw_close_object(&w);
	return jsonw_take(&w, NULL);
}

static int
work_put_all(struct agentd *a, const struct spec *s, const char *handle_id,
    struct work *k, char **whyp)
{
	const struct spec_write_back *b = &s->write_back;
	int r;

	k->rec.is_seeded = s->project_seed_len > 0;
	k->rec.hide_cloop = s->workspace.branch_bundle != NULL ||
	    (k->rec.is_seeded && rule_is_equal(s->workspace.kind, "git"));
	k->rec.mode = work_dup(b->mode);
	k->rec.branch = work_dup(b->branch);
	k->rec.base = work_dup("");
	k->rec.message = work_dup(b->message);
	k->rec.max_bundle_bytes = b->max_bundle_bytes;
	k->rec.repo = work_dup(s->workspace.repo);
	k->rec.username = work_dup(s->workspace_credential == NULL ? "" :
	    s->workspace_credential->username);
	k->rec.project_error = work_dup("");
	if (rule_is_one_of(s->workspace.kind, "git bundle") &&
	    ((r = work_put_workspace(s, k)) != 0 ||
	    (r = work_put_bundle(a, s, handle_id, k, whyp)) != 0))
		return r;
	if (!k->rec.is_seeded)
		return CL_OK;
	k->placement = work_format_placement(a, s);
	return secret_init(&k->seed, s->project_seed, s->project_seed_len,
	    MAX_SEED_LEN);
}

int
work_make(struct agentd *a, const struct spec *s, const char *handle_id,
    const struct workdir *wd, struct work **workp, char **whyp)
{
	char git[MAX_PATH_LEN + 1] = "";
	struct work *k;
	int r;

	*workp = NULL;
	*whyp = NULL;
	if (!work_needs_git(s) && s->project_seed_len == 0) {
		incoming_drop(a, handle_id);
		return CL_OK;
	}
	k = xcalloc(1, sizeof(*k));
	k->tree_fd = k->file_fd = -1;
	k->expires_at = UTIL_TIME_ZERO;
	field_init(&devjob_plan_table, &k->prov);
	field_init(&devjob_result_table, &k->rec.res);
	(void)work_find_git(a, git, sizeof(git));
	k->rec.tree = work_dup(wd->path);
	k->rec.git = work_dup(git);
	if ((k->tree_fd = fcntl(wd->fd, F_DUPFD_CLOEXEC, 0)) == -1)
		r = CL_SYSTEM;
	else
		r = work_put_all(a, s, handle_id, k, whyp);
	if (r != 0) {
		work_free(k);
		return r;
	}
	*workp = k;
	return CL_OK;
}
