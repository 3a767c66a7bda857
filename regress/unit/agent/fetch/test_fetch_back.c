/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * agent/fetch/fetch_back: project result, bundle, result in this order, in
 * chunks without a gap, again on a new link, and what is said when the hub
 * or the disk refuses.  The link is a stand-in.
 */
#include "regress/unit/unit.h"

#include <sys/mman.h>

#include <bsd/string.h>

#include "agent/fetch/fetch_back.c"

static struct fetch fetch;
static struct fetch_work work;
static char sent[64];			/* a letter a frame */
static char chunk_id[64];
static uint64_t next_offset;
static struct frame_write_back last;	/* borrowed strings */
static char last_error[256], project_text[64];

int
fetch_send(struct fetch *f, enum frame_type type, const char *id,
    const char *handle, const void *payload, uint64_t *posp)
{
	const struct frame_result_chunk *c = payload;
	const struct frame_project_result *p = payload;
	size_t n = strlen(sent);

	ASSERT_TRUE(n + 1 < sizeof(sent));
	ASSERT_STRING_EQ(handle, "h");
	sent[n + 1] = '\0';
	switch (type) {
	case FRAME_PROJECT_RESULT:
		sent[n] = p->data != NULL ? 'P' : 'p';
		(void)snprintf(project_text, sizeof(project_text), "%s",
		    p->error == NULL ? "" : p->error);
		return CL_OK;
	case FRAME_RESULT_CHUNK:
		sent[n] = 'c';
		(void)snprintf(chunk_id, sizeof(chunk_id), "%s", id);
		ASSERT_TRUE(c->data_len > 0 && c->data_len <= 262144);
		if (c->offset == 0)
			next_offset = 0;
		ASSERT_INT_EQ(c->offset, next_offset);
		ASSERT_INT_EQ(c->data[0], (next_offset >> 16) & 0xff);
		next_offset += c->data_len;
		return CL_OK;
	case FRAME_RESULT:
		sent[n] = 'R';
		last = ((const struct frame_result *)payload)->result;
		(void)snprintf(last_error, sizeof(last_error), "%s",
		    last.error == NULL ? "" : last.error);
		return CL_OK;
	default:
		return CL_INTERNAL;
	}
}

struct fetch_work *
fetch_work_find_slot(struct fetch *f, uint64_t slot)
{
	return slot == 7 ? &work : NULL;
}

/* A file whose 64 KiB blocks hold their number. */
static int
make_file(size_t len)
{
	int fd = memfd_create("bundle", MFD_CLOEXEC);
	uint8_t block[65536];
	size_t at;

	for (at = 0; at < len; at += sizeof(block)) {
		memset(block, (int)(at >> 16), sizeof(block));
		ASSERT_TRUE(pwrite(fd, block, len - at < sizeof(block) ?
		    len - at : sizeof(block), (off_t)at) > 0);
	}
	return fd;
}

static void
put_bundle(size_t len)
{
	struct imsg m = { .fd = make_file(len) };
	union msg_any v = { .DEV_BUNDLE = { 7, len } };

	ASSERT_ERR(fetch_back_on_bundle(&fetch, &m, &v), CL_OK);
	imsg_free(&m);
}

static void
put_result(uint64_t outcome, int64_t bytes, const char *error)
{
	struct imsg m = { .fd = -1 };
	union msg_any v = { .DEV_RESULT = { .slot = 7,
	    .mode = strdup("bundle"), .branch = strdup("cloop/x"),
	    .base = strdup("base"), .result = { .outcome = outcome,
	    .bytes = bytes, .error = strdup(error), .head = strdup("head"),
	    .sha256 = bytes > 0 ? strdup("digest") : NULL } } };

	ASSERT_ERR(fetch_back_on_result(&fetch, &m, &v), CL_OK);
	msg_clear(MSG_DEV_RESULT, &v);
}

static void
put_project(const char *error, size_t len)
{
	struct imsg m = { .fd = -1 };
	union msg_any v;

	if (len > 0) {
		m.fd = make_file(len);
		v.DEV_PROJECT_FILE = (struct msg_slot_file){ 7, len };
		ASSERT_ERR(fetch_back_on_project_file(&fetch, &m, &v),
		    len > 655360 ? CL_TOOBIG : CL_OK);
		imsg_free(&m);
	}
	v.DEV_PROJECT = (struct msg_dev_project){ 7,
	    *error != '\0' ? strdup(error) : NULL };
	ASSERT_ERR(fetch_back_on_project(&fetch, &m, &v), CL_OK);
	msg_clear(MSG_DEV_PROJECT, &v);
}

static void
reset(int version)
{
	fetch_back_clear(&work.back);
	fetch.negotiated = version;
	work.f = &fetch;
	(void)snprintf(work.handle, sizeof(work.handle), "h");
	sent[0] = '\0';
}

/* Every frame; how the file is read matters to nobody. */
static const char *
run(void)
{
	int r;

	while ((r = fetch_back_step(&work)) == CL_OK)
		;
	ASSERT_ERR(r, CL_INCOMPLETE);
	return sent;
}

