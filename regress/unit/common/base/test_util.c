/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * common/base/util: safe opens, whole files, sealed memfds, ids, sd_notify.
 */
#include "regress/unit/unit.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/util.h"

static char dir[64], path[100], other[128];

static void
enter_dir(void)
{
	snprintf(dir, sizeof(dir), "/tmp/cloop-unit.XXXXXX");
	ASSERT_PTR_NE(mkdtemp(dir), NULL);
	snprintf(path, sizeof(path), "%s/file", dir);
	snprintf(other, sizeof(other), "%s/other", dir);
}

static void
leave_dir(void)
{
	unlink(path);
	unlink(other);
	ASSERT_INT_EQ(rmdir(dir), 0);
}

static int
open_mode(mode_t mode, int flags)
{
	int fd, r;

	ASSERT_INT_EQ(chmod(path, mode), 0);
	r = util_open_file(path, flags, &fd, NULL);
	if (r == 0)
		close(fd);
	else
		ASSERT_INT_EQ(fd, -1);
	return r;
}

static void
test_open_file(void)
{
	mode_t mode;
	int fd;

	TEST_START("a regular file is opened, close-on-exec, mode told");
	enter_dir();
	ASSERT_ERR(util_save_file(path, 0640, "x", 1), CL_OK);
	ASSERT_ERR(util_open_file(path, 0, &fd, &mode), CL_OK);
	ASSERT_INT_EQ(mode & 07777, 0640);
	ASSERT_INT_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
	TEST_START("group and other bits are refused when asked");
	ASSERT_ERR(open_mode(0600, UTIL_OPEN_PRIVATE), CL_OK);
	ASSERT_ERR(open_mode(0640, UTIL_OPEN_PRIVATE), CL_DENIED);
	ASSERT_ERR(open_mode(0601, UTIL_OPEN_PRIVATE), CL_DENIED);
	ASSERT_ERR(open_mode(0644, UTIL_OPEN_NOWRITE), CL_OK);
	ASSERT_ERR(open_mode(0664, UTIL_OPEN_NOWRITE), CL_DENIED);
	ASSERT_ERR(open_mode(0602, UTIL_OPEN_NOWRITE), CL_DENIED);
	TEST_START("another owner than root or us is refused when asked");
	ASSERT_ERR(open_mode(0644, UTIL_OPEN_OWNED), CL_OK);
	if (geteuid() == 0) {
		ASSERT_INT_EQ(chown(path, 65534, 65534), 0);
		ASSERT_ERR(open_mode(0644, UTIL_OPEN_OWNED), CL_DENIED);
	}
	TEST_START("symbolic links, directories and fifos are refused");
	ASSERT_INT_EQ(symlink(path, other), 0);
	ASSERT_ERR(util_open_file(other, 0, &fd, NULL), CL_SYSTEM);
	ASSERT_INT_EQ(errno, ELOOP);
	ASSERT_ERR(util_open_file(dir, 0, &fd, NULL), CL_FORMAT);
	unlink(other);
	ASSERT_INT_EQ(mkfifo(other, 0600), 0);
	ASSERT_ERR(util_open_file(other, 0, &fd, NULL), CL_FORMAT);
	unlink(other);
	ASSERT_ERR(util_open_file(other, 0, &fd, NULL), CL_SYSTEM);
	ASSERT_INT_EQ(errno, ENOENT);
	leave_dir();
}

static void
test_load_fd(void)
{
	static const size_t sizes[] = { 0, 1, 4095, 4096, 4097, 8192, 100000 };
	uint8_t *bytes = calloc(1, 100000), *data;
	size_t i, len;
	int fd;

	TEST_START("a file of max bytes is read whole, one more is too big");
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		unit_note("%zu bytes", sizes[i]);
		bytes[sizes[i] / 2] = (uint8_t)(i + 1);
		ASSERT_ERR(util_make_memfd(bytes, sizes[i], &fd), CL_OK);
		ASSERT_ERR(util_load_fd(fd, sizes[i], &data, &len), CL_OK);
		ASSERT_BYTES_EQ(data, len, bytes, sizes[i]);
		ASSERT_INT_EQ(data[len], 0);
		free(data);
		lseek(fd, 0, SEEK_SET);
		if (sizes[i] > 0)
			ASSERT_ERR(util_load_fd(fd, sizes[i] - 1, &data,
			    &len), CL_TOOBIG);
		ASSERT_TRUE(sizes[i] == 0 || data == NULL);
		close(fd);
	}
	free(bytes);
	ASSERT_ERR(util_load_fd(-1, 10, &data, &len), CL_SYSTEM);
}

