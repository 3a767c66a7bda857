/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Operators' connections, in cloopd-ctl (unprivileged).  The kernel says
 * who connected; every message is checked against the catalogue and the
 * caller's role before the monitor sees it, and is forwarded unread.  A
 * client that breaks a rule or does not read loses its connection.
 */
#include "ctl_client.h"

#include <sys/socket.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "common/msg/buf.h"

#define HELLO_TIMEOUT_MS 10000
#define READ_BATCH 16
#define MAX_PEER_GROUPS 1024

static void ctlc_on_read(evutil_socket_t fd, short what, void *arg);
static void ctlc_on_write(evutil_socket_t fd, short what, void *arg);

static struct ctlc *
ctlc_find(struct ctl *ctl, uint32_t number)
{
	struct ctlc *c;

	LIST_FOREACH(c, &ctl->clients, entry)
		if (c->number == number && !c->dead)
			return c;
	return NULL;
}

/* Mark as dead; freed by ctlc_settle_all(). */
static void
ctlc_close(struct ctlc *c, const char *why)
{
	struct buf b;

	if (c->dead)
		return;
	c->dead = 1;
	log_debug("client-close", "client=%u uid=%u reason=%s", c->number,
	    c->uid, log_q(why));
	if (!c->greeted)
		return;
	buf_init(&b, MSG_BODY_MAX);
	buf_put_u32(&b, c->number);
	ctl_send(c->ctl, MSG_CTL_GONE, 0, &b, -1);
	buf_clear(&b);
}

static void
ctlc_queue(struct ctlc *c, uint32_t type, uint64_t id, const struct buf *body,
    int fd)
{
	int r;

	if (c->dead) {
		if (fd != -1)
			close(fd);
		return;
	}
	if ((r = imsg_compose(&c->chan, type, id, body, fd)) == CL_LIMIT) {
		log_warn("client-slow", "client=%u uid=%u", c->number,
		    c->uid);
		ctlc_close(c, "does not read its answers");
	} else if (r != CL_OK)
		ctlc_close(c, cl_strerror(r));
}

static void
ctlc_refuse(struct ctlc *c, uint64_t id, const char *code,
    const char *message, const char *remedy)
{
	struct buf b;

	buf_init(&b, MSG_BODY_MAX);
	buf_put_str(&b, code);
	buf_put_str(&b, message);
	buf_put_str(&b, remedy);
	ctlc_queue(c, MSG_CTL_ERR, id, &b, -1);
	buf_clear(&b);
}

/* --- who --- */

static int
ctlc_has_group(uint32_t gid, gid_t primary, const gid_t *groups, size_t n)
{
	size_t i;

	if (gid == UINT32_MAX)		/* no such group configured */
		return 0;
	if ((uint32_t)primary == gid)
		return 1;
	for (i = 0; i < n; i++)
		if ((uint32_t)groups[i] == gid)
			return 1;
	return 0;
}

/* As of connect(2), by the kernel: nothing the client says counts. */
static int
ctlc_find_role(struct ctlc *c, int fd)
{
	struct ucred cred;
	gid_t groups[MAX_PEER_GROUPS];
	socklen_t len = sizeof(cred), glen = sizeof(groups);
	size_t n = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == -1 ||
	    len != sizeof(cred))
		return ROLE_NONE;
	c->uid = (uint32_t)cred.uid;
	c->pid = (uint32_t)cred.pid;
	if (cred.uid == 0)
		return ROLE_OPERATOR;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &glen) == 0)
		n = glen / sizeof(gid_t);
	if (ctlc_has_group(c->ctl->operator_gid, cred.gid, groups, n))
		return ROLE_OPERATOR;
	if (ctlc_has_group(c->ctl->viewer_gid, cred.gid, groups, n))
		return ROLE_VIEWER;
	return ROLE_NONE;
}

void
ctlc_new(struct ctl *ctl, int fd)
{
	struct ctlc *c;

	if ((c = calloc(1, sizeof(*c))) == NULL) {
		close(fd);
		return;
	}
	c->ctl = ctl;
	c->chan.fd = -1;
	c->role = ctlc_find_role(c, fd);
	c->accepted_at = util_now_ms();
	/* Never 0, and not reused within any connection's life. */
	c->number = ++ctl->last_number != 0 ? ctl->last_number :
	    ++ctl->last_number;
	if (imsg_init(&c->chan, fd, CTL_QUEUE_MAX) != CL_OK) {
		free(c);
		return;
	}
	c->ev_in = event_new(ctl->base, c->chan.fd, EV_READ | EV_PERSIST,
	    ctlc_on_read, c);
	c->ev_out = event_new(ctl->base, c->chan.fd, EV_WRITE, ctlc_on_write,
	    c);
	LIST_INSERT_HEAD(&ctl->clients, c, entry);
	ctl->nclients++;
	if (c->ev_in == NULL || c->ev_out == NULL ||
	    (!ctl->stalled && event_add(c->ev_in, NULL) == -1))
		ctlc_close(c, "no event");
}

