/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * net/hub/hub_take: a returned bundle, chunk by chunk, and the result that ends
 * it, each rule at its bound.
 */
#include "regress/unit/unit.h"

#include <fcntl.h>
#include <unistd.h>

#include <sys/mman.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/msg/msgcat.h"
#include "net/codec/frame.h"
#include "net/hub/hub_take.h"

#define BRANCH "cloop/task"
#define COMMIT "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
/* printf abcabc | sha256sum */
#define DIGEST \
	"bbb59da3af939f7af5f360f2ceb80a496e3bae1cd87dde426db0ae40677e1c2c"

static const char *why;

static int
file(void)
{
	int fd = memfd_create("bundle", MFD_CLOEXEC);

	ASSERT_TRUE(fd != -1);
	return fd;
}

static struct htake *
make(int asked, uint64_t cap, int over, const char *branch)
{
	struct msg_handle_work v = { .asked = asked, .cap = cap, .over = over,
	    .branch = branch, .failure = "" };

	return htake_new(&v);
}

/* A transfer with its file and much room. */
static struct htake *
begin(uint64_t cap)
{
	struct htake *t = make(WORK_BUNDLE, cap, 0, BRANCH);

	ASSERT_TRUE(t != NULL);
	ASSERT_ERR(htake_set_file(t, file()), CL_OK);
	ASSERT_ERR(htake_grant(t, 0, 1000000), CL_OK);
	return t;
}

static void
put(struct htake *t, const char *text)
{
	ASSERT_INT_EQ(htake_check(t, 0, t->size, strlen(text), &why),
	    HTAKE_FITS);
	ASSERT_ERR(htake_put(t, text, strlen(text)), CL_OK);
}

static struct frame_write_back
good(void)
{
	struct frame_write_back wb = { .mode = (char *)(uintptr_t)"bundle",
		.branch = (char *)(uintptr_t)BRANCH,
		.commit_sha = (char *)(uintptr_t)COMMIT,
		.base_sha = (char *)(uintptr_t)COMMIT,
		.bundle_sha256 = (char *)(uintptr_t)DIGEST,
		.bundle_bytes = 6, .commits = 2 };

	return wb;
}

static void
test_order(void)
{
	struct htake *t;

	TEST_START("what nobody asked for, or came late, is refused");
	ASSERT_INT_EQ(htake_check(NULL, 0, 0, 1, &why), HTAKE_REFUSED);
	t = make(WORK_PUSH, 100, 0, BRANCH);
	ASSERT_INT_EQ(htake_check(t, 0, 0, 1, &why), HTAKE_REFUSED);
	htake_free(t);
	t = begin(100);
	ASSERT_INT_EQ(htake_check(t, 1, 0, 1, &why), HTAKE_REFUSED);
	ASSERT_STRING_EQ(why, "the workload is over");
	htake_free(t);
	t = make(WORK_BUNDLE, 100, 1, BRANCH);
	ASSERT_INT_EQ(htake_check(t, 0, 0, 1, &why), HTAKE_REFUSED);
	htake_free(t);

	TEST_START("an overlap and a hole of one byte fail for good");
	t = begin(100);
	put(t, "abc");
	ASSERT_INT_EQ(htake_check(t, 0, 2, 1, &why), HTAKE_FAILS);
	ASSERT_INT_EQ(htake_check(t, 0, 4, 1, &why), HTAKE_FAILS);
	ASSERT_INT_EQ(htake_check(t, 0, 3, 1, &why), HTAKE_FITS);
	htake_fail(t, "a hole");
	ASSERT_INT_EQ(htake_check(t, 0, 3, 1, &why), HTAKE_REFUSED);
	ASSERT_STRING_EQ(why, "a hole");
	ASSERT_INT_EQ(t->fd, -1);
	ASSERT_INT_EQ(htake_check(t, 0, 0, 1, &why), HTAKE_REFUSED);
	htake_fail(t, "another reason");
	ASSERT_STRING_EQ(t->failure, "a hole");
	htake_free(t);
}

