/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The message catalogue: every message that any two of our processes may
 * exchange.  One .def file a channel says it: a row is name, number,
 * direction, states in which the *receiver* accepts it, the struct of its
 * body, descriptor, multiplicity and quota; a struct says each member once,
 * with its bounds.  Everything else (structs, names, tables, encoding,
 * decoding, checks) is generated; `make catalogue` prints it.  A request has
 * an even number; an answer is its request + 1 and carries the request's id.
 * What is not in a row, or not as the row says, ends the sender.
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

/* ------------------------------------------------------------ hub-ctl
 * cloopd-ctl <-> monitor set-up:
 * CTL_LISTEN	-                                fd: listening socket
 * CTL_CONFIG	u32 operator gid, u32 viewer gid, u8 log_level
 * CTL_READY	u32 catalogue version
 * CTL_CLIENT	u32 client, u32 uid, u32 pid, u8 role (ROLE_*)
 * CTL_GONE	u32 client
 * CTL_PACE	-	id of a request: answer when all rows queued for its
 *		client so far have been written (long lists stay bounded)
 * CTL_PACE_ANS	-
 * From here on the header id is client << 32 | request, where the operator
 * program chose the low 32 bits.  Operators speak the same rows to
 * cloopd-ctl, which checks the role column (msgcat_role) and forwards body
 * and descriptor unread.  An answer is any number of ROW_* and then one of
 * CTL_DONE or CTL_ERR.  Row bodies are field tables: common/model/ctlmsg.h.
 * CTL_HELLO	u32 catalogue version; answered by cloopd-ctl
 * CTL_HELLO_ANS u32 catalogue version, u8 role
 * CTL_STATUS	-		-> ROW_STATUS, ROW_WORKER*
 * CTL_AGENTS	str name or id ("": all)	-> ROW_AGENT*
 * CTL_RUN	u32 len, str where, str name, b detach, u16 n +
 *		n*(str secret, str owner, u32 mode)   fd: memfd, spec
 *		-> ROW_EVENT dispatched, ROW_LOG, ROW_INDEX, ROW_EVENT
 *		started, [attached: until the end] ROW_HANDLE
 * CTL_PS	b all			-> ROW_HANDLE*
 * CTL_SHOW	str handle		-> ROW_HANDLE
 * CTL_WAIT	str handle		-> ROW_HANDLE when terminal
 * CTL_LOGS	str handle, b follow	-> ROW_LOG, ROW_INDEX, and with
 *		follow ROW_HANDLE when terminal
 * CTL_SIGNAL	str handle, u8 sig
 * CTL_INVENTORY str name, b refresh	-> ROW_AGENT
 * CTL_AUDIT	u64 after_seq, t since, u32 limit	-> ROW_AUDIT*
 * CTL_VERIFY	-			-> ROW_VERIFY
 * CTL_RELOAD	-
 * CTL_MINT	struct ctl_mint (ctlmsg.h)	-> ROW_MINT
 * CTL_ENROLLMENTS -			-> ROW_ENROLLMENT*
 * CTL_REVOKE	str id, str reason	-> ROW_REVOKED
 * CTL_BAN	str name or id, str reason	-> ROW_BAN
 * CTL_UNBAN	str name		-> ROW_BAN
 * CTL_BANS	-			-> ROW_BAN*
 * CTL_DELETE	str id, str reason	-> ROW_REVOKED
 * CTL_SECRET_PUT u32 len, str name, str kind, b personal  fd: memfd, value
 *		-> ROW_SECRET
 * CTL_SECRETS	str name ("": all)	-> ROW_SECRET*
 * CTL_SECRET_RM str name, str reason	-> ROW_OUTCOME* of what held it
 * CTL_GRANT_ADD struct ctl_grant_add (leasemsg.h)	-> ROW_GRANT
 * CTL_GRANTS	str secret name ("": all)	-> ROW_GRANT*
 * CTL_GRANT_RM	str grant, str reason	-> ROW_OUTCOME*
 * CTL_LEASES	b all			-> ROW_LEASE*
 * CTL_LEASE_REVOKE str lease, str grant ("": all), b kill, str reason
 *		-> ROW_OUTCOME*
 * CTL_LEASE_REFRESH str lease		-> ROW_REFRESHED
 * CTL_CORDON	str agent, u8 (ADMIN_*), str reason, b wait
 *		-> ROW_OUTCOME* of its leases; with wait DONE comes when
 *		nothing runs there any more
 * CTL_ABANDON	str handle, str reason (at most MAX_REASON_LEN)
 * CTL_RESULT	str handle, u8 what (CTL_WORK_*)  -> ROW_RESULT, and
 *		ROW_WORK_FILE unless it only asks
 * CTL_COLLECTED str handle, u8 what	it has been taken: drop the bytes
 * CTL_BRANCH	u32 len     fd: sealed memfd, for this operator's next CTL_RUN
 * CTL_QUIT	u32 request	the operator no longer wants this answer
 * ROW_LOG, ROW_INDEX	str handle_id   fd: read-only log, log index
 * ROW_RESULT	struct work_result (workmsg.h): of the next ROW_HANDLE
 * ROW_WORK_FILE str handle_id		fd: bundle or project, O_RDONLY
 * CTL_ERR	str code, str message, str remedy
 */
