/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * What agentd-fetch may say: a handler a row of dev_fetch.def.  CL_OK, or
 * CL_FORMAT when it may not say that.
 */
#ifndef CLOOP_FETCHMSG_H
#define CLOOP_FETCHMSG_H

struct fetchctl;
struct imsg;
union msg_any;

typedef int fetchmsg_fn(struct fetchctl *f, struct imsg *m, union msg_any *v);

fetchmsg_fn fetchmsg_on_ready, fetchmsg_on_stopped, fetchmsg_on_resolve,
    fetchmsg_on_session, fetchmsg_on_enrolled, fetchmsg_on_caps,
    fetchmsg_on_start, fetchmsg_on_branch_open, fetchmsg_on_branch_end,
    fetchmsg_on_branch_drop, fetchmsg_on_sent, fetchmsg_on_acked,
    fetchmsg_on_told, fetchmsg_on_done, fetchmsg_on_refused,
    fetchmsg_on_signal, fetchmsg_on_revoke, fetchmsg_on_refresh;

#endif
