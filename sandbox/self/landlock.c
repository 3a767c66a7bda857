/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Landlock system calls behind four functions; runs in our children and in
 * a workload's process before exec.  The constants of newer ABIs are ours:
 * Debian 12's headers know ABI 2, its backports kernels more, and what a
 * kernel does not know is masked out by the ABI it reports.
 */
#include "landlock.h"

#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/err.h"

#define LL_FS_TRUNCATE (1ULL << 14)	/* ABI 3 */
#define LL_FS_IOCTL_DEV (1ULL << 15)	/* ABI 5 */
#define LL_NET_BIND_TCP (1ULL << 0)	/* ABI 4 */
#define LL_NET_CONNECT_TCP (1ULL << 1)
#define LL_SCOPE_ABSTRACT (1ULL << 0)	/* ABI 6 */
#define LL_SCOPE_SIGNAL (1ULL << 1)

#define LL_RULE_PORT 2			/* ABI 4 */

struct landlock_port_attr {
	uint64_t access;
	uint64_t port;
};

/* struct landlock_ruleset_attr as of ABI 6. */
struct landlock_attr {
	uint64_t fs;
	uint64_t net;
	uint64_t scoped;
};

struct landlock {
	int fd;
	uint64_t fs;		/* handled rights */
	uint64_t net;
};

/* Our bits to the kernel's; `file` is what applies to a non-directory. */
static const struct landlock_right {
	unsigned int access;
	uint64_t dir;
	uint64_t file;
} landlock_rights[] = {
	{ LL_READ, LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR,
	    LANDLOCK_ACCESS_FS_READ_FILE },
	{ LL_EXEC, LANDLOCK_ACCESS_FS_EXECUTE, LANDLOCK_ACCESS_FS_EXECUTE },
	{ LL_WRITE, LANDLOCK_ACCESS_FS_WRITE_FILE | LL_FS_TRUNCATE,
	    LANDLOCK_ACCESS_FS_WRITE_FILE | LL_FS_TRUNCATE },
	{ LL_MAKE, LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
	    LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
	    LANDLOCK_ACCESS_FS_MAKE_SYM | LANDLOCK_ACCESS_FS_REFER, 0 },
	{ LL_REMOVE, LANDLOCK_ACCESS_FS_REMOVE_DIR |
	    LANDLOCK_ACCESS_FS_REMOVE_FILE, 0 },
	{ LL_DEVICE, LL_FS_IOCTL_DEV, LL_FS_IOCTL_DEV },
	{ LL_LIST, LANDLOCK_ACCESS_FS_READ_DIR, 0 },
};

int
landlock_get_abi(void)
{
	long v;

	v = syscall(SYS_landlock_create_ruleset, NULL, 0,
	    LANDLOCK_CREATE_RULESET_VERSION);
	return v > 0 ? (int)v : 0;
}

/* Every right this ABI knows: what no rule grants is denied. */
static uint64_t
landlock_handled(int abi)
{
	uint64_t fs = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;	/* ABI 1 */

	if (abi >= 2)
		fs |= LANDLOCK_ACCESS_FS_REFER;
	if (abi >= 3)
		fs |= LL_FS_TRUNCATE;
	if (abi >= 5)
		fs |= LL_FS_IOCTL_DEV;
	return fs;
}

int
landlock_new(unsigned int forbid, struct landlock **lp)
{
	struct landlock_attr attr = { 0 };
	struct landlock *l;
	size_t len = sizeof(attr.fs);
	int abi = landlock_get_abi();

	*lp = NULL;
	if (abi == 0)
		return CL_UNSUPPORTED;
	if ((forbid & LL_ANY_FILE) == 0)
		attr.fs = landlock_handled(abi);
	if (abi >= 4) {
		len = offsetof(struct landlock_attr, scoped);
		if ((forbid & LL_NO_TCP) != 0)
			attr.net = LL_NET_BIND_TCP | LL_NET_CONNECT_TCP;
	}
	if (abi >= 6) {
		len = sizeof(attr);
		if ((forbid & LL_NO_ABSTRACT) != 0)
			attr.scoped |= LL_SCOPE_ABSTRACT;
		if ((forbid & LL_NO_SIGNAL) != 0)
			attr.scoped |= LL_SCOPE_SIGNAL;
	}
	/* The kernel refuses what has no effect. */
	if (attr.fs == 0 && attr.net == 0 && attr.scoped == 0)
		return CL_UNSUPPORTED;
	if ((l = calloc(1, sizeof(*l))) == NULL)
		return CL_NOMEM;
	l->fs = attr.fs;
	l->net = attr.net;
	l->fd = (int)syscall(SYS_landlock_create_ruleset, &attr, len, 0);
	if (l->fd == -1) {
		free(l);
		return CL_SYSTEM;
	}
	*lp = l;
	return CL_OK;
}

void
landlock_free(struct landlock *l)
{
	if (l == NULL)
		return;
	close(l->fd);
	free(l);
}

int
landlock_add_fd(struct landlock *l, int fd, unsigned int access)
{
	struct landlock_path_beneath_attr rule = { 0 };
	struct stat st;
	size_t i;

	if (fstat(fd, &st) == -1)
		return CL_SYSTEM;
	for (i = 0; i < sizeof(landlock_rights) / sizeof(*landlock_rights);
	    i++) {
		if ((access & landlock_rights[i].access) == 0)
			continue;
		rule.allowed_access |= S_ISDIR(st.st_mode) ?
		    landlock_rights[i].dir : landlock_rights[i].file;
	}
	rule.allowed_access &= l->fs;
	rule.parent_fd = fd;
	if (rule.allowed_access == 0)
		return CL_OK;
	if (syscall(SYS_landlock_add_rule, l->fd, LANDLOCK_RULE_PATH_BENEATH,
	    &rule, 0) == -1)
		return CL_SYSTEM;
	return CL_OK;
}

int
landlock_add_path(struct landlock *l, const char *path, unsigned int access)
{
	int fd, r;

	if ((fd = open(path, O_PATH | O_CLOEXEC)) == -1)
		return errno == ENOENT || errno == EACCES || errno == ENOTDIR ?
		    CL_OK : CL_SYSTEM;
	r = landlock_add_fd(l, fd, access);
	close(fd);
	return r;
}

int
landlock_add_port(struct landlock *l, uint16_t port)
{
	struct landlock_port_attr rule = { LL_NET_CONNECT_TCP, port };

	if (l->net == 0)
		return CL_OK;
	if (syscall(SYS_landlock_add_rule, l->fd, LL_RULE_PORT, &rule, 0) ==
	    -1)
		return CL_SYSTEM;
	return CL_OK;
}

int
landlock_start(const struct landlock *l)
{
	if (syscall(SYS_landlock_restrict_self, l->fd, 0) == -1)
		return CL_SYSTEM;
	return CL_OK;
}
