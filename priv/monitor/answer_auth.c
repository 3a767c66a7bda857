/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Identities and sessions.  A worker hands over the bearer it read and gets
 * a session number or a refusal without a reason; the binding of session to
 * agent is kept here, and every later message is judged by it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/string.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "common/msg/msgcat.h"
#include "answers.h"
#include "hello.h"
#include "life.h"

#include "store/db/token.h"

/* Encoded hello: capabilities, their JSON text, resume offers. */
#define MAX_HELLO_LEN (4 * MAX_CAPS_LEN)
/* last_seen is written at most this often per agent. */
#define SEEN_SAVE_MS 60000

struct session *
answer_find_session(struct monitor *mon, const struct child *c,
    uint64_t number)
{
	struct session *s = agents_find_session(&mon->agents, number);

	return s != NULL && s->generation == c->generation ? s : NULL;
}

/* --- AUTH --- */

static void
answer_auth_send(struct child *c, uint64_t ask, int result,
    const struct session *s, const struct secret *credential)
{
	struct msg_auth_ans body = { .result = result };

	if (s != NULL) {
		body.session = s->number;
		body.enrolled = s->enrolled;
		body.agent_id = s->agent->row.agent_id;
		body.name = s->agent->row.name;
	}
	if (credential != NULL)
		body.credential = *credential;	/* borrowed */
	MON_SEND(c, AUTH_ANS, ask, &body, -1);
}

/* The redemption did not reach the disk: it did not happen. */
static void
answer_auth_after(struct monitor *mon, uint64_t number, uint64_t ask, int ok)
{
	struct session *s = agents_find_session(&mon->agents, number);

	if (ok || s == NULL)
		return;
	answer_auth_send(mon_find_child(mon, s->generation), ask,
	    AUTH_FAILED, NULL, NULL);
	agents_del(&mon->agents, s->agent);
}

static enum token_result
answer_auth_judge(struct monitor *mon, const char *bearer, const char *peer,
    struct secret *credential, struct store_agent *row, int *enrolledp)
{
	*enrolledp = strncmp(bearer, TOKEN_ENROLL ".",
	    sizeof(TOKEN_ENROLL)) == 0;
	if (*enrolledp)
		return token_redeem(mon->store, &mon->mac_key, bearer, peer,
		    util_wall_ns(), credential, row);
	return token_authenticate(mon->store, &mon->mac_key, bearer, row);
}

static void
answer_auth_accept(struct monitor *mon, struct child *c,
    const struct imsg *m, struct session *s, const struct secret *credential)
{
	log_info("auth", "result=ok session=%llu agent=%s name=%s peer=%s "
	    "enrolled=%d", (unsigned long long)s->number,
	    log_q(s->agent->row.agent_id), log_q(s->agent->row.name),
	    log_q(s->peer), s->enrolled);
	if (!s->enrolled) {
		/* Nothing was written: it need not wait for the disk. */
		answer_auth_send(c, m->id, AUTH_OK, s, NULL);
		return;
	}
	mon_add_after(mon, answer_auth_after, s->number, m->id);
	mon->durable = 1;
	answer_auth_send(c, m->id, AUTH_OK, s, credential);
	mon->durable = 0;
}

/* What one worker may have of the places: the kernel deals connections out
 * evenly enough, and one that was taken over leaves some to the others. */
static size_t
answer_get_share(const struct monitor *mon)
{
	size_t all = mon->conf.max_agents;
	unsigned int n = config_find_workers(&mon->conf);

	return n > 1 ? all - all / (2 * n) : all;
}

/* One credential in many hands: places come free for the one that is its
 * own, and a worker that does not let go is broken. */
static void
answer_drop_oldest(struct monitor *mon, const struct agent *a)
{
	struct session *s = NULL;

	while ((s = agents_next_session(&mon->agents, s)) != NULL)
		if (s->agent == a && s->number != a->session && !s->dropped) {
			life_drop_session(mon, s, DROP_SUPERSEDED,
			    "too many connections of this agent");
			return;
		}
}

