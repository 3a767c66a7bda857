/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * sandbox/self/bpf: filters that the monitor compiled and a shim takes: what
 * goes over is what was compiled, and nothing else is taken.
 */
#include "regress/unit/unit.h"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <errno.h>
#include <linux/bpf_common.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "sandbox/self/bpf.h"

#define OWN -1		/* an argument: the process itself */
#define ROW_LEN sizeof(struct sock_filter)

static struct bpf_set made;

static void
test_make(void)
{
	struct bpf_set got;
	struct buf b, in;
	size_t i;

	TEST_START("all filters compile, fit their message and come back "
	    "the same");
	ASSERT_ERR(bpf_set_make(&made), CL_OK);
	buf_init(&b, MAX_FILTERS_LEN);
	bpf_set_put(&b, &made);
	ASSERT_ERR(buf_error(&b), CL_OK);
	buf_init_read(&in, b.data, b.len);
	ASSERT_ERR(bpf_set_get(&in, &got), CL_OK);
	for (i = 0; i < BPF_NKINDS; i++) {
		ASSERT_INT_GT(made.prog[i].len, 0);
		ASSERT_INT_EQ(got.prog[i].len, made.prog[i].len);
		ASSERT_MEM_EQ(got.prog[i].filter, made.prog[i].filter,
		    made.prog[i].len * ROW_LEN);
	}
	bpf_set_clear(&got);
	buf_clear(&b);
}

/* A set whose first program has so many bytes. */
static int
get_with(size_t len, size_t nprograms, int trailing)
{
	struct sock_filter *rows = calloc(BPF_MAXINSNS + 1, ROW_LEN);
	struct bpf_set got;
	struct buf b, in;
	size_t i;
	int r;

	ASSERT_PTR_NE(rows, NULL);
	buf_init(&b, 2 * MAX_FILTERS_LEN);
	for (i = 0; i < nprograms; i++)
		buf_put_blob(&b, rows, i == 0 ? len : ROW_LEN);
	if (trailing)
		buf_put_u8(&b, 0);
	ASSERT_ERR(buf_error(&b), CL_OK);
	buf_init_read(&in, b.data, b.len);
	r = bpf_set_get(&in, &got);
	for (i = 0; r != CL_OK && i < BPF_NKINDS; i++)
		ASSERT_PTR_EQ(got.prog[i].filter, NULL);
	bpf_set_clear(&got);
	buf_clear(&b);
	free(rows);
	return r;
}

static void
test_bounds(void)
{
	TEST_START("a program of 1 and of 4096 rows, none of 0, 4097 or half "
	    "a row");
	ASSERT_ERR(get_with(ROW_LEN, BPF_NKINDS, 0), CL_OK);
	ASSERT_ERR(get_with(BPF_MAXINSNS * ROW_LEN, BPF_NKINDS, 0), CL_OK);
	ASSERT_ERR(get_with(0, BPF_NKINDS, 0), CL_FORMAT);
	ASSERT_ERR(get_with((BPF_MAXINSNS + 1) * ROW_LEN, BPF_NKINDS, 0),
	    CL_TOOBIG);
	ASSERT_ERR(get_with(ROW_LEN - 1, BPF_NKINDS, 0), CL_FORMAT);

	TEST_START("one program too few, one too many, a byte behind");
	ASSERT_ERR(get_with(ROW_LEN, BPF_NKINDS - 1, 0), CL_INCOMPLETE);
	ASSERT_ERR(get_with(ROW_LEN, BPF_NKINDS + 1, 0), CL_TRAILING);
	ASSERT_ERR(get_with(ROW_LEN, BPF_NKINDS, 1), CL_TRAILING);
}

/* The wait status of a process that loads the filter and makes a call. */
static int
status_of(struct sock_fprog *p, long nr, long a, long b)
{
	int status;
	pid_t pid;

	fflush(stdout);
	if ((pid = fork()) == 0) {
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
		    (a != 0 ? bpf_start_own(p) : bpf_start(p)) != CL_OK)
			_exit(255);
		(void)syscall(nr, a == OWN ? (long)getpid() : a, b, 0, 0, 0,
		    0);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	return status;
}

static void
test_start(void)
{
	struct sock_fprog none = { 0 };

	TEST_START("init and shim: what has no row kills");
	ASSERT_INT_EQ(WTERMSIG(status_of(&made.prog[BPF_INIT], SYS_getpid,
	    0, 0)), SIGSYS);
	ASSERT_INT_EQ(WTERMSIG(status_of(&made.prog[BPF_SHIM], SYS_setuid,
	    0, 0)), SIGSYS);
	ASSERT_INT_EQ(WTERMSIG(status_of(&made.prog[BPF_SHIM_SCAN],
	    SYS_setuid, 0, 0)), SIGSYS);
	ASSERT_INT_EQ(status_of(&made.prog[BPF_SHIM], SYS_getpid, 0, 0), 0);
	ASSERT_INT_EQ(status_of(&made.prog[BPF_WORKLOAD], SYS_getpid, 0, 0),
	    0);

	TEST_START("the shim may signal its own threads, by number, nobody "
	    "else's");
	ASSERT_INT_EQ(status_of(&made.prog[BPF_SHIM], SYS_tgkill, OWN, OWN),
	    0);
	ASSERT_INT_EQ(WTERMSIG(status_of(&made.prog[BPF_SHIM], SYS_tgkill,
	    getpid(), getpid())), SIGSYS);
	ASSERT_ERR(bpf_start_own(&made.prog[BPF_WORKLOAD]), CL_INTERNAL);

	TEST_START("an empty filter is no filter");
	ASSERT_ERR(bpf_start(&none), CL_INTERNAL);
	bpf_set_clear(&made);
}

UNIT_MAIN(test_make, test_bounds, test_start)
