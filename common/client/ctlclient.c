/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The client end of the control protocol.  Runs in cloopctl and
 * cloop-enroll with the operator's own rights; touches one socket.  What
 * arrives is checked against the catalogue like between our daemons, so
 * that a wrong process on the socket is an error message and no crash.
 */
#include "ctlclient.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bsd/string.h>

#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/msg/buf.h"
#include "common/msg/msgcat.h"

#define HELLO_TIMEOUT_MS 10000

struct ctlclient {
	struct imsg_chan chan;
	struct msgcat_seen seen;
	uint64_t next_req;
};

static void
ctlclient_set_error(struct ctl_error *e, const char *code, const char *fmt,
    const char *arg, const char *why)
{
	memset(e, 0, sizeof(*e));
	strlcpy(e->code, code, sizeof(e->code));
	snprintf(e->message, sizeof(e->message), "%s%s%s", fmt,
	    arg != NULL ? arg : "", why != NULL ? why : "");
}

static int
ctlclient_connect(const char *path, int *fdp, struct ctl_error *e)
{
	struct sockaddr_un sun;
	int fd, saved;

	memset(&sun, 0, sizeof(sun));
	sun.sun_family = AF_UNIX;
	if (strlcpy(sun.sun_path, path, sizeof(sun.sun_path)) >=
	    sizeof(sun.sun_path)) {
		ctlclient_set_error(e, "usage", "socket path is too long: ",
		    path, NULL);
		return CL_TOOBIG;
	}
	if ((fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) == -1) {
		ctlclient_set_error(e, "internal", "socket: ",
		    strerror(errno), NULL);
		return CL_SYSTEM;
	}
	if (connect(fd, (struct sockaddr *)&sun, sizeof(sun)) == -1) {
		saved = errno;
		close(fd);
		ctlclient_set_error(e, saved == EACCES ? "credential_invalid" :
		    "hub_unreachable", path, ": ", strerror(saved));
		strlcpy(e->remedy, saved == EACCES ?
		    "check the permissions of the control socket" :
		    "start cloopd, or name its control socket with -s",
		    sizeof(e->remedy));
		return saved == EACCES ? CL_DENIED : CL_NOTFOUND;
	}
	*fdp = fd;
	return CL_OK;
}

/* Wait for events; CL_INCOMPLETE at the deadline or on a signal. */
static int
ctlclient_wait(struct ctlclient *c, short events, int timeout_ms)
{
	struct pollfd pfd = { .fd = c->chan.fd, .events = events };
	int n;

	n = poll(&pfd, 1, timeout_ms);
	if (n == -1)
		return errno == EINTR ? CL_INCOMPLETE : CL_SYSTEM;
	return n == 0 ? CL_INCOMPLETE : CL_OK;
}

static int
ctlclient_flush(struct ctlclient *c)
{
	int r;

	while ((r = imsg_write(&c->chan)) == CL_INCOMPLETE) {
		r = ctlclient_wait(c, POLLOUT, -1);
		if (r != CL_OK && r != CL_INCOMPLETE)
			return r;
	}
	return r;
}

int
ctlclient_send(struct ctlclient *c, uint32_t type, const struct buf *body,
    int fd, uint64_t *reqp)
{
	uint64_t req = c->next_req;
	int r;

	if (reqp != NULL)
		*reqp = 0;
	/* The hub puts the client's number above 32 bits (msgcat.h). */
	c->next_req = req == UINT32_MAX ? 1 : req + 1;
	if ((r = imsg_compose(&c->chan, type, req, body, fd)) != CL_OK)
		return r;
	if ((r = ctlclient_flush(c)) != CL_OK)
		return r;
	if (reqp != NULL)
		*reqp = req;
	return CL_OK;
}

int
ctlclient_read(struct ctlclient *c, int timeout_ms, struct imsg *m)
{
	const char *why;
	int r;

	while ((r = imsg_read(&c->chan, m)) == CL_INCOMPLETE) {
		if (timeout_ms == 0)
			return CL_INCOMPLETE;
		if ((r = ctlclient_wait(c, POLLIN, timeout_ms)) != CL_OK)
			return r;
	}
	if (r != CL_OK)
		return r;
	if (msgcat_check(MSG_M2C, MS_SERVING, m, &c->seen, &why) != CL_OK) {
		imsg_free(m);
		return CL_FORMAT;
	}
	return CL_OK;
}

