/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * common/model/url: any text is split or refused, and what is split again gives
 * the same parts.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/model/url.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct url u, again;
	const char *why;
	char *text;

	if ((text = calloc(1, len + 1)) == NULL)
		return 0;
	memcpy(text, data, len);
	if (url_parse(text, &u, &why) == 0) {
		if (u.port == 0 || *u.host == '\0' || *u.path != '/' ||
		    url_parse(u.text, &again, &why) != 0 ||
		    memcmp(&u, &again, sizeof(u)) != 0)
			abort();
		(void)url_is_loopback(u.host);
	}
	free(text);
	return 0;
}
