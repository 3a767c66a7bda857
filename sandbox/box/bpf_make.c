/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The filters of all shims, compiled in cloop-agentd before it confines
 * itself.
 */
#include "sandbox/self/bpf.h"

#include <seccomp.h>
#include <string.h>

#include "common/base/err.h"
#include "sandbox/self/self.h"
#include "filter.h"

int
bpf_set_make(struct bpf_set *s)
{
	int r;

#ifdef CLOOP_VALGRIND
	/* It does not know seccomp(2), by which the library asks what the
	 * kernel can, and loads. */
	(void)seccomp_api_set(5);
#endif
	memset(s, 0, sizeof(*s));
	if ((r = filter_make_workload(&s->prog[BPF_WORKLOAD])) == CL_OK &&
	    (r = filter_make_init(&s->prog[BPF_INIT])) == CL_OK &&
	    (r = self_profile_make(SELF_SHIM, &s->prog[BPF_SHIM])) == CL_OK)
		r = self_profile_make(SELF_SHIM_SCAN,
		    &s->prog[BPF_SHIM_SCAN]);
	if (r != CL_OK)
		bpf_set_clear(s);
#ifdef CLOOP_VALGRIND
	(void)seccomp_api_set(1);
#endif
	return r;
}
