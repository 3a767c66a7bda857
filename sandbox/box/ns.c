/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Namespaces of a workload; runs as root (or as root of a user namespace)
 * in the workload's process before it gives that up.  Paths come from the
 * agent's monitor.  What lies at them may be the workload's own doing, so
 * they are opened without following a last symbolic link, and the tree is
 * compared with the descriptor the monitor opened.
 */
#include "ns.h"

#include <linux/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/limits.h"

/* From sys/mount.h, which cannot be had together with linux/mount.h. */
int mount(const char *source, const char *target, const char *type,
    unsigned long flags, const void *data);
#define NS_MS_NOSUID 2UL
#define NS_MS_NODEV 4UL
#define NS_MS_NOEXEC 8UL
#define NS_MS_BIND 4096UL
#define NS_MS_REC 16384UL
#define NS_MS_SLAVE (1UL << 19)

/* An empty tmpfs over what must not be seen: directories only, for the mount
 * points of what is put back. */
#define NS_HIDE_OPTIONS "mode=0755,size=64k,nr_inodes=256"
#define NS_TMP_OPTIONS "mode=1777"

static const struct ns_cover {
	const char *path;
	const char *options;
	unsigned long flags;
	const char *reason;
} ns_covers[] = {
	{ "/tmp", NS_TMP_OPTIONS, NS_MS_NOSUID | NS_MS_NODEV,
	    "files of others" },
	{ "/var/tmp", NS_TMP_OPTIONS, NS_MS_NOSUID | NS_MS_NODEV,
	    "files of others" },
	{ "/dev/shm", NS_TMP_OPTIONS, NS_MS_NOSUID | NS_MS_NODEV,
	    "shared memory of others" },
	{ "/run", NS_HIDE_OPTIONS, NS_MS_NOSUID | NS_MS_NODEV,
	    "sockets: docker, D-Bus, ssh-agent, ours" },
	{ "/home", NS_HIDE_OPTIONS, NS_MS_NOSUID | NS_MS_NODEV,
	    "people's files" },
	{ "/root", NS_HIDE_OPTIONS, NS_MS_NOSUID | NS_MS_NODEV,
	    "people's files" },
};

/* For SHIM_F_NARROW: everything that is neither system nor its own. */
static const char *const ns_narrow_covers[] = {
	"/var", "/srv", "/mnt", "/media", "/opt", "/boot",
};

/* Below /run, but name resolution needs them. */
static const char *const ns_system_keeps[] = {
	"/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager",
	"/run/connman",
};

#define NELEM(a) (sizeof(a) / sizeof((a)[0]))

static int
ns_write_file(const char *path, const char *text)
{
	size_t len = strlen(text);
	ssize_t n;
	int fd;

	if ((fd = open(path, O_WRONLY | O_CLOEXEC)) == -1)
		return CL_SYSTEM;
	n = write(fd, text, len);
	close(fd);
	return n == (ssize_t)len ? CL_OK : CL_SYSTEM;
}

int
ns_enter_user(void)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	char text[64];

	if (unshare(CLONE_NEWUSER) == -1)
		return CL_UNSUPPORTED;
	/* The kernel demands the refusal of setgroups before it lets an
	 * unprivileged process write a gid map. */
	if (ns_write_file("/proc/self/setgroups", "deny") != CL_OK)
		return CL_SYSTEM;
	(void)snprintf(text, sizeof(text), "%u %u 1", uid, uid);
	if (ns_write_file("/proc/self/uid_map", text) != CL_OK)
		return CL_SYSTEM;
	(void)snprintf(text, sizeof(text), "%u %u 1", gid, gid);
	return ns_write_file("/proc/self/gid_map", text);
}

int
ns_set_identity(pid_t pid)
{
	static const char *const maps[] = { "uid_map", "gid_map" };
	char path[64];
	size_t i;
	int r;

	for (i = 0; i < NELEM(maps); i++) {
		(void)snprintf(path, sizeof(path), "/proc/%ld/%s", (long)pid,
		    maps[i]);
		if ((r = ns_write_file(path, "0 0 4294967295")) != CL_OK)
			return r;
	}
	return CL_OK;
}

