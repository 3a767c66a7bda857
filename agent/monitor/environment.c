/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Workload environments.  Runs in the device monitor; the entries come from
 * the hub and are passed on as they are, never interpreted.  Of our own
 * environment only names on a list get through, so that no credential of the
 * agent can.  Entries may be secrets: every copy is wiped.
 */
#include <sys/stat.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/stdlib.h>
#include <bsd/string.h>

#include "environment.h"
#include "common/base/err.h"
#include "common/base/xmem.h"

static const char *const environment_harness_dirs[ENVIRONMENT_NDIRS] = {
	".local/bin", ".npm-global/bin",
};

/* What an agent may pass on; "LC_" is a prefix. */
static const char *const environment_inherited[] = {
	"PATH", "LANG", "TZ", "TERM", "LC_",
};

static size_t
environment_name_len(const char *entry)
{
	return strcspn(entry, "=");
}

static int
environment_is_name(const char *entry, const char *name)
{
	size_t n = environment_name_len(entry);

	return strlen(name) == n && strncmp(entry, name, n) == 0;
}

/* 1 when dir is an element of the colon-separated path. */
static int
environment_has_dir(const char *path, const char *dir)
{
	size_t n = strlen(dir), len;

	for (; *path != '\0'; path += len + (path[len] == ':')) {
		len = strcspn(path, ":");
		if (len == n && strncmp(path, dir, n) == 0)
			return 1;
	}
	return 0;
}

/* Put what is missing of the harness directories in front of a path. */
static char *
environment_make_path(const struct environment *e, const char *path)
{
	char *result = xstrdup(path), *next;
	size_t i;

	for (i = e->ndirs; i-- > 0; ) {
		if (environment_has_dir(result, e->dirs[i]))
			continue;
		/* No empty element: it would mean the work directory. */
		xasprintf(&next, "%s%s%s", e->dirs[i],
		    *result == '\0' ? "" : ":", result);
		free(result);
		result = next;
	}
	return result;
}

void
environment_init(struct environment *e, const char *path, const char *home)
{
	struct stat st;
	char *dir;
	size_t i;

	memset(e, 0, sizeof(*e));
	for (i = 0; home != NULL && i < ENVIRONMENT_NDIRS; i++) {
		xasprintf(&dir, "%s/%s", home, environment_harness_dirs[i]);
		if (stat(dir, &st) == 0 && S_ISDIR(st.st_mode) &&
		    strchr(dir, ':') == NULL)
			e->dirs[e->ndirs++] = dir;
		else
			free(dir);
	}
	if (path == NULL || *path == '\0')
		path = ENVIRONMENT_PATH;
	e->path = environment_make_path(e, path);
}

void
environment_clear(struct environment *e)
{
	size_t i;

	for (i = 0; i < e->ndirs; i++)
		free(e->dirs[i]);
	free(e->path);
	memset(e, 0, sizeof(*e));
}

void
environment_free_vector(char **v)
{
	size_t i;

	if (v == NULL)
		return;
	for (i = 0; v[i] != NULL; i++)
		freezero(v[i], strlen(v[i]));
	free(v);
}

static int
environment_is_inherited(const char *entry)
{
	const char *name;
	size_t i, n;

	n = sizeof(environment_inherited) / sizeof(environment_inherited[0]);
	for (i = 0; i < n; i++) {
		name = environment_inherited[i];
		if (name[strlen(name) - 1] == '_' ?
		    strncmp(entry, name, strlen(name)) == 0 :
		    environment_is_name(entry, name))
			return 1;
	}
	return 0;
}

/* The vector under construction: room for everything and PATH, HOME, NULL. */
struct envvec {
	char **v;
	size_t n;
};

static size_t
environment_find_entry(const struct envvec *ev, const char *entry)
{
	size_t i, n = environment_name_len(entry);

	for (i = 0; i < ev->n; i++)
		if (environment_name_len(ev->v[i]) == n &&
		    strncmp(ev->v[i], entry, n) == 0)
			break;
	return i;
}

/* Takes the string; an earlier entry of that name goes. */
static int
environment_put(struct envvec *ev, char *entry)
{
	size_t i;

	if (entry == NULL)
		return CL_NOMEM;
	i = environment_find_entry(ev, entry);
	if (i == ev->n)
		ev->n++;
	else
		freezero(ev->v[i], strlen(ev->v[i]));
	ev->v[i] = entry;
	return CL_OK;
}

static int
environment_put_pair(struct envvec *ev, const char *name, const char *value)
{
	char *entry;

	if (asprintf(&entry, "%s=%s", name, value) == -1)
		return CL_NOMEM;
	return environment_put(ev, entry);
}

static int
environment_put_floor(const struct environment *e, struct envvec *ev,
    int explicit, const char *work_dir, const char *home)
{
	char *path;
	size_t i;
	int r = CL_OK;

	i = environment_find_entry(ev, "PATH");
	if (explicit || i == ev->n) {
		path = environment_make_path(e, i < ev->n ?
		    ev->v[i] + strlen("PATH=") : e->path);
		r = environment_put_pair(ev, "PATH", path);
		free(path);
	}
	if (r == 0 && environment_find_entry(ev, "HOME") == ev->n)
		r = environment_put_pair(ev, "HOME",
		    explicit && home != NULL ? home : work_dir);
	return r;
}

int
environment_make(const struct environment *e, char *const *env, size_t nenv,
    char *const *inherit, const char *work_dir, const char *home,
    char ***vp, size_t *np)
{
	struct envvec ev = { NULL, 0 };
	size_t i, n = nenv;
	int r = CL_OK, explicit = nenv > 0;

	*vp = NULL;
	*np = 0;
	if (!explicit)
		for (env = inherit; env[n] != NULL; n++)
			;
	/* Bounded by the caller: MAX_ENV entries of one frame. */
	if ((ev.v = calloc(n + 3, sizeof(*ev.v))) == NULL)
		return CL_NOMEM;
	for (i = 0; i < n && r == 0; i++) {
		if (!explicit && !environment_is_inherited(env[i]))
			continue;
		if (*env[i] == '=' || strchr(env[i], '=') == NULL)
			r = CL_FORMAT;
		else
			r = environment_put(&ev, strdup(env[i]));
	}
	if (r == 0)
		r = environment_put_floor(e, &ev, explicit, work_dir, home);
	if (r != 0) {
		environment_free_vector(ev.v);
		return r;
	}
	*vp = ev.v;
	*np = ev.n;
	return CL_OK;
}

int
environment_find_program(const struct environment *e, const char *name,
    char *dst, size_t dstlen)
{
	struct stat st;
	const char *p;
	size_t len;
	int n;

	for (p = e->path; *p != '\0'; p += len + (p[len] == ':')) {
		len = strcspn(p, ":");
		if (len == 0 || *p != '/')
			continue;
		n = snprintf(dst, dstlen, "%.*s/%s", (int)len, p, name);
		if (n < 0 || (size_t)n >= dstlen)
			continue;
		if (stat(dst, &st) == 0 && S_ISREG(st.st_mode) &&
		    (st.st_mode & 0111) != 0 && access(dst, X_OK) == 0)
			return 1;
	}
	*dst = '\0';
	return 0;
}
