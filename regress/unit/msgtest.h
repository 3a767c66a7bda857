/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The other end of a channel: a peer that speaks in structs, and, where a
 * test wants one that was taken over, in bytes (chan_send_buf looks at no
 * row).  Its directions are those of what is tested, reversed.
 */
#ifndef CLOOP_MSGTEST_H
#define CLOOP_MSGTEST_H

#include "unit.h"

#include "common/base/err.h"
#include "common/base/util.h"
#include "common/msg/chan.h"

#define MSGTEST_QUEUE 8192
#define MSGTEST_WAIT_MS 10000

/* Takes fd.  Any state will do, and the same message any number of times. */
UNIT_STATIC void
msgtest_open(struct chan *c, int fd, enum msg_dir in, enum msg_dir out)
{
	ASSERT_ERR(chan_init(c, fd, in, out, MSGTEST_QUEUE, NULL, NULL, NULL),
	    CL_OK);
	c->state = MS_ANY;
}

/* The same with a new pair; the other end. */
UNIT_STATIC int
msgtest_pair(struct chan *c, enum msg_dir in, enum msg_dir out)
{
	int fds[2];

	ASSERT_ERR(imsg_pair(fds), CL_OK);
	msgtest_open(c, fds[0], in, out);
	return fds[1];
}

/* Takes fd; what the sender's own checks refuse fails the test. */
#define MSGTEST_SEND(c, name, id, v, fd)                                       \
	ASSERT_ERR(CHAN_SEND(c, name, id, v, fd), CL_OK)

/* Bytes as the body of any message. */
UNIT_STATIC void
msgtest_send_bytes(struct chan *c, uint32_t type, uint64_t id, const void *p,
    size_t len, int fd)
{
	struct buf b;

	buf_init(&b, MSG_BODY_MAX);
	buf_put_raw(&b, p, len);
	ASSERT_ERR(chan_send_buf(c, type, id, &b, fd), CL_OK);
	buf_clear(&b);
}

/* One message within MSGTEST_WAIT_MS; after CL_OK msgtest_free. */
UNIT_STATIC int
msgtest_read(struct chan *c, struct imsg *m, union msg_any *v)
{
	const char *why;

	memset(&c->seen, 0, sizeof(c->seen));
	return chan_wait(c, util_now_ms() + MSGTEST_WAIT_MS, m, v, &why);
}

/* What is there already: its type, or 0. */
UNIT_STATIC uint32_t
msgtest_hear(struct chan *c, struct imsg *m, union msg_any *v)
{
	const char *why;
	int r;

	memset(&c->seen, 0, sizeof(c->seen));
	if ((r = chan_read_one(c, m, v, &why)) == CL_FORMAT)
		UNIT_FAIL("%s: %s", msgcat_name(m->type), why);
	return r == CL_OK ? m->type : 0;
}

UNIT_STATIC void
msgtest_free(struct imsg *m, union msg_any *v)
{
	msg_clear(m->type, v);
	imsg_free(m);
}

/* The next one within the time, which must be of this type. */
UNIT_STATIC void
msgtest_expect(struct chan *c, uint32_t type, struct imsg *m,
    union msg_any *v)
{
	ASSERT_ERR(msgtest_read(c, m, v), CL_OK);
	ASSERT_STRING_EQ(msgcat_name(m->type), msgcat_name(type));
}

#endif
