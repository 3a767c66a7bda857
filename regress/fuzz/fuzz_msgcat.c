/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * A hostile child: bytes on a channel, through imsg_read(), msgcat_check()
 * and, where the row has a struct, msg_get().  Input: direction, state, then
 * records of (flags, two bytes of length, bytes).  Whatever is accepted is
 * what its row says.
 */
#include "fuzz.h"

#include <sys/socket.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/msg/imsg.h"
#include "common/msg/msgcat.h"

static void
check_message(enum msg_dir dir, unsigned int state, struct imsg *m,
    struct msgcat_seen *seen)
{
	const struct msg_row *row;
	size_t min, max;
	union msg_any v;
	const char *why;

	if (msgcat_check(dir, state, m, seen, &why) != 0) {
		FUZZ_CHECK(why != NULL);
		return;
	}
	row = msgcat_find(m->type);
	FUZZ_CHECK(row != NULL && row->dir == dir);
	FUZZ_CHECK((row->states & state) != 0);
	msgcat_find_bounds(row, &min, &max);
	FUZZ_CHECK(buf_left(&m->body) >= min && buf_left(&m->body) <= max);
	FUZZ_CHECK(row->fd == (m->fd != -1));
	if (msg_get(m->type, &m->body, &v) == CL_OK) {
		FUZZ_CHECK(buf_left(&m->body) == 0);
		msg_clear(m->type, &v);
	}
}

/* One record onto the wire, with 0 to 3 descriptors. */
static void
send_record(int sock, const uint8_t *p, size_t len, unsigned int nfds)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(3 * sizeof(int))];
	} control = { 0 };
	struct iovec iov = { (void *)(uintptr_t)p, len };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *cm;
	int fds[3] = { sock, sock, sock };

	if (nfds > 0) {
		mh.msg_control = &control;
		mh.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		cm = CMSG_FIRSTHDR(&mh);
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(nfds * sizeof(int));
		memcpy(CMSG_DATA(cm), fds, nfds * sizeof(int));
	}
	(void)sendmsg(sock, &mh, MSG_NOSIGNAL | MSG_DONTWAIT);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct msgcat_seen seen = { { 0 } };
	struct imsg_chan c;
	enum msg_dir dir;
	unsigned int state, flags;
	struct imsg m;
	size_t n;
	int fds[2];

	if (len < 2 || imsg_pair(fds) != 0)
		return 0;
	dir = (enum msg_dir)(data[0] % (MSG_M2D + 1));
	state = 1u << data[1] % 3;
	if (imsg_init(&c, fds[1], 1) != 0)
		abort();
	for (data += 2, len -= 2; len >= 3; data += n, len -= n) {
		flags = data[0];
		n = (size_t)data[1] << 8 | data[2];
		data += 3;
		len -= 3;
		if (n > len)
			n = len;
		send_record(fds[0], data, n, flags % 4);
		if (imsg_read(&c, &m) != 0) {
			FUZZ_CHECK(m.fd == -1);
			continue;
		}
		check_message(dir, state, &m, &seen);
		imsg_free(&m);
	}
	close(fds[0]);
	imsg_clear(&c);
	return 0;
}
