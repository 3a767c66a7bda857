/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * From a checked spec to a shim's job: how a host-mode workload is run, and a
 * step before or after it.  In the device monitor; pure but for the look at
 * our own configuration.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/stdlib.h>
#include <bsd/string.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/xmem.h"
#include "common/model/spec.h"
#include "sandbox/box/shim.h"
#include "sandbox/box/spawn.h"
#include "agentd.h"
#include "secretfiles.h"
#include "start.h"

extern char **environ;

static int
start_add_path(struct shim_list *list, const char *path)
{
	if (path == NULL || list->n == MAX_SHIM_PATHS)
		return path == NULL ? CL_OK : CL_LIMIT;
	list->v[list->n++] = xstrdup(path);
	return CL_OK;
}

/*
 * What a workload must not see.  A directory that holds the work root (an
 * unprivileged install keeps everything in ~/.cloop) cannot be hidden whole:
 * its parts are.
 */
static void
start_add_hidden(struct shim_list *list, const char *dir, const char *root)
{
	static const char *const parts[] = {
		"handles", "agent.json", "agentd.lock", "shim", "run"
	};
	size_t i, n = strlen(dir);
	char *path;

	if (strncmp(root, dir, n) != 0 || root[n] != '/') {
		(void)start_add_path(list, dir);
		return;
	}
	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		xasprintf(&path, "%s/%s", dir, parts[i]);
		(void)start_add_path(list, path);
		free(path);
	}
}

static void
start_put_hidden(const struct agentd *a, struct shim_job *job)
{
	char *path;

	job->hide.v = xcalloc(MAX_SHIM_PATHS, sizeof(*job->hide.v));
	start_add_hidden(&job->hide, a->conf.state_dir, a->root.path);
	start_add_hidden(&job->hide, a->conf.runtime_dir, a->root.path);
	(void)start_add_path(&job->hide, a->conf.credential_file);
	(void)start_add_path(&job->hide, a->conf.token_file);
	start_add_hidden(&job->hide, SYSCONFDIR "/cloop", a->root.path);
	/* Lease directories of others have names we do not know: where no
	 * mount namespace covers their place, this keeps Landlock from giving
	 * the whole of it (sandbox/shim/shim_view.c). */
	if (a->lease_base != NULL) {
		xasprintf(&path, "%s/" SECRETFILES_PREFIX, a->lease_base);
		(void)start_add_path(&job->hide, path);
		free(path);
	}
}

int
start_add_leases(const struct secretset *s, struct shim_job *job)
{
	size_t i;
	int r = CL_OK;

	if (s->ndirs == 0)
		return CL_OK;
	job->writable.v = calloc(MAX_SHIM_PATHS, sizeof(*job->writable.v));
	if (job->writable.v == NULL)
		return CL_NOMEM;
	for (i = 0; r == CL_OK && i < s->ndirs; i++)
		r = start_add_path(&job->writable, s->dirs[i].path);
	return r;
}

static int
start_put_argv(const struct spec *s, struct shim_job *job)
{
	size_t i;

	if ((job->argv.v = calloc(s->nargv + 1, sizeof(char *))) == NULL)
		return CL_NOMEM;
	for (i = 0; i < s->nargv; i++) {
		if ((job->argv.v[i] = strdup(s->argv[i])) == NULL)
			return CL_NOMEM;
		job->argv.n++;
	}
	return CL_OK;
}

static int
start_put_env(const struct agentd *a, const struct spec *s, const char *tree,
    const char *home, struct shim_job *job)
{
	struct environment env;
	int r;

	environment_init(&env, getenv("PATH"), a->work_home);
	r = environment_make(&env, s->env, s->nenv, environ, tree, home,
	    &job->env.v, &job->env.n);
	environment_clear(&env);
	return r;
}

int
start_make_job(const struct agentd *a, const struct spec *s,
    const char *handle_id, const char *tree, const char *home,
    struct shim_job *job)
{
	int r;

