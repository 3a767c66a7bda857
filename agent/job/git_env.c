/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The environment of a git process, in cloop-git.  It is built from nothing;
 * settings given here outrank every file git may read.  The credential is not
 * in it: only the number of a descriptor on which our own helper reads it,
 * once.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/err.h"
#include "git_job.h"

static void
ge_take(struct ge *e, char *entry)
{
	char **v;

	if (entry == NULL) {
		e->error = CL_NOMEM;
		return;
	}
	if (e->n + 1 >= e->cap) {
		v = reallocarray(e->v, e->cap + 32, sizeof(*v));
		if (v == NULL) {
			free(entry);
			e->error = CL_NOMEM;
			return;
		}
		e->v = v;
		e->cap += 32;
	}
	e->v[e->n++] = entry;
	e->v[e->n] = NULL;
}

static void __attribute__((__format__(__printf__, 2, 3)))
ge_add(struct ge *e, const char *fmt, ...)
{
	char *entry = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&entry, fmt, ap) == -1)
		entry = NULL;
	va_end(ap);
	ge_take(e, entry);
}

static void
ge_config(struct ge *e, const char *key, const char *value)
{
	ge_add(e, "GIT_CONFIG_KEY_%u=%s", e->nconfig, key);
	ge_add(e, "GIT_CONFIG_VALUE_%u=%s", e->nconfig, value);
	e->nconfig++;
}

static const char *const ge_fixed[] = {
	"PATH=/usr/local/bin:/usr/bin:/bin",
	"LC_ALL=C",
	"GIT_TERMINAL_PROMPT=0",
	"GIT_ASKPASS=/nonexistent",
	"SSH_ASKPASS=/nonexistent",
	"GIT_CONFIG_NOSYSTEM=1",
	"GIT_CONFIG_GLOBAL=/dev/null",
	"GIT_ATTR_NOSYSTEM=1",
	"GIT_HTTP_USER_AGENT=cloop-workspace",
	"GIT_PROTOCOL_FROM_USER=0",
	"GIT_SSH_COMMAND=false",
	"GIT_EDITOR=true",
	"GIT_PAGER=cat",
	/* What the tree says an object is replaced by, is not what was asked
	 * for by its name. */
	"GIT_NO_REPLACE_OBJECTS=1",
	"GIT_GRAFT_FILE=/dev/null",
	"GIT_AUTHOR_NAME=cloop",
	"GIT_AUTHOR_EMAIL=cloop@localhost",
	"GIT_COMMITTER_NAME=cloop",
	"GIT_COMMITTER_EMAIL=cloop@localhost",
};

/* Against whatever could run, ask or look elsewhere. */
static const struct ge_row {
	const char *key, *value;
} ge_settings[] = {
	{ "http.followRedirects", "false" },
	{ "http.sslVerify", "true" },
	{ "http.saveCookies", "false" },
	{ "http.lowSpeedLimit", "1" },
	{ "http.lowSpeedTime", "300" },
	{ "protocol.allow", "never" },
	{ "protocol.ext.allow", "never" },
	{ "transfer.credentialsInUrl", "die" },
	{ "transfer.fsckObjects", "true" },
	{ "fetch.fsckObjects", "true" },
	{ "fetch.recurseSubmodules", "false" },
	{ "push.recurseSubmodules", "no" },
	{ "push.gpgSign", "false" },
	{ "submodule.recurse", "false" },
	{ "diff.ignoreSubmodules", "all" },
	{ "status.submoduleSummary", "false" },
	{ "core.hooksPath", "/dev/null" },
	{ "core.fsmonitor", "false" },
	{ "core.sshCommand", "false" },
	{ "core.askPass", "/nonexistent" },
	{ "core.pager", "cat" },
	{ "core.editor", "true" },
	{ "core.attributesFile", "/dev/null" },
	{ "core.excludesFile", "/dev/null" },
	{ "core.protectHFS", "true" },
	{ "core.protectNTFS", "true" },
	{ "core.autocrlf", "false" },
	{ "init.templateDir", "" },
	{ "init.defaultBranch", "cloop-provision" },
	{ "commit.gpgSign", "false" },
	{ "tag.gpgSign", "false" },
	{ "gc.auto", "0" },
	{ "maintenance.auto", "false" },
	{ "advice.detachedHead", "false" },
	{ "credential.helper", "" },	/* forgets those before it */
};

