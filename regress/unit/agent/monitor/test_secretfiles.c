/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Secret files on the device (BC-54): placed, replaced, wiped, with a
 * workload that does its worst in their directory.
 */
#include <sys/file.h>

#include <errno.h>

#include "regress/unit/priv/monitor/leasetest.h"

static struct spec s;
static struct secretset set;
static uid_t uid = (uid_t)-1;
static gid_t gid = (gid_t)-1;

static void
reset(void)
{
	static int made;

	if (!made)
		ASSERT_PTR_NE(mkdtemp(lt_base), NULL);
	made = 1;
	if (geteuid() == 0) {
		uid = 65534;
		gid = 65534;
		ASSERT_INT_EQ(chmod(lt_base, 0755), 0);
	}
	spec_clear(&s);
	secretset_clear(&set);
	spec_init(&s);
	lt_add_file(&s, LT_DIR, "cfg", " lease-1 ", "g-1");
	lt_add_file(&s, LT_DIR, "run", "lease-1", "g-1");
	lt_add_file(&s, LT_OTHER, "cfg", "lease-1", "g-2");
	s.secret_files[1].mode = 0700;
	ASSERT_ERR(secretfiles_make_dirs(lt_base, &s, uid, gid, &set), CL_OK);
	ASSERT_ERR(secretset_check(&set), CL_OK);
}

static void
wiped(void)
{
	struct secretnote note = { "" };

	secretfiles_wipe(&set, &note);
	ASSERT_STRING_EQ(note.text, "");
	ASSERT_SIZE_T_EQ(lt_count(lt_base), 0);
}

static void
test_place(void)
{
	struct stat st;

	reset();
	TEST_START("one private directory for each declared one");
	ASSERT_SIZE_T_EQ(set.ndirs, 2);
	ASSERT_SIZE_T_EQ(lt_count(lt_base), 2);
	ASSERT_INT_EQ(lstat(set.dirs[0].path, &st), 0);
	ASSERT_INT_EQ(st.st_mode, S_IFDIR | 0700);
	ASSERT_TRUE(uid == (uid_t)-1 || st.st_uid == uid);
	ASSERT_SIZE_T_EQ(lt_count(set.dirs[0].path), 0);
	TEST_START("files with owner and mode, 0600 by default");
	ASSERT_ERR(secretfiles_place(&set, &s), CL_OK);
	ASSERT_INT_EQ(lstat(lt_path(&set, 0, "cfg"), &st), 0);
	ASSERT_INT_EQ(st.st_mode, S_IFREG | 0600);
	ASSERT_TRUE(uid == (uid_t)-1 || st.st_uid == uid);
	ASSERT_INT_EQ(lstat(lt_path(&set, 0, "run"), &st), 0);
	ASSERT_INT_EQ(st.st_mode, S_IFREG | 0700);
	ASSERT_STRING_EQ(lt_text(lt_path(&set, 1, "cfg")), LT_MARK);
	ASSERT_STRING_EQ(set.files[0].lease_id, "lease-1");
	TEST_START("never over a name that is there (BC-54)");
	ASSERT_ERR(secretfiles_place(&set, &s), CL_SYSTEM);
	ASSERT_INT_EQ(errno, EEXIST);
	wiped();
}

static void
test_relocate(void)
{
	char want[512];

	reset();
	TEST_START("env and bindings are moved, nothing else");
	lt_add_env(&s, "CFG=" LT_DIR "/cfg");
	lt_add_env(&s, "D=" LT_DIR);
	lt_add_env(&s, "X=" LT_DIR "-not/cfg");
	lt_add_env(&s, "Y=a" LT_DIR);
	lt_add_env(&s, LT_DIR "=1");
	lt_add_binding(&s, "lease-1", "g-1", LT_DIR "/cfg");
	ASSERT_ERR(secretfiles_relocate(&set, &s), CL_OK);
	snprintf(want, sizeof(want), "CFG=%s/cfg", set.dirs[0].path);
	ASSERT_STRING_EQ(s.env[0], want);
	ASSERT_STRING_EQ(s.env[1] + 2, set.dirs[0].path);
	ASSERT_STRING_EQ(s.env[2], "X=" LT_DIR "-not/cfg");
	ASSERT_STRING_EQ(s.env[3], "Y=a" LT_DIR);
	ASSERT_STRING_EQ(s.env[4], LT_DIR "=1");
	ASSERT_STRING_EQ(s.secrets[0].files[0], want + 4);
	ASSERT_STRING_EQ(s.secrets[0].dir, set.dirs[0].path);
	wiped();
}

