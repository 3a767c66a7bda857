/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * cloop-shim: one per workload.  It starts with the privileges of
 * cloop-agentd, builds the sandbox, and then keeps CAP_KILL and a few
 * descriptors: it moves the workload's output into the spool, passes signals
 * on, collects the end, writes the exit record.  It survives the agent, which
 * finds it again by its socket, and takes the workload with it when it dies.
 * It trusts the monitor that started it, and nothing the workload writes.
 */
#include <sys/signalfd.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/crash.h"
#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "common/base/xmem.h"
#include "sandbox/box/spawn.h"
#include "shim_int.h"

#define SHIM_CLEAR_POLL_MS 2	/* is the cgroup empty: nothing signals it */
#define SHIM_SAVE_RETRY_MS 1000	/* the exit record, on a failing disk */

static const char *const shim_state_names[] = { "setup", "running",
	"draining", "clearing", "ended", "done" };

static void
shim_save(struct shim *s, int64_t now)
{
	static int is_told;

	if (s->exit_fd == -1) {	/* a step leaves none */
		s->is_saved = 1;
		return;
	}
	s->save_at = now + SHIM_SAVE_RETRY_MS;
	if (shim_exit_save(s->dir_fd, s->exit_fd, &s->end) == CL_OK ||
	    errno == ENOENT) {	/* the directory went: it was delivered */
		s->is_saved = 1;
		return;
	}
	if (!is_told)
		log_error("exit-record", "handle=%s reason=%s",
		    log_q(s->job.handle), log_q(strerror(errno)));
	is_told = 1;
}

static void
shim_end(struct shim *s)
{
	shim_pump_end(&s->pump);
	s->end.total_raw = spool_load_u64(&s->pump.spool.head->total);
	shim_save(s, util_now_ms());
	CRASH_POINT("end.saved");
	cgroup_close(&s->cgroup);
	if (shim_msg_send_exited(s) != CL_OK)
		chan_close(&s->chan);
}

void
shim_enter_state(struct shim *s, enum shim_state next)
{
	log_debug("shim-state", "handle=%s from=%s to=%s",
	    log_q(s->job.handle), shim_state_names[s->state],
	    shim_state_names[next]);
	s->state = next;
	shim_msg_set_state(s);
	switch (next) {
	case SHIM_DRAINING:
		s->drain_at = util_now_ms() + DRAIN_GRACE_MS;
		break;
	case SHIM_CLEARING:
		shim_kill_all(s);
		shim_kill_reap(s);
		break;
	case SHIM_ENDED:
		shim_end(s);
		break;
	case SHIM_DONE:
		/* unlinkat: the one spelling its profile allows. */
		if (s->listen_fd != -1)
			(void)unlinkat(AT_FDCWD, s->job.socket, 0);
		break;
	case SHIM_SETUP:
	case SHIM_RUNNING:
		break;
	}
}

/* Everything that follows from what is known, until nothing does. */
static void
shim_advance(struct shim *s, int64_t now)
{
	if (s->state == SHIM_RUNNING && s->deadline_at != 0 &&
	    now >= s->deadline_at && !s->is_timeout && !s->is_leader_gone) {
		s->is_timeout = 1;
		shim_kill_all(s);
	}
	if (s->state == SHIM_RUNNING && s->is_leader_gone) {
		shim_pump_read(&s->pump);
		/* Whose authority ended gets no grace to write in. */
		shim_enter_state(s, s->pump.fd == -1 || s->is_stopping ?
		    SHIM_CLEARING : SHIM_DRAINING);
	}
	if (s->state == SHIM_DRAINING &&
	    (s->pump.fd == -1 || now >= s->drain_at))
		shim_enter_state(s, SHIM_CLEARING);
	if (s->state == SHIM_CLEARING) {
		shim_kill_reap(s);
		if (shim_kill_is_done(s))
			shim_enter_state(s, SHIM_ENDED);
		else if (s->init_pid == -1)
			shim_kill_all(s);
	}
	/* Nobody can come back to a shim without a socket. */
	if (!s->chan.is_open && s->listen_fd == -1 &&
	    (s->state == SHIM_RUNNING || s->state == SHIM_DRAINING))
		shim_kill_signal(s, SIG_KILL);
	if (s->state == SHIM_ENDED && !s->is_saved && now >= s->save_at)
		shim_save(s, now);
	/* The record says it all to whoever comes. */
	if (s->state == SHIM_ENDED && s->is_saved && !s->chan.is_open)
		shim_enter_state(s, SHIM_DONE);
}

