/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * common/model/spec: any bytes as the message form of a start.  What is read is
 * checked, written, read and written again: the second message is the
 * first, and it has a JSON form.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/json/jsonw.h"
#include "common/model/spec.h"
#include "common/msg/buf.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

static void
fuzz_check_rules(const struct spec *s)
{
	char *why;
	int r;

	r = spec_check(s, &why);
	if ((r == CL_OK) != (why == NULL))
		abort();
	free(why);
	r = spec_check_siblings(s, &why);
	if ((r == CL_OK) != (why == NULL))
		abort();
	free(why);
}

static void
fuzz_check_again(const struct spec *s)
{
	struct spec again;
	struct jsonw w;
	struct buf a, b, in;

	buf_init(&a, 2 * MAX_SPEC_LEN);
	buf_init(&b, 2 * MAX_SPEC_LEN);
	spec_put(s, &a);
	if (buf_error(&a) != 0)
		abort();
	buf_init_read(&in, a.data, a.len);
	if (spec_get(&in, &again) != 0 || buf_end(&in) != 0)
		abort();
	spec_put(&again, &b);
	if (buf_error(&b) != 0 || a.len != b.len ||
	    memcmp(a.data, b.data, a.len) != 0)
		abort();
	jsonw_init(&w, 16 * MAX_SPEC_LEN, 0);
	spec_format_json(&again, &w);
	if (jsonw_error(&w) != 0)
		abort();
	spec_trim_sandbox(&again.sandbox);
	jsonw_clear(&w);
	spec_clear(&again);
	buf_clear(&a);
	buf_clear(&b);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct spec s;
	struct buf b;

	if (len > MAX_SPEC_LEN)
		return 0;
	buf_init_read(&b, data, len);
	if (spec_get(&b, &s) == 0) {
		if (buf_end(&b) == 0) {
			fuzz_check_rules(&s);
			fuzz_check_again(&s);
		}
		spec_clear(&s);
	}
	return 0;
}
