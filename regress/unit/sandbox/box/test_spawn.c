/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * sandbox/box/spawn: what a helper finds when it starts (fds 0 and 1 null, 2
 * log, 3 channel; almost no environment), and failures.
 */
#include "regress/unit/unit.h"

#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <linux/capability.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/msg/imsg.h"
#include "sandbox/box/spawn.h"
#include "sandbox/self/self_int.h"

static char dir[] = "/tmp/cloop-spawn.XXXXXX";

static void
make_program(const char *name, const char *script, mode_t mode)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	ASSERT_PTR_NE(f, NULL);
	fputs(script, f);
	fclose(f);
	ASSERT_INT_EQ(chmod(path, mode), 0);
}

/* Everything the child wrote to its log. */
static void
run(const struct spawn_opts *opts, char *text, size_t len)
{
	struct spawn_opts o = *opts;
	int log[2], fd, status;
	size_t at = 0;
	ssize_t n;
	pid_t pid;

	ASSERT_INT_EQ(pipe2(log, O_CLOEXEC), 0);
	o.log_fd = log[1];
	ASSERT_ERR(spawn_start(&o, &pid, &fd), CL_OK);
	close(log[1]);
	while (at < len - 1 && (n = read(log[0], text + at, len - 1 - at)) > 0)
		at += (size_t)n;
	text[at] = '\0';
	close(log[0]);
	ASSERT_INT_EQ(waitpid(pid, &status, 0), pid);
	ASSERT_INT_EQ(status, 0);
	close(fd);
}

static void
test_layout(void)
{
	static const char *const args[] = { "one", "two words", NULL };
	struct spawn_opts o = { .program = "helper", .args = args };
	char text[4096];
	int extra, i;

	TEST_START("descriptors, arguments, environment, umask, signals");
	ASSERT_PTR_NE(mkdtemp(dir), NULL);
	setenv("CLOOP_LIBEXEC", dir, 1);
	setenv("CLOOP_STATE_HMAC_KEY", "secret", 1);
	setenv("LANG", "C.UTF-8", 1);
	make_program("helper", "#!/bin/bash\nexec 1>&2\n"
	    "cd /proc/self/fd; for f in [0-9]*; do "
	    "[ $f -lt 200 ] && echo \"$f $(readlink /proc/$$/fd/$f)\"; done\n"
	    "echo \"args $1,$2\"; umask; pwd\n"
	    "tr '\\0' '\\n' </proc/$$/environ\n"
	    "grep -E '^Sig(Blk|Ign)' /proc/$$/status\nexit 0\n", 0755);
	for (i = 0; i < 50; i++)
		extra = open("/etc/passwd", O_RDONLY);	/* no CLOEXEC */
	signal(SIGPIPE, SIG_IGN);
	run(&o, text, sizeof(text));
	for (; i > 0; i--)
		close(extra--);
	ASSERT_PTR_NE(strstr(text, "0 /dev/null\n1 "), NULL);
	ASSERT_PTR_NE(strstr(text, "\n3 socket:"), NULL);
	ASSERT_PTR_EQ(strstr(text, "/etc/passwd"), NULL);
	ASSERT_PTR_NE(strstr(text, "args one,two words\n0077\n"), NULL);
	ASSERT_PTR_NE(strstr(text, "LANG=C.UTF-8\n"), NULL);
	ASSERT_PTR_NE(strstr(text, "detect_leaks=0\n"), NULL);
	ASSERT_PTR_EQ(strstr(text, "secret"), NULL);
	ASSERT_PTR_EQ(strstr(text, "PATH="), NULL);
	/* bash ignores SIGQUIT by itself; SIGPIPE was our doing. */
	ASSERT_PTR_NE(strstr(text, "SigIgn:"), NULL);
	ASSERT_INT_EQ(strtoul(strstr(text, "SigIgn:") + 8, NULL, 16) &
	    (1UL << (SIGPIPE - 1)), 0);
}

