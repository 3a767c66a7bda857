/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * One connection of an agent, from accept to the last byte: a state table,
 * shared by hub_session.c (machine, life), hub_io.c (bytes), hub_act.c
 * (handshake), hub_frames.c (frames of a live session) and hub_request.c
 * (what the monitor wants of the device).  Nobody else looks inside.  Other
 * processes and callbacks know a connection by number only.
 */
#ifndef CLOOP_HUB_SESSION_H
#define CLOOP_HUB_SESSION_H

#include <bsd/sys/queue.h>
#include <bsd/sys/tree.h>

#include <stddef.h>
#include <stdint.h>

#include "common/base/secret.h"
#include "common/msg/chan.h"
#include "net/codec/frame.h"
#include "net/conn/conn.h"
#include "ask.h"
#include "hub_conf.h"
#include "hub_log.h"

struct hs;
struct hs_hello;
struct hs_request;
struct hs_ship;
struct hub;
struct src;

/* name, deadline in ms (0: that of the state before; -1: none) */
#define HST_STATES(X)                                                          \
	X(TLS, HEAD_TIMEOUT_MS)		/* handshake under way */              \
	X(HEAD, 0)			/* request head under way */           \
	X(AUTH, -1)			/* monitor judges the credential */    \
	X(DELAY, 1000)			/* a refusal is held back */           \
	X(REPLY, BYE_TIMEOUT_MS)	/* HTTP answer leaves */               \
	X(HELLO, HANDSHAKE_TIMEOUT_MS)	/* upgraded, waits for hello */        \
	X(VERIFY, 0)			/* monitor judges the hello */         \
	X(WELCOME, 0)			/* welcome leaves */                   \
	X(LIVE, -1)                                                            \
	X(CLOSING, BYE_TIMEOUT_MS)	/* last frames leave */                \
	X(LINGER, BYE_TIMEOUT_MS)	/* our end is shut, theirs drains */   \
	X(DEAD, -1)			/* freed at the end of the turn */

enum hs_state {
	HST_NONE = 0,
#define X(name, ms) HST_##name,
	HST_STATES(X)
#undef X
	HST_NSTATES
};

#define HE_EVENTS(X)                                                           \
	X(READY)	/* TLS is up */                                        \
	X(REQUEST)	/* a request passed the checks */                      \
	X(REFUSE)	/* answer with s->status */                            \
	X(DENIED)	/* the same, but not at once */                        \
	X(GRANTED)	/* the credential is good */                           \
	X(MESSAGE)	/* a whole text message: s->msg */                     \
	X(VERIFIED)	/* the hello is good */                                \
	X(SENT)		/* nothing is left to write */                         \
	X(CLOSE)	/* we end it: s->close_code */                         \
	X(CLOSED)	/* the peer's close frame */                           \
	X(EOF)                                                                 \
	X(FAIL)		/* transport failed: nothing can be said any more */   \
	X(TIMEOUT)

enum hs_event {
	HE_NONE = 0,
#define X(name) HE_##name,
	HE_EVENTS(X)
#undef X
	HE_NEVENTS
};

/* What an action returns is the next event, judged in the new state. */
typedef enum hs_event hs_action_fn(struct hs *s);

struct hs_row {
	enum hs_state next;	/* HST_NONE: this event may not come here */
	hs_action_fn *act;
};

RB_HEAD(hs_conns, hs);
RB_HEAD(hs_numbers, hs);
TAILQ_HEAD(hs_queue, hs);
TAILQ_HEAD(hs_requests, hs_request);
LIST_HEAD(hs_ships, hs_ship);

struct hs_table {
	struct hs_conns conns;
	struct hs_numbers numbers;
	struct hs_queue young;	/* not live: looked at on each tick */
	struct hs_queue live;	/* looked at by the watchdog */
	struct hs_queue dirty;	/* to be settled at the end of the turn */
	struct hs_queue waiting;	/* handshakes, for time in a turn */
	size_t nyoung, nlive, nrequests;
	size_t nagain;		/* sessions with again_at */
	size_t assembling;	/* bytes of unfinished messages */
	int64_t handshakes_end;		/* none in this turn after it */
	int64_t reads_end;		/* only little of each after it */
	uint32_t turn;			/* number of this turn */
	uint64_t next_conn;
	uint64_t nfreed;		/* connections that are over */
	uint64_t trimmed;		/* their sum at the last trim */
};

