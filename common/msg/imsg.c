/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Messages between our processes, both ends.  Whatever is read here may
 * come from a child that was taken over: sizes and descriptors are checked
 * before anything else looks at the message, and a descriptor that does not
 * belong is closed at once.
 */
#include "imsg.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <bsd/stdlib.h>
#include <bsd/string.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/util.h"

struct imsg_out {
	struct imsg_out *next;
	int fd;
	size_t len;
	uint8_t data[];
};

/* Room for more descriptors than allowed: a second one is seen, not lost. */
#define IMSG_MAX_FDS 4
#define IMSG_CALM 128	/* so many free numbers are plenty */
union imsg_control {
	struct cmsghdr align;
	char space[CMSG_SPACE(IMSG_MAX_FDS * sizeof(int))];
};

int
imsg_pair(int fds[2])
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
	    0, fds) == -1)
		return CL_SYSTEM;
	return 0;
}

int
imsg_init(struct imsg_chan *c, int fd, size_t max_queued)
{
	memset(c, 0, sizeof(*c));
	c->fd = fd;
	c->tailp = &c->head;
	c->max_queued = max_queued;
	if ((c->in = calloc(1, MSG_MAX)) == NULL) {
		imsg_clear(c);
		return CL_NOMEM;
	}
	if (util_set_nonblock(fd) != 0) {
		imsg_clear(c);
		return CL_SYSTEM;
	}
	return 0;
}

static void
imsg_free_out(struct imsg_out *o)
{
	if (o->fd != -1)
		close(o->fd);
	freezero(o, sizeof(*o) + o->len);
}

void
imsg_clear(struct imsg_chan *c)
{
	struct imsg_out *o;
	int saved = errno;

	while ((o = c->head) != NULL) {
		c->head = o->next;
		imsg_free_out(o);
	}
	c->tailp = &c->head;
	c->nqueued = c->queued_len = 0;
	if (c->in != NULL)
		freezero(c->in, MSG_MAX);
	c->in = NULL;
	if (c->fd != -1)
		close(c->fd);
	c->fd = -1;
	errno = saved;
}

static void
imsg_close_fds(const int *fds, size_t nfds)
{
	size_t i;

	for (i = 0; i < nfds; i++)
		close(fds[i]);
}

/*
 * Collect what came beside the bytes.  Returns the number of descriptors,
 * at most IMSG_MAX_FDS, and sets *badp when there was anything else.
 */
