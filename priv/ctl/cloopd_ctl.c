/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * cloopd-ctl, the hub's control process: accepts operators on the control
 * socket it was given, asks the kernel who they are, and carries typed
 * requests and descriptors between them and the monitor.  Runs as
 * _cloop-ctl in an empty root with a system-call filter: it opens nothing,
 * and its compromise yields what an operator could ask for, no more.
 */
#include <sys/socket.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/util.h"
#include "common/msg/buf.h"
#include "common/msg/msgcat.h"
#include "ctl_client.h"

#include "sandbox/self/self.h"

#define CHANNEL_FD 3
#define READ_BATCH 256
/* Messages waiting for the monitor: above, clients are not read. */
#define MON_HIGH 256
/* Clients, descriptors of their rows, and a few of our own. */
#define CTL_NOFILE 4096

static void ctl_on_accept(evutil_socket_t fd, short what, void *arg);

void
ctl_send(struct ctl *ctl, uint32_t type, uint64_t id, const struct buf *body,
    int fd)
{
	int r;

	if ((r = imsg_compose(&ctl->mon, type, id, body, fd)) != CL_OK)
		fatal("monitor", "type=%s reason=%s", msgcat_name(type),
		    log_q(cl_strerror(r)));
}

static void
ctl_flush(struct ctl *ctl)
{
	int r;

	if (!event_pending(ctl->mon_out, EV_WRITE, NULL)) {
		r = imsg_write(&ctl->mon);
		if (r == CL_INCOMPLETE)
			event_add(ctl->mon_out, NULL);
		else if (r == CL_EOF)
			_exit(0);	/* no monitor: nothing to do here */
		else if (r != CL_OK)
			fatal("monitor", "reason=%s", log_q(cl_strerror(r)));
	}
	ctlc_set_stalled(ctl, ctl->mon.nqueued > MON_HIGH);
}

static void
ctl_on_write(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	ctl_flush(arg);
}

static void
ctl_confine(void)
{
	struct self_opts o;
	struct self_report rep;
	char text[SELF_REPORT_MAX];

	tzset();
	memset(&o, 0, sizeof(o));
	memset(&rep, 0, sizeof(rep));
	o.profile = SELF_CTL;
	o.user = USER_CTL;
	o.nofile = CTL_NOFILE;
	if (self_confine(&o, &rep) != CL_OK)
		fatal("confine", "step=%s reason=%s",
		    rep.step != NULL ? rep.step : "?", strerror(errno));
	log_info("confined", "%s", self_format_report(&rep, text));
}

/* Listener and configuration are there: nothing is opened from here on. */
static void
ctl_enter_serving(struct ctl *ctl)
{
	struct buf b;

	ctl->accept_ev = event_new(ctl->base, ctl->listen_fd,
	    EV_READ | EV_PERSIST, ctl_on_accept, ctl);
	if (ctl->accept_ev == NULL)
		fatal("start", "reason=\"no event\"");
	ctl_confine();
	ctl->state = MS_SERVING;
	buf_init(&b, MSG_BODY_MAX);
	buf_put_u32(&b, MSGCAT_VERSION);
	ctl_send(ctl, MSG_CTL_READY, 0, &b, -1);
	buf_clear(&b);
	if (event_add(ctl->accept_ev, NULL) == -1)
		fatal("start", "reason=\"no event\"");
}

static void
ctl_on_config(struct ctl *ctl, struct imsg *m)
{
	int level;

	ctl->operator_gid = buf_get_u32(&m->body);
	ctl->viewer_gid = buf_get_u32(&m->body);
	level = buf_get_u8(&m->body);
	if (buf_end(&m->body) != CL_OK || level > LOGL_DEBUG)
		fatal("monitor", "reason=\"bad CTL_CONFIG\"");
	log_init("cloopd-ctl", (enum log_level)level, LOGF_TEXT);
	ctl->has_config = 1;
}

