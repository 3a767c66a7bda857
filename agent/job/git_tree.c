/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The tree as files, in cloop-git and cloop-seed.  A workload may have left
 * anything in it: links to everywhere, directories without permissions, a
 * thousand levels.  Every step is one name below a held descriptor, without
 * following a link.
 */
#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/util.h"
#include "git_job.h"

#define GIT_TREE_DIR (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define GIT_TREE_DEPTH 64	/* then a directory is moved to the top */
#define GIT_TREE_SIZE_DEPTH 512	/* descriptors of one walk */
#define GIT_TREE_RESERVED ".cloop-"	/* as WORKDIR_RESERVED */
#define MAX_SIZE_ENTRIES 500000

static DIR *
git_tree_open_list(int dir_fd, const char *name)
{
	int fd;
	DIR *d;

	if ((fd = openat(dir_fd, name, GIT_TREE_DIR)) == -1 && errno ==
	    EACCES && fchmodat(dir_fd, name, 0700, 0) == 0)
		fd = openat(dir_fd, name, GIT_TREE_DIR);
	if (fd == -1)
		return NULL;
	if ((d = fdopendir(fd)) == NULL)
		close(fd);
	return d;
}

static int
git_tree_is_dot(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static int
git_tree_is_reserved(const char *name)
{
	return strncmp(name, GIT_TREE_RESERVED, strlen(GIT_TREE_RESERVED)) == 0;
}

int
git_tree_is_empty(int dir_fd)
{
	struct dirent *e;
	DIR *d;
	int empty = 1;

	if ((d = git_tree_open_list(dir_fd, ".")) == NULL)
		return 0;
	while (empty && (e = readdir(d)) != NULL)
		if (!git_tree_is_dot(e->d_name) &&
		    !git_tree_is_reserved(e->d_name))
			empty = 0;
	closedir(d);
	return empty;
}

/* What lies too deep is moved up and met again by the outermost loop. */
static int
git_tree_lift(int top_fd, int dir_fd, const char *name)
{
	static unsigned int n;
	char up[64];

	(void)snprintf(up, sizeof(up), "cloop.rm.%ld.%u", (long)getpid(),
	    n++);
	return renameat(dir_fd, name, top_fd, up) == -1 ? CL_SYSTEM : CL_OK;
}

static int git_tree_remove_at(int top_fd, int dir_fd, const char *name,
    int depth);

static int
git_tree_remove_list(int top_fd, int dir_fd, const char *name, int depth)
{
	struct dirent *e;
	int r = CL_OK, again;
	DIR *d;

	if ((d = git_tree_open_list(dir_fd, name)) == NULL)
		return errno == ENOENT ? CL_OK : CL_SYSTEM;
	(void)fchmod(dirfd(d), 0700);
	do {
		again = 0;
		rewinddir(d);
		while (r == CL_OK && (e = readdir(d)) != NULL) {
			if (git_tree_is_dot(e->d_name) ||
			    (dir_fd == top_fd && depth == 0 &&
			    strcmp(name, ".") == 0 &&
			    git_tree_is_reserved(e->d_name)))
				continue;
			again = 1;
			r = git_tree_remove_at(top_fd, dirfd(d), e->d_name,
			    depth + 1);
		}
	} while (r == CL_OK && again);
	closedir(d);
	return r;
}

static int
git_tree_remove_at(int top_fd, int dir_fd, const char *name, int depth)
{
	int r;

	if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
		return CL_OK;
	if (errno != EISDIR && errno != EPERM && errno != ENOTEMPTY)
		return CL_SYSTEM;
	if (unlinkat(dir_fd, name, AT_REMOVEDIR) == 0)
		return CL_OK;
	if (errno != ENOTEMPTY && errno != EEXIST)
		return CL_SYSTEM;
	if (depth >= GIT_TREE_DEPTH)
		return git_tree_lift(top_fd, dir_fd, name);
	if ((r = git_tree_remove_list(top_fd, dir_fd, name, depth)) != CL_OK)
		return r;
	return unlinkat(dir_fd, name, AT_REMOVEDIR) == -1 ? CL_SYSTEM : CL_OK;
}

int
git_tree_remove(int dir_fd, const char *name)
{
	return git_tree_remove_at(dir_fd, dir_fd, name, 1);
}

int
git_tree_empty(int dir_fd)
{
	return git_tree_remove_list(dir_fd, dir_fd, ".", 0);
}

/* -------------------------------------------------------------------- size */

struct git_tree_sum {
	uint64_t bytes;
	size_t entries;
};

static int
git_tree_sum_list(struct git_tree_sum *sum, int dir_fd, const char *name,
    int depth)
{
	struct dirent *e;
	struct stat st;
	int fd, r = CL_OK;
	DIR *d = NULL;

	/* A directory that cannot be read holds nothing of ours. */
	if ((fd = openat(dir_fd, name, GIT_TREE_DIR)) == -1)
		return CL_OK;
	if (depth >= GIT_TREE_SIZE_DEPTH || (d = fdopendir(fd)) == NULL) {
		close(fd);
		return CL_LIMIT;
	}
	while (r == CL_OK && (e = readdir(d)) != NULL) {
		if (git_tree_is_dot(e->d_name))
			continue;
		if (++sum->entries > MAX_SIZE_ENTRIES)
			r = CL_LIMIT;
		else if (fstatat(dirfd(d), e->d_name, &st,
		    AT_SYMLINK_NOFOLLOW) == -1)
			continue;
		else if (S_ISREG(st.st_mode))
			sum->bytes += (uint64_t)st.st_size;
		else if (S_ISDIR(st.st_mode))
			r = git_tree_sum_list(sum, dirfd(d), e->d_name, depth +
			    1);
	}
	closedir(d);
	return r;
}

int
git_tree_get_size(int dir_fd, uint64_t *bytesp)
{
	struct git_tree_sum sum = { 0, 0 };
	int r;

	r = git_tree_sum_list(&sum, dir_fd, ".", 0);
	*bytesp = sum.bytes;
	return r;
}

/* ------------------------------------------------------------- small files */

/* The directory a path lies in, through real directories only. */
static int
git_tree_open_parent(int dir_fd, const char *path, int *fdp, const char **namep)
{
	char part[256];
	const char *slash;
	int fd, next;

	*fdp = -1;
	if ((fd = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0)) == -1)
		return CL_SYSTEM;
	while ((slash = strchr(path, '/')) != NULL) {
		if (slash == path || (size_t)(slash - path) >= sizeof(part)) {
			close(fd);
			return CL_FORMAT;
		}
		memcpy(part, path, (size_t)(slash - path));
		part[slash - path] = '\0';
		next = git_tree_is_dot(part) ? -1 : openat(fd, part,
		    GIT_TREE_DIR);
		close(fd);
		if (next == -1)
			return errno == ENOENT ? CL_NOTFOUND : CL_FORMAT;
		fd = next;
		path = slash + 1;
	}
	if (*path == '\0' || git_tree_is_dot(path)) {
		close(fd);
		return CL_FORMAT;
	}
	*fdp = fd;
	*namep = path;
	return CL_OK;
}