static void
test_replace(void)
{
	struct secret fresh;
	struct stat st;
	char text[64];
	int fd;

	reset();
	ASSERT_ERR(secretfiles_place(&set, &s), CL_OK);
	ASSERT_ERR(secret_init(&fresh, "fresh", 5, 100), CL_OK);
	TEST_START("replaced by rename, owner and mode kept");
	fd = open(lt_path(&set, 0, "run"), O_RDONLY);
	ASSERT_ERR(secretfiles_replace(&set, 1, &fresh), CL_OK);
	ASSERT_STRING_EQ(lt_text(lt_path(&set, 0, "run")), "fresh");
	ASSERT_INT_EQ(lstat(lt_path(&set, 0, "run"), &st), 0);
	ASSERT_INT_EQ(st.st_mode, S_IFREG | 0700);
	ASSERT_TRUE(uid == (uid_t)-1 || st.st_uid == uid);
	ASSERT_SIZE_T_EQ(lt_count(set.dirs[0].path), 2);
	TEST_START("who has the old one open keeps it whole (BC-55)");
	ASSERT_INT_EQ(read(fd, text, sizeof(text)), strlen(LT_MARK));
	close(fd);
	TEST_START("and again");
	ASSERT_ERR(secretfiles_replace(&set, 1, &fresh), CL_OK);
	TEST_START("a link or another file in its place is not replaced");
	fd = open(lt_path(&set, 0, "cfg"), O_RDONLY);	/* keeps its inode */
	ASSERT_INT_EQ(unlink(lt_path(&set, 0, "cfg")), 0);
	ASSERT_ERR(secretfiles_replace(&set, 0, &fresh), CL_NOTFOUND);
	ASSERT_INT_EQ(symlink(lt_path(&set, 0, "run"),
	    lt_path(&set, 0, "cfg")), 0);
	ASSERT_ERR(secretfiles_replace(&set, 0, &fresh), CL_NOTFOUND);
	lt_write(lt_path(&set, 0, "new"), "theirs");
	ASSERT_INT_EQ(rename(lt_path(&set, 0, "new"),
	    lt_path(&set, 0, "cfg")), 0);
	ASSERT_ERR(secretfiles_replace(&set, 0, &fresh), CL_NOTFOUND);
	ASSERT_STRING_EQ(lt_text(lt_path(&set, 0, "cfg")), "theirs");
	ASSERT_SIZE_T_EQ(lt_count(set.dirs[0].path), 2);
	secret_clear(&fresh);
	close(fd);
	wiped();
}

static void
test_wipe_file(void)
{
	struct secretnote note = { "" };
	char text[64];
	int fd;

	reset();
	ASSERT_ERR(secretfiles_place(&set, &s), CL_OK);
	TEST_START("a file is overwritten before it goes");
	fd = open(lt_path(&set, 0, "cfg"), O_RDONLY);
	ASSERT_INT_EQ(secretfiles_wipe_file(&set, 0, &note), 1);
	ASSERT_INT_EQ(access(lt_path(&set, 0, "cfg"), F_OK), -1);
	ASSERT_INT_EQ(read(fd, text, sizeof(text)), strlen(LT_MARK));
	ASSERT_INT_EQ(text[0], 0);
	ASSERT_INT_EQ(text[strlen(LT_MARK) - 1], 0);
	close(fd);
	TEST_START("a second time there is nothing to do");
	ASSERT_INT_EQ(secretfiles_wipe_file(&set, 0, &note), 0);
	ASSERT_STRING_EQ(note.text, "");
	TEST_START("a read-only one is wiped as well");
	ASSERT_INT_EQ(chmod(lt_path(&set, 0, "run"), 0400), 0);
	ASSERT_INT_EQ(secretfiles_wipe_file(&set, 1, &note), 1);
	ASSERT_STRING_EQ(note.text, "");
	wiped();
}

