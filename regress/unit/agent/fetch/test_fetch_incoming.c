/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * agent/fetch/fetch_incoming: a shipped branch, chunk by chunk: order, totals,
 * how many at once, age, and what its start is told.  The link and the
 * monitor are stand-ins.
 */
#include "regress/unit/unit.h"

#include <sys/mman.h>

#include "agent/fetch/fetch_incoming.c"

static struct fetch fetch;
static struct fetch_ask asks[16];
static size_t nasks;
static int paused, failed;
static uint32_t told_type;
static char told[FETCH_IN_FAILURE_MAX + 1];
static unsigned int ntold;

void
fetch_link_pause(struct fetch_link *l, int on)
{
	paused = on;
}

void
fetch_fail(struct fetch *f, const char *fmt, ...)
{
	failed = 1;
}

struct fetch_ask *
fetch_ask_put(struct fetch *f, uint32_t type, const void *v, int fd,
    int64_t timeout_ms)
{
	struct fetch_ask *a = &asks[nasks];

	memset(a, 0, sizeof(*a));
	a->type = type;
	a->id = ++nasks;
	return a;
}

struct fetch_ask *
fetch_ask_find(struct fetch *f, uint64_t id, uint32_t type)
{
	return id >= 1 && id <= nasks && asks[id - 1].id == id &&
	    asks[id - 1].type == type ? &asks[id - 1] : NULL;
}

void
fetch_ask_set_frame(struct fetch *f, struct fetch_ask *a,
    const struct frame_env *env, fetch_ask_fn *on_timeout)
{
	memcpy(a->handle, env->handle, sizeof(a->handle));
	a->on_timeout = on_timeout;
}

void
fetch_ask_del(struct fetch *f, struct fetch_ask *a)
{
	a->id = 0;
}

void
fetch_tell(struct fetch *f, uint32_t type, uint64_t id, const void *v, int fd)
{
	const struct msg_branch_end *end = v;

	(void)snprintf(told, sizeof(told), "%s", type == MSG_BRANCH_END ?
	    end->failure : "");
	told_type = type;
	ntold++;
}

static void
reset(void)
{
	fetch.link = (struct fetch_link *)&fetch;
	TAILQ_INIT(&fetch.incoming);
	fetch.nincoming = nasks = 0;
	paused = failed = 0;
	ntold = 0;
	told_type = 0;
}

/* A chunk of `len' bytes, all of them the low byte of its offset. */
static void
chunk(const char *handle, int64_t offset, size_t len, int64_t total)
{
	static uint8_t data[4096];
	struct frame_branch_chunk c = { offset, data, len, total };
	struct frame_env env;

	memset(&env, 0, sizeof(env));
	(void)snprintf(env.handle, sizeof(env.handle), "%s", handle);
	memset(data, (int)(offset & 0xff), sizeof(data));
	fetch_in_on_chunk(&fetch, &env, &c);
}

/* The monitor answers the ask of this number; its file, or -1. */
static int
opened(uint64_t id, int ok)
{
	int fd = ok ? memfd_create("branch", MFD_CLOEXEC) : -1;
	int copy = ok ? dup(fd) : -1;
	struct imsg m = { .id = id, .fd = fd };
	union msg_any v = { .BRANCH_OPEN_ANS = { ok } };

	ASSERT_ERR(fetch_in_on_opened(&fetch, &m, &v), CL_OK);
	imsg_free(&m);
	return copy;
}

static void
is_told(const char *handle, const char *words)
{
	fetch_in_end(&fetch, handle);
	ASSERT_INT_EQ(told_type, MSG_BRANCH_END);
	if (*words == '\0')
		ASSERT_STRING_EQ(told, "");
	unit_note("%s", told);
	ASSERT_TRUE(strstr(told, words) != NULL);
	ASSERT_SIZE_T_EQ(fetch.nincoming, 0);
}

