/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The message catalogue: every message that any two of our processes may
 * exchange.  One .def file a channel says it: a row is name, number,
 * direction, states in which the *receiver* accepts it, the struct of its
 * body, descriptor, multiplicity and quota; a struct says each member once,
 * with its bounds.  Everything else (structs, names, tables, encoding,
 * decoding, checks) is generated; `make catalogue` prints it, and
 * cloop-internals(7) has it with what stands around it (after a change: `make
 * man-catalogue`).  A request has an even number; an answer is its request + 1
 * and carries the request's id.  What is not in a row, or not as the row says,
 * ends the sender.
 *
 * Directions name sender and receiver:
 *   hub_net.def    N2M M2N   cloopd-net <-> monitor
 *   hub_key.def    M2K K2M   monitor <-> cloopd-key;  N2K K2N  cloopd-net
 *   hub_fence.def  W2M M2W   cloopd-fence <-> monitor
 *   hub_ctl.def    C2M M2C   operator (through cloopd-ctl) <-> monitor
 *   dev_fetch.def  F2M M2F   agentd-fetch <-> agentd monitor
 *   dev_shim.def   S2M M2S   cloop-shim <-> agentd monitor
 *   dev_job.def    J2M M2J   cloop-git, cloop-seed <-> agentd monitor
 *   dev_shimd.def  D2M M2D   cloop-shimd <-> agentd monitor
 *
 * A "memfd" is sealed; its length is the member `len`.
 */
#ifndef CLOOP_MSGCAT_H
#define CLOOP_MSGCAT_H

#include <stddef.h>
#include <stdint.h>

#include "common/model/ctlmsg.h"
#include "common/model/devjob.h"
#include "common/model/leasemsg.h"
#include "common/model/workmsg.h"
#include "field.h"
#include "imsg.h"


/* The version of this catalogue; both ends compare it at READY / HELLO. */
#define MSGCAT_VERSION 2

enum msg_dir {
	MSG_N2M = 1, MSG_M2N, MSG_M2K, MSG_K2M, MSG_N2K, MSG_K2N, MSG_C2M,
	MSG_M2C, MSG_W2M, MSG_M2W, MSG_F2M, MSG_M2F, MSG_S2M, MSG_M2S,
	MSG_J2M, MSG_M2J, MSG_D2M, MSG_M2D
};

/* States of a channel, seen from the receiver. */
#define MS_STARTING 0x01	/* before READY / before GO */
#define MS_SERVING 0x02
#define MS_STOPPING 0x04
#define MS_ANY (MS_STARTING | MS_SERVING | MS_STOPPING)
#define MS_LIVE (MS_SERVING | MS_STOPPING)

enum { AUTH_OK, AUTH_DENIED, AUTH_UNAVAILABLE, AUTH_FAILED };
enum { HELLO_OK, HELLO_UNAUTHORIZED, HELLO_VERSION, HELLO_GONE,
	HELLO_DUPLICATE, HELLO_LATER };
/* On a workload that a device offers: nothing is said, go on, end it. */
enum { VERDICT_NONE, VERDICT_CONTINUE, VERDICT_UNKNOWN, VERDICT_ABANDONED };
enum { AGENT_ONLINE, AGENT_OFFLINE, AGENT_UNREACHABLE };
enum { DROP_SUPERSEDED = 1, DROP_REVOKED, DROP_SHUTDOWN, DROP_FOREIGN };
enum { WHO_UNKNOWN, WHO_FOREIGN, WHO_YOURS, WHO_LATER };
enum { FILES_OK, FILES_LATER, FILES_GONE };
/* Handle states. */
enum { HS_PENDING = 1, HS_RUNNING, HS_EXITED, HS_FAILED, HS_KILLED,
	HS_UNKNOWN };
/* Ends of a request to a device. */
enum { RES_OK, RES_ERROR_FRAME, RES_NOT_STARTED, RES_SESSION_CLOSED,
	RES_TOO_BIG, RES_PROTOCOL, RES_TIMEOUT };
enum { SIG_INTERRUPT = 1, SIG_TERMINATE, SIG_KILL };
#define SHIM_SIG_STOP 4		/* TERM, and nothing outlives the leader */
enum { PEN_AUTH = 1, PEN_PROTOCOL, PEN_CRASH };
enum { REVOKE_SCRUB = 1, REVOKE_KILL };
/* What a workload was asked to return. */
enum { WORK_NONE, WORK_PUSH, WORK_BUNDLE, WORK_UNKNOWN };
/* Room for returned work: there is; not for this agent, not in the hub;
 * it cannot be kept, or not now. */
