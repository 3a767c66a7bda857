/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * agent/monitor/shims: asking cloop-shimd, played here over its socket: what
 * it is told, what it may answer, and what becomes of a start when it lies,
 * refuses, or was replaced.
 */
#include "regress/unit/unit.h"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "agent/monitor/shims.c"

static struct agentd a;
static char dir[] = "/tmp/cloop-shims.XXXXXX", path[64];
static int nspawned;

int
spawn_start(const struct spawn_opts *o, pid_t *pidp, int *fdp)
{
	ASSERT_STRING_EQ(o->program, "cloop-shim");
	ASSERT_INT_EQ(o->flags, SPAWN_SURVIVE);
	nspawned++;
	*pidp = 17;
	*fdp = -1;
	return CL_OK;
}

/* `more` bytes than there should be. */
static void
answer(int fd, uint32_t type, const void *v, int more)
{
	uint8_t msg[80] = { 0 };
	struct buf b;

	buf_init(&b, 64);
	ASSERT_ERR(msg_put(type, v, &b), CL_OK);
	msg[2] = (uint8_t)(type >> 8);
	msg[3] = (uint8_t)type;
	msg[7] = (uint8_t)((int)b.len + more);
	if (b.len > 0)
		memcpy(msg + 16, b.data, b.len);
	(void)!send(fd, msg, 16 + msg[7], MSG_NOSIGNAL);
	buf_clear(&b);
}

/* One step of the script; 0 ends the connection. */
static int
play(int fd, char step)
{
	static const struct msg_version ok = { MSGCAT_VERSION },
	    other = { MSGCAT_VERSION + 1 };
	static const struct msg_shimd_start_ans started = { 0, 258 },
	    none = { 0, 0 }, refused = { EACCES, 0 };
	struct msghdr msg = { 0 };
	struct iovec iov;
	char data[64], ctl[64];

	if (step == '|')
		return 0;
	iov.iov_base = data;
	iov.iov_len = sizeof(data);
	msg.msg_iov = &iov;
	msg.msg_iovlen = 1;
	msg.msg_control = ctl;
	msg.msg_controllen = sizeof(ctl);
	/* Each question has one descriptor. */
	if (recvmsg(fd, &msg, MSG_CMSG_CLOEXEC) < 16 ||
	    CMSG_FIRSTHDR(&msg) == NULL)
		return 0;
	if (step == 'h')
		answer(fd, MSG_SHIMD_HELLO_ANS, &ok, 0);
	else if (step == 'v')
		answer(fd, MSG_SHIMD_HELLO_ANS, &other, 0);
	else if (step == 's')
		answer(fd, MSG_SHIMD_START_ANS, &started, 0);
	else if (step == 'r')
		answer(fd, MSG_SHIMD_START_ANS, &refused, 0);
	else if (step == 'n')
		answer(fd, MSG_SHIMD_START_ANS, &none, 0);
	else if (step == 'l')
		answer(fd, MSG_SHIMD_START_ANS, &started, -1);
	else if (step == 'm')
		answer(fd, MSG_SHIMD_START_ANS, &started, 1);
	else if (step == 't')
		answer(fd, MSG_SHIMD_SWEEP, NULL, 0);
	return step != '.';
}

