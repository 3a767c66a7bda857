/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * sandbox/cgroup: a sweep takes what is left over and nothing else, since
 * other agents of the host sweep the same group (00 §3.2, 08 §2.2).
 */
#include "unit.h"

#include <sys/stat.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include "common/err.h"
#include "sandbox/cgroup.h"

static int
is_there(int parent_fd, const char *name)
{
	struct stat sb;

	return fstatat(parent_fd, name, &sb, 0) == 0;
}

/* The name that a shim gave its leaf, which is dead by now. */
static void
make_dead_leaf(int parent_fd, char *name, size_t len)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	waitpid(pid, NULL, 0);
	snprintf(name, len, "w%ld-1", (long)pid);
	ASSERT_INT_EQ(mkdirat(parent_fd, name, 0755), 0);
}

static void
test_sweep(void)
{
	struct cgroup c;
	char dead[64];
	siginfo_t si;
	pid_t pid;

	TEST_START("a sweep spares the empty leaf of a shim that starts");
	if (cgroup_open(&c, 10) == CL_UNSUPPORTED)
		TEST_SKIP("no cgroup of version 2 is ours to change");
	make_dead_leaf(c.parent_fd, dead, sizeof(dead));
	cgroup_sweep();
	ASSERT_INT_EQ(is_there(c.parent_fd, c.name), 1);
	TEST_START("and takes that of one that is gone");
	ASSERT_INT_EQ(is_there(c.parent_fd, dead), 0);

	TEST_START("also while nobody has waited for that shim");
	pid = fork();
	if (pid == 0)
		_exit(0);
	ASSERT_INT_EQ(waitid(P_PID, (id_t)pid, &si, WEXITED | WNOWAIT), 0);
	snprintf(dead, sizeof(dead), "w%ld-1", (long)pid);
	ASSERT_INT_EQ(mkdirat(c.parent_fd, dead, 0755), 0);
	ASSERT_INT_EQ(cgroup_sweep(), 0);
	ASSERT_INT_EQ(is_there(c.parent_fd, dead), 0);
	waitpid(pid, NULL, 0);
	cgroup_close(&c);
	cgroup_sweep();
}

static void
test_busy(void)
{
	struct cgroup c;
	char dead[64];
	pid_t pid;
	int fd;

	TEST_START("one that still has a member stays, and is looked at again");
	if (cgroup_open(&c, 10) == CL_UNSUPPORTED)
		TEST_SKIP("no cgroup of version 2 is ours to change");
	make_dead_leaf(c.parent_fd, dead, sizeof(dead));
	snprintf(dead + strlen(dead), sizeof(dead) - strlen(dead),
	    "/cgroup.procs");
	pid = fork();
	if (pid == 0) {
		fd = openat(c.parent_fd, dead, O_WRONLY | O_CLOEXEC);
		if (fd == -1 || write(fd, "0", 1) != 1)
			_exit(1);
		kill(getpid(), SIGSTOP);
		_exit(0);
	}
	ASSERT_INT_EQ(waitpid(pid, &fd, WUNTRACED), pid);
	ASSERT_TRUE(WIFSTOPPED(fd));
	*strchr(dead, '/') = '\0';
	ASSERT_INT_EQ(cgroup_sweep(), 1);
	ASSERT_INT_EQ(is_there(c.parent_fd, dead), 1);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	while (cgroup_sweep() != 0)
		sched_yield();
	ASSERT_INT_EQ(is_there(c.parent_fd, dead), 0);
	cgroup_close(&c);
	cgroup_sweep();
}

static void
test_enter(void)
{
	struct cgroup c;

	TEST_START("a leaf that can be entered, and one that is gone");
	if (cgroup_open(&c, 10) == CL_UNSUPPORTED)
		TEST_SKIP("no cgroup of version 2 is ours to change");
	ASSERT_INT_EQ(cgroup_can_enter(&c), 1);
	while (!cgroup_is_empty(&c))
		sched_yield();
	ASSERT_INT_EQ(unlinkat(c.parent_fd, c.name, AT_REMOVEDIR), 0);
	ASSERT_INT_EQ(cgroup_can_enter(&c), 0);
	ASSERT_INT_EQ(cgroup_is_empty(&c), 1);
	ASSERT_INT_EQ(cgroup_kill(&c), CL_OK);
	cgroup_close(&c);
	cgroup_sweep();
}

UNIT_MAIN(test_sweep, test_busy, test_enter)
