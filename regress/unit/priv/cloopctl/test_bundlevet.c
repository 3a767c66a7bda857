/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * priv/cloopctl/bundlevet: the rules of a returned bundle that need no git
 * (BC-63). What git judges: regress/git-land.sh.
 */
#include "regress/unit/unit.h"

#include <fcntl.h>
#include <unistd.h>

#include <sys/mman.h>

#include "common/base/err.h"
#include "common/base/util.h"
#include "priv/cloopctl/bundlevet.h"

#define BRANCH "cloop/task"
#define A40 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B40 "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define C40 "cccccccccccccccccccccccccccccccccccccccc"
#define HEAD "# v2 git bundle\n"
#define REF A40 " refs/heads/" BRANCH "\n"

static int
file(const void *data, size_t len)
{
	int fd;

	ASSERT_ERR(util_make_memfd(data, len, &fd), CL_OK);
	return fd;
}

/* Judge a header; what it is refused for. */
static const char *
header(const char *text, size_t len)
{
	static struct vet v;
	int fd = file(text, len), r;

	memset(&v, 0, sizeof(v));
	v.branch = BRANCH;
	v.commit = A40;
	v.base = B40;
	r = vet_check_header(&v, fd);
	close(fd);
	ASSERT_INT_EQ(r, v.why[0] != '\0' ? CL_FORMAT : CL_OK);
	return v.why;
}

#define HEADER(text) header(text, sizeof(text) - 1)

static void
test_header(void)
{
	char big[VET_HEADER_MAX + 200];

	TEST_START("one branch at one commit on the base");
	ASSERT_STRING_EQ(HEADER(HEAD "-" B40 "\n" REF "\nPACK"), "");
	ASSERT_STRING_EQ(HEADER(HEAD "-" B40 " subject\n" REF "\nPACK"), "");
	ASSERT_STRING_EQ(HEADER(HEAD "-" C40 "\n-" B40 "\n" REF "\nPACK"),
	    "");

	TEST_START("extra, other and missing refs are refused");
	ASSERT_STRING_EQ(HEADER(HEAD "-" B40 "\n" REF REF "\nPACK"),
	    "the bundle holds more than one ref");
	ASSERT_TRUE(HEADER(HEAD "-" B40 "\n" A40 " refs/heads/main\n\n")[0]);
	ASSERT_TRUE(HEADER(HEAD "-" B40 "\n" A40 " refs/heads/" BRANCH
	    "x\n\n")[0]);
	ASSERT_TRUE(HEADER(HEAD "-" B40 "\n" C40 " refs/heads/" BRANCH
	    "\n\n")[0]);
	ASSERT_TRUE(HEADER(HEAD "-" B40 "\n\nPACK")[0]);
	ASSERT_TRUE(HEADER(HEAD "-" B40 "\n" A40 " HEAD\n\n")[0]);

	TEST_START("a base that is not the hub's is refused");
	ASSERT_TRUE(HEADER(HEAD REF "\nPACK")[0]);
	ASSERT_TRUE(HEADER(HEAD "-" C40 "\n" REF "\nPACK")[0]);
	ASSERT_TRUE(HEADER(HEAD REF "-" B40 "\n\nPACK")[0]);

	TEST_START("what is no header is refused");
	ASSERT_TRUE(HEADER("")[0]);
	ASSERT_TRUE(HEADER("# v3 git bundle\n-" B40 "\n" REF "\n")[0]);
	ASSERT_TRUE(HEADER(HEAD)[0]);
	ASSERT_TRUE(HEADER(HEAD "-" B40 "\n" REF)[0]);
	ASSERT_TRUE(HEADER(HEAD "-bbbb\n" REF "\n")[0]);
	ASSERT_TRUE(HEADER(HEAD "-" B40 "x\n" REF "\n")[0]);
	ASSERT_TRUE(HEADER(HEAD "-" B40 "\n" REF "\0\n\n")[0]);
	memset(big, 'x', sizeof(big));
	memcpy(big, HEAD, sizeof(HEAD) - 1);
	ASSERT_TRUE(header(big, sizeof(big))[0]);
}