int
answer_auth(struct monitor *mon, struct child *c, struct imsg *m,
    msg_of_AUTH *v)
{
	static struct log_ratelimit rl;
	struct secret credential = SECRET_INIT;
	struct store_agent row;
	struct session *s = NULL;
	struct agent *a = NULL;
	enum token_result t;
	int enrolled = 0;

	if (v->bearer.data == NULL)
		return CL_FORMAT;
	if (mon->agents.nsessions >= mon->conf.max_agents ||
	    agents_get_worker(&mon->agents, c->generation) >=
	    answer_get_share(mon)) {
		answer_auth_send(c, m->id, AUTH_UNAVAILABLE, NULL, NULL);
		return CL_OK;
	}
	memset(&row, 0, sizeof(row));
	t = answer_auth_judge(mon, (const char *)v->bearer.data, v->peer,
	    &credential, &row, &enrolled);
	if (t == TOKEN_OK && (a = agents_add(&mon->agents, &row)) != NULL &&
	    a->nsessions >= AGENT_SESSIONS_MAX) {
		answer_drop_oldest(mon, a);
		answer_auth_send(c, m->id, AUTH_UNAVAILABLE, NULL, NULL);
		goto out;
	}
	if (a != NULL)
		s = agents_add_session(&mon->agents, a, c->generation,
		    v->peer);
	if (s != NULL) {
		a->row.last_seen = util_wall_ns();
		s->enrolled = enrolled;
		answer_auth_accept(mon, c, m, s, &credential);
		goto out;
	}
	if (t == TOKEN_FAILED)
		mon_set_error(mon, store_error(mon->store));
	if (log_ratelimit(&rl, 60, 60, NULL))
		log_info("auth", "result=denied peer=%s reason=%s",
		    log_q(v->peer), token_format_result(t));
	answer_auth_send(c, m->id, t == TOKEN_FAILED || t == TOKEN_OK ?
	    AUTH_FAILED : AUTH_DENIED, NULL, NULL);
out:
	secret_clear(&credential);
	store_agent_clear(&row);
	return CL_OK;
}

/* --- HELLO --- */

static int
answer_hello_load(struct imsg *m, size_t len, struct hello **hp)
{
	struct hello *h;
	struct buf b;
	uint8_t *data;
	int r;

	*hp = NULL;
	if ((r = util_load_memfd(m->fd, len, MAX_HELLO_LEN, &data)) != CL_OK)
		return r;
	if ((h = calloc(1, sizeof(*h))) == NULL) {
		free(data);
		return CL_NOMEM;
	}
	h->ask = m->id;
	buf_init_read(&b, data, len);
	if ((r = hello_blob_get(&b, &h->blob)) == CL_OK &&
	    (r = buf_end(&b)) != CL_OK)
		hello_blob_clear(&h->blob);
	free(data);
	if (r != CL_OK)
		free(h);
	else
		*hp = h;
	return r;
}

int
answer_hello(struct monitor *mon, struct child *c, struct imsg *m,
    msg_of_HELLO *v)
{
	struct session *s;
	struct hello *h;
	int r;

	if (v->session == 0 || v->session > mon->agents.last_session)
		return CL_FORMAT;
	s = answer_find_session(mon, c, v->session);
	if (s == NULL || s->dropped) {
		hello_refuse(c, m->id, HELLO_GONE);
		return CL_OK;
	}
	if (s->state != SESSION_AUTHED)
		return CL_STATE;
	if ((r = answer_hello_load(m, (size_t)v->len, &h)) == CL_NOMEM) {
		hello_refuse(c, m->id, HELLO_LATER);
		return CL_OK;
	}
	if (r != CL_OK)
		return r;
	hello_start(mon, s, h);
	return CL_OK;
}

/* --- SESSION_* --- */

static void
answer_save_executor(struct monitor *mon, struct agent *a)
{
	struct store_executor x;
	struct caps caps;

	if (a->deleted)
		return;
	memset(&x, 0, sizeof(x));
	if (agents_get_caps(a, &caps) != CL_OK)
		caps_init(&caps);
	x.agent_id = a->row.agent_id;
	x.status = a->status;
	x.status_at = a->status_at;
	x.reason = a->reason;
	x.agent_version = a->agent_version;
	x.agent_protocol = a->agent_protocol;
	x.protocol = a->protocol;
	x.os = caps.os;
	x.arch = caps.arch;
	x.caps = a->caps;
	x.caps_len = a->caps_len;
	/* Borrowed all of it: never cleared. */
	if (store_save_executor(mon->store, &x) != CL_OK)
		mon_set_error(mon, store_error(mon->store));
	caps_clear(&caps);
}

