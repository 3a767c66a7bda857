/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Memory about the addresses that connect (sshd's srclimit is the model):
 * how many handshakes each has open, how fast it comes, and until when it is
 * penalised.  An IPv4 address is one source, an IPv6 /64 too.  Bounded:
 * MAX_SOURCES entries, the longest untouched idle one goes first.
 */
#ifndef CLOOP_HUB_SOURCE_H
#define CLOOP_HUB_SOURCE_H

#include <bsd/sys/queue.h>
#include <bsd/sys/tree.h>

#include <stddef.h>
#include <stdint.h>

#include "hub_conf.h"

#define MAX_SOURCES 16384	/* 2 MiB; a storm from more addresses evicts */
#define SRC_RATE 10		/* connections a second */
#define SRC_BURST 20
#define SRC_TEXT_MAX (HUB_ADDR_MAX + 4)

struct src;

RB_HEAD(src_tree, src);
TAILQ_HEAD(src_queue, src);

struct src_table {
	struct src_tree tree;
	struct src_queue queue;		/* least recently touched first */
	size_t nsources;
	const struct hub_conf *conf;	/* borrowed */
};

enum src_verdict {
	SRC_OK,		/* go on; *sp is held */
	SRC_LATER,	/* held too, but answer 429 with Retry-After */
	SRC_REFUSE	/* close at once; nothing is held */
};

void src_init(struct src_table *t, const struct hub_conf *conf);
void src_clear(struct src_table *t);

/*
 * A connection from this address came.  Unless refused, *sp (NULL for a
 * listed proxy) counts it until src_put.
 */
enum src_verdict src_get(struct src_table *t, const struct hub_addr *a,
    int64_t now, struct src **sp);
/* Its handshake is over, one way or the other.  NULL is legal. */
void src_put(struct src *s);

/*
 * Penalise; kinds and spans as configured.  Returns the ms it was, 0 when
 * penalties are off or the address is a listed proxy.  src_get_left: how
 * long it is refused by now.
 */
uint32_t src_add_penalty(struct src_table *t, const struct hub_addr *a,
    int kind, int64_t now);
uint32_t src_get_left(const struct src_table *t, const struct hub_addr *a,
    int64_t now);
/* The same, decided elsewhere (PENALTY_SET). */
void src_add_ms(struct src_table *t, const struct hub_addr *a, uint32_t ms,
    int64_t now);

/* The source of an address as text: an address, or an IPv6 /64. */
void src_format(const struct hub_addr *a, char dst[SRC_TEXT_MAX]);
int src_parse(const char *text, struct hub_addr *a);

#endif
