/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * net/hub/ask: asks to the monitor: limits, deadlines, owners that are gone
 * when their answer comes.
 */
#include "regress/unit/unit.h"

#include <fcntl.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/msg/msgcat.h"
#include "net/hub/ask.h"

static struct ask_table t;
static uint64_t sent_id, answered_owner;
static uint32_t sent_type;
static int nsent, nanswers, ntimeouts, send_result;

static int
fake_send(void *ctx, uint32_t type, uint64_t id, const void *v, int fd)
{
	(void)ctx;
	(void)v;
	if (fd != -1)
		close(fd);
	sent_type = type;
	sent_id = id;
	nsent++;
	return send_result;
}

static void
on_answer(void *ctx, uint64_t owner, union msg_any *v)
{
	ASSERT_PTR_EQ(ctx, &t);
	answered_owner = owner;
	if (v == NULL)
		ntimeouts++;
	else
		nanswers++;
}

static void
set_up(void)
{
	ask_clear(&t);
	ask_init(&t, &t, fake_send);
	nsent = nanswers = ntimeouts = 0;
	send_result = CL_OK;
}

static void
test_answers(void)
{
	struct ask_owner one, two;
	struct imsg m = { .fd = -1 };
	union msg_any v;

	TEST_START("an answer finds its owner by number, once");
	ask_init(&t, &t, fake_send);
	set_up();
	ask_init_owner(&one, 11);
	ask_init_owner(&two, 22);
	ASSERT_ERR(ask_start(&t, &one, 0x110, NULL, -1, on_answer, 0), CL_OK);
	m.id = sent_id;
	ASSERT_ERR(ask_start(&t, &two, 0x112, NULL, -1, on_answer, 0), CL_OK);
	m.type = 0x111;
	ASSERT_ERR(ask_answer(&t, &m, &v), CL_OK);
	ASSERT_U64_EQ(answered_owner, 11);
	ASSERT_ERR(ask_answer(&t, &m, &v), CL_NOTFOUND);
	ASSERT_INT_EQ(one.nasks, 0);

	TEST_START("an answer to another kind of request is refused");
	m.id = sent_id;
	m.type = 0x111;
	ASSERT_ERR(ask_answer(&t, &m, &v), CL_FORMAT);

	TEST_START("the answer for an owner that is gone finds nothing");
	ask_stop(&t, &two);
	m.type = 0x113;
	ASSERT_ERR(ask_answer(&t, &m, &v), CL_NOTFOUND);
	ASSERT_INT_EQ(nanswers, 1);
	ASSERT_SIZE_T_EQ(t.nasks, 0);
}

static void
test_limits(void)
{
	static struct ask_owner owners[MAX_ASKS_TOTAL / MAX_ASKS_PER_SESSION +
	    1];
	size_t i, j, n = sizeof(owners) / sizeof(owners[0]);
	int fd;

	TEST_START("one owner has at most MAX_ASKS_PER_SESSION");
	set_up();
	for (i = 0; i < n; i++)
		ask_init_owner(&owners[i], i + 1);
	for (j = 0; j < MAX_ASKS_PER_SESSION; j++)
		ASSERT_ERR(ask_start(&t, &owners[0], 2, NULL, -1, on_answer,
		    0), CL_OK);
	ASSERT_ERR(ask_start(&t, &owners[0], 2, NULL, -1, on_answer, 0),
	    CL_LIMIT);

	TEST_START("the table has at most MAX_ASKS_TOTAL; a descriptor of a "
	    "refused ask is closed");
	for (i = 1; i < n - 1; i++)
		for (j = 0; j < MAX_ASKS_PER_SESSION; j++)
			ASSERT_ERR(ask_start(&t, &owners[i], 2, NULL, -1,
			    on_answer, 0), CL_OK);
	ASSERT_SIZE_T_EQ(t.nasks, MAX_ASKS_TOTAL);
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	ASSERT_ERR(ask_start(&t, &owners[n - 1], 2, NULL, fd, on_answer, 0),
	    CL_LIMIT);
	ASSERT_INT_EQ(fcntl(fd, F_GETFD), -1);
	ASSERT_INT_EQ(nsent, MAX_ASKS_TOTAL);

	TEST_START("a channel that refuses leaves nothing behind");
	set_up();
	ask_init_owner(&owners[0], 1);
	send_result = CL_LIMIT;
	ASSERT_ERR(ask_start(&t, &owners[0], 2, NULL, -1, on_answer, 0),
	    CL_LIMIT);
	ASSERT_SIZE_T_EQ(t.nasks, 0);
	ASSERT_INT_EQ(owners[0].nasks, 0);
}

static void
test_deadline(void)
{
	struct ask_owner o;

	TEST_START("an ask ends at its deadline and not before");
	set_up();
	ask_init_owner(&o, 5);
	ASSERT_ERR(ask_start(&t, &o, 2, NULL, -1, on_answer, 1000), CL_OK);
	ask_on_time(&t, 1000 + ASK_TIMEOUT_MS - 1);
	ASSERT_INT_EQ(ntimeouts, 0);
	ask_on_time(&t, 1000 + ASK_TIMEOUT_MS);
	ASSERT_INT_EQ(ntimeouts, 1);
	ASSERT_U64_EQ(answered_owner, 5);
	ASSERT_SIZE_T_EQ(t.nasks, 0);
}

UNIT_MAIN(test_answers, test_limits, test_deadline)
