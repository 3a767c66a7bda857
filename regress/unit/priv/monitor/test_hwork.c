/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * priv/monitor/hwork: the budget of returned work, its record in a handle's
 * row, and the gate that looks at a shipped bundle.
 */
#include "regress/unit/unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <sys/mman.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/msg/msgcat.h"
#include "common/model/spec.h"
#include "common/base/util.h"
#include "common/model/workmsg.h"
#include "priv/monitor/dispatch.h"
#include "priv/monitor/hwork.c"
#include "priv/monitor/monitor.h"
#include "priv/monitor/refuse.h"

#define C40 "cccccccccccccccccccccccccccccccccccccccc"
#define DIGEST \
	"bbb59da3af939f7af5f360f2ceb80a496e3bae1cd87dde426db0ae40677e1c2c"

static struct monitor mon;
static struct agent one, two;

static void
begin(struct handle *h, struct agent *a)
{
	memset(h, 0, sizeof(*h));
	h->agent = a;
	h->work = calloc(1, sizeof(*h->work));
	ASSERT_TRUE(h->work != NULL);
	h->work->asked = WORK_BUNDLE;
}

static void
test_budget(void)
{
	struct handle h, other, third;
	uint32_t n;

	mon.conf.write_back_budget = 1000;
	mon.conf.write_back_total = 1500;
	begin(&h, &one);
	begin(&other, &one);
	begin(&third, &two);

	TEST_START("the budget: the last byte fits, one more does not");
	ASSERT_INT_EQ(work_reserve(&mon, &h, 0, 400, 400, &n), TAKE_OK);
	ASSERT_INT_EQ(n, 400);
	ASSERT_INT_EQ(work_reserve(&mon, &other, 0, 601, 601, &n),
	    TAKE_AGENT);
	ASSERT_INT_EQ(n, 0);
	ASSERT_INT_EQ(work_reserve(&mon, &other, 0, 600, 600, &n), TAKE_OK);
	ASSERT_INT_EQ(work_reserve(&mon, &h, 0, 1, 1, &n), TAKE_AGENT);
	ASSERT_U64_EQ(one.pinned, 1000);

	TEST_START("the agent is judged first, then the hub");
	ASSERT_INT_EQ(work_reserve(&mon, &third, 0, 501, 501, &n),
	    TAKE_TOTAL);
	ASSERT_INT_EQ(work_reserve(&mon, &third, 0, 500, 500, &n), TAKE_OK);
	ASSERT_U64_EQ(mon.handles.pinned, 1500);
	ASSERT_INT_EQ(work_reserve(&mon, &h, 0, 1, 1, &n), TAKE_AGENT);

	TEST_START("a restart gives back what the handle held, no other's");
	ASSERT_INT_EQ(work_reserve(&mon, &h, 1, 401, 401, &n), TAKE_AGENT);
	ASSERT_U64_EQ(h.work->held, 0);
	ASSERT_U64_EQ(one.pinned, 600);
	ASSERT_INT_EQ(work_reserve(&mon, &h, 1, 100, 5000, &n), TAKE_OK);
	/* As much ahead as there is room, and no more. */
	ASSERT_INT_EQ(n, 400);

	TEST_START("lowering a limit refuses new bytes only");
	mon.conf.write_back_budget = 10;
	ASSERT_INT_EQ(work_reserve(&mon, &other, 0, 1, 1, &n), TAKE_AGENT);
	ASSERT_U64_EQ(one.pinned, 1000);

	TEST_START("what is dropped is given back, and never twice");
	work_drop_bundle(&mon, &h);
	work_drop_bundle(&mon, &h);
	work_drop_bundle(&mon, &other);
	work_drop_bundle(&mon, &third);
	ASSERT_U64_EQ(one.pinned, 0);
	ASSERT_U64_EQ(mon.handles.pinned, 0);
	work_free(h.work);
	work_free(other.work);
	work_free(third.work);
}

