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
#include <sys/prctl.h>
#include <sys/resource.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/stdlib.h>
#include <bsd/string.h>

#include "../common/b64.h"
#include "../common/err.h"
#include "../common/limits.h"
#include "../common/msgcat.h"
#include "../common/rule.h"
#include "../common/util.h"
#include "git_job.h"

#define GJ_QUEUE 4

volatile int gj_cancelled;

static void
gj_on_term(int sig)
{
	(void)sig;
	gj_cancelled = 1;
}

int
gj_fail(struct gj *g, const char *fmt, ...)
{
	char *text = NULL, clean[MAX_ERROR_TEXT_LEN / 2];
	va_list ap;

	if (g->error != NULL)
		return CL_DENIED;
	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) == -1)
		text = NULL;
	va_end(ap);
	if (text == NULL)
		return CL_DENIED;
	redact_format(g->secrets, text, clean, sizeof(clean));
	free(text);
	g->error = strdup(clean);
	return CL_DENIED;
}

void
gj_say(const struct gj *g, const char *fmt, ...)
{
	char text[4096], clean[4096], line[4200];
	va_list ap;
	size_t i;
	int n;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	for (i = 0; text[i] != '\0'; i++)
		if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
			text[i] = '?';
	redact_format(g->secrets, text, clean, sizeof(clean));
	n = snprintf(line, sizeof(line), "workspace: %s\n", clean);
	if (n > 0)
		(void)!write(1, line, strnlen(line, sizeof(line)));
}

int
gj_check(struct gj *g)
{
	if (gj_cancelled)
		return gj_fail(g, "cancelled by a signal");
	if (util_now_ms() >= g->deadline_at)
		return gj_fail(g, "not done within %lld minutes",
		    (long long)g->plan.timeout_s / 60);
	return CL_OK;
}

/* ---------------------------------------------------------------- messages */

static int
gj_on_plan(struct gj *g, struct imsg *m)
{
	uint32_t len = buf_get_u32(&m->body);
	uint8_t *data = NULL;
	struct buf b;
	int r;

	if ((r = buf_end(&m->body)) != 0 ||
	    (r = util_load_memfd(m->fd, len, MAX_DEVJOB_LEN, &data)) != 0)
		return r;
	buf_init_read(&b, data, len);
	r = field_get(&devjob_plan_table, &b, &g->plan);
	if (r == 0)
		r = buf_end(&b);
	freezero(data, len);
	g->has_plan = r == 0;
	return r;
}

/* 1 at GO, 0 for more, -1: give up. */
static int
gj_on_msg(struct gj *g, struct imsg *m, struct msgcat_seen *seen)
{
	const char *why;

	if (msgcat_check(MSG_M2J, MS_STARTING, m, seen, &why) != 0)
		return -1;
	switch (m->type) {
	case MSG_JOB_PLAN:
		return gj_on_plan(g, m) == 0 ? 0 : -1;
	case MSG_JOB_FILE:
		g->file_fd = imsg_take_fd(m);
		return 0;
	default:
		return g->has_plan ? 1 : -1;
	}
}

static int
gj_read_orders(struct gj *g)
{
	struct pollfd pfd = { .fd = g->chan.fd, .events = POLLIN };
	struct msgcat_seen seen;
	struct imsg m;
	int r, done = 0;

	memset(&seen, 0, sizeof(seen));
	while (done == 0) {
		if ((r = imsg_read(&g->chan, &m)) == CL_INCOMPLETE) {
			if (gj_cancelled)
				return -1;
			(void)poll(&pfd, 1, -1);
			continue;
		}
		if (r != 0)
			return -1;
		done = gj_on_msg(g, &m, &seen);
		imsg_free(&m);
	}
	return done;
}

