/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Clocks, files, memfds and ids, for every process.  A path is opened first
 * and judged by its descriptor, never the other way round; a memfd from
 * another process is only read once its seals prove that it cannot change.
 * Times: common/base/util_time.c.
 */
#include "util.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "b64.h"
#include "err.h"
#include "limits.h"

#define UTIL_SEALS (F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW)

static void
util_close(int fd)
{
	int saved = errno;

	if (fd != -1)
		close(fd);
	errno = saved;
}

int
util_open_file(const char *path, int flags, int *fdp, mode_t *modep)
{
	struct stat st;
	int fd, r = 0;

	*fdp = -1;
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK |
	    O_NOCTTY);
	if (fd == -1)
		return CL_SYSTEM;
	if (fstat(fd, &st) == -1)
		r = CL_SYSTEM;
	else if (!S_ISREG(st.st_mode))
		r = CL_FORMAT;
	else if (((flags & UTIL_OPEN_PRIVATE) && (st.st_mode & 077) != 0) ||
	    ((flags & UTIL_OPEN_NOWRITE) && (st.st_mode & 022) != 0) ||
	    ((flags & UTIL_OPEN_OWNED) && st.st_uid != 0 &&
	    st.st_uid != geteuid()))
		r = CL_DENIED;
	if (r != 0) {
		util_close(fd);
		return r;
	}
	if (modep != NULL)
		*modep = st.st_mode;
	*fdp = fd;
	return 0;
}

/* Read until the end or until len bytes are there. */
static int
util_read_all(int fd, uint8_t *data, size_t len, size_t *np)
{
	size_t off = 0;
	ssize_t n;

	while (off < len) {
		n = read(fd, data + off, len - off);
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			return CL_SYSTEM;
		if (n == 0)
			break;
		off += (size_t)n;
	}
	*np = off;
	return 0;
}

int
util_load_fd(int fd, size_t max, uint8_t **datap, size_t *lenp)
{
	uint8_t *data = NULL, *p;
	size_t cap = 0, len = 0, n;
	int r;

	*datap = NULL;
	*lenp = 0;
	if (max > SIZE_MAX / 2)
		return CL_TOOBIG;
	/* Grown by what comes: max may be far more than the file has. */
	do {
		cap = cap == 0 ? 4096 : cap * 2;
		if (cap > max + 1)
			cap = max + 1;
		if ((p = realloc(data, cap + 1)) == NULL) {
			free(data);
			return CL_NOMEM;
		}
		data = p;
		if ((r = util_read_all(fd, data + len, cap - len, &n)) != 0)
			goto fail;
		len += n;
	} while (len == cap && len <= max);
	if (len > max) {
		r = CL_TOOBIG;
		goto fail;
	}
	data[len] = '\0';
	*datap = data;
	*lenp = len;
	return 0;
fail:
	free(data);
	return r;
}

