/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Process identity from /proc, for the device monitor.  The only outside
 * text is a process's own name in its stat line, which may hold anything:
 * fields are counted from the last closing parenthesis.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/string.h>

#include "procid.h"

#define PROCID_START_FIELD 20	/* starttime, counted after the state */

static ssize_t
procid_load_file(const char *path, char *dst, size_t dstlen)
{
	ssize_t n;
	int fd;

	*dst = '\0';
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) == -1)
		return -1;
	n = read(fd, dst, dstlen - 1);
	close(fd);
	dst[n > 0 ? n : 0] = '\0';
	return n;
}

uint64_t
procid_load_ticks(pid_t pid)
{
	char path[64], text[1024], *p, *end;
	unsigned long long ticks;
	int i;

	if (pid <= 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
	if (procid_load_file(path, text, sizeof(text)) <= 0 ||
	    (p = strrchr(text, ')')) == NULL)
		return 0;
	for (i = 0, p++; i < PROCID_START_FIELD; i++) {
		if ((p = strchr(p, ' ')) == NULL)
			return 0;
		p++;
		if (i == 0 && *p == 'Z')
			return 0;	/* ended, not reaped */
	}
	ticks = strtoull(p, &end, 10);
	return end == p ? 0 : ticks;
}

int
procid_is_alive(pid_t pid, uint64_t ticks)
{
	return ticks != 0 && procid_load_ticks(pid) == ticks;
}

void
procid_load_boot(char dst[PROCID_BOOT_LEN + 1])
{
	char text[64];

	*dst = '\0';
	if (procid_load_file("/proc/sys/kernel/random/boot_id", text,
	    sizeof(text)) < PROCID_BOOT_LEN)
		return;
	text[PROCID_BOOT_LEN] = '\0';
	strlcpy(dst, text, PROCID_BOOT_LEN + 1);
}
