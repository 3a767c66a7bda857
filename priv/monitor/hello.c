/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Handshakes, in the monitor.  A hello is the device's claim, decoded by
 * cloopd-net: nothing in it is believed but against the record of the
 * session it came on.  An agent has one session that may write output; an
 * older one is ended first, so that two workers never append to one file.
 */
#include "hello.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "common/msg/msgcat.h"
#include "hfiles.h"
#include "hwork.h"
#include "life.h"
#include "logseal.h"
#include "monitor.h"

/* Reasons of one HELLO_ANS; what does not fit goes without. */
#define HELLO_REASONS_LEN 4096

void
hello_free(struct hello *h)
{
	if (h == NULL)
		return;
	hello_blob_clear(&h->blob);
	free(h);
}

void
hello_refuse(struct child *c, uint64_t ask, int result)
{
	struct msg_hello_ans body = { .result = result };

	MON_SEND(c, HELLO_ANS, ask, &body, -1);
}

int
hello_open_handle(struct monitor *mon, struct session *s, struct handle *h)
{
	struct child *c = mon_find_child(mon, s->generation);
	struct msg_handle_open body = { .handle = h->row.number,
	    .session = s->number, .handle_id = h->row.handle_id,
	    .received = h->row.received, .state = h->row.state,
	    .gapped = h->row.gapped, .log_limit = mon->conf.log_limit };
	struct msg_handle forget = { h->row.number };
	int r;

	if (h->session == s->number)
		return CL_OK;	/* it has them already */
	if (c == NULL)
		return CL_STATE;
	MON_SEND(c, HANDLE_OPEN, 0, &body, -1);
	if ((r = lease_send_redactions(mon, s, h)) == CL_OK) {
		h->session = s->number;
		logseal_open(mon, h);
		work_send(mon, s, h);
		return CL_OK;
	}
	/* Its output would be kept with the secrets in it: rather none. */
	log_error("handle-redact", "handle=%s reason=%s",
	    log_q(h->row.handle_id), log_q(cl_strerror(r)));
	MON_SEND(c, HANDLE_FORGET, 0, &forget, -1);
	return r;
}

static int
hello_open_files(struct monitor *mon, const struct handle *h, int fds[2])
{
	int r;

	fds[1] = -1;
	if ((r = hfiles_open(mon->conf.state_dir, h->row.handle_id,
	    HFILES_LOG, 1, &fds[0])) != CL_OK || (r = hfiles_open(
	    mon->conf.state_dir, h->row.handle_id, HFILES_INDEX, 1,
	    &fds[1])) == CL_OK)
		return r;
	if (fds[0] != -1)
		close(fds[0]);
	fds[0] = -1;
	return r;
}

/*
 * A row whose files are gone or make no sense must not lose its workload
 * too: they are begun anew, and the device sends again what it still has.
 */
static int
hello_renew_files(struct monitor *mon, struct handle *h, int missing)
{
	int r;

	log_error("handle-files", "handle=%s reason=%s action=renewed",
	    log_q(h->row.handle_id), missing ? "missing" :
	    "\"the index is broken\"");
	if ((r = hfiles_renew(mon->conf.state_dir, h->row.handle_id)) !=
	    CL_OK)
		return r;
	h->row.received = 0;
	h->row.gapped = 1;
	return CL_OK;
}

int
hello_give_files(struct monitor *mon, struct child *c, struct handle *h,
    int renew)
{
	static struct log_ratelimit rl;
	struct msg_handle body = { h->row.number };
	int fds[2], r = CL_OK;

	if (renew)
		r = hello_renew_files(mon, h, 0);
	if (r == CL_OK)
		r = hello_open_files(mon, h, fds);
	if (r == CL_SYSTEM && errno == ENOENT &&
	    (r = hello_renew_files(mon, h, 1)) == CL_OK)
		r = hello_open_files(mon, h, fds);
	if (r != CL_OK) {
		if (log_ratelimit(&rl, 10, 10, NULL))
			log_error("handle-files", "handle=%s reason=%s "
			    "action=later", log_q(h->row.handle_id),
			    log_q(cl_strerror(r)));
		return r;
	}
	MON_SEND(c, HANDLE_LOG, 0, &body, fds[0]);
	MON_SEND(c, HANDLE_INDEX, 0, &body, fds[1]);
	return CL_OK;
}

