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

#define GIT_BACK_MESSAGE "cloop: work produced by an isolated executor"
#define GIT_BACK_BUNDLE_LEN 33554432	/* max_bundle_bytes when not given */
#define MAX_RETURN_COMMITS 1000
#define MAX_RETURN_PATHS 20000
#define MAX_RETURN_PATH_LEN 4096

static int
git_back_git(struct git_job *g, const char *what, const char *const *argv)
{
	struct git_run x = { .what = what, .argv = argv, .repo =
	    GIT_JOB_SHADOW };
	int r;

	r = git_run(g, &x);
	git_run_clear(&x);
	return r;
}

static int
git_back_load(struct git_job *g, const char *what, const char *const *argv,
    char id[GIT_HEX_LEN + 1])
{
	struct git_run x = { .what = what, .argv = argv, .repo =
	    GIT_JOB_SHADOW };
	int r;

	r = git_run_load_id(g, &x, id);
	git_run_clear(&x);
	return r;
}

static int
git_back_skip(struct git_job *g, const char *why)
{
	g->res.outcome = DEVJOB_SKIPPED;
	free(g->res.error);
	return (g->res.error = strdup(why)) == NULL ? CL_NOMEM : CL_OK;
}

/* The tree of the working files, in an index that begins with HEAD's. */
static int
git_back_load_tree(struct git_job *g, char id[GIT_HEX_LEN + 1])
{
	static const char *const read_tree[] = { "read-tree", "HEAD", NULL };
	static const char *const write_tree[] = { "write-tree", NULL };
	const char *add[] = { "add", "--all", "--", ".", NULL, NULL };
	int r;

	if (g->plan.hide_cloop)
		add[4] = ":(top,exclude).cloop";
	if ((r = git_back_git(g, "read-tree", read_tree)) != 0 ||
	    (r = git_back_git(g, "add", add)) != 0)
		return r;
	return git_back_load(g, "write-tree", write_tree, id);
}

/* Uncommitted changes become one commit; id is HEAD afterwards. */
static int
git_back_commit(struct git_job *g, char id[GIT_HEX_LEN + 1])
{
	static const char *const head_tree[] = { "rev-parse", "--verify",
	    "HEAD^{tree}", NULL };
	char old[GIT_HEX_LEN + 1], tree[GIT_HEX_LEN + 1];
	char parent[GIT_HEX_LEN + 1];
	const char *argv[] = { "commit-tree", tree, "-p", parent, "-m",
	    rule_is_blank(g->plan.message) ? GIT_BACK_MESSAGE : g->plan.message,
	    NULL };
	int r;

	if ((r = git_back_load(g, "rev-parse", head_tree, old)) != 0 ||
	    (r = git_back_load_tree(g, tree)) != 0)
		return r;
	if (rule_is_equal(old, tree))
		return CL_OK;
	memcpy(parent, id, sizeof(parent));
	return git_back_load(g, "commit-tree", argv, id);
}

/* ------------------------------------------------------------------ bounds */

static int
git_back_count_commits(struct git_job *g, const char *commit)
{
	char range[2 * GIT_HEX_LEN + 3];
	const char *argv[] = { "rev-list", "--count", range, "--", NULL };
	struct git_run x = { .what = "rev-list", .argv = argv,
	    .repo = GIT_JOB_SHADOW };
	int r;

	(void)snprintf(range, sizeof(range), "%s..%s", g->plan.base, commit);
	if ((r = git_run(g, &x)) == 0)
		g->res.commits = strtoll(x.out, NULL, 10);
	git_run_clear(&x);
	if (r == 0 && (g->res.commits < 1 ||
	    g->res.commits > MAX_RETURN_COMMITS))
		r = git_job_fail(g, "%lld commits, at most %d can be returned",
		    (long long)g->res.commits, MAX_RETURN_COMMITS);
	return r;
}

static int
git_back_count_files(struct git_job *g, const char *commit)
{
	const char *argv[] = { "diff-tree", "-r", "--name-only",
	    "--no-renames", "-z", g->plan.base, commit, "--", NULL };
	struct git_run x = { .what = "diff-tree", .argv = argv, .repo =
	    GIT_JOB_SHADOW, .max_out = MAX_RETURN_PATHS * 256 };
	const char *p;
	int r;

	r = git_run(g, &x);
	for (p = x.out; r == 0 && p < x.out + x.out_len;
	    p += strlen(p) + 1) {
		g->res.files_changed++;
		if (strlen(p) > MAX_RETURN_PATH_LEN)
			r = git_job_fail(g,
			    "a changed file's name is longer than " "%d bytes",
			    MAX_RETURN_PATH_LEN);
	}
	git_run_clear(&x);
	if (r == 0 && g->res.files_changed > MAX_RETURN_PATHS)
		r = git_job_fail(g, "%lld changed files, at most %d can be "
		    "returned", (long long)g->res.files_changed,
		    MAX_RETURN_PATHS);
	return r;
}

