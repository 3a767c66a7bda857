/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Penalties of sources in the monitor (PerSourcePenalty): what one
 * cloopd-net found out about an address is told to the others, and a crash
 * is held against those it was serving.
 */
#ifndef PRIV_PENALTY_H
#define PRIV_PENALTY_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/limits.h"

struct child;
struct monitor;

/* IPv4 as ::ffff:a.b.c.d; of IPv6 the /64, the rest zero. */
struct penalty_source {
	uint8_t addr[16];
};

#define PENALTY_TEXT_MAX 64

/* What a cloopd-net that is started again has to know; the one that ends
 * first makes room. */
struct penalties {
	struct penalty_row {
		struct penalty_source source;
		int64_t until;		/* monotonic ms */
	} rows[MAX_PENALTIES];
	size_t n;
};

/*
 * "192.0.2.1", "192.0.2.1:4711", "2001:db8::1", "[2001:db8::1]:4711" or
 * "2001:db8::/64".  CL_FORMAT for anything else.
 */
int penalty_parse_source(const char *text, struct penalty_source *s);
int penalty_is_ipv4(const struct penalty_source *s);
/* The form cloopd-net knows it by: an address, or a /64. */
void penalty_format_source(const struct penalty_source *s,
    char dst[PENALTY_TEXT_MAX]);

/*
 * Unless a device from there has a session on another worker: hold it
 * against the source, for the kernel, if it is to know, and for
 * every serving cloopd-net but `from` (NULL: all).  ms were added; left_ms
 * is what it has to wait by now.
 */
void penalty_add(struct monitor *mon, const struct child *from,
    const struct penalty_source *s, int kind, uint32_t ms, uint32_t left_ms);
/* All of them to a cloopd-net that begins to serve. */
void penalty_send_all(struct monitor *mon, struct child *c);

#endif
