/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The test build's crash points.  $CLOOP_HOOKS names a file that every
 * process maps before it is confined: the test writes a point's name and
 * how many times it is to be passed; the process that counts to zero dies
 * on the spot, as of SIGKILL: no handler, no clean-up, no system call.
 */
#include <sys/mman.h>

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/crash.h"

struct crash_page {
	char name[64];
	int32_t left;		/* dies when this becomes 0 */
	uint32_t nfired;
};

static struct crash_page *crash_page;

__attribute__((__constructor__)) static void
crash_open(void)
{
	const char *path = getenv("CLOOP_HOOKS");
	void *p;
	int fd;

	if (path == NULL || (fd = open(path, O_RDWR | O_CLOEXEC)) == -1)
		return;
	p = mmap(NULL, sizeof(*crash_page), PROT_READ | PROT_WRITE,
	    MAP_SHARED, fd, 0);
	if (p != MAP_FAILED)
		crash_page = p;
	close(fd);
}

void
crash_point(const char *name)
{
	if (crash_page == NULL || strncmp(crash_page->name, name,
	    sizeof(crash_page->name)) != 0)
		return;
	if (__atomic_sub_fetch(&crash_page->left, 1, __ATOMIC_SEQ_CST) != 0)
		return;
	__atomic_add_fetch(&crash_page->nfired, 1, __ATOMIC_SEQ_CST);
	__builtin_trap();
}
