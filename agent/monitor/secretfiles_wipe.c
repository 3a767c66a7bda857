/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Wiping secret files, in the device monitor.  The workload may have put
 * anything there, and may still be at it: links are removed and never
 * followed, only a regular file of the directory's owner with one name (or
 * one we placed) is overwritten.  Directories are emptied as well, or a copy
 * in one would outlive its lease: entered by descriptor, on the same file
 * system, to a fixed depth, without ever resolving a path.
 */
#include <sys/file.h>
#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/util.h"
#include "secretfiles.h"

#define WIPE_BLOCK_LEN 65536
#define WIPE_MAX_DEPTH 16
#define WIPE_MAX_ROUNDS 8	/* somebody keeps making files */
#define WIPE_DIR (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* Writable, without following, and still the inode that was looked at. */
static int
wipe_open_file(int dir_fd, const char *name, const struct stat *want)
{
	const int flags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	struct stat st;
	int fd, again;

	fd = openat(dir_fd, name, O_WRONLY | flags);
	if (fd == -1 && errno == EACCES &&
	    (again = openat(dir_fd, name, O_RDONLY | flags)) != -1) {
		if (fstat(again, &st) == 0 && st.st_ino == want->st_ino &&
		    fchmod(again, st.st_mode | S_IWUSR) == 0)
			fd = openat(dir_fd, name, O_WRONLY | flags);
		close(again);
	}
	if (fd != -1 && (fstat(fd, &st) == -1 || !S_ISREG(st.st_mode) ||
	    st.st_ino != want->st_ino || st.st_dev != want->st_dev)) {
		close(fd);
		errno = ESTALE;
		return -1;
	}
	return fd;
}

static int
wipe_overwrite(int dir_fd, const char *name, const struct stat *want)
{
	static const char zero[WIPE_BLOCK_LEN];
	off_t left = want->st_size;
	int fd, r = CL_OK;
	size_t n;

	if ((fd = wipe_open_file(dir_fd, name, want)) == -1)
		return CL_SYSTEM;
	while (r == CL_OK && left > 0) {
		n = left < WIPE_BLOCK_LEN ? (size_t)left : WIPE_BLOCK_LEN;
		r = util_write_all(fd, zero, n);
		left -= (off_t)n;
	}
	if (r == CL_OK && fsync(fd) == -1)
		r = CL_SYSTEM;
	close(fd);
	return r;
}

/* Somebody's sparse giant is unlinked, not written in full. */
static int
wipe_is_small(const struct stat *st)
{
	return st->st_size <= 512 * (off_t)st->st_blocks + WIPE_BLOCK_LEN;
}

/* Anything but a directory.  Unlinked even when overwriting failed. */
static int
wipe_entry(int dir_fd, const char *name, const struct stat *st, int is_ours,
    struct secretnote *note)
{
	if (S_ISREG(st->st_mode) && (is_ours || st->st_nlink == 1) &&
	    wipe_is_small(st) && wipe_overwrite(dir_fd, name, st) != CL_OK &&
	    errno != ENOENT)
		secretnote_add(note, "overwriting a file: %s",
		    strerror(errno));
	if (unlinkat(dir_fd, name, 0) == -1 && errno != ENOENT) {
		secretnote_add(note, "removing a file: %s", strerror(errno));
		return CL_SYSTEM;
	}
	return CL_OK;
}

int
secretfiles_wipe_file(struct secretset *s, size_t file,
    struct secretnote *note)
{
	struct secretfile *f = &s->files[file];
	struct stat st;
	int fd, was = 0, ours;

	if (f->is_gone || f->ino == 0 ||
	    secretfiles_open_dir(s, f->dir, &fd) != CL_OK) {
		f->is_gone = 1;
		return 0;
	}
	ours = secretfiles_is_placed(s, file, fd, &st);
	if (fstatat(fd, f->name, &st, AT_SYMLINK_NOFOLLOW) == -1)
		f->is_gone = errno == ENOENT;
	else if (S_ISDIR(st.st_mode))	/* goes with its directory */
		secretnote_add(note, "a directory is in a file's place");
	else if (wipe_entry(fd, f->name, &st, ours, note) == CL_OK)
		was = f->is_gone = 1;
	close(fd);
	return was;
}

static void wipe_tree(int dir_fd, const struct stat *top, int depth,
    struct secretnote *note);

static void
wipe_subdir(int dir_fd, const char *name, const struct stat *top, int depth,
    struct secretnote *note)
{
	struct stat st;
	int fd;

	fd = openat(dir_fd, name, WIPE_DIR);
	if (fd == -1 && errno == EACCES &&
	    fchmodat(dir_fd, name, 0700, 0) == 0)
		fd = openat(dir_fd, name, WIPE_DIR);
	if (fd == -1)
		return;
	/* Never into something mounted there. */
	if (depth < WIPE_MAX_DEPTH && fstat(fd, &st) == 0 &&
	    st.st_dev == top->st_dev)
		wipe_tree(fd, top, depth + 1, note);
	close(fd);
	if (unlinkat(dir_fd, name, AT_REMOVEDIR) == -1 && errno != ENOENT)
		secretnote_add(note, "removing a directory: %s",
		    strerror(errno));
}