static void
on_signal(int sig)
{
	(void)sig;
}

/* The child shares our memory until it execs: nothing of ours may change. */
static void
check_untouched(const char *program, int want)
{
	struct spawn_opts o = { .program = program };
	struct sigaction sa = { .sa_handler = on_signal }, got;
	sigset_t some, mask;
	char before[256], after[256];
	int fd, sig;
	pid_t pid;

	ASSERT_INT_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	sigemptyset(&some);
	sigaddset(&some, SIGUSR2);
	ASSERT_INT_EQ(sigprocmask(SIG_SETMASK, &some, NULL), 0);
	umask(022);
	ASSERT_TRUE(getcwd(before, sizeof(before)) != NULL);
	ASSERT_ERR(spawn_start(&o, &pid, &fd), want);
	ASSERT_INT_EQ(umask(022), 022);
	ASSERT_TRUE(getcwd(after, sizeof(after)) != NULL);
	ASSERT_STRING_EQ(after, before);
	ASSERT_INT_EQ(sigprocmask(SIG_SETMASK, NULL, &mask), 0);
	for (sig = 1; sig < NSIG; sig++)
		ASSERT_INT_EQ(sigismember(&mask, sig) == 1, sig == SIGUSR2);
	ASSERT_INT_EQ(sigaction(SIGUSR1, NULL, &got), 0);
	ASSERT_TRUE(got.sa_handler == on_signal);
	if (want == CL_OK) {
		close(fd);
		ASSERT_INT_EQ(waitpid(pid, NULL, 0), pid);
	}
	sigemptyset(&some);
	(void)sigprocmask(SIG_SETMASK, &some, NULL);
	(void)signal(SIGUSR1, SIG_DFL);
}

static void
test_untouched(void)
{
	TEST_START("mask, handlers, umask and directory of ours stay");
	make_program("true", "#!/bin/sh\n", 0755);
	make_program("bad", "#!/nonexistent\n", 0755);
	check_untouched("true", CL_OK);
	check_untouched("bad", CL_SYSTEM);
	ASSERT_INT_EQ(errno, ENOENT);
}

static void
test_failures(void)
{
	struct spawn_opts o = { .program = "nothing-4711" };
	char path[4096], small[4];
	pid_t pid;
	int fd;

	TEST_START("no program, no account, a bad interpreter: an error, "
	    "nothing left");
	ASSERT_ERR(spawn_start(&o, &pid, &fd), CL_NOTFOUND);
	make_program("plain", "x", 0644);
	o.program = "plain";
	if (geteuid() != 0)
		ASSERT_ERR(spawn_start(&o, &pid, &fd), CL_NOTFOUND);
	make_program("broken", "#!/nonexistent/interpreter\n", 0755);
	o.program = "broken";
	ASSERT_ERR(spawn_start(&o, &pid, &fd), CL_SYSTEM);
	ASSERT_INT_EQ(errno, ENOENT);
	ASSERT_INT_EQ(waitpid(-1, NULL, WNOHANG), -1);
	o.program = "helper";
	o.user = "no-such-user-4711";
	ASSERT_ERR(spawn_start(&o, &pid, &fd), CL_NOTFOUND);
	ASSERT_ERR(spawn_find_program("../x", path, sizeof(path)), CL_FORMAT);
	ASSERT_ERR(spawn_find_program("helper", small, sizeof(small)),
	    CL_TOOBIG);
	ASSERT_ERR(spawn_find_program("helper", path, sizeof(path)), CL_OK);
}

#define KILL_USER 65533		/* any that is not root */

