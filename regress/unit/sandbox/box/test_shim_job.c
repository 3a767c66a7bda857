/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * sandbox/box/shim_job: encoding of the job and of the exit record, every
 * truncation, trailing bytes, values out of range.
 */
#include "regress/unit/unit.h"

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/msg/msgcat.h"
#include "sandbox/box/shim.h"

static char *argv_[] = { (char *)"/bin/sh", (char *)"-c", (char *)"",
	NULL };
static char *env_[] = { (char *)"A=1", (char *)"EMPTY=", (char *)"B=x=y",
	NULL };
static char *hide_[] = { (char *)"/var/lib/cloop/agent", NULL };

static void
job_fill(struct shim_job *j)
{
	memset(j, 0, sizeof(*j));
	j->mode = SHIM_MODE_CONFINED;
	j->log_level = 3;
	j->uid = 65534;
	j->gid = 65534;
	j->argv.v = argv_;
	j->argv.n = 3;
	j->env.v = env_;
	j->env.n = 3;
	j->hide.v = hide_;
	j->hide.n = 1;
	j->handle = (char *)(uintptr_t)"h-1";
	j->tree = (char *)(uintptr_t)"/w/t";
	j->timeout_s = 60;
}

static void
test_round_trip(void)
{
	struct shim_job a, b;
	struct buf out, in;
	size_t len;
	int r;

	TEST_START("a job comes back as it was");
	job_fill(&a);
	buf_init(&out, MAX_SPEC_LEN);
	shim_job_put(&out, &a);
	ASSERT_ERR(buf_error(&out), CL_OK);
	buf_init_read(&in, out.data, out.len);
	ASSERT_ERR(shim_job_get(&in, &b), CL_OK);
	ASSERT_INT_EQ(b.mode, a.mode);
	ASSERT_INT_EQ(b.uid, a.uid);
	ASSERT_U64_EQ(b.timeout_s, 60);
	ASSERT_SIZE_T_EQ(b.argv.n, 3);
	ASSERT_STRING_EQ(b.argv.v[2], "");
	ASSERT_PTR_EQ(b.argv.v[3], NULL);
	ASSERT_STRING_EQ(b.env.v[2], "B=x=y");
	ASSERT_STRING_EQ(b.hide.v[0], hide_[0]);
	ASSERT_STRING_EQ(b.tree, "/w/t");
	ASSERT_STRING_EQ(b.socket, "");
	shim_job_clear(&b);
	shim_job_clear(&b);

	TEST_START("every truncation and one byte more are refused");
	for (len = 0; len < out.len; len++) {
		unit_note("%zu bytes", len);
		buf_init_read(&in, out.data, len);
		r = shim_job_get(&in, &b);
		ASSERT_INT_NE(r, CL_OK);
		ASSERT_PTR_EQ(b.argv.v, NULL);
	}
	buf_put_u8(&out, 0);
	buf_init_read(&in, out.data, out.len);
	ASSERT_ERR(shim_job_get(&in, &b), CL_TRAILING);
	buf_clear(&out);
}

static void
check_bad(const struct shim_job *j)
{
	ASSERT_ERR(shim_job_check(j), CL_FORMAT);
}

static void
test_check(void)
{
	static const char *const paths[] = { "w", "/w/", "/w//t", "/w/./t",
		"/w/../t", "//w", "/..", "" };
	static char *bad_env[] = { (char *)"NOVALUE", NULL };
	static char *no_name[] = { (char *)"=1", NULL };
	static char *no_argv0[] = { (char *)"", NULL };
	struct shim_job j;
	size_t i;

	TEST_START("a job with meaning passes, each bent one does not");
	job_fill(&j);
	ASSERT_ERR(shim_job_check(&j), CL_OK);
	for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		unit_note("tree \"%s\"", paths[i]);
		job_fill(&j);
		j.tree = (char *)(uintptr_t)paths[i];
		check_bad(&j);
	}
	unit_note("mode");
	job_fill(&j);
	j.mode = 0;
	check_bad(&j);
	j.mode = 3;
	check_bad(&j);
	unit_note("uid without gid");
	job_fill(&j);
	j.uid = SHIM_STAY;
	check_bad(&j);
	unit_note("no argv");
	job_fill(&j);
	j.argv.n = 0;
	check_bad(&j);
	job_fill(&j);
	j.argv.v = no_argv0;
	j.argv.n = 1;
	check_bad(&j);
	unit_note("env");
	job_fill(&j);
	j.env.v = bad_env;
	j.env.n = 1;
	check_bad(&j);
	j.env.v = no_name;
	check_bad(&j);
	unit_note("timeout");
	job_fill(&j);
	j.timeout_s = 1ULL << 32;
	check_bad(&j);
	unit_note("socket path of 108 bytes");
	job_fill(&j);
	j.socket = malloc(109);
	memset(j.socket, 'a', 108);
	j.socket[0] = '/';
	j.socket[108] = '\0';
	check_bad(&j);
	j.socket[107] = '\0';
	ASSERT_ERR(shim_job_check(&j), CL_OK);
	free(j.socket);
}

static void
test_exit_record(void)
{
	struct shim_exit x = { .state = HS_KILLED, .exit_code = 137,
		.started_at = 1, .finished_at = 2, .error = "timeout after 5m",
		.total_raw = 99 }, y;
	char dir[] = "/tmp/cloop-exit.XXXXXX";
	int dir_fd, fd;

	TEST_START("the exit record is absent, then whole");
	ASSERT_PTR_NE(mkdtemp(dir), NULL);
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ASSERT_ERR(shim_exit_load(dir_fd, &y), CL_NOTFOUND);
	ASSERT_ERR(shim_exit_open(dir_fd, &fd), CL_OK);
	ASSERT_ERR(shim_exit_load(dir_fd, &y), CL_NOTFOUND);
	/* Its room is there before it is needed (BC-01). */
	ASSERT_INT_EQ(lseek(fd, 0, SEEK_END), 2048);
	ASSERT_ERR(shim_exit_save(dir_fd, fd, &x), CL_OK);
	close(fd);
	ASSERT_ERR(shim_exit_load(dir_fd, &y), CL_OK);
	ASSERT_INT_EQ(y.exit_code, 137);
	ASSERT_STRING_EQ(y.error, x.error);
	ASSERT_U64_EQ(y.total_raw, 99);
	field_clear(&shim_exit_table, &y);
	TEST_START("a torn or foreign record is refused");
	fd = openat(dir_fd, SHIM_EXIT_FILE, O_WRONLY | O_CLOEXEC);
	ASSERT_INT_EQ(ftruncate(fd, 20), 0);
	ASSERT_INT_NE(shim_exit_load(dir_fd, &y), CL_OK);
	ASSERT_INT_EQ(pwrite(fd, "xxxx", 4, 0), 4);
	ASSERT_ERR(shim_exit_load(dir_fd, &y), CL_FORMAT);
	close(fd);
	unlinkat(dir_fd, SHIM_EXIT_FILE, 0);
	close(dir_fd);
	rmdir(dir);
}

UNIT_MAIN(test_round_trip, test_check, test_exit_record)
