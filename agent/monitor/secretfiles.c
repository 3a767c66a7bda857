/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Making, filling and replacing secret files; in the device monitor, with
 * its privileges.  Names, modes and sizes come from the hub through the
 * fetcher and were checked in this process before (spec_check_siblings);
 * what lies in a directory is the workload's doing from the moment it runs.
 */
#include "secretfiles.h"

#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

#include <bsd/stdlib.h>
#include <bsd/string.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/rule.h"
#include "common/base/util.h"
#include "common/base/xmem.h"
#include "common/model/spec.h"

#define SECRETFILES_DEFAULT_MODE 0600

void
secretnote_add(struct secretnote *n, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/* Once for all files and workloads it is true of. */
	if (strstr(n->text, text) != NULL)
		return;
	if (*n->text != '\0')
		(void)strlcat(n->text, "; ", sizeof(n->text));
	(void)strlcat(n->text, text, sizeof(n->text));
}

void
secretset_init(struct secretset *s)
{
	field_init(&secretset_table, s);
	s->uid = s->gid = -1;
}

static void
secretfiles_unlock(struct secretdir *d)
{
	if (d->lock_fd != -1)
		close(d->lock_fd);
	d->lock_fd = -1;
}

void
secretset_clear(struct secretset *s)
{
	size_t i;

	for (i = 0; i < s->ndirs; i++)
		secretfiles_unlock(&s->dirs[i]);
	field_clear(&secretset_table, s);
}

/* .../cloop-lease-x, and nothing that leads elsewhere. */
static int
secretfiles_is_dir_path(const char *path)
{
	const char *slash;

	if (!rule_is_abs_path(path) || (slash = strrchr(path, '/')) == path)
		return 0;
	return strncmp(slash + 1, SECRETFILES_PREFIX,
	    strlen(SECRETFILES_PREFIX)) == 0 &&
	    slash[1 + strlen(SECRETFILES_PREFIX)] != '\0';
}

int
secretset_check(const struct secretset *s)
{
	const struct secretfile *f;
	size_t i;

	for (i = 0; i < s->ndirs; i++)
		if (!secretfiles_is_dir_path(s->dirs[i].path))
			return CL_FORMAT;
	for (i = 0; i < s->nfiles; i++) {
		f = &s->files[i];
		if (f->dir >= s->ndirs || rule_is_empty(f->name) ||
		    strchr(f->name, '/') != NULL ||
		    rule_is_one_of(f->name, ". ..") || (f->mode & 077) != 0)
			return CL_FORMAT;
	}
	return CL_OK;
}

/* -------------------------------------------------------------------- base */

static int
secretfiles_is_memory(const char *path)
{
	struct statfs fs;

	return statfs(path, &fs) == 0 && (fs.f_type == TMPFS_MAGIC ||
	    (unsigned long)fs.f_type == RAMFS_MAGIC);
}

/* Helpers of mode 0700 are run from there: noexec would break them. */
static int
secretfiles_is_usable(const char *path)
{
	struct statvfs vfs;

	return access(path, W_OK | X_OK) == 0 && statvfs(path, &vfs) == 0 &&
	    (vfs.f_flag & (ST_NOEXEC | ST_RDONLY)) == 0;
}

int
secretfiles_find_base(const char *runtime_dir, char **pathp,
    int *is_memoryp)
{
	const char *tmp = getenv("TMPDIR");
	struct stat st;
	char *own;

	*is_memoryp = 1;
	xasprintf(&own, "%s/lease", runtime_dir);
	/* Workloads without a mount namespace walk there: others need x. */
	if (secretfiles_is_memory(runtime_dir) &&
	    secretfiles_is_usable(runtime_dir) &&
	    stat(runtime_dir, &st) == 0 && (st.st_mode & S_IXOTH) != 0 &&
	    util_make_dirs(own, 0711, (uid_t)-1, (gid_t)-1) == 0) {
		*pathp = own;
		return CL_OK;
	}
	free(own);
	if (secretfiles_is_usable("/dev/shm")) {
		*pathp = xstrdup("/dev/shm");
		*is_memoryp = secretfiles_is_memory("/dev/shm");
		return CL_OK;
	}
	if (tmp == NULL || !rule_is_abs_path(tmp) ||
	    !secretfiles_is_usable(tmp))
		tmp = "/tmp";
	*pathp = xstrdup(tmp);
	*is_memoryp = secretfiles_is_memory(tmp);
	return secretfiles_is_usable(tmp) ? CL_OK : CL_SYSTEM;
}

/* ------------------------------------------------------------- directories */

