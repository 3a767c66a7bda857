/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Work-directory confinement.  Runs in the device monitor, as root; the path
 * comes from the hub and the directories on the way belong to workloads, the
 * present ones included: nothing here is looked up twice by name.  Links are
 * read, never followed by the kernel; a link's target is walked with the
 * same rules.  The answer is a descriptor, and whatever is done later is
 * done to that.
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/stdlib.h>
#include <bsd/string.h>

#include "workdir.h"
#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/util.h"
#include "common/base/xmem.h"

#define WORKDIR_OPEN (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* The state of one walk. */
struct walk {
	const struct workdir_root *root;
	char pending[2 * MAX_PATH_LEN + 2];	/* what is still to be walked */
	char done[MAX_PATH_LEN + 1];		/* "", or "/a/b" below root */
	int fd;					/* of `done`, not the root's */
	int nlinks;
};

static int
workdir_open_again(int fd)
{
	return openat(fd, ".", WORKDIR_OPEN);
}

int
workdir_open_root(const char *path, uid_t uid, gid_t gid,
    struct workdir_root *root)
{
	struct stat st;
	int r;

	memset(root, 0, sizeof(*root));
	root->fd = -1;
	root->uid = uid;
	root->gid = gid;
	if (*path != '/')
		return CL_FORMAT;
	if (access(path, F_OK) == -1 &&
	    (r = util_make_dirs(path, 0700, uid, gid)) != 0)
		return r;
	/* The one resolution by name: before any workload exists, of a path
	 * the administrator gave. */
	if ((root->path = realpath(path, NULL)) == NULL)
		return CL_SYSTEM;
	root->fd = open(root->path, WORKDIR_OPEN);
	if (root->fd == -1 || fstat(root->fd, &st) == -1 ||
	    strcmp(root->path, "/") == 0) {
		if (root->fd != -1)
			errno = EINVAL;
		workdir_close_root(root);
		return CL_SYSTEM;
	}
	/* A root that was made by root: workloads have to write there.  One
	 * that was good before may have become read-only (EROFS). */
	if ((uid != (uid_t)-1 && st.st_uid == 0 &&
	    fchownat(root->fd, "", uid, gid, AT_EMPTY_PATH) == -1) ||
	    faccessat(root->fd, ".", W_OK, 0) == -1) {
		workdir_close_root(root);
		return CL_SYSTEM;
	}
	return CL_OK;
}

void
workdir_close_root(struct workdir_root *root)
{
	int saved = errno;

	if (root->fd != -1)
		close(root->fd);
	root->fd = -1;
	free(root->path);
	root->path = NULL;
	errno = saved;
}

/* A cleaned absolute path: no "//", ".", ".."; dst holds MAX_PATH_LEN + 1. */
static int
workdir_clean_path(const char *path, char *dst)
{
	const char *p = path, *end;
	size_t n = 0, len;

	for (; *p != '\0'; p = end) {
		while (*p == '/')
			p++;
		end = p + strcspn(p, "/");
		len = (size_t)(end - p);
		if (len == 0 || (len == 1 && *p == '.'))
			continue;
		if (len == 2 && p[0] == '.' && p[1] == '.') {
			while (n > 0 && dst[--n] != '/')
				;
			continue;
		}
		if (len > NAME_MAX || len + 1 > MAX_PATH_LEN - n)
			return CL_TOOBIG;
		dst[n++] = '/';
		memcpy(dst + n, p, len);
		n += len;
	}
	if (n == 0)
		dst[n++] = '/';
	dst[n] = '\0';
	return CL_OK;
}

/* The part of an absolute path below the root, or NULL when it is outside. */
static const char *
workdir_find_below(const struct workdir_root *root, const char *path)
{
	size_t n = strlen(root->path);

	if (strncmp(path, root->path, n) != 0 ||
	    (path[n] != '\0' && path[n] != '/'))
		return NULL;
	return path + n;
}

/* Take the next component off `pending`; 0 when none is left. */
static int
workdir_get_component(struct walk *w, char name[NAME_MAX + 1])
{
	char *p = w->pending;
	size_t len;

	p += strspn(p, "/");
	len = strcspn(p, "/");
	if (len == 0 || len > NAME_MAX) {
		errno = ENAMETOOLONG;
		return len == 0 ? 0 : CL_SYSTEM;
	}
	memcpy(name, p, len);
	name[len] = '\0';
	memmove(w->pending, p + len, strlen(p + len) + 1);
	return 1;
}

