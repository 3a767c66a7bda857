/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The steps of a workload's work, one job after the other, in the device
 * monitor.  Before the command: build the tree, place the seed, note the
 * base, save the record.  After it: the project's result, the commits.
 * Results of jobs are checked here as far as the hub will act on them: a
 * commit is 40 hex digits, a bundle is as long as it is said to be.
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/string.h>

#include <event2/event.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/rule.h"
#include "common/base/util.h"
#include "common/base/xmem.h"
#include "common/output/redact.h"
#include "agentd.h"
#include "fetchctl.h"
#include "handledir.h"
#include "kern.h"
#include "wjob.h"
#include "work.h"

#define WORK_SEED_S 120
#define WORK_RETURN_S (10 * 60)
#define MAX_PROJECT_RESULT_LEN 655360
#define MAX_PROJECT_TEXT_LEN 2000	/* of its error */

static void work_prepare_next(struct work *k);
static void work_return_next(struct work *k);

static void
work_on_again(evutil_socket_t fd, short what, void *arg)
{
	struct work *k = arg;

	(void)fd;
	(void)what;
	if (k->is_returning)
		work_return_next(k);
	else
		work_prepare_next(k);
}

/* A shortage is a pause: 1 when the step is tried again later. */
static int
work_pause(struct work *k, int r)
{
	static const struct timeval pause = { .tv_sec = 1 };

	if (r == CL_OK || !kern_is_short(r))
		return 0;
	if (k->again == NULL)
		k->again = evtimer_new(k->at.a->base, work_on_again, k);
	return k->again != NULL && evtimer_add(k->again, &pause) == 0;
}

/* A text for the hub: the workload's own secrets are not in it. */
static void
work_format_text(const struct work *k, const char *prefix, const char *text,
    char *dst, size_t dstlen)
{
	char full[MAX_ERROR_TEXT_LEN + 64];

	(void)snprintf(full, sizeof(full), "%s%s", prefix,
	    text == NULL ? "" : text);
	redact_format(k->redact, full, dst, dstlen);
}

/* ------------------------------------------------------------------ before */

static void
work_prepare_failed(struct work *k, const char *prefix,
    const char *text)
{
	char clean[MAX_ERROR_TEXT_LEN + 1];

	work_format_text(k, prefix, text, clean, sizeof(clean));
	k->at.on_prepared(k->at.arg, clean);
}

static void
work_on_provisioned(void *arg, const struct devjob_result *res)
{
	struct work *k = arg;
	char text[MAX_ERROR_TEXT_LEN + 1];

	if (res->outcome != DEVJOB_OK ||
	    !rule_is_hex(res->head, 40)) {
		strlcpy(text, res->outcome == DEVJOB_OK ? "it has no commit" :
		    rule_is_empty(res->error) ? "no reason given" :
		    res->error, sizeof(text));
		wjob_free(k->job);
		k->job = NULL;
		work_prepare_failed(k, "workspace: ", text);
		return;
	}
	log_info("workspace", "handle=%s head=%s", log_q(k->at.handle_id),
	    res->head);
	work_forget_forge(k);
	free(k->rec.base);
	k->rec.base = xstrdup(res->head);
	wjob_free(k->job);
	k->job = NULL;
	work_prepare_next(k);
}

static void
work_on_seeded(void *arg, const struct devjob_result *res)
{
	struct work *k = arg;
	char text[MAX_ERROR_TEXT_LEN + 1];
	int ok = res->outcome == DEVJOB_OK;

	strlcpy(text, res->error == NULL ? "" : res->error, sizeof(text));
	wjob_free(k->job);
	k->job = NULL;
	if (ok)
		work_prepare_next(k);
	else
		work_prepare_failed(k, "project seed: ", text);
}

/* Where its jobs run. */
static void
work_set_place(struct work *k, struct wjob_opts *o)
{
	o->handle_id = k->at.handle_id;
	o->dir = k->at.dir;
	o->wake_fd = k->at.wake_fd;
	o->tree = k->rec.tree;
	o->tree_fd = k->tree_fd;
	o->arg = k;
}

/* The job, and where it may send to. */
static int
work_start_git(struct work *k, struct wjob_opts *o)
{
	struct devjob_plan *p = o->plan;
	int r;

	o->program = "cloop-git";
	work_set_place(k, o);
	o->peers.v = k->peers;
	o->peers.n = k->npeers;
	/* Lent for the call, as the peers are. */
	p->pins = k->pins;
	p->npins = k->npins;
	r = wjob_start(k->at.a, o, &k->job);
	p->pins = NULL;
	p->npins = 0;
	return r;
}

