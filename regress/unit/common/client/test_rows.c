/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * common/client/rows: one row of every type as JSON and as a table; columns
 * that name no member are found.
 */
#include <sys/mman.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/util.h"
#include "common/client/rows.h"
#include "regress/unit/unit.h"

#define DEF_FILE "regress/unit/common/client/thing.def"
#include "common/msg/def_struct.h"
#define DEF_FILE "regress/unit/common/client/thing.def"
#include "common/msg/def_table.h"

static const char *
thing_word(const void *row)
{
	return ((const struct thing *)row)->good ? "good" : "";
}

static void
thing_put(struct jsonw *w, const void *row)
{
	(void)row;
	jsonw_put_int(w, 7);
}

static const struct row_col thing_cols[] = {
	COL_AT("name", 2, "NAME"),
	{ .key = "raw", .how = COL_JSON },
	{ .key = "bytes", .field = "size", .how = COL_SIZE, .place = 1,
	  .title = "SIZE", .width = 8 },
	{ .key = "pid", .how = COL_KNOWN },
	{ .key = "in", .how = COL_OPEN },
	COL("good"), COL_AT("code", 3, "CODE"),
	{ .how = COL_CLOSE },
	{ .key = "word", .place = 4, .title = "WORD", .word = thing_word,
	  .empty = "bad" },
	{ .key = "seven", .put = thing_put },
	COL("at"), COL_AT("words", 5, "WORDS"), COL_AT("labels", 6, "L"),
};
static const struct row_kind thing_kind = { .fields = &thing_table,
	.list = "things", .none = "no things", COLS(thing_cols) };

static struct tool t;

/* Standard output is TAP's, except between these two. */
static int saved_fd, paper_fd;

static void
capture(void)
{
	fflush(stdout);
	saved_fd = dup(STDOUT_FILENO);
	paper_fd = memfd_create("paper", 0);
	(void)dup2(paper_fd, STDOUT_FILENO);
}

static const char *
printed(void)
{
	static char text[4096];
	ssize_t n;

	fflush(stdout);
	n = pread(paper_fd, text, sizeof(text) - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	(void)dup2(saved_fd, STDOUT_FILENO);
	close(saved_fd);
	close(paper_fd);
	return text;
}

static void
test_json(void)
{
	char *words[] = { (char *)(uintptr_t)"a", (char *)(uintptr_t)"b" };
	struct field_pair pair = { words[0], words[1] };
	struct thing v;
	int r;

	TEST_START("a document has each member by its type");
	field_init(&thing_table, &v);
	t.json = 1;
	capture();
	r = rows_print(&t, &thing_kind, &v);
	ASSERT_STRING_EQ(printed(), "{\"name\":null,\"raw\":null,\"bytes\":0,"
	    "\"pid\":null,\"in\":{\"good\":false,\"code\":null},"
	    "\"word\":null,\"seven\":7,\"at\":null,\"words\":[],"
	    "\"labels\":{}}\n");
	v.name = words[0];
	v.raw = (char *)(uintptr_t)"{\"x\":1}";
	v.size = 2048;
	v.pid = 5;
	v.good = 1;
	v.code.set = 1;
	v.code.v = -1;
	v.at = 0;
	v.words = words;
	v.nwords = 2;
	v.labels = &pair;
	v.nlabels = 1;
	capture();
	r = rows_print(&t, &thing_kind, &v);
	ASSERT_STRING_EQ(printed(), "{\"name\":\"a\",\"raw\":{\"x\":1},"
	    "\"bytes\":2048,\"pid\":5,\"in\":{\"good\":true,\"code\":-1},"
	    "\"word\":\"good\",\"seven\":7,\"at\":\"1970-01-01T00:00:00Z\","
	    "\"words\":[\"a\",\"b\"],\"labels\":{\"a\":\"b\"}}\n");
	ASSERT_INT_EQ(r, EXIT_DONE);
	t.json = 0;
}

static void
test_table(void)
{
	char *words[] = { (char *)(uintptr_t)"a\nb", (char *)(uintptr_t)"c" };
	struct thing v;
	struct rows r;

	TEST_START("a table has the columns by their place, cleaned");
	field_init(&thing_table, &v);
	capture();
	rows_open(&r, &t, &thing_kind);
	(void)rows_close(&r, EXIT_DONE);
	ASSERT_STRING_EQ(printed(), "no things\n");
	capture();
	rows_open(&r, &t, &thing_kind);
	(void)rows_add(&t, &v, -1, &r);
	v.name = words[0];
	v.size = 2048;
	v.good = 1;
	v.code.set = 1;
	v.words = words;
	v.nwords = 2;
	(void)rows_add(&t, &v, -1, &r);
	(void)rows_close(&r, EXIT_DONE);
	ASSERT_STRING_EQ(printed(),
	    "SIZE      NAME  CODE  WORD  WORDS  L\n"
	    "0B        -     -     bad   -      -\n"
	    "2.0K      a?b   0     good  a?b,c  -\n");
	/* A list that was refused is not printed. */
	capture();
	rows_open(&r, &t, &thing_kind);
	(void)rows_close(&r, EXIT_REFUSED);
	ASSERT_STRING_EQ(printed(), "");
}

static void
test_columns(void)
{
	static const struct row_col lost[] = { COL("name"), COL("nmae") };
	static const struct row_kind kind = { .fields = &thing_table,
		COLS(lost) };
	const char *key;

	TEST_START("a column that names no member is found");
	ASSERT_INT_EQ(rows_check(&thing_kind, &key), 1);
	ASSERT_INT_EQ(rows_check(&kind, &key), 0);
	ASSERT_STRING_EQ(key, "nmae");
}

static void
test_when(void)
{
	const int64_t now = util_wall_ns(), s = 1000000000;

	TEST_START("times as people say them");
	ASSERT_STRING_EQ(tool_format_when(&t, UTIL_TIME_ZERO), "-");
	ASSERT_STRING_EQ(tool_format_when(&t, now - 119 * s), "119s ago");
	ASSERT_STRING_EQ(tool_format_when(&t, now - 179 * s), "2m ago");
	ASSERT_STRING_EQ(tool_format_when(&t, now + 900 * s + s / 2),
	    "in 900s");
	t.nearest = 1;
	ASSERT_STRING_EQ(tool_format_when(&t, now - 179 * s), "3m ago");
	ASSERT_STRING_EQ(tool_format_when(&t, now + 900 * s + s / 2),
	    "in 15m");
	t.nearest = 0;
	t.utc = 1;
	ASSERT_STRING_EQ(tool_format_when(&t, s / 2), "1970-01-01T00:00:00Z");
	t.utc = 0;
}

static void
test_clean(void)
{
	TEST_START("what was written elsewhere does not steer");
	ASSERT_STRING_EQ(tool_clean("a\033[1m\177b"), "a?[1m?b");
	ASSERT_STRING_EQ(tool_clean(NULL), "");
	ASSERT_STRING_EQ(tool_clean_after(", ", "x\n"), ", x?");
	ASSERT_STRING_EQ(tool_clean_after(", ", ""), "");
	ASSERT_STRING_EQ(tool_format_size(1023), "1023B");
	ASSERT_STRING_EQ(tool_format_size(1536), "1.5K");
}

UNIT_MAIN(test_json, test_table, test_columns, test_when, test_clean)
