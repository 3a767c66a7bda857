/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Run a program to its end.  Runs in cloopd-fence, which has one capability
 * and one thing to do at a time; so it waits here, but not for ever.  The
 * program inherits this process's filter and loses its descriptors.
 */
#include "fence_run.h"

#include <sys/pidfd.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/util.h"

/* Between fork and exec: descriptors and nothing else. */
static void
fence_exec(const char *const *argv, int in, int err)
{
	static char *const none[] = { NULL };
	int null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (null_fd != -1 && dup2(in, 0) != -1 && dup2(null_fd, 1) != -1 &&
	    dup2(err, 2) != -1 && close_range(3, ~0U, 0) != -1)
		execve(argv[0], (char *const *)(uintptr_t)argv, none);
	_exit(127);
}

/* Its end, or CL_TIMEOUT. */
static int
fence_wait(pid_t pid, int ms, int *statusp)
{
	struct pollfd pfd = { .fd = -1, .events = POLLIN };
	int64_t until = util_now_ms() + ms, left;
	int r = CL_OK;

	if ((pfd.fd = pidfd_open(pid, 0)) == -1)
		r = CL_SYSTEM;
	while (r == CL_OK) {
		if ((left = until - util_now_ms()) <= 0) {
			r = CL_TIMEOUT;
			break;
		}
		if (poll(&pfd, 1, (int)left) == 1)
			break;
	}
	if (r != CL_OK)
		kill(pid, SIGKILL);	/* ours and not reaped: the right one */
	while (waitpid(pid, statusp, 0) == -1 && errno == EINTR)
		continue;
	if (pfd.fd != -1)
		close(pfd.fd);
	return r;
}

/* What it said, as far as it fits; its end is closed already. */
static void
fence_load_line(int fd, char *dst, size_t len)
{
	ssize_t n = read(fd, dst, len - 1);
	size_t i;

	if (n < 0)
		n = 0;
	dst[n] = '\0';
	dst[strcspn(dst, "\n")] = '\0';
	for (i = 0; dst[i] != '\0'; i++)
		if ((unsigned char)dst[i] < ' ' ||
		    (unsigned char)dst[i] > '~')
			dst[i] = '?';
}

int
fence_run(const char *const *argv, const char *text, size_t len, int ms,
    char *err, size_t errlen)
{
	int in[2] = { -1, -1 }, out[2] = { -1, -1 }, status = 0, r;
	pid_t pid;

	err[0] = '\0';
	if (len > FENCE_TEXT_MAX)
		return CL_TOOBIG;
	if (pipe2(in, O_CLOEXEC) == -1 ||
	    pipe2(out, O_CLOEXEC | O_NONBLOCK) == -1 ||
	    (pid = fork()) == -1) {
		r = CL_SYSTEM;
		goto out;
	}
	if (pid == 0)
		fence_exec(argv, in[0], out[1]);
	close(in[0]);
	in[0] = -1;
	/* When it ended without reading, its status says why. */
	(void)util_write_all(in[1], text, len);
	close(in[1]);
	in[1] = -1;
	if ((r = fence_wait(pid, ms, &status)) == CL_OK &&
	    (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
		r = CL_DENIED;
	fence_load_line(out[0], err, errlen);
out:
	if (in[0] != -1)
		close(in[0]);
	if (in[1] != -1)
		close(in[1]);
	if (out[0] != -1)
		close(out[0]);
	if (out[1] != -1)
		close(out[1]);
	return r;
}
