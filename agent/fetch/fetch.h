/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The session role of agentd-fetch: one process, one link, one monitor; a
 * single `struct fetch`.  fetch_send.c stands at the bottom and knows nobody;
 * work, back and output know each other; the session and the frames are
 * above them; the tables of handlers are in agentd_fetch.c.
 */
#ifndef CLOOP_FETCH_H
#define CLOOP_FETCH_H

#include <sys/queue.h>

#include <stddef.h>
#include <stdint.h>

#include "common/base/limits.h"
#include "common/base/pin.h"
#include "common/base/secret.h"
#include "common/base/utf8.h"
#include "common/json/jsonw.h"
#include "common/model/caps.h"
#include "common/msg/chan.h"
#include "common/output/spool.h"
#include "net/codec/frame.h"
#include "net/codec/json.h"
#include "fetch_link.h"

struct event;
struct event_base;
struct fetch;

/* A frame of the hub; a message of the monitor: CL_* other than CL_OK is
 * its violation. */
typedef void fetch_frame_fn(struct fetch *f, const struct frame_env *env,
    void *payload);
typedef int fetch_mon_fn(struct fetch *f, struct imsg *m, union msg_any *v);

/* The frame structs have no const; what is lent so is not changed or freed. */
#define FETCH_TEXT(s) ((char *)(uintptr_t)(s))

/* --- questions to the monitor; an answer may find nobody --- */

struct fetch_ask;
typedef void fetch_ask_fn(struct fetch *f, const struct fetch_ask *a);

struct fetch_ask {
	TAILQ_ENTRY(fetch_ask) entry;
	uint64_t id;
	uint32_t type;		/* MSG_* of the question */
	int64_t deadline_at;
	uint64_t session;	/* of the frame it is for; 0: none */
	char corr[MAX_ID_LEN + 1];	/* id of that frame */
	char handle[MAX_ID_LEN + 1];
	/* No answer came; NULL: nobody wants to know. */
	fetch_ask_fn *on_timeout;
	void *arg;		/* what its answer needs; owned, or NULL */
	void (*free_arg)(void *);
};
TAILQ_HEAD(fetch_ask_list, fetch_ask);

/* --- branches on their way in: branch_chunk into a file --- */

#define FETCH_IN_FAILURE_MAX 160

struct fetch_in {
	TAILQ_ENTRY(fetch_in) entry;
	char handle[MAX_ID_LEN + 1];
	int fd;				/* -1: none yet, or never */
	int64_t total, received;
	int64_t used_at;		/* of its last chunk */
	uint8_t *held;			/* first chunk, the file is asked for */
	size_t held_len;
	char failure[FETCH_IN_FAILURE_MAX];	/* "": none so far */
};
TAILQ_HEAD(fetch_in_list, fetch_in);

/* --- work on its way back: the project's result, the bundle, the
 *     write-back's result, between the last output and the final status --- */

enum fetch_back_stage { BACK_PROJECT, BACK_BUNDLE, BACK_RESULT, BACK_DONE };

struct fetch_back {
	enum fetch_back_stage stage;
	int has_result;			/* DEV_RESULT came */
	struct frame_write_back result;	/* its strings are owned */
	int bundle_fd;
	uint64_t bundle_len, bundle_off;
	int has_project;		/* DEV_PROJECT came */
	char *project_error;
	int project_fd;
	uint64_t project_len;
	char *refused;			/* the hub's reason: no more chunks */
};

/*
 * --- output on its way from spool to hub ---
 *
 * Two counts run along the output: raw bytes of the spool, and bytes of
 * the normalised stream, which are the offsets of the wire.  A mark is a
 * pair of both at a code point boundary, from which normalising can begin
 * afresh; going back means going to the mark before and skipping.
 */
#define FETCH_OUT_MARKS 80	/* 1 MiB of unacknowledged output at
				 * FETCH_OUT_MARK_LEN; thinned out above */
#define FETCH_OUT_MARK_LEN 16384	/* normalised bytes between marks */
#define FETCH_OUT_TOLD_MAX 16	/* ends told and not confirmed */

struct fetch_out_mark {
	uint64_t raw;
	uint64_t norm;
};

