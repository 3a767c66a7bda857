/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * common/msg/chan: what reaches a handler and what ends a peer, how much is
 * queued for one that asks and does not read, and who waits for whom.  Here
 * we are a cloopd-fence, and the peer is its monitor.
 */
#include "regress/unit/msgtest.h"

#include <sys/socket.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <event2/event.h>

#include "common/base/limits.h"

#define REASON_MAX 500		/* of a FENCE_ADD_ANS */
#define ANS_LEN(reason_len) (IMSG_HEADER_LEN + 1 + 4 + (reason_len))

static struct chan c, peer;
static int nmsgs, nends, nwants, result, took_fd, close_in_handler;
static size_t nsources;
static uint32_t last_type;
static uint64_t last_id;
static char why[128];
static int64_t *kept;

static int
on_msg(void *arg, struct imsg *m, union msg_any *v)
{
	ASSERT_PTR_EQ(arg, &c);
	nmsgs++;
	last_type = m->type;
	last_id = m->id;
	took_fd = -1;
	if (m->type == MSG_FENCE_ADD)
		nsources = v->FENCE_ADD.nsources;
	if (m->type == MSG_FENCE_OPEN && v->FENCE_OPEN.nports == 2) {
		kept = v->FENCE_OPEN.ports;	/* taken: ours to free */
		v->FENCE_OPEN.ports = NULL;
	}
	if (m->type == MSG_SHIMD_START && m->id == 1)
		took_fd = imsg_take_fd(m);
	else if (m->fd != -1)
		took_fd = m->fd;
	if (close_in_handler)
		chan_close(&c);
	return result;
}

static void
on_end(void *arg, const char *reason)
{
	ASSERT_PTR_EQ(arg, &c);
	ASSERT_FALSE(c.is_open);
	nends++;
	snprintf(why, sizeof(why), "%s", reason == NULL ? "(peer)" : reason);
}

static void
on_want(struct chan *which)
{
	ASSERT_PTR_EQ(which, &c);
	nwants++;
}

static void
open_as(enum msg_dir in, enum msg_dir out, size_t max_queued)
{
	int fd = msgtest_pair(&peer, out, in);

	nmsgs = nends = nwants = result = close_in_handler = 0;
	why[0] = '\0';
	ASSERT_ERR(chan_init(&c, fd, in, out, max_queued, on_msg, on_end, &c),
	    CL_OK);
}

static void
begin(void)
{
	open_as(MSG_M2W, MSG_W2M, CHAN_QUEUE_MAX);
}

static void
end(void)
{
	chan_close(&c);
	chan_close(&peer);
}

/* An order with n sources. */
static void
order(uint64_t id, size_t n)
{
	static struct msg_fence_source sources[MAX_FENCE_BATCH];
	struct msg_fence_add add = { sources, n };

	MSGTEST_SEND(&peer, FENCE_ADD, id, &add, -1);
}

/* An answer of ours with a reason of so many bytes. */
static int
reply(size_t len)
{
	char reason[REASON_MAX + 2];
	struct msg_fence_add_ans ans = { 1, reason };

	memset(reason, 'x', sizeof(reason));
	reason[len] = '\0';
	return CHAN_SEND(&c, FENCE_ADD_ANS, 0, &ans, -1);
}

/* Answers until the socket takes no more and `len` bytes wait. */
static void
queue(size_t len)
{
	size_t left;

	while (c.im.queued_len == 0)
		ASSERT_ERR(reply(REASON_MAX), CL_OK);
	while ((left = len - c.im.queued_len) >= 2 * ANS_LEN(REASON_MAX))
		ASSERT_ERR(reply(REASON_MAX), CL_OK);
	while ((left = len - c.im.queued_len) > ANS_LEN(REASON_MAX))
		ASSERT_ERR(reply(left / 2 - ANS_LEN(0)), CL_OK);
	ASSERT_ERR(reply(left - ANS_LEN(0)), CL_OK);
	ASSERT_SIZE_T_EQ(c.im.queued_len, len);
}

/* The peer reads n messages. */
static void
drain(size_t n)
{
	union msg_any v;
	struct imsg m;

	while (n-- > 0) {
		ASSERT_INT_EQ(msgtest_hear(&peer, &m, &v), MSG_FENCE_ADD_ANS);
		msgtest_free(&m, &v);
	}
}