static int
git_back_check_base(struct git_job *g, const char *commit)
{
	const char *argv[] = { "merge-base", "--is-ancestor", g->plan.base,
	    commit, NULL };
	struct git_run x = { .what = "merge-base", .argv = argv,
	    .repo = GIT_JOB_SHADOW, .is_quiet = 1 };
	int r;

	r = git_run(g, &x);
	git_run_clear(&x);
	if (r != 0)
		return git_job_fail(g,
		    "the base commit %s is not in the history " "of %s",
		    g->plan.base, commit);
	return CL_OK;
}

/* ---------------------------------------------------------------- delivery */

static int
git_back_push(struct git_job *g, const char *ref)
{
	char spec[2 * GIT_JOB_TAIL_MAX + 2];
	const char *argv[] = { "push", "--porcelain", "--force", "--",
	    g->plan.repo, spec, NULL };
	struct git_run x = { .what = "push", .argv = argv, .repo =
	    GIT_JOB_SHADOW, .flags = GIT_ENV_NETWORK | GIT_ENV_CREDENTIAL,
	    .max_out = 65536 };
	int r;

	if (g->plan.password.len == 0)
		return git_job_fail(g, "there is no credential to push with");
	(void)snprintf(spec, sizeof(spec), "%s:%s", ref, ref);
	r = git_run(g, &x);
	git_run_clear(&x);
	g->res.pushed = r == 0;
	return r;
}

static int
git_back_load_digest(struct git_job *g, uint64_t len)
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
		return git_job_fail(g, "the bundle cannot be read");
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
git_back_bundle(struct git_job *g, const char *ref)
{
	char range[GIT_HEX_LEN + GIT_JOB_TAIL_MAX + 3];
	const char *argv[] = { "bundle", "create", "--quiet", "-", range,
	    NULL };
	uint64_t cap = g->plan.max_bundle_bytes > 0 ?
	    (uint64_t)g->plan.max_bundle_bytes : GIT_BACK_BUNDLE_LEN;
	struct git_run x = { .what = "bundle", .argv = argv, .repo =
	    GIT_JOB_SHADOW, .out_fd = g->file_fd, .max_file = cap, .is_quiet =
	    1 };
	struct stat st;
	int r;

	(void)snprintf(range, sizeof(range), "%s..%s", g->plan.base, ref);
	r = git_run(g, &x);
	if (git_job_check(g) != 0)
		r = CL_DENIED;
	else if (fstat(g->file_fd, &st) == -1)
		r = git_job_fail(g, "the bundle: %s", strerror(errno));
	else if (r != 0 && (uint64_t)st.st_size >= cap)
		r = git_job_fail(g, "the bundle has more than %llu bytes, its "
		    "limit", (unsigned long long)cap);
	else if (r != 0)
		r = git_job_fail(g, "git bundle failed: %s", x.tail);
	else
		r = git_back_load_digest(g, (uint64_t)st.st_size);
	git_run_clear(&x);
	return r;
}

static int
git_back_deliver(struct git_job *g, const char *commit)
{
	char ref[GIT_JOB_TAIL_MAX];
	const char *argv[] = { "update-ref", ref, commit, NULL };
	int r;

	(void)snprintf(ref, sizeof(ref), "refs/heads/%s", g->plan.branch);
	if ((r = git_back_git(g, "update-ref", argv)) != 0)
		return r;
	git_shadow_save_back(g, g->plan.branch, commit);
	if ((r = git_back_check_base(g, commit)) != 0 ||
	    (r = git_back_count_commits(g, commit)) != 0 ||
	    (r = git_back_count_files(g, commit)) != 0)
		return r;
	free(g->res.head);
	if ((g->res.head = strdup(commit)) == NULL)
		return CL_NOMEM;
	return rule_is_equal(g->plan.mode, "push") ? git_back_push(g, ref) :
	    git_back_bundle(g, ref);
}

static int
git_back_return_all(struct git_job *g)
{
	static const char *const verify[] = { "rev-parse", "--verify",
	    "HEAD^{commit}", NULL };
	char head[GIT_HEX_LEN + 1], id[GIT_HEX_LEN + 1];
	int r;

	if ((r = git_shadow_find_head(g, head)) != 0 || (r = git_shadow_open(g,
	    head)) != 0 || (r = git_back_load(g, "rev-parse", verify, id)) != 0)
		return r;
	if (!g->plan.failed && (r = git_back_commit(g, id)) != 0)
		return r;
	if (rule_is_equal(id, g->plan.base))
		return git_back_skip(g, g->plan.failed ?
		    "the run failed and made "
		    "no commit: its uncommitted changes are not returned" :
		    "the workload changed no files");
	return git_back_deliver(g, id);
}

int
git_back_return(struct git_job *g)
{
	int r;

	r = git_tree_check_git(g);
	if (r == CL_NOTFOUND)
		r = git_job_fail(g, "the tree has no .git any more");
	if (r == 0 && (r = git_tree_cut_links(g)) == 0)
		r = git_back_return_all(g);
	git_shadow_close(g);
	return r;
}
