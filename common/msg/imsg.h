/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Messages between our processes on SOCK_SEQPACKET socketpairs: 16 bytes of
 * header (u32 type, u32 body length, u64 id, big-endian), a body of at most
 * MSG_BODY_MAX bytes, at most one descriptor.  The kernel keeps message
 * boundaries and ties a descriptor to its message.  A truncated message, a
 * wrong length, or more than one descriptor is CL_FORMAT: the peer broke
 * the rules and the caller ends it.  When this process has no descriptor
 * free, that is a pause and nobody's fault.  No knowledge of libevent.
 */
#ifndef CLOOP_IMSG_H
#define CLOOP_IMSG_H

#include <stddef.h>
#include <stdint.h>

#include "buf.h"

#define IMSG_HEADER_LEN 16
#define IMSG_SHORT_MS 20
#define MSG_MAX (16 * 1024)
#define MSG_BODY_MAX (MSG_MAX - IMSG_HEADER_LEN)

struct imsg {
	uint32_t type;
	uint64_t id;
	struct buf body;	/* for reading; borrows from the channel */
	int fd;			/* -1, or owned by whoever holds the imsg */
};

struct imsg_out;

struct imsg_chan {
	int fd;
	struct imsg_out *head;	/* queued, oldest first */
	struct imsg_out **tailp;
	size_t nqueued;		/* messages */
	size_t queued_len;	/* bytes, with headers */
	size_t max_queued;	/* messages; imsg_compose is CL_LIMIT above */
	uint8_t *in;		/* MSG_MAX bytes */
	uint64_t nshort;	/* times there was no descriptor free */
};

/* A non-blocking, close-on-exec SEQPACKET pair.  CL_SYSTEM. */
int imsg_pair(int fds[2]);

/* Takes fd, makes it non-blocking.  max_queued: see limits.h. */
int imsg_init(struct imsg_chan *c, int fd, size_t max_queued);
/* Close fd and queued descriptors, wipe and free the queue. */
void imsg_clear(struct imsg_chan *c);

/*
 * Read one message.  CL_OK; CL_INCOMPLETE: none there now, or no descriptor
 * is free here (nshort counts, after a pause of IMSG_SHORT_MS; the message
 * stays where it is); CL_EOF: peer is gone; CL_FORMAT: violation; CL_SYSTEM.
 * m->body borrows until the next imsg_read; m->fd is the caller's to close
 * or to take (imsg_take_fd).
 */
int imsg_read(struct imsg_chan *c, struct imsg *m);
/* The descriptor, which becomes the caller's; m->fd turns -1. */
int imsg_take_fd(struct imsg *m);
/* Close the descriptor if nobody took it. */
void imsg_free(struct imsg *m);

/*
 * Queue a message; body may be NULL (empty).  Takes fd (closed once sent or
 * on failure); -1 for none.  CL_LIMIT when the queue is full, CL_TOOBIG,
 * CL_NOMEM, or the sticky error of body.
 */
int imsg_compose(struct imsg_chan *c, uint32_t type, uint64_t id,
    const struct buf *body, int fd);
/* Send what the socket takes.  CL_OK when empty, CL_INCOMPLETE when bytes
 * remain (wait for writable), CL_EOF, CL_SYSTEM. */
int imsg_write(struct imsg_chan *c);

#endif
