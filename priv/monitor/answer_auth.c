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
	struct buf b;

	buf_init(&b, MSG_BODY_MAX);
	buf_put_u8(&b, (uint8_t)result);
	buf_put_u64(&b, s != NULL ? s->number : 0);
	buf_put_u8(&b, s != NULL ? (uint8_t)s->enrolled : 0);
	buf_put_str(&b, s != NULL ? s->agent->row.agent_id : "");
	buf_put_str(&b, s != NULL ? s->agent->row.name : "");
	buf_put_str(&b, credential != NULL && credential->data != NULL ?
	    (const char *)credential->data : "");
	mon_send(c, MSG_AUTH_ANS, ask, &b, -1);
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
answer_auth(struct monitor *mon, struct child *c, struct imsg *m)
{
	static struct log_ratelimit rl;
	char bearer[1024], peer[128];
	struct secret credential = SECRET_INIT;
	struct store_agent row;
	struct session *s = NULL;
	struct agent *a = NULL;
	enum token_result t;
	uint64_t conn;
	int enrolled = 0, r;

	memset(&row, 0, sizeof(row));
	conn = buf_get_u64(&m->body);
	buf_get_str(&m->body, bearer, sizeof(bearer) - 1);
	buf_get_str(&m->body, peer, sizeof(peer) - 1);
	if ((r = buf_end(&m->body)) != CL_OK)
		goto out;
	if (mon->agents.nsessions >= mon->conf.max_agents ||
	    agents_get_worker(&mon->agents, c->generation) >=
	    answer_get_share(mon)) {
		answer_auth_send(c, m->id, AUTH_UNAVAILABLE, NULL, NULL);
		goto out;
	}
	t = answer_auth_judge(mon, bearer, peer, &credential, &row,
	    &enrolled);
	if (t == TOKEN_OK && (a = agents_add(&mon->agents, &row)) != NULL &&
	    a->nsessions >= AGENT_SESSIONS_MAX) {
		answer_drop_oldest(mon, a);
		answer_auth_send(c, m->id, AUTH_UNAVAILABLE, NULL, NULL);
		goto out;
	}
	if (a != NULL)
		s = agents_add_session(&mon->agents, a, c->generation, conn,
		    peer);
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
		    log_q(peer), token_format_result(t));
	answer_auth_send(c, m->id, t == TOKEN_FAILED || t == TOKEN_OK ?
	    AUTH_FAILED : AUTH_DENIED, NULL, NULL);
out:
	explicit_bzero(bearer, sizeof(bearer));
	secret_clear(&credential);
	store_agent_clear(&row);
	return r;
}

/* --- HELLO --- */

static int
answer_hello_load(struct imsg *m, uint32_t len, struct hello **hp)
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
	if (r == CL_OK && h->blob.noffers > MAX_RESUME_OFFERS) {
		hello_blob_clear(&h->blob);
		r = CL_LIMIT;
	}
	if (r != CL_OK)
		free(h);
	else
		*hp = h;
	return r;
}

