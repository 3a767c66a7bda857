/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * common/msg/imsg: messages and descriptors between our processes, from an
 * honest peer and from one that was taken over.
 */
#include "regress/unit/unit.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/msg/imsg.h"

static struct imsg_chan a, b;

static void
open_pair(size_t max_queued)
{
	int fds[2];

	ASSERT_ERR(imsg_pair(fds), CL_OK);
	ASSERT_ERR(imsg_init(&a, fds[0], max_queued), CL_OK);
	ASSERT_ERR(imsg_init(&b, fds[1], max_queued), CL_OK);
}

static void
close_pair(void)
{
	imsg_clear(&a);
	imsg_clear(&b);
}

static int
count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

/* Send raw bytes and nfds descriptors past imsg_compose(). */
static void
send_raw(int sock, const void *p, size_t len, int nfds)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(8 * sizeof(int))];
	} control = { 0 };
	struct iovec iov = { (void *)(uintptr_t)p, len };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *cm;
	int i, fd = STDIN_FILENO;

	if (nfds > 0) {
		mh.msg_control = &control;
		mh.msg_controllen = CMSG_SPACE((size_t)nfds * sizeof(int));
		cm = CMSG_FIRSTHDR(&mh);
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN((size_t)nfds * sizeof(int));
		for (i = 0; i < nfds; i++)
			memcpy(CMSG_DATA(cm) + (size_t)i * sizeof(int), &fd,
			    sizeof(int));
	}
	ASSERT_INT_EQ(sendmsg(sock, &mh, MSG_NOSIGNAL), len);
}

static void
test_round_trip(void)
{
	struct imsg m;
	struct buf body;

	TEST_START("type, id and body arrive as sent, in order");
	open_pair(4);
	buf_init(&body, 100);
	buf_put_str(&body, "hello");
	ASSERT_ERR(imsg_compose(&a, 0x110, UINT64_MAX, &body, -1), CL_OK);
	ASSERT_ERR(imsg_compose(&a, 0x112, 7, NULL, -1), CL_OK);
	ASSERT_INT_EQ(a.nqueued, 2);
	ASSERT_INT_EQ(a.queued_len, 2 * IMSG_HEADER_LEN + 9);
	ASSERT_ERR(imsg_read(&b, &m), CL_INCOMPLETE);
	ASSERT_ERR(imsg_write(&a), CL_OK);
	ASSERT_INT_EQ(a.nqueued, 0);
	ASSERT_INT_EQ(a.queued_len, 0);
	ASSERT_ERR(imsg_read(&b, &m), CL_OK);
	ASSERT_INT_EQ(m.type, 0x110);
	ASSERT_U64_EQ(m.id, UINT64_MAX);
	ASSERT_INT_EQ(m.fd, -1);
	ASSERT_BYTES_EQ(m.body.data, m.body.len, body.data, body.len);
	ASSERT_ERR(imsg_read(&b, &m), CL_OK);
	ASSERT_INT_EQ(m.type, 0x112);
	ASSERT_INT_EQ(buf_left(&m.body), 0);
	ASSERT_ERR(imsg_read(&b, &m), CL_INCOMPLETE);
	TEST_START("the peer's end is the end, after what was queued");
	ASSERT_ERR(imsg_compose(&a, 2, 1, &body, -1), CL_OK);
	ASSERT_ERR(imsg_write(&a), CL_OK);
	imsg_clear(&a);
	ASSERT_ERR(imsg_read(&b, &m), CL_OK);
	ASSERT_ERR(imsg_read(&b, &m), CL_EOF);
	ASSERT_ERR(imsg_compose(&b, 2, 1, NULL, -1), CL_OK);
	ASSERT_ERR(imsg_write(&b), CL_EOF);
	buf_clear(&body);
	close_pair();
}

