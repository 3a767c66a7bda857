/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * What agentd-fetch says: frames to the hub, messages and questions to the
 * monitor, and why a link ends.  Everything else of the session role stands
 * on this.  Payloads are never logged.  Each question has a deadline; what an
 * answer belongs to is found by id and may be gone.
 */
#include "fetch.h"

#include <event2/event.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/utf8.h"
#include "common/base/util.h"

#define FETCH_OUT_KEEP 65536	/* writer memory kept between frames */
/* Asks that belong to no frame: resolve, caps, enrolled. */
#define FETCH_ASK_OWN_MAX 8
/* Jobs a hub may have running beyond the workloads it may start. */
#define FETCH_ASK_JOBS_EXTRA 16

const char *const fetch_state_names[] = {
#define X(name) #name,
	FETCH_STATES(X)
#undef X
};

const char *const fetch_event_names[] = {
#define X(name) #name,
	FETCH_EVENTS(X)
#undef X
};

void
fetch_wake(struct fetch *f)
{
	event_active(f->turn, EV_TIMEOUT, 0);
}

void
fetch_put_event(struct fetch *f, enum fetch_event ev)
{
	if (f->nqueue == FETCH_QUEUE_MAX)
		fatal("events", "event=%s reason=\"too many in one turn\"",
		    fetch_event_names[ev]);
	f->queue[f->nqueue++] = ev;
	fetch_wake(f);
}

/* The first reason of an attempt is the true one. */
void
fetch_fail(struct fetch *f, const char *fmt, ...)
{
	va_list ap;

	if (f->why[0] != '\0')
		return;
	va_start(ap, fmt);
	vsnprintf(f->why, sizeof(f->why), fmt, ap);
	va_end(ap);
	fetch_put_event(f, FEV_FAILED);
}

/* ------------------------------------------------------------------ the hub */

int
fetch_send(struct fetch *f, enum frame_type type, const char *id,
    const char *handle, const void *payload, uint64_t *posp)
{
	/* Before the welcome: readable for hubs of any age. */
	int v = f->negotiated != 0 ? f->negotiated : PROTO_MIN;
	int r;

	jsonw_reset(&f->out);
	r = frame_encode(&f->out, type, v, id, handle, payload);
	if (r != 0) {
		log_error("frame-out", "type=%s reason=\"%s\"",
		    frame_name(type), cl_strerror(r));
		return r;
	}
	log_debug("frame-out", "type=%s id=%s handle=%s len=%zu",
	    frame_name(type), log_q(id), log_q(handle), f->out.len);
	r = fetch_link_send(f->link, f->out.data, f->out.len, posp);
	if (r == CL_LIMIT)
		fetch_fail(f, "the hub does not read what it asked for");
	else if (r != 0 && r != CL_STATE)
		fetch_fail(f, "cannot send: %s", cl_strerror(r));
	if (f->out.cap > FETCH_OUT_KEEP)
		jsonw_clear(&f->out);
	return r;
}

int
fetch_send_error(struct fetch *f, const char *id, const char *code,
    const char *message)
{
	struct frame_error e = { .code = FETCH_TEXT(code),
	    .message = (char *)(uintptr_t)message };

	log_debug("frame-refused", "id=%s code=%s reason=%s", log_q(id), code,
	    log_q(message));
	return fetch_send(f, FRAME_ERROR, id, NULL, &e, NULL);
}

/* -------------------------------------------------------------- the monitor */

void
fetch_tell(struct fetch *f, uint32_t type, uint64_t id, const void *v, int fd)
{
	int r;

	if ((r = chan_send(&f->chan, type, id, v, fd)) != 0)
		fatal("monitor-write", "type=%s reason=\"%s\"",
		    msgcat_name(type), cl_strerror(r));
}

void
fetch_cut_text(char *dst, size_t size, const char *text)
{
	size_t len = strlen(text);

	if (len >= size)
		len = utf8_cut(text, size - 1);
	memcpy(dst, text, len);
	dst[len] = '\0';
}

void
fetch_report_session(struct fetch *f, uint8_t link_state, const char *why)
{
	char detail[MAX_LINK_DETAIL_LEN + 1];
	struct msg_link link = { .state = link_state,
	    .negotiated = f->negotiated, .detail = detail,
	    .fatal = link_state == LINK_DOWN ? f->fatal : FATAL_NONE };

	fetch_cut_text(detail, sizeof(detail), why);
	FETCH_TELL(f, SESSION, &link);
}

struct fetch_ask *
fetch_ask_put(struct fetch *f, uint32_t type, const void *v, int fd,
    int64_t timeout_ms)
{
	struct fetch_ask *a = NULL;

	if (f->nasks < (size_t)f->conf.max_concurrent + FETCH_ASK_JOBS_EXTRA +
	    FETCH_ASK_OWN_MAX)
		a = calloc(1, sizeof(*a));
	if (a == NULL) {
		if (fd != -1)
			close(fd);
		return NULL;
	}
	a->id = f->next_ask++;
	a->type = type;
	a->deadline_at = util_now_ms() + timeout_ms;
	TAILQ_INSERT_TAIL(&f->asks, a, entry);
	f->nasks++;
	fetch_tell(f, type, a->id, v, fd);
	return a;
}

struct fetch_ask *
fetch_ask_find(struct fetch *f, uint64_t id, uint32_t type)
{
	struct fetch_ask *a;

	TAILQ_FOREACH(a, &f->asks, entry) {
		if (a->id == id && a->type == type)
			return a;
	}
	return NULL;
}

struct fetch_ask *
fetch_ask_find_handle(struct fetch *f, uint32_t type, const char *handle)
{
	struct fetch_ask *a;

	TAILQ_FOREACH(a, &f->asks, entry) {
		if (a->type == type && strcmp(a->handle, handle) == 0)
			return a;
	}
	return NULL;
}

void
fetch_ask_del(struct fetch *f, struct fetch_ask *a)
{
	if (a == NULL)
		return;
	TAILQ_REMOVE(&f->asks, a, entry);
	f->nasks--;
	if (a->free_arg != NULL)
		a->free_arg(a->arg);
	free(a);
}

void
fetch_ask_check_deadlines(struct fetch *f, int64_t now)
{
	struct fetch_ask *a, *next;

	for (a = TAILQ_FIRST(&f->asks); a != NULL; a = next) {
		next = TAILQ_NEXT(a, entry);
		if (a->deadline_at > now)
			continue;
		log_warn("ask-timeout", "type=%s", msgcat_name(a->type));
		if (a->on_timeout != NULL)
			a->on_timeout(f, a);
		fetch_ask_del(f, a);
	}
}

int64_t
fetch_ask_get_deadline(const struct fetch *f)
{
	const struct fetch_ask *a;
	int64_t at = 0;

	TAILQ_FOREACH(a, &f->asks, entry) {
		if (at == 0 || a->deadline_at < at)
			at = a->deadline_at;
	}
	return at;
}

void
fetch_ask_set_frame(struct fetch *f, struct fetch_ask *a,
    const struct frame_env *env, fetch_ask_fn *on_timeout)
{
	a->session = f->session;
	memcpy(a->corr, env->id, sizeof(a->corr));
	memcpy(a->handle, env->handle, sizeof(a->handle));
	a->on_timeout = on_timeout;
}

int
fetch_ask_is_wanted(const struct fetch *f, const struct fetch_ask *a)
{
	return a != NULL && a->session == f->session && f->state == FST_UP;
}