static void
ge_put_repo(const struct gj *g, enum gj_repo repo, struct ge *e)
{
	const char *dir = g->plan.dir;

	if (repo == GJ_TREE) {
		ge_add(e, "GIT_DIR=%s/.git", dir);
		ge_add(e, "GIT_WORK_TREE=%s", dir);
	} else if (repo == GJ_SHADOW) {
		ge_add(e, "GIT_DIR=%s", g->shadow);
		ge_add(e, "GIT_WORK_TREE=%s", dir);
		ge_add(e, "GIT_INDEX_FILE=%s/index", g->shadow);
		ge_add(e, "GIT_OBJECT_DIRECTORY=%s/.git/objects", dir);
	}
	ge_config(e, "safe.directory", dir);
}

/*
 * The helper gets the host from git and gives nothing to another one; git
 * asks it only for URLs of this host.  The word is run by sh: the path of
 * our own program is quoted, the rest is digits.
 */
static void
ge_put_credential(const struct gj *g, int fd, struct ge *e)
{
	char *key = NULL, *value = NULL;

	if (strchr(g->plan.helper, '\'') != NULL ||
	    strchr(g->host, '\'') != NULL ||
	    asprintf(&key, "credential.https://%s.helper", g->host) == -1 ||
	    asprintf(&value, "!'%s' credential %d '%s'", g->plan.helper, fd,
	    g->host) == -1) {
		e->error = CL_NOMEM;
		free(key);
		return;
	}
	ge_config(e, key, value);
	/* Git 2.46 and later: at once, not after a refusal. */
	ge_config(e, "http.proactiveAuth", "basic");
	free(key);
	free(value);
}

int
ge_make(const struct gj *g, enum gj_repo repo, unsigned int flags, int fd,
    int ca_fd, struct ge *e)
{
	size_t i;

	memset(e, 0, sizeof(*e));
	for (i = 0; i < sizeof(ge_fixed) / sizeof(ge_fixed[0]); i++)
		ge_add(e, "%s", ge_fixed[i]);
	for (i = 0; i < sizeof(ge_settings) / sizeof(ge_settings[0]); i++)
		ge_config(e, ge_settings[i].key, ge_settings[i].value);
	ge_put_repo(g, repo, e);
	if ((flags & GE_FILE) != 0)
		ge_config(e, "protocol.file.allow", "always");
	if ((flags & GE_NETWORK) != 0) {
		ge_config(e, "protocol.https.allow", "always");
		/* Git 2.37 and later; it can look nothing up itself where a
		 * packet filter holds it to these addresses. */
		for (i = 0; i < g->plan.npins; i++)
			ge_config(e, "http.curloptResolve", g->plan.pins[i]);
		for (i = 0; i < g->plan.nenv; i++)
			ge_add(e, "%s", g->plan.env[i]);
	}
	if ((flags & GE_NETWORK) != 0 && ca_fd != -1)
		ge_add(e, "GIT_SSL_CAINFO=/proc/self/fd/%d", ca_fd);
	if ((flags & GE_CREDENTIAL) != 0)
		ge_put_credential(g, fd, e);
	ge_add(e, "GIT_CONFIG_COUNT=%u", e->nconfig);
	if (e->error != 0)
		ge_clear(e);
	return e->error;
}

void
ge_clear(struct ge *e)
{
	size_t i;

	for (i = 0; i < e->n; i++)
		free(e->v[i]);
	free(e->v);
	e->v = NULL;
	e->n = e->cap = 0;
}

char *
ge_get_host(const char *url)
{
	size_t n;

	if (url == NULL || strncasecmp(url, "https://", 8) != 0)
		return NULL;
	n = strcspn(url + 8, "/");
	return n == 0 ? NULL : strndup(url + 8, n);
}

/* White space around it, one "/" and one ".git" at its end do not count. */
static size_t
ge_trim_url(const char **urlp)
{
	const char *url = *urlp + strspn(*urlp, " \t\r\n");
	size_t n = strlen(url);

	while (n > 0 && strchr(" \t\r\n", url[n - 1]) != NULL)
		n--;
	if (n > 0 && url[n - 1] == '/')
		n--;
	if (n > 4 && strncmp(url + n - 4, ".git", 4) == 0)
		n -= 4;
	*urlp = url;
	return n;
}

int
ge_is_same_url(const char *a, const char *b)
{
	size_t n = ge_trim_url(&a), m = ge_trim_url(&b);

	return n == m && memcmp(a, b, n) == 0;
}