static void
test_descriptor(void)
{
	struct imsg m;
	int fds[2], fd, before = count_fds();
	char c;

	TEST_START("a descriptor travels with its message, close-on-exec");
	open_pair(4);
	ASSERT_INT_EQ(pipe(fds), 0);
	ASSERT_ERR(imsg_compose(&a, 2, 1, NULL, fds[0]), CL_OK);
	ASSERT_ERR(imsg_compose(&a, 4, 2, NULL, -1), CL_OK);
	ASSERT_ERR(imsg_write(&a), CL_OK);
	ASSERT_INT_EQ(fcntl(fds[0], F_GETFD), -1);
	ASSERT_ERR(imsg_read(&b, &m), CL_OK);
	fd = imsg_take_fd(&m);
	ASSERT_INT_EQ(m.fd, -1);
	imsg_free(&m);
	ASSERT_INT_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
	ASSERT_INT_EQ(write(fds[1], "x", 1), 1);
	ASSERT_INT_EQ(read(fd, &c, 1), 1);
	close(fd);
	close(fds[1]);
	ASSERT_ERR(imsg_read(&b, &m), CL_OK);
	ASSERT_INT_EQ(m.fd, -1);
	close_pair();
	TEST_START("no descriptor is leaked: not taken, not sent, refused");
	open_pair(1);
	ASSERT_ERR(imsg_compose(&a, 2, 1, NULL, dup(0)), CL_OK);
	ASSERT_ERR(imsg_compose(&a, 2, 1, NULL, dup(0)), CL_LIMIT);
	ASSERT_ERR(imsg_write(&a), CL_OK);
	ASSERT_ERR(imsg_read(&b, &m), CL_OK);
	imsg_free(&m);
	ASSERT_ERR(imsg_compose(&a, 2, 1, NULL, dup(0)), CL_OK);
	close_pair();
	ASSERT_INT_EQ(count_fds(), before);
}

static void
test_limits(void)
{
	static const uint8_t zero[MSG_BODY_MAX + 1];
	struct buf body;
	struct imsg m;

	TEST_START("a body of MSG_BODY_MAX passes, one byte more does not");
	open_pair(8);
	buf_init(&body, sizeof(zero));
	buf_put_raw(&body, zero, MSG_BODY_MAX);
	ASSERT_ERR(imsg_compose(&a, 2, 1, &body, -1), CL_OK);
	ASSERT_ERR(imsg_write(&a), CL_OK);
	ASSERT_ERR(imsg_read(&b, &m), CL_OK);
	ASSERT_INT_EQ(buf_left(&m.body), MSG_BODY_MAX);
	buf_put_u8(&body, 0);
	ASSERT_ERR(imsg_compose(&a, 2, 1, &body, -1), CL_TOOBIG);
	buf_put_u8(&body, 0);
	TEST_START("the error of a body is the error of the message");
	ASSERT_ERR(imsg_compose(&a, 2, 1, &body, -1), CL_TOOBIG);
	buf_clear(&body);
	close_pair();
	TEST_START("the queue takes max_queued messages and no more");
	open_pair(3);
	ASSERT_ERR(imsg_compose(&a, 2, 1, NULL, -1), CL_OK);
	ASSERT_ERR(imsg_compose(&a, 2, 2, NULL, -1), CL_OK);
	ASSERT_ERR(imsg_compose(&a, 2, 3, NULL, -1), CL_OK);
	ASSERT_ERR(imsg_compose(&a, 2, 4, NULL, -1), CL_LIMIT);
	ASSERT_ERR(imsg_write(&a), CL_OK);
	ASSERT_ERR(imsg_compose(&a, 2, 5, NULL, -1), CL_OK);
	close_pair();
}

static void
test_full_socket(void)
{
	static const uint8_t bytes[8192];
	struct buf body;
	struct imsg m;
	uint64_t id, sent;
	int r;

	TEST_START("a full socket keeps the rest queued, nothing is lost");
	open_pair(4096);
	buf_init(&body, sizeof(bytes));
	buf_put_raw(&body, bytes, sizeof(bytes));
	for (sent = 0, r = 0; r == 0; sent++) {
		ASSERT_ERR(imsg_compose(&a, 2, sent, &body, -1), CL_OK);
		r = imsg_write(&a);
	}
	ASSERT_ERR(r, CL_INCOMPLETE);
	ASSERT_INT_EQ(a.nqueued, 1);
	for (id = 0; id < sent; id++) {
		ASSERT_ERR(imsg_read(&b, &m), CL_OK);
		ASSERT_U64_EQ(m.id, id);
		if (imsg_write(&a) != 0)
			ASSERT_INT_LE(a.nqueued, 1);
	}
	ASSERT_ERR(imsg_read(&b, &m), CL_INCOMPLETE);
	buf_clear(&body);
	close_pair();
}

