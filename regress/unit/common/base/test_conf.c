/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * common/base/conf: every error with its place, and the round trip of the dump.
 */
#include "regress/unit/unit.h"

#include <sys/stat.h>

#include <unistd.h>

#include "common/base/conf.h"
#include "common/base/err.h"
#include "common/base/util.h"

struct sample {
	struct conf_seen seen;
	int flag;
	unsigned int count;
	uint64_t size;
	unsigned int age;
	char *name;
	char *path;
	int level;
	struct conf_list list;
	char *words;
};

static const char *
check_even(const char *value)
{
	return strlen(value) % 2 == 0 ? NULL : "odd length";
}

#define F(member) offsetof(struct sample, member)
static const char *const levels[] = { "low", "high", NULL };
static const struct conf_row rows[] = {
	{ "Flag", CONF_BOOL, F(flag), 0, 0, "yes", 0, NULL, NULL },
	{ "Count", CONF_UINT, F(count), 1, 16, "4", CONF_RELOAD, NULL, NULL },
	{ "Size", CONF_SIZE, F(size), 512, 1ULL << 40, "64M", 0, NULL, NULL },
	{ "Age", CONF_TIME, F(age), 1, 14 * 86400, "15m", 0, NULL, NULL },
	{ "Name", CONF_STRING, F(name), 0, 8, NULL, CONF_NONE_OK, NULL,
	    check_even },
	{ "Path", CONF_PATH, F(path), 0, 64, "/var", 0, NULL, NULL },
	{ "Level", CONF_ENUM, F(level), 0, 0, "high", 0, levels, NULL },
	{ "List", CONF_LIST, F(list), 0, 3, NULL, CONF_NONE_OK, NULL, NULL },
	{ "Words", CONF_WORDS, F(words), 0, 0, "a b", 0, NULL, NULL },
	{ NULL, 0, 0, 0, 0, NULL, 0, NULL, NULL },
};

static struct sample c;
static char dir[64], file[100], err[512];

static void
begin(void)
{
	snprintf(dir, sizeof(dir), "/tmp/cloop-unit.XXXXXX");
	ASSERT_PTR_NE(mkdtemp(dir), NULL);
	snprintf(file, sizeof(file), "%s/conf", dir);
}

static void
end(void)
{
	unlink(file);
	ASSERT_INT_EQ(rmdir(dir), 0);
}

/* Load a text as the file; options first. */
static int
load(const char *text, const char *option)
{
	int r;

	unit_note("%.200s", text);
	conf_clear(rows, &c, sizeof(c));
	err[0] = '\0';
	ASSERT_ERR(util_save_file(file, 0644, text, strlen(text)), CL_OK);
	if (option != NULL && (r = conf_parse_option(rows, &c, option, err,
	    sizeof(err))) != 0)
		return r;
	if ((r = conf_load_file(rows, &c, file, err, sizeof(err))) != 0)
		return r;
	return conf_set_defaults(rows, &c, err, sizeof(err));
}

static void
test_values(void)
{
	TEST_START("defaults of everything not set");
	begin();
	ASSERT_ERR(load("", NULL), CL_OK);
	ASSERT_INT_EQ(c.flag, 1);
	ASSERT_INT_EQ(c.count, 4);
	ASSERT_U64_EQ(c.size, 64 << 20);
	ASSERT_INT_EQ(c.age, 900);
	ASSERT_PTR_EQ(c.name, NULL);
	ASSERT_STRING_EQ(c.path, "/var");
	ASSERT_INT_EQ(c.level, 1);
	ASSERT_INT_EQ(c.list.n, 0);
	ASSERT_STRING_EQ(c.words, "a b");
	TEST_START("values, comments, quotes, any case of keywords");
	ASSERT_ERR(load("# comment\n\n  FLAG no  # off\ncount\t16\nsize 512\n"
	    "Age 1h30m\nName \"a \\\"\\\\bc\"\nPath \"/with space\"\n"
	    "Level low\nList 127.0.0.1:7480  plaintext\nList \"x\"\n"
	    "Words one \"two  three\" # end\nlist 3", NULL), CL_OK);
	ASSERT_INT_EQ(c.flag, 0);
	ASSERT_INT_EQ(c.count, 16);
	ASSERT_U64_EQ(c.size, 512);
	ASSERT_INT_EQ(c.age, 5400);
	ASSERT_STRING_EQ(c.name, "a \"\\bc");
	ASSERT_STRING_EQ(c.path, "/with space");
	ASSERT_INT_EQ(c.level, 0);
	ASSERT_INT_EQ(c.list.n, 3);
	ASSERT_STRING_EQ(c.list.v[0], "127.0.0.1:7480 plaintext");
	ASSERT_STRING_EQ(c.list.v[1], "x");
	ASSERT_STRING_EQ(c.words, "one two  three");
	TEST_START("none is nothing, \"none\" is a name");
	ASSERT_ERR(load("Name none\nList none\n", NULL), CL_OK);
	ASSERT_PTR_EQ(c.name, NULL);
	ASSERT_INT_EQ(c.list.n, 0);
	ASSERT_ERR(load("Name \"none\"\nList \"none\"\n", NULL), CL_OK);
	ASSERT_STRING_EQ(c.name, "none");
	ASSERT_INT_EQ(c.list.n, 1);
	end();
	conf_clear(rows, &c, sizeof(c));
}