/* All that comes, as we flush. */
static size_t
drain_all(void)
{
	union msg_any v;
	struct imsg m;
	size_t n = 0;

	for (;;) {
		chan_flush(&c);
		if (msgtest_hear(&peer, &m, &v) == 0)
			return n;
		msgtest_free(&m, &v);
		n++;
	}
}

static int
is_open_fd(int fd)
{
	return fcntl(fd, F_GETFD) != -1;
}

static int
some_fd(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	ASSERT_INT_GE(fd, 0);
	return fd;
}

static void
test_handover(void)
{
	int64_t ports[2] = { 7443, 65535 };
	struct msg_fence_open opening = { ports, 2 };

	begin();
	TEST_START("a message is decoded and handed over, with its id");
	MSGTEST_SEND(&peer, FENCE_OPEN, UINT64_MAX, &opening, -1);
	chan_turn(&c);
	ASSERT_INT_EQ(nmsgs, 1);
	ASSERT_INT_EQ(last_type, MSG_FENCE_OPEN);
	ASSERT_U64_EQ(last_id, UINT64_MAX);

	TEST_START("what a handler took of it stays");
	ASSERT_PTR_NE(kept, NULL);
	ASSERT_INT_EQ(kept[1], 65535);
	free(kept);

	TEST_START("as many as there are, and no end");
	c.state = MS_SERVING;
	order(1, 1);
	order(2, MAX_FENCE_BATCH);
	chan_turn(&c);
	ASSERT_INT_EQ(nmsgs, 3);
	ASSERT_U64_EQ(last_id, 2);
	ASSERT_SIZE_T_EQ(nsources, MAX_FENCE_BATCH);
	chan_turn(&c);
	ASSERT_INT_EQ(nmsgs, 3);
	ASSERT_INT_EQ(nends, 0);

	TEST_START("the end of the peer, after what it said");
	order(3, 0);
	chan_close(&peer);
	chan_turn(&c);
	ASSERT_INT_EQ(nmsgs, 4);
	ASSERT_INT_EQ(nends, 1);
	ASSERT_STRING_EQ(why, "(peer)");
	chan_turn(&c);
	ASSERT_INT_EQ(nends, 1);
	end();

	TEST_START("to send to a peer that is gone is no error: it is read");
	begin();
	c.state = MS_SERVING;
	order(4, 0);
	chan_close(&peer);
	ASSERT_ERR(reply(0), CL_OK);
	ASSERT_TRUE(c.is_open);
	chan_turn(&c);
	ASSERT_INT_EQ(nmsgs, 1);
	ASSERT_STRING_EQ(why, "(peer)");
	end();
}

static void
test_turn(void)
{
	int i;

	TEST_START("a turn is bounded, whatever waits");
	begin();
	c.state = MS_SERVING;
	for (i = 0; i < CHAN_TURN + 1; i++)
		order((uint64_t)i, 0);
	chan_turn(&c);
	ASSERT_INT_EQ(nmsgs, CHAN_TURN);
	chan_turn(&c);
	ASSERT_INT_EQ(nmsgs, CHAN_TURN + 1);
	end();

	TEST_START("a handler that closes it hears of no more, nor of an end");
	begin();
	c.state = MS_SERVING;
	close_in_handler = 1;
	order(1, 0);
	order(2, 0);
	chan_turn(&c);
	ASSERT_INT_EQ(nmsgs, 1);
	ASSERT_INT_EQ(nends, 0);
	chan_turn(&c);
	chan_flush(&c);
	ASSERT_INT_EQ(nmsgs, 1);
	end();
}

/* These bytes as a message, in this state; what it ends with. */
static const char *
reason(unsigned int state, uint32_t type, const void *p, size_t len, int fd)
{
	open_as(MSG_M2D, MSG_D2M, 8);
	c.state = state;
	msgtest_send_bytes(&peer, type, 1, p, len, fd);
	/* What comes after is not read. */
	msgtest_send_bytes(&peer, MSG_SHIMD_SWEEP, 2, NULL, 0, -1);
	chan_turn(&c);
	ASSERT_INT_EQ(nends, 1);
	ASSERT_INT_EQ(nmsgs, result != 0);
	end();
	return why;
}

