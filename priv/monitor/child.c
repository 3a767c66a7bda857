/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Starting, feeding, ending and replacing the hub's children.  Runs in the
 * monitor (root).  A child is known by our own fork record only; whatever
 * it sends goes through mon_on_message(), and the worst it can achieve
 * there is its own end.
 */
#include "child.h"

#include <sys/wait.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/paths.h"
#include "common/base/util.h"
#include "logseal.h"
#include "monitor.h"
#include "setup.h"

#include "sandbox/box/spawn.h"
#include "sandbox/self/self.h"

/* Confinement and library warm-up take 0.1 s; sanitizers ten times that. */
#define START_TIMEOUT_MS 30000
/* A process that served this long starts again without delay. */
#define STEADY_MS 10000
/* From the end of its channel to its own end. */
#define EOF_TIMEOUT_MS 2000

static void child_on_timer(evutil_socket_t fd, short what, void *arg);

static const struct child_row {
	const char *program;
	const char *user;
	enum msg_dir in, out;
	int flags;		/* SPAWN_* */
} child_rows[] = {
	[CHILD_KEY] = { "cloopd-key", USER_KEY, MSG_K2M, MSG_M2K, 0 },
	[CHILD_CTL] = { "cloopd-ctl", USER_CTL, MSG_C2M, MSG_M2C, 0 },
	[CHILD_NET] = { "cloopd-net", USER_NET, MSG_N2M, MSG_M2N, 0 },
	/* Outlives a killed monitor, by what it takes to clean up. */
	[CHILD_FENCE] = { "cloopd-fence", NULL, MSG_W2M, MSG_M2W,
	    SPAWN_SURVIVE },
};

const char *
child_format_name(const struct child *c)
{
	static char name[32];

	snprintf(name, sizeof(name), "%s/%u", c->program, c->index);
	return name;
}

void
child_init(struct child *c, struct monitor *mon, enum child_kind kind,
    unsigned int index)
{
	memset(c, 0, sizeof(*c));
	c->mon = mon;
	c->kind = kind;
	c->index = index;
	c->program = child_rows[kind].program;
	c->user = child_rows[kind].user;
	c->chan.in = child_rows[kind].in;
	c->chan.out = child_rows[kind].out;
}

static void
child_add_timer(struct child *c, unsigned int ms)
{
	struct timeval tv = { ms / 1000, (suseconds_t)(ms % 1000) * 1000 };

	if (c->timer == NULL)
		c->timer = event_new(c->mon->base, -1, 0, child_on_timer, c);
	if (c->timer == NULL || event_add(c->timer, &tv) == -1)
		fatal("child-timer", "child=%s", child_format_name(c));
}

/* Forget the channel: nothing more is read from or written to this child. */
static void
child_drop_chan(struct child *c)
{
	chan_close(&c->chan);
	c->has_start = 0;
	c->held_len = 0;
}

static void
child_schedule(struct child *c)
{
	/* What cloopd-fence needs, the monitor gave up (boot.c). */
	if (c->mon->phase == MON_STOPPING || c->kind == CHILD_FENCE)
		return;
	if (c->ready_at != 0 && util_now_ms() - c->ready_at > STEADY_MS)
		c->backoff_ms = 0;
	else if (c->backoff_ms == 0)
		c->backoff_ms = CHILD_BACKOFF_MIN_MS;
	else if (c->backoff_ms < CHILD_BACKOFF_MAX_MS / 2)
		c->backoff_ms *= 2;
	else
		c->backoff_ms = CHILD_BACKOFF_MAX_MS;
	c->ready_at = 0;
	child_add_timer(c, c->backoff_ms);
}

/* The catalogue allowed it, and its body is decoded. */
static int
child_on_msg(void *arg, struct imsg *m, union msg_any *v)
{
	mon_on_body(arg, m, v);
	return CL_OK;
}

/* Its channel is over. */
static void
child_on_chan_end(void *arg, const char *why)
{
	struct child *c = arg;

	if (why != NULL)
		mon_punish(c, "its channel", why);
	else if (c->pid != 0)
		/* It is ending; SIGCHLD says how, or the timer. */
		child_add_timer(c, EOF_TIMEOUT_MS);
}

static int
child_open_chan(struct child *c, int fd)
{
	int r;

	r = chan_open(&c->chan, c->mon->base, fd, child_rows[c->kind].in,
	    child_rows[c->kind].out, CHAN_QUEUE_MAX, child_on_msg,
	    child_on_chan_end, c);
	c->chan.state = c->state;
	return r;
}

int
child_start(struct child *c)
{
	struct spawn_opts o = { .program = c->program, .user = c->user,
		.flags = child_rows[c->kind].flags };
	struct self_user user = { 0 };
	int fd = -1, r;

	c->has_key = 0;
	if (c->kind == CHILD_NET)
		o.fsize = logseal_get_file_max(&c->mon->conf);
	r = c->user == NULL ? CL_OK : self_find_user(c->user, &user);
	if (r != CL_OK || (r = spawn_start(&o, &c->pid, &fd)) != CL_OK) {
		log_error("child-start", "child=%s reason=%s",
		    child_format_name(c), log_q(cl_strerror(r)));
		c->pid = 0;
		child_schedule(c);
		return r;
	}
	c->uid = user.uid;
	c->generation = ++c->mon->last_generation;
	c->state = MS_STARTING;
	if ((r = child_open_chan(c, fd)) != CL_OK) {
		child_kill(c, cl_strerror(r));
		return r;
	}
	log_info("child-start", "child=%s pid=%ld", child_format_name(c),
	    (long)c->pid);
	child_add_timer(c, START_TIMEOUT_MS);
	setup_configure(c);
	return CL_OK;
}

