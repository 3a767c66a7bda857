/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * A message channel, and the one loop of all processes that have one: read,
 * hold against the catalogue, decode, hand over.  Nobody sees a message that
 * its row does not allow, nor a body that is not decoded and checked.
 *
 * Flow: what we queue for a peer has a mark.  Above it the peer is not read,
 * so that a peer that asks much and reads slowly waits for itself; below half
 * of it reading goes on.  The same for who asks more at once, or a second,
 * than the row of its question says.  Nobody is ended for what we queued: a
 * peer "does not read" when nothing left for CHAN_STALL_MS, not counting the
 * time in which we ourselves were late (chan_check_stall).
 *
 * Whoever polls by hand calls chan_turn() when the descriptor is readable and
 * chan_flush() when it is writable; on libevent chan_watch() does it.
 */
#ifndef CLOOP_CHAN_H
#define CLOOP_CHAN_H

#include "imsg.h"
#include "msgcat.h"

struct event;
struct event_base;
struct chan;

/*
 * One good message; v is its decoded body, which ends with the call (a
 * handler may take what v owns and leave NULL).  Anything but CL_OK makes it
 * a violation.
 */
typedef int chan_msg_fn(void *arg, struct imsg *m, union msg_any *v);
/*
 * The channel is over: `why` NULL when the peer closed it, else what it did
 * wrong (to be logged, the peer to be killed).  The channel is closed
 * already; the owner may free nothing it still runs in.
 */
typedef void chan_end_fn(void *arg, const char *why);

/* What a row's quota has counted: by the row's place in the catalogue. */
struct chan_quota {
	uint32_t nopen[MSGCAT_MAX_ROWS];	/* questions unanswered */
	uint32_t nrecent[MSGCAT_MAX_ROWS];	/* since chan_on_second */
};

struct chan {
	struct imsg_chan im;
	struct msgcat_seen seen;
	enum msg_dir in, out;	/* of what we receive, of what we send */
	unsigned int state;	/* MS_*, as the receiver sees it */
	int is_open;
	int is_paused;		/* not read: by the mark, or by the owner */
	int is_held;		/* by the owner (chan_hold) */
	int is_broken;		/* for writing: what was said before is read */
	int is_raw;		/* bodies go to the handler undecoded, with v
				 * NULL: set by an owner who forwards them */
	unsigned int nspent;	/* rows whose quota is used up */
	struct chan_quota *quota;	/* NULL until a row needs it */
	size_t mark;		/* queued bytes above which it is not read */
	int64_t moved_at;	/* monotonic ms: something was written */
	chan_msg_fn *on_msg;
	chan_end_fn *on_end;
	void *arg;
	/* With chan_watch: told when what it waits for has changed. */
	void (*on_want)(struct chan *);
	struct event *rd, *wr;
};

/* Takes fd.  max_queued: messages; see limits.h.  CL_SYSTEM, CL_NOMEM. */
int chan_init(struct chan *c, int fd, enum msg_dir in, enum msg_dir out,
    size_t max_queued, chan_msg_fn *on_msg, chan_end_fn *on_end, void *arg);
/* Let libevent call it.  CL_NOMEM closes it. */
int chan_watch(struct chan *c, struct event_base *base);
/* chan_init and chan_watch. */
int chan_open(struct chan *c, struct event_base *base, int fd,
    enum msg_dir in, enum msg_dir out, size_t max_queued,
    chan_msg_fn *on_msg, chan_end_fn *on_end, void *arg);
/* Legal on a closed one. */
void chan_close(struct chan *c);

/*
 * Read one message without a handler, for who waits for an answer: as
 * imsg_read, besides CL_FORMAT with a reason in *whyp when the catalogue
 * refuses it.  After CL_OK: msg_clear(m->type, v) and imsg_free(m).
 */
int chan_read_one(struct chan *c, struct imsg *m, union msg_any *v,
    const char **whyp);
/* The same, waiting until deadline (monotonic ms) and sending what waits
 * meanwhile.  CL_TIMEOUT besides. */
int chan_wait(struct chan *c, int64_t deadline, struct imsg *m,
    union msg_any *v, const char **whyp);
/*
 * What chan_read_one does with a message once it has been read: the
 * catalogue, then the decoder.  CL_OK: v is to be cleared.
 */
int chan_check(struct chan *c, struct imsg *m, union msg_any *v,
    const char **whyp);
/* Read and hand over what is there, within bounds; ends it where it must. */
void chan_turn(struct chan *c);

/*
 * Queue a message and send what goes at once; v is what the row names (see
 * CHAN_SEND), takes fd.  CL_STATE when closed, CL_LIMIT when too much is
 * queued already, and msg_put's and imsg_compose's.
 */
int chan_send(struct chan *c, uint32_t type, uint64_t id, const void *v,
    int fd);
/* With the type of v checked by the compiler. */
#define CHAN_SEND(c, name, id, v, fd)                                          \
	chan_send(c, MSG_##name, id, MSG_BODY(name, v), fd)
/* A row whose whole body is the length of a sealed memfd of data[len]. */
int chan_send_memfd(struct chan *c, uint32_t type, uint64_t id,
    const void *data, size_t len);
/* A body that was encoded before: one that is held or forwarded.
 * chan_queue_buf leaves the sending to the next chan_flush. */
int chan_queue_buf(struct chan *c, uint32_t type, uint64_t id,
    const struct buf *body, int fd);
int chan_send_buf(struct chan *c, uint32_t type, uint64_t id,
    const struct buf *body, int fd);
/* Send what the socket takes. */
void chan_flush(struct chan *c);
/* 1 when something waits for the socket. */
int chan_has_output(const struct chan *c);

/* Do not read until chan_go_on(); the mark works beside it. */
void chan_hold(struct chan *c);
void chan_go_on(struct chan *c);
/*
 * Quotas of rows: above `rate` a second, or with `open` questions unanswered,
 * the peer is not read until chan_on_second() or an answer.
 */
void chan_on_second(struct chan *c);
/*
 * 1 when nothing was read by the peer for CHAN_STALL_MS while something
 * waited.  Called about once a second with our own lateness: late_ms of them
 * do not count.
 */
int chan_check_stall(struct chan *c, int64_t now_ms, int64_t late_ms);

#endif
