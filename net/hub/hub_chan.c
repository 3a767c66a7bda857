/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The monitor's messages to cloopd-net: one row a type.  The monitor is
 * trusted with more than this process; a message that breaks the catalogue
 * means that the two are not of one build, and the process ends.
 */
#include "hub.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/util.h"
#include "net/codec/tlsio.h"
#include "tlskey.h"

#define HUB_CHAIN_MAX 262144	/* PEM: a leaf and its intermediates */

int
hub_send(void *ctx, uint32_t type, uint64_t id, const struct buf *body,
    int fd)
{
	struct hub *hub = ctx;
	int r;

	r = imsg_compose(&hub->chan, type, id, body, fd);
	if (r == CL_TOOBIG || r == CL_FORMAT || r == CL_NOMEM) {
		/* Ours to get right; without it the monitor's view of the
		 * session would be wrong for ever. */
		fatal("channel-compose", "type=%s reason=%s",
		    msgcat_name(type), cl_strerror(r));
	}
	if (r != CL_OK)
		fatal("channel-full", "type=%s reason=%s", msgcat_name(type),
		    cl_strerror(r));
	return r;
}

void
hub_add_penalty(struct hub *hub, const struct hub_addr *a, int kind)
{
	char source[SRC_TEXT_MAX];
	struct buf b;
	uint32_t ms;

	if ((ms = src_add_penalty(&hub->sources, a, kind, hub->now)) == 0)
		return;
	src_format(a, source);
	buf_init(&b, 128);
	buf_put_str(&b, source);
	buf_put_u8(&b, (uint8_t)kind);
	buf_put_u32(&b, ms);
	buf_put_u32(&b, src_get_left(&hub->sources, a, hub->now));
	(void)hub_send(hub, MSG_PENALTY, 0, &b, -1);
	buf_clear(&b);
}

/* ------------------------------------------------------------ certificate */

void
hub_load_tls(struct hub *hub)
{
	struct tlsio_ctx *ctx;
	struct hub_tls *t = &hub->tls;
	struct tlskey *key;
	const char *why = "";
	int fd = t->key_fd;

	if (fd == -1)
		return;
	if (t->chain == NULL) {
		if (t->key == NULL)
			return;
		/* The key process was restarted; the key is the same. */
		t->key_fd = -1;
		if (tlskey_set_channel(t->key, fd) != CL_OK)
			log_error("tls-key", "reason=channel");
		return;
	}
	t->key_fd = -1;
	if (tlskey_new(t->chain, t->chain_len, fd, &key, &why) != CL_OK ||
	    tlsio_ctx_new_server(t->chain, t->chain_len,
	    tlskey_get_pkey(key), &ctx, &why) != CL_OK) {
		if (t->ctx == NULL)
			fatal("tls-certificate", "reason=%s", log_q(why));
		log_error("tls-certificate", "reason=%s kept=old",
		    log_q(why));
		return;
	}
	/* Connections under way keep the old context alive. */
	tlsio_ctx_free(t->ctx);
	tlskey_free(t->key);
	t->ctx = ctx;
	t->key = key;
	free(t->chain);
	t->chain = NULL;
}

static void
hub_on_cert(struct hub *hub, struct imsg *m)
{
	uint32_t len = buf_get_u32(&m->body);
	uint8_t *chain;
	int r;

	if ((r = util_load_memfd(m->fd, len, HUB_CHAIN_MAX, &chain)) != CL_OK)
		fatal("monitor-message", "type=NET_CERT reason=%s",
		    cl_strerror(r));
	free(hub->tls.chain);
	hub->tls.chain = chain;
	hub->tls.chain_len = len;
	hub_load_tls(hub);
}

static void
hub_on_key(struct hub *hub, struct imsg *m)
{
	if (hub->tls.key_fd != -1)
		close(hub->tls.key_fd);
	hub->tls.key_fd = imsg_take_fd(m);
	hub_load_tls(hub);
}

/* ----------------------------------------------------------------- others */

static void
hub_on_config(struct hub *hub, struct imsg *m)
{
	int r = hub_conf_get(&m->body, &hub->conf);

	if (r != CL_OK)
		fatal("monitor-message", "type=NET_CONFIG reason=%s",
		    cl_errname(r));
	log_init("cloopd-net", (enum log_level)hub->conf.log_level,
	    LOGF_TEXT);
}

static void
hub_on_listen(struct hub *hub, struct imsg *m)
{
	int plaintext = buf_get_bool(&m->body), r;
	char address[129];

	buf_get_str(&m->body, address, sizeof(address) - 1);
	if (buf_end(&m->body) != CL_OK)
		fatal("monitor-message", "type=NET_LISTEN reason=malformed");
	r = hl_add(hub, imsg_take_fd(m), plaintext, address);
	if (r != CL_OK)
		fatal("listen", "address=%s reason=%s", log_q(address),
		    cl_strerror(r));
}

static void
hub_on_start(struct hub *hub, struct imsg *m)
{
	(void)m;
	hub->chan_state = MS_SERVING;
}

static void
hub_on_stop(struct hub *hub, struct imsg *m)
{
	uint32_t grace_ms = buf_get_u32(&m->body);

	if (hub->chan_state == MS_STARTING) {
		hub->done = 1;
		return;
	}
	hub->chan_state = MS_STOPPING;
	hub->stop_at = hub->now + grace_ms;
	log_info("stopping", "sessions=%zu", hub->sessions.nlive);
	hl_clear(hub);
	hs_stop_all(hub);
}