static void
gj_send_result(struct gj *g, int r)
{
	struct pollfd pfd = { .fd = g->chan.fd, .events = POLLOUT };
	struct buf b;

	if (r != 0) {
		g->res.outcome = DEVJOB_FAILED;
		free(g->res.error);
		g->res.error = strdup(g->error != NULL ? g->error :
		    cl_strerror(r));
		free(g->res.sha256);
		g->res.sha256 = NULL;
		g->res.bytes = 0;
	} else if (g->res.outcome == 0)
		g->res.outcome = DEVJOB_OK;
	buf_init(&b, MSG_BODY_MAX);
	field_put(&devjob_result_table, &g->res, &b);
	if (imsg_compose(&g->chan, MSG_JOB_DONE, 0, &b, -1) == 0)
		while (imsg_write(&g->chan) == CL_INCOMPLETE)
			(void)poll(&pfd, 1, -1);
	buf_clear(&b);
}

/* --------------------------------------------------------------------- job */

/* What must never be said: the password, and how HTTP carries it. */
static int
gj_add_secrets(struct gj *g)
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
gj_prepare(struct gj *g)
{
	const struct devjob_plan *p = &g->plan;
	int r;

	g->deadline_at = util_now_ms() + p->timeout_s * 1000;
	if ((r = gj_add_secrets(g)) != 0)
		return r;
	if (rule_is_empty(p->git) || rule_is_empty(p->dir) ||
	    strlen(p->dir) + 64 > GJ_PATH_MAX)
		return gj_fail(g, "git is not installed on this device");
	if ((g->dir_fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) == -1)
		return gj_fail(g, "the work directory: %s", strerror(errno));
	if (rule_is_empty(p->repo))
		return CL_OK;
	g->host = ge_get_host(p->repo);
	if (g->host == NULL ||
	    !rule_is_charset(g->host, strlen(g->host), ".-_:[]", 300))
		return gj_fail(g, "the repository's URL cannot be used");
	return CL_OK;
}

static int
gj_run(struct gj *g)
{
	int r;

	if ((r = gj_prepare(g)) != 0)
		return r;
	if (g->plan.op == DEVJOB_PROVISION)
		return gw_provision(g);
	if (g->plan.op == DEVJOB_RETURN)
		return gr_return(g);
	return gj_fail(g, "not a job for git");
}

static void
gj_harden(void)
{
	struct rlimit rl = { 0, 0 };

	(void)setrlimit(RLIMIT_CORE, &rl);
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	umask(077);
}

/* -------------------------------------------------------- credential helper */

/* git says "key=value" lines; only our host, only https. */
static int
gj_is_wanted(const char *host)
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
gj_give_credential(const char *fd_text, const char *host, const char *op)
{
	struct secret s = SECRET_INIT;
	const char *errstr;
	char *nl;
	int fd;

	if (strcmp(op, "get") != 0)
		return 0;	/* store, erase: there is nothing to do */
	fd = (int)strtonum(fd_text, 3, INT32_MAX, &errstr);
	if (errstr != NULL || !gj_is_wanted(host) ||
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
	struct sigaction term = { .sa_handler = gj_on_term };
	struct sigaction ign = { .sa_handler = SIG_IGN };
	static struct gj g;
	int r;

	gj_harden();
	if (argc == 5 && strcmp(argv[1], "credential") == 0)
		return gj_give_credential(argv[2], argv[3], argv[4]);
	if (argc != 1)
		return 2;
	g.file_fd = g.dir_fd = -1;
	(void)sigaction(SIGTERM, &term, NULL);
	(void)sigaction(SIGPIPE, &ign, NULL);
	/* git must not inherit the channel. */
	if ((r = fcntl(0, F_DUPFD_CLOEXEC, 10)) == -1 ||
	    imsg_init(&g.chan, r, GJ_QUEUE) != 0)
		return 1;
	if (gj_read_orders(&g) != 1)
		return 1;
	gj_send_result(&g, gj_run(&g));
	field_clear(&devjob_plan_table, &g.plan);
	return 0;
}