static void
test_save_file(void)
{
	uint8_t *data;
	size_t len;
	mode_t mode;
	int fd;

	TEST_START("a saved file has its mode whatever the umask");
	enter_dir();
	umask(077);
	ASSERT_ERR(util_save_file(path, 0644, "one", 3), CL_OK);
	umask(022);
	ASSERT_ERR(util_open_file(path, 0, &fd, &mode), CL_OK);
	ASSERT_INT_EQ(mode & 07777, 0644);
	close(fd);
	TEST_START("what a crash left under the temporary name goes away");
	snprintf(other, sizeof(other), "%s.tmp", path);
	ASSERT_INT_EQ(symlink("/etc/passwd", other), 0);
	ASSERT_ERR(util_save_file(path, 0600, "two", 3), CL_OK);
	ASSERT_ERR(util_open_file(path, 0, &fd, NULL), CL_OK);
	ASSERT_ERR(util_load_fd(fd, 10, &data, &len), CL_OK);
	ASSERT_BYTES_EQ(data, len, "two", 3);
	free(data);
	close(fd);
	ASSERT_INT_EQ(access(other, F_OK), -1);
	leave_dir();
	TEST_START("nothing remains after a failure");
	ASSERT_ERR(util_save_file("/nonexistent/x", 0600, "x", 1), CL_SYSTEM);
	ASSERT_INT_EQ(errno, ENOENT);
	enter_dir();
	snprintf(other, sizeof(other), "%s/file/", dir);
	ASSERT_INT_EQ(mkdir(path, 0700), 0);
	ASSERT_ERR(util_save_file(path, 0600, "x", 1), CL_SYSTEM);
	ASSERT_INT_EQ(rmdir(path), 0);
	leave_dir();
	if (access("/dev/full", W_OK) == 0) {
		fd = open("/dev/full", O_WRONLY);
		ASSERT_ERR(util_write_all(fd, "x", 1), CL_SYSTEM);
		ASSERT_INT_EQ(errno, ENOSPC);
		close(fd);
	}
}

static void
test_make_dirs(void)
{
	struct stat st;

	TEST_START("mkdir -p: the last gets mode, the others 0755");
	enter_dir();
	snprintf(path, sizeof(path), "%s/a//b/c/", dir);
	umask(077);
	ASSERT_ERR(util_make_dirs(path, 0751, (uid_t)-1, (gid_t)-1), CL_OK);
	umask(022);
	ASSERT_INT_EQ(stat(path, &st), 0);
	ASSERT_INT_EQ(st.st_mode & 07777, 0751);
	TEST_START("an existing directory is left alone");
	ASSERT_ERR(util_make_dirs(path, 0700, (uid_t)-1, (gid_t)-1), CL_OK);
	ASSERT_INT_EQ(stat(path, &st), 0);
	ASSERT_INT_EQ(st.st_mode & 07777, 0751);
	rmdir(path);
	snprintf(path, sizeof(path), "%s/a/b", dir);
	ASSERT_INT_EQ(stat(path, &st), 0);
	ASSERT_INT_EQ(st.st_mode & 07777, 0755);
	rmdir(path);
	snprintf(path, sizeof(path), "%s/a", dir);
	rmdir(path);
	TEST_START("a file in the way is an error");
	snprintf(path, sizeof(path), "%s/file", dir);
	ASSERT_ERR(util_save_file(path, 0600, "x", 1), CL_OK);
	ASSERT_ERR(util_make_dirs(path, 0700, (uid_t)-1, (gid_t)-1),
	    CL_SYSTEM);
	ASSERT_INT_EQ(errno, ENOTDIR);
	ASSERT_ERR(util_make_dirs("", 0700, (uid_t)-1, (gid_t)-1), CL_SYSTEM);
	leave_dir();
}