static const struct {
	const char *text, *error;
} bad[] = {
	{ "\nNonsense 1\n", "2: unknown keyword \"Nonsense\"" },
	{ "Flag maybe", "1: Flag \"maybe\": must be no or yes" },
	{ "Flag", "1: Flag: value missing" },
	{ "Flag # yes", "1: Flag: value missing" },
	{ "Flag yes no", "1: Flag: unexpected text \"no\" after the value" },
	{ "Flag yes\nflag yes", "2: Flag is given twice" },
	{ "Words a\nWords b", "2: Words is given twice" },
	{ "Count 0", "1: Count \"0\": must be between 1 and 16" },
	{ "Count 17", "1: Count \"17\": must be between 1 and 16" },
	{ "Count -1", "1: Count \"-1\": not a number" },
	{ "Count 1x", "1: Count \"1x\": not a number" },
	{ "Count 99999999999999999999999",
	    "1: Count \"99999999999999999999999\": must be between 1 and 16" },
	{ "Size 511", "1: Size \"511\": must be between 512 and 1T" },
	{ "Size 2T", "1: Size \"2T\": must be between 512 and 1T" },
	{ "Size 99999999999T",
	    "1: Size \"99999999999T\": must be between 512 and 1T" },
	{ "Size 1MB", "1: Size \"1MB\": not a size (512, 64K, 8M, 1G)" },
	{ "Size M", "1: Size \"M\": not a size (512, 64K, 8M, 1G)" },
	{ "Age 0", "1: Age \"0\": must be between 1s and 14d" },
	{ "Age 337h", "1: Age \"337h\": must be between 1s and 14d" },
	{ "Age 5x", "1: Age \"5x\": not a time (90, 15m, 24h, 14d)" },
	{ "Name 123456789", "1: Name \"123456789\": odd length" },
	{ "Name 1234567890",
	    "1: Name \"1234567890\": longer than 8 bytes" },
	{ "Path var", "1: Path \"var\": must be an absolute path" },
	{ "Level LOW", "1: Level \"LOW\": must be low or high" },
	{ "List a\nList b\nList c\nList d",
	    "4: List \"d\": more than 3 values" },
	{ "Name \"ab", "1: Name: bad quotes" },
	{ "Name \"a\"b", "1: Name: bad quotes" },
	{ "Name a\001", "1: control character (byte 0x01)" },
	{ "Name ab\r\n", "1: control character (byte 0x0d)" },
	{ "Include", "1: Include: needs one pattern" },
	{ "Include a b", "1: Include: needs one pattern" },
	{ "Include missing", "1: Include \"missing\": no such file" },
	{ "Include conf", "1: Include \"conf\": nested too deeply" },
};

