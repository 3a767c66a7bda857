/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * common/msg/def_*.h: a .def of its own (every.def), in which each kind of
 * member stands, is structs, field tables and rows; what is put is got, as
 * JSON too, and the bounds are those that can be reached.
 */
#include "regress/unit/unit.h"

#include "common/base/err.h"
#include "common/base/util.h"
#include "common/json/jsonw.h"
#include "common/msg/buf.h"
#include "common/msg/field.h"
#include "regress/unit/msgbody.h"

#define DEF_FILE "regress/unit/common/msg/every.def"
#include "common/msg/def_struct.h"
#define DEF_FILE "regress/unit/common/msg/every.def"
#include "common/msg/def_table.h"

#define MS_STARTING 1
#define MS_ANY 7
enum { FROM_N2M = 1, FROM_M2N };

static const struct {
	const char *name;
	uint32_t type;
	int dir;
	unsigned int states;
	const struct field_table *body;
	int fd, once;
	unsigned int rate, open;
} rows[] = {
#define ROW(name, number, dir, states, body, fd, once, rate, open)             \
	{ #name, number, FROM_##dir, states, &body##_table, fd, once, rate,    \
	    open },
#define DEF_FILE "regress/unit/common/msg/every.def"
#include "common/msg/def_rows.h"
};

static const struct field_table *const tables[] = {
	&inner_table, &every_table, &renamed_table, &nothing_table,
};
#define NTABLES (sizeof(tables) / sizeof(tables[0]))

union any {
	struct inner inner;
	struct every every;
	struct renamed renamed;
	struct nothing nothing;
};

/* The words of a .def mean nothing afterwards. */
#if defined(STR) || defined(STRUCT) || defined(ROW) || defined(DEF_FILE) ||    \
    defined(LIST) || defined(END) || defined(DEF_FIELD)
#error "left over"
#endif

static void
test_rows(void)
{
	msg_of_EVERY *every = NULL;
	struct every *same = every;
	const struct field *f;
	size_t n;

	TEST_START("rows, in order, with what they say");
	ASSERT_PTR_EQ(same, NULL);
	ASSERT_SIZE_T_EQ(sizeof(rows) / sizeof(rows[0]), 2);
	ASSERT_STRING_EQ(rows[0].name, "EVERY");
	ASSERT_INT_EQ(rows[0].type, 0x10);
	ASSERT_INT_EQ(rows[0].dir, FROM_N2M);
	ASSERT_INT_EQ(rows[0].states, MS_ANY);
	ASSERT_PTR_EQ(rows[0].body, &every_table);
	ASSERT_INT_EQ(rows[0].fd, 1);
	ASSERT_INT_EQ(rows[0].once, 0);
	ASSERT_INT_EQ(rows[0].rate, 7);
	ASSERT_INT_EQ(rows[0].open, 8);
	ASSERT_STRING_EQ(rows[1].name, "NOTHING");
	ASSERT_INT_EQ(rows[1].once, 1);

	TEST_START("tables: names, sizes, keys and flags");
	ASSERT_STRING_EQ(every_table.name, "every");
	ASSERT_SIZE_T_EQ(every_table.size, sizeof(struct every));
	f = every_table.get_rows(&n);
	ASSERT_SIZE_T_EQ(n, 18);
	ASSERT_STRING_EQ(f[0].key, "str");
	ASSERT_INT_EQ(f[0].flags, 0);
	ASSERT_SIZE_T_EQ(f[0].max, 8);
	ASSERT_INT_EQ(f[7].min, -5);
	ASSERT_PTR_EQ(f[17].sub, &inner_table);
	ASSERT_SIZE_T_EQ(f[17].noff, offsetof(struct every, nlist));
	f = renamed_table.get_rows(&n);
	ASSERT_SIZE_T_EQ(n, 18);
	ASSERT_STRING_EQ(f[0].key, "Str");
	ASSERT_INT_EQ(f[0].flags, FIELD_OMIT);
	(void)nothing_table.get_rows(&n);
	ASSERT_SIZE_T_EQ(n, 0);
}