static void
shim_min_wait(int *waitp, int64_t ms)
{
	if (ms < 0)
		ms = 0;
	if (ms < INT32_MAX && (*waitp == -1 || ms < *waitp))
		*waitp = (int)ms;
}

static int
shim_get_wait(const struct shim *s, int64_t now)
{
	int wait = -1;

	if (s->state == SHIM_RUNNING && s->deadline_at != 0 && !s->is_timeout)
		shim_min_wait(&wait, s->deadline_at - now);
	if (s->state == SHIM_DRAINING)
		shim_min_wait(&wait, s->drain_at - now);
	if (s->state == SHIM_CLEARING)
		shim_min_wait(&wait, SHIM_CLEAR_POLL_MS);
	if (s->state == SHIM_ENDED && !s->is_saved)
		shim_min_wait(&wait, s->save_at - now);
	return wait;
}

enum { P_CHAN, P_LISTEN, P_SIGNAL, P_PIPE, NPOLL };

static void
shim_turn(struct shim *s)
{
	struct pollfd pfd[NPOLL];
	struct signalfd_siginfo si;
	int64_t now = util_now_ms();
	int wait = shim_get_wait(s, now), stall = -1, may_read = 0;

	if (s->pump.fd != -1)
		may_read = shim_pump_may_read(&s->pump, now, &stall);
	if (stall != -1)
		shim_min_wait(&wait, stall);
	pfd[P_CHAN].fd = s->chan.is_open ? s->chan.im.fd : -1;
	pfd[P_CHAN].events = chan_has_output(&s->chan) ? POLLIN | POLLOUT :
	    POLLIN;
	pfd[P_LISTEN].fd = s->state == SHIM_SETUP ? -1 : s->listen_fd;
	pfd[P_LISTEN].events = POLLIN;
	pfd[P_SIGNAL].fd = s->signal_fd;
	pfd[P_SIGNAL].events = POLLIN;
	pfd[P_PIPE].fd = may_read ? s->pump.fd : -1;
	pfd[P_PIPE].events = POLLIN;
	if (poll(pfd, NPOLL, wait) == -1) {
		if (errno != EINTR)
			fatal("poll", "reason=%s", strerror(errno));
		return;
	}
	if (pfd[P_PIPE].revents != 0)
		shim_pump_read(&s->pump);
	if ((pfd[P_CHAN].revents & POLLOUT) != 0)
		chan_flush(&s->chan);
	if ((pfd[P_CHAN].revents & ~POLLOUT) != 0)
		chan_turn(&s->chan);
	if (pfd[P_LISTEN].revents != 0)
		shim_msg_accept(s);
	if (pfd[P_SIGNAL].revents != 0) {
		while (read(s->signal_fd, &si, sizeof(si)) > 0)
			;
		shim_kill_reap(s);
	}
	if (s->state != SHIM_SETUP)
		shim_advance(s, util_now_ms());
	else if (!s->chan.is_open)
		shim_enter_state(s, SHIM_DONE);	/* nothing began */
}

static int
shim_open_signals(void)
{
	struct sigaction sa = { .sa_handler = SIG_IGN };
	sigset_t set;

	(void)sigaction(SIGPIPE, &sa, NULL);
	(void)sigaction(SIGHUP, &sa, NULL);
	(void)sigaction(SIGINT, &sa, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &set, NULL) == -1)
		return -1;
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int
main(void)
{
	static struct shim shim;
	struct shim *s = &shim;

	log_init("cloop-shim", LOGL_INFO, LOGF_TEXT);
	shim_pump_init(&s->pump);
	cgroup_init(&s->cgroup);
	s->listen_fd = s->dir_fd = s->tree_fd = s->exit_fd = s->null_fd = -1;
	s->stdin_fd = -1;
	s->init_pid = s->leader_pid = -1;
	s->pump.block = xcalloc(1, SPOOL_BLOCK_LEN);
	if (shim_msg_open(s, SPAWN_CHANNEL_FD) != CL_OK)
		fatal("channel", "reason=%s", strerror(errno));
	if ((s->signal_fd = shim_open_signals()) == -1)
		fatal("signals", "reason=%s", strerror(errno));
	while (s->state != SHIM_DONE)
		shim_turn(s);
	/* What is queued (a refusal) fits the socket's buffer. */
	chan_close(&s->chan);
	return 0;
}