#define HUB_CTL_CATALOGUE(X)                                                   \
	X(CTL_LISTEN, 0x0300, M2C, MS_STARTING, 0, 0, 1, 1)                    \
	X(CTL_CONFIG, 0x0302, M2C, MS_STARTING | MS_SERVING, 9, 9, 0, 0)       \
	X(CTL_READY, 0x0304, C2M, MS_STARTING, 4, 4, 0, 1)                     \
	X(CTL_CLIENT, 0x0306, C2M, MS_LIVE, 13, 13, 0, 0)                      \
	X(CTL_GONE, 0x0308, C2M, MS_LIVE, 4, 4, 0, 0)                          \
	X(CTL_PACE, 0x030a, M2C, MS_LIVE, 0, 0, 0, 0)                          \
	X(CTL_PACE_ANS, 0x030b, C2M, MS_LIVE, 0, 0, 0, 0)                      \
	X(CTL_HELLO, 0x0310, C2M, MS_LIVE, 4, 4, 0, 0)                         \
	X(CTL_HELLO_ANS, 0x0311, M2C, MS_LIVE, 5, 5, 0, 0)                     \
	X(CTL_STATUS, 0x0312, C2M, MS_LIVE, 0, 0, 0, 0)                        \
	X(CTL_AGENTS, 0x0314, C2M, MS_LIVE, 4, 260, 0, 0)                      \
	X(CTL_RUN, 0x0316, C2M, MS_LIVE, 15, 8192, 1, 0)                       \
	X(CTL_PS, 0x0318, C2M, MS_LIVE, 1, 1, 0, 0)                            \
	X(CTL_SHOW, 0x031a, C2M, MS_LIVE, 5, 260, 0, 0)                        \
	X(CTL_WAIT, 0x031c, C2M, MS_LIVE, 5, 260, 0, 0)                        \
	X(CTL_LOGS, 0x031e, C2M, MS_LIVE, 6, 261, 0, 0)                        \
	X(CTL_SIGNAL, 0x0320, C2M, MS_LIVE, 6, 261, 0, 0)                      \
	X(CTL_INVENTORY, 0x0322, C2M, MS_LIVE, 6, 261, 0, 0)                   \
	X(CTL_AUDIT, 0x0324, C2M, MS_LIVE, 20, 20, 0, 0)                       \
	X(CTL_VERIFY, 0x0326, C2M, MS_LIVE, 0, 0, 0, 0)                        \
	X(CTL_RELOAD, 0x0328, C2M, MS_LIVE, 0, 0, 0, 0)                        \
	X(CTL_MINT, 0x032a, C2M, MS_LIVE, 4, B_MAX, 0, 0)                      \
	X(CTL_ENROLLMENTS, 0x032c, C2M, MS_LIVE, 0, 0, 0, 0)                   \
	X(CTL_REVOKE, 0x032e, C2M, MS_LIVE, 8, 1024, 0, 0)                     \
	X(CTL_QUIT, 0x0330, C2M, MS_LIVE, 4, 4, 0, 0)                          \
	X(CTL_SECRET_PUT, 0x0332, C2M, MS_LIVE, 13, 1024, 1, 0)                \
	X(CTL_SECRETS, 0x0334, C2M, MS_LIVE, 4, 260, 0, 0)                     \
	X(CTL_SECRET_RM, 0x0336, C2M, MS_LIVE, 8, 1024, 0, 0)                  \
	X(CTL_GRANT_ADD, 0x0338, C2M, MS_LIVE, 4, B_MAX, 0, 0)                 \
	X(CTL_GRANTS, 0x033a, C2M, MS_LIVE, 4, 260, 0, 0)                      \
	X(CTL_GRANT_RM, 0x033c, C2M, MS_LIVE, 8, 1024, 0, 0)                   \
	X(CTL_LEASES, 0x033e, C2M, MS_LIVE, 1, 1, 0, 0)                        \
	X(CTL_LEASE_REVOKE, 0x0340, C2M, MS_LIVE, 13, 1024, 0, 0)              \
	X(CTL_LEASE_REFRESH, 0x0342, C2M, MS_LIVE, 4, 260, 0, 0)               \
	X(CTL_CORDON, 0x0344, C2M, MS_LIVE, 10, 1024, 0, 0)                    \
	X(CTL_ABANDON, 0x0350, C2M, MS_LIVE, 9, 522, 0, 0)                     \
	X(CTL_BAN, 0x0352, C2M, MS_LIVE, 9, 1040, 0, 0)                        \
	X(CTL_UNBAN, 0x0354, C2M, MS_LIVE, 5, 520, 0, 0)                       \
	X(CTL_BANS, 0x0356, C2M, MS_LIVE, 0, 0, 0, 0)                          \
	X(CTL_DELETE, 0x0358, C2M, MS_LIVE, 9, 1040, 0, 0)                     \
	X(CTL_RESULT, 0x0360, C2M, MS_LIVE, 5, 261, 0, 0)                      \
	X(CTL_COLLECTED, 0x0362, C2M, MS_LIVE, 5, 261, 0, 0)                   \
	X(CTL_BRANCH, 0x0364, C2M, MS_LIVE, 4, 4, 1, 0)                        \
	X(CTL_DONE, 0x0380, M2C, MS_LIVE, 0, 0, 0, 0)                          \
	X(CTL_ERR, 0x0382, M2C, MS_LIVE, 12, B_MAX, 0, 0)                      \
	X(ROW_STATUS, 0x0384, M2C, MS_LIVE, 1, B_MAX, 0, 0)                    \
	X(ROW_WORKER, 0x0386, M2C, MS_LIVE, 1, B_MAX, 0, 0)                    \
	X(ROW_AGENT, 0x0388, M2C, MS_LIVE, 1, B_MAX, 1, 0)                     \
	X(ROW_HANDLE, 0x038a, M2C, MS_LIVE, 1, B_MAX, 0, 0)                    \
	X(ROW_EVENT, 0x038c, M2C, MS_LIVE, 1, B_MAX, 0, 0)                     \
	X(ROW_LOG, 0x038e, M2C, MS_LIVE, 4, 260, 1, 0)                         \
	X(ROW_INDEX, 0x0390, M2C, MS_LIVE, 4, 260, 1, 0)                       \
	X(ROW_AUDIT, 0x0392, M2C, MS_LIVE, 1, B_MAX, 0, 0)                     \
	X(ROW_VERIFY, 0x0394, M2C, MS_LIVE, 1, B_MAX, 0, 0)                    \
	X(ROW_MINT, 0x0396, M2C, MS_LIVE, 1, B_MAX, 0, 0)                      \
	X(ROW_ENROLLMENT, 0x0398, M2C, MS_LIVE, 1, B_MAX, 0, 0)                \
	X(ROW_REVOKED, 0x039a, M2C, MS_LIVE, 1, B_MAX, 0, 0)                   \
	X(ROW_SECRET, 0x039c, M2C, MS_LIVE, 1, B_MAX, 0, 0)                    \
	X(ROW_GRANT, 0x039e, M2C, MS_LIVE, 1, B_MAX, 0, 0)                     \
	X(ROW_LEASE, 0x03a0, M2C, MS_LIVE, 1, B_MAX, 0, 0)                     \
	X(ROW_OUTCOME, 0x03a2, M2C, MS_LIVE, 1, B_MAX, 0, 0)                   \
	X(ROW_REFRESHED, 0x03a4, M2C, MS_LIVE, 1, B_MAX, 0, 0)                 \
	X(ROW_BAN, 0x03a6, M2C, MS_LIVE, 1, B_MAX, 0, 0)                       \
	X(ROW_RESULT, 0x03c0, M2C, MS_LIVE, 1, B_MAX, 0, 0)                    \
	X(ROW_WORK_FILE, 0x03c2, M2C, MS_LIVE, 4, 260, 1, 0)

