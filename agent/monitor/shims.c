/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Starting shims, in the device monitor.  cloop-shimd is as much root as we
 * are and reads nothing from outside; still, what it says is held against
 * the catalogue, and it cannot keep us longer than its time.
 */
#include <sys/socket.h>
#include <sys/un.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <bsd/string.h>

#include "shims.h"
#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "sandbox/box/spawn.h"
#include "agentd.h"

#define SHIMS_QUEUE 4		/* one request at a time, and sweeps */

void
shims_close(struct agentd *a)
{
	if (a->shims.state == 0)
		return;
	imsg_clear(&a->shims.chan);
	a->shims.state = 0;
}

static int
shims_connect(const char *path, int *fdp)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd, saved;

	/* The keyword's bound is smaller than sun_path. */
	strlcpy(sun.sun_path, path, sizeof(sun.sun_path));
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
	    0);
	if (fd == -1)
		return CL_SYSTEM;
	if (connect(fd, (struct sockaddr *)&sun, sizeof(sun)) == -1) {
		saved = errno;
		close(fd);
		errno = saved;
		return CL_SYSTEM;
	}
	*fdp = fd;
	return CL_OK;
}

/* The one answer that is due.  m->body is good until the next call. */
static int
shims_wait(struct shims *s, uint32_t type, struct imsg *m)
{
	int64_t left, until = util_now_ms() + SHIMD_ANSWER_MS;
	struct pollfd pfd = { .fd = s->chan.fd, .events = POLLIN };
	const char *why;
	int r;

	while ((r = imsg_read(&s->chan, m)) == CL_INCOMPLETE) {
		if ((left = until - util_now_ms()) <= 0)
			return CL_TIMEOUT;
		if (poll(&pfd, 1, (int)left) == -1 && errno != EINTR)
			return CL_SYSTEM;
	}
	if (r != CL_OK)
		return r;
	if (msgcat_check(MSG_D2M, s->state, m, &s->seen, &why) == CL_OK &&
	    m->type == type)
		return CL_OK;
	imsg_free(m);
	return CL_FORMAT;
}

/* Takes fd. */
static int
shims_send(struct shims *s, uint32_t type, const struct buf *b, int fd)
{
	int r = imsg_compose(&s->chan, type, 0, b, fd);

	return r != CL_OK ? r : imsg_write(&s->chan);
}

static int
shims_say_hello(struct shims *s)
{
	struct imsg m;
	struct buf b;
	int fd, r;

	if ((fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC)) == -1)
		return CL_SYSTEM;
	buf_init(&b, 4);
	buf_put_u32(&b, MSGCAT_VERSION);
	r = shims_send(s, MSG_SHIMD_HELLO, &b, fd);
	buf_clear(&b);
	if (r != CL_OK ||
	    (r = shims_wait(s, MSG_SHIMD_HELLO_ANS, &m)) != CL_OK)
		return r;
	if (buf_get_u32(&m.body) != MSGCAT_VERSION)
		return CL_VERSION;
	if ((r = buf_end(&m.body)) == CL_OK)
		s->state = MS_SERVING;
	return r;
}

int
shims_open(struct agentd *a)
{
	struct shims *s = &a->shims;
	int fd, r, saved;

	if (a->conf.shim_socket == NULL || s->state != 0)
		return CL_OK;
	if ((r = shims_connect(a->conf.shim_socket, &fd)) != CL_OK ||
	    (r = imsg_init(&s->chan, fd, SHIMS_QUEUE)) != CL_OK)
		return r;
	memset(&s->seen, 0, sizeof(s->seen));
	s->state = MS_STARTING;
	if ((r = shims_say_hello(s)) != CL_OK) {
		saved = errno;
		shims_close(a);
		errno = saved;
	}
	return r;
}

/* Takes fd, the shim's end of its channel.  *errorp: why it has none. */
static int
shims_ask(struct shims *s, int fd, pid_t *pidp, int *errorp)
{
	struct imsg m;
	uint32_t error;
	int64_t pid;
	int r;

	if ((r = shims_send(s, MSG_SHIMD_START, NULL, fd)) != CL_OK ||
	    (r = shims_wait(s, MSG_SHIMD_START_ANS, &m)) != CL_OK)
		return r;
	error = buf_get_u32(&m.body);
	pid = buf_get_i64(&m.body);
	if (buf_end(&m.body) != CL_OK || error > INT32_MAX ||
	    (error == 0 && (pid <= 1 || pid > INT32_MAX)))
		return CL_FORMAT;
	*pidp = (pid_t)pid;
	*errorp = (int)error;
	return CL_OK;
}

static int
shims_start_there(struct agentd *a, pid_t *pidp, int *fdp)
{
	int error = 0, fds[2], r;

	if ((r = shims_open(a)) != CL_OK || (r = imsg_pair(fds)) != CL_OK)
		return r;
	r = shims_ask(&a->shims, fds[1], pidp, &error);
	if (r == CL_OK && error == 0) {
		*fdp = fds[0];
		return CL_OK;
	}
	if (r == CL_SYSTEM)
		error = errno;
	/* Without its word, the next one would be taken for the next shim's. */
	if (r != CL_OK)
		shims_close(a);
	close(fds[0]);
	errno = error;
	return r != CL_OK ? r : CL_SYSTEM;
}

int
shims_start(struct agentd *a, pid_t *pidp, int *fdp)
{
	static const struct spawn_opts opts = { .program = "cloop-shim",
	    .flags = SPAWN_SURVIVE };
	int r;

	if (a->conf.shim_socket == NULL)
		return spawn_start(&opts, pidp, fdp);
	r = shims_start_there(a, pidp, fdp);
	if (r == CL_EOF)	/* another one sits at the socket now */
		r = shims_start_there(a, pidp, fdp);
	if (r != CL_OK)
		log_error("shim-start", "ShimSocket=%s reason=\"%s\"",
		    log_q(a->conf.shim_socket), cl_strerror(r));
	return r;
}

int
shims_sweep(struct agentd *a)
{
	int i;

	if (a->conf.shim_socket == NULL)
		return 0;
	/* The one that started them may have been replaced meanwhile: they
	 * are no children of the next, which hears of it from us. */
	for (i = 0; i < 2 && shims_open(a) == CL_OK; i++) {
		if (shims_send(&a->shims, MSG_SHIMD_SWEEP, NULL, -1) == CL_OK)
			break;
		shims_close(a);
	}
	return 1;
}
