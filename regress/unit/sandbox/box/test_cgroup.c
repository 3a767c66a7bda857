/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * sandbox/box/cgroup: a sweep takes what is left over and nothing else, since
 * other agents of the host sweep the same group.
 */
#include "regress/unit/unit.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include "common/base/err.h"
#include "sandbox/box/cgroup_net.h"
#include "sandbox/box/shim.h"

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

/* A leaf of ours, open, beside one whose shim is dead; 0: there is none. */
static int
set_up(struct cgroup *c, char *dead, size_t len)
{
	if (cgroup_open(c, 10) == CL_UNSUPPORTED)
		return 0;
	make_dead_leaf(c->parent_fd, dead, len);
	return 1;
}

static void
test_sweep(void)
{
	struct cgroup c;
	char dead[64];
	siginfo_t si;
	pid_t pid;

	TEST_START("a sweep spares the empty leaf of a shim that starts");
	if (!set_up(&c, dead, sizeof(dead)))
		TEST_SKIP("no cgroup of version 2 is ours to change");
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
	ASSERT_INT_EQ(cgroup_sweep(), 1);	/* for the one that starts */
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
	if (!set_up(&c, dead, sizeof(dead)))
		TEST_SKIP("no cgroup of version 2 is ours to change");
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
	while (is_there(c.parent_fd, dead)) {
		(void)cgroup_sweep();
		sched_yield();
	}
	ASSERT_INT_EQ(is_there(c.parent_fd, dead), 0);
	cgroup_close(&c);
	cgroup_sweep();
}

#define SENDS 4

/* What a member of the group gets for a datagram to each address. */
static void
send_all(const struct cgroup *c, int pipe_fd)
{
	static const char *const to[SENDS] = { "127.0.0.2", "127.0.0.1",
	    "::1", "::ffff:127.0.0.1" };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6,
	    .sin6_port = htons(9) };
	struct sockaddr_in in = { .sin_family = AF_INET,
	    .sin_port = htons(9) };
	int err[SENDS], fd, v4, i;
	ssize_t r;

	if (cgroup_join(c) != CL_OK)
		_exit(1);
	for (i = 0; i < SENDS; i++) {
		v4 = inet_pton(AF_INET, to[i], &in.sin_addr) == 1;
		if (!v4)
			(void)inet_pton(AF_INET6, to[i], &in6.sin6_addr);
		fd = socket(v4 ? AF_INET : AF_INET6,
		    SOCK_DGRAM | SOCK_CLOEXEC, 0);
		r = v4 ? sendto(fd, "x", 1, 0, (struct sockaddr *)&in,
		    sizeof(in)) : sendto(fd, "x", 1, 0,
		    (struct sockaddr *)&in6, sizeof(in6));
		err[i] = r == -1 ? errno : 0;
		close(fd);
	}
	_exit(write(pipe_fd, err, sizeof(err)) != sizeof(err));
}

static void
test_limit_net(void)
{
	static const char *const allowed[] = { "127.0.0.2", "::1" };
	struct cgroup_peer peers[MAX_SHIM_PEERS + 1];
	int err[SENDS], fds[2];
	struct cgroup c;
	size_t i;

	TEST_START("a git reaches its forge's addresses and no other");
	if (cgroup_open(&c, 10) == CL_UNSUPPORTED)
		TEST_SKIP("no cgroup of version 2 is ours to change");
	for (i = 0; i < MAX_SHIM_PEERS + 1; i++)
		ASSERT_ERR(cgroup_peer_parse(allowed[i % 2], &peers[i]),
		    CL_OK);
	ASSERT_ERR(cgroup_peer_parse("localhost", &peers[0]), CL_FORMAT);
	ASSERT_ERR(cgroup_peer_parse(allowed[0], &peers[0]), CL_OK);
	ASSERT_ERR(cgroup_limit_net(&c, peers, MAX_SHIM_PEERS + 1), CL_LIMIT);
	i = (size_t)cgroup_limit_net(&c, peers, MAX_SHIM_PEERS);
	if ((int)i == CL_UNSUPPORTED)
		TEST_SKIP("this kernel has no packet filter for cgroups");
	ASSERT_ERR((int)i, CL_OK);
	ASSERT_INT_EQ(pipe(fds), 0);
	if (fork() == 0)
		send_all(&c, fds[1]);
	close(fds[1]);
	ASSERT_INT_EQ(read(fds[0], err, sizeof(err)), sizeof(err));
	wait(NULL);
	close(fds[0]);
	ASSERT_INT_EQ(err[0], 0);
	ASSERT_INT_EQ(err[1], EPERM);
	ASSERT_INT_EQ(err[2], 0);
	ASSERT_INT_EQ(err[3], EPERM);
	cgroup_close(&c);
	(void)cgroup_sweep();
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

UNIT_MAIN(test_sweep, test_busy, test_limit_net, test_enter)
