/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The monitor's message core (root): which handler a message gets, what
 * happens to who breaks a rule, and the turn that ties answers to commits.
 * A child can make this process kill that child, and nothing else.
 */
#include "monitor.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/string.h>

#include <event2/event.h>

#include "common/base/crash.h"
#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "common/msg/msgcat.h"
#include "answers.h"
#include "boot.h"
#include "ctlout.h"
#include "life.h"
#include "setup.h"

#define MON_TYPES 0x400		/* types of the hub's channels are below */

/* A message held until the end of the turn. */
struct mon_out {
	struct mon_out *next;
	struct child *child;
	uint64_t generation;
	uint64_t id;
	uint32_t type;
	int fd;
	int durable;
	size_t len;
	uint8_t data[];
};

struct mon_after {
	struct mon_after *next;
	mon_after_fn *fn;
	uint64_t id, aux;
};


/* Each with its own type of body. */
typedef int mon_body_fn(struct monitor *, struct child *, struct imsg *,
    union msg_any *);
#define X(name, fn)                                                            \
	static int                                                             \
	mon_on_##name(struct monitor *mon, struct child *c, struct imsg *m,    \
	    union msg_any *v)                                                  \
	{                                                                      \
		return fn(mon, c, m, &v->name);                                \
	}
MON_HANDLERS(X)
#undef X
#define X(name, fn)                                                            \
	static int                                                             \
	mon_on_##name(struct monitor *mon, struct child *c, struct imsg *m,    \
	    union msg_any *v)                                                  \
	{                                                                      \
		(void)c;                                                       \
		fn(mon, answer_ctl_begin(mon, m), m, &v->name);                \
		return CL_OK;                                                  \
	}
CTL_HANDLERS(X)
#undef X
static mon_body_fn *const mon_bodies[MON_TYPES] = {
#define X(name, fn) [MSG_##name] = mon_on_##name,
	MON_HANDLERS(X)
	CTL_HANDLERS(X)
#undef X
};

int
mon_has_handler(uint32_t type)
{
	return type < MON_TYPES && mon_bodies[type] != NULL;
}

void
mon_punish(struct child *c, const char *what, const char *why)
{
	char text[96];

	log_error("child-violation", "child=%s pid=%ld type=%s reason=%s",
	    child_format_name(c), (long)c->pid, what, log_q(why));
	strlcpy(text, "broke the rules: ", sizeof(text));
	strlcat(text, what, sizeof(text));
	child_kill(c, text);
}

/* --- turns --- */

void
mon_init_turn(struct monitor *mon)
{
	mon->out_head = NULL;
	mon->out_tailp = &mon->out_head;
	mon->after_head = NULL;
	mon->after_tailp = &mon->after_head;
}

void
mon_begin_turn(struct monitor *mon)
{
	int r;

	if ((r = store_begin_turn(mon->store)) != CL_OK)
		mon_set_error(mon, r == CL_DB ? store_error(mon->store) :
		    cl_strerror(r));
}

static void
mon_free_out(struct mon_out *o)
{
	if (o->fd != -1)
		close(o->fd);
	/* Bodies may carry a credential. */
	explicit_bzero(o->data, o->len);
	free(o);
}

void
mon_send(struct child *c, uint32_t type, uint64_t id, struct buf *body,
    int fd)
{
	struct mon_out *o = NULL;
	size_t len = body != NULL ? body->len : 0;
	int r = body != NULL ? buf_error(body) : CL_OK;

	if (c != NULL && c->state != CHILD_DOWN && r == CL_OK &&
	    (o = calloc(1, sizeof(*o) + len)) == NULL)
		r = CL_NOMEM;
	if (o != NULL) {
		o->child = c;
		o->generation = c->generation;
		o->type = type;
		o->id = id;
		o->fd = fd;
		o->durable = c->mon->durable;
		o->len = len;
		if (len > 0)
			memcpy(o->data, body->data, len);
		*c->mon->out_tailp = o;
		c->mon->out_tailp = &o->next;
		/* Enough for one turn: what it asks next can wait. */
		if ((c->held_len += sizeof(*o) + len) > c->chan.mark)
			chan_hold(&c->chan);
	} else if (fd != -1)
		close(fd);
	if (body != NULL)
		buf_clear(body);
	/* It would wait for this message for ever. */
	if (r != CL_OK && c != NULL && c->state != CHILD_DOWN)
		child_kill(c, cl_strerror(r));
}

