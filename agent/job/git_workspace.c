/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Building a workspace, in cloop-git.  Forge and hub are believed about
 * nothing but the bytes of the commit that was asked for.  A repository that
 * is there already was in a workload's hands: its configuration is thrown
 * away before git sees it.
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "common/base/err.h"
#include "common/base/rule.h"
#include "common/base/util.h"
#include "git_job.h"

#define GIT_WORK_BUNDLE "cloop.bundle"	/* below .git, while it is fetched */
#define GIT_WORK_FETCH_TMP 65536

static int
git_work_git(struct git_job *g, const char *what, unsigned int flags,
    const char *const *argv)
{
	struct git_run x = { .what = what, .argv = argv, .repo = GIT_JOB_TREE,
	    .flags = flags };
	int r;

	r = git_run(g, &x);
	git_run_clear(&x);
	return r;
}

static int
git_work_init(struct git_job *g)
{
	static const char *const argv[] = { "init", "--quiet", "--", ".",
	    NULL };
	struct git_run x = { .what = "init", .argv = argv, .repo =
	    GIT_JOB_NO_REPO };
	int r;

	r = git_run(g, &x);
	git_run_clear(&x);
	return r;
}

static int
git_work_check_size(struct git_job *g)
{
	uint64_t bytes, limit = (uint64_t)g->plan.size_limit_mb;
	int r;

	if (limit == 0 || limit > UINT64_MAX / 1048576)
		return CL_OK;
	r = git_tree_get_size(g->dir_fd, &bytes);
	if (bytes > limit * 1048576)
		return git_job_fail(g,
		    "the workspace has %llu bytes, more than "
		    "its limit of %llu MiB", (unsigned long long)bytes,
		    (unsigned long long)limit);
	if (r == CL_LIMIT)
		return git_job_fail(g, "the workspace has too many files to "
		    "measure it against its limit of %llu MiB",
		    (unsigned long long)limit);
	return CL_OK;
}

/* ----------------------------------------------------------- the forge's */

/* What URL an existing repository has; our own reading, no includes. */
static int
git_work_check_origin(struct git_job *g)
{
	static const char *const argv[] = { "config", "--file", ".git/config",
	    "--no-includes", "--get", "remote.origin.url", NULL };
	struct git_run x = { .what = "config", .argv = argv, .repo =
	    GIT_JOB_NO_REPO, .is_quiet = 1 };
	const char *want = rule_is_empty(g->plan.upstream) ? g->plan.repo :
	    g->plan.upstream;
	int r;

	r = git_run(g, &x);
	if (git_job_check(g) != 0)
		r = CL_DENIED;
	else if (r != 0 || x.out_len == 0)
		r = git_job_fail(g,
		    "the directory holds a repository without an "
		    "origin, %s was asked for", want);
	else if (!git_env_is_same_url(x.out, want) &&
	    !git_env_is_same_url(x.out, g->plan.repo)) {
		x.out[strcspn(x.out, "\r\n")] = '\0';
		r = git_job_fail(g,
		    "the directory holds a repository of %.512s, "
		    "%s was asked for", x.out, want);
	} else
		r = CL_OK;
	git_run_clear(&x);
	return r;
}

/* The least a repository needs; everything else is in the environment. */
static int
git_work_save_config(struct git_job *g)
{
	char text[4096];
	int n;

	n = snprintf(text, sizeof(text), "[core]\n"
	    "\trepositoryformatversion = 0\n\tfilemode = true\n"
	    "\tbare = false\n\tlogallrefupdates = true\n"
	    "[remote \"origin\"]\n\turl = %s\n"
	    "\tfetch = +refs/heads/*:refs/remotes/origin/*\n", g->plan.repo);
	if (n < 0 || (size_t)n >= sizeof(text) ||
	    strpbrk(g->plan.repo, "\"\\;#") != NULL)
		return git_job_fail(g, "the repository's URL cannot be used");
	if (git_tree_save(g->dir_fd, ".git/config", text, (size_t)n) != 0)
		return git_job_fail(g, ".git/config: %s", strerror(errno));
	return CL_OK;
}