int
ctlclient_get_error(struct imsg *m, struct ctl_error *e)
{
	memset(e, 0, sizeof(*e));
	buf_get_str(&m->body, e->code, sizeof(e->code) - 1);
	buf_get_str(&m->body, e->message, sizeof(e->message) - 1);
	buf_get_str(&m->body, e->remedy, sizeof(e->remedy) - 1);
	return buf_end(&m->body);
}

/* The answer to CTL_HELLO: our build, or a refusal in words. */
static int
ctlclient_on_hello(struct imsg *m, struct ctl_error *e)
{
	uint32_t version;

	if (m->type == MSG_CTL_ERR) {
		if (ctlclient_get_error(m, e) != CL_OK)
			return CL_FORMAT;
		return strcmp(e->code, "busy") == 0 ? CL_LIMIT : CL_DENIED;
	}
	if (m->type != MSG_CTL_HELLO_ANS)
		return CL_FORMAT;
	version = buf_get_u32(&m->body);
	(void)buf_get_u8(&m->body);	/* the role the hub gives us */
	if (buf_end(&m->body) != CL_OK)
		return CL_FORMAT;
	if (version != MSGCAT_VERSION)
		return CL_VERSION;
	return CL_OK;
}

static int
ctlclient_greet(struct ctlclient *c, const char *path, struct ctl_error *e)
{
	struct buf b;
	struct imsg m;
	int r;

	buf_init(&b, MSG_BODY_MAX);
	buf_put_u32(&b, MSGCAT_VERSION);
	/* A hub that refuses us may have closed already: read its reason. */
	(void)ctlclient_send(c, MSG_CTL_HELLO, &b, -1, NULL);
	buf_clear(&b);
	if ((r = ctlclient_read(c, HELLO_TIMEOUT_MS, &m)) == CL_OK) {
		r = ctlclient_on_hello(&m, e);
		imsg_free(&m);
	}
	switch (r) {
	case CL_OK:
	case CL_DENIED:
	case CL_LIMIT:
		return r;
	case CL_INCOMPLETE:
		ctlclient_set_error(e, "hub_unreachable", path,
		    ": the hub does not answer", NULL);
		return CL_TIMEOUT;
	case CL_VERSION:
		ctlclient_set_error(e, "version_unsupported", path,
		    ": the hub is another build than this program", NULL);
		strlcpy(e->remedy, "use the programs of one installation, and "
		    "restart cloopd after an update", sizeof(e->remedy));
		return r;
	case CL_FORMAT:
		ctlclient_set_error(e, "protocol", path,
		    ": this is not a cloopd control socket", NULL);
		return r;
	default:
		ctlclient_set_error(e, "hub_unreachable", path,
		    ": the hub closed the connection", NULL);
		return CL_NOTFOUND;
	}
}

int
ctlclient_open(const char *path, struct ctlclient **cp, struct ctl_error *e)
{
	struct ctlclient *c;
	int fd, r;

	*cp = NULL;
	memset(e, 0, sizeof(*e));
	if ((r = ctlclient_connect(path, &fd, e)) != CL_OK)
		return r;
	if ((c = calloc(1, sizeof(*c))) == NULL) {
		close(fd);
		ctlclient_set_error(e, "internal", "out of memory", NULL, NULL);
		return CL_NOMEM;
	}
	c->next_req = 1;
	if ((r = imsg_init(&c->chan, fd, CTL_QUEUE_MAX)) != CL_OK) {
		ctlclient_set_error(e, "internal", cl_strerror(r), NULL, NULL);
		free(c);
		return r;
	}
	if ((r = ctlclient_greet(c, path, e)) != CL_OK) {
		ctlclient_close(c);
		return r;
	}
	*cp = c;
	return CL_OK;
}

void
ctlclient_close(struct ctlclient *c)
{
	if (c == NULL)
		return;
	imsg_clear(&c->chan);
	free(c);
}
