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
cmd_keep_result(struct tool *t, struct imsg *m, union msg_any *v)
{
	(void)t;
	if (m->type != MSG_ROW_RESULT)
		return;
	if (have_kept)
		field_clear(&work_result_table, &kept);
	kept = v->ROW_RESULT;
	memset(v, 0, sizeof(*v));	/* what it owns is ours */
	have_kept = 1;
}

int
cmd_has_result(const char *handle_id)
{
	return have_kept && rule_is_equal(kept.handle_id, handle_id) &&
	    kept.done && !rule_is_empty(kept.mode);
}

static const struct row_col result_cols[] = {
	COL("mode"), COL("branch"), COL("commit"), COL("base"),
	{ .key = "bundle_bytes", .field = "bytes" },
	COL("sha256"), COL("commits"), COL("files_changed"), COL("pushed"),
	COL("skipped"), COL("skip_reason"), COL("error"), COL("held"),
};
static const struct row_kind result_kind = { .type = MSG_ROW_RESULT,
	.fields = &work_result_table, COLS(result_cols) };

void
cmd_put_result(struct jsonw *w, const char *handle_id)
{
	if (!cmd_has_result(handle_id)) {
		jsonw_put_null(w);
		return;
	}
	jsonw_open_object(w);
	rows_put(w, &result_kind, &kept);
	jsonw_close_object(w);
}

void
cmd_print_result(FILE *out, const char *handle_id)
{
	if (!cmd_has_result(handle_id))
		return;
	if (!rule_is_empty(kept.error))
		fprintf(out, "cloopctl: no work came back: %s\n",
		    tool_clean(kept.error));
	else if (kept.skipped)
		fprintf(out, "cloopctl: no work came back: %s\n",
		    rule_is_empty(kept.skip_reason) ? "nothing to deliver" :
		    tool_clean(kept.skip_reason));
	else if (strcmp(kept.mode, "push") == 0)
		fprintf(out, "cloopctl: the device pushed branch %s\n",
		    tool_clean(kept.branch));
	else
		fprintf(out, "cloopctl: branch %s came back, %s; land it "
		    "with: cloopctl result --into REPOSITORY -- %s\n",
		    tool_clean(kept.branch), tool_format_size(kept.bytes),
		    handle_id);
}

/* -------------------------------------------------------------- the work */

struct cmd_work {
	struct tool *t;
	const char *handle;
	const char *dir;	/* -o */
	const char *into;	/* --into */
	int fd;			/* what the hub handed out; -1 */
};

static int
cmd_refuse_work(struct cmd_work *r, const struct vet *v, int rc)
{
	return tool_fail(r->t, "write_back_refused", "", "%s",
	    v->why[0] != '\0' ? v->why : cl_strerror(rc));
}

static int
cmd_on_work(struct tool *t, struct imsg *m, union msg_any *v, void *arg)
{
	struct cmd_work *r = arg;

	cmd_keep_result(t, m, v);
	if (m->type != MSG_ROW_WORK_FILE)
		return CL_OK;
	if (r->fd != -1)
		close(r->fd);
	r->fd = imsg_take_fd(m);
	return CL_OK;
}

static int
cmd_ask_work(struct cmd_work *r, uint32_t type, int what)
{
	struct msg_ctl_work req = { r->handle, what };

	return tool_walk(r->t, type, &req, -1, cmd_on_work, r);
}

/* An upper bound for all members: names are short, prose is not shown. */
static void
cmd_print_landed(struct cmd_work *r, const struct vet *v, const char *where,
    const char *path, const char *diffstat)
{
	const char *line, *end;
	struct jsonw *w = &r->t->doc;

	if (r->t->json) {
		tool_open_doc(r->t);
		tool_put_str(w, "handle_id", r->handle);
		tool_put_str(w, where, path);
		rows_put(w, &result_kind, &kept);
		if (v != NULL) {
			jsonw_put_key(w, "landed_commits");
			jsonw_put_uint(w, v->ncommits);
		}
		tool_put_str(w, "diffstat", diffstat);
		(void)tool_close_doc(r->t, EXIT_DONE);
		return;
	}
	for (line = diffstat; line != NULL && *line != '\0'; line = end) {
		char *one;

		end = strchrnul(line, '\n');
		one = xstrndup(line, (size_t)(end - line));
		printf("%s\n", tool_clean(one));
		free(one);
		if (*end == '\n')
			end++;
	}
	if (!r->t->quiet)
		printf("branch %s at %.12s %s %s\n", tool_clean(kept.branch),
		    tool_clean(kept.commit), strcmp(where, "into") == 0 ?
		    "is in" : "is saved as", tool_clean(path));
}

/* ------------------------------------------------------------- -o, --into */

static int
cmd_copy(int from, int to)
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
cmd_save(struct cmd_work *r, const char *suffix, char path[PATH_MAX])
{
	int fd, rc;

	if (snprintf(path, PATH_MAX, "%s/%s%s", r->dir, r->handle, suffix) >=
	    PATH_MAX)
		return CL_TOOBIG;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
	    0600);
	if (fd == -1)
		return CL_SYSTEM;
	rc = cmd_copy(r->fd, fd);
	if (close(fd) == -1 && rc == CL_OK)
		rc = CL_SYSTEM;
	if (rc != CL_OK)
		(void)unlink(path);
	return rc;
}