/* A process of user `of`, killed as user `as`; 0 when that ended it. */
static int
kill_one(uid_t of, uid_t as)
{
	int ready[2], status;
	pid_t pid;
	char c;

	if (pipe2(ready, O_CLOEXEC) == -1)
		return 1;
	if ((pid = fork()) == 0) {
		if (of != getuid() && setresuid(of, of, of) == -1)
			_exit(1);
		(void)!write(ready[1], "r", 1);
		(void)poll(NULL, 0, 20000);
		_exit(1);
	}
	if (read(ready[0], &c, 1) != 1 || spawn_kill(pid, as) != CL_OK)
		return 1;
	if (waitpid(pid, &status, 0) != pid || !WIFSIGNALED(status))
		return 1;
	return WTERMSIG(status) != SIGKILL;
}

/* As the hub's monitor: root, and of the capabilities only those it keeps. */
static int
kill_as_monitor(void)
{
	uid_t r, e, s;

	if (self_caps_cut(self_caps_find_monitor(SELF_MONITOR_HUB)) != CL_OK ||
	    self_caps_has(CAP_KILL))
		return 1;
	if (kill_one(KILL_USER, KILL_USER) != 0)
		return 2;
	/* It has not become its user yet. */
	if (kill_one(0, KILL_USER) != 0)
		return 3;
	if (getresuid(&r, &e, &s) == -1 || r != 0 || e != 0 || s != 0 ||
	    !self_caps_has(CAP_SETUID))
		return 4;
	/* Another user's process cannot be meant. */
	return spawn_kill(getppid(), KILL_USER) == CL_SYSTEM ? 0 : 5;
}

static void
test_kill(void)
{
	int status;
	pid_t pid, parent;

	TEST_START("a child is killed as its user, without CAP_KILL");
	if (geteuid() != 0) {
		ASSERT_INT_EQ(kill_one(getuid(), getuid()), 0);
		TEST_SKIP("not root: one user only");
	}
	fflush(stdout);
	/* The process not to be hit belongs to a third user. */
	if ((parent = fork()) == 0) {
		if ((pid = fork()) == 0)
			_exit(kill_as_monitor());
		if (setresuid(KILL_USER - 1, KILL_USER - 1, KILL_USER - 1) ==
		    -1 || waitpid(pid, &status, 0) != pid)
			_exit(9);
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 8);
	}
	ASSERT_INT_EQ(waitpid(parent, &status, 0), parent);
	ASSERT_INT_EQ(WIFEXITED(status), 1);
	ASSERT_INT_EQ(WEXITSTATUS(status), 0);
}

/* cloop-shimd passes on a channel that it never had the other end of. */
static void
test_given_channel(void)
{
	struct spawn_opts o = { .program = "speaker" };
	char text[8];
	int fds[2], fd, status;
	pid_t pid;

	TEST_START("a channel that was made before");
	make_program("speaker", "#!/bin/sh\nprintf hello >&3\n", 0755);
	ASSERT_ERR(imsg_pair(fds), CL_OK);
	o.channel_fd = fds[1];
	ASSERT_ERR(spawn_start(&o, &pid, &fd), CL_OK);
	ASSERT_INT_EQ(fd, -1);
	ASSERT_INT_EQ(waitpid(pid, &status, 0), pid);
	ASSERT_INT_EQ(status, 0);
	ASSERT_INT_EQ(read(fds[0], text, sizeof(text)), 5);
	ASSERT_INT_EQ(memcmp(text, "hello", 5), 0);
	ASSERT_INT_EQ(close(fds[1]), 0);	/* borrowed: still ours */
	close(fds[0]);
}

/* In a child: a mount namespace in which /mnt holds the file "mine". */
static pid_t
make_namespace(int *mnt_fd)
{
	int ready[2], mine;
	char path[64];
	pid_t pid;

	ASSERT_INT_EQ(pipe2(ready, O_CLOEXEC), 0);
	fflush(stdout);
	if ((pid = fork()) == 0) {
		if (unshare(CLONE_NEWNS) == -1 ||
		    mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) == -1 ||
		    mount("none", "/mnt", "tmpfs", 0, NULL) == -1 ||
		    (mine = creat("/mnt/mine", 0600)) == -1 ||
		    write(ready[1], "y", 1) != 1)
			_exit(1);
		for (;;)
			(void)pause();
	}
	close(ready[1]);
	*mnt_fd = -1;
	if (read(ready[0], path, 1) == 1) {
		snprintf(path, sizeof(path), "/proc/%ld/ns/mnt", (long)pid);
		*mnt_fd = open(path, O_RDONLY | O_CLOEXEC);
	}
	close(ready[0]);
	return pid;
}