static void
test_errors(void)
{
	char want[700];
	size_t i;

	TEST_START("every mistake is file:line: message");
	begin();
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ASSERT_ERR(load(bad[i].text, NULL), CL_FORMAT);
		snprintf(want, sizeof(want), "%s:%s", file, bad[i].error);
		ASSERT_STRING_EQ(err, want);
	}
	TEST_START("a NUL byte is refused");
	ASSERT_ERR(util_save_file(file, 0644, "Flag yes\0no", 11), CL_OK);
	conf_clear(rows, &c, sizeof(c));
	ASSERT_ERR(conf_load_file(rows, &c, file, err, sizeof(err)),
	    CL_FORMAT);
	TEST_START("an error fits whatever buffer it is given");
	for (i = 0; i < 80; i++) {
		char *small = malloc(i + 1);

		small[i] = 'x';
		conf_clear(rows, &c, sizeof(c));
		ASSERT_ERR(conf_load_file(rows, &c, file, small, i),
		    CL_FORMAT);
		ASSERT_INT_EQ(small[i], 'x');
		free(small);
	}
	end();
	conf_clear(rows, &c, sizeof(c));
}

static void
test_bounds(void)
{
	TEST_START("each bound itself is allowed");
	begin();
	ASSERT_ERR(load("Count 1\nSize 512\nAge 14d\nName 12345678\n", NULL),
	    CL_OK);
	ASSERT_ERR(load("Count 16\nSize 1T\nAge 1\nList a\nList b\nList c",
	    NULL), CL_OK);
	ASSERT_INT_EQ(c.list.n, 3);
	end();
	conf_clear(rows, &c, sizeof(c));
}

static void
test_files(void)
{
	TEST_START("a file that others could write is refused");
	begin();
	ASSERT_ERR(load("Flag no\n", NULL), CL_OK);
	conf_clear(rows, &c, sizeof(c));
	chmod(file, 0664);
	ASSERT_ERR(conf_load_file(rows, &c, file, err, sizeof(err)),
	    CL_DENIED);
	chmod(file, 0646);
	ASSERT_ERR(conf_load_file(rows, &c, file, err, sizeof(err)),
	    CL_DENIED);
	chmod(file, 0644);
	if (geteuid() == 0) {
		ASSERT_INT_EQ(chown(file, 65534, 65534), 0);
		ASSERT_ERR(conf_load_file(rows, &c, file, err, sizeof(err)),
		    CL_DENIED);
	}
	TEST_START("a missing file and a directory say so");
	unlink(file);
	ASSERT_ERR(conf_load_file(rows, &c, file, err, sizeof(err)),
	    CL_SYSTEM);
	ASSERT_PTR_NE(strstr(err, "/conf: No such file or directory"), NULL);
	ASSERT_ERR(conf_load_file(rows, &c, dir, err, sizeof(err)),
	    CL_FORMAT);
	end();
}

static void
test_include(void)
{
	char one[128], two[128];

	TEST_START("Include: globs, relative, in order; errors name the file");
	begin();
	snprintf(one, sizeof(one), "%s/1.inc", dir);
	snprintf(two, sizeof(two), "%s/2.inc", dir);
	ASSERT_ERR(util_save_file(one, 0644, "List a\n", 7), CL_OK);
	ASSERT_ERR(util_save_file(two, 0644, "List b\nCount 5", 14), CL_OK);
	ASSERT_ERR(load("Include *.inc\nList c\nInclude nothing*\n", NULL),
	    CL_OK);
	ASSERT_INT_EQ(c.list.n, 3);
	ASSERT_STRING_EQ(c.list.v[1], "b");
	ASSERT_INT_EQ(c.count, 5);
	ASSERT_ERR(load("Count 4\nInclude \"2.inc\"", NULL), CL_FORMAT);
	ASSERT_PTR_NE(strstr(err, "/2.inc:2: Count is given twice"), NULL);
	chmod(two, 0666);
	ASSERT_ERR(load("Include 2.inc", NULL), CL_DENIED);
	unlink(one);
	unlink(two);
	end();
	conf_clear(rows, &c, sizeof(c));
}

