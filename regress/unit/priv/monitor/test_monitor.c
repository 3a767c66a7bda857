/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The monitor's message core: a handler for each row, a dead child for each
 * broken rule, a living monitor after all of it, and answers that wait for
 * the disk.
 */
#include <sys/resource.h>

#include "montest.h"

static int
is_ours(const struct msg_row *row)
{
	return row->dir == MSG_N2M || row->dir == MSG_K2M ||
	    row->dir == MSG_C2M || row->dir == MSG_W2M;
}

static size_t
slot_of(const struct msg_row *row)
{
	return row->dir == MSG_K2M ? 0 : row->dir == MSG_C2M ? 1 :
	    row->dir == MSG_W2M ? MT_FENCE : MT_NET1;
}

static void
test_table(void)
{
	const struct msg_row *rows;
	size_t i, n;

	TEST_START("each row for the monitor has a handler");
	rows = msgcat_get_rows(&n);
	for (i = 0; i < n; i++) {
		unit_note("%s", rows[i].name);
		ASSERT_INT_EQ(mon_has_handler(rows[i].type) != 0,
		    is_ours(&rows[i]));
	}
	ASSERT_FALSE(mon_has_handler(UINT32_MAX));
	ASSERT_FALSE(mon_has_handler(0));
}

static size_t
find_min(const struct msg_row *row)
{
	size_t min, max;

	msgcat_find_bounds(row, &min, &max);
	return min;
}

static size_t
find_max(const struct msg_row *row)
{
	size_t min, max;

	msgcat_find_bounds(row, &min, &max);
	return max;
}

/* Say one message with a body of len zero bytes; 1 when the child died. */
static int
dies(size_t slot, uint32_t type, size_t len, int with_fd)
{
	static uint8_t zeros[MSG_BODY_MAX + 64];
	struct child *c = &mt.children[slot];
	struct imsg m = { .type = type, .id = 1, .fd = -1 };
	int died;

	if (with_fd)
		ASSERT_INT_EQ(util_make_memfd("x", 1, &m.fd), CL_OK);
	buf_init_read(&m.body, zeros, len);
	mon_on_message(c, &m);
	imsg_free(&m);
	died = c->state == CHILD_DOWN;
	mon_end_turn(&mt);
	if (died)
		mt_refill(slot);
	memset(&c->chan.seen, 0, sizeof(c->chan.seen));
	return died;
}

static void
test_walk(void)
{
	const struct msg_row *rows, *row;
	size_t i, n, slot;

	mt_start();
	mt_add_fence();
	TEST_START("wrong direction, size, descriptor or state: the child "
	    "dies, the monitor lives");
	rows = msgcat_get_rows(&n);
	for (i = 0; i < n; i++) {
		row = &rows[i];
		unit_note("%s", row->name);
		slot = slot_of(row);
		if (!is_ours(row)) {
			ASSERT_TRUE(dies(MT_NET1, row->type, find_min(row),
			    row->fd));
			continue;
		}
		/* From a child that has no business with it. */
		ASSERT_TRUE(dies(slot == MT_NET1 ? 0 : MT_NET1, row->type,
		    find_min(row), row->fd));
		if (find_min(row) > 0)
			ASSERT_TRUE(dies(slot, row->type, find_min(row) - 1,
			    row->fd));
		ASSERT_TRUE(dies(slot, row->type, find_max(row) + 1, row->fd));
		ASSERT_TRUE(dies(slot, row->type, find_min(row), !row->fd));
		if (!(row->states & MS_SERVING))
			ASSERT_TRUE(dies(slot, row->type, find_min(row),
			    row->fd));
	}
	ASSERT_TRUE(dies(MT_NET1, 0xdead, 0, 0));

	TEST_START("a killed child is a killed process, its slot is down");
	kill(mt.children[MT_NET1].pid, 0);
	ASSERT_TRUE(mt.children[MT_NET1].state == MS_SERVING);
	{
		int status;
		pid_t pid = mt.children[MT_NET1].pid;

		mt_say(MT_NET1, MSG_NET_LISTEN, 0, NULL, -1);
		ASSERT_INT_EQ(waitpid(pid, &status, 0), pid);
		ASSERT_TRUE(WIFSIGNALED(status) &&
		    WTERMSIG(status) == SIGKILL);
		ASSERT_INT_EQ(mt.children[MT_NET1].state, CHILD_DOWN);
		mt.children[MT_NET1].pid = 0;
		mt_fill(MT_NET1);
	}
	mt_stop();
}

static void
test_fuzz(void)
{
	const struct msg_row *rows;
	uint8_t body[512];
	struct imsg m;
	size_t i, j, n, len, max, slot, k;
	unsigned int seed = 1;

	mt_start();
	mt_add_fence();
	mt_operator(1, ROLE_OPERATOR);
	TEST_START("random bodies end children, never the monitor");
	rows = msgcat_get_rows(&n);
	for (i = 0; i < n; i++) {
		if (!is_ours(&rows[i]) || rows[i].type == MSG_CTL_RELOAD)
			continue;
		slot = slot_of(&rows[i]);
		for (j = 0; j < 40; j++) {
			for (k = 0; k < sizeof(body); k++) {
				seed = seed * 1103515245u + 12345u;
				/* Mostly small numbers: they decode. */
				body[k] = (seed >> 16) % 4 ? 0 :
				    (uint8_t)(seed >> 20);
			}
			len = find_min(&rows[i]);
			max = find_max(&rows[i]);
			if (max > len)
				len += (seed >> 8) % (max - len + 1) %
				    (sizeof(body) - len);
			unit_note("%s %zu", rows[i].name, len);
			memset(&m, 0, sizeof(m));
			m.type = rows[i].type;
			m.id = rows[i].dir == MSG_C2M ? MT_ID(1, 9) : j;
			m.fd = -1;
			if (rows[i].fd)
				ASSERT_INT_EQ(util_make_memfd(body, len,
				    &m.fd), CL_OK);
			buf_init_read(&m.body, body, len);
			mon_on_message(&mt.children[slot], &m);
			imsg_free(&m);
			mon_end_turn(&mt);
			mt_drain(1);
			mt_drain(MT_NET1);
			memset(&mt.children[slot].chan.seen, 0,
			    sizeof(mt.children[slot].chan.seen));
			if (mt.children[slot].state != CHILD_DOWN)
				continue;
			mt_refill(slot);
			if (slot == 1)
				mt_operator(1, ROLE_OPERATOR);
		}
	}
	mt_stop();
}

