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

#define GW_BUNDLE "cloop.bundle"	/* below .git, while it is fetched */
#define GW_FETCH_TMP 65536

static int
gw_git(struct gj *g, const char *what, unsigned int flags,
    const char *const *argv)
{
	struct gx x = { .what = what, .argv = argv, .repo = GJ_TREE,
	    .flags = flags };
	int r;

	r = gx_run(g, &x);
	gx_clear(&x);
	return r;
}

static int
gw_init(struct gj *g)
{
	static const char *const argv[] = { "init", "--quiet", "--", ".",
	    NULL };
	struct gx x = { .what = "init", .argv = argv, .repo = GJ_NO_REPO };
	int r;

	r = gx_run(g, &x);
	gx_clear(&x);
	return r;
}

static int
gw_check_size(struct gj *g)
{
	uint64_t bytes, limit = (uint64_t)g->plan.size_limit_mb;
	int r;

	if (limit == 0 || limit > UINT64_MAX / 1048576)
		return CL_OK;
	r = gt_get_size(g->dir_fd, &bytes);
	if (bytes > limit * 1048576)
		return gj_fail(g, "the workspace has %llu bytes, more than "
		    "its limit of %llu MiB", (unsigned long long)bytes,
		    (unsigned long long)limit);
	if (r == CL_LIMIT)
		return gj_fail(g, "the workspace has too many files to "
		    "measure it against its limit of %llu MiB",
		    (unsigned long long)limit);
	return CL_OK;
}

/* ----------------------------------------------------------- the forge's */

/* What URL an existing repository has; our own reading, no includes. */
static int
gw_check_origin(struct gj *g)
{
	static const char *const argv[] = { "config", "--file", ".git/config",
	    "--no-includes", "--get", "remote.origin.url", NULL };
	struct gx x = { .what = "config", .argv = argv, .repo = GJ_NO_REPO,
	    .is_quiet = 1 };
	const char *want = rule_is_empty(g->plan.upstream) ? g->plan.repo :
	    g->plan.upstream;
	int r;

	r = gx_run(g, &x);
	if (gj_check(g) != 0)
		r = CL_DENIED;
	else if (r != 0 || x.out_len == 0)
		r = gj_fail(g, "the directory holds a repository without an "
		    "origin, %s was asked for", want);
	else if (!ge_is_same_url(x.out, want) &&
	    !ge_is_same_url(x.out, g->plan.repo)) {
		x.out[strcspn(x.out, "\r\n")] = '\0';
		r = gj_fail(g, "the directory holds a repository of %.512s, "
		    "%s was asked for", x.out, want);
	} else
		r = CL_OK;
	gx_clear(&x);
	return r;
}

/* The least a repository needs; everything else is in the environment. */
static int
gw_save_config(struct gj *g)
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
		return gj_fail(g, "the repository's URL cannot be used");
	if (gt_save(g->dir_fd, ".git/config", text, (size_t)n) != 0)
		return gj_fail(g, ".git/config: %s", strerror(errno));
	return CL_OK;
}

static int
gw_fetch(struct gj *g)
{
	const char *argv[12] = { "fetch", "--no-tags", "--prune",
	    "--progress" };
	struct gx x = { .what = "fetch", .argv = argv, .repo = GJ_TREE,
	    .flags = GE_NETWORK, .is_loud = 1 };
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
		x.flags |= GE_CREDENTIAL;
	gj_say(g, "fetching %s of %s", ref, g->plan.repo);
	r = gx_run(g, &x);
	gx_clear(&x);
	return r;
}

/* The repository as it must be before anything is fetched into it. */
static int
gw_open_repo(struct gj *g)
{
	int r;

	r = gt_check_git(g);
	if (r == CL_NOTFOUND)
		return (r = gw_init(g)) != 0 ? r : gw_save_config(g);
	if (r != 0 || (r = gw_check_origin(g)) != 0 ||
	    (r = gt_cut_links(g)) != 0)
		return r;
	return gw_save_config(g);
}

static int
gw_checkout(struct gj *g)
{
	static const char *const argv[] = { "checkout", "--quiet", "--detach",
	    "FETCH_HEAD", NULL };

	return gw_git(g, "checkout", 0, argv);
}

/* ---------------------------------------------------------- the hub's */

/*
 * The shipped bundle belongs to the monitor and cannot be opened by name
 * here; it is copied, and its digest taken on the way.
 */