void
mon_send_body(struct child *c, uint32_t type, uint64_t id, const void *v,
    int fd)
{
	struct buf b;

	buf_init(&b, MSG_BODY_MAX);
	(void)msg_put(type, v, &b);	/* what fails sticks to b */
	mon_send(c, type, id, &b, fd);
}

void
mon_add_after(struct monitor *mon, mon_after_fn *fn, uint64_t id,
    uint64_t aux)
{
	struct mon_after *a;

	if ((a = calloc(1, sizeof(*a))) == NULL)
		fatal("turn", "reason=\"%s\"", cl_strerror(CL_NOMEM));
	a->fn = fn;
	a->id = id;
	a->aux = aux;
	*mon->after_tailp = a;
	mon->after_tailp = &a->next;
}

/* Hand the held messages to the channels; durable ones only when ok. */
static void
mon_release(struct monitor *mon, int ok)
{
	struct mon_out *o;
	struct buf b;
	int r;

	while ((o = mon->out_head) != NULL) {
		if ((mon->out_head = o->next) == NULL)
			mon->out_tailp = &mon->out_head;
		if (o->child->chan.is_open &&
		    o->child->generation == o->generation &&
		    (ok || !o->durable)) {
			buf_init_read(&b, o->data, o->len);
			r = chan_queue_buf(&o->child->chan, o->type, o->id,
			    &b, o->fd);
			o->fd = -1;
			if (r != CL_OK)
				child_kill(o->child, cl_strerror(r));
		}
		mon_free_out(o);
	}
}

static void
mon_run_after(struct monitor *mon, int ok)
{
	struct mon_after *list = mon->after_head, *a;

	mon->after_head = NULL;
	mon->after_tailp = &mon->after_head;
	while ((a = list) != NULL) {
		list = a->next;
		a->fn(mon, a->id, a->aux, ok);
		free(a);
	}
}

static int
mon_commit(struct monitor *mon)
{
	int dirty = store_is_dirty(mon->store), r;

	CRASH_POINT("commit.before");
	r = store_commit_turn(mon->store);
	CRASH_POINT("commit.after");

	if (r == CL_OK) {
		if (dirty)
			auditlog_send(mon);
		return 1;
	}
	mon_set_error(mon, r == CL_DB ? store_error(mon->store) :
	    cl_strerror(r));
	store_abort_turn(mon->store);
	return 0;
}

void
mon_end_turn(struct monitor *mon)
{
	size_t i;
	int ok;

	/* What runs after a commit may itself write and send. */
	do {
		ok = mon_commit(mon);
		mon_begin_turn(mon);
		mon_release(mon, ok);
		CRASH_POINT("commit.released");
		mon_run_after(mon, ok);
	} while (mon->out_head != NULL || mon->after_head != NULL);
	for (i = 0; i < mon->nchildren; i++) {
		mon->children[i].held_len = 0;
		chan_flush(&mon->children[i].chan);
		chan_go_on(&mon->children[i].chan);
	}
}

/* Forget what was held since. */
static void
mon_cut_out(struct monitor *mon, struct mon_out **out)
{
	struct mon_out *o;

	mon->out_tailp = out;
	while ((o = *out) != NULL) {
		*out = o->next;
		mon_free_out(o);
	}
}

void
mon_drop_turn(struct monitor *mon)
{
	struct mon_after *a;

	mon_cut_out(mon, &mon->out_head);
	while ((a = mon->after_head) != NULL) {
		mon->after_head = a->next;
		free(a);
	}
	mon->after_tailp = &mon->after_head;
}

/*
 * A request failed halfway and leaves nothing: not in the store, not in
 * what is to be sent; what it put into tables is put right as after a
 * commit that failed.
 */
static void
mon_undo_request(struct monitor *mon, struct mon_out **out,
    struct mon_after **after)
{
	struct mon_after *a, *list = *after;

	store_undo_request(mon->store);
	mon_cut_out(mon, out);
	*after = NULL;
	mon->after_tailp = after;
	while ((a = list) != NULL) {
		list = a->next;
		a->fn(mon, a->id, a->aux, 0);
		free(a);
	}
}

/* --- messages --- */

static int
mon_handle(struct child *c, struct imsg *m, union msg_any *v)
{
	if (msgcat_role(m->type) != ROLE_NONE &&
	    answer_ctl_begin(c->mon, m) == NULL)
		return CL_STATE;
	/* The unit test demands one for each row. */
	if (!mon_has_handler(m->type))
		return CL_UNSUPPORTED;
	return mon_bodies[m->type](c->mon, c, m, v);
}

