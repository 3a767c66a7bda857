/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The plan of a start's work, in the device monitor.  The spec was checked
 * by spec_check(); what is decided here needs this device's configuration,
 * the clock, git on the PATH, or the shipped branch.  Its record in the handle
 * directory lets an agent that comes after us give the work back all the same;
 * no secret is in it, and who could write it is us.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <event2/event.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/rule.h"
#include "common/base/util.h"
#include "common/base/xmem.h"
#include "common/json/jsonw.h"
#include "common/model/spec.h"
#include "common/msg/buf.h"
#include "common/output/redact.h"
#include "sandbox/box/spawn.h"
#include "agentd.h"
#include "handledir.h"
#include "incoming.h"
#include "wjob.h"
#include "work.h"

#define WORK_FILE "work"
#define WORK_MAGIC 0x43574b31U		/* "CWK1" */
#define MAX_WORK_LEN 65536
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
	field_clear(&work_record_table, &k->rec);
	field_clear(&devjob_plan_table, &k->prov);
	secret_clear(&k->seed);
	secret_clear(&k->password);
	free(k->placement);
	wjob_free(k->job);
	if (k->again != NULL)
		event_free(k->again);
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

/* ------------------------------------------------- what this device can do */

int
work_find_git(const struct agentd *a, char *dst, size_t dstlen)
{
	struct environment env;
	int found;

	environment_init(&env, getenv("PATH"), NULL);
	found = environment_find_program(&env, "git", dst, dstlen);
	environment_clear(&env);
	(void)a;
	return found;
}

static int
work_needs_git(const struct spec *s)
{
	return rule_is_one_of(s->workspace.kind, "git bundle") ||
	    !rule_is_empty(s->write_back.mode);
}

/* Host of an https URL without its port. */
static int
work_is_host(const char *url, const char *host)
{
	const char *p = strncasecmp(url, "https://", 8) == 0 ? url + 8 : url;
	size_t all = strcspn(p, "/"), bare = all, n = strlen(host);
	const char *colon;

	colon = memrchr(p, ':', all);
	if (colon != NULL && memchr(colon, ']', all - (size_t)(colon - p)) ==
	    NULL)
		bare = (size_t)(colon - p);
	return (n == all && strncasecmp(p, host, n) == 0) ||
	    (n == bare && strncasecmp(p, host, n) == 0);
}

static const char *
work_check_credential(const struct spec *s)
{
	const struct spec_credential *c = s->workspace_credential;

	if (c == NULL || !rule_is_equal(s->workspace.kind, "git"))
		return NULL;
	if (!rule_is_empty(c->host) &&
	    !work_is_host(s->workspace.repo, c->host))
		return "the workspace credential is for another host than "
		    "the repository's";
	if (c->expires_at != UTIL_TIME_ZERO &&
	    c->expires_at <= util_wall_ns())
		return "the workspace credential has expired";
	return NULL;
}

const char *
work_check(const struct agentd *a, const struct spec *s)
{
	char path[MAX_PATH_LEN + 1];

	if (rule_is_equal(s->workspace.kind, "bind"))
		return "workspace kind bind: this device shares no file "
		    "system with the hub";
	if (rule_is_equal(s->workspace.kind, "executor") &&
	    s->project_seed_len == 0)
		return "workspace kind executor: it needs a project seed";
	if (s->project_seed_len > 0 && !a->conf.accept_project_seed)
		return "this device accepts no project seed "
		    "(AcceptProjectSeed no)";
	if (work_needs_git(s) && !work_find_git(a, path, sizeof(path)))
		return "git is not installed on this device";
	return work_check_credential(s);
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

/* --------------------------------------------------- the next agent's copy */

int
work_save(const struct work *k, const struct handledir *d)
{
	struct buf b;
	int r;

	buf_init(&b, MAX_WORK_LEN);
	buf_put_u32(&b, WORK_MAGIC);
	field_put(&work_record_table, &k->rec, &b);
	r = handledir_save_file(d->fd, WORK_FILE, &b);
	buf_clear(&b);
	return r;
}

static int
work_load_record(const struct handledir *d, struct work_record *rec)
{
	uint8_t *data = NULL;
	struct buf b;
	size_t len;
	int fd, r;

	fd = openat(d->fd, WORK_FILE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1)
		return errno == ENOENT ? CL_NOTFOUND : CL_SYSTEM;
	r = util_load_fd(fd, MAX_WORK_LEN, &data, &len);
	close(fd);
	if (r != 0)
		return r;
	buf_init_read(&b, data, len);
	if (buf_get_u32(&b) != WORK_MAGIC)
		r = CL_FORMAT;
	else if ((r = field_get(&work_record_table, &b, rec)) == 0 &&
	    (r = buf_end(&b)) != 0)
		field_clear(&work_record_table, rec);
	free(data);
	return r;
}

int
work_load(struct agentd *a, const struct handledir *d, struct work **workp)
{
	struct work *k = xcalloc(1, sizeof(*k));
	struct workdir wd = { .fd = -1 };
	int r;

	*workp = NULL;
	k->tree_fd = k->file_fd = -1;
	k->expires_at = UTIL_TIME_ZERO;
	field_init(&devjob_plan_table, &k->prov);
	if ((r = work_load_record(d, &k->rec)) != 0) {
		free(k);
		return r;
	}
	/* The way back goes through the same door as the way in. */
	if (!k->rec.is_returned && (r = workdir_open(&a->root, k->rec.tree,
	    &wd)) == 0) {
		k->tree_fd = wd.fd;
		wd.fd = -1;
	}
	workdir_close(&wd);
	if (r != 0) {
		work_free(k);
		return r;
	}
	*workp = k;
	return CL_OK;
}
