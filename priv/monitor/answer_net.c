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
answer_net_ready(struct monitor *mon, struct child *c, struct imsg *m)
{
	uint32_t version, index;

	version = buf_get_u32(&m->body);
	index = buf_get_u32(&m->body);
	if (buf_end(&m->body) != CL_OK || version != MSGCAT_VERSION ||
	    index != c->index)
		return CL_FORMAT;
	child_enter_serving(c);
	mon_on_ready(c);
	return CL_OK;
}

int
answer_net_stopped(struct monitor *mon, struct child *c, struct imsg *m)
{
	(void)mon;
	(void)m;
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
answer_origin_refused(struct monitor *mon, struct child *c, struct imsg *m)
{
	static struct log_ratelimit rl;
	char origin[512 + 1], host[512 + 1], peer[128 + 1];
	unsigned int suppressed;

	(void)c;
	buf_get_str(&m->body, origin, sizeof(origin) - 1);
	buf_get_str(&m->body, host, sizeof(host) - 1);
	buf_get_str(&m->body, peer, sizeof(peer) - 1);
	if (buf_end(&m->body) != CL_OK)
		return CL_FORMAT;
	if (!log_ratelimit(&rl, REPORT_BURST, REPORT_S, &suppressed))
		return CL_OK;
	log_warn("origin-refused", "origin=%s host=%s peer=%s suppressed=%u",
	    log_q(origin), log_q(host), log_q(peer), suppressed);
	if (store_add_event(mon->store, util_wall_ns(), "network",
	    "request.origin_refused", "deny", "request", peer, "origin",
	    origin, "host", host, (char *)NULL) != CL_OK)
		mon_set_error(mon, store_error(mon->store));
	return CL_OK;
}

int
answer_foreign(struct monitor *mon, struct child *c, struct imsg *m)
{
	static struct log_ratelimit rl;
	char handle[MAX_ID_LEN + 1], type[MAX_ID_LEN + 1];
	struct session *s;
	struct handle *h;
	uint64_t number;

	number = buf_get_u64(&m->body);
	buf_get_str(&m->body, handle, sizeof(handle) - 1);
	buf_get_str(&m->body, type, sizeof(type) - 1);
	if (buf_end(&m->body) != CL_OK || number == 0 ||
	    number > mon->agents.last_session)
		return CL_FORMAT;
	if ((s = answer_find_session(mon, c, number)) == NULL ||
	    !log_ratelimit(&rl, REPORT_BURST, REPORT_S, NULL))
		return CL_OK;
	h = handles_find_id(&mon->handles, handle);
	log_warn("foreign-handle", "agent=%s name=%s handle=%s type=%s "
	    "owner=%s", log_q(s->agent->row.agent_id),
	    log_q(s->agent->row.name), log_q(handle), log_q(type),
	    h != NULL ? log_q(h->row.agent_id) : "-");
	if (store_add_event(mon->store, util_wall_ns(),
	    s->agent->row.agent_id, "executor.frame_refused", "deny",
	    "executor", s->agent->row.agent_id, "executor_id",
	    s->agent->row.agent_id, "name", s->agent->row.name, "handle_id",
	    handle, "type", type, "owner", h != NULL ? h->row.agent_id :
	    NULL, (char *)NULL) != CL_OK)
		mon_set_error(mon, store_error(mon->store));
	return CL_OK;
}

int
answer_penalty(struct monitor *mon, struct child *c, struct imsg *m)
{
	struct penalty_source source;
	char text[MAX_ID_LEN + 1];
	uint32_t ms, left_ms;
	int kind;

	buf_get_str(&m->body, text, sizeof(text) - 1);
	kind = buf_get_u8(&m->body);
	ms = buf_get_u32(&m->body);
	left_ms = buf_get_u32(&m->body);
	if (buf_end(&m->body) != CL_OK || kind < PEN_AUTH ||
	    kind > PEN_CRASH || ms > MAX_PENALTY_MS ||
	    left_ms > MAX_PENALTY_MS ||
	    penalty_parse_source(text, &source) != CL_OK)
		return CL_FORMAT;
	penalty_add(mon, c, &source, kind, ms, left_ms);
	return CL_OK;
}
