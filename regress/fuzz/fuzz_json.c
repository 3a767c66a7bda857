/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * net/codec/json: any bytes.  What the scan accepts, json-c accepts too, and
 * its compact copy is accepted again and is its own copy.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "net/codec/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

static int
fuzz_on_string(const char *key, const char *s, size_t len, void *arg)
{
	size_t *np = arg;

	*np += strlen(key) + len + (len > 0 ? (unsigned char)s[len - 1] : 0);
	return CL_OK;
}

static void
fuzz_read_tokens(const struct jx *x)
{
	size_t len, nreplaced;
	uint64_t u;
	int64_t v;
	uint32_t i;
	char *s;

	for (i = 0; i < x->ntokens; i++) {
		if (x->tokens[i].next <= i || x->tokens[i].next > x->ntokens ||
		    x->tokens[i].off > x->len ||
		    x->tokens[i].len > x->len - x->tokens[i].off)
			abort();
		if (jx_get_string(x, i, 1 << 20, &s, &len, &nreplaced) == 0) {
			if (s != NULL && s[len] != '\0')
				abort();
			free(s);
		}
		(void)jx_get_int(x, i, &v);
		(void)jx_get_uint(x, i, &u);
		(void)jx_is_key(x, i, "payload");
	}
}

static void
fuzz_check_copy(const struct jx *x)
{
	struct jx again;
	char *text, *copy;

	if (jx_get_raw(x, 0, 3 << 20, &text) != 0 || text == NULL)
		return;
	jx_init(&again);
	if (jx_scan(&again, text, strlen(text)) != 0 ||
	    again.ntokens != x->ntokens ||
	    jx_get_raw(&again, 0, 3 << 20, &copy) != 0 ||
	    strcmp(text, copy) != 0)
		abort();
	jx_clear(&again);
	free(copy);
	free(text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct jx x;
	size_t n = 0;

	jx_init(&x);
	if (len <= 65536 && jx_scan(&x, data, len) == 0) {
		fuzz_read_tokens(&x);
		fuzz_check_copy(&x);
		if (jx_walk_strings(&x, 0, fuzz_on_string, &n) != 0)
			abort();
	} else if (len <= 65536 && x.why[0] == '\0') {
		abort();
	}
	jx_clear(&x);
	return 0;
}
