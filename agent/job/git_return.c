/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * What a workload leaves goes back as commits, in cloop-git: uncommitted
 * changes of a run that succeeded become one commit, the commits since the
 * base are counted and bounded, and then bundled or pushed.  Git runs on a
 * repository of ours (git_shadow.c); only plumbing is used, which has no
 * hooks.
 */
#include <sys/stat.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/rule.h"
#include "common/base/util.h"
#include "git_job.h"

#define GR_MESSAGE "cloop: work produced by an isolated executor"
#define GR_BUNDLE_LEN 33554432		/* max_bundle_bytes when not given */
#define MAX_RETURN_COMMITS 1000
#define MAX_RETURN_PATHS 20000
#define MAX_RETURN_PATH_LEN 4096

static int
gr_git(struct gj *g, const char *what, const char *const *argv)
{
	struct gx x = { .what = what, .argv = argv, .repo = GJ_SHADOW };
	int r;

	r = gx_run(g, &x);
	gx_clear(&x);
	return r;
}

static int
gr_load(struct gj *g, const char *what, const char *const *argv,
    char id[GIT_HEX_LEN + 1])
{
	struct gx x = { .what = what, .argv = argv, .repo = GJ_SHADOW };
	int r;

	r = gx_load_id(g, &x, id);
	gx_clear(&x);
	return r;
}

static int
gr_skip(struct gj *g, const char *why)
{
	g->res.outcome = DEVJOB_SKIPPED;
	free(g->res.error);
	return (g->res.error = strdup(why)) == NULL ? CL_NOMEM : CL_OK;
}

/* The tree of the working files, in an index that begins with HEAD's. */
static int
gr_load_tree(struct gj *g, char id[GIT_HEX_LEN + 1])
{
	static const char *const read_tree[] = { "read-tree", "HEAD", NULL };
	static const char *const write_tree[] = { "write-tree", NULL };
	const char *add[] = { "add", "--all", "--", ".", NULL, NULL };
	int r;

	if (g->plan.hide_cloop)
		add[4] = ":(top,exclude).cloop";
	if ((r = gr_git(g, "read-tree", read_tree)) != 0 ||
	    (r = gr_git(g, "add", add)) != 0)
		return r;
	return gr_load(g, "write-tree", write_tree, id);
}

/* Uncommitted changes become one commit; id is HEAD afterwards. */
static int
gr_commit(struct gj *g, char id[GIT_HEX_LEN + 1])
{
	static const char *const head_tree[] = { "rev-parse", "--verify",
	    "HEAD^{tree}", NULL };
	char old[GIT_HEX_LEN + 1], tree[GIT_HEX_LEN + 1];
	char parent[GIT_HEX_LEN + 1];
	const char *argv[] = { "commit-tree", tree, "-p", parent, "-m",
	    rule_is_blank(g->plan.message) ? GR_MESSAGE : g->plan.message,
	    NULL };
	int r;

	if ((r = gr_load(g, "rev-parse", head_tree, old)) != 0 ||
	    (r = gr_load_tree(g, tree)) != 0)
		return r;
	if (rule_is_equal(old, tree))
		return CL_OK;
	memcpy(parent, id, sizeof(parent));
	return gr_load(g, "commit-tree", argv, id);
}

/* ------------------------------------------------------------------ bounds */

static int
gr_count_commits(struct gj *g, const char *commit)
{
	char range[2 * GIT_HEX_LEN + 3];
	const char *argv[] = { "rev-list", "--count", range, "--", NULL };
	struct gx x = { .what = "rev-list", .argv = argv,
	    .repo = GJ_SHADOW };
	int r;

	(void)snprintf(range, sizeof(range), "%s..%s", g->plan.base, commit);
	if ((r = gx_run(g, &x)) == 0)
		g->res.commits = strtoll(x.out, NULL, 10);
	gx_clear(&x);
	if (r == 0 && (g->res.commits < 1 ||
	    g->res.commits > MAX_RETURN_COMMITS))
		r = gj_fail(g, "%lld commits, at most %d can be returned",
		    (long long)g->res.commits, MAX_RETURN_COMMITS);
	return r;
}

static int
gr_count_files(struct gj *g, const char *commit)
{
	const char *argv[] = { "diff-tree", "-r", "--name-only",
	    "--no-renames", "-z", g->plan.base, commit, "--", NULL };
	struct gx x = { .what = "diff-tree", .argv = argv, .repo = GJ_SHADOW,
	    .max_out = MAX_RETURN_PATHS * 256 };
	const char *p;
	int r;

	r = gx_run(g, &x);
	for (p = x.out; r == 0 && p < x.out + x.out_len;
	    p += strlen(p) + 1) {
		g->res.files_changed++;
		if (strlen(p) > MAX_RETURN_PATH_LEN)
			r = gj_fail(g, "a changed file's name is longer than "
			    "%d bytes", MAX_RETURN_PATH_LEN);
	}
	gx_clear(&x);
	if (r == 0 && g->res.files_changed > MAX_RETURN_PATHS)
		r = gj_fail(g, "%lld changed files, at most %d can be "
		    "returned", (long long)g->res.files_changed,
		    MAX_RETURN_PATHS);
	return r;
}

static int
gr_check_base(struct gj *g, const char *commit)
{
	const char *argv[] = { "merge-base", "--is-ancestor", g->plan.base,
	    commit, NULL };
	struct gx x = { .what = "merge-base", .argv = argv,
	    .repo = GJ_SHADOW, .is_quiet = 1 };
	int r;

	r = gx_run(g, &x);
	gx_clear(&x);
	if (r != 0)
		return gj_fail(g, "the base commit %s is not in the history "
		    "of %s", g->plan.base, commit);
	return CL_OK;
}

