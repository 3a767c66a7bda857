/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The kernel's answers, for the device monitor.  The only outside text is a
 * process's own name in its stat line, which may hold anything: fields are
 * counted from the last closing parenthesis.
 */
#include <sys/resource.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/string.h>

#include "kern.h"
#include "common/base/err.h"

#define KERN_START_FIELD 20	/* starttime, counted after the state */

int
kern_is_short(int r)
{
	return r == CL_NOMEM || (r == CL_SYSTEM && (errno == EMFILE ||
	    errno == ENFILE || errno == ENOMEM || errno == EAGAIN ||
	    errno == ENOBUFS));
}

int
kern_is_unsure(int r)
{
	return kern_is_short(r) || (r == CL_SYSTEM && errno != ENOENT &&
	    errno != ENOTDIR && errno != ELOOP);
}

static int
kern_load_file(const char *path, char *dst, size_t dstlen)
{
	ssize_t n;
	int fd, saved;

	*dst = '\0';
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) == -1)
		return CL_SYSTEM;
	n = read(fd, dst, dstlen - 1);
	saved = errno;
	close(fd);
	errno = saved;
	if (n < 0)
		return CL_SYSTEM;
	dst[n] = '\0';
	return CL_OK;
}

int
kern_load_ticks(pid_t pid, uint64_t *ticksp)
{
	char path[64], text[1024], *p, *end;
	int i;

	*ticksp = 0;
	/* This no needs no descriptor. */
	if (pid <= 0 || (kill(pid, 0) == -1 && errno == ESRCH))
		return CL_NOTFOUND;
	snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
	if (kern_load_file(path, text, sizeof(text)) != CL_OK)
		return errno == ENOENT || errno == ESRCH ? CL_NOTFOUND :
		    CL_SYSTEM;
	if ((p = strrchr(text, ')')) == NULL)
		return CL_NOTFOUND;
	for (i = 0, p++; i < KERN_START_FIELD; i++) {
		if ((p = strchr(p, ' ')) == NULL)
			return CL_NOTFOUND;
		p++;
		if (i == 0 && *p == 'Z')
			return CL_NOTFOUND;	/* ended, not reaped */
	}
	*ticksp = strtoull(p, &end, 10);
	return end == p ? CL_NOTFOUND : CL_OK;
}

int
kern_check_process(pid_t pid, uint64_t ticks)
{
	uint64_t now;
	int r;

	if (ticks == 0)
		return CL_NOTFOUND;
	if ((r = kern_load_ticks(pid, &now)) != CL_OK)
		return r;
	return now == ticks ? CL_OK : CL_NOTFOUND;
}

int
kern_kill(pid_t pid, uint64_t ticks)
{
	int r = kern_check_process(pid, ticks);

	if (r == CL_OK)
		(void)kill(pid, SIGKILL);
	return r;
}

int
kern_kill_group(pid_t pid, uint64_t ticks)
{
	int r = pid > 1 ? kern_check_process(pid, ticks) : CL_NOTFOUND;

	if (r == CL_OK)
		(void)kill(-pid, SIGKILL);
	return r;
}

int
kern_load_boot(char dst[KERN_BOOT_LEN + 1])
{
	char text[64];
	int r;

	*dst = '\0';
	r = kern_load_file("/proc/sys/kernel/random/boot_id", text,
	    sizeof(text));
	if (r == CL_OK && strlen(text) < KERN_BOOT_LEN) {
		errno = EIO;
		r = CL_SYSTEM;
	}
	if (r == CL_OK)
		strlcpy(dst, text, KERN_BOOT_LEN + 1);
	return r;
}

unsigned int
kern_raise_files(void)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) == -1)
		return 256;
	if (rl.rlim_cur < rl.rlim_max) {
		rl.rlim_cur = rl.rlim_max;
		if (setrlimit(RLIMIT_NOFILE, &rl) == -1)
			(void)getrlimit(RLIMIT_NOFILE, &rl);
	}
	return rl.rlim_cur > INT_MAX ? INT_MAX : (unsigned int)rl.rlim_cur;
}
