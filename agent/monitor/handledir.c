/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Handle directories.  Runs in the device monitor; nobody else can write
 * here (0700), so what is read back was written by us, by an earlier build of
 * us, or by a disk that failed: it is checked as a message would be.  All of
 * it is done relative to held descriptors.  The record holds no secret: the
 * spec is not kept.
 */
#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/string.h>

#include "handledir.h"
#include "common/base/crash.h"
#include "common/base/err.h"
#include "common/base/util.h"
#include "common/base/xmem.h"
#include "common/msg/buf.h"

#define HANDLEDIR_OPEN (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define HANDLEDIR_META "meta"
#define HANDLEDIR_SPOOL "spool"
#define MAX_META_LEN 1024
#define HANDLEDIR_ID_MAX 100	/* longer ids: hex and slot, see the header */

int
handledir_open_base(const char *state_dir, int *fdp)
{
	char *path;
	int r;

	*fdp = -1;
	xasprintf(&path, "%s/handles", state_dir);
	r = util_make_dirs(path, 0700, (uid_t)-1, (gid_t)-1);
	if (r == 0 && (*fdp = open(path, HANDLEDIR_OPEN)) == -1)
		r = CL_SYSTEM;
	if (r == 0 && fchmod(*fdp, 0700) == -1) {
		close(*fdp);
		*fdp = -1;
		r = CL_SYSTEM;
	}
	free(path);
	return r;
}

static void
handledir_format_name(const char *handle_id, uint64_t slot, char *dst)
{
	size_t len = strlen(handle_id);

	if (len <= HANDLEDIR_ID_MAX) {
		util_format_hex(handle_id, len, dst);
		return;
	}
	util_format_hex(handle_id, HANDLEDIR_ID_MAX, dst);
	snprintf(dst + 2 * HANDLEDIR_ID_MAX, 18, "-%016llx",
	    (unsigned long long)slot);
}

/* Unlink every file in it; there are no directories. */
static int
handledir_empty(int dir_fd)
{
	struct dirent *e;
	DIR *d;
	int fd, r = CL_OK;

	if ((fd = openat(dir_fd, ".", HANDLEDIR_OPEN)) == -1)
		return CL_SYSTEM;
	if ((d = fdopendir(fd)) == NULL) {
		close(fd);
		return CL_SYSTEM;
	}
	while ((e = readdir(d)) != NULL)
		if (strcmp(e->d_name, ".") != 0 &&
		    strcmp(e->d_name, "..") != 0 &&
		    unlinkat(dir_fd, e->d_name, 0) == -1)
			r = CL_SYSTEM;
	closedir(d);
	return r;
}

int
handledir_make(int base_fd, const char *handle_id, uint64_t slot,
    struct handledir *d)
{
	int r;

	memset(d, 0, sizeof(*d));
	d->fd = -1;
	handledir_format_name(handle_id, slot, d->name);
	if (mkdirat(base_fd, d->name, 0700) == -1 && errno != EEXIST)
		return CL_SYSTEM;
	if ((r = handledir_open(base_fd, d->name, d)) != 0 ||
	    (r = handledir_empty(d->fd)) != 0)
		handledir_close(d);
	return r;
}

int
handledir_open(int base_fd, const char *name, struct handledir *d)
{
	char copy[NAME_MAX + 1];

	strlcpy(copy, name, sizeof(copy));
	memset(d, 0, sizeof(*d));
	strlcpy(d->name, copy, sizeof(d->name));
	d->fd = openat(base_fd, copy, HANDLEDIR_OPEN);
	return d->fd == -1 ? CL_SYSTEM : CL_OK;
}

void
handledir_close(struct handledir *d)
{
	if (d->fd != -1)
		close(d->fd);
	d->fd = -1;
}

