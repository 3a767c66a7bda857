/*
 * SPDX-License-Identifier: ISC
 * Copyright (c) 2026 The cloop authors; see LICENSE.
 *
 * Ruleset text.  Runs in cloopd-fence, on fields that were checked.  One
 * table, inet cloopd, made anew at each start; nobody else's is touched.
 */
#include "fence_nft.h"

#include <sys/socket.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/limits.h"

/*
 * Only the first packet of a connection is dropped: a session that an honest
 * device behind the same address has goes on (as in cloopd-net).  An IPv6
 * source is a /64.  No connection tracking is needed for that.
 */
#define FENCE_RULE "tcp flags & (syn | ack) == syn"
#define FENCE_HALF "ffff:ffff:ffff:ffff::"

struct fence_text {
	char *dst;
	size_t len, at;
	int error;
};

static void fence_put(struct fence_text *, const char *, ...)
    __attribute__((__format__(__printf__, 2, 3)));

static void
fence_put(struct fence_text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (t->error != 0)
		return;
	va_start(ap, fmt);
	n = vsnprintf(t->dst + t->at, t->len - t->at, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= t->len - t->at)
		t->error = CL_TOOBIG;
	else
		t->at += (size_t)n;
}

static int
fence_end_text(const struct fence_text *t)
{
	return t->error != 0 ? t->error : (int)t->at;
}

const char *
fence_nft_find_program(void)
{
	static const char *const paths[] = { "/usr/sbin/nft", "/sbin/nft" };
	size_t i;

	for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		if (access(paths[i], X_OK) == 0)
			return paths[i];
	return NULL;
}

static void
fence_put_rule(struct fence_text *t, const int64_t *ports, size_t n,
    const char *match)
{
	size_t i;

	fence_put(t, "\t\ttcp dport { ");
	for (i = 0; i < n; i++)
		fence_put(t, "%s%u", i > 0 ? ", " : "",
		    (unsigned int)ports[i]);
	fence_put(t, " } " FENCE_RULE " %s counter drop\n", match);
}

int
fence_nft_format_table(const int64_t *ports, size_t nports, char *dst,
    size_t len)
{
	struct fence_text t = { dst, len, 0, 0 };
	size_t i;

	if (nports == 0)
		return CL_FORMAT;
	for (i = 0; i < nports; i++)
		if (ports[i] == 0)
			return CL_FORMAT;
	/* The first line makes sure that there is one to delete. */
	fence_put(&t, "table inet cloopd\ndelete table inet cloopd\n"
	    "table inet cloopd {\n"
	    "\tset v4 { type ipv4_addr; flags timeout; size %u; }\n"
	    "\tset v6 { type ipv6_addr; flags timeout; size %u; }\n"
	    "\tchain input {\n"
	    "\t\ttype filter hook input priority -10; policy accept;\n",
	    MAX_FENCE_SOURCES, MAX_FENCE_SOURCES);
	fence_put_rule(&t, ports, nports, "ip saddr @v4");
	fence_put_rule(&t, ports, nports, "ip6 saddr & " FENCE_HALF " @v6");
	fence_put(&t, "\t}\n}\n");
	return fence_end_text(&t);
}

static int
fence_is_ipv4(const struct fence_source *s)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return memcmp(s->addr, mapped, sizeof(mapped)) == 0;
}

static int
fence_is_source(const struct fence_source *s)
{
	static const uint8_t zero[16];

	if (s->ms == 0 || s->ms > MAX_PENALTY_MS)
		return 0;
	if (fence_is_ipv4(s))
		return memcmp(s->addr + 12, zero, 4) != 0;
	return memcmp(s->addr + 8, zero, 8) == 0;
}

/* The elements of one family as "verb element inet cloopd v4 { ... }". */
static void
fence_put_elements(struct fence_text *t, const char *verb, int timed,
    int ipv4, const struct fence_source *s, size_t n)
{
	char addr[INET6_ADDRSTRLEN];
	size_t i, first = 1;

	for (i = 0; i < n; i++) {
		if (fence_is_ipv4(&s[i]) != ipv4)
			continue;
		if (ipv4)
			(void)inet_ntop(AF_INET, s[i].addr + 12, addr,
			    sizeof(addr));
		else
			(void)inet_ntop(AF_INET6, s[i].addr, addr,
			    sizeof(addr));
		if (first)
			fence_put(t, "%s element inet cloopd %s { ", verb,
			    ipv4 ? "v4" : "v6");
		fence_put(t, "%s%s", first ? "" : ", ", addr);
		if (timed)
			fence_put(t, " timeout %us", (s[i].ms + 999) / 1000);
		first = 0;
	}
	if (!first)
		fence_put(t, " }\n");
}

int
fence_nft_format_add(const struct fence_source *s, size_t n, char *dst,
    size_t len)
{
	struct fence_text t = { dst, len, 0, 0 };
	size_t i;
	int ipv4;

	if (n == 0 || n > MAX_FENCE_BATCH)
		return CL_FORMAT;
	for (i = 0; i < n; i++)
		if (!fence_is_source(&s[i]))
			return CL_FORMAT;
	/*
	 * An element that is there keeps its old timeout, and one that is
	 * not cannot be deleted: make it, delete it, add it; one transaction.
	 */
	for (ipv4 = 0; ipv4 < 2; ipv4++) {
		fence_put_elements(&t, "add", 0, ipv4, s, n);
		fence_put_elements(&t, "delete", 0, ipv4, s, n);
		fence_put_elements(&t, "add", 1, ipv4, s, n);
	}
	return fence_end_text(&t);
}

int
fence_nft_format_end(char *dst, size_t len)
{
	struct fence_text t = { dst, len, 0, 0 };

	fence_put(&t, "table inet cloopd\ndelete table inet cloopd\n");
	return fence_end_text(&t);
}
