/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The record of owed work: written, read by the next agent.
 */
#include <sys/stat.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/monitor/agentd.h"
#include "agent/monitor/handledir.h"
#include "agent/monitor/work.h"
#include "common/base/err.h"
#include "common/base/xmem.h"
#include "regress/unit/unit.h"

static struct agentd a;
static char root[] = "/tmp/test-work-save-XXXXXX";
static struct handledir d;

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

UNIT_MAIN(test_record, test_damage)
