/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Key files.  Runs in cloop-keygen, in cloop-enroll while no monitor runs,
 * and in the monitor at start.  The directory is root's; every file is
 * opened first and judged by its descriptor, and a key that others can read
 * is refused, not warned about: whoever could read it may have done so.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include <bsd/stdlib.h>
#include <bsd/string.h>

#include "keyfile.h"
#include "common/base/b64.h"
#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/util.h"

#define KEYFILE_COMMENT "untrusted comment: cloop "

const char *
keyfile_find_purpose(const char *name)
{
	if (strcmp(name, KEYFILE_MAC) == 0)
		return "mac";
	if (strcmp(name, KEYFILE_KEK) == 0 ||
	    strcmp(name, KEYFILE_KEK_NEXT) == 0)
		return "kek";
	return NULL;
}

size_t
keyfile_format_raw(const char *purpose, const uint8_t key[KEYFILE_RAW_LEN],
    char *dst)
{
	char text[B64_LEN(KEYFILE_RAW_LEN) + 1];
	int n;

	b64_encode(key, KEYFILE_RAW_LEN, text);
	n = snprintf(dst, KEYFILE_RAW_MAX, KEYFILE_COMMENT "%s key\n%s\n",
	    purpose, text);
	explicit_bzero(text, sizeof(text));
	return n < 0 ? 0 : (size_t)n;
}

int
keyfile_parse_raw(const char *purpose, const char *text, size_t len,
    uint8_t key[KEYFILE_RAW_LEN])
{
	char again[KEYFILE_RAW_MAX];
	const char *nl;
	size_t n, key_len;
	int r = CL_FORMAT;

	if ((nl = memchr(text, '\n', len)) == NULL)
		return CL_FORMAT;
	nl++;
	n = len - (size_t)(nl - text);
	if (n != B64_LEN(KEYFILE_RAW_LEN) + 1 || nl[n - 1] != '\n' ||
	    b64_decode(nl, n - 1, key, KEYFILE_RAW_LEN, &key_len) != 0 ||
	    key_len != KEYFILE_RAW_LEN)
		goto out;
	/* One spelling only: it must be what we would write. */
	if (keyfile_format_raw(purpose, key, again) == len &&
	    memcmp(again, text, len) == 0)
		r = CL_OK;
	explicit_bzero(again, sizeof(again));
 out:
	if (r != CL_OK)
		explicit_bzero(key, KEYFILE_RAW_LEN);
	return r;
}

static int
keyfile_format_path(const char *dir, const char *name, char *dst,
    size_t dstlen)
{
	int n;

	if (dir == NULL)
		n = snprintf(dst, dstlen, "%s", name);
	else
		n = snprintf(dst, dstlen, "%s/%s", dir, name);
	return n < 0 || (size_t)n >= dstlen ? CL_TOOBIG : CL_OK;
}

static int
keyfile_load_flags(const char *dir, const char *name, int flags,
    struct secret *text, char *err, size_t errlen)
{
	char path[MAX_PATH_LEN];
	int error, fd, r;

	if ((r = keyfile_format_path(dir, name, path, sizeof(path))) != 0) {
		snprintf(err, errlen, "%s: path too long", name);
		return r;
	}
	if ((r = util_open_file(path, flags, &fd, NULL)) != 0) {
		error = errno;
		snprintf(err, errlen, "%s: %s", path, r == CL_DENIED ?
		    (flags & UTIL_OPEN_PRIVATE) != 0 ?
		    "must belong to root or you and be readable by nobody "
		    "else (mode 0600)" :
		    "must belong to root or you and be writable by nobody "
		    "else" : r == CL_FORMAT ? "not a regular file" :
		    cl_strerror(r));
		return r == CL_SYSTEM && error == ENOENT ? CL_NOTFOUND : r;
	}
	if ((r = secret_load_fd(text, fd, KEYFILE_MAX_LEN)) != 0)
		snprintf(err, errlen, "%s: %s", path, cl_strerror(r));
	close(fd);
	return r;
}

int
keyfile_load(const char *dir, const char *name, struct secret *text,
    char *err, size_t errlen)
{
	return keyfile_load_flags(dir, name, UTIL_OPEN_PRIVATE |
	    UTIL_OPEN_OWNED, text, err, errlen);
}