static int
git_work_fetch(struct git_job *g)
{
	const char *argv[12] = { "fetch", "--no-tags", "--prune",
	    "--progress" };
	struct git_run x = { .what = "fetch", .argv = argv, .repo =
	    GIT_JOB_TREE, .flags = GIT_ENV_NETWORK, .is_loud = 1 };
	const char *ref = rule_is_empty(g->plan.ref) ? "HEAD" : g->plan.ref;
	char depth[24];
	size_t n = 4;
	int r;

	if (g->plan.depth > 0) {
		(void)snprintf(depth, sizeof(depth), "%lld",
		    (long long)g->plan.depth);
		argv[n++] = "--depth";
		argv[n++] = depth;
	}
	argv[n++] = "--";
	argv[n++] = "origin";
	argv[n++] = ref;
	if (g->plan.password.len > 0)
		x.flags |= GIT_ENV_CREDENTIAL;
	git_job_say(g, "fetching %s of %s", ref, g->plan.repo);
	r = git_run(g, &x);
	git_run_clear(&x);
	return r;
}

/* The repository as it must be before anything is fetched into it. */
static int
git_work_open_repo(struct git_job *g)
{
	int r;

	r = git_tree_check_git(g);
	if (r == CL_NOTFOUND)
		return (r = git_work_init(g)) != 0 ? r :
		    git_work_save_config(g);
	if (r != 0 || (r = git_work_check_origin(g)) != 0 ||
	    (r = git_tree_cut_links(g)) != 0)
		return r;
	return git_work_save_config(g);
}

static int
git_work_checkout(struct git_job *g)
{
	static const char *const argv[] = { "checkout", "--quiet", "--detach",
	    "FETCH_HEAD", NULL };

	return git_work_git(g, "checkout", 0, argv);
}

/* ---------------------------------------------------------- the hub's */

/*
 * The shipped bundle belongs to the monitor and cannot be opened by name
 * here; it is copied, and its digest taken on the way.
 */
static int
git_work_copy(struct git_job *g, int out_fd)
{
	const struct devjob_plan *p = &g->plan;
	unsigned char digest[EVP_MAX_MD_SIZE];
	char hex[2 * EVP_MAX_MD_SIZE + 1], *block;
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	unsigned int len = 0;
	int64_t at = 0;
	ssize_t n = 0;
	int r = CL_OK;

	block = malloc(GIT_WORK_FETCH_TMP);
	if (ctx == NULL || block == NULL ||
	    EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) != 1)
		r = git_job_fail(g, "out of memory");
	while (r == 0 && at < p->bytes && (n = pread(g->file_fd, block,
	    GIT_WORK_FETCH_TMP, at)) > 0) {
		at += n;
		if (EVP_DigestUpdate(ctx, block, (size_t)n) != 1)
			r = git_job_fail(g, "SHA-256 failed");
		else if (util_write_all(out_fd, block, (size_t)n) != 0)
			r = git_job_fail(g, "the shipped branch: %s",
			    strerror(errno));
	}
	if (r == 0 && (EVP_DigestFinal_ex(ctx, digest, &len) != 1 ||
	    at != p->bytes))
		r = git_job_fail(g, "the shipped branch is not complete");
	if (r == 0) {
		util_format_hex(digest, len, hex);
		if (!rule_is_equal(hex, p->sha256))
			r = git_job_fail(g,
			    "the shipped branch has the SHA-256 " "%s, not %s",
			    hex, p->sha256);
	}
	EVP_MD_CTX_free(ctx);
	free(block);
	return r;
}

static const char git_work_bundle_path[] = ".git/" GIT_WORK_BUNDLE;

static int
git_work_take_bundle(struct git_job *g)
{
	char refspec[2 * GIT_JOB_TAIL_MAX + 32];
	const char *argv[] = { "fetch", "--quiet", "--no-tags", "--",
	    git_work_bundle_path, refspec, NULL };
	int fd, git_fd, r;

	if (git_tree_open_dir(g->dir_fd, ".git", &git_fd) != 0)
		return git_job_fail(g, ".git: %s", strerror(errno));
	fd = openat(git_fd, GIT_WORK_BUNDLE, O_WRONLY | O_CREAT | O_EXCL |
	    O_NOFOLLOW | O_CLOEXEC, 0600);
	r = fd == -1 ? git_job_fail(g, "the shipped branch: %s",
	    strerror(errno)) : git_work_copy(g, fd);
	if (fd != -1)
		close(fd);
	(void)snprintf(refspec, sizeof(refspec),
	    "+refs/heads/%s:refs/heads/%s", g->plan.branch, g->plan.branch);
	if (r == 0)
		r = git_work_git(g, "fetch of the shipped branch", GIT_ENV_FILE,
		    argv);
	(void)unlinkat(git_fd, GIT_WORK_BUNDLE, 0);
	close(git_fd);
	return r;
}

