/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * common/model/devjob, common/model/workmsg: any bytes as a job's plan or
 * result, as the end of a return, as what operators are told.  The first byte
 * chooses.  What is read is written, read and written again: the same bytes.
 */
#include "fuzz.h"

#include "common/base/err.h"
#include "common/model/devjob.h"
#include "common/model/workmsg.h"
#include "common/msg/buf.h"

static const struct field_table *const tables[] = {
	&devjob_plan_table, &devjob_result_table, &work_end_table,
	&work_result_table,
};

union any {
	struct devjob_plan plan;
	struct devjob_result result;
	struct work_end end;
	struct work_result row;
};

static void
check_again(const struct field_table *t, const union any *x)
{
	struct buf a, b, in;
	union any y;

	buf_init(&a, 2 * MAX_DEVJOB_LEN);
	buf_init(&b, 2 * MAX_DEVJOB_LEN);
	field_put(t, x, &a);
	FUZZ_CHECK(buf_error(&a) == CL_OK);
	buf_init_read(&in, a.data, a.len);
	FUZZ_CHECK(field_get(t, &in, &y) == CL_OK && buf_end(&in) == CL_OK);
	field_put(t, &y, &b);
	FUZZ_CHECK(a.len == b.len && memcmp(a.data, b.data, a.len) == 0);
	field_clear(t, &y);
	buf_clear(&a);
	buf_clear(&b);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const struct field_table *t;
	union any x;
	struct buf b;

	if (len == 0)
		return 0;
	t = tables[data[0] % (sizeof(tables) / sizeof(tables[0]))];
	buf_init_read(&b, data + 1, len - 1);
	if (field_get(t, &b, &x) == CL_OK) {
		if (buf_end(&b) == CL_OK)
			check_again(t, &x);
		field_clear(t, &x);
	}
	return 0;
}
