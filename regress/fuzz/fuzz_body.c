/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * common/msg/msgcat: any bytes as the body of any row that has a struct.  The
 * first two bytes choose the row (its number, or else one by counting).  What
 * msg_get accepts is within the bounds of its row, and msg_put makes the same
 * bytes of it; a map comes back sorted, and then the same.
 * Seeds: MSGBODY_SEEDS=regress/corpus/body build/unit/test_msgcat.
 */
#include "fuzz.h"

#include "common/base/err.h"
#include "common/msg/buf.h"
#include "common/msg/imsg.h"
#include "common/msg/msgcat.h"

static const struct msg_row *
choose_row(uint32_t number)
{
	const struct msg_row *row = msgcat_find(number), *rows;
	size_t n;

	if (row != NULL)
		return row;
	rows = msgcat_get_rows(&n);
	return &rows[number % n];
}

/* A map in it, or in what it has. */
static int
has_map(const struct field_table *t)
{
	size_t n, i;
	const struct field *rows = t->get_rows(&n);

	for (i = 0; i < n; i++)
		if (rows[i].kind == FIELD_MAP ||
		    (rows[i].sub != NULL && has_map(rows[i].sub)))
			return 1;
	return 0;
}

/* What was got of data is put into b. */
static void
put_again(const struct msg_row *row, const uint8_t *data, size_t len,
    struct buf *b)
{
	union msg_any v;
	struct buf in;

	buf_init_read(&in, data, len);
	FUZZ_CHECK(msg_get(row->type, &in, &v) == CL_OK);
	FUZZ_CHECK(msg_put(row->type, &v, b) == CL_OK);
	msg_clear(row->type, &v);
}

static void
check_same(const struct msg_row *row, const uint8_t *data, size_t len)
{
	struct buf a, b;

	buf_init(&a, MSG_BODY_MAX);
	buf_init(&b, MSG_BODY_MAX);
	put_again(row, data, len, &a);
	FUZZ_CHECK(a.len == len);
	if (has_map(row->body)) {
		put_again(row, a.data, a.len, &b);
		FUZZ_CHECK(b.len == len && memcmp(a.data, b.data, len) == 0);
	} else {
		FUZZ_CHECK(len == 0 || memcmp(a.data, data, len) == 0);
	}
	buf_clear(&a);
	buf_clear(&b);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const struct msg_row *row;
	union msg_any v;
	struct buf b;
	size_t min, max;

	if (len < 2 || len - 2 > MSG_BODY_MAX)
		return 0;
	row = choose_row((uint32_t)data[0] << 8 | data[1]);
	data += 2;
	len -= 2;
	buf_init_read(&b, data, len);
	if (msg_get(row->type, &b, &v) != CL_OK)
		return 0;
	msg_clear(row->type, &v);
	msgcat_find_bounds(row, &min, &max);
	FUZZ_CHECK(len >= min && len <= max);
	check_same(row, data, len);
	return 0;
}