enum { ROLE_NONE, ROLE_VIEWER, ROLE_OPERATOR };
enum { CTL_WORK_SHOW, CTL_WORK_BUNDLE, CTL_WORK_PROJECT };
/* The administrative state of an agent. */
enum { ADMIN_READY = 1, ADMIN_CORDONED, ADMIN_DRAINING };

/* ---------------------------------------------------------- dev-fetch
 * FETCH_CONFIG	str url, str host, u16 port, b tls, str path,
 *		b insecure (warn on each dial), u16 n + n*blob pin (32),
 *		str agent_id, str name, str agent_version, u16 max_protocol,
 *		u32 max_concurrent, u64 retain_unacked, u8 log_level
 * FETCH_CA	u32 len                  fd: memfd, extra PEM roots
 * FETCH_BEARER	str token or credential, b enrolling.  Again once enrolled
 * FETCH_START	-
 * FETCH_READY	u32 catalogue version
 * FETCH_STOP	-	bye{reconnect:true}, close, exit
 * FETCH_STOPPED -
 * RESOLVE	-	of the configured host; monitor starts a resolver
 * RESOLVE_ANS	b ok, str error, u8 n + n*(u8 family 4|6, blob address)
 * SESSION	u8 state (LINK_*), u16 negotiated, u8 fatal (FATAL_*),
 *		str detail
 * ENROLLED	str executor_id, str credential
 * ENROLLED_ANS	b saved, str error
 * DEV_CAPS	-	what hello and inventory report
 * DEV_CAPS_ANS	u32 len                  fd: memfd, struct caps
 * DEV_START	str handle_id, u32 len   fd: memfd, struct spec
 * DEV_START_ANS u64 slot, u8 result (RES_OK, RES_ERROR_FRAME,
 *		RES_NOT_STARTED), str code, str text, i64 pid, t started_at
 * DEV_HANDLE	u64 slot, str handle_id, i64 pid, t started_at,
 *		u64 acked_raw, u64 acked_norm   fd: spool, O_RDONLY (spool.h)
 *		Before DEV_START_ANS; for each live one after FETCH_START too
 * DEV_WAKE	u64 slot	         fd: eventfd, signalled on growth
 * DEV_EXIT	u64 slot, u8 state (HS_*), i64 exit_code, t started_at,
 *		t finished_at, str error, u64 total_raw
 * DEV_SENT	u64 slot, u64 raw	 written to the socket up to here
 * DEV_ACKED	u64 slot, u64 raw, u64 norm	 hub has it: may be dropped
 * DEV_TOLD	u64 slot	 final status written: its place is free
 * DEV_DONE	u64 slot	 and the hub has it: forget the workload
 * DEV_STOP	u64 slot, str reason	 hub refused it: TERM, KILL, forget
 * DEV_SIGNAL	str handle_id, u8 sig
 * DEV_SIGNAL_ANS u8 result (RES_OK, RES_ERROR_FRAME), str code, str text
 * DEV_REVOKE	u32 len		         fd: memfd, struct lease_revoke
 * DEV_REVOKE_ANS u32 len	         fd: memfd, struct dev_revoked
 * DEV_REFRESH	u32 len		         fd: memfd, struct lease_refresh
 * DEV_REFRESH_ANS u32 len	         fd: memfd, struct dev_refreshed
 *		(common/model/leasemsg.h)
 * Shipped branches: chunks go from the hub into a file of ours.
 * BRANCH_OPEN	str handle_id	 a first chunk came; again: start over
 * BRANCH_OPEN_ANS b ok  fd: empty file, O_RDWR; /dev/null when not ok
 * BRANCH_END	str handle_id, str failure ("": none).  Before its DEV_START
 * BRANCH_DROP	str handle_id	 nobody will claim it
 * Work that comes back: before DEV_EXIT, for those who asked.
 * DEV_RESULT	u64 slot, str mode, str branch, str base,
 *		struct devjob_result (common/model/devjob.h)
 * DEV_BUNDLE	u64 slot, u64 len           fd: the bundle, O_RDONLY
 * DEV_PROJECT	u64 slot, str error ("": DEV_PROJECT_FILE came before)
 * DEV_PROJECT_FILE u64 slot, u64 len       fd: gzip document, O_RDONLY
 * Resolver role of agentd-fetch (one question per process):
 * RES_NAME	str host, u16 port
 * RES_ADDRS	as RESOLVE_ANS
 */