/* One pass over a directory; 1 when it was not empty. */
static int
wipe_pass(DIR *d, const struct stat *top, int depth,
    struct secretnote *note)
{
	struct dirent *e;
	struct stat st;
	int found = 0;

	rewinddir(d);
	while ((e = readdir(d)) != NULL) {
		if (strcmp(e->d_name, ".") == 0 ||
		    strcmp(e->d_name, "..") == 0 || fstatat(dirfd(d),
		    e->d_name, &st, AT_SYMLINK_NOFOLLOW) == -1)
			continue;
		found = 1;
		if (S_ISDIR(st.st_mode))
			wipe_subdir(dirfd(d), e->d_name, top, depth, note);
		else	/* another's file may have a name here: unlink only */
			(void)wipe_entry(dirfd(d), e->d_name, &st, 0, note);
	}
	return found;
}

static void
wipe_tree(int dir_fd, const struct stat *top, int depth,
    struct secretnote *note)
{
	DIR *d;
	int fd, i;

	if ((fd = openat(dir_fd, ".", WIPE_DIR)) == -1)
		return;
	if ((d = fdopendir(fd)) == NULL) {
		close(fd);
		return;
	}
	for (i = 0; i < WIPE_MAX_ROUNDS; i++)
		if (!wipe_pass(d, top, depth, note))
			break;
	closedir(d);
}

/* Content and directory; CL_SYSTEM when it is still there. */
static int
wipe_dir(const char *path, int fd, struct secretnote *note)
{
	struct stat st;
	int i;

	/* Its owner may have locked himself out; not us. */
	if (fstat(fd, &st) == -1 || ((st.st_mode & 0700) != 0700 &&
	    fchmod(fd, 0700) == -1))
		return CL_SYSTEM;
	for (i = 0; i < WIPE_MAX_ROUNDS; i++) {
		wipe_tree(fd, &st, 0, note);
		if (rmdir(path) == 0 || errno == ENOENT)
			return CL_OK;
		if (errno != ENOTEMPTY && errno != EEXIST)
			break;
	}
	secretnote_add(note, "removing the lease directory: %s",
	    strerror(errno));
	return CL_SYSTEM;
}

void
secretfiles_wipe_dir(struct secretset *s, size_t dir,
    struct secretnote *note)
{
	struct secretdir *d = &s->dirs[dir];
	size_t i;
	int fd, r;

	for (i = 0; i < s->nfiles; i++)
		if (s->files[i].dir == dir)
			(void)secretfiles_wipe_file(s, i, note);
	r = secretfiles_open_dir(s, dir, &fd);
	if (r == CL_OK) {
		r = wipe_dir(d->path, fd, note);
		close(fd);
	} else if (r == CL_SYSTEM)
		secretnote_add(note, "opening the lease directory: %s",
		    strerror(errno));
	if (r != CL_SYSTEM) {
		d->is_gone = 1;
		if (d->lock_fd != -1)
			close(d->lock_fd);
		d->lock_fd = -1;
	}
}

void
secretfiles_wipe(struct secretset *s, struct secretnote *note)
{
	size_t i;

	for (i = 0; i < s->ndirs; i++)
		if (!s->dirs[i].is_gone)
			secretfiles_wipe_dir(s, i, note);
}

/* ------------------------------------------------------------------- sweep */

/* Wipe one that nobody holds; 1 when it was. */
static int
wipe_stale(int base_fd, const char *base, const char *name, uid_t own,
    uid_t work, int64_t min_age_s, struct secretnote *note)
{
	char path[PATH_MAX];
	struct stat st;
	int fd, n, done = 0;

	fd = openat(base_fd, name, WIPE_DIR);
	if (fd == -1 || fstat(fd, &st) == -1)
		goto out;
	n = snprintf(path, sizeof(path), "%s/%s", base, name);
	if ((st.st_uid != own && st.st_uid != work) || n < 0 ||
	    (size_t)n >= sizeof(path) ||
	    (int64_t)time(NULL) - (int64_t)st.st_ctime < min_age_s ||
	    flock(fd, LOCK_EX | LOCK_NB) == -1)
		goto out;
	done = wipe_dir(path, fd, note) == CL_OK;
 out:
	if (fd != -1)
		close(fd);
	return done;
}

size_t
secretfiles_sweep(const char *base, uid_t own, uid_t work, int64_t min_age_s,
    struct secretnote *note)
{
	const size_t len = strlen(SECRETFILES_PREFIX);
	struct dirent *e;
	size_t n = 0;
	DIR *d;
	int fd;

	if ((fd = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) == -1)
		return 0;
	if ((d = fdopendir(fd)) == NULL) {
		close(fd);
		return 0;
	}
	while ((e = readdir(d)) != NULL)
		if (strncmp(e->d_name, SECRETFILES_PREFIX, len) == 0 &&
		    e->d_name[len] != '\0')
			n += (size_t)wipe_stale(fd, base, e->d_name, own,
			    work, min_age_s, note);
	closedir(d);
	return n;
}