static int
work_start_provision(struct work *k)
{
	struct wjob_opts o = { .plan = &k->prov, .file_fd = k->file_fd,
	    .done = work_on_provisioned };
	int r;

	if ((r = work_start_git(k, &o)) != 0)
		return r;
	k->file_fd = -1;
	field_clear(&devjob_plan_table, &k->prov);
	return CL_OK;
}

static int
work_start_seed(struct work *k)
{
	struct devjob_plan p;
	struct wjob_opts o = { .program = "cloop-seed", .plan = &p,
	    .file_fd = -1, .done = work_on_seeded };
	int r;

	work_init_plan(k, &p);
	p.op = DEVJOB_SEED;
	p.timeout_s = WORK_SEED_S;
	/* Lent; the seed is wiped once it was told. */
	p.seed = k->seed;
	p.record = k->placement;
	work_set_place(k, &o);
	r = wjob_start(k->at.a, &o, &k->job);
	k->seed = p.seed;
	memset(&p.seed, 0, sizeof(p.seed));
	p.record = NULL;
	field_clear(&devjob_plan_table, &p);
	return r;
}

static void
work_on_forge(struct work *k, const char *why)
{
	if (why != NULL)
		work_prepare_failed(k, "workspace: ", why);
	else
		work_prepare_next(k);
}

static void
work_prepare_next(struct work *k)
{
	int r;

	if (k->prov.op != 0 && rule_is_equal(k->prov.kind, "git") &&
	    work_find_forge(k, work_on_forge))
		return;
	if (k->prov.op != 0)
		r = work_start_provision(k);
	else if (k->seed.len > 0)
		r = work_start_seed(k);
	else if ((r = work_save(k, k->at.dir)) == 0) {
		k->at.on_prepared(k->at.arg, NULL);
		return;
	}
	if (r != 0 && !work_pause(k, r))
		work_prepare_failed(k, "workspace: ", r == CL_NOTFOUND ?
		    "this agent's helper program is not installed" :
		    cl_strerror(r));
}

void
work_prepare(struct work *k)
{
	work_prepare_next(k);
}

/* ------------------------------------------------------------------- after */

/* Open a file of the handle directory for a job to write; replaces it. */
static int
work_make_file(struct work *k, const char *name, int *fdp)
{
	(void)unlinkat(k->at.dir->fd, name, 0);
	*fdp = openat(k->at.dir->fd, name, O_RDWR | O_CREAT | O_EXCL |
	    O_NOFOLLOW | O_CLOEXEC, 0600);
	return *fdp == -1 ? CL_SYSTEM : CL_OK;
}

static int64_t
work_get_file_len(const struct work *k, const char *name)
{
	struct stat st;

	if (fstatat(k->at.dir->fd, name, &st, AT_SYMLINK_NOFOLLOW) == -1 ||
	    !S_ISREG(st.st_mode))
		return -1;
	return st.st_size;
}

static void
work_set_result_error(struct work *k, const char *text)
{
	struct devjob_result *res = &k->rec.res;
	char clean[MAX_ERROR_TEXT_LEN + 1];

	work_format_text(k, "", text, clean, sizeof(clean));
	field_clear(&devjob_result_table, res);
	res->outcome = DEVJOB_FAILED;
	res->error = xstrdup(clean);
}

/* Would the hub take it?  A job that lies is a failed one. */
static const char *
work_check_result(const struct work *k, const struct devjob_result *res)
{
	int is_bundle = rule_is_equal(k->rec.mode, "bundle");

	if (res->outcome != DEVJOB_OK)
		return NULL;
	if (!rule_is_hex(res->head, 40))
		return "the returned commit has no name";
	if (is_bundle && (res->bytes <= 0 || res->bytes !=
	    work_get_file_len(k, WORK_BUNDLE_FILE) ||
	    !rule_is_hex(res->sha256, 64)))
		return "the bundle is not as it was announced";
	if (!is_bundle && (!res->pushed || res->bytes != 0))
		return "the branch was not pushed";
	return NULL;
}

