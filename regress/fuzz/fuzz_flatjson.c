/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * common/json/flatjson, which a root program reads: what is taken is written in
 * both forms and read again as the same members; setting and removing a
 * member does what it says.
 */
#include "fuzz.h"

#include "common/base/err.h"
#include "common/json/flatjson.h"

static void
check_same(const struct flatjson *a, const struct flatjson *b)
{
	size_t i;

	FUZZ_CHECK(a->nmembers == b->nmembers);
	for (i = 0; i < a->nmembers; i++) {
		FUZZ_CHECK(a->member[i].is_string == b->member[i].is_string);
		FUZZ_CHECK(strcmp(a->member[i].key, b->member[i].key) == 0);
		FUZZ_CHECK(strcmp(a->member[i].value, b->member[i].value) ==
		    0);
	}
}

static void
check_form(const struct flatjson *doc, unsigned int indent)
{
	struct flatjson again;
	char *text;
	size_t len;

	FUZZ_CHECK(flatjson_format(doc, indent, &text, &len) == CL_OK);
	FUZZ_CHECK(strlen(text) == len);
	/* Escapes may make it longer than what is read. */
	if (len <= FLATJSON_MAX_LEN) {
		FUZZ_CHECK(flatjson_parse(text, len, &again) == CL_OK);
		check_same(doc, &again);
		flatjson_clear(&again);
	}
	free(text);
}

static void
check_edit(struct flatjson *doc)
{
	size_t n = doc->nmembers;
	const char *s;
	int r;

	r = flatjson_put_string(doc, "fuzz", "value");
	FUZZ_CHECK(r == CL_OK || (r == CL_TOOBIG && n ==
	    FLATJSON_MAX_MEMBERS));
	if (r != CL_OK)
		return;
	FUZZ_CHECK(flatjson_find_string(doc, "fuzz", &s) == CL_OK &&
	    strcmp(s, "value") == 0);
	flatjson_del_member(doc, "fuzz");
	FUZZ_CHECK(flatjson_find_string(doc, "fuzz", &s) == CL_NOTFOUND);
	FUZZ_CHECK(doc->nmembers == n || doc->nmembers == n - 1);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct flatjson doc;

	if (flatjson_parse(data, len, &doc) != CL_OK) {
		FUZZ_CHECK(doc.nmembers == 0);
		return 0;
	}
	check_form(&doc, 0);
	check_form(&doc, 2);
	check_edit(&doc);
	flatjson_clear(&doc);
	return 0;
}