static void
check_json(const struct field_table *t, const void *v, const char *want)
{
	struct jsonw w;

	jsonw_init(&w, 4096, 0);
	field_format_json(t, v, &w);
	ASSERT_ERR(jsonw_error(&w), CL_OK);
	ASSERT_STRING_EQ(w.data, want);
	jsonw_clear(&w);
}

#define ZERO "\"0001-01-01T00:00:00Z\""
#define EPOCH "\"1970-01-01T00:00:00Z\""
#define EIGHT "\"00000008\""
#define INNER "{\"name\":" EIGHT ",\"at\":" EPOCH "}"

static void
test_json(void)
{
	union any v;

	TEST_START("JSON by a member's own name");
	field_init(&every_table, &v);
	check_json(&every_table, &v, "{\"str\":\"\",\"cstr\":\"\",\"raw\":"
	    "null,\"secret\":\"\",\"text\":\"\",\"bytes\":null,\"sbytes\":"
	    "null,\"num\":0,\"unum\":0,\"flag\":false,\"opt\":null,\"at\":"
	    ZERO ",\"strs\":null,\"ints\":null,\"map\":null,\"obj\":"
	    "{\"name\":\"\",\"at\":" ZERO "},\"ptr\":null,\"list\":null}");
	msgbody_make(&every_table, &v, MSGBODY_SHORT);
	check_json(&every_table, &v, "{\"str\":" EIGHT ",\"cstr\":" EIGHT
	    ",\"raw\":00000008,\"secret\":" EIGHT ",\"text\":" EIGHT
	    ",\"bytes\":\"MDAwMDAwMDg=\",\"sbytes\":\"MDAwMDAwMDg=\","
	    "\"num\":0,\"unum\":0,\"flag\":false,\"opt\":0,\"at\":" EPOCH
	    ",\"strs\":[\"00000000\"],\"ints\":[0],\"map\":{\"00000000\":"
	    "\"00000000\"},\"obj\":" INNER ",\"ptr\":" INNER ",\"list\":["
	    INNER "]}");
	field_clear(&every_table, &v);

	TEST_START("and by the key it was given, with its flags");
	field_init(&renamed_table, &v);
	check_json(&renamed_table, &v, "{\"Obj\":{\"name\":\"\",\"at\":" ZERO
	    "}}");
	v.renamed.num = 5;
	v.renamed.cstr = strdup("x");
	check_json(&renamed_table, &v, "{\"CStr\":\"x\",\"Num\":5,\"Obj\":"
	    "{\"name\":\"\",\"at\":" ZERO "}}");
	field_clear(&renamed_table, &v);
}

/* Read from memory of exactly its size. */
static int
get(const struct field_table *t, const struct buf *form, union any *v)
{
	uint8_t *exact = malloc(form->len + 1);
	struct buf b;
	int r;

	if (form->len > 0)
		memcpy(exact, form->data, form->len);
	buf_init_read(&b, exact, form->len);
	if ((r = field_get(t, &b, v)) == CL_OK)
		r = buf_end(&b);
	free(exact);
	return r;
}

/* There and back: one form. */
static void
check_same(const struct field_table *t, const union any *v,
    const struct buf *form)
{
	struct buf b;
	union any back;

	buf_init(&b, 65536);
	field_put(t, v, &b);
	ASSERT_ERR(buf_error(&b), CL_OK);
	ASSERT_BYTES_EQ(b.data, b.len, form->data, form->len);
	buf_clear(&b);
	ASSERT_ERR(get(t, form, &back), CL_OK);
	buf_init(&b, 65536);
	field_put(t, &back, &b);
	ASSERT_BYTES_EQ(b.data, b.len, form->data, form->len);
	buf_clear(&b);
	field_clear(t, &back);
}

