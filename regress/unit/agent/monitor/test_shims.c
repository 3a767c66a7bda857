/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * agent/monitor/shims: asking cloop-shimd, played here over its socket: what
 * it is told, what it may answer, and what becomes of a start when it lies,
 * refuses, or was replaced.
 */
#include "regress/unit/msgtest.h"

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

static void
say_hello(struct chan *c, uint64_t version)
{
	struct msg_version hello = { version };

	(void)CHAN_SEND(c, SHIMD_HELLO_ANS, 0, &hello, -1);
}

static void
say_started(struct chan *c, int error, int64_t pid)
{
	struct msg_shimd_start_ans ans = { (uint64_t)error, pid };

	(void)CHAN_SEND(c, SHIMD_START_ANS, 0, &ans, -1);
}

/* One step of the script; 0 ends the connection. */
static int
play(struct chan *c, char step)
{
	static const uint8_t far[16] = { [11] = 1, [15] = 2 };
	union msg_any v;
	struct imsg m;
	int has_fd;

	if (step == '|' || msgtest_read(c, &m, &v) != CL_OK)
		return 0;
	has_fd = m.fd != -1;
	msgtest_free(&m, &v);
	if (!has_fd)		/* each question has one descriptor */
		return 0;
	if (step == 'h')
		say_hello(c, MSGCAT_VERSION);
	else if (step == 'v')
		say_hello(c, MSGCAT_VERSION + 1);
	else if (step == 's')
		say_started(c, 0, 258);
	else if (step == 'r')
		say_started(c, EACCES, 0);
	else if (step == 'n')
		say_started(c, 0, 0);
	else if (step == 'i')
		say_started(c, 0, 1);
	else if (step == 'f')	/* 2^32 + 2 */
		msgtest_send_bytes(c, MSG_SHIMD_START_ANS, 0, far, 16, -1);
	else if (step == 'l')
		msgtest_send_bytes(c, MSG_SHIMD_START_ANS, 0, far, 15, -1);
	else if (step == 't')
		msgtest_send_bytes(c, MSG_SHIM_SIGNAL, 0, far, 1, -1);
	return step != '.';
}

/* cloop-shimd in a process of its own: a script, "|" between connections. */
static pid_t
serve(const char *script)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	struct chan c;
	pid_t pid;
	int fd;

	strlcpy(sun.sun_path, path, sizeof(sun.sun_path));
	(void)unlink(path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	ASSERT_INT_EQ(bind(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	ASSERT_INT_EQ(listen(fd, 5), 0);
	fflush(stdout);
	if ((pid = fork()) == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (*script != '\0') {
			msgtest_open(&c, accept(fd, NULL, NULL), MSG_M2D,
			    MSG_D2M);
			while (*script != '\0' && play(&c, *script++))
				;
			if (*script == '\0')	/* the last one stays */
				(void)pause();
			chan_close(&c);
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
	static const char *const scripts[] = { "hnhs", "hihs", "hfhs", "hlhs",
		"hths", "hhhs" };
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

int
handledir_open_spool(const struct handledir *d, int flags, int *fdp)
{
	ASSERT_INT_EQ(d->fd, STDIN_FILENO);
	*fdp = open("/dev/null", flags | O_CLOEXEC);
	return CL_OK;
}

/* What every shim gets, in order; each with the descriptor of its row. */
static void
test_setup(void)
{
	static const uint32_t want[] = { MSG_SHIM_JOB, MSG_SHIM_SPOOL,
	    MSG_SHIM_WAKE, MSG_SHIM_DIR, MSG_SHIM_TREE, MSG_SHIM_FILTERS };
	struct handledir d = { .fd = STDIN_FILENO };
	struct shim_job j = { .handle = (char *)(uintptr_t)"h" };
	struct shims_setup setup = { &j, &d, STDIN_FILENO, STDIN_FILENO };
	struct chan c, peer;
	union msg_any v;
	struct imsg m;
	size_t i;

	TEST_START("what a shim needs before it may start");
	memset(&a, 0, sizeof(a));
	ASSERT_ERR(shims_make_filters(&a), CL_OK);
	ASSERT_ERR(chan_init(&c, msgtest_pair(&peer, MSG_M2S, MSG_S2M),
	    MSG_S2M, MSG_M2S, 16, NULL, NULL, NULL), CL_OK);
	ASSERT_ERR(shims_send_setup(&a, &c, &setup), CL_OK);
	for (i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		msgtest_expect(&peer, want[i], &m, &v);
		ASSERT_INT_GE(m.fd, 0);
		msgtest_free(&m, &v);
	}
	ASSERT_INT_EQ(msgtest_hear(&peer, &m, &v), 0);
	chan_close(&c);
	chan_close(&peer);
	close(a.filters_fd);
}

static void
test_nobody(void)
{
	char longest[108];

	TEST_START("nobody there, not at the longest path either");
	a.conf.shim_socket = path;
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
    test_setup, test_nobody)
