/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * What git is told when it works for a workload.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/job/git_job.h"
#include "common/base/err.h"
#include "common/model/forge.h"
#include "regress/unit/unit.h"

static struct git_job g;
static char *proxies[] = { "https_proxy=http://p:3128" };

static const char *
find(const struct git_env *e, const char *name)
{
	size_t i, n = strlen(name);

	for (i = 0; i < e->n; i++)
		if (strncmp(e->v[i], name, n) == 0 && e->v[i][n] == '=')
			return e->v[i] + n + 1;
	return NULL;
}

/* The last value of a key: git's rule. */
static const char *
config(const struct git_env *e, const char *key)
{
	const char *value = NULL, *name;
	char buf[64];
	unsigned int i;

	for (i = 0; i < e->nconfig; i++) {
		snprintf(buf, sizeof(buf), "GIT_CONFIG_KEY_%u", i);
		name = find(e, buf);
		ASSERT_PTR_NE(name, NULL);
		if (strcmp(name, key) != 0)
			continue;
		snprintf(buf, sizeof(buf), "GIT_CONFIG_VALUE_%u", i);
		value = find(e, buf);
	}
	return value;
}

static void
reset(void)
{
	memset(&g, 0, sizeof(g));
	g.plan.dir = "/w/t";
	g.plan.helper = "/usr/libexec/cloop/cloop-git";
	g.plan.env = proxies;
	g.plan.nenv = 1;
	g.plan.password.data = (unsigned char *)"hunter2hunter2";
	g.plan.password.len = 14;
	g.host = "forge.example:8443";
	snprintf(g.shadow, sizeof(g.shadow), "/tmp/cloop-git-x");
}

static void
test_closed(void)
{
	static const char *const keys[] = { "core.hooksPath",
	    "core.fsmonitor", "core.sshCommand", "core.pager", "core.editor",
	    "core.attributesFile", "core.excludesFile", "commit.gpgSign",
	    "tag.gpgSign", "gc.auto", "maintenance.auto",
	    "submodule.recurse", "diff.ignoreSubmodules",
	    "credential.helper", "init.templateDir", "fetch.fsckObjects" };
	struct git_env e;
	size_t i;

	reset();
	setenv("GIT_SSL_NO_VERIFY", "1", 1);
	setenv("HOME", "/root", 1);
	TEST_START("the environment is built from nothing");
	ASSERT_ERR(git_env_make(&g, GIT_JOB_TREE, 0, -1, -1, &e), CL_OK);
	ASSERT_STRING_EQ(find(&e, "GIT_CONFIG_NOSYSTEM"), "1");
	ASSERT_STRING_EQ(find(&e, "GIT_CONFIG_GLOBAL"), "/dev/null");
	ASSERT_STRING_EQ(find(&e, "GIT_TERMINAL_PROMPT"), "0");
	ASSERT_STRING_EQ(find(&e, "GIT_ASKPASS"), "/nonexistent");
	ASSERT_STRING_EQ(find(&e, "GIT_HTTP_USER_AGENT"), "cloop-workspace");
	ASSERT_STRING_EQ(find(&e, "GIT_DIR"), "/w/t/.git");
	ASSERT_PTR_EQ(find(&e, "HOME"), NULL);
	ASSERT_PTR_EQ(find(&e, "GIT_SSL_NO_VERIFY"), NULL);
	ASSERT_PTR_EQ(find(&e, "https_proxy"), NULL);
	TEST_START("whatever could run something is settled");
	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		unit_note("%s", keys[i]);
		ASSERT_PTR_NE(config(&e, keys[i]), NULL);
	}
	ASSERT_STRING_EQ(config(&e, "http.followRedirects"), "false");
	ASSERT_STRING_EQ(config(&e, "core.hooksPath"), "/dev/null");
	ASSERT_STRING_EQ(config(&e, "protocol.allow"), "never");
	ASSERT_PTR_EQ(config(&e, "protocol.https.allow"), NULL);
	ASSERT_PTR_EQ(config(&e, "protocol.file.allow"), NULL);
	ASSERT_STRING_EQ(config(&e, "safe.directory"), "/w/t");
	git_env_clear(&e);
}