static void
test_sizes(void)
{
	struct buf form;
	size_t i, min, max;
	union any v;
	int how;

	TEST_START("the bounds of a struct are its smallest and largest form");
	for (i = 0; i < NTABLES; i++) {
		field_find_bounds(tables[i], &min, &max);
		for (how = MSGBODY_SMALLEST; how <= MSGBODY_LARGEST; how++) {
			unit_note("%s: %d", tables[i]->name, how);
			msgbody_make(tables[i], &v, (enum msgbody_how)how);
			buf_init(&form, 65536);
			msgbody_encode(tables[i], &v, &form);
			ASSERT_ERR(buf_error(&form), CL_OK);
			ASSERT_INT_GE(form.len, min);
			ASSERT_INT_LE(form.len, max);
			if (how == MSGBODY_SMALLEST)
				ASSERT_SIZE_T_EQ(form.len, min);
			if (how == MSGBODY_LARGEST)
				ASSERT_SIZE_T_EQ(form.len, max);
			check_same(tables[i], &v, &form);
			buf_clear(&form);
			field_clear(tables[i], &v);
		}
	}
}

/* One member like this: what both ends make of it. */
static void
check_member(const struct field_table *t, const union any *v,
    enum msgbody_how how, int want)
{
	struct buf b, form;
	union any back;

	buf_init(&form, 65536);
	msgbody_encode(t, v, &form);
	if (want == CL_OK) {
		check_same(t, v, &form);
	} else {
		buf_init(&b, 65536);
		field_put(t, v, &b);
		ASSERT_ERR(buf_error(&b), how == MSGBODY_FALSE ? CL_OK :
		    want);
		buf_clear(&b);
		ASSERT_ERR(get(t, &form, &back), want);
	}
	buf_clear(&form);
}

static void
test_members(void)
{
	int how, target, want, ncases = 0;
	const char *key;
	union any v;
	size_t i;

	TEST_START("each member at its bounds and beyond, at both ends");
	for (i = 0; i < NTABLES; i++)
		for (how = 0; how < MSGBODY_NHOWS; how++) {
			for (target = 0; msgbody_make_one(tables[i], &v,
			    target, (enum msgbody_how)how, &want, &key);
			    target++) {
				unit_note("%s %s: %d", tables[i]->name, key,
				    how);
				if (want != MSGBODY_NO_CASE) {
					check_member(tables[i], &v,
					    (enum msgbody_how)how, want);
					ncases++;
				}
				field_clear(tables[i], &v);
			}
			field_clear(tables[i], &v);
		}
	/* None was left out unseen. */
	ASSERT_INT_GT(ncases, 150);
}

static void
test_clear(void)
{
	union any v, zero;
	size_t i;

	TEST_START("clear leaves the zero value, and may come twice");
	for (i = 0; i < NTABLES; i++) {
		memset(&v, 0, sizeof(v));
		memset(&zero, 0, sizeof(zero));
		field_init(tables[i], &zero);
		msgbody_make(tables[i], &v, MSGBODY_LARGEST);
		field_clear(tables[i], &v);
		ASSERT_MEM_EQ(&v, &zero, tables[i]->size);
		field_clear(tables[i], &v);
	}
}

static void
test_cut(void)
{
	struct buf form, part;
	union any v, back;
	size_t n;

	TEST_START("a form cut anywhere is none, and leaves nothing");
	msgbody_make(&every_table, &v, MSGBODY_SHORT);
	buf_init(&form, 65536);
	field_put(&every_table, &v, &form);
	for (n = 0; n < form.len; n++) {
		unit_note("%zu of %zu bytes", n, form.len);
		buf_init_read(&part, form.data, n);
		ASSERT_ERR(get(&every_table, &part, &back), CL_INCOMPLETE);
		ASSERT_PTR_EQ(back.every.str, NULL);
	}
	field_clear(&every_table, &v);
	buf_clear(&form);

	TEST_START("a message's string is \"\" when it is empty, others NULL");
	field_init(&every_table, &v);
	buf_init(&form, 65536);
	field_put(&every_table, &v, &form);
	ASSERT_ERR(get(&every_table, &form, &back), CL_OK);
	ASSERT_STRING_EQ(back.every.cstr, "");
	ASSERT_STRING_EQ(back.every.obj.name, "");
	ASSERT_PTR_EQ(back.every.str, NULL);
	field_clear(&every_table, &back);
	buf_clear(&form);
}

UNIT_MAIN(test_rows, test_json, test_sizes, test_members, test_clear,
    test_cut)
