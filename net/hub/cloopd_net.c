/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * cloopd-net: the hub's unprivileged network process, one of several
 * workers.  It meets every byte an agent sends: TLS, HTTP, WebSocket, JSON.
 * It holds no key, no store, no secret at rest, and after set-up it can open
 * nothing: descriptor 3 is the channel to the monitor, listeners and output
 * files arrive over it.  Without a monitor it ends.
 */
#include <sys/resource.h>
#include <sys/stat.h>

#include <bsd/stdlib.h>
#include <bsd/unistd.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/paths.h"
#include "common/base/util.h"
#include "net/codec/tlsio.h"
#include "sandbox/self/self.h"
#include "hub.h"
#include "tlskey.h"

#define NET_CHANNEL_FD 3
#define NET_IDLE_MS WATCHDOG_MS	/* nothing under way: the watchdog only */
#define NET_TICK_MS 500		/* handshakes, requests, pauses */

/* ---------------------------------------------------------------- channel */

static int
net_on_message(void *arg, struct imsg *m, union msg_any *v)
{
	struct hub *hub = arg;

	hub->now = util_now_ms();
	return hub_on_message(hub, m, v);
}

/* Its end is ours. */
static void
net_on_end(void *arg, const char *why)
{
	(void)arg;
	if (why == NULL)
		_exit(0);
	fatal("channel", "reason=%s", log_q(why));
}

/* ------------------------------------------------------------------ turns */

/* When the timer must run next. */
static void
net_set_tick(struct hub *hub, int busy)
{
	struct timeval tv;
	int64_t ms = NET_IDLE_MS;

	if (hub->sessions.nyoung > 0 || hub->sessions.nrequests > 0 ||
	    hub->sessions.nagain > 0 ||
	    hub->asks.nasks > 0 || hub->listeners.pause_until != 0 ||
	    hub->stop_at != 0)
		ms = NET_TICK_MS;
	if (busy)
		ms = HLOG_INDEX_MS;
	if (hub->watch_at - hub->now < ms)
		ms = hub->watch_at > hub->now ? hub->watch_at - hub->now : 1;
	if (hub->tick_at > hub->now && hub->tick_at <= hub->now + ms)
		return;
	hub->tick_at = hub->now + ms;
	tv.tv_sec = ms / 1000;
	tv.tv_usec = ms % 1000 * 1000;
	(void)event_add(hub->tick, &tv);
}

static void
net_on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct hub *hub = arg;

	(void)fd;
	(void)what;
	hub->now = util_now_ms();
	hub->tick_at = 0;
	ask_on_time(&hub->asks, hub->now);
	hs_on_time(hub);
	hl_on_time(hub);
}

static void
net_check_stop(struct hub *hub)
{
	if (hub->stop_at == 0 || hub->done)
		return;
	if (hub->now < hub->stop_at &&
	    hub->sessions.nyoung + hub->sessions.nlive > 0)
		return;
	HUB_SEND(hub, NET_STOPPED, NULL);
	hub->done = 1;
}

/*
 * One turn: events, then what they left behind.  The monitor hears first:
 * what an agent is told must be known there already.
 */
static void
net_run_turn(struct hub *hub, int *morep)
{
	int busy;

	hs_start_turn(&hub->sessions);
	if (event_base_loop(hub->base, EVLOOP_ONCE |
	    (*morep ? EVLOOP_NONBLOCK : 0)) == -1)
		fatal("event-loop", "reason=%s", cl_strerror(CL_SYSTEM));
	hub->now = util_now_ms();
	if (hub->chan.im.nshort != hub->nshort) {
		hub->nshort = hub->chan.im.nshort;
		hlog_shed(&hub->logs);
	}
	busy = hlog_on_time(&hub->logs, hub->now, hs_report_progress, hub);
	hs_ask_waiting(hub);
	hs_release_ends(hub);
	*morep = hs_settle_all(hub);
	*morep |= hseal_run(hub);
	net_check_stop(hub);
	net_set_tick(hub, busy);
}

/* ----------------------------------------------------------------- set-up */

static void
net_wait_channel(struct hub *hub, short events)
{
	struct pollfd pfd = { .fd = hub->chan.im.fd, .events = events };

	if (poll(&pfd, 1, -1) == -1 && errno != EINTR)
		fatal("channel", "reason=%s", cl_strerror(CL_SYSTEM));
}

/* Everything libraries open or ask for once. */
static void
net_warm_up(struct hub *hub)
{
	unsigned char byte;

	tzset();
	if (OPENSSL_init_ssl(0, NULL) != 1 || RAND_bytes(&byte, 1) != 1)
		fatal("openssl", "reason=initialisation");
	arc4random_buf(&byte, sizeof(byte));
	jx_init(&hub->jx);
	jsonw_init(&hub->jw, MAX_FRAME_LEN, 0);
	if ((hub->base = event_base_new()) == NULL)
		fatal("libevent", "reason=initialisation");
}