/* Made by us, ours until it is handed over: nobody else can be in it yet. */
static int
secretfiles_make_dir(const char *base, struct secretset *s,
    const char *declared)
{
	struct secretdir *d = &s->dirs[s->ndirs];
	struct stat st;

	memset(d, 0, sizeof(*d));
	d->lock_fd = -1;
	d->declared = strdup(declared);
	xasprintf(&d->path, "%s/" SECRETFILES_PREFIX "XXXXXX", base);
	if (d->declared == NULL || mkdtemp(d->path) == NULL) {
		free(d->declared);
		free(d->path);
		d->declared = d->path = NULL;
		return CL_SYSTEM;
	}
	s->ndirs++;
	d->lock_fd = open(d->path,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (d->lock_fd == -1 || flock(d->lock_fd, LOCK_SH | LOCK_NB) == -1 ||
	    fstat(d->lock_fd, &st) == -1 ||
	    fchmod(d->lock_fd, 0700) == -1 ||
	    (s->uid != -1 && fchown(d->lock_fd, (uid_t)s->uid,
	    (gid_t)s->gid) == -1))
		return CL_SYSTEM;
	d->ino = st.st_ino;
	return CL_OK;
}

static int
secretfiles_find_dir(const struct secretset *s, const char *declared,
    size_t *ip)
{
	for (*ip = 0; *ip < s->ndirs; ++*ip)
		if (s->dirs[*ip].declared != NULL &&
		    strcmp(s->dirs[*ip].declared, declared) == 0)
			return CL_OK;
	return CL_NOTFOUND;
}

char *
secretfiles_trim(const char *text)
{
	size_t len;
	const char *p = rule_trim(text == NULL ? "" : text, &len);

	return strndup(p, len);
}

static int
secretfiles_plan(const char *base, const struct spec_secret_file *f,
    struct secretset *s)
{
	struct secretfile *out = &s->files[s->nfiles];
	size_t dir;
	int r;

	if (secretfiles_find_dir(s, f->dir, &dir) != CL_OK) {
		if (s->ndirs == MAX_SECRET_DIRS)
			return CL_LIMIT;
		if ((r = secretfiles_make_dir(base, s, f->dir)) != CL_OK)
			return r;
	}
	out->dir = dir;
	out->mode = f->mode == 0 ? SECRETFILES_DEFAULT_MODE : f->mode;
	out->name = strdup(f->name);
	out->lease_id = secretfiles_trim(f->lease_id);
	out->grant_id = secretfiles_trim(f->grant_id);
	s->nfiles++;
	return out->name == NULL || out->lease_id == NULL ||
	    out->grant_id == NULL ? CL_NOMEM : CL_OK;
}

int
secretfiles_make_dirs(const char *base, const struct spec *spec, uid_t uid,
    gid_t gid, struct secretset *s)
{
	struct secretnote note = { "" };
	size_t i;
	int r = CL_OK, saved;

	secretset_init(s);
	if (spec->nsecret_files == 0)
		return CL_OK;
	if (spec->nsecret_files > MAX_VAULT_FILES)
		return CL_LIMIT;
	if (uid != (uid_t)-1) {
		s->uid = uid;
		s->gid = gid;
	}
	s->dirs = calloc(MAX_SECRET_DIRS, sizeof(*s->dirs));
	s->files = calloc(spec->nsecret_files, sizeof(*s->files));
	if (s->dirs == NULL || s->files == NULL)
		r = CL_NOMEM;
	for (i = 0; r == CL_OK && i < spec->nsecret_files; i++)
		r = secretfiles_plan(base, &spec->secret_files[i], s);
	if (r != CL_OK) {
		saved = errno;
		secretfiles_wipe(s, &note);
		secretset_clear(s);
		errno = saved;
	}
	return r;
}

/* ------------------------------------------------------------- relocation */

/* *textp, from offset `at` on, is D or begins with D/: put A there. */
static int
secretfiles_move(const struct secretset *s, char **textp, size_t at)
{
	const char *rest;
	size_t i, len;
	char *moved;

	if (*textp == NULL)
		return CL_OK;
	for (i = 0; i < s->ndirs; i++) {
		len = strlen(s->dirs[i].declared);
		if (strncmp(*textp + at, s->dirs[i].declared, len) != 0)
			continue;
		rest = *textp + at + len;
		if (*rest != '\0' && *rest != '/')
			continue;
		if (asprintf(&moved, "%.*s%s%s", (int)at, *textp,
		    s->dirs[i].path, rest) == -1)
			return CL_NOMEM;
		freezero(*textp, strlen(*textp));
		*textp = moved;
		return CL_OK;
	}
	return CL_OK;
}

int
secretfiles_relocate(const struct secretset *s, struct spec *spec)
{
	const char *eq;
	size_t i, k;
	int r = CL_OK;

	for (i = 0; r == CL_OK && i < spec->nenv; i++)
		if ((eq = strchr(spec->env[i], '=')) != NULL)
			r = secretfiles_move(s, &spec->env[i],
			    (size_t)(eq + 1 - spec->env[i]));
	for (i = 0; r == CL_OK && i < spec->nsecrets; i++) {
		r = secretfiles_move(s, &spec->secrets[i].dir, 0);
		for (k = 0; r == CL_OK && k < spec->secrets[i].nfiles; k++)
			r = secretfiles_move(s, &spec->secrets[i].files[k],
			    0);
	}
	return r;
}

/* ----------------------------------------------------------------- writing */

/* The directory as it was made; CL_NOTFOUND when something else is there. */
int
secretfiles_open_dir(const struct secretset *s, size_t dir, int *fdp)
{
	const struct secretdir *d = &s->dirs[dir];
	struct stat st;

	*fdp = -1;
	if (d->is_gone)
		return CL_NOTFOUND;
	*fdp = open(d->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (*fdp == -1)
		return errno == ENOENT ? CL_NOTFOUND : CL_SYSTEM;
	/* After a reboot, or where somebody else may make names: not ours. */
	if (fstat(*fdp, &st) == -1 || (d->ino != 0 && st.st_ino != d->ino)) {
		close(*fdp);
		*fdp = -1;
		return CL_NOTFOUND;
	}
	return CL_OK;
}

/* A new file under `name`, never an existing one; final owner and mode
 * before its first byte (BC-54). */
static int
secretfiles_write(const struct secretset *s, int dir_fd, const char *name,
    mode_t mode, const struct secret *content, uint64_t *inop)
{
	struct stat st;
	int fd, r = CL_OK, saved;

	fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW |
	    O_CLOEXEC, 0600);
	if (fd == -1)
		return CL_SYSTEM;
	if ((s->uid != -1 && fchown(fd, (uid_t)s->uid,
	    (gid_t)s->gid) == -1) || fchmod(fd, mode) == -1 ||
	    util_write_all(fd, content->data, content->len) != CL_OK ||
	    fsync(fd) == -1 || fstat(fd, &st) == -1)
		r = CL_SYSTEM;
	else
		*inop = st.st_ino;
	saved = errno;
	if (r != CL_OK) {
		(void)!ftruncate(fd, 0);
		(void)unlinkat(dir_fd, name, 0);
	}
	close(fd);
	errno = saved;
	return r;
}

int
secretfiles_place(struct secretset *s, const struct spec *spec)
{
	struct secretfile *f;
	size_t i;
	int fd, r = CL_OK, saved;

	if (s->nfiles != spec->nsecret_files)
		return CL_INTERNAL;
	for (i = 0; r == CL_OK && i < s->nfiles; i++) {
		f = &s->files[i];
		if ((r = secretfiles_open_dir(s, f->dir, &fd)) != CL_OK)
			return r;
		r = secretfiles_write(s, fd, f->name, (mode_t)f->mode,
		    &spec->secret_files[i].content, &f->ino);
		saved = errno;
		close(fd);
		errno = saved;
	}
	return r;
}

/* Is the name still the file we placed?  A link to it counts as another. */
int
secretfiles_is_placed(const struct secretset *s, size_t file, int dir_fd,
    struct stat *st)
{
	const struct secretfile *f = &s->files[file];

	return !f->is_gone && f->ino != 0 &&
	    fstatat(dir_fd, f->name, st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISREG(st->st_mode) && st->st_ino == f->ino;
}

int
secretfiles_replace(struct secretset *s, size_t file,
    const struct secret *content)
{
	struct secretfile *f = &s->files[file];
	char tmp[64];
	struct stat st;
	uint64_t ino;
	int fd, r, saved;

	if ((r = secretfiles_open_dir(s, f->dir, &fd)) != CL_OK)
		return r;
	(void)snprintf(tmp, sizeof(tmp), ".cloop-%08x%08x", arc4random(),
	    arc4random());
	if (!secretfiles_is_placed(s, file, fd, &st))
		r = CL_NOTFOUND;
	else if ((r = secretfiles_write(s, fd, tmp, (mode_t)f->mode, content,
	    &ino)) == CL_OK) {
		/* The old inode stays as it is: a reader may hold it. */
		if (renameat(fd, tmp, fd, f->name) == -1) {
			r = CL_SYSTEM;
			saved = errno;
			(void)unlinkat(fd, tmp, 0);
			errno = saved;
		} else
			f->ino = ino;
	}
	saved = errno;
	close(fd);
	errno = saved;
	return r;
}