/* It has its credential where it finds it again. */
static void
answer_confirm(struct monitor *mon, const struct session *s)
{
	struct agent *a = s->agent;
	int64_t now = util_wall_ns();
	int r;

	if (a->row.confirmed_at != UTIL_TIME_ZERO || a->deleted)
		return;
	a->row.confirmed_at = now;
	r = store_confirm_agent(mon->store, a->row.agent_id, now);
	if (r == CL_OK)
		r = store_add_event(mon->store, now, "hub", "executor.enroll",
		    "allow", "executor", a->row.agent_id, "action",
		    "confirm", "executor_id", a->row.agent_id, "name",
		    a->row.name, "enrollment_id", a->row.enrollment_id,
		    "peer", s->peer, (char *)NULL);
	if (r != CL_OK && r != CL_NOTFOUND)
		mon_set_error(mon, store_error(mon->store));
}

int
answer_session_up(struct monitor *mon, struct child *c, struct imsg *m,
    msg_of_SESSION_UP *v)
{
	struct session *s;

	(void)m;
	if ((s = answer_find_session(mon, c, v->session)) == NULL)
		return CL_FORMAT;
	if (s->state != SESSION_WELCOMED)
		return CL_STATE;
	s->state = SESSION_CURRENT;
	log_info("session-up", "session=%llu agent=%s name=%s protocol=%u "
	    "peer=%s", (unsigned long long)s->number,
	    log_q(s->agent->row.agent_id), log_q(s->agent->row.name),
	    s->protocol, log_q(s->peer));
	if (s->agent->row.revoked_at != UTIL_TIME_ZERO) {
		/* Revoked while the welcome was on its way. */
		life_drop_session(mon, s, DROP_REVOKED, "revoked");
		return CL_OK;
	}
	answer_save_executor(mon, s->agent);
	if (!s->enrolled)
		answer_confirm(mon, s);
	life_set_status(mon, s->agent, AGENT_ONLINE, "connected");
	revoke_replay(mon, s);
	return CL_OK;
}

int
answer_session_down(struct monitor *mon, struct child *c, struct imsg *m,
    msg_of_SESSION_DOWN *v)
{
	struct session *s;

	(void)m;
	if ((s = answer_find_session(mon, c, v->session)) == NULL)
		return CL_FORMAT;
	life_end_session(mon, s, (int)v->status, v->reason);
	return CL_OK;
}

int
answer_session_seen(struct monitor *mon, struct child *c, struct imsg *m,
    msg_of_SESSION_SEEN *v)
{
	int64_t wall = util_wall_ns(), now = util_now_ms(), at;
	struct session *s;
	size_t i;

	(void)m;
	for (i = 0; i < v->nseen; i++) {
		s = answer_find_session(mon, c, v->seen[i].session);
		if (s == NULL)
			continue;
		answer_confirm(mon, s);
		at = wall - (int64_t)v->seen[i].ago_ms * 1000000;
		if (at <= s->agent->row.last_seen)
			continue;
		s->agent->row.last_seen = at;
		if (s->agent->seen_saved_at != 0 &&
		    now - s->agent->seen_saved_at < SEEN_SAVE_MS)
			continue;
		s->agent->seen_saved_at = now;
		if (store_save_seen(mon->store, s->agent->row.agent_id,
		    at) == CL_DB)
			mon_set_error(mon, store_error(mon->store));
	}
	return CL_OK;
}

/*
 * The peer of a session that was replaced still answered: two hosts have
 * this identity.  Once may be a frozen link that thawed (dupid.h).
 */
