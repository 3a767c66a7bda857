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
#include "common/msg/chan.h"

#define HELLO_TIMEOUT_MS 10000

struct ctlclient {
	struct chan chan;
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

/* Wait for events; CL_INCOMPLETE at the deadline or on a signal, CL_EOF when
 * nobody is there to take what we say. */
static int
ctlclient_wait(struct ctlclient *c, short events, int timeout_ms)
{
	struct pollfd pfd = { .fd = c->chan.im.fd, .events = events };
	int n;

	n = poll(&pfd, 1, timeout_ms);
	if (n == -1)
		return errno == EINTR ? CL_INCOMPLETE : CL_SYSTEM;
	if (n > 0 && events == POLLOUT && (pfd.revents & POLLOUT) == 0)
		return CL_EOF;
	return n == 0 ? CL_INCOMPLETE : CL_OK;
}

int
ctlclient_send(struct ctlclient *c, uint32_t type, const void *v, int fd,
    uint64_t *reqp)
{
	uint64_t req = c->next_req;
	int r;

	if (reqp != NULL)
		*reqp = 0;
	/* The hub puts the client's number above 32 bits (hub_ctl.def). */
	c->next_req = req == UINT32_MAX ? 1 : req + 1;
	if ((r = chan_send(&c->chan, type, req, v, fd)) != CL_OK)
		return r;
	while (chan_has_output(&c->chan)) {
		r = ctlclient_wait(c, POLLOUT, -1);
		if (r != CL_OK && r != CL_INCOMPLETE)
			return r;
		chan_flush(&c->chan);
	}
	if (c->chan.is_broken)
		return CL_EOF;
	if (reqp != NULL)
		*reqp = req;
	return CL_OK;
}

int
ctlclient_read(struct ctlclient *c, int timeout_ms, struct imsg *m,
    union msg_any *v)
{
	const char *why;
	int r;

	while ((r = chan_read_one(&c->chan, m, v, &why)) == CL_INCOMPLETE) {
		if (timeout_ms == 0)
			return CL_INCOMPLETE;
		if ((r = ctlclient_wait(c, POLLIN, timeout_ms)) != CL_OK)
			return r;
	}
	return r;
}

void
ctlclient_free(struct imsg *m, union msg_any *v)
{
	msg_clear(m->type, v);
	imsg_free(m);
}

void
ctlclient_copy_error(struct ctl_error *e, const struct msg_ctl_err *v)
{
	strlcpy(e->code, v->code, sizeof(e->code));
	strlcpy(e->message, v->message, sizeof(e->message));
	strlcpy(e->remedy, v->remedy, sizeof(e->remedy));
}

/* The answer to CTL_HELLO: our build, or a refusal in words. */
static int
ctlclient_on_hello(const struct imsg *m, const union msg_any *v,
    struct ctl_error *e)
{
	if (m->type == MSG_CTL_ERR) {
		ctlclient_copy_error(e, &v->CTL_ERR);
		return strcmp(e->code, "busy") == 0 ? CL_LIMIT : CL_DENIED;
	}
	if (m->type != MSG_CTL_HELLO_ANS)
		return CL_FORMAT;
	return v->CTL_HELLO_ANS.version == MSGCAT_VERSION ? CL_OK :
	    CL_VERSION;
}

static int
ctlclient_greet(struct ctlclient *c, const char *path, struct ctl_error *e)
{
	struct msg_version hello = { .version = MSGCAT_VERSION };
	union msg_any v;
	struct imsg m;
	int r;

	/* A hub that refuses us may have closed already: read its reason. */
	(void)ctlclient_send(c, MSG_CTL_HELLO, &hello, -1, NULL);
	if ((r = ctlclient_read(c, HELLO_TIMEOUT_MS, &m, &v)) == CL_OK) {
		r = ctlclient_on_hello(&m, &v, e);
		ctlclient_free(&m, &v);
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
	if ((r = chan_init(&c->chan, fd, MSG_M2C, MSG_C2M, CTL_QUEUE_MAX,
	    NULL, NULL, NULL)) != CL_OK) {
		ctlclient_set_error(e, "internal", cl_strerror(r), NULL, NULL);
		free(c);
		return r;
	}
	c->chan.state = MS_SERVING;
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
	chan_close(&c->chan);
	free(c);
}
