/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * cloop-shimd: starts shims for a device monitor that may not build a
 * sandbox itself (ShimSocket in cloop-agentd.conf(5)).  Under systemd it is
 * a unit of its own, which workloads live in: the agent's unit then needs
 * neither CAP_SYS_ADMIN nor namespaces.  It decides nothing.  Its socket is
 * root's alone, and what comes over it (dev_shimd.def) is held against
 * the catalogue; the channels that it passes on are not read here.
 *
 * A shim starts in the mount namespace of the monitor that asks, so that
 * the directories that monitor opened are where the shim looks for them.
 */
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/listenfds.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "common/msg/chan.h"
#include "sandbox/box/cgroup.h"
#include "sandbox/box/probe.h"
#include "sandbox/box/spawn.h"
#include "sandbox/self/self.h"

#define SHIMD_QUEUE 16		/* answers to a monitor that does not read */
#define SHIMD_SWEEP_MS 1000	/* again, while one still has members */

struct shimd;

struct shimd_client {
	struct shimd *d;
	struct chan chan;
	int mnt_fd;
	pid_t pid;		/* for logs */
};

struct shimd {
	int listen_fd;
	int signal_fd;
	int is_stopping;
	int64_t sweep_at;	/* monotonic ms; 0: nothing to sweep */
	struct shimd_client clients[MAX_SHIMD_CLIENTS];
};

/* -------------------------------------------------------------- a monitor */

/* The channel is closed; why NULL: as it should be. */
static void
shimd_on_end(void *arg, const char *why)
{
	struct shimd_client *c = arg;

	if (why != NULL)
		log_error("client-violation", "pid=%ld reason=%s",
		    (long)c->pid, log_q(why));
	else
		log_debug("client-gone", "pid=%ld", (long)c->pid);
	if (c->mnt_fd != -1)
		close(c->mnt_fd);
	c->mnt_fd = -1;
}

static int
shimd_on_hello(struct shimd_client *c, struct imsg *m,
    const struct msg_version *hello)
{
	struct msg_version ours = { .version = MSGCAT_VERSION };

	if (hello->version != MSGCAT_VERSION) {
		log_error("client-version", "pid=%ld version=%u ours=%d "
		    "reason=\"cloop-agentd and cloop-shimd are of different "
		    "releases: restart both\"", (long)c->pid,
		    (unsigned int)hello->version, MSGCAT_VERSION);
		return CL_VERSION;
	}
	c->mnt_fd = imsg_take_fd(m);
	c->chan.state = MS_SERVING;
	return CHAN_SEND(&c->chan, SHIMD_HELLO_ANS, 0, &ours, -1);
}

/* The monitor hears of a failure; it says why nothing was started. */
static int
shimd_on_start(struct shimd_client *c, struct imsg *m)
{
	struct spawn_opts o = { .program = "cloop-shim",
	    .flags = SPAWN_SURVIVE, .channel_fd = m->fd,
	    .mnt_fd = c->mnt_fd };
	struct msg_shimd_start_ans ans = { .error = 0 };
	pid_t pid;
	int fd, r;

	if ((r = spawn_start(&o, &pid, &fd)) == CL_OK)
		ans.pid = pid;
	else {
		ans.error = (uint64_t)(r == CL_SYSTEM && errno != 0 ? errno :
		    r == CL_NOTFOUND ? ENOENT : EIO);
		log_error("shim-start", "client=%ld reason=%s", (long)c->pid,
		    log_q(strerror((int)ans.error)));
	}
	return CHAN_SEND(&c->chan, SHIMD_START_ANS, 0, &ans, -1);
}

static int
shimd_on_msg(void *arg, struct imsg *m, union msg_any *v)
{
	struct shimd_client *c = arg;

	switch (m->type) {
	case MSG_SHIMD_HELLO:
		return shimd_on_hello(c, m, &v->SHIMD_HELLO);
	case MSG_SHIMD_START:
		return shimd_on_start(c, m);
	case MSG_SHIMD_SWEEP:
		c->d->sweep_at = util_now_ms();
		return CL_OK;
	default:
		return CL_FORMAT;
	}
}

static struct shimd_client *
shimd_find_free(struct shimd *d)
{
	size_t i;

	for (i = 0; i < MAX_SHIMD_CLIENTS; i++)
		if (!d->clients[i].chan.is_open)
			return &d->clients[i];
	return NULL;
}

/* Root only, whatever the mode of the socket is. */
static void
shimd_accept(struct shimd *d)
{
	struct shimd_client *c;
	struct ucred peer;
	socklen_t len = sizeof(peer);
	int fd;

	fd = accept4(d->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd == -1)
		return;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == -1 ||
	    peer.uid != geteuid()) {
		log_error("client-refused", "uid=%ld reason=\"not the user "
		    "of cloop-shimd\"", (long)peer.uid);
		close(fd);
		return;
	}
	if ((c = shimd_find_free(d)) == NULL) {
		log_error("client-refused", "pid=%ld reason=\"there are %d "
		    "agents already\"", (long)peer.pid, MAX_SHIMD_CLIENTS);
		close(fd);
		return;
	}
	memset(c, 0, sizeof(*c));
	c->mnt_fd = -1;
	c->pid = peer.pid;
	c->d = d;
	if (chan_init(&c->chan, fd, MSG_M2D, MSG_D2M, SHIMD_QUEUE,
	    shimd_on_msg, shimd_on_end, c) != CL_OK)
		return;
	log_debug("client", "pid=%ld", (long)peer.pid);
}

