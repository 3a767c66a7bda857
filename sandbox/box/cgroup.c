/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The workload's cgroup; runs in cloop-shim (and in the agent's probe).  All
 * files are opened during set-up: afterwards only descriptors are used, so
 * that it works under the shim's own confinement.
 */
#include "cgroup.h"

#include <linux/sched.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#include <linux/magic.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/util.h"

#define CGROUP_ROOT "/sys/fs/cgroup"
#define CGROUP_PARENT "cloop"

/* /proc/self/cgroup is one line per v1 hierarchy: a few KiB at most. */
static int
cgroup_load_self(char *dst, size_t len)
{
	ssize_t n;
	int fd;

	if ((fd = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC)) == -1)
		return CL_NOTFOUND;
	n = read(fd, dst, len - 1);
	close(fd);
	if (n <= 0)
		return CL_NOTFOUND;
	dst[n] = '\0';
	return CL_OK;
}

int
cgroup_find_own(char dst[CGROUP_PATH_MAX], int *hybridp)
{
	char text[8192], *line, *end;
	struct statfs fs;
	int n;

	*hybridp = 0;
	if (cgroup_load_self(text, sizeof(text)) != CL_OK)
		return CL_NOTFOUND;
	if (strncmp(text, "0::", 3) == 0)
		line = text;
	else if ((line = strstr(text, "\n0::")) != NULL)
		line++;
	else
		return CL_NOTFOUND;
	line += 3;
	if ((end = strchr(line, '\n')) != NULL)
		*end = '\0';
	if (strcmp(line, "/") == 0)
		line = (char *)"";
	if (statfs(CGROUP_ROOT, &fs) == -1)
		return CL_NOTFOUND;
	*hybridp = fs.f_type != CGROUP2_SUPER_MAGIC;
	if (*hybridp && (statfs(CGROUP_ROOT "/unified", &fs) == -1 ||
	    fs.f_type != CGROUP2_SUPER_MAGIC))
		return CL_NOTFOUND;
	n = snprintf(dst, CGROUP_PATH_MAX, "%s%s%s", CGROUP_ROOT,
	    *hybridp ? "/unified" : "", line);
	return n < 0 || n >= CGROUP_PATH_MAX ? CL_TOOBIG : CL_OK;
}

void
cgroup_init(struct cgroup *c)
{
	memset(c, 0, sizeof(*c));
	c->parent_fd = c->dir_fd = c->kill_fd = c->events_fd = -1;
}

int
cgroup_is_open(const struct cgroup *c)
{
	return c->dir_fd != -1;
}

static void
cgroup_limit_pids(struct cgroup *c, unsigned int max_pids)
{
	char text[16];
	int fd, n;

	/* Exists only when the parent delegates the controller. */
	if ((fd = openat(c->dir_fd, "pids.max", O_WRONLY | O_CLOEXEC)) == -1)
		return;
	n = snprintf(text, sizeof(text), "%u", max_pids);
	c->has_pids = write(fd, text, (size_t)n) == n;
	close(fd);
}

/*
 * The group all leaves are in.  It is ours (mode 0755), so that a shim that
 * gave up its capabilities can still remove its leaf; the group above may
 * not even be writable for root.
 */
