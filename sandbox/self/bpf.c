/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Finished filters, without libseccomp: the shim and what it starts take
 * them from the monitor that started it, whom they trust with more than
 * that.  Still only whole programs of a length the kernel knows are taken.
 */
#include "bpf.h"

#include <sys/prctl.h>
#include <sys/syscall.h>

#include <linux/bpf_common.h>
#include <linux/seccomp.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/limits.h"

void
bpf_set_clear(struct bpf_set *s)
{
	size_t i;

	for (i = 0; i < BPF_NKINDS; i++)
		free(s->prog[i].filter);
	memset(s, 0, sizeof(*s));
}

void
bpf_set_put(struct buf *b, const struct bpf_set *s)
{
	size_t i;

	for (i = 0; i < BPF_NKINDS; i++)
		buf_put_blob(b, s->prog[i].filter,
		    s->prog[i].len * sizeof(struct sock_filter));
}

static int
bpf_get(struct buf *b, struct sock_fprog *p)
{
	const uint8_t *data;
	size_t len;

	data = buf_get_blob(b, BPF_MAXINSNS * sizeof(*p->filter), &len);
	if (data == NULL)
		return buf_error(b);
	if (len == 0 || len % sizeof(*p->filter) != 0)
		return CL_FORMAT;
	if ((p->filter = malloc(len)) == NULL)
		return CL_NOMEM;
	memcpy(p->filter, data, len);
	p->len = (unsigned short)(len / sizeof(*p->filter));
	return CL_OK;
}

int
bpf_set_get(struct buf *b, struct bpf_set *s)
{
	size_t i;
	int r = CL_OK;

	memset(s, 0, sizeof(*s));
	for (i = 0; i < BPF_NKINDS && r == CL_OK; i++)
		r = bpf_get(b, &s->prog[i]);
	if (r == CL_OK)
		r = buf_end(b);
	if (r != CL_OK)
		bpf_set_clear(s);
	return r;
}

int
bpf_start_own(struct sock_fprog *p)
{
	struct sock_filter *row;
	size_t found = 0, i;

	for (i = 0; i < p->len; i++) {
		row = &p->filter[i];
		if (row->code != (BPF_JMP | BPF_JEQ | BPF_K) ||
		    row->k != BPF_OWN_PID)
			continue;
		row->k = (uint32_t)getpid();
		found++;
	}
	return found == 0 ? CL_INTERNAL : bpf_start(p);
}

int
bpf_start(const struct sock_fprog *p)
{
	if (p->len == 0)
		return CL_INTERNAL;
#ifdef CLOOP_VALGRIND
	return CL_OK;	/* see self_start.c */
#endif
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, p) == 0 ?
	    CL_OK : CL_SYSTEM;
}
