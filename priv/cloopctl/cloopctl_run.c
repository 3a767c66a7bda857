/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * cloopctl run: options become a struct spec (common/model/spec.h), checked
 * here with the same rules the hub and the device apply, sent as a sealed
 * memfd.
 */
#include <sys/types.h>

#include <bsd/stdlib.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/conf.h"
#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/util.h"
#include "common/base/xmem.h"
#include "common/model/spec.h"
#include "common/msg/msgcat.h"
#include "cloopctl.h"

struct run_args {
	struct spec spec;
	const char *where;
	const char *name;
	int detach;
	struct run_want *wants;	/* --secret */
	size_t nwants;
	struct run_work work;
	int branch_fd;		/* the bundle of a shipped branch; -1 */
};

struct run_want {
	char *name;
	char *owner;
	uint32_t mode;
};

enum { RUN_ON = 256, RUN_ENV, RUN_WORKDIR, RUN_TIMEOUT, RUN_MEMORY, RUN_CPUS,
	RUN_PIDS, RUN_DISK, RUN_SANDBOX, RUN_IMAGE, RUN_RUNTIME, RUN_EGRESS,
	RUN_GRANT,
	RUN_DETACH, RUN_NAME, RUN_LABEL, RUN_SECRET, RUN_GIT, RUN_DEPTH,
	RUN_SEED, RUN_BRANCH_BUNDLE, RUN_WRITE_BACK, RUN_BRANCH,
	RUN_MAX_BUNDLE };

static const struct option run_options[] = {
	{ "on", required_argument, NULL, RUN_ON },
	{ "env", required_argument, NULL, RUN_ENV },
	{ "workdir", required_argument, NULL, RUN_WORKDIR },
	{ "timeout", required_argument, NULL, RUN_TIMEOUT },
	{ "memory", required_argument, NULL, RUN_MEMORY },
	{ "cpus", required_argument, NULL, RUN_CPUS },
	{ "pids", required_argument, NULL, RUN_PIDS },
	{ "disk", required_argument, NULL, RUN_DISK },
	{ "sandbox", required_argument, NULL, RUN_SANDBOX },
	{ "image", required_argument, NULL, RUN_IMAGE },
	{ "runtime", required_argument, NULL, RUN_RUNTIME },
	{ "egress", required_argument, NULL, RUN_EGRESS },
	{ "detach", no_argument, NULL, RUN_DETACH },
	{ "name", required_argument, NULL, RUN_NAME },
	{ "label", required_argument, NULL, RUN_LABEL },
	{ "secret", required_argument, NULL, RUN_SECRET },
	{ "grant", required_argument, NULL, RUN_GRANT },
	{ "git", required_argument, NULL, RUN_GIT },
	{ "depth", required_argument, NULL, RUN_DEPTH },
	{ "seed", required_argument, NULL, RUN_SEED },
	{ "branch-bundle", required_argument, NULL, RUN_BRANCH_BUNDLE },
	{ "write-back", required_argument, NULL, RUN_WRITE_BACK },
	{ "branch", required_argument, NULL, RUN_BRANCH },
	{ "max-bundle", required_argument, NULL, RUN_MAX_BUNDLE },
	{ NULL, 0, NULL, 0 },
};

static void
run_set(char **dst, const char *value)
{
	free(*dst);
	*dst = xstrdup(value);
}

static void
run_add(char ***v, size_t *n, const char *value)
{
	*v = xreallocarray(*v, *n + 1, sizeof(**v));
	(*v)[(*n)++] = xstrdup(value);
}

/* MiB, rounded up; 0 is refused, it would mean "no limit". */
static int
run_parse_mb(const char *text, int64_t *mbp)
{
	uint64_t bytes;

	if (conf_parse_size(text, &bytes) != CL_OK || bytes == 0)
		return CL_FORMAT;
	*mbp = (int64_t)((bytes + 1048575) / 1048576);
	return CL_OK;
}