static void
ctlc_free(struct ctlc *c)
{
	LIST_REMOVE(c, entry);
	c->ctl->nclients--;
	if (c->ev_in != NULL)
		event_free(c->ev_in);
	if (c->ev_out != NULL)
		event_free(c->ev_out);
	imsg_clear(&c->chan);
	free(c);
}

/* --- hello --- */

/* Why this connection may not stay, or NULL. */
static const char *
ctlc_check_limits(struct ctlc *c)
{
	struct ctlc *o;
	unsigned int n = 0;

	if (c->ctl->nclients > MAX_CTL_CLIENTS)
		return "too many operators are connected";
	LIST_FOREACH(o, &c->ctl->clients, entry)
		n += o->uid == c->uid;
	if (c->uid != 0 && n > MAX_CTL_CLIENTS_PER_UID)
		return "this user has too many connections";
	return NULL;
}

static void
ctlc_on_hello(struct ctlc *c, struct imsg *m)
{
	const char *why;
	char text[160];
	struct buf b;

	(void)buf_get_u32(&m->body);	/* its version: the client compares */
	if (buf_end(&m->body) != CL_OK || c->greeted) {
		ctlc_close(c, "hello out of place");
		return;
	}
	if (c->role == ROLE_NONE) {
		snprintf(text, sizeof(text), "user id %u may not use this "
		    "hub", c->uid);
		log_warn("operator-refused", "uid=%u pid=%u", c->uid, c->pid);
		ctlc_refuse(c, m->id, "credential_invalid", text, "run it as "
		    "root, or have an administrator add you to the group "
		    "cloop (or cloop-view to look only)");
		c->closing = 1;
		return;
	}
	if ((why = ctlc_check_limits(c)) != NULL) {
		ctlc_refuse(c, m->id, "busy", why, "end some of them");
		c->closing = 1;
		return;
	}
	c->greeted = 1;
	buf_init(&b, MSG_BODY_MAX);
	buf_put_u32(&b, c->number);
	buf_put_u32(&b, c->uid);
	buf_put_u32(&b, c->pid);
	buf_put_u8(&b, (uint8_t)c->role);
	ctl_send(c->ctl, MSG_CTL_CLIENT, 0, &b, -1);
	buf_reset(&b);
	buf_put_u32(&b, MSGCAT_VERSION);
	buf_put_u8(&b, (uint8_t)c->role);
	ctlc_queue(c, MSG_CTL_HELLO_ANS, m->id, &b, -1);
	buf_clear(&b);
}

/* --- requests --- */

/* The place of a request in the table; 0 finds a free one. */
static uint32_t *
ctlc_find_request(struct ctlc *c, uint32_t req)
{
	size_t i;

	for (i = 0; i < MAX_CTL_REQUESTS; i++)
		if (c->requests[i] == req)
			return &c->requests[i];
	return NULL;
}

static void
ctlc_on_quit(struct ctlc *c, struct imsg *m)
{
	struct buf copy = m->body;
	uint32_t *place, req = buf_get_u32(&copy);

	if (buf_end(&copy) != CL_OK || req == 0 ||
	    (place = ctlc_find_request(c, req)) == NULL)
		return;
	*place = 0;
	ctl_send(c->ctl, m->type, (uint64_t)c->number << 32 | m->id,
	    &m->body, -1);
}

static void
ctlc_on_request(struct ctlc *c, struct imsg *m)
{
	uint32_t *place, req = (uint32_t)m->id;
	int need = msgcat_role(m->type);

	if (need == ROLE_NONE || !c->greeted || m->id == 0 ||
	    m->id > UINT32_MAX) {
		ctlc_close(c, "broke the rules");
		return;
	}
	if (c->role < need) {
		ctlc_refuse(c, req, "credential_invalid", "this needs the "
		    "operator role; you may look only", "have an "
		    "administrator add you to the group cloop");
		return;
	}
	if (m->type == MSG_CTL_QUIT) {
		ctlc_on_quit(c, m);
		return;
	}
	if (ctlc_find_request(c, req) != NULL) {
		ctlc_close(c, "request number in use");
		return;
	}
	if ((place = ctlc_find_request(c, 0)) == NULL) {
		ctlc_refuse(c, req, "busy", "too many requests at once", "");
		return;
	}
	*place = req;
	ctl_send(c->ctl, m->type, (uint64_t)c->number << 32 | req, &m->body,
	    imsg_take_fd(m));
}

