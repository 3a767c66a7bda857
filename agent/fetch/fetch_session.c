/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The engine of the session role: events are queued by whoever sees them
 * and run once per turn of the loop against the table of fetch_action.c;
 * one timer serves all deadlines.
 */
#include "fetch_session.h"

#include <event2/event.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/util.h"

static void fs_on_turn(evutil_socket_t, short, void *);

static const char *const fs_state_names[] = {
#define X(name) #name,
	FS_STATES(X)
#undef X
};

static const char *const fs_event_names[] = {
#define X(name) #name,
	FS_EVENTS(X)
#undef X
};

/* How long a state may last; WAIT sets its own, UP has its watchdog. */
static const int64_t fs_state_ms[FS_NSTATES] = {
	[FS_CAPS] = ASK_TIMEOUT_MS,
	[FS_RESOLVE] = RESOLVE_TIMEOUT_MS + 5000,
	[FS_HELLO] = HANDSHAKE_TIMEOUT_MS,
	[FS_SAVE] = ASK_TIMEOUT_MS,
	/* DIAL and CLOSING: the link has deadlines and always ends. */
};

const char *
fs_state_name(enum fs_state state)
{
	return fs_state_names[state];
}

void
fs_wake(struct fs *fs)
{
	event_active(fs->turn, EV_TIMEOUT, 0);
}

void
fs_put_event(struct fs *fs, enum fs_event ev)
{
	if (fs->nqueue == FS_QUEUE_MAX)
		fatal("events", "event=%s reason=\"too many in one turn\"",
		    fs_event_names[ev]);
	fs->queue[fs->nqueue++] = ev;
	fs_wake(fs);
}

/* The first reason of an attempt is the true one. */
void
fs_fail(struct fs *fs, const char *fmt, ...)
{
	va_list ap;

	if (fs->why[0] != '\0')
		return;
	va_start(ap, fmt);
	vsnprintf(fs->why, sizeof(fs->why), fmt, ap);
	va_end(ap);
	fs_put_event(fs, FE_FAILED);
}

void
fs_enter_state(struct fs *fs, enum fs_state state, enum fs_event ev)
{
	log_debug("state", "from=%s to=%s event=%s",
	    fs_state_names[fs->state], fs_state_names[state],
	    fs_event_names[ev]);
	fs->state = state;
	fs->state_deadline_at = fs_state_ms[state] == 0 ? 0 :
	    util_now_ms() + fs_state_ms[state];
}

static void
fs_run_event(struct fs *fs, enum fs_event ev)
{
	const struct fs_row *row = &fs_table[fs->state][ev];

	if (row->act == NULL) {
		/* Late news about a state that is over. */
		log_debug("state-ignored", "state=%s event=%s",
		    fs_state_names[fs->state], fs_event_names[ev]);
		return;
	}
	fs_enter_state(fs, row->next, ev);
	row->act(fs);
}

static void
fs_check_deadlines(struct fs *fs)
{
	int64_t now = util_now_ms();

	if (fs->state_deadline_at != 0 && fs->state_deadline_at <= now) {
		fs->state_deadline_at = 0;
		fs_put_event(fs, fs->state == FS_WAIT ? FE_DUE : FE_TIMEOUT);
	}
	fa_check_deadlines(fs, now);
	if (fs->state != FS_UP)
		return;
	if (fs->beat_at <= now)
		fs_put_beat(fs);
	/* The hub answers each beat; nothing at all means that the connection
	 * is dead, whatever TCP believes. */
	if (now - fs->heard_at > 3 * fs->beat_ms + HEARTBEAT_S * 1000)
		fs_fail(fs, "the hub said nothing for %lld s",
		    (long long)(now - fs->heard_at) / 1000);
}

static int64_t
fs_get_earlier(int64_t a, int64_t b)
{
	if (a == 0 || b == 0)
		return a != 0 ? a : b;
	return a < b ? a : b;
}

static void
fs_set_timer(struct fs *fs)
{
	struct timeval tv;
	struct fw *w;
	int64_t at, left;

	at = fs_get_earlier(fs->state_deadline_at, fa_get_deadline(fs));
	if (fs->state == FS_UP) {
		at = fs_get_earlier(at, fs->beat_at);
		at = fs_get_earlier(at, fs->heard_at + 3 * fs->beat_ms +
		    HEARTBEAT_S * 1000 + 1);
		TAILQ_FOREACH(w, &fs->waiting, dirty_entry)
			at = fs_get_earlier(at, w->out.due_at);
	}
	evtimer_del(fs->timer);
	if (at == 0)
		return;
	if ((left = at - util_now_ms()) < 0)
		left = 0;
	tv.tv_sec = (time_t)(left / 1000);
	tv.tv_usec = (suseconds_t)(left % 1000 * 1000);
	evtimer_add(fs->timer, &tv);
}

static void
fs_on_turn(evutil_socket_t fd, short what, void *arg)
{
	struct fs *fs = arg;
	enum fs_event ev;

	(void)fd;
	(void)what;
	fs_check_deadlines(fs);
	while (fs->nqueue > 0) {
		ev = fs->queue[0];
		fs->nqueue--;
		memmove(fs->queue, fs->queue + 1,
		    fs->nqueue * sizeof(fs->queue[0]));
		fs_run_event(fs, ev);
	}
	if (fs->state == FS_UP)
		fo_pump(fs);
	fs_set_timer(fs);
}

static void
fs_on_open(void *arg)
{
	fs_put_event(arg, FE_OPEN);
}

static void
fs_on_written(void *arg)
{
	struct fs *fs = arg;

	fo_on_written(fs);
	fs_wake(fs);
}

static void
fs_on_end(void *arg, const char *why)
{
	struct fs *fs = arg;

	if (fs->why[0] == '\0')
		snprintf(fs->why, sizeof(fs->why), "%s", why);
	fs_put_event(fs, FE_ENDED);
}

static const struct fl_ops fs_link_ops = { fs_on_open, fs_on_message,
	fs_on_written, fs_on_end };

int
fs_open(struct fs *fs, struct event_base *base)
{
	fs->base = base;
	TAILQ_INIT(&fs->works);
	TAILQ_INIT(&fs->dirty);
	TAILQ_INIT(&fs->waiting);
	TAILQ_INIT(&fs->incoming);
	TAILQ_INIT(&fs->asks);
	fs->next_ask = 1;
	fs->state = FS_WAIT;
	caps_init(&fs->caps);
	jx_init(&fs->jx);
	jsonw_init(&fs->out, MAX_FRAME_LEN, 0);
	fs->turn = event_new(base, -1, 0, fs_on_turn, fs);
	fs->timer = evtimer_new(base, fs_on_turn, fs);
	fs->link = fl_new(base, &fs_link_ops, fs);
	if (fs->turn == NULL || fs->timer == NULL || fs->link == NULL)
		return CL_NOMEM;
	return CL_OK;
}

void
fs_start(struct fs *fs)
{
	fs_put_event(fs, FE_DUE);
}
