/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * cloop-git: runs git for one workload, before its command (the workspace)
 * or after it (the write-back), in a shim of its own: as the workload's
 * user, seeing the tree, the system and the network, not the agent.  It
 * parses what forge, hub and workload made, and so it is here and not in the
 * monitor, which gets a typed result from it and checks that.  Descriptor 0
 * is the channel, 1 and 2 the workload's output.
 *
 * As `cloop-git credential FD HOST get` it is git's credential helper: it
 * gives what can be read from FD, once, to git asking for HOST.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/stdlib.h>
#include <bsd/string.h>

#include "common/base/b64.h"
#include "common/base/err.h"
#include "common/base/rule.h"
#include "common/base/util.h"
#include "git_job.h"

/* --------------------------------------------------------------------- job */

/* What must never be said: the password, and how HTTP carries it. */
static int
git_job_add_secrets(struct git_job *g)
{
	const struct secret *p = &g->plan.password;
	const char *user = rule_is_empty(g->plan.username) ?
	    "x-access-token" : g->plan.username;
	size_t n = strlen(user) + 1 + p->len;
	char *pair, *text;
	int r;

	if ((g->secrets = redact_new()) == NULL)
		return CL_NOMEM;
	if (p->len == 0)
		return CL_OK;
	pair = calloc(1, n + 1);
	text = calloc(1, (n + 2) / 3 * 4 + 1);
	if (pair == NULL || text == NULL) {
		free(pair);
		free(text);
		return CL_NOMEM;
	}
	(void)snprintf(pair, n + 1, "%s:%.*s", user, (int)p->len,
	    (const char *)p->data);
	(void)b64_encode(pair, n, text);
	if ((r = redact_add(g->secrets, p->data, p->len)) == 0)
		r = redact_add(g->secrets, text, strlen(text));
	if (r == 0) {
		(void)b64_encode(p->data, p->len, text);
		r = redact_add(g->secrets, text, strlen(text));
	}
	freezero(pair, n + 1);
	freezero(text, (n + 2) / 3 * 4 + 1);
	return r;
}

static int
git_job_prepare(struct git_job *g)
{
	const struct devjob_plan *p = &g->plan;
	int r;

	g->deadline_at = util_now_ms() + p->timeout_s * 1000;
	if ((r = git_job_add_secrets(g)) != 0)
		return r;
	if (rule_is_empty(p->git) || rule_is_empty(p->dir) ||
	    strlen(p->dir) + 64 > GIT_JOB_PATH_MAX)
		return git_job_fail(g, "git is not installed on this device");
	if ((g->dir_fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) == -1)
		return git_job_fail(g, "the work directory: %s",
		    strerror(errno));
	if (rule_is_empty(p->repo))
		return CL_OK;
	g->host = git_env_get_host(p->repo);
	if (g->host == NULL ||
	    !rule_is_charset(g->host, strlen(g->host), ".-_:[]", 300))
		return git_job_fail(g, "the repository's URL cannot be used");
	return CL_OK;
}

static int
git_job_run(struct git_job *g)
{
	int r;

	if ((r = git_job_prepare(g)) != 0)
		return r;
	if (g->plan.op == DEVJOB_PROVISION)
		return git_work_provision(g);
	if (g->plan.op == DEVJOB_RETURN)
		return git_back_return(g);
	return git_job_fail(g, "not a job for git");
}

/* -------------------------------------------------------- credential helper */

/* git says "key=value" lines; only our host, only https. */
static int
git_job_is_wanted(const char *host)
{
	char line[4096];
	int https = 0, same = 0;

	while (fgets(line, sizeof(line), stdin) != NULL) {
		line[strcspn(line, "\r\n")] = '\0';
		if (line[0] == '\0')
			break;
		if (strcmp(line, "protocol=https") == 0)
			https = 1;
		else if (strncmp(line, "host=", 5) == 0)
			same = strcmp(line + 5, host) == 0;
	}
	return https && same;
}

static int
git_job_give_credential(const char *fd_text, const char *host, const char *op)
{
	struct secret s = SECRET_INIT;
	const char *errstr;
	char *nl;
	int fd;

	if (strcmp(op, "get") != 0)
		return 0;	/* store, erase: there is nothing to do */
	fd = (int)strtonum(fd_text, 3, INT32_MAX, &errstr);
	if (errstr != NULL || !git_job_is_wanted(host) ||
	    secret_load_fd(&s, fd, 8192) != 0 || s.len == 0 ||
	    (nl = strchr((char *)s.data, '\n')) == NULL)
		return 1;
	printf("username=%.*s\npassword=%s\n", (int)(nl - (char *)s.data),
	    (char *)s.data, nl + 1);
	(void)fflush(stdout);
	secret_clear(&s);
	return 0;
}

int
main(int argc, char **argv)
{
	static struct git_job g;

	git_job_harden();
	if (argc == 5 && strcmp(argv[1], "credential") == 0)
		return git_job_give_credential(argv[2], argv[3], argv[4]);
	if (argc != 1)
		return 2;
	if (git_job_open(&g) != 0 || git_job_read_orders(&g) != 1)
		return 1;
	git_job_send_result(&g, git_job_run(&g));
	field_clear(&devjob_plan_table, &g.plan);
	return 0;
}