#define DEV_FETCH_CATALOGUE(X)                                                 \
	X(FETCH_CONFIG, 0x0400, M2F, MS_STARTING, 30, B_MAX, 0, 1)             \
	X(FETCH_CA, 0x0402, M2F, MS_STARTING, 4, 4, 1, 1)                      \
	X(FETCH_BEARER, 0x0404, M2F, MS_ANY, 5, 1024, 0, 0)                    \
	X(FETCH_START, 0x0406, M2F, MS_STARTING, 0, 0, 0, 1)                   \
	X(FETCH_READY, 0x0408, F2M, MS_STARTING, 4, 4, 0, 1)                   \
	X(FETCH_STOP, 0x040a, M2F, MS_ANY, 0, 0, 0, 1)                         \
	X(FETCH_STOPPED, 0x040c, F2M, MS_ANY, 0, 0, 0, 1)                      \
	X(RESOLVE, 0x040e, F2M, MS_LIVE, 0, 0, 0, 0)                           \
	X(RESOLVE_ANS, 0x040f, M2F, MS_LIVE, 6, 1024, 0, 0)                    \
	X(SESSION, 0x0410, F2M, MS_LIVE, 8, 1024, 0, 0)                        \
	X(ENROLLED, 0x0412, F2M, MS_LIVE, 10, 1024, 0, 0)                      \
	X(ENROLLED_ANS, 0x0413, M2F, MS_LIVE, 5, 1024, 0, 0)                   \
	X(DEV_CAPS, 0x0414, F2M, MS_LIVE, 0, 0, 0, 0)                          \
	X(DEV_CAPS_ANS, 0x0415, M2F, MS_LIVE, 4, 4, 1, 0)                      \
	X(DEV_START, 0x0416, F2M, MS_LIVE, 9, 256, 1, 0)                       \
	X(DEV_START_ANS, 0x0417, M2F, MS_LIVE, 33, B_MAX, 0, 0)                \
	X(DEV_HANDLE, 0x0418, M2F, MS_LIVE, 45, 256, 1, 0)                     \
	X(DEV_WAKE, 0x041a, M2F, MS_LIVE, 8, 8, 1, 0)                          \
	X(DEV_EXIT, 0x041c, M2F, MS_LIVE, 45, B_MAX, 0, 0)                     \
	X(DEV_SENT, 0x041e, F2M, MS_LIVE, 16, 16, 0, 0)                        \
	X(DEV_ACKED, 0x0420, F2M, MS_LIVE, 24, 24, 0, 0)                       \
	X(DEV_DONE, 0x0422, F2M, MS_LIVE, 8, 8, 0, 0)                          \
	X(DEV_STOP, 0x0424, F2M, MS_LIVE, 12, 512, 0, 0)                       \
	X(DEV_SIGNAL, 0x0426, F2M, MS_LIVE, 6, 256, 0, 0)                      \
	X(DEV_SIGNAL_ANS, 0x0427, M2F, MS_LIVE, 9, B_MAX, 0, 0)                \
	X(DEV_TOLD, 0x0428, F2M, MS_LIVE, 8, 8, 0, 0)                          \
	X(RES_NAME, 0x0430, M2F, MS_STARTING, 7, 300, 0, 1)                    \
	X(RES_ADDRS, 0x0431, F2M, MS_STARTING, 6, 1024, 0, 1)                  \
	X(DEV_REVOKE, 0x0440, F2M, MS_LIVE, 4, 4, 1, 0)                        \
	X(DEV_REVOKE_ANS, 0x0441, M2F, MS_LIVE, 4, 4, 1, 0)                    \
	X(DEV_REFRESH, 0x0442, F2M, MS_LIVE, 4, 4, 1, 0)                       \
	X(DEV_REFRESH_ANS, 0x0443, M2F, MS_LIVE, 4, 4, 1, 0)                   \
	X(BRANCH_OPEN, 0x0460, F2M, MS_LIVE, 5, 256, 0, 0)                     \
	X(BRANCH_OPEN_ANS, 0x0461, M2F, MS_LIVE, 1, 1, 1, 0)                   \
	X(BRANCH_END, 0x0462, F2M, MS_LIVE, 9, 512, 0, 0)                      \
	X(BRANCH_DROP, 0x0464, F2M, MS_LIVE, 5, 256, 0, 0)                     \
	X(DEV_RESULT, 0x0466, M2F, MS_LIVE, 65, B_MAX, 0, 0)                   \
	X(DEV_BUNDLE, 0x0468, M2F, MS_LIVE, 16, 16, 1, 0)                      \
	X(DEV_PROJECT, 0x046a, M2F, MS_LIVE, 12, B_MAX, 0, 0)                  \
	X(DEV_PROJECT_FILE, 0x046c, M2F, MS_LIVE, 16, 16, 1, 0)

