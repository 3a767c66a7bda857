/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * What a git process of cloop-git is given, and what it may say.  Its
 * environment is built from nothing; settings given here outrank every file
 * git may read.  The credential is not in it: only the number of a descriptor
 * on which our own helper reads it, once.
 *
 * The network, between fork and exec: one that works on a tree gets no socket
 * at all.  One that speaks to the forge connects to the forge's port and its
 * proxies' only, where Landlock knows ports (Linux 6.7); where the shim could
 * put a packet filter on our cgroup it also reaches no address but theirs,
 * and looks no name up (work_forge.c).  Port 53 is for where it could not.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/err.h"
#include "common/model/forge.h"
#include "sandbox/self/bpf.h"
#include "sandbox/self/landlock.h"
#include "git_job.h"

static void
git_env_take(struct git_env *e, char *entry)
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
git_env_add(struct git_env *e, const char *fmt, ...)
{
	char *entry = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&entry, fmt, ap) == -1)
		entry = NULL;
	va_end(ap);
	git_env_take(e, entry);
}

static void
git_env_config(struct git_env *e, const char *key, const char *value)
{
	git_env_add(e, "GIT_CONFIG_KEY_%u=%s", e->nconfig, key);
	git_env_add(e, "GIT_CONFIG_VALUE_%u=%s", e->nconfig, value);
	e->nconfig++;
}

static const char *const git_env_fixed[] = {
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
static const struct git_env_row {
	const char *key, *value;
} git_env_settings[] = {
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
git_env_put_repo(const struct git_job *g, enum git_repo repo, struct git_env *e)
{
	const char *dir = g->plan.dir;

	if (repo == GIT_JOB_TREE) {
		git_env_add(e, "GIT_DIR=%s/.git", dir);
		git_env_add(e, "GIT_WORK_TREE=%s", dir);
	} else if (repo == GIT_JOB_SHADOW) {
		git_env_add(e, "GIT_DIR=%s", g->shadow);
		git_env_add(e, "GIT_WORK_TREE=%s", dir);
		git_env_add(e, "GIT_INDEX_FILE=%s/index", g->shadow);
		git_env_add(e, "GIT_OBJECT_DIRECTORY=%s/.git/objects", dir);
	}
	git_env_config(e, "safe.directory", dir);
}

/*
 * The helper gets the host from git and gives nothing to another one; git
 * asks it only for URLs of this host.  The word is run by sh: the path of
 * our own program is quoted, the rest is digits.
 */
static void
git_env_put_credential(const struct git_job *g, int fd, struct git_env *e)
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
	git_env_config(e, key, value);
	/* Git 2.46 and later: at once, not after a refusal. */
	git_env_config(e, "http.proactiveAuth", "basic");
	free(key);
	free(value);
}

int
git_env_make(const struct git_job *g, enum git_repo repo, unsigned int flags,
    int fd, int ca_fd, struct git_env *e)
{
	size_t i;

	memset(e, 0, sizeof(*e));
	for (i = 0; i < sizeof(git_env_fixed) / sizeof(git_env_fixed[0]); i++)
		git_env_add(e, "%s", git_env_fixed[i]);
	for (i = 0; i <
	    sizeof(git_env_settings) / sizeof(git_env_settings[0]); i++)
		git_env_config(e, git_env_settings[i].key,
		    git_env_settings[i].value);
	git_env_put_repo(g, repo, e);
	if ((flags & GIT_ENV_FILE) != 0)
		git_env_config(e, "protocol.file.allow", "always");
	if ((flags & GIT_ENV_NETWORK) != 0) {
		git_env_config(e, "protocol.https.allow", "always");
		/* Git 2.37 and later; it can look nothing up itself where a
		 * packet filter holds it to these addresses. */
		for (i = 0; i < g->plan.npins; i++)
			git_env_config(e, "http.curloptResolve",
			    g->plan.pins[i]);
		for (i = 0; i < g->plan.nenv; i++)
			git_env_add(e, "%s", g->plan.env[i]);
	}
	if ((flags & GIT_ENV_NETWORK) != 0 && ca_fd != -1)
		git_env_add(e, "GIT_SSL_CAINFO=/proc/self/fd/%d", ca_fd);
	if ((flags & GIT_ENV_CREDENTIAL) != 0)
		git_env_put_credential(g, fd, e);
	git_env_add(e, "GIT_CONFIG_COUNT=%u", e->nconfig);
	if (e->error != 0)
		git_env_clear(e);
	return e->error;
}

void
git_env_clear(struct git_env *e)
{
	size_t i;

	for (i = 0; i < e->n; i++)
		free(e->v[i]);
	free(e->v);
	e->v = NULL;
	e->n = e->cap = 0;
}

char *
git_env_get_host(const char *url)
{
	size_t n;

	if (url == NULL || strncasecmp(url, "https://", 8) != 0)
		return NULL;
	n = strcspn(url + 8, "/");
	return n == 0 ? NULL : strndup(url + 8, n);
}

/* White space around it, one "/" and one ".git" at its end do not count. */
static size_t
git_env_trim_url(const char **urlp)
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
git_env_is_same_url(const char *a, const char *b)
{
	size_t n = git_env_trim_url(&a), m = git_env_trim_url(&b);

	return n == m && memcmp(a, b, n) == 0;
}

/* ------------------------------------------------------------------ network */

#define GIT_NET_DNS 53

size_t
git_net_find_ports(const struct git_job *g, uint16_t *ports, size_t max)
{
	struct forge_name names[FORGE_NAMES];
	size_t i, n, nnames;

	nnames = forge_find_names(g->plan.repo, g->plan.env, g->plan.nenv,
	    names, FORGE_NAMES);
	if (nnames == 0 || max < 2)
		return 0;
	ports[0] = names[0].port;
	ports[1] = GIT_NET_DNS;
	for (i = 1, n = 2; i < nnames && n < max; i++)
		ports[n++] = names[i].port;
	return n;
}

static int
git_net_start_ports(const struct git_job *g)
{
	uint16_t ports[GIT_NET_PORTS];
	size_t i, n = git_net_find_ports(g, ports, GIT_NET_PORTS);
	struct landlock *l;
	int r;

	if ((r = landlock_new(LL_NO_TCP | LL_ANY_FILE, &l)) != CL_OK)
		return r == CL_UNSUPPORTED ? CL_OK : r;
	for (i = 0; i < n && r == CL_OK; i++)
		r = landlock_add_port(l, ports[i]);
	if (r == CL_OK)
		r = landlock_start(l);
	landlock_free(l);
	return r;
}

int
git_net_start_walls(const struct git_job *g, unsigned int flags,
    const struct sock_fprog *filter)
{
	if ((flags & GIT_ENV_NETWORK) != 0)
		return git_net_start_ports(g);
	return filter != NULL ? bpf_start(filter) : CL_OK;
}