static int
cgroup_open_parent(const char *own, int make)
{
	int fd, own_fd, sub;

	if ((own_fd = open(own, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) == -1)
		return -1;
	if (make && mkdirat(own_fd, CGROUP_PARENT, 0755) == -1 &&
	    errno != EEXIST) {
		close(own_fd);
		return -1;
	}
	fd = openat(own_fd, CGROUP_PARENT,
	    O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	close(own_fd);
	if (fd == -1 || !make)
		return fd;
	/* No member of its own, so it may pass controllers on, where our
	 * group has them; most do not, and nothing depends on it. */
	sub = openat(fd, "cgroup.subtree_control", O_WRONLY | O_CLOEXEC);
	if (sub != -1) {
		(void)!write(sub, "+pids", 5);
		close(sub);
	}
	return fd;
}

static int
cgroup_make_leaf(struct cgroup *c, const char *own)
{
	int tries;

	(void)snprintf(c->name, sizeof(c->name), "w%ld-%lld",
	    (long)getpid(), (long long)util_wall_ns());
	/* Again when a sweep removed the empty parent in between. */
	for (tries = 0; tries < 3; tries++) {
		if ((c->parent_fd = cgroup_open_parent(own, 1)) == -1)
			return CL_UNSUPPORTED;
		if (mkdirat(c->parent_fd, c->name, 0755) == 0)
			return CL_OK;
		close(c->parent_fd);
		c->parent_fd = -1;
		if (errno != ENOENT && errno != ENODEV)
			break;
	}
	return CL_UNSUPPORTED;
}

int
cgroup_open(struct cgroup *c, unsigned int max_pids)
{
	char own[CGROUP_PATH_MAX];
	int hybrid, saved;

	cgroup_init(c);
	if (cgroup_find_own(own, &hybrid) != CL_OK ||
	    cgroup_make_leaf(c, own) != CL_OK) {
		cgroup_init(c);
		return CL_UNSUPPORTED;
	}
	c->dir_fd = openat(c->parent_fd, c->name,
	    O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (c->dir_fd != -1)
		c->events_fd = openat(c->dir_fd, "cgroup.events",
		    O_RDONLY | O_CLOEXEC);
	if (c->events_fd == -1) {
		saved = errno;
		cgroup_close(c);
		errno = saved;
		return CL_SYSTEM;
	}
	c->kill_fd = openat(c->dir_fd, "cgroup.kill", O_WRONLY | O_CLOEXEC);
	cgroup_limit_pids(c, max_pids);
	return CL_OK;
}

int
cgroup_can_enter(const struct cgroup *c)
{
	struct clone_args args = {
		.flags = CLONE_INTO_CGROUP,
		.exit_signal = SIGCHLD,
		.cgroup = (uint64_t)c->dir_fd,
	};
	int status;
	pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));

	if (pid == 0)
		_exit(0);
	if (pid == -1)	/* refused as a whole: cgroup_join may still do */
		return errno == ENOSYS || errno == EPERM;
	while (waitpid(pid, &status, 0) == -1 && errno == EINTR)
		;
	return 1;
}

int
cgroup_join(const struct cgroup *c)
{
	int fd, r;

	fd = openat(c->dir_fd, "cgroup.procs", O_WRONLY | O_CLOEXEC);
	if (fd == -1)
		return CL_SYSTEM;
	r = write(fd, "0", 1) == 1 ? CL_OK : CL_SYSTEM;
	close(fd);
	return r;
}

int
cgroup_kill(struct cgroup *c)
{
	if (c->kill_fd == -1)
		return CL_UNSUPPORTED;
	/* ENODEV: somebody removed the group, so it was empty. */
	if (pwrite(c->kill_fd, "1", 1, 0) == -1 && errno != ENODEV &&
	    errno != ENOENT)
		return CL_SYSTEM;
	return CL_OK;
}

int
cgroup_is_empty(struct cgroup *c)
{
	char text[256];
	ssize_t n;

	if (c->events_fd == -1)
		return 1;
	n = pread(c->events_fd, text, sizeof(text) - 1, 0);
	if (n <= 0)
		return n == -1 && (errno == ENODEV || errno == ENOENT);
	text[n] = '\0';
	return strstr(text, "populated 0") != NULL;
}

void
cgroup_close(struct cgroup *c)
{
	if (c->kill_fd != -1)
		close(c->kill_fd);
	if (c->events_fd != -1)
		close(c->events_fd);
	if (c->dir_fd != -1)
		close(c->dir_fd);
	if (c->parent_fd != -1) {
		/* EBUSY: the last of it is just going; agentd sweeps soon,
		 * and systemd at unit stop what stays. */
		if (c->name[0] != '\0')
			(void)unlinkat(c->parent_fd, c->name, AT_REMOVEDIR);
		close(c->parent_fd);
	}
	cgroup_init(c);
}

/*
 * The shim that made the leaf still lives.  An empty leaf may be one that it
 * is about to fill: other agents of this host sweep here too.  One that
 * nobody has waited for yet is over.
 */
static int
cgroup_is_used(const char *name)
{
	struct pollfd pfd = { .events = POLLIN };
	char *end;
	long pid = strtol(name + 1, &end, 10);
	int n;

	if (pid <= 0 || pid > INT_MAX || *end != '-')
		return 0;
	/* Not every kernel or filter has it: then kill says what it can. */
	if ((pfd.fd = pidfd_open((pid_t)pid, 0)) == -1)
		return errno != ESRCH &&
		    (kill((pid_t)pid, 0) == 0 || errno == EPERM);
	n = poll(&pfd, 1, 0);
	close(pfd.fd);
	return n == 0;
}

/* No process is in it: its shim begins or ends, or another one has the
 * shim's number by now.  Looked at again. */
static int
cgroup_is_vacant(int parent_fd, const char *name)
{
	char path[NAME_MAX + sizeof("/cgroup.procs")], byte;
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof(path), "%s/cgroup.procs", name);
	if ((fd = openat(parent_fd, path, O_RDONLY | O_CLOEXEC)) == -1)
		return 0;
	n = read(fd, &byte, 1);
	close(fd);
	return n == 0;
}

int
cgroup_sweep(void)
{
	int busy = 0;
	char own[CGROUP_PATH_MAX];
	struct dirent *de;
	int fd, hybrid;
	DIR *d;

	if (cgroup_find_own(own, &hybrid) != CL_OK ||
	    (fd = cgroup_open_parent(own, 0)) == -1)
		return 0;
	if ((d = fdopendir(fd)) == NULL) {
		close(fd);
		return 0;
	}
	/* The kernel refuses to remove one that has members. */
	while ((de = readdir(d)) != NULL) {
		if (de->d_name[0] != 'w')
			continue;
		if (cgroup_is_used(de->d_name))
			busy |= cgroup_is_vacant(dirfd(d), de->d_name);
		else if (unlinkat(dirfd(d), de->d_name, AT_REMOVEDIR) == -1 &&
		    errno == EBUSY)
			busy = 1;
	}
	closedir(d);
	if ((fd = open(own, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) == -1)
		return busy;
	(void)unlinkat(fd, CGROUP_PARENT, AT_REMOVEDIR);
	close(fd);
	return busy;
}