static void
test_violations(void)
{
	static const uint8_t zero[64];
	struct msg_version hello = { 1 };
	int i;

	TEST_START("a violation ends it, with what was wrong");
	ASSERT_STRING_EQ(reason(MS_SERVING, 0x7ff, NULL, 0, -1),
	    "unknown type");
	ASSERT_STRING_EQ(reason(MS_SERVING, UINT32_MAX, NULL, 0, -1),
	    "unknown type");
	ASSERT_STRING_EQ(reason(MS_SERVING, MSG_SHIMD_START_ANS, zero, 16,
	    -1), "wrong direction");
	ASSERT_STRING_EQ(reason(MS_STARTING, MSG_SHIMD_SWEEP, NULL, 0, -1),
	    "not in this state");
	ASSERT_STRING_EQ(reason(MS_STARTING, MSG_SHIMD_HELLO, zero, 7,
	    some_fd()), "too short");
	ASSERT_STRING_EQ(reason(MS_STARTING, MSG_SHIMD_HELLO, zero, 9,
	    some_fd()), "too long");
	ASSERT_STRING_EQ(reason(MS_STARTING, MSG_SHIMD_HELLO, zero, 8, -1),
	    "descriptor missing");
	ASSERT_STRING_EQ(reason(MS_SERVING, MSG_SHIMD_SWEEP, NULL, 0,
	    some_fd()), "unexpected descriptor");
	ASSERT_STRING_EQ(reason(MS_STARTING, MSG_SHIMD_HELLO,
	    "\0\0\0\1\0\0\0\0", 8, some_fd()), "malformed body");

	TEST_START("bytes that are no message");
	begin();
	ASSERT_INT_EQ(send(peer.im.fd, zero, 15, MSG_NOSIGNAL), 15);
	chan_turn(&c);
	ASSERT_STRING_EQ(why, "malformed message");
	end();

	TEST_START("the second of what may come once");
	open_as(MSG_M2D, MSG_D2M, 8);
	for (i = 0; i < 2; i++)
		MSGTEST_SEND(&peer, SHIMD_HELLO, 0, &hello, some_fd());
	chan_turn(&c);
	ASSERT_INT_EQ(nmsgs, 1);
	ASSERT_STRING_EQ(why, "sent twice");
	end();

	TEST_START("what a handler refuses, by its name");
	begin();
	c.state = MS_SERVING;
	result = CL_FORMAT;
	order(1, 0);
	order(2, 0);
	chan_turn(&c);
	ASSERT_INT_EQ(nmsgs, 1);
	ASSERT_INT_EQ(nends, 1);
	ASSERT_STRING_EQ(why, "FENCE_ADD");
	result = 0;
	end();
}

static void
test_descriptors(void)
{
	struct imsg m;
	union msg_any v;
	const char *reason_text;
	int fd;

	open_as(MSG_M2D, MSG_D2M, 8);
	c.state = MS_SERVING;
	TEST_START("a descriptor that a handler took is its own");
	MSGTEST_SEND(&peer, SHIMD_START, 1, NULL, some_fd());
	chan_turn(&c);
	ASSERT_TRUE(is_open_fd(took_fd));
	close(took_fd);

	TEST_START("one that nobody took is closed");
	MSGTEST_SEND(&peer, SHIMD_START, 2, NULL, some_fd());
	chan_turn(&c);
	ASSERT_INT_EQ(nmsgs, 2);
	ASSERT_INT_GE(took_fd, 0);
	ASSERT_FALSE(is_open_fd(took_fd));

	TEST_START("so is that of a refused message");
	fd = some_fd();
	close(fd);	/* the next one to be had */
	msgtest_send_bytes(&peer, MSG_SHIMD_SWEEP, 0, NULL, 0, some_fd());
	ASSERT_ERR(chan_read_one(&c, &m, &v, &reason_text), CL_FORMAT);
	ASSERT_STRING_EQ(reason_text, "unexpected descriptor");
	ASSERT_INT_EQ(m.fd, -1);
	ASSERT_FALSE(is_open_fd(fd));
	end();
}

