/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The handshake as the monitor sees it: identity, version, resume verdicts,
 * and which session may write to a handle's files.
 */
#ifndef PRIV_HELLO_H
#define PRIV_HELLO_H

#include <stdint.h>

#include "common/model/caps.h"

struct child;
struct handle;
struct monitor;
struct session;

/* A decoded hello that waits for the end of the agent's older session. */
struct hello {
	struct hello_blob blob;
	uint64_t ask;		/* id of the HELLO message */
};

void hello_free(struct hello *h);	/* NULL is legal */

/*
 * Judge a hello; answers now, or once the older session is down.  Takes h.
 */
void hello_start(struct monitor *mon, struct session *s, struct hello *h);
/* The older session is down: answer s, which waited. */
void hello_finish(struct monitor *mon, struct session *s);
/* Answer with a HELLO_* other than OK. */
void hello_refuse(struct child *c, uint64_t ask, int result);

/*
 * Hand a handle to a session; when another had it before, that is gone now.
 * Anything but CL_OK is "cannot tell now" and ends nothing.
 */
int hello_open_handle(struct monitor *mon, struct session *s,
    struct handle *h);
/*
 * The files of its output, for the worker that has the handle.  They are
 * opened here and read there.  renew: what was there is set aside.  Anything
 * but CL_OK: not now.
 */
int hello_give_files(struct monitor *mon, struct child *c, struct handle *h,
    int renew);

#endif