static void
work_on_returned(void *arg, const struct devjob_result *res)
{
	struct work *k = arg;
	const char *no = work_check_result(k, res);
	struct devjob_result *mine = &k->rec.res;

	if (no != NULL || res->outcome == DEVJOB_FAILED)
		work_set_result_error(k, no != NULL ? no : res->error);
	else {
		field_clear(&devjob_result_table, mine);
		*mine = *res;
		mine->error = xstrdup(res->error == NULL ? "" : res->error);
		mine->head = xstrdup(res->head == NULL ? "" : res->head);
		mine->sha256 = xstrdup(res->sha256 == NULL ? "" :
		    res->sha256);
	}
	log_info("write-back", "handle=%s mode=%s outcome=%s commit=%s "
	    "bytes=%lld reason=%s", log_q(k->at.handle_id), k->rec.mode,
	    mine->outcome == DEVJOB_OK ? "returned" :
	    mine->outcome == DEVJOB_SKIPPED ? "skipped" : "failed",
	    log_q(mine->head), (long long)mine->bytes, log_q(mine->error));
	if (mine->outcome != DEVJOB_OK || mine->bytes == 0)
		(void)unlinkat(k->at.dir->fd, WORK_BUNDLE_FILE, 0);
	wjob_free(k->job);
	k->job = NULL;
	k->rec.is_returned = 1;
	work_return_next(k);
}

static void
work_on_project(void *arg, const struct devjob_result *res)
{
	struct work *k = arg;
	char clean[MAX_PROJECT_TEXT_LEN + 1];
	int64_t len = work_get_file_len(k, WORK_PROJECT_FILE);

	k->rec.has_project = res->outcome == DEVJOB_OK && len > 0 &&
	    len <= MAX_PROJECT_RESULT_LEN;
	if (!k->rec.has_project) {
		(void)unlinkat(k->at.dir->fd, WORK_PROJECT_FILE, 0);
		work_format_text(k, "", rule_is_empty(res->error) ?
		    "no project result was left by the workload" :
		    res->error, clean, sizeof(clean));
		free(k->rec.project_error);
		k->rec.project_error = xstrdup(clean);
	}
	wjob_free(k->job);
	k->job = NULL;
	work_return_next(k);
}

/* A job that did not start did not take its file. */
static void
work_drop_file(const struct wjob_opts *o, int r)
{
	int saved = errno;

	if (r != 0 && o->file_fd != -1)
		close(o->file_fd);
	errno = saved;
}

static int
work_start_return(struct work *k)
{
	struct devjob_plan p;
	struct wjob_opts o = { .plan = &p, .file_fd = -1,
	    .done = work_on_returned };
	int r;

	if (rule_is_equal(k->rec.mode, "bundle") &&
	    (r = work_make_file(k, WORK_BUNDLE_FILE, &o.file_fd)) != 0)
		return r;
	work_init_plan(k, &p);
	p.op = DEVJOB_RETURN;
	p.timeout_s = WORK_RETURN_S;
	p.mode = xstrdup(k->rec.mode);
	p.base = xstrdup(k->rec.base == NULL ? "" : k->rec.base);
	p.message = xstrdup(k->rec.message == NULL ? "" : k->rec.message);
	p.max_bundle_bytes = k->rec.max_bundle_bytes;
	p.failed = k->has_failed;
	p.password = k->password;	/* lent; wiped once it was told */
	r = work_start_git(k, &o);
	k->password = p.password;
	memset(&p.password, 0, sizeof(p.password));
	field_clear(&devjob_plan_table, &p);
	work_drop_file(&o, r);
	return r;
}

static int
work_start_project(struct work *k)
{
	struct devjob_plan p;
	struct wjob_opts o = { .program = "cloop-seed", .plan = &p,
	    .file_fd = -1, .done = work_on_project };
	int r;

	if ((r = work_make_file(k, WORK_PROJECT_FILE, &o.file_fd)) != 0)
		return r;
	work_init_plan(k, &p);
	p.op = DEVJOB_PROJECT;
	p.timeout_s = WORK_SEED_S;
	work_set_place(k, &o);
	r = wjob_start(k->at.a, &o, &k->job);
	field_clear(&devjob_plan_table, &p);
	work_drop_file(&o, r);
	return r;
}

/* What makes a push hopeless before it begins. */
static const char *
work_check_push(const struct work *k)
{
	if (!rule_is_equal(k->rec.mode, "push"))
		return NULL;
	if (k->password.len == 0)
		return k->rec.has_password ? "the credential to push with was "
		    "lost when the agent restarted" :
		    "there is no credential to push with";
	if (k->expires_at != UTIL_TIME_ZERO &&
	    k->expires_at <= util_wall_ns())
		return "the credential to push with has expired";
	return NULL;
}

static void
work_on_push_forge(struct work *k, const char *why)
{
	if (why != NULL) {
		work_set_result_error(k, why);
		k->rec.is_returned = 1;
	}
	work_return_next(k);
}