static void
test_sender(void)
{
	struct msg_version ready = { MSGCAT_VERSION };
	struct msg_shimd_start_ans lies = { 0, -1 };
	union msg_any v;
	struct imsg m;
	int fd;

	open_as(MSG_M2D, MSG_D2M, 4);
	TEST_START("what the peer would refuse is not sent");
	fd = some_fd();
	ASSERT_ERR(CHAN_SEND(&c, SHIMD_HELLO, 0, &ready, fd), CL_INTERNAL);
	ASSERT_FALSE(is_open_fd(fd));
	ASSERT_ERR(chan_send(&c, 0x7ff, 0, NULL, -1), CL_INTERNAL);
	fd = some_fd();
	ASSERT_ERR(CHAN_SEND(&c, SHIMD_HELLO_ANS, 0, &ready, fd),
	    CL_INTERNAL);
	ASSERT_FALSE(is_open_fd(fd));
	ASSERT_ERR(CHAN_SEND(&peer, SHIMD_HELLO, 0, &ready, -1),
	    CL_INTERNAL);
	ASSERT_ERR(CHAN_SEND(&c, SHIMD_START_ANS, 0, &lies, -1), CL_FORMAT);
	ASSERT_FALSE(chan_has_output(&c));
	ASSERT_INT_EQ(msgtest_hear(&peer, &m, &v), 0);

	TEST_START("a row without members has no body: NULL");
	c.state = MS_SERVING;
	MSGTEST_SEND(&peer, SHIMD_SWEEP, 5, NULL, -1);
	chan_turn(&c);
	ASSERT_INT_EQ(last_type, MSG_SHIMD_SWEEP);
	ASSERT_U64_EQ(last_id, 5);

	TEST_START("bytes encoded before, and a memfd with its length");
	ASSERT_ERR(CHAN_SEND(&c, SHIMD_HELLO_ANS, 8, &ready, -1), CL_OK);
	msgtest_expect(&peer, MSG_SHIMD_HELLO_ANS, &m, &v);
	ASSERT_U64_EQ(m.id, 8);
	ASSERT_U64_EQ(v.SHIMD_HELLO_ANS.version, MSGCAT_VERSION);
	msgtest_free(&m, &v);
	end();
	open_as(MSG_J2M, MSG_M2J, 4);
	ASSERT_ERR(chan_send_memfd(&c, MSG_JOB_PLAN, 0, "plan", 4), CL_OK);
	msgtest_expect(&peer, MSG_JOB_PLAN, &m, &v);
	ASSERT_U64_EQ(v.JOB_PLAN.len, 4);
	ASSERT_INT_GE(m.fd, 0);
	msgtest_free(&m, &v);
	end();

	TEST_START("nothing is sent on a closed one, and nothing leaks");
	fd = some_fd();
	ASSERT_ERR(CHAN_SEND(&c, JOB_FILE, 0, NULL, fd), CL_STATE);
	ASSERT_FALSE(is_open_fd(fd));
	ASSERT_FALSE(chan_has_output(&c));
	ASSERT_ERR(chan_read_one(&c, &m, &v, &(const char *){ NULL }),
	    CL_EOF);
	chan_close(&c);

	TEST_START("NULL is no body for a row with members");
	open_as(MSG_M2D, MSG_D2M, 4);
	ASSERT_ERR(CHAN_SEND(&c, SHIMD_HELLO_ANS, 0, NULL, -1), CL_INTERNAL);
	end();
}

static void
test_queue(void)
{
	int i, fd;

	TEST_START("as many messages as the queue takes, and no more");
	open_as(MSG_J2M, MSG_M2J, 4);
	while (!chan_has_output(&c))
		ASSERT_ERR(CHAN_SEND(&c, JOB_GO, 0, NULL, -1), CL_OK);
	for (i = 1; i < 4; i++)
		ASSERT_ERR(CHAN_SEND(&c, JOB_FILE, 0, NULL, some_fd()),
		    CL_OK);
	ASSERT_SIZE_T_EQ(c.im.nqueued, 4);
	ASSERT_SIZE_T_EQ(c.im.queued_len, 4 * IMSG_HEADER_LEN);
	fd = some_fd();
	ASSERT_ERR(CHAN_SEND(&c, JOB_FILE, 0, NULL, fd), CL_LIMIT);
	ASSERT_FALSE(is_open_fd(fd));
	ASSERT_SIZE_T_EQ(c.im.nqueued, 4);
	ASSERT_TRUE(c.is_open);
	ASSERT_INT_EQ(nends, 0);
	end();
	ASSERT_SIZE_T_EQ(c.im.nqueued, 0);
}

