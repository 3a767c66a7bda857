/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Work-directory confinement.
 */
#include <sys/stat.h>

#include <fcntl.h>
#include <ftw.h>
#include <unistd.h>

#include "agent/monitor/workdir.h"
#include "common/base/err.h"
#include "common/base/limits.h"
#include "regress/unit/unit.h"

static char dir[] = "/tmp/cloop-unit-XXXXXX";
static char path[256], outside[256];
static struct workdir_root root;

static void
test_begin(void)
{
	TEST_START("the root is made 0700 and held");
	ASSERT_PTR_NE(mkdtemp(dir), NULL);
	snprintf(outside, sizeof(outside), "%s/outside", dir);
	ASSERT_INT_EQ(mkdir(outside, 0700), 0);
	snprintf(path, sizeof(path), "%s/root", dir);
	ASSERT_ERR(workdir_open_root(path, (uid_t)-1, (gid_t)-1, &root),
	    CL_OK);
	ASSERT_STRING_EQ(root.path, path);
	ASSERT_INT_NE(root.fd, -1);
}

static void
check_open(const char *work_dir, int want, const char *below)
{
	struct workdir wd;
	char full[512];

	unit_note("%s", work_dir);
	ASSERT_ERR(workdir_open(&root, work_dir, &wd), want);
	if (want == CL_OK) {
		snprintf(full, sizeof(full), "%s%s", root.path, below);
		ASSERT_STRING_EQ(wd.path, full);
		ASSERT_INT_EQ(wd.is_root, *below == '\0');
		ASSERT_INT_NE(wd.fd, -1);
	} else
		ASSERT_INT_EQ(wd.fd, -1);
	workdir_close(&wd);
}

static void
test_inside(void)
{
	static const char *const t[][2] = {
		{ "", "" }, { ".", "" }, { "plain", "/plain" },
		{ "two/levels/deep", "/two/levels/deep" },
		{ "./dotted", "/dotted" }, { "a/../b", "/b" },
		{ "trailing/", "/trailing" }, { "-rf", "/-rf" },
		{ "with space", "/with space" }, { "..name", "/..name" },
		{ "...", "/..." }, { "a//b", "/a/b" },
		{ "new\nline", "/new\nline" }, { "x/.cloop-y", "/x/.cloop-y" },
		{ ".cloop", "/.cloop" },
	};
	struct stat st;
	char full[512];
	size_t i;

	TEST_START("paths below the root are made and opened");
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		check_open(t[i][0], CL_OK, t[i][1]);
	TEST_START("missing ones get mode 0700");
	snprintf(full, sizeof(full), "%s/two/levels", root.path);
	ASSERT_INT_EQ(stat(full, &st), 0);
	ASSERT_INT_EQ(st.st_mode & 07777, 0700);
	TEST_START("an absolute path below the root");
	snprintf(full, sizeof(full), "%s/absolute", root.path);
	check_open(full, CL_OK, "/absolute");
	check_open(root.path, CL_OK, "");
}

static void
test_outside(void)
{
	static const char *const t[] = { "..", "../x", "a/../../x",
		"a/b/../../../x", "/", "/tmp", "/etc", "/../tmp", "./..",
		"x/../..", "../../../../../../etc", ".cloop-x", ".cloop-x/y",
		".cloop-branch-incoming", "a/../.cloop-x" };
	char full[512];
	struct stat st;
	size_t i;

	TEST_START("everything else is forbidden");
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		check_open(t[i], CL_DENIED, "");
		ASSERT_ERR(workdir_check(&root, t[i]), CL_DENIED);
	}
	TEST_START("a name that only begins like the root");
	snprintf(full, sizeof(full), "%s-sibling", root.path);
	check_open(full, CL_DENIED, "");
	ASSERT_INT_EQ(stat(full, &st), -1);
	snprintf(full, sizeof(full), "%s/../escaped", root.path);
	check_open(full, CL_DENIED, "");
}

static void
plant(const char *target, const char *name)
{
	if (symlinkat(target, root.fd, name) == -1)
		UNIT_FAIL("symlink %s", name);
}

static void
test_links(void)
{
	struct stat st;
	char text[512];

	TEST_START("a link that stays inside is followed");
	check_open("real/place", CL_OK, "/real/place");
	plant("real", "inner");
	check_open("inner/place", CL_OK, "/real/place");
	plant("real/../real/place/..", "dots");
	check_open("dots/place", CL_OK, "/real/place");
	snprintf(text, sizeof(text), "%s/real", root.path);
	plant(text, "absolute-link");
	check_open("absolute-link/place", CL_OK, "/real/place");
	TEST_START("a link that leaves the root is forbidden");
	plant(outside, "evil");
	check_open("evil", CL_DENIED, "");
	check_open("evil/below", CL_DENIED, "");
	plant("/", "slash");
	check_open("slash", CL_DENIED, "");
	plant("..", "up");
	check_open("up", CL_DENIED, "");
	plant("real/../../outside", "up2");
	check_open("up2", CL_DENIED, "");
	plant("evil", "chain");
	check_open("chain", CL_DENIED, "");
	plant("/proc/self/root", "magic");
	check_open("magic", CL_DENIED, "");
	snprintf(text, sizeof(text), "%s-x", root.path);
	plant(text, "like");
	check_open("like", CL_DENIED, "");
	plant(".cloop-branch-incoming", "hidden");
	check_open("hidden", CL_DENIED, "");
	snprintf(text, sizeof(text), "%s/below", outside);
	ASSERT_INT_EQ(stat(text, &st), -1);
	TEST_START("loops end after 40 links");
	plant("loop-b", "loop-a");
	plant("loop-a", "loop-b");
	check_open("loop-a/x", CL_LIMIT, "");
}

