/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * common/base/pin: any text.  A pin that is read is written in its one form,
 * and read again as the same.
 */
#include "fuzz.h"

#include "common/base/err.h"
#include "common/base/pin.h"

#define FUZZ_PINS 4

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct pin pins[FUZZ_PINS], again;
	char *text, form[PIN_TEXT_LEN + 1];
	const char *why = NULL;
	size_t i, n;
	int r;

	if ((text = malloc(len + 1)) == NULL)
		return 0;
	memcpy(text, data, len);
	text[len] = '\0';
	r = pin_parse_list(text, pins, FUZZ_PINS, &n, &why);
	FUZZ_CHECK(n <= FUZZ_PINS && (r == CL_OK || (n == 0 && why != NULL)));
	for (i = 0; i < n; i++) {
		pin_format(&pins[i], form);
		FUZZ_CHECK(strlen(form) == PIN_TEXT_LEN);
		FUZZ_CHECK(pin_parse(form, PIN_TEXT_LEN, &again, NULL) ==
		    CL_OK);
		FUZZ_CHECK(pin_has_digest(&pins[i], 1, again.digest));
	}
	free(text);
	return 0;
}