static int
cmd_refuse_save(struct cmd_work *r, const char *path, int rc)
{
	return tool_fail(r->t, "internal", "", "%s: %s", path,
	    cl_strerror(rc));
}

static int
cmd_save_bundle(struct cmd_work *r)
{
	char path[PATH_MAX];
	int rc;

	if ((rc = cmd_save(r, ".bundle", path)) != CL_OK)
		return cmd_refuse_save(r, path, rc);
	cmd_print_landed(r, NULL, "saved", path, NULL);
	return EXIT_DONE;
}

static int
cmd_land(struct cmd_work *r, struct vet *v)
{
	char into[PATH_MAX], *diffstat;
	int rc;

	if (realpath(r->into, into) == NULL)
		return tool_fail(r->t, "usage", "", "%.3000s: %s", r->into,
		    cl_strerror(CL_SYSTEM));
	if ((rc = vet_import(v, r->fd, into)) == CL_OK &&
	    (rc = vet_land(v, into)) == CL_OK) {
		diffstat = vet_format_diffstat(v);
		cmd_print_landed(r, v, "into", into, diffstat);
		free(diffstat);
		if (v->is_head)
			fprintf(stderr, "cloopctl: branch %s is checked "
			    "out there, and its files are as they "
			    "were before\n", tool_clean(kept.branch));
	}
	vet_clear(v);
	if (rc == CL_OK)
		return EXIT_DONE;
	return cmd_refuse_work(r, v, rc);
}

/* Digest and header are the device's promise; both hold wherever it goes. */
static int
cmd_take_work(struct cmd_work *r)
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
		status = cmd_refuse_work(r, v, rc);
	else
		status = r->dir != NULL ? cmd_save_bundle(r) :
		    cmd_land(r, v);
	free(v);
	if (status == EXIT_DONE)
		status = cmd_ask_work(r, MSG_CTL_COLLECTED, CTL_WORK_BUNDLE);
	return status;
}

static int
cmd_take_project(struct cmd_work *r)
{
	char path[PATH_MAX];
	int rc, status;

	status = cmd_ask_work(r, MSG_CTL_RESULT, CTL_WORK_PROJECT);
	if (status != EXIT_DONE)
		return status;
	if ((rc = cmd_save(r, ".project.json.gz", path)) != CL_OK)
		return cmd_refuse_save(r, path, rc);
	if (!r->t->json && !r->t->quiet)
		printf("the project is saved as %s\n", tool_clean(path));
	return cmd_ask_work(r, MSG_CTL_COLLECTED, CTL_WORK_PROJECT);
}

/* Without -o and --into: what there is, and nothing is taken. */
static int
cmd_show_result(struct cmd_work *r)
{
	tool_open_doc(r->t);
	tool_put_str(&r->t->doc, "handle_id", r->handle);
	jsonw_put_key(&r->t->doc, "result");
	cmd_put_result(&r->t->doc, r->handle);
	if (!r->t->json)
		cmd_print_result(stdout, r->handle);
	return tool_close_doc(r->t, EXIT_DONE);
}

static int
cmd_run_result(struct cmd_work *r)
{
	int status, project;

	if ((status = cmd_ask_work(r, MSG_CTL_RESULT, CTL_WORK_SHOW)) !=
	    EXIT_DONE)
		return status;
	project = have_kept && kept.project_held && r->dir != NULL;
	if (project && !(have_kept && kept.held))
		return cmd_take_project(r);
	if ((status = cmd_ask_work(r, MSG_CTL_RESULT, CTL_WORK_BUNDLE)) !=
	    EXIT_DONE)
		return status;
	if (r->dir == NULL && r->into == NULL)
		return cmd_show_result(r);
	status = cmd_take_work(r);
	return status == EXIT_DONE && project ? cmd_take_project(r) :
	    status;
}

int
cmd_result(struct tool *t, int argc, char **argv)
{
	struct cmd_work r = { .t = t, .fd = -1 };
	const struct cmd_option options[] = {
		{ "into", &r.into, NULL },
		{ "o", &r.dir, NULL },
		{ NULL, NULL, NULL },
	};
	int status;

	if ((status = cmd_parse(t, argc, argv, options, "one handle",
	    &r.handle)) != EXIT_DONE)
		return status;
	if (r.handle[0] == '\0')
		return cmd_usage(t, "one handle");
	if (r.into != NULL && r.dir != NULL)
		return cmd_usage(t, "-o or --into, not both");
	/* It becomes part of a file name, and ids are never that odd. */
	if (strchr(r.handle, '/') != NULL)
		return cmd_usage(t, "%s is not a handle", r.handle);
	status = cmd_run_result(&r);
	if (r.fd != -1)
		close(r.fd);
	return status;
}