static void
workdir_set_fd(struct walk *w, int fd)
{
	close(w->fd);
	w->fd = fd;
}

/* Start again at the root and walk to `done`, which holds no links. */
static int
workdir_walk_done(struct walk *w)
{
	char path[MAX_PATH_LEN + 1], *p = path, *name;
	int fd;

	if ((fd = workdir_open_again(w->root->fd)) == -1)
		return CL_SYSTEM;
	workdir_set_fd(w, fd);
	strlcpy(path, w->done, sizeof(path));
	while ((name = strsep(&p, "/")) != NULL) {
		if (*name == '\0')
			continue;
		if ((fd = openat(w->fd, name, WORKDIR_OPEN)) == -1)
			return CL_SYSTEM;
		workdir_set_fd(w, fd);
	}
	return CL_OK;
}

/* "..": only a link's target may still hold one. */
static int
workdir_walk_up(struct walk *w)
{
	char *slash = strrchr(w->done, '/');

	if (slash == NULL)
		return CL_DENIED;
	*slash = '\0';
	return workdir_walk_done(w);
}

static int
workdir_walk_link(struct walk *w, const char *name)
{
	char target[MAX_PATH_LEN + 1], rest[sizeof(w->pending)];
	const char *below = target;
	ssize_t n;
	int len;

	n = readlinkat(w->fd, name, target, MAX_PATH_LEN);
	if (n <= 0)
		return CL_EXISTS;	/* no link, no directory */
	target[n] = '\0';
	if (n == MAX_PATH_LEN)
		return CL_TOOBIG;
	if (++w->nlinks > MAX_SYMLINKS)
		return CL_LIMIT;
	if (*target == '/') {
		if ((below = workdir_find_below(w->root, target)) == NULL)
			return CL_DENIED;
		*w->done = '\0';
		if (workdir_walk_done(w) != 0)
			return CL_SYSTEM;
	}
	strlcpy(rest, w->pending, sizeof(rest));
	len = snprintf(w->pending, sizeof(w->pending), "%s/%s", below, rest);
	return len < 0 || (size_t)len >= sizeof(w->pending) ? CL_TOOBIG :
	    CL_OK;
}

static int
workdir_make_component(struct walk *w, const char *name)
{
	int fd;

	if (mkdirat(w->fd, name, 0700) == -1 && errno != EEXIST)
		return -1;
	fd = openat(w->fd, name, WORKDIR_OPEN);
	/* On the descriptor: what we just made, or what was put in its place
	 * below a root that is the workloads' anyway. */
	if (fd != -1 && w->root->uid != (uid_t)-1 && fchownat(fd, "",
	    w->root->uid, w->root->gid, AT_EMPTY_PATH) == -1) {
		close(fd);
		return -1;
	}
	return fd;
}

static int
workdir_walk_component(struct walk *w, const char *name)
{
	size_t n = strlen(w->done), len = strlen(name);
	int fd;

	if (strcmp(name, ".") == 0)
		return CL_OK;
	if (strcmp(name, "..") == 0)
		return workdir_walk_up(w);
	if (n == 0 && strncmp(name, WORKDIR_RESERVED,
	    strlen(WORKDIR_RESERVED)) == 0)
		return CL_DENIED;
	if (len + 1 > MAX_PATH_LEN - n)
		return CL_TOOBIG;
	fd = openat(w->fd, name, WORKDIR_OPEN);
	if (fd == -1 && errno == ENOENT)
		fd = workdir_make_component(w, name);
	if (fd == -1) {
		if (errno == ENOTDIR || errno == ELOOP)
			return workdir_walk_link(w, name);
		return CL_SYSTEM;
	}
	workdir_set_fd(w, fd);
	w->done[n] = '/';
	memcpy(w->done + n + 1, name, len + 1);
	return CL_OK;
}

static int
workdir_walk(struct walk *w)
{
	char name[NAME_MAX + 1];
	int r;

	while ((r = workdir_get_component(w, name)) == 1)
		if ((r = workdir_walk_component(w, name)) != 0)
			return r;
	return r;
}

