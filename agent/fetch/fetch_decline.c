/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Requests for what this device does not have: each gets the negative answer
 * of its own kind, so that no request of a hub hangs.
 */
#include <string.h>

#include "common/base/err.h"
#include "fetch_frame.h"
#include "fetch_session.h"

/* The frame structs have no const; nothing here is changed or freed. */
#define FF_TEXT(s) ((char *)(uintptr_t)(s))

static void
ff_decline_upgrade(struct fs *fs, const struct frame_env *env,
    const void *payload)
{
	const struct frame_upgrade *q = payload;
	struct frame_upgrading a;

	frame_init_payload(FRAME_UPGRADING, &a);
	a.reason = FF_TEXT("this device does not upgrade itself");
	a.from_version = fs->conf.agent_version;
	a.target_version = q->target_version;
	fs_send(fs, FRAME_UPGRADING, env->id, NULL, &a, NULL);
}

static void
ff_decline_harness(struct fs *fs, const struct frame_env *env,
    const void *payload)
{
	const struct frame_install_harness *q = payload;
	struct frame_harness_installed a;

	frame_init_payload(FRAME_HARNESS_INSTALLED, &a);
	a.harness = q->harness;
	a.reason = FF_TEXT("this device installs no harness");
	fs_send(fs, FRAME_HARNESS_INSTALLED, env->id, NULL, &a, NULL);
}

static void
ff_decline_probe(struct fs *fs, const struct frame_env *env,
    const void *payload)
{
	const struct frame_isolation_probe *q = payload;
	const char *mode = q->sandbox.mode;
	struct frame_isolation_evidence a;

	frame_init_payload(FRAME_ISOLATION_EVIDENCE, &a);
	if (mode == NULL || strcmp(mode, "container") != 0)
		a.error = FF_TEXT("only container sandboxes can be probed");
	else
		a.error = FF_TEXT("this device runs no container sandbox");
	fs_send(fs, FRAME_ISOLATION_EVIDENCE, env->id, NULL, &a, NULL);
}

static void
ff_decline_terminal(struct fs *fs, const struct frame_env *env,
    const void *payload)
{
	(void)payload;
	if (fw_find_handle(fs, env->handle) == NULL)
		fs_send_error(fs, env->id, "unknown_handle",
		    "this workload is not here");
	else
		fs_send_error(fs, env->id, "protocol",
		    "this device opens no terminals");
}

static void
ff_decline_device(struct fs *fs, const struct frame_env *env,
    const void *payload)
{
	(void)payload;
	fs_send_error(fs, env->id, "protocol",
	    "this device attaches no forwarded devices");
}

static const struct ff_decline_row {
	enum frame_type type;
	void (*decline)(struct fs *, const struct frame_env *, const void *);
} ff_decline_rows[] = {
	{ FRAME_UPGRADE, ff_decline_upgrade },
	{ FRAME_INSTALL_HARNESS, ff_decline_harness },
	{ FRAME_ISOLATION_PROBE, ff_decline_probe },
	{ FRAME_ATTACH_OPEN, ff_decline_terminal },
	{ FRAME_DEVICE_OPEN, ff_decline_device },
};

int
ff_decline(struct fs *fs, const struct frame_env *env, const void *payload)
{
	size_t i;

	for (i = 0; i < sizeof(ff_decline_rows) / sizeof(ff_decline_rows[0]);
	    i++) {
		if (ff_decline_rows[i].type == env->type) {
			ff_decline_rows[i].decline(fs, env, payload);
			return 1;
		}
	}
	return 0;
}
