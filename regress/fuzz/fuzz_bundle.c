/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * common/model/bundle: what decodes is encoded again and decodes to the same.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/model/bundle.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct bundle b, again;
	const char *why;
	char *text;

	if (bundle_parse((const char *)data, len, &b, &why) != 0)
		return 0;
	if (bundle_format(&b, &text) == 0) {
		if (bundle_parse(text, strlen(text), &again, &why) != 0 ||
		    strcmp(b.server, again.server) != 0 ||
		    strcmp(b.token, again.token) != 0)
			abort();
		bundle_clear(&again);
		free(text);
	}
	bundle_clear(&b);
	return 0;
}