/*
 * What to say about one offer; nothing is taken for a refusal by the device.
 * Only what is known makes an end: an offer that cannot be judged now is
 * CL_SYSTEM, and so is the hello.
 */
static int
hello_judge_offer(struct monitor *mon, struct session *s,
    const struct caps_offer *o, unsigned int *nrefused, struct msg_verdict *v)
{
	struct handle *h = handles_find_id(&mon->handles, o->handle_id);

	if (h != NULL && h->agent == s->agent && h->abandoned != NULL) {
		if (s->protocol >= 5) {
			v->what = VERDICT_ABANDONED;
			v->reason = h->abandoned;
		}
	} else if (h != NULL && h->agent == s->agent) {
		if (hello_open_handle(mon, s, h) != CL_OK)
			return CL_SYSTEM;
		v->what = VERDICT_CONTINUE;
		v->from_offset = h->row.received;
	} else if (s->protocol >= 5 && *nrefused < MAX_RESUME_REFUSALS) {
		/* Also a handle of somebody else: it is not this device's. */
		(*nrefused)++;
		v->what = VERDICT_UNKNOWN;
	}
	return CL_OK;
}

/*
 * What was not offered is handed over as well: the first heartbeat that
 * does not list it ends it, and only who knows it can notice.
 */
static int
hello_open_rest(struct monitor *mon, struct session *s)
{
	struct handle *h;
	int r;

	TAILQ_FOREACH(h, &s->agent->handles, of_agent)
		if (!handle_is_closed(h) && h->row.state != HS_PENDING &&
		    (r = hello_open_handle(mon, s, h)) != CL_OK)
			return r;
	return CL_OK;
}

static void
hello_send_ok(struct child *c, const struct session *s, uint64_t ask,
    struct msg_verdict *v, size_t n)
{
	struct msg_hello_ans body = { .result = HELLO_OK,
	    .negotiated = s->protocol, .verdicts = v, .nverdicts = n };
	size_t i, len = 0;

	for (i = 0; i < n; i++)
		if (v[i].reason != NULL &&
		    (len += strlen(v[i].reason)) > HELLO_REASONS_LEN)
			v[i].reason = NULL;
	MON_SEND(c, HELLO_ANS, ask, &body, -1);
}

static void
hello_answer(struct monitor *mon, struct session *s, struct hello *h)
{
	struct child *c = mon_find_child(mon, s->generation);
	unsigned int nrefused = 0;
	struct msg_verdict *v;
	size_t i;
	int r = CL_OK;

	if ((v = calloc(h->blob.noffers + 1, sizeof(*v))) == NULL)
		r = CL_NOMEM;
	for (i = 0; r == CL_OK && i < h->blob.noffers; i++)
		r = hello_judge_offer(mon, s, &h->blob.offers[i], &nrefused,
		    &v[i]);
	if (r == CL_OK && hello_open_rest(mon, s) == CL_OK)
		hello_send_ok(c, s, h->ask, v, h->blob.noffers);
	else {
		/* No welcome: the device keeps all and comes back. */
		log_error("hello-later", "agent=%s peer=%s",
		    log_q(s->agent->row.agent_id), log_q(s->peer));
		hello_refuse(c, h->ask, HELLO_LATER);
	}
	free(v);
}