/* The path below the root as written, into clean[]. */
static int
workdir_clean_below(const struct workdir_root *root, const char *work_dir,
    char clean[MAX_PATH_LEN + 1], const char **belowp)
{
	char path[2 * MAX_PATH_LEN + 2];
	int n, r;

	if (work_dir == NULL)
		work_dir = "";
	n = snprintf(path, sizeof(path), "%s%s%s",
	    *work_dir == '/' ? "" : root->path, *work_dir == '/' ? "" : "/",
	    work_dir);
	if (n < 0 || (size_t)n >= sizeof(path))
		return CL_TOOBIG;
	if ((r = workdir_clean_path(path, clean)) != 0)
		return r;
	*belowp = workdir_find_below(root, clean);
	return *belowp == NULL ? CL_DENIED : CL_OK;
}

int
workdir_check(const struct workdir_root *root, const char *work_dir)
{
	char clean[MAX_PATH_LEN + 1];
	const char *below;
	int r;

	if ((r = workdir_clean_below(root, work_dir, clean, &below)) != 0)
		return r;
	below += *below == '/';
	return strncmp(below, WORKDIR_RESERVED,
	    strlen(WORKDIR_RESERVED)) == 0 ? CL_DENIED : CL_OK;
}

int
workdir_open(const struct workdir_root *root, const char *work_dir,
    struct workdir *wd)
{
	struct walk w;
	char clean[MAX_PATH_LEN + 1];
	const char *below;
	int r, n;

	memset(wd, 0, sizeof(*wd));
	wd->fd = -1;
	memset(&w, 0, sizeof(w));
	w.root = root;
	if ((r = workdir_clean_below(root, work_dir, clean, &below)) != 0)
		return r;
	strlcpy(w.pending, below, sizeof(w.pending));
	if ((w.fd = workdir_open_again(root->fd)) == -1)
		return CL_SYSTEM;
	if ((r = workdir_walk(&w)) == 0) {
		/* A readable one: the sandbox set-up lists and mounts it. */
		wd->fd = openat(w.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (wd->fd == -1)
			r = CL_SYSTEM;
	}
	n = errno;
	close(w.fd);
	errno = n;
	if (r != 0)
		return r;
	wd->is_root = *w.done == '\0';
	xasprintf(&wd->path, "%s%s", root->path, w.done);
	return CL_OK;
}

void
workdir_close(struct workdir *wd)
{
	if (wd->fd != -1)
		close(wd->fd);
	free(wd->path);
	memset(wd, 0, sizeof(*wd));
	wd->fd = -1;
}

/* Make NAME in the directory a real directory of mode 0700. */
static int
workdir_make_home(struct walk *w, const char *name)
{
	struct stat st;
	int fd, r;

	if (fstatat(w->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    !S_ISDIR(st.st_mode) && unlinkat(w->fd, name, 0) == -1)
		return CL_SYSTEM;
	if ((fd = workdir_make_component(w, name)) == -1)
		return errno == ENOTDIR ? CL_EXISTS : CL_SYSTEM;
	workdir_set_fd(w, fd);
	if ((fd = openat(w->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) == -1)
		return CL_SYSTEM;
	r = fchmod(fd, 0700) == -1 ? CL_SYSTEM : CL_OK;
	close(fd);
	return r;
}

int
workdir_open_home(const struct workdir_root *root, const struct workdir *wd,
    char **pathp)
{
	struct walk w;
	char name[NAME_MAX + 1];
	char *slash;
	int n, r;

	*pathp = NULL;
	if (wd->is_root)
		return CL_OK;
	memset(&w, 0, sizeof(w));
	w.root = root;
	strlcpy(w.done, wd->path + strlen(root->path), sizeof(w.done));
	slash = strrchr(w.done, '/');
	n = snprintf(name, sizeof(name), ".%s.home", slash + 1);
	if (n < 0 || (size_t)n >= sizeof(name)) {
		errno = ENAMETOOLONG;
		return CL_SYSTEM;
	}
	*slash = '\0';
	if ((w.fd = workdir_open_again(root->fd)) == -1)
		return CL_SYSTEM;
	if ((r = workdir_walk_done(&w)) == 0 &&
	    (r = workdir_make_home(&w, name)) == 0)
		xasprintf(pathp, "%s%s/%s", root->path, w.done, name);
	close(w.fd);
	return r;
}
