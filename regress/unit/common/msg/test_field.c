/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * common/msg/field: message form, JSON form and end of a struct by its table.
 */
#include "regress/unit/unit.h"

#include "common/base/err.h"
#include "common/base/secret.h"
#include "common/base/util.h"
#include "common/json/jsonw.h"
#include "common/msg/buf.h"
#include "common/msg/field.h"

#define DEF_FILE "regress/unit/common/msg/field.def"
#include "common/msg/def_struct.h"
#define DEF_FILE "regress/unit/common/msg/field.def"
#include "common/msg/def_table.h"

/* The rows of outer, each left out when empty. */
static const struct field *
omit_get_rows(size_t *np)
{
	static struct field rows[32];
	const struct field *from = outer_table.get_rows(np);
	size_t i;

	memcpy(rows, from, *np * sizeof(*from));
	for (i = 0; i < *np; i++)
		rows[i].flags |= FIELD_OMIT;
	return rows;
}
static const struct field_table omit_table = { "omit", sizeof(struct outer),
	omit_get_rows };

#define ZERO "\"0001-01-01T00:00:00Z\""

static void
check_json(const struct field_table *t, const struct outer *v,
    const char *want)
{
	struct jsonw w;

	jsonw_init(&w, 4096, 0);
	field_format_json(t, v, &w);
	ASSERT_ERR(jsonw_error(&w), CL_OK);
	ASSERT_STRING_EQ(w.data, want);
	jsonw_clear(&w);
}

static void
test_zero(void)
{
	struct outer v;

	TEST_START("the zero value in JSON: omitempty keeps objects and "
	    "times, nil is null");
	field_init(&outer_table, &v);
	check_json(&outer_table, &v, "{\"s\":\"\",\"secret\":\"\",\"text\":"
	    "\"\",\"data\":null,\"blob\":null,\"i\":0,\"u\":0,\"b\":false,"
	    "\"opt\":null,\"at\":" ZERO ",\"strs\":null,\"ints\":null,"
	    "\"map\":null,\"obj\":{\"name\":\"\",\"at\":" ZERO "},"
	    "\"ptr\":null,\"list\":null,\"raw\":null}");
	check_json(&omit_table, &v, "{\"at\":" ZERO ",\"obj\":{\"name\":\"\","
	    "\"at\":" ZERO "}}");
}

/* Everything set; owned memory. */
static void
fill(struct outer *v)
{
	field_init(&outer_table, v);
	v->s = strdup("s<");
	ASSERT_ERR(secret_init(&v->secret, "pw", 2, 8), CL_OK);
	v->text.data = calloc(1, 4);
	memcpy(v->text.data, "a\0b", 3);
	v->text.len = 3;
	v->text.nreplaced = 1;
	v->data = calloc(1, 4);
	v->data[0] = 255;
	v->data_len = 1;
	ASSERT_ERR(secret_init(&v->blob, "", 0, 8), CL_OK);
	v->i = -5;
	v->u = 5;
	v->b = 1;
	v->opt.set = 1;
	v->at = 1500000000;
	v->strs = calloc(2, sizeof(char *));
	v->strs[0] = strdup("");
	v->strs[1] = strdup("x");
	v->nstrs = 2;
	v->ints = calloc(2, sizeof(int64_t));
	v->ints[1] = 5;
	v->nints = 2;
	v->map = calloc(2, sizeof(struct field_pair));
	v->map[0].key = strdup("b");
	v->map[0].value = strdup("1");
	v->map[1].key = strdup("a");
	v->map[1].value = strdup("2");
	v->nmap = 2;
	v->obj.name = strdup("o");
	v->ptr = calloc(1, sizeof(struct inner));
	v->list = calloc(1, sizeof(struct inner));
	v->list[0].name = strdup("l");
	v->list[0].at = UTIL_TIME_ZERO;
	v->nlist = 1;
	v->raw = strdup("[1,2]");
	v->hidden = strdup("h");
}

static const char *const filled = "{\"s\":\"s\\u003c\",\"secret\":\"pw\","
    "\"text\":\"a\\u0000b\",\"data\":\"/w==\",\"blob\":\"\",\"i\":-5,"
    "\"u\":5,\"b\":true,\"opt\":0,\"at\":\"1970-01-01T00:00:01.5Z\","
    "\"strs\":[\"\",\"x\"],\"ints\":[0,5],\"map\":{\"a\":\"2\",\"b\":\"1\"},"
    "\"obj\":{\"name\":\"o\",\"at\":" ZERO "},\"ptr\":{\"name\":\"\","
    "\"at\":\"1970-01-01T00:00:00Z\"},\"list\":[{\"name\":\"l\",\"at\":"
    ZERO "}],\"raw\":[1,2]}";

static void
test_filled(void)
{
	struct outer v, back;
	struct buf b, in;

	TEST_START("put, get and format agree; map keys are sorted");
	fill(&v);
	check_json(&outer_table, &v, filled);
	buf_init(&b, 4096);
	field_put(&outer_table, &v, &b);
	ASSERT_ERR(buf_error(&b), CL_OK);
	buf_init_read(&in, b.data, b.len);
	ASSERT_ERR(field_get(&outer_table, &in, &back), CL_OK);
	ASSERT_ERR(buf_end(&in), CL_OK);
	check_json(&outer_table, &back, filled);
	ASSERT_STRING_EQ(back.hidden, "h");
	ASSERT_SIZE_T_EQ(back.text.nreplaced, 1);
	ASSERT_TRUE(back.blob.data != NULL);
	ASSERT_STRING_EQ(field_find_pair(back.map, back.nmap, "b"), "1");
	ASSERT_PTR_EQ(field_find_pair(back.map, back.nmap, "c"), NULL);
	field_clear(&outer_table, &back);
	ASSERT_PTR_EQ(back.strs, NULL);
	ASSERT_SIZE_T_EQ(back.nstrs, 0);
	field_clear(&outer_table, &v);
	buf_clear(&b);
}

