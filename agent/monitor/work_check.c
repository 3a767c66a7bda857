/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Which work this device can do, in the device monitor: looks at the spec,
 * at its own configuration, at the clock, and for git on the PATH.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/limits.h"
#include "common/base/rule.h"
#include "common/base/util.h"
#include "common/model/spec.h"
#include "agentd.h"
#include "work_int.h"

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

int
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
