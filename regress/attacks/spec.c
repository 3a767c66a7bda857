/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * What a hub says of a workload that runs /bin/true in the tree `w', to
 * standard output: the blob of DEV_START for a fetcher that was taken over.
 */
#include <stdio.h>

#include "common/base/limits.h"
#include "common/base/xmem.h"
#include "common/model/spec.h"
#include "common/msg/buf.h"

int
main(void)
{
	struct spec s;
	struct buf b;

	spec_init(&s);
	s.argv = xcalloc(2, sizeof(char *));
	s.argv[s.nargv++] = xstrdup("/bin/true");
	s.work_dir = xstrdup("w");
	buf_init(&b, MAX_SPEC_LEN);
	spec_put(&s, &b);
	spec_clear(&s);
	fwrite(b.data, 1, b.len, stdout);
	return buf_error(&b) != 0;
}
