/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The readers of the device monitor's own files: the credential (flat JSON),
 * a token file, a workload's record.  What is read and written again must
 * read the same.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/monitor/credential.h"
#include "agent/monitor/handledir.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

static void
check_flat(const struct flatjson *doc)
{
	struct flatjson again;
	char *text;
	size_t len, i;

	if (flatjson_format(doc, 2, &text, &len) != 0)
		return;
	/* Escapes may make it longer than what is read. */
	if (len <= FLATJSON_MAX_LEN) {
		if (flatjson_parse(text, len, &again) != 0 ||
		    again.nmembers != doc->nmembers)
			abort();
		for (i = 0; i < again.nmembers; i++)
			if (strcmp(again.member[i].key,
			    doc->member[i].key) != 0 ||
			    strcmp(again.member[i].value,
			    doc->member[i].value) != 0)
				abort();
		flatjson_clear(&again);
	}
	free(text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct credential c;
	struct handle_meta m;
	struct bundle b;
	const char *why;

	if (credential_parse(data, len, &c, &why) == 0) {
		check_flat(&c.doc);
		credential_clear(&c);
	}
	if (credential_parse_token((const char *)data, len, &b, &why) == 0)
		bundle_clear(&b);
	(void)handledir_parse_meta(data, len, &m);
	return 0;
}
