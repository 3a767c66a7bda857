/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * A message channel of the device monitor on the event loop: every message
 * is held against its catalogue row before anybody looks at it.
 */
#ifndef CLOOP_CHAN_H
#define CLOOP_CHAN_H

#include "imsg.h"
#include "msgcat.h"

struct event;
struct event_base;

/* One good message; CL_FORMAT (anything but 0) makes it a violation. */
typedef int chan_msg_fn(void *arg, struct imsg *m);
/*
 * The channel is over: `why` NULL when the peer closed it, else what it did
 * wrong (to be logged, the peer to be killed).  The channel is closed
 * already; the owner may free nothing it still runs in.
 */
typedef void chan_end_fn(void *arg, const char *why);

struct chan {
	struct imsg_chan im;
	struct event *rd, *wr;
	struct msgcat_seen seen;
	enum msg_dir dir;	/* of what we receive */
	unsigned int state;	/* MS_*, as the receiver sees it */
	int is_open;
	chan_msg_fn *on_msg;
	chan_end_fn *on_end;
	void *arg;
};

/* Takes fd.  CL_SYSTEM, CL_NOMEM. */
int chan_open(struct chan *c, struct event_base *base, int fd,
    enum msg_dir dir, size_t max_queued, chan_msg_fn *on_msg,
    chan_end_fn *on_end, void *arg);
/* Legal on a closed one. */
void chan_close(struct chan *c);
/*
 * Queue and send what goes at once; takes fd.  CL_STATE when closed,
 * CL_LIMIT when the peer does not read, and imsg_compose's.
 */
int chan_send(struct chan *c, uint32_t type, uint64_t id,
    const struct buf *body, int fd);
/* The same with a sealed memfd of data[len] and its u32 length as body. */
int chan_send_memfd(struct chan *c, uint32_t type, uint64_t id,
    const void *data, size_t len);

#endif