int
keyfile_load_public(const char *dir, const char *name, struct secret *text,
    char *err, size_t errlen)
{
	return keyfile_load_flags(dir, name, UTIL_OPEN_NOWRITE |
	    UTIL_OPEN_OWNED, text, err, errlen);
}

int
keyfile_load_raw(const char *dir, const char *name, struct secret *key,
    char *err, size_t errlen)
{
	struct secret text = SECRET_INIT;
	uint8_t raw[KEYFILE_RAW_LEN];
	const char *base = strrchr(name, '/'), *purpose;
	int r;

	if ((r = keyfile_load(dir, name, &text, err, errlen)) != 0)
		return r;
	purpose = keyfile_find_purpose(base == NULL ? name : base + 1);
	if (purpose == NULL || keyfile_parse_raw(purpose,
	    (const char *)text.data, text.len, raw) != 0) {
		snprintf(err, errlen, "%s%s%s: not a %s key of cloop-keygen",
		    dir == NULL ? "" : dir, dir == NULL ? "" : "/", name,
		    purpose == NULL ? "known" : purpose);
		r = CL_FORMAT;
	} else if ((r = secret_init(key, raw, sizeof(raw),
	    sizeof(raw))) != 0)
		snprintf(err, errlen, "%s: %s", name, cl_strerror(r));
	explicit_bzero(raw, sizeof(raw));
	secret_clear(&text);
	return r;
}

/* The directory part; "." when there is none. */
static int
keyfile_open_dir(const char *path, int *fdp)
{
	char dir[MAX_PATH_LEN];
	char *slash;

	if (strlcpy(dir, path, sizeof(dir)) >= sizeof(dir)) {
		errno = ENAMETOOLONG;
		return CL_SYSTEM;
	}
	if ((slash = strrchr(dir, '/')) == NULL)
		strlcpy(dir, ".", sizeof(dir));
	else if (slash == dir)
		dir[1] = '\0';
	else
		*slash = '\0';
	*fdp = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return *fdp == -1 ? CL_SYSTEM : CL_OK;
}

/* Write and sync the temporary file; returns its errno as CL_SYSTEM. */
static int
keyfile_save_tmp(int dir_fd, const char *tmp, mode_t mode, const void *data,
    size_t len)
{
	int error, fd;

	fd = openat(dir_fd, tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW |
	    O_CLOEXEC, 0600);
	if (fd == -1)
		return CL_SYSTEM;
	if (util_write_all(fd, data, len) != 0 || fchmod(fd, mode) == -1 ||
	    fsync(fd) == -1) {
		error = errno;
		close(fd);
		errno = error;
		return CL_SYSTEM;
	}
	return close(fd) == -1 ? CL_SYSTEM : CL_OK;
}

int
keyfile_save_new(const char *path, mode_t mode, const void *data, size_t len,
    char *err, size_t errlen)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash == NULL ? path : slash + 1;
	char tmp[64];
	int dir_fd = -1, made = 0, r;

	snprintf(tmp, sizeof(tmp), ".new.%ld.%08x", (long)getpid(),
	    arc4random());
	if ((r = keyfile_open_dir(path, &dir_fd)) != 0)
		goto out;
	made = 1;
	if ((r = keyfile_save_tmp(dir_fd, tmp, mode, data, len)) != 0)
		goto out;
	/* link, not rename: the kernel refuses to replace an old key. */
	if (linkat(dir_fd, tmp, dir_fd, name, 0) == -1) {
		r = errno == EEXIST ? CL_EXISTS : CL_SYSTEM;
		goto out;
	}
	r = unlinkat(dir_fd, tmp, 0) == -1 || fsync(dir_fd) == -1 ?
	    CL_SYSTEM : CL_OK;
	made = 0;
 out:
	if (r == CL_EXISTS)
		snprintf(err, errlen, "%s: already exists, not overwritten",
		    path);
	else if (r != CL_OK)
		snprintf(err, errlen, "%s: %s", path, cl_strerror(r));
	if (made)
		(void)unlinkat(dir_fd, tmp, 0);
	if (dir_fd != -1)
		close(dir_fd);
	return r;
}
