/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * What fetch_link.c (messages) and fetch_dial.c (until the link is open)
 * share.  Nobody else includes this.
 */
#ifndef CLOOP_FETCH_LINK_INT_H
#define CLOOP_FETCH_LINK_INT_H

#include "common/base/limits.h"
#include "net/codec/http1.h"
#include "net/codec/ws.h"
#include "fetch_link.h"

struct event;
struct evbuffer;
struct tlsio;

enum fl_state { FL_IDLE, FL_CONNECT, FL_TLS, FL_HTTP, FL_OPEN, FL_CLOSING,
	FL_ENDED };

#define FL_WHY_MAX 480		/* a pin mismatch names two digests */
#define FL_PEER_MAX 64
#define FL_READ_MAX 262144	/* of one turn, so that others get theirs */

struct fl {
	struct event_base *base;
	const struct fl_ops *ops;
	void *arg;
	enum fl_state state;
	/* dialling */
	struct fl_target target;
	struct fl_addr addrs[MAX_RESOLVED];
	size_t naddrs;
	size_t next_addr;
	int64_t dial_deadline_at;
	int fd;			/* FL_CONNECT only; tlsio has it later */
	size_t head_scanned;
	unsigned int ninterim;	/* 1xx answers so far */
	int has_end_acks;
	char key[HTTP1_KEY_LEN + 1];
	char peer[FL_PEER_MAX];
	/* the connection */
	struct tlsio *tls;
	struct evbuffer *in;
	struct evbuffer *out;
	struct ws_parser ws;
	struct ws_pace pace;
	struct event *rd, *wr;	/* as tlsio_get_wants() says */
	struct event *timer;	/* one deadline per state */
	struct event *turn;	/* activated by hand: flush, parse, end */
	uint64_t queued;	/* bytes ever put into out */
	uint64_t written;	/* of them gone to the kernel */
	int64_t progress_at;	/* last time `written` moved */
	int paused;
	/* at most one pong waits: the latest ping's (BC-28) */
	int has_pong;
	size_t pong_len;
	uint8_t pong[WS_CONTROL_MAX];
	char why[FL_WHY_MAX];
};

/* Leave for FL_ENDED; on_end follows from the loop.  The first reason wins. */
void fl_fail(struct fl *l, const char *fmt, ...)
    __attribute__((__format__(__printf__, 2, 3)));
/* The only place where the state changes; arms the state's deadline. */
void fl_enter_state(struct fl *l, enum fl_state state);
/* Poll for what the connection wants now. */
void fl_set_events(struct fl *l);
/* Have the turn event run. */
void fl_wake(struct fl *l);
/* Events of the socket fd; replaces those of the one before.  CL_NOMEM. */
int fl_open_events(struct fl *l, int fd);
/* One step of dialling after an event; FL_OPEN when it is done. */
void fl_on_dial(struct fl *l);
/* The deadline of FL_CONNECT passed: next address. */
void fl_on_connect_timeout(struct fl *l);
int64_t fl_get_connect_ms(const struct fl *l);

#endif
