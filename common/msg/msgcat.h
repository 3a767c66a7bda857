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

#define B_MAX MSG_BODY_MAX

/* ------------------------------------------------------------ hub-net
 * NET_CONFIG	u16 worker, u32 max_agents, u32 max_pending,
 *		u32 max_per_source, u16 heartbeat_s, b penalties,
 *		u32 auth_ms, u32 protocol_ms, u32 crash_ms, u32 max_ms,
 *		u8 log_level, str external_origin, u16 n + n*str origin,
 *		u16 n + n*str proxy (CIDR).  Again on reload.
 * NET_LISTEN	b plaintext, str address          fd: listening socket
 * NET_CERT	u32 len                           fd: memfd, PEM chain
 * NET_KEY	-                                 fd: channel to cloopd-key
 * NET_START	-      end of set-up
 * NET_READY	u32 catalogue version, u32 pid-independent worker number
 * NET_STOP	u32 grace_ms    bye{reconnect:true} to all, stop accepting
 * NET_STOPPED	-
 * AUTH		u64 conn, str bearer, str peer
 * AUTH_ANS	u8 result (AUTH_*), u64 session, b enrolled, str agent_id,
 *		str name, str credential (only when enrolled)
 * HELLO	u64 session, u32 len              fd: memfd, struct hello_blob
 * HELLO_ANS	u8 result (HELLO_*), u16 negotiated, u16 n +
 *		n*(u16 offer index, u8 action (VERDICT_*), u8 why (WHY_*),
 *		u64 from_offset, str reason ("" but for WHY_ABANDONED)); the
 *		HANDLE_OPENs of continued handles come before it.
 *		hello_blob: net/hub/hub_session.h, common/model/caps.h
 * SESSION_UP	u64 session           welcome has been written
 * SESSION_DOWN	u64 session, u8 status (AGENT_OFFLINE|AGENT_UNREACHABLE),
 *		str reason
 * SESSION_DROP	u64 session, u8 how (DROP_*), str reason
 * SESSION_ECHO	u64 session	superseded and down; its peer still answered
 * SESSION_SEEN	u16 n + n*(u64 session, u32 ms since last frame); n <= 1000
 * CAPS		u64 session, u32 len               fd: memfd, struct caps
 * ORIGIN_REFUSED str origin, str host, str peer
 * FOREIGN	u64 session, str handle, str type   (after WHO said foreign)
 * WHO		u64 session, str handle
 * WHO_ANS	u8 (WHO_*); when WHO_YOURS the HANDLE_OPEN came before;
 *		WHO_LATER: it cannot be told now
 * HANDLE_OPEN	u64 handle, u64 session, str handle_id, u64 received,
 *		u8 state (HS_*), b gapped, u64 log_limit
 * HANDLE_FILES	u64 session, u64 handle, b renew: the files of its output,
 *		when there is some; renew: the index makes no sense
 * HANDLE_FILES_ANS u64 handle, u8 (FILES_*); with FILES_OK came before it:
 * HANDLE_LOG	u64 handle     fd: log file, O_RDWR|O_APPEND
 * HANDLE_INDEX	u64 handle     fd: log index, O_RDWR|O_APPEND (logindex.h)
 * HANDLE_SHUT	u64 handle     closed at the hub: ignore further output; after
 *		a terminal status: it is on disk
 * HANDLE_FORGET u64 handle    no longer tracked at all
 * START	u64 session, u64 handle, u32 len  fd: memfd, struct spec
 * START_ANS	u64 handle, u8 result (RES_*), str code, str text, i64 pid,
 *		t started_at
 * SIGNAL	u64 session, u64 handle, u8 sig (SIG_*)
 * SIGNAL_ANS	u8 result (RES_*), str code, str text
 * QUERY	u64 session, u64 handle        status_req
 * QUERY_ANS	as SIGNAL_ANS; the HANDLE_STATUS came before it
 * INVENTORY	u64 session
 * INVENTORY_ANS as SIGNAL_ANS; the CAPS came before it
 * HANDLE_STATUS u64 session, u64 handle, u8 state (HS_*), i64 pid,
 *		i64 exit_code, t started_at, t finished_at, str error,
 *		str outcome, i64 final_offset, u64 received, b gapped
 * HANDLE_PROGRESS u64 handle, u64 received, b gapped   (at most 4/s each)
 * HANDLE_LOST	u64 session, u64 handle     not in active_handles
 * PENALTY	str source (address or /64), u8 kind (PEN_*), u32 ms,
 *		u32 left_ms (with what it had before)
 * PENALTY_SET	str source, u8 kind, u32 ms: the same for other workers; all
 *		that stand come before NET_START
 * HANDLE_REDACT u64 handle, u32 len           fd: memfd, n * blob value
 *		values to be taken out of the handle's output from now on;
 *		added to what it has, before START and REFRESH
 * REVOKE	u64 session, str lease, str grant ("": all of it), u8 action
 *		(REVOKE_*), str reason
 * REVOKE_ANS	u8 result (RES_*), str code, str text, struct lease_revoked
 * REFRESH	u64 session, u32 len  fd: memfd, struct lease_refresh
 * REFRESH_ANS	u8 result (RES_*), str code, str text, struct lease_refreshed
 *		(common/model/leasemsg.h)
 * Work that goes and comes:
 * HANDLE_WORK	u64 handle, u8 asked (WORK_*), u64 cap, b seeded, b over,
 *		str branch, str failure ("" none).  After HANDLE_OPEN, of
 *		handles that return something or may
 * RESULT_TAKE	u64 session, u64 handle, b restart, u32 min, u32 max
 *		room in the budget for bytes that came; restart gives back
 *		what the handle held
 * RESULT_TAKE_ANS u8 (TAKE_*), u32 granted; RESULT_FILE came before it
 *		when the worker had none
 * RESULT_FILE	u64 handle               fd: where the bundle goes, O_RDWR
 * RESULT_END	u64 session, u64 handle, struct work_end (workmsg.h)
 * RESULT_FAILED u64 session, u64 handle, str text: bytes are dropped
 * PROJECT	u64 session, u64 handle, u32 len, str error
 *		                         fd: memfd, gzip document (or empty)
 * PROJECT_ANS	u8 (TAKE_*)
 * BRANCH_FILE	u64 session, u64 handle, u64 len; before its START
 *		                         fd: sealed memfd, the bundle
 */
