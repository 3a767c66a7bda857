/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The tables of agents and sessions.  Memory only, no messages, no logs.
 * A device can add to them no more than one agent per redeemed token and
 * one session per authenticated connection, which cloopd-net bounds.
 */
#include "agents.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/util.h"
#include "common/model/caps.h"
#include "common/msg/buf.h"
#include "common/msg/msgcat.h"
#include "handles.h"
#include "hello.h"

static int
agent_cmp(struct agent *a, struct agent *b)
{
	return strcmp(a->row.agent_id, b->row.agent_id);
}

static int
session_cmp(struct session *a, struct session *b)
{
	return a->number < b->number ? -1 : a->number > b->number;
}

RB_GENERATE_INTERNAL(agent_tree, agent, entry, agent_cmp,
    __attribute__((__unused__)) static)
RB_GENERATE_INTERNAL(session_tree, session, entry, session_cmp,
    __attribute__((__unused__)) static)

static int
session_source_cmp(struct session *a, struct session *b)
{
	int r = memcmp(&a->source, &b->source, sizeof(a->source));

	return r != 0 ? r : session_cmp(a, b);
}

RB_GENERATE_INTERNAL(session_sources, session, by_source, session_source_cmp,
    __attribute__((__unused__)) static)

void
agents_init(struct agents *t)
{
	memset(t, 0, sizeof(*t));
	RB_INIT(&t->by_id);
	RB_INIT(&t->sessions);
	RB_INIT(&t->sources);
}

static void
agent_free(struct agent *a)
{
	store_agent_clear(&a->row);
	free(a->reason);
	free(a->agent_version);
	free(a->caps);
	free(a->superseded_peer);
	free(a->dup_peers);
	free(a);
}

void
agents_clear(struct agents *t)
{
	struct agent *a;
	struct session *s;

	while ((s = RB_MIN(session_tree, &t->sessions)) != NULL)
		agents_del_session(t, s);
	while ((a = RB_MIN(agent_tree, &t->by_id)) != NULL) {
		RB_REMOVE(agent_tree, &t->by_id, a);
		agent_free(a);
	}
	agents_init(t);
}

/* A deep copy of a record. */
static int
agent_copy_row(struct store_agent *dst, const struct store_agent *src)
{
	size_t i;

	memset(dst, 0, sizeof(*dst));
	dst->agent_id = strdup(src->agent_id);
	dst->name = strdup(src->name);
	/* The hash stays in the store: nobody here needs it. */
	dst->secret_hash = strdup("");
	dst->workdir_root = strdup(src->workdir_root != NULL ?
	    src->workdir_root : "");
	dst->enrollment_id = strdup(src->enrollment_id != NULL ?
	    src->enrollment_id : "");
	dst->created_at = src->created_at;
	dst->last_seen = src->last_seen;
	dst->revoked_at = src->revoked_at;
	dst->confirmed_at = src->confirmed_at;
	if (dst->agent_id == NULL || dst->name == NULL ||
	    dst->secret_hash == NULL || dst->workdir_root == NULL ||
	    dst->enrollment_id == NULL)
		return CL_NOMEM;
	for (i = 0; i < src->labels.n; i++)
		if (store_labels_add(&dst->labels, src->labels.v[i].key,
		    src->labels.v[i].value) != CL_OK)
			return CL_NOMEM;
	return CL_OK;
}

struct agent *
agents_add(struct agents *t, const struct store_agent *row)
{
	struct agent *a, *old;

	if ((a = calloc(1, sizeof(*a))) == NULL)
		return NULL;
	if (agent_copy_row(&a->row, row) != CL_OK) {
		agent_free(a);
		return NULL;
	}
	a->status = AGENT_OFFLINE;
	a->status_at = UTIL_TIME_ZERO;
	TAILQ_INIT(&a->handles);
	if ((old = RB_INSERT(agent_tree, &t->by_id, a)) != NULL) {
		agent_free(a);
		return old;
	}
	a->number = ++t->last_number;
	t->nagents++;
	return a;
}

void
agents_del(struct agents *t, struct agent *a)
{
	struct session *s, *next;

	for (s = RB_MIN(session_tree, &t->sessions); s != NULL; s = next) {
		next = RB_NEXT(session_tree, &t->sessions, s);
		if (s->agent == a)
			agents_del_session(t, s);
	}
	RB_REMOVE(agent_tree, &t->by_id, a);
	t->nagents--;
	agent_free(a);
}

struct agent *
agents_find(struct agents *t, const char *id)
{
	struct agent key;

	memset(&key, 0, sizeof(key));
	key.row.agent_id = (char *)(uintptr_t)id;
	return RB_FIND(agent_tree, &t->by_id, &key);
}

struct agent *
agents_find_number(struct agents *t, uint64_t number)
{
	struct agent *a;

	RB_FOREACH(a, agent_tree, &t->by_id)
		if (a->number == number)
			return a;
	return NULL;
}

struct agent *
agents_next(struct agents *t, const struct agent *a)
{
	if (a == NULL)
		return RB_MIN(agent_tree, &t->by_id);
	return RB_NEXT(agent_tree, &t->by_id, (struct agent *)(uintptr_t)a);
}

