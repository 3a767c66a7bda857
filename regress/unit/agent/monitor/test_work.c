/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The record of owed work: written, read by the next agent.
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "agent/monitor/agentd.h"
#include "agent/monitor/fetchctl.h"
#include "agent/monitor/handledir.h"
#include "agent/monitor/wjob.h"
#include "agent/monitor/work.h"
#include "common/base/err.h"
#include "common/base/xmem.h"
#include "regress/unit/unit.h"

static struct agentd a;
static char root[] = "/tmp/test-work-save-XXXXXX";
static struct handledir d;

static int start_errno, nstarts, nreturned;
static wjob_fn *job_done;

int
wjob_start(struct agentd *ag, const struct wjob_opts *o, struct wjob **jobp)
{
	(void)ag;
	*jobp = NULL;
	if (start_errno != 0) {
		errno = start_errno;
		return CL_SYSTEM;
	}
	nstarts++;
	job_done = o->done;
	close(o->file_fd);
	return CL_OK;
}

void
wjob_free(struct wjob *j)
{
	(void)j;
}

void
wjob_cancel(struct wjob *j)
{
	(void)j;
}

int
wjob_on_exit(struct wjob *j, pid_t pid)
{
	(void)j;
	(void)pid;
	return 0;
}

void
fetchctl_send(struct fetchctl *f, uint32_t type, uint64_t id,
    uint64_t generation, const void *v, int fd)
{
	(void)f;
	(void)type;
	(void)id;
	(void)generation;
	(void)v;
	(void)fd;
}

static void
on_returned(void *arg)
{
	(void)arg;
	nreturned++;
}

static struct work
make(void)
{
	struct work k;

	memset(&k, 0, sizeof(k));
	field_init(&devjob_result_table, &k.rec.res);
	k.rec.tree = xstrdup(root);
	k.rec.mode = xstrdup("bundle");
	k.rec.branch = xstrdup("cloop/x");
	k.rec.base = xstrdup("0123456789012345678901234567890123456789");
	k.rec.max_bundle_bytes = 5;
	k.rec.has_password = 1;
	return k;
}

static void
test_record(void)
{
	struct work k, *back;

	ASSERT_PTR_NE(mkdtemp(root), NULL);
	ASSERT_ERR(workdir_open_root(root, (uid_t)-1, (gid_t)-1, &a.root),
	    CL_OK);
	d.fd = open(root, O_RDONLY | O_DIRECTORY);
	TEST_START("without a record nothing is owed");
	ASSERT_ERR(work_load(&a, &d, &back), CL_NOTFOUND);
	TEST_START("what was planned comes back, the tree open");
	k = make();
	ASSERT_ERR(work_save(&k, &d), CL_OK);
	ASSERT_ERR(work_load(&a, &d, &back), CL_OK);
	ASSERT_STRING_EQ(back->rec.branch, "cloop/x");
	ASSERT_INT_EQ(back->rec.max_bundle_bytes, 5);
	ASSERT_INT_EQ(back->rec.has_password, 1);
	ASSERT_INT_NE(back->tree_fd, -1);
	ASSERT_SIZE_T_EQ(back->password.len, 0);
	work_free(back);
	TEST_START("a tree outside the root is not opened");
	free(k.rec.tree);
	k.rec.tree = xstrdup("/etc");
	ASSERT_ERR(work_save(&k, &d), CL_OK);
	ASSERT_ERR(work_load(&a, &d, &back), CL_DENIED);
	TEST_START("what is returned needs no tree");
	k.rec.is_returned = 1;
	k.rec.res.outcome = DEVJOB_OK;
	k.rec.res.bytes = 7;
	ASSERT_ERR(work_save(&k, &d), CL_OK);
	ASSERT_ERR(work_load(&a, &d, &back), CL_OK);
	ASSERT_INT_EQ(back->rec.res.bytes, 7);
	work_free(back);
	free(k.rec.tree);
	free(k.rec.mode);
	free(k.rec.branch);
	free(k.rec.base);
}

static void
test_pause(void)
{
	struct devjob_result res = { .outcome = DEVJOB_SKIPPED };
	struct work k = make(), *back;

	TEST_START("what cannot be returned for want of descriptors waits");
	a.base = event_base_new();
	ASSERT_ERR(work_save(&k, &d), CL_OK);
	ASSERT_ERR(work_load(&a, &d, &back), CL_OK);
	back->at = (struct work_place){ .a = &a, .handle_id = "h", .dir = &d,
	    .wake_fd = -1, .on_returned = on_returned };
	start_errno = EMFILE;
	work_return(back, 0);
	(void)event_base_loop(a.base, EVLOOP_ONCE);
	ASSERT_INT_EQ(nreturned, 0);
	ASSERT_FALSE(back->rec.is_returned);
	start_errno = 0;
	(void)event_base_loop(a.base, EVLOOP_ONCE);
	ASSERT_INT_EQ(nstarts, 1);
	job_done(back, &res);
	ASSERT_INT_EQ(nreturned, 1);
	ASSERT_INT_EQ(back->rec.res.outcome, DEVJOB_SKIPPED);
	work_free(back);
	TEST_START("what fails for another reason is told");
	ASSERT_ERR(work_save(&k, &d), CL_OK);
	ASSERT_ERR(work_load(&a, &d, &back), CL_OK);
	back->at = (struct work_place){ .a = &a, .handle_id = "h", .dir = &d,
	    .wake_fd = -1, .on_returned = on_returned };
	start_errno = EACCES;
	work_return(back, 0);
	ASSERT_INT_EQ(nreturned, 2);
	ASSERT_INT_EQ(back->rec.res.outcome, DEVJOB_FAILED);
	work_free(back);
	free(k.rec.tree);
	free(k.rec.mode);
	free(k.rec.branch);
	free(k.rec.base);
	event_base_free(a.base);
}

static void
test_damage(void)
{
	struct work *back;
	struct stat st;
	char path[128];
	off_t len;

	TEST_START("a damaged record is refused");
	snprintf(path, sizeof(path), "%s/work", root);
	ASSERT_INT_EQ(stat(path, &st), 0);
	for (len = st.st_size - 1; len >= 0; len -= 7) {
		ASSERT_INT_EQ(truncate(path, len), 0);
		ASSERT_INT_NE(work_load(&a, &d, &back), CL_OK);
	}
	unlink(path);
	rmdir(root);
}

UNIT_MAIN(test_record, test_pause, test_damage)