/* Whole minutes, rounded up. */
static int
run_parse_minutes(const char *text, int64_t *minutesp)
{
	uint64_t s;

	if (conf_parse_time(text, &s) != CL_OK || s == 0)
		return CL_FORMAT;
	*minutesp = (int64_t)((s + 59) / 60);
	return CL_OK;
}

/* "2", "0.5": thousandths of a core. */
static int
run_parse_cpus(const char *text, int64_t *millisp)
{
	char *end;
	double v;

	errno = 0;
	v = strtod(text, &end);
	if (end == text || *end != '\0' || errno != 0 || !(v > 0) || v > 4096)
		return CL_FORMAT;
	*millisp = (int64_t)(v * 1000 + 0.5);
	return CL_OK;
}

static int
run_parse_pids(const char *text, int64_t *np)
{
	const char *why;

	*np = strtonum(text, 1, 4194304, &why);
	return why == NULL ? CL_OK : CL_FORMAT;
}

static int
run_add_env(struct spec *s, const char *value)
{
	if (strchr(value, '=') == NULL || value[0] == '=')
		return CL_FORMAT;
	run_add(&s->env, &s->nenv, value);
	return CL_OK;
}

static int
run_add_label(struct spec *s, const char *value)
{
	const char *eq = strchr(value, '=');

	if (eq == NULL || eq == value)
		return CL_FORMAT;
	s->labels = xreallocarray(s->labels, s->nlabels + 1,
	    sizeof(*s->labels));
	s->labels[s->nlabels].key = xstrndup(value, (size_t)(eq - value));
	s->labels[s->nlabels++].value = xstrdup(eq + 1);
	return CL_OK;
}

static int
run_set_want(struct run_want *w, const char *key, const char *value)
{
	unsigned long mode;
	char *end;

	if (strcmp(key, "owner") == 0 && value[0] != '\0') {
		free(w->owner);
		w->owner = xstrdup(value);
		return CL_OK;
	}
	if (strcmp(key, "mode") != 0)
		return CL_FORMAT;
	mode = strtoul(value, &end, 8);
	/* Nothing for group and others. */
	if (end == value || *end != '\0' || mode == 0 ||
	    (mode & ~0700UL) != 0)
		return CL_FORMAT;
	w->mode = (uint32_t)mode;
	return CL_OK;
}

/* NAME[:owner=WHO,mode=0400] */
static int
run_add_want(struct run_args *a, const char *value)
{
	char *copy = xstrdup(value), *rest = copy, *name, *opt, *eq;
	struct run_want *w;
	int r = CL_OK;

	a->wants = xreallocarray(a->wants, a->nwants + 1, sizeof(*w));
	w = &a->wants[a->nwants++];
	memset(w, 0, sizeof(*w));
	name = strsep(&rest, ":");
	w->name = xstrdup(name);
	w->owner = xstrdup("");
	if (name[0] == '\0' || strlen(name) > MAX_NAME_LEN)
		r = CL_FORMAT;
	while (r == CL_OK && (opt = strsep(&rest, ",")) != NULL) {
		if ((eq = strchr(opt, '=')) == NULL)
			r = CL_FORMAT;
		else {
			*eq = '\0';
			r = run_set_want(w, opt, eq + 1);
		}
	}
	free(copy);
	return r;
}

static int
run_set_egress(struct spec *s, const char *value)
{
	if (strcmp(value, "none") != 0)
		return CL_FORMAT;
	run_set(&s->egress_scope, value);
	return CL_OK;
}