void
child_enter_serving(struct child *c)
{
	log_info("child-ready", "child=%s pid=%ld", child_format_name(c),
	    (long)c->pid);
	c->state = c->chan.state = MS_SERVING;
	c->ready_at = util_now_ms();
	event_del(c->timer);
}

/* Our own unreaped child: the pid cannot name another process. */
static void
child_end(const struct child *c)
{
	if (spawn_kill(c->pid, c->uid) != CL_OK)
		fatal("child-kill", "child=%s pid=%ld reason=%s",
		    child_format_name(c), (long)c->pid,
		    log_q(strerror(errno)));
}

void
child_kill(struct child *c, const char *why)
{
	if (c->pid == 0 || c->state == CHILD_DOWN)
		return;
	snprintf(c->last_end, sizeof(c->last_end), "killed: %s", why);
	log_error("child-kill", "child=%s pid=%ld reason=%s",
	    child_format_name(c), (long)c->pid, log_q(why));
	child_end(c);
	c->state = CHILD_DOWN;
	child_drop_chan(c);
	event_del(c->timer);
	mon_on_down(c, 0);
}

void
child_stop(struct child *c)
{
	struct msg_net_stop body = { BYE_TIMEOUT_MS };

	if (c->pid == 0 || c->state == CHILD_DOWN)
		return;
	c->state = c->chan.state = MS_STOPPING;
	if (c->kind != CHILD_NET)
		return;		/* these end with their channel */
	MON_SEND(c, NET_STOP, 0, &body, -1);
}

/* Text of a wait status: "exit status 1", "signal 11 (Segmentation...)". */
static void
child_format_status(int status, char *dst, size_t len)
{
	if (WIFSIGNALED(status))
		snprintf(dst, len, "signal %d (%s)", WTERMSIG(status),
		    strsignal(WTERMSIG(status)));
	else
		snprintf(dst, len, "exit status %d", WEXITSTATUS(status));
}

/* An end by one of these may be an attack that failed. */
static int
child_is_crash(int status)
{
	if (!WIFSIGNALED(status))
		return 0;
	switch (WTERMSIG(status)) {
	case SIGSEGV:
	case SIGBUS:
	case SIGILL:
	case SIGFPE:
	case SIGABRT:
	case SIGSYS:
	case SIGTRAP:
		return 1;
	default:
		return 0;
	}
}

static void
child_on_end(struct child *c, int status)
{
	char text[96];
	int was = c->state;

	child_format_status(status, text, sizeof(text));
	c->pid = 0;
	if (was != CHILD_DOWN) {
		snprintf(c->last_end, sizeof(c->last_end), "%s", text);
		/* What it said before it died still counts. */
		chan_turn(&c->chan);
		c->state = CHILD_DOWN;
		child_drop_chan(c);
		event_del(c->timer);
	}
	if (c->mon->phase == MON_STOPPING && was == MS_STOPPING)
		log_info("child-end", "child=%s status=%s",
		    child_format_name(c), log_q(text));
	else {
		log_error("child-end", "child=%s status=%s",
		    child_format_name(c), log_q(text));
		c->nrestarts++;
	}
	if (was != CHILD_DOWN)
		mon_on_down(c, child_is_crash(status));
	child_schedule(c);
}

void
child_reap_all(struct monitor *mon)
{
	struct child *c;
	size_t i;
	int status;

	for (i = 0; i < mon->nchildren; i++) {
		c = &mon->children[i];
		if (c->pid == 0)
			continue;
		if (waitpid(c->pid, &status, WNOHANG) == c->pid)
			child_on_end(c, status);
	}
}

void
child_on_second(struct child *c, int64_t late_ms)
{
	static struct log_ratelimit rl;

	if (c->state == CHILD_DOWN)
		return;
	if (c->chan.im.nshort != c->nshort && log_ratelimit(&rl, 1, 60, NULL))
		log_error("descriptors", "reason=\"none is free: children "
		    "wait\"");
	c->nshort = c->chan.im.nshort;
	chan_on_second(&c->chan);
	if (chan_check_stall(&c->chan, util_now_ms(), late_ms))
		child_kill(c, "does not read its messages");
}

static void
child_on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct child *c = arg;

	(void)fd;
	(void)what;
	if (c->state != CHILD_DOWN) {
		child_kill(c, c->state == MS_STARTING ? "not ready in time" :
		    "closed its channel");
		return;
	}
	if (c->pid != 0)	/* killed, not reaped yet: SIGCHLD goes on */
		return;
	if (c->mon->phase != MON_STOPPING)
		(void)child_start(c);
}

/* The end of its channel tells it to clean up: give it the time. */
static void
child_wait_fence(struct child *c)
{
	int64_t until = util_now_ms() + FENCE_STOP_MS;

	while (c->pid != 0 && util_now_ms() < until) {
		if (waitpid(c->pid, NULL, WNOHANG) == c->pid)
			c->pid = 0;
		else
			(void)poll(NULL, 0, 10);
	}
}

void
child_clear(struct child *c)
{
	child_drop_chan(c);
	if (c->kind == CHILD_FENCE && c->state != CHILD_DOWN)
		child_wait_fence(c);
	if (c->timer != NULL)
		event_free(c->timer);
	c->timer = NULL;
	if (c->pid != 0) {
		child_end(c);
		while (waitpid(c->pid, NULL, 0) == -1 && errno == EINTR)
			continue;
		c->pid = 0;
	}
	c->state = CHILD_DOWN;
}
