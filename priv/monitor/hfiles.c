/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Handle files, opened by the monitor (root) below its own 0700 directory.
 * A name from the wire never becomes a file name: paths are made of the hex
 * of the id's bytes.
 */
#include "hfiles.h"

#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/crash.h"
#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/util.h"

#define HEX_MAX (2 * MAX_ID_LEN + 1)
#define HPATH_MAX (MAX_PATH_LEN + HEX_MAX + 32)

static const char *const hfiles_names[] = {
	[HFILES_LOG] = "/log", [HFILES_INDEX] = "/log.idx",
	[HFILES_PART] = "/bundle.part", [HFILES_BUNDLE] = "/bundle",
	[HFILES_PROJECT] = "/project",
};

/* STATE/hub/handles/HEX + tail */
static int
hfiles_format(const char *state_dir, const char *handle_id, const char *tail,
    char dst[HPATH_MAX])
{
	char hex[HEX_MAX];
	int n, r;

	if ((r = util_format_id_path(handle_id, hex, sizeof(hex))) != CL_OK)
		return r;
	n = snprintf(dst, HPATH_MAX, "%s/hub/handles/%s%s", state_dir, hex,
	    tail);
	return n < 0 || n >= HPATH_MAX ? CL_TOOBIG : CL_OK;
}

static int
hfiles_make_one(const char *state_dir, const char *handle_id,
    enum hfiles_which which)
{
	char path[HPATH_MAX];
	int fd, r;

	if ((r = hfiles_format(state_dir, handle_id, hfiles_names[which],
	    path)) != CL_OK)
		return r;
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC |
	    O_NOFOLLOW, 0600);
	if (fd == -1)
		return CL_SYSTEM;
	close(fd);
	return CL_OK;
}

int
hfiles_make(const char *state_dir, const char *handle_id)
{
	char path[HPATH_MAX];
	int r, saved;

	if ((r = hfiles_format(state_dir, handle_id, "", path)) != CL_OK)
		return r;
	if (mkdir(path, 0700) == -1)
		return errno == EEXIST ? CL_EXISTS : CL_SYSTEM;
	if ((r = hfiles_make_one(state_dir, handle_id, HFILES_LOG)) == CL_OK)
		r = hfiles_make_one(state_dir, handle_id, HFILES_INDEX);
	if (r != CL_OK) {
		saved = errno;
		(void)hfiles_del(state_dir, handle_id);
		errno = saved;
	}
	CRASH_POINT("dispatch.files");
	return r;
}

int
hfiles_open(const char *state_dir, const char *handle_id,
    enum hfiles_which which, int writable, int *fdp)
{
	char path[HPATH_MAX];
	struct stat st;
	int fd, r;

	*fdp = -1;
	if ((r = hfiles_format(state_dir, handle_id, hfiles_names[which],
	    path)) != CL_OK)
		return r;
	/* A log only grows; a bundle is written where its chunk belongs. */
	fd = open(path, (!writable ? O_RDONLY : which == HFILES_PART ?
	    O_RDWR : O_RDWR | O_APPEND) |
	    O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd == -1)
		return CL_SYSTEM;
	if (fstat(fd, &st) == -1 || !S_ISREG(st.st_mode)) {
		close(fd);
		return CL_FORMAT;
	}
	*fdp = fd;
	return CL_OK;
}

int
hfiles_create(const char *state_dir, const char *handle_id,
    enum hfiles_which which, int *fdp)
{
	char path[HPATH_MAX];
	int r;

	*fdp = -1;
	if ((r = hfiles_format(state_dir, handle_id, hfiles_names[which],
	    path)) != CL_OK)
		return r;
	if (unlink(path) == -1 && errno != ENOENT)
		return CL_SYSTEM;
	*fdp = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
	    0600);
	return *fdp == -1 ? CL_SYSTEM : CL_OK;
}

int
hfiles_rename(const char *state_dir, const char *handle_id,
    enum hfiles_which from, enum hfiles_which to)
{
	char old[HPATH_MAX], new[HPATH_MAX];
	int r;

	if ((r = hfiles_format(state_dir, handle_id, hfiles_names[from],
	    old)) != CL_OK || (r = hfiles_format(state_dir, handle_id,
	    hfiles_names[to], new)) != CL_OK)
		return r;
	return rename(old, new) == -1 ? CL_SYSTEM : CL_OK;
}

