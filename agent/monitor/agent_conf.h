/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Configuration of cloop-agentd and its command line.
 */
#ifndef CLOOP_AGENT_CONF_H
#define CLOOP_AGENT_CONF_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/conf.h"
#include "common/base/limits.h"

/*
 * The highest protocol version that the hello may offer.  A device that lacks
 * features may say 26 when it (a) advertises each matching capability as
 * false, which agent/caps_* does, (b) answers every request frame it can
 * receive, which agent/fetch_* does (revoke, attach, upgrade, harness, probe,
 * device channels included), and (c) refuses the start, with started.error,
 * for each member that an older device would silently ignore, which
 * start_check_support() does.  Whoever breaks one of the three lowers this
 * number to the version before the one that brought the feature
 * (cloop-protocol(7), Versions).
 */
#define AGENT_PROTOCOL_MAX PROTO_MAX

enum { HOSTMODE_CONFINED, HOSTMODE_PLAIN, HOSTMODE_OFF };
enum { ENGINE_AUTO, ENGINE_PODMAN, ENGINE_DOCKER, ENGINE_NONE };
enum { FEATURE_AUTO, FEATURE_NO };
enum { CHANNEL_STABLE, CHANNEL_EDGE, CHANNEL_NONE };

/* Strings owned; NULL: not given.  Offsets are in agent_conf_rows. */
struct agent_conf {
	struct conf_seen seen;		/* first: conf.h */
	char *server;
	char *pin;
	char *ca_file;
	char *token_file;
	char *credential_file;
	char *state_dir;
	char *runtime_dir;
	char *shim_socket;		/* NULL: shims are our children */
	char *workdir_root;
	char *max_concurrent;		/* "auto" or a number */
	struct conf_list labels;	/* key=value */
	char *workload_user;
	int host_mode;
	int engine;
	int packet_filter;
	int forward_usb;
	int forward_l2;
	uint64_t spool_limit;
	uint64_t retain_unacked;
	int update_channel;
	struct conf_list release_keys;
	char *release_url;
	int harness_install;
	int accept_project_seed;
	unsigned int max_protocol;
	int log_level;			/* enum log_level */
	int log_format;			/* enum log_format */
};

/* What only the command line can say. */
struct agent_flags {
	const char *conf_path;		/* NULL: the default, may be missing */
	char *token;			/* owned, secret */
	char *bundle;			/* owned, secret */
	int ndebug;			/* -d */
	int check;			/* -t */
	int dump;			/* -T */
	int quiet;			/* -q */
	int insecure;			/* --insecure-transport */
};

#define AGENT_CONF_ERR_MAX 1024

/*
 * Command line, file, defaults, in that precedence.  0; CL_FORMAT with a
 * message naming file, keyword or flag and the value; -1 for a usage error
 * (message too).  Secrets on the command line are copied and overwritten
 * there: every user of the machine can read it.
 */
int agent_conf_load(int argc, char **argv, struct agent_conf *c,
    struct agent_flags *f, char err[AGENT_CONF_ERR_MAX]);
/* Again from the file on SIGHUP; `c` is a fresh struct. */
int agent_conf_reload(int argc, char **argv, struct agent_conf *c,
    char err[AGENT_CONF_ERR_MAX]);
/* -T: text that parses to itself, owned by the caller. */
int agent_conf_format(const struct agent_conf *c, char **textp);
void agent_conf_clear(struct agent_conf *c);
void agent_flags_clear(struct agent_flags *f);

/* The ceiling that is enforced and advertised: 1..MAX_CONCURRENT. */
unsigned int agent_conf_max_concurrent(const struct agent_conf *c);

extern const struct conf_row agent_conf_rows[];

#endif