static void
test_mark(void)
{
	begin();
	c.state = MS_SERVING;
	c.on_want = on_want;
	TEST_START("at the mark it is read, above it is not");
	ASSERT_SIZE_T_EQ(c.mark, CHAN_MARK_LEN);
	queue(CHAN_MARK_LEN);
	ASSERT_FALSE(c.is_paused);
	order(1, 0);
	chan_turn(&c);
	ASSERT_INT_EQ(nmsgs, 1);
	nwants = 0;
	ASSERT_ERR(reply(0), CL_OK);
	ASSERT_TRUE(c.is_paused);
	ASSERT_INT_GT(nwants, 0);
	order(2, 0);
	chan_turn(&c);
	ASSERT_INT_EQ(nmsgs, 1);
	ASSERT_INT_EQ(nends, 0);
	end();

	TEST_START("one byte more is above it");
	begin();
	queue(CHAN_MARK_LEN + 1);
	ASSERT_TRUE(c.is_paused);

	TEST_START("below half of it reading goes on, with what waited");
	c.state = MS_SERVING;
	order(3, 0);
	while (c.is_paused) {
		ASSERT_INT_GT(c.im.queued_len, CHAN_MARK_LEN / 2);
		drain(1);
		chan_flush(&c);
	}
	ASSERT_INT_LE(c.im.queued_len, CHAN_MARK_LEN / 2);
	chan_turn(&c);
	ASSERT_INT_EQ(nmsgs, 1);
	ASSERT_U64_EQ(last_id, 3);
	(void)drain_all();
	ASSERT_FALSE(c.is_paused);
	ASSERT_FALSE(chan_has_output(&c));
	end();

	TEST_START("half of it exactly is read again, a byte more is not");
	begin();
	c.mark = 4001;		/* the half is 2000 */
	queue(4002);
	ASSERT_TRUE(c.is_paused);
	c.mark = 2 * 4002 - 1;
	chan_flush(&c);
	ASSERT_SIZE_T_EQ(c.im.queued_len, 4002);
	ASSERT_TRUE(c.is_paused);
	c.mark = 2 * 4002;
	chan_flush(&c);
	ASSERT_FALSE(c.is_paused);
	end();
}

static void
test_broken(void)
{
	begin();
	c.state = MS_SERVING;
	TEST_START("a peer that left while it was not read: its end is seen, "
	    "and nobody waits to write");
	queue(CHAN_MARK_LEN + 1);
	ASSERT_TRUE(c.is_paused);
	chan_close(&peer);
	ASSERT_TRUE(chan_has_output(&c));
	chan_flush(&c);
	ASSERT_FALSE(c.is_paused);
	ASSERT_FALSE(chan_has_output(&c));
	chan_turn(&c);
	ASSERT_INT_EQ(nends, 1);
	ASSERT_FALSE(c.is_open);
	end();
}

/* Handed on as it came. */
static int
on_raw(void *arg, struct imsg *m, union msg_any *v)
{
	ASSERT_PTR_EQ(v, NULL);
	nmsgs++;
	(void)arg;
	return chan_send_buf(&c, MSG_FENCE_ADD_ANS, m->id, &m->body, -1);
}

static void
test_raw(void)
{
	static const uint8_t body[] = { 2, 0, 0, 0, 0 };

	begin();
	c.state = MS_SERVING;
	c.is_raw = 1;
	c.on_msg = on_raw;
	TEST_START("a body that is forwarded is not decoded, but fits its row");
	msgtest_send_bytes(&peer, MSG_FENCE_ADD, 1, body, sizeof(body), -1);
	chan_turn(&c);
	ASSERT_INT_EQ(nmsgs, 1);
	ASSERT_INT_EQ(nends, 0);
	msgtest_send_bytes(&peer, MSG_FENCE_ADD, 2, body, 1, -1);
	chan_turn(&c);
	ASSERT_INT_EQ(nmsgs, 1);
	ASSERT_STRING_EQ(why, "too short");
	end();
}

