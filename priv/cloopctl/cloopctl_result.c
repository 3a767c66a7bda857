/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * cloopctl result: work a device returned.  The hub hands out a descriptor
 * and believes nothing; bundlevet judges the bytes here, where the
 * operator's repository is.  The hub drops them once they have landed, so
 * that a failure on this side loses nothing.
 */
#include <sys/stat.h>
#include <sys/types.h>

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/rule.h"
#include "common/base/util.h"
#include "common/base/xmem.h"
#include "common/model/workmsg.h"
#include "common/msg/msgcat.h"
#include "bundlevet.h"
#include "cloopctl.h"

/* ------------------------------------------------------ the kept result */

static struct work_result kept;
static int have_kept;

void
ctl_keep_result(struct imsg *m)
{
	if (have_kept)
		field_clear(&work_result_table, &kept);
	ctl_get_row(&work_result_table, m, &kept);
	have_kept = 1;
}

int
ctl_has_result(const char *handle_id)
{
	return have_kept && rule_is_equal(kept.handle_id, handle_id) &&
	    kept.done && !rule_is_empty(kept.mode);
}

static void
result_put_int(struct jsonw *w, const char *key, int64_t v)
{
	jsonw_put_key(w, key);
	jsonw_put_int(w, v);
}

static void
result_put_bool(struct jsonw *w, const char *key, int v)
{
	jsonw_put_key(w, key);
	jsonw_put_bool(w, v);
}

static void
result_put_members(struct jsonw *w, const struct work_result *r)
{
	ctl_put_str(w, "mode", r->mode);
	ctl_put_str(w, "branch", r->branch);
	ctl_put_str(w, "commit", r->commit);
	ctl_put_str(w, "base", r->base);
	result_put_int(w, "bundle_bytes", (int64_t)r->bytes);
	ctl_put_str(w, "sha256", r->sha256);
	result_put_int(w, "commits", r->commits);
	result_put_int(w, "files_changed", r->files_changed);
	result_put_bool(w, "pushed", r->pushed);
	result_put_bool(w, "skipped", r->skipped);
	ctl_put_str(w, "skip_reason", r->skip_reason);
	ctl_put_str(w, "error", r->error);
	result_put_bool(w, "held", r->held);
}

void
ctl_put_result(struct jsonw *w, const char *handle_id)
{
	jsonw_put_key(w, "result");
	if (!ctl_has_result(handle_id)) {
		jsonw_put_null(w);
		return;
	}
	jsonw_open_object(w);
	result_put_members(w, &kept);
	jsonw_close_object(w);
}

int
ctl_print_result(FILE *out, const char *handle_id)
{
	if (!ctl_has_result(handle_id))
		return 0;
	if (!rule_is_empty(kept.error))
		fprintf(out, "cloopctl: no work came back: %s\n",
		    ctl_clean(kept.error));
	else if (kept.skipped)
		fprintf(out, "cloopctl: no work came back: %s\n",
		    rule_is_empty(kept.skip_reason) ? "nothing to deliver" :
		    ctl_clean(kept.skip_reason));
	else if (strcmp(kept.mode, "push") == 0)
		fprintf(out, "cloopctl: the device pushed branch %s\n",
		    ctl_clean(kept.branch));
	else
		fprintf(out, "cloopctl: branch %s came back, %s; land it "
		    "with: cloopctl result --into REPOSITORY -- %s\n",
		    ctl_clean(kept.branch), ctl_format_size(kept.bytes),
		    handle_id);
	return 1;
}

/* -------------------------------------------------------------- the work */

struct result {
	struct ctl *c;
	const char *handle;
	const char *dir;	/* -o */
	const char *into;	/* --into */
	int fd;			/* what the hub handed out; -1 */
};

static int
result_refuse(struct ctl *c, const char *code, const char *text)
{
	struct ctl_error e = { .code = "" };

	(void)snprintf(e.code, sizeof(e.code), "%s", code);
	(void)snprintf(e.message, sizeof(e.message), "%s", text);
	return ctl_print_error(c, &e);
}

static int
result_on_row(struct ctl *c, struct imsg *m, void *arg)
{
	struct result *r = arg;

	(void)c;
	if (r->fd != -1)
		close(r->fd);
	r->fd = imsg_take_fd(m);
	return EXIT_DONE;
}

