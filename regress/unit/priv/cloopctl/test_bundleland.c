/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * priv/cloopctl/bundlevet_git: hostile bundles, each made by git itself,
 * against a repository of an operator's (BC-60, BC-63).  Whatever is refused
 * leaves nothing behind: no ref, no object, no directory.
 */
#include "regress/unit/unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/util.h"
#include "priv/cloopctl/bundlevet.h"

#define BRANCH "cloop/task"

static char tmp_dir[] = "/tmp/test_bundleland.XXXXXX";
static char base[48], head[48];

/* A line of sh in the test's directory; its output's first line. */
static const char *
shell(const char *script)
{
	static struct gitjob j;
	char text[8192];
	const char *args[] = { "-c", text, NULL };
	int r;

	(void)snprintf(text, sizeof(text), "set -e; cd '%s'; "
	    "export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@e "
	    "GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@e; "
	    "g() { git -C src \"$@\"; }; %s", tmp_dir, script);
	gitjob_clear(&j);
	gitjob_init(&j, NULL, NULL);
	r = gitjob_run_program(&j, "sh", args);
	if (r != CL_OK)
		unit_note("%s: %s", script, j.err);
	ASSERT_ERR(r, CL_OK);
	return gitjob_get_line(&j);
}

/* Repositories src (the device's) and into (the operator's) at one base. */
static void
reset(void)
{
	(void)shell("rm -rf src into b; git init -q -b main src; "
	    "echo base >src/README; g add -A; g commit -q -m base; "
	    "git init -q -b main into; git -C into pull -q ../src main; "
	    "g checkout -q -b " BRANCH);
	(void)snprintf(base, sizeof(base), "%s",
	    shell("g rev-parse HEAD"));
}

/* Bundle what the script committed, and remember its commit. */
static void
bundle(const char *script)
{
	(void)shell(script);
	(void)shell("g bundle create -q ../b main.." BRANCH);
	(void)snprintf(head, sizeof(head), "%s",
	    shell("g rev-parse " BRANCH));
}

/* Import and land; "" or the reason. */
static const char *
land(void)
{
	static struct vet v;
	char path[PATH_MAX], into[300];
	int fd, r;

	memset(&v, 0, sizeof(v));
	v.branch = BRANCH;
	v.commit = head;
	v.base = base;
	(void)snprintf(path, sizeof(path), "%s/b", tmp_dir);
	(void)snprintf(into, sizeof(into), "%s/into", tmp_dir);
	ASSERT_TRUE((fd = open(path, O_RDONLY | O_CLOEXEC)) != -1);
	if ((r = vet_check_header(&v, fd)) == CL_OK &&
	    (r = vet_import(&v, fd, into)) == CL_OK)
		r = vet_land(&v, into);
	close(fd);
	ASSERT_INT_EQ(r == CL_OK, v.why[0] == '\0');
	(void)snprintf(path, sizeof(path), "%s", v.repo);
	vet_clear(&v);
	ASSERT_TRUE(path[0] == '\0' || access(path, F_OK) == -1);
	return v.why;
}

/* It is refused for a reason with these words, and nothing stays. */
static void
refused(const char *words)
{
	const char *why = land();

	unit_note("%s: %s", words, why);
	ASSERT_TRUE(strstr(why, words) != NULL);
	ASSERT_STRING_EQ(shell("git -C into for-each-ref | wc -l"), "1");
	ASSERT_STRING_EQ(shell("git -C into cat-file --batch-check "
	    "--batch-all-objects | wc -l"), "3");
}

