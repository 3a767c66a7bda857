/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * agentd-fetch: the device's network process.  Two roles: `session` holds the
 * connection to the hub and the credential, `resolver` answers one name.
 * Runs as _cloop-fetch, chrooted (session), under seccomp; descriptor 3 is
 * the monitor, everything else came over it.  Trusts the monitor; the hub
 * only to say what should be done, never that it may be.  What answers which
 * message and which frame is written here.
 */
#include "fetch.h"

#include <bsd/unistd.h>
#include <event2/event.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/log.h"

#define FETCH_CHANNEL_FD 3

/* Frames of the hub while the session is up; 1: a payload that does not
 * decode is answered. */
static const struct fetch_frame_row fetch_frames[FRAME_NTYPES] = {
	[FRAME_START] = { fetch_frame_on_start, 1 },
	[FRAME_SIGNAL] = { fetch_frame_on_signal, 1 },
	[FRAME_STATUS_REQ] = { fetch_frame_on_status_req, 0 },
	[FRAME_LOG_ACK] = { fetch_frame_on_log_ack, 0 },
	[FRAME_HEARTBEAT_ACK] = { fetch_frame_on_heartbeat_ack, 0 },
	[FRAME_INVENTORY_REQ] = { fetch_frame_on_inventory, 1 },
	[FRAME_BYE] = { fetch_frame_on_bye, 0 },
	[FRAME_ERROR] = { fetch_frame_on_error, 0 },
	[FRAME_REVOKE] = { fetch_lease_on_revoke, 1 },
	[FRAME_SECRET_REFRESH] = { fetch_lease_on_refresh, 1 },
	[FRAME_UPGRADE] = { fetch_decline_upgrade, 1 },
	[FRAME_INSTALL_HARNESS] = { fetch_decline_harness, 1 },
	[FRAME_ISOLATION_PROBE] = { fetch_decline_probe, 1 },
	[FRAME_ATTACH_OPEN] = { fetch_decline_terminal, 1 },
	[FRAME_DEVICE_OPEN] = { fetch_decline_device, 1 },
	[FRAME_ATTACH_DATA] = { fetch_frame_on_ignored, 1 },
	[FRAME_ATTACH_RESIZE] = { fetch_frame_on_ignored, 0 },
	[FRAME_ATTACH_CLOSE] = { fetch_frame_on_ignored, 0 },
	[FRAME_DEVICE_DATA] = { fetch_frame_on_ignored, 0 },
	[FRAME_DEVICE_CLOSE] = { fetch_frame_on_ignored, 0 },
	[FRAME_BRANCH_CHUNK] = { fetch_in_on_chunk, 0 },
};

/* Messages of the monitor: one handler a row of dev_fetch.def. */
static const struct fetch_mon_row {
	uint32_t type;
	fetch_mon_fn *handler;
} fetch_messages[] = {
	{ MSG_FETCH_CONFIG, fetch_mon_on_config },
	{ MSG_FETCH_CA, fetch_mon_on_ca },
	{ MSG_FETCH_START, fetch_mon_on_start },
	{ MSG_FETCH_BEARER, fetch_mon_on_bearer },
	{ MSG_FETCH_STOP, fetch_mon_on_stop },
	{ MSG_RESOLVE_ANS, fetch_mon_on_resolved },
	{ MSG_ENROLLED_ANS, fetch_mon_on_saved },
	{ MSG_DEV_CAPS_ANS, fetch_mon_on_caps },
	{ MSG_DEV_START_ANS, fetch_frame_on_started },
	{ MSG_DEV_HANDLE, fetch_work_on_handle },
	{ MSG_DEV_WAKE, fetch_work_on_wake },
	{ MSG_DEV_EXIT, fetch_work_on_exit },
	{ MSG_DEV_RESULT, fetch_back_on_result },
	{ MSG_DEV_BUNDLE, fetch_back_on_bundle },
	{ MSG_DEV_PROJECT, fetch_back_on_project },
	{ MSG_DEV_PROJECT_FILE, fetch_back_on_project_file },
	{ MSG_BRANCH_OPEN_ANS, fetch_in_on_opened },
	{ MSG_DEV_SIGNAL_ANS, fetch_frame_on_signalled },
	{ MSG_DEV_REVOKE_ANS, fetch_lease_on_revoked },
	{ MSG_DEV_REFRESH_ANS, fetch_lease_on_refreshed },
};

static int
fetch_mon_on_message(void *arg, struct imsg *m, union msg_any *v)
{
	struct fetch *f = arg;
	int r = CL_FORMAT;
	size_t i;

	for (i = 0; i < sizeof(fetch_messages) / sizeof(fetch_messages[0]);
	    i++) {
		if (fetch_messages[i].type == m->type)
			r = fetch_messages[i].handler(f, m, v);
	}
	fetch_wake(f);
	return r;
}

static void
fetch_mon_on_end(void *arg, const char *why)
{
	struct fetch *f = arg;

	/* The hub learns at once; giving memory back takes longer. */
	fetch_link_free(f->link);
	if (why != NULL)
		fatal("monitor-violation", "reason=\"%s\"", why);
	/* The monitor is gone: workloads go on without us. */
	_exit(0);
}

/* One loop, one epoll descriptor, and no signals of its own: the monitor's
 * channel says when to stop. */
static int
fetch_main(void)
{
	static struct fetch f;
	struct event_base *base;
	int r;

	if ((base = event_base_new()) == NULL)
		fatal("start", "reason=\"no event loop\"");
	if ((r = fetch_open(&f, base)) != 0 ||
	    (r = chan_open(&f.chan, base, FETCH_CHANNEL_FD, MSG_M2F, MSG_F2M,
	    CHAN_QUEUE_MAX, fetch_mon_on_message, fetch_mon_on_end, &f)) != 0)
		fatal("start", "reason=\"%s\"", cl_strerror(r));
	f.frames = fetch_frames;
	event_base_dispatch(base);
	return 0;
}

int
main(int argc, char *argv[])
{
	const char *role = argc == 2 ? argv[1] : "session";

	closefrom(FETCH_CHANNEL_FD + 1);
	umask(077);
	/* Reads /etc/localtime now: OpenSSL's mktime() would, in the jail. */
	tzset();
	log_init("agentd-fetch", LOGL_INFO, LOGF_TEXT);
	signal(SIGPIPE, SIG_IGN);
	/* A terminal's ^C is the monitor's: it says bye through us. */
	signal(SIGINT, SIG_IGN);
	if (strcmp(role, "resolver") == 0)
		return fetch_resolve_main();
	if (strcmp(role, "session") != 0)
		fatal("start", "reason=\"unknown role\" role=%s", log_q(role));
	return fetch_main();
}