/* Shallow commits the bundle builds on. */
static int
git_work_save_shallow(struct git_job *g)
{
	const struct devjob_plan *p = &g->plan;
	char text[256 * (GIT_HEX_LEN + 1)];
	size_t i;

	if (p->nshallow == 0)
		return CL_OK;
	for (i = 0; i < p->nshallow && i < 256; i++) {
		if (!rule_is_hex(p->shallow[i], GIT_HEX_LEN))
			return git_job_fail(g, "shallow: not a commit");
		memcpy(text + i * (GIT_HEX_LEN + 1), p->shallow[i],
		    GIT_HEX_LEN);
		text[i * (GIT_HEX_LEN + 1) + GIT_HEX_LEN] = '\n';
	}
	if (git_tree_save(g->dir_fd, ".git/shallow", text,
	    i * (GIT_HEX_LEN + 1)) != 0)
		return git_job_fail(g, ".git/shallow: %s", strerror(errno));
	return CL_OK;
}

static int
git_work_set_ref(struct git_job *g, const char *ref, const char *commit)
{
	const char *argv[] = { "update-ref", "--no-deref", ref, commit,
	    NULL };

	return git_work_git(g, "update-ref", 0, argv);
}

static int
git_work_del_ref(struct git_job *g, const char *ref)
{
	const char *argv[] = { "update-ref", "-d", ref, NULL };

	return git_work_git(g, "update-ref", 0, argv);
}

/* The base from the forge, the branch from the hub. */
static int
git_work_build_on_base(struct git_job *g)
{
	char ref[GIT_JOB_TAIL_MAX];
	int r;

	if ((r = git_work_save_config(g)) != 0 || (r = git_work_fetch(g)) !=
	    0 || (r = git_work_check_size(g)) != 0)
		return r;
	(void)snprintf(ref, sizeof(ref), "refs/heads/%s", g->plan.branch);
	if (g->plan.bytes == 0)
		return git_work_set_ref(g, ref, g->plan.ref);
	if ((r = git_work_set_ref(g, "refs/cloop/provision-base",
	    g->plan.ref)) != 0 || (r = git_work_take_bundle(g)) != 0)
		return r;
	return git_work_del_ref(g, "refs/cloop/provision-base");
}

static int
git_work_load_head(struct git_job *g, char id[GIT_HEX_LEN + 1])
{
	static const char *const argv[] = { "rev-parse", "--verify",
	    "HEAD^{commit}", NULL };
	struct git_run x = { .what = "rev-parse", .argv = argv, .repo =
	    GIT_JOB_TREE };
	int r;

	r = git_run_load_id(g, &x, id);
	git_run_clear(&x);
	return r;
}

static int
git_work_set_identity(struct git_job *g)
{
	static const char *const name[] = { "config", "user.name", "cloop",
	    NULL };
	static const char *const email[] = { "config", "user.email",
	    "cloop@localhost", NULL };
	int r;

	return (r = git_work_git(g, "config", 0, name)) != 0 ? r :
	    git_work_git(g, "config", 0, email);
}

static int
git_work_build_branch(struct git_job *g)
{
	const char *argv[] = { "checkout", "--quiet", g->plan.branch, "--",
	    NULL };
	char id[GIT_HEX_LEN + 1];
	int r;

	if (git_tree_empty(g->dir_fd) != 0)
		return git_job_fail(g,
		    "the work directory cannot be emptied: %s",
		    strerror(errno));
	if ((r = git_work_init(g)) != 0)
		return r;
	if (rule_is_equal(g->plan.kind, "git"))
		r = git_work_build_on_base(g);
	else if ((r = git_work_save_shallow(g)) == 0)
		r = git_work_take_bundle(g);
	if (r != 0 || (r = git_work_git(g, "checkout", 0, argv)) != 0 ||
	    (r = git_work_load_head(g, id)) != 0)
		return r;
	if (!rule_is_equal(id, g->plan.head))
		return git_job_fail(g,
		    "the shipped branch ends at %s, not at %s", id,
		    g->plan.head);
	return git_work_set_identity(g);
}