static void
ctlc_on_message(struct ctlc *c, struct imsg *m)
{
	const char *why;

	if (msgcat_check(MSG_C2M, MS_SERVING, m, &c->seen, &why) != CL_OK) {
		log_warn("client-violation", "client=%u uid=%u type=%s "
		    "reason=%s", c->number, c->uid, msgcat_name(m->type),
		    log_q(why));
		ctlc_close(c, why);
	} else if (m->type == MSG_CTL_HELLO)
		ctlc_on_hello(c, m);
	else
		ctlc_on_request(c, m);
}

static void
ctlc_on_read(evutil_socket_t fd, short what, void *arg)
{
	struct ctlc *c = arg;
	struct imsg m;
	int i, r;

	(void)fd;
	(void)what;
	for (i = 0; i < READ_BATCH && !c->dead && !c->closing; i++) {
		if ((r = imsg_read(&c->chan, &m)) == CL_INCOMPLETE)
			break;
		if (r != CL_OK) {
			ctlc_close(c, cl_strerror(r));
			break;
		}
		ctlc_on_message(c, &m);
		imsg_free(&m);
	}
	if (c->closing)
		event_del(c->ev_in);
}

/* --- answers --- */

void
ctlc_put(struct ctl *ctl, uint64_t id, uint32_t type, const struct buf *body,
    int fd)
{
	struct ctlc *c = ctlc_find(ctl, (uint32_t)(id >> 32));
	uint32_t *place = NULL, req = (uint32_t)id;

	if (c != NULL && req != 0)
		place = ctlc_find_request(c, req);
	if (place == NULL) {	/* gone, or no longer wanted */
		if (fd != -1)
			close(fd);
		return;
	}
	if (type == MSG_CTL_DONE || type == MSG_CTL_ERR)
		*place = 0;
	ctlc_queue(c, type, req, body, fd);
}

void
ctlc_pace(struct ctl *ctl, uint64_t id)
{
	struct ctlc *c = ctlc_find(ctl, (uint32_t)(id >> 32));
	size_t i;

	if (c == NULL)
		return;		/* the monitor hears of its end */
	for (i = 0; i < MAX_CTL_REQUESTS; i++)
		if (c->paces[i] == 0) {
			c->paces[i] = (uint32_t)id;
			return;
		}
	ctlc_close(c, "too many lists");
}

/* Everything queued was written: the lists may go on. */
static void
ctlc_answer_paces(struct ctlc *c)
{
	size_t i;

	for (i = 0; i < MAX_CTL_REQUESTS; i++) {
		if (c->paces[i] == 0)
			continue;
		ctl_send(c->ctl, MSG_CTL_PACE_ANS,
		    (uint64_t)c->number << 32 | c->paces[i], NULL, -1);
		c->paces[i] = 0;
	}
}

static void
ctlc_flush(struct ctlc *c)
{
	int r;

	if (c->dead || event_pending(c->ev_out, EV_WRITE, NULL))
		return;
	if ((r = imsg_write(&c->chan)) == CL_INCOMPLETE)
		event_add(c->ev_out, NULL);
	else if (r != CL_OK)
		ctlc_close(c, cl_strerror(r));
	else if (c->closing)
		ctlc_close(c, "refused");
	else
		ctlc_answer_paces(c);
}

static void
ctlc_on_write(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	ctlc_flush(arg);
}

void
ctlc_settle_all(struct ctl *ctl)
{
	struct ctlc *c, *next;

	for (c = LIST_FIRST(&ctl->clients); c != NULL; c = next) {
		next = LIST_NEXT(c, entry);
		ctlc_flush(c);
		if (c->dead)
			ctlc_free(c);
	}
}

void
ctlc_on_tick(struct ctl *ctl)
{
	struct ctlc *c;
	int64_t now = util_now_ms();

	LIST_FOREACH(c, &ctl->clients, entry)
		if (!c->greeted && now - c->accepted_at > HELLO_TIMEOUT_MS)
			ctlc_close(c, "no hello");
}

void
ctlc_set_stalled(struct ctl *ctl, int stalled)
{
	struct ctlc *c;

	if (ctl->stalled == stalled)
		return;
	ctl->stalled = stalled;
	LIST_FOREACH(c, &ctl->clients, entry) {
		if (c->dead || c->closing)
			continue;
		if (stalled)
			event_del(c->ev_in);
		else
			event_add(c->ev_in, NULL);
	}
}
