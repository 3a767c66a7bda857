/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The seccomp filters of workloads, in the device monitor: compiled once at
 * the start, in a sealed memfd that every shim gets.  Compiling them in each
 * shim cost more than all the rest of a start.
 */
#include <fcntl.h>

#include "filters.h"
#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/util.h"
#include "sandbox/self/bpf.h"
#include "agentd.h"

int
filters_make(struct agentd *a)
{
	struct bpf_set set;
	struct buf b;
	int r;

	if ((r = bpf_set_make(&set)) != CL_OK)
		return r;
	buf_init(&b, MAX_FILTERS_LEN);
	bpf_set_put(&b, &set);
	bpf_set_clear(&set);
	a->filters_len = (uint32_t)b.len;
	if ((r = buf_error(&b)) == CL_OK)
		r = util_make_memfd(b.data, b.len, &a->filters_fd);
	buf_clear(&b);
	return r;
}

int
filters_send(const struct agentd *a, struct chan *c)
{
	int copy = fcntl(a->filters_fd, F_DUPFD_CLOEXEC, 0), r;
	struct buf b;

	if (copy == -1)
		return CL_SYSTEM;
	buf_init(&b, 4);
	buf_put_u32(&b, a->filters_len);
	r = chan_send_buf(c, MSG_SHIM_FILTERS, 0, &b, copy);
	buf_clear(&b);
	return r;
}
