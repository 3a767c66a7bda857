/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Penalties of sources.  Runs in the monitor (root).  The address may come
 * from a cloopd-net that was taken over: it is taken apart and written anew,
 * so that nothing but an address ever reaches another process.
 */
#include "penalty.h"

#include <sys/socket.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include <string.h>

#include <bsd/string.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "common/msg/buf.h"
#include "common/msg/msgcat.h"
#include "monitor.h"

static const uint8_t penalty_mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	0xff, 0xff };

int
penalty_is_ipv4(const struct penalty_source *s)
{
	return memcmp(s->addr, penalty_mapped, sizeof(penalty_mapped)) == 0;
}

int
penalty_parse_source(const char *text, struct penalty_source *s)
{
	char copy[PENALTY_TEXT_MAX], *host = copy, *end;

	memset(s, 0, sizeof(*s));
	if (strlcpy(copy, text, sizeof(copy)) >= sizeof(copy))
		return CL_FORMAT;
	if (copy[0] == '[') {
		host++;
		if ((end = strchr(host, ']')) == NULL)
			return CL_FORMAT;
	} else if ((end = strchr(host, '/')) != NULL) {
		if (strcmp(end, "/64") != 0)
			return CL_FORMAT;
	} else if ((end = strchr(host, ':')) != NULL &&
	    strchr(end + 1, ':') != NULL)
		end = NULL;	/* an IPv6 address without a port */
	if (end != NULL)
		*end = '\0';
	if (inet_pton(AF_INET, host, s->addr + 12) == 1) {
		memcpy(s->addr, penalty_mapped, sizeof(penalty_mapped));
		return CL_OK;
	}
	if (inet_pton(AF_INET6, host, s->addr) != 1)
		return CL_FORMAT;
	if (!penalty_is_ipv4(s))
		memset(s->addr + 8, 0, 8);
	return CL_OK;
}

void
penalty_format_source(const struct penalty_source *s,
    char dst[PENALTY_TEXT_MAX])
{
	if (penalty_is_ipv4(s)) {
		(void)inet_ntop(AF_INET, s->addr + 12, dst, PENALTY_TEXT_MAX);
		return;
	}
	(void)inet_ntop(AF_INET6, s->addr, dst, PENALTY_TEXT_MAX);
	(void)strlcat(dst, "/64", PENALTY_TEXT_MAX);
}

static void
penalty_save(struct penalties *p, const struct penalty_source *s,
    int64_t until)
{
	size_t i, first = 0;

	for (i = 0; i < p->n; i++) {
		if (memcmp(&p->rows[i].source, s, sizeof(*s)) == 0)
			break;
		if (p->rows[i].until < p->rows[first].until)
			first = i;
	}
	if (i == p->n && p->n < MAX_PENALTIES)
		p->rows[p->n++].until = 0;
	else if (i == p->n) {
		i = first;
		p->rows[i].until = 0;
	}
	p->rows[i].source = *s;
	if (p->rows[i].until < until)
		p->rows[i].until = until;
}

static void
penalty_send(struct child *c, const struct penalty_source *s, int64_t ms)
{
	char text[PENALTY_TEXT_MAX];
	struct msg_penalty_set body = { text, (uint64_t)ms };

	penalty_format_source(s, text);
	MON_SEND(c, PENALTY_SET, 0, &body, -1);
}

void
penalty_send_all(struct monitor *mon, struct child *c)
{
	const struct penalty_row *row;
	int64_t now = util_now_ms();
	size_t i;

	for (i = 0; i < mon->penalties.n; i++) {
		row = &mon->penalties.rows[i];
		if (row->until > now)
			penalty_send(c, &row->source, row->until - now);
	}
}

/*
 * What one worker says about an address is its word alone; another's
 * welcomed device there is a better witness, and would be locked out.
 */
static int
penalty_is_disputed(struct monitor *mon, const struct child *from,
    const struct penalty_source *source)
{
	struct session *s = NULL;
	struct child *c;

	while ((s = agents_next_source(&mon->agents, source, s)) != NULL) {
		c = mon_find_child(mon, s->generation);
		if (s->state == SESSION_CURRENT && c != NULL && c != from)
			return 1;
	}
	return 0;
}

void
penalty_add(struct monitor *mon, const struct child *from,
    const struct penalty_source *s, int kind, uint32_t ms, uint32_t left_ms)
{
	static struct log_ratelimit rl;
	char text[PENALTY_TEXT_MAX];
	struct child *c;
	size_t i;

	if (penalty_is_disputed(mon, from, s)) {
		penalty_format_source(s, text);
		if (log_ratelimit(&rl, 10, 60, NULL))
			log_warn("penalty-ignored", "source=%s kind=%d "
			    "reason=\"a device from there is connected\"",
			    text, kind);
		return;
	}
	penalty_save(&mon->penalties, s, util_now_ms() + left_ms);
	enforce_add(mon, s, left_ms);
	for (i = 0; i < mon->nchildren; i++) {
		c = &mon->children[i];
		if (c->kind != CHILD_NET || c == from || !c->has_start)
			continue;
		penalty_send(c, s, ms);
	}
}
