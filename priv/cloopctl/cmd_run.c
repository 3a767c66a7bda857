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
#include <stddef.h>
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

struct cmd_start {
	struct spec spec;
	struct msg_ctl_run run;	/* --on, --name, --detach, --secret */
	struct cmd_ship ship;
	int branch_fd;		/* the bundle of a shipped branch; -1 */
};

/* ---------------------------------------------------------------- setters */

/* Each takes the member an option names and its value: CL_OK, or it is bad. */
static int
cmd_set_word(void *dst, const char *value)
{
	*(const char **)dst = value;
	return CL_OK;
}

static int
cmd_set_flag(void *dst, const char *value)
{
	(void)value;
	*(int *)dst = 1;
	return CL_OK;
}

static int
cmd_set_string(void *dst, const char *value)
{
	free(*(char **)dst);
	*(char **)dst = xstrdup(value);
	return CL_OK;
}

static int
cmd_set_name(void *dst, const char *value)
{
	return strlen(value) <= MAX_NAME_LEN ? cmd_set_word(dst, value) :
	    CL_TOOBIG;
}

static int
cmd_set_egress(void *dst, const char *value)
{
	return strcmp(value, "none") == 0 ? cmd_set_string(dst, value) :
	    CL_FORMAT;
}

static int
cmd_set_write_back(void *dst, const char *value)
{
	return strcmp(value, "push") == 0 || strcmp(value, "bundle") == 0 ?
	    cmd_set_word(dst, value) : CL_FORMAT;
}

static void
cmd_add(char ***v, size_t *n, const char *value)
{
	*v = xreallocarray(*v, *n + 1, sizeof(**v));
	(*v)[(*n)++] = xstrdup(value);
}

/* MiB, rounded up; 0 is refused, it would mean "no limit". */
static int
cmd_set_mb(void *dst, const char *value)
{
	uint64_t bytes;

	if (conf_parse_size(value, &bytes) != CL_OK || bytes == 0)
		return CL_FORMAT;
	*(int64_t *)dst = (int64_t)((bytes + 1048575) / 1048576);
	return CL_OK;
}

/* Whole minutes, rounded up. */
static int
cmd_set_minutes(void *dst, const char *value)
{
	uint64_t s;

	if (conf_parse_time(value, &s) != CL_OK || s == 0)
		return CL_FORMAT;
	*(int64_t *)dst = (int64_t)((s + 59) / 60);
	return CL_OK;
}

/* "2", "0.5": thousandths of a core. */
static int
cmd_set_cpus(void *dst, const char *value)
{
	char *end;
	double v;

	errno = 0;
	v = strtod(value, &end);
	if (end == value || *end != '\0' || errno != 0 || !(v > 0) || v > 4096)
		return CL_FORMAT;
	*(int64_t *)dst = (int64_t)(v * 1000 + 0.5);
	return CL_OK;
}

static int
cmd_set_pids(void *dst, const char *value)
{
	const char *why;

	*(int64_t *)dst = strtonum(value, 1, 4194304, &why);
	return why == NULL ? CL_OK : CL_FORMAT;
}

static int
cmd_add_env(void *dst, const char *value)
{
	struct spec *s = dst;

	if (strchr(value, '=') == NULL || value[0] == '=')
		return CL_FORMAT;
	cmd_add(&s->env, &s->nenv, value);
	return CL_OK;
}

static int
cmd_add_label(void *dst, const char *value)
{
	struct spec *s = dst;

	return cmd_add_pair(&s->labels, &s->nlabels, value);
}