/* What the agent said of itself replaces what it said before. */
static void
hello_save_facts(struct session *s, const struct hello *h)
{
	struct agent *a = s->agent;
	struct buf b;

	buf_init(&b, MAX_SPEC_LEN);
	caps_put(&h->blob.caps, &b);
	if (buf_error(&b) == CL_OK && b.len > 0) {
		agents_set_caps(a, b.data, b.len);
		b.data = NULL;	/* taken */
		b.len = b.cap = 0;
	}
	buf_clear(&b);
	handle_set_text(&a->agent_version, h->blob.agent_version);
	a->protocol = s->protocol;
	a->agent_protocol = (unsigned int)h->blob.protocol_version;
}

void
hello_finish(struct monitor *mon, struct session *s)
{
	struct hello *h = s->hello;

	s->hello = NULL;
	s->agent->waiting = 0;
	s->agent->session = s->number;
	s->state = SESSION_WELCOMED;
	hello_save_facts(s, h);
	hello_answer(mon, s, h);
	hello_free(h);
}

/* Identity, then version; a HELLO_*. */
static int
hello_check(struct session *s, const struct hello_blob *b)
{
	if (s->agent->row.revoked_at != UTIL_TIME_ZERO)
		return HELLO_UNAUTHORIZED;
	if (s->enrolled ? b->agent_id != NULL && b->agent_id[0] != '\0' :
	    b->agent_id == NULL ||
	    strcmp(b->agent_id, s->agent->row.agent_id) != 0)
		return HELLO_UNAUTHORIZED;
	if (b->protocol_version < PROTO_MIN)
		return HELLO_VERSION;
	return HELLO_OK;
}

void
hello_start(struct monitor *mon, struct session *s, struct hello *h)
{
	struct child *c = mon_find_child(mon, s->generation);
	struct session *old;
	int result;

	if ((result = hello_check(s, &h->blob)) != HELLO_OK) {
		log_info("hello-refused", "agent=%s peer=%s reason=%s "
		    "protocol=%lld", log_q(s->agent->row.agent_id),
		    log_q(s->peer), result == HELLO_VERSION ? "version" :
		    "identity", (long long)h->blob.protocol_version);
		hello_refuse(c, h->ask, result);
		hello_free(h);
		return;
	}
	old = agents_find_current(&mon->agents, s->agent);
	if (old != NULL && dupid_is_quiet(&s->agent->dup, util_now_ms())) {
		log_info("hello-refused", "agent=%s peer=%s reason="
		    "duplicate-identity other=%s",
		    log_q(s->agent->row.agent_id), log_q(s->peer),
		    log_q(old->peer));
		hello_refuse(c, h->ask, HELLO_DUPLICATE);
		hello_free(h);
		return;
	}
	s->protocol = h->blob.protocol_version > PROTO_MAX ? PROTO_MAX :
	    (unsigned int)h->blob.protocol_version;
	s->hello = h;
	if ((old = agents_find_session(&mon->agents,
	    s->agent->waiting)) != NULL) {
		/* Three at once: the one in the middle never was welcome. */
		hello_refuse(mon_find_child(mon, old->generation),
		    old->hello->ask, HELLO_GONE);
		hello_free(old->hello);
		old->hello = NULL;
		old->state = SESSION_AUTHED;
		s->agent->waiting = 0;
	}
	if ((old = agents_find_current(&mon->agents, s->agent)) == NULL) {
		hello_finish(mon, s);
		return;
	}
	log_info("session-superseded", "agent=%s session=%llu by=%llu "
	    "old-peer=%s new-peer=%s", log_q(s->agent->row.agent_id),
	    (unsigned long long)old->number, (unsigned long long)s->number,
	    log_q(old->peer), log_q(s->peer));
	s->agent->superseded = old->number;
	s->agent->superseded_by = old->generation;
	handle_set_text(&s->agent->superseded_peer, old->peer);
	s->state = SESSION_WAITING;
	s->agent->waiting = s->number;
	life_drop_session(mon, old, DROP_SUPERSEDED,
	    "superseded by a newer session");
}
