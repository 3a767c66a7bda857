/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * What a confined workload may reach in the file system, as Landlock rules:
 * its own directories fully, the system to read and execute, devices that
 * hold no state.  Runs in the workload's process before exec.  With a mount
 * namespace this is the second fence; without one it is the only one, and
 * a system path above something hidden is then not granted at all.
 */
#include "shim_int.h"

#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "sandbox/box/ns.h"
#include "sandbox/self/landlock.h"

static const struct shim_view_row {
	const char *path;
	unsigned int access;
} shim_view_rows[] = {
	{ "/usr", LL_READONLY },
	{ "/bin", LL_READONLY },
	{ "/sbin", LL_READONLY },
	{ "/lib", LL_READONLY },
	{ "/lib32", LL_READONLY },
	{ "/lib64", LL_READONLY },
	{ "/libx32", LL_READONLY },
	{ "/opt", LL_READONLY },
	{ "/nix", LL_READONLY },
	{ "/gnu", LL_READONLY },
	{ "/etc", LL_READONLY },
	/* what packages keep outside /usr and builds read */
	{ "/var/lib/dpkg", LL_READ },
	{ "/var/lib/gems", LL_READONLY },
	{ "/var/lib/ghc", LL_READ },
	{ "/var/lib/texmf", LL_READ },
	{ "/var/cache/fontconfig", LL_READ },
	/* name resolution */
	{ "/run/systemd/resolve", LL_READ },
	{ "/run/resolvconf", LL_READ },
	{ "/run/NetworkManager", LL_READ },
	{ "/run/connman", LL_READ },
	/* the kernel's own trees; writing is for /proc/self/... */
	{ "/proc", LL_READ | LL_WRITE },
	{ "/sys", LL_READ },
	/* devices without state, terminals of this workload */
	{ "/dev", LL_LIST },
	{ "/dev/null", LL_READ | LL_WRITE | LL_DEVICE },
	{ "/dev/zero", LL_READ | LL_WRITE | LL_DEVICE },
	{ "/dev/full", LL_READ | LL_WRITE | LL_DEVICE },
	{ "/dev/random", LL_READ | LL_WRITE | LL_DEVICE },
	{ "/dev/urandom", LL_READ | LL_WRITE | LL_DEVICE },
	{ "/dev/tty", LL_READ | LL_WRITE | LL_DEVICE },
	{ "/dev/ptmx", LL_READ | LL_WRITE | LL_DEVICE },
	{ "/dev/pts", LL_READ | LL_WRITE | LL_DEVICE },
	/* private where there is a mount namespace */
	{ "/dev/shm", LL_ALL },
	{ "/tmp", LL_ALL },
	{ "/var/tmp", LL_ALL },
};

/* What git, ld.so and a TLS client look at; no /tmp of others, no /proc. */
static const struct shim_view_row shim_view_narrow[] = {
	{ "/usr", LL_READONLY },
	{ "/bin", LL_READONLY },
	{ "/sbin", LL_READONLY },
	{ "/lib", LL_READONLY },
	{ "/lib32", LL_READONLY },
	{ "/lib64", LL_READONLY },
	{ "/nix", LL_READONLY },
	{ "/gnu", LL_READONLY },
	{ "/etc/ld.so.cache", LL_READ },
	{ "/etc/ld.so.preload", LL_READ },
	{ "/etc/alternatives", LL_READONLY },
	{ "/etc/resolv.conf", LL_READ },
	{ "/etc/hosts", LL_READ },
	{ "/etc/host.conf", LL_READ },
	{ "/etc/nsswitch.conf", LL_READ },
	{ "/etc/gai.conf", LL_READ },
	{ "/etc/services", LL_READ },
	{ "/etc/localtime", LL_READ },
	{ "/etc/passwd", LL_READ },
	{ "/etc/group", LL_READ },
	{ "/etc/ssl", LL_READ },
	{ "/etc/pki", LL_READ },
	{ "/etc/ca-certificates", LL_READ },
	{ "/etc/gnutls", LL_READ },
	{ "/run/systemd/resolve", LL_READ },
	{ "/run/resolvconf", LL_READ },
	{ "/run/NetworkManager", LL_READ },
	{ "/run/connman", LL_READ },
	{ "/dev/null", LL_READ | LL_WRITE | LL_DEVICE },
	{ "/dev/random", LL_READ },
	{ "/dev/urandom", LL_READ },
	{ "/tmp", LL_ALL },	/* its own, where there is a mount namespace */
#ifdef CLOOP_SANITIZE
	{ "/proc", LL_READ },	/* where its stack is: else it warns, loudly */
#endif
};

static int
shim_view_is_above(const char *dir, const char *path)
{
	size_t len = strlen(dir);

	return path != NULL && strncmp(path, dir, len) == 0 &&
	    (path[len] == '/' || path[len] == '\0');
}

/* Something hidden, or other trees, lie below this path. */
static int
shim_view_is_shared(const struct shim_job *j, const char *path)
{
	size_t i;

	for (i = 0; i < j->hide.n; i++)
		if (shim_view_is_above(path, j->hide.v[i]))
			return 1;
	return shim_view_is_above(path, j->work_root);
}

static int
shim_view_add_list(struct landlock *l, const struct shim_list *list,
    unsigned int access)
{
	size_t i;
	int r;

	for (i = 0; i < list->n; i++)
		if ((r = landlock_add_path(l, list->v[i], access)) != CL_OK)
			return r;
	return CL_OK;
}

int
shim_view_start_landlock(const struct shim_job *j, const struct ns_view *v,
    int tree_fd)
{
	const struct shim_view_row *row, *rows = shim_view_rows;
	size_t i, nrows = sizeof(shim_view_rows) / sizeof(*shim_view_rows);
	struct landlock *l;
	int r;

	if ((j->flags & SHIM_F_NARROW) != 0) {
		rows = shim_view_narrow;
		nrows = sizeof(shim_view_narrow) / sizeof(*shim_view_narrow);
	}
	if ((r = landlock_new(LL_NO_ABSTRACT | LL_NO_SIGNAL, &l)) != CL_OK)
		return r;
	for (i = 0; i < nrows; i++) {
		row = &rows[i];
		if (v == NULL && shim_view_is_shared(j, row->path))
			continue;
		if ((r = landlock_add_path(l, row->path, row->access)) !=
		    CL_OK)
			goto out;
	}
	if ((r = landlock_add_fd(l, tree_fd, LL_ALL)) != CL_OK)
		goto out;
	if (j->home != NULL && j->home[0] != '\0' &&
	    (r = landlock_add_path(l, j->home, LL_ALL)) != CL_OK)
		goto out;
	if ((r = shim_view_add_list(l, &j->writable, LL_ALL)) != CL_OK ||
	    (r = shim_view_add_list(l, &j->readable, LL_READONLY)) != CL_OK)
		goto out;
	r = landlock_start(l);
out:
	landlock_free(l);
	return r;
}