/* ------------------------------------------------------------------ .cloop */

/* Files of .cloop that the project tracks stay as they are. */
static int
git_work_hide_tracked(struct git_job *g)
{
	static const char *const list[] = { "ls-files", "-z", "--", ".cloop",
	    NULL };
	const char *argv[] = { "update-index", "--skip-worktree", "--", NULL,
	    NULL };
	struct git_run x = { .what = "ls-files", .argv = list, .repo =
	    GIT_JOB_TREE, .max_out = 1048576 };
	const char *p;
	int r;

	r = git_run(g, &x);
	for (p = x.out; r == 0 && p < x.out + x.out_len;
	    p += strlen(p) + 1) {
		argv[3] = p;
		r = git_work_git(g, "update-index", 0, argv);
	}
	git_run_clear(&x);
	return r;
}

static int
git_work_hide(struct git_job *g)
{
	static const char rule[] = "/.cloop/\n";
	char *text = NULL;
	size_t len = 0;
	int git_fd, r;

	if (git_tree_open_dir(g->dir_fd, ".git", &git_fd) != 0)
		return git_job_fail(g, ".git: %s", strerror(errno));
	(void)mkdirat(git_fd, "info", 0700);
	r = git_tree_load(git_fd, "info/exclude", 1048576, &text, &len);
	if (r != 0 && r != CL_NOTFOUND) {
		(void)git_tree_remove(git_fd, "info");
		(void)mkdirat(git_fd, "info", 0700);
	}
	if (text == NULL || strstr(text, rule) == NULL) {
		char *all = NULL;

		if (asprintf(&all, "%s%s%s", text == NULL ? "" : text,
		    text != NULL && len > 0 && text[len - 1] != '\n' ?
		    "\n" : "",
		    rule) == -1)
			all = NULL;
		r = all == NULL ? CL_NOMEM : git_tree_save(git_fd,
		    "info/exclude", all, strlen(all));
		free(all);
	} else
		r = CL_OK;
	free(text);
	close(git_fd);
	return r != 0 ? git_job_fail(g, ".git/info/exclude: %s",
	    cl_strerror(r)) : git_work_hide_tracked(g);
}

/* -------------------------------------------------------------------- all */

static int
git_work_build(struct git_job *g)
{
	int r;

	if (!rule_is_empty(g->plan.branch))
		r = git_work_build_branch(g);
	else if ((r = git_work_open_repo(g)) == 0 && (r = git_work_fetch(g)) ==
	    0 && (r = git_work_check_size(g)) == 0)
		r = git_work_checkout(g);
	if (r == 0 && g->plan.hide_cloop)
		r = git_work_hide(g);
	return r == 0 ? git_work_check_size(g) : r;
}

int
git_work_provision(struct git_job *g)
{
	char id[GIT_HEX_LEN + 1];
	int was_empty = git_tree_is_empty(g->dir_fd), had_git, r;
	struct stat st;

	had_git = fstatat(g->dir_fd, ".git", &st, AT_SYMLINK_NOFOLLOW) == 0;
	if ((r = git_work_build(g)) == 0)
		r = git_work_load_head(g, id);
	if (r == 0 && rule_is_empty(g->plan.branch) &&
	    rule_is_hex(g->plan.ref, GIT_HEX_LEN) &&
	    !rule_is_equal(g->plan.ref, id))
		r = git_job_fail(g, "the forge gave %s, not %s", id,
		    g->plan.ref);
	if (r != 0) {
		/* What we made goes. */
		if (was_empty || !rule_is_empty(g->plan.branch))
			(void)git_tree_empty(g->dir_fd);
		else if (!had_git)
			(void)git_tree_remove(g->dir_fd, ".git");
		return r;
	}
	if (rule_is_equal(g->plan.kind, "git"))
		git_job_say(g, "at %s", id);
	free(g->res.head);
	return (g->res.head = strdup(id)) == NULL ? CL_NOMEM : CL_OK;
}
