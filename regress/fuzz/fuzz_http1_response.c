/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * net/codec/http1, response heads: any bytes.
 */
#include "fuzz.h"

#include "common/base/err.h"
#include "common/base/limits.h"
#include "net/codec/http1.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct http1_head h;
	const char *why;
	uint8_t *head;
	int r;

	if (len > HTTP_HEAD_MAX || (head = malloc(len + 1)) == NULL)
		return 0;
	memcpy(head, data, len);
	if (http1_parse_response(head, len, &h) == CL_OK) {
		FUZZ_CHECK(h.status >= 100 && h.status <= 999);
		FUZZ_CHECK(h.method == NULL && h.path == NULL);
		r = http1_check_switching(&h, "dGhlIHNhbXBsZSBub25jZQ==",
		    &why);
		FUZZ_CHECK((r == CL_OK) == (why == NULL));
		FUZZ_CHECK(r != CL_OK || h.status == 101);
	}
	free(head);
	return 0;
}