enum { TAKE_OK, TAKE_AGENT, TAKE_TOTAL, TAKE_FAILED, TAKE_LATER };

/* Of an operator. */
enum { ROLE_NONE, ROLE_VIEWER, ROLE_OPERATOR };
enum { CTL_WORK_SHOW, CTL_WORK_BUNDLE, CTL_WORK_PROJECT };
/* The administrative state of an agent. */
enum { ADMIN_READY = 1, ADMIN_CORDONED, ADMIN_DRAINING };

enum { LINK_CONNECTING = 1, LINK_UP, LINK_DOWN };
enum { FATAL_NONE, FATAL_UNAUTHORIZED, FATAL_VERSION, FATAL_BYE };

enum msg_type {
#define ROW(name, number, dir, states, body, fd, once, rate, open)             \
	MSG_##name = number,
#define DEF_FILE "common/msg/catalogue.def"
#include "def_rows.h"
};

/* struct msg_..., one a body, and what each row's body is. */
#define DEF_FILE "common/msg/catalogue.def"
#include "def_struct.h"

/* Room for any body. */
union msg_any {
#define ROW(name, number, dir, states, body, fd, once, rate, open)             \
	struct body name;
#define DEF_FILE "common/msg/catalogue.def"
#include "def_rows.h"
};

struct msg_row {
	const char *name;
	uint32_t type;
	enum msg_dir dir;
	unsigned int states;
	const struct field_table *body;
	int fd;			/* 1: exactly one descriptor; 0: none */
	int once;
	unsigned int rate;	/* a second; 0: no rate of its own */
	unsigned int open;	/* unanswered; 0: not a question */
};

/* Bytes of a row's body, at least and at most. */
void msgcat_find_bounds(const struct msg_row *row, size_t *minp,
    size_t *maxp);

/*
 * The body v of a message of this type: v is what its row names, which the
 * compiler checks.
 */
#define MSG_BODY(name, v)                                                      \
	((const void *)(1 ? (v) : (const msg_of_##name *)NULL))

/*
 * Encode a body (NULL: one without members) into b, with the checks that the
 * receiver makes.  CL_INTERNAL: no such row, CL_TOOBIG, CL_FORMAT, CL_LIMIT.
 */
int msg_put(uint32_t type, const void *v, struct buf *b);
/*
 * Decode all of a body into v, which must hold what the row names (union
 * msg_any does).  What it owns ends with msg_clear.  CL_FORMAT and others:
 * the sender broke the rules, v is empty.
 */
int msg_get(uint32_t type, struct buf *b, void *v);
void msg_clear(uint32_t type, void *v);

/*
 * What is too long for a body: a struct in a sealed memfd, of at most max
 * bytes.  Made, the descriptor is the caller's and *lenp its length; loaded,
 * v ends with field_clear and the memfd stays the caller's.  The errors of
 * util_make_memfd and util_load_memfd, field_put and field_get.
 */
int msg_make_memfd(const struct field_table *t, const void *v, size_t max,
    int *fdp, uint64_t *lenp);
int msg_load_memfd(int fd, uint64_t len, size_t max,
    const struct field_table *t, void *v);

/* All rows; *np gets the count. */
const struct msg_row *msgcat_get_rows(size_t *np);
const struct msg_row *msgcat_find(uint32_t type);
/* Where a row stands, below MSGCAT_MAX_ROWS. */
#define MSGCAT_MAX_ROWS 255
size_t msgcat_get_place(const struct msg_row *row);
/* The name for logs: "NET_READY", or "?". Never a number in a log. */
const char *msgcat_name(uint32_t type);

/* Multiplicity memory of one channel; zero it when the channel opens. */
struct msgcat_seen {
	uint8_t bits[256];
};

/*
 * The one check of a received message, in this order: known type,
 * direction, state, size, descriptor, once.  CL_OK, or CL_FORMAT with a
 * constant reason in *whyp; the caller then ends the sender.
 */
int msgcat_check(enum msg_dir dir, unsigned int state, const struct imsg *m,
    struct msgcat_seen *seen, const char **whyp);

/*
 * The least role an operator needs for a C2M request: ROLE_VIEWER for what
 * only reads, ROLE_OPERATOR for the rest.  ROLE_NONE: no operator may send
 * it (the set-up rows of cloopd-ctl, other directions).
 */
int msgcat_role(uint32_t type);

#endif
