/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * One connection to the hub, in agentd-fetch: TCP, TLS and pin, upgrade, then
 * WebSocket messages in both directions.  Knows nothing of frames.  Prefix
 * fl_.
 */
#ifndef CLOOP_FETCH_LINK_H
#define CLOOP_FETCH_LINK_H

#include <sys/socket.h>

#include <stddef.h>
#include <stdint.h>

struct event_base;
struct pin;
struct tlsio_ctx;
struct fl;

/* Callbacks; none is made from inside a call of the owner. */
struct fl_ops {
	void (*on_open)(void *arg);
	/* One text message; borrowed. */
	void (*on_message)(void *arg, const uint8_t *data, size_t len);
	/* Bytes left for the kernel: fl_get_written() has moved. */
	void (*on_written)(void *arg);
	/* The connection is gone and the link idle again; `why` is for
	 * people and borrowed. */
	void (*on_end)(void *arg, const char *why);
};

struct fl_addr {
	int family;		/* AF_INET, AF_INET6 */
	uint8_t bytes[16];
};

/* Where to; borrowed as long as the link is not idle. */
struct fl_target {
	const char *host;
	uint16_t port;
	const char *path;
	const char *user_agent;
	const char *bearer;
	struct tlsio_ctx *ctx;	/* NULL: plaintext */
	const struct pin *pins;
	size_t npins;
};

struct fl *fl_new(struct event_base *base, const struct fl_ops *ops,
    void *arg);
void fl_free(struct fl *l);

/*
 * Dial the addresses in turn, all of it within DIAL_TIMEOUT_MS.  Ends in
 * on_open or on_end.  CL_STATE when not idle.
 */
int fl_start(struct fl *l, const struct fl_target *t,
    const struct fl_addr *addrs, size_t naddrs);

/*
 * Queue one text message; *posp (or NULL) gets the position behind it, to
 * be compared with fl_get_written().  CL_STATE when not open; CL_LIMIT when
 * the hub does not read (more than MAX_SESSION_OUT_LEN is queued); CL_NOMEM.
 */
int fl_send(struct fl *l, const void *text, size_t len, uint64_t *posp);
uint64_t fl_get_written(const struct fl *l);
size_t fl_get_queued(const struct fl *l);

/* Stop and go on handing out messages; nothing is lost meanwhile. */
void fl_pause(struct fl *l, int on);

/*
 * Send what is queued and a close frame, wait for the other side's end, at
 * most BYE_TIMEOUT_MS; then on_end with this reason.  A link that is not
 * open just ends.  The first call decides.
 */
void fl_close(struct fl *l, uint16_t code, const char *reason);

/* TCP has nothing of ours that the hub's machine has not. */
int fl_is_settled(const struct fl *l);
/* The hub said HTTP1_END_ACK when it took the upgrade. */
int fl_has_end_acks(const struct fl *l);
int fl_is_open(const struct fl *l);
/* For logs: "TLSv1.3", "plaintext", "-". */
const char *fl_get_version(const struct fl *l);
/* The address in use, "[::1]:443"; "-" when there is none. */
const char *fl_get_peer(const struct fl *l);

#endif