static void
test_hold(void)
{
	begin();
	c.state = MS_SERVING;
	TEST_START("its owner holds it, and lets it go on");
	order(1, 0);
	chan_hold(&c);
	chan_turn(&c);
	chan_flush(&c);
	chan_turn(&c);
	ASSERT_INT_EQ(nmsgs, 0);
	chan_go_on(&c);
	chan_turn(&c);
	ASSERT_INT_EQ(nmsgs, 1);

	TEST_START("what is sent while it is held leaves");
	chan_hold(&c);
	ASSERT_ERR(reply(0), CL_OK);
	drain(1);
	ASSERT_TRUE(c.is_paused);

	TEST_START("neither hold nor mark ends the other");
	order(2, 0);
	queue(CHAN_MARK_LEN + 1);
	chan_go_on(&c);
	ASSERT_TRUE(c.is_paused);
	chan_hold(&c);
	(void)drain_all();
	chan_turn(&c);
	ASSERT_INT_EQ(nmsgs, 1);
	chan_go_on(&c);
	chan_turn(&c);
	ASSERT_INT_EQ(nmsgs, 2);
	end();
}

static void
test_stall(void)
{
	int64_t now = util_now_ms();

	begin();
	TEST_START("who has nothing to read does not stall");
	ASSERT_FALSE(chan_check_stall(&c, now, 0));
	ASSERT_FALSE(chan_check_stall(&c, now + 10 * CHAN_STALL_MS, 0));

	TEST_START("CHAN_STALL_MS without progress, not a millisecond less");
	queue(1000);
	ASSERT_INT_GE(c.moved_at, now);
	ASSERT_INT_LE(c.moved_at, util_now_ms());
	now = c.moved_at;
	ASSERT_FALSE(chan_check_stall(&c, now + CHAN_STALL_MS - 1, 0));
	ASSERT_TRUE(chan_check_stall(&c, now + CHAN_STALL_MS, 0));

	TEST_START("the time in which we were late does not count");
	ASSERT_FALSE(chan_check_stall(&c, now + CHAN_STALL_MS, 1));
	ASSERT_FALSE(chan_check_stall(&c, now + CHAN_STALL_MS, 4000));
	ASSERT_FALSE(chan_check_stall(&c, now + CHAN_STALL_MS + 4000, 0));
	ASSERT_TRUE(chan_check_stall(&c, now + CHAN_STALL_MS + 4001, 0));

	TEST_START("what is queued besides is no progress");
	c.moved_at = now;
	ASSERT_ERR(reply(0), CL_OK);
	ASSERT_TRUE(chan_check_stall(&c, now + CHAN_STALL_MS, 0));

	TEST_START("one message that left is");
	c.moved_at = 0;
	drain(4);
	while (c.moved_at == 0) {
		drain(1);
		chan_flush(&c);
	}
	ASSERT_TRUE(chan_has_output(&c) || c.im.nqueued == 0);
	ASSERT_FALSE(chan_check_stall(&c, now + CHAN_STALL_MS - 1, 0));

	TEST_START("after a silence the time begins with the next message");
	(void)drain_all();
	c.moved_at = 0;
	queue(1000);
	ASSERT_INT_GE(c.moved_at, now);
	chan_close(&c);
	ASSERT_FALSE(chan_check_stall(&c, now + 10 * CHAN_STALL_MS, 0));
	end();
}

