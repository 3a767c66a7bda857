/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Children that become ready, and what cloopd-net reports about the
 * network.  Reports are claims: they are written down as such, rate-limited
 * where an outsider can cause them, and change nothing but other workers'
 * penalty tables.
 */
#include <string.h>

#include <openssl/evp.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "common/msg/msgcat.h"
#include "answers.h"
#include "penalty.h"
#include "setup.h"

/* Audit rows an outsider may cause: this many per minute. */
#define REPORT_BURST 120
#define REPORT_S 60

int
answer_net_ready(struct monitor *mon, struct child *c, struct imsg *m,
    msg_of_NET_READY *v)
{
	(void)m;
	if (v->version != MSGCAT_VERSION || v->worker != c->index)
		return CL_FORMAT;
	child_enter_serving(c);
	mon_on_ready(c);
	return CL_OK;
}

int
answer_net_stopped(struct monitor *mon, struct child *c, struct imsg *m,
    msg_of_NET_STOPPED *v)
{
	(void)mon;
	(void)m;
	(void)v;
	return c->state == MS_STOPPING ? CL_OK : CL_STATE;
}

int
answer_key_ready(struct monitor *mon, struct child *c, struct imsg *m,
    msg_of_KEY_READY *v)
{
	struct pin pin;
	unsigned int n = 0;

	(void)m;
	if (v->version != MSGCAT_VERSION || v->spki_len == 0)
		return CL_FORMAT;
	if (EVP_Digest(v->spki, v->spki_len, pin.digest, &n, EVP_sha256(),
	    NULL) != 1 || n != PIN_DIGEST_LEN)
		return CL_CRYPTO;
	pin_format(&pin, mon->pin);
	child_enter_serving(c);
	log_info("tls-key", "pin=%s", mon->pin);
	mon_on_ready(c);
	return CL_OK;
}

int
answer_origin_refused(struct monitor *mon, struct child *c, struct imsg *m,
    msg_of_ORIGIN_REFUSED *v)
{
	static struct log_ratelimit rl;
	unsigned int suppressed;

	(void)c;
	(void)m;
	if (!log_ratelimit(&rl, REPORT_BURST, REPORT_S, &suppressed))
		return CL_OK;
	log_warn("origin-refused", "origin=%s host=%s peer=%s suppressed=%u",
	    log_q(v->origin), log_q(v->host), log_q(v->peer), suppressed);
	if (store_add_event(mon->store, util_wall_ns(), "network",
	    "request.origin_refused", "deny", "request", v->peer, "origin",
	    v->origin, "host", v->host, (char *)NULL) != CL_OK)
		mon_set_error(mon, store_error(mon->store));
	return CL_OK;
}

int
answer_foreign(struct monitor *mon, struct child *c, struct imsg *m,
    msg_of_FOREIGN *v)
{
	static struct log_ratelimit rl;
	struct session *s;
	struct handle *h;

	(void)m;
	if (v->session == 0 || v->session > mon->agents.last_session)
		return CL_FORMAT;
	if ((s = answer_find_session(mon, c, v->session)) == NULL ||
	    !log_ratelimit(&rl, REPORT_BURST, REPORT_S, NULL))
		return CL_OK;
	h = handles_find_id(&mon->handles, v->handle);
	log_warn("foreign-handle", "agent=%s name=%s handle=%s type=%s "
	    "owner=%s", log_q(s->agent->row.agent_id),
	    log_q(s->agent->row.name), log_q(v->handle), log_q(v->type),
	    h != NULL ? log_q(h->row.agent_id) : "-");
	if (store_add_event(mon->store, util_wall_ns(),
	    s->agent->row.agent_id, "executor.frame_refused", "deny",
	    "executor", s->agent->row.agent_id, "executor_id",
	    s->agent->row.agent_id, "name", s->agent->row.name, "handle_id",
	    v->handle, "type", v->type, "owner", h != NULL ?
	    h->row.agent_id : NULL, (char *)NULL) != CL_OK)
		mon_set_error(mon, store_error(mon->store));
	return CL_OK;
}

int
answer_penalty(struct monitor *mon, struct child *c, struct imsg *m,
    msg_of_PENALTY *v)
{
	struct penalty_source source;

	(void)m;
	if (penalty_parse_source(v->source, &source) != CL_OK)
		return CL_FORMAT;
	penalty_add(mon, c, &source, (int)v->kind, (uint32_t)v->ms,
	    (uint32_t)v->left_ms);
	return CL_OK;
}