/* What goes along and comes back; put together when all is known. */
static int
run_set_work(struct run_work *w, int option, const char *value)
{
	switch (option) {
	case RUN_GIT:
		w->git = value;
		return CL_OK;
	case RUN_DEPTH:
		w->depth = value;
		return CL_OK;
	case RUN_SEED:
		w->seed = value;
		return CL_OK;
	case RUN_BRANCH_BUNDLE:
		w->branch_bundle = value;
		return CL_OK;
	case RUN_WRITE_BACK:
		w->write_back = value;
		return strcmp(value, "push") == 0 ||
		    strcmp(value, "bundle") == 0 ? CL_OK : CL_FORMAT;
	case RUN_BRANCH:
		w->branch = value;
		return CL_OK;
	case RUN_MAX_BUNDLE:
		w->max_bundle = value;
		return CL_OK;
	default:
		return CL_NOTFOUND;
	}
}

static int
run_set_option(struct run_args *a, int option, const char *value)
{
	struct spec *s = &a->spec;

	switch (option) {
	case RUN_ON:
		a->where = value;
		return CL_OK;
	case RUN_NAME:
		a->name = value;
		return strlen(value) <= MAX_NAME_LEN ? CL_OK : CL_TOOBIG;
	case RUN_DETACH:
		a->detach = 1;
		return CL_OK;
	case RUN_ENV:
		return run_add_env(s, value);
	case RUN_LABEL:
		return run_add_label(s, value);
	case RUN_GRANT:
		run_set(&s->workspace.credential_grant, value);
		return CL_OK;
	case RUN_SECRET:
		return run_add_want(a, value);
	case RUN_WORKDIR:
		run_set(&s->work_dir, value);
		return CL_OK;
	case RUN_TIMEOUT:
		return run_parse_minutes(value, &s->timeout_minutes);
	case RUN_MEMORY:
		return run_parse_mb(value, &s->resource_limits.memory_mb);
	case RUN_DISK:
		return run_parse_mb(value, &s->resource_limits.disk_mb);
	case RUN_CPUS:
		return run_parse_cpus(value, &s->resource_limits.cpu_millis);
	case RUN_PIDS:
		return run_parse_pids(value, &s->resource_limits.pids);
	case RUN_SANDBOX:
		run_set(&s->sandbox.mode, value);
		return CL_OK;
	case RUN_IMAGE:
		run_set(&s->image, value);
		return CL_OK;
	case RUN_RUNTIME:
		run_set(&s->sandbox.runtime, value);
		return CL_OK;
	case RUN_EGRESS:
		return run_set_egress(s, value);
	default:
		return run_set_work(&a->work, option, value);
	}
}

static int
run_parse(struct ctl *c, int argc, char **argv, struct run_args *a)
{
	int ch, i, index = 0;

	while ((ch = getopt_long(argc, argv, "+", run_options, &index)) !=
	    -1) {
		if (ch == '?')
			return ctl_usage(c, "unknown option");
		if (run_set_option(a, ch, optarg) != CL_OK)
			return ctl_usage(c, "--%s %s: bad value",
			    run_options[index].name, optarg);
	}
	if (a->where == NULL || a->where[0] == '\0')
		return ctl_usage(c, "--on is missing");
	if (optind >= argc)
		return ctl_usage(c, "no command given");
	for (i = optind; i < argc; i++)
		run_add(&a->spec.argv, &a->spec.nargv, argv[i]);
	return EXIT_DONE;
}

/* The spec in message form, sealed. */
static int
run_make_memfd(struct ctl *c, const struct spec *s, int *fdp, size_t *lenp)
{
	struct buf b;
	struct ctl_error e = { .code = "start_too_big" };
	char *why = NULL;
	int r, status = EXIT_DONE;

	if ((r = spec_check(s, &why)) != CL_OK) {
		status = ctl_usage(c, "%s", why != NULL ? why :
		    cl_strerror(r));
		free(why);
		return status;
	}
	buf_init(&b, MAX_SPEC_LEN);
	spec_put(s, &b);
	if ((r = buf_error(&b)) == CL_OK)
		r = util_make_memfd(b.data, b.len, fdp);
	*lenp = b.len;
	buf_clear(&b);
	if (r == CL_TOOBIG) {
		/* As big as the largest start frame (gate "size"). */
		snprintf(e.message, sizeof(e.message), "command and "
		    "environment exceed the %d bytes of a start frame",
		    MAX_FRAME_LEN);
		snprintf(e.remedy, sizeof(e.remedy),
		    "put large values into files of the work directory");
		return ctl_print_error(c, &e);
	}
	if (r != CL_OK)
		status = ctl_usage(c, "%s", cl_strerror(r));
	return status;
}