int
git_tree_load(int dir_fd, const char *path, size_t max, char **textp,
    size_t *lenp)
{
	const char *name;
	struct stat st;
	int parent, fd, r;

	*textp = NULL;
	*lenp = 0;
	if ((r = git_tree_open_parent(dir_fd, path, &parent, &name)) != 0)
		return r;
	fd = openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK |
	    O_CLOEXEC);
	close(parent);
	if (fd == -1)
		return errno == ENOENT ? CL_NOTFOUND : errno == ELOOP ?
		    CL_FORMAT : CL_SYSTEM;
	if (fstat(fd, &st) == -1 || !S_ISREG(st.st_mode))
		r = CL_FORMAT;
	else
		r = util_load_fd(fd, max, (uint8_t **)textp, lenp);
	close(fd);
	return r;
}

int
git_tree_save(int dir_fd, const char *path, const void *data, size_t len)
{
	char tmp[64];
	const char *name;
	int parent, fd, r;

	if ((r = git_tree_open_parent(dir_fd, path, &parent, &name)) != 0)
		return r;
	(void)snprintf(tmp, sizeof(tmp), ".cloop.tmp.%ld", (long)getpid());
	(void)unlinkat(parent, tmp, 0);
	fd = openat(parent, tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW |
	    O_CLOEXEC, 0600);
	r = fd == -1 ? CL_SYSTEM : util_write_all(fd, data, len);
	if (fd != -1 && close(fd) == -1)
		r = CL_SYSTEM;
	/* A rename replaces a link, it does not follow it. */
	if (r == 0 && renameat(parent, tmp, parent, name) == -1)
		r = CL_SYSTEM;
	if (r != 0)
		(void)unlinkat(parent, tmp, 0);
	close(parent);
	return r;
}

int
git_tree_open_dir(int dir_fd, const char *path, int *fdp)
{
	const char *name;
	int parent, r;

	*fdp = -1;
	if ((r = git_tree_open_parent(dir_fd, path, &parent, &name)) != 0)
		return r;
	*fdp = openat(parent, name, GIT_TREE_DIR);
	if (*fdp == -1)
		r = errno == ENOENT ? CL_NOTFOUND : CL_FORMAT;
	close(parent);
	return r;
}

/* -------------------------------------------------------------------- .git */

int
git_tree_check_git(struct git_job *g)
{
	struct stat st;

	if (fstatat(g->dir_fd, ".git", &st, AT_SYMLINK_NOFOLLOW) == -1)
		return errno == ENOENT ? CL_NOTFOUND : git_job_fail(g,
		    ".git: %s", strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return git_job_fail(g,
		    ".git is no directory: it is not followed");
	return CL_OK;
}

int
git_tree_cut_links(struct git_job *g)
{
	static const char *const names[] = {
		"commondir", "config.worktree", "gitdir", "objects",
		"objects/info", "objects/pack", "objects/info/alternates",
		"objects/info/http-alternates",
	};
	struct stat st;
	size_t i;
	int git_fd, r = CL_OK;

	if (git_tree_open_dir(g->dir_fd, ".git", &git_fd) != 0)
		return git_job_fail(g, ".git is no directory");
	for (i = 0; i < sizeof(names) / sizeof(names[0]) && r == 0; i++) {
		/* The parents come first in the list: they are real. */
		if (fstatat(git_fd, names[i], &st, AT_SYMLINK_NOFOLLOW) == -1)
			continue;
		if (i >= 3 && i <= 5) {
			if (!S_ISDIR(st.st_mode))
				r = git_job_fail(g, ".git/%s is no directory",
				    names[i]);
		} else if (unlinkat(git_fd, names[i], 0) == -1)
			r = git_job_fail(g, ".git/%s: %s", names[i],
			    strerror(errno));
	}
	close(git_fd);
	return r;
}