static void
test_turn(void)
{
	struct imsg m;

	mt_start();
	TEST_START("nothing leaves before the end of the turn");
	MON_SEND(&mt.children[MT_NET1], NET_START, 5, NULL, -1);
	ASSERT_INT_EQ(mt_hear(MT_NET1, &m), 0);
	mon_end_turn(&mt);
	ASSERT_INT_EQ(mt_hear(MT_NET1, &m), MSG_NET_START);
	ASSERT_U64_EQ(m.id, 5);

	mt_stop();
}

/* Fill the queue of a child beyond its mark; it reads nothing. */
static void
fill_queue(struct child *c)
{
	int i;

	for (i = 0; i < 100000 && !c->chan.is_paused; i++) {
		MON_SEND(c, NET_START, 1, NULL, -1);
		if (i % 64 == 0)
			mon_end_turn(&mt);
	}
	mon_end_turn(&mt);
}

static void
test_flow(void)
{
	struct child *c;

	mt_start();
	c = &mt.children[MT_NET1];
	TEST_START("one turn holds no more than the mark: the child waits");
	while (c->held_len <= c->chan.mark) {
		ASSERT_FALSE(c->chan.is_paused);
		MON_SEND(c, NET_START, 1, NULL, -1);
	}
	ASSERT_TRUE(c->chan.is_paused);

	TEST_START("a child above its mark is not read, and not ended");
	mon_end_turn(&mt);
	fill_queue(c);
	ASSERT_TRUE(c->chan.is_paused);
	ASSERT_TRUE(c->chan.im.queued_len > c->chan.mark);
	ASSERT_INT_EQ(c->state, MS_SERVING);

	TEST_START("below half of it, it is read again");
	while (c->chan.is_paused) {
		ASSERT_TRUE(c->chan.im.queued_len > c->chan.mark / 2);
		mt_drain(MT_NET1);
		chan_flush(&c->chan);
	}
	ASSERT_TRUE(c->chan.im.queued_len <= c->chan.mark / 2);

	TEST_START("time in which we were late is not its fault");
	fill_queue(c);
	c->chan.moved_at = util_now_ms() - CHAN_STALL_MS + 500;
	child_on_second(c, 1000);
	ASSERT_INT_EQ(c->state, MS_SERVING);

	TEST_START("a child that takes nothing for so long is replaced");
	c->chan.moved_at = util_now_ms() - CHAN_STALL_MS - 1;
	child_on_second(c, 0);
	ASSERT_INT_EQ(c->state, CHILD_DOWN);
	mt_stop();
}

/* A full disk, as the file system would say it. */
static void
test_full(void)
{
	struct rlimit old, tiny;
	struct mt_device d, refused;
	struct imsg m;
	char token[128];
	uint64_t id = MT_ID(1, 1);

	mt_start();
	mt_operator(1, ROLE_OPERATOR);
	mt_connect(&d, MT_NET1, "edge", NULL);
	mt_mint("late", NULL, token);
	mt_drain(1);
	mt_drain(MT_NET1);
	ASSERT_INT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
	tiny = old;
	tiny.rlim_cur = 8192;
	signal(SIGXFSZ, SIG_IGN);
	ASSERT_INT_EQ(setrlimit(RLIMIT_FSIZE, &tiny), 0);

	TEST_START("full disk: a run is refused, nothing is sent");
	mt_run(id, "edge", 1);
	ASSERT_TRUE(strcmp(mt_refusal(id), "internal") == 0);
	while (mt_hear(MT_NET1, &m) != 0) {
		ASSERT_TRUE(m.type != MSG_START);
		imsg_free(&m);
	}
	ASSERT_SIZE_T_EQ(mt.handles.nhandles, 0);

	TEST_START("full disk: a redemption fails and burns nothing");
	ASSERT_INT_EQ(mt_auth(&refused, MT_NET1, token), AUTH_FAILED);
	ASSERT_SIZE_T_EQ(mt.agents.nagents, 1);

	TEST_START("full disk: a known agent still connects");
	{
		struct mt_device again = d;

		ASSERT_INT_EQ(mt_auth(&again, MT_NET1, d.credential),
		    AUTH_OK);
	}
	ASSERT_INT_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);

	TEST_START("afterwards all of it works");
	mt_drain(1);
	mt_run(MT_ID(1, 2), "edge", 1);
	mt_expect(1, MSG_ROW_EVENT, &m);
	{
		struct mt_device late;

		memset(&late, 0, sizeof(late));
		ASSERT_INT_EQ(mt_auth(&late, MT_NET1, token), AUTH_OK);
	}
	mt_stop();
}

UNIT_MAIN(test_table, test_walk, test_fuzz, test_turn, test_flow, test_full)
