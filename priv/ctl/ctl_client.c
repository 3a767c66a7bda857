/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Operators' connections, in cloopd-ctl (unprivileged).  The kernel says
 * who connected; every message is decoded and checked, and the caller's
 * role too, before the monitor sees it; answers are forwarded unread.  A
 * client that breaks a rule or does not read loses its connection.
 */
#include "ctl_client.h"

#include <sys/socket.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/util.h"

#define HELLO_TIMEOUT_MS 10000
#define UNWANTED_TIMEOUT_MS 1000	/* to hear why it may not stay */
#define MAX_PEER_GROUPS 1024
/* Messages waiting for the monitor: above, clients are not read. */
#define MON_HIGH 256

static chan_msg_fn ctlc_on_message;
static chan_end_fn ctlc_on_end;

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
	struct msg_ctl_gone gone = { .client = c->number };

	if (c->dead)
		return;
	c->dead = 1;
	chan_close(&c->chan);
	log_debug("client-close", "client=%u uid=%u reason=%s", c->number,
	    c->uid, log_q(why));
	if (c->greeted)
		CTL_SEND(c->ctl, CTL_GONE, 0, &gone);
}

/* What came of sending to it. */
static void
ctlc_check_sent(struct ctlc *c, int r)
{
	if (r == CL_LIMIT) {
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
	struct msg_ctl_err err = { code, message, remedy };

	ctlc_check_sent(c, CHAN_SEND(&c->chan, CTL_ERR, id, &err, -1));
}

/* The same, and nothing after it. */
static void
ctlc_dismiss(struct ctlc *c, uint64_t id, const char *code,
    const char *message, const char *remedy)
{
	ctlc_refuse(c, id, code, message, remedy);
	c->closing = 1;
	if (!c->dead)
		chan_hold(&c->chan);
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

/* What the kernel said of it decides at once: why this connection may not
 * stay, or NULL. */
static const char *
ctlc_check_limits(const struct ctlc *c)
{
	const struct ctlc *o;
	unsigned int n = 0, kept = c->uid == 0 ? 0 : MAX_CTL_ROOT;

	if (c->role == ROLE_NONE)
		return "no role";
	if (c->ctl->nclients >= MAX_CTL_CLIENTS - kept)
		return "too many operators are connected";
	LIST_FOREACH(o, &c->ctl->clients, entry)
		n += o->uid == c->uid && o->unwanted == NULL;
	if (c->uid != 0 && n >= MAX_CTL_CLIENTS_PER_UID)
		return "this user has too many connections";
	return NULL;
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
	c->role = ctlc_find_role(c, fd);
	c->accepted_at = util_now_ms();
	/* It takes nobody's place while it waits to hear why not. */
	c->unwanted = ctlc_check_limits(c);
	if (c->unwanted != NULL && ctl->nunwanted >= MAX_CTL_UNWANTED) {
		close(fd);
		free(c);
		return;
	}
	/* Never 0, and not reused within any connection's life. */
	c->number = ++ctl->last_number != 0 ? ctl->last_number :
	    ++ctl->last_number;
	if (chan_open(&c->chan, ctl->base, fd, MSG_C2M, MSG_M2C,
	    CTL_QUEUE_MAX, ctlc_on_message, ctlc_on_end, c) != CL_OK) {
		free(c);
		return;
	}
	c->chan.state = MS_SERVING;
	LIST_INSERT_HEAD(&ctl->clients, c, entry);
	if (c->unwanted != NULL)
		ctl->nunwanted++;
	else
		ctl->nclients++;
	if (ctl->stalled)
		chan_hold(&c->chan);
}

/* --- hello --- */

/* Its version does not matter: the client compares. */
static int
ctlc_on_hello(struct ctlc *c, const struct imsg *m)
{
	struct msg_version ans = { .version = MSGCAT_VERSION };
	struct msg_ctl_client client = { c->number, c->uid, c->pid, c->role };
	char text[160];

	if (c->greeted)
		return CL_STATE;
	if (c->role == ROLE_NONE) {
		snprintf(text, sizeof(text), "user id %u may not use this "
		    "hub", c->uid);
		log_warn("operator-refused", "uid=%u pid=%u", c->uid, c->pid);
		ctlc_dismiss(c, m->id, "credential_invalid", text, "run it "
		    "as root, or have an administrator add you to the group "
		    "cloop (or cloop-view to look only)");
	} else if (c->unwanted != NULL)
		ctlc_dismiss(c, m->id, "busy", c->unwanted, "end some of them");
	else {
		c->greeted = 1;
		CTL_SEND(c->ctl, CTL_CLIENT, 0, &client);
		ctlc_check_sent(c, CHAN_SEND(&c->chan, CTL_HELLO_ANS, m->id,
		    &ans, -1));
	}
	return CL_OK;
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

void
ctlc_check_stall(struct ctl *ctl)
{
	int stalled = ctl->mon.im.nqueued > MON_HIGH;
	struct ctlc *c;

	if (ctl->stalled == stalled)
		return;
	ctl->stalled = stalled;
	LIST_FOREACH(c, &ctl->clients, entry) {
		if (c->dead || c->closing)
			continue;
		if (stalled)
			chan_hold(&c->chan);
		else
			chan_go_on(&c->chan);
	}
}

/* As it came. */
static void
ctlc_forward(struct ctlc *c, struct imsg *m)
{
	ctl_check_sent(chan_send_buf(&c->ctl->mon, m->type,
	    (uint64_t)c->number << 32 | m->id, &m->body, imsg_take_fd(m)),
	    m->type);
	ctlc_check_stall(c->ctl);
}

static void
ctlc_on_quit(struct ctlc *c, struct imsg *m, const struct msg_ctl_quit *v)
{
	uint32_t *place;

	if (v->request != 0 && (place = ctlc_find_request(c,
	    (uint32_t)v->request)) != NULL) {
		*place = 0;
		ctlc_forward(c, m);
	}
}

static int
ctlc_on_request(struct ctlc *c, struct imsg *m, const union msg_any *v)
{
	uint32_t *place, req = (uint32_t)m->id;
	int need = msgcat_role(m->type);

	if (need == ROLE_NONE || !c->greeted || m->id == 0 ||
	    m->id > UINT32_MAX)
		return CL_STATE;
	if (c->role < need) {
		ctlc_refuse(c, req, "credential_invalid", "this needs the "
		    "operator role; you may look only", "have an "
		    "administrator add you to the group cloop");
		return CL_OK;
	}
	if (m->type == MSG_CTL_QUIT) {
		ctlc_on_quit(c, m, &v->CTL_QUIT);
		return CL_OK;
	}
	if (ctlc_find_request(c, req) != NULL)
		return CL_EXISTS;
	if ((place = ctlc_find_request(c, 0)) == NULL) {
		ctlc_refuse(c, req, "busy", "too many requests at once", "");
		return CL_OK;
	}
	*place = req;
	ctlc_forward(c, m);
	return CL_OK;
}

/* Decoded here first, where nothing is to be had; the monitor does it again
 * from the same bytes. */
static int
ctlc_on_message(void *arg, struct imsg *m, union msg_any *v)
{
	return m->type == MSG_CTL_HELLO ? ctlc_on_hello(arg, m) :
	    ctlc_on_request(arg, m, v);
}

static void
ctlc_on_end(void *arg, const char *why)
{
	struct ctlc *c = arg;

	if (why != NULL)
		log_warn("client-violation", "client=%u uid=%u reason=%s",
		    c->number, c->uid, log_q(why));
	ctlc_close(c, why != NULL ? why : "it left");
}

/* --- answers --- */

void
ctlc_put(struct ctl *ctl, struct imsg *m)
{
	struct ctlc *c = ctlc_find(ctl, (uint32_t)(m->id >> 32));
	uint32_t *place = NULL, req = (uint32_t)m->id;

	if (c != NULL && req != 0)
		place = ctlc_find_request(c, req);
	if (place == NULL)	/* gone, or no longer wanted */
		return;
	if (m->type == MSG_CTL_DONE || m->type == MSG_CTL_ERR)
		*place = 0;
	ctlc_check_sent(c, chan_send_buf(&c->chan, m->type, req, &m->body,
	    imsg_take_fd(m)));
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
		CTL_SEND(c->ctl, CTL_PACE_ANS,
		    (uint64_t)c->number << 32 | c->paces[i], NULL);
		c->paces[i] = 0;
	}
}

void
ctlc_settle_all(struct ctl *ctl)
{
	struct ctlc *c, *next;

	for (c = LIST_FIRST(&ctl->clients); c != NULL; c = next) {
		next = LIST_NEXT(c, entry);
		if (!c->dead && !chan_has_output(&c->chan)) {
			if (c->closing)
				ctlc_close(c, "refused");
			else
				ctlc_answer_paces(c);
		}
		if (c->dead) {
			LIST_REMOVE(c, entry);
			if (c->unwanted != NULL)
				ctl->nunwanted--;
			else
				ctl->nclients--;
			free(c);
		}
	}
}

void
ctlc_on_tick(struct ctl *ctl)
{
	struct ctlc *c;
	int64_t now = util_now_ms();

	LIST_FOREACH(c, &ctl->clients, entry)
		if (!c->greeted && now - c->accepted_at > (c->unwanted !=
		    NULL ? UNWANTED_TIMEOUT_MS : HELLO_TIMEOUT_MS))
			ctlc_close(c, "no hello");
}