/* ---------------------------------------------------------------- delivery */

static int
gr_push(struct gj *g, const char *ref)
{
	char spec[2 * GJ_TAIL_MAX + 2];
	const char *argv[] = { "push", "--porcelain", "--force", "--",
	    g->plan.repo, spec, NULL };
	struct gx x = { .what = "push", .argv = argv, .repo = GJ_SHADOW,
	    .flags = GE_NETWORK | GE_CREDENTIAL, .max_out = 65536 };
	int r;

	if (g->plan.password.len == 0)
		return gj_fail(g, "there is no credential to push with");
	(void)snprintf(spec, sizeof(spec), "%s:%s", ref, ref);
	r = gx_run(g, &x);
	gx_clear(&x);
	g->res.pushed = r == 0;
	return r;
}

static int
gr_load_digest(struct gj *g, uint64_t len)
{
	unsigned char digest[EVP_MAX_MD_SIZE], block[16384];
	char hex[2 * EVP_MAX_MD_SIZE + 1];
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	unsigned int n = 0;
	uint64_t at = 0;
	ssize_t got;
	int ok;

	ok = ctx != NULL && EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) == 1;
	while (ok && at < len) {
		got = pread(g->file_fd, block, sizeof(block), (off_t)at);
		ok = got > 0 &&
		    EVP_DigestUpdate(ctx, block, (size_t)got) == 1;
		at += got > 0 ? (uint64_t)got : 0;
	}
	ok = ok && EVP_DigestFinal_ex(ctx, digest, &n) == 1 && at == len;
	EVP_MD_CTX_free(ctx);
	if (!ok)
		return gj_fail(g, "the bundle cannot be read");
	util_format_hex(digest, n, hex);
	free(g->res.sha256);
	if ((g->res.sha256 = strdup(hex)) == NULL)
		return CL_NOMEM;
	g->res.bytes = (int64_t)len;
	return CL_OK;
}

/* Straight into the monitor's file; a bundle that is too big stops at the
 * limit and not at the end of the disk. */
static int
gr_bundle(struct gj *g, const char *ref)
{
	char range[GIT_HEX_LEN + GJ_TAIL_MAX + 3];
	const char *argv[] = { "bundle", "create", "--quiet", "-", range,
	    NULL };
	uint64_t cap = g->plan.max_bundle_bytes > 0 ?
	    (uint64_t)g->plan.max_bundle_bytes : GR_BUNDLE_LEN;
	struct gx x = { .what = "bundle", .argv = argv, .repo = GJ_SHADOW,
	    .out_fd = g->file_fd, .max_file = cap, .is_quiet = 1 };
	struct stat st;
	int r;

	(void)snprintf(range, sizeof(range), "%s..%s", g->plan.base, ref);
	r = gx_run(g, &x);
	if (gj_check(g) != 0)
		r = CL_DENIED;
	else if (fstat(g->file_fd, &st) == -1)
		r = gj_fail(g, "the bundle: %s", strerror(errno));
	else if (r != 0 && (uint64_t)st.st_size >= cap)
		r = gj_fail(g, "the bundle has more than %llu bytes, its "
		    "limit", (unsigned long long)cap);
	else if (r != 0)
		r = gj_fail(g, "git bundle failed: %s", x.tail);
	else
		r = gr_load_digest(g, (uint64_t)st.st_size);
	gx_clear(&x);
	return r;
}

static int
gr_deliver(struct gj *g, const char *commit)
{
	char ref[GJ_TAIL_MAX];
	const char *argv[] = { "update-ref", ref, commit, NULL };
	int r;

	(void)snprintf(ref, sizeof(ref), "refs/heads/%s", g->plan.branch);
	if ((r = gr_git(g, "update-ref", argv)) != 0)
		return r;
	gs_save_back(g, g->plan.branch, commit);
	if ((r = gr_check_base(g, commit)) != 0 ||
	    (r = gr_count_commits(g, commit)) != 0 ||
	    (r = gr_count_files(g, commit)) != 0)
		return r;
	free(g->res.head);
	if ((g->res.head = strdup(commit)) == NULL)
		return CL_NOMEM;
	return rule_is_equal(g->plan.mode, "push") ? gr_push(g, ref) :
	    gr_bundle(g, ref);
}

static int
gr_return_all(struct gj *g)
{
	static const char *const verify[] = { "rev-parse", "--verify",
	    "HEAD^{commit}", NULL };
	char head[GIT_HEX_LEN + 1], id[GIT_HEX_LEN + 1];
	int r;

	if ((r = gs_find_head(g, head)) != 0 || (r = gs_open(g, head)) != 0 ||
	    (r = gr_load(g, "rev-parse", verify, id)) != 0)
		return r;
	if (!g->plan.failed && (r = gr_commit(g, id)) != 0)
		return r;
	if (rule_is_equal(id, g->plan.base))
		return gr_skip(g, g->plan.failed ? "the run failed and made "
		    "no commit: its uncommitted changes are not returned" :
		    "the workload changed no files");
	return gr_deliver(g, id);
}

int
gr_return(struct gj *g)
{
	int r;

	r = gt_check_git(g);
	if (r == CL_NOTFOUND)
		r = gj_fail(g, "the tree has no .git any more");
	if (r == 0 && (r = gt_cut_links(g)) == 0)
		r = gr_return_all(g);
	gs_close(g);
	return r;
}
