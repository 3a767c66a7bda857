/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Whom a git that speaks to a forge connects to: the host of the URL, and
 * those of the proxies that its environment names.  Text only.
 */
#ifndef CLOOP_FORGE_H
#define CLOOP_FORGE_H

#include <stddef.h>
#include <stdint.h>

#include "url.h"

#define FORGE_NAMES 7		/* the forge and HTTPS_PROXY, ALL_PROXY in
				 * both cases */

struct forge_name {
	char host[MAX_HOST_LEN + 1];	/* without brackets */
	uint16_t port;
};

/*
 * repo is an https URL ("https://host[:port]/..."); of anything else there
 * is no name.  env: NAME=value.  Returns how many, each once; a host that is
 * too long is left out.
 */
size_t forge_find_names(const char *repo, char *const *env, size_t nenv,
    struct forge_name *v, size_t max);

#endif