static void
test_bounds(void)
{
	struct htake *t;
	uint32_t min, max;

	TEST_START("the cap of the handle: the last byte fits, one more fails");
	t = begin(6);
	put(t, "abc");
	ASSERT_INT_EQ(htake_check(t, 0, 3, 3, &why), HTAKE_FITS);
	ASSERT_INT_EQ(htake_check(t, 0, 3, 4, &why), HTAKE_FAILS);
	ASSERT_INT_EQ(htake_check(t, 0, 3, SIZE_MAX, &why), HTAKE_FAILS);
	htake_free(t);
	t = begin(6);
	ASSERT_INT_EQ(htake_check(t, 0, 0, 6, &why), HTAKE_FITS);
	ASSERT_INT_EQ(htake_check(t, 0, 0, 7, &why), HTAKE_FAILS);
	htake_free(t);

	TEST_START("a chunk costs its bytes and 64");
	t = begin(1000);
	t->left = 3 + WORK_CHUNK_COST;
	ASSERT_INT_EQ(htake_check(t, 0, 0, 3, &why), HTAKE_FITS);
	ASSERT_INT_EQ(htake_check(t, 0, 0, 4, &why), HTAKE_ROOM);
	ASSERT_ERR(htake_put(t, "abc", 3), CL_OK);
	ASSERT_U64_EQ(t->left, 0);
	ASSERT_U64_EQ(t->cost, 3 + WORK_CHUNK_COST);
	ASSERT_INT_EQ(htake_check(t, 0, 3, 1, &why), HTAKE_ROOM);
	htake_get_need(1, &min, &max);
	ASSERT_INT_EQ(min, 65);
	ASSERT_INT_EQ(max, HTAKE_AHEAD);
	htake_get_need(262144, &min, &max);
	ASSERT_INT_EQ(min, 262144 + 64);
	ASSERT_INT_EQ(max, 262144 + 64);
	htake_free(t);
}

static void
test_restart(void)
{
	struct frame_write_back wb = good();
	struct work_end end;
	struct htake *t, *next;
	int fd;

	TEST_START("offset 0 again begins anew");
	t = begin(100);
	put(t, "spoiled");
	ASSERT_INT_EQ(htake_check(t, 0, 0, 3, &why), HTAKE_RESTART);
	ASSERT_ERR(htake_grant(t, 1, 1000), CL_OK);
	ASSERT_U64_EQ(t->size, 0);
	ASSERT_U64_EQ(t->left, 1000);
	put(t, "abc");
	put(t, "abc");
	ASSERT_PTR_EQ(htake_end(t, 0, &wb, &end), NULL);
	ASSERT_U64_EQ(end.cost, 6 + 2 * WORK_CHUNK_COST);
	htake_free(t);

	TEST_START("without a file the first chunk asks for a beginning");
	t = make(WORK_UNKNOWN, 100, 0, "");
	ASSERT_INT_EQ(htake_check(t, 0, 0, 3, &why), HTAKE_RESTART);
	ASSERT_INT_EQ(htake_check(t, 0, 3, 3, &why), HTAKE_ROOM);
	htake_free(t);

	TEST_START("the next session goes on where the file ends");
	t = begin(100);
	put(t, "abc");
	fd = fcntl(t->fd, F_DUPFD_CLOEXEC, 3);
	next = make(WORK_BUNDLE, 100, 0, BRANCH);
	ASSERT_ERR(htake_set_file(next, fd), CL_OK);
	ASSERT_INT_EQ(htake_check(next, 0, 3, 3, &why), HTAKE_ROOM);
	ASSERT_ERR(htake_grant(next, 0, 1000), CL_OK);
	put(next, "abc");
	ASSERT_PTR_EQ(htake_end(next, 0, &wb, &end), NULL);
	htake_free(t);
	htake_free(next);
}