#define HS_TRIM 256		/* connections come or gone: free memory is
				 * given back in the next watchdog round */
#define HS_EVICT_MS 1000	/* a handshake is done in less; a stranger that
				 * took longer gives way when all is full */
#define HS_ID_UNKNOWN_MS 2000	/* how long a WHO_UNKNOWN is remembered */

struct hs {
	RB_ENTRY(hs) by_conn;
	RB_ENTRY(hs) by_number;
	TAILQ_ENTRY(hs) link;		/* young or live */
	TAILQ_ENTRY(hs) dirty_link;
	TAILQ_ENTRY(hs) waiting_link;
	struct hub *hub;
	uint64_t session;		/* monitor-issued; 0: none yet */
	struct ask_owner asks;		/* its number is the connection's */
	enum hs_state state;
	int64_t deadline;		/* 0: none */
	unsigned int tls : 1;
	unsigned int dirty : 1;
	unsigned int waits : 1;		/* has no events meanwhile */
	unsigned int begun : 1;		/* its handshake had a turn */
	unsigned int later : 1;		/* rate-limited: answer 429 */
	unsigned int paused : 1;	/* an ask is out: no frame is read */
	unsigned int held : 1;		/* msg is to be handled again */
	unsigned int up : 1;		/* SESSION_UP was sent */
	unsigned int down : 1;		/* SESSION_DOWN was sent */
	unsigned int seen : 1;		/* frames since the last SESSION_SEEN */
	unsigned int enrolled : 1;
	unsigned int peer_closed : 1;	/* its close frame came */
	unsigned int more : 1;		/* input is left for the next turn */
	unsigned int superseded : 1;	/* does its peer answer our close? */
	uint32_t turn;			/* the last in which it was read */
	uint8_t end_status;		/* AGENT_* once the end is decided */
	uint16_t status;		/* of the HTTP answer */
	uint16_t close_code;
	uint16_t negotiated;
	char end_reason[MAX_CLOSE_REASON_LEN + 1];
	struct hub_addr peer;
	uint16_t peer_port;
	struct src *source;		/* held until the welcome */
	/* bytes (hub_io.c) */
	struct conn conn;
	size_t head_scanned;
	const uint8_t *msg;		/* borrows from conn.ws */
	size_t msg_len;
	int64_t seen_at;		/* last valid frame */
	/* handshake (hub_act.c) */
	char *bearer;			/* until asked; wiped */
	char *switching;		/* the 101 answer, until granted */
	char *agent_id, *name;
	struct secret credential;	/* until the welcome has it */
	struct hs_hello *hello;		/* while it is verified */
	/* live */
	struct hlog_ids logs;
	size_t nlogs;
	char *beat_id;			/* its answer waits (hs_answer_beat) */
	int64_t beat_seq;
	char *unknown_id;		/* last handle nobody knows */
	int64_t unknown_at;
	uint64_t files_of;	/* the handle whose files are waited for */
	int64_t again_at;	/* the frame in msg is judged again; 0 */
	struct hs_requests requests;
	size_t nrequests;
	struct hs_ships ships;		/* branches under way */
};

/* --- hub_session.c --- */

extern const struct hs_row hs_table[HST_NSTATES][HE_NEVENTS];
const char *hs_state_name(enum hs_state st);
const char *hs_event_name(enum hs_event ev);
/* CLOSING, LINGER or DEAD: only its end is left. */
int hs_is_end(enum hs_state st);

void hs_init(struct hs_table *t);
/* A new connection; takes fd and the hold on its source. */
void hs_new(struct hub *hub, int fd, int tls, const struct hub_addr *peer,
    uint16_t port, struct src *source, int later);
/* Room for a newcomer: the longest pending stranger goes, if it had its
 * time.  0 when nobody has to. */