static void
set(char **dst, const char *value)
{
	free(*dst);
	*dst = strdup(value);
	ASSERT_TRUE(*dst != NULL);
}

static void
test_meta(void)
{
	struct work_result res;
	struct work *w, *back;
	struct spec s;
	char *meta;

	TEST_START("a record goes through the row and back");
	spec_init(&s);
	set(&s.workspace.kind, "git");
	set(&s.workspace.repo, "https://git.example/a/b.git");
	set(&s.workspace.ref, C40);
	s.workspace.depth = 7;
	set(&s.write_back.mode, "bundle");
	set(&s.write_back.branch, "cloop/x");
	ASSERT_TRUE((w = work_new(&s)) != NULL);
	ASSERT_U64_EQ(w->cap, WORK_CAP_DEFAULT);
	w->state = WORK_DONE;
	w->bytes = 12;
	set(&w->text, "a \"reason\"\n");
	ASSERT_ERR(work_format_meta(w, &meta), CL_OK);
	ASSERT_ERR(work_parse_meta(meta, &back), CL_OK);
	ASSERT_INT_EQ(back->asked, WORK_BUNDLE);
	ASSERT_STRING_EQ(back->branch, "cloop/x");
	ASSERT_STRING_EQ(back->base, C40);
	ASSERT_STRING_EQ(back->text, "a \"reason\"\n");
	ASSERT_U64_EQ(back->bytes, 12);
	ASSERT_INT_EQ(back->depth, 7);
	ASSERT_INT_EQ(back->state, WORK_DONE);
	ASSERT_INT_EQ(work_get_result(back, "h", 1, &res), 1);
	ASSERT_STRING_EQ(res.mode, "bundle");
	ASSERT_INT_EQ(res.held, 0);
	work_free(w);
	work_free(back);
	free(meta);

	TEST_START("nothing asked for is recorded as that");
	set(&s.write_back.mode, "");
	ASSERT_TRUE((w = work_new(&s)) != NULL);
	ASSERT_ERR(work_format_meta(w, &meta), CL_OK);
	ASSERT_ERR(work_parse_meta(meta, &back), CL_OK);
	ASSERT_INT_EQ(back->asked, WORK_NONE);
	ASSERT_INT_EQ(work_get_result(back, "h", 1, &res), 0);
	work_free(w);
	work_free(back);
	free(meta);
	spec_clear(&s);

	TEST_START("without a record the hard ceiling alone holds");
	ASSERT_ERR(work_parse_meta("{}", &back), CL_OK);
	ASSERT_INT_EQ(back->asked, WORK_UNKNOWN);
	ASSERT_U64_EQ(back->cap, MAX_BUNDLE_LEN);
	ASSERT_INT_EQ(work_get_result(back, "h", 1, &res), 0);
	work_free(back);
	ASSERT_ERR(work_parse_meta("not json", &back), CL_OK);
	ASSERT_INT_EQ(back->asked, WORK_UNKNOWN);
	work_free(back);
	ASSERT_ERR(work_parse_meta("{\"writeback_mode\":\"bundle\","
	    "\"result_state\":\"9\",\"writeback_cap\":\"-1\"}", &back), CL_OK);
	ASSERT_INT_EQ(back->state, WORK_FAILED);
	ASSERT_U64_EQ(back->cap, MAX_BUNDLE_LEN);
	work_free(back);
}