struct fetch_out {
	uint64_t raw;		/* next byte to read from the spool */
	uint64_t norm;		/* offset of what comes out next */
	uint64_t skip_to;	/* the hub has what is below */
	uint64_t acked_norm;	/* the hub said so; never sent again */
	struct utf8_norm tail;
	int flushed;		/* the end's tail went out */
	struct fetch_out_mark marks[FETCH_OUT_MARKS];	/* ascending; not 0 */
	size_t nmarks;
	/* What was queued on the link, and what of it is known written. */
	uint64_t queued_raw, queued_pos;
	uint64_t wait_raw, wait_pos;
	uint64_t sent_raw;
	int64_t chunk_at;	/* last chunk: coalescing */
	int64_t due_at;		/* 0, or when to look again */
};

/* --- the workloads that agentd-fetch reports about --- */

struct fetch_work {
	TAILQ_ENTRY(fetch_work) entry;
	TAILQ_ENTRY(fetch_work) dirty_entry;
	struct fetch *f;
	int dirty;		/* on the list of those to look at */
	uint64_t slot;		/* the monitor's number */
	char handle[MAX_ID_LEN + 1];
	int64_t pid;
	int64_t started_at;
	int held;		/* its start is not answered: say nothing */
	int offered;		/* named in this session's hello */
	struct spool spool;
	struct event *wake;	/* the shim's eventfd */
	int wake_fd;
	struct fetch_out out;
	struct fetch_back back;
	/* the end, once the monitor told it */
	int exited;
	struct shim_exit end;
	uint64_t status_pos;	/* of the final status on the link, or 0 */
	int told;		/* it is written; the hub may have it */
	uint64_t told_beat;	/* the first beat behind it */
};
TAILQ_HEAD(fetch_work_list, fetch_work);

/* --- the session --- */

#define FETCH_STATES(X)                                                        \
	X(WAIT) X(CAPS) X(RESOLVE) X(DIAL) X(HELLO) X(SAVE) X(UP) X(CLOSING)   \
	X(OVER)
#define FETCH_EVENTS(X)                                                        \
	X(DUE) X(CAPS) X(ADDRS) X(OPEN) X(WELCOME) X(FRESH) X(SAVED)           \
	X(FAILED) X(ENDED) X(TIMEOUT) X(STOP)

enum fetch_state {
#define X(name) FST_##name,
	FETCH_STATES(X)
#undef X
	FST_NSTATES
};
enum fetch_event {
#define X(name) FEV_##name,
	FETCH_EVENTS(X)
#undef X
	FEV_NEVENTS
};

#define FETCH_REASON_MAX 512
#define FETCH_QUEUE_MAX 16	/* events of one turn */

/* What to do with a frame, and whether a payload of it that does not decode
 * is answered. */
struct fetch_frame_row {
	fetch_frame_fn *handler;	/* NULL: unknown here */
	int is_answered;
};

struct fetch {
	struct event_base *base;
	struct event *turn;	/* activated by hand */
	struct event *timer;	/* the next of all deadlines */
	struct chan chan;	/* to the monitor */
	const struct fetch_frame_row *frames;	/* FRAME_NTYPES */
	struct msg_fetch_config conf;
	struct msg_fetch_bearer auth;
	struct tlsio_ctx *ctx;
	struct fetch_link *link;
	/* the state machine */
	enum fetch_state state;
	int64_t state_deadline_at;	/* 0: none */
	enum fetch_event queue[FETCH_QUEUE_MAX];
	size_t nqueue;
	unsigned int nfailures;	/* since the last welcome: the ladder */
	int stopping;		/* FETCH_STOP came */
	int fatal;		/* FATAL_*: never dial again */
	char why[FETCH_REASON_MAX];	/* of the end of this attempt */
	/* the session */
	uint64_t session;	/* counts links that were opened */
	int negotiated;
	struct caps caps;	/* of the hello to come */
	struct fetch_addr addrs[MAX_RESOLVED];
	size_t naddrs;
	struct frame_welcome welcome;	/* between HELLO and UP */
	int has_welcome;
	uint64_t beat_seq;
	int64_t beat_ms, beat_at;
	int64_t heard_at;	/* last frame of the hub */
	uint64_t logged_types;	/* bit a type: said once a session */
	int logged_unknown, logged_skew;
	/* tables */
	struct fetch_work_list works, dirty, waiting;
	size_t nworks;
	struct fetch_in_list incoming;
	size_t nincoming;
	struct fetch_ask_list asks;
	size_t nasks;
	uint64_t next_ask;
	/* codecs */
	struct jx jx;
	struct jsonw out;
	uint8_t raw[MAX_LOG_TEXT_LEN];
	uint8_t text[3 * (MAX_LOG_TEXT_LEN + 3)];
};