int hs_evict(struct hub *hub);
struct hs *hs_find_conn(struct hs_table *t, uint64_t conn);
struct hs *hs_find(struct hs_table *t, uint64_t session);
/* The number the monitor gave; CL_EXISTS. */
int hs_set_number(struct hs *s, uint64_t session);
/* Let an event happen.  Never from inside an action. */
void hs_run(struct hs *s, enum hs_event ev);
/* Say how and why it ends; the first to say so wins. */
void hs_set_end(struct hs *s, int status, uint16_t code, const char *reason);
/* Put on the list for the end of the turn. */
void hs_set_dirty(struct hs *s);
/* Begin of a turn: what each may take of it. */
void hs_start_turn(struct hs_table *t);
/* End of a turn: input left over, output, the dead.  1: more to do now. */
int hs_settle_all(struct hub *hub);
/* Deadlines; the watchdog every WATCHDOG_MS. */
void hs_on_time(struct hub *hub);
/* NET_STOP: bye to all. */
void hs_stop_all(struct hub *hub);
/* SESSION_SEEN for the sessions from one of a list to another (NULL: all). */
void hs_report_seen(struct hs *from, struct hs *last);
/* Text for a log line: "192.0.2.1:4711"; a rotating static buffer. */
const char *hs_peer_text(const struct hs *s);

/* --- hub_io.c --- */

/* Takes fd.  CL_STATE, CL_NOMEM. */
int hs_open_io(struct hs *s, int fd);
/* Read and handle what is there; at the end of a turn: write. */
void hs_pump(struct hs *s);
/* The handshakes that wait, as far as the turn's time goes. */
void hs_pump_waiting(struct hub *hub);
void hs_flush(struct hs *s);
void hs_update_events(struct hs *s);
/* Queue bytes; CL_LIMIT when the peer does not read. */
int hs_put_bytes(struct hs *s, const void *data, size_t len);
/* Queue one frame: v 1..26; id, handle may be NULL.  CL_TOOBIG: it is over
 * MAX_FRAME_LEN, nothing was queued; CL_LIMIT, CL_NOMEM: the session is to
 * be closed (hs_set_end was called). */
int hs_put_frame(struct hs *s, enum frame_type type, int v, const char *id,
    const char *handle, const void *payload);
int hs_put_error(struct hs *s, const char *id, const char *code,
    const char *fmt, ...) __attribute__((__format__(__printf__, 4, 5)));

/* --- hub_act.c --- */

hs_action_fn hs_act_ask_auth, hs_act_reply, hs_act_switch, hs_act_hello,
    hs_act_welcome, hs_act_up;
/* Handle the request head in s->in, when it is complete. */
enum hs_event hs_check_head(struct hs *s);
void hs_free_hello(struct hs *s);

/* --- hub_frames.c --- */

hs_action_fn hs_act_frame;
/* Report a handle's progress; hlog_progress_fn. */
void hs_report_progress(void *hub, struct hlog *h);
/* Send SESSION_DOWN, after everything that belongs before it. */
void hs_report_down(struct hs *s);
/* Tell the monitor of news that a heartbeat would bring. */
void hs_flush_logs(struct hs *s, int ack);
/*
 * The end of a workload is on the hub's disk: a last log_ack says so.  Our
 * agents keep what they told until then; others ignore it.
 */
void hs_confirm_end(struct hs *s, struct hlog *h);
/* The answer to a beat that waited for such an end, once none is left. */
void hs_answer_beat(struct hs *s);
/* Ends that waited for the disk to take their output. */
void hs_release_ends(struct hub *hub);
/* Ask the monitor for the files of a handle.  CL_LIMIT: not now. */
int hs_ask_files(struct hs *s, struct hlog *h, int renew);
/* The same, and reading stops until there is an answer. */
enum hs_event hs_wait_files(struct hs *s, struct hlog *h);
/* Close: what cannot be told now ends nothing, the device comes back. */
void hs_end_later(struct hs *s);
int hs_put_ack(struct hs *s, struct hlog *h);
/* Ask for handles whose output waits for files. */
void hs_ask_waiting(struct hub *hub);

/* --- hub_request.c --- */

/* What a message of the monitor's does; v is its body. */
void hs_on_handle_open(struct hub *hub, struct imsg *m,
    struct msg_handle_open *v);