static void
test_digest(void)
{
	static const char sum[] = "bbb59da3af939f7af5f360f2ceb80a496e3bae1cd"
	    "87dde426db0ae40677e1c2c";
	static struct vet v;
	int fd = file("abcabc", 6);

	TEST_START("length and digest are the promised ones");
	ASSERT_ERR(vet_check_digest(&v, fd, 6, sum), CL_OK);
	ASSERT_ERR(vet_check_digest(&v, fd, 5, sum), CL_FORMAT);
	ASSERT_ERR(vet_check_digest(&v, fd, 7, sum), CL_FORMAT);
	ASSERT_ERR(vet_check_digest(&v, fd, 6, "00"), CL_FORMAT);
	close(fd);
}

static void
test_paths(void)
{
	static const char *const good[] = { "a", "a/b", ".gitignore",
		".github/x", "git", "a.git", "..a", "a..", "...", "git~2",
		"\xc3\xa9" };
	static const char *const bad[] = { "", "/a", "a//b", "a/", ".", "..",
		"../a", "a/..", "a/../b", "./a", "a/.", ".git", "a/.git/b",
		".GIT", ".Git/hooks/x", ".git.", ".git ", ".git. .", "git~1",
		"GIT~1", ".git~1", "a\\b", "a\nb", "a\033b", "a\177" };
	char path[VET_PATH_MAX + 2];
	size_t i;

	TEST_START("paths that may be in a tree");
	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		unit_note("%s", good[i]);
		ASSERT_PTR_EQ(vet_check_path(good[i], NULL), NULL);
	}
	TEST_START("and those that may not");
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		unit_note("%s", bad[i]);
		ASSERT_TRUE(vet_check_path(bad[i], NULL) != NULL);
	}
	memset(path, 'a', sizeof(path));
	path[VET_PATH_MAX] = '\0';
	ASSERT_PTR_EQ(vet_check_path(path, NULL), NULL);
	path[VET_PATH_MAX] = 'a';
	path[VET_PATH_MAX + 1] = '\0';
	ASSERT_TRUE(vet_check_path(path, NULL) != NULL);
}

static void
test_links(void)
{
	static const struct {
		const char *path, *link;
		int good;
	} rows[] = {
		{ "a", "b", 1 }, { "a/b", "../c", 1 }, { "a/b", "c/../d", 1 },
		{ "a/b/c", "../../d", 1 }, { "a", "..", 0 },
		{ "a", "../b", 0 }, { "a/b", "../../c", 0 },
		{ "a", "/etc/passwd", 0 }, { "a", "", 0 }, { "a", ".git", 0 },
		{ "a/b", "../.git/config", 0 }, { "a", "b/../../c", 0 },
		{ "a", "x/.GIT/y", 0 }, { "a", "b\\c", 0 }, { "a", "b/c", 1 },
		{ "a", "./b", 1 },
	};
	static const struct {
		const char *mode;
		int good;
	} modes[] = {
		{ "000000", 1 }, { "100644", 1 }, { "100755", 1 },
		{ "040000", 1 }, { "120000", 1 }, { "160000", 0 },
		{ "100664", 0 }, { "104755", 0 }, { "", 0 },
	};
	size_t i;

	TEST_START("links stay in the tree and out of .git");
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unit_note("%s -> %s", rows[i].path, rows[i].link);
		ASSERT_INT_EQ(vet_check_path(rows[i].path, rows[i].link) ==
		    NULL, rows[i].good);
	}
	TEST_START("modes: files, links and directories only");
	for (i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		unit_note("%s", modes[i].mode);
		ASSERT_INT_EQ(vet_check_mode(modes[i].mode) == NULL,
		    modes[i].good);
	}
}

UNIT_MAIN(test_header, test_digest, test_paths, test_links)