/* What a workload may leave, on purpose or not. */
static void
test_wipe_hostile(void)
{
	char victim[128], keep[128];
	int fd;

	reset();
	ASSERT_ERR(secretfiles_place(&set, &s), CL_OK);
	snprintf(victim, sizeof(victim), "%s.victim", lt_base);
	snprintf(keep, sizeof(keep), "%s.keep", lt_base);
	lt_write(victim, "keep me");
	ASSERT_INT_EQ(mkdir(keep, 0755), 0);
	TEST_START("links are removed, never followed");
	ASSERT_INT_EQ(symlink(victim, lt_path(&set, 0, "link")), 0);
	ASSERT_INT_EQ(symlink(keep, lt_path(&set, 0, "dirlink")), 0);
	ASSERT_INT_EQ(link(victim, lt_path(&set, 0, "hard")), 0);
	ASSERT_INT_EQ(unlink(lt_path(&set, 0, "cfg")), 0);
	ASSERT_INT_EQ(link(victim, lt_path(&set, 0, "cfg")), 0);
	ASSERT_INT_EQ(mkfifo(lt_path(&set, 0, "fifo"), 0600), 0);
	ASSERT_INT_EQ(mkdir(lt_path(&set, 0, "sub"), 0700), 0);
	ASSERT_INT_EQ(mkdir(lt_path(&set, 0, "sub/sub"), 0700), 0);
	lt_write(lt_path(&set, 0, "sub/sub/copy"), LT_MARK);
	ASSERT_INT_EQ(symlink("/", lt_path(&set, 0, "sub/root")), 0);
	ASSERT_INT_EQ(chmod(lt_path(&set, 0, "sub/sub"), 0), 0);
	fd = open(lt_path(&set, 0, "big"), O_RDWR | O_CREAT, 0600);
	ASSERT_INT_EQ(ftruncate(fd, 1LL << 40), 0);	/* must not take long */
	close(fd);
	ASSERT_INT_EQ(chmod(set.dirs[0].path, 0), 0);
	wiped();
	ASSERT_STRING_EQ(lt_text(victim), "keep me");
	ASSERT_INT_EQ(rmdir(keep), 0);
	ASSERT_INT_EQ(unlink(victim), 0);
	TEST_START("a directory that was exchanged is left alone");
	reset();
	snprintf(keep, sizeof(keep), "%s.moved", set.dirs[0].path);
	ASSERT_INT_EQ(rename(set.dirs[0].path, keep), 0);
	ASSERT_INT_EQ(mkdir(set.dirs[0].path, 0700), 0);
	ASSERT_ERR(secretfiles_place(&set, &s), CL_NOTFOUND);
	ASSERT_INT_EQ(rmdir(set.dirs[0].path), 0);
	ASSERT_INT_EQ(rmdir(keep), 0);
	wiped();
}