int
ns_open_proc(void)
{
	int fs_fd, fd = -1, saved;

	fs_fd = (int)syscall(SYS_fsopen, "proc", FSOPEN_CLOEXEC);
	if (fs_fd == -1)
		return -1;
	if (syscall(SYS_fsconfig, fs_fd, FSCONFIG_CMD_CREATE, NULL, NULL,
	    0) == 0)
		fd = (int)syscall(SYS_fsmount, fs_fd, FSMOUNT_CLOEXEC,
		    MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	saved = errno;
	close(fs_fd);
	errno = saved;
	return fd;
}

/* A detached copy of what is mounted at the path, before it is covered. */
static int
ns_keep_add(struct ns_view *v, const char *path, int optional)
{
	struct ns_keep *k;
	size_t i;

	if (path == NULL || path[0] == '\0')
		return CL_OK;
	for (i = 0; i < v->nkeeps; i++)
		if (strcmp(v->keeps[i].path, path) == 0)
			return CL_OK;
	if (v->nkeeps >= NELEM(v->keeps))
		return CL_LIMIT;
	k = &v->keeps[v->nkeeps];
	k->path = path;
	k->optional = optional;
	k->fd = (int)syscall(SYS_open_tree, AT_FDCWD, path,
	    OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE |
	    AT_SYMLINK_NOFOLLOW);
	if (k->fd == -1) {
		v->step = path;
		return optional && errno != EMFILE ? CL_OK : CL_SYSTEM;
	}
	v->nkeeps++;
	return CL_OK;
}

static int
ns_keep_list(struct ns_view *v, const struct shim_list *l)
{
	size_t i;
	int r;

	for (i = 0; i < l->n; i++)
		if ((r = ns_keep_add(v, l->v[i], 1)) != CL_OK)
			return r;
	return CL_OK;
}

/*
 * Somebody may have exchanged the directory between the monitor's open and
 * ours: whatever is there now was not agreed to.
 */
static int
ns_check_tree(const struct ns_view *v, int fd)
{
	struct stat want, have;

	if (fstat(v->tree_fd, &want) == -1 || fstat(fd, &have) == -1)
		return CL_SYSTEM;
	return want.st_dev == have.st_dev && want.st_ino == have.st_ino &&
	    S_ISDIR(have.st_mode) ? CL_OK : CL_DENIED;
}

/* The tree first: keeps[0]. */
static int
ns_keep_all(struct ns_view *v)
{
	size_t i;
	int r;

	if ((r = ns_keep_add(v, v->job->tree, 0)) != CL_OK)
		return r;
	v->step = v->job->tree;
	if ((r = ns_check_tree(v, v->keeps[0].fd)) != CL_OK)
		return r;
	if ((r = ns_keep_add(v, v->job->home, 0)) != CL_OK ||
	    (r = ns_keep_list(v, &v->job->writable)) != CL_OK ||
	    (r = ns_keep_list(v, &v->job->readable)) != CL_OK)
		return r;
	for (i = 0; i < NELEM(ns_system_keeps); i++)
		if ((r = ns_keep_add(v, ns_system_keeps[i], 1)) != CL_OK)
			return r;
	return CL_OK;
}

/* Cover one path; what does not exist needs no cover. */
static int
ns_cover_path(struct ns_view *v, const char *path, const char *options,
    unsigned long flags)
{
	struct stat st;

	v->step = path;
	if (stat(path, &st) == -1)
		return errno == ENOENT || errno == ENOTDIR ? CL_OK :
		    CL_SYSTEM;
	if (!S_ISDIR(st.st_mode)) {
		if (mount("/dev/null", path, NULL, NS_MS_BIND, NULL) == -1)
			return CL_SYSTEM;
		return CL_OK;
	}
	if (v->ncovers >= NELEM(v->covers))
		return CL_LIMIT;
	if (mount("tmpfs", path, "tmpfs", flags, options) == -1 ||
	    stat(path, &st) == -1)
		return CL_SYSTEM;
	v->covers[v->ncovers++] = st.st_dev;
	return CL_OK;
}

static int
ns_is_below(const char *path, const char *dir)
{
	size_t len = strlen(dir);

	return strncmp(path, dir, len) == 0 &&
	    (path[len] == '/' || path[len] == '\0');
}

static int
ns_cover_all(struct ns_view *v)
{
	const struct shim_job *j = v->job;
	const unsigned long flags = NS_MS_NOSUID | NS_MS_NODEV | NS_MS_NOEXEC;
	size_t i;
	int r;

	for (i = 0; i < NELEM(ns_covers); i++) {
		if ((r = ns_cover_path(v, ns_covers[i].path,
		    ns_covers[i].options, ns_covers[i].flags)) != CL_OK)
			return r;
	}
	for (i = 0; (j->flags & SHIM_F_NARROW) != 0 &&
	    i < NELEM(ns_narrow_covers); i++) {
		if ((r = ns_cover_path(v, ns_narrow_covers[i],
		    NS_HIDE_OPTIONS, flags)) != CL_OK)
			return r;
	}
	/* Trees of others.  Where the work directory is the root itself there
	 * are no others. */
	if (j->work_root != NULL && j->work_root[0] != '\0' &&
	    strcmp(j->work_root, j->tree) != 0 && (r = ns_cover_path(v,
	    j->work_root, NS_HIDE_OPTIONS, flags)) != CL_OK)
		return r;
	for (i = 0; i < j->hide.n; i++) {
		if ((r = ns_cover_path(v, j->hide.v[i], NS_HIDE_OPTIONS,
		    flags)) != CL_OK)
			return r;
	}
	return CL_OK;
}

static int
ns_is_ours(const struct ns_view *v, const char *path)
{
	struct stat st;
	size_t i;

	if (lstat(path, &st) == -1)
		return 0;
	for (i = 0; i < v->ncovers; i++)
		if (v->covers[i] == st.st_dev)
			return 1;
	return 0;
}

/* One directory, below one of our covers only: nothing is ever made on the
 * real file system. */
static int
ns_make_dir(const struct ns_view *v, char *path)
{
	char *slash = strrchr(path, '/');
	struct stat st;
	int ours;

	if (lstat(path, &st) == 0)
		return S_ISDIR(st.st_mode) ? CL_OK : CL_DENIED;
	*slash = '\0';
	ours = ns_is_ours(v, slash == path ? "/" : path);
	*slash = '/';
	if (!ours) {
		errno = ENOENT;
		return CL_SYSTEM;
	}
	return mkdir(path, 0755) == -1 ? CL_SYSTEM : CL_OK;
}

static int
ns_make_point(const struct ns_view *v, const char *path)
{
	char part[MAX_PATH_LEN + 1], *slash;
	size_t len = strlen(path);
	int r;

	if (len >= sizeof(part))
		return CL_TOOBIG;
	memcpy(part, path, len + 1);
	for (slash = part;;) {
		slash = strchrnul(slash + 1, '/');
		if (*slash == '\0')
			return ns_make_dir(v, part);
		*slash = '\0';
		if ((r = ns_make_dir(v, part)) != CL_OK)
			return r;
		*slash = '/';
	}
}

/* Put back what was covered; what is still visible stays as it is. */
static int
ns_attach(struct ns_view *v, const struct ns_keep *k)
{
	struct stat have, want;
	int r;

	v->step = k->path;
	if (fstat(k->fd, &want) == -1)
		return CL_SYSTEM;
	if (stat(k->path, &have) == 0 && have.st_dev == want.st_dev &&
	    have.st_ino == want.st_ino)
		return CL_OK;
	if (!S_ISDIR(want.st_mode))
		return k->optional ? CL_OK : CL_DENIED;
	if ((r = ns_make_point(v, k->path)) != CL_OK)
		return r;
	if (syscall(SYS_move_mount, k->fd, "", AT_FDCWD, k->path,
	    MOVE_MOUNT_F_EMPTY_PATH) == -1)
		return CL_SYSTEM;
	return CL_OK;
}

/* Hidden things that lie inside what was put back are covered again. */
static int
ns_cover_inside(struct ns_view *v)
{
	const struct shim_job *j = v->job;
	size_t i, k;
	int r;

	for (i = 0; i < j->hide.n; i++) {
		for (k = 0; k < v->nkeeps; k++) {
			if (!ns_is_below(j->hide.v[i], v->keeps[k].path) ||
			    ns_is_ours(v, j->hide.v[i]) ||
			    strcmp(j->hide.v[i], j->tree) == 0)
				continue;
			if ((r = ns_cover_path(v, j->hide.v[i],
			    NS_HIDE_OPTIONS, NS_MS_NOSUID | NS_MS_NODEV |
			    NS_MS_NOEXEC)) != CL_OK)
				return r;
		}
	}
	return CL_OK;
}

/* Terminals of others stay theirs; a machine without devpts has none. */
static void
ns_mount_pts(void)
{
	if (mount("devpts", "/dev/pts", "devpts", NS_MS_NOSUID | NS_MS_NOEXEC,
	    "newinstance,ptmxmode=0666,mode=0620") == -1)
		return;
	(void)mount("/dev/pts/ptmx", "/dev/ptmx", NULL, NS_MS_BIND, NULL);
}

/* The shortest path first: a keep inside another is attached after it. */
static void
ns_keep_sort(struct ns_view *v)
{
	struct ns_keep k;
	size_t i, at;

	for (i = 1; i < v->nkeeps; i++) {
		k = v->keeps[i];
		for (at = i; at > 0 &&
		    strlen(v->keeps[at - 1].path) > strlen(k.path); at--)
			v->keeps[at] = v->keeps[at - 1];
		v->keeps[at] = k;
	}
}

static int
ns_build_view(struct ns_view *v)
{
	size_t i;
	int r;

	/* Mounts of the host still come and go in here, ours never leave. */
	if (mount(NULL, "/", NULL, NS_MS_SLAVE | NS_MS_REC, NULL) == -1)
		return CL_SYSTEM;
	if ((r = ns_keep_all(v)) != CL_OK || (r = ns_cover_all(v)) != CL_OK)
		return r;
	ns_keep_sort(v);
	for (i = 0; i < v->nkeeps; i++)
		if ((r = ns_attach(v, &v->keeps[i])) != CL_OK)
			return r;
	if ((r = ns_cover_inside(v)) != CL_OK)
		return r;
	ns_mount_pts();
	v->has_proc = mount("proc", "/proc", "proc", NS_MS_NOSUID |
	    NS_MS_NODEV | NS_MS_NOEXEC, NULL) == 0;
	v->step = v->job->tree;
	v->cwd_fd = open(v->job->tree, O_RDONLY | O_DIRECTORY | O_NOFOLLOW |
	    O_CLOEXEC);
	return v->cwd_fd == -1 ? CL_SYSTEM : ns_check_tree(v, v->cwd_fd);
}

int
ns_start_view(struct ns_view *v)
{
	size_t i;
	int r, saved;
	mode_t mask;

	v->cwd_fd = -1;
	v->nkeeps = v->ncovers = 0;
	v->has_proc = 0;
	v->step = "/";
	/* Mount points on the way to its tree are for walking through. */
	mask = umask(022);
	r = ns_build_view(v);
	saved = errno;
	(void)umask(mask);
	for (i = 0; i < v->nkeeps; i++)
		close(v->keeps[i].fd);
	errno = saved;
	return r;
}
