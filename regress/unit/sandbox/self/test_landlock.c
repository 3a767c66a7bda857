/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * sandbox/self/landlock: what is granted works, everything else does not.
 */
#include "regress/unit/unit.h"

#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "common/base/err.h"
#include "sandbox/self/landlock.h"

static char dir[] = "/tmp/cloop-ll.XXXXXX";

static int
can_write(const char *name)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd != -1)
		close(fd);
	return fd != -1;
}

static int
can_read(const char *name)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC);

	if (fd != -1)
		close(fd);
	return fd != -1;
}

static void
child(void)
{
	struct landlock *l;
	char path[64];

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    landlock_new(LL_NO_SIGNAL | LL_NO_ABSTRACT | LL_NO_TCP, &l) !=
	    CL_OK)
		_exit(1);
	snprintf(path, sizeof(path), "%s/own", dir);
	if (landlock_add_path(l, "/usr", LL_READONLY) != CL_OK ||
	    landlock_add_path(l, path, LL_ALL) != CL_OK ||
	    landlock_add_path(l, "/nonexistent/x", LL_ALL) != CL_OK ||
	    landlock_add_path(l, "/dev/null", LL_ALL) != CL_OK ||
	    landlock_start(l) != CL_OK)
		_exit(2);
	landlock_free(l);
	if (!can_read("/usr/bin/env") || can_write("/usr/bin/x"))
		_exit(3);
	if (can_read("/etc/passwd") || can_read("/proc/self/status"))
		_exit(4);
	snprintf(path, sizeof(path), "%s/own/new", dir);
	if (!can_write(path) || !can_read(path) || unlink(path) != 0)
		_exit(5);
	snprintf(path, sizeof(path), "%s/other", dir);
	if (can_write(path) || can_read(path) || !can_write("/dev/null"))
		_exit(6);
	if (landlock_get_abi() >= 6 && kill(getppid(), 0) == 0)
		_exit(7);
	_exit(0);
}

static void
test_rules(void)
{
	char path[64];
	int status;
	pid_t pid;

	TEST_START("only what a rule grants is reachable");
	if (landlock_get_abi() == 0)
		TEST_SKIP("no Landlock on this kernel");
	ASSERT_PTR_NE(mkdtemp(dir), NULL);
	snprintf(path, sizeof(path), "%s/own", dir);
	ASSERT_INT_EQ(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/other", dir);
	ASSERT_TRUE(can_write(path));
	fflush(stdout);
	if ((pid = fork()) == 0)
		child();
	waitpid(pid, &status, 0);
	unlink(path);
	snprintf(path, sizeof(path), "%s/own", dir);
	rmdir(path);
	rmdir(dir);
	ASSERT_INT_EQ(status, 0);
}

/* The errno of a connection to a port of ours where nobody listens. */
static int
try_port(uint16_t port)
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
	    .sin_addr = { htonl(INADDR_LOOPBACK) }, .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), saved;

	saved = connect(fd, (struct sockaddr *)&sin, sizeof(sin)) == 0 ? 0 :
	    errno;
	close(fd);
	return saved;
}

static void
port_child(void)
{
	struct landlock *l;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    landlock_new(LL_NO_TCP | LL_ANY_FILE, &l) != CL_OK ||
	    landlock_add_port(l, 2) != CL_OK || landlock_start(l) != CL_OK)
		_exit(1);
	landlock_free(l);
	if (try_port(2) != ECONNREFUSED)
		_exit(2);
	if (try_port(1) != EACCES || try_port(3) != EACCES)
		_exit(3);
	if (!can_read("/etc/passwd"))
		_exit(4);
	_exit(0);
}

static void
test_ports(void)
{
	struct landlock *l;
	int status;
	pid_t pid;

	TEST_START("a named port can be connected to, no other; files stay");
	if (landlock_get_abi() < 4) {
		ASSERT_ERR(landlock_new(LL_NO_TCP | LL_ANY_FILE, &l),
		    CL_UNSUPPORTED);
		TEST_SKIP("this kernel's Landlock knows no ports");
	}
	ASSERT_INT_EQ(try_port(1), ECONNREFUSED);
	fflush(stdout);
	if ((pid = fork()) == 0)
		port_child();
	waitpid(pid, &status, 0);
	ASSERT_INT_EQ(status, 0);
	ASSERT_ERR(landlock_new(LL_ANY_FILE, &l), CL_UNSUPPORTED);
}

UNIT_MAIN(test_rules, test_ports)