static void
test_branch(void)
{
	struct spec_bundle b = { .branch = (char *)(uintptr_t)"cloop/x",
		.head = (char *)(uintptr_t)C40, .bytes = 6,
		.sha256 = (char *)(uintptr_t)DIGEST };
	struct spec s;
	struct dispatch d = { .spec = &s, .branch_fd = -1, .branch_len = 6 };
	struct refusal r;
	int open_fd;

	spec_init(&s);
	s.workspace.branch_bundle = &b;
	TEST_START("a shipped bundle's file is what the description says");
	ASSERT_INT_EQ(work_check_branch(&d, &r), 1);
	ASSERT_TRUE(strstr(r.message, "did not come") != NULL);
	ASSERT_ERR(util_make_memfd("abcabc", 6, &d.branch_fd), CL_OK);
	ASSERT_INT_EQ(work_check_branch(&d, &r), 0);
	b.bytes = 5;
	ASSERT_INT_EQ(work_check_branch(&d, &r), 1);
	b.bytes = 7;
	ASSERT_INT_EQ(work_check_branch(&d, &r), 1);
	ASSERT_TRUE(strstr(r.message, "6 bytes") != NULL);
	b.bytes = 6;
	b.sha256 = (char *)(uintptr_t)("0" C40 "00000000000000000000000");
	ASSERT_INT_EQ(work_check_branch(&d, &r), 1);
	ASSERT_TRUE(strstr(r.message, "SHA-256") != NULL);
	b.sha256 = (char *)(uintptr_t)DIGEST;
	close(d.branch_fd);

	TEST_START("and nobody can change it afterwards");
	open_fd = memfd_create("branch", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	ASSERT_TRUE(open_fd != -1);
	ASSERT_ERR(util_write_all(open_fd, "abcabc", 6), CL_OK);
	d.branch_fd = open_fd;
	ASSERT_INT_EQ(work_check_branch(&d, &r), 1);
	ASSERT_TRUE(strstr(r.message, "sealed") != NULL);
	close(open_fd);

	TEST_START("nothing shipped, nothing to look at");
	b.bytes = 0;
	d.branch_fd = -1;
	ASSERT_INT_EQ(work_check_branch(&d, &r), 0);
	s.workspace.branch_bundle = NULL;
	ASSERT_INT_EQ(work_check_branch(&d, &r), 0);
	spec_clear(&s);
}

static void
test_due(void)
{
	const int64_t s = INT64_C(1000000000);
	struct handle h;
	int64_t now = 1000000;

	begin(&h, &one);
	h.row.state = HS_EXITED;
	h.work->bundle = 1;
	one.row.revoked_at = UTIL_TIME_ZERO;

	TEST_START("what nobody took is let go after 15 minutes");
	h.row.closed_at = util_wall_ns();
	ASSERT_INT_EQ(work_is_due(&h, now), 0);
	ASSERT_INT_EQ(work_is_due(&h, now + 899000), 0);
	ASSERT_INT_EQ(work_is_due(&h, now + 900001), 1);

	TEST_START("whatever the wall clock says meanwhile");
	h.row.closed_at = util_wall_ns() - 86400 * s;
	ASSERT_INT_EQ(work_is_due(&h, now + 899000), 0);
	h.row.closed_at = util_wall_ns() + 86400 * s;
	ASSERT_INT_EQ(work_is_due(&h, now + 900001), 1);

	TEST_START("of an earlier hub's, the rest of the time");
	h.work->due_at = 0;
	h.row.closed_at = util_wall_ns() - 600 * s;
	ASSERT_INT_EQ(work_is_due(&h, now), 0);
	ASSERT_INT_EQ(work_is_due(&h, now + 298000), 0);
	ASSERT_INT_EQ(work_is_due(&h, now + 300001), 1);
	h.work->due_at = 0;
	h.row.closed_at = util_wall_ns() - 86400 * s;
	ASSERT_INT_EQ(work_is_due(&h, now), 1);

	TEST_START("closed in the future: never more than 15 minutes");
	h.work->due_at = 0;
	h.row.closed_at = util_wall_ns() + 86400 * s;
	ASSERT_INT_EQ(work_is_due(&h, now), 0);
	ASSERT_INT_EQ(work_is_due(&h, now + 900001), 1);
	work_free(h.work);
}

UNIT_MAIN(test_budget, test_meta, test_branch, test_due)