enum { LINK_CONNECTING = 1, LINK_UP, LINK_DOWN };
enum { FATAL_NONE, FATAL_UNAUTHORIZED, FATAL_VERSION, FATAL_BYE };

/* ----------------------------------------------------------- dev-shim
 * SHIM_JOB	u32 len                  fd: memfd, struct shim_job (shim.h)
 * SHIM_SPOOL	-                        fd: spool, O_RDWR (spool.h)
 * SHIM_WAKE	-                        fd: eventfd to signal; again after
 *		SHIM_ADOPT, replacing the dead monitor's
 * SHIM_DIR	-                        fd: handle directory (exit record)
 * SHIM_TREE	-                        fd: work directory
 * SHIM_GO	-
 * SHIM_STARTED	i64 pid, t started_at
 * SHIM_FAILED	str text                 could not start; shim exits
 * SHIM_SIGNAL	u8 sig (SIG_*, SHIM_SIG_STOP)
 * SHIM_EXITED	u8 state (HS_*), i64 exit_code, t started_at,
 *		t finished_at, str error, u64 total_raw
 * SHIM_RELEASE	-	 exit record was taken over: shim may go
 * SHIM_ADOPT	u32 catalogue version	 first message of a new monitor on
 *		the shim's socket; answered by SHIM_STARTED (and SHIM_EXITED)
 * SHIM_REDACT	u32 len   fd: memfd, u32 n + n*blob value (redact.h):
 *		taken out of the output from now on, until the end
 * SHIM_REDACT_ANS b ok   every byte read later is held against them
 * SHIM_LEASE	-         fd: a lease directory, locked; to be held open as
 *		long as the workload may use it (agent/monitor/secretfiles.h)
 * SHIM_FILTERS u32 len  fd: memfd, struct bpf_set (sandbox/self/bpf.h): the
 * seccomp
 *		programs of the shim and of what it starts
 * SHIM_STDIN	-         fd: becomes the job's descriptor 0, not /dev/null
 */