/* ------------------------------------------------------------------- loop */

static void
shimd_on_signals(struct shimd *d)
{
	struct signalfd_siginfo si;
	int status;

	while (read(d->signal_fd, &si, sizeof(si)) == (ssize_t)sizeof(si))
		if (si.ssi_signo == SIGTERM || si.ssi_signo == SIGINT)
			d->is_stopping = 1;
	/* How it ended is its monitor's to know, from its record. */
	while (waitpid(-1, &status, WNOHANG) > 0)
		d->sweep_at = util_now_ms();
}

static void
shimd_sweep(struct shimd *d)
{
	int64_t now = util_now_ms();

	if (d->sweep_at != 0 && now >= d->sweep_at)
		d->sweep_at = cgroup_sweep() ? now + SHIMD_SWEEP_MS : 0;
}

static void
shimd_turn(struct shimd *d)
{
	struct pollfd pfd[2 + MAX_SHIMD_CLIENTS];
	struct shimd_client *c;
	int64_t left;
	int wait = -1;
	size_t i;

	pfd[0] = (struct pollfd){ .fd = d->signal_fd, .events = POLLIN };
	pfd[1] = (struct pollfd){ .fd = d->listen_fd, .events = POLLIN };
	for (i = 0; i < MAX_SHIMD_CLIENTS; i++) {
		c = &d->clients[i];
		pfd[2 + i] = (struct pollfd){ .fd = -1 };
		if (!c->chan.is_open)
			continue;
		pfd[2 + i].fd = c->chan.im.fd;
		pfd[2 + i].events = chan_has_output(&c->chan) ?
		    POLLIN | POLLOUT : POLLIN;
	}
	if (d->sweep_at != 0) {
		left = d->sweep_at - util_now_ms();
		wait = left > 0 ? (int)left : 0;
	}
	if (poll(pfd, 2 + MAX_SHIMD_CLIENTS, wait) == -1) {
		if (errno != EINTR)
			fatal("poll", "reason=%s", log_q(strerror(errno)));
		return;
	}
	if (pfd[0].revents != 0)
		shimd_on_signals(d);
	for (i = 0; i < MAX_SHIMD_CLIENTS; i++) {
		c = &d->clients[i];
		if ((pfd[2 + i].revents & POLLOUT) != 0)
			chan_flush(&c->chan);
		if ((pfd[2 + i].revents & ~POLLOUT) != 0)
			chan_turn(&c->chan);
	}
	if (pfd[1].revents != 0)
		shimd_accept(d);
	shimd_sweep(d);
}

/* ------------------------------------------------------------------ start */

static int
shimd_open_socket(void)
{
	int type = 0, listens = 0;
	socklen_t len = sizeof(int);
	char err[256];
	size_t n;

	if (listenfds_take(1, &n, err, sizeof(err)) != CL_OK)
		fatal("start", "reason=%s", log_q(err));
	if (n == 0)
		fatal("start", "reason=\"no socket was passed: "
		    "cloop-shimd.socket starts this program\"");
	if (getsockopt(LISTENFDS_FIRST, SOL_SOCKET, SO_TYPE, &type,
	    &len) == -1 || getsockopt(LISTENFDS_FIRST, SOL_SOCKET,
	    SO_ACCEPTCONN, &listens, &len) == -1 ||
	    type != SOCK_SEQPACKET || !listens)
		fatal("start", "reason=\"descriptor %d is not a listening "
		    "socket of packets: correct cloop-shimd.socket\"",
		    LISTENFDS_FIRST);
	if (util_set_nonblock(LISTENFDS_FIRST) != CL_OK)
		fatal("start", "reason=%s", log_q(strerror(errno)));
	return LISTENFDS_FIRST;
}

static int
shimd_open_signals(void)
{
	struct sigaction sa = { .sa_handler = SIG_IGN };
	sigset_t set;

	(void)sigaction(SIGPIPE, &sa, NULL);
	(void)sigaction(SIGHUP, &sa, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	if (sigprocmask(SIG_BLOCK, &set, NULL) == -1)
		return -1;
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void
shimd_confine(void)
{
	char text[SELF_REPORT_MAX], found[PROBE_TEXT_MAX];
	struct self_report rep;
	struct probe probe;
	int r;

	probe_load(&probe);
	log_info("confinement", "%s", probe_format(&probe, found));
	if ((r = self_confine_monitor(SELF_MONITOR_SHIMS, &rep)) != CL_OK)
		fatal("confine", "step=%s reason=\"%s\"", rep.step,
		    cl_strerror(r));
	log_info("confined", "%s", self_format_report(&rep, text));
}

int
main(void)
{
	static struct shimd shimd;
	struct shimd *d = &shimd;
	size_t i;

	log_init("cloop-shimd", LOGL_INFO, LOGF_TEXT);
	d->listen_fd = shimd_open_socket();
	shimd_confine();
	if ((d->signal_fd = shimd_open_signals()) == -1)
		fatal("signals", "reason=%s", log_q(strerror(errno)));
	d->sweep_at = util_now_ms();
	(void)util_notify("READY=1");
	while (!d->is_stopping)
		shimd_turn(d);
	/* Shims go on: their monitors have them, and the next one of us
	 * sweeps. */
	for (i = 0; i < MAX_SHIMD_CLIENTS; i++)
		chan_close(&d->clients[i].chan);
	log_info("exit", "status=0");
	return 0;
}