/* cloop-shimd in a process of its own: a script, "|" between connections. */
static pid_t
serve(const char *script)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd, conn;
	pid_t pid;

	strlcpy(sun.sun_path, path, sizeof(sun.sun_path));
	(void)unlink(path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	ASSERT_INT_EQ(bind(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	ASSERT_INT_EQ(listen(fd, 5), 0);
	fflush(stdout);
	if ((pid = fork()) == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (*script != '\0') {
			conn = accept(fd, NULL, NULL);
			while (*script != '\0' && play(conn, *script++))
				;
			if (*script == '\0')	/* the last one stays */
				(void)pause();
			close(conn);
		}
		_exit(0);
	}
	close(fd);
	memset(&a, 0, sizeof(a));
	a.conf.shim_socket = path;
	return pid;
}

static void
over(pid_t pid)
{
	shims_close(&a);
	kill(pid, SIGKILL);
	ASSERT_INT_EQ(waitpid(pid, NULL, 0), pid);
}

/* Its own end is closed in the shim that nobody started. */
static void
check_start(int want)
{
	pid_t pid = -1;
	int fd = -1;

	ASSERT_ERR(shims_start(&a, &pid, &fd), want);
	if (want != CL_OK) {
		ASSERT_INT_EQ(fd, -1);
		return;
	}
	ASSERT_INT_EQ(pid, 258);
	ASSERT_INT_GE(fd, 0);
	close(fd);
}

static void
test_alone(void)
{
	int fd;
	pid_t pid;

	TEST_START("without ShimSocket it starts them itself");
	ASSERT_PTR_NE(mkdtemp(dir), NULL);
	snprintf(path, sizeof(path), "%s/s", dir);
	ASSERT_ERR(shims_open(&a), CL_OK);
	ASSERT_ERR(shims_start(&a, &pid, &fd), CL_OK);
	ASSERT_INT_EQ(pid, 17);
	ASSERT_INT_EQ(nspawned, 1);
	a.base = event_base_new();
	shims_sweep(&a);
	ASSERT_TRUE(evtimer_pending(a.shims.sweep, NULL));
	shims_close(&a);
	event_base_free(a.base);
}

static void
test_asked(void)
{
	pid_t pid;

	TEST_START("one connection, one hello, as many starts as there are");
	pid = serve("hss");
	ASSERT_ERR(shims_open(&a), CL_OK);
	ASSERT_ERR(shims_open(&a), CL_OK);
	check_start(CL_OK);
	shims_sweep(&a);
	ASSERT_PTR_EQ(a.shims.sweep, NULL);
	over(pid);
	pid = serve("hss");
	check_start(CL_OK);
	check_start(CL_OK);
	ASSERT_INT_EQ(nspawned, 1);
	over(pid);
}

static void
test_refused(void)
{
	pid_t pid;

	TEST_START("a start that fails there: its errno, and the next one");
	pid = serve("hrs");
	check_start(CL_SYSTEM);
	ASSERT_INT_EQ(errno, EACCES);
	check_start(CL_OK);
	over(pid);
}

static void
test_replaced(void)
{
	pid_t pid;

	TEST_START("one that was replaced is asked once more, not twice");
	pid = serve("hs|hs");
	check_start(CL_OK);
	check_start(CL_OK);
	over(pid);
	pid = serve("h.h.hs");
	check_start(CL_EOF);
	check_start(CL_OK);
	over(pid);
}

static void
test_lies(void)
{
	static const char *const scripts[] = { "hnhs", "hmhs", "hlhs", "hths",
		"hhhs" };
	size_t i;
	pid_t pid;

	TEST_START("an answer that cannot be ends the connection");
	for (i = 0; i < sizeof(scripts) / sizeof(*scripts); i++) {
		char script[8];

		snprintf(script, sizeof(script), "%.2s|%s", scripts[i],
		    scripts[i] + 2);
		pid = serve(script);
		check_start(CL_FORMAT);
		ASSERT_FALSE(a.shims.chan.is_open);
		check_start(CL_OK);
		over(pid);
	}
	pid = serve("v");
	ASSERT_ERR(shims_open(&a), CL_VERSION);
	ASSERT_FALSE(a.shims.chan.is_open);
	over(pid);
	pid = serve(".h");
	ASSERT_ERR(shims_open(&a), CL_EOF);
	over(pid);
}

static void
test_nobody(void)
{
	char longest[108];

	TEST_START("nobody there, not at the longest path either");
	ASSERT_INT_EQ(unlink(path), 0);
	check_start(CL_SYSTEM);
	ASSERT_INT_EQ(errno, ENOENT);
	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	a.conf.shim_socket = longest;
	check_start(CL_SYSTEM);
	ASSERT_INT_EQ(errno, ENOENT);
	ASSERT_INT_EQ(rmdir(dir), 0);
}

UNIT_MAIN(test_alone, test_asked, test_refused, test_replaced, test_lies,
    test_nobody)
