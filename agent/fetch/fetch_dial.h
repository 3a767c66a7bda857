/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * From addresses to an upgraded connection, in agentd-fetch.
 */
#ifndef CLOOP_FETCH_DIAL_H
#define CLOOP_FETCH_DIAL_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/limits.h"
#include "net/codec/http1.h"

struct conn;
struct event;
struct event_base;
struct pin;
struct tlsio_ctx;

#define FETCH_WHY_MAX 480	/* a pin mismatch names two digests */
#define FETCH_PEER_MAX 64

struct fetch_addr {
	int family;		/* AF_INET, AF_INET6 */
	uint8_t bytes[16];
};

/* Where to; borrowed until the end of the connection. */
struct fetch_target {
	const char *host;
	uint16_t port;
	const char *path;
	const char *user_agent;
	const char *bearer;
	struct tlsio_ctx *ctx;	/* NULL: plaintext */
	const struct pin *pins;
	size_t npins;
};

enum fetch_dial_stage { DIAL_CONNECT, DIAL_TLS, DIAL_HTTP, DIAL_DONE };

struct fetch_dial {
	struct event_base *base;
	struct conn *conn;	/* opened when TCP is there */
	void (*on_connected)(void *arg);	/* run it: TCP is, or failed */
	void *arg;
	enum fetch_dial_stage stage;
	struct fetch_target target;
	struct fetch_addr addrs[MAX_RESOLVED];
	size_t naddrs;
	size_t next_addr;
	int64_t deadline_at;	/* of all of it */
	int64_t connect_at;	/* of this address */
	int fd;			/* until the connection has it */
	struct event *connected;
	size_t head_scanned;
	unsigned int ninterim;	/* 1xx answers so far */
	int has_end_acks;	/* the hub said HTTP1_END_ACK */
	char key[HTTP1_KEY_LEN + 1];
	char peer[FETCH_PEER_MAX];	/* in use; "-" before the first */
	char why[FETCH_WHY_MAX];	/* it failed, for people */
};

/* conn is borrowed and not open; on_connected is for the loop to call. */
void fetch_dial_init(struct fetch_dial *d, struct event_base *base,
    struct conn *conn, void (*on_connected)(void *), void *arg);
/*
 * Try the addresses in turn, all of it within DIAL_TIMEOUT_MS.  This and the
 * following: CL_INCOMPLETE: wait for the socket or the deadline; CL_OK: the
 * hub took the upgrade; else it failed, and `why` says it.
 */
int fetch_dial_start(struct fetch_dial *d, const struct fetch_target *t,
    const struct fetch_addr *addrs, size_t naddrs);
/* One step, after an event. */
int fetch_dial_run(struct fetch_dial *d);
/* Until when to wait, and that it has passed. */
int64_t fetch_dial_get_deadline(const struct fetch_dial *d);
int fetch_dial_expire(struct fetch_dial *d);
/* Give up an attempt to connect. */
void fetch_dial_stop(struct fetch_dial *d);

#endif
