/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * The server URL: checked once at the start, by root, before anybody dials.
 * Text only.
 */
#ifndef CLOOP_URL_H
#define CLOOP_URL_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/limits.h"

#define URL_DEFAULT_PATH "/api/executors/connect"
#define MAX_HOST_LEN 253

struct url {
	char text[MAX_URL_LEN + 1];	/* as given, without white space
					 * around */
	char host[MAX_HOST_LEN + 1];	/* lower case, without brackets */
	char path[MAX_URL_LEN + 1];	/* with the query, never empty */
	uint16_t port;
	int tls;
};

/*
 * wss, https, ws, http in any case; host; optional port and path.  CL_FORMAT
 * or CL_TOOBIG with a constant text in *whyp.  User info, fragments, white
 * space and control characters are errors.
 */
int url_parse(const char *text, struct url *u, const char **whyp);

/*
 * 1 when plaintext to this host stays on the machine: `localhost`, a name
 * ending in `.localhost`, 127.0.0.0/8, ::1, IPv4-mapped 127/8.  `host` as in
 * struct url.
 */
int url_is_loopback(const char *host);

#endif