static void
test_good(void)
{
	if (access("/usr/bin/git", X_OK) == -1)
		TEST_SKIP("git is not installed");
	ASSERT_TRUE(mkdtemp(tmp_dir) != NULL);
	ASSERT_INT_EQ(setenv("TMPDIR", tmp_dir, 1), 0);
	TEST_START("the branch lands, and only it");
	reset();
	bundle("echo 1 >src/a; ln -s README src/l; g add -A; "
	    "g commit -q -m a; echo 2 >src/a; g commit -qam b");
	ASSERT_STRING_EQ(land(), "");
	ASSERT_STRING_EQ(shell("git -C into rev-parse " BRANCH), head);
	ASSERT_STRING_EQ(shell("git -C into for-each-ref | wc -l"), "2");
	ASSERT_STRING_EQ(shell("git -C into fsck 2>&1 | wc -l"), "0");

	TEST_START("again is no harm; further work moves the branch on");
	ASSERT_STRING_EQ(land(), "");
	bundle("echo 3 >src/a; g commit -qam c");
	ASSERT_STRING_EQ(land(), "");
	ASSERT_STRING_EQ(shell("git -C into rev-parse " BRANCH), head);

	TEST_START("a branch that went another way is not replaced");
	(void)shell("git -C into branch -f " BRANCH " main; git -C into "
	    "checkout -q " BRANCH "; echo x >into/x; git -C into add -A; "
	    "git -C into commit -q -m x; git -C into checkout -q main");
	ASSERT_TRUE(strstr(land(), "cannot be put into") != NULL);

	TEST_START("hooks of the operator's repository do not run");
	reset();
	bundle("echo 1 >src/a; g add -A; g commit -q -m a");
	(void)shell("mkdir -p into/.git/hooks; printf '#!/bin/sh\\ntouch "
	    "%s/hooked\\n' \"$PWD\" >into/.git/hooks/reference-transaction; "
	    "chmod 755 into/.git/hooks/*; git -C into config core.fsmonitor "
	    "\"touch $PWD/hooked\"");
	ASSERT_STRING_EQ(land(), "");
	ASSERT_STRING_EQ(shell("test ! -e hooked && echo none"), "none");
}

static void
test_header(void)
{
	TEST_START("extra refs");
	reset();
	bundle("echo 1 >src/a; g add -A; g commit -q -m a");
	(void)shell("g branch cloop/extra; g bundle create -q ../b main.."
	    BRANCH " main..cloop/extra");
	refused("more than one ref");
	(void)shell("g bundle create -q ../b main..cloop/extra");
	refused("the bundle holds refs/heads/cloop/extra");

	TEST_START("another commit than was said");
	bundle("echo 2 >src/a; g commit -qam b");
	(void)snprintf(head, sizeof(head), "%s", base);
	refused("the device said");

	TEST_START("a base the hub did not send, and none at all");
	bundle("echo 3 >src/a; g commit -qam c");
	(void)shell("g bundle create -q ../b " BRANCH "~1.." BRANCH);
	refused("does not build on");
	(void)shell("g bundle create -q ../b " BRANCH);
	refused("does not build on");

	TEST_START("prerequisites the repository does not have");
	(void)shell("git -C src checkout -q --orphan other; g commit -q -m o; "
	    "g checkout -q " BRANCH "; g merge -q --allow-unrelated-histories "
	    "-s ours -m m other");
	bundle(":");
	(void)shell("g bundle create -q ../b " BRANCH " ^main ^other");
	refused("does not have commit");
	(void)shell("git -C into fetch -q ../src other; git -C into update-ref "
	    "-d refs/heads/other; rm -rf into/.git/FETCH_HEAD");
}

static void
test_pack(void)
{
	TEST_START("a truncated pack");
	reset();
	bundle("head -c 100000 /dev/urandom >src/a; g add -A; "
	    "g commit -q -m a");
	(void)shell("head -c 50000 b >c; mv c b");
	refused("git refuses the objects");

	TEST_START("a changed byte in the pack");
	(void)shell("g bundle create -q ../b main.." BRANCH "; printf X | "
	    "dd of=b bs=1 seek=5000 conv=notrunc 2>/dev/null");
	refused("git refuses the objects");

	TEST_START("a tree entry called .git, which git itself refuses");
	reset();
	bundle("echo 1 >src/a; g add -A; g commit -q -m a; "
	    "b=$(g hash-object -w README); "
	    "t=$(printf '100644 blob %s\\t.git\\n' $b | g mktree); "
	    "c=$(g commit-tree -p main -m bad $t); g update-ref refs/heads/"
	    BRANCH " $c");
	refused(".git");

	TEST_START("a commit without an author");
	reset();
	bundle("t=$(g rev-parse main^{tree}); p=$(g rev-parse main); "
	    "c=$(printf 'tree %s\\nparent %s\\n\\nbad\\n' $t $p | "
	    "g hash-object -t commit -w --stdin --literally); "
	    "g update-ref refs/heads/" BRANCH " $c");
	refused("git refuses the objects");
}

static void
test_bombs(void)
{
	static const char *const kinds[] = { "delta", "claim" };
	char cwd[300], script[512];
	size_t i;

	TEST_START("objects that are huge: a delta, a claim");
	ASSERT_TRUE(getcwd(cwd, sizeof(cwd)) != NULL);
	reset();
	bundle("echo 1 >src/a; g add -A; g commit -q -m a");
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		unit_note("%s", kinds[i]);
		(void)snprintf(script, sizeof(script), "python3 "
		    "%s/regress/fixtures/bombs.py %s %s %s " BRANCH " b; "
		    "test $(wc -c <b) -lt 100000", cwd, kinds[i], base,
		    head);
		(void)shell(script);
		refused("git refuses the objects");
	}
}