/* What a result with this change is answered with, after these bytes. */
static const char *
judge(const char *bytes, const struct frame_write_back *wb)
{
	static char text[200];
	struct htake *t = begin(100);
	struct work_end end;
	const char *r;

	if (bytes[0] != '\0')
		put(t, bytes);
	r = htake_end(t, 0, wb, &end);
	(void)snprintf(text, sizeof(text), "%s", r != NULL ? r : "");
	ASSERT_INT_EQ(end.failed, r != NULL);
	ASSERT_INT_EQ(t->over, 1);
	if (r != NULL) {
		ASSERT_U64_EQ(end.bytes, 0);
		ASSERT_STRING_EQ(end.text, text);
	}
	/* One is all there is. */
	r = htake_end(t, 0, wb, &end);
	ASSERT_STRING_EQ(r, "its result came already");
	ASSERT_INT_EQ(end.failed, 0);
	htake_free(t);
	return text;
}

#define GOOD ""
#define SET(member, value) \
	(wb = good(), wb.member = (char *)(uintptr_t)(value), &wb)

static void
test_result(void)
{
	struct frame_write_back wb = good();
	struct work_end end;
	struct htake *t;

	TEST_START("a result is what the bytes are");
	ASSERT_STRING_EQ(judge("abcabc", &wb), GOOD);
	wb.bundle_bytes = 5;
	ASSERT_TRUE(judge("abcabc", &wb)[0] != '\0');
	wb.bundle_bytes = 7;
	ASSERT_TRUE(judge("abcabc", &wb)[0] != '\0');
	ASSERT_TRUE(judge("abcabd", SET(mode, "bundle"))[0] != '\0');
	ASSERT_TRUE(judge("abcabc", SET(bundle_sha256, NULL))[0] != '\0');
	ASSERT_TRUE(judge("abcabc", SET(bundle_sha256, ""))[0] != '\0');
	ASSERT_TRUE(judge("abcabc", SET(commit_sha, "aaaa"))[0] != '\0');
	ASSERT_TRUE(judge("abcabc", SET(base_sha, "aaaa"))[0] != '\0');
	ASSERT_STRING_EQ(judge("abcabc", SET(base_sha, NULL)), GOOD);
	ASSERT_TRUE(judge("abcabc", SET(branch, "cloop/other"))[0] != '\0');
	ASSERT_TRUE(judge("", SET(mode, "bundle"))[0] != '\0');

	TEST_START("bytes with a push, a skip, an error or no mode fail");
	ASSERT_TRUE(judge("abcabc", SET(mode, "push"))[0] != '\0');
	ASSERT_TRUE(judge("abcabc", SET(mode, NULL))[0] != '\0');
	ASSERT_TRUE(judge("abcabc", SET(error, "broke"))[0] != '\0');
	wb = good();
	wb.skipped = 1;
	ASSERT_TRUE(judge("abcabc", &wb)[0] != '\0');
	ASSERT_STRING_EQ(judge("", &wb), GOOD);
	ASSERT_STRING_EQ(judge("", SET(mode, "push")), GOOD);
	ASSERT_STRING_EQ(judge("", SET(error, "broke")), GOOD);

	TEST_START("nobody asked, or too late: the device alone is told");
	wb = good();
	ASSERT_TRUE(htake_end(NULL, 0, &wb, &end) != NULL);
	ASSERT_INT_EQ(end.failed, 0);
	t = begin(100);
	put(t, "abcabc");
	ASSERT_TRUE(htake_end(t, 1, &wb, &end) != NULL);
	ASSERT_INT_EQ(end.failed, 0);
	ASSERT_INT_EQ(t->over, 0);
	htake_fail(t, "a hole");
	ASSERT_STRING_EQ(htake_end(t, 0, &wb, &end), "a hole");
	ASSERT_INT_EQ(end.failed, 0);
	htake_free(t);
}

UNIT_MAIN(test_order, test_bounds, test_restart, test_result)