static void
test_nil(void)
{
	struct outer v, back;
	struct buf b, in;

	TEST_START("nil and empty stay apart in a message");
	field_init(&outer_table, &v);
	v.strs = calloc(1, sizeof(char *));
	v.list = calloc(1, sizeof(struct inner));
	v.data = calloc(1, 1);
	buf_init(&b, 4096);
	field_put(&outer_table, &v, &b);
	buf_init_read(&in, b.data, b.len);
	ASSERT_ERR(field_get(&outer_table, &in, &back), CL_OK);
	ASSERT_TRUE(back.strs != NULL && back.nstrs == 0);
	ASSERT_TRUE(back.list != NULL && back.nlist == 0);
	ASSERT_TRUE(back.data != NULL && back.data_len == 0);
	ASSERT_PTR_EQ(back.ints, NULL);
	ASSERT_PTR_EQ(back.ptr, NULL);
	ASSERT_TRUE(back.at == UTIL_TIME_ZERO && back.obj.at == back.at);
	field_clear(&outer_table, &back);
	field_clear(&outer_table, &v);
	buf_clear(&b);
}

static void
test_truncated(void)
{
	struct outer v, back;
	struct buf b, in;
	size_t n;

	TEST_START("a message cut anywhere is refused, nothing leaks");
	fill(&v);
	buf_init(&b, 4096);
	field_put(&outer_table, &v, &b);
	for (n = 0; n < b.len; n++) {
		unit_note("%zu of %zu bytes", n, b.len);
		buf_init_read(&in, b.data, n);
		ASSERT_ERR(field_get(&outer_table, &in, &back),
		    CL_INCOMPLETE);
		ASSERT_ERR(buf_end(&in), CL_INCOMPLETE);
		ASSERT_PTR_EQ(back.s, NULL);
	}
	field_clear(&outer_table, &v);
	buf_clear(&b);
}

/* One put that must fail with r. */
static void
check_put(struct outer *v, int r)
{
	struct buf b;

	buf_init(&b, 4096);
	field_put(&outer_table, v, &b);
	ASSERT_ERR(buf_error(&b), r);
	buf_clear(&b);
}

static void
test_bounds(void)
{
	char *three[] = { "a", "b", "c" };
	int64_t big = 6;
	struct outer v;

	TEST_START("bounds of the table hold when writing");
	field_init(&outer_table, &v);
	v.s = "12345678";
	check_put(&v, CL_OK);
	v.s = "123456789";
	check_put(&v, CL_TOOBIG);
	v.s = NULL;
	v.i = 6;
	check_put(&v, CL_FORMAT);
	v.i = -6;
	check_put(&v, CL_FORMAT);
	v.i = 0;
	v.u = 6;
	check_put(&v, CL_FORMAT);
	v.u = 0;
	v.strs = three;
	v.nstrs = 3;
	check_put(&v, CL_LIMIT);
	v.nstrs = 2;
	check_put(&v, CL_OK);
	v.ints = &big;
	v.nints = 1;
	check_put(&v, CL_FORMAT);
}

/* The same bounds when reading: a looser table plays the hostile peer. */
static void
check_get(struct wide *v, int r)
{
	struct narrow back;
	struct buf b, in;

	buf_init(&b, 4096);
	field_put(&wide_table, v, &b);
	ASSERT_ERR(buf_error(&b), CL_OK);
	buf_init_read(&in, b.data, b.len);
	ASSERT_ERR(field_get(&narrow_table, &in, &back), r);
	field_clear(&narrow_table, &back);
	buf_clear(&b);
}

static void
test_hostile(void)
{
	char *three[] = { "a", "b", "c" };
	struct field_pair twice[] = { { "k", "1" }, { "k", "2" } };
	struct wide v;

	TEST_START("bounds of the table hold when reading");
	field_init(&wide_table, &v);
	check_get(&v, CL_OK);
	v.s = "123456789";
	check_get(&v, CL_TOOBIG);
	v.s = NULL;
	v.i = 6;
	check_get(&v, CL_FORMAT);
	v.i = 0;
	v.strs = three;
	v.nstrs = 3;
	check_get(&v, CL_LIMIT);
	v.nstrs = 2;
	v.map = twice;
	v.nmap = 2;
	check_get(&v, CL_FORMAT);
}

static void
test_count(void)
{
	static const uint8_t msg[] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		0x00, 0x00, 0x00, 0x03 };
	struct outer back;
	struct buf in;

	TEST_START("a count beyond the message allocates nothing");
	buf_init_read(&in, msg, sizeof(msg));
	ASSERT_ERR(field_get(&narrow_table, &in, &back), CL_INCOMPLETE);
}

UNIT_MAIN(test_zero, test_filled, test_nil, test_truncated, test_bounds,
    test_hostile, test_count)