void
hfiles_unlink(const char *state_dir, const char *handle_id,
    enum hfiles_which which)
{
	char path[HPATH_MAX];

	if (hfiles_format(state_dir, handle_id, hfiles_names[which], path) ==
	    CL_OK)
		(void)unlink(path);
}

int
hfiles_renew(const char *state_dir, const char *handle_id)
{
	static const char *const bad[] = {
		[HFILES_LOG] = "/log.bad", [HFILES_INDEX] = "/log.idx.bad",
	};
	char path[HPATH_MAX], to[HPATH_MAX];
	size_t i;
	int r;

	if ((r = hfiles_format(state_dir, handle_id, "", path)) != CL_OK)
		return r;
	if (mkdir(path, 0700) == -1 && errno != EEXIST)
		return CL_SYSTEM;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if ((r = hfiles_format(state_dir, handle_id, hfiles_names[i],
		    path)) != CL_OK ||
		    (r = hfiles_format(state_dir, handle_id, bad[i], to)) !=
		    CL_OK)
			return r;
		if (rename(path, to) == -1 && errno != ENOENT)
			return CL_SYSTEM;
		if ((r = hfiles_make_one(state_dir, handle_id,
		    (enum hfiles_which)i)) != CL_OK)
			return r;
	}
	return CL_OK;
}

int
hfiles_stat(const char *state_dir, const char *handle_id,
    enum hfiles_which which, struct stat *st)
{
	char path[HPATH_MAX];
	int r;

	if ((r = hfiles_format(state_dir, handle_id, hfiles_names[which],
	    path)) != CL_OK)
		return r;
	if (lstat(path, st) == -1)
		return CL_SYSTEM;
	return S_ISREG(st->st_mode) ? CL_OK : CL_FORMAT;
}

uint64_t
hfiles_get_log_len(const char *state_dir, const char *handle_id)
{
	struct stat st;

	return hfiles_stat(state_dir, handle_id, HFILES_LOG, &st) == CL_OK ?
	    (uint64_t)st.st_size : 0;
}

/* Our directories hold plain files only. */
static int
hfiles_del_path(const char *path)
{
	struct dirent *e;
	DIR *d;

	if ((d = opendir(path)) == NULL)
		return errno == ENOENT ? CL_OK : CL_SYSTEM;
	while ((e = readdir(d)) != NULL) {
		if (strcmp(e->d_name, ".") != 0 &&
		    strcmp(e->d_name, "..") != 0)
			(void)unlinkat(dirfd(d), e->d_name, 0);
	}
	closedir(d);
	return rmdir(path) == -1 ? CL_SYSTEM : CL_OK;
}

int
hfiles_del(const char *state_dir, const char *handle_id)
{
	char path[HPATH_MAX];
	int r;

	if ((r = hfiles_format(state_dir, handle_id, "", path)) != CL_OK)
		return r;
	return hfiles_del_path(path);
}

/* The id a directory name stands for; CL_FORMAT when it is none of ours. */
static int
hfiles_parse_name(const char *name, char id[MAX_ID_LEN + 1])
{
	size_t len = strlen(name);

	if (len == 0 || len % 2 != 0 || len / 2 > MAX_ID_LEN ||
	    util_parse_hex(name, (uint8_t *)id, len / 2) != CL_OK)
		return CL_FORMAT;
	id[len / 2] = '\0';
	return util_is_id(id) ? CL_OK : CL_FORMAT;
}

int
hfiles_sweep(const char *state_dir, hfiles_fn *fn, void *arg)
{
	char path[MAX_PATH_LEN + 32], id[MAX_ID_LEN + 1];
	struct dirent *e;
	DIR *d;

	snprintf(path, sizeof(path), "%s/hub/handles", state_dir);
	if ((d = opendir(path)) == NULL)
		return CL_SYSTEM;
	while ((e = readdir(d)) != NULL)
		if (hfiles_parse_name(e->d_name, id) == CL_OK && !fn(id, arg))
			(void)hfiles_del(state_dir, id);
	closedir(d);
	return CL_OK;
}
