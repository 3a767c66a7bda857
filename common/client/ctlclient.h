/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The client end of the control protocol (hub_ctl.def), for cloopctl
 * and cloop-enroll: connect, compare versions, send a request, read its
 * rows.  Blocking with poll(2); no libevent, no globals, no logging.  The
 * hub is trusted as far as its socket's owner: every row is still held
 * against the catalogue.
 *
 *	if (ctlclient_open(path, &c, &e) != CL_OK) -> exit 3 or 1
 *	ctlclient_send(c, MSG_CTL_PS, &body, -1, &req);
 *	while ((r = ctlclient_read(c, -1, &m, &v)) == CL_OK) {
 *		m.id == req; m.type MSG_ROW_HANDLE: v.ROW_HANDLE;
 *		MSG_CTL_DONE: finished; MSG_CTL_ERR: v.CTL_ERR
 *		ctlclient_free(&m, &v);
 *	}
 */
#ifndef CLOOP_CTLCLIENT_H
#define CLOOP_CTLCLIENT_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/limits.h"
#include "common/msg/msgcat.h"

struct ctlclient;

/* A refusal, printed as {"error":{"code","message","remedy"}}. */
struct ctl_error {
	char code[64];		/* sentinel in snake case, usage, busy, ... */
	char message[MAX_ERROR_TEXT_LEN + 1024];
	char remedy[1024];	/* "" when there is none */
};

/*
 * Connect to the socket and exchange CTL_HELLO.  On failure *e tells why
 * in words.  CL_NOTFOUND: the hub cannot be reached (exit 3): no socket,
 * nobody listens, or it closed before it answered.  CL_DENIED: this user may
 * not, or the socket's permissions say so.  CL_VERSION: another build.
 * CL_LIMIT: too many operators.  CL_TIMEOUT after 10 s without an answer
 * (exit 3 too).
 */
int ctlclient_open(const char *path, struct ctlclient **cp,
    struct ctl_error *e);
void ctlclient_close(struct ctlclient *c);	/* NULL is legal */

/*
 * Send a request, v as its row says; waits until the socket takes it.  Takes
 * fd (-1: none).  *reqp: the id its answers carry.  CL_EOF: hub gone; else
 * what msg_put says of v.
 */
int ctlclient_send(struct ctlclient *c, uint32_t type, const void *v, int fd,
    uint64_t *reqp);
/*
 * The next row of any request, in order of arrival.  timeout_ms < 0 waits for
 * ever, 0 not at all.  CL_OK: ctlclient_free() both.  CL_INCOMPLETE: timed
 * out, or a signal came (EINTR).  CL_EOF: the hub went away.  CL_FORMAT: it
 * broke the rules.
 */
int ctlclient_read(struct ctlclient *c, int timeout_ms, struct imsg *m,
    union msg_any *v);
/* What nobody took of them (it leaves NULL). */
void ctlclient_free(struct imsg *m, union msg_any *v);

void ctlclient_copy_error(struct ctl_error *e, const struct msg_ctl_err *v);

#endif
