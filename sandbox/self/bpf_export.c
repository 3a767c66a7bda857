/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Take a finished program out of libseccomp, whose own exit for it is a file.
 */
#include "bpf_export.h"

#include <sys/mman.h>

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/err.h"

static int
bpf_load(int fd, struct sock_fprog *p)
{
	off_t len = lseek(fd, 0, SEEK_END);

	if (len <= 0 || (size_t)len % sizeof(*p->filter) != 0 ||
	    (size_t)len / sizeof(*p->filter) > BPF_MAXINSNS)
		return CL_INTERNAL;
	if ((p->filter = malloc((size_t)len)) == NULL)
		return CL_NOMEM;
	if (pread(fd, p->filter, (size_t)len, 0) != (ssize_t)len) {
		free(p->filter);
		p->filter = NULL;
		return CL_SYSTEM;
	}
	p->len = (unsigned short)((size_t)len / sizeof(*p->filter));
	return CL_OK;
}

int
bpf_export(scmp_filter_ctx ctx, struct sock_fprog *p)
{
	int fd, r, rc;

	if ((fd = memfd_create("filter", MFD_CLOEXEC)) == -1)
		return CL_SYSTEM;
	if ((rc = seccomp_export_bpf(ctx, fd)) != 0) {
		errno = -rc;
		r = rc == -ENOMEM ? CL_NOMEM : CL_SYSTEM;
	} else {
		r = bpf_load(fd, p);
	}
	close(fd);
	return r;
}
