/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Key files and signatures: what is read has one text form (keys), or is
 * written back to the same bytes (signify, comment aside).
 */
#include "common/base/signify.h"
#include "store/db/keyfile.h"
#include "fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const char *text = (const char *)data;
	uint8_t key[KEYFILE_RAW_LEN];
	char again[SIGNIFY_TEXT_MAX], raw[KEYFILE_RAW_MAX];
	struct signify_key k, k2;
	struct signify_sig s, s2;
	size_t n;

	if (keyfile_parse_raw("mac", text, len, key) == 0) {
		n = keyfile_format_raw("mac", key, raw);
		FUZZ_CHECK(n == len && memcmp(raw, data, n) == 0);
	}
	if (signify_parse_key(text, len, &k) == 0) {
		n = signify_format_key(&k, "x", again);
		FUZZ_CHECK(signify_parse_key(again, n, &k2) == 0);
		FUZZ_CHECK(memcmp(&k, &k2, sizeof(k)) == 0);
	}
	if (signify_parse_sig(text, len, &s) == 0) {
		n = signify_format_sig(&s, "x", again);
		FUZZ_CHECK(signify_parse_sig(again, n, &s2) == 0);
		FUZZ_CHECK(memcmp(&s, &s2, sizeof(s)) == 0);
	}
	return 0;
}
