/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The frame catalogue, hub <-> device, protocol 1..26: one row a type;
 * tables of the payloads in frame_*.c, their structs in frame_types.h.
 * Pure: no sockets, no sessions, no logging.
 *
 * Receiving: frame_decode_envelope, then frame_decode_payload into the
 * struct of that type, then frame_clear_payload.
 * Sending: frame_encode into a struct jsonw of at most MAX_FRAME_LEN.
 */
#ifndef CLOOP_FRAME_H
#define CLOOP_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/limits.h"
#include "frame_types.h"
#include "json.h"

struct jsonw;

enum frame_dir { FRAME_A2H = 1, FRAME_H2A = 2, FRAME_BOTH = 3 };

/* name, wire name, direction, since, needs a handle, payload */
#define FRAME_CATALOGUE(X)                                                     \
	X(HELLO, "hello", A2H, 1, 0, hello)                                    \
	X(WELCOME, "welcome", H2A, 1, 0, welcome)                              \
	X(HEARTBEAT, "heartbeat", A2H, 1, 0, heartbeat)                        \
	X(HEARTBEAT_ACK, "heartbeat_ack", H2A, 1, 0, heartbeat_ack)            \
	X(START, "start", H2A, 1, 1, start)                                    \
	X(STARTED, "started", A2H, 1, 1, started)                              \
	X(SIGNAL, "signal", H2A, 1, 1, signal)                                 \
	X(STATUS_REQ, "status_req", H2A, 1, 1, empty)                          \
	X(STATUS, "status", A2H, 1, 1, status)                                 \
	X(LOG_CHUNK, "log_chunk", A2H, 1, 1, log_chunk)                        \
	X(LOG_ACK, "log_ack", H2A, 1, 1, log_ack)                              \
	X(BYE, "bye", BOTH, 1, 0, bye)                                         \
	X(ERROR, "error", BOTH, 1, 0, error)                                   \
	X(REVOKE, "revoke", H2A, 2, 0, revoke)                                 \
	X(REVOKED, "revoked", A2H, 2, 0, revoked)                              \
	X(RESULT_CHUNK, "result_chunk", A2H, 4, 0, result_chunk)               \
	X(RESULT, "result", A2H, 4, 0, result)                                 \
	X(ATTACH_OPEN, "attach_open", H2A, 7, 0, attach_open)                  \
	X(ATTACH_OPENED, "attach_opened", A2H, 7, 0, attach_opened)            \
	X(ATTACH_DATA, "attach_data", BOTH, 7, 0, attach_data)                 \
	X(ATTACH_RESIZE, "attach_resize", H2A, 7, 0, attach_resize)            \
	X(ATTACH_CLOSE, "attach_close", BOTH, 7, 0, attach_close)              \
	X(UPGRADE, "upgrade", H2A, 11, 0, upgrade)                             \
	X(UPGRADING, "upgrading", A2H, 11, 0, upgrading)                       \
	X(INSTALL_HARNESS, "install_harness", H2A, 12, 0, install_harness)     \
	X(HARNESS_INSTALLED, "harness_installed", A2H, 12, 0,                  \
	    harness_installed)                                                 \
	X(PROJECT_RESULT, "project_result", A2H, 13, 1, project_result)        \
	X(INVENTORY_REQ, "inventory_req", H2A, 14, 0, empty)                   \
	X(INVENTORY, "inventory", A2H, 14, 0, inventory)                       \
	X(BRANCH_CHUNK, "branch_chunk", H2A, 16, 0, branch_chunk)              \
	X(SECRET_REFRESH, "secret_refresh", H2A, 17, 0, secret_refresh)        \
	X(SECRET_REFRESHED, "secret_refreshed", A2H, 17, 0, secret_refreshed)  \
	X(DEVICE_OPEN, "device_open", H2A, 22, 0, device_open)                 \
	X(DEVICE_OPENED, "device_opened", A2H, 22, 0, device_opened)           \
	X(DEVICE_DATA, "device_data", BOTH, 22, 0, device_data)                \
	X(DEVICE_CLOSE, "device_close", BOTH, 22, 0, device_close)             \
	X(DENIALS, "denials", A2H, 24, 0, denials)                             \
	X(ISOLATION_PROBE, "isolation_probe", H2A, 26, 0, isolation_probe)     \
	X(ISOLATION_EVIDENCE, "isolation_evidence", A2H, 26, 0,                \
	    isolation_evidence)

enum frame_type {
	FRAME_UNKNOWN = 0,
#define X(name, wire, dir, since, handle, payload) FRAME_##name,
	FRAME_CATALOGUE(X)
#undef X
	FRAME_NTYPES
};

struct frame_row {
	const char *name;
	enum frame_dir dir;
	int since;
	int needs_handle;
	const struct field_table *table;	/* size 0: empty payload */
	/* What a receiver checks or trims at decode.  NULL: nothing. */
	int (*check)(struct jx *x, void *payload);
};

/* NULL for FRAME_UNKNOWN. */
const struct frame_row *frame_get_row(enum frame_type type);
enum frame_type frame_find_type(const char *name);
/* The wire name, or "?" (the envelope's own text is env.type_name). */
const char *frame_name(enum frame_type type);

struct frame_env {
	enum frame_type type;		/* FRAME_UNKNOWN: not in the table */
	int v;
	char type_name[MAX_ID_LEN + 1];
	char id[MAX_ID_LEN + 1];	/* "" when absent or refused */
	char handle[MAX_ID_LEN + 1];
	uint32_t payload;		/* token, 0 when there is none */
	size_t payload_len;		/* bytes of its text: for the log */
};

/*
 * Check one message.  CL_OK; CL_FORMAT: fatal, close the session; CL_LIMIT:
 * refused, answer error{protocol} with env->id and go on (a type, id or
 * handle that is too long or holds NUL); CL_NOMEM.  x->why says why.  An
 * unknown type is CL_OK; whether its direction is right is the caller's:
 * frame_is_inbound.  msg must live until the payload is decoded.
 */
int frame_decode_envelope(struct jx *x, const void *msg, size_t len,
    struct frame_env *env);
/* 1 when the side that receives (A2H: the hub) may get this type. */
int frame_is_inbound(enum frame_type type, enum frame_dir dir);

/*
 * Decode and check the payload into the type's struct (frame_types.h),
 * which needs no initialisation and is cleared on failure.  CL_FORMAT,
 * CL_TOOBIG, CL_NOMEM; x->why.  A missing payload is CL_FORMAT unless the
 * type has an empty one; null is all zero.
 */
int frame_decode_payload(struct jx *x, const struct frame_env *env,
    void *payload);
/* The zero value, and its end (wiped). */
void frame_init_payload(enum frame_type type, void *payload);
void frame_clear_payload(enum frame_type type, void *payload);

/*
 * Write one message into w (reset first).  v outside 1..26 becomes 26; id
 * and handle may be NULL; payload NULL leaves the member out.  CL_TOOBIG
 * when it exceeds w's max: nothing may be sent then.
 */
int frame_encode(struct jsonw *w, enum frame_type type, int v,
    const char *id, const char *handle, const void *payload);

/* HS_* (msgcat.h) <-> the state words of the wire.  An unknown word is
 * HS_UNKNOWN. */
int frame_parse_state(const char *word);
const char *frame_state_name(int hs);
/* SIG_* <-> interrupt, terminate, kill.  0 when unknown. */
int frame_parse_signal(const char *word);
const char *frame_signal_name(int sig);
/* Bytes the sender counted for a chunk's text. */
size_t frame_log_len(const struct field_text *text);

#endif
