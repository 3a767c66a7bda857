/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Sources on their way to the kernel.  Runs in the monitor (root, without
 * CAP_NET_ADMIN): it bounds, joins and orders; cloopd-fence acts.  An order
 * takes about 50 ms whatever its size, so what comes meanwhile waits and
 * goes as one.
 */
#include "enforce.h"

#include <netinet/in.h>

#include <stdio.h>
#include <string.h>

#include <bsd/string.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "common/msg/msgcat.h"
#include "answers.h"
#include "monitor.h"
#include "setup.h"

#include "sandbox/rules/fence_nft.h"

int
enforce_check(const struct hub_conf *c, const char *file, char *err,
    size_t errlen)
{
	struct config_penalty p;

	(void)config_parse_penalty(c->penalty, &p);
	if (!p.enforce || fence_nft_find_program() != NULL)
		return CL_OK;
	snprintf(err, errlen, "%s: PerSourcePenalty \"%s\": enforce nft "
	    "needs the program nft; install nftables or leave it out", file,
	    c->penalty);
	return CL_NOTFOUND;
}

void
enforce_init(struct monitor *mon, struct child *c)
{
	memset(&mon->enforce, 0, sizeof(mon->enforce));
	mon->enforce.child = c;
	if (c != NULL)
		child_init(c, mon, CHILD_FENCE, 1);
}

static uint16_t
enforce_get_port(const struct config_listen *at)
{
	if (at->addr.ss_family == AF_INET)
		return ntohs(((const struct sockaddr_in *)&at->addr)->
		    sin_port);
	return ntohs(((const struct sockaddr_in6 *)&at->addr)->sin6_port);
}

void
enforce_configure(struct child *c)
{
	int64_t ports[MAX_FENCE_PORTS], port;
	struct msg_fence_open open = { .ports = ports };
	struct config_listen at;
	size_t i, k, n = 0;

	for (i = 0; i < c->mon->conf.listen_agents.n; i++) {
		(void)config_parse_listen(c->mon->conf.listen_agents.v[i],
		    &at);
		port = enforce_get_port(&at);
		for (k = 0; k < n && ports[k] != port; k++)
			continue;
		if (k == n && n < MAX_FENCE_PORTS)
			ports[n++] = port;
	}
	open.nports = n;
	MON_SEND(c, FENCE_OPEN, 0, &open, -1);
}

/* Half an address, as a number. */
static uint64_t
enforce_get_half(const uint8_t *bytes)
{
	uint64_t half = 0;
	size_t i;

	for (i = 0; i < 8; i++)
		half = half << 8 | bytes[i];
	return half;
}

/* As many as fit, the oldest first. */
static void
enforce_send(struct monitor *mon)
{
	struct enforce *e = &mon->enforce;
	int64_t now = util_now_ms();
	struct msg_fence_source v[MAX_FENCE_BATCH];
	struct msg_fence_add add = { .sources = v };
	size_t i, n = 0, sent;

	if (e->child == NULL || e->child->state != MS_SERVING || e->busy)
		return;
	/* Some have waited long enough meanwhile. */
	for (i = 0; i < e->n; i++)
		if (e->queue[i].until > now)
			e->queue[n++] = e->queue[i];
	e->n = n;
	if (n == 0)
		return;
	sent = n < MAX_FENCE_BATCH ? n : MAX_FENCE_BATCH;
	for (i = 0; i < sent; i++) {
		v[i].high = enforce_get_half(e->queue[i].source.addr);
		v[i].low = enforce_get_half(e->queue[i].source.addr + 8);
		v[i].ms = (uint64_t)(e->queue[i].until - now);
	}
	add.nsources = sent;
	e->n -= sent;
	memmove(e->queue, e->queue + sent, e->n * sizeof(e->queue[0]));
	MON_SEND(e->child, FENCE_ADD, 0, &add, -1);
	e->busy = 1;
	e->asked_at = now;
}

void
enforce_add(struct monitor *mon, const struct penalty_source *s,
    uint32_t left_ms)
{
	struct enforce *e = &mon->enforce;
	struct config_penalty p;
	int64_t until;
	size_t i;

	if (e->child == NULL || left_ms == 0)
		return;
	(void)config_parse_penalty(mon->conf.penalty, &p);
	if (!p.enforce)	/* switched off by a reload */
		return;
	/* A worker's word, but never for longer than configured. */
	if (left_ms > p.max_ms)
		left_ms = p.max_ms;
	until = util_now_ms() + left_ms;
	for (i = 0; i < e->n; i++)
		if (memcmp(&e->queue[i].source, s, sizeof(*s)) == 0)
			break;
	if (i == MAX_FENCE_QUEUE) {
		e->ndropped++;
		return;
	}
	if (i == e->n) {
		e->queue[e->n].source = *s;
		e->queue[e->n++].until = until;
	} else if (e->queue[i].until < until)
		e->queue[i].until = until;
	enforce_send(mon);
}

int
answer_fence_ready(struct monitor *mon, struct child *c, struct imsg *m,
    msg_of_FENCE_READY *v)
{
	(void)m;
	if (v->version != MSGCAT_VERSION)
		return CL_FORMAT;
	child_enter_serving(c);
	mon_on_ready(c);
	return CL_OK;
}

int
answer_fence_add(struct monitor *mon, struct child *c, struct imsg *m,
    msg_of_FENCE_ADD_ANS *v)
{
	static struct log_ratelimit rl;
	struct enforce *e = &mon->enforce;
	unsigned int suppressed;

	(void)c;
	(void)m;
	if (!e->busy)
		return CL_FORMAT;
	e->busy = 0;
	if ((!v->ok || e->ndropped > 0) &&
	    log_ratelimit(&rl, 1, 60, &suppressed))
		log_warn("enforce", "result=%s reason=%s dropped=%llu "
		    "suppressed=%u", v->ok ? "ok" : "failed", log_q(v->reason),
		    (unsigned long long)e->ndropped, suppressed);
	enforce_send(mon);
	return CL_OK;
}

void
enforce_on_tick(struct monitor *mon)
{
	struct enforce *e = &mon->enforce;

	if (e->child == NULL)
		return;
	if (e->busy && util_now_ms() - e->asked_at > FENCE_ANSWER_MS)
		child_kill(e->child, "an order took too long");
}

void
enforce_on_down(struct monitor *mon)
{
	struct enforce *e = &mon->enforce;

	e->child = NULL;
	e->n = 0;
	e->busy = 0;
	if (mon->phase != MON_SERVING)
		return;
	log_error("enforce", "result=off reason=\"cloopd-fence ended; the "
	    "capability it needs was given up: restart the hub\"");
	mon_set_error(mon, "enforce nft is off: cloopd-fence ended");
}
