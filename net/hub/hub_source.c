/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Per-source limits and penalties of cloopd-net.  All times are monotonic
 * milliseconds the caller passes.
 */
#include "hub_source.h"

#include <bsd/string.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/msg/msgcat.h"

#define SRC_TOLD_MS 1000	/* one 429 a second; the rest just closes */

struct src {
	RB_ENTRY(src) node;
	TAILQ_ENTRY(src) link;
	struct hub_addr addr;
	unsigned int npending;
	int tokens;		/* thousandths of a connection */
	int64_t tokens_at;
	int64_t until;		/* penalised until then */
	int64_t told_at;
};

static int
src_cmp(const struct src *a, const struct src *b)
{
	return memcmp(a->addr.bytes, b->addr.bytes, sizeof(a->addr.bytes));
}

RB_GENERATE_INTERNAL(src_tree, src, node, src_cmp,
    __attribute__((__unused__)) static)

/* The source an address belongs to: itself, or its /64. */
static struct hub_addr
src_key(const struct hub_addr *a)
{
	struct hub_addr key = *a;

	if (!hub_addr_is_ipv4(a))
		memset(key.bytes + 8, 0, 8);
	return key;
}

void
src_init(struct src_table *t, const struct hub_conf *conf)
{
	RB_INIT(&t->tree);
	TAILQ_INIT(&t->queue);
	t->nsources = 0;
	t->conf = conf;
}

static void
src_del(struct src_table *t, struct src *s)
{
	RB_REMOVE(src_tree, &t->tree, s);
	TAILQ_REMOVE(&t->queue, s, link);
	t->nsources--;
	free(s);
}

void
src_clear(struct src_table *t)
{
	struct src *s;

	while ((s = TAILQ_FIRST(&t->queue)) != NULL)
		src_del(t, s);
}

/* Make room for one more; 0 when every source has a handshake open. */
static int
src_evict(struct src_table *t)
{
	struct src *s;

	if (t->nsources < MAX_SOURCES)
		return 1;
	TAILQ_FOREACH(s, &t->queue, link)
		if (s->npending == 0) {
			src_del(t, s);
			return 1;
		}
	return 0;
}

static struct src *
src_find(struct src_table *t, const struct hub_addr *a, int64_t now)
{
	struct src key = { .addr = src_key(a) }, *s;

	if ((s = RB_FIND(src_tree, &t->tree, &key)) != NULL) {
		TAILQ_REMOVE(&t->queue, s, link);
		TAILQ_INSERT_TAIL(&t->queue, s, link);
		return s;
	}
	if (!src_evict(t) || (s = calloc(1, sizeof(*s))) == NULL)
		return NULL;
	s->addr = key.addr;
	s->tokens = SRC_BURST * 1000;
	s->tokens_at = now;
	s->told_at = now - SRC_TOLD_MS;
	RB_INSERT(src_tree, &t->tree, s);
	TAILQ_INSERT_TAIL(&t->queue, s, link);
	t->nsources++;
	return s;
}

/* Take a token; 0 when the source comes faster than SRC_RATE. */
static int
src_take_token(struct src *s, int64_t now)
{
	int64_t more = now - s->tokens_at;

	if (more > 60000)
		more = 60000;
	s->tokens += (int)more * SRC_RATE;
	if (s->tokens > SRC_BURST * 1000)
		s->tokens = SRC_BURST * 1000;
	s->tokens_at = now;
	if (s->tokens < 1000)
		return 0;
	s->tokens -= 1000;
	return 1;
}

enum src_verdict
src_get(struct src_table *t, const struct hub_addr *a, int64_t now,
    struct src **sp)
{
	enum src_verdict verdict = SRC_OK;
	struct src *s;

	*sp = NULL;
	if (hub_conf_is_listed_proxy(t->conf, a))
		return SRC_OK;
	if ((s = src_find(t, a, now)) == NULL)
		return SRC_REFUSE;
	if (s->npending >= t->conf->net.max_per_source)
		return SRC_REFUSE;
	if (t->conf->net.penalties &&
	    (s->until > now || !src_take_token(s, now))) {
		/* A handshake for a refusal is a courtesy: rationed. */
		if (now - s->told_at < SRC_TOLD_MS)
			return SRC_REFUSE;
		s->told_at = now;
		verdict = SRC_LATER;
	}
	s->npending++;
	*sp = s;
	return verdict;
}

void
src_put(struct src *s)
{
	if (s != NULL && s->npending > 0)
		s->npending--;
}

void
src_add_ms(struct src_table *t, const struct hub_addr *a, uint32_t ms,
    int64_t now)
{
	struct src *s;

	if (ms == 0 || !t->conf->net.penalties ||
	    hub_conf_is_listed_proxy(t->conf, a) ||
	    (s = src_find(t, a, now)) == NULL)
		return;
	if (s->until < now)
		s->until = now;
	s->until += ms;
	if (s->until > now + (int64_t)t->conf->net.max_ms)
		s->until = now + (int64_t)t->conf->net.max_ms;
}

uint32_t
src_add_penalty(struct src_table *t, const struct hub_addr *a, int kind,
    int64_t now)
{
	uint32_t ms;

	switch (kind) {
	case PEN_AUTH:
		ms = t->conf->net.auth_ms;
		break;
	case PEN_PROTOCOL:
		ms = t->conf->net.protocol_ms;
		break;
	default:
		ms = t->conf->net.crash_ms;
		break;
	}
	if (!t->conf->net.penalties || hub_conf_is_listed_proxy(t->conf, a))
		return 0;
	src_add_ms(t, a, ms, now);
	return ms;
}

uint32_t
src_get_left(const struct src_table *t, const struct hub_addr *a,
    int64_t now)
{
	struct src key = { .addr = src_key(a) };
	const struct src *s;

	/* RB_FIND changes nothing; its type does not say so. */
	s = RB_FIND(src_tree, (struct src_tree *)(uintptr_t)&t->tree, &key);
	return s != NULL && s->until > now ? (uint32_t)(s->until - now) : 0;
}

void
src_format(const struct hub_addr *a, char dst[SRC_TEXT_MAX])
{
	struct hub_addr key = src_key(a);

	hub_addr_format(&key, dst);
	if (!hub_addr_is_ipv4(a))
		(void)strlcat(dst, "/64", SRC_TEXT_MAX);
}

int
src_parse(const char *text, struct hub_addr *a)
{
	struct hub_cidr c;
	int r;

	if ((r = hub_cidr_parse(text, &c)) != CL_OK)
		return r;
	*a = c.addr;
	return CL_OK;
}
