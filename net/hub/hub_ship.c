/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Shipped branches: a bundle the monitor has checked goes to the device in
 * pieces, and its start follows the last one on the same connection.  Runs
 * in cloopd-net.  No more is read from the file than the peer takes; nothing
 * of it is looked at.
 */
#include "hub_session.h"

#include <bsd/stdlib.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/buffer.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "hub.h"

/* Of the 512 KiB a frame may carry: small enough that acks and beats of a
 * slow link do not wait long behind one. */
#define SHIP_CHUNK_LEN 131072
#define SHIP_OUT_LEN 196608	/* unsent bytes above which nothing is read */

struct hs_ship {
	LIST_ENTRY(hs_ship) link;
	uint64_t handle;
	int fd;
	uint64_t len, off;
	int spec_fd;		/* of its START; -1: that has not come */
	size_t spec_len;
	uint64_t ask_id;
};

static struct hs_ship *
ship_find(struct hs *s, uint64_t handle)
{
	struct hs_ship *p;

	LIST_FOREACH(p, &s->ships, link)
		if (p->handle == handle)
			return p;
	return NULL;
}

static void
ship_free(struct hs_ship *p)
{
	LIST_REMOVE(p, link);
	close(p->fd);
	if (p->spec_fd != -1)
		close(p->spec_fd);
	free(p);
}

void
hs_on_branch_file(struct hub *hub, struct imsg *m, struct msg_branch_file *v)
{
	struct hs *s = hs_find(&hub->sessions, v->session);
	struct hs_ship *p, *last;

	if (s == NULL || s->state != HST_LIVE)
		return;		/* its START is answered with that */
	if ((p = calloc(1, sizeof(*p))) == NULL)
		fatal("branch", "reason=out-of-memory");
	p->handle = v->handle;
	p->len = (uint64_t)v->len;
	p->fd = imsg_take_fd(m);
	p->spec_fd = -1;
	if ((last = LIST_FIRST(&s->ships)) == NULL) {
		LIST_INSERT_HEAD(&s->ships, p, link);
		return;
	}
	while (LIST_NEXT(last, link) != NULL)
		last = LIST_NEXT(last, link);
	LIST_INSERT_AFTER(last, p, link);
}

int
hs_hold_start(struct hs *s, struct imsg *m, const struct hlog *h,
    size_t len)
{
	struct hs_ship *p = ship_find(s, h->number);

	if (p == NULL)
		return 0;
	if (p->spec_fd != -1)
		fatal("monitor-message", "type=START reason=twice");
	p->spec_fd = imsg_take_fd(m);
	p->spec_len = len;
	p->ask_id = m->id;
	hs_set_dirty(s);
	return 1;
}

/* All of it has left: now the start. */
static void
ship_end(struct hs *s, struct hs_ship *p)
{
	struct hlog *h = hlog_find(&s->hub->logs, p->handle);
	struct imsg m = { .type = MSG_START, .id = p->ask_id, .fd = -1 };

	m.fd = p->spec_fd;
	p->spec_fd = -1;
	if (h != NULL)
		hs_send_start(s, &m, h, p->spec_len);
	else
		hs_send_failure(s->hub, MSG_START, p->ask_id,
		    RES_SESSION_CLOSED, "the workload was given up");
	close(m.fd);
	ship_free(p);
}

/* The next piece.  Anything but CL_OK: this shipment is over. */
static int
ship_put(struct hs *s, struct hs_ship *p, uint8_t *data)
{
	struct frame_branch_chunk c = { .data = data };
	struct hlog *h = hlog_find(&s->hub->logs, p->handle);
	size_t want = SHIP_CHUNK_LEN;
	ssize_t n;

	if (h == NULL)
		return CL_NOTFOUND;
	if (want > p->len - p->off)
		want = (size_t)(p->len - p->off);
	do
		n = pread(p->fd, data, want, (off_t)p->off);
	while (n == -1 && errno == EINTR);
	if (n <= 0)
		return CL_SYSTEM;
	c.offset = (int64_t)p->off;
	c.total = (int64_t)p->len;
	c.data_len = (size_t)n;
	p->off += (uint64_t)n;
	return hs_put_frame(s, FRAME_BRANCH_CHUNK, s->negotiated, NULL,
	    h->id, &c);
}

static void
ship_fail(struct hs *s, struct hs_ship *p, int r)
{
	log_warn("branch-failed", "session=%llu handle=%llu offset=%llu "
	    "reason=%s", (unsigned long long)s->session,
	    (unsigned long long)p->handle, (unsigned long long)p->off,
	    cl_strerror(r));
	hs_send_failure(s->hub, MSG_START, p->ask_id, RES_SESSION_CLOSED,
	    "the branch could not be sent");
	ship_free(p);
}

void
hs_ship_branches(struct hs *s)
{
	struct hs_ship *p;
	uint8_t *data;
	int r;

	if (LIST_EMPTY(&s->ships) || s->state != HST_LIVE)
		return;
	if ((data = malloc(SHIP_CHUNK_LEN)) == NULL)
		return;		/* the next turn tries again */
	while ((p = LIST_FIRST(&s->ships)) != NULL && p->spec_fd != -1 &&
	    evbuffer_get_length(s->conn.out) < SHIP_OUT_LEN) {
		if (p->off == p->len)
			ship_end(s, p);
		else if ((r = ship_put(s, p, data)) != CL_OK)
			ship_fail(s, p, r);
	}
	free(data);
}

int
hs_is_shipping(const struct hs *s)
{
	const struct hs_ship *p = LIST_FIRST(&s->ships);

	return p != NULL && p->spec_fd != -1 && s->state == HST_LIVE &&
	    evbuffer_get_length(s->conn.out) < SHIP_OUT_LEN;
}

void
hs_clear_ships(struct hs *s)
{
	struct hs_ship *p;

	while ((p = LIST_FIRST(&s->ships)) != NULL) {
		if (p->spec_fd != -1)
			hs_send_failure(s->hub, MSG_START, p->ask_id,
			    RES_SESSION_CLOSED, "the connection was lost");
		ship_free(p);
	}
}