void hs_on_handle_log(struct hub *hub, struct imsg *m, struct msg_handle *v);
void hs_on_handle_index(struct hub *hub, struct imsg *m,
    struct msg_handle *v);
void hs_on_handle_shut(struct hub *hub, struct imsg *m, struct msg_handle *v);
void hs_on_handle_forget(struct hub *hub, struct imsg *m,
    struct msg_handle *v);
void hs_on_start(struct hub *hub, struct imsg *m, struct msg_start *v);
void hs_on_signal(struct hub *hub, struct imsg *m, struct msg_signal *v);
void hs_on_inventory(struct hub *hub, struct imsg *m, struct msg_session *v);
/* A frame that may answer one; 1 when it did.  bad: its payload could not
 * be decoded (payload is NULL then). */
int hs_answer_request(struct hs *s, const struct frame_env *env,
    const void *payload, const char *bad);
void hs_expire_requests(struct hs *s, int64_t now);
/* All pending requests end with RES_SESSION_CLOSED. */
void hs_clear_requests(struct hs *s);
/* The monitor gave a handle up: a start of it that still succeeds is ended
 * at the device. */
void hs_forget_handle(struct hs *s, uint64_t handle);
/* The session a request is for; NULL: there is none, it was answered. */
struct hs *hs_find_live(struct hub *hub, const struct imsg *m,
    uint64_t session);
/* Send a request frame for a message of the monitor's and remember it. */
void hs_start_request(struct hs *s, const struct imsg *m, uint64_t handle,
    const char *handle_id, const void *payload);
/* Answer a message whose request never left (RES_*). */
void hs_send_failure(struct hub *hub, uint32_t type, uint64_t ask_id,
    int result, const char *text);
/* A copy without half a character; text may be NULL. */
void hs_cut(char *dst, size_t dstlen, const char *text);
/* The start frame of a START; its descriptor stays the caller's. */
void hs_send_start(struct hs *s, struct imsg *m, struct hlog *h, size_t len);

/* --- hub_result.c --- */

void hs_on_handle_work(struct hub *hub, struct imsg *m,
    struct msg_handle_work *v);
void hs_on_result_file(struct hub *hub, struct imsg *m, struct msg_handle *v);
/* Frames about a handle that is known. */
enum hs_event hs_take_chunk(struct hs *s, const struct frame_env *env,
    const struct frame_result_chunk *c, struct hlog *h);
enum hs_event hs_take_result(struct hs *s, const struct frame_env *env,
    const struct frame_result *f, struct hlog *h);
enum hs_event hs_take_project(struct hs *s, const struct frame_env *env,
    const struct frame_project_result *p, struct hlog *h);

/* --- hub_ship.c --- */

void hs_on_branch_file(struct hub *hub, struct imsg *m,
    struct msg_branch_file *v);
/* 1: a branch goes first; the message's descriptor was taken. */
int hs_hold_start(struct hs *s, struct imsg *m, const struct hlog *h,
    size_t len);
/* Fill the output with as much as may wait there. */
void hs_ship_branches(struct hs *s);
/* 1 when more could be put now. */
int hs_is_shipping(const struct hs *s);
void hs_clear_ships(struct hs *s);

/* --- hub_lease.c --- */

void hs_on_handle_redact(struct hub *hub, struct imsg *m,
    struct msg_handle_redact *v);
void hs_on_revoke(struct hub *hub, struct imsg *m, struct msg_revoke *v);
void hs_on_refresh(struct hub *hub, struct imsg *m,
    struct msg_session_memfd *v);
/* How a REVOKE or REFRESH ended; f NULL: the device said nothing. */
void hs_send_revoked(struct hub *hub, uint64_t ask_id,
    const struct msg_device_ans *ans, const struct dev_revoked *f);
void hs_send_refreshed(struct hub *hub, uint64_t ask_id,
    const struct msg_device_ans *ans, const struct dev_refreshed *f);
/* With the values of every workload of the session taken out. */
void hs_redact_text(const struct hs *s, const char *text, char *dst,
    size_t dstlen);

#endif