static void
work_return_next(struct work *k)
{
	const char *no;
	int r = CL_OK;

	if (k->rec.is_seeded && !k->rec.has_project &&
	    rule_is_empty(k->rec.project_error)) {
		r = work_start_project(k);
		if (r == 0 || work_pause(k, r))
			return;
		free(k->rec.project_error);
		k->rec.project_error = xstrdup(cl_strerror(r));
	}
	if (!rule_is_empty(k->rec.mode) && !k->rec.is_returned) {
		if ((no = work_check_push(k)) == NULL) {
			if (rule_is_equal(k->rec.mode, "push") &&
			    work_find_forge(k, work_on_push_forge))
				return;
			r = work_start_return(k);
			if (r == 0 || work_pause(k, r))
				return;
			no = cl_strerror(r);
		}
		work_set_result_error(k, no);
		k->rec.is_returned = 1;
	}
	if ((r = work_save(k, k->at.dir)) != 0)
		log_warn("write-back", "handle=%s reason=\"its record cannot "
		    "be saved: %s\"", log_q(k->at.handle_id), cl_strerror(r));
	k->at.on_returned(k->at.arg);
}

void
work_return(struct work *k, int has_failed)
{
	k->has_failed = has_failed;
	k->is_returning = 1;
	work_return_next(k);
}

void
work_cancel(struct work *k)
{
	if (k == NULL)
		return;
	work_cancel_forge(k);
	wjob_cancel(k->job);
	if (k->again != NULL && evtimer_pending(k->again, NULL) &&
	    !k->is_returning) {
		event_del(k->again);
		work_prepare_failed(k, "workspace: ", "cancelled by a signal");
	}
}

int
work_on_exit(struct work *k, pid_t pid)
{
	return wjob_on_exit(k->job, pid) || work_on_resolver_exit(k, pid);
}

/* ------------------------------------------------------------ the fetcher */

/* One of the handle directory; -1 in *fdp: there is none. */
static int
work_open_file(const struct work *k, const char *name, int *fdp)
{
	int r;

	*fdp = openat(k->at.dir->fd, name,
	    O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (*fdp != -1)
		return CL_OK;
	r = kern_is_unsure(CL_SYSTEM) ? CL_SYSTEM : CL_OK;
	log_error("work-announce", "handle=%s file=%s reason=\"%s\"",
	    log_q(k->at.handle_id), name, cl_strerror(CL_SYSTEM));
	return r;
}

/* Takes fd. */
static void
work_announce_file(struct work *k, uint32_t type, int fd)
{
	struct msg_slot_file file = { .slot = k->at.slot };
	struct stat st;

	if (fd == -1)
		return;
	if (fstat(fd, &st) == -1 || !S_ISREG(st.st_mode)) {
		close(fd);
		return;
	}
	file.len = (uint64_t)st.st_size;
	fetchctl_send(k->at.a->fetch, type, 0, 0, &file, fd);
}

static void
work_announce_project(struct work *k, int fd)
{
	struct msg_dev_project p = { .slot = k->at.slot,
	    .error = k->rec.has_project ? NULL : k->rec.project_error };

	work_announce_file(k, MSG_DEV_PROJECT_FILE, fd);
	FETCHCTL_SEND(k->at.a->fetch, DEV_PROJECT, 0, 0, &p, -1);
}

static void
work_announce_result(struct work *k, int fd)
{
	struct msg_dev_result p = { .slot = k->at.slot, .mode = k->rec.mode,
	    .branch = k->rec.branch, .base = k->rec.base,
	    .result = k->rec.res };

	work_announce_file(k, MSG_DEV_BUNDLE, fd);
	FETCHCTL_SEND(k->at.a->fetch, DEV_RESULT, 0, 0, &p, -1);
}

int
work_announce(struct work *k)
{
	int has_result = !rule_is_empty(k->rec.mode) && k->rec.is_returned;
	int project = -1, bundle = -1, r;

	if (k->rec.is_seeded && k->rec.has_project &&
	    (r = work_open_file(k, WORK_PROJECT_FILE, &project)) != 0)
		return r;
	if (has_result && k->rec.res.outcome == DEVJOB_OK &&
	    k->rec.res.bytes > 0 &&
	    (r = work_open_file(k, WORK_BUNDLE_FILE, &bundle)) != 0) {
		if (project != -1)
			close(project);
		return r;
	}
	if (k->rec.is_seeded)
		work_announce_project(k, project);
	if (has_result)
		work_announce_result(k, bundle);
	return CL_OK;
}
