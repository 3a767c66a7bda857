/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Installed paths and system names.  The Makefile may override SYSCONFDIR,
 * LOCALSTATEDIR, RUNDIR and LIBEXECDIR.
 */
#ifndef CLOOP_PATHS_H
#define CLOOP_PATHS_H

#ifndef SYSCONFDIR
#define SYSCONFDIR "/etc"
#endif
#ifndef LOCALSTATEDIR
#define LOCALSTATEDIR "/var"
#endif
#ifndef RUNDIR
#define RUNDIR "/run"
#endif
#ifndef LIBEXECDIR
#define LIBEXECDIR "/usr/libexec/cloop"
#endif

#define PATH_CLOOPD_CONF SYSCONFDIR "/cloop/cloopd.conf"
#define PATH_AGENTD_CONF SYSCONFDIR "/cloop/cloop-agentd.conf"
#define PATH_KEY_DIR SYSCONFDIR "/cloop/keys"
#define PATH_ENROLL_BUNDLE SYSCONFDIR "/cloop/enroll.bundle"
#define PATH_STATE_DIR LOCALSTATEDIR "/lib/cloop"
#define PATH_RUN_DIR RUNDIR "/cloop"
#define PATH_CONTROL_SOCKET RUNDIR "/cloop/cloopd.sock"
#define PATH_EMPTY RUNDIR "/cloop/empty"	/* chroot of the children */

/* Environment variable naming the directory of the helper programs. */
#define ENV_LIBEXEC "CLOOP_LIBEXEC"
/* The MAC key, when set and not empty. */
#define ENV_HMAC_KEY "CLOOP_STATE_HMAC_KEY"

#define USER_NET "_cloop-net"
#define USER_KEY "_cloop-key"
#define USER_CTL "_cloop-ctl"
#define USER_FETCH "_cloop-fetch"
#define USER_WORK "_cloop-work"
#define GROUP_OPERATOR "cloop"
#define GROUP_VIEWER "cloop-view"

#endif
