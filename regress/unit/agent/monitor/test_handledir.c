/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Workload directories and process identities (BC-49).
 */
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "agent/monitor/handledir.h"
#include "common/base/err.h"
#include "regress/unit/unit.h"

static char dir[] = "/tmp/cloop-unit-XXXXXX";
static int base = -1;

static void
test_make(void)
{
	struct handledir d;
	struct stat st;
	int fd;

	TEST_START("the directory of a handle is the hex of its id");
	ASSERT_PTR_NE(mkdtemp(dir), NULL);
	ASSERT_ERR(handledir_open_base(dir, &base), CL_OK);
	ASSERT_ERR(handledir_make(base, "../x", 7, &d), CL_OK);
	ASSERT_STRING_EQ(d.name, "2e2e2f78");
	ASSERT_INT_EQ(fstatat(base, d.name, &st, 0), 0);
	ASSERT_INT_EQ(st.st_mode & 07777, 0700);
	ASSERT_ERR(handledir_open_spool(&d, O_RDWR | O_CREAT | O_EXCL, &fd),
	    CL_OK);
	close(fd);
	handledir_close(&d);
	TEST_START("a stale one is emptied");
	ASSERT_ERR(handledir_make(base, "../x", 8, &d), CL_OK);
	ASSERT_ERR(handledir_open_spool(&d, O_RDONLY, &fd), CL_SYSTEM);
	ASSERT_ERR(handledir_remove(base, &d), CL_OK);
	ASSERT_INT_EQ(fstatat(base, "2e2e2f78", &st, 0), -1);
}

static void
test_long(void)
{
	char id[MAX_ID_LEN + 1];
	struct handledir d;

	TEST_START("an id of 128 bytes has a directory, too");
	memset(id, 'a', MAX_ID_LEN);
	id[MAX_ID_LEN] = '\0';
	ASSERT_ERR(handledir_make(base, id, 0x1234, &d), CL_OK);
	ASSERT_TRUE(strlen(d.name) < 255);
	ASSERT_PTR_NE(strstr(d.name, "-0000000000001234"), NULL);
	ASSERT_ERR(handledir_remove(base, &d), CL_OK);
}

static void
test_meta(void)
{
	struct handle_meta m = { .handle_id = "h", .slot = 7, .shim_pid = 42,
	    .shim_ticks = 99, .boot_id = "b", .created_at = 1 }, r;
	struct handledir d;
	int fd;

	TEST_START("the record is read as it was written");
	ASSERT_ERR(handledir_make(base, "h", 7, &d), CL_OK);
	ASSERT_ERR(handledir_load_meta(&d, &r), CL_NOTFOUND);
	ASSERT_ERR(handledir_save_meta(&d, &m), CL_OK);
	ASSERT_ERR(handledir_save_meta(&d, &m), CL_OK);
	ASSERT_ERR(handledir_load_meta(&d, &r), CL_OK);
	ASSERT_MEM_EQ(&r, &m, sizeof(m));
	TEST_START("a damaged record is an error");
	fd = openat(d.fd, "meta", O_WRONLY | O_APPEND);
	ASSERT_INT_EQ(write(fd, "x", 1), 1);
	close(fd);
	ASSERT_ERR(handledir_load_meta(&d, &r), CL_FORMAT);
	fd = openat(d.fd, "meta", O_WRONLY | O_TRUNC);
	close(fd);
	ASSERT_ERR(handledir_load_meta(&d, &r), CL_FORMAT);
	ASSERT_ERR(handledir_parse_meta("\0\0\0\2", 4, &r), CL_VERSION);
	m.slot = 0;
	ASSERT_ERR(handledir_save_meta(&d, &m), CL_OK);
	ASSERT_ERR(handledir_load_meta(&d, &r), CL_FORMAT);
	ASSERT_ERR(handledir_remove(base, &d), CL_OK);
}

static void
test_process(void)
{
	char boot[KERN_BOOT_LEN + 1];
	struct rlimit old, none;
	uint64_t ticks, again;
	siginfo_t si;
	pid_t pid;

	TEST_START("a process is its pid and its start (BC-49)");
	ASSERT_ERR(kern_load_ticks(getpid(), &ticks), CL_OK);
	ASSERT_TRUE(ticks > 0);
	ASSERT_ERR(kern_check_process(getpid(), ticks), CL_OK);
	ASSERT_ERR(kern_check_process(getpid(), ticks + 1), CL_NOTFOUND);
	ASSERT_ERR(kern_check_process(getpid(), 0), CL_NOTFOUND);
	ASSERT_ERR(kern_check_process(0, ticks), CL_NOTFOUND);
	if ((pid = fork()) == 0)
		_exit(0);
	ASSERT_INT_EQ(waitid(P_PID, (id_t)pid, &si, WEXITED | WNOWAIT), 0);
	TEST_START("one that ended is gone before it is reaped");
	ASSERT_ERR(kern_load_ticks(pid, &again), CL_NOTFOUND);
	TEST_START("without descriptors: no, or it cannot be told");
	ASSERT_INT_EQ(getrlimit(RLIMIT_NOFILE, &old), 0);
	none = old;
	none.rlim_cur = 3;
	ASSERT_INT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
	ASSERT_ERR(kern_check_process(getpid(), ticks), CL_SYSTEM);
	ASSERT_TRUE(kern_is_short(CL_SYSTEM));
	ASSERT_ERR(kern_kill(pid, ticks), CL_SYSTEM);
	ASSERT_ERR(kern_load_boot(boot), CL_SYSTEM);
	ASSERT_INT_EQ(waitpid(pid, NULL, 0), pid);
	ASSERT_ERR(kern_check_process(pid, ticks), CL_NOTFOUND);
	TEST_START("the limit is raised to what is allowed");
	ASSERT_INT_EQ(kern_raise_files(), old.rlim_max > INT_MAX ? INT_MAX :
	    (int)old.rlim_max);
	ASSERT_ERR(kern_check_process(getpid(), ticks), CL_OK);
	TEST_START("the boot has a name");
	ASSERT_ERR(kern_load_boot(boot), CL_OK);
	ASSERT_SIZE_T_EQ(strlen(boot), KERN_BOOT_LEN);
}

static void
test_answers(void)
{
	static const struct {
		int r, err, is_short, is_unsure;
	} rows[] = {
		{ CL_NOMEM, 0, 1, 1 }, { CL_SYSTEM, EMFILE, 1, 1 },
		{ CL_SYSTEM, ENFILE, 1, 1 }, { CL_SYSTEM, ENOMEM, 1, 1 },
		{ CL_SYSTEM, EIO, 0, 1 }, { CL_SYSTEM, EACCES, 0, 1 },
		{ CL_SYSTEM, ENOENT, 0, 0 }, { CL_SYSTEM, ENOTDIR, 0, 0 },
		{ CL_NOTFOUND, EMFILE, 0, 0 }, { CL_FORMAT, EMFILE, 0, 0 },
		{ CL_OK, EMFILE, 0, 0 },
	};
	size_t i;

	TEST_START("three answers");
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		errno = rows[i].err;
		ASSERT_INT_EQ(kern_is_short(rows[i].r), rows[i].is_short);
		ASSERT_INT_EQ(kern_is_unsure(rows[i].r), rows[i].is_unsure);
	}
}

static void
test_end(void)
{
	TEST_START("nothing is left");
	ASSERT_INT_EQ(unlinkat(base, "../handles", AT_REMOVEDIR), 0);
	close(base);
	ASSERT_INT_EQ(rmdir(dir), 0);
}

UNIT_MAIN(test_make, test_long, test_meta, test_process, test_answers,
    test_end)