/* With --detach, the document of show or the bare handle. */
static void
run_print_detached(struct ctl *c, const struct follow *f)
{
	struct jsonw w;

	if (!c->json) {
		printf("%s\n", f->handle_id);
		return;
	}
	jsonw_init(&w, MAX_JSON_OUT, JSONW_NO_HTML);
	jsonw_open_object(&w);
	ctl_put_handle(&w, &f->last);
	jsonw_close_object(&w);
	(void)ctl_print_json(&w);
}

/* The bundle goes first: a message carries one descriptor. */
static int
run_send_branch(struct ctl *c, struct run_args *a)
{
	struct ctl_error e = { .code = "internal" };
	struct buf body;
	int r;

	buf_init(&body, MSG_BODY_MAX);
	buf_put_u32(&body,
	    (uint32_t)a->spec.workspace.branch_bundle->bytes);
	r = ctlclient_ask(c->client, MSG_CTL_BRANCH, &body, a->branch_fd, 0,
	    NULL, &e);
	a->branch_fd = -1;
	buf_clear(&body);
	return r == CL_OK ? EXIT_DONE : ctl_print_error(c, &e);
}

static int
run_dispatch(struct ctl *c, struct run_args *a)
{
	struct follow f;
	struct buf body;
	size_t len = 0, i;
	int fd = -1, r, status;

	if ((status = run_make_memfd(c, &a->spec, &fd, &len)) != EXIT_DONE)
		return status;
	if ((status = ctl_connect(c)) != EXIT_DONE) {
		close(fd);
		return status;
	}
	follow_init(&f, c);
	f.run = 1;
	f.detach = a->detach;
	if (a->branch_fd != -1 && (status = run_send_branch(c, a)) !=
	    EXIT_DONE) {
		close(fd);
		follow_clear(&f);
		return status;
	}
	buf_init(&body, MSG_BODY_MAX);
	buf_put_u32(&body, (uint32_t)len);
	buf_put_str(&body, a->where);
	buf_put_str(&body, a->name);
	buf_put_u8(&body, (uint8_t)a->detach);
	buf_put_u16(&body, (uint16_t)a->nwants);
	for (i = 0; i < a->nwants; i++) {
		buf_put_str(&body, a->wants[i].name);
		buf_put_str(&body, a->wants[i].owner);
		buf_put_u32(&body, a->wants[i].mode);
	}
	r = ctlclient_send(c->client, MSG_CTL_RUN, &body, fd, &f.req);
	buf_clear(&body);
	status = r == CL_OK ? follow_run(&f) : EXIT_NOHUB;
	if (r != CL_OK)
		fprintf(stderr, "cloopctl: run: %s\n", cl_strerror(r));
	if (status == EXIT_DONE && a->detach)
		run_print_detached(c, &f);
	follow_clear(&f);
	return status;
}

int
ctl_cmd_run(struct ctl *c, int argc, char **argv)
{
	struct run_args a;
	int status;

	memset(&a, 0, sizeof(a));
	spec_init(&a.spec);
	a.branch_fd = -1;
	if ((status = run_parse(c, argc, argv, &a)) == EXIT_DONE &&
	    (status = run_add_work(c, &a.work, &a.spec, &a.branch_fd)) ==
	    EXIT_DONE)
		status = run_dispatch(c, &a);
	if (a.branch_fd != -1)
		close(a.branch_fd);
	while (a.nwants > 0) {
		free(a.wants[--a.nwants].name);
		free(a.wants[a.nwants].owner);
	}
	free(a.wants);
	spec_clear(&a.spec);
	return status;
}
