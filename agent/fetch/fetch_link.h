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

#include "fetch_dial.h"

struct event_base;
struct fetch_link;

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
void fetch_link_close(struct fetch_link *l, uint16_t code,
    const char *reason);

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