int
util_write_all(int fd, const void *data, size_t len)
{
	const uint8_t *p = data;
	ssize_t n;

	while (len > 0) {
		n = write(fd, p, len);
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			return CL_SYSTEM;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

/* The directory of path, opened; to sync a rename. */
static int
util_open_parent(const char *path)
{
	char dir[PATH_MAX];
	const char *slash = strrchr(path, '/');
	size_t len;

	if (slash == NULL)
		return open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	len = slash == path ? 1 : (size_t)(slash - path);
	if (len >= sizeof(dir)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(dir, path, len);
	dir[len] = '\0';
	return open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int
util_save_file(const char *path, mode_t mode, const void *data, size_t len)
{
	char tmp[PATH_MAX];
	int dir_fd, fd = -1, r = CL_SYSTEM, n, saved;

	n = snprintf(tmp, sizeof(tmp), "%s.tmp", path);
	if (n < 0 || (size_t)n >= sizeof(tmp)) {
		errno = ENAMETOOLONG;
		return CL_SYSTEM;
	}
	if ((dir_fd = util_open_parent(path)) == -1)
		return CL_SYSTEM;
	/* What a crash left behind is not ours to keep. */
	if (unlink(tmp) == -1 && errno != ENOENT)
		goto out;
	fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
	    0600);
	if (fd == -1)
		goto out;
	if (fchmod(fd, mode) == -1 || util_write_all(fd, data, len) != 0 ||
	    fsync(fd) == -1 || rename(tmp, path) == -1 ||
	    fsync(dir_fd) == -1) {
		saved = errno;
		unlink(tmp);
		errno = saved;
		goto out;
	}
	r = 0;
out:
	util_close(fd);
	util_close(dir_fd);
	return r;
}

/* Make one directory; mode is what it gets whatever the umask. */
static int
util_make_dir(const char *path, mode_t mode, uid_t uid, gid_t gid)
{
	struct stat st;
	int fd, r = CL_SYSTEM;

	if (mkdir(path, 0700) == -1) {
		if (errno != EEXIST)
			return CL_SYSTEM;
		if (stat(path, &st) == -1)
			return CL_SYSTEM;
		if (S_ISDIR(st.st_mode))
			return 0;
		errno = ENOTDIR;
		return CL_SYSTEM;
	}
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1)
		return CL_SYSTEM;
	if ((uid == (uid_t)-1 && gid == (gid_t)-1) ||
	    fchown(fd, uid, gid) == 0)
		if (fchmod(fd, mode) == 0)
			r = 0;
	util_close(fd);
	return r;
}

int
util_make_dirs(const char *path, mode_t mode, uid_t uid, gid_t gid)
{
	char part[PATH_MAX];
	size_t i, len = strlen(path);
	int r;

	if (len == 0 || len >= sizeof(part)) {
		errno = len == 0 ? ENOENT : ENAMETOOLONG;
		return CL_SYSTEM;
	}
	while (len > 1 && path[len - 1] == '/')
		len--;
	for (i = 1; i < len; i++) {
		if (path[i] != '/' || path[i - 1] == '/')
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		r = util_make_dir(part, 0755, (uid_t)-1, (gid_t)-1);
		if (r != 0)
			return r;
	}
	memcpy(part, path, len);
	part[len] = '\0';
	return util_make_dir(part, mode, uid, gid);
}

int
util_make_memfd(const void *data, size_t len, int *fdp)
{
	int fd, r;

	*fdp = -1;
	if ((fd = memfd_create("cloop", MFD_CLOEXEC | MFD_ALLOW_SEALING)) == -1)
		return CL_SYSTEM;
	r = util_write_all(fd, data, len);
	if (r == 0 && (lseek(fd, 0, SEEK_SET) == -1 ||
	    fcntl(fd, F_ADD_SEALS, UTIL_SEALS | F_SEAL_SEAL) == -1))
		r = CL_SYSTEM;
	if (r != 0) {
		util_close(fd);
		return r;
	}
	*fdp = fd;
	return 0;
}

int
util_load_memfd(int fd, size_t len, size_t max, uint8_t **datap)
{
	struct stat st;
	uint8_t *data;
	size_t off = 0;
	ssize_t n;
	int seals;

	*datap = NULL;
	if (len > max || len == SIZE_MAX)
		return CL_TOOBIG;
	/* Anything but a memfd fails here: EINVAL. */
	seals = fcntl(fd, F_GET_SEALS);
	if (seals == -1 || (seals & UTIL_SEALS) != UTIL_SEALS)
		return CL_DENIED;
	if (fstat(fd, &st) == -1)
		return CL_SYSTEM;
	if (st.st_size < 0 || (uint64_t)st.st_size != len)
		return CL_FORMAT;
	if ((data = calloc(1, len + 1)) == NULL)
		return CL_NOMEM;
	while (off < len) {
		n = pread(fd, data + off, len - off, (off_t)off);
		if (n == -1 && errno == EINTR)
			continue;
		if (n <= 0) {
			free(data);
			return n == 0 ? CL_FORMAT : CL_SYSTEM;
		}
		off += (size_t)n;
	}
	*datap = data;
	return 0;
}

void
util_format_hex(const void *data, size_t len, char *dst)
{
	static const char hex[] = "0123456789abcdef";
	const uint8_t *p = data;
	size_t i;

	for (i = 0; i < len; i++) {
		*dst++ = hex[p[i] >> 4];
		*dst++ = hex[p[i] & 15];
	}
	*dst = '\0';
}

static int
util_parse_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int
util_parse_hex(const char *text, uint8_t *dst, size_t len)
{
	size_t i;
	int hi, lo;

	for (i = 0; i < len; i++) {
		if ((hi = util_parse_hex_digit(text[2 * i])) < 0 ||
		    (lo = util_parse_hex_digit(text[2 * i + 1])) < 0)
			return CL_FORMAT;
		dst[i] = (uint8_t)(hi << 4 | lo);
	}
	return text[2 * len] == '\0' ? 0 : CL_FORMAT;
}

int
util_is_word(const char *text, const char *allowed)
{
	return *text != '\0' && text[strspn(text, allowed)] == '\0';
}

int
util_is_id(const char *text)
{
	size_t i;

	for (i = 0; text[i] != '\0'; i++)
		if (i == MAX_ID_LEN || (unsigned char)text[i] < 0x20 ||
		    text[i] == 0x7f)
			return 0;
	return i > 0;
}

int
util_format_id_path(const char *id, char *dst, size_t dstlen)
{
	size_t len = strlen(id);

	if (dstlen > 0)
		dst[0] = '\0';
	if (!util_is_id(id))
		return CL_FORMAT;
	/* Hex of the longest id is one byte too long for a file name. */
	if (2 * len > NAME_MAX) {
		if (B64_LEN(len) + 2 > dstlen)
			return CL_TOOBIG;
		dst[0] = '=';
		b64url_encode(id, len, dst + 1);
		return 0;
	}
	if (2 * len + 1 > dstlen)
		return CL_TOOBIG;
	util_format_hex(id, len, dst);
	return 0;
}

int
util_set_nonblock(int fd)
{
	int flags;

	if ((flags = fcntl(fd, F_GETFL)) == -1)
		return CL_SYSTEM;
	if ((flags & O_NONBLOCK) != 0)
		return 0;
	return fcntl(fd, F_SETFL, flags | O_NONBLOCK) == -1 ? CL_SYSTEM : 0;
}

void
util_set_probes(int fd)
{
	int on = 1, idle = LINK_PROBE_S, every = LINK_PROBE_EVERY_S;
	int dead = LINK_DEAD_MS;

	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every,
	    sizeof(every));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &dead,
	    sizeof(dead));
}

int
util_notify(const char *state)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	const char *path = getenv("NOTIFY_SOCKET");
	socklen_t sunlen;
	size_t len;
	ssize_t n;
	int fd;

	if (path == NULL || *path == '\0')
		return 0;
	len = strlen(path);
	if ((path[0] != '/' && path[0] != '@') || len >= sizeof(sun.sun_path)) {
		errno = EINVAL;
		return CL_SYSTEM;
	}
	memcpy(sun.sun_path, path, len);
	if (path[0] == '@')
		sun.sun_path[0] = '\0';		/* the abstract name space */
	sunlen = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd == -1)
		return CL_SYSTEM;
	n = sendto(fd, state, strlen(state), MSG_NOSIGNAL,
	    (struct sockaddr *)&sun, sunlen);
	util_close(fd);
	return n == -1 ? CL_SYSTEM : 0;
}
