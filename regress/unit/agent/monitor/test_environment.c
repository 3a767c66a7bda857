/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Workload environments.
 */
#include <sys/stat.h>

#include <unistd.h>

#include "agent/monitor/environment.h"
#include "common/base/err.h"
#include "regress/unit/unit.h"

static char dir[] = "/tmp/cloop-unit-XXXXXX";
static char bin[128];
static struct environment plain, harness;

static void
test_begin(void)
{
	char path[160];

	TEST_START("harness directories that exist go in front");
	ASSERT_PTR_NE(mkdtemp(dir), NULL);
	snprintf(path, sizeof(path), "%s/.local", dir);
	ASSERT_INT_EQ(mkdir(path, 0755), 0);
	snprintf(bin, sizeof(bin), "%s/.local/bin", dir);
	ASSERT_INT_EQ(mkdir(bin, 0755), 0);
	environment_init(&plain, NULL, NULL);
	ASSERT_STRING_EQ(plain.path, ENVIRONMENT_PATH);
	environment_init(&harness, "/bin", dir);
	ASSERT_SIZE_T_EQ(harness.ndirs, 1);
	snprintf(path, sizeof(path), "%s:/bin", bin);
	ASSERT_STRING_EQ(harness.path, path);
}

static const char *
find(char **v, const char *name)
{
	size_t i, n = strlen(name);

	for (i = 0; v[i] != NULL; i++)
		if (strncmp(v[i], name, n) == 0 && v[i][n] == '=')
			return v[i] + n + 1;
	return NULL;
}

static void
test_explicit(void)
{
	char *env[] = { "A=1", "B=x=y", "EMPTY=", "A=2" };
	char *inherit[] = { "LANG=C", NULL };
	char **v;
	size_t n;

	TEST_START("a given environment is exact, last wins");
	ASSERT_ERR(environment_make(&plain, env, 4, inherit, "/w", "/h", &v,
	    &n), CL_OK);
	ASSERT_SIZE_T_EQ(n, 5);
	ASSERT_PTR_EQ(v[5], NULL);
	ASSERT_STRING_EQ(find(v, "A"), "2");
	ASSERT_STRING_EQ(find(v, "B"), "x=y");
	ASSERT_STRING_EQ(find(v, "EMPTY"), "");
	TEST_START("with PATH and the private HOME as the floor");
	ASSERT_STRING_EQ(find(v, "PATH"), ENVIRONMENT_PATH);
	ASSERT_STRING_EQ(find(v, "HOME"), "/h");
	environment_free_vector(v);
	TEST_START("without a private HOME it is the work directory");
	ASSERT_ERR(environment_make(&plain, env, 1, inherit, "/w", NULL, &v,
	    &n), CL_OK);
	ASSERT_STRING_EQ(find(v, "HOME"), "/w");
	environment_free_vector(v);
}

static void
test_given(void)
{
	char *env[] = { "HOME=/mine", "PATH=/usr/bin" };
	char *empty[] = { "PATH=" };
	char want[160];
	char **v;
	size_t n;

	TEST_START("given PATH and HOME stay");
	ASSERT_ERR(environment_make(&plain, env, 2, NULL, "/w", "/h", &v, &n),
	    CL_OK);
	ASSERT_STRING_EQ(find(v, "HOME"), "/mine");
	ASSERT_STRING_EQ(find(v, "PATH"), "/usr/bin");
	environment_free_vector(v);
	TEST_START("missing harness directories are put in front, once");
	ASSERT_ERR(environment_make(&harness, env, 2, NULL, "/w", "/h", &v,
	    &n), CL_OK);
	snprintf(want, sizeof(want), "%s:/usr/bin", bin);
	ASSERT_STRING_EQ(find(v, "PATH"), want);
	environment_free_vector(v);
	TEST_START("never an empty element of PATH");
	ASSERT_ERR(environment_make(&harness, empty, 1, NULL, "/w", "/h", &v,
	    &n), CL_OK);
	ASSERT_STRING_EQ(find(v, "PATH"), bin);
	environment_free_vector(v);
}

static void
test_inherited(void)
{
	char *inherit[] = { "PATH=/x", "LANG=C", "LC_ALL=C", "TZ=UTC",
		"TERM=dumb", "CLOOP_STATE_HMAC_KEY=k", "CLOOP_LIBEXEC=/l",
		"PATHX=1", "LCX=1", "SECRET=s", NULL };
	char **v;
	size_t n;

	TEST_START("without one only a harmless subset passes");
	ASSERT_ERR(environment_make(&harness, NULL, 0, inherit, "/w", "/h",
	    &v, &n), CL_OK);
	ASSERT_SIZE_T_EQ(n, 6);
	ASSERT_STRING_EQ(find(v, "PATH"), "/x");
	ASSERT_STRING_EQ(find(v, "TERM"), "dumb");
	ASSERT_STRING_EQ(find(v, "HOME"), "/w");
	ASSERT_PTR_EQ(find(v, "CLOOP_STATE_HMAC_KEY"), NULL);
	ASSERT_PTR_EQ(find(v, "SECRET"), NULL);
	environment_free_vector(v);
	TEST_START("an entry without a name is an error");
	inherit[0] = "=x";
	ASSERT_ERR(environment_make(&plain, inherit, 1, NULL, "/w", NULL, &v,
	    &n), CL_FORMAT);
	inherit[0] = "NOVALUE";
	ASSERT_ERR(environment_make(&plain, inherit, 1, NULL, "/w", NULL, &v,
	    &n), CL_FORMAT);
}

static void
test_find(void)
{
	char path[256];

	TEST_START("programs are executable regular files on PATH");
	ASSERT_TRUE(environment_find_program(&harness, "sh", path,
	    sizeof(path)));
	ASSERT_STRING_EQ(path, "/bin/sh");
	ASSERT_FALSE(environment_find_program(&harness, "no-such-program",
	    path, sizeof(path)));
	ASSERT_FALSE(environment_find_program(&harness, ".", path,
	    sizeof(path)));
}

static void
test_end(void)
{
	TEST_START("the test's own directory is removed");
	environment_clear(&plain);
	environment_clear(&harness);
	ASSERT_INT_EQ(rmdir(bin), 0);
	bin[strlen(bin) - 4] = '\0';
	ASSERT_INT_EQ(rmdir(bin), 0);
	ASSERT_INT_EQ(rmdir(dir), 0);
}

UNIT_MAIN(test_begin, test_explicit, test_given, test_inherited, test_find,
    test_end)