void
mon_on_body(struct child *c, struct imsg *m, union msg_any *v)
{
	struct monitor *mon = c->mon;
	struct mon_out **out = mon->out_tailp;
	struct mon_after **after = mon->after_tailp;
	int r;

	store_begin_request(mon->store);
	/* One that went in the middle is over, and all that goes with it. */
	if ((r = mon_handle(c, m, v)) != CL_OK && c->state != CHILD_DOWN)
		mon_undo_request(mon, out, after);
	store_end_request(mon->store);
	if (r != CL_OK)
		mon_punish(c, msgcat_name(m->type), cl_strerror(r));
}

void
mon_on_message(struct child *c, struct imsg *m)
{
	union msg_any v;
	const char *why;

	if (chan_check(&c->chan, m, &v, &why) != CL_OK) {
		mon_punish(c, msgcat_name(m->type), why);
		return;
	}
	mon_on_body(c, m, &v);
	msg_clear(m->type, &v);
}

/* --- children --- */

struct child *
mon_find_child(struct monitor *mon, uint64_t generation)
{
	size_t i;

	for (i = 0; i < mon->nchildren; i++)
		if (mon->children[i].generation == generation &&
		    mon->children[i].state != CHILD_DOWN)
			return &mon->children[i];
	return NULL;
}

struct child *
mon_get_ctl(struct monitor *mon)
{
	return mon->nchildren > 1 ? &mon->children[1] : NULL;
}

void
mon_on_ready(struct child *c)
{
	struct monitor *mon = c->mon;
	size_t i;

	if (c->kind == CHILD_KEY)
		for (i = 0; i < mon->nchildren; i++)
			if (mon->children[i].kind == CHILD_NET)
				setup_give_key(&mon->children[i]);
	boot_check(mon);
}

void
mon_on_down(struct child *c, int by_signal)
{
	struct monitor *mon = c->mon;
	size_t i;

	switch (c->kind) {
	case CHILD_NET:
		life_end_worker(mon, c->generation, by_signal);
		break;
	case CHILD_CTL:
		clients_clear(mon);
		break;
	case CHILD_FENCE:
		enforce_on_down(mon);
		break;
	case CHILD_KEY:
		/* The channels went with it; the next one gets new ones. */
		for (i = 0; i < mon->nchildren; i++)
			mon->children[i].has_key = 0;
		break;
	}
	if (mon->phase == MON_BOOTING) {
		/* At the start this is a fault of the installation. */
		log_error("boot", "child=%s end=%s", child_format_name(c),
		    log_q(c->last_end));
		mon_stop(mon, 1);
	}
	boot_check(mon);
}

void
mon_stop(struct monitor *mon, int exit_status)
{
	mon->done = 1;
	if (mon->exit_status == 0)
		mon->exit_status = exit_status;
	event_base_loopbreak(mon->base);
}

void
mon_set_error(struct monitor *mon, const char *text)
{
	static struct log_ratelimit rl;
	unsigned int suppressed;

	strlcpy(mon->last_error, text, sizeof(mon->last_error));
	mon->last_error_at = util_wall_ns();
	if (log_ratelimit(&rl, 10, 10, &suppressed))
		log_error("store", "reason=%s suppressed=%u", log_q(text),
		    suppressed);
}

void
mon_dump(struct monitor *mon)
{
	struct child *c;
	size_t i;

	log_info("dump", "uptime-s=%lld agents=%zu sessions=%zu handles=%zu "
	    "running=%zu closed=%zu asks=%zu last-error=%s",
	    (long long)(util_now_ms() - mon->started_at) / 1000,
	    mon->agents.nagents, mon->agents.nsessions,
	    mon->handles.nhandles, mon->handles.nrunning,
	    mon->handles.nclosed, mon->asks.n, log_q(mon->last_error));
	for (i = 0; i < mon->nchildren; i++) {
		c = &mon->children[i];
		log_info("dump-child", "child=%s pid=%ld state=%u "
		    "queued=%zu restarts=%llu last-end=%s",
		    child_format_name(c), (long)c->pid, c->state,
		    c->chan.is_open ? c->chan.im.nqueued : 0,
		    (unsigned long long)c->nrestarts, log_q(c->last_end));
	}
}