static void
test_limits(void)
{
	struct secretnote note = { "" };
	char dir[64];
	int i;

	reset();
	wiped();
	TEST_START("too many directories: refused, nothing remains");
	secretset_clear(&set);
	spec_clear(&s);
	spec_init(&s);
	for (i = 0; i <= MAX_SECRET_DIRS; i++) {
		snprintf(dir, sizeof(dir), LT_DIR "-%d", i);
		lt_add_file(&s, dir, "cfg", "l", "g");
	}
	ASSERT_ERR(secretfiles_make_dirs(lt_base, &s, uid, gid, &set),
	    CL_LIMIT);
	ASSERT_SIZE_T_EQ(lt_count(lt_base), 0);
	TEST_START("no base: refused");
	ASSERT_ERR(secretfiles_make_dirs("/nonexistent/x", &s, uid, gid, &set),
	    CL_SYSTEM);
	TEST_START("a record that leads elsewhere is refused");
	reset();
	free(set.dirs[0].path);
	set.dirs[0].path = lt_dup("/etc/cloop-lease-x/..");
	ASSERT_ERR(secretset_check(&set), CL_FORMAT);
	free(set.dirs[0].path);
	set.dirs[0].path = lt_dup("/etc");
	ASSERT_ERR(secretset_check(&set), CL_FORMAT);
	free(set.dirs[0].path);
	set.dirs[0].path = lt_dup("/dev/shm/cloop-lease-x");
	set.files[0].dir = 2;
	ASSERT_ERR(secretset_check(&set), CL_FORMAT);
	secretset_clear(&set);
	ASSERT_SIZE_T_EQ(secretfiles_sweep(lt_base, geteuid(),
	    uid == (uid_t)-1 ? geteuid() : uid, 0, &note), 2);
}

static void
test_sweep(void)
{
	struct secretnote note = { "" };
	uid_t work = uid == (uid_t)-1 ? geteuid() : uid;
	char other[128];

	reset();
	ASSERT_ERR(secretfiles_place(&set, &s), CL_OK);
	snprintf(other, sizeof(other), "%s/unrelated", lt_base);
	ASSERT_INT_EQ(mkdir(other, 0700), 0);
	TEST_START("a sweep leaves what somebody holds");
	ASSERT_SIZE_T_EQ(secretfiles_sweep(lt_base, geteuid(), work, 0,
	    &note), 0);
	ASSERT_STRING_EQ(lt_text(lt_path(&set, 0, "cfg")), LT_MARK);
	TEST_START("and what was made just now");
	close(set.dirs[0].lock_fd);
	set.dirs[0].lock_fd = -1;
	ASSERT_SIZE_T_EQ(secretfiles_sweep(lt_base, geteuid(), work, 60,
	    &note), 0);
	TEST_START("and wipes the rest of ours");
	ASSERT_SIZE_T_EQ(secretfiles_sweep(lt_base, geteuid(), work, 0,
	    &note), 1);
	ASSERT_STRING_EQ(note.text, "");
	ASSERT_INT_EQ(access(set.dirs[0].path, F_OK), -1);
	ASSERT_INT_EQ(access(set.dirs[1].path, F_OK), 0);
	ASSERT_INT_EQ(rmdir(other), 0);
	TEST_START("but nothing of a third user");
	if (geteuid() != 0)
		unit_skip("not root");
	ASSERT_INT_EQ(chown(set.dirs[1].path, 12345, 12345), 0);
	close(set.dirs[1].lock_fd);
	set.dirs[1].lock_fd = -1;
	ASSERT_SIZE_T_EQ(secretfiles_sweep(lt_base, geteuid(), work, 0,
	    &note), 0);
	wiped();
}

static void
test_base(void)
{
	char *path;
	int memory;

	TEST_START("a base that is not in memory is passed over");
	ASSERT_ERR(secretfiles_find_base("/", &path, &memory), CL_OK);
	ASSERT_TRUE(strcmp(path, "//lease") != 0);
	ASSERT_TRUE(!memory || strcmp(path, "/dev/shm") == 0 ||
	    strncmp(path, "/tmp", 4) == 0);
	free(path);
	spec_clear(&s);
	secretset_clear(&set);
	ASSERT_INT_EQ(rmdir(lt_base), 0);
}

UNIT_MAIN(test_place, test_relocate, test_replace, test_wipe_file,
    test_wipe_hostile, test_limits, test_sweep, test_base)