/* --- fetch_send.c --- */

extern const char *const fetch_state_names[FST_NSTATES];
extern const char *const fetch_event_names[FEV_NEVENTS];
void fetch_put_event(struct fetch *f, enum fetch_event ev);
void fetch_wake(struct fetch *f);
/* End this link; the reason is logged when it is gone. */
void fetch_fail(struct fetch *f, const char *fmt, ...)
    __attribute__((__format__(__printf__, 2, 3)));
/* A frame; CL_*, having ended the session on failure. */
int fetch_send(struct fetch *f, enum frame_type type, const char *id,
    const char *handle, const void *payload, uint64_t *posp);
int fetch_send_error(struct fetch *f, const char *id, const char *code,
    const char *message);
/* A message to the monitor; takes fd. */
void fetch_tell(struct fetch *f, uint32_t type, uint64_t id, const void *v,
    int fd);
/* With the type of v checked by the compiler. */
#define FETCH_TELL(f, name, v)                                                 \
	fetch_tell(f, MSG_##name, 0, MSG_BODY(name, v), -1)
/* As much of text as fits, and no half character. */
void fetch_cut_text(char *dst, size_t size, const char *text);
void fetch_report_session(struct fetch *f, uint8_t link_state, const char *why);
/* Ask; takes fd.  NULL: no memory or too many, nothing was sent. */
struct fetch_ask *fetch_ask_put(struct fetch *f, uint32_t type, const void *v,
    int fd, int64_t timeout_ms);
#define FETCH_ASK(f, name, v, fd, timeout_ms)                                  \
	fetch_ask_put(f, MSG_##name, MSG_BODY(name, v), fd, timeout_ms)
struct fetch_ask *fetch_ask_find(struct fetch *f, uint64_t id, uint32_t type);
struct fetch_ask *fetch_ask_find_handle(struct fetch *f, uint32_t type,
    const char *handle);
void fetch_ask_del(struct fetch *f, struct fetch_ask *a);
/* It is for this frame, and what happens when no answer comes. */
void fetch_ask_set_frame(struct fetch *f, struct fetch_ask *a,
    const struct frame_env *env, fetch_ask_fn *on_timeout);
/* 1 when the session of the frame it is for is still the one we are in. */
int fetch_ask_is_wanted(const struct fetch *f, const struct fetch_ask *a);
void fetch_ask_check_deadlines(struct fetch *f, int64_t now);
int64_t fetch_ask_get_deadline(const struct fetch *f);	/* 0: none */

/* --- fetch_session.c --- */

/* What a transition does. */
typedef void fetch_action_fn(struct fetch *);
struct fetch_row {
	fetch_action_fn *act;	/* NULL: nothing may happen here */
	enum fetch_state next;
};
extern const struct fetch_row fetch_table[FST_NSTATES][FEV_NEVENTS];

int fetch_open(struct fetch *f, struct event_base *base);
/* The monitor stored the credential, or could not. */
void fetch_set_saved(struct fetch *f, int saved, const char *error);
/* Jitter after the cap; before the next attempt, after so many failed ones
 * since a welcome. */
int64_t fetch_get_jittered(int64_t ms);
int64_t fetch_get_delay(unsigned int nfailures);

/* --- fetch_monitor.c --- */

fetch_mon_fn fetch_mon_on_config, fetch_mon_on_ca, fetch_mon_on_start,
    fetch_mon_on_bearer, fetch_mon_on_stop, fetch_mon_on_resolved,
    fetch_mon_on_saved, fetch_mon_on_caps;

/* --- fetch_resolve.c --- */

/* The other role; returns the exit status. */
int fetch_resolve_main(void);

/* --- fetch_frame.c --- */

/* A frame of the hub while the session is up, by the table. */
void fetch_on_frame(struct fetch *f, const struct frame_env *env);
fetch_frame_fn fetch_frame_on_start, fetch_frame_on_signal,
    fetch_frame_on_status_req, fetch_frame_on_log_ack,
    fetch_frame_on_heartbeat_ack, fetch_frame_on_inventory,
    fetch_frame_on_bye, fetch_frame_on_error, fetch_frame_on_ignored;
/* Requests for what this device does not have. */
fetch_frame_fn fetch_decline_upgrade, fetch_decline_harness,
    fetch_decline_probe, fetch_decline_terminal, fetch_decline_device;
fetch_mon_fn fetch_frame_on_started, fetch_frame_on_signalled;
/* An inventory came for this ask. */
void fetch_frame_on_caps(struct fetch *f, const struct fetch_ask *a,
    struct caps *c);

/* --- fetch_lease.c --- */

fetch_frame_fn fetch_lease_on_revoke, fetch_lease_on_refresh;
fetch_mon_fn fetch_lease_on_revoked, fetch_lease_on_refreshed;

/* --- fetch_incoming.c --- */

fetch_frame_fn fetch_in_on_chunk;
fetch_mon_fn fetch_in_on_opened;
/* A chunk for this handle that does not decode. */
void fetch_in_fail_handle(struct fetch *f, const char *handle, const char *why);
/* Its start is about to be handed on: tell how the transfer went. */
void fetch_in_end(struct fetch *f, const char *handle);
/* Nobody will claim it; nor any, their connection is gone. */
void fetch_in_drop(struct fetch *f, const char *handle);
void fetch_in_drop_all(struct fetch *f);

/* --- fetch_work.c --- */

fetch_mon_fn fetch_work_on_handle, fetch_work_on_wake, fetch_work_on_exit;
struct fetch_work *fetch_work_find_handle(struct fetch *f, const char *handle);
struct fetch_work *fetch_work_find_slot(struct fetch *f, uint64_t slot);
void fetch_work_del(struct fetch_work *w);
/* Have its output looked at in this turn. */
void fetch_work_set_dirty(struct fetch_work *w);
/* Its start was answered (or nobody waits for it any more). */
void fetch_work_release(struct fetch *f, const char *handle);
/* DEV_STOP: the hub refused it; forgets it here. */
void fetch_work_stop(struct fetch_work *w, const char *reason);
/* Send a status; `id` NULL: unsolicited.  Final only from fetch_out_. */
int fetch_work_put_status(struct fetch_work *w, const char *id, int final);

/* --- fetch_output.c --- */

void fetch_out_init(struct fetch_out *o, uint64_t acked_raw,
    uint64_t acked_norm);
/* Normalised bytes produced so far, as well as it is known. */
uint64_t fetch_out_get_total(const struct fetch_work *w);
/* The hub wants bytes from here on (clamped to what there is). */
void fetch_out_rewind(struct fetch_work *w, uint64_t from);
void fetch_out_on_ack(struct fetch_work *w, uint64_t offset);
/* Nothing queued before counts any more: the link is gone. */
void fetch_out_on_link_end(struct fetch_work *w);
/*
 * The hub has the end of a workload (that it was written proves nothing, it
 * may be lost with the link or the hub): a log_ack of all of it that came
 * behind the status, which is how our hub says that it is on disk; else the
 * answer to a later beat, which our hub too gives only then; of a hub that is
 * not ours also a request, once TCP has nothing unacknowledged.
 */
void fetch_out_on_end_ack(struct fetch *f, const char *handle, uint64_t offset);
void fetch_out_on_beat_ack(struct fetch *f, uint64_t seq);
void fetch_out_on_request(struct fetch *f);
/* The link took bytes: tell the monitor what was written. */
void fetch_out_on_written(struct fetch *f);
/* Queue output, one chunk a workload in turn, while there is room. */
void fetch_out_pump(struct fetch *f);

/* --- fetch_back.c --- */

void fetch_back_init(struct fetch_back *b);
void fetch_back_clear(struct fetch_back *b);
fetch_mon_fn fetch_back_on_result, fetch_back_on_bundle,
    fetch_back_on_project, fetch_back_on_project_file;
/*
 * All output is queued: the next frame of what comes back.  CL_OK: one was
 * queued; CL_INCOMPLETE: nothing is left, the status may follow; else the
 * link's failure.
 */
int fetch_back_step(struct fetch_work *w);
/* A link is new: everything again, from its beginning. */
void fetch_back_restart(struct fetch_work *w);
/* The hub refused a chunk. */
void fetch_back_refuse(struct fetch *f, const struct frame_env *env,
    const struct frame_error *e);

#endif