/* Configuration, listeners, certificate: up to NET_START. */
static void
net_set_up(struct hub *hub)
{
	while (hub->chan.state == MS_STARTING && !hub->done) {
		net_wait_channel(hub, POLLIN);
		chan_turn(&hub->chan);
	}
	if (hub->done)
		_exit(0);
	if (hub->conf.net.max_agents == 0)
		fatal("set-up", "reason=no configuration");
}

static void
net_confine(struct hub *hub)
{
	struct self_opts o = { .profile = SELF_NET, .user = USER_NET };
	char text[SELF_REPORT_MAX];
	struct self_report rep;
	uint64_t conns = (uint64_t)(hub->conf.net.max_agents +
	    hub->conf.net.max_pending) + 2 * HL_FD_RESERVE;
	struct rlimit rl;
	int r;

	/* One connection an agent; a workload has its two files open while
	 * it says something. */
	o.nofile = conns + (uint64_t)hub->conf.net.max_agents * 2;
	if (getrlimit(RLIMIT_NOFILE, &rl) == 0 && o.nofile > rl.rlim_max)
		o.nofile = rl.rlim_max;
	hub->listeners.max_fds = o.nofile;
	hub->logs.max_opened = (o.nofile > 2 * conns ? o.nofile - conns :
	    o.nofile / 2) / 2;
	if (getrlimit(RLIMIT_FSIZE, &rl) == 0 && rl.rlim_cur != RLIM_INFINITY)
		hub->logs.max_len = rl.rlim_cur;
	if ((r = self_confine(&o, &rep)) != CL_OK)
		fatal("confine", "step=%s reason=%s", rep.step,
		    cl_strerror(r));
	log_debug("confined", "%s", self_format_report(&rep, text));
}

static void
net_send_ready(struct hub *hub)
{
	struct msg_net_ready ready = { .version = MSGCAT_VERSION,
	    .worker = hub->conf.net.worker };

	HUB_SEND(hub, NET_READY, &ready);
}

static void
net_start(struct hub *hub)
{
	hub->now = util_now_ms();
	hub->watch_at = hub->now + WATCHDOG_MS;
	hub->tick = evtimer_new(hub->base, net_on_tick, hub);
	if (hub->tick == NULL || hl_start(hub) != CL_OK ||
	    chan_watch(&hub->chan, hub->base) != CL_OK)
		fatal("libevent", "reason=out of memory");
	chan_go_on(&hub->chan);
	net_send_ready(hub);
	net_set_tick(hub, 0);
	log_info("serving", "worker=%lld listeners=%zu",
	    (long long)hub->conf.net.worker, hub->listeners.nlisteners);
}

static void
net_stop(struct hub *hub)
{
	int64_t until = util_now_ms() + 1000;

	while (chan_has_output(&hub->chan) && util_now_ms() < until) {
		net_wait_channel(hub, POLLOUT);
		chan_flush(&hub->chan);
	}
	log_debug("stopped", "worker=%lld", (long long)hub->conf.net.worker);
}

static void
net_ignore_signals(void)
{
	/* The monitor decides when this process stops.  A file at its limit
	 * is as one on a full disk. */
	static const int numbers[] = { SIGPIPE, SIGHUP, SIGINT, SIGTERM,
		SIGXFSZ };
	size_t i;

	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		(void)signal(numbers[i], SIG_IGN);
}

int
main(void)
{
	static struct hub hub;
	int more = 1;

	log_init("cloopd-net", LOGL_INFO, LOGF_TEXT);
	if (fcntl(NET_CHANNEL_FD, F_GETFD) == -1)
		fatal("usage", "reason=started by cloopd only");
	closefrom(NET_CHANNEL_FD + 1);
	umask(077);
	net_ignore_signals();
	hub.tls.key_fd = -1;
	ask_init(&hub.asks, &hub, hub_send);
	src_init(&hub.sources, &hub.conf);
	hlog_init(&hub.logs);
	hseal_init(&hub.seals);
	hl_init(&hub.listeners);
	hs_init(&hub.sessions);
	if (chan_init(&hub.chan, NET_CHANNEL_FD, MSG_M2N, MSG_N2M,
	    CHAN_QUEUE_MAX, net_on_message, net_on_end, &hub) != CL_OK)
		fatal("channel", "reason=%s", cl_strerror(CL_SYSTEM));
	/* The monitor is read whatever waits for it: it may be the one that
	 * waits, and two that do wait for ever. */
	hub.chan.mark = SIZE_MAX;
	net_set_up(&hub);
	net_warm_up(&hub);
	net_confine(&hub);
	net_start(&hub);
	while (!hub.done)
		net_run_turn(&hub, &more);
	net_stop(&hub);
	return 0;
}
