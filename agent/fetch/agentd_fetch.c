/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * agentd-fetch: the device's network process.  Two roles: `session` holds the
 * connection to the hub and the credential, `resolver` answers one name.
 * Runs as _cloop-fetch, chrooted (session), under seccomp; descriptor 3 is
 * the monitor, everything else came over it.  Trusts the monitor; the hub
 * only to say what should be done, never that it may be.
 */
#include <bsd/unistd.h>
#include <event2/event.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "fetch_session.h"

#define FETCH_CHANNEL_FD 3

/* One loop, one epoll descriptor, and no signals of its own: the monitor's
 * channel says when to stop. */
static int
fetch_main(void)
{
	static struct fs fs;
	struct event_base *base;
	int r;

	if ((base = event_base_new()) == NULL)
		fatal("start", "reason=\"no event loop\"");
	if ((r = fs_open(&fs, base)) != 0 ||
	    (r = fm_open(&fs, FETCH_CHANNEL_FD)) != 0)
		fatal("start", "reason=\"%s\"", cl_strerror(r));
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
		return fr_main();
	if (strcmp(role, "session") != 0)
		fatal("start", "reason=\"unknown role\" role=%s", log_q(role));
	return fetch_main();
}