static void
test_hostile(void)
{
	static uint8_t big[MSG_MAX + 1];
	uint8_t head[IMSG_HEADER_LEN + 2] = { 0, 0, 0, 2 };
	struct imsg m;
	int before, i;

	TEST_START("a message shorter than its header is refused");
	open_pair(4);
	for (i = 1; i < IMSG_HEADER_LEN; i++) {
		send_raw(a.fd, head, (size_t)i, 0);
		ASSERT_ERR(imsg_read(&b, &m), CL_FORMAT);
	}
	TEST_START("a length that lies by one either way is refused");
	head[7] = 1;
	send_raw(a.fd, head, IMSG_HEADER_LEN, 0);
	ASSERT_ERR(imsg_read(&b, &m), CL_FORMAT);
	send_raw(a.fd, head, IMSG_HEADER_LEN + 2, 0);
	ASSERT_ERR(imsg_read(&b, &m), CL_FORMAT);
	send_raw(a.fd, head, IMSG_HEADER_LEN + 1, 0);
	ASSERT_ERR(imsg_read(&b, &m), CL_OK);
	TEST_START("a message over MSG_MAX is refused, never cut");
	memcpy(big, head, IMSG_HEADER_LEN);
	big[6] = MSG_BODY_MAX >> 8;
	big[7] = MSG_BODY_MAX & 0xff;
	send_raw(a.fd, big, MSG_MAX, 0);
	ASSERT_ERR(imsg_read(&b, &m), CL_OK);
	send_raw(a.fd, big, MSG_MAX + 1, 0);
	ASSERT_ERR(imsg_read(&b, &m), CL_FORMAT);
	TEST_START("two and more descriptors are refused and closed");
	before = count_fds();
	head[7] = 0;
	for (i = 2; i <= 8; i++) {
		send_raw(a.fd, head, IMSG_HEADER_LEN, i);
		ASSERT_ERR(imsg_read(&b, &m), CL_FORMAT);
		ASSERT_INT_EQ(m.fd, -1);
	}
	TEST_START("a descriptor on a broken message is closed");
	send_raw(a.fd, head, 3, 1);
	ASSERT_ERR(imsg_read(&b, &m), CL_FORMAT);
	ASSERT_INT_EQ(count_fds(), before);
	close_pair();
}

/* What the receiver has no number for is not the sender's doing. */
static void
test_shortage(void)
{
	struct rlimit old, few;
	struct imsg m;
	int spare, r;

	TEST_START("no descriptor free: the message stays, whole");
	open_pair(100);
	for (r = 0; r < 70; r++)	/* whatever was found out before */
		ASSERT_ERR(imsg_compose(&a, 2, 1, NULL, -1), CL_OK);
	ASSERT_ERR(imsg_compose(&a, 2, 7, NULL, dup(0)), CL_OK);
	ASSERT_ERR(imsg_write(&a), CL_OK);
	spare = dup(0);
	ASSERT_INT_EQ(getrlimit(RLIMIT_NOFILE, &old), 0);
	few = old;
	few.rlim_cur = (rlim_t)spare + 1;
	ASSERT_INT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
	while ((r = imsg_read(&b, &m)) == CL_OK && m.id == 1)
		continue;
	ASSERT_ERR(r, CL_INCOMPLETE);
	ASSERT_U64_EQ(b.nshort, 1);
	ASSERT_ERR(imsg_read(&b, &m), CL_INCOMPLETE);

	TEST_START("and is read when there is one again");
	close(spare);
	while ((r = imsg_read(&b, &m)) == CL_OK && m.id == 1)
		continue;
	ASSERT_ERR(r, CL_OK);
	ASSERT_U64_EQ(m.id, 7);
	ASSERT_INT_NE(m.fd, -1);
	imsg_free(&m);
	ASSERT_INT_EQ(setrlimit(RLIMIT_NOFILE, &old), 0);
	close_pair();
}

UNIT_MAIN(test_shortage, test_round_trip, test_descriptor, test_limits,
    test_full_socket, test_hostile)
