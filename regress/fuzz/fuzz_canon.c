/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * common/json/canon: what is read is written back the same, byte for byte.
 */
#include "fuzz.h"

#include "common/json/canon.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct canon *root;
	char *text;
	size_t n;

	if (canon_parse(data, len, &root) != 0) {
		FUZZ_CHECK(root == NULL);
		return 0;
	}
	FUZZ_CHECK(canon_format(root, &text, &n) == 0);
	FUZZ_CHECK(n == len && memcmp(text, data, n) == 0);
	free(text);
	canon_free(root);
	return 0;
}
