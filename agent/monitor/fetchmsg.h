/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * What agentd-fetch may say: a handler a row of DEV_FETCH_CATALOGUE.  CL_OK,
 * or CL_FORMAT when it may not say that.
 */
#ifndef CLOOP_FETCHMSG_H
#define CLOOP_FETCHMSG_H

struct fetchctl;
struct imsg;

int fetchmsg_on_ready(struct fetchctl *f, struct imsg *m);
int fetchmsg_on_stopped(struct fetchctl *f, struct imsg *m);
int fetchmsg_on_resolve(struct fetchctl *f, struct imsg *m);
int fetchmsg_on_session(struct fetchctl *f, struct imsg *m);
int fetchmsg_on_enrolled(struct fetchctl *f, struct imsg *m);
int fetchmsg_on_caps(struct fetchctl *f, struct imsg *m);
int fetchmsg_on_start(struct fetchctl *f, struct imsg *m);
int fetchmsg_on_branch_open(struct fetchctl *f, struct imsg *m);
int fetchmsg_on_branch_end(struct fetchctl *f, struct imsg *m);
int fetchmsg_on_branch_drop(struct fetchctl *f, struct imsg *m);
int fetchmsg_on_sent(struct fetchctl *f, struct imsg *m);
int fetchmsg_on_acked(struct fetchctl *f, struct imsg *m);
int fetchmsg_on_told(struct fetchctl *f, struct imsg *m);
int fetchmsg_on_done(struct fetchctl *f, struct imsg *m);
int fetchmsg_on_refused(struct fetchctl *f, struct imsg *m);
int fetchmsg_on_signal(struct fetchctl *f, struct imsg *m);
int fetchmsg_on_revoke(struct fetchctl *f, struct imsg *m);
int fetchmsg_on_refresh(struct fetchctl *f, struct imsg *m);

#endif