int
handledir_remove(int base_fd, struct handledir *d)
{
	int r = CL_OK;

	if (d->fd != -1)
		r = handledir_empty(d->fd);
	CRASH_POINT("end.forgetting");
	handledir_close(d);
	if (*d->name != '\0' &&
	    unlinkat(base_fd, d->name, AT_REMOVEDIR) == -1 && errno != ENOENT)
		r = CL_SYSTEM;
	return r;
}

int
handledir_open_spool(const struct handledir *d, int flags, int *fdp)
{
	*fdp = openat(d->fd, HANDLEDIR_SPOOL,
	    flags | O_NOFOLLOW | O_CLOEXEC, 0600);
	return *fdp == -1 ? CL_SYSTEM : CL_OK;
}

static void
handledir_put_meta(struct buf *b, const struct handle_meta *m)
{
	buf_put_u32(b, HANDLEDIR_META_VERSION);
	buf_put_str(b, m->handle_id);
	buf_put_u64(b, m->slot);
	buf_put_i64(b, m->shim_pid);
	buf_put_u64(b, m->shim_ticks);
	buf_put_str(b, m->boot_id);
	buf_put_i64(b, m->created_at);
}

int
handledir_save_file(int dir_fd, const char *name, const struct buf *b)
{
	char tmp[NAME_MAX + 1];
	int fd, r, saved;

	if ((r = buf_error(b)) != CL_OK)
		return r;
	(void)snprintf(tmp, sizeof(tmp), "%s.tmp", name);
	(void)unlinkat(dir_fd, tmp, 0);
	fd = openat(dir_fd, tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW |
	    O_CLOEXEC, 0600);
	if (fd == -1)
		return CL_SYSTEM;
	if (util_write_all(fd, b->data, b->len) != CL_OK ||
	    renameat(dir_fd, tmp, dir_fd, name) == -1)
		r = CL_SYSTEM;
	saved = errno;
	close(fd);
	errno = saved;
	return r;
}

/* After a power cut the hub learns the loss from the first heartbeat in any
 * case. */
int
handledir_save_meta(const struct handledir *d, const struct handle_meta *m)
{
	struct buf b;
	int r;

	buf_init(&b, MAX_META_LEN);
	handledir_put_meta(&b, m);
	r = handledir_save_file(d->fd, HANDLEDIR_META, &b);
	buf_clear(&b);
	return r;
}

int
handledir_parse_meta(const void *p, size_t len, struct handle_meta *m)
{
	struct buf b;
	int r;

	memset(m, 0, sizeof(*m));
	buf_init_read(&b, p, len);
	if (buf_get_u32(&b) != HANDLEDIR_META_VERSION)
		return buf_error(&b) != 0 ? CL_FORMAT : CL_VERSION;
	buf_get_str(&b, m->handle_id, MAX_ID_LEN);
	m->slot = buf_get_u64(&b);
	m->shim_pid = buf_get_i64(&b);
	m->shim_ticks = buf_get_u64(&b);
	buf_get_str(&b, m->boot_id, KERN_BOOT_LEN);
	m->created_at = buf_get_i64(&b);
	if ((r = buf_end(&b)) != 0 || !util_is_id(m->handle_id) ||
	    m->slot == 0 || m->shim_pid < 0 || m->shim_pid > INT32_MAX) {
		memset(m, 0, sizeof(*m));
		return r == CL_NOMEM ? r : CL_FORMAT;
	}
	return CL_OK;
}

int
handledir_load_meta(const struct handledir *d, struct handle_meta *m)
{
	uint8_t data[MAX_META_LEN];
	ssize_t n;
	int fd;

	memset(m, 0, sizeof(*m));
	fd = openat(d->fd, HANDLEDIR_META,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd == -1)
		return errno == ENOENT ? CL_NOTFOUND : CL_SYSTEM;
	n = read(fd, data, sizeof(data));
	close(fd);
	if (n < 0)
		return CL_SYSTEM;
	return handledir_parse_meta(data, (size_t)n, m);
}