static void
test_wait(void)
{
	struct msg_fence_open opening = { NULL, 0 };
	struct msg_fence_add_ans last = { 1, "" };
	struct msg_fence_add add = { NULL, 0 };
	const char *reason_text;
	union msg_any v;
	struct imsg m;
	int64_t began;
	pid_t pid;
	int status;

	begin();
	TEST_START("to wait has an end");
	began = util_now_ms();
	ASSERT_ERR(chan_wait(&c, began + 60, &m, &v, &reason_text),
	    CL_TIMEOUT);
	ASSERT_INT_GE(util_now_ms() - began, 60);
	ASSERT_INT_LT(util_now_ms() - began, 5000);
	ASSERT_ERR(chan_wait(&c, began, &m, &v, &reason_text), CL_TIMEOUT);

	TEST_START("what is there is had, however late it is");
	MSGTEST_SEND(&peer, FENCE_OPEN, 1, &opening, -1);
	ASSERT_ERR(chan_wait(&c, 0, &m, &v, &reason_text), CL_OK);
	ASSERT_INT_EQ(m.type, MSG_FENCE_OPEN);
	msgtest_free(&m, &v);

	TEST_START("meanwhile what waits is sent");
	c.state = MS_SERVING;
	queue(100000);
	ASSERT_ERR(CHAN_SEND(&c, FENCE_ADD_ANS, 77, &last, -1), CL_OK);
	ASSERT_SIZE_T_EQ(c.im.queued_len, 100000 + ANS_LEN(0));
	fflush(stdout);
	if ((pid = fork()) == 0) {
		/* The order comes once all has been read. */
		alarm(20);
		chan_close(&c);
		do {
			if (msgtest_read(&peer, &m, &v) != CL_OK)
				_exit(1);
			msgtest_free(&m, &v);
		} while (m.id != 77);
		_exit(CHAN_SEND(&peer, FENCE_ADD, 9, &add, -1) != CL_OK);
	}
	ASSERT_ERR(chan_wait(&c, util_now_ms() + 15000, &m, &v, &reason_text),
	    CL_OK);
	ASSERT_U64_EQ(m.id, 9);
	ASSERT_FALSE(chan_has_output(&c));
	msgtest_free(&m, &v);
	ASSERT_INT_EQ(waitpid(pid, &status, 0), pid);
	ASSERT_INT_EQ(status, 0);

	TEST_START("a violation says what was wrong");
	msgtest_send_bytes(&peer, 0x7ff, 0, NULL, 0, -1);
	ASSERT_ERR(chan_wait(&c, util_now_ms() + 5000, &m, &v, &reason_text),
	    CL_FORMAT);
	ASSERT_STRING_EQ(reason_text, "unknown type");

	TEST_START("the end of the peer is no violation");
	chan_close(&peer);
	ASSERT_ERR(chan_wait(&c, util_now_ms() + 5000, &m, &v, &reason_text),
	    CL_EOF);
	ASSERT_PTR_EQ(reason_text, NULL);
	end();
}

static void
loop(struct event_base *base, int n)
{
	while (n-- > 0)
		(void)event_base_loop(base, EVLOOP_NONBLOCK);
}

static void
test_watch(void)
{
	struct event_base *base = event_base_new();

	TEST_START("on libevent: read, sent, paused and closed by itself");
	begin();
	c.state = MS_SERVING;
	ASSERT_ERR(chan_watch(&c, base), CL_OK);
	order(1, 0);
	loop(base, 2);
	ASSERT_INT_EQ(nmsgs, 1);
	queue(CHAN_MARK_LEN + 1);
	order(2, 0);
	loop(base, 4);
	ASSERT_INT_EQ(nmsgs, 1);
	while (c.is_paused) {
		drain(1);
		loop(base, 1);
	}
	loop(base, 2);
	ASSERT_INT_EQ(nmsgs, 2);
	chan_hold(&c);
	order(3, 0);
	loop(base, 2);
	ASSERT_INT_EQ(nmsgs, 2);
	chan_go_on(&c);
	loop(base, 2);
	ASSERT_INT_EQ(nmsgs, 3);
	msgtest_send_bytes(&peer, 0x7ff, 0, NULL, 0, -1);
	loop(base, 2);
	ASSERT_INT_EQ(nends, 1);
	ASSERT_PTR_EQ(c.rd, NULL);
	ASSERT_PTR_EQ(c.wr, NULL);
	ASSERT_INT_EQ(event_base_get_num_events(base,
	    EVENT_BASE_COUNT_ADDED), 0);
	end();
	event_base_free(base);
}

UNIT_MAIN(test_handover, test_turn, test_violations, test_descriptors,
    test_sender, test_queue, test_mark, test_broken, test_raw, test_hold,
    test_stall, test_wait, test_watch)
