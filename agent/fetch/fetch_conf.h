/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * What the monitor tells agentd-fetch before it may dial (FETCH_CONFIG,
 * FETCH_BEARER).  Prefix fc_.
 */
#ifndef CLOOP_FETCH_CONF_H
#define CLOOP_FETCH_CONF_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/limits.h"
#include "common/base/pin.h"
#include "common/base/secret.h"

struct buf;
struct fl_addr;	/* fetch_link.h */

#define FC_HOST_MAX 255

struct fetch_conf {
	char host[FC_HOST_MAX + 1];
	uint16_t port;
	int tls;
	char path[MAX_URL_LEN + 1];
	int insecure;		/* plaintext beyond this machine: warn */
	struct pin pins[MAX_PINS];
	size_t npins;
	char agent_id[MAX_ID_LEN + 1];	/* "" until enrolled */
	char name[MAX_LABEL_LEN + 1];
	char agent_version[MAX_LABEL_LEN + 1];
	uint16_t max_protocol;
	uint32_t max_concurrent;
	uint8_t log_level;
	struct secret bearer;
	int enrolling;
};

/* Decode a body completely.  CL_FORMAT, CL_NOMEM and those of buf.h. */
int fc_parse(struct buf *b, struct fetch_conf *c);
int fc_parse_bearer(struct buf *b, struct fetch_conf *c);
/* RESOLVE_ANS and RES_ADDRS into addrs[MAX_RESOLVED]; *okp 0 leaves the
 * reason in why[whylen]. */
int fc_parse_addrs(struct buf *b, int *okp, char *why, size_t whylen,
    struct fl_addr *addrs, size_t *np);
void fc_put_addrs(struct buf *b, const char *error,
    const struct fl_addr *addrs, size_t n);

#endif
