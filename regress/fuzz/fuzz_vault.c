/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * agent/monitor/vault: any bytes as the record of a holding.  What is taken
 * can be asked about; its paths are not touched here.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/monitor/vault.h"
#include "common/base/err.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct holding h;
	size_t file, i;

	if (holding_parse(&h, data, len) != CL_OK) {
		if (h.ngrants != 0 || h.set.nfiles != 0 || h.set.ndirs != 0)
			abort();
		return 0;
	}
	for (i = 0; i < h.set.ndirs; i++)
		if (strstr(h.set.dirs[i].path, "/" SECRETFILES_PREFIX) ==
		    NULL)
			abort();
	for (i = 0; i < h.ngrants; i++) {
		if ((holding_find(&h, h.grants[i].lease_id, "") &
		    VAULT_HAS_LEASE) == 0)
			abort();
		(void)holding_find_file(&h, h.grants[i].lease_id, "/d", "n",
		    &file);
	}
	holding_clear(&h);
	return 0;
}