static void
test_limits(void)
{
	char name[64], target[64];
	int fd, i;

	TEST_START("40 links are followed, 41 are not (limits.h)");
	for (i = 1; i <= MAX_SYMLINKS + 1; i++) {
		snprintf(name, sizeof(name), "l%d", i);
		snprintf(target, sizeof(target), "l%d", i - 1);
		plant(i == 1 ? "real" : target, name);
	}
	snprintf(name, sizeof(name), "l%d", MAX_SYMLINKS);
	check_open(name, CL_OK, "/real");
	snprintf(name, sizeof(name), "l%d", MAX_SYMLINKS + 1);
	check_open(name, CL_LIMIT, "");
	TEST_START("a file in the way is refused");
	fd = openat(root.fd, "blocker", O_CREAT | O_WRONLY, 0600);
	ASSERT_INT_NE(fd, -1);
	close(fd);
	check_open("blocker", CL_EXISTS, "");
	check_open("blocker/x", CL_EXISTS, "");
}

static void
test_length(void)
{
	char text[2 * MAX_PATH_LEN];
	struct workdir wd;

	TEST_START("too long a name or path is refused");
	memset(text, 'x', sizeof(text));
	text[255] = '\0';
	ASSERT_ERR(workdir_open(&root, text, &wd), CL_OK);
	workdir_close(&wd);
	text[255] = 'x';
	text[256] = '\0';
	ASSERT_ERR(workdir_open(&root, text, &wd), CL_TOOBIG);
	for (size_t i = 0; i < sizeof(text) - 1; i++)
		text[i] = i % 2 ? '/' : 'x';
	text[sizeof(text) - 1] = '\0';
	ASSERT_ERR(workdir_open(&root, text, &wd), CL_TOOBIG);
}

static void
test_home(void)
{
	struct workdir wd;
	struct stat st;
	char want[512], *home;

	TEST_START("HOME is a sibling, 0700, whatever was there");
	ASSERT_ERR(workdir_open(&root, "h/w", &wd), CL_OK);
	snprintf(want, sizeof(want), "%s/h/.w.home", root.path);
	ASSERT_INT_EQ(symlink(outside, want), 0);
	ASSERT_ERR(workdir_open_home(&root, &wd, &home), CL_OK);
	ASSERT_STRING_EQ(home, want);
	ASSERT_INT_EQ(lstat(want, &st), 0);
	ASSERT_TRUE(S_ISDIR(st.st_mode));
	free(home);
	ASSERT_INT_EQ(chmod(want, 0755), 0);
	ASSERT_ERR(workdir_open_home(&root, &wd, &home), CL_OK);
	free(home);
	ASSERT_INT_EQ(lstat(want, &st), 0);
	ASSERT_INT_EQ(st.st_mode & 07777, 0700);
	workdir_close(&wd);
	TEST_START("the root itself has none");
	ASSERT_ERR(workdir_open(&root, "", &wd), CL_OK);
	ASSERT_ERR(workdir_open_home(&root, &wd, &home), CL_OK);
	ASSERT_PTR_EQ(home, NULL);
	workdir_close(&wd);
}

static void
test_root_errors(void)
{
	struct workdir_root other;

	TEST_START("a root must be absolute, a directory, and not /");
	ASSERT_ERR(workdir_open_root("work", (uid_t)-1, (gid_t)-1, &other),
	    CL_FORMAT);
	ASSERT_ERR(workdir_open_root("/", (uid_t)-1, (gid_t)-1, &other),
	    CL_SYSTEM);
	ASSERT_ERR(workdir_open_root("/etc/passwd", (uid_t)-1, (gid_t)-1,
	    &other), CL_SYSTEM);
}

static int
remove_entry(const char *name, const struct stat *st, int type,
    struct FTW *where)
{
	(void)st;
	(void)type;
	(void)where;
	return remove(name);
}

static void
test_end(void)
{
	TEST_START("the test's own directory is removed");
	workdir_close_root(&root);
	ASSERT_INT_EQ(rmdir(outside), 0);
	ASSERT_INT_EQ(nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
}

UNIT_MAIN(test_begin, test_inside, test_outside, test_links, test_limits,
    test_length, test_home, test_root_errors, test_end)