/* What a git that was taken over would try: cloopctl's child dies of it. */
static void
test_walls(void)
{
	const char *args[] = { "-e", "socket(S, 2, 1, 0); print 1", NULL };
	struct gitjob j;

	if (access("/usr/bin/perl", X_OK) == -1)
		TEST_SKIP("perl is not installed");
	TEST_START("a socket is the end of a confined git");
	gitjob_init(&j, NULL, tmp_dir);
	ASSERT_ERR(gitjob_run_program(&j, "perl", args), CL_STATE);
	ASSERT_INT_EQ(j.status, -1);
	ASSERT_TRUE(strstr(j.err, "it asked for what git needs not") != NULL);
	TEST_START("the same program without walls is no test of them");
	gitjob_init(&j, NULL, NULL);
	ASSERT_ERR(gitjob_run_program(&j, "perl", args), CL_OK);
	gitjob_clear(&j);
}

static void
test_tree(void)
{
	TEST_START("a submodule");
	reset();
	bundle("g update-index --add --cacheinfo 160000,$(g rev-parse main),"
	    "sub; g commit -q -m sub");
	refused("is a submodule");

	TEST_START("links out of the tree, into .git, to an absolute path");
	reset();
	bundle("ln -s ../../etc/passwd src/l; g add -A; g commit -q -m l");
	refused("link out of the tree");
	reset();
	bundle("ln -s .git/config src/l; g add -A; g commit -q -m l");
	refused("git");
	reset();
	bundle("ln -s /etc/passwd src/l; g add -A; g commit -q -m l");
	refused("link out of the tree");

	TEST_START("a bad path that a later commit takes out again");
	reset();
	bundle("b=$(g hash-object -w src/README 2>/dev/null || "
	    "g hash-object -w README); "
	    "g update-index --add --cacheinfo 100644,$b,'a\\b'; "
	    "g commit -q -m bad; g rm -q --cached 'a\\b'; "
	    "g commit -q -m good");
	refused("backslash");

	TEST_START("names with an escape or a line feed");
	reset();
	bundle("printf x >\"src/$(printf 'a\\033[2J')\"; g add -A; "
	    "g commit -q -m esc");
	refused("control characters");

	TEST_START("1000 commits, and one more");
	reset();
	bundle("t=$(g rev-parse main^{tree}); { i=0; while [ $i -lt 1000 ]; do "
	    "i=$((i+1)); printf 'commit refs/heads/" BRANCH "\\ncommitter t "
	    "<t@e> %d +0000\\ndata 1\\nx\\n' $((1000000000+i)); "
	    "[ $i -gt 1 ] || printf 'from refs/heads/main\\n'; "
	    "printf '\\n'; done; } | g fast-import --quiet --force");
	ASSERT_STRING_EQ(land(), "");
	reset();
	bundle("{ i=0; while [ $i -lt 1001 ]; do "
	    "i=$((i+1)); printf 'commit refs/heads/" BRANCH "\\ncommitter t "
	    "<t@e> %d +0000\\ndata 1\\nx\\n' $((1000000000+i)); "
	    "[ $i -gt 1 ] || printf 'from refs/heads/main\\n'; "
	    "printf '\\n'; done; } | g fast-import --quiet --force");
	refused("at most 1000");

	TEST_START("more than 20 000 paths");
	reset();
	bundle("b=$(g hash-object -w README); { i=0; while [ $i -lt 20001 ]; "
	    "do i=$((i+1)); printf '100644 blob %s\\tf%d\\n' $b $i; done; } | "
	    "g mktree >t; c=$(g commit-tree -p main -m many $(cat t)); "
	    "g update-ref refs/heads/" BRANCH " $c");
	refused("more than 20000 paths");
}

static void
test_repository(void)
{
	TEST_START("what is no repository, or one of SHA-256, is told");
	reset();
	bundle("echo 1 >src/a; g add -A; g commit -q -m a");
	(void)shell("rm -rf into/.git");
	ASSERT_TRUE(strstr(land(), "is not a git repository") != NULL);
	(void)shell("git init -q --object-format=sha256 into");
	ASSERT_TRUE(strstr(land(), "SHA-1") != NULL);
	(void)shell("rm -rf ../\"${PWD##*/}\"");
}

UNIT_MAIN(test_good, test_header, test_pack, test_bombs, test_walls,
    test_tree, test_repository)
