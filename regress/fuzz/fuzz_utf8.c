/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * common/base/utf8: the first byte is the size of the pieces.  The output is
 * valid, independent of the cuts, and normal already.
 */
#include "fuzz.h"

#include "common/base/utf8.h"

static uint8_t *
normalise(const uint8_t *p, size_t len, size_t step, size_t *outp)
{
	struct utf8_norm n;
	uint8_t *out = malloc(3 * (len + 6)), *piece;
	size_t i, part, got, total = 0;

	utf8_norm_init(&n);
	for (i = 0; i < len; i += part) {
		part = len - i < step ? len - i : step;
		piece = malloc(3 * (part + 3));
		got = utf8_norm_put(&n, p + i, part, piece);
		FUZZ_CHECK(got <= 3 * (part + 3) && n.tail_len <= 3);
		memcpy(out + total, piece, got);
		total += got;
		free(piece);
	}
	*outp = total + utf8_norm_end(&n, out + total);
	return out;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t *whole, *cut, *again;
	size_t n, m, k, step;

	if (len < 2)
		return 0;
	step = (size_t)data[0] % 16 + 1;
	data++;
	len--;
	whole = normalise(data, len, len, &n);
	cut = normalise(data, len, step, &m);
	again = normalise(whole, n, step, &k);
	FUZZ_CHECK(n == m && memcmp(whole, cut, n) == 0);
	FUZZ_CHECK(n == k && memcmp(whole, again, n) == 0);
	FUZZ_CHECK(utf8_is_valid(whole, n));
	FUZZ_CHECK(utf8_is_valid(data, len) ==
	    (n == len && memcmp(whole, data, n) == 0));
	for (k = 0; k <= n && k < 64; k++) {
		m = utf8_cut(whole, k);
		FUZZ_CHECK(m <= k && k - m <= 3 && utf8_is_valid(whole, m));
	}
	free(whole);
	free(cut);
	free(again);
	return 0;
}