int
answer_hello(struct monitor *mon, struct child *c, struct imsg *m)
{
	struct session *s;
	struct hello *h;
	uint64_t number;
	uint32_t len;
	int r;

	number = buf_get_u64(&m->body);
	len = buf_get_u32(&m->body);
	if (buf_end(&m->body) != CL_OK || number == 0 ||
	    number > mon->agents.last_session)
		return CL_FORMAT;
	if ((s = answer_find_session(mon, c, number)) == NULL || s->dropped) {
		hello_refuse(c, m->id, HELLO_GONE);
		return CL_OK;
	}
	if (s->state != SESSION_AUTHED)
		return CL_STATE;
	if ((r = answer_hello_load(m, len, &h)) == CL_NOMEM) {
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
answer_session_up(struct monitor *mon, struct child *c, struct imsg *m)
{
	struct session *s;
	uint64_t number;

	number = buf_get_u64(&m->body);
	if (buf_end(&m->body) != CL_OK)
		return CL_FORMAT;
	if ((s = answer_find_session(mon, c, number)) == NULL)
		return CL_FORMAT;
	if (s->state != SESSION_WELCOMED)
		return CL_STATE;
	s->state = SESSION_CURRENT;
	log_info("session-up", "session=%llu agent=%s name=%s protocol=%u "
	    "peer=%s", (unsigned long long)number,
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
answer_session_down(struct monitor *mon, struct child *c, struct imsg *m)
{
	char reason[256];
	struct session *s;
	uint64_t number;
	int status;

	number = buf_get_u64(&m->body);
	status = buf_get_u8(&m->body);
	buf_get_str(&m->body, reason, sizeof(reason) - 1);
	if (buf_end(&m->body) != CL_OK || (status != AGENT_OFFLINE &&
	    status != AGENT_UNREACHABLE))
		return CL_FORMAT;
	if ((s = answer_find_session(mon, c, number)) == NULL)
		return CL_FORMAT;
	life_end_session(mon, s, status, reason);
	return CL_OK;
}

int
answer_session_seen(struct monitor *mon, struct child *c, struct imsg *m)
{
	int64_t wall = util_wall_ns(), now = util_now_ms(), at;
	struct session *s;
	uint64_t number;
	uint32_t ago;
	unsigned int i, n;

	n = buf_get_u16(&m->body);
	if (n > 1000 || buf_left(&m->body) != n * 12u)
		return CL_FORMAT;
	for (i = 0; i < n; i++) {
		number = buf_get_u64(&m->body);
		ago = buf_get_u32(&m->body);
		if ((s = answer_find_session(mon, c, number)) == NULL)
			continue;
		answer_confirm(mon, s);
		at = wall - (int64_t)ago * 1000000;
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
	return buf_end(&m->body);
}

/*
 * The peer of a session that was replaced still answered: two hosts have
 * this identity.  Once may be a frozen link that thawed (dupid.h).
 */
int
answer_session_echo(struct monitor *mon, struct child *c, struct imsg *m)
{
	const struct session *s;
	enum dupid_news news;
	char peers[300];
	uint64_t number;
	struct agent *a;

	number = buf_get_u64(&m->body);
	if (buf_end(&m->body) != CL_OK || number == 0 ||
	    number > mon->agents.last_session)
		return CL_FORMAT;
	for (a = agents_next(&mon->agents, NULL); a != NULL &&
	    a->superseded != number; a = agents_next(&mon->agents, a))
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
answer_caps(struct monitor *mon, struct child *c, struct imsg *m)
{
	struct caps_blob blob;
	struct session *s;
	struct buf b;
	uint64_t number;
	uint32_t len;
	uint8_t *data;
	int r;

	number = buf_get_u64(&m->body);
	len = buf_get_u32(&m->body);
	if (buf_end(&m->body) != CL_OK)
		return CL_FORMAT;
	if ((r = util_load_memfd(m->fd, len, MAX_HELLO_LEN, &data)) != CL_OK)
		return r;
	buf_init_read(&b, data, len);
	if ((r = field_get(&caps_blob_table, &b, &blob)) == CL_OK) {
		r = buf_end(&b);
		s = answer_find_session(mon, c, number);
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
answer_who(struct monitor *mon, struct child *c, struct imsg *m)
{
	char id[MAX_ID_LEN + 1];
	struct session *s;
	struct handle *h;
	struct buf b;
	uint64_t number;
	int result = WHO_UNKNOWN;

	number = buf_get_u64(&m->body);
	buf_get_str(&m->body, id, sizeof(id) - 1);
	if (buf_end(&m->body) != CL_OK || number == 0 ||
	    number > mon->agents.last_session)
		return CL_FORMAT;
	s = answer_find_session(mon, c, number);
	if (s != NULL && s->agent->session == s->number) {
		h = handles_find_id(&mon->handles, id);
		if (h == NULL)
			result = answer_who_stored(mon, s, id);
		else if (h->agent != s->agent)
			result = WHO_FOREIGN;
		else
			result = hello_open_handle(mon, s, h) == CL_OK ?
			    WHO_YOURS : WHO_LATER;
	}
	buf_init(&b, MSG_BODY_MAX);
	buf_put_u8(&b, (uint8_t)result);
	mon_send(c, MSG_WHO_ANS, m->id, &b, -1);
	return CL_OK;
}
