/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Starting shims, in the device monitor, and giving each its orders: a
 * workload's and those of the jobs before and after it alike.  cloop-shimd
 * is as much root as we are and reads nothing from outside; still, what it
 * says is held against the catalogue, and it cannot keep us longer than its
 * time.
 */
#include <sys/socket.h>
#include <sys/un.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <bsd/string.h>

#include <event2/event.h>

#include "shims.h"
#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "sandbox/box/cgroup.h"
#include "sandbox/box/shim.h"
#include "sandbox/box/spawn.h"
#include "sandbox/self/bpf.h"
#include "agentd.h"
#include "handledir.h"

#define SHIMS_QUEUE 4		/* one request at a time, and sweeps */

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

/* The one answer that is due; then msg_clear and imsg_free. */
static int
shims_wait(struct shims *s, uint32_t type, struct imsg *m, union msg_any *v)
{
	const char *why;
	int r;

	r = chan_wait(&s->chan, util_now_ms() + SHIMD_ANSWER_MS, m, v, &why);
	if (r != CL_OK || m->type == type)
		return r;
	msg_clear(m->type, v);
	imsg_free(m);
	return CL_FORMAT;
}

static int
shims_say_hello(struct shims *s)
{
	struct msg_version hello = { .version = MSGCAT_VERSION };
	union msg_any v;
	struct imsg m;
	int fd, r;

	if ((fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC)) == -1)
		return CL_SYSTEM;
	if ((r = CHAN_SEND(&s->chan, SHIMD_HELLO, 0, &hello, fd)) != CL_OK ||
	    (r = shims_wait(s, MSG_SHIMD_HELLO_ANS, &m, &v)) != CL_OK)
		return r;
	if (v.SHIMD_HELLO_ANS.version != MSGCAT_VERSION)
		return CL_VERSION;
	s->chan.state = MS_SERVING;
	return CL_OK;
}

/* It was replaced since: what is sent there nobody reads. */
static int
shims_is_gone(const struct shims *s)
{
	struct pollfd pfd = { .fd = s->chan.im.fd, .events = POLLIN };

	return poll(&pfd, 1, 0) == 1 &&
	    (pfd.revents & (POLLHUP | POLLERR)) != 0;
}

int
shims_open(struct agentd *a)
{
	struct shims *s = &a->shims;
	int fd, r, saved;

	if (s->chan.is_open && shims_is_gone(s))
		chan_close(&s->chan);
	if (a->conf.shim_socket == NULL || s->chan.is_open)
		return CL_OK;
	if ((r = shims_connect(a->conf.shim_socket, &fd)) != CL_OK ||
	    (r = chan_init(&s->chan, fd, MSG_D2M, MSG_M2D, SHIMS_QUEUE, NULL,
	    NULL, NULL)) != CL_OK)
		return r;
	if ((r = shims_say_hello(s)) != CL_OK) {
		saved = errno;
		chan_close(&a->shims.chan);
		errno = saved;
	}
	return r;
}

/* Takes fd, the shim's end of its channel.  *errorp: why it has none. */
static int
shims_ask(struct shims *s, int fd, pid_t *pidp, int *errorp)
{
	const struct msg_shimd_start_ans *ans;
	union msg_any v;
	struct imsg m;
	int r;

	if ((r = chan_send(&s->chan, MSG_SHIMD_START, 0, NULL, fd)) != CL_OK ||
	    (r = shims_wait(s, MSG_SHIMD_START_ANS, &m, &v)) != CL_OK)
		return r;
	ans = &v.SHIMD_START_ANS;
	if (ans->error == 0 && ans->pid <= 1)
		return CL_FORMAT;
	*pidp = (pid_t)ans->pid;
	*errorp = (int)ans->error;
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
		chan_close(&a->shims.chan);
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

/* ----------------------------------------------------- what they are given */

int
shims_make_filters(struct agentd *a)
{
	struct bpf_set set;
	struct buf b;
	int r;

	if ((r = bpf_set_make(&set)) != CL_OK)
		return r;
	buf_init(&b, MAX_FILTERS_LEN);
	bpf_set_put(&b, &set);
	bpf_set_clear(&set);
	a->filters_len = (uint32_t)b.len;
	if ((r = buf_error(&b)) == CL_OK)
		r = util_make_memfd(b.data, b.len, &a->filters_fd);
	buf_clear(&b);
	return r;
}

int
shims_send_fd(struct chan *c, uint32_t type, int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	return copy == -1 ? CL_SYSTEM : chan_send(c, type, 0, NULL, copy);
}

static int
shims_send_filters(const struct agentd *a, struct chan *c)
{
	struct msg_memfd body = { .len = a->filters_len };
	int copy = fcntl(a->filters_fd, F_DUPFD_CLOEXEC, 0);

	return copy == -1 ? CL_SYSTEM :
	    CHAN_SEND(c, SHIM_FILTERS, 0, &body, copy);
}

static int
shims_send_job(struct chan *c, const struct shim_job *job)
{
	struct buf b;
	int r;

	buf_init(&b, MAX_SPEC_LEN);
	shim_job_put(&b, job);
	if ((r = buf_error(&b)) == 0)
		r = chan_send_memfd(c, MSG_SHIM_JOB, 0, b.data, b.len);
	buf_clear(&b);
	return r;
}

int
shims_send_setup(const struct agentd *a, struct chan *c,
    const struct shims_setup *s)
{
	int fd, r;

	if ((r = shims_send_job(c, s->job)) != 0 ||
	    (r = handledir_open_spool(s->dir, O_RDWR, &fd)) != 0 ||
	    (r = chan_send(c, MSG_SHIM_SPOOL, 0, NULL, fd)) != 0 ||
	    (r = shims_send_fd(c, MSG_SHIM_WAKE, s->wake_fd)) != 0 ||
	    (r = shims_send_fd(c, MSG_SHIM_DIR, s->dir->fd)) != 0 ||
	    (r = shims_send_fd(c, MSG_SHIM_TREE, s->tree_fd)) != 0)
		return r;
	return shims_send_filters(a, c);
}

/* ---------------------------------------------------------- what they leave */

static void
shims_on_sweep(evutil_socket_t fd, short what, void *arg)
{
	struct agentd *a = arg;

	(void)fd;
	(void)what;
	if (cgroup_sweep())
		shims_sweep(a);
}

/* Ours: a moment after the last process in it. */
static void
shims_sweep_here(struct agentd *a)
{
	static const struct timeval pause = { .tv_sec = 1 };

	if (a->shims.sweep == NULL)
		a->shims.sweep = evtimer_new(a->base, shims_on_sweep, a);
	if (a->shims.sweep != NULL && !evtimer_pending(a->shims.sweep, NULL))
		evtimer_add(a->shims.sweep, &pause);
}

void
shims_sweep(struct agentd *a)
{
	int i;

	if (a->conf.shim_socket == NULL) {
		shims_sweep_here(a);
		return;
	}
	/* The one that started them may have been replaced meanwhile: they
	 * are no children of the next, which hears of it from us. */
	for (i = 0; i < 2 && shims_open(a) == CL_OK; i++) {
		if (chan_send(&a->shims.chan, MSG_SHIMD_SWEEP, 0, NULL,
		    -1) == CL_OK)
			break;
		chan_close(&a->shims.chan);
	}
}

void
shims_close(struct agentd *a)
{
	if (a->shims.sweep != NULL)
		event_free(a->shims.sweep);
	a->shims.sweep = NULL;
	chan_close(&a->shims.chan);
}
