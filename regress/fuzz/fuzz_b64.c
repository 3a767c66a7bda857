/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * common/base/b64: what decodes, encodes and decodes to the same; dstmax holds.
 */
#include "fuzz.h"

#include "common/base/b64.h"
#include "common/base/err.h"

typedef int decode_fn(const char *, size_t, uint8_t *, size_t, size_t *);
typedef size_t encode_fn(const void *, size_t, char *);

static void
try_both(const uint8_t *data, size_t len, decode_fn *decode, encode_fn *encode)
{
	uint8_t *raw, *again, *tight;
	size_t raw_len, n, max = len + 3;
	char *text;

	raw = malloc(max);
	if (decode((const char *)data, len, raw, max, &raw_len) == 0) {
		text = malloc(B64_LEN(raw_len) + 1);
		again = malloc(max);
		n = encode(raw, raw_len, text);
		FUZZ_CHECK(n <= B64_LEN(raw_len) && text[n] == '\0');
		FUZZ_CHECK(decode(text, n, again, max, &n) == 0);
		FUZZ_CHECK(n == raw_len && memcmp(again, raw, n) == 0);
		free(text);
		free(again);
		tight = malloc(raw_len == 0 ? 1 : raw_len);
		FUZZ_CHECK(decode((const char *)data, len, tight, raw_len,
		    &n) == 0);
		if (raw_len > 0)
			FUZZ_CHECK(decode((const char *)data, len, tight,
			    raw_len - 1, &n) == CL_TOOBIG);
		free(tight);
	}
	free(raw);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	try_both(data, len, b64_decode, b64_encode);
	try_both(data, len, b64url_decode, b64url_encode);
	return 0;
}