	memset(job, 0, sizeof(*job));
	if ((r = start_put_argv(s, job)) != 0 ||
	    (r = start_put_env(a, s, tree, home, job)) != 0) {
		shim_job_clear(job);
		return r;
	}
	job->handle = xstrdup(handle_id);
	job->mode = a->conf.host_mode == HOSTMODE_PLAIN ? SHIM_MODE_PLAIN :
	    SHIM_MODE_CONFINED;
	job->log_level = (uint8_t)log_get_level();
	job->uid = a->work_uid == (uid_t)-1 ? SHIM_STAY : a->work_uid;
	job->gid = a->work_uid == (uid_t)-1 ? SHIM_STAY : a->work_gid;
	job->tree = xstrdup(tree);
	job->home = home == NULL ? NULL : xstrdup(home);
	job->work_root = xstrdup(a->root.path);
	start_put_hidden(a, job);
	/* spec_check bounds it; 2^31 minutes are "never" to any clock. */
	if (s->timeout_minutes > 0) {
		job->timeout_s = (uint64_t)(s->timeout_minutes > INT32_MAX ?
		    INT32_MAX : s->timeout_minutes) * 60;
		xasprintf(&job->timeout_text, "timeout after %lldm0s",
		    (long long)s->timeout_minutes);
	}
	return CL_OK;
}

/* Only what a sanitizer or the dynamic linker of a test build needs. */
static int
start_put_step_env(struct shim_job *job)
{
	static const char *const pass[] = { "ASAN_OPTIONS", "UBSAN_OPTIONS" };
	const char *value;
	size_t i;

	job->env.v = xcalloc(sizeof(pass) / sizeof(pass[0]) + 2,
	    sizeof(*job->env.v));
	job->env.v[job->env.n++] = xstrdup("PATH=/usr/bin:/bin");
	for (i = 0; i < sizeof(pass) / sizeof(pass[0]); i++) {
		value = getenv(pass[i]);
		if (i == 0)	/* a leak check needs ptrace */
			xasprintf(&job->env.v[job->env.n++],
			    "%s=%s%sdetect_leaks=0", pass[i],
			    value == NULL ? "" : value,
			    value == NULL ? "" : ":");
		else if (value != NULL)
			xasprintf(&job->env.v[job->env.n++], "%s=%s",
			    pass[i], value);
	}
	return CL_OK;
}

int
start_make_step(const struct agentd *a, const char *handle_id,
    const char *program, const char *tree, int64_t timeout_s,
    struct shim_job *job)
{
	char path[MAX_PATH_LEN + 1], *slash;
	int r;

	memset(job, 0, sizeof(*job));
	if ((r = spawn_find_program(program, path, sizeof(path))) != 0)
		return r;
	job->argv.v = xcalloc(2, sizeof(*job->argv.v));
	job->argv.v[job->argv.n++] = xstrdup(path);
	if ((r = start_put_step_env(job)) != 0)
		return r;
	job->handle = xstrdup(handle_id);
	/* Also on a device whose workloads are not confined. */
	job->mode = SHIM_MODE_CONFINED;
	job->flags = SHIM_F_STEP | SHIM_F_NARROW;
	job->log_level = (uint8_t)log_get_level();
	job->uid = a->work_uid == (uid_t)-1 ? SHIM_STAY : a->work_uid;
	job->gid = a->work_uid == (uid_t)-1 ? SHIM_STAY : a->work_gid;
	job->tree = xstrdup(tree);
	job->work_root = xstrdup(a->root.path);
	start_put_hidden(a, job);
	job->readable.v = xcalloc(MAX_SHIM_PATHS, sizeof(*job->readable.v));
	if ((slash = strrchr(path, '/')) != NULL && slash != path) {
		*slash = '\0';
		(void)start_add_path(&job->readable, path);
	}
	job->timeout_s = (uint64_t)timeout_s;
	return CL_OK;
}