#define HUB_NET_CATALOGUE(X)                                                   \
	X(NET_CONFIG, 0x0100, M2N, MS_STARTING | MS_SERVING, 40, B_MAX, 0, 0)  \
	X(NET_LISTEN, 0x0102, M2N, MS_STARTING, 5, 256, 1, 0)                  \
	X(NET_CERT, 0x0104, M2N, MS_STARTING | MS_SERVING, 4, 4, 1, 0)         \
	X(NET_KEY, 0x0106, M2N, MS_STARTING | MS_SERVING, 0, 0, 1, 0)          \
	X(NET_START, 0x0108, M2N, MS_STARTING, 0, 0, 0, 1)                     \
	X(NET_READY, 0x010a, N2M, MS_STARTING, 8, 8, 0, 1)                     \
	X(NET_STOP, 0x010c, M2N, MS_ANY, 4, 4, 0, 1)                           \
	X(NET_STOPPED, 0x010e, N2M, MS_ANY, 0, 0, 0, 1)                        \
	X(AUTH, 0x0110, N2M, MS_LIVE, 16, 1024, 0, 0)                          \
	X(AUTH_ANS, 0x0111, M2N, MS_LIVE, 22, 1024, 0, 0)                      \
	X(HELLO, 0x0112, N2M, MS_LIVE, 12, 12, 1, 0)                           \
	X(HELLO_ANS, 0x0113, M2N, MS_LIVE, 5, B_MAX, 0, 0)                     \
	X(SESSION_UP, 0x0114, N2M, MS_LIVE, 8, 8, 0, 0)                        \
	X(SESSION_DOWN, 0x0116, N2M, MS_LIVE, 13, 512, 0, 0)                   \
	X(SESSION_DROP, 0x0118, M2N, MS_LIVE, 13, 512, 0, 0)                   \
	X(SESSION_SEEN, 0x011a, N2M, MS_LIVE, 2, 12002, 0, 0)                  \
	X(CAPS, 0x011c, N2M, MS_LIVE, 12, 12, 1, 0)                            \
	X(ORIGIN_REFUSED, 0x011e, N2M, MS_LIVE, 12, 1024, 0, 0)                \
	X(FOREIGN, 0x0120, N2M, MS_LIVE, 16, 512, 0, 0)                        \
	X(WHO, 0x0122, N2M, MS_LIVE, 13, 256, 0, 0)                            \
	X(WHO_ANS, 0x0123, M2N, MS_LIVE, 1, 1, 0, 0)                           \
	X(HANDLE_OPEN, 0x0124, M2N, MS_LIVE, 39, 256, 0, 0)                    \
	X(HANDLE_INDEX, 0x0126, M2N, MS_LIVE, 8, 8, 1, 0)                      \
	X(HANDLE_SHUT, 0x0128, M2N, MS_LIVE, 8, 8, 0, 0)                       \
	X(HANDLE_FORGET, 0x012a, M2N, MS_LIVE, 8, 8, 0, 0)                     \
	X(START, 0x012c, M2N, MS_LIVE, 20, 20, 1, 0)                           \
	X(START_ANS, 0x012d, N2M, MS_LIVE, 33, B_MAX, 0, 0)                    \
	X(SIGNAL, 0x012e, M2N, MS_LIVE, 17, 17, 0, 0)                          \
	X(SIGNAL_ANS, 0x012f, N2M, MS_LIVE, 9, B_MAX, 0, 0)                    \
	X(QUERY, 0x0130, M2N, MS_LIVE, 16, 16, 0, 0)                           \
	X(QUERY_ANS, 0x0131, N2M, MS_LIVE, 9, B_MAX, 0, 0)                     \
	X(INVENTORY, 0x0132, M2N, MS_LIVE, 8, 8, 0, 0)                         \
	X(INVENTORY_ANS, 0x0133, N2M, MS_LIVE, 9, B_MAX, 0, 0)                 \
	X(HANDLE_STATUS, 0x0134, N2M, MS_LIVE, 66, B_MAX, 0, 0)                \
	X(HANDLE_PROGRESS, 0x0136, N2M, MS_LIVE, 17, 17, 0, 0)                 \
	X(HANDLE_LOST, 0x0138, N2M, MS_LIVE, 16, 16, 0, 0)                     \
	X(PENALTY, 0x013a, N2M, MS_LIVE, 13, 128, 0, 0)                        \
	X(PENALTY_SET, 0x013c, M2N, MS_ANY, 9, 128, 0, 0)                      \
	X(HANDLE_REDACT, 0x013e, M2N, MS_LIVE, 12, 12, 1, 0)                   \
	X(REVOKE, 0x0140, M2N, MS_LIVE, 21, 2048, 0, 0)                        \
	X(REVOKE_ANS, 0x0141, N2M, MS_LIVE, 10, B_MAX, 0, 0)                   \
	X(REFRESH, 0x0142, M2N, MS_LIVE, 12, 12, 1, 0)                         \
	X(REFRESH_ANS, 0x0143, N2M, MS_LIVE, 10, B_MAX, 0, 0)                  \
	X(SESSION_ECHO, 0x0144, N2M, MS_LIVE, 8, 8, 0, 0)                      \
	X(HANDLE_FILES, 0x0146, N2M, MS_LIVE, 17, 17, 0, 0)                    \
	X(HANDLE_FILES_ANS, 0x0147, M2N, MS_LIVE, 9, 9, 0, 0)                  \
	X(HANDLE_LOG, 0x0148, M2N, MS_LIVE, 8, 8, 1, 0)                        \
	X(HANDLE_WORK, 0x0170, M2N, MS_LIVE, 27, 1024, 0, 0)                   \
	X(RESULT_TAKE, 0x0172, N2M, MS_LIVE, 25, 25, 0, 0)                     \
	X(RESULT_TAKE_ANS, 0x0173, M2N, MS_LIVE, 5, 5, 0, 0)                   \
	X(RESULT_FILE, 0x0174, M2N, MS_LIVE, 8, 8, 1, 0)                       \
	X(RESULT_END, 0x0176, N2M, MS_LIVE, 70, B_MAX, 0, 0)                   \
	X(RESULT_FAILED, 0x0178, N2M, MS_LIVE, 20, 512, 0, 0)                  \
	X(PROJECT, 0x017a, N2M, MS_LIVE, 24, B_MAX, 1, 0)                      \
	X(PROJECT_ANS, 0x017b, M2N, MS_LIVE, 1, 1, 0, 0)                       \
	X(BRANCH_FILE, 0x017c, M2N, MS_LIVE, 24, 24, 1, 0)

enum { AUTH_OK, AUTH_DENIED, AUTH_UNAVAILABLE, AUTH_FAILED };
enum { HELLO_OK, HELLO_UNAUTHORIZED, HELLO_VERSION, HELLO_GONE,
	HELLO_DUPLICATE, HELLO_LATER };
enum { VERDICT_CONTINUE = 1, VERDICT_TERMINATE };
enum { WHY_NONE, WHY_UNKNOWN, WHY_ABANDONED };
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

#define MSG_CATALOGUES(X)                                                      \
	HUB_NET_CATALOGUE(X)

enum msg_type {
#define X(name, number, dir, states, min, max, fd, once) MSG_##name = number,
	MSG_CATALOGUES(X)
#undef X
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
	size_t min, max;	/* of a body without a struct */
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
