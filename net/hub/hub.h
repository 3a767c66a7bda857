/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The one context of a cloopd-net worker: what its modules share, passed
 * around explicitly.  Each member belongs to the module whose header
 * declares its type.
 */
#ifndef CLOOP_HUB_H
#define CLOOP_HUB_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/log.h"
#include "common/json/jsonw.h"
#include "common/msg/chan.h"
#include "net/codec/json.h"
#include "ask.h"
#include "hub_conf.h"
#include "hub_listen.h"
#include "hub_log.h"
#include "hub_seal.h"
#include "hub_session.h"
#include "hub_source.h"

struct event;
struct event_base;
struct tlskey;
struct tlsio_ctx;

/* Certificate and key; a context exists when both have come. */
struct hub_tls {
	uint8_t *chain;		/* of NET_CERT, until its key comes */
	size_t chain_len;
	int key_fd;		/* of NET_KEY, until its chain comes; -1 */
	struct tlskey *key;
	struct tlsio_ctx *ctx;
};

struct hub {
	struct event_base *base;
	struct event *tick;
	int64_t tick_at;
	int64_t now;			/* of this loop turn, monotonic ms */
	struct chan chan;		/* to the monitor */
	uint64_t nshort;		/* its shortages that were seen to */
	struct hub_conf conf;
	struct hub_tls tls;
	struct ask_table asks;
	struct src_table sources;
	struct hlog_table logs;
	struct hseal_list seals;
	struct hl_table listeners;
	struct hs_table sessions;
	struct jx jx;
	struct jsonw jw;
	struct log_ratelimit rl_refused, rl_accept, rl_frame, rl_pause;
	int64_t watch_at;		/* next watchdog round */
	int64_t stop_at;		/* end of the grace, 0: serving */
	int done;			/* leave the loop */
};

/*
 * Queue a message to the monitor; takes fd.  A channel that is full or gone
 * ends the process: without a monitor there is nothing to do here.
 */
int hub_send(void *hub, uint32_t type, uint64_t id, const void *v, int fd);
#define HUB_SEND(hub, name, v)                                                 \
	(void)hub_send(hub, MSG_##name, 0, MSG_BODY(name, v), -1)
/* A question for a connection; fd is taken.  See ask_start. */
#define HUB_ASK(s, name, v, fd, fn)                                            \
	ask_start(&(s)->hub->asks, &(s)->asks, MSG_##name,                     \
	    MSG_BODY(name, v), fd, fn, (s)->hub->now)
/* One message of the monitor's; as chan_msg_fn. */
int hub_on_message(struct hub *hub, struct imsg *m, union msg_any *v);
/* Build the TLS context as soon as chain and key are there. */
void hub_load_tls(struct hub *hub);

/* Penalise the address of a session and tell the monitor. */
void hub_add_penalty(struct hub *hub, const struct hub_addr *a, int kind);

#endif