/* The row of a worker, or, for a new one, of one that has none any more. */
static struct agents_worker *
agents_find_worker(struct agents *t, uint64_t generation)
{
	struct agents_worker *w, *empty = NULL;

	for (w = t->workers; w < t->workers + MAX_NET_WORKERS; w++) {
		if (w->n > 0 && w->generation == generation)
			return w;
		if (w->n == 0)
			empty = w;
	}
	if (empty != NULL)
		empty->generation = generation;
	return empty;
}

size_t
agents_get_worker(const struct agents *t, uint64_t generation)
{
	size_t i;

	for (i = 0; i < MAX_NET_WORKERS; i++)
		if (t->workers[i].generation == generation)
			return t->workers[i].n;
	return 0;
}

struct session *
agents_next_source(struct agents *t, const struct penalty_source *source,
    struct session *s)
{
	struct session key;

	if (s == NULL) {
		memset(&key, 0, sizeof(key));
		key.source = *source;
		s = RB_NFIND(session_sources, &t->sources, &key);
	} else
		s = RB_NEXT(session_sources, &t->sources, s);
	return s != NULL && memcmp(&s->source, source, sizeof(*source)) == 0 ?
	    s : NULL;
}

struct session *
agents_add_session(struct agents *t, struct agent *a, uint64_t generation,
    const char *peer)
{
	struct agents_worker *w = agents_find_worker(t, generation);
	struct session *s;

	if (w == NULL || (s = calloc(1, sizeof(*s))) == NULL)
		return NULL;
	if ((s->peer = strdup(peer)) == NULL) {
		free(s);
		return NULL;
	}
	s->number = ++t->last_session;
	s->generation = generation;
	s->agent = a;
	s->state = SESSION_AUTHED;
	(void)penalty_parse_source(peer, &s->source);
	RB_INSERT(session_tree, &t->sessions, s);
	RB_INSERT(session_sources, &t->sources, s);
	t->nsessions++;
	a->nsessions++;
	w->n++;
	return s;
}

struct session *
agents_find_session(struct agents *t, uint64_t number)
{
	struct session key;

	memset(&key, 0, sizeof(key));
	key.number = number;
	return RB_FIND(session_tree, &t->sessions, &key);
}

void
agents_del_session(struct agents *t, struct session *s)
{
	struct agents_worker *w = agents_find_worker(t, s->generation);

	if (w != NULL && w->n > 0)
		w->n--;
	if (s->agent->session == s->number)
		s->agent->session = 0;
	if (s->agent->waiting == s->number)
		s->agent->waiting = 0;
	RB_REMOVE(session_tree, &t->sessions, s);
	RB_REMOVE(session_sources, &t->sources, s);
	t->nsessions--;
	s->agent->nsessions--;
	hello_free(s->hello);
	free(s->peer);
	free(s);
}

struct session *
agents_next_session(struct agents *t, const struct session *s)
{
	if (s == NULL)
		return RB_MIN(session_tree, &t->sessions);
	return RB_NEXT(session_tree, &t->sessions,
	    (struct session *)(uintptr_t)s);
}

struct session *
agents_find_current(struct agents *t, const struct agent *a)
{
	return a->session == 0 ? NULL : agents_find_session(t, a->session);
}

void
agents_set_caps(struct agent *a, uint8_t *data, size_t len)
{
	free(a->caps);
	a->caps = data;
	a->caps_len = len;
}

int
agents_get_caps(const struct agent *a, struct caps *c)
{
	struct buf b;
	int r;

	if (a->caps_len == 0) {
		caps_init(c);
		return CL_NOTFOUND;
	}
	buf_init_read(&b, a->caps, a->caps_len);
	if ((r = caps_get(&b, c)) != CL_OK)
		return r;
	if ((r = buf_end(&b)) != CL_OK)
		caps_clear(c);
	return r;
}

static int
agents_on_row(const struct store_agent *row, void *arg)
{
	return agents_add(arg, row) != NULL ? 0 : CL_NOMEM;
}

/* What is known of an agent from its last connection. */
static int
agents_on_executor(const struct store_executor *x, void *arg)
{
	struct agents *t = arg;
	struct agent *a = agents_find(t, x->agent_id);
	uint8_t *data;

	if (a == NULL)
		return 0;
	a->status = x->status == AGENT_UNREACHABLE ? AGENT_UNREACHABLE :
	    AGENT_OFFLINE;
	a->status_at = x->status_at;
	handle_set_text(&a->reason, x->reason);
	handle_set_text(&a->agent_version, x->agent_version);
	a->agent_protocol = x->agent_protocol;
	a->protocol = x->protocol;
	if (x->caps_len > 0 && (data = malloc(x->caps_len)) != NULL) {
		memcpy(data, x->caps, x->caps_len);
		agents_set_caps(a, data, x->caps_len);
	}
	return 0;
}

int
agents_load(struct agents *t, struct store *s)
{
	int r;

	if ((r = store_list_agents(s, agents_on_row, t)) != CL_OK)
		return r;
	return store_list_executors(s, agents_on_executor, t);
}
