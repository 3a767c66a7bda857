/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Frames of the hub while the session is up.  Prefix ff_.
 */
#ifndef CLOOP_FETCH_FRAME_H
#define CLOOP_FETCH_FRAME_H

struct caps;
struct fa;
struct frame_env;
struct fs;
struct imsg;

/* fetch_frame.c: a frame of the hub while the session is up. */
void ff_on_frame(struct fs *fs, const struct frame_env *env);
/* Its start, signal or inventory was answered by the monitor. */
int ff_on_started(struct fs *fs, struct imsg *m);
int ff_on_signalled(struct fs *fs, struct imsg *m);
void ff_on_caps(struct fs *fs, const struct fa *a, struct caps *c);
void ff_on_timeout(struct fs *fs, const struct fa *a);
/* 1 when the session of the frame it is for is still the one we are in. */
int ff_is_wanted(const struct fs *fs, const struct fa *a);
/* fetch_lease.c: revoke and secret_refresh, and their answers. */
void ff_on_revoke(struct fs *fs, const struct frame_env *env, void *payload);
void ff_on_refresh(struct fs *fs, const struct frame_env *env,
    void *payload);
int ff_on_revoked(struct fs *fs, struct imsg *m);
int ff_on_refreshed(struct fs *fs, struct imsg *m);
void ff_on_lease_timeout(struct fs *fs, const struct fa *a);
/* fetch_decline.c: requests for what this build does not have.  1: done. */
int ff_decline(struct fs *fs, const struct frame_env *env,
    const void *payload);

#endif