static void
test_credential(void)
{
	struct git_env e;
	size_t i;

	reset();
	TEST_START("the credential is not in it, only where to read it once");
	ASSERT_ERR(git_env_make(&g, GIT_JOB_SHADOW, GIT_ENV_NETWORK |
	    GIT_ENV_CREDENTIAL, 7, 8, &e), CL_OK);
	for (i = 0; i < e.n; i++)
		ASSERT_PTR_EQ(strstr(e.v[i], "hunter2"), NULL);
	ASSERT_STRING_EQ(config(&e,
	    "credential.https://forge.example:8443.helper"),
	    "!'/usr/libexec/cloop/cloop-git' credential 7 "
	    "'forge.example:8443'");
	ASSERT_STRING_EQ(config(&e, "credential.helper"), "");
	ASSERT_STRING_EQ(config(&e, "protocol.https.allow"), "always");
	ASSERT_STRING_EQ(find(&e, "GIT_SSL_CAINFO"), "/proc/self/fd/8");
	ASSERT_STRING_EQ(find(&e, "https_proxy"), "http://p:3128");
	ASSERT_STRING_EQ(find(&e, "GIT_DIR"), "/tmp/cloop-git-x");
	ASSERT_STRING_EQ(find(&e, "GIT_OBJECT_DIRECTORY"),
	    "/w/t/.git/objects");
	git_env_clear(&e);
	TEST_START("a name that a shell would read otherwise is refused");
	g.host = "a'$(id)'";
	ASSERT_ERR(git_env_make(&g, GIT_JOB_TREE, GIT_ENV_CREDENTIAL, 7, -1,
	    &e), CL_NOMEM);
}

static void
test_urls(void)
{
	char *host;

	TEST_START("host of a URL, with its port");
	host = git_env_get_host("https://forge.example:8443/a/b.git");
	ASSERT_STRING_EQ(host, "forge.example:8443");
	free(host);
	ASSERT_PTR_EQ(git_env_get_host("http://x/y"), NULL);
	ASSERT_PTR_EQ(git_env_get_host("ext::sh"), NULL);
	ASSERT_PTR_EQ(git_env_get_host(NULL), NULL);
	TEST_START("the same repository, spelled otherwise");
	ASSERT_INT_EQ(git_env_is_same_url("https://h/r.git\n", "https://h/r"),
	    1);
	ASSERT_INT_EQ(git_env_is_same_url("https://h/r/", " https://h/r"), 1);
	ASSERT_INT_EQ(git_env_is_same_url("https://h/r", "https://h/s"), 0);
	ASSERT_INT_EQ(git_env_is_same_url("https://h/r", "https://h/r/r"), 0);
	ASSERT_INT_EQ(git_env_is_same_url("", "https://h/r"), 0);
}

/* Ports that `host` and the proxies of `env` (NULL: none) give. */
static const char *
ports(const char *host, const char *env)
{
	static char text[64];
	char url[64] = "";
	uint16_t v[GIT_NET_PORTS];
	struct git_job job = { 0 };
	char *list[] = { (char *)(uintptr_t)env, (char *)(uintptr_t)
	    "no_proxy=a:1,b:2" };
	size_t i, n, len = 0;

	job.plan.repo = url;
	if (host != NULL)
		(void)snprintf(url, sizeof(url), "https://%s/r", host);
	job.plan.env = list;
	job.plan.nenv = env == NULL ? 0 : 2;
	n = git_net_find_ports(&job, v, GIT_NET_PORTS);
	for (i = 0, text[0] = '\0'; i < n; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
		    "%s%u", i == 0 ? "" : " ", v[i]);
	return text;
}

