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
#include "ctl_client.h"

#include "sandbox/self/self.h"

#define CHANNEL_FD 3
/* Clients, descriptors of their rows, and a few of our own. */
#define CTL_NOFILE 4096

static void ctl_on_accept(evutil_socket_t fd, short what, void *arg);

void
ctl_check_sent(int r, uint32_t type)
{
	if (r != CL_OK)
		fatal("monitor", "type=%s reason=%s", msgcat_name(type),
		    log_q(cl_strerror(r)));
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
	struct msg_version ready = { .version = MSGCAT_VERSION };

	ctl->accept_ev = event_new(ctl->base, ctl->listen_fd,
	    EV_READ | EV_PERSIST, ctl_on_accept, ctl);
	if (ctl->accept_ev == NULL)
		fatal("start", "reason=\"no event\"");
	ctl_confine();
	ctl->mon.state = MS_SERVING;
	CTL_SEND(ctl, CTL_READY, 0, &ready);
	if (event_add(ctl->accept_ev, NULL) == -1)
		fatal("start", "reason=\"no event\"");
}

static int
ctl_on_config(struct ctl *ctl, struct imsg *m)
{
	struct msg_ctl_config v;
	int r;

	if ((r = msg_get(MSG_CTL_CONFIG, &m->body, &v)) != CL_OK)
		return r;
	ctl->operator_gid = (uint32_t)v.operator_gid;
	ctl->viewer_gid = (uint32_t)v.viewer_gid;
	log_init("cloopd-ctl", (enum log_level)v.log_level, LOGF_TEXT);
	ctl->has_config = 1;
	return CL_OK;
}

/* From the monitor; what is for a client is not decoded (is_raw). */
static int
ctl_on_message(void *arg, struct imsg *m, union msg_any *v)
{
	struct ctl *ctl = arg;
	int r = CL_OK;

	(void)v;
	switch (m->type) {
	case MSG_CTL_CONFIG:
		r = ctl_on_config(ctl, m);
		break;
	case MSG_CTL_LISTEN:
		ctl->listen_fd = imsg_take_fd(m);
		break;
	case MSG_CTL_PACE:
		ctlc_pace(ctl, m->id);
		break;
	default:
		ctlc_put(ctl, m);
	}
	if (ctl->mon.state == MS_STARTING && ctl->has_config &&
	    ctl->listen_fd != -1)
		ctl_enter_serving(ctl);
	return r;
}

static void
ctl_on_end(void *arg, const char *why)
{
	(void)arg;
	if (why != NULL)
		fatal("monitor", "reason=%s", log_q(why));
	_exit(0);		/* no monitor: nothing to do here */
}

static void
ctl_on_accept(evutil_socket_t fd, short what, void *arg)
{
	struct ctl *ctl = arg;
	int client;

	(void)what;
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
	if (ctl->mon.state == MS_SERVING)
		event_add(ctl->accept_ev, NULL);
}

static void
ctl_init(struct ctl *ctl)
{
	struct timeval second = { 1, 0 };

	memset(ctl, 0, sizeof(*ctl));
	LIST_INIT(&ctl->clients);
	ctl->listen_fd = -1;
	ctl->operator_gid = ctl->viewer_gid = UINT32_MAX;
	if ((ctl->base = event_base_new()) == NULL ||
	    chan_open(&ctl->mon, ctl->base, CHANNEL_FD, MSG_M2C, MSG_C2M,
	    CHAN_QUEUE_MAX, ctl_on_message, ctl_on_end, ctl) != CL_OK)
		fatal("start", "reason=\"no channel on descriptor 3\"");
	ctl->mon.is_raw = 1;
	/* It is always read: the clients wait for it (ctlc_check_stall), or
	 * each end would wait for the other. */
	ctl->mon.mark = SIZE_MAX;
	ctl->tick = event_new(ctl->base, -1, EV_PERSIST, ctl_on_tick, ctl);
	if (ctl->tick == NULL || event_add(ctl->tick, &second) == -1)
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
		ctlc_check_stall(&ctl);
	}
}