static size_t
imsg_get_fds(struct msghdr *mh, int *fds, int *badp)
{
	struct cmsghdr *cm;
	size_t n, nfds = 0;

	for (cm = CMSG_FIRSTHDR(mh); cm != NULL; cm = CMSG_NXTHDR(mh, cm)) {
		if (cm->cmsg_level != SOL_SOCKET ||
		    cm->cmsg_type != SCM_RIGHTS) {
			*badp = 1;
			continue;
		}
		n = (cm->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		if (n > IMSG_MAX_FDS - nfds)
			n = IMSG_MAX_FDS - nfds;
		memcpy(fds + nfds, CMSG_DATA(cm), n * sizeof(int));
		nfds += n;
	}
	return nfds;
}

/* Take the header apart; the body borrows from c->in. */
static int
imsg_parse(struct imsg_chan *c, size_t len, struct imsg *m)
{
	struct buf head;
	size_t body_len;

	if (len < IMSG_HEADER_LEN)
		return CL_FORMAT;
	buf_init_read(&head, c->in, IMSG_HEADER_LEN);
	m->type = buf_get_u32(&head);
	body_len = buf_get_u32(&head);
	m->id = buf_get_u64(&head);
	if (buf_end(&head) != 0 || body_len != len - IMSG_HEADER_LEN)
		return CL_FORMAT;
	buf_init_read(&m->body, c->in + IMSG_HEADER_LEN, body_len);
	return 0;
}

/*
 * A descriptor that finds no number here is dropped by the kernel, and its
 * message is of no use without it: is there one, before anything is read?
 * The lowest free number is given out first, so that a free one far above it
 * lets the next messages do without the question.
 */
static int
imsg_has_room(int fd)
{
	static unsigned int calm;
	int low, high;

	if (calm > 0) {
		calm--;
		return 1;
	}
	if ((low = fcntl(fd, F_DUPFD_CLOEXEC, 0)) == -1)
		return errno != EMFILE;
	if ((high = fcntl(fd, F_DUPFD_CLOEXEC, low + IMSG_CALM)) != -1) {
		calm = IMSG_CALM / 2;
		close(high);
	}
	close(low);
	return 1;
}

int
imsg_read(struct imsg_chan *c, struct imsg *m)
{
	struct iovec iov = { .iov_base = c->in, .iov_len = MSG_MAX };
	union imsg_control control;
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1,
	    .msg_control = &control, .msg_controllen = sizeof(control) };
	int fds[IMSG_MAX_FDS], r, bad = 0;
	size_t nfds;
	ssize_t n;

	memset(m, 0, sizeof(*m));
	m->fd = -1;
	if (!imsg_has_room(c->fd)) {
		c->nshort++;
		(void)poll(NULL, 0, IMSG_SHORT_MS);
		return CL_INCOMPLETE;
	}
	memset(&control, 0, sizeof(control));
	do
		n = recvmsg(c->fd, &mh, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	while (n == -1 && errno == EINTR);
	if (n == -1) {
		if (errno == EAGAIN || errno == EWOULDBLOCK)
			return CL_INCOMPLETE;
		return errno == ECONNRESET ? CL_EOF : CL_SYSTEM;
	}
	nfds = imsg_get_fds(&mh, fds, &bad);
	if (n == 0 && nfds == 0)
		return CL_EOF;
	if ((mh.msg_flags & MSG_CTRUNC) != 0 && nfds == 0) {
		/* Ours all the same: none was free after all. */
		c->nshort++;
		errno = EMFILE;
		return CL_SYSTEM;
	}
	if (bad || nfds > 1 || (mh.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0)
		r = CL_FORMAT;
	else
		r = imsg_parse(c, (size_t)n, m);
	if (r != 0) {
		imsg_close_fds(fds, nfds);
		return r;
	}
	if (nfds == 1)
		m->fd = fds[0];
	return 0;
}

int
imsg_take_fd(struct imsg *m)
{
	int fd = m->fd;

	m->fd = -1;
	return fd;
}

void
imsg_free(struct imsg *m)
{
	if (m->fd != -1)
		close(m->fd);
	m->fd = -1;
}

int
imsg_compose(struct imsg_chan *c, uint32_t type, uint64_t id,
    const struct buf *body, int fd)
{
	size_t body_len = body == NULL ? 0 : body->len;
	struct imsg_out *o = NULL;
	struct buf head;
	int r;

	buf_init(&head, IMSG_HEADER_LEN);
	if (body != NULL && (r = buf_error(body)) != 0)
		goto out;
	r = CL_TOOBIG;
	if (body_len > MSG_BODY_MAX)
		goto out;
	r = CL_LIMIT;
	if (c->nqueued >= c->max_queued)
		goto out;
	buf_put_u32(&head, type);
	buf_put_u32(&head, (uint32_t)body_len);
	buf_put_u64(&head, id);
	r = CL_NOMEM;
	if (buf_error(&head) != 0 || (o = calloc(1,
	    sizeof(*o) + IMSG_HEADER_LEN + body_len)) == NULL)
		goto out;
	o->fd = fd;
	o->len = IMSG_HEADER_LEN + body_len;
	memcpy(o->data, head.data, IMSG_HEADER_LEN);
	if (body_len > 0)
		memcpy(o->data + IMSG_HEADER_LEN, body->data, body_len);
	*c->tailp = o;
	c->tailp = &o->next;
	c->nqueued++;
	c->queued_len += o->len;
	r = 0;
out:
	if (r != 0 && fd != -1)
		close(fd);
	buf_clear(&head);
	return r;
}

/* Hand one message to the kernel: whole or not at all. */
static int
imsg_send(int fd, struct imsg_out *o)
{
	struct iovec iov = { .iov_base = o->data, .iov_len = o->len };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };
	union imsg_control control;
	struct cmsghdr *cm;
	ssize_t n;

	if (o->fd != -1) {
		memset(&control, 0, sizeof(control));
		mh.msg_control = &control;
		mh.msg_controllen = CMSG_SPACE(sizeof(int));
		cm = CMSG_FIRSTHDR(&mh);
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(cm), &o->fd, sizeof(int));
	}
	do
		n = sendmsg(fd, &mh, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n == -1 && errno == EINTR);
	if (n != -1)
		return 0;
	switch (errno) {
	case EAGAIN:
	case ENOBUFS:
	case ETOOMANYREFS:	/* too many descriptors in flight: later */
		return CL_INCOMPLETE;
	case EPIPE:
	case ECONNRESET:
	case ENOTCONN:
		return CL_EOF;
	default:
		return CL_SYSTEM;
	}
}

int
imsg_write(struct imsg_chan *c)
{
	struct imsg_out *o;
	int r;

	while ((o = c->head) != NULL) {
		if ((r = imsg_send(c->fd, o)) != 0)
			return r;
		if ((c->head = o->next) == NULL)
			c->tailp = &c->head;
		c->nqueued--;
		c->queued_len -= o->len;
		imsg_free_out(o);
	}
	return 0;
}
