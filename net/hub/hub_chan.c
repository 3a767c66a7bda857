/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The monitor's messages to cloopd-net: one handler a row.  The monitor is
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
hub_send(void *ctx, uint32_t type, uint64_t id, const void *v, int fd)
{
	struct hub *hub = ctx;
	int r = chan_send(&hub->chan, type, id, v, fd);

	/* Ours to get right; without it the monitor's view of the session
	 * would be wrong for ever. */
	if (r != CL_OK)
		fatal("channel-send", "type=%s reason=%s", msgcat_name(type),
		    cl_strerror(r));
	return r;
}

void
hub_add_penalty(struct hub *hub, const struct hub_addr *a, int kind)
{
	char source[SRC_TEXT_MAX];
	struct msg_penalty body = { .source = source, .kind = kind };

	body.ms = src_add_penalty(&hub->sources, a, kind, hub->now);
	if (body.ms == 0)
		return;
	src_format(a, source);
	body.left_ms = src_get_left(&hub->sources, a, hub->now);
	HUB_SEND(hub, PENALTY, &body);
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
hub_on_cert(struct hub *hub, struct imsg *m, struct msg_memfd *v)
{
	uint8_t *chain;
	int r;

	if ((r = util_load_memfd(m->fd, (size_t)v->len, HUB_CHAIN_MAX,
	    &chain)) != CL_OK)
		fatal("monitor-message", "type=NET_CERT reason=%s",
		    cl_strerror(r));
	free(hub->tls.chain);
	hub->tls.chain = chain;
	hub->tls.chain_len = (size_t)v->len;
	hub_load_tls(hub);
}

static void
hub_on_key(struct hub *hub, struct imsg *m, struct msg_empty *v)
{
	(void)v;
	if (hub->tls.key_fd != -1)
		close(hub->tls.key_fd);
	hub->tls.key_fd = imsg_take_fd(m);
	hub_load_tls(hub);
}

/* ----------------------------------------------------------------- others */

static void
hub_on_config(struct hub *hub, struct imsg *m, struct msg_net_config *v)
{
	int r;

	(void)m;
	if ((r = hub_conf_set(&hub->conf, v)) != CL_OK)
		fatal("monitor-message", "type=NET_CONFIG reason=%s",
		    cl_errname(r));
	log_init("cloopd-net", (enum log_level)hub->conf.net.log_level,
	    LOGF_TEXT);
}

static void
hub_on_listen(struct hub *hub, struct imsg *m, struct msg_net_listen *v)
{
	int r = hl_add(hub, imsg_take_fd(m), v->plaintext, v->address);

	if (r != CL_OK)
		fatal("listen", "address=%s reason=%s", log_q(v->address),
		    cl_strerror(r));
}

/* What comes behind it waits until we are confined. */
static void
hub_on_start(struct hub *hub, struct imsg *m, struct msg_empty *v)
{
	(void)m;
	(void)v;
	hub->chan.state = MS_SERVING;
	chan_hold(&hub->chan);
}

static void
hub_on_stop(struct hub *hub, struct imsg *m, struct msg_net_stop *v)
{
	(void)m;
	if (hub->chan.state == MS_STARTING) {
		hub->done = 1;
		return;
	}
	hub->chan.state = MS_STOPPING;
	hub->stop_at = hub->now + (int64_t)v->grace_ms;
	log_info("stopping", "sessions=%zu", hub->sessions.nlive);
	hl_clear(hub);
	hs_stop_all(hub);
}

static void
hub_on_drop(struct hub *hub, struct imsg *m, struct msg_session_drop *v)
{
	struct frame_bye bye = { NULL, 0 };
	struct hs *s;

	(void)m;
	if ((s = hs_find(&hub->sessions, v->session)) == NULL ||
	    hs_is_end(s->state))
		return;
	if (v->how == DROP_REVOKED || v->how == DROP_SHUTDOWN) {
		bye.reason = (char *)(uintptr_t)v->reason;
		bye.reconnect = v->how == DROP_SHUTDOWN;
		if (s->state == HST_LIVE)
			(void)hs_put_frame(s, FRAME_BYE, s->negotiated, NULL,
			    NULL, &bye);
	}
	/* A newer session is there: is this one only half-open (BC-38)? */
	s->superseded = v->how == DROP_SUPERSEDED && s->state == HST_LIVE;
	hs_set_end(s, AGENT_OFFLINE, v->how == DROP_FOREIGN ? WS_CODE_POLICY :
	    WS_CODE_NORMAL, v->reason);
	hs_run(s, HE_CLOSE);
}

static void
hub_on_penalty(struct hub *hub, struct imsg *m, struct msg_penalty_set *v)
{
	struct hub_addr addr;

	(void)m;
	if (src_parse(v->source, &addr) != CL_OK)
		fatal("monitor-message", "type=PENALTY_SET reason=malformed");
	src_add_ms(&hub->sources, &addr, (uint32_t)v->ms, hub->now);
}

static void
hub_on_answer(struct hub *hub, const struct imsg *m, union msg_any *v)
{
	struct msg_session_down down = { .status = AGENT_OFFLINE,
	    .reason = "the connection was closed" };
	int r = ask_answer(&hub->asks, m, v);

	if (r == CL_FORMAT)
		fatal("monitor-message", "type=%s reason=unasked",
		    msgcat_name(m->type));
	if (r != CL_NOTFOUND || m->type != MSG_AUTH_ANS ||
	    v->AUTH_ANS.result != AUTH_OK)
		return;
	/* A session was made for a connection that is gone already. */
	down.session = v->AUTH_ANS.session;
	HUB_SEND(hub, SESSION_DOWN, &down);
}

/* What is no answer: row and function, each with its own type of body. */
#define HUB_HANDLERS(X)                                                        \
	X(NET_CONFIG, hub_on_config)                                           \
	X(NET_LISTEN, hub_on_listen)                                           \
	X(NET_CERT, hub_on_cert)                                               \
	X(NET_KEY, hub_on_key)                                                 \
	X(NET_START, hub_on_start)                                             \
	X(NET_STOP, hub_on_stop)                                               \
	X(SESSION_DROP, hub_on_drop)                                           \
	X(PENALTY_SET, hub_on_penalty)                                         \
	X(HANDLE_OPEN, hs_on_handle_open)                                      \
	X(HANDLE_LOG, hs_on_handle_log)                                        \
	X(HANDLE_INDEX, hs_on_handle_index)                                    \
	X(HANDLE_SHUT, hs_on_handle_shut)                                      \
	X(HANDLE_FORGET, hs_on_handle_forget)                                  \
	X(HANDLE_SEAL, hseal_on_file)                                          \
	X(HANDLE_REDACT, hs_on_handle_redact)                                  \
	X(HANDLE_WORK, hs_on_handle_work)                                      \
	X(START, hs_on_start)                                                  \
	X(SIGNAL, hs_on_signal)                                                \
	X(INVENTORY, hs_on_inventory)                                          \
	X(REVOKE, hs_on_revoke)                                                \
	X(REFRESH, hs_on_refresh)                                              \
	X(RESULT_FILE, hs_on_result_file)                                      \
	X(BRANCH_FILE, hs_on_branch_file)

int
hub_on_message(struct hub *hub, struct imsg *m, union msg_any *v)
{
	if (m->type % 2 == 1) {
		hub_on_answer(hub, m, v);
		return CL_OK;
	}
	switch (m->type) {
#define X(name, fn)                                                            \
	case MSG_##name:                                                       \
		fn(hub, m, &v->name);                                          \
		return CL_OK;
	HUB_HANDLERS(X)
#undef X
	default:
		return CL_INTERNAL;	/* a row without a handler */
	}
}