static void
test_ports(void)
{
	TEST_START("the forge's port, DNS, the proxies'");
	ASSERT_STRING_EQ(ports("forge.example", NULL), "443 53");
	ASSERT_STRING_EQ(ports("forge.example:8443", NULL), "8443 53");
	ASSERT_STRING_EQ(ports("[::1]:8443", NULL), "8443 53");
	ASSERT_STRING_EQ(ports("[2001:db8::44]", NULL), "443 53");
	ASSERT_STRING_EQ(ports("forge.example:", NULL), "443 53");
	ASSERT_STRING_EQ(ports("forge.example:65536", NULL), "443 53");
	ASSERT_STRING_EQ(ports("forge.example:0", NULL), "443 53");
	ASSERT_STRING_EQ(ports("f", "HTTPS_PROXY=http://proxy:3128/"),
	    "443 53 3128");
	ASSERT_STRING_EQ(ports("f", "https_proxy=http://u:99@proxy:3128"),
	    "443 53 3128");
	ASSERT_STRING_EQ(ports("f", "ALL_PROXY=socks5h://proxy"),
	    "443 53 1080");
	ASSERT_STRING_EQ(ports("f", "ALL_PROXY=https://proxy"),
	    "443 53 443");
	ASSERT_STRING_EQ(ports("f", "ALL_PROXY=proxy:8080"), "443 53 8080");
	ASSERT_STRING_EQ(ports(NULL, NULL), "");
}

/* "host:port" of each name, NO_PROXY and a second spelling left out. */
static const char *
names(const char *repo, const char *env)
{
	static char text[2 * MAX_HOST_LEN];
	char *list[] = { (char *)(uintptr_t)env, (char *)(uintptr_t)
	    "no_proxy=a:1,b:2", (char *)(uintptr_t)env };
	struct forge_name v[FORGE_NAMES];
	size_t i, n, len = 0;

	n = forge_find_names(repo, list, env == NULL ? 0 : 3, v, FORGE_NAMES);
	for (i = 0, text[0] = '\0'; i < n; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
		    "%s%s:%u", i == 0 ? "" : " ", v[i].host, v[i].port);
	return text;
}

static void
test_names(void)
{
	struct forge_name v[2];
	char url[MAX_HOST_LEN + 16];
	char *many[] = { (char *)(uintptr_t)"HTTPS_PROXY=a:1",
	    (char *)(uintptr_t)"ALL_PROXY=b:2" };

	TEST_START("whom a git connects to");
	ASSERT_STRING_EQ(names("https://f/r", NULL), "f:443");
	ASSERT_STRING_EQ(names("HTTPS://u@f:8443/r@s", NULL), "f:8443");
	ASSERT_STRING_EQ(names("https://[2001:db8::44]:1/r", NULL),
	    "2001:db8::44:1");
	ASSERT_STRING_EQ(names("https://f/r",
	    "HTTPS_PROXY=http://u:p@q:3128/"), "f:443 q:3128");
	ASSERT_STRING_EQ(names("https://f:9/r", "ALL_PROXY=socks5h://f:9"),
	    "f:9");
	ASSERT_STRING_EQ(names("https:///r", NULL), "");
	ASSERT_STRING_EQ(names("file:///r", "HTTPS_PROXY=http://q:1"), "");
	ASSERT_STRING_EQ(names(NULL, NULL), "");
	ASSERT_SIZE_T_EQ(forge_find_names("https://f/r", many, 2, v, 2), 2);

	TEST_START("a host of the longest length, and one byte more");
	memset(url, 'a', sizeof(url));
	memcpy(url, "https://", 8);
	url[8 + MAX_HOST_LEN] = '\0';
	ASSERT_SIZE_T_EQ(forge_find_names(url, NULL, 0, v, 2), 1);
	url[8 + MAX_HOST_LEN] = 'a';
	url[9 + MAX_HOST_LEN] = '\0';
	ASSERT_SIZE_T_EQ(forge_find_names(url, NULL, 0, v, 2), 0);
}

UNIT_MAIN(test_closed, test_credential, test_urls, test_ports, test_names)
