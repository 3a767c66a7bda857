/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Files of a hostile tree (BC-63).
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/job/git_job.h"
#include "common/base/err.h"
#include "common/base/util.h"
#include "regress/unit/unit.h"

static char dir[] = "/tmp/test-git-tree-XXXXXX";
static int top = -1;
static char why[256];

int
git_job_fail(struct git_job *g, const char *fmt, ...)
{
	va_list ap;

	(void)g;
	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	return CL_DENIED;
}

static void
make(const char *name, const char *text)
{
	int fd = openat(top, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	ASSERT_INT_NE(fd, -1);
	ASSERT_ERR(util_write_all(fd, text, strlen(text)), CL_OK);
	close(fd);
}

static void
test_empty(void)
{
	char path[64];
	int fd, next, i;

	ASSERT_PTR_NE(mkdtemp(dir), NULL);
	top = open(dir, O_RDONLY | O_DIRECTORY);
	TEST_START("emptying keeps what is reserved");
	ASSERT_INT_EQ(git_tree_is_empty(top), 1);
	make(".cloop-x", "x");
	ASSERT_INT_EQ(git_tree_is_empty(top), 1);
	make("a", "a");
	ASSERT_INT_EQ(mkdirat(top, "d", 0700), 0);
	make("d/.cloop-y", "y");
	ASSERT_INT_EQ(git_tree_is_empty(top), 0);
	ASSERT_ERR(git_tree_empty(top), CL_OK);
	ASSERT_INT_EQ(git_tree_is_empty(top), 1);
	ASSERT_INT_EQ(faccessat(top, ".cloop-x", F_OK, 0), 0);
	TEST_START("links are removed, not followed");
	snprintf(path, sizeof(path), "/tmp/test-git-tree-out-%d", getpid());
	ASSERT_INT_EQ(mkdir(path, 0700), 0);
	ASSERT_INT_EQ(symlinkat(path, top, "link"), 0);
	ASSERT_INT_EQ(mkfifoat(top, "fifo", 0600), 0);
	ASSERT_ERR(git_tree_empty(top), CL_OK);
	ASSERT_INT_EQ(rmdir(path), 0);
	TEST_START("a directory nobody may read, a thousand levels");
	ASSERT_INT_EQ(mkdirat(top, "locked", 0700), 0);
	make("locked/x", "x");
	ASSERT_INT_EQ(fchmodat(top, "locked", 0, 0), 0);
	fd = dup(top);
	for (i = 0; i < 1500; i++) {
		ASSERT_INT_EQ(mkdirat(fd, "deep", 0700), 0);
		next = openat(fd, "deep", O_RDONLY | O_DIRECTORY);
		close(fd);
		fd = next;
	}
	close(fd);
	ASSERT_ERR(git_tree_empty(top), CL_OK);
	ASSERT_INT_EQ(git_tree_is_empty(top), 1);
}

static void
test_size(void)
{
	uint64_t bytes;

	TEST_START("regular files count, links do not");
	make("a", "12345");
	ASSERT_INT_EQ(mkdirat(top, "d", 0700), 0);
	make("d/b", "123");
	ASSERT_INT_EQ(symlinkat("/usr/bin/git", top, "l"), 0);
	ASSERT_INT_EQ(symlinkat("/usr", top, "u"), 0);
	ASSERT_ERR(git_tree_get_size(top, &bytes), CL_OK);
	ASSERT_U64_EQ(bytes, 5 + 3 + 1);	/* and .cloop-x */
	ASSERT_ERR(git_tree_empty(top), CL_OK);
}

static void
test_files(void)
{
	char *text;
	size_t len;

	TEST_START("small files lie below real directories");
	ASSERT_INT_EQ(mkdirat(top, "d", 0700), 0);
	ASSERT_ERR(git_tree_save(top, "d/f", "abc", 3), CL_OK);
	ASSERT_ERR(git_tree_load(top, "d/f", 10, &text, &len), CL_OK);
	ASSERT_SIZE_T_EQ(len, 3);
	free(text);
	ASSERT_ERR(git_tree_load(top, "d/f", 2, &text, &len), CL_TOOBIG);
	ASSERT_ERR(git_tree_load(top, "d/none", 2, &text, &len), CL_NOTFOUND);
	ASSERT_INT_EQ(symlinkat("d", top, "dl"), 0);
	ASSERT_ERR(git_tree_load(top, "dl/f", 10, &text, &len), CL_FORMAT);
	ASSERT_ERR(git_tree_save(top, "dl/f", "x", 1), CL_FORMAT);
	ASSERT_INT_EQ(symlinkat("/etc/passwd", top, "pw"), 0);
	ASSERT_ERR(git_tree_load(top, "pw", 100000, &text, &len), CL_FORMAT);
	ASSERT_ERR(git_tree_load(top, "../x", 10, &text, &len), CL_FORMAT);
	ASSERT_INT_EQ(mkfifoat(top, "fifo", 0600), 0);
	ASSERT_ERR(git_tree_load(top, "fifo", 10, &text, &len), CL_FORMAT);
	TEST_START("a link at its place is replaced");
	ASSERT_ERR(git_tree_save(top, "pw", "mine", 4), CL_OK);
	ASSERT_ERR(git_tree_load(top, "pw", 10, &text, &len), CL_OK);
	ASSERT_STRING_EQ(text, "mine");
	free(text);
	ASSERT_ERR(git_tree_empty(top), CL_OK);
}

static void
test_git(void)
{
	struct git_job g = { .dir_fd = top };

	g.dir_fd = top;
	TEST_START(".git must be a directory");
	ASSERT_ERR(git_tree_check_git(&g), CL_NOTFOUND);
	make(".git", "gitdir: /etc");
	ASSERT_ERR(git_tree_check_git(&g), CL_DENIED);
	unlinkat(top, ".git", 0);
	ASSERT_INT_EQ(symlinkat("/etc", top, ".git"), 0);
	ASSERT_ERR(git_tree_check_git(&g), CL_DENIED);
	unlinkat(top, ".git", 0);
	TEST_START("what leads out of it is cut");
	ASSERT_INT_EQ(mkdirat(top, ".git", 0700), 0);
	ASSERT_INT_EQ(mkdirat(top, ".git/objects", 0700), 0);
	ASSERT_INT_EQ(mkdirat(top, ".git/objects/info", 0700), 0);
	make(".git/commondir", "/etc");
	make(".git/objects/info/alternates", "/root");
	ASSERT_ERR(git_tree_check_git(&g), CL_OK);
	ASSERT_ERR(git_tree_cut_links(&g), CL_OK);
	ASSERT_INT_EQ(faccessat(top, ".git/commondir", F_OK, 0), -1);
	ASSERT_INT_EQ(faccessat(top, ".git/objects/info/alternates", F_OK,
	    0), -1);
	ASSERT_ERR(git_tree_remove(top, ".git/objects"), CL_OK);
	ASSERT_INT_EQ(symlinkat("/tmp", top, ".git/objects"), 0);
	ASSERT_ERR(git_tree_cut_links(&g), CL_DENIED);
	ASSERT_ERR(git_tree_empty(top), CL_OK);
	unlinkat(top, ".cloop-x", 0);
	close(top);
	rmdir(dir);
}

UNIT_MAIN(test_empty, test_size, test_files, test_git)