static void
test_option(void)
{
	static const char *const wrong[] = { "", "Count", "=3", "Nope=1",
	    "Count=17", "Count=", "Count=1 2", "Flag=yes\nCount 3",
	    "Include=/x" };
	size_t i;

	TEST_START("-o wins over the file, which is checked all the same");
	begin();
	ASSERT_ERR(load("Count 3\nList b\n", "count=7"), CL_OK);
	ASSERT_INT_EQ(c.count, 7);
	ASSERT_ERR(load("Count 17\n", "Count=7"), CL_FORMAT);
	ASSERT_ERR(load("List b\nList c\n", "List=a plaintext"), CL_OK);
	ASSERT_INT_EQ(c.list.n, 1);
	ASSERT_STRING_EQ(c.list.v[0], "a plaintext");
	TEST_START("a bad -o names keyword and value");
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		unit_note("%s", wrong[i]);
		conf_clear(rows, &c, sizeof(c));
		ASSERT_ERR(conf_parse_option(rows, &c, wrong[i], err,
		    sizeof(err)), CL_FORMAT);
		ASSERT_MEM_EQ(err, "-o: ", 4);
	}
	ASSERT_ERR(conf_parse_option(rows, &c, "Count=4", err, sizeof(err)),
	    CL_OK);
	ASSERT_ERR(conf_parse_option(rows, &c, "Count=4", err, sizeof(err)),
	    CL_FORMAT);
	ASSERT_STRING_EQ(err, "-o: Count is given twice");
	end();
	conf_clear(rows, &c, sizeof(c));
}

static void
test_round_trip(void)
{
	static const char *const texts[] = { "",
	    "Flag no\nCount 16\nSize 640K\n"
	    "Age 90\nName \"a \\\\b\"\nPath \"/a b\"\nLevel low\n"
	    "List a b\nList \"a  b\"\nList \"\"\nWords \"# x\" \"\\\"q\"\n",
	    "Name \"none\"\nList \"none\"\nSize 1000\nWords \" a \"\n",
	    "Size 1T\nAge 14d\nList none\nWords back\\slash c:\\\\x" };
	char *first, *second;
	size_t i;

	TEST_START("the dump, read again, gives the same dump");
	begin();
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		ASSERT_ERR(load(texts[i], NULL), CL_OK);
		ASSERT_ERR(conf_format(rows, &c, &first), CL_OK);
		ASSERT_ERR(load(first, NULL), CL_OK);
		ASSERT_ERR(conf_format(rows, &c, &second), CL_OK);
		ASSERT_STRING_EQ(second, first);
		free(first);
		free(second);
	}
	TEST_START("numbers are dumped in the largest unit that divides");
	ASSERT_ERR(load("Size 1024K\nAge 86400", NULL), CL_OK);
	ASSERT_ERR(conf_format(rows, &c, &first), CL_OK);
	ASSERT_PTR_NE(strstr(first, "\nSize 1M\nAge 1d\n"), NULL);
	free(first);
	end();
	conf_clear(rows, &c, sizeof(c));
}

static void
test_changed(void)
{
	struct sample other;
	size_t i;

	TEST_START("a change is seen in every type");
	begin();
	ASSERT_ERR(load("Flag no\nCount 5\nSize 1M\nAge 1d\nName ab\nPath /x\n"
	    "Level low\nList a\nWords x", NULL), CL_OK);
	other = c;
	memset(&c, 0, sizeof(c));
	for (i = 0; rows[i].keyword != NULL; i++)
		ASSERT_FALSE(conf_is_changed(&rows[i], &other, &other));
	ASSERT_ERR(load("", NULL), CL_OK);
	for (i = 0; rows[i].keyword != NULL; i++) {
		unit_note("%s", rows[i].keyword);
		ASSERT_TRUE(conf_is_changed(&rows[i], &other, &c));
	}
	conf_clear(rows, &other, sizeof(other));
	conf_clear(rows, &c, sizeof(c));
	ASSERT_PTR_EQ(c.path, NULL);
	end();
}

static void
test_table(void)
{
	static const struct conf_row wrong[] = {
		{ "First", CONF_BOOL, 0, 0, 0, "no", 0, NULL, NULL },
		{ NULL, 0, 0, 0, 0, NULL, 0, NULL, NULL },
	};

	TEST_START("a struct without conf_seen in front is our own error");
	ASSERT_ERR(conf_set_defaults(wrong, &c, err, sizeof(err)),
	    CL_INTERNAL);
	ASSERT_ERR(conf_parse_option(wrong, &c, "First=no", err,
	    sizeof(err)), CL_INTERNAL);
	ASSERT_ERR(conf_load_file(wrong, &c, "/dev/null", err, sizeof(err)),
	    CL_INTERNAL);
}

UNIT_MAIN(test_values, test_errors, test_bounds, test_files, test_include,
    test_option, test_round_trip, test_changed, test_table)
