/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Every bound of the project, with its reason.  A bound that a peer can
 * reach has a test at the bound and one past it.  Those of the wire:
 * cloop-protocol(7).
 */
#ifndef CLOOP_LIMITS_H
#define CLOOP_LIMITS_H

/* --- protocol --- */
#define PROTO_MIN 1
#define PROTO_MAX 26
#define MAX_FRAME_LEN 1048576		/* a whole message, defragmented */
#define MAX_LOG_TEXT_LEN 32768		/* raw text we send in one chunk */
#define MAX_LOG_TEXT_IN_LEN 98304	/* accepted: x3 on U+FFFD */
#define LOG_ACK_LEN 32768		/* ack when this much is unacked */
#define MAX_ID_LEN 128			/* id, handle, type */
#define MAX_JSON_DEPTH 64		/* outside opaque values */
#define MAX_JSON_DEPTH_OPAQUE 256	/* inside opaque values */
#define MAX_JSON_MEMBERS 16384		/* members of one object: duplicate
					 * check stays cheap */
#define HEARTBEAT_S 15			/* what our hub asks for */
#define HEARTBEAT_MIN_S 1		/* what our agent honours */
#define HEARTBEAT_MAX_S 300
#define HEARTBEAT_MISSES 3		/* silence > 3 beats closes */
#define WATCHDOG_MS 7500		/* half an interval */
#define WRITE_TIMEOUT_MS 20000		/* a frame that does not leave */
/* A half-open link is found by probes within 2.5 beats (BC-16): silence
 * after this long is asked about, and unanswered bytes end it. */
#define LINK_PROBE_S 10
#define LINK_PROBE_EVERY_S 5
#define LINK_DEAD_MS 18000
/* Pings and pongs one peer may send: a Go peer sends none, others one every
 * few seconds, a nervous one a thousand at once; each costs an answer. */
#define MAX_CONTROL_FRAMES 2000
#define CONTROL_WINDOW_MS 10000
#define BYE_TIMEOUT_MS 2000
#define HANDSHAKE_TIMEOUT_MS 15000	/* hello to welcome */
#define DIAL_TIMEOUT_MS 30000		/* TCP + TLS + upgrade, agent */
#define BACKOFF_MIN_MS 1000
#define BACKOFF_MAX_MS 120000
#define SIGNAL_TIMEOUT_MS 15000
#define INVENTORY_TIMEOUT_MS 20000
#define REVOKE_TIMEOUT_MS 15000
#define REFRESH_TIMEOUT_MS 20000
#define MAX_RESUME_OFFERS 512		/* an agent tracks fewer; 16 KiB msg */
#define MAX_RESUME_REFUSALS 256		/* per welcome */
#define MAX_ERROR_TEXT_LEN 8192		/* returned prose */
#define MAX_REASON_LEN 256		/* abandon reason; close reasons less */
#define MAX_CLOSE_REASON_LEN 120	/* where Go cuts it */
#define MAX_USB_DEVICES 128
#define MAX_CAPS_LEN 262144		/* capabilities JSON we keep per agent:
					 * 128 full USB entries fit */
#define MAX_TOKEN_LEN 512		/* before parsing */
#define MAX_URL_LEN 2048
#define MAX_PINS 8			/* a rotation needs two */

/* --- canonical JSON --- */
#define MAX_CANON_LEN 1048576		/* as long as a frame */
#define MAX_CANON_DEPTH 16
#define MAX_CANON_VALUES 65536		/* of a document: a few MiB */
#define MAX_CANON_MEMBERS 256		/* of an object: the search for a
					 * duplicate stays cheap */

/* --- spec --- */
#define MAX_ARGV 4096			/* elements; 1 MiB frame bounds bytes */
#define MAX_ENV 4096
#define MAX_LABELS 64			/* per spec or agent */
#define MAX_LABEL_LEN 256		/* key or value */
#define MAX_NAME_LEN 128		/* operator label of an agent, handle */
#define MAX_PATH_LEN 4096
#define MAX_SPEC_LEN 1048576		/* encoded spec between our processes */
/* Four programs of at most 4096 rows of 8 bytes, which is what the kernel
 * takes, and their lengths: a shim reads this from its monitor. */
#define MAX_FILTERS_LEN (4 * (4096 * 8 + 4))
#define MAX_SECRET_FILE_LEN 262144
#define MAX_SECRET_FILES_LEN 524288
#define MAX_SEED_LEN 4194304
/* Length of a log file, what was cut out of it counted: so many LogLimits,
 * and not less than this. */
#define LOG_FILE_FACTOR 64
#define LOG_FILE_MIN (4ULL << 30)
#define MAX_BUNDLE_LEN 134217728

#define MAX_REDACT_VALUES 32768		/* of one workload: more than a frame
					 * can carry; refreshes add to them */
#define MAX_REDACT_LEN (16 * 1048576)	/* their bytes: some dozens of full
					 * refreshes, then those are refused */

/* --- hub --- */
#define MAX_NET_WORKERS 16
#define MAX_LISTENERS 16		/* ListenAgents lines */
#define MAX_ORIGINS 32			/* fits one 16 KiB message */
#define MAX_ORIGIN_LEN 256
#define MAX_PROXIES 32
#define MAX_CIDR_LEN 47			/* TrustedProxy: an address as text is
					 * no longer, with its bits */
#define MAX_SEEN 512			/* sessions of one report: 8 KiB */
#define HTTP_HEAD_MAX 16384		/* request head: bearer and cookies
					 * of a proxy fit, floods do not */
