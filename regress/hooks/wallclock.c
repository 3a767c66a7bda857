/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * A wall clock that somebody sets, for the tests: preloaded into programs,
 * it adds what stands in the file $CLOOP_CLOCK, seconds as int64, to every
 * answer about CLOCK_REALTIME.  Every process maps the file before it is
 * confined; the test rewrites it while they run.  The kernel offers no such
 * thing: time namespaces have monotonic clocks only.
 */
#include <sys/mman.h>
#include <sys/time.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static const int64_t *offset;
static __typeof__(&clock_gettime) real_gettime;

__attribute__((__constructor__)) static void
wall_open(void)
{
	const char *path = getenv("CLOOP_CLOCK");
	void *p;
	int fd;

	real_gettime = (__typeof__(&clock_gettime))dlsym(RTLD_NEXT,
	    "clock_gettime");
	if (path == NULL || (fd = open(path, O_RDONLY | O_CLOEXEC)) == -1)
		return;
	p = mmap(NULL, sizeof(*offset), PROT_READ, MAP_SHARED, fd, 0);
	if (p != MAP_FAILED)
		offset = p;
	close(fd);
}

int
clock_gettime(clockid_t which, struct timespec *ts)
{
	int r;

	if (real_gettime == NULL)	/* another constructor came first */
		wall_open();
	r = real_gettime(which, ts);
	if (r == 0 && offset != NULL &&
	    (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE))
		ts->tv_sec += __atomic_load_n(offset, __ATOMIC_SEQ_CST);
	return r;
}

int
gettimeofday(struct timeval *tv, void *zone)
{
	struct timespec ts;

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &ts);
	tv->tv_sec = ts.tv_sec;
	tv->tv_usec = ts.tv_nsec / 1000;
	return 0;
}

time_t
time(time_t *t)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	if (t != NULL)
		*t = ts.tv_sec;
	return ts.tv_sec;
}
