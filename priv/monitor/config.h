/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The hub's configuration, cloopd.conf(5): one struct, one keyword table,
 * and the typed forms of the values that are more than a number or a path.
 */
#ifndef PRIV_CONFIG_H
#define PRIV_CONFIG_H

#include <sys/socket.h>

#include <stddef.h>
#include <stdint.h>

#include "common/base/conf.h"

/* Values as written; strings are owned. */
struct hub_conf {
	struct conf_seen seen;		/* first: conf.h */
	struct conf_list listen_agents;
	char *listen_status;
	char *control_socket;
	char *state_dir;
	char *runtime_dir;
	char *key_dir;
	char *external_url;
	struct conf_list allowed_origins;
	struct conf_list trusted_proxies;
	char *net_workers;
	unsigned int max_agents;
	unsigned int max_pending;
	unsigned int max_per_source;
	char *penalty;
	char *operator_group;
	char *viewer_group;
	char *retention;
	uint64_t log_limit;
	uint64_t write_back_budget;	/* per agent */
	uint64_t write_back_total;
	unsigned int lease_ttl, lease_max_ttl, grant_ttl;	/* s */
	int audit_syslog;
	int log_level;		/* index of the words; see config_log_level */
	int log_format;
};

extern const struct conf_row config_rows[];

struct config_args {
	const char *file;	/* -f */
	const char *const *options;	/* -o, in order */
	size_t noptions;
};

/*
 * Options, file, defaults and cross-checks, in that order.  On failure err
 * is the line for the user.  c is cleared then.
 */
int config_load(const struct config_args *a, struct hub_conf *c, char *err,
    size_t errlen);
void config_clear(struct hub_conf *c);
/*
 * Take over the reloadable values of next; the others stay.  *fixedp gets
 * the first keyword that differs and needs a restart, or NULL.  next is
 * left with the old values, for config_clear.
 */
void config_set_reloadable(struct hub_conf *c, struct hub_conf *next,
    const char **fixedp);

struct config_listen {
	struct sockaddr_storage addr;
	socklen_t addr_len;
	int plaintext;
	char text[128];		/* address:port as bound, for logs */
};
/* One ListenAgents value; NULL or a constant text saying what is wrong. */
const char *config_parse_listen(const char *value, struct config_listen *l);

/* PerSourcePenalty.  enabled 0: the word was "no". */
struct config_penalty {
	int enabled;
	int enforce;		/* "enforce nft" */
	uint32_t auth_ms, protocol_ms, crash_ms, max_ms;
};
const char *config_parse_penalty(const char *value, struct config_penalty *p);

/* HandleRetention: "256 per agent, 14d". */
struct config_retention {
	unsigned int per_agent;
	uint64_t age_s;
};
const char *config_parse_retention(const char *value,
    struct config_retention *r);

/* "auto" is the number of CPUs, at most MAX_NET_WORKERS. */
unsigned int config_find_workers(const struct hub_conf *c);
/* LOGL_* of LogLevel. */
int config_log_level(const struct hub_conf *c);
/* The origin of ExternalURL, "https://host:port"; "" without. */
void config_format_origin(const struct hub_conf *c, char *dst, size_t len);
/* What agents dial, "wss://host:port/api/executors/connect". */
int config_format_server(const struct hub_conf *c, char *dst, size_t len);

#endif