static void
ctl_on_message(struct ctl *ctl, struct imsg *m)
{
	const char *why;

	if (msgcat_check(MSG_M2C, ctl->state, m, &ctl->seen, &why) != CL_OK)
		fatal("monitor", "type=%s reason=%s", msgcat_name(m->type),
		    log_q(why));
	switch (m->type) {
	case MSG_CTL_CONFIG:
		ctl_on_config(ctl, m);
		break;
	case MSG_CTL_LISTEN:
		ctl->listen_fd = imsg_take_fd(m);
		break;
	case MSG_CTL_PACE:
		ctlc_pace(ctl, m->id);
		break;
	default:
		ctlc_put(ctl, m->id, m->type, &m->body, imsg_take_fd(m));
	}
	if (ctl->state == MS_STARTING && ctl->has_config &&
	    ctl->listen_fd != -1)
		ctl_enter_serving(ctl);
}

static void
ctl_on_read(evutil_socket_t fd, short what, void *arg)
{
	struct ctl *ctl = arg;
	struct imsg m;
	int i, r;

	(void)fd;
	(void)what;
	for (i = 0; i < READ_BATCH; i++) {
		if ((r = imsg_read(&ctl->mon, &m)) == CL_INCOMPLETE)
			return;
		if (r == CL_EOF)
			_exit(0);
		if (r != CL_OK)
			fatal("monitor", "reason=%s", log_q(cl_strerror(r)));
		ctl_on_message(ctl, &m);
		imsg_free(&m);
	}
}

static void
ctl_on_accept(evutil_socket_t fd, short what, void *arg)
{
	struct ctl *ctl = arg;
	int client;

	(void)what;
	/*
	 * Somewhat more than may stay: those hear why they may not.  Above
	 * that the rest waits in the socket's queue.
	 */
	if (ctl->nclients >= 2 * MAX_CTL_CLIENTS) {
		event_del(ctl->accept_ev);
		return;
	}
	client = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (client != -1)
		ctlc_new(ctl, client);
	else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
	    errno == ENOBUFS)
		event_del(ctl->accept_ev);	/* the tick tries again */
}

static void
ctl_on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct ctl *ctl = arg;

	(void)fd;
	(void)what;
	ctlc_on_tick(ctl);
	if (ctl->state == MS_SERVING && ctl->nclients < 2 * MAX_CTL_CLIENTS)
		event_add(ctl->accept_ev, NULL);
}

static void
ctl_init(struct ctl *ctl)
{
	struct timeval second = { 1, 0 };

	memset(ctl, 0, sizeof(*ctl));
	LIST_INIT(&ctl->clients);
	ctl->state = MS_STARTING;
	ctl->listen_fd = -1;
	ctl->operator_gid = ctl->viewer_gid = UINT32_MAX;
	if ((ctl->base = event_base_new()) == NULL ||
	    imsg_init(&ctl->mon, CHANNEL_FD, CHAN_QUEUE_MAX) != CL_OK)
		fatal("start", "reason=\"no channel on descriptor 3\"");
	ctl->mon_in = event_new(ctl->base, CHANNEL_FD, EV_READ | EV_PERSIST,
	    ctl_on_read, ctl);
	ctl->mon_out = event_new(ctl->base, CHANNEL_FD, EV_WRITE,
	    ctl_on_write, ctl);
	ctl->tick = event_new(ctl->base, -1, EV_PERSIST, ctl_on_tick, ctl);
	if (ctl->mon_in == NULL || ctl->mon_out == NULL ||
	    ctl->tick == NULL || event_add(ctl->mon_in, NULL) == -1 ||
	    event_add(ctl->tick, &second) == -1)
		fatal("start", "reason=\"no event\"");
}

int
main(void)
{
	static struct ctl ctl;

	log_init("cloopd-ctl", LOGL_INFO, LOGF_TEXT);
	signal(SIGPIPE, SIG_IGN);
	/* The monitor ends us by closing the channel; a terminal's ^C is
	 * its business alone. */
	signal(SIGINT, SIG_IGN);
	ctl_init(&ctl);
	for (;;) {
		if (event_base_loop(ctl.base, EVLOOP_ONCE) == -1)
			fatal("loop", "reason=%s", strerror(errno));
		ctlc_settle_all(&ctl);
		ctl_flush(&ctl);
	}
}