static void
test_order(void)
{
	work.back.bundle_fd = work.back.project_fd = -1;
	reset(26);
	TEST_START("project, bundle, result, and nothing twice");
	put_project("", 1000);
	put_bundle(600000);
	put_result(DEVJOB_OK, 600000, "");
	ASSERT_STRING_EQ(run(), "PcccR");
	ASSERT_INT_EQ(next_offset, 600000);
	ASSERT_STRING_EQ(last.commit_sha, "head");
	ASSERT_STRING_EQ(last.bundle_sha256, "digest");
	ASSERT_STRING_EQ(run(), "PcccR");

	TEST_START("a new link: all of it again, from offset 0");
	fetch_back_restart(&work);
	ASSERT_STRING_EQ(run(), "PcccRPcccR");

	TEST_START("a chunk has 256 KiB, one byte more is two");
	reset(26);
	put_bundle(262144);
	put_result(DEVJOB_OK, 262144, "");
	ASSERT_STRING_EQ(run(), "cR");
	reset(26);
	put_bundle(262145);
	put_result(DEVJOB_OK, 262145, "");
	ASSERT_STRING_EQ(run(), "ccR");

	TEST_START("older hubs get what they know");
	reset(12);
	put_project("", 10);
	put_bundle(10);
	put_result(DEVJOB_OK, 10, "");
	ASSERT_STRING_EQ(run(), "cR");
	reset(3);
	put_bundle(10);
	put_result(DEVJOB_OK, 10, "");
	ASSERT_STRING_EQ(run(), "");
}

static void
test_failures(void)
{
	struct frame_error e = { .code = (char *)(uintptr_t)
	    "write_back_failed" };
	struct frame_env env = { 0 };

	TEST_START("the hub refuses a chunk: no more, and why");
	reset(26);
	put_bundle(600000);
	put_result(DEVJOB_OK, 600000, "");
	work.slot = 7;
	ASSERT_ERR(fetch_back_step(&work), CL_OK);
	e.message = (char *)(uintptr_t)"not about this one";
	strlcpy(env.id, "wb-8", sizeof(env.id));
	fetch_back_refuse(&fetch, &env, &e);
	strlcpy(env.id, "hb-7", sizeof(env.id));
	fetch_back_refuse(&fetch, &env, &e);
	e.message = (char *)(uintptr_t)"over the budget";
	strlcpy(env.id, chunk_id, sizeof(env.id));
	fetch_back_refuse(&fetch, &env, &e);
	e.message = (char *)(uintptr_t)"again";
	fetch_back_refuse(&fetch, &env, &e);
	ASSERT_STRING_EQ(run(), "cR");
	ASSERT_STRING_EQ(last_error, "over the budget");
	ASSERT_INT_EQ(last.bundle_bytes, 0);
	ASSERT_PTR_EQ(last.bundle_sha256, NULL);
	TEST_START("on the next link too");
	fetch_back_restart(&work);
	ASSERT_STRING_EQ(run(), "cRR");
	ASSERT_STRING_EQ(last_error, "over the budget");

	TEST_START("a file that is shorter than it was said to be");
	reset(26);
	put_bundle(300000);
	put_result(DEVJOB_OK, 300000, "");
	ASSERT_INT_EQ(ftruncate(work.back.bundle_fd, 262144), 0);
	ASSERT_STRING_EQ(run(), "cR");
	ASSERT_TRUE(strstr(last_error, "cannot be read") != NULL);
	ASSERT_INT_EQ(last.bundle_bytes, 0);

	TEST_START("failed and skipped returns have no bytes");
	reset(26);
	put_result(DEVJOB_FAILED, 0, "no git");
	ASSERT_STRING_EQ(run(), "R");
	ASSERT_STRING_EQ(last_error, "no git");
	ASSERT_PTR_EQ(last.commit_sha, NULL);
	reset(26);
	put_result(DEVJOB_SKIPPED, 0, "changed no files");
	ASSERT_STRING_EQ(run(), "R");
	ASSERT_STRING_EQ(last.skip_reason, "changed no files");
	ASSERT_PTR_EQ(last.mode, NULL);

	TEST_START("a project's result has 640 KiB");
	reset(26);
	put_project("", 655360);
	ASSERT_STRING_EQ(run(), "P");
	reset(26);
	put_project("none was left", 655361);
	ASSERT_STRING_EQ(run(), "p");
	ASSERT_STRING_EQ(project_text, "none was left");

	TEST_START("messages that come twice");
	reset(26);
	put_bundle(10);
	put_bundle(600000);
	ASSERT_U64_EQ(work.back.bundle_len, 10);
	put_result(DEVJOB_OK, 10, "");
	put_result(DEVJOB_FAILED, 0, "later");
	ASSERT_STRING_EQ(run(), "cR");
	ASSERT_STRING_EQ(last_error, "");
	reset(26);
}

UNIT_MAIN(test_order, test_failures)