static void
test_order(void)
{
	uint8_t back[30];
	int fd;

	reset();
	TEST_START("chunks in order make the file");
	chunk("h", 0, 10, 30);
	ASSERT_INT_EQ(paused, 1);
	fd = opened(1, 1);
	ASSERT_INT_EQ(paused, 0);
	chunk("h", 10, 10, 30);
	chunk("h", 20, 10, 30);
	ASSERT_INT_EQ(pread(fd, back, 30, 0), 30);
	ASSERT_INT_EQ(back[0] + back[9], 0);
	ASSERT_INT_EQ(back[10] + back[29], 30);
	is_told("h", "");
	close(fd);

	TEST_START("a hole, an overlap, another total; the first reason stays");
	chunk("h", 0, 10, 30);
	close(opened(2, 1));
	chunk("h", 11, 10, 30);
	chunk("h", 10, 10, 31);
	is_told("h", "a chunk at 11 came after 10 bytes");
	chunk("h", 0, 10, 30);
	close(opened(3, 1));
	chunk("h", 9, 10, 30);
	is_told("h", "a chunk at 9 came after 10 bytes");
	chunk("h", 0, 10, 30);
	close(opened(4, 1));
	chunk("h", 10, 10, 31);
	is_told("h", "its total was 30, and then 31");
	chunk("h", 5, 10, 30);
	close(opened(5, 1));
	is_told("h", "its first chunk is at 5");

	TEST_START("one byte short, and a chunk that does not decode");
	chunk("h", 0, 29, 30);
	close(opened(6, 1));
	is_told("h", "29 of its 30 bytes came");
	chunk("h", 0, 10, 30);
	close(opened(7, 1));
	fetch_in_fail_handle(&fetch, "h", "too long");
	is_told("h", "a chunk: too long");
	fetch_in_fail_handle(&fetch, "other", "nobody");

	TEST_START("offset 0 again begins anew");
	chunk("h", 0, 10, 30);
	close(opened(8, 1));
	chunk("h", 11, 1, 30);
	chunk("h", 0, 20, 20);
	fd = opened(9, 1);
	is_told("h", "");
	close(fd);
}

static void
test_bounds(void)
{
	char name[8];
	unsigned int i;

	reset();
	TEST_START("eight transfers at once, not nine");
	for (i = 0; i < 9; i++) {
		(void)snprintf(name, sizeof(name), "h%u", i);
		chunk(name, 0, 1, 2);
		if (i < 8)
			close(opened(i + 1, 1));
	}
	ASSERT_SIZE_T_EQ(fetch.nincoming, 8);
	ASSERT_SIZE_T_EQ(nasks, 8);
	fetch_in_end(&fetch, "h8");
	ASSERT_INT_EQ(ntold, 0);

	TEST_START("one nobody claims for 15 minutes makes room");
	fetch_in_find(&fetch, "h3")->used_at -= FETCH_IN_IDLE_MS - 1000;
	chunk("h1", 1, 1, 2);
	ASSERT_SIZE_T_EQ(fetch.nincoming, 8);
	fetch_in_find(&fetch, "h3")->used_at -= 2000;
	chunk("h8", 0, 1, 2);
	ASSERT_INT_EQ(told_type, MSG_BRANCH_DROP);
	ASSERT_SIZE_T_EQ(fetch.nincoming, 8);
	ASSERT_PTR_EQ(fetch_in_find(&fetch, "h3"), NULL);
	close(opened(9, 1));

	TEST_START("the connection is gone, all of them are");
	ntold = 0;
	fetch_in_drop_all(&fetch);
	ASSERT_SIZE_T_EQ(fetch.nincoming, 0);
	ASSERT_INT_EQ(ntold, 8);
}

static void
test_file(void)
{
	reset();
	TEST_START("a device that cannot keep it says so at the start");
	chunk("h", 0, 10, 30);
	(void)opened(1, 0);
	ASSERT_INT_EQ(paused, 0);
	chunk("h", 10, 10, 30);
	is_told("h", "the device cannot keep it");

	TEST_START("and does not keep its place for ever");
	chunk("h", 0, 10, 30);
	(void)opened(2, 0);
	fetch_in_find(&fetch, "h")->used_at -= FETCH_IN_IDLE_MS;
	chunk("g", 0, 10, 30);
	ASSERT_PTR_EQ(fetch_in_find(&fetch, "h"), NULL);

	TEST_START("no answer: dropped, and frames are read again");
	ASSERT_INT_EQ(paused, 1);
	asks[2].on_timeout(&fetch, &asks[2]);
	ASSERT_INT_EQ(paused, 0);
	ASSERT_SIZE_T_EQ(fetch.nincoming, 0);
	close(opened(3, 1));
	ASSERT_SIZE_T_EQ(fetch.nincoming, 0);
	ASSERT_INT_EQ(failed, 0);
}

UNIT_MAIN(test_order, test_bounds, test_file)