static void
test_memfd(void)
{
	uint8_t *data;
	int fd, plain;

	TEST_START("a memfd of ours is sealed and read back");
	ASSERT_ERR(util_make_memfd("secret", 6, &fd), CL_OK);
	ASSERT_INT_EQ(write(fd, "x", 1), -1);
	ASSERT_INT_EQ(ftruncate(fd, 3), -1);
	ASSERT_INT_EQ(ftruncate(fd, 9), -1);
	ASSERT_ERR(util_load_memfd(fd, 6, 6, &data), CL_OK);
	ASSERT_BYTES_EQ(data, 7, "secret", 7);
	free(data);
	TEST_START("a length that lies by one is refused");
	ASSERT_ERR(util_load_memfd(fd, 5, 10, &data), CL_FORMAT);
	ASSERT_ERR(util_load_memfd(fd, 7, 10, &data), CL_FORMAT);
	TEST_START("a length over max is refused before anything is read");
	ASSERT_ERR(util_load_memfd(fd, 6, 5, &data), CL_TOOBIG);
	ASSERT_PTR_EQ(data, NULL);
	close(fd);
	TEST_START("an empty one is fine");
	ASSERT_ERR(util_make_memfd("", 0, &fd), CL_OK);
	ASSERT_ERR(util_load_memfd(fd, 0, 0, &data), CL_OK);
	free(data);
	close(fd);
	TEST_START("missing seals and other descriptors are refused");
	plain = memfd_create("plain", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	ASSERT_INT_EQ(write(plain, "secret", 6), 6);
	ASSERT_ERR(util_load_memfd(plain, 6, 6, &data), CL_DENIED);
	ASSERT_INT_EQ(fcntl(plain, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW),
	    0);
	ASSERT_ERR(util_load_memfd(plain, 6, 6, &data), CL_DENIED);
	ASSERT_INT_EQ(fcntl(plain, F_ADD_SEALS, F_SEAL_WRITE), 0);
	ASSERT_ERR(util_load_memfd(plain, 6, 6, &data), CL_OK);
	free(data);
	close(plain);
	enter_dir();
	ASSERT_ERR(util_save_file(path, 0600, "secret", 6), CL_OK);
	ASSERT_ERR(util_open_file(path, 0, &fd, NULL), CL_OK);
	ASSERT_ERR(util_load_memfd(fd, 6, 6, &data), CL_DENIED);
	close(fd);
	leave_dir();
}

static void
test_hex(void)
{
	uint8_t raw[4];
	char text[9];

	TEST_START("hex: both ways, lower case, exact length");
	util_format_hex("\x00\x7f\xab\xff", 4, text);
	ASSERT_STRING_EQ(text, "007fabff");
	ASSERT_ERR(util_parse_hex(text, raw, 4), CL_OK);
	ASSERT_MEM_EQ(raw, "\x00\x7f\xab\xff", 4);
	ASSERT_ERR(util_parse_hex("007fabf", raw, 4), CL_FORMAT);
	ASSERT_ERR(util_parse_hex("007fabff0", raw, 4), CL_FORMAT);
	ASSERT_ERR(util_parse_hex("007fabfF", raw, 4), CL_FORMAT);
	ASSERT_ERR(util_parse_hex("007fabfg", raw, 4), CL_FORMAT);
	ASSERT_ERR(util_parse_hex("", raw, 0), CL_OK);
}

static void
test_id(void)
{
	char id[MAX_ID_LEN + 2], name[260];

	TEST_START("ids of 1 to 128 bytes without controls");
	memset(id, 'x', sizeof(id));
	id[MAX_ID_LEN + 1] = '\0';
	ASSERT_FALSE(util_is_id(id));
	id[MAX_ID_LEN] = '\0';
	ASSERT_TRUE(util_is_id(id));
	ASSERT_TRUE(util_is_id("-"));
	ASSERT_TRUE(util_is_id("../\xc3\xa9"));
	ASSERT_FALSE(util_is_id(""));
	ASSERT_FALSE(util_is_id("a\nb"));
	ASSERT_FALSE(util_is_id("\x7f"));
	TEST_START("an id in a path is hex");
	ASSERT_ERR(util_format_id_path("../a", name, sizeof(name)), CL_OK);
	ASSERT_STRING_EQ(name, "2e2e2f61");
	ASSERT_ERR(util_format_id_path("../a", name, 9), CL_OK);
	ASSERT_ERR(util_format_id_path("../a", name, 8), CL_TOOBIG);
	ASSERT_STRING_EQ(name, "");
	ASSERT_ERR(util_format_id_path("", name, sizeof(name)), CL_FORMAT);
	TEST_START("the longest id still is a file name");
	ASSERT_ERR(util_format_id_path(id, name, sizeof(name)), CL_OK);
	ASSERT_INT_EQ(name[0], '=');
	ASSERT_INT_LE(strlen(name), 255);
	id[MAX_ID_LEN - 1] = '\0';
	ASSERT_ERR(util_format_id_path(id, name, sizeof(name)), CL_OK);
	ASSERT_INT_EQ(strlen(name), 254);
	TEST_START("a word is of the allowed characters only");
	ASSERT_TRUE(util_is_word("abc", "abc"));
	ASSERT_FALSE(util_is_word("", "abc"));
	ASSERT_FALSE(util_is_word("abcd", "abc"));
}

static void
test_notify(void)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	char text[64];
	ssize_t n;
	int fd;

	TEST_START("sd_notify: silent without a socket");
	unsetenv("NOTIFY_SOCKET");
	ASSERT_ERR(util_notify("READY=1"), CL_OK);
	setenv("NOTIFY_SOCKET", "relative", 1);
	ASSERT_ERR(util_notify("READY=1"), CL_SYSTEM);
	TEST_START("sd_notify: one datagram to a path");
	enter_dir();
	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", path);
	fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	ASSERT_INT_EQ(bind(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	setenv("NOTIFY_SOCKET", path, 1);
	ASSERT_ERR(util_notify("READY=1"), CL_OK);
	n = recv(fd, text, sizeof(text), MSG_DONTWAIT);
	ASSERT_BYTES_EQ(text, (size_t)n, "READY=1", 7);
	close(fd);
	ASSERT_ERR(util_notify("READY=1"), CL_SYSTEM);
	leave_dir();
	unsetenv("NOTIFY_SOCKET");
}

UNIT_MAIN(test_open_file, test_load_fd, test_save_file, test_make_dirs,
    test_memfd, test_hex, test_id, test_notify)