static int
result_ask(struct result *r, uint32_t type, int what)
{
	struct buf body;
	int status;

	buf_init(&body, MSG_BODY_MAX);
	buf_put_str(&body, r->handle);
	buf_put_u8(&body, (uint8_t)what);
	status = ctl_ask_rows(r->c, type, &body, MSG_ROW_WORK_FILE,
	    result_on_row, r);
	buf_clear(&body);
	return status;
}

/* An upper bound for all members: names are short, prose is not shown. */
static void
result_print(struct result *r, const struct vet *v, const char *where,
    const char *path, const char *diffstat)
{
	const char *line, *end;
	struct jsonw w;

	if (r->c->json) {
		jsonw_init(&w, MAX_JSON_OUT, JSONW_NO_HTML);
		jsonw_open_object(&w);
		ctl_put_str(&w, "handle_id", r->handle);
		ctl_put_str(&w, where, path);
		result_put_members(&w, &kept);
		if (v != NULL)
			result_put_int(&w, "landed_commits",
			    (int64_t)v->ncommits);
		ctl_put_str(&w, "diffstat", diffstat);
		jsonw_close_object(&w);
		(void)ctl_print_json(&w);
		return;
	}
	for (line = diffstat; line != NULL && *line != '\0'; line = end) {
		char *one;

		end = strchrnul(line, '\n');
		one = xstrndup(line, (size_t)(end - line));
		printf("%s\n", ctl_clean(one));
		free(one);
		if (*end == '\n')
			end++;
	}
	if (!r->c->quiet)
		printf("branch %s at %.12s %s %s\n", ctl_clean(kept.branch),
		    ctl_clean(kept.commit), strcmp(where, "into") == 0 ?
		    "is in" : "is saved as", ctl_clean(path));
}

/* ------------------------------------------------------------- -o, --into */

static int
result_copy(int from, int to)
{
	uint8_t block[65536];
	off_t off = 0;
	ssize_t n;

	while ((n = pread(from, block, sizeof(block), off)) != 0) {
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1 || util_write_all(to, block, (size_t)n) != CL_OK)
			return CL_SYSTEM;
		off += n;
	}
	return fsync(to) == -1 ? CL_SYSTEM : CL_OK;
}

/* DIR/HANDLE + suffix, never over something that is there. */
static int
result_save(struct result *r, const char *suffix, char path[PATH_MAX])
{
	int fd, rc;

	if (snprintf(path, PATH_MAX, "%s/%s%s", r->dir, r->handle, suffix) >=
	    PATH_MAX)
		return CL_TOOBIG;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
	    0600);
	if (fd == -1)
		return CL_SYSTEM;
	rc = result_copy(r->fd, fd);
	if (close(fd) == -1 && rc == CL_OK)
		rc = CL_SYSTEM;
	if (rc != CL_OK)
		(void)unlink(path);
	return rc;
}

static int
result_save_refused(struct result *r, const char *path, int rc)
{
	char text[PATH_MAX + 256];

	(void)snprintf(text, sizeof(text), "%s: %s", path, cl_strerror(rc));
	return result_refuse(r->c, "internal", text);
}

static int
result_save_bundle(struct result *r)
{
	char path[PATH_MAX];
	int rc;

	if ((rc = result_save(r, ".bundle", path)) != CL_OK)
		return result_save_refused(r, path, rc);
	result_print(r, NULL, "saved", path, NULL);
	return EXIT_DONE;
}

static int
result_land(struct result *r, struct vet *v)
{
	char into[PATH_MAX], *diffstat;
	int rc;

	if (realpath(r->into, into) == NULL) {
		(void)snprintf(v->why, sizeof(v->why), "%.3000s: %s", r->into,
		    cl_strerror(CL_SYSTEM));
		return result_refuse(r->c, "usage", v->why);
	}
	if ((rc = vet_import(v, r->fd, into)) == CL_OK &&
	    (rc = vet_land(v, into)) == CL_OK) {
		diffstat = vet_format_diffstat(v);
		result_print(r, v, "into", into, diffstat);
		free(diffstat);
		if (v->is_head)
			fprintf(stderr, "cloopctl: branch %s is checked "
			    "out there, and its files are as they "
			    "were before\n", ctl_clean(kept.branch));
	}
	vet_clear(v);
	if (rc == CL_OK)
		return EXIT_DONE;
	return result_refuse(r->c, "write_back_refused", v->why[0] != '\0' ?
	    v->why : cl_strerror(rc));
}