int
answer_session_echo(struct monitor *mon, struct child *c, struct imsg *m,
    msg_of_SESSION_ECHO *v)
{
	const struct session *s;
	enum dupid_news news;
	char peers[300];
	struct agent *a;

	(void)m;
	if (v->session == 0 || v->session > mon->agents.last_session)
		return CL_FORMAT;
	for (a = agents_next(&mon->agents, NULL); a != NULL &&
	    a->superseded != v->session; a = agents_next(&mon->agents, a))
		;
	if (a == NULL)
		return CL_OK;	/* replaced again since */
	if (a->superseded_by != c->generation)
		return CL_FORMAT;	/* another worker's */
	a->superseded = 0;	/* one answer of each */
	if ((news = dupid_add(&a->dup, util_now_ms())) == DUPID_NOTHING)
		return CL_OK;
	s = agents_find_current(&mon->agents, a);
	(void)snprintf(peers, sizeof(peers), "%s and %s", a->superseded_peer,
	    s != NULL ? s->peer : "another");
	handle_set_text(&a->dup_peers, peers);
	log_warn("duplicate-identity", "agent=%s name=%s peers=%s action="
	    "\"the one connected stays, others are refused for %d s\"",
	    log_q(a->row.agent_id), log_q(a->row.name), log_q(peers),
	    DUPID_QUIET_MS / 1000);
	if (news == DUPID_ALARM && store_add_event(mon->store,
	    util_wall_ns(), "hub", "executor.duplicate_identity", "deny",
	    "executor", a->row.agent_id, "executor_id", a->row.agent_id,
	    "name", a->row.name, "peers", peers, (char *)NULL) != CL_OK)
		mon_set_error(mon, store_error(mon->store));
	return CL_OK;
}

int
answer_caps(struct monitor *mon, struct child *c, struct imsg *m,
    msg_of_CAPS *v)
{
	struct caps_blob blob;
	struct session *s;
	size_t len = (size_t)v->len;
	struct buf b;
	uint8_t *data;
	int r;

	if ((r = util_load_memfd(m->fd, len, MAX_HELLO_LEN, &data)) != CL_OK)
		return r;
	buf_init_read(&b, data, len);
	if ((r = field_get(&caps_blob_table, &b, &blob)) == CL_OK) {
		r = buf_end(&b);
		s = answer_find_session(mon, c, v->session);
		if (r == CL_OK && s != NULL && s->state == SESSION_CURRENT) {
			buf_init(&b, MAX_HELLO_LEN);
			caps_put(&blob.caps, &b);
			if (buf_error(&b) == CL_OK) {
				agents_set_caps(s->agent, b.data, b.len);
				answer_save_executor(mon, s->agent);
			} else
				buf_clear(&b);
		}
		field_clear(&caps_blob_table, &blob);
	}
	free(data);
	return r;
}

/* --- WHO --- */

/* Closed long ago: only the store knows whose it was. */
static int
answer_who_stored(struct monitor *mon, const struct session *s,
    const char *id)
{
	struct store_handle row;
	int result, r;

	memset(&row, 0, sizeof(row));
	r = store_find_handle(mon->store, id, &row);
	if (r != CL_OK && r != CL_NOTFOUND)
		return WHO_LATER;
	result = r == CL_OK && strcmp(row.agent_id,
	    s->agent->row.agent_id) != 0 ? WHO_FOREIGN : WHO_UNKNOWN;
	store_handle_clear(&row);
	return result;
}

int
answer_who(struct monitor *mon, struct child *c, struct imsg *m,
    msg_of_WHO *v)
{
	struct msg_who_ans body = { .whose = WHO_UNKNOWN };
	struct session *s;
	struct handle *h;

	if (v->session == 0 || v->session > mon->agents.last_session)
		return CL_FORMAT;
	s = answer_find_session(mon, c, v->session);
	if (s != NULL && s->agent->session == s->number) {
		h = handles_find_id(&mon->handles, v->handle);
		if (h == NULL)
			body.whose = answer_who_stored(mon, s, v->handle);
		else if (h->agent != s->agent)
			body.whose = WHO_FOREIGN;
		else
			body.whose = hello_open_handle(mon, s, h) == CL_OK ?
			    WHO_YOURS : WHO_LATER;
	}
	MON_SEND(c, WHO_ANS, m->id, &body, -1);
	return CL_OK;
}
