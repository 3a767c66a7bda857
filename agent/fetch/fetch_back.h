/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Work on its way back, in agentd-fetch: the project's result, the bundle,
 * the write-back's result, between the last output and the final status.
 * Prefix fb_.
 */
#ifndef CLOOP_FETCH_BACK_H
#define CLOOP_FETCH_BACK_H

#include <stdint.h>

#include "net/codec/frame.h"

struct frame_error;
struct fs;
struct fw;
struct imsg;

enum fb_stage { FB_PROJECT, FB_BUNDLE, FB_RESULT, FB_DONE };

struct fb {
	enum fb_stage stage;
	int has_result;			/* DEV_RESULT came */
	struct frame_write_back result;	/* its strings are owned */
	int bundle_fd;
	uint64_t bundle_len, bundle_off;
	int has_project;		/* DEV_PROJECT came */
	char *project_error;
	int project_fd;
	uint64_t project_len;
	char *refused;			/* the hub's reason: no more chunks */
};

void fb_init(struct fb *b);
void fb_clear(struct fb *b);
/* Messages of the monitor; CL_*. */
int fb_on_result(struct fs *fs, struct imsg *m);
int fb_on_bundle(struct fs *fs, struct imsg *m);
int fb_on_project(struct fs *fs, struct imsg *m);
int fb_on_project_file(struct fs *fs, struct imsg *m);
/*
 * All output is queued: the next frame of what comes back.  CL_OK: one was
 * queued; CL_INCOMPLETE: nothing is left, the status may follow; else the
 * link's failure.
 */
int fb_step(struct fw *w);
/* A link is new: everything again, from its beginning. */
void fb_restart(struct fw *w);
/* The hub refused a chunk. */
void fb_refuse(struct fw *w, const struct frame_error *e);

#endif
