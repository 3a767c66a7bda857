/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * A message with a descriptor reaches a process that has no number left for
 * one: what imsg_read makes of it, and whether that blames the sender.
 */
#include <sys/resource.h>

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/msg/imsg.h"
#include "common/msg/msgcat.h"

int
main(void)
{
	struct imsg_chan a, b;
	struct imsg m;
	struct rlimit rl;
	int p[2], r;

	if (imsg_pair(p) != 0 || imsg_init(&a, p[0], 10) != 0 ||
	    imsg_init(&b, p[1], 10) != 0)
		return 2;
	if (imsg_compose(&a, MSG_HELLO, 1, NULL,
	    open("/dev/null", O_RDONLY)) != 0 || imsg_write(&a) != 0)
		return 2;
	rl.rlim_cur = rl.rlim_max = (rlim_t)open("/dev/null", O_RDONLY);
	if (setrlimit(RLIMIT_NOFILE, &rl) == -1)
		return 2;
	while (dup(0) != -1)
		;
	r = imsg_read(&b, &m);
	printf("%s\n", cl_strerror(r));
	return r == CL_FORMAT;
}