#define DEV_SHIM_CATALOGUE(X)                                                  \
	X(SHIM_JOB, 0x0500, M2S, MS_STARTING, 4, 4, 1, 1)                      \
	X(SHIM_SPOOL, 0x0502, M2S, MS_STARTING, 0, 0, 1, 1)                    \
	X(SHIM_WAKE, 0x0504, M2S, MS_STARTING | MS_LIVE, 0, 0, 1, 0)           \
	X(SHIM_DIR, 0x0506, M2S, MS_STARTING, 0, 0, 1, 1)                      \
	X(SHIM_TREE, 0x0508, M2S, MS_STARTING, 0, 0, 1, 1)                     \
	X(SHIM_GO, 0x050a, M2S, MS_STARTING, 0, 0, 0, 1)                       \
	X(SHIM_STARTED, 0x050c, S2M, MS_ANY, 16, 16, 0, 0)                     \
	X(SHIM_FAILED, 0x050e, S2M, MS_STARTING, 4, B_MAX, 0, 1)               \
	X(SHIM_SIGNAL, 0x0510, M2S, MS_LIVE, 1, 1, 0, 0)                       \
	X(SHIM_EXITED, 0x0512, S2M, MS_LIVE, 37, B_MAX, 0, 0)                  \
	X(SHIM_RELEASE, 0x0514, M2S, MS_LIVE, 0, 0, 0, 1)                      \
	X(SHIM_ADOPT, 0x0516, M2S, MS_LIVE, 4, 4, 0, 0)                        \
	X(SHIM_REDACT, 0x0518, M2S, MS_ANY, 4, 4, 1, 0)                        \
	X(SHIM_REDACT_ANS, 0x0519, S2M, MS_ANY, 1, 1, 0, 0)                    \
	X(SHIM_LEASE, 0x051a, M2S, MS_STARTING, 0, 0, 1, 0)                    \
	X(SHIM_FILTERS, 0x051c, M2S, MS_STARTING, 4, 4, 1, 1)                  \
	X(SHIM_STDIN, 0x0540, M2S, MS_STARTING, 0, 0, 1, 1)

#define MSG_CATALOGUES(X)                                                      \
	HUB_CTL_CATALOGUE(X)                                                   \
	DEV_FETCH_CATALOGUE(X)                                                 \
	DEV_SHIM_CATALOGUE(X)

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