/* Digest and header are the device's promise; both hold wherever it goes. */
static int
result_take(struct result *r)
{
	struct vet *v = xcalloc(1, sizeof(*v));
	int rc = CL_OK, status;

	v->branch = kept.branch;
	v->commit = kept.commit;
	v->base = kept.base;
	if (!rule_is_branch(v->branch) || !rule_is_hex(v->commit, 40) ||
	    !rule_is_hex(v->base, 40)) {
		(void)snprintf(v->why, sizeof(v->why), "the result names no "
		    "branch, commit and base");
		rc = CL_FORMAT;
	}
	if (rc == CL_OK)
		rc = vet_check_digest(v, r->fd, kept.bytes, kept.sha256);
	if (rc == CL_OK)
		rc = vet_check_header(v, r->fd);
	if (rc != CL_OK)
		status = result_refuse(r->c, "write_back_refused",
		    v->why[0] != '\0' ? v->why : cl_strerror(rc));
	else
		status = r->dir != NULL ? result_save_bundle(r) :
		    result_land(r, v);
	free(v);
	if (status == EXIT_DONE)
		status = result_ask(r, MSG_CTL_COLLECTED, CTL_WORK_BUNDLE);
	return status;
}

static int
result_take_project(struct result *r)
{
	char path[PATH_MAX];
	int rc, status;

	status = result_ask(r, MSG_CTL_RESULT, CTL_WORK_PROJECT);
	if (status != EXIT_DONE)
		return status;
	if ((rc = result_save(r, ".project.json.gz", path)) != CL_OK)
		return result_save_refused(r, path, rc);
	if (!r->c->json && !r->c->quiet)
		printf("the project is saved as %s\n", ctl_clean(path));
	return result_ask(r, MSG_CTL_COLLECTED, CTL_WORK_PROJECT);
}

/* Without -o and --into: what there is, and nothing is taken. */
static int
result_show(struct result *r)
{
	struct jsonw w;

	if (r->c->json) {
		jsonw_init(&w, MAX_JSON_OUT, JSONW_NO_HTML);
		jsonw_open_object(&w);
		ctl_put_str(&w, "handle_id", r->handle);
		ctl_put_result(&w, r->handle);
		jsonw_close_object(&w);
		(void)ctl_print_json(&w);
	} else
		(void)ctl_print_result(stdout, r->handle);
	return EXIT_DONE;
}

static int
result_run(struct result *r)
{
	int status, project;

	if ((status = result_ask(r, MSG_CTL_RESULT, CTL_WORK_SHOW)) !=
	    EXIT_DONE)
		return status;
	project = have_kept && kept.project_held && r->dir != NULL;
	if (project && !(have_kept && kept.held))
		return result_take_project(r);
	if ((status = result_ask(r, MSG_CTL_RESULT, CTL_WORK_BUNDLE)) !=
	    EXIT_DONE)
		return status;
	if (r->dir == NULL && r->into == NULL)
		return result_show(r);
	status = result_take(r);
	return status == EXIT_DONE && project ? result_take_project(r) :
	    status;
}

int
ctl_cmd_result(struct ctl *c, int argc, char **argv)
{
	static const struct option options[] = {
		{ "into", required_argument, NULL, 'i' },
		{ NULL, 0, NULL, 0 },
	};
	struct result r = { .c = c, .fd = -1 };
	int ch, status;

	while ((ch = getopt_long(argc, argv, "o:", options, NULL)) != -1) {
		if (ch == 'i')
			r.into = optarg;
		else if (ch == 'o')
			r.dir = optarg;
		else
			return ctl_usage(c, "unknown option");
	}
	if (optind != argc - 1 || argv[optind][0] == '\0')
		return ctl_usage(c, "one handle");
	if (r.into != NULL && r.dir != NULL)
		return ctl_usage(c, "-o or --into, not both");
	r.handle = argv[optind];
	/* It becomes part of a file name, and ids are never that odd. */
	if (strchr(r.handle, '/') != NULL)
		return ctl_usage(c, "%s is not a handle", r.handle);
	status = result_run(&r);
	if (r.fd != -1)
		close(r.fd);
	return status;
}