static void
test_namespace(void)
{
	struct spawn_opts o = { .program = "lister" };
	char text[128], ours[64], after[64];
	ssize_t n;
	pid_t pid;
	int fd;

	TEST_START("another mount namespace");
	make_program("lister", "#!/bin/sh\nexec 1>&2; pwd; ls /mnt\n", 0755);
	pid = make_namespace(&o.mnt_fd);
	if (o.mnt_fd == -1) {
		(void)waitpid(pid, NULL, 0);
		TEST_SKIP("no mount namespace can be made here");
	}
	n = readlink("/proc/self/ns/mnt", ours, sizeof(ours));
	run(&o, text, sizeof(text));
	ASSERT_STRING_EQ(text, "/\nmine\n");
	/* The child shares our memory, not our view. */
	ASSERT_INT_EQ(readlink("/proc/self/ns/mnt", after, sizeof(after)), n);
	ASSERT_INT_EQ(memcmp(ours, after, (size_t)n), 0);
	close(o.mnt_fd);
	kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	o.mnt_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	ASSERT_ERR(spawn_start(&o, &pid, &fd), CL_SYSTEM);
	ASSERT_INT_EQ(errno, EINVAL);
	close(o.mnt_fd);
}

/* A helper must not outlive its monitor; a shim must. */
static void
check_parent_death(int flags, int dies)
{
	struct spawn_opts o = { .program = "sleeper", .flags = flags };
	int out[2], fd;
	pid_t pid, child = 0;
	struct pollfd pfd;

	ASSERT_INT_EQ(pipe2(out, O_CLOEXEC), 0);
	fflush(stdout);
	if ((pid = fork()) == 0) {
		o.log_fd = out[1];
		if (spawn_start(&o, &child, &fd) != CL_OK)
			_exit(1);
		(void)!write(out[1], &child, sizeof(child));
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	close(out[1]);
	ASSERT_INT_EQ(read(out[0], &child, sizeof(child)),
	    (ssize_t)sizeof(child));
	/* Its log is its copy of the pipe: end of file is its end. */
	pfd.fd = out[0];
	pfd.events = POLLIN;
	ASSERT_INT_EQ(poll(&pfd, 1, dies ? 5000 : 300) > 0, dies);
	if (!dies)
		kill(child, SIGKILL);
	close(out[0]);
}

static void
test_parent_death(void)
{
	char command[128];

	TEST_START("a helper dies with its monitor, a shim does not");
	make_program("sleeper", "#!/bin/sh\nexec sleep 30\n", 0755);
	check_parent_death(0, 1);
	check_parent_death(SPAWN_SURVIVE, 0);
	snprintf(command, sizeof(command), "%s/helper", dir);
	unlink(command);
	snprintf(command, sizeof(command), "%s/speaker", dir);
	unlink(command);
	snprintf(command, sizeof(command), "%s/lister", dir);
	unlink(command);
	snprintf(command, sizeof(command), "%s/sleeper", dir);
	unlink(command);
	snprintf(command, sizeof(command), "%s/broken", dir);
	unlink(command);
	snprintf(command, sizeof(command), "%s/plain", dir);
	unlink(command);
	snprintf(command, sizeof(command), "%s/true", dir);
	unlink(command);
	snprintf(command, sizeof(command), "%s/bad", dir);
	unlink(command);
	ASSERT_INT_EQ(rmdir(dir), 0);
}

UNIT_MAIN(test_layout, test_untouched, test_failures, test_kill,
    test_given_channel, test_namespace, test_parent_death)
