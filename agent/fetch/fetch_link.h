/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * One connection to the hub, in agentd-fetch: TCP, TLS and pin, upgrade, then
 * WebSocket messages in both directions.  Knows nothing of frames.
 */
#ifndef CLOOP_FETCH_LINK_H
#define CLOOP_FETCH_LINK_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/limits.h"
#include "net/codec/http1.h"

struct conn;
struct event;
struct event_base;
struct fetch_link;
struct pin;
struct tlsio_ctx;

/* --- fetch_dial.c: from addresses to an upgraded connection --- */

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

/* --- fetch_link.c --- */

/* Callbacks; none is made from inside a call of the owner. */
struct fetch_link_ops {
	void (*on_open)(void *arg);
	/* One text message; borrowed. */
	void (*on_message)(void *arg, const uint8_t *data, size_t len);
	/* Bytes left for the kernel: fetch_link_get_written() has moved. */
	void (*on_written)(void *arg);
	/* The connection is gone and the link idle again; `why` is for
	 * people and borrowed. */
	void (*on_end)(void *arg, const char *why);
};

struct fetch_link *fetch_link_new(struct event_base *base,
    const struct fetch_link_ops *ops, void *arg);
void fetch_link_free(struct fetch_link *l);

/*
 * Dial the addresses in turn, all of it within DIAL_TIMEOUT_MS.  Ends in
 * on_open or on_end.  CL_STATE when not idle.
 */
int fetch_link_start(struct fetch_link *l, const struct fetch_target *t,
    const struct fetch_addr *addrs, size_t naddrs);

/*
 * Queue one text message; *posp (or NULL) gets the position behind it, to be
 * compared with fetch_link_get_written().  CL_STATE when not open; CL_LIMIT
 * when the hub does not read (more than MAX_SESSION_OUT_LEN is queued);
 * CL_NOMEM.
 */
int fetch_link_send(struct fetch_link *l, const void *text, size_t len,
    uint64_t *posp);
uint64_t fetch_link_get_written(const struct fetch_link *l);
size_t fetch_link_get_queued(const struct fetch_link *l);

/* Stop and go on handing out messages; nothing is lost meanwhile. */
void fetch_link_pause(struct fetch_link *l, int on);

/*
 * Send what is queued and a close frame, wait for the other side's end, at
 * most BYE_TIMEOUT_MS; then on_end with this reason.  A link that is not
 * open just ends.  The first call decides.
 */
void fetch_link_close(struct fetch_link *l, uint16_t code, const char *reason);

/* TCP has nothing of ours that the hub's machine has not. */
int fetch_link_is_settled(const struct fetch_link *l);
/* The hub said HTTP1_END_ACK when it took the upgrade. */
int fetch_link_has_end_acks(const struct fetch_link *l);
int fetch_link_is_open(const struct fetch_link *l);
/* For logs: "TLSv1.3", "plaintext", "-". */
const char *fetch_link_get_version(const struct fetch_link *l);
/* The address in use, "[::1]:443"; "-" when there is none. */
const char *fetch_link_get_peer(const struct fetch_link *l);

#endif