static int
gw_copy(struct gj *g, int out_fd)
{
	const struct devjob_plan *p = &g->plan;
	unsigned char digest[EVP_MAX_MD_SIZE];
	char hex[2 * EVP_MAX_MD_SIZE + 1], *block;
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	unsigned int len = 0;
	int64_t at = 0;
	ssize_t n = 0;
	int r = CL_OK;

	block = malloc(GW_FETCH_TMP);
	if (ctx == NULL || block == NULL ||
	    EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) != 1)
		r = gj_fail(g, "out of memory");
	while (r == 0 && at < p->bytes && (n = pread(g->file_fd, block,
	    GW_FETCH_TMP, at)) > 0) {
		at += n;
		if (EVP_DigestUpdate(ctx, block, (size_t)n) != 1)
			r = gj_fail(g, "SHA-256 failed");
		else if (util_write_all(out_fd, block, (size_t)n) != 0)
			r = gj_fail(g, "the shipped branch: %s",
			    strerror(errno));
	}
	if (r == 0 && (EVP_DigestFinal_ex(ctx, digest, &len) != 1 ||
	    at != p->bytes))
		r = gj_fail(g, "the shipped branch is not complete");
	if (r == 0) {
		util_format_hex(digest, len, hex);
		if (!rule_is_equal(hex, p->sha256))
			r = gj_fail(g, "the shipped branch has the SHA-256 "
			    "%s, not %s", hex, p->sha256);
	}
	EVP_MD_CTX_free(ctx);
	free(block);
	return r;
}

static const char gw_bundle_path[] = ".git/" GW_BUNDLE;

static int
gw_take_bundle(struct gj *g)
{
	char refspec[2 * GJ_TAIL_MAX + 32];
	const char *argv[] = { "fetch", "--quiet", "--no-tags", "--",
	    gw_bundle_path, refspec, NULL };
	int fd, git_fd, r;

	if (gt_open_dir(g->dir_fd, ".git", &git_fd) != 0)
		return gj_fail(g, ".git: %s", strerror(errno));
	fd = openat(git_fd, GW_BUNDLE, O_WRONLY | O_CREAT | O_EXCL |
	    O_NOFOLLOW | O_CLOEXEC, 0600);
	r = fd == -1 ? gj_fail(g, "the shipped branch: %s",
	    strerror(errno)) : gw_copy(g, fd);
	if (fd != -1)
		close(fd);
	(void)snprintf(refspec, sizeof(refspec),
	    "+refs/heads/%s:refs/heads/%s", g->plan.branch, g->plan.branch);
	if (r == 0)
		r = gw_git(g, "fetch of the shipped branch", GE_FILE, argv);
	(void)unlinkat(git_fd, GW_BUNDLE, 0);
	close(git_fd);
	return r;
}

/* Shallow commits the bundle builds on. */
static int
gw_save_shallow(struct gj *g)
{
	const struct devjob_plan *p = &g->plan;
	char text[256 * (GIT_HEX_LEN + 1)];
	size_t i;

	if (p->nshallow == 0)
		return CL_OK;
	for (i = 0; i < p->nshallow && i < 256; i++) {
		if (!rule_is_hex(p->shallow[i], GIT_HEX_LEN))
			return gj_fail(g, "shallow: not a commit");
		memcpy(text + i * (GIT_HEX_LEN + 1), p->shallow[i],
		    GIT_HEX_LEN);
		text[i * (GIT_HEX_LEN + 1) + GIT_HEX_LEN] = '\n';
	}
	if (gt_save(g->dir_fd, ".git/shallow", text,
	    i * (GIT_HEX_LEN + 1)) != 0)
		return gj_fail(g, ".git/shallow: %s", strerror(errno));
	return CL_OK;
}

static int
gw_set_ref(struct gj *g, const char *ref, const char *commit)
{
	const char *argv[] = { "update-ref", "--no-deref", ref, commit,
	    NULL };

	return gw_git(g, "update-ref", 0, argv);
}

static int
gw_del_ref(struct gj *g, const char *ref)
{
	const char *argv[] = { "update-ref", "-d", ref, NULL };

	return gw_git(g, "update-ref", 0, argv);
}

/* The base from the forge, the branch from the hub. */
static int
gw_build_on_base(struct gj *g)
{
	char ref[GJ_TAIL_MAX];
	int r;

	if ((r = gw_save_config(g)) != 0 || (r = gw_fetch(g)) != 0 ||
	    (r = gw_check_size(g)) != 0)
		return r;
	(void)snprintf(ref, sizeof(ref), "refs/heads/%s", g->plan.branch);
	if (g->plan.bytes == 0)
		return gw_set_ref(g, ref, g->plan.ref);
	if ((r = gw_set_ref(g, "refs/cloop/provision-base",
	    g->plan.ref)) != 0 || (r = gw_take_bundle(g)) != 0)
		return r;
	return gw_del_ref(g, "refs/cloop/provision-base");
}

static int
gw_load_head(struct gj *g, char id[GIT_HEX_LEN + 1])
{
	static const char *const argv[] = { "rev-parse", "--verify",
	    "HEAD^{commit}", NULL };
	struct gx x = { .what = "rev-parse", .argv = argv, .repo = GJ_TREE };
	int r;

	r = gx_load_id(g, &x, id);
	gx_clear(&x);
	return r;
}

static int
gw_set_identity(struct gj *g)
{
	static const char *const name[] = { "config", "user.name", "cloop",
	    NULL };
	static const char *const email[] = { "config", "user.email",
	    "cloop@localhost", NULL };
	int r;

	return (r = gw_git(g, "config", 0, name)) != 0 ? r :
	    gw_git(g, "config", 0, email);
}

