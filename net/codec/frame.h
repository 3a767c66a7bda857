/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The frame catalogue, hub <-> device, protocol 1..26: one row a type;
 * the payloads are declared in frame.def, their checks in frame_check.c.
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
#include "common/model/caps.h"
#include "common/model/leasemsg.h"
#include "common/model/spec.h"
#include "json.h"

struct jsonw;

#define FRAME_WORD_MAX 256	/* names, enumerations, ids of others */
#define FRAME_TEXT_MAX 4096	/* paths and other free values */
#define FRAME_HANDLES_MAX 4096	/* tracked by an agent, of any make */
#define FRAME_VERDICTS_MAX 1024
#define FRAME_ARGS_MAX 4096
#define FRAME_BRANCH_MAX 200
#define FRAME_OBJECT_MAX 64	/* a commit, a digest */
#define FRAME_DATA_MAX 32768	/* of a channel, at once */

#define DEF_FILE "net/codec/frame.def"
#include "common/msg/def_struct.h"

enum frame_dir { FRAME_A2H = 1, FRAME_H2A = 2, FRAME_BOTH = 3 };

/* name, wire name, direction, since, needs a handle, payload, its check */
#define FRAME_CATALOGUE(X)                                                     \
	X(HELLO, "hello", A2H, 1, 0, frame_hello, hello)                       \
	X(WELCOME, "welcome", H2A, 1, 0, frame_welcome, none)                  \
	X(HEARTBEAT, "heartbeat", A2H, 1, 0, frame_heartbeat, none)            \
	X(HEARTBEAT_ACK, "heartbeat_ack", H2A, 1, 0,                           \
	    frame_heartbeat_ack, none)                                         \
	X(START, "start", H2A, 1, 1, spec_start, start)                        \
	X(STARTED, "started", A2H, 1, 1, frame_started, none)                  \
	X(SIGNAL, "signal", H2A, 1, 1, frame_signal, signal)                   \
	X(STATUS_REQ, "status_req", H2A, 1, 1, frame_empty, none)              \
	X(STATUS, "status", A2H, 1, 1, frame_status, none)                     \
	X(LOG_CHUNK, "log_chunk", A2H, 1, 1, frame_log_chunk, none)            \
	X(LOG_ACK, "log_ack", H2A, 1, 1, frame_log_ack, none)                  \
	X(BYE, "bye", BOTH, 1, 0, frame_bye, none)                             \
	X(ERROR, "error", BOTH, 1, 0, frame_error, none)                       \
	X(REVOKE, "revoke", H2A, 2, 0, lease_revoke, revoke)                   \
	X(REVOKED, "revoked", A2H, 2, 0, dev_revoked, none)                    \
	X(RESULT_CHUNK, "result_chunk", A2H, 4, 0,                             \
	    frame_result_chunk, result_chunk)                                  \
	X(RESULT, "result", A2H, 4, 0, frame_result, result)                   \
	X(ATTACH_OPEN, "attach_open", H2A, 7, 0, frame_attach_open, channel)   \
	X(ATTACH_OPENED, "attach_opened", A2H, 7, 0,                           \
	    frame_attach_opened, channel)                                      \
	X(ATTACH_DATA, "attach_data", BOTH, 7, 0, frame_attach_data, channel)  \
	X(ATTACH_RESIZE, "attach_resize", H2A, 7, 0,                           \
	    frame_attach_resize, channel)                                      \
	X(ATTACH_CLOSE, "attach_close", BOTH, 7, 0,                            \
	    frame_attach_close, channel)                                       \
	X(UPGRADE, "upgrade", H2A, 11, 0, frame_upgrade, upgrade)              \
	X(UPGRADING, "upgrading", A2H, 11, 0, frame_upgrading, none)           \
	X(INSTALL_HARNESS, "install_harness", H2A, 12, 0,                      \
	    frame_install_harness, install_harness)                            \
	X(HARNESS_INSTALLED, "harness_installed", A2H, 12, 0,                  \
	    frame_harness_installed, none)                                     \
	X(PROJECT_RESULT, "project_result", A2H, 13, 1,                        \
	    frame_project_result, project_result)                              \
	X(INVENTORY_REQ, "inventory_req", H2A, 14, 0, frame_empty, none)       \
	X(INVENTORY, "inventory", A2H, 14, 0, frame_inventory, inventory)      \
	X(BRANCH_CHUNK, "branch_chunk", H2A, 16, 0,                            \
	    frame_branch_chunk, branch_chunk)                                  \
	X(SECRET_REFRESH, "secret_refresh", H2A, 17, 0,                        \
	    lease_refresh, secret_refresh)                                     \
	X(SECRET_REFRESHED, "secret_refreshed", A2H, 17, 0,                    \
	    dev_refreshed, none)                                               \
	X(DEVICE_OPEN, "device_open", H2A, 22, 0,                              \
	    frame_device_open, device_open)                                    \
	X(DEVICE_OPENED, "device_opened", A2H, 22, 0,                          \
	    frame_device_opened, channel)                                      \
	X(DEVICE_DATA, "device_data", BOTH, 22, 0, frame_device_data, channel) \
	X(DEVICE_CLOSE, "device_close", BOTH, 22, 0,                           \
	    frame_device_close, channel)                                       \
	X(DENIALS, "denials", A2H, 24, 0, frame_denials, none)                 \
	X(ISOLATION_PROBE, "isolation_probe", H2A, 26, 0,                      \
	    frame_isolation_probe, isolation_probe)                            \
	X(ISOLATION_EVIDENCE, "isolation_evidence", A2H, 26, 0,                \
	    frame_isolation_evidence, none)

enum frame_type {
	FRAME_UNKNOWN = 0,
#define X(name, wire, dir, since, handle, payload, check) FRAME_##name,
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
 * Decode and check the payload into the type's struct (frame.def),
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