static int
cmd_set_want(struct msg_want *w, const char *key, const char *value)
{
	unsigned long mode;
	char *end;

	if (strcmp(key, "owner") == 0 && value[0] != '\0') {
		free((void *)(uintptr_t)w->owner);
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
cmd_add_want(void *dst, const char *value)
{
	struct cmd_start *a = dst;
	char *copy = xstrdup(value), *rest = copy, *name, *opt, *eq;
	struct msg_want *w;
	int r = CL_OK;

	a->run.wants = xreallocarray(a->run.wants, a->run.nwants + 1,
	    sizeof(*w));
	w = &a->run.wants[a->run.nwants++];
	memset(w, 0, sizeof(*w));
	name = strsep(&rest, ":");
	w->secret = xstrdup(name);
	if (name[0] == '\0' || strlen(name) > MAX_NAME_LEN ||
	    a->run.nwants > MAX_WANTS)
		r = CL_FORMAT;
	while (r == CL_OK && (opt = strsep(&rest, ",")) != NULL) {
		if ((eq = strchr(opt, '=')) == NULL)
			r = CL_FORMAT;
		else {
			*eq = '\0';
			r = cmd_set_want(w, opt, eq + 1);
		}
	}
	free(copy);
	return r;
}

/* ---------------------------------------------------------------- options */

#define OPTION(n, member, fn)                                                  \
	{ n, offsetof(struct cmd_start, member), fn }

static const struct cmd_run_option {
	const char *name;
	size_t off;		/* of the member */
	int (*set)(void *dst, const char *value);
} cmd_run_options[] = {
	OPTION("on", run.where, cmd_set_word),
	OPTION("env", spec, cmd_add_env),
	OPTION("workdir", spec.work_dir, cmd_set_string),
	OPTION("timeout", spec.timeout_minutes, cmd_set_minutes),
	OPTION("memory", spec.resource_limits.memory_mb, cmd_set_mb),
	OPTION("cpus", spec.resource_limits.cpu_millis, cmd_set_cpus),
	OPTION("pids", spec.resource_limits.pids, cmd_set_pids),
	OPTION("disk", spec.resource_limits.disk_mb, cmd_set_mb),
	OPTION("sandbox", spec.sandbox.mode, cmd_set_string),
	OPTION("image", spec.image, cmd_set_string),
	OPTION("runtime", spec.sandbox.runtime, cmd_set_string),
	OPTION("egress", spec.egress_scope, cmd_set_egress),
	OPTION("detach", run.detach, cmd_set_flag),
	OPTION("name", run.name, cmd_set_name),
	OPTION("label", spec, cmd_add_label),
	{ "secret", 0, cmd_add_want },
	OPTION("grant", spec.workspace.credential_grant, cmd_set_string),
	OPTION("git", ship.git, cmd_set_word),
	OPTION("depth", ship.depth, cmd_set_word),
	OPTION("seed", ship.seed, cmd_set_word),
	OPTION("branch-bundle", ship.branch_bundle, cmd_set_word),
	OPTION("write-back", ship.write_back, cmd_set_write_back),
	OPTION("branch", ship.branch, cmd_set_word),
	OPTION("max-bundle", ship.max_bundle, cmd_set_word),
};
#define NOPTIONS (sizeof(cmd_run_options) / sizeof(cmd_run_options[0]))

static int
cmd_parse_run(struct tool *t, int argc, char **argv, struct cmd_start *a)
{
	struct option names[NOPTIONS + 1];
	size_t i;
	int index = 0, ch;

	memset(names, 0, sizeof(names));
	for (i = 0; i < NOPTIONS; i++) {
		names[i].name = cmd_run_options[i].name;
		names[i].has_arg = cmd_run_options[i].set == cmd_set_flag ?
		    no_argument : required_argument;
	}
	while ((ch = getopt_long(argc, argv, "+", names, &index)) != -1) {
		if (ch == '?')
			return cmd_usage(t, "unknown option");
		if (cmd_run_options[index].set((char *)a +
		    cmd_run_options[index].off, optarg) != CL_OK)
			return cmd_usage(t, "--%s %s: bad value",
			    cmd_run_options[index].name, optarg);
	}
	if (a->run.where == NULL || a->run.where[0] == '\0')
		return cmd_usage(t, "--on is missing");
	if (optind >= argc)
		return cmd_usage(t, "no command given");
	for (; optind < argc; optind++)
		cmd_add(&a->spec.argv, &a->spec.nargv, argv[optind]);
	return EXIT_DONE;
}

/* --------------------------------------------------------------- dispatch */

/* The spec in message form, sealed. */
static int
cmd_make_memfd(struct tool *t, const struct spec *s, int *fdp, size_t *lenp)
{
	struct buf b;
	char *why = NULL;
	int r, status;

	if ((r = spec_check(s, &why)) != CL_OK) {
		status = cmd_usage(t, "%s", why != NULL ? why :
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
	/* As big as the largest start frame (gate "size"). */
	if (r == CL_TOOBIG)
		return tool_fail(t, "start_too_big", "put large values into "
		    "files of the work directory", "command and environment "
		    "exceed the %d bytes of a start frame", MAX_FRAME_LEN);
	return r == CL_OK ? EXIT_DONE : cmd_usage(t, "%s", cl_strerror(r));
}

/* The bundle goes first: a message carries one descriptor. */
static int
cmd_send_branch(struct tool *t, struct cmd_start *a)
{
	struct msg_memfd req = {
		.len = (uint64_t)a->spec.workspace.branch_bundle->bytes,
	};
	int fd = a->branch_fd;

	a->branch_fd = -1;
	return tool_ask(t, TOOL_REQUEST(CTL_BRANCH, &req), fd, NULL, NULL,
	    NULL);
}

static int
cmd_dispatch(struct tool *t, struct cmd_start *a)
{
	struct follow f;
	size_t len = 0;
	int fd = -1, status;

	if ((status = cmd_make_memfd(t, &a->spec, &fd, &len)) != EXIT_DONE)
		return status;
	if ((status = tool_connect(t)) != EXIT_DONE) {
		close(fd);
		return status;
	}
	follow_init(&f, t);
	f.run = 1;
	f.detach = a->run.detach;
	if (a->branch_fd != -1)
		status = cmd_send_branch(t, a);
	if (status == EXIT_DONE) {
		a->run.len = len;
		if ((status = follow_ask(&f, TOOL_REQUEST(CTL_RUN, &a->run),
		    fd)) == EXIT_DONE)
			status = follow_run(&f);
	} else
		close(fd);
	/* With --detach, the document of show or the bare handle. */
	if (status == EXIT_DONE && a->run.detach && t->json)
		(void)rows_print(t, &handle_kind, &f.last);
	else if (status == EXIT_DONE && a->run.detach)
		printf("%s\n", f.handle_id);
	follow_clear(&f);
	return status;
}

int
cmd_run(struct tool *t, int argc, char **argv)
{
	struct cmd_start a;
	size_t i;
	int status;

	memset(&a, 0, sizeof(a));
	spec_init(&a.spec);
	a.branch_fd = -1;
	if ((status = cmd_parse_run(t, argc, argv, &a)) == EXIT_DONE &&
	    (status = cmd_add_work(t, &a.ship, &a.spec, &a.branch_fd)) ==
	    EXIT_DONE)
		status = cmd_dispatch(t, &a);
	if (a.branch_fd != -1)
		close(a.branch_fd);
	for (i = 0; i < a.run.nwants; i++) {
		free((void *)(uintptr_t)a.run.wants[i].secret);
		free((void *)(uintptr_t)a.run.wants[i].owner);
	}
	free(a.run.wants);
	spec_clear(&a.spec);
	return status;
}