#define HTTP_MAX_HEADERS 64
#define HEAD_TIMEOUT_MS 10000		/* TLS + request head */
#define MAX_ASSEMBLING_LEN 33554432	/* unfinished messages of a worker's
					 * sessions: 32 whole ones */
#define MAX_ASKS_PER_SESSION 4		/* reads stop above */
#define MAX_ASKS_TOTAL 4096		/* a storm queues, then 503 */
#define ASK_TIMEOUT_MS 30000		/* monitor answers in a turn */
#define MAX_SESSION_OUT_LEN (4 * MAX_FRAME_LEN)	/* unsent bytes; then the
					 * session is closed as not reading */
#define MAX_HANDLES_PER_SESSION 1024	/* known to a worker */
#define MAX_FINISHED_HANDLES 256	/* kept per agent */
#define MAX_PENALTY_MS 86400000	/* of a source: PerSourcePenalty's 24h */
#define MAX_PENALTIES 1024	/* sources a new cloopd-net is told about */
#define MAX_FENCE_PORTS 16		/* of ListenAgents, at most 16 */
#define MAX_FENCE_SOURCES 65536	/* in the kernel, of a family: some MiB */
#define MAX_FENCE_QUEUE 1024	/* on their way there; more are refused by
				 * cloopd-net alone */
#define MAX_FENCE_BATCH 128	/* sources of one order: 2.5 KiB, 32 KiB of
				 * text at most */
#define FENCE_RUN_MS 5000	/* one run of nft: 0.05 s when all is well */
#define FENCE_ANSWER_MS 10000	/* then cloopd-fence itself is stuck */
#define FENCE_STOP_MS 6000	/* to take its table away */
#define MAX_CTL_CLIENTS 128		/* operators at once: scripts that
					 * start a hundred runs */
#define MAX_CTL_CLIENTS_PER_UID 32	/* root excepted */
#define MAX_CTL_ROOT 16			/* of them kept for root */
#define MAX_CTL_UNWANTED 16		/* beside them: to hear why not */
#define MAX_CTL_REQUESTS 32		/* outstanding per client */
#define MAX_CTL_NAME_LEN 600		/* what an operator typed for a name or
					 * an id: more than any has, so that
					 * a wrong one is called wrong */
#define MAX_CTL_REASON_LEN 512		/* of an end that no device hears */
#define MAX_CTL_ERROR_LEN (MAX_ERROR_TEXT_LEN + 512)	/* with our words */
#define MAX_CTL_REMEDY_LEN 512
#define MAX_WANTS 16			/* secrets of one run */
#define MAX_CTL_LISTS_PER_CLIENT 8	/* not read to their end; then busy */
#define MAX_CTL_LISTS 256		/* of all operators */
#define MAX_CTL_LIST_KEYS 262144	/* ids they hold: 64 bytes each */
#define CHAN_QUEUE_MAX 65536		/* messages queued to one child: far
					 * above what CHAN_MARK_LEN lets be */
#define MAX_ROW_PENALTIES 1000		/* a second from one worker: more than
					 * connections it can refuse */
#define MAX_ROW_REPORTS 200		/* what strangers cause */
#define MAX_ROW_CAPS 1000		/* devices that tell theirs: a storm */
#define CHAN_TURN 64			/* messages of one peer in one turn */
#define CHAN_MARK_LEN 262144		/* queued bytes above which a peer is
					 * not read: the largest message is a
					 * sixteenth of it */
#define CHAN_STALL_MS 30000		/* without progress: it does not read */
#define CTL_QUEUE_MAX 1024		/* messages queued to one operator */
#define KEY_DIGEST_LEN 32		/* SHA-256, of ECDSA P-256 */
#define KEY_SIG_MAX 256			/* DER of it: 72 */
#define KEY_SIGN_TIMEOUT_MS 2000	/* a signature takes 0.1 ms */
#define MAX_LOG_INDEX_GAP_LEN 65536	/* output bytes one index record may
					 * cover */
#define CHILD_BACKOFF_MIN_MS 100
#define CHILD_BACKOFF_MAX_MS 30000
#define STOP_GRACE_MS 5000		/* children after SIGTERM */
#define AUDIT_PAGE 256			/* rows of one audit request */

/* --- device --- */
#define MAX_CONCURRENT 1024		/* MaxConcurrent; a table this size */
#define MAX_DEV_ASKS (MAX_CONCURRENT + 24) /* of the fetcher: a workload
					 * each, jobs beside them, its own */
#define MAX_SHIM_ERROR_LEN 512		/* why a workload ended */
#define MAX_LINK_DETAIL_LEN 480		/* why a session ended; log line */
#define MAX_ADDRS_ERROR_LEN 256		/* a resolver's reason */
#define SPOOL_BLOCK_LEN 65536		/* one read of the pipe at most */
#define SPOOL_HIGH_LEN (8 * 1048576)	/* unsent bytes at which a connected
					 * workload is slowed */
#define SPOOL_STALL_MAX_MS 30000	/* and for how long without progress */
#define KILL_GRACE_MS 5000		/* TERM to KILL */
#define DRAIN_GRACE_MS 2000		/* pipe held after exit */
#define MAX_RESOLVED 8			/* addresses tried per dial */
#define RESOLVE_TIMEOUT_MS 20000
#define SHIM_START_TIMEOUT_MS 30000	/* sandbox set-up and exec */
#define SHIMD_ANSWER_MS 5000		/* cloop-shimd's fork and exec: 1 ms */
#define MAX_SHIMD_CLIENTS 8		/* agents of one machine */
#define MAX_SYMLINKS 40			/* in a work directory's path */
#define COALESCE_MS 50			/* output waits to fill a chunk */

#endif
