/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Agents ("executors" in the URL) and their sessions, in memory.  An agent is
 * there for every record of the store, connected or not, and is never freed
 * while the hub runs.  A session is one authenticated connection: its number
 * is ours, never reused, and means nothing but what is written here.
 */
#ifndef PRIV_AGENTS_H
#define PRIV_AGENTS_H

#include <bsd/sys/queue.h>
#include <bsd/sys/tree.h>

#include <stddef.h>
#include <stdint.h>

#include "store/db/store.h"
#include "dupid.h"
#include "penalty.h"

struct caps;
struct handle;

enum session_state {
	SESSION_AUTHED = 1,	/* AUTH_ANS said ok; hello to come */
	SESSION_WAITING,	/* hello is good; the older session must end */
	SESSION_WELCOMED,	/* HELLO_ANS said ok */
	SESSION_CURRENT		/* welcome is written: the agent's session */
};

struct session {
	RB_ENTRY(session) entry;
	RB_ENTRY(session) by_source;
	struct penalty_source source;	/* of peer; zero: it has none */
	uint64_t number;
	uint64_t generation;	/* of the cloopd-net it lives in */
	struct agent *agent;
	enum session_state state;
	int enrolled;		/* this connection redeemed a token */
	int dropped;		/* SESSION_DROP was sent */
	int64_t dropped_at;	/* monotonic ms */
	unsigned int protocol;	/* negotiated; from SESSION_WAITING on */
	char *peer;
	struct hello *hello;	/* SESSION_WAITING: what to go on with */
};
RB_HEAD(session_tree, session);
RB_HEAD(session_sources, session);

/* More than one device ever needs at once; its worker may have been taken
 * over. */
#define AGENT_SESSIONS_MAX 8

struct agent {
	RB_ENTRY(agent) entry;
	uint64_t number;	/* in this process only */
	struct store_agent row;
	int status;		/* AGENT_* */
	int64_t status_at;	/* wall ns */
	char *reason;
	uint64_t session;	/* number of the current one; 0 */
	uint64_t waiting;	/* number of the one in SESSION_WAITING; 0 */
	unsigned int nsessions;	/* in whatever state */
	unsigned int protocol, agent_protocol;
	char *agent_version;
	uint8_t *caps;		/* struct caps in message form; NULL */
	size_t caps_len;
	int64_t seen_saved_at;	/* monotonic ms of the last store write */
	int admin;		/* ADMIN_*; 0 is ready */
	unsigned int nfailures;	/* probes in a row (supervise.h) */
	unsigned int nrunning;	/* handles that are not terminal */
	TAILQ_HEAD(, handle) handles;	/* in memory, oldest first */
	size_t nclosed;
	uint64_t pinned;	/* bytes of returned work held */
	int deleted;		/* its rows are gone; nobody is shown it */
	struct dupid dup;
	uint64_t superseded;	/* number of the session replaced last, */
	uint64_t superseded_by;	/* generation of the worker that had it, */
	char *superseded_peer;	/* and where it was */
	char *dup_peers;	/* who was seen to share the identity */
};
RB_HEAD(agent_tree, agent);

struct agents {
	struct agent_tree by_id;
	struct session_tree sessions;
	struct session_sources sources;
	/* how many sessions each worker has */
	struct agents_worker {
		uint64_t generation;
		size_t n;
	} workers[MAX_NET_WORKERS];
	uint64_t last_session, last_number;
	size_t nagents, nsessions;
};

void agents_init(struct agents *t);
void agents_clear(struct agents *t);
/* Load every record; call once.  CL_DB. */
int agents_load(struct agents *t, struct store *s);

/* Copies the record.  An agent that is there already is returned as is.
 * NULL without memory. */
struct agent *agents_add(struct agents *t, const struct store_agent *row);
/* Undo agents_add of this turn: no session, no handle may refer to it. */
void agents_del(struct agents *t, struct agent *a);
struct agent *agents_find(struct agents *t, const char *id);
struct agent *agents_find_number(struct agents *t, uint64_t number);
struct agent *agents_next(struct agents *t, const struct agent *a);

/* A new session of this agent; NULL without memory. */
struct session *agents_add_session(struct agents *t, struct agent *a,
    uint64_t generation, const char *peer);
struct session *agents_find_session(struct agents *t, uint64_t number);
/* Forget it.  The agent's current session, when it was that, becomes 0. */
void agents_del_session(struct agents *t, struct session *s);
struct session *agents_next_session(struct agents *t,
    const struct session *s);
size_t agents_get_worker(const struct agents *t, uint64_t generation);
/* Sessions from a source, one after the other; NULL first. */
struct session *agents_next_source(struct agents *t,
    const struct penalty_source *source, struct session *s);
/* The agent's current session, or NULL. */
struct session *agents_find_current(struct agents *t, const struct agent *a);

/* Replace the capabilities (takes data). */
void agents_set_caps(struct agent *a, uint8_t *data, size_t len);
/* Decode them; CL_NOTFOUND when the agent never said any. */
int agents_get_caps(const struct agent *a, struct caps *c);

#endif