static int
gw_build_branch(struct gj *g)
{
	const char *argv[] = { "checkout", "--quiet", g->plan.branch, "--",
	    NULL };
	char id[GIT_HEX_LEN + 1];
	int r;

	if (gt_empty(g->dir_fd) != 0)
		return gj_fail(g, "the work directory cannot be emptied: %s",
		    strerror(errno));
	if ((r = gw_init(g)) != 0)
		return r;
	if (rule_is_equal(g->plan.kind, "git"))
		r = gw_build_on_base(g);
	else if ((r = gw_save_shallow(g)) == 0)
		r = gw_take_bundle(g);
	if (r != 0 || (r = gw_git(g, "checkout", 0, argv)) != 0 ||
	    (r = gw_load_head(g, id)) != 0)
		return r;
	if (!rule_is_equal(id, g->plan.head))
		return gj_fail(g, "the shipped branch ends at %s, not at %s",
		    id, g->plan.head);
	return gw_set_identity(g);
}

/* ------------------------------------------------------------------ .cloop */

/* Files of .cloop that the project tracks stay as they are. */
static int
gw_hide_tracked(struct gj *g)
{
	static const char *const list[] = { "ls-files", "-z", "--", ".cloop",
	    NULL };
	const char *argv[] = { "update-index", "--skip-worktree", "--", NULL,
	    NULL };
	struct gx x = { .what = "ls-files", .argv = list, .repo = GJ_TREE,
	    .max_out = 1048576 };
	const char *p;
	int r;

	r = gx_run(g, &x);
	for (p = x.out; r == 0 && p < x.out + x.out_len;
	    p += strlen(p) + 1) {
		argv[3] = p;
		r = gw_git(g, "update-index", 0, argv);
	}
	gx_clear(&x);
	return r;
}

static int
gw_hide(struct gj *g)
{
	static const char rule[] = "/.cloop/\n";
	char *text = NULL;
	size_t len = 0;
	int git_fd, r;

	if (gt_open_dir(g->dir_fd, ".git", &git_fd) != 0)
		return gj_fail(g, ".git: %s", strerror(errno));
	(void)mkdirat(git_fd, "info", 0700);
	r = gt_load(git_fd, "info/exclude", 1048576, &text, &len);
	if (r != 0 && r != CL_NOTFOUND) {
		(void)gt_remove(git_fd, "info");
		(void)mkdirat(git_fd, "info", 0700);
	}
	if (text == NULL || strstr(text, rule) == NULL) {
		char *all = NULL;

		if (asprintf(&all, "%s%s%s", text == NULL ? "" : text,
		    text != NULL && len > 0 && text[len - 1] != '\n' ?
		    "\n" : "",
		    rule) == -1)
			all = NULL;
		r = all == NULL ? CL_NOMEM : gt_save(git_fd, "info/exclude",
		    all, strlen(all));
		free(all);
	} else
		r = CL_OK;
	free(text);
	close(git_fd);
	return r != 0 ? gj_fail(g, ".git/info/exclude: %s",
	    cl_strerror(r)) : gw_hide_tracked(g);
}

/* -------------------------------------------------------------------- all */

static int
gw_build(struct gj *g)
{
	int r;

	if (!rule_is_empty(g->plan.branch))
		r = gw_build_branch(g);
	else if ((r = gw_open_repo(g)) == 0 && (r = gw_fetch(g)) == 0 &&
	    (r = gw_check_size(g)) == 0)
		r = gw_checkout(g);
	if (r == 0 && g->plan.hide_cloop)
		r = gw_hide(g);
	return r == 0 ? gw_check_size(g) : r;
}

int
gw_provision(struct gj *g)
{
	char id[GIT_HEX_LEN + 1];
	int was_empty = gt_is_empty(g->dir_fd), had_git, r;
	struct stat st;

	had_git = fstatat(g->dir_fd, ".git", &st, AT_SYMLINK_NOFOLLOW) == 0;
	if ((r = gw_build(g)) == 0)
		r = gw_load_head(g, id);
	if (r == 0 && rule_is_empty(g->plan.branch) &&
	    rule_is_hex(g->plan.ref, GIT_HEX_LEN) &&
	    !rule_is_equal(g->plan.ref, id))
		r = gj_fail(g, "the forge gave %s, not %s", id, g->plan.ref);
	if (r != 0) {
		/* What we made goes. */
		if (was_empty || !rule_is_empty(g->plan.branch))
			(void)gt_empty(g->dir_fd);
		else if (!had_git)
			(void)gt_remove(g->dir_fd, ".git");
		return r;
	}
	if (rule_is_equal(g->plan.kind, "git"))
		gj_say(g, "at %s", id);
	free(g->res.head);
	return (g->res.head = strdup(id)) == NULL ? CL_NOMEM : CL_OK;
}