static void
hub_on_drop(struct hub *hub, struct imsg *m)
{
	struct frame_bye bye = { NULL, 0 };
	struct hs *s;
	uint64_t session;
	char reason[MAX_CLOSE_REASON_LEN * 4 + 1];
	int how;

	session = buf_get_u64(&m->body);
	how = buf_get_u8(&m->body);
	buf_get_str(&m->body, reason, sizeof(reason) - 1);
	if (buf_end(&m->body) != CL_OK)
		fatal("monitor-message", "type=SESSION_DROP reason=malformed");
	if ((s = hs_find(&hub->sessions, session)) == NULL ||
	    hs_is_end(s->state))
		return;
	if (how == DROP_REVOKED || how == DROP_SHUTDOWN) {
		bye.reason = reason;
		bye.reconnect = how == DROP_SHUTDOWN;
		if (s->state == HST_LIVE)
			(void)hs_put_frame(s, FRAME_BYE, s->negotiated, NULL,
			    NULL, &bye);
	}
	/* A newer session is there: is this one only half-open (BC-38)? */
	s->superseded = how == DROP_SUPERSEDED && s->state == HST_LIVE;
	hs_set_end(s, AGENT_OFFLINE, how == DROP_FOREIGN ? WS_CODE_POLICY :
	    WS_CODE_NORMAL, reason);
	hs_run(s, HE_CLOSE);
}

static void
hub_on_penalty(struct hub *hub, struct imsg *m)
{
	struct hub_addr addr;
	char source[129];
	uint32_t ms;

	buf_get_str(&m->body, source, sizeof(source) - 1);
	(void)buf_get_u8(&m->body);
	ms = buf_get_u32(&m->body);
	if (buf_end(&m->body) != CL_OK || src_parse(source, &addr) != CL_OK)
		fatal("monitor-message", "type=PENALTY_SET reason=malformed");
	src_add_ms(&hub->sources, &addr, ms, hub->now);
}

static void
hub_on_answer(struct hub *hub, struct imsg *m)
{
	struct buf b;
	int r = ask_answer(&hub->asks, m);

	if (r == CL_FORMAT)
		fatal("monitor-message", "type=%s reason=unasked",
		    msgcat_name(m->type));
	if (r != CL_NOTFOUND || m->type != MSG_AUTH_ANS ||
	    buf_get_u8(&m->body) != AUTH_OK)
		return;
	/* A session was made for a connection that is gone already. */
	buf_init(&b, 64);
	buf_put_u64(&b, buf_get_u64(&m->body));
	buf_put_u8(&b, AGENT_OFFLINE);
	buf_put_str(&b, "the connection was closed");
	(void)hub_send(hub, MSG_SESSION_DOWN, 0, &b, -1);
	buf_clear(&b);
}

static const struct hub_row {
	uint32_t type;
	void (*on)(struct hub *hub, struct imsg *m);
} hub_rows[] = {
	{ MSG_NET_CONFIG, hub_on_config },
	{ MSG_NET_LISTEN, hub_on_listen },
	{ MSG_NET_CERT, hub_on_cert },
	{ MSG_NET_KEY, hub_on_key },
	{ MSG_NET_START, hub_on_start },
	{ MSG_NET_STOP, hub_on_stop },
	{ MSG_AUTH_ANS, hub_on_answer },
	{ MSG_HELLO_ANS, hub_on_answer },
	{ MSG_WHO_ANS, hub_on_answer },
	{ MSG_RESULT_TAKE_ANS, hub_on_answer },
	{ MSG_PROJECT_ANS, hub_on_answer },
	{ MSG_SESSION_DROP, hub_on_drop },
	{ MSG_HANDLE_OPEN, hs_on_request },
	{ MSG_HANDLE_LOG, hs_on_request },
	{ MSG_HANDLE_INDEX, hs_on_request },
	{ MSG_HANDLE_FILES_ANS, hub_on_answer },
	{ MSG_HANDLE_SHUT, hs_on_request },
	{ MSG_HANDLE_FORGET, hs_on_request },
	{ MSG_HANDLE_REDACT, hs_on_request },
	{ MSG_REVOKE, hs_on_request },
	{ MSG_REFRESH, hs_on_request },
	{ MSG_HANDLE_WORK, hs_on_work_message },
	{ MSG_RESULT_FILE, hs_on_work_message },
	{ MSG_BRANCH_FILE, hs_on_work_message },
	{ MSG_START, hs_on_request },
	{ MSG_SIGNAL, hs_on_request },
	{ MSG_QUERY, hs_on_request },
	{ MSG_INVENTORY, hs_on_request },
	{ MSG_PENALTY_SET, hub_on_penalty },
};

void
hub_on_message(struct hub *hub, struct imsg *m)
{
	const char *why;
	size_t i;

	if (msgcat_check(MSG_M2N, hub->chan_state, m, &hub->seen, &why) !=
	    CL_OK)
		fatal("monitor-message", "type=%s reason=%s",
		    msgcat_name(m->type), why);
	for (i = 0; i < sizeof(hub_rows) / sizeof(hub_rows[0]); i++)
		if (hub_rows[i].type == m->type) {
			hub_rows[i].on(hub, m);
			return;
		}
	fatal("monitor-message", "type=%s reason=no handler",
	    msgcat_name(m->type));
}
